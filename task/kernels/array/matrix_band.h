/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between matrices and bands of their diagonals.  The tensors are in host memory or on a
 * GPU, as in engine/move.h.  The caller has checked the arguments, and `out` has elements. */
#ifndef MU_TASK_KERNELS_ARRAY_MATRIX_BAND_H
#define MU_TASK_KERNELS_ARRAY_MATRIX_BAND_H

#include "task/runtime/kernel.h"

struct matrix_band {
	int64_t rows, cols; /* of the matrix */
	int64_t from, to;   /* the lowest and the highest diagonal */
	int64_t longest;    /* the length of the longest diagonal: columns of the band */
	/* shorter diagonals above or below the main one are left-aligned in their row */
	bool upper_left, lower_left;
};
/* Copies n bands into matrices (into_matrix), or out of them. */
int band_copy(const struct mu_tensor *matrix, const struct mu_tensor *band,
	      const struct matrix_band *b, int64_t n, bool into_matrix, struct mu_err *err);
/* Copies the diagonals from … to of each matrix; sets the other elements to zero. */
int band_part_copy(const struct mu_tensor *out, const struct mu_tensor *in,
		   const struct matrix_band *b, struct mu_err *err);

#endif
