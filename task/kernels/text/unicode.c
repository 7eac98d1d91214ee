/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/text/unicode.h"

#include <ctype.h>
#include <iconv.h>
#include <pthread.h>
#include <string.h>

enum { BYTE_ORDER_MARK = 0xfeff };

struct unicode_encoding {
	const char *name; /* lower-case letters and digits only */
	size_t (*next)(struct mu_span s, bool little_endian, int32_t *character);
	void (*put)(struct mu_buf *b, bool little_endian, int32_t character);
	bool little_endian;
	unsigned mark_bytes; /* size of a byte order mark, which sets the order; 0: fixed order */
	const char *charset; /* name for iconv, which decodes it; NULL: `next` decodes */
	bool is_multibyte;   /* a character of the charset has up to MAX_CHARACTER_BYTES bytes */
};

static unsigned byte_at(struct mu_span s, size_t i)
{
	return (unsigned char)s.data[i];
}

/* The length of the character that starts with this byte; 0: no character starts with it.  *lowest
 * and *highest limit the second byte, to exclude overlong forms, surrogates and code points beyond
 * UNICODE_LAST. */
static size_t utf8_length(unsigned first, unsigned *lowest, unsigned *highest)
{
	*lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
	*highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
	return first < 0x80                    ? 1
	       : first >= 0xc2 && first < 0xe0 ? 2
	       : first >= 0xe0 && first < 0xf0 ? 3
	       : first >= 0xf0 && first < 0xf5 ? 4
					       : 0;
}

static size_t next_utf8(struct mu_span s, bool little_endian, int32_t *character)
{
	unsigned first = byte_at(s, 0), lowest, highest;
	size_t n = utf8_length(first, &lowest, &highest);

	*character = UNICODE_MALFORMED;
	if (!n)
		return 1;
	int32_t c = (int32_t)(n == 1 ? first : first & (0x7fu >> n));
	for (size_t i = 1; i < n; i++) {
		if (i == s.len || byte_at(s, i) < lowest || byte_at(s, i) > highest)
			return i;
		c = c << 6 | (int32_t)(byte_at(s, i) & 0x3f);
		lowest = 0x80;
		highest = 0xbf;
	}
	*character = c;
	return n;
}

static void put_utf8(struct mu_buf *b, bool little_endian, int32_t c)
{
	static const unsigned char mark[] = {0, 0, 0xc0, 0xe0, 0xf0};

	c = unicode_is_surrogate(c) ? UNICODE_REPLACEMENT : c;
	int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	mu_buf_putc(b, (char)(mark[n] | c >> 6 * (n - 1)));
	for (int i = n - 1; i-- > 0;)
		mu_buf_putc(b, (char)(0x80 | (c >> 6 * i & 0x3f)));
}

static uint32_t unit_at(struct mu_span s, size_t at, size_t size, bool little_endian)
{
	uint32_t v = 0;

	for (size_t i = 0; i < size; i++)
		v = v << 8 | byte_at(s, at + (little_endian ? size - 1 - i : i));
	return v;
}

static void put_unit(struct mu_buf *b, uint32_t v, size_t size, bool little_endian)
{
	for (size_t i = 0; i < size; i++)
		mu_buf_putc(b, (char)(v >> 8 * (little_endian ? i : size - 1 - i)));
}

static size_t next_utf16(struct mu_span s, bool little_endian, int32_t *character)
{
	*character = UNICODE_MALFORMED;
	if (s.len < 2)
		return s.len;
	uint32_t high = unit_at(s, 0, 2, little_endian);
	if (!unicode_is_surrogate((int32_t)high)) {
		*character = (int32_t)high;
		return 2;
	}
	if (high >= 0xdc00)
		return 2;
	if (s.len < 4) /* the text ends within a character */
		return s.len;
	uint32_t low = unit_at(s, 2, 2, little_endian);
	if (low < 0xdc00 || low > 0xdfff)
		return 2;
	*character = (int32_t)(0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff)));
	return 4;
}

static void put_utf16(struct mu_buf *b, bool little_endian, int32_t c)
{
	if (c < 0x10000) {
		put_unit(b, (uint32_t)c, 2, little_endian);
		return;
	}
	put_unit(b, 0xd800 | (uint32_t)(c - 0x10000) >> 10, 2, little_endian);
	put_unit(b, 0xdc00 | ((uint32_t)c & 0x3ff), 2, little_endian);
}

static size_t next_utf32(struct mu_span s, bool little_endian, int32_t *character)
{
	*character = UNICODE_MALFORMED;
	if (s.len < 4)
		return s.len;
	uint32_t c = unit_at(s, 0, 4, little_endian);
	if (c <= UNICODE_LAST && !unicode_is_surrogate((int32_t)c))
		*character = (int32_t)c;
	return 4;
}

static void put_utf32(struct mu_buf *b, bool little_endian, int32_t c)
{
	put_unit(b, (uint32_t)c, 4, little_endian);
}

static size_t next_ascii(struct mu_span s, bool little_endian, int32_t *character)
{
	*character = byte_at(s, 0) < 0x80 ? (int32_t)byte_at(s, 0) : UNICODE_MALFORMED;
	return 1;
}

static size_t next_latin(struct mu_span s, bool little_endian, int32_t *character)
{
	*character = (int32_t)byte_at(s, 0);
	return 1;
}

static void put_ascii(struct mu_buf *b, bool little_endian, int32_t c)
{
	mu_buf_putc(b, c < 0x80 ? (char)c : 0x1a); /* SUBSTITUTE */
}

static void put_latin(struct mu_buf *b, bool little_endian, int32_t c)
{
	mu_buf_putc(b, c < 0x100 ? (char)c : 0x1a);
}

static const struct unicode_encoding encodings[] = {
    {"utf8", next_utf8, put_utf8, false, 0, NULL, false},
    {"utf16be", next_utf16, put_utf16, false, 0, NULL, false},
    {"utf16le", next_utf16, put_utf16, true, 0, NULL, false},
    {"utf32be", next_utf32, put_utf32, false, 0, NULL, false},
    {"utf32le", next_utf32, put_utf32, true, 0, NULL, false},
    {"ascii", next_ascii, put_ascii, false, 0, NULL, false},
    {"usascii", next_ascii, put_ascii, false, 0, NULL, false},
    {"latin1", next_latin, put_latin, false, 0, NULL, false},
    {"iso88591", next_latin, put_latin, false, 0, NULL, false},
    {"utf16", next_utf16, put_utf16, false, 2, NULL, false},
    {"utf32", next_utf32, put_utf32, false, 4, NULL, false},
};

/* ---- charsets (only decoded; the ops encode to UTF) ---- */

enum { MAX_CHARACTER_BYTES = 4 };

/* `name` is a list of names, separated by spaces.  The mappings of iconv equal those of ICU, which
 * TensorFlow uses, except for private-use characters. */
static const struct unicode_encoding charsets[] = {
    {"iso88592 latin2", .charset = "ISO8859-2"},
    {"iso88593 latin3", .charset = "ISO8859-3"},
    {"iso88594 latin4", .charset = "ISO8859-4"},
    {"iso88595", .charset = "ISO8859-5"},
    {"iso88596", .charset = "ISO8859-6"},
    {"iso88597", .charset = "ISO8859-7"},
    {"iso88598", .charset = "ISO8859-8"},
    {"iso88599 latin5", .charset = "ISO8859-9"},
    {"iso885910 latin6", .charset = "ISO8859-10"},
    {"iso885911", .charset = "ISO8859-11"},
    {"iso885913", .charset = "ISO8859-13"},
    {"iso885914", .charset = "ISO8859-14"},
    {"iso885915 latin9", .charset = "ISO8859-15"},
    {"windows1250 cp1250", .charset = "CP1250"},
    {"windows1251 cp1251", .charset = "CP1251"},
    {"windows1252 cp1252", .charset = "CP1252"},
    {"windows1253 cp1253", .charset = "CP1253"},
    {"windows1254 cp1254", .charset = "CP1254"},
    {"windows1255 cp1255", .charset = "CP1255"},
    {"windows1256 cp1256", .charset = "CP1256"},
    {"windows1257 cp1257", .charset = "CP1257"},
    {"windows1258 cp1258", .charset = "CP1258"},
    {"windows874 tis620", .charset = "CP874"},
    {"koi8r", .charset = "KOI8-R"},
    {"koi8u", .charset = "KOI8-U"},
    {"shiftjis sjis cp932 windows31j", .is_multibyte = true, .charset = "CP932"},
    {"eucjp", .is_multibyte = true, .charset = "EUC-JP-MS"},
    {"euckr", .is_multibyte = true, .charset = "EUC-KR"},
    {"windows949 ksc56011987", .is_multibyte = true, .charset = "UHC"},
    {"gb2312", .is_multibyte = true, .charset = "EUC-CN"},
    {"gbk cp936", .is_multibyte = true, .charset = "GBK"},
    {"gb18030", .is_multibyte = true, .charset = "GB18030"},
    {"big5", .is_multibyte = true, .charset = "BIG5"}};

/* Converters, opened at the first use of a charset.  A conversion changes the state of its
 * converter, so it holds the lock. */
static pthread_mutex_t converters_lock = PTHREAD_MUTEX_INITIALIZER;
static iconv_t converters[MU_COUNT(charsets)];

static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = words; n && (p = strstr(p, word)); p += n)
		if ((p == words || p[-1] == ' ') && (!p[n] || p[n] == ' '))
			return true;
	return false;
}

/* NULL: the charset is unknown, or its gconv module is not installed. */
static const struct unicode_encoding *charset_named(const char *name)
{
	const struct unicode_encoding *e = charsets, *end = e + MU_COUNT(charsets);

	while (e < end && !has_word(e->name, name))
		e++;
	if (e == end)
		return NULL;
	iconv_t *cd = &converters[e - charsets];
	pthread_mutex_lock(&converters_lock);
	if (!*cd)
		*cd = iconv_open("UCS-4LE", e->charset);
	if (*cd == (iconv_t)-1)
		e = NULL;
	pthread_mutex_unlock(&converters_lock);
	return e;
}

/* True if the n bytes are one character. */
static bool convert(iconv_t cd, const char *s, size_t n, int32_t *character)
{
	int32_t out[4];
	char *from = (char *)s, *to = (char *)out;
	size_t left = sizeof out;

	iconv(cd, NULL, NULL, NULL, NULL);
	if (iconv(cd, &from, &n, &to, &left) == (size_t)-1 || n)
		return false;
	iconv(cd, NULL, NULL, &to, &left); /* flush a letter that could precede an accent */
	*character = out[0];
	return sizeof out - left == sizeof *out;
}

static size_t next_of_charset(const struct unicode_encoding *e, struct mu_span s,
			      int32_t *character)
{
	size_t longest = e->is_multibyte ? MAX_CHARACTER_BYTES : 1, n = 1;
	unsigned first = byte_at(s, 0);

	longest = s.len < longest ? s.len : longest;
	/* Single-byte charsets: ICU maps undefined bytes below 0xa0 to control characters. */
	*character = first < (e->is_multibyte ? 0x80 : 0xa0) ? (int32_t)first : UNICODE_MALFORMED;
	if (first < 0x80)
		return 1;
	pthread_mutex_lock(&converters_lock);
	while (n <= longest && !convert(converters[e - charsets], s.data, n, character))
		n++;
	pthread_mutex_unlock(&converters_lock);
	return n <= longest ? n : longest > 1 && byte_at(s, 1) >= 0x80 ? 2 : 1;
}

const struct unicode_encoding *unicode_encoding_named(const char *name)
{
	char normalized[16];
	size_t n = 0;

	for (; *name; name++) {
		if (*name == '-' || *name == '_' || *name == ' ')
			continue;
		if (n + 1 == sizeof normalized)
			return NULL;
		normalized[n++] = (char)tolower((unsigned char)*name);
	}
	normalized[n] = '\0';
	for (size_t i = 0; i < MU_COUNT(encodings); i++)
		if (strcmp(encodings[i].name, normalized) == 0)
			return &encodings[i];
	return charset_named(normalized);
}

const struct unicode_encoding *unicode_byte_order(const struct unicode_encoding *e,
						  struct mu_span text, size_t *mark)
{
	bool big, little_endian;

	*mark = 0;
	if (!e->mark_bytes || text.len < e->mark_bytes)
		return e;
	big = unit_at(text, 0, e->mark_bytes, false) == BYTE_ORDER_MARK;
	little_endian = unit_at(text, 0, e->mark_bytes, true) == BYTE_ORDER_MARK;
	if (big || little_endian)
		*mark = e->mark_bytes;
	return little_endian ? unicode_encoding_named(e->mark_bytes == 2 ? "UTF-16LE" : "UTF-32LE")
			     : e;
}

size_t unicode_next(const struct unicode_encoding *e, struct mu_span text, int32_t *character)
{
	return e->charset ? next_of_charset(e, text, character)
			  : e->next(text, e->little_endian, character);
}

void unicode_put(const struct unicode_encoding *e, struct mu_buf *b, int32_t character)
{
	(e->put ? e->put : put_ascii)(b, e->little_endian, character);
}
