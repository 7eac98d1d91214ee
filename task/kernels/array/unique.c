/* SPDX-License-Identifier: Apache-2.0 */
/* Unique elements, in the order of their first appearance. */

#include "lib/base/map.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

static int unique_check_type(const struct mu_tensor *t, struct mu_err *err)
{
	if (t->dtype != MU_STRING && !mu_dtype_size(t->dtype))
		return mu_fail(err, MU_UNIMPLEMENTED, "no kernel for type %s",
			       mu_dtype_name(t->dtype));
	return 0;
}

/* Appends the bytes of slice i to the key; false if it holds a NaN, which is like no other.  Zero
 * and minus zero are one. */
static bool put_slice_key(struct mu_buf *key, const struct mu_tensor *x, int axis, int64_t i)
{
	const bool real = x->dtype == MU_FLOAT || x->dtype == MU_DOUBLE || x->dtype == MU_HALF ||
			  x->dtype == MU_BFLOAT16;
	int64_t n = x->shape.dim[axis],
		inner = mu_shape_product(&x->shape, axis + 1, x->shape.rank);
	int64_t outer = n && inner ? x->shape.count / (n * inner) : 0;
	double d = 1;

	mu_buf_put(key, &outer, sizeof outer); /* a slice without elements has a key, too */
	for (int64_t e = 0; e < outer * inner; e++) {
		int64_t at = (e / inner * n + i) * inner + e % inner;
		struct mu_span bytes = elems_bytes(x, at);
		if (real)
			convert(MU_DOUBLE, &d, x->dtype, bytes.data, 1);
		if (d != d)
			return false;
		if (x->dtype == MU_STRING)
			mu_buf_put(key, &bytes.len, sizeof bytes.len);
		mu_buf_put(key, d == 0 ? "\0\0\0\0\0\0\0" : bytes.data, bytes.len);
	}
	return true;
}

/* Numbers each slice of x; firsts gets the slice where each number appeared. */
static int64_t unique_number(const struct mu_tensor *x, int axis, struct mu_tensor *idx,
			     int64_t *firsts)
{
	int64_t n = x->shape.dim[axis], count = 0;
	MU_AUTO_BUF key = {0};
	struct mu_map seen;

	mu_map_init(&seen);
	for (int64_t i = 0; i < n; i++) {
		mu_buf_clear(&key);
		bool comparable = put_slice_key(&key, x, axis, i);
		uintptr_t k = comparable ? (uintptr_t)mu_map_get_n(&seen, key.data, key.len) : 0;
		if (!k) {
			firsts[count++] = i;
			k = (uintptr_t)count;
			if (comparable)
				mu_map_put_n(&seen, key.data, key.len, (void *)k);
		}
		mu_tensor_set_int(idx, i, (int64_t)k - 1);
	}
	mu_map_fini(&seen);
	return count;
}

/* The dimension whose slices are compared; the whole of a vector without an axis. */
static int unique_axis(const struct kernel_call *c, int *axis, struct mu_err *err)
{
	const struct mu_shape *x = &kernel_in(c, 0)->shape;
	int64_t given;

	*axis = 0;
	if (c->n_in < 2 || !kernel_in(c, 1)->shape.count)
		return x->rank == 1 ? 0 : mu_invalid(err, "unique expects a 1D vector.");
	if (kernel_in(c, 1)->shape.count > 1)
		return mu_invalid(err,
				  "axis does not support input tensors larger than 1 elements");
	MU_RETURN_IF_ERROR(args_int(c, 1, &given, err));
	if (given < -x->rank || given >= x->rank)
		return mu_invalid(err, "axis has to be between [0, %d)", x->rank);
	*axis = (int)(given < 0 ? given + x->rank : given);
	return 0;
}

/* Copies slice `from` of x to slice `to` of y. */
static void copy_slice(const struct mu_tensor *y, int64_t to, const struct mu_tensor *x,
		       int64_t from, int axis)
{
	const struct mu_axis_split s = mu_shape_split(&x->shape, axis);

	for (int64_t o = 0; o < s.outer; o++)
		elems_copy(x->dtype, y->data, (o * y->shape.dim[axis] + to) * s.inner, x->data,
			   (o * s.n + from) * s.inner, s.inner);
}

static int unique(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, 0);
	enum mu_dtype index = args_attr_type(c->node, "out_idx", MU_INT32);
	struct mu_tensor *y, *idx, *counts;
	int axis, rc = 0;

	MU_RETURN_IF_ERROR(unique_axis(c, &axis, err));
	MU_RETURN_IF_ERROR(unique_check_type(x, err));
	int64_t n = x->shape.dim[axis], count;
	struct mu_shape shape = mu_shape_vec(n), slices = x->shape;
	MU_AUTO_FREE int64_t *firsts = malloc((size_t)(n + 1) * sizeof *firsts);
	if (!firsts)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld elements",
			       (long long)n);
	MU_RETURN_IF_ERROR(kernel_out(c, 1, index, &shape, &idx, err));
	count = unique_number(x, axis, idx, firsts);
	shape = mu_shape_vec(count);
	slices.dim[axis] = count;
	MU_RETURN_IF_ERROR(mu_shape_set(&slices, x->shape.rank, slices.dim, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, x->dtype, &slices, &y, err));
	for (int64_t i = 0; i < count; i++)
		copy_slice(y, i, x, firsts[i], axis);
	if (c->n_out < 3 || (rc = kernel_out(c, 2, index, &shape, &counts, err)))
		return c->n_out < 3 ? 0 : rc;
	elems_zero(index, counts->data, 0, count);
	for (int64_t i = 0; i < n; i++) {
		int64_t k = mu_tensor_int(idx, i);
		mu_tensor_set_int(counts, k, mu_tensor_int(counts, k) + 1);
	}
	return 0;
}

/* The elements of x that are not in y, in x's order. */
static int list_diff(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, 0), *y = kernel_in(c, 1);
	enum mu_dtype index = args_attr_type(c->node, "out_idx", MU_INT32);
	struct mu_tensor *out, *idx;
	MU_AUTO_BUF key = {0};
	struct mu_map have;
	int64_t n = 0;

	MU_RETURN_IF_ERROR(unique_check_type(x, err));
	MU_AUTO_FREE int64_t *kept = malloc((size_t)(x->shape.count + 1) * sizeof *kept);
	if (!kept)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld elements",
			       (long long)x->shape.count);
	mu_map_init(&have);
	for (int64_t i = 0; i < y->shape.count; i++) {
		mu_buf_clear(&key);
		if (put_slice_key(&key, y, 0, i))
			mu_map_put_n(&have, key.data, key.len, &have);
	}
	for (int64_t i = 0; i < x->shape.count; i++) {
		mu_buf_clear(&key);
		if (!put_slice_key(&key, x, 0, i) || !mu_map_get_n(&have, key.data, key.len))
			kept[n++] = i;
	}
	mu_map_fini(&have);
	struct mu_shape shape = mu_shape_vec(n);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, x->dtype, &shape, &out, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, index, &shape, &idx, err));
	for (int64_t i = 0; i < n; i++) {
		elems_copy(x->dtype, out->data, i, x->data, kept[i], 1);
		mu_tensor_set_int(idx, i, kept[i]);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2", .run = unique},
    {"ListDiff", .run = list_diff},
};
KERNEL_TABLE(array_unique, rows)
