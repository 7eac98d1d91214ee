/* SPDX-License-Identifier: Apache-2.0 */
/* What the host hands to each kernel: read by nvcc and by the C compiler, so fixed sizes only.
 * Addresses are the device's.  Counts and strides are of elements. */
#ifndef MU_TASK_KERNELS_ENGINE_CUDA_ARGS_H
#define MU_TASK_KERNELS_ENGINE_CUDA_ARGS_H

#include <stdint.h>

enum { CUDA_MAX_RANK = 8, CUDA_MAX_LIST = 64, CUDA_MAX_OPERANDS = 3 };

struct unary_args {
	uint64_t out, in;
	int64_t n;
};

/* Where element i of a result finds its operands: each has a stride per dimension. */
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

/* Two operands of one shape, and a number. */
struct pair_args {
	uint64_t out, x, g;
	int64_t n;
	double number;
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

/* in and out are [outer, n, inner]. */
struct scan_args {
	uint64_t out, in;
	int64_t outer, n, inner;
	int32_t exclusive, reverse;
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

/* Convolutions and pools; see nn/window.cu.h. */
struct window_args {
	uint64_t out, in, filter, grad; /* grad: the gradient of the output */
	uint64_t top, at;               /* pools: the output, and the positions of the largest */
	int64_t n, batch, channels, filters, groups;
	struct window_axis_args axis[3];
	int32_t whole, wide; /* positions count over all images, not in each; are int64 */
};
/* Positions as keys: n numbers of elements of images of so many, `each` of them from one. */
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
