/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that select, repeat or reorder elements. Each kernel computes a view, and the engine copies
 * it on the node's device (move.h). */
#include "task/kernels/array/strided.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"

/* Outputs the elements of input 0 that the view selects, in the order of the view. */
static int output_view(struct kernel_call *c, const struct mu_shape *shape, const struct view *v,
		       struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, shape, &out, err));
	return move_read(out, in, v, err);
}

static int slice(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	int64_t begin[MU_MAX_RANK], size[MU_MAX_RANK];
	struct mu_shape shape;
	struct view v;
	int n, m, rc = 0;

	MU_RETURN_IF_ERROR(args_ints(c, 1, begin, MU_MAX_RANK, &n, err));
	MU_RETURN_IF_ERROR(args_ints(c, 2, size, MU_MAX_RANK, &m, err));
	if (n != in->rank || m != in->rank)
		return mu_invalid(err,
				  "Expected begin and size arguments to be 1-D tensors of size %d",
				  in->rank);
	view_of(&v, in);
	for (int i = 0; i < n; i++) {
		if (begin[i] < 0 || begin[i] > in->dim[i])
			return mu_invalid(err, "Expected begin[%d] in [0, %lld], but got %lld", i,
					  (long long)in->dim[i], (long long)begin[i]);
		if (size[i] == -1)
			size[i] = in->dim[i] - begin[i];
		if (size[i] < 0 || size[i] > in->dim[i] - begin[i])
			return mu_invalid(err, "Expected size[%d] in [0, %lld], but got %lld", i,
					  (long long)(in->dim[i] - begin[i]), (long long)size[i]);
		v.offset += begin[i] * v.stride[i];
		v.dim[i] = size[i];
	}
	return (rc = mu_shape_set(&shape, n, size, err)) ? rc : output_view(c, &shape, &v, err);
}

static int strided_slice(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct strided s;

	MU_RETURN_IF_ERROR(strided_read(&s, c, 1, &in->shape, err));
	if (s.shape.count == in->shape.count && s.view.offset == 0) {
		bool is_identity = true;
		for (int i = 0; i < s.view.rank; i++)
			is_identity &= s.view.stride[i] > 0;
		if (is_identity) {
			kernel_out_take(c, 0, mu_tensor_reshaped(in, &s.shape));
			return 0;
		}
	}
	return output_view(c, &s.shape, &s.view, err);
}

static int strided_slice_grad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *dy = kernel_in(c, 4);
	struct mu_shape shape;
	struct mu_tensor *out;
	struct strided s;

	MU_RETURN_IF_ERROR(args_shape(c, 0, &shape, err));
	MU_RETURN_IF_ERROR(strided_read(&s, c, 1, &shape, err));
	if (!mu_shape_eq(&s.shape, &dy->shape))
		return mu_invalid(err, "shape of dy was %s instead of %s", mu_shape_str(&dy->shape),
				  mu_shape_str(&s.shape));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, dy->dtype, &shape, &out, err));
	MU_RETURN_IF_ERROR(move_fill(out, NULL, err));
	return move_write(out, &s.view, dy, err);
}

/* Makes a view that broadcasts `value` to the slice's shape. Leading dimensions of size 1 that the
 * slice does not have are dropped. */
static int strided_broadcast(struct view *v, const struct mu_shape *value,
			     const struct mu_shape *slice, struct mu_err *err)
{
	int n_dropped = 0;
	struct mu_shape inner_shape, result;
	struct mu_err ignored;

	while (value->rank - n_dropped > slice->rank && value->dim[n_dropped] == 1)
		n_dropped++;
	MU_RETURN_IF_ERROR(
	    mu_shape_set(&inner_shape, value->rank - n_dropped, value->dim + n_dropped, err));
	if (inner_shape.rank > slice->rank ||
	    broadcast_shape(&inner_shape, slice, &result, &ignored) || !mu_shape_eq(&result, slice))
		return mu_invalid(err, "Cannot broadcast input shape %s into final shape %s",
				  mu_shape_str(value), mu_shape_str(slice));
	broadcast_view(v, &inner_shape, slice);
	return 0;
}

static int tensor_strided_slice_update(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *value = kernel_in(c, 4);
	MU_AUTO_TENSOR broadcast = {0};
	struct mu_tensor *out;
	struct strided s;
	struct view v;

	MU_RETURN_IF_ERROR(strided_read(&s, c, 1, &in->shape, err));
	if (s.shape.count) {
		MU_RETURN_IF_ERROR(strided_broadcast(&v, &value->shape, &s.shape, err));
		MU_RETURN_IF_ERROR(move_scratch(c, value->dtype, &s.shape, &broadcast, err));
		MU_RETURN_IF_ERROR(move_read(&broadcast, value, &v, err));
	}
	MU_RETURN_IF_ERROR(move_out_reuse(c, 0, 0, in->dtype, &in->shape, &out, err));
	MU_RETURN_IF_ERROR(move_all(out, in, err));
	return s.shape.count ? move_write(out, &s.view, &broadcast, err) : 0;
}

static int tile(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	int64_t multiples[MU_MAX_RANK];
	struct mu_shape shape = mu_shape_scalar();
	struct view contiguous, v = {0};
	int n;

	MU_RETURN_IF_ERROR(args_ints(c, 1, multiples, MU_MAX_RANK, &n, err));
	if (n != in->rank)
		return mu_invalid(
		    err,
		    "Expected multiples argument to be a vector of length %d but got length %d",
		    in->rank, n);
	view_of(&contiguous, in);
	for (int i = 0; i < n; i++) {
		int64_t d;
		if (multiples[i] < 0 || __builtin_mul_overflow(in->dim[i], multiples[i], &d))
			return mu_invalid(err, "Expected multiples[%d] >= 0, but got %lld", i,
					  (long long)multiples[i]);
		MU_RETURN_IF_ERROR(mu_shape_push(&shape, d, err));
		v.dim[v.rank] = multiples[i];
		v.stride[v.rank++] = 0;
		v.dim[v.rank] = in->dim[i];
		v.stride[v.rank++] = contiguous.stride[i];
	}
	return output_view(c, &shape, &v, err);
}

static int transpose_into(struct kernel_call *c, struct mu_tensor **out, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	int64_t perm[MU_MAX_RANK], dims[MU_MAX_RANK];
	bool is_used[MU_MAX_RANK] = {false};
	struct mu_shape shape;
	struct view contiguous, v = {0};
	int n;

	MU_RETURN_IF_ERROR(args_ints(c, 1, perm, MU_MAX_RANK, &n, err));
	if (n != in->rank)
		return mu_invalid(
		    err,
		    "transpose expects a vector of size %d. But input(1) is a vector of size %d",
		    in->rank, n);
	view_of(&contiguous, in);
	v.rank = n;
	for (int i = 0; i < n; i++) {
		int64_t p = perm[i] < 0 ? perm[i] + n : perm[i];
		if (p < 0 || p >= n || is_used[p])
			return mu_invalid(err, "%lld is out of range or twice in the permutation",
					  (long long)perm[i]);
		is_used[p] = true;
		dims[i] = v.dim[i] = in->dim[p];
		v.stride[i] = contiguous.stride[p];
	}
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, n, dims, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, kernel_in(c, 0)->dtype, &shape, out, err));
	return move_read(*out, kernel_in(c, 0), &v, err);
}

static int transpose(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor *out;

	return transpose_into(c, &out, err);
}

static int conjugate_transpose(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(transpose_into(c, &out, err));
	if (!mu_dtype_is_complex(out->dtype))
		return 0;
	for (int64_t i = 0; i < out->shape.count; i++)
		if (out->dtype == MU_COMPLEX64)
			MU_DATA(float, out)[2 * i + 1] *= -1;
		else if (out->dtype == MU_COMPLEX128)
			MU_DATA(double, out)[2 * i + 1] *= -1;
	return 0;
}

static int reverse(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	int64_t axes[MU_MAX_RANK];
	struct view v;
	int n;

	MU_RETURN_IF_ERROR(args_ints(c, 1, axes, MU_MAX_RANK, &n, err));
	view_of(&v, in);
	/* a scalar, or a tensor without elements, is returned unchanged */
	for (int i = 0, a; i < n && in->rank && in->count; i++) {
		if (args_axis(axes[i], in->rank, &a, NULL))
			return mu_invalid(err, "'axis'[%d] = %lld is out of valid range [0, %d]", i,
					  (long long)axes[i], in->rank - 1);
		if (v.stride[a] < 0)
			return mu_invalid(err, "axis %d specified more than once.", a);
		v.offset += (in->dim[a] - 1) * v.stride[a];
		v.stride[a] = -v.stride[a];
	}
	return output_view(c, in, &v, err);
}

/* Reverse: input 1 has a bool for each dimension. */
static int reverse_v1(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	const struct mu_tensor *dims = kernel_in(c, 1);
	struct view v;

	MU_RETURN_IF_ERROR(args_rank(c, 1, 1, err));
	if (in->rank && !in->dim[0])
		return mu_invalid(err, "Invalid input first dimension. Found 0.");
	if (in->rank && dims->shape.count != in->rank)
		return mu_invalid(err,
				  "'dims' must have the same number of values as 'input' has "
				  "dimensions. 'input' has %d'dims' has %lld values",
				  in->rank, (long long)dims->shape.count);
	view_of(&v, in);
	for (int d = 0; d < in->rank; d++)
		if (MU_DATA(bool, dims)[d] && in->dim[d]) {
			v.offset += (in->dim[d] - 1) * v.stride[d];
			v.stride[d] = -v.stride[d];
		}
	return output_view(c, in, &v, err);
}

static int pad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *p = kernel_in(c, 1);
	struct mu_shape shape = mu_shape_scalar();
	struct mu_tensor *out;
	struct view v;

	if (p->shape.rank != 2 || p->shape.dim[0] != in->shape.rank || p->shape.dim[1] != 2)
		return mu_invalid(err,
				  "paddings must be a matrix with 2 columns and a row for each "
				  "dimension: %s vs. %s",
				  mu_shape_str(&p->shape), mu_shape_str(&in->shape));
	for (int i = 0; i < in->shape.rank; i++) {
		int64_t before = mu_tensor_int(p, 2 * i), after = mu_tensor_int(p, 2 * i + 1), d;
		if (before < 0 || after < 0 ||
		    __builtin_add_overflow(in->shape.dim[i], before, &d) ||
		    __builtin_add_overflow(d, after, &d))
			return mu_invalid(err, "Paddings must be non-negative: %lld %lld",
					  (long long)before, (long long)after);
		MU_RETURN_IF_ERROR(mu_shape_push(&shape, d, err));
	}
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, &shape, &out, err));
	MU_RETURN_IF_ERROR(move_fill(out, c->n_in > 2 ? kernel_in(c, 2) : NULL, err));
	view_of(&v, &shape);
	for (int i = 0; i < in->shape.rank; i++) {
		v.offset += mu_tensor_int(p, 2 * i) * v.stride[i];
		v.dim[i] = in->shape.dim[i];
	}
	return in->shape.count ? move_write(out, &v, in, err) : 0;
}

static const struct kernel rows[] = {
    {"Slice", .run = slice},
    {"StridedSlice", .run = strided_slice},
    {"StridedSliceGrad", .run = strided_slice_grad},
    {"TensorStridedSliceUpdate", .run = tensor_strided_slice_update},
    {"Tile", .run = tile},
    {"Transpose", .run = transpose},
    {"ConjugateTranspose", .run = conjugate_transpose},
    {"ReverseV2", .run = reverse},
    {"Reverse", .run = reverse_v1},
    {"Pad PadV2", .run = pad},
};
KERNEL_TABLE(array_slice, rows)
