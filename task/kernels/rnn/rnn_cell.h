/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and the forward and backward LSTM step, shared by the ops of one step and those of a whole
 * sequence. The arithmetic is in float. */
#ifndef MU_TASK_KERNELS_RNN_RNN_CELL_H
#define MU_TASK_KERNELS_RNN_RNN_CELL_H

#include "task/kernels/engine/args.h"

struct rnn_cell_sizes {
	int64_t time, batch, in, cell; /* time is 1 without a time dimension */
};

/* Checks the shapes of n inputs from input `x` on: x, the previous cells, and the others.  Each
 * letter of want[] is a dimension: T time steps, B batch, I inputs, C cells, S = I + C, 2 = 2 C,
 * 4 = 4 C. */
int rnn_cell_check(const struct kernel_call *c, unsigned x, const char *const *want, unsigned n,
		   struct rnn_cell_sizes *s, struct mu_err *err);
/* Allocates outputs 0 … n - 1, float, of the shapes want[], in the memory of the node's device. */
int rnn_cell_out(struct kernel_call *c, const struct rnn_cell_sizes *s, const char *const *want,
		 unsigned n, float **to, struct mu_err *err);
static inline const float *rnn_cell_in(const struct kernel_call *c, unsigned i)
{
	return kernel_in(c, i)->data;
}
/* Returns new zeros [time_steps, batch, columns]; the caller frees them.  NULL and an error if
 * there is no memory. */
float *rnn_cell_scratch(const struct rnn_cell_sizes *s, int64_t time_steps, int64_t columns,
			struct mu_err *err);
/* Adds bias to each row of `to`. */
void rnn_cell_add_bias(int64_t rows, int64_t columns, const float *bias, float *to);
/* to = [x, scale h] w + bias, with `gates` times C columns.  scale may be NULL.  xh: scratch of S
 * columns; holds [x, scale h] on return. */
void rnn_cell_gates(const struct rnn_cell_sizes *s, const float *x, const float *h,
		    const float *scale, const float *w, const float *bias, int64_t gates, float *xh,
		    float *to);
void rnn_cell_sigmoid(float *out, const float *in, int64_t n);
void rnn_cell_tanh(float *out, const float *in, int64_t n);

struct lstm {
	struct rnn_cell_sizes s;
	float bias, clip;
	bool peep;
	int ci, f;                     /* the positions of two gates; i is the first, o the last */
	const float *w, *b, *peeps[3]; /* of i, f and o */
};
enum { LSTM_I, LSTM_CS, LSTM_F, LSTM_O, LSTM_CI, LSTM_CO, LSTM_H, LSTM_OUTPUTS };
/* One step.  out: the outputs by their names above; gates: scratch of 4 C columns. */
void lstm_step(const struct lstm *l, const float *x, const float *cs, const float *h, float *xh,
	       float *gates, float *const *out);

/* As lstm_step(), from [x, h] w + b in `gates`, which it overwrites. */
void lstm_gates(const struct lstm *l, const float *cs, float *gates, float *const *out);

/* Backward step.  Computes from the gradients of cs and h those of the previous cs and of the gates
 * before their activation; adds to those of the peepholes.  out: the outputs of the step. */
struct lstm_back {
	const float *cs, *d_cs, *d_h; /* cs before the step; the gradients */
	const float *const *out;
	float *d_cs_prev, *gates, *d_peeps[3];
};
void lstm_step_back(const struct lstm *l, const struct lstm_back *k);

/* Start of a kernel on any device: checks the node and allocates its outputs.  Inputs of a
 * gradient op: the inputs of the forward op, its outputs, and their gradients.
 *
 * rnn/block_cell.c: x, cs_prev, h_prev, w, wci, wcf, wco, b; and x, h_prev, w_ru, w_c, b_ru, b_c.
 */
enum {
	LSTM_INPUTS = 8,
	GRU_INPUTS = 6,
	LSTM_CELL_GRADS = 5,
	GRU_OUTPUTS = 4
}; /* GRU_OUTPUTS: also of the gradient op */
int lstm_cell_begin(struct kernel_call *c, bool backward, struct lstm *l, float **to,
		    struct mu_err *err);
int gru_cell_begin(struct kernel_call *c, bool backward, struct rnn_cell_sizes *s, float **to,
		   struct mu_err *err);
/* rnn/block_lstm.c: seq_len_max, then the inputs of an LSTM.  time_steps: the value of
 * seq_len_max. */
enum { D_X, D_CS, D_H, D_W, D_PEEP, D_B = D_PEEP + 3, LSTM_GRADS };
int lstm_sequence_begin(struct kernel_call *c, bool backward, bool is_v2, struct lstm *l,
			int64_t *time_steps, float **to, struct mu_err *err);

#endif
