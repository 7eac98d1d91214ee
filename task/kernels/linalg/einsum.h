/* SPDX-License-Identifier: Apache-2.0 */
/* An Einsum reduced to products, for every device: one product of matrices per batch index, of
 * transposed operands.
 *
 * Every axis has a label: a letter, or a position in an ellipsis, counted from its right end. A
 * label of both operands and the result is a batch axis. A label of both operands alone is summed
 * by the product. A label of one operand and the result is a row or a column. A label of one
 * operand alone is summed before the product.
 *
 * Operand a is thus viewed as [batch, rows, inner] and b as [batch, inner, columns], and the
 * product is viewed as the equation's result. A letter that occurs twice in an operand selects its
 * diagonal; twice in the result, it makes a diagonal. */
#ifndef MU_TASK_KERNELS_LINALG_EINSUM_H
#define MU_TASK_KERNELS_LINALG_EINSUM_H

#include "lib/ops/equation.h"
#include "task/kernels/engine/elems.h"
#include "task/runtime/kernel.h"

enum { EINSUM_LABELS = MU_LETTERS + MU_MAX_RANK };

struct einsum_group { /* axes of one role */
	int n;
	unsigned char label[EINSUM_LABELS];
	int64_t count;
};
struct einsum_operand {
	const struct mu_tensor *t;
	bool has_label[EINSUM_LABELS];
	int64_t stride[EINSUM_LABELS]; /* 0 for broadcast axes */
	struct einsum_group outer;     /* axes of this operand and the result: rows or columns */
	struct einsum_group sums;      /* axes of this operand alone, summed before the product */
};
struct einsum {
	enum mu_dtype type;
	unsigned n_in;
	int64_t dim[EINSUM_LABELS];
	struct einsum_operand op[2];
	struct einsum_group batch, inner;
	struct mu_term out;    /* without MU_ELLIPSIS */
	int ellipsis_rank;     /* axes of the longest ellipsis */
	struct mu_shape shape; /* of the result */
};

/* Parses the equation; the state is a struct mu_equation. */
int einsum_prepare(const struct mu_node *n, struct runtime *rt, void **state, struct mu_err *err);
/* Applies the equation to the tensors of a step. */
int einsum_read(const struct kernel_call *c, const struct mu_equation *q, struct einsum *e,
		struct mu_err *err);

/* A view of operand i as [batch, rows, columns, axes summed before].  `ready`: its memory already
 * has the order of the product, or, with `trans`, rows and columns exchanged. */
struct einsum_operand_view {
	struct view v;
	int64_t count[4];
	bool sums; /* there are axes to sum over, perhaps of one element only */
	bool ready, trans;
};
void einsum_view_operand(const struct einsum *e, unsigned i, struct einsum_operand_view *out);
/* Views the result in the order batch, rows, columns.  True if its memory has that order. */
bool einsum_view_result(const struct einsum *e, struct view *out);
/* True if a letter occurs twice in the result. */
bool einsum_repeats(const struct einsum *e);

#endif
