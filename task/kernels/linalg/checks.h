/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of nodes and inputs, and output shapes, for the kernels of every device. */
#ifndef MU_TASK_KERNELS_LINALG_CHECKS_H
#define MU_TASK_KERNELS_LINALG_CHECKS_H

#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/product.h"
#include "task/runtime/kernel.h"

/* ---- matmul.c ---- */

/* MatMul: sets the product and the output shape. */
int check_matmul(const struct kernel_call *c, struct product *p, struct mu_shape *shape,
		 struct mu_err *err);
/* BatchMatMul: the shape of the batch of products.  The views map a product to the numbers of its
 * matrices in a and b. */
struct product_batch {
	struct mu_shape shape;
	struct view a, b;
};
int check_batch_matmul(const struct kernel_call *c, struct product *p, struct product_batch *batch,
		       struct mu_shape *shape, struct mu_err *err);
struct fused_matmul {
	bool bias_add; /* BiasAdd: a vector; else any shape that broadcasts */
	bool activates;
	enum unary_op activation;
};
/* _FusedMatMul: the state is a struct fused_matmul.  check_fused_shape() sets the shape after the
 * bias is added to a product of shape `product`. */
int check_fused_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			struct mu_err *err);
int check_fused_shape(const struct kernel_call *c, const struct fused_matmul *f,
		      const struct mu_shape *product, struct mu_shape *shape, struct mu_err *err);

#endif
