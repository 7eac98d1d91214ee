/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: OpenBLAS for reals of some size, plain loops for small ones and integers. */
#include <cblas.h>
#include <string.h>

#include "task/kernels/args.h"
#include "task/kernels/broadcast.h"
#include "task/kernels/kernel_table.h"
#include "task/kernels/matmul.h"

/* Below this many multiply-adds BLAS's set-up costs more than the product. */
enum { SMALL = 4 * 1024 };

static const struct mu_shape scalar_shape = {.rank = 0, .count = 1};

#define PLAIN_PRODUCT(T)                                                                           \
	static void product_##T(const struct product *p, const T *a, const T *b, T *c)             \
	{                                                                                          \
		for (int64_t i = 0; i < p->m; i++) {                                               \
			T *row = c + i * p->n;                                                     \
			for (int64_t j = 0; j < p->n && !p->add; j++)                              \
				row[j] = 0;                                                        \
			for (int64_t l = 0; l < p->k; l++) {                                       \
				T x = p->trans_a ? a[l * p->m + i] : a[i * p->k + l];              \
				if (!p->trans_b)                                                   \
					for (int64_t j = 0; j < p->n; j++)                         \
						row[j] += x * b[l * p->n + j];                     \
				else                                                               \
					for (int64_t j = 0; j < p->n; j++)                         \
						row[j] += x * b[j * p->k + l];                     \
			}                                                                          \
		}                                                                                  \
	}
PLAIN_PRODUCT(float)
PLAIN_PRODUCT(double)
PLAIN_PRODUCT(uint32_t)
PLAIN_PRODUCT(uint64_t)

bool product_known(enum mu_dtype t)
{
	return t == MU_FLOAT || t == MU_DOUBLE || t == MU_INT32 || t == MU_INT64;
}

static bool fits_blas(const struct product *p)
{
	const int64_t most = 0x7fffffff;

	return p->m <= most && p->n <= most && p->k <= most && p->m > 0 && p->n > 0 && p->k > 0 &&
	       (double)p->m * (double)p->n * (double)p->k >= SMALL;
}

void product(enum mu_dtype t, const struct product *p, const void *a, const void *b, void *c)
{
	if ((t == MU_FLOAT || t == MU_DOUBLE) && fits_blas(p)) {
		CBLAS_TRANSPOSE ta = p->trans_a ? CblasTrans : CblasNoTrans;
		CBLAS_TRANSPOSE tb = p->trans_b ? CblasTrans : CblasNoTrans;
		int m = (int)p->m, n = (int)p->n, k = (int)p->k;
		int lda = p->trans_a ? m : k, ldb = p->trans_b ? k : n;
		if (t == MU_FLOAT)
			cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, p->add, c,
				    n);
		else
			cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, p->add, c,
				    n);
		return;
	}
	switch ((int)t) {
	case MU_FLOAT:
		product_float(p, a, b, c);
		break;
	case MU_DOUBLE:
		product_double(p, a, b, c);
		break;
	case MU_INT32: /* unsigned, so that overflow wraps */
		product_uint32_t(p, a, b, c);
		break;
	case MU_INT64:
		product_uint64_t(p, a, b, c);
		break;
	}
}

/* Splits the rows of the result over the pool when the product is worth it. */
struct split {
	enum mu_dtype t;
	struct product p;
	const char *a, *b;
	char *c;
	size_t size;
};

static void split_part(void *arg, int64_t from, int64_t to)
{
	const struct split *s = arg;
	struct product p = s->p;

	p.m = to - from;
	product(s->t, &p, s->a + (size_t)(from * p.k) * s->size, s->b,
		s->c + (size_t)(from * p.n) * s->size);
}

static void product_parallel(struct kernel_call *c, enum mu_dtype t, const struct product *p,
			     const void *a, const void *b, void *out)
{
	/* Four million multiply-adds take some 50 us on one core: enough to share. */
	double work = (double)p->n * (double)p->k, grain = 4e6 / (work > 0 ? work : 1);

	if (p->trans_a || grain >= (double)p->m) {
		product(t, p, a, b, out);
		return;
	}
	struct split s = {t, *p, a, b, out, mu_dtype_size(t)};
	kernel_parallel(c, p->m, grain < 16 ? 16 : (int64_t)grain, split_part, &s);
}

static int need_known(const struct kernel_call *c, struct mu_err *err)
{
	int rc = args_same_type(c, 0, 1, err);

	if (!rc && !product_known(kernel_in(c, 0)->dtype))
		return mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for type %s", c->node->op,
			       mu_dtype_name(kernel_in(c, 0)->dtype));
	return rc;
}

/* What is to be multiplied, and the result's shape. */
static int matmul_shape(const struct kernel_call *c, struct product *p, struct mu_shape *shape,
			struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1);
	int rc = need_known(c, err);

	if (rc)
		return rc;
	*p = (struct product){.trans_a = args_attr_bool(c->node, "transpose_a", false),
			      .trans_b = args_attr_bool(c->node, "transpose_b", false)};
	if (a->shape.rank != 2)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "In[0] and In[1] has different ndims: %s vs. %s",
			       mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	if (b->shape.rank != 2)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "In[1] is not a matrix. Instead it has "
			       "shape %s",
			       mu_shape_str(&b->shape));
	p->m = a->shape.dim[p->trans_a];
	p->k = a->shape.dim[!p->trans_a];
	p->n = b->shape.dim[!p->trans_b];
	if (b->shape.dim[p->trans_b] != p->k)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Matrix size-incompatible: In[0]: %s, In[1]: %s",
			       mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	*shape = scalar_shape;
	if ((rc = mu_shape_push(shape, p->m, err)))
		return rc;
	return mu_shape_push(shape, p->n, err);
}

static int matmul(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1);
	struct product p;
	struct mu_shape shape;
	struct mu_tensor *out;
	int rc = matmul_shape(c, &p, &shape, err);

	if (rc || (rc = kernel_out(c, 0, a->dtype, &shape, &out, err)))
		return rc;
	product_parallel(c, a->dtype, &p, a->data, b->data, out->data);
	return 0;
}

/* Everything but the last two dimensions. */
static int batch_of(const struct mu_shape *s, struct mu_shape *out, struct mu_err *err)
{
	return mu_shape_set(out, s->rank - 2, s->dim, err);
}

static int batch_matmul(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1);
	struct product p = {.trans_a = args_attr_bool(c->node, "adj_x", false),
			    .trans_b = args_attr_bool(c->node, "adj_y", false)};
	struct mu_shape batch_a, batch_b, shape, out_batch;
	struct mu_tensor *out;
	int rc = need_known(c, err);

	if (rc)
		return rc;
	if (a->shape.rank < 2 || b->shape.rank < 2)
		return mu_fail(err, MU_INVALID_ARGUMENT, "In[0] ndims must be >= 2: %s, %s",
			       mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	int ra = a->shape.rank - 2, rb = b->shape.rank - 2;
	p.m = a->shape.dim[ra + p.trans_a];
	p.k = a->shape.dim[ra + !p.trans_a];
	p.n = b->shape.dim[rb + !p.trans_b];
	if (b->shape.dim[rb + p.trans_b] != p.k)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Matrix size-incompatible: In[0]: %s, In[1]: %s",
			       mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	if ((rc = batch_of(&a->shape, &batch_a, err)) ||
	    (rc = batch_of(&b->shape, &batch_b, err)) ||
	    (rc = broadcast_shape(&batch_a, &batch_b, &out_batch, err)))
		return rc;
	shape = out_batch;
	if ((rc = mu_shape_push(&shape, p.m, err)) || (rc = mu_shape_push(&shape, p.n, err)) ||
	    (rc = kernel_out(c, 0, a->dtype, &shape, &out, err)))
		return rc;
	/* Which matrix of a and b each one of the result needs: numbers, seen through the view. */
	struct view va, vb;
	size_t size = mu_dtype_size(a->dtype);
	broadcast_view(&va, &batch_a, &out_batch);
	broadcast_view(&vb, &batch_b, &out_batch);
	for (int64_t i = 0; i < out_batch.count; i++) {
		int64_t rest = i, at_a = 0, at_b = 0;
		for (int d = out_batch.rank; d-- > 0; rest /= out_batch.dim[d]) {
			at_a += rest % out_batch.dim[d] * va.stride[d];
			at_b += rest % out_batch.dim[d] * vb.stride[d];
		}
		product_parallel(c, a->dtype, &p,
				 (char *)a->data + (size_t)(at_a * p.m * p.k) * size,
				 (char *)b->data + (size_t)(at_b * p.k * p.n) * size,
				 (char *)out->data + (size_t)(i * p.m * p.n) * size);
	}
	return 0;
}

/* ---- _FusedMatMul: the product, a bias, an activation; fused_ops names what follows ---- */

struct fused {
	bool bias_add; /* a vector, as BiasAdd has it; else whatever broadcasts */
	bool activates;
	enum unary_op activation;
};

static int fused_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			 struct mu_err *err)
{
	const struct mu_attr *ops = mu_node_attr(n, "fused_ops");
	struct fused f = {0};

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

static int fused_shape(const struct kernel_call *c, const struct fused *f,
		       const struct mu_shape *made, struct mu_shape *shape, struct mu_err *err)
{
	const struct mu_tensor *bias = kernel_in(c, 2);

	if (!f->bias_add)
		return broadcast_shape(made, &bias->shape, shape, err);
	if (bias->shape.rank != 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Biases must be 1D: %s",
			       mu_shape_str(&bias->shape));
	if (bias->shape.dim[0] != made->dim[1])
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Must provide as many biases as the last dimension of the input "
			       "tensor: %s vs. %s",
			       mu_shape_str(&bias->shape), mu_shape_str(made));
	*shape = *made;
	return 0;
}

static int fused_matmul(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1), *bias = kernel_in(c, 2);
	const struct fused *f = c->state;
	struct mu_shape made, shape;
	struct mu_tensor *out;
	MU_AUTO_TENSOR product_only = {0};
	struct product p;
	int rc;

	if ((rc = args_same_type(c, 0, 2, err)) || (rc = matmul_shape(c, &p, &made, err)) ||
	    (rc = fused_shape(c, f, &made, &shape, err)))
		return rc;
	binary_loop *add = loops->binary[BIN_AddV2][a->dtype];
	unary_loop *activate = f->activates ? loops->unary[f->activation][a->dtype] : NULL;
	if (!add || (f->activates && !activate))
		return mu_fail(err, MU_UNIMPLEMENTED, "_FusedMatMul has no kernel for type %s",
			       mu_dtype_name(a->dtype));
	if ((rc = kernel_out(c, 0, a->dtype, &shape, &out, err)))
		return rc;
	struct mu_tensor *to = out;
	if (!mu_shape_eq(&made, &shape)) { /* the bias is the larger one */
		if ((rc = mu_tensor_new(&product_only, a->dtype, &made, err)))
			return rc;
		to = &product_only;
	}
	product_parallel(c, a->dtype, &p, a->data, b->data, to->data);
	size_t size = mu_dtype_size(a->dtype);
	broadcast_run(add, out->data, &shape, size, to->data, &made, bias->data, &bias->shape,
		      size);
	if (activate)
		activate(out->data, out->data, out->shape.count);
	return 0;
}

static const struct kernel rows[] = {
    {"_FusedMatMul", KERNEL_EXPENSIVE, .run = fused_matmul, .prepare = fused_prepare},
    {"MatMul", KERNEL_EXPENSIVE, .run = matmul},
    {"BatchMatMul", KERNEL_EXPENSIVE, .run = batch_matmul},
    {"BatchMatMulV2", KERNEL_EXPENSIVE, .run = batch_matmul},
    {"BatchMatMulV3", KERNEL_EXPENSIVE, .run = batch_matmul},
};
KERNEL_TABLE(matmul, rows)
