/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on a GPU; what a node asks for is checked as on the CPU. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/gpu_matmul.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/linalg/checks.h"

struct state {
	struct gpu_matmul by;
	void *add, *activate;       /* when the product cannot do it itself */
	struct fused_matmul *fused; /* NULL: MatMul */
};

static int matmul_gpu_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			      struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(n, "T", args_attr_type(n, "Ta", MU_DT_INVALID));
	struct state s = {0};
	int rc = gpu_matmul_init(&s.by, gpu_of_node(n, rt), t, err);

	if (rc)
		return rc;
	*state = MU_NEW(struct state);
	memcpy(*state, &s, sizeof s);
	return 0;
}

static void matmul_gpu_release(void *state)
{
	struct state *s = state;

	gpu_matmul_fini(&s->by);
	free(s->fused);
	free(s);
}

static int fused_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			 struct mu_err *err)
{
	static const char *const names[] = {
	    [UN_Relu] = "Relu", [UN_Sigmoid] = "Sigmoid", [UN_Tanh] = "Tanh"};
	enum mu_dtype t = args_attr_type(n, "T", MU_DT_INVALID);
	void *fused = NULL;
	int rc = check_fused_prepare(n, rt, &fused, err);

	if (rc)
		return rc;
	if ((rc = matmul_gpu_prepare(n, rt, state, err))) {
		free(fused);
		return rc;
	}
	struct state *s = *state;
	s->fused = fused;
	rc = gpu_find(s->by.gpu, "AddV2", t, &s->add, err);
	if (!rc && s->fused->activates)
		rc = gpu_find(s->by.gpu, names[s->fused->activation], t, &s->activate, err);
	if (rc) {
		matmul_gpu_release(s);
		*state = NULL;
	}
	return rc;
}

static int matmul_gpu_launch(struct kernel_call *c, struct matmul_args *a, const struct product *p,
			     struct mu_err *err)
{
	const struct state *s = c->state;
	struct unary_args act = {a->out, a->out, p->m * p->n};
	bool activate;
	int rc = gpu_matmul_run(&s->by, p, a, c->node->name, &activate, err);

	return rc || !activate ? rc : gpu_run(s->by.gpu, s->activate, act.n, &act, err);
}

static int matmul_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct matmul_args a = {0};
	struct product p;
	struct mu_shape shape;
	struct mu_tensor *out;
	int rc = check_matmul(c, &p, &shape, err);

	if (rc || (rc = gpu_out(c, 0, kernel_in(c, 0)->dtype, &shape, &out, err)))
		return rc;
	a.out = gpu_address(out);
	a.a = gpu_address(kernel_in(c, 0));
	a.b = gpu_address(kernel_in(c, 1));
	return matmul_gpu_launch(c, &a, &p, err);
}

/* All products of the batch at once. */
static int batch_matmul_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct matmul_args a = {0};
	struct product_batch batch;
	struct product p = {0};
	struct mu_shape shape;
	struct mu_tensor *out;
	int rc = check_batch_matmul(c, &p, &batch, &shape, err);

	if (rc || (rc = gpu_out(c, 0, kernel_in(c, 0)->dtype, &shape, &out, err)))
		return rc;
	a.out = gpu_address(out);
	a.a = gpu_address(kernel_in(c, 0));
	a.b = gpu_address(kernel_in(c, 1));
	a.rank = batch.shape.count == 1 ? 0 : batch.shape.rank;
	for (int d = 0; d < a.rank; d++) {
		a.dim[d] = batch.shape.dim[d];
		a.a_stride[d] = batch.a.stride[d] * p.m * p.k;
		a.b_stride[d] = batch.b.stride[d] * p.k * p.n;
	}
	return matmul_gpu_launch(c, &a, &p, err);
}

static int activation_number(const struct fused_matmul *f)
{
	return !f->activates                 ? 0
	       : f->activation == UN_Relu    ? 1
	       : f->activation == UN_Sigmoid ? 2
					     : 3;
}

/* Product, sum and activation one after another: the bias is no vector of columns. */
static int in_steps(struct kernel_call *c, struct matmul_args *a, const struct product *p,
		    const struct mu_shape *made, const struct mu_tensor *out, struct mu_err *err)
{
	const struct state *s = c->state;
	const struct mu_shape *bias = &kernel_in(c, 2)->shape;
	MU_AUTO_TENSOR product = {0};
	struct binary_args add = {.out = gpu_address(out),
				  .b = gpu_address(kernel_in(c, 2)),
				  .n = out->shape.count,
				  .rank = out->shape.rank};
	struct unary_args act = {gpu_address(out), gpu_address(out), out->shape.count};
	struct view x, y;
	int rc = gpu_tensor_new(s->by.gpu, out->dtype, made, c->node->name, &product, err);

	if (rc)
		return rc;
	a->out = add.a = gpu_address(&product);
	broadcast_view(&x, made, &out->shape);
	broadcast_view(&y, bias, &out->shape);
	for (int i = 0; i < out->shape.rank; i++) {
		add.dim[i] = out->shape.dim[i];
		add.a_stride[i] = x.stride[i];
		add.b_stride[i] = y.stride[i];
	}
	if ((rc = matmul_gpu_launch(c, a, p, err)) ||
	    (rc = gpu_run(s->by.gpu, s->add, add.n, &add, err)))
		return rc;
	return s->activate ? gpu_run(s->by.gpu, s->activate, act.n, &act, err) : 0;
}

static int fused_matmul_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct state *s = c->state;
	const struct mu_tensor *bias = kernel_in(c, 2);
	struct matmul_args a = {0};
	struct mu_shape made, shape;
	struct mu_tensor *out;
	struct product p;
	int rc;

	if ((rc = args_same_type(c, 0, 2, err)) || (rc = check_matmul(c, &p, &made, err)) ||
	    (rc = check_fused_shape(c, s->fused, &made, &shape, err)) ||
	    (rc = gpu_out(c, 0, kernel_in(c, 0)->dtype, &shape, &out, err)))
		return rc;
	a.a = gpu_address(kernel_in(c, 0));
	a.b = gpu_address(kernel_in(c, 1));
	if (bias->shape.rank != 1 || bias->shape.dim[0] != p.n || !mu_shape_eq(&made, &shape))
		return in_steps(c, &a, &p, &made, out, err);
	a.out = gpu_address(out);
	a.bias = gpu_address(bias);
	a.activation = activation_number(s->fused);
	return matmul_gpu_launch(c, &a, &p, err);
}

#define ROW(name, fn, before, attr)                                                                \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = before, .release = matmul_gpu_release},          \
		.type_attr = attr, .types = GPU_FLT                                                \
	}
static const struct gpu_kernel rows[] = {
    ROW("MatMul", matmul_gpu, matmul_gpu_prepare, "T"),
    ROW("_FusedMatMul", fused_matmul_gpu, fused_prepare, "T"),
    ROW("BatchMatMul", batch_matmul_gpu, matmul_gpu_prepare, "T"),
    ROW("BatchMatMulV2", batch_matmul_gpu, matmul_gpu_prepare, "T"),
    ROW("BatchMatMulV3", batch_matmul_gpu, matmul_gpu_prepare, "Ta"),
};
GPU_KERNEL_TABLE(linalg_matmul_gpu, rows)
