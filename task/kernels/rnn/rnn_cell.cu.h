/* SPDX-License-Identifier: Apache-2.0 */
/* The elementwise part of recurrent cells, between the matrix products.  One thread computes one
 * element of the cells.  The gates of a row are contiguous.  rnn/rnn_cell_gpu.c assigns in[],
 * out[]. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"
#include "task/kernels/rnn/lstm_element.h"

#define CELL_IN(k, at)  (PTR(const float, a.in[k])[at])
#define CELL_OUT(k, at) (PTR(float, a.out[k])[at])

DEVICE float cell_sigmoid(float x)
{
	return 1 / (1 + exp(-x));
}

/* The sum of element `at` of the products of x and of h, and of element j of the bias. */
#define CELL_GATE(at, j) (CELL_IN(0, at) + CELL_IN(1, at) + CELL_IN(2, j))

KERNEL(lstm_gates, rnn_cell_args)
{
	EACH(k, a.batch * a.cell)
	{
		const int64_t b = index_div(k, a.cell), j = k - b * a.cell,
			      row = b * 4 * a.cell + j;
		const float before = CELL_IN(3, k);
		float gi = CELL_GATE(row, j);
		float ci = CELL_GATE(row + a.ci * a.cell, j + a.ci * a.cell);
		float gf = CELL_GATE(row + a.f * a.cell, j + a.f * a.cell) + a.bias;
		float go = CELL_GATE(row + 3 * a.cell, j + 3 * a.cell);
		if (a.peep) {
			gi += before * CELL_IN(4, j);
			gf += before * CELL_IN(5, j);
		}
		const float i = cell_sigmoid(gi), f = cell_sigmoid(gf);
		ci = tanh(ci);
		float cs = ci * i + f * before;
		if (a.clip > 0)
			cs = cs < -a.clip ? -a.clip : cs > a.clip ? a.clip : cs;
		if (a.peep)
			go += cs * CELL_IN(6, j);
		const float o = cell_sigmoid(go), co = tanh(cs);
		CELL_OUT(0, k) = i;
		CELL_OUT(1, k) = cs;
		CELL_OUT(2, k) = f;
		CELL_OUT(3, k) = o;
		CELL_OUT(4, k) = ci;
		CELL_OUT(5, k) = co;
		CELL_OUT(6, k) = o * co;
	}
}

KERNEL(lstm_back, rnn_cell_args)
{
	EACH(k, a.batch * a.cell)
	{
		const int64_t b = index_div(k, a.cell), j = k - b * a.cell,
			      row = b * 4 * a.cell + j;
		struct lstm_element e;
		e.peep = a.peep;
		e.i = CELL_IN(0, k);
		e.f = CELL_IN(2, k);
		e.o = CELL_IN(3, k);
		e.ci = CELL_IN(4, k);
		e.co = CELL_IN(5, k);
		e.before = CELL_IN(6, k);
		e.d_cs = CELL_IN(7, k) + (a.in[9] ? CELL_IN(9, k) : 0);
		e.d_h = CELL_IN(8, k) + (a.in[10] ? CELL_IN(10, k) : 0);
		e.peep_i = a.peep ? CELL_IN(11, j) : 0;
		e.peep_f = a.peep ? CELL_IN(12, j) : 0;
		e.peep_o = a.peep ? CELL_IN(13, j) : 0;
		const struct lstm_element_back back = lstm_element_back(&e);
		CELL_OUT(0, row) = back.i;
		CELL_OUT(0, row + a.ci * a.cell) = back.ci;
		CELL_OUT(0, row + a.f * a.cell) = back.f;
		CELL_OUT(0, row + 3 * a.cell) = back.o;
		CELL_OUT(1, k) = back.before; /* may be the memory of d_cs */
	}
}

/* The gradient of the peepholes for each row.  `first`: elements of the first time step, whose
 * previous cells are in[1]. */
KERNEL(lstm_peeps, rnn_cell_args)
{
	EACH(k, a.batch * a.cell)
	{
		const int64_t b = index_div(k, a.cell), j = k - b * a.cell,
			      row = b * 4 * a.cell + j;
		const float before = k < a.first ? CELL_IN(1, k) : CELL_IN(2, k - a.first);
		CELL_OUT(0, k) = CELL_IN(0, row) * before;
		CELL_OUT(1, k) = CELL_IN(0, row + a.f * a.cell) * before;
		CELL_OUT(2, k) = CELL_IN(0, row + 3 * a.cell) * CELL_IN(2, k);
	}
}

KERNEL(gru_gates, rnn_cell_args)
{
	EACH(k, a.batch * a.cell)
	{
		const int64_t b = index_div(k, a.cell), j = k - b * a.cell,
			      row = b * 2 * a.cell + j;
		const float r = cell_sigmoid(CELL_GATE(row, j));
		CELL_OUT(0, k) = r;
		CELL_OUT(1, k) = cell_sigmoid(CELL_GATE(row + a.cell, j + a.cell));
		CELL_OUT(2, k) = r * CELL_IN(3, k);
	}
}

KERNEL(gru_new, rnn_cell_args)
{
	EACH(k, a.batch * a.cell)
	{
		const float c = tanh(CELL_GATE(k, k - index_div(k, a.cell) * a.cell));
		CELL_OUT(0, k) = c;
		CELL_OUT(1, k) = CELL_IN(4, k) * (CELL_IN(3, k) - c) + c;
	}
}

/* From d_h, u, c: the gradient of c before its activation. */
KERNEL(gru_back_new, rnn_cell_args)
{
	EACH(k, a.batch * a.cell)
	{
		const float c = CELL_IN(2, k);
		CELL_OUT(0, k) = CELL_IN(0, k) * (1 - CELL_IN(1, k)) * (1 - c * c);
	}
}

/* From d_h, u, c, the gradient of [x, r h] through c, h and r: the gradients of r and u before
 * their activation. */
KERNEL(gru_back_gates, rnn_cell_args)
{
	EACH(k, a.batch * a.cell)
	{
		const int64_t b = index_div(k, a.cell), j = k - b * a.cell,
			      row = b * 2 * a.cell + j;
		const float d_hr = CELL_IN(3, b * a.width + a.width - a.cell + j);
		const float h = CELL_IN(4, k), r = CELL_IN(5, k), u = CELL_IN(1, k);
		CELL_OUT(0, row) = d_hr * h * r * (1 - r);
		CELL_OUT(0, row + a.cell) = CELL_IN(0, k) * (h - CELL_IN(2, k)) * u * (1 - u);
	}
}

/* From d_h, u, the gradient of [x, r h] through c, r, and the gradient of [x, h] through r and u:
 * the gradients of x and h. */
KERNEL(gru_back_out, rnn_cell_args)
{
	EACH(i, a.batch * a.width)
	{
		const int64_t b = index_div(i, a.width), at = i - b * a.width;
		const int64_t x = a.width - a.cell, k = b * a.cell + at - x;
		if (at < x)
			CELL_OUT(0, b * x + at) = CELL_IN(3, i) + CELL_IN(5, i);
		else
			CELL_OUT(1, k) = CELL_IN(5, i) + CELL_IN(3, i) * CELL_IN(4, k) +
					 CELL_IN(0, k) * CELL_IN(1, k);
	}
}
#undef CELL_IN
#undef CELL_OUT
#undef CELL_GATE
