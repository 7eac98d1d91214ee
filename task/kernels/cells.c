/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "task/kernels/product.h"

static int64_t side(const struct cell_sizes *s, char c)
{
	return c == 'T'   ? s->time
	       : c == 'B' ? s->batch
	       : c == 'I' ? s->in
	       : c == 'C' ? s->cell
	       : c == 'S' ? s->in + s->cell
			  : (c - '0') * s->cell;
}

int cells_check(const struct kernel_call *c, unsigned x, const char *const *want, unsigned n,
		struct cell_sizes *s, struct mu_err *err)
{
	int rank = (int)strlen(want[0]), rc;

	if ((rc = args_rank(c, x, rank, err)) || (rc = args_rank(c, x + 1, 2, err)))
		return rc;
	const int64_t *dim = kernel_in(c, x)->shape.dim;
	*s = (struct cell_sizes){.time = rank == 3 ? dim[0] : 1,
				 .batch = dim[rank - 2],
				 .in = dim[rank - 1],
				 .cell = kernel_in(c, x + 1)->shape.dim[1]};
	for (unsigned i = 0; i < n; i++) {
		if ((rc = args_type(c, x + i, MU_FLOAT, err)))
			return rc;
		const struct mu_shape *have = &kernel_in(c, x + i)->shape;
		bool fits = have->rank == (int)strlen(want[i]);
		for (int d = 0; fits && d < have->rank; d++)
			fits = have->dim[d] == side(s, want[i][d]);
		if (!fits)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "input %u of shape %s does not fit x %s and %lld cells",
				       x + i, mu_shape_str(have),
				       mu_shape_str(&kernel_in(c, x)->shape), (long long)s->cell);
	}
	return 0;
}

int cells_out(struct kernel_call *c, const struct cell_sizes *s, const char *const *want,
	      unsigned n, float **to, struct mu_err *err)
{
	for (unsigned i = 0; i < n; i++) {
		struct mu_shape shape = mu_shape_scalar();
		struct mu_tensor *t;
		int rc = 0;
		for (const char *p = want[i]; *p && !rc; p++)
			rc = mu_shape_push(&shape, side(s, *p), err);
		if (rc || (rc = kernel_out(c, i, MU_FLOAT, &shape, &t, err)))
			return rc;
		to[i] = t->data;
	}
	return 0;
}

float *cells_room(const struct cell_sizes *s, int64_t columns, struct mu_err *err)
{
	struct mu_shape shape;
	float *room = NULL;

	if (!mu_shape_set(&shape, 2, (int64_t[]){s->batch, columns}, err) &&
	    !(room = calloc((size_t)shape.count + 1, sizeof *room)))
		mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld rows of %lld",
			(long long)s->batch, (long long)columns);
	return room;
}

void cells_joined(const struct cell_sizes *s, const float *x, const float *h, const float *scale,
		  const float *w, const float *bias, int64_t gates, float *both, float *to)
{
	int64_t width = s->in + s->cell, columns = gates * s->cell;

	for (int64_t b = 0; b < s->batch; b++) {
		memcpy(both + b * width, x + b * s->in, (size_t)s->in * sizeof *x);
		for (int64_t i = 0; i < s->cell; i++)
			both[b * width + s->in + i] =
			    h[b * s->cell + i] * (scale ? scale[b * s->cell + i] : 1);
	}
	struct product p = {.m = s->batch, .n = columns, .k = width};
	product(MU_FLOAT, &p, both, w, to);
	for (int64_t i = 0; i < s->batch * columns; i++)
		to[i] += bias[i % columns];
}

float cells_sigmoid(float x)
{
	return 1 / (1 + expf(-x));
}

void lstm_step(const struct lstm *l, const float *x, const float *cs, const float *h, float *both,
	       float *gates, float *const *out)
{
	int64_t n = l->s.cell;

	cells_joined(&l->s, x, h, NULL, l->w, l->b, 4, both, gates);
	for (int64_t k = 0; k < l->s.batch * n; k++) {
		int64_t j = k % n;
		const float *g = gates + k / n * 4 * n + j;
		float i = cells_sigmoid(g[0] + (l->peep ? cs[k] * l->peeps[0][j] : 0));
		float ci = tanhf(g[l->ci * n]);
		float f =
		    cells_sigmoid(g[l->f * n] + l->bias + (l->peep ? cs[k] * l->peeps[1][j] : 0));
		float now = ci * i + f * cs[k];
		if (l->clip > 0)
			now = now < -l->clip ? -l->clip : now > l->clip ? l->clip : now;
		float o = cells_sigmoid(g[3 * n] + (l->peep ? now * l->peeps[2][j] : 0));
		float co = tanhf(now);
		const float all[LSTM_OUTPUTS] = {i, now, f, o, ci, co, o * co};
		for (int m = 0; m < LSTM_OUTPUTS; m++)
			out[m][k] = all[m];
	}
}

void lstm_step_back(const struct lstm *l, const struct lstm_back *s)
{
	int64_t n = l->s.cell;

	for (int64_t k = 0; k < l->s.batch * n; k++) {
		int64_t j = k % n;
		float i = s->out[LSTM_I][k], f = s->out[LSTM_F][k], o = s->out[LSTM_O][k];
		float ci = s->out[LSTM_CI][k], co = s->out[LSTM_CO][k];
		float d_o = o * (1 - o) * s->d_h[k] * co;
		float dcs = (1 - co * co) * s->d_h[k] * o + s->d_cs[k] +
			    (l->peep ? d_o * l->peeps[2][j] : 0);
		float df = f * (1 - f) * dcs * s->cs[k];
		float di = i * (1 - i) * dcs * ci;
		float *gates = s->gates + k / n * 4 * n + j;
		gates[0] = di;
		gates[l->ci * n] = (1 - ci * ci) * dcs * i;
		gates[l->f * n] = df;
		gates[3 * n] = d_o;
		s->d_before[k] =
		    dcs * f + (l->peep ? di * l->peeps[0][j] + df * l->peeps[1][j] : 0);
		if (!l->peep)
			continue;
		s->d_peeps[0][j] += di * s->cs[k];
		s->d_peeps[1][j] += df * s->cs[k];
		s->d_peeps[2][j] += d_o * s->out[LSTM_CS][k];
	}
}
