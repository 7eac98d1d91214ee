/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum and mean of 2 by 2 windows with stride 2 and without padding, for body.h. */
#define POOL_PICK(x, y, z, w)                                                                      \
	T best = x;                                                                                \
	int32_t at = 0;                                                                            \
	at = best < y ? 1 : at, best = best < y ? y : best;                                        \
	at = best < z ? 2 : at, best = best < z ? z : best;                                        \
	at = best < w ? 3 : at

static inline float pool_larger_float(float x, float y)
{
	return larger(x, y);
}
static inline double pool_larger_double(double x, double y)
{
	return larger(x, y);
}

#define POOL_FORWARD(name, T_, expr)                                                               \
	static void pool_##name##_##T_(void *out, const void *top, const void *bottom,             \
				       int64_t columns, int64_t channels)                          \
	{                                                                                          \
		typedef T_ T;                                                                      \
		const T *a = top, *c = bottom;                                                     \
		T *o = out;                                                                        \
		for (int64_t j = 0; j < columns; j++, o += channels) {                             \
			const T *b = a + channels, *d = c + channels;                              \
			VECTORISE for (int64_t i = 0; i < channels; i++) o[i] = (expr);            \
			a = b + channels;                                                          \
			c = d + channels;                                                          \
		}                                                                                  \
	}

#define POOL_FUNCTIONS(T_)                                                                         \
	POOL_FORWARD(max, T_,                                                                      \
		     pool_larger_##T_(pool_larger_##T_(pool_larger_##T_(a[i], b[i]), c[i]), d[i])) \
	POOL_FORWARD(average, T_, (a[i] + b[i] + c[i] + d[i]) * (T)0.25)                           \
	static void pool_max_back_##T_(void *top_, void *bottom_, const void *top,                 \
				       const void *bottom, const void *grad, int64_t columns,      \
				       int64_t channels)                                           \
	{                                                                                          \
		typedef T_ T;                                                                      \
		const T *a = top, *c = bottom, *g = grad;                                          \
		T *p = top_, *r = bottom_;                                                         \
		for (int64_t j = 0; j < columns; j++, g += channels) {                             \
			const T *b = a + channels, *d = c + channels;                              \
			T *q = p + channels, *s = r + channels;                                    \
			VECTORISE for (int64_t i = 0; i < channels; i++)                           \
			{                                                                          \
				POOL_PICK(a[i], b[i], c[i], d[i]);                                 \
				p[i] = at == 0 ? g[i] : 0;                                         \
				q[i] = at == 1 ? g[i] : 0;                                         \
				r[i] = at == 2 ? g[i] : 0;                                         \
				s[i] = at == 3 ? g[i] : 0;                                         \
			}                                                                          \
			a = b + channels, c = d + channels, p = q + channels, r = s + channels;    \
		}                                                                                  \
	}
POOL_FUNCTIONS(float)
POOL_FUNCTIONS(double)

#define POOL_TABLE                                                                                 \
	{                                                                                          \
		[MU_FLOAT] = {pool_max_float, pool_average_float, pool_max_back_float},            \
		[MU_DOUBLE] = {pool_max_double, pool_average_double, pool_max_back_double},        \
	}
