/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/products/pack.h"

#include <string.h>

#include "lib/base/mem.h"
#include "task/kernels/turn.h"

/* Rows that are fetched ahead: they lie far apart, which the processor does not foresee. */
enum { LINE = 64, AHEAD = 32 };

static void fetch(const char *row, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += LINE)
		__builtin_prefetch(row + at);
}

#define COPIES(T)                                                                                  \
	/* Element (i, l) at from[i * row + l * k] to to[l * width + i]. */                        \
	static void any_##T(T *to, const T *from, int64_t m, int64_t deep, int64_t row, int64_t k, \
			    int64_t width)                                                         \
	{                                                                                          \
		for (int64_t l = 0; l < deep; l++)                                                 \
			for (int64_t i = 0; i < m; i++)                                            \
				to[l * width + i] = from[i * row + l * k];                         \
	}
COPIES(uint32_t)
COPIES(uint64_t)

/* Rows of less than a line are copied as whole lines, and what is too much is overwritten by the
 * rows that follow: a memcpy of known size is a few instructions.  Says how many rows it did; the
 * last ones have nothing behind them. */
static int64_t copy_lines(char *to, const char *from, size_t bytes, int64_t deep, size_t to_step,
			  size_t from_step)
{
	size_t over = LINE - bytes, step = to_step < from_step ? to_step : from_step;
	int64_t last = deep - 1 - (int64_t)((over + step - 1) / step), l = 0;

	for (; l < last; l++, to += to_step, from += from_step) {
		fetch(from + AHEAD * from_step, bytes);
		memcpy(to, from, LINE);
	}
	return l;
}

#define COPY_ROWS(bytes)                                                                           \
	for (int64_t l = 0; l < deep; l++, to += to_step, from += from_step) {                     \
		fetch(from + AHEAD * from_step, bytes);                                            \
		memcpy(to, from, bytes);                                                           \
	}

static void copy_rows(char *to, const char *from, size_t bytes, int64_t deep, size_t to_step,
		      size_t from_step)
{
	if (bytes == 128) {
		COPY_ROWS(128)
	} else if (bytes == 64) {
		COPY_ROWS(64)
	} else {
		if (bytes < 64 && to_step == bytes && from_step) {
			int64_t done = copy_lines(to, from, bytes, deep, to_step, from_step);
			to += (size_t)done * to_step;
			from += (size_t)done * from_step;
			deep -= done;
		}
		COPY_ROWS(bytes)
	}
}

void pack_right(size_t size, void *to, const void *from, int64_t deep, int64_t n, int64_t width,
		int64_t k, int64_t column)
{
	if (n < width)
		memset(to, 0, (size_t)(deep * width) * size);
	if (column == 1)
		copy_rows(to, from, (size_t)n * size, deep, (size_t)width * size, (size_t)k * size);
	else if (k == 1)
		turn(size, to, width, from, column, deep, n);
	else if (size == sizeof(uint32_t))
		any_uint32_t(to, from, n, deep, column, k, width);
	else
		any_uint64_t(to, from, n, deep, column, k, width);
}
