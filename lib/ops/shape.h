/* SPDX-License-Identifier: Apache-2.0 */
/* The static shape rules of the op table.  A rule sets the known parts of ctx->out; the rest stays
 * unknown.  It fails only for nodes that can never run. */
#ifndef MU_OPS_SHAPE_H
#define MU_OPS_SHAPE_H

#include "lib/ops/op_def.h"

typedef int mu_shape_rule(struct mu_shape_ctx *c, struct mu_err *err);

/* shape_basic.c */
mu_shape_rule shape_same;      /* output 0 has input 0's shape */
mu_shape_rule shape_each;      /* output i has input i's shape */
mu_shape_rule shape_second;    /* output 0 has input 1's shape */
mu_shape_rule shape_merged;    /* all inputs have one shape, and so has the output */
mu_shape_rule shape_scalar;    /* every output is a scalar */
mu_shape_rule shape_vector;    /* every output is a vector of unknown length */
mu_shape_rule shape_broadcast; /* the inputs are broadcast to one shape */
mu_shape_rule shape_select;
mu_shape_rule shape_attr;     /* attribute `shape` */
mu_shape_rule shape_value;    /* attribute `value` */
mu_shape_rule shape_variable; /* of the variable whose handle is input 0 */
mu_shape_rule shape_filled;   /* the value of input 0 is the shape */
mu_shape_rule shape_filled_by_second;
mu_shape_rule shape_conv_input; /* the value of input 0 is the shape of images */
mu_shape_rule shape_random_key; /* a key, a counter, and optionally an algorithm */

/* shape_math.c */
mu_shape_rule shape_matmul, shape_batch_matmul, shape_einsum, shape_reduce, shape_argmax;
mu_shape_rule shape_bias_add, shape_bias_add_grad, shape_xent, shape_sparse_xent, shape_top_k;

/* shape_array.c */
mu_shape_rule shape_reshape, shape_transpose, shape_expand_dims, shape_squeeze, shape_concat;
mu_shape_rule shape_concat_v2, shape_pack, shape_unpack, shape_split, shape_of, shape_where;

/* shape_index.c */
mu_shape_rule shape_gather, shape_gather_nd, shape_resource_gather, shape_slice;
mu_shape_rule shape_strided_slice, shape_tile, shape_pad, shape_one_hot;

/* shape_window.c */
mu_shape_rule shape_conv2d, shape_pool, shape_batch_norm, shape_resize;

/* ---- functions for rules ---- */

static inline struct mu_pshape mu_pshape_unknown(int rank)
{
	struct mu_pshape p = {.rank = rank};

	for (int i = 0; i < rank; i++)
		p.dim[i] = -1;
	return p;
}
/* Reads at most `max` integers of the constant input i.  Returns their number; -1: not constant. */
int mu_shape_ints(const struct mu_shape_ctx *c, unsigned i, int64_t *out, int max);
/* Reads the constant input i as an axis of `rank`; false if unknown or out of range. */
bool mu_shape_axis(const struct mu_shape_ctx *c, unsigned i, int rank, int *out);
/* Merge the known dimensions of both; INVALID_ARGUMENT if they differ. */
int mu_shape_merge_dim(int64_t a, int64_t b, int64_t *out, struct mu_err *err);
int mu_shape_merge(const struct mu_pshape *a, const struct mu_pshape *b, struct mu_pshape *out,
		   struct mu_err *err);
/* Fails unless input i has this rank or an unknown rank (*known false). */
int mu_shape_want_rank(const struct mu_shape_ctx *c, unsigned i, int rank, bool *known,
		       struct mu_err *err);
static inline void mu_pshape_push(struct mu_pshape *p, int64_t dim)
{
	if (p->rank < 0 || p->rank == MU_MAX_RANK)
		p->rank = -1;
	else
		p->dim[p->rank++] = dim;
}

#endif
