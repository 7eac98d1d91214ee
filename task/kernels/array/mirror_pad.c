/* SPDX-License-Identifier: Apache-2.0 */
/* MirrorPad: extends a tensor by its reflection.
 *
 * Dimensions are processed one after the other, the last one first. Each pass copies whole runs of
 * the previous pass's result. */
#include <inttypes.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/move.h"

/* The input index for index `at` of a dimension with `before` elements of padding in front.  skip:
 * 1 if the edge is not repeated (REFLECT). */
static int64_t reflect(int64_t at, int64_t before, int64_t n, int64_t skip)
{
	int64_t i = at - before;

	if (i < 0)
		return -i - 1 + skip;
	return i < n ? i : 2 * n - 1 - i - skip;
}

static int check_paddings(const struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *p = kernel_in(c, 1);

	if (p->shape.rank != 2 || p->shape.dim[1] != 2 || p->shape.dim[0] != in->shape.rank)
		return mu_invalid(err,
				  "paddings must be a matrix with 2 columns and a row for each "
				  "dimension: %s vs. %s",
				  mu_shape_str(&p->shape), mu_shape_str(&in->shape));
	return 0;
}

static int mirror_pad_check(const struct kernel_call *c, int64_t skip, struct mu_shape *shape,
			    struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *p = kernel_in(c, 1);

	MU_RETURN_IF_ERROR(check_paddings(c, err));
	*shape = mu_shape_scalar();
	for (int d = 0; d < in->shape.rank; d++) {
		int64_t before = mu_tensor_int(p, 2 * d), after = mu_tensor_int(p, 2 * d + 1);
		int64_t max_padding = in->shape.dim[d] - skip;
		if (before < 0 || after < 0)
			return mu_invalid(err, "paddings must be non-negative: %lld %lld",
					  (long long)before, (long long)after);
		if (before > max_padding || after > max_padding)
			return mu_invalid(
			    err, "paddings must be %s the dimension size: %lld, %lld %s %lld",
			    skip ? "less than" : "no greater than", (long long)before,
			    (long long)after, skip ? "not less than" : "greater than",
			    (long long)in->shape.dim[d]);
		MU_RETURN_IF_ERROR(mu_shape_push(shape, in->shape.dim[d] + before + after, err));
	}
	return 0;
}

/* Pads dimension d of `current` to `size` elements. */
static int pad_dim(struct kernel_call *c, const struct mu_tensor *current, int d, int64_t size,
		   int64_t before, int64_t skip, struct mu_tensor *next, struct mu_err *err)
{
	const int64_t n = current->shape.dim[d];
	struct picks p = {1, 1, size, 1, n};
	struct mu_shape s, list = mu_shape_vec(size);
	MU_AUTO_TENSOR indices = {0};
	MU_AUTO_TENSOR on_device = {0};
	int64_t dims[MU_MAX_RANK];
	int rc;

	memcpy(dims, current->shape.dim, sizeof dims);
	dims[d] = size;
	for (int i = 0; i < current->shape.rank; i++)
		*(i < d ? &p.outer : i > d ? &p.inner : &(int64_t){1}) *= dims[i];
	MU_RETURN_IF_ERROR(mu_shape_set(&s, current->shape.rank, dims, err));
	MU_RETURN_IF_ERROR(move_scratch(c, current->dtype, &s, next, err));
	if (!s.count)
		return 0;
	if (!(rc = mu_tensor_new(&indices, MU_INT64, &list, err))) {
		for (int64_t i = 0; i < size; i++)
			MU_DATA(int64_t, &indices)[i] = reflect(i, before, n, skip);
		rc = move_numbers(c, next, &indices, &on_device, err);
	}
	if (rc || (rc = move_picks(next, current, &on_device, &p, err)))
		mu_tensor_unref(next);
	return rc;
}

static int mirror_pad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *p = kernel_in(c, 1);
	int64_t skip = strcmp(args_attr_string(c->node, "mode", "REFLECT"), "REFLECT") == 0;
	struct mu_tensor current = mu_tensor_ref(kernel_in(c, 0)), next;
	struct mu_shape shape;
	int rc = mirror_pad_check(c, skip, &shape, err);

	for (int d = current.shape.rank; !rc && d-- > 0;) {
		if (current.shape.dim[d] == shape.dim[d])
			continue;
		rc = pad_dim(c, &current, d, shape.dim[d], mu_tensor_int(p, 2 * d), skip, &next,
			     err);
		if (!rc) {
			mu_tensor_unref(&current);
			current = next;
		}
	}
	if (rc)
		mu_tensor_unref(&current);
	else
		kernel_out_take(c, 0, current);
	return rc;
}

/* ---- MirrorPadGrad: sums of the copies of each element ---- */

static int mirror_pad_check_grad(const struct kernel_call *c, int64_t skip, struct mu_shape *shape,
				 struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *p = kernel_in(c, 1);

	MU_RETURN_IF_ERROR(check_paddings(c, err));
	*shape = mu_shape_scalar();
	for (int d = 0; d < in->shape.rank; d++) {
		int64_t before = mu_tensor_int(p, 2 * d), after = mu_tensor_int(p, 2 * d + 1);
		int64_t n = in->shape.dim[d];
		if (before < 0 || after < 0)
			return mu_invalid(err, "Paddings must be non-negative: %lld, %lld",
					  (long long)before, (long long)after);
		/* TensorFlow 1 accepts an empty dimension without padding, unlike 2.15 */
		if ((before || after) && (before >= n || after >= n - before))
			return mu_invalid(err,
					  "Total paddings must be less than the input dimension "
					  "size: %" PRIu64 " was not less than %lld",
					  (uint64_t)before + (uint64_t)after, (long long)n);
		if (before > n - before - after - skip || after > n - before - after - skip)
			return mu_invalid(
			    err,
			    "paddings must be %s the output dimension size: %lld, %lld %s %lld",
			    skip ? "less than" : "no greater than", (long long)before,
			    (long long)after, skip ? "not less than" : "greater than",
			    (long long)(n - before - after));
		MU_RETURN_IF_ERROR(mu_shape_push(shape, n - before - after, err));
	}
	return 0;
}

/* Adds the padding of dimension d of `current` to the elements of `next` that it reflects. */
static int fold_dim(const struct mu_tensor *current, const struct mu_tensor *next, int d,
		    int64_t before, int64_t skip, struct mu_err *err)
{
	const struct mu_axis_split s = mu_shape_split(&current->shape, d);
	struct mirror_args a = {.outer = s.outer,
				.n = next->shape.dim[d],
				.inner = s.inner,
				.from = s.n,
				.before = before,
				.skip = skip};
	struct gpu *g = gpu_of_tensor(next);

	if (g) {
		a.out = gpu_address(next);
		a.in = gpu_address(current);
		return gpu_run_type(g, "mirror_fold", next->dtype, next->shape.count, &a, err);
	}
	binary_loop *add = loops->binary[BIN_AddV2][current->dtype];
	if (!add)
		return mu_fail(err, MU_UNIMPLEMENTED, "MirrorPadGrad has no kernel for type %s",
			       mu_dtype_name(current->dtype));
	size_t run = (size_t)a.inner * mu_dtype_size(current->dtype);
	elems_zero(current->dtype, next->data, 0, next->shape.count);
	for (int64_t o = 0; next->shape.count && o < a.outer; o++)
		for (int64_t i = 0; i < a.from; i++) {
			int64_t at = o * a.n + reflect(i, before, a.n, skip);
			char *to = (char *)next->data + (size_t)at * run;
			add(to, to, (char *)current->data + (size_t)(o * a.from + i) * run, a.inner,
			    BOTH_RUN);
		}
	return 0;
}

static int mirror_pad_grad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *p = kernel_in(c, 1);
	int64_t skip = strcmp(args_attr_string(c->node, "mode", "REFLECT"), "REFLECT") == 0;
	struct mu_tensor current = mu_tensor_ref(kernel_in(c, 0)), next;
	struct mu_shape shape, s;
	int rc = mirror_pad_check_grad(c, skip, &shape, err);

	for (int d = 0; !rc && d < shape.rank; d++) {
		int64_t dims[MU_MAX_RANK];
		if (shape.dim[d] == current.shape.dim[d])
			continue;
		memcpy(dims, current.shape.dim, sizeof dims);
		dims[d] = shape.dim[d];
		if ((rc = mu_shape_set(&s, shape.rank, dims, err)) ||
		    (rc = move_scratch(c, current.dtype, &s, &next, err)))
			break;
		rc = fold_dim(&current, &next, d, mu_tensor_int(p, 2 * d), skip, err);
		mu_tensor_unref(&current);
		current = next;
	}
	if (rc)
		mu_tensor_unref(&current);
	else
		kernel_out_take(c, 0, current);
	return rc;
}

static const struct kernel rows[] = {
    {"MirrorPad", .run = mirror_pad},
};
KERNEL_TABLE(array_mirror_pad, rows)

static const struct kernel grad_rows[] = {
    {"MirrorPadGrad", .run = mirror_pad_grad},
};
KERNEL_TABLE(array_mirror_pad_grad, grad_rows)
