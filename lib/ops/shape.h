/* SPDX-License-Identifier: Apache-2.0 */
/* The static shape rules of the op table.  A rule sets the known parts of c->out; all other parts
 * stay unknown.  A rule fails only for nodes that can never run. */
#ifndef MU_LIB_OPS_SHAPE_H
#define MU_LIB_OPS_SHAPE_H

#include "lib/ops/op_def.h"

typedef int mu_shape_rule(struct mu_shape_ctx *c, struct mu_err *err);

/* shape_basic.c */
mu_shape_rule shape_same;      /* output 0 has input 0's shape */
mu_shape_rule shape_each;      /* output i has input i's shape */
mu_shape_rule shape_second;    /* output 0 has input 1's shape */
mu_shape_rule shape_all_equal; /* all inputs and the output have the same shape */
mu_shape_rule shape_scalar;    /* every output is a scalar */
mu_shape_rule shape_vector;    /* every output is a vector of unknown length */
mu_shape_rule shape_broadcast; /* the inputs are broadcast to one shape */
mu_shape_rule shape_select;
mu_shape_rule shape_attr;     /* attribute `shape` */
mu_shape_rule shape_value;    /* attribute `value` */
mu_shape_rule shape_variable; /* shape of the variable whose handle is input 0 */
mu_shape_rule shape_filled;   /* the value of input `shape`, or of input 0 without one */
mu_shape_rule shape_filled_by_parameters, shape_filled_by_second, shape_fill;
mu_shape_rule shape_conv_input; /* the value of input 0 is the shape of images */
mu_shape_rule shape_index_shuffle;
mu_shape_rule shape_random_key; /* a key, a counter, and optionally an algorithm */

/* shape_flow.c */
mu_shape_rule shape_unknown; /* TensorFlow does not infer the shape either */
mu_shape_rule shape_listed;  /* attribute `output_shapes` */
mu_shape_rule shape_loop;    /* attribute `output_shapes`; if empty, the shapes of the inputs */
mu_shape_rule shape_merge_op, shape_switch, shape_ref_select, shape_table_find;
mu_shape_rule shape_assign, shape_apply;
mu_shape_rule shape_batch, shape_unbatch_grad, shape_map_defun;
mu_shape_rule shape_array_read, shape_array_gather;
mu_shape_rule shape_list_item, shape_list_stack, shape_list_gather, shape_list_concat;

/* shape_matrix.c */
mu_shape_rule shape_diag_part, shape_matrix_diag_part, shape_band_part, shape_band_matrix;
mu_shape_rule shape_eigen, shape_eigen_joined, shape_qr, shape_svd, shape_triangular_solve,
    shape_banded_solve;

/* shape_block.c */
mu_shape_rule shape_space_to_batch, shape_batch_to_space, shape_space_to_depth;
mu_shape_rule shape_depth_to_space, shape_bitcast, shape_compare_and_bitpack;

/* shape_segment.c */
mu_shape_rule shape_partition, shape_stitch, shape_unsorted_segment, shape_split_v, shape_unique;
mu_shape_rule shape_unravel, shape_dense_bincount, shape_sparse_bincount, shape_dense_counts,
    shape_ragged_counts, shape_scalars_or_same;
mu_shape_rule shape_substr, shape_broadcast_args, shape_concat_offset;
mu_shape_rule shape_mirror_pad_grad, shape_gather_first, shape_gathered, shape_random_each;
mu_shape_rule shape_resource_gather_nd;

/* shape_sparse.c */
mu_shape_rule shape_dense_sets, shape_ragged_to_sparse, shape_ragged_gather, shape_sdca,
    shape_sparse_reduce;
mu_shape_rule shape_edit_distance, shape_ragged_to_dense, shape_ctc_beam;
mu_shape_rule shape_ragged_to_variant, shape_ragged_from_variant, shape_ragged_variant_grad;

/* shape_parse.c */
mu_shape_rule shape_parse, shape_decode_proto, shape_image;

/* shape_math.c */
mu_shape_rule shape_matmul, shape_batch_matmul, shape_einsum, shape_reduce, shape_argmax;
mu_shape_rule shape_bias_add, shape_bias_add_grad, shape_xent, shape_sparse_xent, shape_top_k;
mu_shape_rule shape_approx_top_k;

/* shape_array.c */
mu_shape_rule shape_reshape, shape_transpose, shape_expand_dims, shape_squeeze, shape_concat;
mu_shape_rule shape_concat_v2, shape_pack, shape_unpack, shape_split, shape_of, shape_where;

/* shape_index.c */
mu_shape_rule shape_gather, shape_gather_nd, shape_resource_gather, shape_slice;
mu_shape_rule shape_strided_slice, shape_tile, shape_pad, shape_one_hot;

/* shape_window.c */
mu_shape_rule shape_conv2d, shape_pool, shape_max_pool, shape_batch_norm, shape_batch_norm_grad,
    shape_resize;
mu_shape_rule shape_fractional_pool, shape_lstm_cell_grad, shape_block_lstm_grad;
mu_shape_rule shape_quantize_grad, shape_quantize, shape_dequantize;

/* ---- helpers for rules ---- */

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
/* Reads the constant input i as a shape, in which -1 is an unknown dimension.  If
 * scalar_is_any, a scalar -1 is an unknown shape.  Leaves *out unchanged if nothing is known. */
int mu_shape_read(const struct mu_shape_ctx *c, unsigned i, bool scalar_is_any,
		  struct mu_pshape *out, struct mu_err *err);
/* Merge the known dimensions of both; INVALID_ARGUMENT if they differ. */
int mu_shape_merge_dim(int64_t a, int64_t b, int64_t *out, struct mu_err *err);
int mu_shape_merge(const struct mu_pshape *a, const struct mu_pshape *b, struct mu_pshape *out,
		   struct mu_err *err);
int mu_shape_broadcast(const struct mu_pshape *a, const struct mu_pshape *b, struct mu_pshape *out,
		       struct mu_err *err);
/* Return the value of an attribute; false or 0 if it is missing. */
bool mu_shape_flag(const struct mu_shape_ctx *c, const char *name);
int64_t mu_shape_attr_int(const struct mu_shape_ctx *c, const char *name);
/* Return dimensions [from, to) of s, and the dimensions of a, then b.  The rank is unknown if that
 * of an argument is. */
struct mu_pshape mu_pshape_part(const struct mu_pshape *s, int from, int to);
struct mu_pshape mu_pshape_join(const struct mu_pshape *a, const struct mu_pshape *b);
/* Sets the shapes of a sparse tensor of n values and `rank`; -1: unknown. */
void mu_shape_sparse(struct mu_pshape *indices, struct mu_pshape *values, struct mu_pshape *shape,
		     int64_t n, int64_t rank);
/* Fails if input i has another known rank.  Sets *known to whether the rank is known. */
int mu_shape_want_rank(const struct mu_shape_ctx *c, unsigned i, int rank, bool *known,
		       struct mu_err *err);
/* Fails if input i has a known rank below `rank`. */
int mu_shape_want_min_rank(const struct mu_shape_ctx *c, unsigned i, int rank, struct mu_err *err);
static inline void mu_pshape_push(struct mu_pshape *p, int64_t dim)
{
	if (p->rank < 0 || p->rank == MU_MAX_RANK)
		p->rank = -1;
	else
		p->dim[p->rank++] = dim;
}

#endif
