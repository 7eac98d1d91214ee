/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_PATTERN_BYTES = 64 << 10,
	MAX_TEXT_BYTES = 16 << 20,
	MAX_REPEAT = 1000,
	MAX_NESTING = 1000,
	HEAP_KIB = 64 << 10
};
/* Limits of a match.  A step is a callout, or a byte by which the matcher moves; MAX_STEPS take
 * about 0.5 s.  The translated pattern has a callout at its start, at the end of each group and
 * after each repetition.  The matcher can do work in proportion to the pattern between two
 * callouts, so a callout of a long pattern counts as several steps. */
enum { MAX_STEPS = 20000000, STEPS_PER_BYTE = 64, BYTES_PER_STEP = 256 };
#define CALLOUT "(?C)"
/* With malformed characters, PCRE2 checks the rest of the text for each match. */
enum { MAX_MALFORMED_BYTES = 64 << 10 };

struct regex {
	pcre2_code *code;
	struct mu_buf source;       /* the translated pattern */
	pcre2_code *malformed_code; /* for malformed UTF-8; NULL: not compiled yet */
	bool is_malformed;          /* the current text */
	pcre2_match_context *context;
	pcre2_match_data *data;
	uint32_t n_groups;
	char *pattern;
	bool full_match;
	size_t at; /* last position of the matcher */
	uint64_t steps_of_callout;
	uint64_t steps, max_steps; /* of the current text */
};

/* ---- translation ---- */

struct translation {
	const char *pattern, *at;
	struct mu_buf out;
	unsigned depth;
	bool can_repeat, has_repetition; /* the previous item */
	struct mu_err *err;
};

static int invalid(struct translation *t, const char *why, const char *from, size_t n)
{
	return mu_invalid(t->err, "Invalid pattern: %s, error: %s: %.*s", t->pattern, why, (int)n,
			  from);
}

static void put_literal(struct mu_buf *out, unsigned c)
{
	if (c < 0x80 && !isalnum((int)c))
		mu_buf_printf(out, "\\x{%x}", c);
	else
		mu_buf_putc(out, (char)c);
}

/* Reads \x{10ffff}, \x7f or \012.  Returns the number of bytes after the backslash, 0 if s has none
 * of these forms. */
static size_t regex_read_number(const char *s, unsigned *c)
{
	size_t n = 0;
	char *end;

	if (s[0] == 'x' && s[1] == '{' && isxdigit((unsigned char)s[2])) {
		unsigned long v = strtoul(s + 2, &end, 16);

		*c = (unsigned)v;
		return *end == '}' && v <= 0x10ffff ? (size_t)(end - s) + 1 : 0;
	}
	if (s[0] == 'x' && isxdigit((unsigned char)s[1]) && isxdigit((unsigned char)s[2])) {
		char hex[] = {s[1], s[2], 0};

		*c = (unsigned)strtoul(hex, NULL, 16);
		return 3;
	}
	if (s[0] < '0' || s[0] > '7' || (s[0] != '0' && (s[1] < '0' || s[1] > '7')))
		return 0;
	for (*c = 0; n < 3 && s[n] >= '0' && s[n] <= '7'; n++)
		*c = *c * 8 + (unsigned)(s[n] - '0');
	return n;
}

/* Reads a character of *n bytes after a backslash. */
static bool read_escaped_char(const char *s, unsigned *c, size_t *n)
{
	static const char names[] = "aftnrv", values[] = "\a\f\t\n\r\v";
	const char *name = *s ? strchr(names, *s) : NULL;

	*n = regex_read_number(s, c);
	if (*n)
		return true;
	*n = 1;
	*c = name ? (unsigned char)values[name - names] : (unsigned char)*s;
	return name || (*c && *c < 0x80 && !isalnum((int)*c));
}

/* Translates \d \s \w \pN \p{Greek} and their complements.  Returns the number of bytes after the
 * backslash, 0 if s is none of these.  RE2's \s does not contain \v, and its scripts are those of
 * the Script property, without Script_Extensions. */
static size_t put_set(struct mu_buf *out, const char *s, bool in_class)
{
	size_t n;
	bool negated;

	if (*s && strchr("dDwW", *s))
		return mu_buf_printf(out, "\\%c", *s), 1;
	if (*s == 's')
		return mu_buf_puts(out, in_class ? "\\t\\n\\f\\r\\x20" : "[\\t\\n\\f\\r\\x20]"), 1;
	if (*s == 'S')
		return mu_buf_puts(out, in_class ? "\\S\\x0b" : "[\\S\\x0b]"), 1;
	if (*s != 'p' && *s != 'P')
		return 0;
	if (isalpha((unsigned char)s[1]))
		return mu_buf_printf(out, "\\%.2s", s), 2;
	if (s[1] != '{')
		return 0;
	negated = s[2] == '^';
	s += 2 + negated;
	n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_");
	if (!n || s[n] != '}')
		return 0;
	mu_buf_printf(out, "\\%c{%s%.*s}", (s[-2 - negated] == 'P') != negated ? 'P' : 'p',
		      n > 2 && strncmp(s, "Any", n) != 0 ? "sc:" : "", (int)n, s);
	return n + 3 + negated;
}

/* Copies a character of a class.  Bytes of UTF-8 are copied unchanged. */
static int read_class_char(struct translation *t, struct mu_buf *item)
{
	unsigned c;
	size_t n = 1;

	if (*t->at == '\\') {
		if (!read_escaped_char(t->at + 1, &c, &n))
			return invalid(t, "invalid escape sequence", t->at, t->at[1] ? 2 : 1);
		mu_buf_printf(item, "\\x{%x}", c);
		t->at += n + 1;
		return 0;
	}
	put_literal(item, (unsigned char)*t->at++);
	while (((unsigned char)*t->at & 0xc0) == 0x80)
		mu_buf_putc(item, *t->at++);
	return 0;
}

static int put_class(struct translation *t)
{
	const char *begin = t->at, *close;
	bool first = true;
	size_t n;

	mu_buf_putc(&t->out, *t->at++);
	if (*t->at == '^')
		mu_buf_putc(&t->out, *t->at++);
	for (; *t->at && (*t->at != ']' || first); first = false) {
		if (t->at[0] == '[' && t->at[1] == ':' && (close = strstr(t->at + 2, ":]"))) {
			mu_buf_put(&t->out, t->at, (size_t)(close - t->at) + 2);
			t->at = close + 2;
			continue;
		}
		n = *t->at == '\\' ? put_set(&t->out, t->at + 1, true) : 0;
		if (n) {
			t->at += n + 1;
			continue;
		}
		MU_RETURN_IF_ERROR(read_class_char(t, &t->out));
		if (t->at[0] == '-' && t->at[1] && t->at[1] != ']') {
			mu_buf_putc(&t->out, *t->at++);
			MU_RETURN_IF_ERROR(read_class_char(t, &t->out));
		}
	}
	if (!*t->at)
		return invalid(t, "missing ]", begin, strlen(begin));
	mu_buf_putc(&t->out, *t->at++);
	return 0;
}

/* Writes the opening of a group, and skips n bytes of the pattern.  An inner group encloses the
 * alternatives, so that the callout at the end of the group follows each of them. */
static void open_group(struct translation *t, const char *open, int len, size_t n)
{
	mu_buf_printf(&t->out, "%.*s(?:", len, open);
	t->at += n;
	t->depth++;
}

/* Translates "(", "(?:", "(?P<name>", "(?i)" and "(?i:".  Sets *is_item to false. */
static int put_open(struct translation *t, bool *is_item)
{
	const char *s = t->at;
	size_t n;

	*is_item = false;
	if (s[1] != '?') {
		open_group(t, "(", 1, 1);
		return 0;
	}
	n = s[2] == 'P' && s[3] == '<' ? strspn(s + 4, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
						       "qrstuvwxyz0123456789_")
				       : 0;
	if (n && s[4 + n] == '>') { /* rewrites refer to groups by number only */
		open_group(t, "(", 1, n + 5);
		return 0;
	}
	n = strspn(s + 2, "imsU-");
	if ((s[2 + n] != ':' && s[2 + n] != ')') || (!n && s[2] == ')'))
		return invalid(t, "invalid perl operator", s, s[2] ? 3 : 2);
	if (s[2 + n] == ':') {
		open_group(t, s, (int)n + 3, n + 3);
		return 0;
	}
	mu_buf_put(&t->out, s, n + 3); /* flags */
	t->at += n + 3;
	return 0;
}

/* Returns the length of {2}, {2,} or {2,5}; 0: the brace is a literal. */
static size_t read_braces(const char *s, long *max_count)
{
	char *end;
	long low;

	if (!isdigit((unsigned char)s[1]))
		return 0;
	low = *max_count = strtol(s + 1, &end, 10);
	if (*end == ',')
		*max_count =
		    isdigit((unsigned char)end[1]) ? strtol(end + 1, &end, 10) : (end++, low);
	return *end == '}' ? (size_t)(end - s) + 1 : 0;
}

static int put_repeat(struct translation *t, size_t n, long max_count)
{
	const char *s = t->at;

	if (max_count > MAX_REPEAT)
		return invalid(t, "invalid repetition size", s, n);
	if (t->has_repetition)
		return invalid(t, "bad repetition operator", s, n);
	if (!t->can_repeat)
		return invalid(t, "no argument for repetition operator", s, n);
	n += s[n] == '?';
	mu_buf_put(&t->out, s, n);
	mu_buf_puts(&t->out, CALLOUT);
	t->at += n;
	t->has_repetition = true;
	return 0;
}

static int put_escape(struct translation *t)
{
	const char *s = t->at + 1, *end;
	unsigned c;
	size_t n;

	if (*s == 'Q') {
		end = strstr(s, "\\E");
		for (s++; *s && s != end; s++)
			put_literal(&t->out, (unsigned char)*s);
		t->at = s + (end ? 2 : 0);
		return 0;
	}
	if (*s && strchr("AbBzC", *s)) {
		mu_buf_printf(&t->out, "(?:\\%c)", *s);
		t->at += 2;
		return 0;
	}
	n = put_set(&t->out, s, false);
	if (!n && read_escaped_char(s, &c, &n))
		mu_buf_printf(&t->out, "\\x{%x}", c);
	else if (!*s)
		return invalid(t, "trailing \\", "", 0);
	else if (!n || !strchr("dDwWsSpP", *s))
		return invalid(t, "invalid escape sequence", t->at, 2);
	t->at += n + 1;
	return 0;
}

static int put_item(struct translation *t)
{
	bool is_item = true;
	long max_count = 0;
	size_t n;
	int rc = 0;

	if (strchr("*+?", *t->at))
		return put_repeat(t, 1, 0);
	if (*t->at == '{' && (n = read_braces(t->at, &max_count)))
		return put_repeat(t, n, max_count);
	switch (*t->at) {
	case '\\':
		rc = put_escape(t);
		break;
	case '[':
		rc = put_class(t);
		break;
	case '(':
		rc = put_open(t, &is_item);
		break;
	case ')':
		if (!t->depth--)
			return invalid(t, "unexpected )", t->pattern, strlen(t->pattern));
		mu_buf_puts(&t->out, ")" CALLOUT ")");
		t->at++;
		break;
	case '|':
		is_item = false;
		mu_buf_putc(&t->out, *t->at++);
		break;
	case '^':
	case '$':
		mu_buf_printf(&t->out, "(?:%c)", *t->at++);
		break;
	case '.':
		mu_buf_putc(&t->out, *t->at++);
		break;
	default:
		put_literal(&t->out, (unsigned char)*t->at++);
		while (((unsigned char)*t->at & 0xc0) == 0x80) /* of the same character */
			mu_buf_putc(&t->out, *t->at++);
	}
	t->can_repeat = is_item;
	t->has_repetition = false;
	return rc;
}

static int translate(struct translation *t)
{
	int rc = 0;

	mu_buf_puts(&t->out, CALLOUT "(?:");
	while (!rc && *t->at)
		rc = put_item(t);
	mu_buf_putc(&t->out, ')');
	if (!rc && t->depth)
		rc = invalid(t, "missing )", t->pattern, strlen(t->pattern));
	return rc;
}

/* ---- matching ---- */

/* Counts the steps of a text.  PCRE2's own match limit applies to each start position alone. */
static int on_step(pcre2_callout_block *block, void *arg)
{
	struct regex *re = arg;
	size_t at = block->current_position;

	re->steps += re->steps_of_callout + (at > re->at ? at - re->at : re->at - at);
	re->at = at;
	return re->steps > re->max_steps ? PCRE2_ERROR_MATCHLIMIT : 0;
}

static pcre2_code *compile(const struct regex *re, uint32_t extra_options, struct mu_err *err)
{
	uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_CIRCUMFLEX | extra_options |
			   (re->full_match ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0);
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	char why[160] = "";
	int error_code;
	size_t error_offset;

	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	pcre2_set_parens_nest_limit(context, MAX_NESTING);
	pcre2_code *code = pcre2_compile((PCRE2_SPTR)re->source.data, re->source.len, options,
					 &error_code, &error_offset, context);
	if (!code) {
		pcre2_get_error_message(error_code, (PCRE2_UCHAR *)why, sizeof(why));
		mu_invalid(err, "Invalid pattern: %s, error: %s", re->pattern, why);
	}
	pcre2_compile_context_free(context);
	return code;
}

int regex_new(struct regex **out, const char *pattern, bool full_match, struct mu_err *err)
{
	struct translation t = {.pattern = pattern, .at = pattern, .err = err};
	MU_AUTO(regex_free) struct regex *re = MU_NEW(struct regex);

	if (strlen(pattern) > MAX_PATTERN_BYTES)
		return mu_invalid(err, "the pattern is longer than %d bytes", MAX_PATTERN_BYTES);
	int rc = translate(&t);
	re->source = t.out;
	re->pattern = mu_xstrdup(pattern);
	re->full_match = full_match;
	re->steps_of_callout = 1 + re->source.len / BYTES_PER_STEP;
	if (rc)
		return rc;
	if (!(re->code = compile(re, 0, err)))
		return -(int)err->code;
	re->data = pcre2_match_data_create_from_pattern(re->code, NULL);
	re->context = pcre2_match_context_create(NULL);
	pcre2_set_match_limit(re->context, MAX_STEPS);
	pcre2_set_heap_limit(re->context, HEAP_KIB);
	pcre2_set_callout(re->context, on_step, re);
	pcre2_pattern_info(re->code, PCRE2_INFO_CAPTURECOUNT, &re->n_groups);
	*out = mu_steal(&re);
	return 0;
}

void regex_free(struct regex *re)
{
	if (!re)
		return;
	pcre2_code_free(re->code);
	pcre2_code_free(re->malformed_code);
	mu_buf_fini(&re->source);
	pcre2_match_data_free(re->data);
	pcre2_match_context_free(re->context);
	free(re->pattern);
	free(re);
}

unsigned regex_n_groups(const struct regex *re)
{
	return re->n_groups;
}

static int match(struct regex *re, const pcre2_code *code, struct mu_span text, size_t from)
{
	return pcre2_match(code, (PCRE2_SPTR)(text.data ? text.data : ""), text.len, from,
			   from ? PCRE2_NO_UTF_CHECK : 0, re->data, re->context);
}

int regex_match(struct regex *re, struct mu_span text, size_t from, size_t groups[REGEX_GROUPS][2],
		struct mu_err *err)
{
	const PCRE2_SIZE *at;
	int n = 0;

	if (!from) {
		re->steps = 0;
		re->max_steps = MAX_STEPS + STEPS_PER_BYTE * re->steps_of_callout * text.len;
		re->is_malformed = false;
	}
	re->at = from;
	if (!re->is_malformed) {
		n = match(re, re->code, text, from);
		re->is_malformed = n <= PCRE2_ERROR_UTF8_ERR1 && n >= PCRE2_ERROR_UTF8_ERR21;
	}
	if (text.len > (re->is_malformed ? MAX_MALFORMED_BYTES : MAX_TEXT_BYTES))
		return mu_invalid(err, "a string of %zu bytes%s is too long to match", text.len,
				  re->is_malformed ? " that are not UTF-8" : "");
	if (re->is_malformed) {
		if (!re->malformed_code &&
		    !(re->malformed_code = compile(re, PCRE2_MATCH_INVALID_UTF, err)))
			return -(int)err->code;
		n = match(re, re->malformed_code, text, from);
	}
	if (n == PCRE2_ERROR_NOMATCH)
		return 0;
	if (n < 0)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "pattern %s: a match in %zu bytes takes too many steps or too much "
			       "memory (%d)",
			       re->pattern, text.len, n);
	at = pcre2_get_ovector_pointer(re->data);
	/* PCRE2 treats the bytes between malformed characters as separate texts */
	if (re->full_match && (at[0] != 0 || at[1] != text.len))
		return 0;
	for (int i = 0; i < REGEX_GROUPS; i++) {
		groups[i][0] = i < n ? at[2 * i] : SIZE_MAX;
		groups[i][1] = i < n ? at[2 * i + 1] : SIZE_MAX;
	}
	return 1;
}
