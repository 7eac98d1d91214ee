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
/* Reads input i: real or complex matrices. */
int matrices_in(const struct kernel_call *c, unsigned i, struct matrices *m, struct mu_err *err);
int matrices_square_in(const struct kernel_call *c, unsigned i, struct matrices *m,
		       struct mu_err *err);
/* Reads inputs 0 and 1: matrices and right-hand sides with equal batch shape and number of rows. */
int matrices_system_in(const struct kernel_call *c, struct matrices *a, struct matrices *b,
		       struct mu_err *err);
/* Allocates output i: the batch shape of m followed by `dims`. */
int matrices_out(struct kernel_call *c, unsigned i, enum mu_dtype t, const struct matrices *m,
		 int rank, const int64_t *dims, struct mu_tensor **out, struct mu_err *err);

/* The order of the elements of a copy.  Tensors are in row order. */
enum order { BY_ROWS, BY_COLUMNS };
/* Copies matrix k to doubles, or to complex doubles if it is complex, in this order. */
void matrices_get(const struct matrices *m, int64_t k, enum order order, void *to);
/* As matrices_get(), but always as complex doubles. */
void matrices_get_complex(const struct matrices *m, int64_t k, enum order order, void *to);
/* Writes a matrix of doubles, or of complex doubles if `out` is complex, from element `at` on. */
void matrices_put(struct mu_tensor *out, int64_t at, enum order order, int rows, int cols,
		  const void *from);
/* Writes a matrix of complex doubles; a real `out` gets the real parts.  Overwrites `from`. */
void matrices_put_complex(struct mu_tensor *out, int64_t at, enum order order, int rows, int cols,
			  void *from);
/* Writes n real numbers; a complex `out` gets them as complex numbers. */
void matrices_put_real(struct mu_tensor *out, int64_t at, int n, const double *from);

bool matrices_finite(bool is_complex, int64_t n, const void *a);
/* Sets a (n x n, by columns) to zero above the diagonal. */
void matrices_keep_lower(bool is_complex, int n, void *a);

/* one() computes the outputs of matrix k.  work: scratch of `lwork` numbers of 16 bytes, initially
 * zero, reused for the next matrix.  Returns 0, LAPACK_NO_MEMORY, or another value on failure. */
struct matrix_job {
	struct matrices a, b;
	struct mu_tensor *out[3];
	bool flag;           /* its meaning depends on the op */
	bool singular_error; /* a singular matrix is an error, not NaN */
	int64_t lwork;
	int (*one)(const struct matrix_job *j, int64_t k, double *work);
	atomic_bool failed, no_memory; /* set by matrices_run */
};
/* True if a singular matrix is an error in the client's version of TensorFlow. */
bool matrices_error_attr(const struct kernel_call *c);
/* Runs one() for all matrices on the thread pool.  message: the error if it fails. */
int matrices_run(struct kernel_call *c, struct matrix_job *j, const char *message,
		 struct mu_err *err);

#endif
