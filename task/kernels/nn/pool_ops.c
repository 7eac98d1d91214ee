/* SPDX-License-Identifier: Apache-2.0 */
/* Max and average pooling in two and three dimensions, and their gradients. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/nn/checks.h"
#include "task/kernels/nn/pool.h"

static int pool_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			struct mu_err *err)
{
	struct window_attrs a;

	MU_RETURN_IF_ERROR(window_attrs_pool(n, &a, err));
	*(struct window_attrs *)(*state = mu_xmalloc(sizeof a)) = a;
	return 0;
}

static struct pool pool_of(const struct pool_sizes *s, enum mu_dtype type)
{
	return (struct pool){.type = type,
			     .size = mu_dtype_size(type),
			     .batch = s->batch,
			     .channels = s->channels,
			     .plane = {1, 1, 1, 1, 1, 0},
			     .row = s->row,
			     .column = s->column};
}

static struct pool pool3d_of(const struct volume *v)
{
	return (struct pool){.type = v->type,
			     .size = v->size,
			     .batch = v->batch,
			     .channels = v->channels,
			     .plane = v->axis[0],
			     .row = v->axis[1],
			     .column = v->axis[2],
			     .is_3d = true};
}

static int pool_need_type(const struct kernel_call *c, enum mu_dtype t, bool average,
			  struct mu_err *err)
{
	return t == MU_FLOAT || t == MU_DOUBLE || (!average && pool_has_maximum(t))
		   ? 0
		   : args_no_kernel(c, t, err);
}

static int pool(struct kernel_call *c, bool average, struct mu_err *err)
{
	const enum mu_dtype type = kernel_in(c, 0)->dtype;
	struct mu_shape shape;
	struct pool_sizes s;

	MU_RETURN_IF_ERROR(pool_need_type(c, type, average, err));
	MU_RETURN_IF_ERROR(check_pool(c, c->state, &s, &shape, err));
	struct pool p = pool_of(&s, type);
	p.average = average;
	return pool_run(c, &p, &shape, err);
}

static int pool3d(struct kernel_call *c, bool average, struct mu_err *err)
{
	struct mu_shape shape;
	struct volume v;

	MU_RETURN_IF_ERROR(check_pool3d(c, &v, &shape, err));
	struct pool p = pool3d_of(&v);
	p.average = average;
	return pool_run(c, &p, &shape, err);
}

KERNEL_RUN(max_pool, pool(c, false, err))
KERNEL_RUN(avg_pool, pool(c, true, err))
KERNEL_RUN(max_pool3d, pool3d(c, false, err))
KERNEL_RUN(avg_pool3d, pool3d(c, true, err))

/* ---- gradients ---- */

static int max_pool_grad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct pool_sizes s;

	MU_RETURN_IF_ERROR(pool_need_type(c, in->dtype, false, err));
	MU_RETURN_IF_ERROR(check_max_pool_grad(c, c->state, &s, err));
	struct pool p = pool_of(&s, in->dtype);
	p.in = in->data;
	return pool_run_backward(c, &p, &in->shape, 2, err);
}

static int max_pool_grad_grad(struct kernel_call *c, struct mu_err *err)
{
	const enum mu_dtype type = kernel_in(c, 0)->dtype;
	struct mu_shape want;
	struct pool_sizes s;

	MU_RETURN_IF_ERROR(pool_need_type(c, type, false, err));
	MU_RETURN_IF_ERROR(check_max_pool_grad_grad(c, c->state, &s, &want, err));
	struct pool p = pool_of(&s, type);
	return pool_run_second_backward(c, &p, &want, err);
}

static int max_pool3d_grad_grad(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape shape;
	struct volume v;

	MU_RETURN_IF_ERROR(check_max_pool3d_grad_grad(c, &v, &shape, err));
	struct pool p = pool3d_of(&v);
	return pool_run_second_backward(c, &p, &shape, err);
}

static int avg_pool_grad(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape in;
	struct pool_sizes s;

	MU_RETURN_IF_ERROR(pool_need_type(c, kernel_in(c, 1)->dtype, true, err));
	MU_RETURN_IF_ERROR(check_avg_pool_grad(c, c->state, &s, &in, err));
	struct pool p = pool_of(&s, kernel_in(c, 1)->dtype);
	p.average = true;
	return pool_run_backward(c, &p, &in, 1, err);
}

static int max_pool3d_grad(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape in;
	struct volume v;

	MU_RETURN_IF_ERROR(check_max_pool3d_grad(c, &v, &in, err));
	struct pool p = pool3d_of(&v);
	p.in = kernel_in(c, 0)->data;
	p.top = kernel_in(c, 1)->data;
	return pool_run_backward(c, &p, &in, 2, err);
}

static int avg_pool3d_grad(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape in;
	struct volume v;

	MU_RETURN_IF_ERROR(check_avg_pool3d_grad(c, &v, &in, err));
	struct pool p = pool3d_of(&v);
	p.average = true;
	return pool_run_backward(c, &p, &in, 1, err);
}

/* ---- maxima with argmax ---- */

static int max_pool_argmax(struct kernel_call *c, struct mu_err *err)
{
	const enum mu_dtype type = kernel_in(c, 0)->dtype;
	bool include_batch = args_attr_bool(c->node, "include_batch_in_index", false);
	enum mu_dtype argmax_type;
	struct mu_shape shape;
	struct pool_sizes s;

	MU_RETURN_IF_ERROR(pool_need_type(c, type, false, err));
	MU_RETURN_IF_ERROR(check_max_pool_argmax(c, c->state, &s, &shape, &argmax_type, err));
	struct pool p = pool_of(&s, type);
	return pool_run_argmax(c, &p, &shape, argmax_type, include_batch, err);
}

static int max_pool_grad_argmax(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *grad = kernel_in(c, 1),
			       *indices = kernel_in(c, 2);
	bool include_batch = args_attr_bool(c->node, "include_batch_in_index", false);
	struct mu_tensor *out;
	struct pool_sizes s;

	MU_RETURN_IF_ERROR(pool_need_type(c, in->dtype, false, err));
	MU_RETURN_IF_ERROR(check_max_pool_grad_argmax(c, c->state, &s, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &in->shape, &out, err));
	if (!in->shape.count)
		return 0;
	struct pool p = pool_of(&s, in->dtype);
	memset(out->data, 0, (size_t)in->shape.count * p.size);
	const int64_t image = in->shape.count / p.batch,
		      image_outputs = indices->shape.count / p.batch;
	for (int64_t i = 0; i < indices->shape.count; i++) {
		int64_t image_at = i / image_outputs * image, k = mu_tensor_int(indices, i);
		if (k < (include_batch ? image_at : 0) ||
		    k - (include_batch ? image_at : 0) >= image)
			return mu_invalid(
			    err, "argmax[%lld] = %lld lies outside its image of %lld elements",
			    (long long)i, (long long)k, (long long)image);
		k += include_batch ? 0 : image_at;
		char *to = (char *)out->data + (size_t)k * p.size;
		loops->binary[BIN_AddV2][p.type](
		    to, to, (const char *)grad->data + (size_t)i * p.size, 1, BOTH_RUN);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"MaxPool MaxPoolV2", KERNEL_EXPENSIVE, .run = max_pool, .prepare = pool_prepare},
    {"MaxPoolGrad MaxPoolGradV2", KERNEL_EXPENSIVE, .run = max_pool_grad, .prepare = pool_prepare},
    {"MaxPoolGradGrad MaxPoolGradGradV2", KERNEL_EXPENSIVE, .run = max_pool_grad_grad,
     .prepare = pool_prepare},
    {"MaxPoolWithArgmax", KERNEL_EXPENSIVE, .run = max_pool_argmax, .prepare = pool_prepare},
    {"MaxPoolGradWithArgmax", KERNEL_EXPENSIVE, .run = max_pool_grad_argmax,
     .prepare = pool_prepare},
    {"AvgPool", KERNEL_EXPENSIVE, .run = avg_pool, .prepare = pool_prepare},
    {"AvgPoolGrad", KERNEL_EXPENSIVE, .run = avg_pool_grad, .prepare = pool_prepare},
    {"AvgPool3D", KERNEL_EXPENSIVE, .run = avg_pool3d, .prepare = volume_prepare},
    {"AvgPool3DGrad", KERNEL_EXPENSIVE, .run = avg_pool3d_grad, .prepare = volume_prepare},
    {"MaxPool3D", KERNEL_EXPENSIVE, .run = max_pool3d, .prepare = volume_prepare},
    {"MaxPool3DGrad", KERNEL_EXPENSIVE, .run = max_pool3d_grad, .prepare = volume_prepare},
    {"MaxPool3DGradGrad", KERNEL_EXPENSIVE, .run = max_pool3d_grad_grad, .prepare = volume_prepare},
};
KERNEL_TABLE(nn_pool_ops, rows)
