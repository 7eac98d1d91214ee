/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of nodes and inputs, and output shapes, for the kernels of every device. */
#ifndef MU_TASK_KERNELS_SPARSE_CHECKS_H
#define MU_TASK_KERNELS_SPARSE_CHECKS_H

#include "task/runtime/kernel.h"

/* ---- matmul.c ---- */

/* SparseTensorDenseMatMul.  Does not check that the positions are in range. */
struct sparse_product {
	int64_t n, rows, inner, cols; /* entries; sizes of the product and of the summed axis */
	int64_t b_row, b_col;         /* strides of the dense matrix, or of its adjoint */
	bool flip;                    /* adjoint_a: the row and column of an entry are exchanged */
};
int check_sparse_product(const struct kernel_call *c, struct sparse_product *p,
			 struct mu_shape *shape, struct mu_err *err);

#endif
