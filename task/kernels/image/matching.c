/* SPDX-License-Identifier: Apache-2.0 */
/* BipartiteMatch: pairs of rows and columns by increasing distance, each in at most one pair; and
 * ImageConnectedComponents: the areas of equal neighbours in images. */
#include <math.h>
#include <stdlib.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

/* ---- BipartiteMatch ---- */

/* A binary heap with the least distance first.  Equal distances are popped in the order of
 * TensorFlow's heap: a pop moves the hole to the bottom, then moves the last entry up from there.
 */
struct match {
	float distance;
	int32_t row, column;
};

static void heap_sift_up(struct match *heap, int64_t at, struct match m)
{
	for (; at > 0 && heap[(at - 1) / 2].distance > m.distance; at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = m;
}

static struct match heap_pop(struct match *heap, int64_t *count)
{
	struct match first = heap[0], last = heap[--*count];
	int64_t n = *count, at = 0;

	for (int64_t child; (child = 2 * at + 2) <= n; at = child) {
		if (child == n || heap[child].distance > heap[child - 1].distance)
			child--;
		heap[at] = heap[child];
	}
	heap_sift_up(heap, at, last);
	return first;
}

static int read_valid_rows(const struct kernel_call *c, int64_t rows, int64_t *out,
			   struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 1);

	if (t->shape.count != 1)
		return mu_invalid(
		    err, "num_valid_rows argument should be a tensor with 1 element, but got %lld",
		    (long long)t->shape.count);
	float n = *MU_DATA(float, t);
	*out = n < 0 ? rows : n < (float)INT32_MAX ? (int64_t)n : INT32_MAX;
	if (!(n <= (float)INT32_MAX) || *out > rows)
		return mu_invalid(
		    err,
		    "There should be at least %lld rows in distance_mat, but only got %lld rows.",
		    (long long)*out, (long long)rows);
	return 0;
}

static int bipartite_match(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *distances = kernel_in(c, 0);
	int64_t rows = distances->shape.dim[0], columns = distances->shape.dim[1], n = 0, valid = 0;
	int64_t left = args_attr_int(c->node, "top_k", -1);
	struct mu_tensor *by_row, *by_column;

	MU_RETURN_IF_ERROR(read_valid_rows(c, rows, &valid, err));
	if (rows > INT32_MAX || columns > INT32_MAX)
		return mu_invalid(err, "distance_mat is too large: %s",
				  mu_shape_str(&distances->shape));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, MU_INT32, rows, &by_row, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 1, MU_INT32, columns, &by_column, err));
	memset(by_row->data, -1, (size_t)rows * sizeof(int32_t));
	memset(by_column->data, -1, (size_t)columns * sizeof(int32_t));
	struct match *heap = calloc((size_t)(valid * columns) + 1, sizeof *heap);
	if (!heap)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for the distances");
	for (; n < valid * columns; n++)
		heap_sift_up(heap, n,
			     (struct match){MU_DATA(float, distances)[n], (int32_t)(n / columns),
					    (int32_t)(n % columns)});
	left = left > 0 ? left : INT64_MAX;
	while (n && left) {
		struct match m = heap_pop(heap, &n);
		int32_t *of_row = &MU_DATA(int32_t, by_row)[m.row];
		int32_t *of_column = &MU_DATA(int32_t, by_column)[m.column];
		if (*of_row >= 0 || *of_column >= 0)
			continue;
		*of_row = m.column;
		*of_column = m.row;
		left--;
	}
	free(heap);
	return 0;
}

/* ---- ImageConnectedComponents ---- */

struct areas {
	const struct mu_tensor *in;
	int64_t rows, columns;
	int64_t *ids; /* 0: not in an area, or not visited */
	int64_t *stack;
};

static bool pixel_is_blank(const struct mu_tensor *t, int64_t i)
{
	return t->dtype == MU_STRING ? !elems_span(t, i).len : convert_is_zero(t, i);
}

static bool pixels_are_equal(const struct mu_tensor *t, int64_t i, int64_t j)
{
	struct mu_span a = elems_bytes(t, i), b = elems_bytes(t, j);

	if (t->dtype == MU_DOUBLE)
		return MU_DATA(double, t)[i] == MU_DATA(double, t)[j];
	return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* Labels the area of pixel `first`. */
static void fill_area(const struct areas *a, int64_t first)
{
	int64_t n = 0;

	a->ids[first] = first + 1;
	a->stack[n++] = first;
	while (n) {
		int64_t at = a->stack[--n], y = at / a->columns % a->rows, x = at % a->columns;
		const int64_t next[4] = {y ? at - a->columns : at,
					 y + 1 < a->rows ? at + a->columns : at, x ? at - 1 : at,
					 x + 1 < a->columns ? at + 1 : at};
		for (int i = 0; i < 4; i++)
			if (!a->ids[next[i]] && pixels_are_equal(a->in, at, next[i])) {
				a->ids[next[i]] = first + 1;
				a->stack[n++] = next[i];
			}
	}
}

static int connected_components(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const struct mu_shape *shape = &in->shape;
	bool is_float = in->dtype == MU_HALF || in->dtype == MU_FLOAT;
	MU_AUTO_TENSOR wide = {0};
	MU_AUTO_TENSOR stack = {0};
	struct mu_tensor *out;

	if (is_float)
		MU_RETURN_IF_ERROR(convert_tensor(&wide, MU_DOUBLE, in, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&stack, MU_INT64, shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT64, shape, &out, err));
	elems_zero(MU_INT64, out->data, 0, shape->count);
	struct areas a = {.in = is_float ? &wide : in,
			  .rows = shape->dim[1],
			  .columns = shape->dim[2],
			  .ids = out->data,
			  .stack = stack.data};
	for (int64_t i = 0; i < shape->count; i++)
		if (!a.ids[i] && !pixel_is_blank(a.in, i))
			fill_area(&a, i);
	return 0;
}

static const struct kernel rows[] = {
    {"BipartiteMatch", KERNEL_EXPENSIVE, .run = bipartite_match},
    {"ImageConnectedComponents", KERNEL_EXPENSIVE, .run = connected_components},
};
KERNEL_TABLE(image_matching, rows)
