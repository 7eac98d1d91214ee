/* SPDX-License-Identifier: Apache-2.0 */
/* StringSplit, Substr, StringLength, StringLower, StringUpper and StringStrip. A character is a
 * byte; with unit UTF8_CHAR, it also includes the UTF-8 continuation bytes after it. */
#include <ctype.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/text/letter_case.h"

/* ---- StringSplit, StringSplitV2 ---- */

struct tokens {
	struct mu_span *list;
	int64_t *row;
	int64_t n, cap, max_row_tokens, row_tokens;
};

static void tokens_fini(struct tokens *t)
{
	free(t->list);
	free(t->row);
}
#define TOKENS_AUTO __attribute__((cleanup(tokens_fini))) struct tokens

static void add_token(struct tokens *t, int64_t row, const char *from, const char *to)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 64;
		t->list = mu_xrealloc(t->list, (size_t)t->cap * sizeof *t->list);
		t->row = mu_xrealloc(t->row, (size_t)t->cap * sizeof *t->row);
	}
	t->row_tokens = t->n && t->row[t->n - 1] == row ? t->row_tokens + 1 : 1;
	t->max_row_tokens = t->row_tokens > t->max_row_tokens ? t->row_tokens : t->max_row_tokens;
	t->row[t->n] = row;
	t->list[t->n++] = (struct mu_span){from, (size_t)(to - from)};
}

/* Splits at each delimiter.  Without delimiters, every byte is a token.  The empty string has no
 * tokens. */
static void split_at_chars(struct tokens *t, int64_t row, struct mu_span s,
			   struct mu_span delimiters, bool skip_empty)
{
	const char *end = s.data + s.len, *from = s.data;

	for (const char *at = s.data; at < end && !delimiters.len; at++)
		add_token(t, row, at, at + 1);
	for (const char *at = s.data; at <= end && delimiters.len && s.len; at++)
		if (at == end || memchr(delimiters.data, *at, delimiters.len)) {
			if (at > from || !skip_empty)
				add_token(t, row, from, at);
			from = at + 1;
		}
}

/* Splits as Python does: at runs of spaces, with the ends trimmed. The rest after max_splits splits
 * is one token. */
static void split_at_spaces(struct tokens *t, int64_t row, struct mu_span s, int64_t max_splits)
{
	const char *at = s.data, *end = s.data + s.len;

	for (int64_t n = 0;; n++) {
		while (at < end && isspace((unsigned char)*at))
			at++;
		if (max_splits > 0 && n == max_splits) {
			add_token(t, row, at, end);
			return;
		}
		const char *from = at;
		while (at < end && !isspace((unsigned char)*at))
			at++;
		if (at == from)
			return;
		add_token(t, row, from, at);
	}
}

static void split_at_string(struct tokens *t, int64_t row, struct mu_span s,
			    struct mu_span delimiter, int64_t max_splits)
{
	const char *from = s.data, *end = s.data + s.len, *at;

	for (int64_t n = 0;
	     (max_splits <= 0 || n < max_splits) &&
	     (at = memmem(from, (size_t)(end - from), delimiter.data, delimiter.len));
	     n++) {
		add_token(t, row, from, at);
		from = at + delimiter.len;
	}
	add_token(t, row, from, end);
}

static int output_tokens(struct kernel_call *c, const struct tokens *t, int64_t rows,
			 struct mu_err *err)
{
	struct mu_tensor *indices, *values, *shape;

	MU_RETURN_IF_ERROR(kernel_out_dims(c, 0, MU_INT64, 2, (int64_t[]){t->n, 2}, &indices, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 1, MU_STRING, t->n, &values, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 2, MU_INT64, 2, &shape, err));
	int64_t *at = indices->data;
	for (int64_t i = 0; i < t->n; i++, at += 2) {
		at[0] = t->row[i];
		at[1] = i && t->row[i - 1] == t->row[i] ? at[-1] + 1 : 0;
		mu_string_set(&MU_DATA(struct mu_string, values)[i], t->list[i].data,
			      t->list[i].len);
	}
	MU_DATA(int64_t, shape)[0] = rows;
	MU_DATA(int64_t, shape)[1] = t->max_row_tokens;
	return 0;
}

static int split_strings(struct kernel_call *c, bool v2, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	bool skip_empty = args_attr_bool(c->node, "skip_empty", true);
	int64_t max_splits = args_attr_int(c->node, "maxsplit", -1);
	TOKENS_AUTO t = {0};

	if (kernel_in(c, 1)->shape.count != 1 || (v2 && kernel_in(c, 1)->shape.rank))
		return mu_invalid(err, "delimiter must be a scalar, got shape: %s",
				  mu_shape_str(&kernel_in(c, 1)->shape));
	struct mu_span delimiter = elems_span(kernel_in(c, 1), 0);
	for (int64_t i = 0; i < in->shape.count; i++) {
		struct mu_span s = elems_span(in, i);
		if (!v2)
			split_at_chars(&t, i, s, delimiter, skip_empty);
		else if (!max_splits)
			add_token(&t, i, s.data, s.data + s.len);
		else if (delimiter.len)
			split_at_string(&t, i, s, delimiter, max_splits);
		else
			split_at_spaces(&t, i, s, max_splits);
	}
	return output_tokens(c, &t, in->shape.count, err);
}

KERNEL_RUN(string_split, split_strings(c, false, err))
KERNEL_RUN(string_split_v2, split_strings(c, true, err))

/* ---- characters ---- */

static int utf8_unit(const struct kernel_call *c, bool *utf8, struct mu_err *err)
{
	const char *unit = args_attr_string(c->node, "unit", "BYTE");

	*utf8 = strcmp(unit, "UTF8_CHAR") == 0;
	return *utf8 || strcmp(unit, "BYTE") == 0
		   ? 0
		   : mu_invalid(err, "unit must be BYTE or UTF8_CHAR, not '%s'", unit);
}

static bool starts_character(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

static int64_t characters(struct mu_span s, bool utf8)
{
	int64_t n = 0;

	for (size_t i = 0; utf8 && i < s.len; i++)
		n += starts_character(s.data[i]);
	return utf8 ? n : (int64_t)s.len;
}

/* The byte offset of character k; k may be the number of characters. */
static size_t offset_of(struct mu_span s, int64_t k, bool utf8)
{
	size_t i = 0;

	if (!utf8)
		return (size_t)k;
	for (; i < s.len; i++)
		if (starts_character(s.data[i]) && !k--)
			break;
	return i;
}

static int string_length(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;
	bool utf8 = false;

	MU_RETURN_IF_ERROR(utf8_unit(c, &utf8, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT32, &in->shape, &out, err));
	for (int64_t i = 0; i < in->shape.count; i++)
		MU_DATA(int32_t, out)[i] = (int32_t)characters(elems_span(in, i), utf8);
	return 0;
}

/* A negative length means all other bytes.  With unit UTF8_CHAR it means no characters, and a
 * negative position is an error then, as in TensorFlow. */
static int cut_substring(struct mu_span s, int64_t pos, int64_t len, bool utf8, int64_t i,
			 struct mu_string *out, struct mu_err *err)
{
	int64_t n = characters(s, utf8), from = pos < 0 ? pos + n : pos;

	if (from < 0 || from > n || (utf8 && pos < 0 && len < 0))
		return mu_invalid(err, "pos %lld out of range for string b'%.*s' at index %lld",
				  (long long)pos, (int)(s.len < 64 ? s.len : 64), s.data,
				  (long long)i);
	if (len < 0)
		len = utf8 ? 0 : n;
	int64_t count = len > n - from ? n - from : len;
	size_t start = offset_of(s, from, utf8), end = offset_of(s, from + count, utf8);
	mu_string_set(out, s.data + start, end - start);
	return 0;
}

/* The index into a tensor of shape `from`, broadcast to `to`, for output element i. */
static int64_t broadcast_index(const struct mu_shape *from, const struct mu_shape *to, int64_t i)
{
	int64_t at = 0, step = 1;

	for (int d = to->rank - 1, k = from->rank - 1; k >= 0; d--, k--) {
		if (from->dim[k] != 1)
			at += i % to->dim[d] * step;
		i /= to->dim[d];
		step *= from->dim[k];
	}
	return at;
}

static int substr(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *pos = kernel_in(c, 1);
	struct mu_tensor *out;
	struct mu_shape shape;
	bool utf8 = false;

	MU_RETURN_IF_ERROR(args_same_shape(c, 1, 2, err));
	MU_RETURN_IF_ERROR(utf8_unit(c, &utf8, err));
	MU_RETURN_IF_ERROR(broadcast_shape(&in->shape, &pos->shape, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &shape, &out, err));
	for (int64_t i = 0; i < shape.count; i++) {
		int64_t k = broadcast_index(&pos->shape, &shape, i);
		MU_RETURN_IF_ERROR(
		    cut_substring(elems_span(in, broadcast_index(&in->shape, &shape, i)),
				  mu_tensor_int(pos, k), mu_tensor_int(kernel_in(c, 2), k), utf8, i,
				  &MU_DATA(struct mu_string, out)[i], err));
	}
	return 0;
}

/* ---- StringLower, StringUpper, StringStrip ---- */

/* Appends a converted text.  Without utf8, only ASCII letters change case. */
typedef int put_text(struct mu_buf *b, struct mu_span s, bool utf8, struct mu_err *err);

static int put_lower(struct mu_buf *b, struct mu_span s, bool utf8, struct mu_err *err)
{
	if (utf8)
		return letter_case_put(b, s, false, err);
	for (size_t i = 0; i < s.len; i++)
		mu_buf_putc(b, s.data[i] >= 'A' && s.data[i] <= 'Z' ? (char)(s.data[i] | 32)
								    : s.data[i]);
	return 0;
}

static int put_upper(struct mu_buf *b, struct mu_span s, bool utf8, struct mu_err *err)
{
	if (utf8)
		return letter_case_put(b, s, true, err);
	for (size_t i = 0; i < s.len; i++)
		mu_buf_putc(b, s.data[i] >= 'a' && s.data[i] <= 'z' ? (char)(s.data[i] & ~32)
								    : s.data[i]);
	return 0;
}

static int put_stripped(struct mu_buf *b, struct mu_span s, bool utf8, struct mu_err *err)
{
	while (s.len && isspace((unsigned char)s.data[0]))
		s.data++, s.len--;
	while (s.len && isspace((unsigned char)s.data[s.len - 1]))
		s.len--;
	mu_buf_put(b, s.data, s.len);
	return 0;
}

static int convert_strings(struct kernel_call *c, put_text *put, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const char *encoding = args_attr_string(c->node, "encoding", "");
	struct mu_tensor *out;
	MU_AUTO_BUF b = {0};

	if (*encoding && strcmp(encoding, "utf-8") != 0)
		return mu_invalid(
		    err, "only utf-8 or '' (no encoding) is supported, received %.64s", encoding);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &in->shape, &out, err));
	for (int64_t i = 0; i < in->shape.count; i++) {
		mu_buf_clear(&b);
		MU_RETURN_IF_ERROR(put(&b, elems_span(in, i), *encoding, err));
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data, b.len);
	}
	return 0;
}

#define STRING_KERNEL(name, put) KERNEL_RUN(name, convert_strings(c, put, err))
STRING_KERNEL(string_lower, put_lower)
STRING_KERNEL(string_upper, put_upper)
STRING_KERNEL(string_strip, put_stripped)

static const struct kernel rows[] = {
    {"StringSplit", .run = string_split},   {"StringSplitV2", .run = string_split_v2},
    {"StringLength", .run = string_length}, {"Substr", .run = substr},
    {"StringLower", .run = string_lower},   {"StringUpper", .run = string_upper},
    {"StringStrip", .run = string_strip},
};
KERNEL_TABLE(text_split, rows)
