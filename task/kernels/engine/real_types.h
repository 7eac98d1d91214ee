/* SPDX-License-Identifier: Apache-2.0 */
/* The element types with order and arithmetic in C: X(type, enum value, lowest value, type of
 * sums). Sums in that type wrap where the element type would overflow. */
#ifndef MU_TASK_KERNELS_ENGINE_REAL_TYPES_H
#define MU_TASK_KERNELS_ENGINE_REAL_TYPES_H

#include <float.h>

#define REAL_TYPES(X)                                                                              \
	X(float, MU_FLOAT, -FLT_MAX, float)                                                        \
	X(double, MU_DOUBLE, -DBL_MAX, double)                                                     \
	X(int8_t, MU_INT8, INT8_MIN, int8_t)                                                       \
	X(int16_t, MU_INT16, INT16_MIN, int16_t)                                                   \
	X(int32_t, MU_INT32, INT32_MIN, uint32_t)                                                  \
	X(int64_t, MU_INT64, INT64_MIN, uint64_t)                                                  \
	X(uint8_t, MU_UINT8, 0, uint8_t)                                                           \
	X(uint16_t, MU_UINT16, 0, uint16_t)                                                        \
	X(uint32_t, MU_UINT32, 0, uint32_t)                                                        \
	X(uint64_t, MU_UINT64, 0, uint64_t)

#endif
