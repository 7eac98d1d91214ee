/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops of more than two operands, or with attributes that the loops cannot see. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/checks.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/variant.h"
#include "task/kernels/math/special.h"

static int add_n(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *first = kernel_in(c, 0);
	binary_loop *add = c->n_in ? loops->binary[BIN_AddV2][first->dtype] : NULL;
	struct mu_tensor *out;
	int rc;

	if (c->n_in && first->dtype == MU_VARIANT)
		return variant_add_all(c, err);
	if (!add)
		return mu_fail(err, MU_UNIMPLEMENTED, "AddN has no kernel for type %s",
			       c->n_in ? mu_dtype_name(first->dtype) : "of no inputs");
	for (unsigned i = 1; i < c->n_in; i++) {
		if ((rc = args_same_type(c, 0, i, err)))
			return rc;
		if (!mu_shape_eq(&first->shape, &kernel_in(c, i)->shape))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Inputs to operation AddN must have the same size and "
				       "shape.  Input 0: %s != input %u: %s",
				       mu_shape_str(&first->shape), i,
				       mu_shape_str(&kernel_in(c, i)->shape));
	}
	struct mu_shape shape = first->shape;
	if (c->n_in == 1) {
		kernel_out_take(c, 0, mu_tensor_ref(first));
		return 0;
	}
	if ((rc = kernel_out_reuse(c, 0, 0, first->dtype, &shape, &out, err)))
		return rc;
	add(out->data, kernel_in(c, 0)->data, kernel_in(c, 1)->data, shape.count, BOTH_RUN);
	for (unsigned i = 2; i < c->n_in; i++)
		add(out->data, out->data, kernel_in(c, i)->data, shape.count, BOTH_RUN);
	return 0;
}

/* out[i] = cond[i] ? a[i] : b[i], all dense and of out's shape; runs of one choice go together. */
static void choose(struct mu_tensor *out, const bool *cond, const void *a, const void *b,
		   int64_t rows, int64_t row)
{
	for (int64_t i = 0, k; i < rows; i = k) {
		for (k = i + 1; k < rows && cond[k] == cond[i];)
			k++;
		elems_copy(out->dtype, out->data, i * row, cond[i] ? a : b, i * row, (k - i) * row);
	}
}

static int select_v1(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *cond = kernel_in(c, 0), *a = kernel_in(c, 1), *b = kernel_in(c, 2);
	struct mu_tensor *out;
	int rc;

	if ((rc = args_type(c, 0, MU_BOOL, err)) || (rc = args_same_type(c, 1, 2, err)))
		return rc;
	if (!mu_shape_eq(&a->shape, &b->shape))
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "'then' and 'else' must have the same size.  but received: %s vs. %s",
		    mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	if (cond->shape.rank == 0) {
		kernel_out_take(c, 0, mu_tensor_ref(*MU_DATA(bool, cond) ? a : b));
		return 0;
	}
	bool rows =
	    cond->shape.rank == 1 && a->shape.rank > 0 && cond->shape.dim[0] == a->shape.dim[0];
	if (!rows && !mu_shape_eq(&cond->shape, &a->shape))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'then' must have the shape of the condition, or its size in the "
			       "first dimension: %s vs. %s",
			       mu_shape_str(&a->shape), mu_shape_str(&cond->shape));
	if ((rc = kernel_out(c, 0, a->dtype, &a->shape, &out, err)))
		return rc;
	int64_t n = cond->shape.count;
	choose(out, cond->data, a->data, b->data, n, n ? a->shape.count / n : 0);
	return 0;
}

/* Input i with the wanted shape: itself, or stretched into *made. */
static int stretched(const struct kernel_call *c, unsigned i, const struct mu_shape *to,
		     struct mu_tensor *made, const void **data, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, i);
	struct view v;

	*data = t->data;
	if (t->shape.count == to->count)
		return 0;
	int rc = mu_tensor_new(made, t->dtype, to, err);
	if (rc)
		return rc;
	broadcast_view(&v, &t->shape, to);
	view_read(t->dtype, made->data, t->data, &v);
	*data = made->data;
	return 0;
}

int check_select(const struct kernel_call *c, struct mu_shape *shape, struct mu_err *err)
{
	struct mu_shape both;
	int rc;

	if ((rc = args_type(c, 0, MU_BOOL, err)) || (rc = args_same_type(c, 1, 2, err)) ||
	    (rc = broadcast_shape(&kernel_in(c, 1)->shape, &kernel_in(c, 2)->shape, &both, err)))
		return rc;
	return broadcast_shape(&kernel_in(c, 0)->shape, &both, shape, err);
}

static int select_v2(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_TENSOR x = {0}, y = {0}, z = {0};
	const void *cond, *a, *b;
	struct mu_shape shape;
	struct mu_tensor *out;
	int rc;

	if ((rc = check_select(c, &shape, err)) || (rc = stretched(c, 0, &shape, &x, &cond, err)) ||
	    (rc = stretched(c, 1, &shape, &y, &a, err)) ||
	    (rc = stretched(c, 2, &shape, &z, &b, err)) ||
	    (rc = kernel_out(c, 0, kernel_in(c, 1)->dtype, &shape, &out, err)))
		return rc;
	choose(out, cond, a, b, shape.count, 1);
	return 0;
}

/* ---- with an attribute ---- */

#define BOTH_REALS(dtype, body)                                                                    \
	if ((dtype) == MU_FLOAT) {                                                                 \
		typedef float T;                                                                   \
		body                                                                               \
	} else {                                                                                   \
		typedef double T;                                                                  \
		body                                                                               \
	}

static int need_real(const struct kernel_call *c, unsigned i, struct mu_err *err)
{
	enum mu_dtype t = kernel_in(c, i)->dtype;

	return t == MU_FLOAT || t == MU_DOUBLE
		   ? 0
		   : mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for type %s", c->node->op,
			     mu_dtype_name(t));
}

static int leaky_relu(struct kernel_call *c, struct mu_err *err)
{
	float alpha = args_attr_float(c->node, "alpha", 0.2f);
	struct mu_tensor *out;
	int rc;

	if ((rc = need_real(c, 0, err)) ||
	    (rc = kernel_out(c, 0, kernel_in(c, 0)->dtype, &kernel_in(c, 0)->shape, &out, err)))
		return rc;
	BOTH_REALS(out->dtype, {
		const T *x = kernel_in(c, 0)->data;
		for (int64_t i = 0; i < out->shape.count; i++)
			MU_DATA(T, out)[i] = x[i] > 0 ? x[i] : x[i] * (T)alpha;
	})
	return 0;
}

static int leaky_relu_grad(struct kernel_call *c, struct mu_err *err)
{
	float alpha = args_attr_float(c->node, "alpha", 0.2f);
	struct mu_tensor *out;
	int rc;

	if ((rc = need_real(c, 0, err)) || (rc = args_same_type(c, 0, 1, err)) ||
	    (rc = args_same_shape(c, 0, 1, err)) ||
	    (rc = kernel_out(c, 0, kernel_in(c, 0)->dtype, &kernel_in(c, 0)->shape, &out, err)))
		return rc;
	BOTH_REALS(out->dtype, {
		const T *g = kernel_in(c, 0)->data;
		const T *x = kernel_in(c, 1)->data;
		for (int64_t i = 0; i < out->shape.count; i++)
			MU_DATA(T, out)[i] = x[i] > 0 ? g[i] : g[i] * (T)alpha;
	})
	return 0;
}

static int approximate_equal(struct kernel_call *c, struct mu_err *err)
{
	float tolerance = args_attr_float(c->node, "tolerance", 1e-5f);
	struct mu_tensor *out;
	int rc;

	if ((rc = need_real(c, 0, err)) || (rc = args_same_type(c, 0, 1, err)) ||
	    (rc = args_same_shape(c, 0, 1, err)) ||
	    (rc = kernel_out(c, 0, MU_BOOL, &kernel_in(c, 0)->shape, &out, err)))
		return rc;
	BOTH_REALS(kernel_in(c, 0)->dtype, {
		const T *x = kernel_in(c, 0)->data;
		const T *y = kernel_in(c, 1)->data;
		for (int64_t i = 0; i < out->shape.count; i++)
			MU_DATA(bool, out)[i] = fabs((double)(x[i] - y[i])) < (double)tolerance;
	})
	return 0;
}

static int check_numerics(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 0);
	bool inf = false, nan = false;
	int rc = need_real(c, 0, err);

	if (rc)
		return rc;
	BOTH_REALS(t->dtype, {
		for (int64_t i = 0; i < t->shape.count; i++) {
			inf |= isinf(MU_DATA(T, t)[i]);
			nan |= isnan(MU_DATA(T, t)[i]);
		}
	})
	if (inf || nan)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s : Tensor had %s values",
			       args_attr_string(c->node, "message", ""),
			       inf && nan ? "Inf and NaN"
			       : inf      ? "Inf"
					  : "NaN");
	kernel_out_take(c, 0, mu_tensor_ref(t));
	return 0;
}

/* Each limit is one number, or has the tensor's shape. */
int check_clip(const struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 0), *low = kernel_in(c, 1),
			       *high = kernel_in(c, 2);
	int rc;

	if ((rc = args_same_type(c, 0, 1, err)) || (rc = args_same_type(c, 0, 2, err)))
		return rc;
	if ((low->shape.rank && !mu_shape_eq(&low->shape, &t->shape)) ||
	    (high->shape.rank && !mu_shape_eq(&high->shape, &t->shape)))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "clip_value_min and clip_value_max must be either of the same shape "
			       "as input, or a scalar: %s, %s, %s",
			       mu_shape_str(&t->shape), mu_shape_str(&low->shape),
			       mu_shape_str(&high->shape));
	return 0;
}

static int clip_by_value(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 0), *low = kernel_in(c, 1),
			       *high = kernel_in(c, 2);
	struct mu_tensor *out;
	int rc = check_clip(c, err);

	if (rc)
		return rc;
	binary_loop *least = loops->binary[BIN_Minimum][t->dtype];
	binary_loop *most = loops->binary[BIN_Maximum][t->dtype];
	if (!least || !most)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for type %s", c->node->op,
			       mu_dtype_name(t->dtype));
	if ((rc = kernel_out(c, 0, t->dtype, &t->shape, &out, err)))
		return rc;
	least(out->data, t->data, high->data, t->shape.count,
	      high->shape.rank ? BOTH_RUN : RIGHT_SCALAR);
	most(out->data, out->data, low->data, t->shape.count,
	     low->shape.rank ? BOTH_RUN : RIGHT_SCALAR);
	return 0;
}

/* Three tensors of one shape, but for those that are one number. */
static int betainc(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *shape = &kernel_in(c, 0)->shape;
	struct mu_tensor *out;
	int rc = need_real(c, 0, err);

	for (unsigned i = 1; i < 3; i++) {
		const struct mu_shape *next = &kernel_in(c, i)->shape;
		if (rc || (rc = args_same_type(c, 0, i, err)))
			return rc;
		if (next->rank && shape->rank && !mu_shape_eq(shape, next))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Shapes of a, b and x are inconsistent: %s and %s",
				       mu_shape_str(shape), mu_shape_str(next));
		shape = next->rank ? next : shape;
	}
	if ((rc = kernel_out(c, 0, kernel_in(c, 0)->dtype, shape, &out, err)))
		return rc;
	BOTH_REALS(out->dtype, {
		const T *in[3];
		bool many[3];
		for (unsigned k = 0; k < 3; k++) {
			in[k] = kernel_in(c, k)->data;
			many[k] = kernel_in(c, k)->shape.rank > 0;
		}
		for (int64_t i = 0; i < out->shape.count; i++)
			MU_DATA(T, out)
		[i] = (T)special_betainc((double)in[0][many[0] * i], (double)in[1][many[1] * i],
					 (double)in[2][many[2] * i]);
	})
	return 0;
}

static const struct kernel rows[] = {
    {"Betainc", .run = betainc},
    {"ClipByValue", .run = clip_by_value},
    {"AddN", .run = add_n},
    {"AccumulateNV2", .run = add_n},
    {"Select", .run = select_v1},
    {"SelectV2", .run = select_v2},
    {"LeakyRelu", .run = leaky_relu},
    {"LeakyReluGrad", .run = leaky_relu_grad},
    {"ApproximateEqual", .run = approximate_equal},
    {"CheckNumerics", .run = check_numerics},
};
KERNEL_TABLE(elementwise_more, rows)
