/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer updates, one element a thread, of a whole variable or of some of its rows; the same
 * formulas as on the CPU (engine/loops/optimizers.def). */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/index.h"
#include "task/kernels/engine/cuda/math.h"
#include "task/kernels/engine/loops/optimizer_constants.h"

#define AT(s) (PTR(T, a->at[s])[i])
#define K(j)  ((T)k[j])
#define UPDATE_KERNELS(t, op, constants, ...)                                                      \
	DEVICE void op##_step_##t(const struct update_args *a, const double *k, int64_t i,         \
				  const C(t) g)                                                    \
	{                                                                                          \
		typedef C(t) T;                                                                    \
		__VA_ARGS__                                                                        \
	}                                                                                          \
	DEVICE void op##_constants_##t(const struct update_args *a, double *k)                     \
	{                                                                                          \
		double given[6] = {0};                                                             \
		for (int j = 0; j < 6; j++) /* unrolled, so that they stay in registers */         \
			given[j] = j >= a->scalars       ? 0                                       \
				   : j + 1 == a->counter ? (double)GET(i64, a->scalar[j], 0)       \
							 : (double)GET(t, a->scalar[j], 0);        \
		constants(k, given, a->flag);                                                      \
	}                                                                                          \
	KERNEL(op##_##t, update_args)                                                              \
	{                                                                                          \
		double k[6] = {0};                                                                 \
		op##_constants_##t(&a, k);                                                         \
		EACH(i, a.n) op##_step_##t(&a, k, i, GET(t, a.grad, i));                           \
	}                                                                                          \
	KERNEL(op##_rows_##t, update_rows_args)                                                    \
	{                                                                                          \
		double k[6] = {0};                                                                 \
		op##_constants_##t(&a.u, k);                                                       \
		EACH(i, a.by.n *a.by.row)                                                          \
		{                                                                                  \
			int64_t s = i / a.by.row, in = i % a.by.row,                               \
				key = first_update_of_row(&a.by, s);                               \
			for (; key >= 0 && updates_row(&a.by, s, key); s++)                        \
				op##_step_##t(                                                     \
				    &a.u, k, key *a.by.row + in,                                   \
				    GET(t, a.u.grad, update_position(&a.by, s) * a.by.row + in));  \
		}                                                                                  \
	}
#define EACH_UPDATE(op, constants, ...)                                                            \
	UPDATE_KERNELS(f32, op, constants, __VA_ARGS__)                                            \
	UPDATE_KERNELS(f64, op, constants, __VA_ARGS__)

EACH_UPDATE(up_add, k_plain, AT(0) += g;)
EACH_UPDATE(up_sub, k_plain, AT(0) -= g;)
#define OPTIMIZER(kind, name, constants, ...) EACH_UPDATE(up_##name, constants, __VA_ARGS__)
#include "task/kernels/engine/loops/optimizers.def"
#undef AT
#undef K
