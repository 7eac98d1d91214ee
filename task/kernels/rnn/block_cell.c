/* SPDX-License-Identifier: Apache-2.0 */
/* One step of an LSTM or a GRU as one op, forward and backward.  The gates of an LSTM are
 * contiguous in the order i, ci, f, o; those of a GRU r, u.  The arithmetic is in float. */
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/product.h"
#include "task/kernels/rnn/rnn_cell.h"

/* ---- LSTM: x, cs_prev, h_prev, w, wci, wcf, wco, b ---- */

static const char *const lstm_in[] = {
    "BI", "BC", "BC", "S4", "C",  "C",  "C",  "4", /* only in the gradient op: */
    "BC", "BC", "BC", "BC", "BC", "BC", "BC", "BC",
};

static const char *const lstm_out[LSTM_OUTPUTS] = {"BC", "BC", "BC", "BC", "BC", "BC", "BC"};
static const char *const lstm_grads[LSTM_CELL_GRADS] = {"BC", "B4", "C", "C", "C"};

int lstm_cell_begin(struct kernel_call *c, bool backward, struct lstm *l, float **to,
		    struct mu_err *err)
{
	*l = (struct lstm){.bias = args_attr_float(c->node, "forget_bias", 1),
			   .clip = args_attr_float(c->node, "cell_clip", 3),
			   .peep = args_attr_bool(c->node, "use_peephole", false),
			   .ci = 1,
			   .f = 2,
			   .w = rnn_cell_in(c, 3),
			   .b = rnn_cell_in(c, 7),
			   .peeps = {rnn_cell_in(c, 4), rnn_cell_in(c, 5), rnn_cell_in(c, 6)}};
	MU_RETURN_IF_ERROR(
	    rnn_cell_check(c, 0, lstm_in, backward ? MU_COUNT(lstm_in) : LSTM_INPUTS, &l->s, err));
	return rnn_cell_out(c, &l->s, backward ? lstm_grads : lstm_out,
			    backward ? LSTM_CELL_GRADS : LSTM_OUTPUTS, to, err);
}

static int lstm(struct kernel_call *c, struct mu_err *err)
{
	float *to[LSTM_OUTPUTS];
	struct lstm l;

	MU_RETURN_IF_ERROR(lstm_cell_begin(c, false, &l, to, err));
	MU_AUTO_FREE float *gates = rnn_cell_scratch(&l.s, 1, 4 * l.s.cell, err);
	MU_AUTO_FREE float *xh = rnn_cell_scratch(&l.s, 1, l.s.in + l.s.cell, err);
	if (!gates || !xh)
		return -(int)err->code;
	lstm_step(&l, rnn_cell_in(c, 0), rnn_cell_in(c, 1), rnn_cell_in(c, 2), xh, gates, to);
	return 0;
}

/* Inputs: the inputs of the cell, its outputs i, cs, f, o, ci, co, the gradients of cs and h. */
static int lstm_grad(struct kernel_call *c, struct mu_err *err)
{
	const float *out[LSTM_OUTPUTS - 1];
	float *to[LSTM_CELL_GRADS];
	struct lstm l;

	MU_RETURN_IF_ERROR(lstm_cell_begin(c, true, &l, to, err));
	for (unsigned n = 2; n < LSTM_CELL_GRADS; n++)
		elems_zero(MU_FLOAT, to[n], 0, l.s.cell);
	for (unsigned n = 0; n < MU_COUNT(out); n++)
		out[n] = rnn_cell_in(c, LSTM_INPUTS + n);
	lstm_step_back(&l, &(struct lstm_back){.cs = rnn_cell_in(c, 1),
					       .d_cs = rnn_cell_in(c, 14),
					       .d_h = rnn_cell_in(c, 15),
					       .out = out,
					       .d_cs_prev = to[0],
					       .gates = to[1],
					       .d_peeps = {to[2], to[3], to[4]}});
	return 0;
}

/* ---- GRU: x, h_prev, w_ru, w_c, b_ru, b_c ---- */

static const char *const gru_in[] = {
    "BI", "BC", "S2", "SC", "2", "C", /* only in the gradient op: */
    "BC", "BC", "BC", "BC",
};

static const char *const gru_out[GRU_OUTPUTS] = {"BC", "BC", "BC", "BC"};
static const char *const gru_grads[GRU_OUTPUTS] = {"BI", "BC", "BC", "B2"};

int gru_cell_begin(struct kernel_call *c, bool backward, struct rnn_cell_sizes *s, float **to,
		   struct mu_err *err)
{
	MU_RETURN_IF_ERROR(
	    rnn_cell_check(c, 0, gru_in, backward ? MU_COUNT(gru_in) : GRU_INPUTS, s, err));
	return rnn_cell_out(c, s, backward ? gru_grads : gru_out, GRU_OUTPUTS, to, err);
}

static int gru(struct kernel_call *c, struct mu_err *err)
{
	float *to[GRU_OUTPUTS];
	const float *h = NULL;
	struct rnn_cell_sizes s;

	MU_RETURN_IF_ERROR(gru_cell_begin(c, false, &s, to, err));
	MU_AUTO_FREE float *gates = rnn_cell_scratch(&s, 1, 2 * s.cell, err);
	MU_AUTO_FREE float *xh = rnn_cell_scratch(&s, 1, s.in + s.cell, err);
	if (!gates || !xh)
		return -(int)err->code;
	h = rnn_cell_in(c, 1);
	rnn_cell_gates(&s, rnn_cell_in(c, 0), h, NULL, rnn_cell_in(c, 2), rnn_cell_in(c, 4), 2, xh,
		       gates);
	for (int64_t b = 0; b < s.batch; b++)
		for (int64_t g = 0; g < 2; g++)
			rnn_cell_sigmoid(to[g] + b * s.cell, gates + (2 * b + g) * s.cell, s.cell);
	rnn_cell_gates(&s, rnn_cell_in(c, 0), h, to[0], rnn_cell_in(c, 3), rnn_cell_in(c, 5), 1, xh,
		       to[2]);
	rnn_cell_tanh(to[2], to[2], s.batch * s.cell);
	for (int64_t k = 0; k < s.batch * s.cell; k++)
		to[3][k] = to[1][k] * (h[k] - to[2][k]) + to[2][k];
	return 0;
}

/* Computes from r, u, c and the gradient of h the gradients of x, h_prev, and of c, r and u before
 * their activation. */
static int gru_grad(struct kernel_call *c, struct mu_err *err)
{
	float *to[GRU_OUTPUTS];
	struct rnn_cell_sizes s;

	MU_RETURN_IF_ERROR(gru_cell_begin(c, true, &s, to, err));
	const float *h = rnn_cell_in(c, 1), *r = rnn_cell_in(c, 6), *u = rnn_cell_in(c, 7),
		    *candidate = rnn_cell_in(c, 8), *dh = rnn_cell_in(c, 9);
	int64_t width = s.in + s.cell;
	MU_AUTO_FREE float *d_xrh = rnn_cell_scratch(&s, 1, width, err);
	MU_AUTO_FREE float *d_xh = rnn_cell_scratch(&s, 1, width, err);
	if (!d_xrh || !d_xh)
		return -(int)err->code;
	for (int64_t k = 0; k < s.batch * s.cell; k++)
		to[2][k] = dh[k] * (1 - u[k]) * (1 - candidate[k] * candidate[k]);
	struct product p = {.m = s.batch, .n = width, .k = s.cell, .trans_b = true};
	product(MU_FLOAT, &p, to[2], rnn_cell_in(c, 3), d_xrh);
	for (int64_t k = 0; k < s.batch * s.cell; k++) {
		int64_t b = k / s.cell, j = k % s.cell;
		float d_hr = d_xrh[b * width + s.in + j];
		to[3][b * 2 * s.cell + j] = d_hr * h[k] * r[k] * (1 - r[k]);
		to[3][(b * 2 + 1) * s.cell + j] = dh[k] * (h[k] - candidate[k]) * u[k] * (1 - u[k]);
	}
	p.k = 2 * s.cell;
	product(MU_FLOAT, &p, to[3], rnn_cell_in(c, 2), d_xh);
	for (int64_t b = 0; b < s.batch; b++) {
		for (int64_t j = 0; j < s.in; j++)
			to[0][b * s.in + j] = d_xrh[b * width + j] + d_xh[b * width + j];
		for (int64_t j = 0; j < s.cell; j++) {
			int64_t k = b * s.cell + j, at = b * width + s.in + j;
			to[1][k] = d_xh[at] + d_xrh[at] * r[k] + dh[k] * u[k];
		}
	}
	return 0;
}

static const struct kernel rows[] = {
    {"LSTMBlockCell", .flags = KERNEL_EXPENSIVE, .run = lstm},
    {"LSTMBlockCellGrad", .flags = KERNEL_EXPENSIVE, .run = lstm_grad},
    {"GRUBlockCell", .flags = KERNEL_EXPENSIVE, .run = gru},
    {"GRUBlockCellGrad", .flags = KERNEL_EXPENSIVE, .run = gru_grad},
};
KERNEL_TABLE(rnn_block_cell, rows)
