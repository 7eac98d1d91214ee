/* SPDX-License-Identifier: Apache-2.0 */
/* One step of an LSTM or a GRU as one op, forth and back.  The gates of an LSTM lie side by side in
 * the order i, ci, f, o; those of a GRU r, u.  Worked in float. */
#include <math.h>
#include <string.h>

#include "task/kernels/args.h"
#include "task/kernels/elems.h"
#include "task/kernels/kernel_table.h"
#include "task/kernels/product.h"

struct sizes {
	int64_t batch, in, cell;
};

/* What an input must look like, by the sizes: B rows, I inputs, C cells. */
struct want {
	const char *shape; /* a letter a dimension: B, I, C, S = I + C, 2 = 2 C, 4 = 4 C */
};

static int64_t side(const struct sizes *s, char c)
{
	return c == 'B'   ? s->batch
	       : c == 'I' ? s->in
	       : c == 'C' ? s->cell
	       : c == 'S' ? s->in + s->cell
			  : (c - '0') * s->cell;
}

/* Input 0 is x, input 1 the cells before; then each as wanted. */
static int check(const struct kernel_call *c, const struct want *want, unsigned n, struct sizes *s,
		 struct mu_err *err)
{
	int rc;

	if ((rc = args_rank(c, 0, 2, err)) || (rc = args_rank(c, 1, 2, err)))
		return rc;
	*s = (struct sizes){.batch = kernel_in(c, 0)->shape.dim[0],
			    .in = kernel_in(c, 0)->shape.dim[1],
			    .cell = kernel_in(c, 1)->shape.dim[1]};
	for (unsigned i = 0; i < n; i++) {
		const struct mu_shape *have = &kernel_in(c, i)->shape;
		bool fits = have->rank == (int)strlen(want[i].shape);
		if ((rc = args_type(c, i, MU_FLOAT, err)))
			return rc;
		for (int d = 0; fits && d < have->rank; d++)
			fits = have->dim[d] == side(s, want[i].shape[d]);
		if (!fits)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "input %u of shape %s does not fit x %s and %lld cells", i,
				       mu_shape_str(have), mu_shape_str(&kernel_in(c, 0)->shape),
				       (long long)s->cell);
	}
	return 0;
}

static int out(struct kernel_call *c, unsigned i, const struct sizes *s, const char *shape,
	       float **to, struct mu_err *err)
{
	struct mu_shape sh = mu_shape_scalar();
	struct mu_tensor *t;
	int rc = 0;

	for (; *shape && !rc; shape++)
		rc = mu_shape_push(&sh, side(s, *shape), err);
	if (rc || (rc = kernel_out(c, i, MU_FLOAT, &sh, &t, err)))
		return rc;
	*to = t->data;
	return 0;
}

static int outs(struct kernel_call *c, const struct sizes *s, const struct want *want, unsigned n,
		float **to, struct mu_err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < n && !rc; i++)
		rc = out(c, i, s, want[i].shape, &to[i], err);
	return rc;
}

static const float *in(const struct kernel_call *c, unsigned i)
{
	return kernel_in(c, i)->data;
}

static float sigmoid(float x)
{
	return 1 / (1 + expf(-x));
}

/* Room for `rows` numbers in each row of the batch. */
static float *room_for(const struct sizes *s, int64_t columns, struct mu_err *err)
{
	struct mu_shape shape;
	float *room = NULL;

	if (!mu_shape_set(&shape, 2, (int64_t[]){s->batch, columns}, err) &&
	    !(room = calloc((size_t)shape.count + 1, sizeof *room)))
		mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld rows of %lld",
			(long long)s->batch, (long long)columns);
	return room;
}

/* to = [x, h] w + bias, `gates` times the cells wide; scale: of h, or NULL. */
static int joined(const struct sizes *s, const float *x, const float *h, const float *scale,
		  const float *w, const float *bias, int64_t gates, float *to, struct mu_err *err)
{
	int64_t width = s->in + s->cell, columns = gates * s->cell;
	MU_AUTO_FREE float *both = room_for(s, width, err);

	if (!both)
		return -(int)err->code;
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
	return 0;
}

/* ---- LSTM: x, cs_prev, h_prev, w, wci, wcf, wco, b ---- */

enum { LSTM_INPUTS = 8, LSTM_OUTPUTS = 7 };
static const struct want lstm_in[] = {
    {"BI"}, {"BC"}, {"BC"}, {"S4"}, {"C"},  {"C"},  {"C"},  {"4"}, /* and, of the gradient, */
    {"BC"}, {"BC"}, {"BC"}, {"BC"}, {"BC"}, {"BC"}, {"BC"}, {"BC"},
};
static const struct want lstm_out[] = {{"BC"}, {"BC"}, {"BC"}, {"BC"}, {"BC"}, {"BC"}, {"BC"}};

static int lstm(struct kernel_call *c, struct mu_err *err)
{
	float bias = args_attr_float(c->node, "forget_bias", 1);
	float clip = args_attr_float(c->node, "cell_clip", 3);
	bool peep = args_attr_bool(c->node, "use_peephole", false);
	float *to[LSTM_OUTPUTS];
	struct sizes s;
	int rc;

	if ((rc = check(c, lstm_in, LSTM_INPUTS, &s, err)) ||
	    (rc = outs(c, &s, lstm_out, LSTM_OUTPUTS, to, err)))
		return rc;
	MU_AUTO_FREE float *gates = room_for(&s, 4 * s.cell, err);
	if (!gates)
		return -(int)err->code;
	if ((rc = joined(&s, in(c, 0), in(c, 2), NULL, in(c, 3), in(c, 7), 4, gates, err)))
		return rc;
	for (int64_t k = 0; k < s.batch * s.cell; k++) {
		int64_t j = k % s.cell;
		const float *g = gates + k / s.cell * 4 * s.cell + j;
		float before = in(c, 1)[k];
		float i = sigmoid(g[0] + (peep ? before * in(c, 4)[j] : 0));
		float ci = tanhf(g[s.cell]);
		float f = sigmoid(g[2 * s.cell] + bias + (peep ? before * in(c, 5)[j] : 0));
		float cs = ci * i + f * before;
		if (clip > 0)
			cs = cs < -clip ? -clip : cs > clip ? clip : cs;
		float o = sigmoid(g[3 * s.cell] + (peep ? cs * in(c, 6)[j] : 0));
		float co = tanhf(cs), all[] = {i, cs, f, o, ci, co, o * co};
		for (unsigned n = 0; n < LSTM_OUTPUTS; n++)
			to[n][k] = all[n];
	}
	return 0;
}

/* Of the above, and its outputs i, cs, f, o, ci, co, and what came back to cs and h. */
static int lstm_grad(struct kernel_call *c, struct mu_err *err)
{
	static const struct want results[] = {{"BC"}, {"B4"}, {"C"}, {"C"}, {"C"}};
	bool peep = args_attr_bool(c->node, "use_peephole", false);
	float *to[MU_COUNT(results)];
	struct sizes s;
	int rc;

	if ((rc = check(c, lstm_in, MU_COUNT(lstm_in), &s, err)) ||
	    (rc = outs(c, &s, results, MU_COUNT(results), to, err)))
		return rc;
	for (unsigned n = 2; n < MU_COUNT(results); n++)
		elems_zero(MU_FLOAT, to[n], 0, s.cell);
	for (int64_t k = 0; k < s.batch * s.cell; k++) {
		int64_t j = k % s.cell;
		float before = in(c, 1)[k], i = in(c, 8)[k], cs = in(c, 9)[k], f = in(c, 10)[k];
		float o = in(c, 11)[k], ci = in(c, 12)[k], co = in(c, 13)[k], dh = in(c, 15)[k];
		float d_o = o * (1 - o) * dh * co;
		float dcs = (1 - co * co) * dh * o + in(c, 14)[k] + (peep ? d_o * in(c, 6)[j] : 0);
		float dci = (1 - ci * ci) * dcs * i;
		float df = f * (1 - f) * dcs * before;
		float di = i * (1 - i) * dcs * ci;
		float *gates = to[1] + k / s.cell * 4 * s.cell + j;
		gates[0] = di;
		gates[s.cell] = dci;
		gates[2 * s.cell] = df;
		gates[3 * s.cell] = d_o;
		to[0][k] = dcs * f + (peep ? di * in(c, 4)[j] + df * in(c, 5)[j] : 0);
		if (!peep)
			continue;
		to[2][j] += di * before;
		to[3][j] += df * before;
		to[4][j] += d_o * cs;
	}
	return 0;
}

/* ---- GRU: x, h_prev, w_ru, w_c, b_ru, b_c ---- */

enum { GRU_INPUTS = 6 };
static const struct want gru_in[] = {
    {"BI"}, {"BC"}, {"S2"}, {"SC"}, {"2"}, {"C"}, /* and, of the gradient, */
    {"BC"}, {"BC"}, {"BC"}, {"BC"},
};

static int gru(struct kernel_call *c, struct mu_err *err)
{
	static const struct want results[] = {{"BC"}, {"BC"}, {"BC"}, {"BC"}};
	float *to[MU_COUNT(results)];
	const float *h = NULL;
	struct sizes s;
	int rc;

	if ((rc = check(c, gru_in, GRU_INPUTS, &s, err)) ||
	    (rc = outs(c, &s, results, MU_COUNT(results), to, err)))
		return rc;
	MU_AUTO_FREE float *gates = room_for(&s, 2 * s.cell, err);
	if (!gates)
		return -(int)err->code;
	h = in(c, 1);
	if ((rc = joined(&s, in(c, 0), h, NULL, in(c, 2), in(c, 4), 2, gates, err)))
		return rc;
	for (int64_t k = 0; k < s.batch * s.cell; k++) {
		const float *g = gates + k / s.cell * 2 * s.cell + k % s.cell;
		to[0][k] = sigmoid(g[0]);
		to[1][k] = sigmoid(g[s.cell]);
	}
	if ((rc = joined(&s, in(c, 0), h, to[0], in(c, 3), in(c, 5), 1, to[2], err)))
		return rc;
	for (int64_t k = 0; k < s.batch * s.cell; k++) {
		float u = to[1][k], new = tanhf(to[2][k]);
		to[2][k] = new;
		to[3][k] = u * (h[k] - new) + new;
	}
	return 0;
}

/* Of the above, and r, u, c and what came back to h: to x, to h_prev, to c and to r and u before
 * their functions. */
static int gru_grad(struct kernel_call *c, struct mu_err *err)
{
	static const struct want results[] = {{"BI"}, {"BC"}, {"BC"}, {"B2"}};
	float *to[MU_COUNT(results)];
	struct sizes s;
	int rc;

	if ((rc = check(c, gru_in, MU_COUNT(gru_in), &s, err)) ||
	    (rc = outs(c, &s, results, MU_COUNT(results), to, err)))
		return rc;
	const float *h = in(c, 1), *r = in(c, 6), *u = in(c, 7), *new = in(c, 8), *dh = in(c, 9);
	int64_t width = s.in + s.cell;
	MU_AUTO_FREE float *by_c = room_for(&s, width, err);
	MU_AUTO_FREE float *by_ru = room_for(&s, width, err);
	if (!by_c || !by_ru)
		return -(int)err->code;
	for (int64_t k = 0; k < s.batch * s.cell; k++)
		to[2][k] = dh[k] * (1 - u[k]) * (1 - new[k] * new[k]);
	struct product p = {.m = s.batch, .n = width, .k = s.cell, .trans_b = true};
	product(MU_FLOAT, &p, to[2], in(c, 3), by_c);
	for (int64_t k = 0; k < s.batch * s.cell; k++) {
		int64_t b = k / s.cell, j = k % s.cell;
		float d_hr = by_c[b * width + s.in + j];
		to[3][b * 2 * s.cell + j] = d_hr * h[k] * r[k] * (1 - r[k]);
		to[3][(b * 2 + 1) * s.cell + j] = dh[k] * (h[k] - new[k]) * u[k] * (1 - u[k]);
	}
	p.k = 2 * s.cell;
	product(MU_FLOAT, &p, to[3], in(c, 2), by_ru);
	for (int64_t b = 0; b < s.batch; b++) {
		for (int64_t j = 0; j < s.in; j++)
			to[0][b * s.in + j] = by_c[b * width + j] + by_ru[b * width + j];
		for (int64_t j = 0; j < s.cell; j++) {
			int64_t k = b * s.cell + j, at = b * width + s.in + j;
			to[1][k] = by_ru[at] + by_c[at] * r[k] + dh[k] * u[k];
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
KERNEL_TABLE(block_cell, rows)
