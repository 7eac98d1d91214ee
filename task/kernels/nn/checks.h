/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of nodes and inputs, and the shapes of outputs, for the kernels of every device. */
#ifndef MU_TASK_KERNELS_NN_CHECKS_H
#define MU_TASK_KERNELS_NN_CHECKS_H

#include "task/kernels/nn/conv.h"
#include "task/kernels/nn/volume.h"
#include "task/runtime/kernel.h"

/* ---- bias.c: the tensor as [outer, channels, inner] ---- */

struct mu_axis_split bias_channels(const struct kernel_call *c);
int check_bias(const struct kernel_call *c, struct mu_axis_split *ch, struct mu_err *err);

/* ---- lrn.c ---- */

struct lrn_plan {
	int64_t n, radius; /* channels; neighbours on either side */
	float bias, alpha, beta;
};
/* in: the index of the op's input x, also for the gradient. */
int check_lrn(const struct kernel_call *c, unsigned in, struct lrn_plan *p, struct mu_err *err);

/* ---- conv_ops.c: a convolution, and the shape of the op's output ---- */

int check_conv(const struct kernel_call *c, const struct window_attrs *a, struct conv *g,
	       struct mu_shape *shape, struct mu_err *err);
int check_conv_input(const struct kernel_call *c, const struct window_attrs *a, struct conv *g,
		     struct mu_shape *shape, struct mu_err *err);
int check_conv_filter(const struct kernel_call *c, const struct window_attrs *a, struct conv *g,
		      struct mu_shape *shape, struct mu_err *err);

/* ---- conv3d.c, pool_sizes.c: the same in three dimensions ---- */

struct conv3d_sizes {
	struct volume v;
	int64_t filters, positions, inner; /* inner: taps * channels */
};
int check_conv3d(const struct kernel_call *c, struct conv3d_sizes *s, struct mu_shape *shape,
		 struct mu_err *err);
int check_conv3d_input(const struct kernel_call *c, struct conv3d_sizes *s, struct mu_shape *shape,
		       struct mu_err *err);
int check_conv3d_filter(const struct kernel_call *c, struct conv3d_sizes *s, struct mu_shape *shape,
			struct mu_err *err);
int check_pool3d(const struct kernel_call *c, struct volume *v, struct mu_shape *shape,
		 struct mu_err *err);
/* in: the shape of the pool's input. */
int check_max_pool3d_grad(const struct kernel_call *c, struct volume *v, struct mu_shape *in,
			  struct mu_err *err);
/* shape: the shape of the pool's output, which this op's output has, too. */
int check_max_pool3d_grad_grad(const struct kernel_call *c, struct volume *v,
			       struct mu_shape *shape, struct mu_err *err);
int check_avg_pool3d_grad(const struct kernel_call *c, struct volume *v, struct mu_shape *in,
			  struct mu_err *err);

/* ---- pool_sizes.c: the windows of a pool ---- */

struct pool_sizes {
	int64_t batch, channels;
	struct window_axis row, column;
};
int check_pool(const struct kernel_call *c, const struct window_attrs *a, struct pool_sizes *p,
	       struct mu_shape *shape, struct mu_err *err);
int check_max_pool_grad(const struct kernel_call *c, const struct window_attrs *a,
			struct pool_sizes *p, struct mu_err *err);
/* in: the shape of the pool's input. */
int check_avg_pool_grad(const struct kernel_call *c, const struct window_attrs *a,
			struct pool_sizes *p, struct mu_shape *in, struct mu_err *err);
/* *want: the shape of the pool's output; *type: the type of argmax. */
int check_max_pool_grad_grad(const struct kernel_call *c, const struct window_attrs *a,
			     struct pool_sizes *p, struct mu_shape *want, struct mu_err *err);
int check_max_pool_argmax(const struct kernel_call *c, const struct window_attrs *a,
			  struct pool_sizes *p, struct mu_shape *shape, enum mu_dtype *type,
			  struct mu_err *err);
int check_max_pool_grad_argmax(const struct kernel_call *c, const struct window_attrs *a,
			       struct pool_sizes *p, struct mu_err *err);

/* ---- batch_norm.c ---- */

struct norm_sizes {
	int64_t pixels, channels;
	bool training;
};
/* The image is NHWC. */
int check_batch_norm(const struct kernel_call *c, struct norm_sizes *s, struct mu_err *err);
int check_batch_norm_grad(const struct kernel_call *c, struct norm_sizes *s, struct mu_err *err);
/* Transposes t between NCHW and NHWC: to NHWC (to_nhwc), or back. */
typedef int norm_transpose_fn(struct kernel_call *c, const struct mu_tensor *t, bool to_nhwc,
			      struct mu_tensor *out, struct mu_err *err);
/* Runs a kernel that needs NHWC for either data_format: for NCHW it transposes the first `images`
 * inputs, runs the kernel and transposes output 0 back. */
int norm_run(struct kernel_call *c, unsigned images, kernel_fn *run, norm_transpose_fn *transpose,
	     struct mu_err *err);
/* NHWC of an NCHW shape if to_nhwc, else NCHW of an NHWC shape. */
struct mu_shape norm_transposed_shape(const struct mu_shape *s, bool to_nhwc);

/* ---- softmax.c ---- */

/* The shape that logits and labels broadcast to, a matrix. */
int check_cross_entropy(const struct kernel_call *c, struct mu_shape *common, struct mu_err *err);
/* Checks that logits are a matrix, and labels a vector with one label for each row. */
int check_sparse_cross_entropy(const struct kernel_call *c, struct mu_err *err);

#endif
