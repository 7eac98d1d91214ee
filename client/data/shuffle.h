/* SPDX-License-Identifier: Apache-2.0 */
/* Random permutations (Fisher-Yates with splitmix64). The same seed gives the same order on every
 * machine. */
#ifndef MU_CLIENT_DATA_SHUFFLE_H
#define MU_CLIENT_DATA_SHUFFLE_H

#include <stdint.h>

/* Permutes order[0 … n-1] and advances *state, so that the next call gives another permutation. */
void data_shuffle(int64_t *order, int64_t n, uint64_t *state);

#endif
