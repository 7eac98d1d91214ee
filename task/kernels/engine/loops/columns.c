/* SPDX-License-Identifier: Apache-2.0 */
/* Several short rows are processed as one long row, because a call for 32 elements costs more than
 * their sum: the sums of the columns of 8192 by 32 are 2.3 x as fast, BiasAddGrad of 1024 by 10 is
 * 2.8 x as fast. For floats this is also more accurate, since fewer terms are added to each partial
 * sum. */
#include "task/kernels/engine/loops/columns.h"

enum { LONG = 1024 /* elements */, FEW = 4 /* long rows that are not worth it */ };

void columns_reduce(const struct reduce_loops *l, size_t size, void *out, const void *in_,
		    int64_t rows, int64_t n)
{
	_Alignas(64) char row[LONG * sizeof(double _Complex)];
	int64_t times = n > 0 ? LONG / n : 0, wide = times * n;
	const char *in = in_;

	if (times > 1 && rows >= FEW * times) {
		l->start(row, wide);
		for (; rows >= times; rows -= times, in += (size_t)wide * size)
			l->add(row, in, wide);
		for (int64_t i = 0; i < times; i++)
			l->add(out, row + (size_t)(i * n) * size, n);
	}
	for (; rows > 0; rows--, in += (size_t)n * size)
		l->add(out, in, n);
}
