/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient cases: element-wise ops, sums and reductions. */
#ifndef MU_TESTS_CLIENT_GRADIENT_CASES_MATH_H
#define MU_TESTS_CLIENT_GRADIENT_CASES_MATH_H

#include "tests/client/gradient.h"

CASE(y_add, mu_add(b, x, values(b, 3, 4, 1)))
CASE(y_add_row, mu_add(b, x, row(b, 4)))
CASE(y_row_add, mu_add(b, values(b, 3, 4, 1), x))
CASE(y_add_v1, mu_op(b, "Add", MU_IN(x, row(b, 4))))
CASE(y_add_n, mu_op(b, "AddN", MU_IN(x, mu_square(b, x), x)))
CASE(y_sub_row, mu_sub(b, row(b, 4), x))
CASE(y_sub_scalar, mu_sub(b, x, mu_const_float(b, 3)))
CASE(y_mul, mu_mul(b, x, x))
CASE(y_mul_row, mu_mul(b, values(b, 3, 4, 1), x))
CASE(y_div, mu_div(b, x, values(b, 3, 4, 1)))
CASE(y_div_by, mu_div(b, values(b, 3, 4, 1), x))
CASE(y_neg, mu_neg(b, x))
CASE(y_square, mu_square(b, x))
CASE(y_exp, mu_exp(b, x))
CASE(y_log, mu_ln(b, x))
CASE(y_tanh, mu_tanh(b, x))
CASE(y_sigmoid, mu_sigmoid(b, x))
CASE(y_sum, mu_sum(b, x, NULL, 0))
CASE(y_sum_nine,
     mu_sum(b, mu_reshape(b, x, ints(b, 9, (int32_t[]){1, 1, 1, 1, 1, 1, 1, 2, 2})), NULL, 0))
CASE(y_sum_rows, mu_sum(b, x, (int32_t[]){0}, 1))
CASE(y_sum_last, mu_sum(b, x, (int32_t[]){-1}, 1))
CASE(y_mean, mu_mean(b, x, NULL, 0))
CASE(y_mean_last, mu_mean(b, x, (int32_t[]){1}, 1))
CASE(y_cast, mu_cast(b, mu_square(b, mu_cast(b, x, MU_DOUBLE)), MU_FLOAT))
CASE(y_max, mu_op(b, "Max", MU_IN(x, ints(b, 1, (int32_t[]){-1}))))
CASE(y_max_keep_dims,
     mu_op(b, "Max", MU_IN(x, ints(b, 1, (int32_t[]){0})), MU_ATTRS(MU_A_BOOL("keep_dims", true))))
CASE(y_min, mu_op(b, "Min", MU_IN(x, ints(b, 1, (int32_t[]){-1}))))
CASE(y_min_keep_dims,
     mu_op(b, "Min", MU_IN(x, ints(b, 1, (int32_t[]){0})), MU_ATTRS(MU_A_BOOL("keep_dims", true))))
CASE(y_prod, mu_op(b, "Prod", MU_IN(x, ints(b, 1, (int32_t[]){-1}))))
CASE(y_prod_keep_dims,
     mu_op(b, "Prod", MU_IN(x, ints(b, 1, (int32_t[]){0})), MU_ATTRS(MU_A_BOOL("keep_dims", true))))
CASE(y_euclideannorm, mu_op(b, "EuclideanNorm", MU_IN(x, ints(b, 1, (int32_t[]){-1}))))
CASE(y_euclideannorm_keep_dims, mu_op(b, "EuclideanNorm", MU_IN(x, ints(b, 1, (int32_t[]){0})),
				      MU_ATTRS(MU_A_BOOL("keep_dims", true))))
CASE(y_prod_with_a_zero,
     mu_op(b, "Prod",
	   MU_IN(mu_mul(b, x, mu_cast(b, table(b, 2, 3, (int32_t[]){1, 0, 1, 1, 1, 1}), MU_FLOAT)),
		 ints(b, 1, (int32_t[]){1}))))
CASE(y_l2loss, mu_op(b, "L2Loss", MU_IN(x)))
CASE(y_select, mu_op(b, "Select",
		     MU_IN(mu_op(b, "Greater", MU_IN(values(b, 3, 4, 0), mu_const_float(b, 1.5f))),
			   x, mu_square(b, x))))
CASE(y_selectv2,
     mu_op(b, "SelectV2",
	   MU_IN(mu_op(b, "Greater", MU_IN(values(b, 3, 4, 0), mu_const_float(b, 1.5f))), x,
		 values(b, 3, 4, 1))))
CASE(y_cast_half, mu_cast(b, mu_cast(b, x, MU_DOUBLE), MU_FLOAT))
CASE(y_accumulatenv2, mu_op(b, "AccumulateNV2", MU_IN(x, mu_square(b, x)),
			    MU_ATTRS(MU_A_SHAPE("shape", &MU_SHAPE(3, 4)))))
CASE(y_floormod, mu_op(b, "FloorMod", MU_IN(x, mu_const_float(b, 0.4f))))
CASE(y_floormod_divisor, mu_op(b, "FloorMod", MU_IN(mu_const_float(b, 5), x)))
CASE(y_mod, mu_op(b, "Mod", MU_IN(x, mu_const_float(b, 0.4f))))
CASE(y_mod_divisor, mu_op(b, "Mod", MU_IN(mu_const_float(b, 5), x)))
CASE(y_truncatemod, mu_op(b, "TruncateMod", MU_IN(x, mu_const_float(b, 0.4f))))
CASE(y_truncatemod_divisor, mu_op(b, "TruncateMod", MU_IN(mu_const_float(b, 5), x)))
CASE(y_polygamma, mu_op(b, "Polygamma", MU_IN(mu_const_float(b, 2), x)))
CASE(y_zeta, mu_op(b, "Zeta", MU_IN(mu_const_float(b, 2.5f), x)))
CASE(y_cumsum, mu_op(b, "Cumsum", MU_IN(x, mu_const_int(b, MU_INT32, 1))))
CASE(y_cumsum_exclusive, mu_op(b, "Cumsum", MU_IN(x, mu_const_int(b, MU_INT32, 0)),
			       MU_ATTRS(MU_A_BOOL("exclusive", true), MU_A_BOOL("reverse", true))))
CASE(y_cumprod, mu_op(b, "Cumprod", MU_IN(x, mu_const_int(b, MU_INT32, 1))))
CASE(y_cumprod_exclusive, mu_op(b, "Cumprod", MU_IN(x, mu_const_int(b, MU_INT32, 0)),
				MU_ATTRS(MU_A_BOOL("exclusive", true), MU_A_BOOL("reverse", true))))

static const struct gradient_case math_cases[] = {
    {"AddV2", {2, {3, 4}}, y_add, -1, 1},
    {"AddV2, broadcasts the other", {2, {-1, 4}}, y_add_row, -1, 1},
    {"AddV2, broadcast", {1, {4}}, y_row_add, -1, 1},
    {"Add", {2, {-1, 4}}, y_add_v1, -1, 1},
    {"AddN", {2, {3, 4}}, y_add_n, -1, 1},
    {"Sub", {2, {-1, 4}}, y_sub_row, -1, 1},
    {"Sub, scalar", {2, {3, 4}}, y_sub_scalar, -1, 1},
    {"Mul, twice the same", {2, {3, 4}}, y_mul, -1, 1},
    {"Mul, broadcast", {1, {4}}, y_mul_row, -1, 1},
    {"RealDiv", {2, {3, 4}}, y_div, -1, 1},
    {"RealDiv, divisor", {1, {4}}, y_div_by, 1, 2},
    {"Neg", {2, {3, 4}}, y_neg, -1, 1},
    {"Square", {2, {3, 4}}, y_square, -1, 1},
    {"Exp", {2, {3, 4}}, y_exp, -1, 1},
    {"Log", {2, {3, 4}}, y_log, 1, 2},
    {"Tanh", {2, {3, 4}}, y_tanh, -1, 1},
    {"Sigmoid", {2, {3, 4}}, y_sigmoid, -1, 1},
    {"Sum", {2, {-1, 4}}, y_sum, -1, 1},
    {"Sum, rows", {2, {-1, 4}}, y_sum_rows, -1, 1},
    {"Sum, last", {2, {-1, 4}}, y_sum_last, -1, 1},
    {"Mean", {2, {-1, 4}}, y_mean, -1, 1},
    {"Mean, last", {2, {-1, 4}}, y_mean_last, -1, 1},
    {"Cast", {2, {3, 4}}, y_cast, -1, 1},
    {"Sum, nine axes", {1, {4}}, y_sum_nine, -1, 1},
    {"Max", {2, {3, 4}}, y_max, 0.5f, 2},
    {"Max, keep_dims", {2, {3, 4}}, y_max_keep_dims, 0.5f, 2},
    {"Min", {2, {3, 4}}, y_min, 0.5f, 2},
    {"Min, keep_dims", {2, {3, 4}}, y_min_keep_dims, 0.5f, 2},
    {"Prod", {2, {3, 4}}, y_prod, 0.5f, 2},
    {"Prod, keep_dims", {2, {3, 4}}, y_prod_keep_dims, 0.5f, 2},
    {"EuclideanNorm", {2, {3, 4}}, y_euclideannorm, 0.5f, 2},
    {"EuclideanNorm, keep_dims", {2, {3, 4}}, y_euclideannorm_keep_dims, 0.5f, 2},
    {"Prod, with a zero", {2, {2, 3}}, y_prod_with_a_zero, 0.5f, 2},
    {"L2Loss", {2, {3, 4}}, y_l2loss, -1, 1},
    {"Select", {2, {3, 4}}, y_select, -1, 1},
    {"SelectV2", {1, {4}}, y_selectv2, -1, 1},
    {"Cast, half", {1, {3}}, y_cast_half, 0.5f, 2},
    {"AccumulateNV2", {2, {3, 4}}, y_accumulatenv2, -1, 1},
    {"FloorMod", {2, {3, 4}}, y_floormod, 0.85f, 1.15f},
    {"FloorMod, divisor", {2, {3, 4}}, y_floormod_divisor, 1.7f, 2.4f},
    {"Mod", {2, {3, 4}}, y_mod, 0.85f, 1.15f},
    {"Mod, divisor", {2, {3, 4}}, y_mod_divisor, 1.7f, 2.4f},
    {"TruncateMod", {2, {3, 4}}, y_truncatemod, 0.85f, 1.15f},
    {"TruncateMod, divisor", {2, {3, 4}}, y_truncatemod_divisor, 1.7f, 2.4f},
    {"Cumsum", {2, {3, 4}}, y_cumsum, -1, 1},
    {"Cumsum, exclusive and reverse", {2, {3, 4}}, y_cumsum_exclusive, -1, 1},
    {"Cumprod", {2, {3, 4}}, y_cumprod, 0.5f, 2},
    {"Cumprod, exclusive and reverse", {2, {3, 4}}, y_cumprod_exclusive, 0.5f, 2},
    {"Polygamma", {2, {3, 4}}, y_polygamma, 1.5f, 4},
    {"Zeta", {2, {3, 4}}, y_zeta, 1, 4},
};

/* y = op(x) */
static const struct named_op unary[] = {
    {"Abs", -1, 1},      {"Acos", -0.8f, 0.8f}, {"Acosh", 1.3f, 2},      {"Asin", -0.8f, 0.8f},
    {"Asinh", -1, 1},    {"Atan", -1, 1},       {"Atanh", -0.8f, 0.8f},  {"Cos", -1, 1},
    {"Cosh", -1, 1},     {"Erf", -1, 1},        {"Erfc", -1, 1},         {"Expm1", -1, 1},
    {"Inv", 0.5f, 2},    {"Log1p", -0.5f, 1},   {"Reciprocal", 0.5f, 2}, {"Rsqrt", 0.5f, 2},
    {"Sin", -1, 1},      {"Sinh", -1, 1},       {"Sqrt", 0.5f, 2},       {"Tan", -1, 1},
    {"Relu6", 1, 8},     {"Elu", -1, 1},        {"Selu", -1, 1},         {"Softplus", -1, 1},
    {"Softsign", -1, 1}, {"Lgamma", 0.8f, 3},   {"Digamma", 0.8f, 3},
};
/* y = op(x, other) and op(other, x), with equal and with broadcast shapes */
static const struct named_op binary[] = {
    {"Atan2", 0.5f, 2},      {"Div", 0.5f, 2},
    {"DivNoNan", 0.5f, 2},   {"Maximum", 0.5f, 2.3f},
    {"Minimum", 0.5f, 2.3f}, {"MulNoNan", 0.5f, 2},
    {"Pow", 0.5f, 2},        {"SquaredDifference", 0.5f, 2},
    {"Xdivy", 0.5f, 2},      {"Xlog1py", 0.5f, 2},
    {"Xlogy", 0.5f, 2},      {"Igamma", 0.6f, 2.5f},
    {"Igammac", 0.6f, 2.5f},
};
/* second derivatives: as above, without broadcasting */
static const struct named_op seconds[] = {
    {"SigmoidGrad", 0.1f, 0.9f}, {"TanhGrad", -0.9f, 0.9f}, {"SqrtGrad", 0.5f, 2},
    {"RsqrtGrad", 0.5f, 2},      {"InvGrad", 0.5f, 2},      {"ReciprocalGrad", 0.5f, 2},
    {"ReluGrad", -1, 1},         {"Relu6Grad", -1, 1},      {"EluGrad", -1, 1},
    {"SeluGrad", -1, 1},         {"SoftplusGrad", -1, 1},   {"SoftsignGrad", -1, 1},
};

#endif
