/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that no strided view expresses: roll, reversal of sequences up to a length, bands of
 * diagonals. The tensors are in host memory or on a GPU, as in engine/move.h. The caller has
 * checked the arguments, and `out` has elements. */
#ifndef MU_TASK_KERNELS_ARRAY_ROLL_REVERSE_BAND_H
#define MU_TASK_KERNELS_ARRAY_ROLL_REVERSE_BAND_H

#include "task/runtime/kernel.h"

/* Every element further by so much, less than the dimension, round its end. */
int roll_copy(const struct mu_tensor *out, const struct mu_tensor *in, const int64_t *by,
	      struct mu_err *err);
/* Along dimension seq as far as lengths, on the host, says for each place of `batch`. */
int reverse_sequence_copy(struct kernel_call *c, const struct mu_tensor *out,
			  const struct mu_tensor *in, const struct mu_tensor *lengths, int seq,
			  int batch, struct mu_err *err);

struct band {
	int64_t rows, cols, from, to; /* of the matrix; lowest and highest diagonal */
	int64_t longest;
	bool upper_left, lower_left; /* short ones above and below lie at the left of their row */
};
/* Writes the bands into n matrices, or reads them from there. */
int band_copy(const struct mu_tensor *matrix, const struct mu_tensor *band, const struct band *b,
	      int64_t n, bool into_matrix, struct mu_err *err);
/* Copies the diagonals from … to of each matrix; other elements are zero. */
int band_part_copy(const struct mu_tensor *out, const struct mu_tensor *in, const struct band *b,
		   struct mu_err *err);

#endif
