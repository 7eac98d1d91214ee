/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of a row, for body.h. The rest of a row beyond whole vectors is padded, so ten classes
 * are one vector instead of ten elements.
 *
 * The maximum needs no check for NaN: any NaN in a row makes the sum NaN. The sum is computed in
 * lanes, and added up in double every SOFTMAX_BLOCK elements. */
enum { SOFTMAX_BLOCK = 4096 };

#define SOFTMAX_FOLD(T, lane, n, expr)                                                             \
	for (int w_ = (n) / 2; w_; w_ /= 2)                                                        \
		for (int k = 0; k < w_; k++) {                                                     \
			const T x = lane[k], y = lane[k + w_];                                     \
			lane[k] = (expr);                                                          \
		}

#define SOFTMAX_FUNCTION(T)                                                                        \
	static void softmax_##T(void *out, const void *in, int64_t n, void *stats)                 \
	{                                                                                          \
		enum { N = 64 / sizeof(T) };                                                       \
		const T *a = in;                                                                   \
		T *o = out, max[N], rest[N], lane[N];                                              \
		const int64_t whole = n - n % N, n_rest = n % N;                                   \
		double sum = 0;                                                                    \
		for (int k = 0; k < N; k++)                                                        \
			max[k] = rest[k] = k < n_rest ? a[whole + k] : -(T)INFINITY;               \
		int64_t n_max4 = whole - whole % (4 * N);                                          \
		if (n_max4) {                                                                      \
			T max4[4 * N]; /* four independent vectors of maxima */                    \
			memcpy(max4, a, sizeof max4);                                              \
			for (int64_t i = 4 * N; i < n_max4; i += 4 * N)                            \
				VECTORISE_SHORT for (int k = 0; k < 4 * N; k++) max4[k] =          \
				    a[i + k] > max4[k] ? a[i + k] : max4[k];                       \
			SOFTMAX_FOLD(T, max4, 4 * N, x > y ? x : y)                                \
			max[0] = max4[0] > max[0] ? max4[0] : max[0];                              \
		}                                                                                  \
		for (int64_t i = n_max4; i < whole; i += N)                                        \
			VECTORISE_SHORT for (int k = 0; k < N; k++) max[k] =                       \
			    a[i + k] > max[k] ? a[i + k] : max[k];                                 \
		SOFTMAX_FOLD(T, max, N, x > y ? x : y)                                             \
		const T top = max[0];                                                              \
		VECTORISE for (int k = 0; k < N; k++)                                              \
		{                                                                                  \
			const T x = rest[k] - top;                                                 \
			lane[k] = rest[k] = exp_down_of(x);                                        \
		}                                                                                  \
		for (int64_t i = 0; i < whole;) {                                                  \
			int64_t end = whole - i < SOFTMAX_BLOCK ? whole : i + SOFTMAX_BLOCK;       \
			for (; i < end; i += N)                                                    \
				VECTORISE for (int k = 0; k < N; k++)                              \
				{                                                                  \
					const T x = a[i + k] - top, e = exp_down_of(x);            \
					o[i + k] = e;                                              \
					lane[k] += e;                                              \
				}                                                                  \
			if (end < whole) {                                                         \
				SOFTMAX_FOLD(T, lane, N, x + y)                                    \
				sum += (double)lane[0];                                            \
				memset(lane, 0, sizeof lane);                                      \
			}                                                                          \
		}                                                                                  \
		SOFTMAX_FOLD(T, lane, N, x + y)                                                    \
		const T total = (T)(sum + (double)lane[0]), scale = 1 / total;                     \
		VECTORISE for (int64_t i = 0; i < whole; i++) o[i] *= scale;                       \
		VECTORISE for (int k = 0; k < N; k++) rest[k] *= scale;                            \
		memcpy(o + whole, rest, (size_t)n_rest * sizeof(T));                               \
		((T *)stats)[0] = top;                                                             \
		((T *)stats)[1] = total;                                                           \
	}
SOFTMAX_FUNCTION(float)
SOFTMAX_FUNCTION(double)

#define SOFTMAX_TABLE                                                                              \
	{                                                                                          \
		[MU_FLOAT] = softmax_float, [MU_DOUBLE] = softmax_double                           \
	}
