/* SPDX-License-Identifier: Apache-2.0 */
/* Concat, Pack, Split and Unpack: concatenate tensors along an axis, and split them. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"

/* Copies `part`, [outer, n, inner], to [:, at:at + n, :] of `whole`, [outer, b->n, inner]. */
static int put_part(const struct mu_axis_split *b, const struct mu_tensor *whole, int64_t at,
		    const struct mu_tensor *part, int64_t n, struct mu_err *err)
{
	int64_t run = n * b->inner;

	return move_runs(whole, part,
			 &(struct runs){b->outer, run, {at * b->inner, b->n * b->inner}, {0, run}},
			 err);
}

/* The inverse of put_part. */
static int get_part(const struct mu_axis_split *b, const struct mu_tensor *part,
		    const struct mu_tensor *whole, int64_t at, int64_t n, struct mu_err *err)
{
	int64_t run = n * b->inner;

	return move_runs(part, whole,
			 &(struct runs){b->outer, run, {0, run}, {at * b->inner, b->n * b->inner}},
			 err);
}

/* Concatenates inputs [from, from + n) along `axis`; their other dimensions must be equal. */
static int concat_inputs(struct kernel_call *c, unsigned from, unsigned n, int64_t axis,
			 struct mu_err *err)
{
	const struct mu_shape *first = &kernel_in(c, from)->shape;
	struct mu_shape shape;
	struct mu_tensor *out;
	int64_t total = 0;
	int rc = 0;

	if (!n)
		return mu_invalid(err, "there is nothing to join");
	if (axis < -first->rank || axis >= first->rank)
		return mu_invalid(err,
				  "ConcatOp : Expected concatenating dimensions in the range [%d, "
				  "%d), but got %lld",
				  -first->rank, first->rank, (long long)axis);
	int at = (int)(axis < 0 ? axis + first->rank : axis);
	for (unsigned i = 0; i < n; i++) {
		const struct mu_shape *s = &kernel_in(c, from + i)->shape;
		int d = 0; /* the first wrong dimension */
		while (s->rank == first->rank && d < s->rank &&
		       (d == at || s->dim[d] == first->dim[d]))
			d++;
		if (s->rank != first->rank || d < s->rank)
			return mu_invalid(err,
					  "ConcatOp : Dimension %d in both shapes must be equal: "
					  "shape[0] = %s vs. shape[%u] = %s",
					  d, mu_shape_str(first), i, mu_shape_str(s));
		if (__builtin_add_overflow(total, s->dim[at], &total))
			return mu_invalid(err, "the result is too large");
	}
	MU_RETURN_IF_ERROR(mu_shape_splice(&shape, first, at, 1, 1, &total, err));
	MU_RETURN_IF_ERROR(
	    kernel_out_on_device(c, 0, kernel_in(c, from)->dtype, &shape, &out, err));
	struct mu_axis_split b = mu_shape_split(&shape, at);
	int64_t offset = 0;
	for (unsigned i = 0; i < n && !rc; i++) {
		const struct mu_tensor *t = kernel_in(c, from + i);
		rc = put_part(&b, out, offset, t, t->shape.dim[at], err);
		offset += t->shape.dim[at];
	}
	return rc;
}

static int concat(struct kernel_call *c, unsigned axis_in, unsigned from, struct mu_err *err)
{
	int64_t axis;

	if (!c->n_in)
		return mu_invalid(err, "there is nothing to join");

	MU_RETURN_IF_ERROR(args_int(c, axis_in, &axis, err));
	return concat_inputs(c, from, c->n_in - 1, axis, err);
}

KERNEL_RUN(concat_v1, concat(c, 0, 1, err))
KERNEL_RUN(concat_v2, concat(c, c->n_in ? c->n_in - 1 : 0, 0, err))

static int fail_other_dims(int64_t axis, unsigned input, const int64_t *dims, const int64_t *first,
			   int64_t n, struct mu_err *err)
{
	MU_AUTO_BUF a = {0};
	MU_AUTO_BUF b = {0};

	args_put_numbers(&a, dims, (int)n, " ");
	args_put_numbers(&b, first, (int)n, " ");
	return mu_invalid(err,
			  "All dimensions except %lld must match. Input %u has shape [%s] and "
			  "doesn't match input 0 with shape [%s].",
			  (long long)axis, input, a.data, b.data);
}

/* ConcatOffset: the start of each input in the concatenation. */
static int concat_offset(struct kernel_call *c, struct mu_err *err)
{
	int64_t axis, first[MU_MAX_RANK], dims[MU_MAX_RANK], at = 0;
	int n_first = 0, n;

	MU_RETURN_IF_ERROR(args_int(c, 0, &axis, err));
	for (unsigned i = 1; i < c->n_in; i++) {
		struct mu_tensor *out;
		MU_RETURN_IF_ERROR(args_ints(c, i, dims, MU_MAX_RANK, &n, err));
		if (axis < -n || axis >= n)
			return mu_invalid(err, "Concat dim is out of range: %lld vs. %d",
					  (long long)axis, n);
		if (i == 1)
			memcpy(first, dims, sizeof first[0] * (size_t)(n_first = n));
		if (n != n_first)
			return mu_invalid(err, "input %u should contain %d elements, but got %d",
					  i - 1, n_first, n);
		MU_RETURN_IF_ERROR(kernel_out_vec(c, i - 1, kernel_in(c, i)->dtype, n, &out, err));
		int64_t dim = axis < 0 ? axis + n : axis;
		for (int64_t d = 0; d < n; d++)
			if (d != dim && dims[d] != first[d])
				return fail_other_dims(dim, i - 1, dims, first, n, err);
		for (int64_t d = 0; d < n; d++)
			mu_tensor_set_int(out, d, d == dim ? at : 0);
		at += dims[dim];
	}
	return 0;
}

static int pack(struct kernel_call *c, struct mu_err *err)
{
	int64_t axis = args_attr_int(c->node, "axis", 0);
	struct mu_shape shape;
	struct mu_tensor *out;

	if (!c->n_in)
		return mu_invalid(err, "there is nothing to pack");
	const struct mu_shape *first = &kernel_in(c, 0)->shape;
	if (axis < -(first->rank + 1) || axis > first->rank)
		return mu_invalid(err, "axis = %lld not in [%d, %d)", (long long)axis,
				  -(first->rank + 1), first->rank + 1);
	int at = (int)(axis < 0 ? axis + first->rank + 1 : axis);
	for (unsigned i = 0; i < c->n_in; i++) {
		if (!mu_shape_eq(first, &kernel_in(c, i)->shape))
			return mu_invalid(err,
					  "Shapes of all inputs must match: values[0].shape = %s "
					  "!= values[%u].shape = %s",
					  mu_shape_str(first), i,
					  mu_shape_str(&kernel_in(c, i)->shape));
	}
	MU_RETURN_IF_ERROR(mu_shape_splice(&shape, first, at, 0, 1, &(int64_t){c->n_in}, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, kernel_in(c, 0)->dtype, &shape, &out, err));
	struct mu_axis_split b = mu_shape_split(&shape, at);
	for (unsigned i = 0; i < c->n_in; i++)
		MU_RETURN_IF_ERROR(put_part(&b, out, i, kernel_in(c, i), 1, err));
	return 0;
}

static int unpack(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_shape shape;
	int at;

	MU_RETURN_IF_ERROR(args_axis(args_attr_int(c->node, "axis", 0), in->shape.rank, &at, err));
	if (in->shape.dim[at] != (int64_t)c->n_out)
		return mu_invalid(err, "Input shape axis %d must equal %u, got shape %s", at,
				  c->n_out, mu_shape_str(&in->shape));
	MU_RETURN_IF_ERROR(mu_shape_splice(&shape, &in->shape, at, 1, 0, NULL, err));
	struct mu_axis_split b = mu_shape_split(&in->shape, at);
	for (unsigned i = 0; i < c->n_out; i++) {
		struct mu_tensor *out;
		MU_RETURN_IF_ERROR(kernel_out_on_device(c, i, in->dtype, &shape, &out, err));
		MU_RETURN_IF_ERROR(get_part(&b, out, in, i, 1, err));
	}
	return 0;
}

/* Splits input `from` along dimension `at`; output i has sizes[i] of it. */
static int split_by(struct kernel_call *c, unsigned from, int at, const int64_t *sizes,
		    struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, from);
	struct mu_axis_split b = mu_shape_split(&in->shape, at);
	int64_t offset = 0;

	for (unsigned i = 0; i < c->n_out; offset += sizes[i++]) {
		struct mu_shape shape;
		struct mu_tensor *out;
		MU_RETURN_IF_ERROR(mu_shape_splice(&shape, &in->shape, at, 1, 1, &sizes[i], err));
		MU_RETURN_IF_ERROR(kernel_out_on_device(c, i, in->dtype, &shape, &out, err));
		MU_RETURN_IF_ERROR(get_part(&b, out, in, offset, sizes[i], err));
	}
	return 0;
}

static int split(struct kernel_call *c, struct mu_err *err)
{
	int64_t axis;
	int at;

	MU_RETURN_IF_ERROR(args_int(c, 0, &axis, err));
	MU_RETURN_IF_ERROR(args_axis(axis, kernel_in(c, 1)->shape.rank, &at, err));
	int64_t size = kernel_in(c, 1)->shape.dim[at];
	if (!c->n_out || size % c->n_out)
		return mu_invalid(err,
				  "Number of ways to split should evenly divide the split "
				  "dimension, but got split_dim %d (size = %lld) and num_split %u",
				  at, (long long)size, c->n_out);
	MU_AUTO_FREE int64_t *sizes = mu_xcalloc(c->n_out, sizeof *sizes);
	for (unsigned i = 0; i < c->n_out; i++)
		sizes[i] = size / c->n_out;
	return split_by(c, 1, at, sizes, err);
}

static int split_v(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *axis = kernel_in(c, 2);
	int64_t known_size = 0;
	int at, n, inferred = -1;

	if (axis->shape.count != 1)
		return mu_invalid(err, "split_dim_tensor must have exactly one element.");
	MU_RETURN_IF_ERROR(
	    args_axis(mu_tensor_int(axis, 0), kernel_in(c, 0)->shape.rank, &at, err));
	MU_AUTO_FREE int64_t *sizes = mu_xcalloc((size_t)c->n_out + 1, sizeof *sizes);
	MU_RETURN_IF_ERROR(args_ints(c, 1, sizes, (int)c->n_out, &n, err));
	int64_t size = kernel_in(c, 0)->shape.dim[at];
	bool is_valid = n == (int)c->n_out;
	for (int i = 0; is_valid && i < n; i++) {
		if (sizes[i] == -1 && inferred < 0)
			inferred = i;
		else
			is_valid =
			    sizes[i] >= 0 && sizes[i] <= size && (known_size += sizes[i]) <= size;
	}
	if (!is_valid || (inferred < 0 && known_size != size))
		return mu_invalid(err,
				  "the sizes to split by do not add up to dimension %d of shape %s",
				  at, mu_shape_str(&kernel_in(c, 0)->shape));
	if (inferred >= 0)
		sizes[inferred] = size - known_size;
	return split_by(c, 0, at, sizes, err);
}

/* TensorFlow replaces this op in a graph pass, which only saves the copy. */
static int parallel_concat(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_attr *shape = mu_node_attr(c->node, "shape");

	if (!shape || shape->kind != MU_ATTR_SHAPE || shape->shape->rank < 1)
		return mu_invalid(err, "value should be at least rank 1.");
	for (int d = 0; d < shape->shape->rank; d++)
		if (shape->shape->dim[d] < 0)
			return mu_invalid(err, "Shape %s is not fully defined",
					  mu_pshape_str(shape->shape));
	for (unsigned i = 0; i < c->n_in; i++)
		if (kernel_in(c, i)->shape.rank < 1 || kernel_in(c, i)->shape.dim[0] != 1)
			return mu_invalid(err, "input %u must have 1 as its first dimension: %s", i,
					  mu_shape_str(&kernel_in(c, i)->shape));
	return concat_inputs(c, 0, c->n_in, 0, err);
}

static const struct kernel rows[] = {
    {"ParallelConcat", .run = parallel_concat},
    {"Concat", .run = concat_v1},
    {"ConcatV2", .run = concat_v2},
    {"ConcatOffset", .run = concat_offset},
    {"Pack", .run = pack},
    {"Unpack", .run = unpack},
    {"Split", .run = split},
    {"SplitV", .run = split_v},
};
KERNEL_TABLE(array_join, rows)
