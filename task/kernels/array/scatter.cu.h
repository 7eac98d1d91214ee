/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts updates by the row that they change, and applies them. */
#include "task/kernels/engine/cuda/index.h"
#include "task/kernels/engine/cuda/math.h"

KERNEL(positions, position_args)
{
	EACH(i, a.n)
	{
		int64_t key = 0;
		for (int d = 0; d < a.depth; d++) {
			int64_t at = index_at(a.indices, i * a.depth + d, a.wide);
			key = key < 0 || at < 0 || at >= a.dim[d] ? -1 : key * a.dim[d] + at;
		}
		PTR(int64_t, a.keys)[i] = key;
		PTR(int64_t, a.order)[i] = i;
	}
}

/* Each element computes its position from the number of smaller elements in the other run of its
 * pair. Equal elements of the left run precede, so the sort is stable. */
KERNEL(merge_runs, merge_args)
{
	const int64_t *keys = PTR(const int64_t, a.keys);

	EACH(i, a.n)
	{
		int64_t pair = i / (2 * a.run) * (2 * a.run), middle = pair + a.run, key = keys[i];
		int64_t end = middle + a.run < a.n ? middle + a.run : a.n;
		int left = i < middle;
		int64_t low = left ? (middle < a.n ? middle : a.n) : pair;
		int64_t first = low, high = left ? end : middle;
		while (low < high) {
			int64_t at = low + (high - low) / 2;
			if (left ? keys[at] < key : keys[at] <= key)
				low = at + 1;
			else
				high = at;
		}
		int64_t to = (left ? i : pair + i - middle) + (low - first);
		PTR(int64_t, a.to_keys)[to] = key;
		PTR(int64_t, a.to_order)[to] = PTR(const int64_t, a.order)[i];
	}
}

#define SCATTER_KERNEL(t, op, expr)                                                                \
	KERNEL(scatter_##op##_##t, scatter_args)                                                   \
	{                                                                                          \
		EACH(i, a.by.n *a.by.row)                                                          \
		{                                                                                  \
			int64_t s = i / a.by.row, in = i % a.by.row,                               \
				key = first_update_of_row(&a.by, s);                               \
			if (key < 0)                                                               \
				continue;                                                          \
			C(t) x = GET(t, a.table, key * a.by.row + in);                             \
			for (; updates_row(&a.by, s, key); s++) {                                  \
				int64_t from = update_position(&a.by, s) * a.by.row + in;          \
				const C(t) y = GET(t, a.updates, a.one ? 0 : from);                \
				x = expr;                                                          \
			}                                                                          \
			PUT(t, a.table, key *a.by.row + in, x);                                    \
		}                                                                                  \
	}
#define SCATTER_KERNELS(t)                                                                         \
	SCATTER_KERNEL(t, update, y)                                                               \
	SCATTER_KERNEL(t, add, x + y)                                                              \
	SCATTER_KERNEL(t, sub, x - y)                                                              \
	SCATTER_KERNEL(t, mul, x *y)                                                               \
	SCATTER_KERNEL(t, div, quotient(x, y))                                                     \
	SCATTER_KERNEL(t, max, larger(x, y))                                                       \
	SCATTER_KERNEL(t, min, smaller(x, y))
EACH_NUM(SCATTER_KERNELS)
