/* SPDX-License-Identifier: Apache-2.0 */
/* Orders drawn at random: the same seed gives the same order on every machine (Fisher and Yates,
 * with splitmix64 as the source). */
#ifndef CLIENT_DATA_SHUFFLE_H
#define CLIENT_DATA_SHUFFLE_H

#include <stdint.h>

/* Permutes order[0 … n-1]; *state moves on, so that the next call draws another one. */
void data_shuffle(int64_t *order, int64_t n, uint64_t *state);

#endif
