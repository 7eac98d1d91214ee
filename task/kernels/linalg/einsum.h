/* SPDX-License-Identifier: Apache-2.0 */
/* What an Einsum comes to, for every device: one product of matrices for each place of the batch,
 * with the operands transposed for it.
 *
 * Every axis has a label: a letter, or a place in an ellipsis, counted from its right end.  A label
 * of both operands and the result is of the batch, of both operands alone it is summed over by the
 * product, of one operand and the result it is a row or a column, and of one operand alone it is
 * summed over before.  So operand a is seen as [batch, rows, inner], b as [batch, inner, columns],
 * and the product is seen as what the equation wants.  A letter that stands twice in an operand is
 * its diagonal, twice in the result it makes one of zeros. */
#ifndef MU_TASK_KERNELS_LINALG_EINSUM_H
#define MU_TASK_KERNELS_LINALG_EINSUM_H

#include "lib/ops/equation.h"
#include "task/kernels/engine/elems.h"
#include "task/runtime/kernel.h"

enum { EINSUM_LABELS = MU_LETTERS + MU_MAX_RANK };

struct einsum_group { /* axes that go together */
	int n;
	unsigned char label[EINSUM_LABELS];
	int64_t count;
};
struct einsum_operand {
	const struct mu_tensor *t;
	bool there[EINSUM_LABELS];
	int64_t stride[EINSUM_LABELS]; /* 0 where one element serves for all */
	struct einsum_group own, sums; /* rows or columns; what is summed over before */
};
struct einsum {
	enum mu_dtype type;
	unsigned n_in;
	int64_t dim[EINSUM_LABELS];
	struct einsum_operand op[2];
	struct einsum_group batch, inner;
	struct mu_term out;    /* without MU_ELLIPSIS */
	int dots;              /* axes of the longest ellipsis */
	struct mu_shape shape; /* of the result */
};

/* The equation, once: a struct mu_equation as state. */
int einsum_prepare(const struct mu_node *n, struct runtime *rt, void **state, struct mu_err *err);
/* Applies the equation to the tensors of a step. */
int einsum_read(const struct kernel_call *c, const struct mu_equation *q, struct einsum *e,
		struct mu_err *err);

/* Operand i: seen as [batch, rows, columns, summed over before], as the product reads
 * it plain.  `ready`: it lies in memory as the product wants it, or with rows and columns
 * exchanged. */
struct einsum_sight {
	struct view v;
	int64_t count[4];
	bool sums; /* there are axes to sum over, perhaps of one element only */
	bool ready, trans;
};
void einsum_see(const struct einsum *e, unsigned i, struct einsum_sight *out);
/* The result's elements in the order batch, rows, columns; true: that is their order in memory. */
bool einsum_see_result(const struct einsum *e, struct view *out);
/* A letter stands twice in the result. */
bool einsum_repeats(const struct einsum *e);

#endif
