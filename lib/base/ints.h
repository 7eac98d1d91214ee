/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_LIB_BASE_INTS_H
#define MU_LIB_BASE_INTS_H

#include <stdint.h>

static inline int64_t mu_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

#endif
