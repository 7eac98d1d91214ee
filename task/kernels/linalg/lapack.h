/* SPDX-License-Identifier: Apache-2.0 */
/* LAPACK routines on one matrix of doubles or, where `z`, of complex doubles.  Matrices are stored
 * by columns, without gaps.  Except where noted, functions return LAPACK's info (0: success,
 * positive: no result for this matrix) or LAPACK_NO_MEMORY, which includes sizes that LAPACK cannot
 * count. No argument may be NaN or infinite where a function iterates: eigh, gesdd, geev, gees,
 * gelsd.
 *
 * tests/bare/blas.c replaces lapack.c in programs without OpenBLAS. */
#ifndef MU_TASK_KERNELS_LINALG_LAPACK_H
#define MU_TASK_KERNELS_LINALG_LAPACK_H

#include <stdbool.h>

enum { LAPACK_NO_MEMORY = -1000 };

/* c (m x n) = op(a) op(b), both with k terms; trans is 'N', 'T' or 'C'. */
void lapack_gemm(bool z, char trans_a, char trans_b, int m, int n, int k, const void *a,
		 const void *b, void *c);
/* b (m x n) becomes op(a)^-1 b, or b op(a)^-1 for side 'R'; a is the triangle `uplo`. */
void lapack_trsm(bool z, char side, char uplo, char trans, int m, int n, const void *a, void *b);
/* Cholesky: a = l l*, in the lower triangle of a. The upper triangle is unchanged. */
int lapack_potrf(bool z, int n, void *a);
/* a = p l u, in place; step i exchanged row i and row pivots[i] - 1. */
int lapack_getrf(bool z, int n, void *a, int *pivots);
/* b (n x columns) becomes the solution x of op(a) x = b. */
int lapack_getrs(bool z, char trans, int n, int columns, const void *lu, const int *pivots,
		 void *b);
/* a (m x n) = q r: r in the upper triangle of a, `columns` columns of q. */
int lapack_qr(bool z, int m, int n, void *a, int columns, void *q);
/* Eigenvalues of the Hermitian matrix a (its lower triangle), ascending; a becomes the vectors. */
int lapack_eigh(bool z, bool vectors, int n, void *a, double *values);
/* a = u diag(s) vh; job is 'A' for all columns of u and rows of vh, 'S' for min(m, n), 'N' for
 * values only. */
int lapack_gesdd(bool z, char job, int m, int n, void *a, double *s, void *u, void *vh);
/* lapack_gesdd() for a real matrix in single precision; takes half the time. */
int lapack_sgesdd(char job, int m, int n, float *a, float *s, float *u, float *vh);
/* Complex eigenvalues and right vectors (or NULL) of a complex matrix. */
int lapack_geev(int n, void *a, void *values, void *vectors);
/* a = q t q* with t upper triangular, in place of a; complex. */
int lapack_gees(int n, void *a, void *q);
/* The smallest x with the smallest |a x - b|, in b (max(m, n) rows); singular values below rcond
 * times the largest count as 0. */
int lapack_gelsd(bool z, int m, int n, int columns, void *a, void *b, double rcond);

#endif
