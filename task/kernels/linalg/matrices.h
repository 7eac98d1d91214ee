/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of matrices for linear algebra.  Each matrix is copied to doubles or complex doubles,
 * usually by columns, LAPACK (lapack.h) works on the copy, and the result is converted back. */
#ifndef MU_TASK_KERNELS_LINALG_MATRICES_H
#define MU_TASK_KERNELS_LINALG_MATRICES_H

#include <stdatomic.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/linalg/lapack.h"

struct matrices {
	const struct mu_tensor *t;
	int rows, cols;
	int64_t n;
	bool is_complex;
};
/* Input i: real or complex matrices. */
int matrices_in(const struct kernel_call *c, unsigned i, struct matrices *m, struct mu_err *err);
int matrices_square_in(const struct kernel_call *c, unsigned i, struct matrices *m,
		       struct mu_err *err);
/* Inputs 0 and 1: square matrices and right sides, of one type, as many and as high. */
int matrices_system_in(const struct kernel_call *c, struct matrices *a, struct matrices *b,
		       struct mu_err *err);
/* Output i, for each matrix of m something with these dimensions. */
int matrices_out(struct kernel_call *c, unsigned i, enum mu_dtype t, const struct matrices *m,
		 int rank, const int64_t *dims, struct mu_tensor **out, struct mu_err *err);

/* The order of a copy's elements; tensors have rows. */
enum order { BY_ROWS, BY_COLUMNS };
/* Copies matrix k. */
void matrices_get(const struct matrices *m, int64_t k, enum order order, void *to);
/* The same as complex numbers, for any type. */
void matrices_get_complex(const struct matrices *m, int64_t k, enum order order, void *to);
/* A matrix of doubles or complex doubles, as `out` is real or complex, from element `at` on. */
void matrices_put(struct mu_tensor *out, int64_t at, enum order order, int rows, int cols,
		  const void *from);
/* The same of complex numbers, of which real outputs get the real parts.  Overwrites `from`. */
void matrices_put_complex(struct mu_tensor *out, int64_t at, enum order order, int rows, int cols,
			  void *from);
/* n real numbers, which complex outputs get as complex ones. */
void matrices_put_real(struct mu_tensor *out, int64_t at, int n, const double *from);

bool matrices_finite(bool is_complex, int64_t n, const void *a);
/* a (n x n, by columns): zeros above the diagonal. */
void matrices_keep_lower(bool is_complex, int n, void *a);

/* Computes the outputs for matrix k.  work: the scratch that the op asked for, in numbers of 16
 * bytes, zeroed.  Returns 0, LAPACK_NO_MEMORY, or anything else when it cannot be done and the op
 * fails. */
struct matrix_job {
	struct matrices a, b;
	struct mu_tensor *out[3];
	bool flag;           /* the op's own */
	bool singular_error; /* instead of NaN */
	int64_t lwork;
	int (*one)(const struct matrix_job *j, int64_t k, double *work);
	atomic_bool failed, no_memory; /* set by matrices_run */
};
/* True if a singular matrix is an error in the client's version of TensorFlow. */
bool matrices_error_attr(const struct kernel_call *c);
/* All of them, over the pool.  why: the error where one cannot be done. */
int matrices_run(struct kernel_call *c, struct matrix_job *j, const char *why, struct mu_err *err);

#endif
