/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on strings. */
#include <regex.h>
#include <string.h>

#include "task/kernels/args.h"
#include "task/kernels/kernel_table.h"

/* Patterns and texts from outside are bounded: the C library's matcher takes time and memory by
 * their product. */
enum { MAX_PATTERN = 1024, MAX_TEXT = 64 * 1024 };

static int string_join(struct kernel_call *c, struct mu_err *err)
{
	const char *separator = args_attr_string(c->node, "separator", "");
	struct mu_shape shape = mu_shape_scalar();
	MU_AUTO_BUF b = {0};
	struct mu_tensor *out;
	int rc;

	for (unsigned i = 0; i < c->n_in; i++) {
		const struct mu_shape *s = &kernel_in(c, i)->shape;
		if ((rc = args_type(c, i, MU_STRING, err)))
			return rc;
		if (s->rank && shape.rank && !mu_shape_eq(s, &shape))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Input shapes do not match: %s vs. %s", mu_shape_str(s),
				       mu_shape_str(&shape));
		if (s->rank)
			shape = *s;
	}
	if ((rc = kernel_out(c, 0, MU_STRING, &shape, &out, err)))
		return rc;
	for (int64_t k = 0; k < shape.count; k++) {
		mu_buf_clear(&b);
		for (unsigned i = 0; i < c->n_in; i++) {
			const struct mu_tensor *t = kernel_in(c, i);
			const struct mu_string *s =
			    &MU_DATA(struct mu_string, t)[t->shape.rank ? k : 0];
			if (i)
				mu_buf_puts(&b, separator);
			mu_buf_put(&b, s->data, s->len);
		}
		mu_string_set(&MU_DATA(struct mu_string, out)[k], b.data, b.len);
	}
	return 0;
}

/* ---- regular expressions: POSIX extended, which the usual patterns are too ---- */

static int compile(regex_t *re, const char *pattern, bool whole, struct mu_err *err)
{
	MU_AUTO_FREE char *anchored = NULL;

	for (const char *s = pattern; *s; s++)
		if (s[0] == '\\' && s[1] && (++s, (*s >= '0' && *s <= '9')))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Invalid pattern: %s: no references back", pattern);
	if (strlen(pattern) > MAX_PATTERN)
		return mu_fail(err, MU_INVALID_ARGUMENT, "the pattern is longer than %d bytes",
			       MAX_PATTERN);
	if (whole)
		anchored = mu_xasprintf("^(%s)$", pattern);
	if (regcomp(re, whole ? anchored : pattern, REG_EXTENDED | (whole ? REG_NOSUB : 0)))
		return mu_fail(err, MU_INVALID_ARGUMENT, "Invalid pattern: %s", pattern);
	return 0;
}

static int check_text(size_t len, struct mu_err *err)
{
	return len > MAX_TEXT ? mu_fail(err, MU_INVALID_ARGUMENT,
					"a string of %zu bytes is too long to match", len)
			      : 0;
}

static int match_all(struct kernel_call *c, const char *pattern, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;
	regex_t re;
	int rc;

	if ((rc = args_type(c, 0, MU_STRING, err)) || (rc = compile(&re, pattern, true, err)))
		return rc;
	rc = kernel_out(c, 0, MU_BOOL, &in->shape, &out, err);
	for (int64_t i = 0; !rc && i < in->shape.count; i++) {
		const struct mu_string *s = &MU_DATA(struct mu_string, in)[i];
		if ((rc = check_text(s->len, err)))
			break;
		MU_AUTO_FREE char *text = mu_xstrndup(s->data ? s->data : "", s->len);
		MU_DATA(bool, out)[i] = regexec(&re, text, 0, NULL, 0) == 0;
	}
	regfree(&re);
	return rc;
}

static int static_regex_full_match(struct kernel_call *c, struct mu_err *err)
{
	return match_all(c, args_attr_string(c->node, "pattern", ""), err);
}

static int regex_full_match(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_FREE char *pattern = NULL;
	int rc = args_string(c, 1, &pattern, err);

	return rc ? rc : match_all(c, pattern, err);
}

/* ---- replacing what matches ---- */

enum { GROUPS = 10 };

/* \0 to \9 in the rewrite stand for what the groups matched. */
static void put_rewrite(struct mu_buf *b, const char *text, const regmatch_t *m,
			const char *rewrite)
{
	for (const char *r = rewrite; *r; r++)
		if (r[0] == '\\' && r[1] >= '0' && r[1] <= '9') {
			const regmatch_t *g = &m[*++r - '0'];
			if (g->rm_so >= 0)
				mu_buf_put(b, text + g->rm_so, (size_t)(g->rm_eo - g->rm_so));
		} else if (r[0] == '\\' && r[1] == '\\') {
			mu_buf_putc(b, *++r);
		} else {
			mu_buf_putc(b, *r);
		}
}

/* An empty match right behind another match does not count. */
static void replace(const regex_t *re, const char *text, const char *rewrite, bool all,
		    struct mu_buf *b)
{
	const char *at = text, *last_end = NULL;
	regmatch_t m[GROUPS];

	while (!regexec(re, at, GROUPS, m, at == text ? 0 : REG_NOTBOL)) {
		const char *from = at + m[0].rm_so, *end = at + m[0].rm_eo;
		mu_buf_put(b, at, (size_t)(from - at));
		if (from == end && from == last_end) {
			if (!*from)
				return;
			mu_buf_putc(b, *from);
			at = from + 1;
			continue;
		}
		put_rewrite(b, at, m, rewrite);
		at = last_end = end;
		if (!all)
			break;
	}
	mu_buf_puts(b, at);
}

/* Whether the groups that a rewrite names are there. */
static bool rewrite_fits(const char *rewrite, size_t groups)
{
	for (const char *r = rewrite; (r = strchr(r, '\\')); r += 2)
		if (r[1] != '\\' && (r[1] < '0' || r[1] > '9' || (size_t)(r[1] - '0') > groups))
			return false;
	return true;
}

static int replace_all(struct kernel_call *c, const char *pattern, const char *rewrite,
		       struct mu_err *err)
{
	bool all = args_attr_bool(c->node, "replace_global", true);
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;
	MU_AUTO_BUF b = {0};
	regex_t re;
	int rc;

	if ((rc = args_type(c, 0, MU_STRING, err)) || (rc = compile(&re, pattern, false, err)))
		return rc;
	bool fits = rewrite_fits(rewrite, re.re_nsub);
	rc = kernel_out(c, 0, MU_STRING, &in->shape, &out, err);
	for (int64_t i = 0; !rc && i < in->shape.count; i++) {
		const struct mu_string *s = &MU_DATA(struct mu_string, in)[i];
		if ((rc = check_text(s->len, err)))
			break;
		MU_AUTO_FREE char *text = mu_xstrndup(s->data ? s->data : "", s->len);
		mu_buf_clear(&b);
		if (fits)
			replace(&re, text, rewrite, all, &b);
		else /* as TensorFlow has it: nothing is replaced */
			mu_buf_puts(&b, text);
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data ? b.data : "", b.len);
	}
	regfree(&re);
	return rc;
}

static int static_regex_replace(struct kernel_call *c, struct mu_err *err)
{
	return replace_all(c, args_attr_string(c->node, "pattern", ""),
			   args_attr_string(c->node, "rewrite", ""), err);
}

static int regex_replace(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_FREE char *pattern = NULL;
	MU_AUTO_FREE char *rewrite = NULL;
	int rc;

	if ((rc = args_string(c, 1, &pattern, err)) || (rc = args_string(c, 2, &rewrite, err)))
		return rc;
	return replace_all(c, pattern, rewrite, err);
}

static const struct kernel rows[] = {
    {"StringJoin", .run = string_join},
    {"StaticRegexFullMatch", .run = static_regex_full_match},
    {"RegexFullMatch", .run = regex_full_match},
    {"StaticRegexReplace", .run = static_regex_replace},
    {"RegexReplace", .run = regex_replace},
};
KERNEL_TABLE(string, rows)
