/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul and the other product ops: checks of their nodes; engine/product.c computes. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/product.h"
#include "task/kernels/linalg/checks.h"

int check_matmul(const struct kernel_call *c, struct product *p, struct mu_shape *shape,
		 struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1);

	*p = (struct product){.trans_a = args_attr_bool(c->node, "transpose_a", false),
			      .trans_b = args_attr_bool(c->node, "transpose_b", false)};
	if (a->shape.rank != 2)
		return mu_invalid(err, "In[0] and In[1] has different ndims: %s vs. %s",
				  mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	if (b->shape.rank != 2)
		return mu_invalid(err, "In[1] is not a matrix. Instead it has shape %s",
				  mu_shape_str(&b->shape));
	p->m = a->shape.dim[p->trans_a];
	p->k = a->shape.dim[!p->trans_a];
	p->n = b->shape.dim[!p->trans_b];
	if (b->shape.dim[p->trans_b] != p->k)
		return mu_invalid(err, "Matrix size-incompatible: In[0]: %s, In[1]: %s",
				  mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	return mu_shape_set(shape, 2, (int64_t[]){p->m, p->n}, err);
}

static int matmul(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1);
	struct product p;
	struct mu_shape shape;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(check_matmul(c, &p, &shape, err));
	MU_RETURN_IF_ERROR(product_check(c->node->op, a->dtype, &p, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, a->dtype, &shape, &out, err));
	product_in_parallel(c, a->dtype, &p, a->data, b->data, out->data);
	return 0;
}

/* Ignores the hint that many elements are zero: dense products are faster. */
static int sparse_matmul(struct kernel_call *c, struct mu_err *err)
{
	static const char name[] = "ab";
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1);
	struct mu_shape shape;
	struct mu_tensor *out;
	struct product p;

	for (unsigned i = 0; i < 2; i++)
		if (kernel_in(c, i)->shape.rank != 2)
			return mu_invalid(err, "%c is not a matrix", name[i]);
	if (check_matmul(c, &p, &shape, err))
		return mu_invalid(err, "Matrix size incompatible: a: %s, b: %s",
				  mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	MU_RETURN_IF_ERROR(product_check(c->node->op, MU_FLOAT, &p, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &shape, &out, err));
	product_in_parallel(c, MU_FLOAT, &p, a->data, b->data, out->data);
	return 0;
}

/* The dimensions of a batch, all but the last two. */
static int matmul_batch_of(const struct mu_shape *s, struct mu_shape *out, struct mu_err *err)
{
	return mu_shape_set(out, s->rank - 2, s->dim, err);
}

static bool is_byte(enum mu_dtype t)
{
	return t == MU_INT8 || t == MU_UINT8;
}

int check_batch_matmul(const struct kernel_call *c, struct product *p, struct product_batch *batch,
		       struct mu_shape *shape, struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1);
	struct mu_shape batch_a, batch_b;

	p->trans_a = args_attr_bool(c->node, "adj_x", false);
	p->trans_b = args_attr_bool(c->node, "adj_y", false);
	p->conjugate = true;
	if (a->shape.rank < 2 || b->shape.rank < 2)
		return mu_invalid(err, "In[0] ndims must be >= 2: %s, %s", mu_shape_str(&a->shape),
				  mu_shape_str(&b->shape));
	int ra = a->shape.rank - 2, rb = b->shape.rank - 2;
	p->m = a->shape.dim[ra + p->trans_a];
	p->k = a->shape.dim[ra + !p->trans_a];
	p->n = b->shape.dim[rb + !p->trans_b];
	if (b->shape.dim[rb + p->trans_b] != p->k)
		return mu_invalid(err, "Matrix size-incompatible: In[0]: %s, In[1]: %s",
				  mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	MU_RETURN_IF_ERROR(matmul_batch_of(&a->shape, &batch_a, err));
	MU_RETURN_IF_ERROR(matmul_batch_of(&b->shape, &batch_b, err));
	MU_RETURN_IF_ERROR(broadcast_shape(&batch_a, &batch_b, &batch->shape, err));
	broadcast_view(&batch->a, &batch_a, &batch->shape);
	broadcast_view(&batch->b, &batch_b, &batch->shape);
	*shape = batch->shape;
	return mu_shape_append(shape, 2, (int64_t[]){p->m, p->n}, err);
}

/* BatchMatMulV3 multiplies 8-bit integers as int32. */
static int batch_matmul(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in[] = {kernel_in(c, 0), kernel_in(c, 1)};
	const enum mu_dtype type =
	    is_byte(in[0]->dtype) ? args_attr_type(c->node, "Tout", MU_INT8) : in[0]->dtype;
	MU_AUTO_TENSOR wide_a = {0}, wide_b = {0};
	struct mu_tensor *wide[] = {&wide_a, &wide_b}, *out;
	struct product_batch batch;
	struct product p = {0};
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(check_batch_matmul(c, &p, &batch, &shape, err));
	MU_RETURN_IF_ERROR(product_check(c->node->op, type, &p, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &shape, &out, err));
	for (int i = 0; i < 2; i++) {
		if (in[i]->dtype == type)
			continue;
		if (!is_byte(in[i]->dtype) || type != MU_INT32)
			return args_no_kernel(c, in[i]->dtype, err);
		MU_RETURN_IF_ERROR(convert_tensor(wide[i], type, in[i], err));
		in[i] = wide[i];
	}
	if (out->shape.count)
		product_batch_in_parallel(c, type, &p, batch.shape.count, &batch.a, &batch.b,
					  in[0]->data, in[1]->data, out->data);
	return 0;
}

/* ---- _FusedMatMul: the product, then the bias and activation that fused_ops names ---- */

int check_fused_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			struct mu_err *err)
{
	const struct mu_attr *ops = mu_node_attr(n, "fused_ops");
	struct fused_matmul f = {0};

	if (!ops || (int)ops->kind != MU_ATTR_LIST + MU_ATTR_STRING || ops->n < 1 || ops->n > 2 ||
	    n->n_inputs != 3)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "_FusedMatMul is here with one bias and at most one activation");
	f.bias_add = mu_span_is(ops->ss[0], "BiasAdd");
	if (!f.bias_add && !mu_span_is(ops->ss[0], "Add"))
		return mu_fail(err, MU_UNIMPLEMENTED, "_FusedMatMul cannot start with %s",
			       ops->ss[0].data);
	if (ops->n > 1) {
		f.activates = true;
		f.activation = mu_span_is(ops->ss[1], "Relu")      ? UN_Relu
			       : mu_span_is(ops->ss[1], "Sigmoid") ? UN_Sigmoid
			       : mu_span_is(ops->ss[1], "Tanh")    ? UN_Tanh
								   : UN_COUNT;
		if (f.activation == UN_COUNT)
			return mu_fail(err, MU_UNIMPLEMENTED, "_FusedMatMul cannot end with %s",
				       ops->ss[1].data);
	}
	*state = mu_xmalloc(sizeof f);
	memcpy(*state, &f, sizeof f);
	return 0;
}

int check_fused_shape(const struct kernel_call *c, const struct fused_matmul *f,
		      const struct mu_shape *product, struct mu_shape *shape, struct mu_err *err)
{
	const struct mu_tensor *bias = kernel_in(c, 2);

	if (!f->bias_add)
		return broadcast_shape(product, &bias->shape, shape, err);
	if (bias->shape.rank != 1)
		return mu_invalid(err, "Biases must be 1D: %s", mu_shape_str(&bias->shape));
	if (bias->shape.dim[0] != product->dim[1])
		return mu_invalid(err,
				  "Must provide as many biases as the last dimension of the input "
				  "tensor: %s vs. %s",
				  mu_shape_str(&bias->shape), mu_shape_str(product));
	*shape = *product;
	return 0;
}

static int fused_matmul(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1), *bias = kernel_in(c, 2);
	const struct fused_matmul *f = c->state;
	struct mu_shape product_shape, shape;
	struct mu_tensor *out;
	MU_AUTO_TENSOR product_only = {0};
	struct product p;

	MU_RETURN_IF_ERROR(check_matmul(c, &p, &product_shape, err));
	MU_RETURN_IF_ERROR(product_check(c->node->op, a->dtype, &p, err));
	MU_RETURN_IF_ERROR(check_fused_shape(c, f, &product_shape, &shape, err));
	binary_loop *add = loops->binary[BIN_AddV2][a->dtype];
	unary_loop *activate = f->activates ? loops->unary[f->activation][a->dtype] : NULL;
	if (!add || (f->activates && !activate))
		return args_no_kernel(c, a->dtype, err);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, a->dtype, &shape, &out, err));
	struct mu_tensor *to = out;
	if (!mu_shape_eq(&product_shape, &shape)) { /* the bias has the larger shape */
		MU_RETURN_IF_ERROR(mu_tensor_new(&product_only, a->dtype, &product_shape, err));
		to = &product_only;
	}
	product_in_parallel(c, a->dtype, &p, a->data, b->data, to->data);
	size_t size = mu_dtype_size(a->dtype);
	broadcast_run(add, out->data, &shape, size, to->data, &product_shape, bias->data,
		      &bias->shape, size);
	if (activate)
		activate(out->data, out->data, out->shape.count);
	return 0;
}

static const struct kernel rows[] = {
    {"_FusedMatMul", KERNEL_EXPENSIVE, .run = fused_matmul, .prepare = check_fused_prepare},
    {"MatMul", KERNEL_EXPENSIVE, .run = matmul},
    {"SparseMatMul", KERNEL_EXPENSIVE, .run = sparse_matmul},
    {"BatchMatMul BatchMatMulV2 BatchMatMulV3", KERNEL_EXPENSIVE, .run = batch_matmul},
};
KERNEL_TABLE(linalg_matmul, rows)
