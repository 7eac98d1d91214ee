/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse tensors in kernels: positions [n, rank], values [n] and a shape. Sparse parts are stored
 * or serialized one by one and later joined to a larger sparse tensor. */
#ifndef MU_TASK_KERNELS_SPARSE_SPARSE_H
#define MU_TASK_KERNELS_SPARSE_SPARSE_H

#include "task/kernels/engine/args.h"

struct sparse {
	const struct mu_tensor *at, *values;
	struct mu_shape shape;
	int64_t n;
};

/* Reads inputs i to i + 2: positions, values and shape.  Positions may be outside the shape. */
int sparse_in_unchecked(const struct kernel_call *c, unsigned i, struct sparse *s,
			struct mu_err *err);
/* As sparse_in_unchecked(), but fails if a position is outside the shape. */
int sparse_in(const struct kernel_call *c, unsigned i, struct sparse *s, struct mu_err *err);
/* Reports that position i, `at`, is outside the shape with dimensions `dim`. */
int sparse_out_of_bounds(int64_t i, const int64_t *at, int rank, const int64_t *dim,
			 struct mu_err *err);
/* Allocates outputs out[0] to out[2], positions, values and shape, for n entries, and fills the
 * shape. The caller fills *at and *values. */
int sparse_out(struct kernel_call *c, const unsigned *out, int64_t n, const struct mu_shape *shape,
	       enum mu_dtype type, int64_t **at, struct mu_tensor **values, struct mu_err *err);

struct sparse_part {
	struct mu_tensor at, values;
	int rank;
	int64_t dim[MU_MAX_RANK];
};
void sparse_part_fini(struct sparse_part *p);
/* Reads positions, values and a shape of at least `min_rank` dimensions from inputs 0 to 2.  Shares
 * their memory. */
int sparse_part_in(const struct kernel_call *c, int min_rank, struct sparse_part *out,
		   struct mu_err *err);
/* Checks that positions are inside the shape and that their row numbers do not decrease. */
int sparse_part_check_rows(const struct sparse_part *p, struct mu_err *err);
/* Copies entries [from, to), without the row number of their positions. */
int sparse_part_row(const struct sparse_part *p, int64_t from, int64_t to, struct sparse_part *out,
		    struct mu_err *err);
/* Joins lead->count parts to outputs 0 to 2.  Part i is element i, in row-major order, of the
 * leading dimensions. */
int sparse_parts_join(struct kernel_call *c, const struct sparse_part *const *list,
		      const struct mu_shape *lead, enum mu_dtype type, struct mu_err *err);

#endif
