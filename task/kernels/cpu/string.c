/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on strings. */
#include <regex.h>

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

static int compile(regex_t *re, const char *pattern, struct mu_err *err)
{
	MU_AUTO_FREE char *whole = NULL;

	for (const char *s = pattern; *s; s++)
		if (s[0] == '\\' && s[1] && (++s, (*s >= '0' && *s <= '9')))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Invalid pattern: %s: no references back", pattern);
	if (strlen(pattern) > MAX_PATTERN)
		return mu_fail(err, MU_INVALID_ARGUMENT, "the pattern is longer than %d bytes",
			       MAX_PATTERN);
	whole = mu_xasprintf("^(%s)$", pattern);
	if (regcomp(re, whole, REG_EXTENDED | REG_NOSUB))
		return mu_fail(err, MU_INVALID_ARGUMENT, "Invalid pattern: %s", pattern);
	return 0;
}

static int match_all(struct kernel_call *c, const char *pattern, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;
	regex_t re;
	int rc;

	if ((rc = args_type(c, 0, MU_STRING, err)) || (rc = compile(&re, pattern, err)))
		return rc;
	rc = kernel_out(c, 0, MU_BOOL, &in->shape, &out, err);
	for (int64_t i = 0; !rc && i < in->shape.count; i++) {
		const struct mu_string *s = &MU_DATA(struct mu_string, in)[i];
		if (s->len > MAX_TEXT) {
			rc = mu_fail(err, MU_INVALID_ARGUMENT,
				     "a string of %zu bytes is too long to match", s->len);
			break;
		}
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

static const struct kernel rows[] = {
    {"StringJoin", .run = string_join},
    {"StaticRegexFullMatch", .run = static_regex_full_match},
    {"RegexFullMatch", .run = regex_full_match},
};
KERNEL_TABLE(string, rows)
