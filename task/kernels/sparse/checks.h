/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of nodes and inputs, and the shapes that follow, for the kernels of every device. */
#ifndef MU_TASK_KERNELS_SPARSE_CHECKS_H
#define MU_TASK_KERNELS_SPARSE_CHECKS_H

#include "task/runtime/kernel.h"

/* ---- matmul.c ---- */

/* SparseTensorDenseMatMul; whether entries are in range is another question. */
struct sparse_product {
	int64_t n, rows, inner, cols; /* entries; sizes of the product and of the summed axis */
	int64_t b_row, b_col;         /* strides of the dense matrix as it is read */
	bool flip;                    /* the sparse matrix is read the other way round */
};
int check_sparse_product(const struct kernel_call *c, struct sparse_product *p,
			 struct mu_shape *shape, struct mu_err *err);

#endif
