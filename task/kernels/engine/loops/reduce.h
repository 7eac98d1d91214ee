/* SPDX-License-Identifier: Apache-2.0 */
/* Reduction loops; part of body.h.
 *
 * Sums of floats are computed in several lanes, and added up in double every few thousand elements,
 * so that a mean over millions is accurate. */

enum { LANES = 32, SUM_BLOCK = 4096 };

#define REDUCE_LOOPS(op, T_, dt, first, expr)                                                      \
	static void red_##op##_start_##dt(void *out, int64_t n)                                    \
	{                                                                                          \
		T_ *o = out;                                                                       \
		for (int64_t i = 0; i < n; i++)                                                    \
			o[i] = (T_)(first);                                                        \
	}                                                                                          \
	static void red_##op##_add_##dt(void *out, const void *a_, int64_t n)                      \
	{                                                                                          \
		T_ *o = out;                                                                       \
		const T_ *a = a_;                                                                  \
		VECTORISE for (int64_t i = 0; i < n; i++)                                          \
		{                                                                                  \
			const T_ x = o[i], y = a[i];                                               \
			o[i] = (T_)(expr);                                                         \
		}                                                                                  \
	}

#define REDUCE_ROW(op, T_, dt, expr)                                                               \
	static void red_##op##_row_##dt(void *out, const void *a_, int64_t n)                      \
	{                                                                                          \
		T_ *o = out, lane[LANES];                                                          \
		const T_ *a = a_;                                                                  \
		int64_t i = 0;                                                                     \
		if (n >= 2 * LANES) {                                                              \
			memcpy(lane, a, sizeof lane);                                              \
			for (i = LANES; i + LANES <= n; i += LANES)                                \
				VECTORISE for (int k = 0; k < LANES; k++)                          \
				{                                                                  \
					const T_ x = lane[k], y = a[i + k];                        \
					lane[k] = (T_)(expr);                                      \
				}                                                                  \
			for (int k = 0; k < LANES; k++) {                                          \
				const T_ x = o[0], y = lane[k];                                    \
				o[0] = (T_)(expr);                                                 \
			}                                                                          \
		}                                                                                  \
		for (; i < n; i++) {                                                               \
			const T_ x = o[0], y = a[i];                                               \
			o[0] = (T_)(expr);                                                         \
		}                                                                                  \
	}

#define SUM_ROW(T_, dt, WIDE)                                                                      \
	static void red_sum_row_##dt(void *out, const void *a_, int64_t n)                         \
	{                                                                                          \
		const T_ *a = a_;                                                                  \
		WIDE sum = ((T_ *)out)[0];                                                         \
		for (int64_t from = 0; from < n; from += SUM_BLOCK) {                              \
			int64_t to = n - from < SUM_BLOCK ? n : from + SUM_BLOCK, i = from;        \
			T_ lane[LANES] = {0};                                                      \
			for (; i + LANES <= to; i += LANES)                                        \
				VECTORISE for (int k = 0; k < LANES; k++) lane[k] += a[i + k];     \
			for (; i < to; i++)                                                        \
				sum += (WIDE)a[i];                                                 \
			for (int k = 0; k < LANES; k++)                                            \
				sum += (WIDE)lane[k];                                              \
		}                                                                                  \
		((T_ *)out)[0] = (T_)sum;                                                          \
	}
SUM_ROW(float, MU_FLOAT, double)
SUM_ROW(double, MU_DOUBLE, double)
SUM_ROW(float _Complex, MU_COMPLEX64, double _Complex)
SUM_ROW(double _Complex, MU_COMPLEX128, double _Complex)

#define max_int(T) ((T)-1 < 0 ? (T)(((uint64_t)1 << (sizeof(T) * CHAR_BIT - 1)) - 1) : (T)-1)
#define min_int(T) ((T)-1 < 0 ? (T)((uint64_t)1 << (sizeof(T) * CHAR_BIT - 1)) : (T)0)

#define ARI_REDUCE(op, T_, dt, expr)                                                               \
	REDUCE_LOOPS(sum, T_, dt, 0, x + y)                                                        \
	REDUCE_LOOPS(prod, T_, dt, 1, x *y)                                                        \
	REDUCE_ROW(prod, T_, dt, x *y)
#define NUM_REDUCE(op, T_, dt, expr)                                                               \
	REDUCE_ROW(max, T_, dt, larger(x, y))                                                      \
	REDUCE_ROW(min, T_, dt, smaller(x, y))
#define INT_REDUCE(op, T_, dt, expr)                                                               \
	REDUCE_ROW(sum, T_, dt, x + y)                                                             \
	REDUCE_LOOPS(max, T_, dt, min_int(T_), larger(x, y))                                       \
	REDUCE_LOOPS(min, T_, dt, max_int(T_), smaller(x, y))
#define FLT_REDUCE(op, T_, dt, expr)                                                               \
	REDUCE_LOOPS(max, T_, dt, -INFINITY, larger(x, y))                                         \
	REDUCE_LOOPS(min, T_, dt, INFINITY, smaller(x, y))
EACH_ARI(ARI_REDUCE, , )
EACH_NUM(NUM_REDUCE, , )
EACH_INT(INT_REDUCE, , )
EACH_FLT(FLT_REDUCE, , )
REDUCE_LOOPS(and, bool, MU_BOOL, true, x &y)
REDUCE_LOOPS(or, bool, MU_BOOL, false, x | y)
REDUCE_ROW(and, bool, MU_BOOL, x &y)
REDUCE_ROW(or, bool, MU_BOOL, x | y)

#define REDUCE_ENTRY(op, T_, dt, expr)                                                             \
	[dt] = {red_##op##_start_##dt, red_##op##_row_##dt, red_##op##_add_##dt},
#define REDUCE_TABLE                                                                               \
	{                                                                                          \
		[RED_SUM] = {EACH_ARI(REDUCE_ENTRY, sum, )},                                       \
		[RED_PROD] = {EACH_ARI(REDUCE_ENTRY, prod, )},                                     \
		[RED_MAX] = {EACH_NUM(REDUCE_ENTRY, max, )},                                       \
		[RED_MIN] = {EACH_NUM(REDUCE_ENTRY, min, )},                                       \
		[RED_AND] = {REDUCE_ENTRY(and, bool, MU_BOOL, )},                                  \
		[RED_OR] = {REDUCE_ENTRY(or, bool, MU_BOOL, )},                                    \
	}
