/* SPDX-License-Identifier: Apache-2.0 */
/* See shuffle.h. The modulo bias is below rows / 2^64. */
#include "client/data/shuffle.h"

#include "lib/base/random.h"

void data_shuffle(int64_t *order, int64_t n, uint64_t *state)
{
	for (int64_t i = n - 1; i > 0; i--) {
		int64_t j = (int64_t)(mu_mix_bits(*state += 0x9e3779b97f4a7c15u) %
				      (uint64_t)(i + 1)),
			t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
}
