/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient cases: sequences, decompositions, special functions and quantization. */
#ifndef MU_TESTS_CLIENT_GRADIENT_CASES_NUMERIC_H
#define MU_TESTS_CLIENT_GRADIENT_CASES_NUMERIC_H

#include "tests/client/gradient.h"

/* An LSTM of three time steps, batch 2, two inputs and two cells. x is input `at`. Returns the sum
 * of two outputs. */
static struct mu_out block_lstm(struct mu_builder *b, const char *op, struct mu_out x, int at)
{
	struct mu_node_attr attrs[] = {MU_A_BOOL("use_peephole", true), MU_A_FLOAT("cell_clip", 9)};
	struct mu_out in[] = {long_ints(b, mu_const_int(b, MU_INT32, 3)),
			      mu_reshape(b, values(b, 6, 2, 0), ints(b, 3, (int32_t[]){3, 2, 2})),
			      values(b, 2, 2, 1),
			      values(b, 2, 2, 2),
			      values(b, 4, 8, 3),
			      row(b, 2),
			      row(b, 2),
			      row(b, 2),
			      row(b, 8)};
	struct mu_out y;

	in[at] = x;
	y = mu_op_add(
	    b, &(struct mu_op_args){.op = op, .in = in, .n_in = 9, .attrs = attrs, .n_attrs = 2});
	return mu_add(b, mu_port(y, 6), mu_square(b, mu_port(y, 1)));
}
CASE(y_blocklstm, block_lstm(b, "BlockLSTM", x, 1))
CASE(y_blocklstm_cells, block_lstm(b, "BlockLSTM", x, 2))
CASE(y_blocklstm_weights, block_lstm(b, "BlockLSTM", x, 4))
CASE(y_blocklstmv2, block_lstm(b, "BlockLSTMV2", x, 1))
CASE(y_blocklstmv2_before, block_lstm(b, "BlockLSTMV2", x, 3))
CASE(y_blocklstmv2_peephole, block_lstm(b, "BlockLSTMV2", x, 6))
CASE(y_ctcloss, mu_op(b, "CTCLoss",
		      MU_IN(x, long_ints(b, table(b, 3, 2, (int32_t[]){0, 0, 0, 1, 1, 0})),
			    ints(b, 3, (int32_t[]){1, 1, 0}), ints(b, 2, (int32_t[]){5, 3}))))

/* x xᵀ plus a multiple of the identity: positive definite and well conditioned. */
static struct mu_out positive(struct mu_builder *b, struct mu_out x)
{
	struct mu_out diagonal =
	    mu_op(b, "MatrixDiag", MU_IN(mu_add(b, mu_square(b, row(b, 3)), row(b, 3))));

	return mu_add(b, mu_op(b, "BatchMatMulV2", MU_IN(x, x), MU_ATTRS(MU_A_BOOL("adj_y", true))),
		      mu_add(b, diagonal, mu_square(b, diagonal)));
}
/* The eigenvalues, or a function of the eigenvectors that does not depend on their signs. */
static struct mu_out eigen(struct mu_builder *b, struct mu_out x, bool vectors)
{
	struct mu_out y = mu_op(b, "SelfAdjointEigV2", MU_IN(positive(b, x)),
				MU_ATTRS(MU_A_BOOL("compute_v", vectors)));

	return vectors ? mu_square(b, mu_port(y, 1)) : y;
}
/* v vᵀ for the eigenvectors of the identity matrix, whose eigenvalues are equal. */
static struct mu_out y_equal_eigenvalues(struct mu_builder *b, struct mu_out x)
{
	struct mu_out one =
	    mu_op(b, "MatrixDiag", MU_IN(mu_cast(b, ints(b, 2, (int32_t[]){1, 1}), MU_FLOAT)));
	struct mu_out y =
	    mu_op(b, "SelfAdjointEigV2", MU_IN(mu_add(b, mu_mul(b, x, mu_const_float(b, 0)), one)));

	return mu_add(b, x,
		      mu_op(b, "MatMul", MU_IN(mu_port(y, 1), mu_port(y, 1)),
			    MU_ATTRS(MU_A_BOOL("transpose_b", true))));
}
#define ADJOINT(v) MU_ATTRS(MU_A_BOOL("adjoint", v))
CASE(y_cholesky, mu_op(b, "Cholesky", MU_IN(positive(b, x))))
CASE(y_inverse, mu_op(b, "MatrixInverse", MU_IN(positive(b, x)), ADJOINT(false)))
CASE(y_inverse_adjoint,
     mu_op(b, "MatrixInverse", MU_IN(mu_add(b, x, positive(b, x))), ADJOINT(true)))
CASE(y_determinant, mu_op(b, "MatrixDeterminant", MU_IN(positive(b, x))))
CASE(y_logdeterminant, mu_port(mu_op(b, "LogMatrixDeterminant", MU_IN(positive(b, x))), 1))
CASE(y_solve, mu_op(b, "MatrixSolve", MU_IN(mu_add(b, x, positive(b, x)), x), ADJOINT(false)))
CASE(y_solve_adjoint,
     mu_op(b, "MatrixSolve", MU_IN(mu_add(b, x, positive(b, x)), x), ADJOINT(true)))
CASE(y_eigenvalues, eigen(b, x, false))
CASE(y_eigenvectors, eigen(b, x, true))

CASE(y_betainc, mu_op(b, "Betainc",
		      MU_IN(mu_square(b, mu_add(b, row(b, 4), mu_const_float(b, 3))),
			    mu_square(b, row(b, 4)), x)))

/* Quantized to 16 bits, much finer than the step of the differences. Some values of x are out of
 * range. */
#define ENDS(n) mu_neg(b, row(b, n)), row(b, n)
#define BITS    MU_ATTRS(MU_A_INT("num_bits", 16))
#define GIVEN   MU_ATTRS(MU_A_INT("num_bits", 16), MU_A_BOOL("range_given", true))
#define ALONG                                                                                      \
	MU_ATTRS(MU_A_INT("num_bits", 16), MU_A_BOOL("range_given", true), MU_A_INT("axis", 1))
CASE(y_fake_args, mu_op(b, "FakeQuantWithMinMaxArgs", MU_IN(x), BITS))
CASE(y_fake_vars, mu_op(b, "FakeQuantWithMinMaxVars",
			MU_IN(x, mu_const_float(b, -1.05f), mu_const_float(b, 1.05f)), BITS))
CASE(y_fake_max, mu_op(b, "FakeQuantWithMinMaxVars",
		       MU_IN(mu_const_float(b, 9), mu_const_float(b, 0), x), BITS))
CASE(y_fake_channels, mu_op(b, "FakeQuantWithMinMaxVarsPerChannel", MU_IN(x, ENDS(4)), BITS))
CASE(y_quantize_v2, mu_op(b, "QuantizeAndDequantizeV2",
			  MU_IN(x, mu_const_float(b, -3), mu_const_float(b, 3)), GIVEN))
CASE(y_quantize_v3,
     mu_op(b, "QuantizeAndDequantizeV3",
	   MU_IN(x, mu_const_float(b, -3), mu_const_float(b, 3), mu_const_int(b, MU_INT32, 16))))
CASE(y_quantize_v4, mu_op(b, "QuantizeAndDequantizeV4", MU_IN(x, ENDS(4)), ALONG))

/* y = op(x) */
static const struct named_op special[] = {
    {"BesselI0", -2, 2},   {"BesselI0e", 0.2f, 2},  {"BesselI1", 0.2f, 2}, {"BesselI1e", 0.2f, 2},
    {"BesselJ0", -2, 2},   {"BesselJ1", 0.2f, 2},   {"BesselK0", 0.5f, 2}, {"BesselK0e", 0.5f, 2},
    {"BesselK1", 0.5f, 2}, {"BesselK1e", 0.5f, 2},  {"BesselY0", 0.5f, 2}, {"BesselY1", 0.5f, 2},
    {"Dawsn", -2, 2},      {"Erfinv", -0.8f, 0.8f}, {"Expint", 0.5f, 2},   {"FresnelCos", -1, 1},
    {"FresnelSin", -1, 1}, {"Ndtri", 0.2f, 0.8f},   {"Spence", 1.1f, 3},
};

static const struct gradient_case numeric_cases[] = {
    {"Betainc", {1, {4}}, y_betainc, 0.2f, 0.8f},
    {"Cholesky", {3, {2, 3, 3}}, y_cholesky, -1, 1},
    {"MatrixInverse", {3, {2, 3, 3}}, y_inverse, -1, 1},
    {"MatrixInverse, adjoint", {2, {3, 3}}, y_inverse_adjoint, -1, 1},
    {"MatrixDeterminant", {3, {2, 3, 3}}, y_determinant, -1, 1},
    {"LogMatrixDeterminant", {3, {2, 3, 3}}, y_logdeterminant, -1, 1},
    {"MatrixSolve", {2, {3, 3}}, y_solve, -1, 1},
    {"MatrixSolve, adjoint", {2, {3, 3}}, y_solve_adjoint, -1, 1},
    {"SelfAdjointEigV2", {3, {2, 3, 3}}, y_eigenvalues, -1, 1},
    {"SelfAdjointEigV2, vectors", {2, {3, 3}}, y_eigenvectors, -1, 1},
    {"SelfAdjointEigV2, equal eigenvalues", {2, {2, 2}}, y_equal_eigenvalues, -1, 1},
    {"BlockLSTM", {3, {3, 2, 2}}, y_blocklstm, -1, 1},
    {"BlockLSTM, cells", {2, {2, 2}}, y_blocklstm_cells, -1, 1},
    {"BlockLSTM, weights", {2, {4, 8}}, y_blocklstm_weights, -1, 1},
    {"BlockLSTMV2", {3, {3, 2, 2}}, y_blocklstmv2, -1, 1},
    {"BlockLSTMV2, previous output", {2, {2, 2}}, y_blocklstmv2_before, -1, 1},
    {"BlockLSTMV2, a peephole", {1, {2}}, y_blocklstmv2_peephole, -1, 1},
    {"FakeQuantWithMinMaxArgs", {2, {3, 4}}, y_fake_args, -2, 2},
    {"FakeQuantWithMinMaxVars", {2, {3, 4}}, y_fake_vars, -2, 2},
    {"FakeQuantWithMinMaxVars, a bound", {0, {0}}, y_fake_max, 1, 2},
    {"FakeQuantWithMinMaxVarsPerChannel", {2, {3, 4}}, y_fake_channels, -2, 2},
    {"QuantizeAndDequantizeV2", {2, {3, 4}}, y_quantize_v2, -2, 2},
    {"QuantizeAndDequantizeV3", {2, {3, 4}}, y_quantize_v3, -2, 2},
    {"QuantizeAndDequantizeV4, by channel", {2, {3, 4}}, y_quantize_v4, -2, 2},
    {"CTCLoss", {3, {5, 2, 4}}, y_ctcloss, -1, 1},
};

#endif
