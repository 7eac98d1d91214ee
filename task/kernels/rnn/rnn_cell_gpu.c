/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent cells on a GPU, one step or a whole sequence, forward and backward: matrix products,
 * and between them one kernel for the gates (rnn/rnn_cell.cu.h).
 *
 * Each time step of a sequence takes two launches: the product with the previous output, and the
 * gates.  The products with x, and the gradients of x, weights, bias and peepholes, are computed
 * for all time steps at once. */
#include <string.h>

#include "task/kernels/linalg/matmul_gpu.h"
#include "task/kernels/math/reduce_gpu.h"
#include "task/kernels/rnn/rnn_cell.h"

enum { BIAS = 2 };

/* ---- helpers ---- */

static cuda_ptr address_of(const float *data)
{
	return (cuda_ptr)(uintptr_t)data;
}

static cuda_ptr advance(cuda_ptr from, int64_t elements)
{
	return from + (uint64_t)elements * sizeof(float);
}

static int cell_multiply(struct kernel_call *c, const struct product *p, cuda_ptr a, cuda_ptr b,
			 cuda_ptr out, struct mu_err *err)
{
	return gpu_matmul(kernel_gpu(c), MU_FLOAT, p, out, a, b, NULL, err);
}

static int cell_zeros(struct kernel_call *c, float *from, int64_t n, struct mu_err *err)
{
	struct mu_tensor t = {.dtype = MU_FLOAT, .shape = mu_shape_vec(n), .data = from};

	return gpu_fill(kernel_gpu(c), &t, 0, err);
}

static int cell_matrix(struct kernel_call *c, int64_t rows, int64_t columns, struct mu_tensor *out,
		       struct mu_err *err)
{
	struct mu_shape s;

	MU_RETURN_IF_ERROR(mu_shape_set(&s, 2, (int64_t[]){rows, columns}, err));
	return gpu_scratch(c, MU_FLOAT, s.count, out, err);
}

/* out[columns] = sums over the rows. */
static int cell_sum_rows(struct kernel_call *c, cuda_ptr in, int64_t rows, int64_t columns,
			 float *out, struct mu_err *err)
{
	const struct reduce_args a = {
	    .out = address_of(out), .in = in, .outer = 1, .reduced = rows, .inner = columns};

	return gpu_reduce(c, "Sum", "Sum", MU_FLOAT, 1, &a, err);
}

static struct rnn_cell_args lstm_args(const struct lstm *l, int64_t rows)
{
	return (struct rnn_cell_args){.batch = rows,
				      .cell = l->s.cell,
				      .first = l->s.batch * l->s.cell,
				      .bias = l->bias,
				      .clip = l->clip,
				      .peep = l->peep,
				      .ci = l->ci,
				      .f = l->f};
}

/* ---- LSTM, forward ---- */

/* x and the initial state. */
struct lstm_inputs {
	cuda_ptr x, cs, h;
};

static int lstm_forward(struct kernel_call *c, const struct lstm *l, struct lstm_inputs g,
			int64_t time_steps, float *const *to, struct mu_err *err)
{
	const int64_t gate_columns = 4 * l->s.cell, step = l->s.batch * l->s.cell;
	const struct product by_x = {.m = time_steps * l->s.batch, .n = gate_columns, .k = l->s.in};
	const struct product by_h = {.m = l->s.batch, .n = gate_columns, .k = l->s.cell};
	struct rnn_cell_args a = lstm_args(l, l->s.batch);
	MU_AUTO_TENSOR xs = {0};
	MU_AUTO_TENSOR hs = {0};
	int rc = 0;

	MU_RETURN_IF_ERROR(cell_matrix(c, by_x.m, gate_columns, &xs, err));
	MU_RETURN_IF_ERROR(cell_matrix(c, by_h.m, gate_columns, &hs, err));
	MU_RETURN_IF_ERROR(cell_multiply(c, &by_x, g.x, address_of(l->w), gpu_address(&xs), err));
	a.in[1] = gpu_address(&hs);
	a.in[BIAS] = address_of(l->b);
	for (int i = 0; i < 3; i++)
		a.in[4 + i] = address_of(l->peeps[i]);
	for (int64_t t = 0; t < time_steps && !rc; t++) {
		a.in[0] = advance(gpu_address(&xs), t * l->s.batch * gate_columns);
		a.in[3] = g.cs;
		for (int i = 0; i < LSTM_OUTPUTS; i++)
			a.out[i] = advance(address_of(to[i]), t * step);
		if (!(rc = cell_multiply(c, &by_h, g.h,
					 advance(address_of(l->w), l->s.in * gate_columns), a.in[1],
					 err)))
			rc = gpu_run(kernel_gpu(c), "lstm_gates", step, &a, err);
		g.cs = a.out[LSTM_CS];
		g.h = a.out[LSTM_H];
	}
	for (int i = 0; i < LSTM_OUTPUTS && !rc; i++)
		rc = cell_zeros(c, to[i] + time_steps * step, (l->s.time - time_steps) * step, err);
	return rc;
}

static struct lstm_inputs lstm_inputs_at(const struct kernel_call *c, unsigned x)
{
	return (struct lstm_inputs){address_of(rnn_cell_in(c, x)),
				    address_of(rnn_cell_in(c, x + 1)),
				    address_of(rnn_cell_in(c, x + 2))};
}

static int lstm_gpu(struct kernel_call *c, struct mu_err *err)
{
	float *to[LSTM_OUTPUTS];
	struct lstm l;

	MU_RETURN_IF_ERROR(lstm_cell_begin(c, false, &l, to, err));
	return lstm_forward(c, &l, lstm_inputs_at(c, 0), 1, to, err);
}

static int sequence(struct kernel_call *c, struct mu_err *err)
{
	const bool is_v2 = strcmp(c->node->op, "BlockLSTMV2") == 0;
	float *to[LSTM_OUTPUTS];
	int64_t time_steps;
	struct lstm l;

	MU_RETURN_IF_ERROR(lstm_sequence_begin(c, false, is_v2, &l, &time_steps, to, err));
	return lstm_forward(c, &l, lstm_inputs_at(c, 1), time_steps, to, err);
}

/* ---- LSTM, backward ---- */

/* The gradient of the peepholes over all time steps, from the gates' gradients. */
static int peepholes_backward(struct kernel_call *c, const struct lstm *l, cuda_ptr gates,
			      cuda_ptr cs_prev, cuda_ptr cs, int64_t time_steps, float *const *to,
			      struct mu_err *err)
{
	const int64_t rows = time_steps * l->s.batch, n = rows * l->s.cell;
	struct rnn_cell_args a = lstm_args(l, rows);
	MU_AUTO_TENSOR row_gradients = {0};
	int rc = 0;

	if (!l->peep) {
		for (int i = 0; i < 3 && !rc; i++)
			rc = cell_zeros(c, to[i], l->s.cell, err);
		return rc;
	}
	MU_RETURN_IF_ERROR(cell_matrix(c, 3 * rows, l->s.cell, &row_gradients, err));
	a.in[0] = gates;
	a.in[1] = cs_prev;
	a.in[2] = cs;
	for (int i = 0; i < 3; i++)
		a.out[i] = advance(gpu_address(&row_gradients), i * n);
	rc = gpu_run(kernel_gpu(c), "lstm_peeps", n, &a, err);
	for (int i = 0; i < 3 && !rc; i++)
		rc = cell_sum_rows(c, a.out[i], rows, l->s.cell, to[i], err);
	return rc;
}

/* Arguments of the backward kernel: the outputs of the forward op, from input `first` on, and
 * peepholes. */
static struct rnn_cell_args backward_args(const struct kernel_call *c, const struct lstm *l,
					  unsigned first, int64_t at_element)
{
	static const int outputs[] = {LSTM_I, LSTM_CS, LSTM_F, LSTM_O, LSTM_CI, LSTM_CO};
	struct rnn_cell_args a = lstm_args(l, l->s.batch);

	for (unsigned i = 0; i < MU_COUNT(outputs); i++)
		a.in[i] =
		    advance(address_of(rnn_cell_in(c, first + (unsigned)outputs[i])), at_element);
	for (int i = 0; i < 3; i++)
		a.in[11 + i] = address_of(l->peeps[i]);
	return a;
}

static int lstm_grad_gpu(struct kernel_call *c, struct mu_err *err)
{
	float *to[LSTM_CELL_GRADS];
	struct lstm l;

	MU_RETURN_IF_ERROR(lstm_cell_begin(c, true, &l, to, err));
	struct rnn_cell_args a = backward_args(c, &l, LSTM_INPUTS, 0);
	a.in[6] = address_of(rnn_cell_in(c, 1));
	a.in[7] = address_of(rnn_cell_in(c, 14));
	a.in[8] = address_of(rnn_cell_in(c, 15));
	a.out[0] = address_of(to[1]);
	a.out[1] = address_of(to[0]);
	MU_RETURN_IF_ERROR(gpu_run(kernel_gpu(c), "lstm_back", l.s.batch * l.s.cell, &a, err));
	return peepholes_backward(c, &l, a.out[0], a.in[6], a.in[1], 1, to + 2, err);
}

enum { FIRST_OUT = 1 + LSTM_INPUTS };

/* The gradients of the gates of all time steps, and of the initial state. */
static int time_steps_backward(struct kernel_call *c, const struct lstm *l, int64_t time_steps,
			       cuda_ptr gates, float *const *to, struct mu_err *err)
{
	const int64_t gate_columns = 4 * l->s.cell, step = l->s.batch * l->s.cell;
	const struct product by_h = {
	    .m = l->s.batch, .n = l->s.cell, .k = gate_columns, .trans_b = true};
	int rc;

	if ((rc = cell_zeros(c, to[D_CS], step, err)) || (rc = cell_zeros(c, to[D_H], step, err)))
		return rc;
	for (int64_t t = time_steps; t-- > 0 && !rc;) {
		struct rnn_cell_args a = backward_args(c, l, FIRST_OUT, t * step);
		a.in[6] = t ? advance(a.in[1], -step) : address_of(rnn_cell_in(c, 2));
		a.in[7] = a.out[1] = address_of(to[D_CS]);
		a.in[8] = address_of(to[D_H]);
		a.in[9] = advance(address_of(rnn_cell_in(c, FIRST_OUT + LSTM_OUTPUTS)), t * step);
		a.in[10] =
		    advance(address_of(rnn_cell_in(c, FIRST_OUT + LSTM_OUTPUTS + 1)), t * step);
		a.out[0] = advance(gates, t * l->s.batch * gate_columns);
		if (!(rc = gpu_run(kernel_gpu(c), "lstm_back", step, &a, err)))
			rc = cell_multiply(c, &by_h, a.out[0],
					   advance(address_of(l->w), l->s.in * gate_columns),
					   address_of(to[D_H]), err);
	}
	return rc;
}

/* The gradients of the weights of x and of h.  The h of all time steps are first copied to
 * contiguous memory. */
static int weights_backward(struct kernel_call *c, const struct lstm *l, int64_t time_steps,
			    cuda_ptr gates, cuda_ptr d_w, struct mu_err *err)
{
	const int64_t rows = time_steps * l->s.batch, step = l->s.batch * l->s.cell;
	const struct product by_x = {.m = l->s.in, .n = 4 * l->s.cell, .k = rows, .trans_a = true};
	const struct product by_h = {
	    .m = l->s.cell, .n = 4 * l->s.cell, .k = rows, .trans_a = true};
	const cuda_ptr first = address_of(rnn_cell_in(c, 3)),
		       h = address_of(rnn_cell_in(c, FIRST_OUT + LSTM_H));
	MU_AUTO_TENSOR h_prev = {0};
	int rc = cell_matrix(c, rows, l->s.cell, &h_prev, err);

	if (!rc && time_steps)
		rc = gpu_copy_within(kernel_gpu(c), gpu_address(&h_prev), first,
				     (size_t)step * sizeof(float), err);
	if (!rc && time_steps)
		rc = gpu_copy_within(kernel_gpu(c), advance(gpu_address(&h_prev), step), h,
				     (size_t)((time_steps - 1) * step) * sizeof(float), err);
	if (rc || (rc = cell_multiply(c, &by_x, address_of(rnn_cell_in(c, 1)), gates, d_w, err)))
		return rc;
	return cell_multiply(c, &by_h, gpu_address(&h_prev), gates,
			     advance(d_w, l->s.in * 4 * l->s.cell), err);
}

static int sequence_grad(struct kernel_call *c, struct mu_err *err)
{
	const bool is_v2 = strcmp(c->node->op, "BlockLSTMGradV2") == 0;
	MU_AUTO_TENSOR gates = {0};
	float *to[LSTM_GRADS];
	int64_t time_steps;
	struct lstm l;

	MU_RETURN_IF_ERROR(lstm_sequence_begin(c, true, is_v2, &l, &time_steps, to, err));
	const int64_t rows = time_steps * l.s.batch, gate_columns = 4 * l.s.cell;
	const struct product to_x = {.m = rows, .n = l.s.in, .k = gate_columns, .trans_b = true};
	MU_RETURN_IF_ERROR(cell_matrix(c, rows, gate_columns, &gates, err));
	MU_RETURN_IF_ERROR(time_steps_backward(c, &l, time_steps, gpu_address(&gates), to, err));
	MU_RETURN_IF_ERROR(cell_multiply(c, &to_x, gpu_address(&gates), address_of(l.w),
					 address_of(to[D_X]), err));
	MU_RETURN_IF_ERROR(
	    cell_zeros(c, to[D_X] + rows * l.s.in, (l.s.time * l.s.batch - rows) * l.s.in, err));
	MU_RETURN_IF_ERROR(
	    weights_backward(c, &l, time_steps, gpu_address(&gates), address_of(to[D_W]), err));
	MU_RETURN_IF_ERROR(cell_sum_rows(c, gpu_address(&gates), rows, gate_columns, to[D_B], err));
	return peepholes_backward(c, &l, gpu_address(&gates), address_of(rnn_cell_in(c, 2)),
				  address_of(rnn_cell_in(c, FIRST_OUT + LSTM_CS)), time_steps,
				  to + D_PEEP, err);
}

/* ---- GRU ---- */

/* The products of x and of h with a matrix of `columns` columns; the gate kernels add them. */
static int multiply_x_and_h(struct kernel_call *c, const struct rnn_cell_sizes *s, int64_t columns,
			    const float *w, cuda_ptr h, struct rnn_cell_args *a, struct mu_err *err)
{
	const struct product by_x = {.m = s->batch, .n = columns, .k = s->in};
	const struct product by_h = {.m = s->batch, .n = columns, .k = s->cell};
	int rc =
	    cell_multiply(c, &by_x, address_of(rnn_cell_in(c, 0)), address_of(w), a->in[0], err);

	return rc ? rc
		  : cell_multiply(c, &by_h, h, advance(address_of(w), s->in * columns), a->in[1],
				  err);
}

static int gru_gpu(struct kernel_call *c, struct mu_err *err)
{
	float *to[GRU_OUTPUTS];
	MU_AUTO_TENSOR xs = {0};
	MU_AUTO_TENSOR hs = {0};
	MU_AUTO_TENSOR rh = {0};
	struct rnn_cell_sizes s;

	MU_RETURN_IF_ERROR(gru_cell_begin(c, false, &s, to, err));
	MU_RETURN_IF_ERROR(cell_matrix(c, s.batch, 2 * s.cell, &xs, err));
	MU_RETURN_IF_ERROR(cell_matrix(c, s.batch, 2 * s.cell, &hs, err));
	MU_RETURN_IF_ERROR(cell_matrix(c, s.batch, s.cell, &rh, err));
	const int64_t n = s.batch * s.cell;
	const cuda_ptr h = address_of(rnn_cell_in(c, 1));
	struct rnn_cell_args a = {.in = {gpu_address(&xs), gpu_address(&hs),
					 address_of(rnn_cell_in(c, 4)), h, address_of(to[1])},
				  .out = {address_of(to[0]), address_of(to[1]), gpu_address(&rh)},
				  .batch = s.batch,
				  .cell = s.cell};
	MU_RETURN_IF_ERROR(multiply_x_and_h(c, &s, 2 * s.cell, rnn_cell_in(c, 2), h, &a, err));
	MU_RETURN_IF_ERROR(gpu_run(kernel_gpu(c), "gru_gates", n, &a, err));
	MU_RETURN_IF_ERROR(
	    multiply_x_and_h(c, &s, s.cell, rnn_cell_in(c, 3), gpu_address(&rh), &a, err));
	a.in[BIAS] = address_of(rnn_cell_in(c, 5));
	a.out[0] = address_of(to[2]);
	a.out[1] = address_of(to[3]);
	return gpu_run(kernel_gpu(c), "gru_new", n, &a, err);
}

static int gru_grad_gpu(struct kernel_call *c, struct mu_err *err)
{
	float *to[GRU_OUTPUTS];
	MU_AUTO_TENSOR d_xrh = {0};
	MU_AUTO_TENSOR d_xh = {0};
	struct rnn_cell_sizes s;

	MU_RETURN_IF_ERROR(gru_cell_begin(c, true, &s, to, err));
	const int64_t width = s.in + s.cell, n = s.batch * s.cell;
	struct product p = {.m = s.batch, .n = width, .k = s.cell, .trans_b = true};
	MU_RETURN_IF_ERROR(cell_matrix(c, s.batch, width, &d_xrh, err));
	MU_RETURN_IF_ERROR(cell_matrix(c, s.batch, width, &d_xh, err));
	struct rnn_cell_args a = {
	    .in = {address_of(rnn_cell_in(c, 9)), address_of(rnn_cell_in(c, 7)),
		   address_of(rnn_cell_in(c, 8)), gpu_address(&d_xrh),
		   address_of(rnn_cell_in(c, 1)), address_of(rnn_cell_in(c, 6))},
	    .out = {address_of(to[2])},
	    .batch = s.batch,
	    .cell = s.cell,
	    .width = width};
	MU_RETURN_IF_ERROR(gpu_run(kernel_gpu(c), "gru_back_new", n, &a, err));
	MU_RETURN_IF_ERROR(cell_multiply(c, &p, address_of(to[2]), address_of(rnn_cell_in(c, 3)),
					 gpu_address(&d_xrh), err));
	a.out[0] = address_of(to[3]);
	p.k = 2 * s.cell;
	MU_RETURN_IF_ERROR(gpu_run(kernel_gpu(c), "gru_back_gates", n, &a, err));
	MU_RETURN_IF_ERROR(cell_multiply(c, &p, address_of(to[3]), address_of(rnn_cell_in(c, 2)),
					 gpu_address(&d_xh), err));
	a.in[4] = a.in[5];
	a.in[5] = gpu_address(&d_xh);
	a.out[0] = address_of(to[0]);
	a.out[1] = address_of(to[1]);
	return gpu_run(kernel_gpu(c), "gru_back_out", s.batch * width, &a, err);
}

/* seq_len_max is read on the host. */
#define ROW(ops, fn, host) GPU_ROW(ops, fn, "T", GPU_TYPE(MU_FLOAT), .host_in = host)
static const struct device_kernel rows[] = {
    ROW("LSTMBlockCell", lstm_gpu, 0),      ROW("LSTMBlockCellGrad", lstm_grad_gpu, 0),
    ROW("BlockLSTM", sequence, 1),          ROW("BlockLSTMV2", sequence, 1),
    ROW("BlockLSTMGrad", sequence_grad, 1), ROW("BlockLSTMGradV2", sequence_grad, 1),
    ROW("GRUBlockCell", gru_gpu, 0),        ROW("GRUBlockCellGrad", gru_grad_gpu, 0),
};
KERNEL_TABLE(rnn_rnn_cell_gpu, rows)
