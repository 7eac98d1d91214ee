/* SPDX-License-Identifier: Apache-2.0 */
/* Linear algebra on one dense matrix, by rows, of doubles or of complex doubles: body.h has
 * each function once for both.  `void *` is an array of such numbers.  What says whether it could
 * be done leaves nonsense behind when it could not; nothing loops for longer than the size allows.
 */
#ifndef MU_TASK_KERNELS_MATRIX_MATRIX_H
#define MU_TASK_KERNELS_MATRIX_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct matrix_ops {
	size_t size; /* of a number */
	/* a (n x n, its lower triangle) = l l*, in place; false: it has no such root. */
	bool (*cholesky)(int64_t n, void *a);
	/* Rows of a, taken in the order `perm`, = l u, in place, l having ones on its diagonal.
	 * *odd: the order is an odd one. */
	void (*lu)(int64_t n, void *a, int64_t *perm, bool *odd);
	bool (*invertible)(int64_t n, const void *lu);
	/* x of a x = b, both n x columns, by what lu left. */
	void (*solve)(int64_t n, const void *lu, const int64_t *perm, int64_t columns,
		      const void *b, void *x);
	/* x of a x = b in place of b; a is triangular, and so is seen its conjugate transpose. */
	void (*triangular)(int64_t n, const void *a, bool lower, bool adjoint, int64_t columns,
			   void *b);
	/* The same of `bands` diagonals of a, each a row of n numbers by the row of a that they
	 * stand in: the main one first of a lower triangle, last of an upper one. */
	void (*banded)(int64_t n, int64_t bands, const void *a, bool lower, bool adjoint,
		       int64_t columns, void *b);
	/* sign e^*log, sign being a number of size 1, or 0. */
	void (*determinant)(int64_t n, const void *lu, bool odd, void *sign, double *log);
	/* a (m x n) = q r, q having m columns or min(m, n), r in place of a; the signs are
	 * LAPACK's. false: no memory. */
	bool (*qr)(int64_t m, int64_t n, void *a, int64_t columns, void *q);
	/* a = v* diag(e) v with e ascending: row i of v is the conjugate of the i-th vector.  a is
	 * destroyed, of which only the lower triangle counts. */
	bool (*hermitian)(int64_t n, void *a, double *e, void *v);
	/* a (m x n, m >= n, destroyed) = u* diag(s) v with s descending.  Rows of u, `full` times m
	 * of them or n, and of v are the conjugates of vectors; both may be NULL. */
	bool (*svd)(int64_t m, int64_t n, void *a, bool full, double *s, void *u, void *v);
	/* t (cols x rows) = the conjugate transpose of a (rows x cols) */
	void (*adjoint)(int64_t rows, int64_t cols, const void *a, void *t);
	/* c = a b, by the sizes m x k and k x n */
	void (*product)(int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c);
	/* Of complex numbers only.  a (n x n) = q t q*, t upper triangular, in place of a. */
	bool (*schur)(int64_t n, void *a, void *q);
	/* t becomes columns of size 1, number k being a vector of q t q* for t[k][k].  room: a
	 * matrix. */
	void (*schur_vectors)(int64_t n, void *t, const void *q, void *room);
};

#endif
