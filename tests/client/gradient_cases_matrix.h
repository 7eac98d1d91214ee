/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient cases: matrix products, Einsum, diagonals and solvers. */
#ifndef MU_TESTS_CLIENT_GRADIENT_CASES_MATRIX_H
#define MU_TESTS_CLIENT_GRADIENT_CASES_MATRIX_H

#include "tests/client/gradient.h"

CASE(y_matmul, mu_matmul(b, x, values(b, 4, 2, 0)))
CASE(y_sparse_matmul, mu_op(b, "SparseMatMul", MU_IN(x, values(b, 2, 4, 0)),
			    MU_ATTRS(MU_A_BOOL("transpose_b", true))))
CASE(y_sparse_matmul_bfloat16,
     mu_op(b, "SparseMatMul", MU_IN(mu_cast(b, values(b, 2, 3, 0), MU_BFLOAT16), x)))
CASE(y_matmul_right, mu_matmul(b, values(b, 2, 3, 0), x))
CASE(y_matmul_ta, mu_matmul_t(b, x, true, values(b, 3, 2, 0), false))
CASE(y_matmul_tb, mu_matmul_t(b, x, false, values(b, 2, 4, 0), true))
CASE(y_matmul_tab, mu_matmul_t(b, x, true, values(b, 2, 3, 0), true))
CASE(y_matmul_tab_right, mu_matmul_t(b, values(b, 4, 2, 0), true, x, true))
CASE(y_diagpart, mu_op(b, "DiagPart", MU_IN(x)))
CASE(y_batchmatmul,
     mu_op(b, "BatchMatMul",
	   MU_IN(x, mu_reshape(b, values(b, 4, 6, 0), ints(b, 3, (int32_t[]){2, 4, 3}))),
	   MU_ATTRS(MU_A_BOOL("adj_x", false), MU_A_BOOL("adj_y", false))))
CASE(y_batchmatmul_transposed,
     mu_op(b, "BatchMatMul",
	   MU_IN(mu_reshape(b, values(b, 4, 6, 0), ints(b, 3, (int32_t[]){2, 3, 4})), x),
	   MU_ATTRS(MU_A_BOOL("adj_x", true), MU_A_BOOL("adj_y", true))))
CASE(y_batchmatmulv2_broadcast,
     mu_op(b, "BatchMatMulV2",
	   MU_IN(mu_reshape(b, values(b, 4, 6, 0), ints(b, 3, (int32_t[]){2, 3, 4})), x),
	   MU_ATTRS(MU_A_BOOL("adj_x", false), MU_A_BOOL("adj_y", false))))
CASE(y_batchmatmulv2_matrix,
     mu_op(b, "BatchMatMulV2",
	   MU_IN(x, mu_reshape(b, values(b, 4, 6, 0), ints(b, 3, (int32_t[]){2, 4, 3}))),
	   MU_ATTRS(MU_A_BOOL("adj_x", false), MU_A_BOOL("adj_y", false))))
CASE(y_batchmatmulv3,
     mu_op(b, "BatchMatMulV3",
	   MU_IN(x, mu_reshape(b, values(b, 4, 6, 0), ints(b, 3, (int32_t[]){2, 3, 4}))),
	   MU_ATTRS(MU_A_BOOL("adj_x", false), MU_A_BOOL("adj_y", true),
		    MU_A_TYPE("Tout", MU_FLOAT))))
CASE(y_matrixdiag, mu_op(b, "MatrixDiag", MU_IN(x)))
CASE(y_matrixdiagpart, mu_op(b, "MatrixDiagPart", MU_IN(x)))
CASE(y_matrixsetdiag, mu_op(b, "MatrixSetDiag", MU_IN(x, values(b, 2, 3, 0))))
CASE(y_matrixsetdiag_diagonal,
     mu_op(b, "MatrixSetDiag",
	   MU_IN(mu_reshape(b, values(b, 6, 4, 0), ints(b, 3, (int32_t[]){2, 3, 4})), x)))
CASE(y_matrixdiagv3, mu_op(b, "MatrixDiagV3",
			   MU_IN(x, ints(b, 2, (int32_t[]){-1, 1}), mu_const_int(b, MU_INT32, 3),
				 mu_const_int(b, MU_INT32, 4), mu_const_float(b, 7))))
CASE(y_matrixdiagv3_padding_value,
     mu_op(b, "MatrixDiagV3",
	   MU_IN(values(b, 3, 3, 0), ints(b, 2, (int32_t[]){-1, 1}), mu_const_int(b, MU_INT32, 3),
		 mu_const_int(b, MU_INT32, 4), mu_reshape(b, x, ints(b, 0, NULL)))))
CASE(y_matrixdiagpartv3,
     mu_op(b, "MatrixDiagPartV3", MU_IN(x, ints(b, 2, (int32_t[]){-1, 1}), mu_const_float(b, 7)),
	   MU_ATTRS(MU_A_STR("align", "LEFT_RIGHT"))))
CASE(y_matrixdiagpartv3_padding_value,
     mu_op(b, "MatrixDiagPartV3",
	   MU_IN(values(b, 3, 4, 0), ints(b, 2, (int32_t[]){-1, 1}),
		 mu_reshape(b, x, ints(b, 0, NULL)))))
CASE(y_matrixsetdiagv3,
     mu_op(b, "MatrixSetDiagV3", MU_IN(x, values(b, 2, 3, 0), ints(b, 2, (int32_t[]){0, 1}))))
CASE(y_matrixsetdiagv3_diagonal,
     mu_op(b, "MatrixSetDiagV3", MU_IN(values(b, 3, 4, 0), x, ints(b, 2, (int32_t[]){0, 1}))))
CASE(y_matrixdiagv2, mu_op(b, "MatrixDiagV2",
			   MU_IN(x, ints(b, 2, (int32_t[]){-1, 1}), mu_const_int(b, MU_INT32, 3),
				 mu_const_int(b, MU_INT32, 4), mu_const_float(b, 7))))
CASE(y_matrixdiagpartv2,
     mu_op(b, "MatrixDiagPartV2", MU_IN(x, ints(b, 2, (int32_t[]){-1, 1}), mu_const_float(b, 7))))
CASE(y_matrixsetdiagv2,
     mu_op(b, "MatrixSetDiagV2", MU_IN(x, values(b, 2, 3, 0), ints(b, 2, (int32_t[]){0, 1}))))
CASE(y_cross, mu_op(b, "Cross", MU_IN(x, values(b, 4, 3, 0))))
CASE(y_cross_second, mu_op(b, "Cross", MU_IN(values(b, 4, 3, 0), x)))

/* A sparse product with a 3 x 4 matrix A that has the values at (0, 1), (2, 3) and (2, 0). */
static struct mu_out sparse_product(struct mu_builder *b, struct mu_out values_of_a,
				    struct mu_out right, bool turn_a, bool turn_b)
{
	return mu_op(b, "SparseTensorDenseMatMul",
		     MU_IN(long_ints(b, table(b, 3, 2, (int32_t[]){0, 1, 2, 3, 2, 0})), values_of_a,
			   long_ints(b, ints(b, 2, (int32_t[]){3, 4})), right),
		     MU_ATTRS(MU_A_BOOL("adjoint_a", turn_a), MU_A_BOOL("adjoint_b", turn_b)));
}

CASE(y_sparseproduct, sparse_product(b, x, values(b, 4, 2, 0), false, false))
CASE(y_sparseproduct_transposed, sparse_product(b, x, values(b, 2, 3, 0), true, true))
CASE(y_sparseproduct_right, sparse_product(b, row(b, 3), x, false, false))
CASE(y_sparseproduct_right_transposed, sparse_product(b, row(b, 3), x, true, true))
CASE(y_band, mu_op(b, "MatrixBandPart",
		   MU_IN(x, long_ints(b, mu_const_int(b, MU_INT32, 1)),
			 long_ints(b, mu_const_int(b, MU_INT32, 0)))))

/* Solves a triangular system; the other triangle is ignored. */
static struct mu_out solved(struct mu_builder *b, struct mu_out a, struct mu_out x, bool lower,
			    bool adjoint)
{
	return mu_op(b, "MatrixTriangularSolve", MU_IN(a, x),
		     MU_ATTRS(MU_A_BOOL("lower", lower), MU_A_BOOL("adjoint", adjoint)));
}

static struct mu_out of_bands(struct mu_builder *b, struct mu_out bands, struct mu_out right,
			      bool lower, bool adjoint)
{
	return mu_op(b, "BandedTriangularSolve", MU_IN(bands, right),
		     MU_ATTRS(MU_A_BOOL("lower", lower), MU_A_BOOL("adjoint", adjoint)));
}

CASE(y_banded, of_bands(b, x, values(b, 4, 2, 0), true, false))
CASE(y_banded_upper, of_bands(b, x, values(b, 4, 2, 0), false, false))
CASE(y_banded_transposed, of_bands(b, x, values(b, 4, 2, 0), true, true))
CASE(y_banded_upper_transposed, of_bands(b, x, values(b, 4, 2, 0), false, true))
CASE(y_triangular, solved(b, x, values(b, 3, 2, 0), true, false))
CASE(y_triangular_upper, solved(b, x, values(b, 3, 2, 0), false, false))
CASE(y_triangular_transposed, solved(b, x, values(b, 3, 2, 0), true, true))
CASE(y_triangular_upper_transposed, solved(b, x, values(b, 3, 2, 0), false, true))
CASE(y_triangular_right,
     solved(b, mu_op(b, "MatrixSetDiag", MU_IN(values(b, 3, 3, 0), row(b, 3))), x, false, true))
/* One matrix for two right-hand sides, and two matrices for one. */
CASE(y_triangular_many,
     solved(b, x, mu_reshape(b, values(b, 6, 2, 0), mu_const_ints(b, (int32_t[]){2, 3, 2}, 3)),
	    true, false))
CASE(y_triangular_many_right,
     solved(b,
	    mu_op(b, "MatrixSetDiag",
		  MU_IN(mu_reshape(b, values(b, 6, 3, 0),
				   mu_const_ints(b, (int32_t[]){2, 3, 3}, 3)),
			values(b, 2, 3, 0))),
	    x, true, false))

/* Adds a constant to the diagonal, so that the columns are well separated. */
static struct mu_out qr(struct mu_builder *b, struct mu_out x, int diagonal, int output)
{
	struct mu_out eye = mu_op(b, "MatrixDiagPart", MU_IN(x));
	struct mu_out far =
	    mu_op(b, "MatrixSetDiag", MU_IN(x, mu_add(b, eye, mu_const_float(b, (float)diagonal))));

	far = mu_op(b, "EnsureShape", MU_IN(far),
		    MU_ATTRS(MU_A_SHAPE("shape", (void *)mu_out_shape(b, x))));
	return mu_port(mu_op(b, "Qr", MU_IN(far)), output);
}

CASE(y_qr_q, qr(b, x, 3, 0))
CASE(y_qr_r, qr(b, x, 3, 1))

static struct mu_out qr_both(struct mu_builder *b, struct mu_out x)
{
	struct mu_out q = qr(b, x, 3, 0);

	return mu_op(b, "BatchMatMulV2", MU_IN(mu_square(b, q), mu_tanh(b, mu_port(q, 1))));
}

CASE(y_qr_both, qr_both(b, x))

#define EINSUM(equation, ...)                                                                      \
	mu_op(b, "Einsum", MU_IN(__VA_ARGS__), MU_ATTRS(MU_A_STR("equation", equation)))

#define CUBE mu_reshape(b, values(b, 4, 6, 0), ints(b, 3, (int32_t[]){2, 3, 4}))

CASE(y_einsum_left, EINSUM("ab,bc->ca", x, values(b, 3, 4, 0)))
CASE(y_einsum_right, EINSUM("adb,bc->dca", CUBE, x))
CASE(y_einsum_batch, EINSUM("abc,acd->abd", x, CUBE))
CASE(y_einsum_reduced, EINSUM("abc,ad->d", x, values(b, 2, 5, 0)))
CASE(y_einsum_dots, EINSUM("...ab,...bc->...ca", x, CUBE))
CASE(y_einsum_dots_of_one, EINSUM("a...->...", x))
CASE(y_einsum_layer, EINSUM("...ij,jk->...ik", x, values(b, 4, 2, 0)))
CASE(y_einsum_layer_weights, EINSUM("...ij,jk->...ik", CUBE, x))
CASE(y_einsum_dots_within, EINSUM("i...j,...jk->ki...", x, values(b, 4, 2, 0)))
CASE(y_einsum_dots_stretched, EINSUM("i...j,...jk->i...k", CUBE, x))
CASE(y_einsum_dots_shorter, EINSUM("...j,...->...", CUBE, x))
CASE(y_einsum_dots_of_other, EINSUM("i,...jk->ij...", x, CUBE))
CASE(y_einsum_dots_summed, EINSUM("...ij,kl->...ik", CUBE, x))
CASE(y_einsum_transposed, EINSUM("abc->cab", x))
CASE(y_einsum_summed, EINSUM("abc->b", x))
CASE(y_einsum_diagonal, EINSUM("aab->ba", x))
CASE(y_einsum_trace, EINSUM("aa->", x))
CASE(y_einsum_to_diagonal, EINSUM("ab->aba", x))
CASE(y_einsum_square, EINSUM("ab,cb->ac", x, x))
CASE(y_diag, mu_op(b, "Diag", MU_IN(x)))

static const struct gradient_case matrix_cases[] = {
    {"MatMul", {2, {3, 4}}, y_matmul, -1, 1},
    {"SparseMatMul, bfloat16 and float", {2, {3, 4}}, y_sparse_matmul_bfloat16, -1, 1},
    {"SparseMatMul", {2, {3, 4}}, y_sparse_matmul, -1, 1},
    {"MatMul, right", {2, {3, 4}}, y_matmul_right, -1, 1},
    {"MatMul, transpose_a", {2, {3, 4}}, y_matmul_ta, -1, 1},
    {"MatMul, transpose_b", {2, {3, 4}}, y_matmul_tb, -1, 1},
    {"MatMul, both transposed", {2, {3, 4}}, y_matmul_tab, -1, 1},
    {"MatMul, both transposed, right", {2, {3, 4}}, y_matmul_tab_right, -1, 1},
    {"DiagPart", {2, {4, 4}}, y_diagpart, -1, 1},
    {"Diag", {1, {4}}, y_diag, -1, 1},
    {"BatchMatMul", {3, {2, 3, 4}}, y_batchmatmul, -1, 1},
    {"BatchMatMul, transposed", {3, {2, 4, 3}}, y_batchmatmul_transposed, -1, 1},
    {"BatchMatMulV2, broadcast", {3, {1, 4, 3}}, y_batchmatmulv2_broadcast, -1, 1},
    {"BatchMatMulV2, matrix", {2, {3, 4}}, y_batchmatmulv2_matrix, -1, 1},
    {"BatchMatMulV3", {3, {2, 3, 4}}, y_batchmatmulv3, -1, 1},
    {"BandedTriangularSolve", {2, {2, 4}}, y_banded, 1, 2},
    {"BandedTriangularSolve, upper", {2, {2, 4}}, y_banded_upper, 1, 2},
    {"BandedTriangularSolve, transposed", {2, {3, 4}}, y_banded_transposed, 1, 2},
    {"BandedTriangularSolve, batch", {3, {2, 2, 4}}, y_banded_upper_transposed, 1, 2},
    {"MatrixTriangularSolve", {2, {3, 3}}, y_triangular, 1, 2},
    {"MatrixTriangularSolve, upper", {2, {3, 3}}, y_triangular_upper, 1, 2},
    {"MatrixTriangularSolve, transposed", {2, {3, 3}}, y_triangular_transposed, 1, 2},
    {"MatrixTriangularSolve, upper, transposed", {2, {3, 3}}, y_triangular_upper_transposed, 1, 2},
    {"MatrixTriangularSolve, right", {2, {3, 2}}, y_triangular_right, -1, 1},
    {"MatrixTriangularSolve, batch", {2, {3, 3}}, y_triangular_many, 1, 2},
    {"MatrixTriangularSolve, many, right", {2, {3, 2}}, y_triangular_many_right, -1, 1},
    {"Qr, q of a square", {2, {3, 3}}, y_qr_q, -1, 1},
    {"Qr, r of a square", {2, {3, 3}}, y_qr_r, -1, 1},
    {"Qr, q, tall", {2, {4, 3}}, y_qr_q, -1, 1},
    {"Qr, r, tall", {2, {4, 3}}, y_qr_r, -1, 1},
    {"Qr, both, tall", {2, {4, 2}}, y_qr_both, -1, 1},
    {"Qr, q, wide", {2, {2, 4}}, y_qr_q, -1, 1},
    {"Qr, r, wide", {2, {2, 4}}, y_qr_r, -1, 1},
    {"Qr, both, wide", {2, {2, 3}}, y_qr_both, -1, 1},
    {"Qr, both, of a batch", {3, {2, 3, 2}}, y_qr_both, -1, 1},
    {"MatrixBandPart", {2, {3, 4}}, y_band, -1, 1},
    {"MatrixDiag", {2, {2, 3}}, y_matrixdiag, -1, 1},
    {"MatrixDiagPart", {3, {2, 3, 4}}, y_matrixdiagpart, -1, 1},
    {"MatrixSetDiag", {3, {2, 3, 4}}, y_matrixsetdiag, -1, 1},
    {"MatrixSetDiag, diagonal", {2, {2, 3}}, y_matrixsetdiag_diagonal, -1, 1},
    {"MatrixDiagV2", {2, {3, 3}}, y_matrixdiagv2, -1, 1},
    {"MatrixDiagPartV2", {2, {3, 4}}, y_matrixdiagpartv2, -1, 1},
    {"MatrixSetDiagV2", {2, {3, 4}}, y_matrixsetdiagv2, -1, 1},
    {"Cross", {2, {4, 3}}, y_cross, -1, 1},
    {"Cross, second input", {2, {4, 3}}, y_cross_second, -1, 1},
    {"MatrixDiagV3", {2, {3, 3}}, y_matrixdiagv3, -1, 1},
    {"MatrixDiagV3, padding value", {1, {1}}, y_matrixdiagv3_padding_value, -1, 1},
    {"MatrixDiagPartV3", {2, {3, 4}}, y_matrixdiagpartv3, -1, 1},
    {"MatrixDiagPartV3, padding value", {1, {1}}, y_matrixdiagpartv3_padding_value, -1, 1},
    {"MatrixSetDiagV3", {2, {3, 4}}, y_matrixsetdiagv3, -1, 1},
    {"MatrixSetDiagV3, diagonal", {2, {2, 3}}, y_matrixsetdiagv3_diagonal, -1, 1},
    {"SparseTensorDenseMatMul", {1, {3}}, y_sparseproduct, -1, 1},
    {"SparseTensorDenseMatMul, transposed", {1, {3}}, y_sparseproduct_transposed, -1, 1},
    {"SparseTensorDenseMatMul, right", {2, {4, 2}}, y_sparseproduct_right, -1, 1},
    {"SparseTensorDenseMatMul, right transposed",
     {2, {2, 3}},
     y_sparseproduct_right_transposed,
     -1,
     1},
    {"Einsum, left", {2, {2, 3}}, y_einsum_left, -1, 1},
    {"Einsum, right", {2, {4, 3}}, y_einsum_right, -1, 1},
    {"Einsum, batch", {3, {2, 2, 3}}, y_einsum_batch, -1, 1},
    {"Einsum, reduced", {3, {2, 3, 2}}, y_einsum_reduced, -1, 1},
    {"Einsum, dots", {3, {1, 2, 3}}, y_einsum_dots, -1, 1},
    {"Einsum, dots of one", {3, {2, 3, 2}}, y_einsum_dots_of_one, -1, 1},
    {"Einsum, dots of one input", {3, {2, 3, 4}}, y_einsum_layer, -1, 1},
    {"Einsum, dots of the other input", {2, {4, 2}}, y_einsum_layer_weights, -1, 1},
    {"Einsum, dots in the middle", {3, {2, 3, 4}}, y_einsum_dots_within, -1, 1},
    {"Einsum, dots of size 1", {3, {1, 4, 2}}, y_einsum_dots_stretched, -1, 1},
    {"Einsum, dots of lower rank", {1, {3}}, y_einsum_dots_shorter, -1, 1},
    {"Einsum, vector and dots", {1, {3}}, y_einsum_dots_of_other, -1, 1},
    {"Einsum, dots and a summed label", {2, {2, 3}}, y_einsum_dots_summed, -1, 1},
    {"Einsum, transposed", {3, {2, 3, 2}}, y_einsum_transposed, -1, 1},
    {"Einsum, summed", {3, {2, 3, 2}}, y_einsum_summed, -1, 1},
    {"Einsum, diagonal", {3, {3, 3, 2}}, y_einsum_diagonal, -1, 1},
    {"Einsum, trace", {2, {3, 3}}, y_einsum_trace, -1, 1},
    {"Einsum, to diagonal", {2, {3, 2}}, y_einsum_to_diagonal, -1, 1},
    {"Einsum, square", {2, {3, 2}}, y_einsum_square, -1, 1},
};

#endif
