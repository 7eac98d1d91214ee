/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers' steps, one element a thread, of a whole variable or of some of its rows; the same
 * formulas in the same order as the CPU's (engine/loops/update.h, state/optimizers.c). */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/index.h"
#include "task/kernels/engine/cuda/math.h"

/* ---- the scalars as they were given -> k ---- */

DEVICE void k_plain(double *k, const double *g, int flag)
{
	for (int j = 0; j < 6; j++)
		k[j] = g[j];
}

DEVICE void k_adagrad(double *k, const double *g, int flag)
{
	k[0] = g[0];
	k[1] = g[1];
	k[2] = flag;
}

DEVICE void k_momentum(double *k, const double *g, int flag)
{
	k[0] = g[0];
	k[1] = g[1];
	k[2] = flag & 1;
	k[3] = flag >> 1;
}

DEVICE void k_adam(double *k, const double *g, int flag)
{
	k[0] = g[2] * sqrt(1 - g[1]) / (1 - g[0]);
	k[1] = g[3];
	k[2] = g[4];
	k[3] = g[5];
	k[4] = flag;
}

DEVICE void k_adamax(double *k, const double *g, int flag)
{
	k[0] = g[1] / (1 - g[0]);
	k[1] = g[2];
	k[2] = g[3];
	k[3] = g[4];
}

DEVICE void k_signs(double *k, const double *g, int flag)
{
	k_plain(k, g, flag);
	k[4] = flag;
}

DEVICE void k_ftrl(double *k, const double *g, int flag)
{
	k[0] = g[0];
	k[1] = g[1];
	k[2] = g[2];
	k[3] = g[4];
	k[4] = g[3];
	k[5] = flag;
}

/* ---- the steps ---- */

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
			int64_t s = i / a.by.row, in = i % a.by.row, key = row_to_do(&a.by, s);    \
			for (; key >= 0 && row_goes_on(&a.by, s, key); s++)                        \
				op##_step_##t(                                                     \
				    &a.u, k, key *a.by.row + in,                                   \
				    GET(t, a.u.grad, row_from(&a.by, s) * a.by.row + in));         \
		}                                                                                  \
	}
#define EACH_UPDATE(op, constants, ...)                                                            \
	UPDATE_KERNELS(f32, op, constants, __VA_ARGS__)                                            \
	UPDATE_KERNELS(f64, op, constants, __VA_ARGS__)

/* clang-format off */
EACH_UPDATE(up_add, k_plain, AT(0) += g;)
EACH_UPDATE(up_sub, k_plain, AT(0) -= g;)
EACH_UPDATE(up_sgd, k_plain, AT(0) -= g * K(0);)
EACH_UPDATE(up_adagrad, k_adagrad,
	if (k[2] != 0)
		AT(1) += g * g;
	AT(0) -= K(1) != 0 ? g * K(0) / (sqrt(AT(1)) + K(1)) : g * K(0) / sqrt(AT(1));
)
EACH_UPDATE(up_momentum, k_momentum,
	const bool nesterov = k[2] != 0;
	const bool keras = k[3] != 0;
	const T m = keras ? AT(1) * K(1) - g * K(0) : AT(1) * K(1) + g;
	AT(0) -= keras ? (nesterov ? g * K(0) - m * K(1) : -m)
		 : nesterov ? g * K(0) + m * K(1) * K(0) : m * K(0);
	AT(1) = m;
)
EACH_UPDATE(up_adam, k_adam,
	const T m = AT(1) + (g - AT(1)) * (1 - K(1));
	const T v = AT(2) + (g * g - AT(2)) * (1 - K(2));
	const T up = k[4] != 0 ? m * K(1) + (1 - K(1)) * g : m;
	AT(1) = m;
	AT(2) = v;
	AT(0) -= up * K(0) / (sqrt(v) + K(3));
)
EACH_UPDATE(up_rmsprop, k_plain,
	const T s = AT(1) + (g * g - AT(1)) * (1 - K(1));
	AT(1) = s;
	AT(2) = AT(2) * K(2) + g * K(0) / sqrt(s + K(3));
	AT(0) -= AT(2);
)
EACH_UPDATE(up_centered, k_plain,
	const T s = AT(2) + (g * g - AT(2)) * (1 - K(1));
	const T mean = AT(1) + (g - AT(1)) * (1 - K(1));
	AT(2) = s;
	AT(1) = mean;
	AT(3) = AT(3) * K(2) + g * K(0) / sqrt(s - mean * mean + K(3));
	AT(0) -= AT(3);
)
EACH_UPDATE(up_adadelta, k_plain,
	AT(1) = AT(1) * K(1) + g * g * (1 - K(1));
	const T step = sqrt(AT(2) + K(2)) / sqrt(AT(1) + K(2)) * g;
	AT(0) -= step * K(0);
	AT(2) = AT(2) * K(1) + step * step * (1 - K(1));
)
EACH_UPDATE(up_ftrl, k_ftrl,
	const T power = -K(4);
	const T scale = k[5] != 0 ? K(0) : (T)1;
	const T shrunk = g + 2 * K(3) * AT(0);
	const T grown = AT(1) + g * g;
	const T was = power == (T)0.5 ? sqrt(AT(1)) : pow(AT(1), power);
	const T now = power == (T)0.5 ? sqrt(grown) : pow(grown, power);
	AT(2) += shrunk * scale - (now - was) * scale / K(0) * AT(0);
	const T quad = now * scale / K(0) + 2 * K(2) * scale;
	const T bound = K(1) * scale;
	const T sign = (T)((AT(2) > 0) - (AT(2) < 0));
	AT(0) = fabs(AT(2)) > bound ? (sign * bound - AT(2)) / quad : (T)0;
	AT(1) = grown;
)
#define PROX(lr)                                                                                   \
	T x = AT(0) - g * lr;                                                                      \
	const T sign = (T)((x > 0) - (x < 0));                                                     \
	const T size = fabs(x) - lr * K(1);                                                        \
	if (K(1) > 0)                                                                              \
		x = size > 0 ? sign * size : (T)0;                                                 \
	AT(0) = x / (1 + K(2) * lr);
EACH_UPDATE(up_prox, k_plain, PROX(K(0)))
EACH_UPDATE(up_prox_adagrad, k_plain,
	AT(1) += g * g;
	const T rate = K(0) / sqrt(AT(1));
	PROX(rate)
)
EACH_UPDATE(up_adagrad_da, k_plain,
	const T step = K(3);
	AT(1) += g;
	AT(2) += g * g;
	const T past = fabs(AT(1)) - K(1) * step;
	const T kept = K(1) <= 0 ? AT(1) : past <= 0 ? (T)0 : AT(1) < 0 ? -past : past;
	AT(0) = -K(0) * kept / (K(2) * step * K(0) + sqrt(AT(2)));
)
EACH_UPDATE(up_adamax, k_adamax,
	const T size = fabs(g);
	const T held = K(2) * AT(2);
	AT(1) += (g - AT(1)) * (1 - K(1));
	AT(2) = larger(held, size);
	AT(0) -= K(0) * (AT(1) / (AT(2) + K(3)));
)
EACH_UPDATE(up_amsgrad, k_adam,
	AT(1) += (g - AT(1)) * (1 - K(1));
	AT(2) += (g * g - AT(2)) * (1 - K(2));
	AT(3) = larger(AT(3), AT(2));
	AT(0) -= AT(1) * K(0) / (sqrt(AT(3)) + K(3));
)
EACH_UPDATE(up_signs, k_signs,
	AT(1) = AT(1) * K(3) + g * (1 - K(3));
	const T both = g * AT(1);
	const T sign = (T)((both > 0) - (both < 0));
	AT(0) -= K(0) * (k[4] != 0 ? exp(K(1) * K(2) * sign) : K(1) + K(2) * sign) * g;
)
/* clang-format on */
#undef AT
#undef K
