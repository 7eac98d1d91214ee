/* SPDX-License-Identifier: Apache-2.0 */
/* What the host hands to each kernel: read by nvcc and by the C compiler, so fixed sizes only.
 * Addresses are the device's.  Counts and strides are of elements. */
#ifndef MU_TASK_KERNELS_ENGINE_CUDA_ARGS_H
#define MU_TASK_KERNELS_ENGINE_CUDA_ARGS_H

#include <stdint.h>

enum { CUDA_MAX_RANK = 8, CUDA_MAX_LIST = 64 };

struct unary_args {
	uint64_t out, in;
	int64_t n;
};

/* out[i] = a[i * a_step] op b[i * b_step] with rank 0; else by the strides of each dimension. */
struct binary_args {
	uint64_t out, a, b;
	int64_t n;
	int32_t rank, a_step, b_step, unused;
	int64_t dim[CUDA_MAX_RANK], a_stride[CUDA_MAX_RANK], b_stride[CUDA_MAX_RANK];
};

/* c ? a : b; a step of 0 repeats one element.  `inner`: elements that share a c. */
struct select_args {
	uint64_t out, c, a, b;
	int64_t n, inner;
	int32_t c_step, a_step, b_step, unused;
};

/* g where x > 0, g * slope elsewhere; or whether the two are less than that apart. */
struct leaky_args {
	uint64_t out, x, g;
	int64_t n;
	double slope;
};

struct fill_args {
	uint64_t out, value; /* value: the bits of one element */
	int64_t n;
};

/* in is [outer, reduced, inner]; out is [outer, pieces, inner]: piece p of an output takes elements
 * p, p + pieces, …, and what comes of it is multiplied by scale. */
struct reduce_args {
	uint64_t out, in;
	int64_t outer, reduced, inner, pieces;
	double scale;
};

/* out is [batch][m, n], row after row; a and b have these strides of rows and columns.  Which
 * matrix of a and b each product takes is seen through the dimensions of the batch. */
struct matmul_args {
	uint64_t out, a, b, bias; /* bias 0: none */
	int64_t m, n, k;
	int64_t a_row, a_column, b_row, b_column;
	int32_t activation; /* 0 none, 1 relu, 2 sigmoid, 3 tanh */
	int32_t rank;       /* of the batch; 0: one product */
	int64_t dim[CUDA_MAX_RANK], a_stride[CUDA_MAX_RANK], b_stride[CUDA_MAX_RANK];
};

/* x is [outer, channels, inner]. */
struct bias_args {
	uint64_t out, in, bias;
	int64_t n, channels, inner;
};

struct softmax_args {
	uint64_t out, in;
	int64_t rows, n;
	int32_t logarithm, unused;
};

/* label_row and logit_row: 0 when one row serves all. */
struct xent_args {
	uint64_t loss, back, logits, labels;
	int64_t rows, n, logit_row, label_row, logit_column, label_column;
};

/* Rows of a table, by n updates of a row each that are sorted by the row they go to: `keys`. */
struct by_row {
	uint64_t keys, order; /* where the updates lay before they were sorted */
	int64_t n, row;       /* elements in a row */
};

/* var, up to three slots and a gradient; the algorithm's scalars lie on the device, since some are
 * variables that other kernels write. */
struct update_args {
	uint64_t at[4], grad, scalar[6];
	int64_t n;
	int32_t scalars, flag;
	int32_t counter, unused; /* which scalar is an int64, from 1; 0: none */
};

/* The same of some rows: grad is a row for each of by.n. */
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

/* out rows [at, at + n) of length `row` each are `from`'s: concat and split, part by part. */
struct part_args {
	uint64_t out, in;
	int64_t rows, run, out_row, in_row;
};

/* Parts of `each` elements, n elements in all, that lie one behind the other in whole; part 0:
 * zeros. */
struct parts_args {
	uint64_t whole, part[CUDA_MAX_LIST];
	int64_t n, each;
	int32_t cut, unused; /* cut: whole is read */
};

/* out is [outer, indices, inner] of in, [outer, limit, inner]. */
struct gather_args {
	uint64_t out, in, indices;
	int64_t outer, count, inner, limit;
	int32_t wide, unused; /* indices are int64 */
};

/* Positions of `depth` numbers each in a tensor of these dimensions -> the number of the slice that
 * each names, -1 for one that is outside, and how many went before it. */
struct position_args {
	uint64_t keys, order, indices;
	int64_t n, dim[CUDA_MAX_RANK];
	int32_t depth, wide; /* wide: indices are int64 */
};

/* Sorted runs of this length -> of twice that. */
struct merge_args {
	uint64_t to_keys, to_order, keys, order;
	int64_t n, run;
};

struct scatter_args {
	struct by_row by;
	uint64_t table, updates;
	int32_t one, unused; /* one: a scalar updates them all */
};

/* Row r of out is made of rows picks[starts[r]], … of data, before starts[r + 1]; factors: of each
 * pick, divisors: of each row, 0: none. */
struct segment_args {
	uint64_t out, data, starts, picks, factors, divisors;
	int64_t n, row; /* elements, in all and of a row */
};

/* Each element of out comes from where it stands less `by`, round the end of each dimension. */
struct roll_args {
	uint64_t out, in;
	int64_t n;
	int32_t rank, unused;
	int64_t dim[CUDA_MAX_RANK], by[CUDA_MAX_RANK];
};

/* Along one dimension, as far as the length for its place in another says, the other way round. */
struct reverse_args {
	uint64_t out, in, lengths; /* int64 */
	int64_t n, batch, batch_stride, seq, seq_stride;
};

/* Diagonals of n matrices and the same as rows of a band: array/roll_reverse_band.h. */
struct band_args {
	uint64_t matrix, band; /* or out and in, where only matrices are */
	int64_t n, rows, cols, from, to, longest;
	int32_t upper_left, lower_left, into_matrix, unused;
};

struct one_hot_args {
	uint64_t out, indices;
	int64_t prefix, depth, suffix;
	uint64_t on, off; /* bits */
	int32_t wide, unused;
};

/* The numbers of one run of a generator; group g, of four floats or two doubles, begins at counter
 * + g, or at counter + g * each where it may take several draws. */
struct random_args {
	uint64_t out;
	int64_t n, each;
	uint64_t low, span; /* of whole numbers; span 0: all that there are */
	uint32_t counter[4], key[2];
};

/* Rows of so many values, looked for in rows of n that rise. */
struct bound_args {
	uint64_t out, in, sorted;
	int64_t rows, values, n;
	int32_t upper, wide; /* wide: places are int64 */
};

/* Rows of the logits of n classes; sums: as many doubles, which rise. */
struct classes_args {
	struct random_args draws;
	uint64_t out, in, sums;
	int64_t rows, n, samples;
	int32_t wide, unused;
};

/* out[rows, by.row] = entries of a matrix [rows, inner] times b. */
struct sparse_product_args {
	struct by_row by;
	uint64_t out, indices, values, b;
	int64_t rows, inner, b_row, b_col; /* strides of b as it is read */
	int32_t flip, wide;
};

/* As struct window_axis of nn/window.h. */
struct window_axis_args {
	int64_t in, size, stride, dilation, out, pad;
};

/* in is [rows, n].  The k that come first: values to out, where they were to at; or whether fewer
 * than k are larger than the target's. */
struct rank_args {
	uint64_t out, at, in, targets;
	int64_t rows, n, k;
	int32_t wide, unused; /* targets are int64 */
};

/* The k that come first of each piece of a row, [rows, pieces, k]: values, and their numbers in the
 * row, or in ids where what is read was chosen before.  order: as many int32, for the call alone.
 */
struct top_k_args {
	uint64_t out, at, order, in, ids;
	int64_t rows, n, k, pieces;
};

/* in and out are [outer, n, inner]. */
struct scan_args {
	uint64_t out, in;
	int64_t outer, n, inner;
	int32_t exclusive, reverse;
};

/* The same, a block for each piece of a line.  `sums`, of what is computed with: what each piece
 * comes to, if that alone is asked for, or what comes before it, if it is `carried`. */
struct scan_block_args {
	struct scan_args of;
	uint64_t sums;
	int64_t pieces, piece; /* in a line; elements in one */
	int32_t totals, carried;
};

/* One dimension that was continued by its own reflection, as it was before: [outer, n, inner] of
 * [outer, from, inner]. */
struct mirror_args {
	uint64_t out, in;
	int64_t outer, n, inner, from, before, skip; /* skip 1: the edge itself is not repeated */
};

/* [0]: whether there is an infinity, [1]: whether there is what is no number. */
struct wrong_args {
	uint64_t out, in;
	int64_t n;
};

/* Where counts, one further with each that is true, go up: their positions. */
struct where_args {
	uint64_t out, counts;
	int64_t n, dim[CUDA_MAX_RANK];
	int32_t rank, unused;
};

/* Rows of so many channels; y, g: of a gradient. */
struct lrn_args {
	uint64_t out, x, y, g;
	int64_t n, channels, radius;
	float bias, alpha, beta, unused;
};

/* NDHWC: planes, rows and columns; n elements of what is made.  Patches begin at position `first`.
 */
struct volume_args {
	uint64_t out, in, top, grad;
	int64_t n, channels, filters, first;
	struct window_axis_args axis[3];
};

/* NHWC; n elements of what is made. */
struct pool_args {
	uint64_t out, in, grad, at; /* at: where the largest are, counted in their own image */
	int64_t n, channels;
	struct window_axis_args row, column;
	int32_t whole, wide; /* counted from the first image on; as int64 */
};
/* The same to keys: n numbers of elements of images of so many, `each` of them from one. */
struct pool_keys_args {
	uint64_t keys, order, at;
	int64_t n, image, each;
	int32_t whole, wide;
};

/* [pixels, channels]; see nn/batch_norm.cu.h.  `out`: vectors of the channels. */
struct norm_args {
	uint64_t y, x, g, middle, scale, offset, mean, variance, out[4];
	uint64_t sums, a, b, k; /* memory for the call alone */
	int64_t pixels, channels, pieces;
	double epsilon, factor;
	int32_t training, add_x;
};

/* NHWC and HWIO, see nn/conv.cu.h; of images [first, …) where it goes by patches.  n
 * elements of what is made. */
struct conv_args {
	uint64_t out, in, filter; /* in: the input or the gradient of the output */
	uint64_t grad;            /* of the output, for the filter's */
	int64_t n, batch, channels, filters, groups, pieces;
	struct window_axis_args row, column;
};

/* Along one axis: place p of what is made takes so much of certain places, those numbered from
 * first[p] to first[p + 1]. */
struct resize_axis_args {
	uint64_t first, at, weight; /* int64, int64, double */
	int64_t made, read;         /* places */
};
struct resize_args { /* NHWC */
	uint64_t out, in;
	int64_t n, channels;
	struct resize_axis_args row, column;
};

/* Recurrent cells; see rnn/cells.cu.h.  width: the sum of the widths of x and the cells. */
struct cells_args {
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
