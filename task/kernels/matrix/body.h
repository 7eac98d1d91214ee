/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of matrix.h for numbers of type T; included by real_*.c and
 * complex_*.c, one for each level of vector instructions, which also say what CONJ, RE, IM
 * and MAGNITUDE are.
 *
 * What is large is cut in two until it is small, so that most of the arithmetic is in products of
 * parts: of reals on the tiles of product.h.  What is small are plain loops along rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "task/kernels/matrix/matrix.h"
#include "task/kernels/products/product.h"
#include "task/kernels/turn.h"

static double square(T x)
{
	return RE(x * CONJ(x));
}

/* y += f x */
static void add_row(int64_t n, T f, const T *restrict x, T *restrict y)
{
	for (int64_t i = 0; i < n; i++)
		y[i] += f * x[i];
}

static void swap_rows(int64_t n, T *restrict x, T *restrict y)
{
	for (int64_t i = 0; i < n; i++) {
		T t = x[i];
		x[i] = y[i];
		y[i] = t;
	}
}

/* A part of a matrix whose rows are `line` numbers apart. */
struct part {
	const T *at;
	int64_t line;
};

enum way { SET, TAKE_AWAY };

/* c = a b, or c -= a b, sizes m x k and k x n; adjoint: a is stored k x m, and its conjugate
 * transpose is meant. */
static void multiply(enum way way, int64_t m, int64_t n, int64_t k, struct part a, bool adjoint,
		     struct part b, T *c, int64_t line)
{
#ifdef PRODUCT_TYPE
	product(PRODUCT_TYPE,
		&(struct product){.m = m,
				  .n = n,
				  .k = k,
				  .trans_a = adjoint,
				  .minus = way == TAKE_AWAY,
				  .a_line = a.line,
				  .b_line = b.line,
				  .c_line = line},
		a.at, b.at, c);
#else
	for (int64_t i = 0; i < m; i++) {
		if (way == SET)
			memset(c + i * line, 0, (size_t)n * sizeof *c);
		for (int64_t l = 0; l < k; l++) {
			T x = adjoint ? CONJ(a.at[l * a.line + i]) : a.at[i * a.line + l];
			add_row(n, way == SET ? x : -x, b.at + l * b.line, c + i * line);
		}
	}
#endif
}

/* Where something of size n is cut. */
static int64_t half_of(int64_t n)
{
	return (n / 2 + 7) & ~(int64_t)7;
}

static void adjoint(int64_t rows, int64_t cols, const void *a, void *t)
{
#ifdef PRODUCT_TYPE
	turn(sizeof(T), t, rows, a, cols, cols, rows);
#else
	enum { SQUARE = 8 }; /* whose lines are written while they are near */
	for (int64_t i0 = 0; i0 < rows; i0 += SQUARE)
		for (int64_t j = 0; j < cols; j++)
			for (int64_t i = i0; i < i0 + SQUARE && i < rows; i++)
				((T *)t)[j * rows + i] = CONJ(((const T *)a)[i * cols + j]);
#endif
}

static void product_of(int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c)
{
	multiply(SET, m, n, k, (struct part){a, k}, false, (struct part){b, n}, c, n);
}

static bool all_finite(int64_t n, const T *a)
{
	T sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += 0 * a[i]; /* 0, or no number */
	return sum == 0;
}

/* Turns of a tridiagonal matrix, or of one of two diagonals, to find one value. */
enum { TURNS = 60 };

/* Each needs what is before it. */
#include "task/kernels/matrix/triangle.h"

#include "task/kernels/matrix/reflect.h"

#include "task/kernels/matrix/turns.h"

#include "task/kernels/matrix/hermitian.h"
#include "task/kernels/matrix/singular.h"
#ifdef MATRIX_SCHUR
#include "task/kernels/matrix/schur.h"
#endif

extern const struct matrix_ops MATRIX_OPS;
const struct matrix_ops MATRIX_OPS = {
    .size = sizeof(T),
    .cholesky = cholesky,
    .lu = lu,
    .invertible = invertible,
    .solve = solve,
    .triangular = triangular,
    .banded = banded,
    .determinant = determinant,
    .qr = qr,
    .hermitian = hermitian,
    .svd = svd,
    .adjoint = adjoint,
    .product = product_of,
#ifdef MATRIX_SCHUR
    .schur = schur,
    .schur_vectors = schur_vectors,
#endif
};
