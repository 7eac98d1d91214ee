/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of matrices as kernels of linear algebra see them: taken one by one into doubles or
 * complex doubles (matrix.h), worked there, and put back. */
#ifndef MU_TASK_KERNELS_MATRIX_MATRICES_H
#define MU_TASK_KERNELS_MATRIX_MATRICES_H

#include <stdatomic.h>

#include "task/kernels/args.h"
#include "task/kernels/matrix/matrix.h"

struct matrices {
	const struct mu_tensor *t;
	int64_t rows, cols, n;
};
/* Input i: real or complex matrices. */
int matrices_in(const struct kernel_call *c, unsigned i, struct matrices *m, struct mu_err *err);
int matrices_square_in(const struct kernel_call *c, unsigned i, struct matrices *m,
		       struct mu_err *err);
/* Inputs 0 and 1: square matrices and right sides, of one type, as many and as high. */
int matrices_system_in(const struct kernel_call *c, struct matrices *a, struct matrices *b,
		       struct mu_err *err);
bool matrices_complex(enum mu_dtype t);
const struct matrix_ops *matrices_ops(const struct matrices *m);
/* Output i, for each matrix of m something with these dimensions. */
int matrices_out(struct kernel_call *c, unsigned i, enum mu_dtype t, const struct matrices *m,
		 int rank, const int64_t *dims, struct mu_tensor **out, struct mu_err *err);
/* Matrix k, 16 bytes a number at most. */
void matrices_get(const struct matrices *m, int64_t k, void *to);
/* n numbers, real or complex as `out` is, from element `at` on. */
void matrices_put(struct mu_tensor *out, int64_t at, const void *from, int64_t n);
/* The same from complex numbers into real or complex ones. */
void matrices_put_complex(struct mu_tensor *out, int64_t at, const void *from, int64_t n);

/* What an op does with matrix k.  room: as many numbers of 16 bytes as were asked for.  false: it
 * cannot be done, and the op fails. */
struct matrix_job {
	struct matrices a, b;
	const struct matrix_ops *ops;
	struct mu_tensor *out[3];
	bool flag; /* the op's own */
	int64_t room;
	bool (*one)(const struct matrix_job *j, int64_t k, double *room);
	atomic_bool failed, starved; /* set by matrices_run */
};
/* All of them, over the pool.  why: the error where one cannot be done. */
int matrices_run(struct kernel_call *c, struct matrix_job *j, const char *why, struct mu_err *err);

#endif
