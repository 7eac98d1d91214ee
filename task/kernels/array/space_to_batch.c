/* SPDX-License-Identifier: Apache-2.0 */
/* SpaceToBatch, SpaceToDepth and their inverses. Each is one view of the padded input, or of the
 * output before cropping. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"

enum { MAX_BLOCKED_DIMS = 4 }; /* from the first to the last changed dimension */

struct blocks {
	int n;
	int64_t size[MU_MAX_RANK];
	int64_t before[MU_MAX_RANK], after[MU_MAX_RANK]; /* paddings or crops */
	int64_t product;                                 /* of the sizes */
};

static int read_edges(const struct kernel_call *c, unsigned i, struct blocks *b, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, i);

	if (t->shape.rank != 2 || t->shape.dim[0] != b->n || t->shape.dim[1] != 2)
		return mu_invalid(err, "paddings or crops must have shape [%d, 2] instead of %s",
				  b->n, mu_shape_str(&t->shape));
	for (int d = 0; d < b->n; d++) {
		b->before[d] = mu_tensor_int(t, 2 * d);
		b->after[d] = mu_tensor_int(t, 2 * d + 1);
		if (b->before[d] < 0 || b->after[d] < 0)
			return mu_invalid(err, "paddings and crops must be non-negative");
	}
	return 0;
}

static int check_blocked(const struct blocks *b, struct mu_err *err)
{
	int first = -1, last = -1;

	for (int d = 0; d < b->n; d++)
		if (b->size[d] != 1 || b->before[d] || b->after[d]) {
			first = first < 0 ? d : first;
			last = d;
		}
	if (last - first >= MAX_BLOCKED_DIMS)
		return mu_invalid(err,
				  "Maximum number of non-combined block dimensions should be %d",
				  MAX_BLOCKED_DIMS);
	return 0;
}

/* Reads the block sizes from an input (the ND ops), or from an attribute for the two dimensions
 * after the batch. */
static int read_blocks(const struct kernel_call *c, struct blocks *b, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	bool is_nd = c->n_in > 2;

	*b = (struct blocks){.n = 2, .product = 1};
	if (is_nd) {
		MU_RETURN_IF_ERROR(args_ints(c, 1, b->size, MU_MAX_RANK, &b->n, err));
	} else {
		b->size[0] = b->size[1] = args_attr_int(c->node, "block_size", 0);
	}
	if (in->rank < 1 + b->n)
		return mu_invalid(err, "input rank should be >= %d instead of %d", 1 + b->n,
				  in->rank);
	if (in->rank + b->n > VIEW_MAX_RANK)
		return mu_fail(err, MU_UNIMPLEMENTED, "too many dimensions");
	for (int d = 0; d < b->n; d++)
		if (b->size[d] < 1 || __builtin_mul_overflow(b->product, b->size[d], &b->product))
			return mu_invalid(
			    err, "All values in block_shape must be positive, got value, %lld",
			    (long long)b->size[d]);
	MU_RETURN_IF_ERROR(read_edges(c, is_nd ? 2 : 1, b, err));
	return check_blocked(b, err);
}

static void space_push(struct view *v, int64_t dim, int64_t stride)
{
	v->dim[v->rank] = dim;
	v->stride[v->rank++] = stride;
}

static int space_to_batch(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_shape padded_shape = mu_shape_scalar(), shape = mu_shape_scalar();
	MU_AUTO_TENSOR padded = {0};
	struct mu_tensor *out;
	struct view contiguous, interior, v = {0};
	struct blocks b;
	int64_t batch;

	MU_RETURN_IF_ERROR(read_blocks(c, &b, err));
	if (__builtin_mul_overflow(in->shape.dim[0], b.product, &batch))
		return mu_invalid(err, "the batch is too large");
	MU_RETURN_IF_ERROR(mu_shape_push(&padded_shape, in->shape.dim[0], err));
	MU_RETURN_IF_ERROR(mu_shape_push(&shape, batch, err));
	for (int d = 1; d < in->shape.rank; d++) {
		int64_t n = in->shape.dim[d], size = d <= b.n ? b.size[d - 1] : 1;
		if (d <= b.n && (__builtin_add_overflow(n, b.before[d - 1], &n) ||
				 __builtin_add_overflow(n, b.after[d - 1], &n)))
			return mu_invalid(err, "the paddings are too large");
		if (n % size)
			return mu_invalid(
			    err, "padded_shape[%d]=%lld is not divisible by block_shape[%d]=%lld",
			    d - 1, (long long)n, d - 1, (long long)size);
		MU_RETURN_IF_ERROR(mu_shape_push(&padded_shape, n, err));
		MU_RETURN_IF_ERROR(mu_shape_push(&shape, n / size, err));
	}
	MU_RETURN_IF_ERROR(move_scratch(c, in->dtype, &padded_shape, &padded, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, &shape, &out, err));
	if (!shape.count)
		return 0;
	MU_RETURN_IF_ERROR(move_fill(&padded, NULL, err));
	view_of(&contiguous, &padded_shape);
	interior = contiguous;
	for (int d = 0; d < in->shape.rank; d++)
		interior.dim[d] = in->shape.dim[d];
	for (int d = 0; d < b.n; d++)
		interior.offset += b.before[d] * contiguous.stride[d + 1];
	if (in->shape.count)
		MU_RETURN_IF_ERROR(move_write(&padded, &interior, in, err));
	for (int d = 0; d < b.n; d++) /* the position in the block is outermost */
		space_push(&v, b.size[d], contiguous.stride[d + 1]);
	space_push(&v, padded_shape.dim[0], contiguous.stride[0]);
	for (int d = 1; d < padded_shape.rank; d++) {
		int64_t size = d <= b.n ? b.size[d - 1] : 1;
		space_push(&v, padded_shape.dim[d] / size, contiguous.stride[d] * size);
	}
	return move_read(out, &padded, &v, err);
}

static int batch_to_space(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_shape uncropped_shape = mu_shape_scalar(), shape = mu_shape_scalar();
	MU_AUTO_TENSOR uncropped = {0};
	struct mu_tensor *out;
	struct view contiguous, interior, v = {0};
	struct blocks b;

	MU_RETURN_IF_ERROR(read_blocks(c, &b, err));
	if (in->shape.dim[0] % b.product)
		return mu_invalid(err,
				  "Input batch dimension (%lld) is not divisible by product of "
				  "block sizes (%lld)",
				  (long long)in->shape.dim[0], (long long)b.product);
	int64_t batch = in->shape.dim[0] / b.product;
	view_of(&contiguous, &in->shape);
	space_push(&v, batch, contiguous.stride[0]);
	MU_RETURN_IF_ERROR(mu_shape_push(&uncropped_shape, batch, err));
	MU_RETURN_IF_ERROR(mu_shape_push(&shape, batch, err));
	int64_t block_stride = batch * contiguous.stride[0];
	int64_t strides[MU_MAX_RANK];
	for (int d = b.n; d-- > 0; block_stride *= b.size[d])
		strides[d] = block_stride;
	for (int d = 1; d < in->shape.rank; d++) {
		int64_t n = in->shape.dim[d], cropped;
		space_push(&v, n, contiguous.stride[d]);
		if (d <= b.n) {
			space_push(&v, b.size[d - 1], strides[d - 1]);
			if (__builtin_mul_overflow(n, b.size[d - 1], &n))
				return mu_invalid(err, "the blocks are too large");
		}
		cropped = n;
		if (d <= b.n && (b.before[d - 1] > n || b.after[d - 1] > n - b.before[d - 1]))
			return mu_invalid(
			    err,
			    "cropped_shape[%d] must be non-negative: %lld cropped by %lld and %lld",
			    d - 1, (long long)n, (long long)b.before[d - 1],
			    (long long)b.after[d - 1]);
		if (d <= b.n)
			cropped -= b.before[d - 1] + b.after[d - 1];
		MU_RETURN_IF_ERROR(mu_shape_push(&uncropped_shape, n, err));
		MU_RETURN_IF_ERROR(mu_shape_push(&shape, cropped, err));
	}
	MU_RETURN_IF_ERROR(move_scratch(c, in->dtype, &uncropped_shape, &uncropped, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, &shape, &out, err));
	if (!shape.count)
		return 0;
	MU_RETURN_IF_ERROR(move_read(&uncropped, in, &v, err));
	view_of(&interior, &uncropped_shape);
	for (int d = 0; d < uncropped_shape.rank; d++)
		interior.dim[d] = shape.dim[d];
	for (int d = 0; d < b.n; d++)
		interior.offset += b.before[d] * interior.stride[d + 1];
	return move_read(out, &uncropped, &interior, err);
}

/* ---- depth ---- */

static int depth_args(const struct kernel_call *c, int64_t *size, struct mu_err *err)
{
	const char *format = args_attr_string(c->node, "data_format", "NHWC");

	*size = args_attr_int(c->node, "block_size", 0);
	if (*size < 2 || *size > 1 << 20)
		return mu_invalid(err, "Block size should be > 1, but was: %lld", (long long)*size);
	if (strcmp(format, "NHWC") != 0)
		return mu_invalid(err, "Only NHWC data_format supported on CPU. Got %.16s", format);
	return 0;
}

static int read_view(struct kernel_call *c, const int64_t *dims, const struct view *v,
		     struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 4, dims, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, &shape, &out, err));
	if (!shape.count)
		return 0;
	return move_read(out, in, v, err);
}

static int space_to_depth(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	struct view contiguous, v = {0};
	int64_t b;

	MU_RETURN_IF_ERROR(depth_args(c, &b, err));
	if (in->dim[1] % b || in->dim[2] % b)
		return mu_invalid(
		    err, "Image width %lld and height %lld should be divisible by block_size: %lld",
		    (long long)in->dim[2], (long long)in->dim[1], (long long)b);
	view_of(&contiguous, in);
	space_push(&v, in->dim[0], contiguous.stride[0]);
	space_push(&v, in->dim[1] / b, contiguous.stride[1] * b);
	space_push(&v, in->dim[2] / b, contiguous.stride[2] * b);
	space_push(&v, b, contiguous.stride[1]);
	space_push(&v, b, contiguous.stride[2]);
	space_push(&v, in->dim[3], 1);
	int64_t dims[4] = {in->dim[0], in->dim[1] / b, in->dim[2] / b, 0};
	if (__builtin_mul_overflow(in->dim[3], b * b, &dims[3]))
		return mu_invalid(err, "the depth is too large");
	return read_view(c, dims, &v, err);
}

static int depth_to_space(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	struct view contiguous, v = {0};
	int64_t b;

	MU_RETURN_IF_ERROR(depth_args(c, &b, err));
	if (in->dim[3] % (b * b))
		return mu_invalid(err, "Input depth dimension %lld should be divisible by: %lld",
				  (long long)in->dim[3], (long long)(b * b));
	int64_t depth = in->dim[3] / (b * b);
	view_of(&contiguous, in);
	space_push(&v, in->dim[0], contiguous.stride[0]);
	space_push(&v, in->dim[1], contiguous.stride[1]);
	space_push(&v, b, b * depth);
	space_push(&v, in->dim[2], contiguous.stride[2]);
	space_push(&v, b, depth);
	space_push(&v, depth, 1);
	int64_t dims[4] = {in->dim[0], 0, 0, depth};
	if (__builtin_mul_overflow(in->dim[1], b, &dims[1]) ||
	    __builtin_mul_overflow(in->dim[2], b, &dims[2]))
		return mu_invalid(err, "the image is too large");
	return read_view(c, dims, &v, err);
}

static const struct kernel rows[] = {
    {"SpaceToBatch SpaceToBatchND", KERNEL_EXPENSIVE, .run = space_to_batch},
    {"BatchToSpace BatchToSpaceND", KERNEL_EXPENSIVE, .run = batch_to_space},
    {"SpaceToDepth", KERNEL_EXPENSIVE, .run = space_to_depth},
    {"DepthToSpace", KERNEL_EXPENSIVE, .run = depth_to_space},
};
KERNEL_TABLE(array_space_to_batch, rows)
