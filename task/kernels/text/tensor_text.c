/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/text/tensor_text.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"

static void put_real(struct mu_buf *b, double x, bool is_double)
{
	char text[40];

	if (isnan(x)) {
		mu_buf_puts(b, "nan");
		return;
	}
	snprintf(text, sizeof text, "%.*g", is_double ? DBL_DIG : FLT_DIG, x);
	bool is_exact = is_double ? strtod(text, NULL) == x : strtof(text, NULL) == (float)x;
	if (!is_exact)
		snprintf(text, sizeof text, "%.*g", is_double ? DBL_DIG + 2 : FLT_DIG + 3, x);
	mu_buf_puts(b, text);
}

void tensor_text_element(struct mu_buf *b, const struct mu_tensor *t, int64_t i)
{
	const char *at = (const char *)t->data + (size_t)i * elems_size(t->dtype);
	double d;
	int64_t k;

	if (t->dtype == MU_STRING) {
		struct mu_span s = elems_span(t, i);
		mu_buf_put(b, s.data, s.len);
	} else if (t->dtype == MU_BOOL) {
		mu_buf_puts(b, *(const bool *)at ? "1" : "0");
	} else if (t->dtype == MU_FLOAT || t->dtype == MU_DOUBLE || t->dtype == MU_HALF ||
		   t->dtype == MU_BFLOAT16) {
		convert(MU_DOUBLE, &d, t->dtype, at, 1);
		put_real(b, d, t->dtype == MU_DOUBLE);
	} else if (mu_dtype_size(t->dtype) && convert_supports(MU_INT64, t->dtype)) {
		convert(MU_INT64, &k, t->dtype, at, 1);
		mu_buf_printf(b, t->dtype == MU_UINT64 ? "%" PRIu64 : "%" PRId64, k);
	} else {
		mu_buf_putc(b, '?');
	}
}

/* Appends a string with control characters, quotes and backslashes escaped as in C. */
static void put_escaped(struct mu_buf *b, struct mu_span s)
{
	static const char special[] = "\n\r\t\"'\\", letter[] = "nrt\"'\\";

	for (size_t i = 0; i < s.len; i++) {
		char c = s.data[i];
		const char *match = c ? strchr(special, c) : NULL;
		if (match)
			mu_buf_printf(b, "\\%c", letter[match - special]);
		else if ((unsigned char)c < 0x20 || c == 0x7f)
			mu_buf_printf(b, "\\%03o", (unsigned char)c);
		else
			mu_buf_putc(b, c);
	}
}

/* ---- the first elements ---- */

struct first_elements {
	struct mu_buf *b;
	const struct mu_tensor *t;
	int64_t at, n;
	size_t max_bytes;
};

static bool is_done(const struct first_elements *f)
{
	return f->at >= f->n || f->b->len >= f->max_bytes;
}

static void put_first(struct first_elements *f, int d)
{
	const struct mu_shape *s = &f->t->shape;

	for (int64_t i = 0; i < s->dim[d] && !is_done(f); i++) {
		bool last = d == s->rank - 1;
		mu_buf_puts(f->b, !last ? "[" : i ? " " : "");
		if (!last)
			put_first(f, d + 1);
		else if (f->t->dtype == MU_STRING)
			put_escaped(f->b, elems_span(f->t, f->at++));
		else
			tensor_text_element(f->b, f->t, f->at++);
		if (!last)
			mu_buf_putc(f->b, ']');
		else if (d && i + 1 < s->dim[d] && is_done(f))
			mu_buf_puts(f->b, "...");
	}
}

void tensor_text_first(struct mu_buf *b, const struct mu_tensor *t, int64_t n, size_t max_bytes)
{
	int64_t count = t->shape.count;
	struct mu_tensor flat = *t;

	if (t->dtype == MU_BOOL && !n) /* as in TensorFlow */
		return;
	if (!t->shape.rank || mu_dtype_is_complex(t->dtype))
		flat.shape = mu_shape_vec(count);
	struct first_elements f = {b, &flat, 0, n < 0 || n > count ? count : n, max_bytes};
	put_first(&f, 0);
	if (f.at < count)
		mu_buf_puts(b, "...");
}

/* ---- the first and last elements of each dimension ---- */

/* Appends the separator of two elements of dimension d: more newlines for outer dimensions. */
static void put_space(struct mu_buf *b, int d, int rank)
{
	for (int i = d + 1; i < rank; i++)
		mu_buf_putc(b, '\n');
	for (int i = 0; i <= (d == rank - 1 ? 0 : d); i++)
		mu_buf_putc(b, ' ');
}

static void put_nested(struct mu_buf *b, const struct mu_tensor *t, int64_t edge_items, int d,
		       int64_t at)
{
	const struct mu_shape *s = &t->shape;
	int64_t n, stride = 1;

	if (d == s->rank) {
		if (t->dtype == MU_STRING) {
			mu_buf_putc(b, '"');
			put_escaped(b, elems_span(t, at));
			mu_buf_putc(b, '"');
		} else {
			tensor_text_element(b, t, at);
		}
		return;
	}
	n = s->dim[d];
	stride = mu_shape_product(s, d + 1, s->rank);
	mu_buf_putc(b, '[');
	for (int64_t i = 0; i < n; i++) {
		if (i)
			put_space(b, d, s->rank);
		if (i == edge_items && n - edge_items > edge_items) {
			if (!i)
				put_space(b, d, s->rank);
			mu_buf_puts(b, "...");
			i = n - edge_items - 1;
			continue;
		}
		put_nested(b, t, edge_items, d + 1, at + i * stride);
	}
	mu_buf_putc(b, ']');
}

void tensor_text_nested(struct mu_buf *b, const struct mu_tensor *t, int64_t edge_items)
{
	int64_t count = t->shape.count;

	if (mu_dtype_is_complex(t->dtype) && t->shape.rank) { /* flat, as in TensorFlow */
		mu_buf_putc(b, '[');
		tensor_text_first(b, t, edge_items, SIZE_MAX);
		mu_buf_putc(b, ']');
	} else if (!t->shape.rank && !edge_items) {
		mu_buf_puts(b, "...");
	} else {
		put_nested(b, t, edge_items < 0 || edge_items > count ? count : edge_items, 0, 0);
	}
}
