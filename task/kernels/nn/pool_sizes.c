/* SPDX-License-Identifier: Apache-2.0 */
/* Window geometry and shape checks of pooling, shared by all devices. */
#include <limits.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/nn/checks.h"
#include "task/kernels/nn/window.h"

/* The node's attributes; ksize and strides of the V2 ops are inputs from sizes_at on. */
static int pool_attrs(const struct kernel_call *c, const struct window_attrs *attrs,
		      const struct mu_shape *s, unsigned sizes_at, struct window_attrs *a,
		      struct mu_err *err)
{
	*a = *attrs;
	if (s->rank != 4)
		return mu_invalid(err, "tensor_in must be 4-dimensional: %s", mu_shape_str(s));
	if (c->n_in > sizes_at) { /* the V2 ops */
		int64_t ksize[4], strides[4];
		int nk, ns;
		MU_RETURN_IF_ERROR(args_ints(c, sizes_at, ksize, 4, &nk, err));
		MU_RETURN_IF_ERROR(args_ints(c, sizes_at + 1, strides, 4, &ns, err));
		if (nk != 4 || ns != 4)
			return mu_invalid(
			    err,
			    "Sliding window ksize and stride fields must specify 4 dimensions");
		MU_RETURN_IF_ERROR(window_pool_set(a, ksize, strides, err));
	}
	if (s->dim[0] > INT_MAX || s->dim[3] > INT_MAX)
		return mu_invalid(err, "batch or depth is too large: %s", mu_shape_str(s));
	return 0;
}

static int fail_over_channels(const struct kernel_call *c, struct mu_err *err)
{
	if (strncmp(c->node->op, "MaxPoolGrad", 11) != 0)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "Non-spatial pooling is not yet supported. Volunteers? :)");
	return mu_fail(err, MU_UNIMPLEMENTED,
		       "MaxPoolingGrad%s is not yet supported on the depth dimension.",
		       strstr(c->node->op, "GradGrad") ? "Grad" : "");
}

/* A pool over rows and columns of a tensor of this shape. */
static int pool_sizes_of(const struct kernel_call *c, const struct window_attrs *attrs,
			 const struct mu_shape *s, unsigned sizes_at, struct pool_sizes *p,
			 struct mu_err *err)
{
	struct window_attrs a;

	MU_RETURN_IF_ERROR(pool_attrs(c, attrs, s, sizes_at, &a, err));
	if (a.depth_size != 1 || a.depth_stride != 1)
		return fail_over_channels(c, err);
	*p = (struct pool_sizes){.batch = s->dim[0], .channels = s->dim[3]};
	MU_RETURN_IF_ERROR(window_axis_set(&p->row, &a, WINDOW_ROWS, s->dim[1], a.size[0], err));
	return window_axis_set(&p->column, &a, WINDOW_COLUMNS, s->dim[2], a.size[1], err);
}

static int pool_output_shape(const struct pool_sizes *p, struct mu_shape *s, struct mu_err *err)
{
	int64_t dims[4] = {p->batch, p->row.out, p->column.out, p->channels};

	return mu_shape_set(s, 4, dims, err);
}

/* A pool over groups of channels.  Each pixel becomes an image of one column, whose rows are the
 * pixel's channels. */
static int depthwise_sizes(const struct window_attrs *a, const struct mu_shape *in,
			   struct pool_sizes *p, struct mu_shape *shape, struct mu_err *err)
{
	const int64_t depth = in->dim[3], n = a->depth_size;

	if (a->size[0] > 1 || a->size[1] > 1)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "MaxPooling supports exactly one of pooling across depth or pooling "
			       "across width/height.");
	if (depth % n)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "Depthwise max pooling requires the depth window to evenly divide "
			       "the input depth");
	if (a->depth_stride != n)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "Depthwise max pooling requires the depth window to equal the depth "
			       "stride");
	*p = (struct pool_sizes){.batch = in->dim[0] * in->dim[1] * in->dim[2],
				 .channels = 1,
				 .row = {depth, n, n, 1, depth / n, 0},
				 .column = {1, 1, 1, 1, 1, 0}};
	return mu_shape_set(shape, 4, (int64_t[]){in->dim[0], in->dim[1], in->dim[2], depth / n},
			    err);
}

int check_pool(const struct kernel_call *c, const struct window_attrs *a, struct pool_sizes *p,
	       struct mu_shape *shape, struct mu_err *err)
{
	const bool is_max =
	    strcmp(c->node->op, "MaxPool") == 0 || strcmp(c->node->op, "MaxPoolV2") == 0;
	struct window_attrs attrs;

	MU_RETURN_IF_ERROR(pool_attrs(c, a, &kernel_in(c, 0)->shape, 1, &attrs, err));
	if (is_max && attrs.depth_size != 1)
		return depthwise_sizes(&attrs, &kernel_in(c, 0)->shape, p, shape, err);
	const struct mu_tensor *in = kernel_in(c, 0);

	MU_RETURN_IF_ERROR(pool_sizes_of(c, a, &in->shape, 1, p, err));
	return pool_output_shape(p, shape, err);
}

/* Checks that input i has this shape. */
static int check_input_shape(const struct kernel_call *c, const struct mu_shape *want, unsigned i,
			     const char *name, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, i);

	if (mu_shape_eq(want, &t->shape))
		return 0;
	return mu_invalid(err, "Expected %s shape to be %s, but got %s", name, mu_shape_str(want),
			  mu_shape_str(&t->shape));
}

/* Checks that input i has the shape of the pool's output. */
static int check_pooled_shape(const struct kernel_call *c, const struct pool_sizes *p, unsigned i,
			      const char *name, struct mu_err *err)
{
	struct mu_shape want;

	MU_RETURN_IF_ERROR(pool_output_shape(p, &want, err));
	return check_input_shape(c, &want, i, name, err);
}

int check_max_pool_grad(const struct kernel_call *c, const struct window_attrs *a,
			struct pool_sizes *p, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);

	MU_RETURN_IF_ERROR(pool_sizes_of(c, a, &in->shape, 3, p, err));
	MU_RETURN_IF_ERROR(check_pooled_shape(c, p, 1, "orig_output", err));
	return check_pooled_shape(c, p, 2, "grad", err);
}

int check_avg_pool_grad(const struct kernel_call *c, const struct window_attrs *a,
			struct pool_sizes *p, struct mu_shape *in, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(args_shape(c, 0, in, err));
	MU_RETURN_IF_ERROR(pool_sizes_of(c, a, in, 2, p, err));
	return check_pooled_shape(c, p, 1, "grad", err);
}

int check_max_pool_grad_grad(const struct kernel_call *c, const struct window_attrs *a,
			     struct pool_sizes *p, struct mu_shape *want, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);

	MU_RETURN_IF_ERROR(pool_sizes_of(c, a, &in->shape, 3, p, err));
	MU_RETURN_IF_ERROR(pool_output_shape(p, want, err));
	MU_RETURN_IF_ERROR(check_pooled_shape(c, p, 1, "orig_output", err));
	return check_input_shape(c, &in->shape, 2, "grad", err);
}

int check_max_pool_argmax(const struct kernel_call *c, const struct window_attrs *a,
			  struct pool_sizes *p, struct mu_shape *shape, enum mu_dtype *type,
			  struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;

	if (!in->count)
		return mu_invalid(err, "tensor_in must not be empty");
	*type = args_attr_type(c->node, "Targmax", MU_INT64);
	if (*type != MU_INT64 && (*type != MU_INT32 || in->count > INT_MAX))
		return mu_invalid(err, "argmax of type %s cannot count the elements of %s",
				  mu_dtype_name(*type), mu_shape_str(in));
	return check_pool(c, a, p, shape, err);
}

int check_max_pool_grad_argmax(const struct kernel_call *c, const struct window_attrs *a,
			       struct pool_sizes *p, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(pool_sizes_of(c, a, &kernel_in(c, 0)->shape, 3, p, err));
	MU_RETURN_IF_ERROR(check_pooled_shape(c, p, 1, "grad", err));
	return check_pooled_shape(c, p, 2, "argmax", err);
}

/* ---- three dimensions ---- */

int check_pool3d(const struct kernel_call *c, struct volume *v, struct mu_shape *shape,
		 struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);

	MU_RETURN_IF_ERROR(volume_init(v, c, in->dtype, &in->shape, NULL, err));
	return volume_out_shape(v, v->channels, shape, err);
}

/* Checks that input i has the shape of the pool's output. */
static int check_volume_shape(const struct kernel_call *c, const struct volume *v, unsigned i,
			      struct mu_err *err)
{
	struct mu_shape want;

	MU_RETURN_IF_ERROR(volume_out_shape(v, v->channels, &want, err));
	return check_input_shape(c, &want, i, "grad", err);
}

int check_max_pool3d_grad(const struct kernel_call *c, struct volume *v, struct mu_shape *in,
			  struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 0), *top = kernel_in(c, 1);

	MU_RETURN_IF_ERROR(volume_init(v, c, t->dtype, &t->shape, NULL, err));
	if (!mu_shape_eq(&top->shape, &kernel_in(c, 2)->shape))
		return mu_invalid(err, "orig_output is %s, its gradient %s",
				  mu_shape_str(&top->shape), mu_shape_str(&kernel_in(c, 2)->shape));
	*in = t->shape;
	return check_volume_shape(c, v, 2, err);
}

int check_max_pool3d_grad_grad(const struct kernel_call *c, struct volume *v,
			       struct mu_shape *shape, struct mu_err *err)
{
	static const char *const names[] = {"tensor_in", "tensor_out", "out_grad_backprop"};
	const struct mu_tensor *in = kernel_in(c, 0);

	for (unsigned i = 0; i < 3; i++)
		if (kernel_in(c, i)->shape.rank != VOLUME_RANK)
			return mu_invalid(err, "%s must be 5-dimensional", names[i]);
	MU_RETURN_IF_ERROR(volume_init(v, c, in->dtype, &in->shape, NULL, err));
	MU_RETURN_IF_ERROR(volume_out_shape(v, v->channels, shape, err));
	MU_RETURN_IF_ERROR(check_input_shape(c, shape, 1, "orig_output", err));
	MU_RETURN_IF_ERROR(check_input_shape(c, &in->shape, 2, "grad", err));
	for (unsigned i = 0; i < 3; i++)
		if (!kernel_in(c, i)->shape.count)
			return mu_invalid(err, "received empty tensor %s: %s", names[i],
					  mu_shape_str(&kernel_in(c, i)->shape));
	return 0;
}

int check_avg_pool3d_grad(const struct kernel_call *c, struct volume *v, struct mu_shape *in,
			  struct mu_err *err)
{
	MU_RETURN_IF_ERROR(args_shape(c, 0, in, err));
	MU_RETURN_IF_ERROR(volume_init(v, c, kernel_in(c, 1)->dtype, in, NULL, err));
	return check_volume_shape(c, v, 1, err);
}
