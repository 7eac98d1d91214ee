/* SPDX-License-Identifier: Apache-2.0 */
/* StringNGrams: joins every n consecutive strings of a row, with optional padding on both sides of
 * the row. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

/* Limits of the output, padding included: an n-gram can be wide and almost all padding. */
enum { MAX_WIDTHS = 1000, MAX_TOTAL_TOKENS = 1 << 28, MAX_TOTAL_BYTES = 1 << 30 };

struct ngrams {
	int64_t width[MAX_WIDTHS];
	int n_widths;
	int64_t pad_width; /* limit for each side; negative: no limit */
	bool preserve_short;
	const char *separator, *left, *right;
	/* size of the output so far */
	int64_t n;
	size_t bytes;
};

static int read_ngrams(const struct mu_node *n, struct ngrams *g, struct mu_err *err)
{
	*g = (struct ngrams){
	    .n_widths = args_attr_ints(n, "ngram_widths", g->width, MAX_WIDTHS),
	    .pad_width = args_attr_int(n, "pad_width", 0),
	    .preserve_short = args_attr_bool(n, "preserve_short_sequences", false),
	    .separator = args_attr_string(n, "separator", ""),
	    .left = args_attr_string(n, "left_pad", ""),
	    .right = args_attr_string(n, "right_pad", ""),
	};
	if (args_attr_ints(n, "ngram_widths", g->width, MAX_WIDTHS) < 0)
		return mu_invalid(err, "at most %d widths", MAX_WIDTHS);
	for (int i = 0; i < g->n_widths; i++)
		if (g->width[i] < 1)
			return mu_invalid(err, "ngram_widths must contain positive values");
	if (g->pad_width < 0 && g->preserve_short && !g->n_widths)
		return mu_invalid(err,
				  "Pad width should be >= 0 when preserve_short_sequences is True "
				  "and ngram_widths are not provided, got %lld",
				  (long long)g->pad_width);
	return 0;
}

/* The padding on each side.  More would create n-grams of padding only. */
static int64_t ngram_padding(const struct ngrams *g, int64_t width)
{
	return g->pad_width < 0 || g->pad_width > width - 1 ? width - 1 : g->pad_width;
}

static int64_t count_ngrams(const struct ngrams *g, int64_t length, int64_t width)
{
	int64_t n = length + 2 * ngram_padding(g, width) - width + 1;

	return n > 0 ? n : 0;
}

/* True if a row without n-grams becomes one n-gram (preserve_short_sequences). */
static bool is_preserved(const struct ngrams *g, int64_t length, int64_t n)
{
	return !n && g->preserve_short && length > 0;
}

/* The padding of a preserved short row; 0 if the padding has no limit. */
static int64_t preserved_pad(const struct ngrams *g)
{
	return g->pad_width > 0 ? g->pad_width : 0;
}

static int check_data(const struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *splits = kernel_in(c, 1);
	int64_t n = kernel_in(c, 0)->shape.count, last = 0;

	if (splits->shape.count && mu_tensor_int(splits, 0))
		return mu_invalid(err, "First split value must be 0, got %lld",
				  (long long)mu_tensor_int(splits, 0));
	for (int64_t i = 1; i < splits->shape.count; i++) {
		int64_t at = mu_tensor_int(splits, i);
		if (at < last || at > n)
			return mu_invalid(err, "Invalid split value %lld, must be in [%lld, %lld]",
					  (long long)at, (long long)last, (long long)n);
		last = at;
	}
	if (splits->shape.count && last != n)
		return mu_invalid(err,
				  "Last split value must be data size. Expected %lld, got %lld",
				  (long long)n, (long long)last);
	return 0;
}

static void put_token(struct mu_buf *b, const struct ngrams *g, struct mu_span s, bool *has_tokens)
{
	if (b->len > MAX_TOTAL_BYTES) /* put_string fails */
		return;
	if (*has_tokens)
		mu_buf_puts(b, g->separator);
	mu_buf_put(b, s.data, s.len);
	*has_tokens = true;
}

/* Writes n-gram k of the n n-grams of a row: left padding, strings of the row, right padding.  The
 * row begins at element `row` of data. */
static void put_ngram(struct mu_buf *b, const struct ngrams *g, const struct mu_tensor *data,
		      int64_t row, int64_t pad, int64_t width, int64_t k, int64_t n)
{
	int64_t left = pad - k > 0 ? pad - k : 0;
	int64_t right = pad - (n - 1 - k) > 0 ? pad - (n - 1 - k) : 0;
	int64_t first = row + (left ? 0 : k - pad);
	bool has_tokens = false;

	mu_buf_clear(b);
	for (int64_t i = 0; i < left; i++)
		put_token(b, g, mu_span_of(g->left), &has_tokens);
	for (int64_t i = 0; i < width - left - right; i++)
		put_token(b, g, elems_span(data, first + i), &has_tokens);
	for (int64_t i = 0; i < right; i++)
		put_token(b, g, mu_span_of(g->right), &has_tokens);
}

/* Counts the n-grams of all rows and writes the splits.  Empty rows have n-grams of padding, unless
 * all rows are empty. */
static int count_all(const struct ngrams *g, bool has_data, const struct mu_tensor *in,
		     struct mu_tensor *splits, int64_t *total, struct mu_err *err)
{
	int64_t n_tokens = 0;

	*total = 0;
	if (in->shape.count)
		mu_tensor_set_int(splits, 0, 0);
	for (int64_t i = 1; i < in->shape.count; i++) {
		int64_t length = mu_tensor_int(in, i) - mu_tensor_int(in, i - 1), n = 0, count;
		for (int w = 0; w < g->n_widths && has_data && n_tokens <= MAX_TOTAL_TOKENS; w++) {
			if (length + 2 * ngram_padding(g, g->width[w]) > INT32_MAX)
				return mu_invalid(err,
						  "Pad width could lead to integer overflow, got "
						  "pad_width = %lld",
						  (long long)ngram_padding(g, g->width[w]));
			count = count_ngrams(g, length, g->width[w]);
			n_tokens =
			    count > MAX_TOTAL_TOKENS ? INT64_MAX : n_tokens + count * g->width[w];
			n += count;
		}
		if (is_preserved(g, length, n)) {
			n_tokens += length + 2 * preserved_pad(g);
			n = 1;
		}
		if (n_tokens > MAX_TOTAL_TOKENS)
			return mu_fail(err, MU_RESOURCE_EXHAUSTED,
				       "n-grams of more than %d strings", MAX_TOTAL_TOKENS);
		mu_tensor_set_int(splits, i, *total += n);
	}
	return 0;
}

/* Appends a string to the output. */
static int put_string(struct kernel_call *c, struct ngrams *g, const struct mu_buf *b,
		      struct mu_err *err)
{
	g->bytes += b->len;
	if (g->bytes > MAX_TOTAL_BYTES)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "n-grams of more than %d bytes",
			       MAX_TOTAL_BYTES);
	mu_string_set(&MU_DATA(struct mu_string, &c->out[0].tensor)[g->n++], b->data, b->len);
	return kernel_check_cancelled(c, err);
}

static int string_ngrams(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *data = kernel_in(c, 0), *in = kernel_in(c, 1);
	struct mu_tensor *out, *splits;
	struct mu_shape shape;
	MU_AUTO_BUF b = {0};
	struct ngrams g;
	int64_t total = 0;

	MU_RETURN_IF_ERROR(read_ngrams(c->node, &g, err));
	MU_RETURN_IF_ERROR(check_data(c, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, in->dtype, &in->shape, &splits, err));
	MU_RETURN_IF_ERROR(count_all(&g, data->shape.count > 0, in, splits, &total, err));
	shape = mu_shape_vec(total);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &shape, &out, err));
	for (int64_t i = 1; i < in->shape.count && total; i++) {
		int64_t row = mu_tensor_int(in, i - 1), length = mu_tensor_int(in, i) - row;
		int64_t first = g.n;
		for (int w = 0; w < g.n_widths; w++) {
			int64_t n = count_ngrams(&g, length, g.width[w]);
			for (int64_t k = 0; k < n; k++) {
				put_ngram(&b, &g, data, row, ngram_padding(&g, g.width[w]),
					  g.width[w], k, n);
				MU_RETURN_IF_ERROR(put_string(c, &g, &b, err));
			}
		}
		if (!is_preserved(&g, length, g.n - first))
			continue;
		put_ngram(&b, &g, data, row, preserved_pad(&g), length + 2 * preserved_pad(&g), 0,
			  1);
		MU_RETURN_IF_ERROR(put_string(c, &g, &b, err));
	}
	return 0;
}

static const struct kernel rows[] = {
    {"StringNGrams", .run = string_ngrams},
};
KERNEL_TABLE(text_ngrams, rows)
