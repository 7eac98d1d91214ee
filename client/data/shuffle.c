/* SPDX-License-Identifier: Apache-2.0 */
/* See shuffle.h. The modulo bias is below rows / 2^64. */
#include "client/data/shuffle.h"

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

void data_shuffle(int64_t *order, int64_t n, uint64_t *state)
{
	for (int64_t i = n - 1; i > 0; i--) {
		int64_t j = (int64_t)(splitmix64(state) % (uint64_t)(i + 1)), t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
}
