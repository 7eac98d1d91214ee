/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of every device ask of a node and its inputs, shapes worked out. */
#ifndef MU_TASK_KERNELS_ENGINE_CHECKS_H
#define MU_TASK_KERNELS_ENGINE_CHECKS_H

#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/product.h"
#include "task/kernels/nn/conv.h"
#include "task/kernels/nn/volume.h"
#include "task/runtime/kernel.h"

/* ---- linalg/matmul.c ---- */

/* MatMul: what is to be multiplied, and the result's shape. */
int check_matmul(const struct kernel_call *c, struct product *p, struct mu_shape *shape,
		 struct mu_err *err);
/* BatchMatMul: of how many products, and which matrices of a and b each one multiplies: numbers,
 * seen through the views. */
struct product_batch {
	struct mu_shape shape;
	struct view a, b;
};
int check_batch_matmul(const struct kernel_call *c, struct product *p, struct product_batch *batch,
		       struct mu_shape *shape, struct mu_err *err);
struct fused_matmul {
	bool bias_add; /* a vector, as BiasAdd has it; else whatever broadcasts */
	bool activates;
	enum unary_op activation;
};
/* _FusedMatMul: a struct fused_matmul as state; the shape once the bias is added to what was made.
 */
int check_fused_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			struct mu_err *err);
int check_fused_shape(const struct kernel_call *c, const struct fused_matmul *f,
		      const struct mu_shape *made, struct mu_shape *shape, struct mu_err *err);

/* ---- nn/bias.c: the tensor as [outer, channels, inner] ---- */

struct channels {
	int64_t outer, n, inner;
};
int check_channels(const struct kernel_call *c, struct channels *ch, struct mu_err *err);
int check_bias(const struct kernel_call *c, struct channels *ch, struct mu_err *err);

/* ---- fold.c: a reduction's shape as alternating kept and reduced dimensions ---- */

struct fold {
	int rank;
	int64_t dim[MU_MAX_RANK];
	bool reduced[MU_MAX_RANK];
	int64_t in_stride[MU_MAX_RANK], out_stride[MU_MAX_RANK];
};
/* Which dimensions input 1 names. */
int check_axes(const struct kernel_call *c, bool *reduced, struct mu_err *err);
int fold_shape(const struct mu_shape *in, const bool *reduced, bool keep, struct mu_shape *out,
	       struct mu_err *err);
void fold_make(struct fold *f, const struct mu_shape *in, const bool *reduced);

/* ---- math/argmax.c: the input as [outer, n, inner] ---- */

struct arg_plan {
	enum mu_dtype type; /* of the result */
	int64_t outer, n, inner;
	struct mu_shape shape; /* of the result */
};
int check_arg(const struct kernel_call *c, struct arg_plan *p, struct mu_err *err);

/* InTopK, InTopKV2: types and shapes, and k. */
int check_in_top_k(const struct kernel_call *c, int64_t *k, struct mu_err *err);

/* ---- math/top_k.c ---- */

/* k, and the shape of what is given: the input's, but for that many in the last dimension. */
int check_top_k(const struct kernel_call *c, int64_t *k, struct mu_shape *shape,
		struct mu_err *err);

/* ---- math/scan.c: Cumsum, Cumprod along the axis of [outer, n, inner] ---- */

struct scan_plan {
	int64_t outer, n, inner;
	bool exclusive, reverse;
};
int check_scan(const struct kernel_call *c, struct scan_plan *p, struct mu_err *err);

/* ---- nn/lrn.c ---- */

struct lrn_plan {
	int64_t n, radius; /* channels; how many on either side are neighbours */
	float bias, alpha, beta;
};
/* Input `in` is what is, or was, normalised. */
int check_lrn(const struct kernel_call *c, unsigned in, struct lrn_plan *p, struct mu_err *err);
int check_lrn_grad(const struct kernel_call *c, struct lrn_plan *p, struct mu_err *err);

/* Cross: types and shapes. */
int check_cross(const struct kernel_call *c, struct mu_err *err);

/* ---- array/order.c ---- */

/* LowerBound, UpperBound; *type: of the places. */
int check_bound(const struct kernel_call *c, enum mu_dtype *type, struct mu_err *err);

/* ---- sparse/matmul.c ---- */

/* SparseTensorDenseMatMul; whether entries are in range is another question. */
struct sparse_product {
	int64_t n, rows, inner, cols; /* entries; of the product and what is summed over */
	int64_t b_row, b_col;         /* strides of the dense matrix as it is read */
	bool flip;                    /* the sparse matrix is read the other way round */
};
int check_sparse_product(const struct kernel_call *c, struct sparse_product *p,
			 struct mu_shape *shape, struct mu_err *err);

/* ---- math/elementwise.c ---- */

/* ClipByValue: types and shapes. */
int check_clip(const struct kernel_call *c, struct mu_err *err);
/* SelectV2: the shape that all three broadcast to. */
int check_select(const struct kernel_call *c, struct mu_shape *shape, struct mu_err *err);

/* ---- nn/conv_ops.c: a convolution, and the shape of what the op gives ---- */

int check_conv(const struct kernel_call *c, const struct window_attrs *a, struct conv *g,
	       struct mu_shape *shape, struct mu_err *err);
int check_conv_input(const struct kernel_call *c, const struct window_attrs *a, struct conv *g,
		     struct mu_shape *shape, struct mu_err *err);
int check_conv_filter(const struct kernel_call *c, const struct window_attrs *a, struct conv *g,
		      struct mu_shape *shape, struct mu_err *err);

/* ---- nn/conv3d.c, nn/pool3d.c: the same in three dimensions ---- */

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
/* in: the shape of what was pooled. */
int check_max_pool3d_grad(const struct kernel_call *c, struct volume *v, struct mu_shape *in,
			  struct mu_err *err);
int check_avg_pool3d_grad(const struct kernel_call *c, struct volume *v, struct mu_shape *in,
			  struct mu_err *err);

/* ---- pool_sizes.c: how a pool lies over its input ---- */

struct pool_sizes {
	int64_t batch, channels;
	struct window_axis row, column;
};
int check_pool(const struct kernel_call *c, const struct window_attrs *a, struct pool_sizes *p,
	       struct mu_shape *shape, struct mu_err *err);
int check_max_pool_grad(const struct kernel_call *c, const struct window_attrs *a,
			struct pool_sizes *p, struct mu_err *err);
/* in: the shape of what was pooled. */
int check_avg_pool_grad(const struct kernel_call *c, const struct window_attrs *a,
			struct pool_sizes *p, struct mu_shape *in, struct mu_err *err);
/* The shape of what the pool gave; with places, and of which type those are. */
int check_max_pool_grad_grad(const struct kernel_call *c, const struct window_attrs *a,
			     struct pool_sizes *p, struct mu_shape *want, struct mu_err *err);
int check_max_pool_places(const struct kernel_call *c, const struct window_attrs *a,
			  struct pool_sizes *p, struct mu_shape *shape, enum mu_dtype *type,
			  struct mu_err *err);
int check_max_pool_grad_places(const struct kernel_call *c, const struct window_attrs *a,
			       struct pool_sizes *p, struct mu_err *err);

/* ---- nn/batch_norm.c ---- */

struct norm_sizes {
	int64_t pixels, channels;
	bool training;
};
/* With the image's channels last. */
int check_batch_norm(const struct kernel_call *c, struct norm_sizes *s, struct mu_err *err);
int check_batch_norm_grad(const struct kernel_call *c, struct norm_sizes *s, struct mu_err *err);
/* Runs it with the channels last, whatever data_format says: of NCHW the first `images` inputs are
 * transposed, and output 0 is transposed back. */
typedef int norm_transpose_fn(struct kernel_call *c, const struct mu_tensor *t, bool last,
			      struct mu_tensor *out, struct mu_err *err);
int norm_run(struct kernel_call *c, unsigned images, kernel_fn *run, norm_transpose_fn *by,
	     struct mu_err *err);
/* last: of [n, c, h, w] as [n, h, w, c], else the other way round. */
struct mu_shape norm_transposed_shape(const struct mu_shape *s, bool last);

/* ---- nn/softmax.c ---- */

/* The shape that logits and labels broadcast to, a matrix. */
int check_cross_entropy(const struct kernel_call *c, struct mu_shape *both, struct mu_err *err);
/* Logits are a matrix, labels as many numbers as it has rows. */
int check_sparse_cross_entropy(const struct kernel_call *c, struct mu_err *err);

/* ---- array/scatter.c, array/scatter_nd.c: shapes and types; whether indices are in range is
 * another question ---- */

/* *row: elements in a row.  A scalar update serves all rows. */
int check_scatter(const struct mu_tensor *table, const struct mu_shape *indices,
		  const struct mu_tensor *updates, int64_t *row, struct mu_err *err);
/* The shape of the result, and elements in a row of it. */
int check_unsorted_segment(const struct kernel_call *c, struct mu_shape *shape, int64_t *row,
			   struct mu_err *err);
/* Positions, input `in`, count the table's dimensions from the first on, *depth of them; updates,
 * the input after it, have one slice of the remaining dimensions for each position. */
int check_scatter_nd(const struct kernel_call *c, unsigned in, const struct mu_shape *table,
		     enum mu_dtype t, int *depth, struct mu_err *err);

#endif
