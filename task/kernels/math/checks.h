/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of nodes and inputs, and the shapes of outputs, for the kernels of every device. */
#ifndef MU_TASK_KERNELS_MATH_CHECKS_H
#define MU_TASK_KERNELS_MATH_CHECKS_H

#include "task/runtime/kernel.h"

/* ---- reduced_axes.c ---- */

/* The input of a reduction, with neighbouring dimensions merged until kept and reduced ones
 * alternate. */
struct reduced_dims {
	int rank;
	int64_t dim[MU_MAX_RANK];
	bool reduced[MU_MAX_RANK];
	int64_t in_stride[MU_MAX_RANK], out_stride[MU_MAX_RANK];
};
/* Sets reduced[d] for each dimension d in input 1. */
int check_axes(const struct kernel_call *c, bool *reduced, struct mu_err *err);
int reduced_shape(const struct mu_shape *in, const bool *reduced, bool keep, struct mu_shape *out,
		  struct mu_err *err);
void reduced_dims_init(struct reduced_dims *f, const struct mu_shape *in, const bool *reduced);

/* ---- argmax.c: the input as [outer, n, inner] ---- */

struct arg_plan {
	enum mu_dtype type; /* of the result */
	int64_t outer, n, inner;
	struct mu_shape shape; /* of the result */
};
int check_arg(const struct kernel_call *c, struct arg_plan *p, struct mu_err *err);

/* Reads k of InTopK and InTopKV2. */
int check_in_top_k(const struct kernel_call *c, int64_t *k, struct mu_err *err);

/* ---- top_k.c ---- */

/* Reads k, and sets the shape of the outputs: the shape of the input, with k as last dimension. */
int check_top_k(const struct kernel_call *c, int64_t *k, struct mu_shape *shape,
		struct mu_err *err);

/* ---- scan.c: Cumsum, Cumprod along the axis of [outer, n, inner] ---- */

struct scan_plan {
	int64_t outer, n, inner;
	bool exclusive, reverse;
};
int check_scan(const struct kernel_call *c, struct scan_plan *p, struct mu_err *err);

/* ---- cross.c ---- */

/* Checks the shapes of Cross. */
int check_cross(const struct kernel_call *c, struct mu_err *err);

/* ---- elementwise.c ---- */

/* Checks the shapes of ClipByValue. */
int check_clip(const struct kernel_call *c, struct mu_err *err);
/* Checks gradients of activations, which do not broadcast: the shapes of both inputs, or for some
 * ops only their sizes, must be equal. */
int check_gradient(const struct kernel_call *c, struct mu_err *err);

/* ---- select.c ---- */

/* SelectV2: the shape that all three inputs broadcast to. */
int check_select(const struct kernel_call *c, struct mu_shape *shape, struct mu_err *err);

#endif
