/* SPDX-License-Identifier: Apache-2.0 */
/* StringJoin, RegexFullMatch and RegexReplace. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/text/regex.h"
#include "task/kernels/text/unicode.h"

static int string_join(struct kernel_call *c, struct mu_err *err)
{
	const char *separator = args_attr_string(c->node, "separator", "");
	struct mu_shape shape = mu_shape_scalar();
	MU_AUTO_BUF b = {0};
	struct mu_tensor *out;

	for (unsigned i = 0; i < c->n_in; i++) {
		const struct mu_shape *s = &kernel_in(c, i)->shape;
		if (s->rank && shape.rank && !mu_shape_eq(s, &shape))
			return mu_invalid(err, "Input shapes do not match: %s vs. %s",
					  mu_shape_str(s), mu_shape_str(&shape));
		if (s->rank)
			shape = *s;
	}
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &shape, &out, err));
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

/* ---- regular expressions ---- */

/* Reads input i, a scalar.  A NUL in it becomes an escape sequence, because patterns are C strings.
 */
static int pattern_arg(const struct kernel_call *c, unsigned i, char **out, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	struct mu_span s;

	MU_RETURN_IF_ERROR(args_string(c, i, out, err));
	s = elems_span(kernel_in(c, i), 0);
	if (strlen(*out) == s.len)
		return 0;
	free(*out);
	for (size_t k = 0; k < s.len; k++)
		if (s.data[k])
			mu_buf_putc(&b, s.data[k]);
		else
			mu_buf_puts(&b, "\\x00");
	*out = mu_buf_take(&b);
	return 0;
}

static int match_all(struct kernel_call *c, const char *pattern, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	MU_AUTO(regex_free) struct regex *re = NULL;
	size_t groups[REGEX_GROUPS][2];
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(regex_new(&re, pattern, true, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_BOOL, &in->shape, &out, err));
	for (int64_t i = 0; i < in->shape.count; i++) {
		const struct mu_string *s = &MU_DATA(struct mu_string, in)[i];

		MU_RETURN_IF_ERROR(kernel_check_cancelled(c, err));
		int matched = regex_match(re, (struct mu_span){s->data, s->len}, 0, groups, err);
		MU_DATA(bool, out)[i] = matched > 0;
		if (matched < 0)
			return matched;
	}
	return 0;
}

KERNEL_RUN(static_regex_full_match, match_all(c, args_attr_string(c->node, "pattern", ""), err))

static int regex_full_match(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_FREE char *pattern = NULL;

	MU_RETURN_IF_ERROR(pattern_arg(c, 1, &pattern, err));
	return match_all(c, pattern, err);
}

/* ---- replacement of matches ---- */

/* Appends the rewrite; its \0 to \9 become the matched groups. */
static void put_rewrite(struct mu_buf *b, const char *text, size_t groups[REGEX_GROUPS][2],
			const char *rewrite)
{
	for (const char *r = rewrite; *r; r++)
		if (r[0] == '\\' && r[1] >= '0' && r[1] <= '9') {
			const size_t *g = groups[*++r - '0'];
			if (g[0] != SIZE_MAX)
				mu_buf_put(b, text + g[0], g[1] - g[0]);
		} else if (r[0] == '\\' && r[1] == '\\') {
			mu_buf_putc(b, *++r);
		} else {
			mu_buf_putc(b, *r);
		}
}

/* The size of the character at `at` in bytes; 1 for an invalid byte. */
static size_t char_size(struct mu_span text, size_t at)
{
	int32_t character;
	size_t n = unicode_next(unicode_encoding_named("UTF-8"),
				(struct mu_span){text.data + at, text.len - at}, &character);

	return character == UNICODE_MALFORMED ? 1 : n;
}

/* Appends the text with its matches replaced.  An empty match at the end of another match is no
 * match. */
static int replace(struct regex *re, struct mu_span text, const char *rewrite, bool replace_global,
		   struct mu_buf *b, struct mu_err *err)
{
	size_t at = 0, last_end = SIZE_MAX, groups[REGEX_GROUPS][2];
	int matched;

	while ((matched = regex_match(re, text, at, groups, err)) > 0) {
		size_t from = groups[0][0], end = groups[0][1];

		mu_buf_put(b, text.data + at, from - at);
		at = end;
		if (from == end && from == last_end) {
			if (from == text.len)
				return 0;
			at += char_size(text, from);
			mu_buf_put(b, text.data + from, at - from);
			continue;
		}
		put_rewrite(b, text.data, groups, rewrite);
		last_end = end;
		if (!replace_global)
			break;
	}
	if (matched >= 0)
		mu_buf_put(b, text.data + at, text.len - at);
	return matched < 0 ? matched : 0;
}

/* True if the pattern has all groups that the rewrite names. */
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
	bool replace_global = args_attr_bool(c->node, "replace_global", true);
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;
	MU_AUTO(regex_free) struct regex *re = NULL;
	MU_AUTO_BUF b = {0};
	int rc;

	MU_RETURN_IF_ERROR(regex_new(&re, pattern, false, err));
	bool is_valid_rewrite = rewrite_fits(rewrite, regex_n_groups(re));
	rc = kernel_out(c, 0, MU_STRING, &in->shape, &out, err);
	for (int64_t i = 0; !rc && i < in->shape.count; i++) {
		struct mu_span text = elems_span(in, i);

		mu_buf_clear(&b);
		MU_RETURN_IF_ERROR(kernel_check_cancelled(c, err));
		if (is_valid_rewrite)
			rc = replace(re, text, rewrite, replace_global, &b, err);
		else /* as in TensorFlow: nothing is replaced */
			mu_buf_put(&b, text.data, text.len);
		if (!rc)
			mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data, b.len);
	}
	return rc;
}

KERNEL_RUN(static_regex_replace, replace_all(c, args_attr_string(c->node, "pattern", ""),
					     args_attr_string(c->node, "rewrite", ""), err))

static int regex_replace(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_FREE char *pattern = NULL;
	MU_AUTO_FREE char *rewrite = NULL;

	MU_RETURN_IF_ERROR(pattern_arg(c, 1, &pattern, err));
	MU_RETURN_IF_ERROR(args_string(c, 2, &rewrite, err));
	return replace_all(c, pattern, rewrite, err);
}

static const struct kernel rows[] = {
    {"StringJoin", .run = string_join},
    {"StaticRegexFullMatch", .run = static_regex_full_match},
    {"RegexFullMatch", .run = regex_full_match},
    {"StaticRegexReplace", .run = static_regex_replace},
    {"RegexReplace", .run = regex_replace},
};
KERNEL_TABLE(text_string, rows)
