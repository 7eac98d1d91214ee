/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of sparse tensors to dense and to sparse tensors. Entries are sorted by the remaining
 * dimensions, so entries of one output element are adjacent. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/sparse/sparse.h"

struct entry {
	int64_t output, i; /* index in the dense output; index in the input */
};

struct reduction {
	struct sparse s;
	bool reduced[MU_MAX_RANK];
	struct mu_shape shape; /* of the result */
	binary_loop *loop;
};

/* Sets reduced[d] for each dimension d that input 3 (`reduction_axes`) names. */
static int reduced_axes(const struct kernel_call *c, int rank, bool *reduced, struct mu_err *err)
{
	int64_t axes[MU_MAX_RANK];
	int n, axis;

	MU_RETURN_IF_ERROR(args_ints(c, 3, axes, MU_MAX_RANK, &n, err));
	for (int d = 0; d < rank; d++)
		reduced[d] = false;
	for (int i = 0; i < n; i++) {
		MU_RETURN_IF_ERROR(args_axis(axes[i], rank, &axis, err));
		reduced[axis] = true;
	}
	return 0;
}

static int sparse_reduce_compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->output != y->output ? (x->output < y->output ? -1 : 1)
				      : (x->i > y->i) - (x->i < y->i);
}

/* Sets the output index of each entry and sorts the entries.  Coordinates of reduced dimensions may
 * be out of range, as in TensorFlow. */
static int sparse_reduce_sort(const struct reduction *r, struct entry *list, struct mu_err *err)
{
	const struct mu_shape *shape = &r->s.shape;
	const int64_t *at = MU_DATA(int64_t, r->s.at);

	for (int64_t i = 0; i < r->s.n; i++, at += shape->rank) {
		list[i].i = i;
		for (int d = 0; d < shape->rank; d++) {
			if (r->reduced[d])
				continue;
			if (at[d] < 0 || at[d] >= shape->dim[d])
				return sparse_out_of_bounds(i, at, shape->rank, shape->dim, err);
			list[i].output = list[i].output * shape->dim[d] + at[d];
		}
	}
	qsort(list, (size_t)r->s.n, sizeof *list, sparse_reduce_compare);
	return 0;
}

/* Allocates *list: the entries, sorted. */
static int sparse_reduce_prepare(const struct kernel_call *c, enum binary_op op,
				 struct reduction *r, struct entry **list, struct mu_err *err)
{
	bool keep_dims = args_attr_bool(c->node, "keep_dims", false);

	MU_RETURN_IF_ERROR(sparse_in_unchecked(c, 0, &r->s, err));
	MU_RETURN_IF_ERROR(reduced_axes(c, r->s.shape.rank, r->reduced, err));
	enum mu_dtype type = r->s.values->dtype;
	r->loop = loops->binary[op][type];
	if (!r->loop)
		return args_no_kernel(c, type, err);
	r->shape = mu_shape_scalar();
	for (int d = 0; d < r->s.shape.rank; d++)
		if (keep_dims || !r->reduced[d])
			MU_RETURN_IF_ERROR(
			    mu_shape_push(&r->shape, r->reduced[d] ? 1 : r->s.shape.dim[d], err));
	*list = calloc((size_t)r->s.n + 1, sizeof **list);
	if (!*list)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld entries",
			       (long long)r->s.n);
	return sparse_reduce_sort(r, *list, err);
}

/* Reduces entry e of the list into `to`: copies the first entry of an output element and combines
 * the others with it. */
static void sparse_reduce_entry(const struct reduction *r, const struct entry *list, int64_t e,
				char *to)
{
	size_t size = mu_dtype_size(r->s.values->dtype);
	const char *from = (const char *)r->s.values->data + (size_t)list[e].i * size;

	if (e && list[e].output == list[e - 1].output)
		r->loop(to, to, from, 1, BOTH_RUN);
	else
		memcpy(to, from, size);
}

/* Elements without an entry are zero. */
static int to_dense(struct kernel_call *c, enum binary_op op, struct mu_err *err)
{
	struct reduction r;
	struct mu_tensor *out;
	MU_AUTO_FREE struct entry *list = NULL;

	MU_RETURN_IF_ERROR(sparse_reduce_prepare(c, op, &r, &list, err));
	enum mu_dtype type = r.s.values->dtype;
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &r.shape, &out, err));
	elems_zero(type, out->data, 0, r.shape.count);
	for (int64_t e = 0; e < r.s.n; e++)
		sparse_reduce_entry(
		    &r, list, e, (char *)out->data + (size_t)list[e].output * mu_dtype_size(type));
	return 0;
}

static int to_sparse(struct kernel_call *c, enum binary_op op, struct mu_err *err)
{
	int64_t elements = 0, k = -1, *at;
	struct mu_tensor *out;
	struct reduction r;
	MU_AUTO_FREE struct entry *list = NULL;

	MU_RETURN_IF_ERROR(sparse_reduce_prepare(c, op, &r, &list, err));
	enum mu_dtype type = r.s.values->dtype;
	for (int64_t e = 0; e < r.s.n; e++)
		elements += !e || list[e].output != list[e - 1].output;
	MU_RETURN_IF_ERROR(
	    sparse_out(c, (unsigned[]){0, 1, 2}, elements, &r.shape, type, &at, &out, err));
	for (int64_t e = 0; e < r.s.n; e++) {
		k += !e || list[e].output != list[e - 1].output;
		int64_t left = list[e].output;
		for (int d = r.shape.rank; d-- > 0; left /= r.shape.dim[d])
			at[k * r.shape.rank + d] = left % r.shape.dim[d];
		sparse_reduce_entry(&r, list, e,
				    (char *)out->data + (size_t)k * mu_dtype_size(type));
	}
	return 0;
}

#define REDUCE(name, op)                                                                           \
	KERNEL_RUN(name, to_dense(c, op, err))                                                     \
	KERNEL_RUN(name##_sparse, to_sparse(c, op, err))
REDUCE(sum, BIN_AddV2)
REDUCE(max, BIN_Maximum)

static const struct kernel rows[] = {
    {"SparseReduceSum", .run = sum},
    {"SparseReduceMax", .run = max},
    {"SparseReduceSumSparse", .run = sum_sparse},
    {"SparseReduceMaxSparse", .run = max_sparse},
};
KERNEL_TABLE(sparse_reduce, rows)
