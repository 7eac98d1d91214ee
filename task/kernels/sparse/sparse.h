/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse tensors in kernels: positions [n, rank], values [n] and a shape. Also those that are
 * stored or serialized one by one and joined again as rows of a larger one. */
#ifndef MU_TASK_KERNELS_SPARSE_SPARSE_H
#define MU_TASK_KERNELS_SPARSE_SPARSE_H

#include "task/kernels/engine/args.h"

struct sparse {
	const struct mu_tensor *at, *values;
	struct mu_shape shape;
	int64_t n;
};

/* The three inputs from i on; their positions may be outside the shape. */
int sparse_in_unchecked(const struct kernel_call *c, unsigned i, struct sparse *s,
			struct mu_err *err);
/* The same, their positions within the shape. */
int sparse_in(const struct kernel_call *c, unsigned i, struct sparse *s, struct mu_err *err);
/* Fails because position i, which is `at`, is outside a shape of these dimensions. */
int sparse_out_of_bounds(int64_t i, const int64_t *at, int rank, const int64_t *dim,
			 struct mu_err *err);
/* Outputs `at`, `values` and `shape` by their numbers; n entries of this shape, to be filled.  The
 * third output is filled here. */
int sparse_out(struct kernel_call *c, const unsigned *out, int64_t n, const struct mu_shape *shape,
	       enum mu_dtype type, int64_t **at, struct mu_tensor **values, struct mu_err *err);

struct sparse_part {
	struct mu_tensor at, values;
	int rank;
	int64_t dim[MU_MAX_RANK];
};
void sparse_part_fini(struct sparse_part *p);
/* Inputs 0 to 2 as positions, values and a shape of at least `least` dimensions; shares them. */
int sparse_part_in(const struct kernel_call *c, int least, struct sparse_part *out,
		   struct mu_err *err);
/* Positions start with numbers of rows that do not fall. */
int sparse_part_check_rows(const struct sparse_part *p, struct mu_err *err);
/* Entries [from, to), without the first column of their positions. */
int sparse_part_row(const struct sparse_part *p, int64_t from, int64_t to, struct sparse_part *out,
		    struct mu_err *err);
/* n = lead->count parts as outputs 0 to 2: each at its place of the leading dimensions. */
int sparse_parts_join(struct kernel_call *c, const struct sparse_part *const *list,
		      const struct mu_shape *lead, enum mu_dtype type, struct mu_err *err);

#endif
