/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums and products: a thread for each line along the axis, in the CPU's order, or a block
 * for each piece of a long one, in an order that the shape alone decides.  And local response
 * normalisation, whose sums are short. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/block.h"

#define SCAN_KERNEL(t, name, start, expr)                                                          \
	KERNEL(name##_##t, scan_args)                                                              \
	{                                                                                          \
		EACH(line, a.outer *a.inner)                                                       \
		{                                                                                  \
			const int64_t first = line / a.inner * a.n * a.inner + line % a.inner;     \
			C(t) x = start;                                                            \
			for (int64_t i = 0; i < a.n; i++) {                                        \
				const int64_t at =                                                 \
				    first + (a.reverse ? a.n - 1 - i : i) * a.inner;               \
				const C(t) y = GET(t, a.in, at);                                   \
				if (a.exclusive)                                                   \
					PUT(t, a.out, at, x);                                      \
				x = (expr);                                                        \
				if (!a.exclusive)                                                  \
					PUT(t, a.out, at, x);                                      \
			}                                                                          \
		}                                                                                  \
	}
/* So many elements at a time: each thread's with those of all before it. */
#define SCAN_BLOCK_KERNEL(t, name, start, expr)                                                    \
	DEVICE C(t) name##_pair_##t(C(t) x, C(t) y)                                                \
	{                                                                                          \
		return (C(t))(expr);                                                               \
	}                                                                                          \
	BLOCK_KERNEL(name##_block_##t, scan_block_args)                                            \
	{                                                                                          \
		SHARED C(t) room[ROW_THREADS];                                                     \
		const int me = (int)threadIdx.x;                                                   \
		for (int64_t b = blockIdx.x; b < a.of.outer * a.of.inner * a.pieces;               \
		     b += gridDim.x) {                                                             \
			const int64_t line = b / a.pieces, from = b % a.pieces * a.piece;          \
			const int64_t end = from + a.piece < a.of.n ? from + a.piece : a.of.n;     \
			const int64_t first =                                                      \
			    line / a.of.inner * a.of.n * a.of.inner + line % a.of.inner;           \
			C(t) carry = a.carried ? PTR(const C(t), a.sums)[b] : (C(t))(start);       \
			for (int64_t tile = from; tile < end; tile += ROW_THREADS) {               \
				const int64_t i = tile + me;                                       \
				const int64_t at =                                                 \
				    first + (a.of.reverse ? a.of.n - 1 - i : i) * a.of.inner;      \
				room[me] = i < end ? GET(t, a.of.in, at) : (C(t))(start);          \
				SYNC();                                                            \
				for (int step = 1; step < ROW_THREADS; step *= 2) {                \
					C(t) x = room[me];                                         \
					if (me >= step)                                            \
						x = name##_pair_##t(room[me - step], x);           \
					SYNC();                                                    \
					room[me] = x;                                              \
					SYNC();                                                    \
				}                                                                  \
				const C(t) before = me ? room[me - 1] : (C(t))(start);             \
				const C(t) with = room[me], all = room[ROW_THREADS - 1];           \
				SYNC();                                                            \
				if (i < end && !a.totals)                                          \
					PUT(t, a.of.out, at,                                       \
					    name##_pair_##t(carry,                                 \
							    a.of.exclusive ? before : with));      \
				carry = name##_pair_##t(carry, all);                               \
			}                                                                          \
			if (a.totals && me == 0)                                                   \
				PTR(C(t), a.sums)[b] = carry;                                      \
		}                                                                                  \
	}
#define SCAN_KERNELS(t)                                                                            \
	SCAN_KERNEL(t, Cumsum, 0, x + y)                                                           \
	SCAN_KERNEL(t, Cumprod, 1, x *y)                                                           \
	SCAN_BLOCK_KERNEL(t, Cumsum, 0, x + y)                                                     \
	SCAN_BLOCK_KERNEL(t, Cumprod, 1, x *y)
EACH_NUM(SCAN_KERNELS)

/* ---- LRN ---- */

DEVICE int64_t first_neighbour(const struct lrn_args *a, int64_t ch)
{
	return ch > a->radius ? ch - a->radius : 0;
}

DEVICE int64_t after_neighbours(const struct lrn_args *a, int64_t ch)
{
	return ch + a->radius < a->channels ? ch + a->radius + 1 : a->channels;
}

DEVICE float lrn_norm(const struct lrn_args *a, int64_t row, int64_t ch)
{
	float sum = 0;

	for (int64_t k = first_neighbour(a, ch); k < after_neighbours(a, ch); k++) {
		const float x = GET(f32, a->x, row * a->channels + k);
		sum += x * x;
	}
	return a->bias + a->alpha * sum;
}

KERNEL(lrn, lrn_args)
{
	EACH(i, a.n)
	{
		const float norm = lrn_norm(&a, i / a.channels, i % a.channels);
		PUT(f32, a.out, i, GET(f32, a.x, i) * pow(norm, -a.beta));
	}
}

/* What each neighbour's norm gives back to this element. */
KERNEL(lrn_back, lrn_args)
{
	EACH(i, a.n)
	{
		const int64_t row = i / a.channels, own = i % a.channels;
		float sum = 0;
		for (int64_t ch = first_neighbour(&a, own); ch < after_neighbours(&a, own); ch++) {
			const int64_t at = row * a.channels + ch;
			const float norm = lrn_norm(&a, row, ch), g = GET(f32, a.g, at);
			const float share = -2 * a.alpha * a.beta * GET(f32, a.y, at) / norm * g;
			sum += share * GET(f32, a.x, i);
			sum += ch == own ? pow(norm, -a.beta) * g : 0.0f;
		}
		PUT(f32, a.out, i, sum);
	}
}
