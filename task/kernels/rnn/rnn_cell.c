/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/rnn/rnn_cell.h"

#include <stdlib.h>
#include <string.h>

#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/move.h"
#include "task/kernels/engine/product.h"
#include "task/kernels/rnn/lstm_element.h"

static int64_t dim_of(const struct rnn_cell_sizes *s, char c)
{
	return c == 'T'   ? s->time
	       : c == 'B' ? s->batch
	       : c == 'I' ? s->in
	       : c == 'C' ? s->cell
	       : c == 'S' ? s->in + s->cell
			  : (c - '0') * s->cell;
}

int rnn_cell_check(const struct kernel_call *c, unsigned x, const char *const *want, unsigned n,
		   struct rnn_cell_sizes *s, struct mu_err *err)
{
	int rank = (int)strlen(want[0]);

	const int64_t *dim = kernel_in(c, x)->shape.dim;
	*s = (struct rnn_cell_sizes){.time = rank == 3 ? dim[0] : 1,
				     .batch = dim[rank - 2],
				     .in = dim[rank - 1],
				     .cell = kernel_in(c, x + 1)->shape.dim[1]};
	for (unsigned i = 0; i < n; i++) {
		const struct mu_shape *shape = &kernel_in(c, x + i)->shape;
		bool fits = shape->rank == (int)strlen(want[i]);
		for (int d = 0; fits && d < shape->rank; d++)
			fits = shape->dim[d] == dim_of(s, want[i][d]);
		if (!fits)
			return mu_invalid(
			    err, "input %u of shape %s does not fit x %s and %lld cells", x + i,
			    mu_shape_str(shape), mu_shape_str(&kernel_in(c, x)->shape),
			    (long long)s->cell);
	}
	return 0;
}

int rnn_cell_out(struct kernel_call *c, const struct rnn_cell_sizes *s, const char *const *want,
		 unsigned n, float **to, struct mu_err *err)
{
	for (unsigned i = 0; i < n; i++) {
		struct mu_shape shape = mu_shape_scalar();
		struct mu_tensor *t;
		int rc = 0;
		for (const char *p = want[i]; *p && !rc; p++)
			rc = mu_shape_push(&shape, dim_of(s, *p), err);
		if (rc || (rc = kernel_out_on_device(c, i, MU_FLOAT, &shape, &t, err)))
			return rc;
		to[i] = t->data;
	}
	return 0;
}

float *rnn_cell_scratch(const struct rnn_cell_sizes *s, int64_t time_steps, int64_t columns,
			struct mu_err *err)
{
	struct mu_shape shape;
	float *scratch = NULL;

	if (!mu_shape_set(&shape, 3, (int64_t[]){time_steps, s->batch, columns}, err) &&
	    !(scratch = calloc((size_t)shape.count + 1, sizeof *scratch)))
		mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld rows of %lld",
			(long long)s->batch, (long long)columns);
	return scratch;
}

void rnn_cell_add_bias(int64_t rows, int64_t columns, const float *bias, float *to)
{
	for (int64_t b = 0; b < rows; b++)
		loops->binary[BIN_AddV2][MU_FLOAT](to + b * columns, to + b * columns, bias,
						   columns, BOTH_RUN);
}

void rnn_cell_gates(const struct rnn_cell_sizes *s, const float *x, const float *h,
		    const float *scale, const float *w, const float *bias, int64_t gates, float *xh,
		    float *to)
{
	int64_t width = s->in + s->cell, columns = gates * s->cell;

	for (int64_t b = 0; b < s->batch; b++) {
		memcpy(xh + b * width, x + b * s->in, (size_t)s->in * sizeof *x);
		for (int64_t i = 0; i < s->cell; i++)
			xh[b * width + s->in + i] =
			    h[b * s->cell + i] * (scale ? scale[b * s->cell + i] : 1);
	}
	struct product p = {.m = s->batch, .n = columns, .k = width};
	product(MU_FLOAT, &p, xh, w, to);
	rnn_cell_add_bias(s->batch, columns, bias, to);
}

static void apply_unary(enum unary_op op, float *out, const float *in, int64_t n)
{
	loops->unary[op][MU_FLOAT](out, in, n);
}

void rnn_cell_sigmoid(float *out, const float *in, int64_t n)
{
	apply_unary(UN_Sigmoid, out, in, n);
}

void rnn_cell_tanh(float *out, const float *in, int64_t n)
{
	apply_unary(UN_Tanh, out, in, n);
}

/* Computes one row from the products in `gates`; adds bias and peepholes in place. */
static void lstm_row(const struct lstm *l, const float *cs, float *gates, float *const *out,
		     int64_t at)
{
	int64_t n = l->s.cell;
	float *gi = gates, *gf = gates + l->f * n, *go = gates + 3 * n;
	float *i = out[LSTM_I] + at, *cs_next = out[LSTM_CS] + at, *f = out[LSTM_F] + at;
	float *o = out[LSTM_O] + at, *ci = out[LSTM_CI] + at, *co = out[LSTM_CO] + at;
	float *h = out[LSTM_H] + at, clip = l->clip;

	for (int64_t j = 0; j < n; j++)
		gf[j] += l->bias;
	for (int64_t j = 0; j < n && l->peep; j++) {
		gi[j] += cs[j] * l->peeps[0][j];
		gf[j] += cs[j] * l->peeps[1][j];
	}
	rnn_cell_sigmoid(i, gi, n);
	rnn_cell_sigmoid(f, gf, n);
	rnn_cell_tanh(ci, gates + l->ci * n, n);
	for (int64_t j = 0; j < n; j++)
		cs_next[j] = ci[j] * i[j] + f[j] * cs[j];
	for (int64_t j = 0; j < n && clip > 0; j++)
		cs_next[j] = cs_next[j] < -clip ? -clip : cs_next[j] > clip ? clip : cs_next[j];
	for (int64_t j = 0; j < n && l->peep; j++)
		go[j] += cs_next[j] * l->peeps[2][j];
	rnn_cell_sigmoid(o, go, n);
	rnn_cell_tanh(co, cs_next, n);
	for (int64_t j = 0; j < n; j++)
		h[j] = o[j] * co[j];
}

void lstm_gates(const struct lstm *l, const float *cs, float *gates, float *const *out)
{
	int64_t n = l->s.cell;

	for (int64_t b = 0; b < l->s.batch; b++)
		lstm_row(l, cs + b * n, gates + b * 4 * n, out, b * n);
}

void lstm_step(const struct lstm *l, const float *x, const float *cs, const float *h, float *xh,
	       float *gates, float *const *out)
{
	rnn_cell_gates(&l->s, x, h, NULL, l->w, l->b, 4, xh, gates);
	lstm_gates(l, cs, gates, out);
}

void lstm_step_back(const struct lstm *l, const struct lstm_back *s)
{
	int64_t n = l->s.cell;

	for (int64_t k = 0; k < l->s.batch * n; k++) {
		int64_t j = k % n;
		const struct lstm_element e = {.peep = l->peep,
					       .i = s->out[LSTM_I][k],
					       .f = s->out[LSTM_F][k],
					       .o = s->out[LSTM_O][k],
					       .ci = s->out[LSTM_CI][k],
					       .co = s->out[LSTM_CO][k],
					       .before = s->cs[k],
					       .d_cs = s->d_cs[k],
					       .d_h = s->d_h[k],
					       .peep_i = l->peep ? l->peeps[0][j] : 0,
					       .peep_f = l->peep ? l->peeps[1][j] : 0,
					       .peep_o = l->peep ? l->peeps[2][j] : 0};
		const struct lstm_element_back b = lstm_element_back(&e);
		float *gates = s->gates + k / n * 4 * n + j;
		gates[0] = b.i;
		gates[l->ci * n] = b.ci;
		gates[l->f * n] = b.f;
		gates[3 * n] = b.o;
		s->d_cs_prev[k] = b.before;
		if (!l->peep)
			continue;
		s->d_peeps[0][j] += b.i * e.before;
		s->d_peeps[1][j] += b.f * e.before;
		s->d_peeps[2][j] += b.o * s->out[LSTM_CS][k];
	}
}
