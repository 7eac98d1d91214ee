/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and the forward and backward LSTM step, shared by the ops of one step and those of a whole
 * sequence. The arithmetic is in float. */
#ifndef MU_TASK_KERNELS_RNN_CELLS_H
#define MU_TASK_KERNELS_RNN_CELLS_H

#include "task/kernels/engine/args.h"

struct cell_sizes {
	int64_t time, batch, in, cell; /* time is 1 where there is none */
};

/* Inputs from `x` on: x itself, the cells before, and the rest, each of the wanted shape, a letter
 * a dimension: T moments, B rows, I inputs, C cells, S = I + C, 2 = 2 C, 4 = 4 C. */
int cells_check(const struct kernel_call *c, unsigned x, const char *const *want, unsigned n,
		struct cell_sizes *s, struct mu_err *err);
/* Outputs from 0 on, floats of the wanted shapes, where the node's device has them. */
int cells_out(struct kernel_call *c, const struct cell_sizes *s, const char *const *want,
	      unsigned n, float **to, struct mu_err *err);
static inline const float *cells_in(const struct kernel_call *c, unsigned i)
{
	return kernel_in(c, i)->data;
}
/* Zeros, `columns` for each row of the batch and each of so many moments: free them.  NULL and an
 * error when there is no memory. */
float *cells_room(const struct cell_sizes *s, int64_t moments, int64_t columns, struct mu_err *err);
/* Added to each row of `to`. */
void cells_add_bias(int64_t rows, int64_t columns, const float *bias, float *to);
/* to = [x, h] w + bias, `gates` times the cells wide.  scale: of h, or NULL; both: room for S
 * columns, which is left with [x, h]. */
void cells_joined(const struct cell_sizes *s, const float *x, const float *h, const float *scale,
		  const float *w, const float *bias, int64_t gates, float *both, float *to);
void cells_sigmoid(float *out, const float *in, int64_t n);
void cells_tanh(float *out, const float *in, int64_t n);

struct lstm {
	struct cell_sizes s;
	float bias, clip;
	bool peep;
	int ci, f;                     /* the places of two gates; i is the first, o the last */
	const float *w, *b, *peeps[3]; /* of i, f and o */
};
enum { LSTM_I, LSTM_CS, LSTM_F, LSTM_O, LSTM_CI, LSTM_CO, LSTM_H, LSTM_OUTPUTS };
/* out[0 … 6] by their names above; gates: room for 4 C columns. */
void lstm_step(const struct lstm *l, const float *x, const float *cs, const float *h, float *both,
	       float *gates, float *const *out);

/* The same from [x, h] w + b, which is in `gates` and is changed. */
void lstm_gates(const struct lstm *l, const float *cs, float *gates, float *const *out);

/* Distributes the gradients of a step's cs and h: to the previous cells, to the gates before their
 * activation, and added to the gradients of the peepholes. out: the step's outputs. */
struct lstm_back {
	const float *cs, *d_cs, *d_h; /* before the step; and what came back */
	const float *const *out;
	float *d_before, *gates, *d_peeps[3];
};
void lstm_step_back(const struct lstm *l, const struct lstm_back *k);

/* With what a kernel of any device begins: the node is checked, and its outputs are made.  An op
 * that goes back is given what the op that went forth was, what that gave, and what came back.
 *
 * rnn/block_cell.c: x, cs_prev, h_prev, w, wci, wcf, wco, b; and x, h_prev, w_ru, w_c, b_ru, b_c.
 */
enum { LSTM_INPUTS = 8, GRU_INPUTS = 6, LSTM_CELL_GRADS = 5, GRU_OUTPUTS = 4 }; /* GRU: both ways */
int lstm_cell_begin(struct kernel_call *c, bool back, struct lstm *l, float **to,
		    struct mu_err *err);
int gru_cell_begin(struct kernel_call *c, bool back, struct cell_sizes *s, float **to,
		   struct mu_err *err);
/* rnn/block_lstm.c: those of an LSTM behind seq_len_max; so many moments are worked out. */
enum { D_X, D_CS, D_H, D_W, D_PEEP, D_B = D_PEEP + 3, LSTM_GRADS };
int lstm_sequence_begin(struct kernel_call *c, bool back, bool second, struct lstm *l,
			int64_t *moments, float **to, struct mu_err *err);

#endif
