/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the kernels.  nvcc and the C compiler read them, so all sizes are fixed.  Addresses
 * are device addresses.  Counts and strides are in elements. */
#ifndef MU_TASK_KERNELS_ENGINE_CUDA_ARGS_H
#define MU_TASK_KERNELS_ENGINE_CUDA_ARGS_H

#include <stdint.h>

enum { CUDA_MAX_RANK = 32, CUDA_MAX_LIST = 64, CUDA_MAX_OPERANDS = 3 };

struct unary_args {
	uint64_t out, in;
	int64_t n;
};

/* Broadcasting: the dimensions of the result, and the strides of each operand. */
struct broadcast_args {
	int32_t rank, unused;
	int64_t dim[CUDA_MAX_RANK], stride[CUDA_MAX_OPERANDS][CUDA_MAX_RANK];
};
struct binary_args { /* out = a op b */
	uint64_t out, a, b;
	int64_t n;
	struct broadcast_args by;
};
struct select_args { /* out = c ? a : b */
	uint64_t out, c, a, b;
	int64_t n;
	struct broadcast_args by; /* of c, a, b */
};

/* Two operands of the same shape, and a scalar. */
struct pair_args {
	uint64_t out, x, g;
	int64_t n;
	double number;
};

struct fill_args {
	uint64_t out, value; /* value: the bits of one element */
	int64_t n;
};

/* in is [outer, reduced, inner]; out is [outer, pieces, inner]: piece p reduces elements
 * p, p + pieces, …, and the result is multiplied by scale. */
struct reduce_args {
	uint64_t out, in;
	int64_t outer, reduced, inner, pieces;
	double scale;
};

/* out is [batch][m, n], dense; a and b have these strides of rows and columns, and batches
 * by.stride apart. */
struct matmul_args {
	uint64_t out, a, b;
	int64_t count, m, n, k; /* count: elements of out */
	int64_t a_row, a_column, b_row, b_column;
	struct broadcast_args by; /* over the matrices of the batch */
};

struct softmax_args {
	uint64_t out, in;
	int64_t rows, n;
	int32_t logarithm, unused;
};

/* label_row and logit_row: strides of rows, 0 if one row is broadcast. */
struct xent_args {
	uint64_t loss, back, logits, labels;
	int64_t rows, n, logit_row, label_row, logit_column, label_column;
};

/* n updates of one row each, sorted by the row of the table that they update: `keys`. */
struct by_row {
	uint64_t keys, order; /* the positions of the updates before the sort */
	int64_t n, row;       /* elements in a row */
};

/* The variable, up to three slots, and the gradient.  The scalars of the optimizer are in device
 * memory, since some are variables that other kernels write. */
struct update_args {
	uint64_t at[4], grad, scalar[6];
	int64_t n;
	int32_t scalars, flag;
	int32_t counter, unused; /* the number of the int64 scalar, from 1; 0: none */
};

/* The update of some rows: grad has by.n rows. */
struct update_rows_args {
	struct update_args u;
	struct by_row by;
};

/* Element i of out comes from the view (offset, stride) of in. */
struct view_args {
	uint64_t out, in;
	int64_t n, offset;
	int32_t rank, unused;
	int64_t dim[2 * CUDA_MAX_RANK], stride[2 * CUDA_MAX_RANK];
};

/* Concat and split, one part at a time: copies `run` elements of each row; rows begin out_row and
 * in_row elements apart. */
struct part_args {
	uint64_t out, in;
	int64_t rows, run, out_row, in_row;
};

/* Contiguous parts of `whole`, `each` elements long, n elements in all.  A part with address 0 is
 * zeros. */
struct parts_args {
	uint64_t whole, part[CUDA_MAX_LIST];
	int64_t n, each;
	int32_t cut, unused; /* cut: copies whole to the parts */
};

/* out [outer, indices, inner] is gathered from in [outer, limit, inner]. */
struct gather_args {
	uint64_t out, in, indices;
	int64_t outer, count, inner, limit;
	int32_t wide, unused; /* indices are int64 */
};

/* Converts n indices of `depth` numbers each, into a tensor of these dimensions, to linear slice
 * numbers (keys; -1: out of range) and their positions in the input (order). */
struct position_args {
	uint64_t keys, order, indices;
	int64_t n, dim[CUDA_MAX_RANK];
	int32_t depth, wide; /* wide: indices are int64 */
};

/* One pass of a merge sort: from sorted runs of `run` elements to runs of twice that. */
struct merge_args {
	uint64_t to_keys, to_order, keys, order;
	int64_t n, run;
};

struct scatter_args {
	struct by_row by;
	uint64_t table, updates;
	int32_t one, unused; /* one: a scalar updates all rows */
};

/* Row r of out reduces the rows picks[i] of data, for i in [starts[r], starts[r + 1]).  factors:
 * one for each pick; divisors: one for each row of out; 0: none. */
struct segment_args {
	uint64_t out, data, starts, picks, factors, divisors;
	int64_t n, row; /* n: elements of out; row: elements of a row */
};

/* Roll: an element of out is the element of in `by` positions before it, with wrap-around. */
struct roll_args {
	uint64_t out, in;
	int64_t n;
	int32_t rank, unused;
	int64_t dim[CUDA_MAX_RANK], by[CUDA_MAX_RANK];
};

/* ReverseSequence: reverses the first lengths[b] elements along seq, for index b along batch. */
struct reverse_args {
	uint64_t out, in, lengths; /* int64 */
	int64_t n, batch, batch_stride, seq, seq_stride;
};

/* Diagonals of n matrices, and the band whose rows are these diagonals: array/matrix_band.h. */
struct band_args {
	uint64_t matrix, band; /* band_part: out and in */
	int64_t n, rows, cols, from, to, longest;
	int32_t upper_left, lower_left, into_matrix, unused;
};

struct one_hot_args {
	uint64_t out, indices;
	int64_t prefix, depth, suffix;
	uint64_t on, off; /* bits */
	int32_t wide, unused;
};

/* Random numbers.  Group g has four floats or two doubles.  Its Philox counter is counter + g, or
 * counter + g * each if a group may take several draws. */
struct random_args {
	uint64_t out;
	int64_t n, each;
	uint64_t low, span; /* of integers; span 0: the full range */
	uint32_t counter[4], key[2];
};

/* Binary search: `values` values for each row, in ascending rows of n. */
struct bound_args {
	uint64_t out, in, sorted;
	int64_t rows, values, n;
	int32_t upper, wide; /* wide: positions are int64 */
};

/* Multinomial: rows of the logits of n classes; sums: the cumulative weights, as doubles. */
struct classes_args {
	struct random_args draws;
	uint64_t out, in, sums;
	int64_t rows, n, samples;
	int32_t wide, unused;
};

/* out[rows, by.row] = a sparse matrix [rows, inner] times b. */
struct sparse_product_args {
	struct by_row by;
	uint64_t out, indices, values, b;
	int64_t rows, inner, b_row, b_col; /* strides of b after transposition */
	int32_t flip, wide;
};

/* As struct window_axis of nn/window.h. */
struct window_axis_args {
	int64_t in, size, stride, dilation, out, pad;
};

/* in is [rows, n].  top_k: the k largest values to out, their indices to at.  in_top_k: true if
 * fewer than k elements exceed the target's. */
struct top_k_args {
	uint64_t out, at, in, targets;
	int64_t rows, n, k;
	int32_t wide, unused; /* targets are int64 */
};

/* in and out are [outer, n, inner]. */
struct scan_args {
	uint64_t out, in;
	int64_t outer, n, inner;
	int32_t exclusive, reverse;
};

/* Gradient of MirrorPad along one dimension: out is [outer, n, inner], in is [outer, from,
 * inner]. */
struct mirror_args {
	uint64_t out, in;
	int64_t outer, n, inner, from, before, skip; /* skip 1: the edge itself is not repeated */
};

/* CheckNumerics: out[0]: in has an infinity; out[1]: in has a NaN. */
struct check_numerics_args {
	uint64_t out, in;
	int64_t n;
};

/* Where: counts is the cumulative sum of the condition; out gets the indices at which it rises. */
struct where_args {
	uint64_t out, counts;
	int64_t n, dim[CUDA_MAX_RANK];
	int32_t rank, unused;
};

/* Rows of `channels` elements.  y, g: the output and its gradient, for the gradient op. */
struct lrn_args {
	uint64_t out, x, y, g;
	int64_t n, channels, radius;
	float bias, alpha, beta, unused;
};

/* Convolutions and pools; see nn/window.cu.h. */
struct window_args {
	uint64_t out, in, filter, grad; /* grad: the gradient of the output */
	uint64_t top, at;               /* pools: the output, and the positions of the largest */
	int64_t n, batch, channels, filters, groups;
	struct window_axis_args axis[3];
	int32_t whole,
	    wide; /* whole: positions are in the batch, not in one image; wide: they are int64 */
};
/* Converts the positions of n maxima to keys: images have `image` elements and `each` maxima. */
struct pool_keys_args {
	uint64_t keys, order, at;
	int64_t n, image, each;
	int32_t whole, wide;
};

/* [pixels, channels]; see nn/batch_norm.cu.h.  `out`: vectors of the channels. */
struct norm_args {
	uint64_t y, x, g, middle, scale, offset, mean, variance, out[4];
	uint64_t sums, a, b, k; /* scratch memory */
	int64_t pixels, channels, pieces;
	double epsilon, factor;
	int32_t training, add_g, add_x;
};

/* Along one axis: output p is the sum of the inputs at[i] times weight[i], for i in [first[p],
 * first[p + 1]). */
struct resize_axis_args {
	uint64_t first, at, weight; /* int64, int64, double */
	int64_t made, read;         /* output and input lengths */
};
struct resize_args { /* NHWC */
	uint64_t out, in;
	int64_t n, channels;
	struct resize_axis_args row, column;
};

/* Recurrent cells; see rnn/rnn_cell.cu.h.  width: the sum of the widths of x and the cells. */
struct rnn_cell_args {
	uint64_t in[14], out[7];
	int64_t batch, cell, width, first;
	float bias, clip;
	int32_t peep, ci, f, unused;
};

struct list_args { /* out[i] = the sum of in[k][i] */
	uint64_t out, in[CUDA_MAX_LIST];
	int64_t n;
	int32_t count, unused;
};

struct argmax_args { /* in [outer, n, inner] */
	uint64_t out, in;
	int64_t outer, n, inner;
	int32_t smallest, wide;
};

#endif
