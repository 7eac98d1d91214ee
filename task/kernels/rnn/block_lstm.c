/* SPDX-License-Identifier: Apache-2.0 */
/* BlockLSTM: an LSTM over a whole sequence in one op, forward and backward. Version 2 has the
 * forget gate before the cell gate, and no forget bias. Outputs of time steps from seq_len_max on
 * are zero. */
#include <string.h>

#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/product.h"
#include "task/kernels/rnn/rnn_cell.h"

/* Inputs after seq_len_max: x, cs_prev, h_prev, w, wci, wcf, wco, b */
enum { FIRST_OUT = 1 + LSTM_INPUTS };
static const char *const input_shapes[] = {
    "TBI", "BC",  "BC",  "S4",  "C",   "C",   "C",
    "4",                                             /* only in the gradient op: the outputs, */
    "TBC", "TBC", "TBC", "TBC", "TBC", "TBC", "TBC", /* and the gradients of cs and h */
    "TBC", "TBC",
};

static const char *const output_shapes[LSTM_OUTPUTS] = {"TBC", "TBC", "TBC", "TBC",
							"TBC", "TBC", "TBC"};
static const char *const grad_shapes[LSTM_GRADS] = {"TBI", "BC", "BC", "S4", "C", "C", "C", "4"};

int lstm_sequence_begin(struct kernel_call *c, bool backward, bool is_v2, struct lstm *l,
			int64_t *time_steps, float **to, struct mu_err *err)
{
	const unsigned n = backward ? MU_COUNT(input_shapes) : LSTM_INPUTS;

	MU_RETURN_IF_ERROR(args_int(c, 0, time_steps, err));
	MU_RETURN_IF_ERROR(rnn_cell_check(c, 1, input_shapes, n, &l->s, err));
	if (*time_steps < 0 || *time_steps > l->s.time)
		return mu_invalid(err, "seq_len_max %lld is not in [0, %lld]",
				  (long long)*time_steps, (long long)l->s.time);
	l->bias = is_v2 ? 0 : args_attr_float(c->node, "forget_bias", 1);
	l->clip = args_attr_float(c->node, "cell_clip", is_v2 ? 0 : 3);
	l->peep = args_attr_bool(c->node, "use_peephole", false);
	l->ci = is_v2 ? 2 : 1;
	l->f = is_v2 ? 1 : 2;
	l->w = rnn_cell_in(c, 4);
	l->b = rnn_cell_in(c, 8);
	for (unsigned i = 0; i < 3; i++)
		l->peeps[i] = rnn_cell_in(c, 5 + i);
	return rnn_cell_out(c, &l->s, backward ? grad_shapes : output_shapes,
			    backward ? LSTM_GRADS : LSTM_OUTPUTS, to, err);
}

/* ---- forward and backward ---- */

/* gates += h w */
static void add_recurrent(struct kernel_call *c, const struct rnn_cell_sizes *s, const float *h,
			  const float *w, float *gates)
{
	struct product p = {.m = s->batch, .n = 4 * s->cell, .k = s->cell, .add = true};

	product_in_parallel(c, MU_FLOAT, &p, h, w, gates);
}

static int block_lstm_forward(struct kernel_call *c, bool is_v2, struct mu_err *err)
{
	float *to[LSTM_OUTPUTS], *at[LSTM_OUTPUTS];
	int64_t time_steps;
	struct lstm l;

	MU_RETURN_IF_ERROR(lstm_sequence_begin(c, false, is_v2, &l, &time_steps, to, err));
	if (!l.s.batch || !l.s.cell)
		return 0;
	/* the product of x and the bias, for all time steps at once */
	int64_t gate_columns = 4 * l.s.cell, step = l.s.batch * l.s.cell;
	MU_AUTO_FREE float *gates = rnn_cell_scratch(&l.s, time_steps, gate_columns, err);
	if (!gates)
		return -(int)err->code;
	struct product p = {.m = time_steps * l.s.batch, .n = gate_columns, .k = l.s.in};
	product_in_parallel(c, MU_FLOAT, &p, rnn_cell_in(c, 1), l.w, gates);
	rnn_cell_add_bias(p.m, gate_columns, l.b, gates);

	const float *cs = rnn_cell_in(c, 2), *h = rnn_cell_in(c, 3);
	float *step_gates = gates;
	for (int64_t t = 0; t < time_steps; t++, step_gates += l.s.batch * gate_columns) {
		for (int i = 0; i < LSTM_OUTPUTS; i++)
			at[i] = to[i] + t * step;
		add_recurrent(c, &l.s, h, l.w + l.s.in * gate_columns, step_gates);
		lstm_gates(&l, cs, step_gates, at);
		cs = at[LSTM_CS];
		h = at[LSTM_H];
	}
	for (int i = 0; i < LSTM_OUTPUTS; i++)
		elems_zero(MU_FLOAT, to[i], time_steps * step, (l.s.time - time_steps) * step);
	return 0;
}

/* State of the gradient between time steps. */
struct lstm_gradient {
	float *xh, *d_xh, *gates; /* [x, h], its gradient, and the gradient of the gates */
	float *d_cs, *d_h;
};

/* Backward pass of one time step.  On entry d_cs and d_h hold the gradients from the next time
 * step, on return those for the previous time step. */
static void time_step_backward(struct kernel_call *c, const struct lstm *l, int64_t t,
			       struct lstm_gradient *k, float *const *to)
{
	const struct rnn_cell_sizes *s = &l->s;
	int64_t step = s->batch * s->cell, width = s->in + s->cell;
	const float *out[LSTM_OUTPUTS];

	for (unsigned i = 0; i < LSTM_OUTPUTS; i++)
		out[i] = rnn_cell_in(c, FIRST_OUT + i) + t * step;
	const float *cs = t ? out[LSTM_CS] - step : rnn_cell_in(c, 2);
	const float *h = t ? out[LSTM_H] - step : rnn_cell_in(c, 3);
	const float *x = rnn_cell_in(c, 1) + t * s->batch * s->in;
	for (int64_t i = 0; i < step; i++) {
		k->d_cs[i] += rnn_cell_in(c, FIRST_OUT + LSTM_OUTPUTS)[t * step + i];
		k->d_h[i] += rnn_cell_in(c, FIRST_OUT + LSTM_OUTPUTS + 1)[t * step + i];
	}
	/* in place: each element depends on itself only */
	lstm_step_back(
	    l, &(struct lstm_back){.cs = cs,
				   .d_cs = k->d_cs,
				   .d_h = k->d_h,
				   .out = out,
				   .d_cs_prev = k->d_cs,
				   .gates = k->gates,
				   .d_peeps = {to[D_PEEP], to[D_PEEP + 1], to[D_PEEP + 2]}});
	struct product p = {.m = s->batch, .n = width, .k = 4 * s->cell, .trans_b = true};
	product(MU_FLOAT, &p, k->gates, l->w, k->d_xh);
	for (int64_t b = 0; b < s->batch; b++) {
		elems_copy(MU_FLOAT, to[D_X], (t * s->batch + b) * s->in, k->d_xh, b * width,
			   s->in);
		elems_copy(MU_FLOAT, k->d_h, b * s->cell, k->d_xh, b * width + s->in, s->cell);
		elems_copy(MU_FLOAT, k->xh, b * width, x, b * s->in, s->in);
		elems_copy(MU_FLOAT, k->xh, b * width + s->in, h, b * s->cell, s->cell);
	}
	p = (struct product){
	    .m = width, .n = 4 * s->cell, .k = s->batch, .trans_a = true, .add = true};
	product(MU_FLOAT, &p, k->xh, k->gates, to[D_W]);
	for (int64_t i = 0; i < s->batch * 4 * s->cell; i++)
		to[D_B][i % (4 * s->cell)] += k->gates[i];
}

static int block_lstm_backward(struct kernel_call *c, bool is_v2, struct mu_err *err)
{
	float *to[LSTM_GRADS];
	int64_t time_steps;
	struct lstm l;

	MU_RETURN_IF_ERROR(lstm_sequence_begin(c, true, is_v2, &l, &time_steps, to, err));
	MU_AUTO_FREE float *gates = rnn_cell_scratch(&l.s, 1, 4 * l.s.cell, err);
	MU_AUTO_FREE float *xh = rnn_cell_scratch(&l.s, 1, l.s.in + l.s.cell, err);
	MU_AUTO_FREE float *d_xh = rnn_cell_scratch(&l.s, 1, l.s.in + l.s.cell, err);
	if (!gates || !xh || !d_xh)
		return -(int)err->code;
	for (unsigned i = 0; i < LSTM_GRADS; i++)
		elems_zero(MU_FLOAT, to[i], 0, c->out[i].tensor.shape.count);
	struct lstm_gradient k = {xh, d_xh, gates, to[D_CS], to[D_H]};
	for (int64_t t = l.s.batch && l.s.cell ? time_steps : 0; t-- > 0;)
		time_step_backward(c, &l, t, &k, to);
	return 0;
}

#define OP(name, fn, is_v2) KERNEL_RUN(name, fn(c, is_v2, err))
OP(forward_v1, block_lstm_forward, false)
OP(forward_v2, block_lstm_forward, true)
OP(backward_v1, block_lstm_backward, false)
OP(backward_v2, block_lstm_backward, true)

static const struct kernel rows[] = {
    {"BlockLSTM", .flags = KERNEL_EXPENSIVE, .run = forward_v1},
    {"BlockLSTMGrad", .flags = KERNEL_EXPENSIVE, .run = backward_v1},
    {"BlockLSTMGradV2", .flags = KERNEL_EXPENSIVE, .run = backward_v2},
    {"BlockLSTMV2", .flags = KERNEL_EXPENSIVE, .run = forward_v2},
};
KERNEL_TABLE(rnn_block_lstm, rows)
