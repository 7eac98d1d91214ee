/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for ids, names and jitter; not for keys. */
#ifndef MU_LIB_BASE_RANDOM_H
#define MU_LIB_BASE_RANDOM_H

#include <stdint.h>

uint64_t mu_random_u64(void); /* never 0 */
/* The finalizer of splitmix64: each bit of the result depends on all bits of z. */
uint64_t mu_mix_bits(uint64_t z);

#endif
