/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of element-wise ops, one expression each. */
#include <math.h>

#include "lib/grad/op_grads.h"

static struct mu_out op2(struct mu_builder *b, const char *op, struct mu_out x, struct mu_out y)
{
	return mu_op(b, op, MU_IN(x, y));
}

/* 1 - x² */
static struct mu_out one_minus_square(struct mu_builder *b, struct mu_out x)
{
	return mu_sub(b, grad_number(b, x, 1), mu_square(b, x));
}

/* exp(-x²) · 2 / √π */
static struct mu_out erf_derivative(struct mu_builder *b, struct mu_out x)
{
	return grad_scale(b, mu_exp(b, mu_neg(b, mu_square(b, x))), M_2_SQRTPI);
}

/* 1 if x is not 0, else 0 */
static struct mu_out nonzero(struct mu_builder *b, struct mu_out x)
{
	return grad_indicator(b, op2(b, "NotEqual", x, grad_zeros(b, x)), x);
}

/* Returns the quotient (x - y) / z of a modulo op, an integer. */
static struct mu_out quotient(struct mu_builder *b, struct mu_out x, struct mu_out z,
			      struct mu_out y)
{
	return grad_unary(b, "Rint", mu_div(b, mu_sub(b, x, y), z));
}

/* log x if x > 0, else 0 */
static struct mu_out log_or_zero(struct mu_builder *b, struct mu_out x)
{
	struct mu_out above = op2(b, "Greater", x, grad_zeros(b, x));
	struct mu_out safe = mu_op(b, "Select", MU_IN(above, x, mu_op(b, "OnesLike", MU_IN(x))));

	return mu_ln(b, safe);
}

GRAD_UNARY(g_pass, g)
GRAD_UNARY(g_neg, mu_neg(b, g))
GRAD_UNARY(g_abs, mu_mul(b, g, grad_unary(b, "Sign", x)))
GRAD_UNARY(g_acos, mu_neg(b, mu_mul(b, g, grad_unary(b, "Rsqrt", one_minus_square(b, x)))))
GRAD_UNARY(g_acosh, mu_div(b, g, grad_unary(b, "Sinh", y)))
GRAD_UNARY(g_asin, mu_mul(b, g, grad_unary(b, "Rsqrt", one_minus_square(b, x))))
GRAD_UNARY(g_asinh, mu_div(b, g, grad_unary(b, "Cosh", y)))
GRAD_UNARY(g_atan, mu_div(b, g, grad_add_number(b, mu_square(b, x), 1)))
GRAD_UNARY(g_atanh, mu_div(b, g, one_minus_square(b, x)))
GRAD_UNARY(g_digamma, mu_mul(b, g, op2(b, "Polygamma", mu_op(b, "OnesLike", MU_IN(x)), x)))
GRAD_UNARY(g_lgamma, mu_mul(b, g, grad_unary(b, "Digamma", x)))
GRAD_UNARY(g_cos, mu_neg(b, mu_mul(b, g, grad_unary(b, "Sin", x))))
GRAD_UNARY(g_cosh, mu_mul(b, g, grad_unary(b, "Sinh", x)))
GRAD_UNARY(g_erf, mu_mul(b, g, erf_derivative(b, x)))
GRAD_UNARY(g_erfc, mu_neg(b, mu_mul(b, g, erf_derivative(b, x))))
GRAD_UNARY(g_exp, mu_mul(b, g, y))
GRAD_UNARY(g_expm1, mu_mul(b, g, mu_exp(b, x)))
GRAD_UNARY(g_log, mu_div(b, g, x))
GRAD_UNARY(g_log1p, mu_div(b, g, grad_add_number(b, x, 1)))
GRAD_UNARY(g_reciprocal, mu_neg(b, mu_mul(b, g, mu_square(b, y))))
GRAD_UNARY(g_rsqrt, op2(b, "RsqrtGrad", y, g))
GRAD_UNARY(g_sigmoid, op2(b, "SigmoidGrad", y, g))
GRAD_UNARY(g_sin, mu_mul(b, g, grad_unary(b, "Cos", x)))
GRAD_UNARY(g_sinh, mu_mul(b, g, grad_unary(b, "Cosh", x)))
GRAD_UNARY(g_sqrt, op2(b, "SqrtGrad", y, g))
GRAD_UNARY(g_square, mu_mul(b, g, grad_scale(b, x, 2)))
GRAD_UNARY(g_tan, mu_mul(b, g, grad_add_number(b, mu_square(b, y), 1)))
GRAD_UNARY(g_tanh, op2(b, "TanhGrad", y, g))

GRAD_BINARY(g_add, g, g)
GRAD_BINARY(g_sub, g, mu_neg(b, g))
GRAD_BINARY(g_mul, mu_mul(b, g, grad_conj(b, z)), mu_mul(b, g, grad_conj(b, x)))
GRAD_BINARY(g_mul_no_nan, op2(b, "MulNoNan", g, z), op2(b, "MulNoNan", x, g))
GRAD_BINARY(g_div, mu_div(b, g, z), mu_neg(b, mu_mul(b, g, mu_div(b, y, z))))
GRAD_BINARY(g_div_no_nan, grad_div_no_nan(b, g, z),
	    mu_neg(b, mu_mul(b, g, grad_div_no_nan(b, y, z))))
GRAD_BINARY(g_mod, g, mu_neg(b, mu_mul(b, g, quotient(b, x, z, y))))
GRAD_BINARY(g_squared_difference, grad_scale(b, mu_mul(b, g, mu_sub(b, x, z)), 2),
	    grad_scale(b, mu_mul(b, g, mu_sub(b, z, x)), 2))
GRAD_BINARY(g_pow, mu_mul(b, g, mu_mul(b, z, op2(b, "Pow", x, grad_add_number(b, z, -1)))),
	    mu_mul(b, mu_mul(b, g, y), log_or_zero(b, x)))
GRAD_BINARY(g_atan2, mu_mul(b, g, mu_div(b, z, mu_add(b, mu_square(b, x), mu_square(b, z)))),
	    mu_neg(b, mu_mul(b, g, mu_div(b, x, mu_add(b, mu_square(b, x), mu_square(b, z))))))
GRAD_BINARY(g_xdivy, mu_mul(b, g, op2(b, "Xdivy", nonzero(b, x), z)),
	    mu_neg(b, mu_mul(b, g, op2(b, "Xdivy", x, mu_square(b, z)))))
GRAD_BINARY(g_xlogy, mu_mul(b, g, op2(b, "Xlogy", nonzero(b, x), z)),
	    mu_mul(b, g, op2(b, "Xdivy", x, z)))
GRAD_BINARY(g_xlog1py, mu_mul(b, g, op2(b, "Xlog1py", nonzero(b, x), z)),
	    mu_mul(b, g, op2(b, "Xdivy", x, grad_add_number(b, z, 1))))

/* Routes the gradient to the first input where `compare` is true, else to the second, also for NaN.
 */
static void route_gradient(struct grad_call *c, const char *compare)
{
	struct mu_builder *b = c->b;
	struct mu_out cond = op2(b, compare, grad_in(c, 0), grad_in(c, 1)), g = c->gy[0];
	struct mu_out zeros = grad_zeros(b, g);

	grad_unbroadcast(c, 0, mu_op(b, "Select", MU_IN(cond, g, zeros)), 1,
			 mu_op(b, "Select", MU_IN(cond, zeros, g)));
}

static void g_maximum(struct grad_call *c)
{
	route_gradient(c, "GreaterEqual");
}

static void g_minimum(struct grad_call *c)
{
	route_gradient(c, "LessEqual");
}

/* The gradient is checked too. */
static void g_check_numerics(struct grad_call *c)
{
	const struct mu_attr *message = mu_node_attr(c->node, "message");
	struct mu_span prefix = message ? message->s : (struct mu_span){"", 0};
	MU_AUTO_BUF text = {0};

	mu_buf_printf(&text,
		      "Not a number (NaN) or infinity (Inf) values detected in gradient. %.*s",
		      (int)prefix.len, prefix.data);
	c->gx[0] =
	    mu_op(c->b, c->node->op, MU_IN(c->gy[0]), MU_ATTRS(MU_A_STR("message", text.data)));
}

/* Inputs: (x, min, max). The gradient of a bound is the sum over the elements that it replaced. */
static void g_clip(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), low = grad_in(c, 1), high = grad_in(c, 2), g = c->gy[0];
	struct mu_out below = op2(b, "Less", x, low), above = op2(b, "Greater", x, high);
	struct mu_out in_range = grad_unary(b, "LogicalNot", op2(b, "LogicalOr", below, above));

	c->gx[0] = grad_where(b, in_range, g);
	c->gx[1] = grad_sum_to(b, grad_where(b, below, g), low);
	c->gx[2] = grad_sum_to(b, grad_where(b, above, g), high);
}

static void g_cross(struct grad_call *c)
{
	c->gx[0] = op2(c->b, "Cross", grad_in(c, 1), c->gy[0]);
	c->gx[1] = op2(c->b, "Cross", c->gy[0], grad_in(c, 0));
}

/* Only the second input has a gradient: the first is the order of the derivative or the exponent.
 */
static void g_polygamma(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out next =
	    op2(b, "Polygamma", grad_add_number(b, grad_in(c, 0), 1), grad_in(c, 1));

	c->gx[1] = grad_sum_to(b, mu_mul(b, c->gy[0], next), grad_in(c, 1));
}

static void g_zeta(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), q = grad_in(c, 1);
	struct mu_out slope = mu_neg(b, mu_mul(b, x, op2(b, "Zeta", grad_add_number(b, x, 1), q)));

	c->gx[1] = grad_sum_to(b, mu_mul(b, c->gy[0], slope), q);
}

static void g_cast(struct grad_call *c)
{
	enum mu_dtype from = mu_dtype_base(mu_out_dtype(c->b, grad_in(c, 0)));

	if (grad_is_trainable(from))
		c->gx[0] = mu_cast(c->b, c->gy[0], from);
}

static void g_add_n(struct grad_call *c)
{
	for (unsigned i = 0; i < c->node->n_inputs; i++)
		c->gx[i] = c->gy[0];
}

static void g_select(struct grad_call *c)
{
	struct mu_out cond = grad_in(c, 0), g = c->gy[0], zeros = grad_zeros(c->b, g);

	c->gx[1] = mu_op(c->b, "Select", MU_IN(cond, g, zeros));
	c->gx[2] = mu_op(c->b, "Select", MU_IN(cond, zeros, g));
}

static void g_select_v2(struct grad_call *c)
{
	struct mu_out cond = grad_in(c, 0), g = c->gy[0], zeros = grad_zeros(c->b, g);

	c->gx[1] = grad_sum_to(c->b, mu_op(c->b, "SelectV2", MU_IN(cond, g, zeros)), grad_in(c, 1));
	c->gx[2] = grad_sum_to(c->b, mu_op(c->b, "SelectV2", MU_IN(cond, zeros, g)), grad_in(c, 2));
}

const struct op_grad grads_of_math[] = {
    {"Abs", g_abs, GRAD_FIRST},
    {"AccumulateNV2", g_add_n, GRAD_FIRST},
    {"Acos", g_acos, GRAD_FIRST},
    {"Acosh", g_acosh, GRAD_FIRST},
    {"Add", g_add, GRAD_FIRST},
    {"AddN", g_add_n, GRAD_FIRST},
    {"AddV2", g_add, GRAD_FIRST},
    {"Asin", g_asin, GRAD_FIRST},
    {"Asinh", g_asinh, GRAD_FIRST},
    {"Atan", g_atan, GRAD_FIRST},
    {"Atan2", g_atan2, GRAD_FIRST},
    {"Atanh", g_atanh, GRAD_FIRST},
    {"Cast", g_cast, GRAD_FIRST},
    {"CheckNumerics", g_check_numerics, GRAD_FIRST},
    {"CheckNumericsV2", g_check_numerics, GRAD_FIRST},
    {"ClipByValue", g_clip, GRAD_FIRST},
    {"Cos", g_cos, GRAD_FIRST},
    {"Cosh", g_cosh, GRAD_FIRST},
    {"Cross", g_cross, GRAD_FIRST},
    {"Digamma", g_digamma, GRAD_FIRST},
    {"Div", g_div, GRAD_FIRST},
    {"DivNoNan", g_div_no_nan, GRAD_FIRST},
    {"EnsureShape", g_pass, GRAD_FIRST},
    {"Erf", g_erf, GRAD_FIRST},
    {"Erfc", g_erfc, GRAD_FIRST},
    {"Exp", g_exp, GRAD_FIRST},
    {"Expm1", g_expm1, GRAD_FIRST},
    {"FloorMod", g_mod, GRAD_FIRST},
    {"GuaranteeConst", g_pass, GRAD_FIRST},
    {"Identity", g_pass, GRAD_FIRST},
    {"Inv", g_reciprocal, GRAD_FIRST},
    {"Lgamma", g_lgamma, GRAD_FIRST},
    {"Log", g_log, GRAD_FIRST},
    {"Log1p", g_log1p, GRAD_FIRST},
    {"Maximum", g_maximum, GRAD_FIRST},
    {"Minimum", g_minimum, GRAD_FIRST},
    {"Mod", g_mod, GRAD_FIRST},
    {"Mul", g_mul, GRAD_FIRST},
    {"MulNoNan", g_mul_no_nan, GRAD_FIRST},
    {"Neg", g_neg, GRAD_FIRST},
    {"PlaceholderWithDefault", g_pass, GRAD_FIRST},
    {"Polygamma", g_polygamma, GRAD_FIRST},
    {"Pow", g_pow, GRAD_FIRST},
    {"Print", g_pass, GRAD_FIRST},
    {"ReadVariableOp", g_pass, GRAD_FIRST},
    {"RealDiv", g_div, GRAD_FIRST},
    {"Reciprocal", g_reciprocal, GRAD_FIRST},
    {"Rsqrt", g_rsqrt, GRAD_FIRST},
    {"Select", g_select, GRAD_FIRST},
    {"SelectV2", g_select_v2, GRAD_FIRST},
    {"Sigmoid", g_sigmoid, GRAD_FIRST},
    {"Sin", g_sin, GRAD_FIRST},
    {"Sinh", g_sinh, GRAD_FIRST},
    {"Snapshot", g_pass, GRAD_FIRST},
    {"Sqrt", g_sqrt, GRAD_FIRST},
    {"Square", g_square, GRAD_FIRST},
    {"SquaredDifference", g_squared_difference, GRAD_FIRST},
    {"Sub", g_sub, GRAD_FIRST},
    {"Tan", g_tan, GRAD_FIRST},
    {"Tanh", g_tanh, GRAD_FIRST},
    {"TruncateMod", g_mod, GRAD_FIRST},
    {"Xdivy", g_xdivy, GRAD_FIRST},
    {"Xlog1py", g_xlog1py, GRAD_FIRST},
    {"Xlogy", g_xlogy, GRAD_FIRST},
    {"Zeta", g_zeta, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
