/* SPDX-License-Identifier: Apache-2.0 */
/* SparseSlice and SparseSplit: a window of a sparse tensor, and a split along a dimension. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/sparse/sparse.h"

/* ---- SparseSlice ---- */

struct box {
	int64_t start[MU_MAX_RANK];
	struct mu_shape shape; /* clipped to the tensor */
};

static int read_box(const struct kernel_call *c, const struct mu_shape *s, struct box *b,
		    struct mu_err *err)
{
	int64_t size[MU_MAX_RANK];
	int n, m;

	MU_RETURN_IF_ERROR(args_ints(c, 3, b->start, MU_MAX_RANK, &n, err));
	MU_RETURN_IF_ERROR(args_ints(c, 4, size, MU_MAX_RANK, &m, err));
	if (n != s->rank || m != s->rank)
		return mu_invalid(err, "start has %d and size %d elements for a tensor of rank %d",
				  n, m, s->rank);
	for (int d = 0; d < n; d++) {
		if (b->start[d] < 0 || size[d] < 0)
			return mu_invalid(
			    err, "start %lld and size %lld of dimension %d must not be negative",
			    (long long)b->start[d], (long long)size[d], d);
		int64_t left = b->start[d] < s->dim[d] ? s->dim[d] - b->start[d] : 0;
		size[d] = size[d] < left ? size[d] : left;
	}
	return mu_shape_set(&b->shape, n, size, err);
}

static bool box_contains(const struct box *b, const int64_t *at)
{
	for (int d = 0; d < b->shape.rank; d++)
		if (at[d] < b->start[d] || at[d] - b->start[d] >= b->shape.dim[d])
			return false;
	return true;
}

static int sparse_slice(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor *values;
	int64_t n_kept = 0, *to;
	struct sparse s;
	struct box b;

	/* unchecked: feature columns place out-of-vocabulary values at -1 and slice them off */
	MU_RETURN_IF_ERROR(sparse_in_unchecked(c, 0, &s, err));
	MU_RETURN_IF_ERROR(read_box(c, &s.shape, &b, err));
	const int64_t *at = s.at->data;
	int rank = s.shape.rank;
	for (int64_t i = 0; i < s.n; i++)
		n_kept += box_contains(&b, at + i * rank);
	MU_RETURN_IF_ERROR(sparse_out(c, (unsigned[]){0, 1, 2}, n_kept, &b.shape, s.values->dtype,
				      &to, &values, err));
	n_kept = 0;
	for (int64_t i = 0; i < s.n; i++) {
		if (!box_contains(&b, at + i * rank))
			continue;
		for (int d = 0; d < rank; d++)
			to[n_kept * rank + d] = at[i * rank + d] - b.start[d];
		elems_copy(s.values->dtype, values->data, n_kept++, s.values->data, i, 1);
	}
	return 0;
}

/* Elements of the slice get their gradient, others zero.  Both lists of positions are sorted. */
static int slice_grad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *grad = kernel_in(c, 0), *in = kernel_in(c, 1);
	const struct mu_tensor *out_at = kernel_in(c, 3);
	int64_t start[MU_MAX_RANK], k = 0;
	struct mu_tensor *out;
	int rank;

	MU_RETURN_IF_ERROR(args_ints(c, 2, start, MU_MAX_RANK, &rank, err));
	struct mu_shape vec = mu_shape_vec(in->shape.dim[0]);
	if (out_at->shape.dim[0] > vec.count)
		return mu_invalid(err,
				  "# rows of output_indices should be not greater than of "
				  "input_indices, got %lld and %lld",
				  (long long)out_at->shape.dim[0], (long long)vec.count);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, grad->dtype, &vec, &out, err));
	elems_zero(grad->dtype, out->data, 0, vec.count);
	for (int64_t i = 0; i < vec.count && k < grad->shape.count; i++) {
		bool same = true;
		for (int d = 0; d < rank && same; d++) {
			int64_t moved;
			same = !__builtin_add_overflow(MU_DATA(int64_t, out_at)[k * rank + d],
						       start[d], &moved) &&
			       moved == MU_DATA(int64_t, in)[i * rank + d];
		}
		if (same)
			elems_copy(grad->dtype, out->data, i, grad->data, k++, 1);
	}
	if (k < grad->shape.count)
		return mu_fail(err, MU_INTERNAL,
			       "Elements of backprop_val_grad aren't all propagated. Num elements: "
			       "%lld, used: %lld",
			       (long long)grad->shape.count, (long long)k);
	return 0;
}

/* ---- SparseSplit ---- */

struct cut {
	int64_t n, size;  /* number of parts; size of a part */
	int64_t n_longer; /* number of first parts that are one larger */
	int dim;
};

static int read_cut(const struct kernel_call *c, const struct mu_shape *s, struct cut *cut,
		    struct mu_err *err)
{
	int64_t axis;

	MU_RETURN_IF_ERROR(args_int(c, 0, &axis, err));
	MU_RETURN_IF_ERROR(args_axis(axis, s->rank, &cut->dim, err));
	cut->n = args_attr_int(c->node, "num_split", 0);
	if (cut->n < 1 || cut->n > s->dim[cut->dim] || c->n_out != 3 * (uint64_t)cut->n)
		return mu_invalid(err,
				  "Input num_split should be between 1 and the splitting dimension "
				  "size (%lld), got %lld",
				  (long long)s->dim[cut->dim], (long long)cut->n);
	cut->size = s->dim[cut->dim] / cut->n;
	cut->n_longer = s->dim[cut->dim] % cut->n;
	return 0;
}

static int64_t part_start(const struct cut *cut, int64_t part)
{
	return part * cut->size + (part < cut->n_longer ? part : cut->n_longer);
}

static int64_t sparse_slice_part_of(const struct cut *cut, int64_t x)
{
	int64_t in_longer = cut->n_longer * (cut->size + 1);

	return x < in_longer ? x / (cut->size + 1) : cut->n_longer + (x - in_longer) / cut->size;
}

static int sparse_slice_split(struct kernel_call *c, struct mu_err *err)
{
	struct sparse s;
	struct cut cut;

	MU_RETURN_IF_ERROR(sparse_in(c, 1, &s, err));
	MU_RETURN_IF_ERROR(read_cut(c, &s.shape, &cut, err));
	const int64_t *at = s.at->data;
	int rank = s.shape.rank;
	MU_AUTO_FREE int64_t *count = mu_xcalloc((size_t)cut.n, sizeof *count);
	MU_AUTO_FREE int64_t **to = mu_xcalloc((size_t)cut.n, sizeof *to);
	MU_AUTO_FREE struct mu_tensor **values = mu_xcalloc((size_t)cut.n, sizeof *values);
	for (int64_t i = 0; i < s.n; i++)
		count[sparse_slice_part_of(&cut, at[i * rank + cut.dim])]++;
	for (unsigned p = 0; p < cut.n; p++) {
		int64_t dims[MU_MAX_RANK];
		struct mu_shape shape;
		unsigned n = (unsigned)cut.n;
		memcpy(dims, s.shape.dim, sizeof dims);
		dims[cut.dim] = cut.size + (p < cut.n_longer);
		MU_RETURN_IF_ERROR(mu_shape_set(&shape, rank, dims, err));
		MU_RETURN_IF_ERROR(sparse_out(c, (unsigned[]){p, n + p, 2 * n + p}, count[p],
					      &shape, s.values->dtype, &to[p], &values[p], err));
		count[p] = 0;
	}
	for (int64_t i = 0; i < s.n; i++) {
		int64_t p = sparse_slice_part_of(&cut, at[i * rank + cut.dim]), k = count[p]++;
		elems_copy(MU_INT64, to[p], k * rank, at, i * rank, rank);
		to[p][k * rank + cut.dim] -= part_start(&cut, p);
		elems_copy(s.values->dtype, values[p]->data, k, s.values->data, i, 1);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"SparseSlice", .run = sparse_slice},
    {"SparseSliceGrad", .run = slice_grad},
    {"SparseSplit", .run = sparse_slice_split},
};
KERNEL_TABLE(sparse_slice, rows)
