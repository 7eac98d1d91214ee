/* SPDX-License-Identifier: Apache-2.0 */
/* Unique elements, in the order of their first appearance. */
#include <string.h>

#include "lib/base/map.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

/* Element i as bytes that are equal when elements are. */
static struct mu_span unique_key_of(const struct mu_tensor *t, int64_t i)
{
	size_t size = elems_size(t->dtype);

	if (t->dtype == MU_STRING) {
		const struct mu_string *s = &MU_DATA(struct mu_string, t)[i];
		return (struct mu_span){s->data ? s->data : "", s->len};
	}
	return (struct mu_span){(const char *)t->data + (size_t)i * size, size};
}

static int unique_check_type(const struct mu_tensor *t, struct mu_err *err)
{
	if (t->dtype != MU_STRING && !mu_dtype_size(t->dtype))
		return mu_fail(err, MU_UNIMPLEMENTED, "no kernel for type %s",
			       mu_dtype_name(t->dtype));
	return 0;
}

/* The type of the indices that go out. */
static int index_type(const struct kernel_call *c, enum mu_dtype *out, struct mu_err *err)
{
	*out = args_attr_type(c->node, "out_idx", MU_INT32);
	if (*out != MU_INT32 && *out != MU_INT64)
		return mu_fail(err, MU_INVALID_ARGUMENT, "out_idx must be int32 or int64");
	return 0;
}

/* Numbers each element of x; firsts gets where each number appeared.  Zero and minus zero are one;
 * a NaN is like no other, which its bytes cannot say, so it gets a number by itself. */
static int64_t unique_number(const struct mu_tensor *x, struct mu_tensor *idx, int64_t *firsts)
{
	int64_t n = x->shape.count, count = 0;
	struct mu_map seen;

	mu_map_init(&seen);
	for (int64_t i = 0; i < n; i++) {
		struct mu_span key = unique_key_of(x, i);
		double d = x->dtype == MU_FLOAT    ? (double)MU_DATA(float, x)[i]
			   : x->dtype == MU_DOUBLE ? MU_DATA(double, x)[i]
						   : 1;
		if (d == 0)
			key = MU_SPAN("\0\0\0\0\0\0\0\0");
		uintptr_t k = d != d ? 0 : (uintptr_t)mu_map_get_n(&seen, key.data, key.len);
		if (!k) {
			firsts[count++] = i;
			k = (uintptr_t)count;
			if (d == d)
				mu_map_put_n(&seen, key.data, key.len, (void *)k);
		}
		mu_tensor_set_int(idx, i, (int64_t)k - 1);
	}
	mu_map_fini(&seen);
	return count;
}

static int unique(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, 0);
	enum mu_dtype index;
	int64_t n = x->shape.count, count;
	struct mu_tensor *y, *idx, *counts;
	int rc;

	if (x->shape.rank != 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "unique expects a 1D vector.");
	if (c->n_in > 1 && kernel_in(c, 1)->shape.count > 0) {
		int64_t axis;
		if ((rc = args_int(c, 1, &axis, err)))
			return rc;
		if (axis != 0 && axis != -1)
			return mu_fail(err, MU_INVALID_ARGUMENT, "axis has to be between 0 and 1");
	}
	if ((rc = index_type(c, &index, err)) || (rc = unique_check_type(x, err)))
		return rc;
	MU_AUTO_FREE int64_t *firsts = malloc((size_t)(n + 1) * sizeof *firsts);
	if (!firsts)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld elements",
			       (long long)n);
	if ((rc = kernel_out(c, 1, index, &x->shape, &idx, err)))
		return rc;
	count = unique_number(x, idx, firsts);
	struct mu_shape shape = mu_shape_vec(count);
	if ((rc = kernel_out(c, 0, x->dtype, &shape, &y, err)))
		return rc;
	for (int64_t i = 0; i < count; i++)
		elems_copy(x->dtype, y->data, i, x->data, firsts[i], 1);
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
	enum mu_dtype index;
	struct mu_tensor *out, *idx;
	struct mu_map have;
	int64_t n = 0;
	int rc;

	if ((rc = args_rank(c, 0, 1, err)) || (rc = args_rank(c, 1, 1, err)) ||
	    (rc = index_type(c, &index, err)) || (rc = unique_check_type(x, err)))
		return rc;
	MU_AUTO_FREE int64_t *kept = malloc((size_t)(x->shape.count + 1) * sizeof *kept);
	if (!kept)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld elements",
			       (long long)x->shape.count);
	mu_map_init(&have);
	for (int64_t i = 0; i < y->shape.count; i++) {
		struct mu_span key = unique_key_of(y, i);
		mu_map_put_n(&have, key.data, key.len, &have);
	}
	for (int64_t i = 0; i < x->shape.count; i++) {
		struct mu_span key = unique_key_of(x, i);
		if (!mu_map_get_n(&have, key.data, key.len))
			kept[n++] = i;
	}
	mu_map_fini(&have);
	struct mu_shape shape = mu_shape_vec(n);
	if ((rc = kernel_out(c, 0, x->dtype, &shape, &out, err)) ||
	    (rc = kernel_out(c, 1, index, &shape, &idx, err)))
		return rc;
	for (int64_t i = 0; i < n; i++) {
		elems_copy(x->dtype, out->data, i, x->data, kept[i], 1);
		mu_tensor_set_int(idx, i, kept[i]);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"Unique", .run = unique},           {"UniqueV2", .run = unique},
    {"UniqueWithCounts", .run = unique}, {"UniqueWithCountsV2", .run = unique},
    {"ListDiff", .run = list_diff},
};
KERNEL_TABLE(array_unique, rows)
