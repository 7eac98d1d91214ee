/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over the formulas of optimizers.def; part of body.h. */

#define AT(s) at##s[i]
#define K(j)  k##j
#define UPDATE_LOOP(type, dt, name, ...)                                                           \
	static void up_##name##_##dt(void *const *at, const void *grad, int64_t n,                 \
				     const double *k)                                              \
	{                                                                                          \
		typedef type T;                                                                    \
		T *const at0 = at[0];                                                              \
		__attribute__((unused)) T *const at1 = at[1], *const at2 = at[2],                  \
						 *const at3 = at[3];                               \
		__attribute__((unused)) const T k0 = (T)k[0], k1 = (T)k[1], k2 = (T)k[2],          \
						k3 = (T)k[3], k4 = (T)k[4], k5 = (T)k[5];          \
		VECTORISE for (int64_t i = 0; i < n; i++)                                          \
		{                                                                                  \
			const T g = ((const T *)grad)[i];                                          \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define OPTIMIZER(kind, name, constants, ...)                                                      \
	UPDATE_LOOP(float, MU_FLOAT, name, __VA_ARGS__)                                            \
	UPDATE_LOOP(double, MU_DOUBLE, name, __VA_ARGS__)
#include "task/kernels/engine/loops/optimizers.def"
#undef AT
#undef K
