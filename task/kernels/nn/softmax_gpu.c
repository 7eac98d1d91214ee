/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, cross entropies, biases on a GPU. */
#include <stdio.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/gpu_rows.h"
#include "task/kernels/nn/checks.h"

static int softmax_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			   struct mu_err *err)
{
	return gpu_one_prepare(n, rt, "softmax", "T", state, err);
}

static int softmax_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	const struct mu_tensor *in = kernel_in(c, 0);
	struct softmax_args a = {.in = gpu_address(in),
				 .logarithm = strcmp(c->node->op, "LogSoftmax") == 0};
	struct mu_tensor *out;
	int rc;

	if (in->shape.rank < 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "logits must have >= 1 dimension, got %s",
			       mu_shape_str(&in->shape));
	if ((rc = gpu_out(c, 0, in->dtype, &in->shape, &out, err)) || !in->shape.count)
		return rc;
	a.n = in->shape.dim[in->shape.rank - 1];
	a.rows = in->shape.count / a.n;
	a.out = gpu_address(out);
	return gpu_launch(o->gpu, o->kernel, gpu_grid_of_rows(a.rows), &a, err);
}

static int xent_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			struct mu_err *err)
{
	return gpu_one_prepare(n, rt, "xent", "T", state, err);
}

/* Loss and gradient, of rows of `shape`. */
static int xent_run(struct kernel_call *c, const struct mu_shape *shape, struct xent_args *a,
		    struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	struct mu_shape rows = mu_shape_vec(shape->dim[0]);
	struct mu_tensor *loss, *back;
	int rc;

	if ((rc = gpu_out(c, 0, o->type, &rows, &loss, err)) ||
	    (rc = gpu_out(c, 1, o->type, shape, &back, err)))
		return rc;
	a->rows = shape->dim[0];
	a->n = shape->dim[1];
	a->loss = gpu_address(loss);
	a->back = gpu_address(back);
	a->logits = gpu_address(kernel_in(c, 0));
	a->labels = gpu_address(kernel_in(c, 1));
	if (!a->n)
		return gpu_fill(o->gpu, loss, 0, err);
	return a->rows ? gpu_launch(o->gpu, o->kernel, gpu_grid_of_rows(a->rows), a, err) : 0;
}

static int cross_entropy(struct kernel_call *c, struct mu_err *err)
{
	struct xent_args a = {0};
	struct mu_shape both;
	struct view logits, labels;
	int rc = check_cross_entropy(c, &both, err);

	if (rc)
		return rc;
	broadcast_view(&logits, &kernel_in(c, 0)->shape, &both);
	broadcast_view(&labels, &kernel_in(c, 1)->shape, &both);
	a.logit_row = logits.stride[0];
	a.logit_column = logits.stride[1];
	a.label_row = labels.stride[0];
	a.label_column = labels.stride[1];
	return xent_run(c, &both, &a, err);
}

static int sparse_xent_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			       struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(n, "T", MU_DT_INVALID);
	enum mu_dtype labels = args_attr_type(n, "Tlabels", MU_INT64);
	struct gpu_one o = {gpu_of_node(n, rt), NULL, t};
	char name[32];

	snprintf(name, sizeof name, "sparse_xent_%s", gpu_type_name(t));
	int rc = gpu_find(o.gpu, name, labels, &o.kernel, err);
	if (rc)
		return rc;
	*state = mu_xmalloc(sizeof o);
	memcpy(*state, &o, sizeof o);
	return 0;
}

static int sparse_cross_entropy_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *shape = &kernel_in(c, 0)->shape;
	int rc = check_sparse_cross_entropy(c, err);

	if (rc)
		return rc;
	struct xent_args a = {.logit_row = shape->dim[1], .logit_column = 1};
	return xent_run(c, shape, &a, err);
}

static int bias_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			struct mu_err *err)
{
	return gpu_one_prepare(n, rt, "bias", "T", state, err);
}

static int bias_add_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	struct channels ch;
	struct mu_tensor *out;
	int rc = check_bias(c, &ch, err);

	if (rc)
		return rc;
	struct bias_args a = {.in = gpu_address(kernel_in(c, 0)),
			      .bias = gpu_address(kernel_in(c, 1)),
			      .n = kernel_in(c, 0)->shape.count,
			      .channels = ch.n,
			      .inner = ch.inner};
	if ((rc = gpu_out_reuse(c, 0, 0, o->type, &kernel_in(c, 0)->shape, &out, err)))
		return rc;
	a.out = gpu_address(out);
	return gpu_run(o->gpu, o->kernel, a.n, &a, err);
}

static const struct gpu_kernel rows[] = {
    {.k = {"Softmax", .run = softmax_gpu, .prepare = softmax_prepare},
     .type_attr = "T",
     .types = GPU_FLT},
    {.k = {"LogSoftmax", .run = softmax_gpu, .prepare = softmax_prepare},
     .type_attr = "T",
     .types = GPU_FLT},
    {.k = {"SoftmaxCrossEntropyWithLogits", .run = cross_entropy, .prepare = xent_prepare},
     .type_attr = "T",
     .types = GPU_FLT},
    {.k = {"SparseSoftmaxCrossEntropyWithLogits", .run = sparse_cross_entropy_gpu,
	   .prepare = sparse_xent_prepare},
     .type_attr = "T",
     .types = GPU_FLT,
     .device_in = 2},
    {.k = {"BiasAdd", .run = bias_add_gpu, .prepare = bias_prepare},
     .type_attr = "T",
     .types = GPU_FLT},
};
GPU_KERNEL_TABLE(nn_softmax_gpu, rows)
