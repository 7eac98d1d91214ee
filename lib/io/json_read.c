/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text (RFC 8259) to a document, in one pass.  Depth and number of values are counted as they
 * come, so what is allocated is bounded; every string is copied once, into the document's arena.
 *
 * Looser than the standard in one thing: a string may hold line breaks as they are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/json.h"

enum { PLAIN_DIGITS = 15, NUMBER_MAX = 400 };

/* Where a value goes. */
struct place {
	struct mu_doc_node *parent;
	const char *key; /* in the document's arena; NULL in lists */
};
struct reader {
	struct mu_doc *doc;
	const char *from, *at, *end;
	const char *source;
	struct mu_err *err;
};

static unsigned line_of(const struct reader *r)
{
	unsigned line = 1;

	for (const char *p = r->from; p < r->at; p++)
		line += *p == '\n';
	return line;
}

static int fail_at(struct reader *r, const char *what)
{
	return mu_fail(r->err, MU_INVALID_ARGUMENT, "%s:%u: %s", r->source, line_of(r), what);
}

static int invalid(struct reader *r)
{
	return fail_at(r, r->at < r->end && !*r->at ? "a NUL byte in JSON text" : "not valid JSON");
}

static void skip_space(struct reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || (*r->at >= '\t' && *r->at <= '\r')))
		r->at++;
}

/* Steps over `wanted`, when that is what comes. */
static bool take(struct reader *r, char wanted)
{
	if (r->at >= r->end || *r->at != wanted)
		return false;
	r->at++;
	return true;
}

/* ---- strings ---- */

static int hex4(const char *at, const char *end)
{
	int v = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = at[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;
		if (digit < 0)
			return -1;
		v = v * 16 + digit;
	}
	return v;
}

static char *put_utf8(char *to, unsigned c)
{
	if (c < 0x80) {
		*to++ = (char)c;
		return to;
	}
	if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (c & 0x3f));
	return to;
}

/* What follows "\u", with the second half of a pair; NULL when it is no character. */
static const char *read_code(const char *at, const char *end, char **to)
{
	int high = hex4(at, end), low;

	if (high < 0 || (high >= 0xdc00 && high < 0xe000))
		return NULL;
	at += 4;
	if (high < 0xd800 || high >= 0xe000) {
		*to = put_utf8(*to, (unsigned)high);
		return at;
	}
	if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
		return NULL;
	low = hex4(at + 2, end);
	if (low < 0xdc00 || low >= 0xe000)
		return NULL;
	*to = put_utf8(*to, 0x10000 + ((unsigned)(high - 0xd800) << 10) + (unsigned)(low - 0xdc00));
	return at + 6;
}

/* What follows a backslash. */
static const char *read_escape(const char *at, const char *end, char **to)
{
	static const char from[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
	const char *which = at < end && *at ? strchr(from, *at) : NULL;

	if (at < end && *at == 'u')
		return read_code(at + 1, end, to);
	if (!which)
		return NULL;
	*(*to)++ = is[which - from];
	return at + 1;
}

/* The end of the string that begins at `at`, behind its quote; NULL when it has none. */
static const char *string_end(const char *at, const char *end, bool *escaped)
{
	*escaped = false;
	for (; at < end && *at && *at != '"'; at++) {
		if (*at != '\\')
			continue;
		*escaped = true;
		at++;
	}
	return at < end && *at == '"' ? at : NULL;
}

/* A string, behind its first quote. */
static int read_string(struct reader *r, const char **out, size_t *len)
{
	bool escaped;
	const char *end = string_end(r->at, r->end, &escaped), *nul;
	char *text, *to;

	if (!end) {
		nul = memchr(r->at, 0, (size_t)(r->end - r->at));
		r->at = nul ? nul : r->end;
		return invalid(r);
	}
	if (!escaped) {
		*len = (size_t)(end - r->at);
		*out = mu_arena_strndup(&r->doc->arena, r->at, *len);
		r->at = end + 1;
		return 0;
	}
	/* no escape is shorter than what it stands for */
	text = to = mu_arena_alloc(&r->doc->arena, (size_t)(end - r->at) + 1);
	while (r->at < end) {
		const char *next;

		if (*r->at != '\\') {
			*to++ = *r->at++;
			continue;
		}
		next = read_escape(r->at + 1, end, &to);
		if (!next)
			return invalid(r);
		r->at = next;
	}
	*to = '\0';
	*len = (size_t)(to - text);
	*out = text;
	r->at = end + 1;
	return 0;
}

/* ---- values without children ---- */

static struct mu_doc_node *add(struct reader *r, struct place to, enum mu_doc_kind kind)
{
	struct mu_doc_node *n = mu_doc_add(r->doc, to.parent, NULL, kind);

	n->key = to.key;
	return n;
}

static int read_text(struct reader *r, struct place to)
{
	struct mu_doc_node *n = add(r, to, MU_DOC_STRING);

	return read_string(r, &n->text, &n->len);
}

static const char *digits(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

/* The end of the number at `at`; NULL when it is none. */
static const char *number_end(const char *at, const char *end, bool *whole)
{
	const char *first;

	*whole = true;
	at += *at == '-';
	first = at;
	at = digits(at, end);
	if (at == first || (*first == '0' && at > first + 1))
		return NULL;
	if (at < end && *at == '.') {
		*whole = false;
		first = ++at;
		at = digits(at, end);
		if (at == first)
			return NULL;
	}
	if (at < end && (*at == 'e' || *at == 'E')) {
		*whole = false;
		at++;
		at += at < end && (*at == '+' || *at == '-');
		first = at;
		at = digits(at, end);
		if (at == first)
			return NULL;
	}
	return at;
}

static void add_number(struct reader *r, struct place to, double v)
{
	bool whole = v == floor(v) && fabs(v) <= 9007199254740992.0; /* 2^53 */
	struct mu_doc_node *n = whole ? mu_doc_add_int(r->doc, to.parent, NULL, (int64_t)v)
				      : mu_doc_add_float(r->doc, to.parent, NULL, v);

	n->key = to.key;
}

static int read_number(struct reader *r, struct place to)
{
	bool whole;
	const char *end = number_end(r->at, r->end, &whole);
	char text[NUMBER_MAX];
	size_t n = end ? (size_t)(end - r->at) : NUMBER_MAX;

	if (n >= NUMBER_MAX)
		return invalid(r);
	if (whole && n <= PLAIN_DIGITS) {
		bool negative = *r->at == '-';
		int64_t i = 0;

		for (const char *p = r->at + negative; p < end; p++)
			i = i * 10 + (*p - '0');
		add_number(r, to, (double)(negative ? -i : i));
	} else {
		memcpy(text, r->at, n);
		text[n] = '\0';
		add_number(r, to, strtod(text, NULL));
	}
	r->at = end;
	return 0;
}

static int read_word(struct reader *r, struct place to)
{
	static const struct {
		const char *text;
		enum mu_doc_kind kind;
	} words[] = {{"true", MU_DOC_BOOL}, {"false", MU_DOC_BOOL}, {"null", MU_DOC_NULL}};

	for (unsigned i = 0; i < MU_COUNT(words); i++) {
		size_t n = strlen(words[i].text);

		if ((size_t)(r->end - r->at) < n || memcmp(r->at, words[i].text, n) != 0)
			continue;
		r->at += n;
		add(r, to, words[i].kind)->b = *words[i].text == 't';
		return 0;
	}
	return invalid(r);
}

/* ---- trees ---- */

static int read_value(struct reader *r, struct place to, unsigned depth);

static int read_key(struct reader *r, const char **key)
{
	size_t len;
	int rc;

	if (!take(r, '"'))
		return invalid(r);
	rc = read_string(r, key, &len);
	if (rc == 0 && memchr(*key, 0, len))
		return fail_at(r, "a key holds a NUL");
	skip_space(r);
	if (rc == 0 && !take(r, ':'))
		return invalid(r);
	return rc;
}

/* What is between the brackets, behind the first one. */
static int read_children(struct reader *r, struct mu_doc_node *n, unsigned depth)
{
	char end = n->kind == MU_DOC_MAP ? '}' : ']';
	const struct mu_doc_node *twice;

	if (depth > MU_DOC_MAX_DEPTH)
		return mu_fail(r->err, MU_INVALID_ARGUMENT, "%s:%u: nested deeper than %d levels",
			       r->source, line_of(r), MU_DOC_MAX_DEPTH);
	skip_space(r);
	if (take(r, end))
		return 0;
	do {
		struct place to = {n, NULL};
		int rc = 0;

		skip_space(r);
		if (n->kind == MU_DOC_MAP)
			rc = read_key(r, &to.key);
		if (rc == 0)
			rc = read_value(r, to, depth);
		if (rc)
			return rc;
		skip_space(r);
	} while (take(r, ','));
	if (!take(r, end))
		return invalid(r);
	twice = n->kind == MU_DOC_MAP ? mu_doc_duplicate(n) : NULL;
	if (twice)
		return mu_doc_fail(twice, r->err, MU_INVALID_ARGUMENT, "is given twice");
	return 0;
}

static int read_value(struct reader *r, struct place to, unsigned depth)
{
	skip_space(r);
	if (r->doc->n_nodes >= MU_DOC_MAX_NODES)
		return mu_fail(r->err, MU_INVALID_ARGUMENT, "%s: more than %d values", r->source,
			       MU_DOC_MAX_NODES);
	if (take(r, '"'))
		return read_text(r, to);
	if (take(r, '{'))
		return read_children(r, add(r, to, MU_DOC_MAP), depth + 1);
	if (take(r, '['))
		return read_children(r, add(r, to, MU_DOC_LIST), depth + 1);
	if (r->at < r->end && (*r->at == '-' || (*r->at >= '0' && *r->at <= '9')))
		return read_number(r, to);
	return read_word(r, to);
}

int mu_json_parse(struct mu_doc **out, struct mu_span text, const char *source, struct mu_err *err)
{
	static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, as some editors put it in front */
	struct reader r = {NULL, text.data, text.data, text.data + text.len, source, err};
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	int rc;

	if (text.len > MU_DOC_MAX_BYTES)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s: larger than %d bytes", source,
			       MU_DOC_MAX_BYTES);
	if (text.len >= sizeof(mark) - 1 && memcmp(text.data, mark, sizeof(mark) - 1) == 0)
		r.at += sizeof(mark) - 1;
	r.doc = d = mu_doc_new(source);
	rc = read_value(&r, (struct place){NULL, NULL}, 0);
	if (rc)
		return rc;
	skip_space(&r);
	if (r.at < r.end && !*r.at)
		return invalid(&r);
	if (r.at < r.end)
		return fail_at(&r, "text after the JSON value");
	*out = mu_steal(&d);
	return 0;
}
