/* SPDX-License-Identifier: Apache-2.0 */
/* SparseConcat: sparse tensors concatenated along a dimension, with sorted entries. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

struct entry {
	const int64_t *at;
	int64_t shift; /* added to coordinate `dim` */
	int64_t value; /* index in the values of its tensor */
	unsigned from; /* number of its tensor */
};

struct order {
	int rank, dim;
};

/* The inputs are n positions, n values and n shapes.  Sets the output's dimensions and its number
 * of entries. */
static int sparse_concat_check(const struct kernel_call *c, unsigned n, struct order *o,
			       int64_t *dims, int64_t *entries, struct mu_err *err)
{
	int64_t axis = args_attr_int(c->node, "concat_dim", 0);

	*entries = 0;
	for (unsigned i = 0; i < n; i++) {
		struct mu_shape s;
		MU_RETURN_IF_ERROR(args_shape(c, 2 * n + i, &s, err));
		const struct mu_shape *at = &kernel_in(c, i)->shape;
		if (at->dim[0] != kernel_in(c, n + i)->shape.count || at->dim[1] != s.rank)
			return mu_invalid(
			    err, "positions %s, values %s and a shape of rank %d do not fit",
			    mu_shape_str(at), mu_shape_str(&kernel_in(c, n + i)->shape), s.rank);
		if (!i)
			MU_RETURN_IF_ERROR(args_axis(axis, s.rank, &o->dim, err));
		*entries += at->dim[0];
		if (!i) {
			o->rank = s.rank;
			memcpy(dims, s.dim, sizeof s.dim);
			continue;
		}
		bool fits = s.rank == o->rank;
		for (int d = 0; fits && d < s.rank; d++)
			fits = d == o->dim || s.dim[d] == dims[d];
		if (!fits || __builtin_add_overflow(dims[o->dim], s.dim[o->dim], &dims[o->dim]))
			return mu_invalid(err,
					  "Input shapes must match: %s at position %u does not",
					  mu_shape_str(&s), i);
	}
	return 0;
}

static int64_t entry_coordinate(const struct entry *e, const struct order *o, int d)
{
	return (int64_t)((uint64_t)e->at[d] + (uint64_t)(d == o->dim ? e->shift : 0));
}

static int sparse_concat_compare(const void *a, const void *b, void *arg)
{
	const struct entry *x = a, *y = b;

	for (int d = 0; d < ((const struct order *)arg)->rank; d++) {
		int64_t p = entry_coordinate(x, arg, d), q = entry_coordinate(y, arg, d);
		if (p != q)
			return p < q ? -1 : 1;
	}
	return x->from != y->from ? (x->from < y->from ? -1 : 1)
				  : (x->value > y->value) - (x->value < y->value);
}

static int concat(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor *at, *values, *shape_out;
	const unsigned n = c->n_in / 3;
	int64_t dims[MU_MAX_RANK];
	struct mu_shape vec, ranks;
	struct order o;
	int64_t count, shift = 0, k = 0;

	if (!n || c->n_in % 3)
		return mu_invalid(err, "%u inputs are not positions, values and shapes", c->n_in);
	MU_RETURN_IF_ERROR(sparse_concat_check(c, n, &o, dims, &count, err));
	MU_AUTO_FREE struct entry *list = mu_xcalloc((size_t)count + 1, sizeof *list);
	for (unsigned i = 0; i < n; i++) {
		const struct mu_tensor *from = kernel_in(c, i);
		for (int64_t e = 0; e < from->shape.dim[0]; e++)
			list[k++] =
			    (struct entry){MU_DATA(int64_t, from) + e * o.rank, shift, e, i};
		shift += mu_tensor_int(kernel_in(c, 2 * n + i), o.dim);
	}
	qsort_r(list, (size_t)count, sizeof *list, sparse_concat_compare, &o);
	const enum mu_dtype type = kernel_in(c, n)->dtype;
	vec = mu_shape_vec(count);
	ranks = mu_shape_vec(o.rank);
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, 0, MU_INT64, 2, (int64_t[]){count, o.rank}, &at, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, type, &vec, &values, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 2, MU_INT64, &ranks, &shape_out, err));
	for (int64_t i = 0; i < count; i++) {
		for (int d = 0; d < o.rank; d++)
			MU_DATA(int64_t, at)[i * o.rank + d] = entry_coordinate(&list[i], &o, d);
		elems_copy(type, values->data, i, kernel_in(c, n + list[i].from)->data,
			   list[i].value, 1);
	}
	for (int d = 0; d < o.rank; d++)
		MU_DATA(int64_t, shape_out)[d] = dims[d];
	return 0;
}

static const struct kernel rows[] = {
    {"SparseConcat", .run = concat},
};
KERNEL_TABLE(sparse_concat, rows)
