/* SPDX-License-Identifier: Apache-2.0 */
/* One window of a depthwise convolution with a filter a channel, for body.h. The inner loop
 * computes a vector of channels over all taps, so that a sum or the output's gradient stays in a
 * register. */
#define DEPTHWISE_CHANNELS(V, begin, tap, end)                                                     \
	{                                                                                          \
		V *o = (V *)(y + c), v = begin;                                                    \
		for (int64_t k = 0; k < t->rows; k++)                                              \
			for (int64_t l = 0; l < t->columns; l++) {                                 \
				V *a = (V *)(x + k * t->x_row + l * t->x_column + c);              \
				V *b = (V *)(w + k * t->w_row + l * t->w_column + c);              \
				tap;                                                               \
			}                                                                          \
		end;                                                                               \
	}
#define DEPTHWISE_LOOP(name, T, begin, tap, end)                                                   \
	static void depthwise_##name##_##T(const struct conv_taps *t, void *x_, void *w_,          \
					   void *y_)                                               \
	{                                                                                          \
		typedef T vec                                                                      \
		    __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(sizeof(T))));     \
		typedef T part __attribute__((vector_size(16), may_alias, aligned(sizeof(T))));    \
		const int64_t lanes = VECTOR_BYTES / sizeof(T), part_lanes = 16 / sizeof(T);       \
		T *x = x_, *w = w_, *y = y_;                                                       \
		int64_t c = 0;                                                                     \
		for (; c + lanes <= t->channels; c += lanes)                                       \
			DEPTHWISE_CHANNELS(vec, begin, tap, end)                                   \
		for (; c + part_lanes <= t->channels; c += part_lanes)                             \
			DEPTHWISE_CHANNELS(part, begin, tap, end)                                  \
		for (; c < t->channels; c++)                                                       \
			DEPTHWISE_CHANNELS(T, begin, tap, end)                                     \
	}
#define DEPTHWISE_FUNCTIONS(T)                                                                     \
	DEPTHWISE_LOOP(output, T, {0}, v += *a * *b, *o = v)                                       \
	DEPTHWISE_LOOP(input_grad, T, *o, *a += v * *b, )                                          \
	DEPTHWISE_LOOP(filter_grad, T, *o, *b += v * *a, )
DEPTHWISE_FUNCTIONS(float)
DEPTHWISE_FUNCTIONS(double)

#define DEPTHWISE_LOOPS(T)                                                                         \
	{                                                                                          \
		depthwise_output_##T, depthwise_input_grad_##T, depthwise_filter_grad_##T          \
	}
#define DEPTHWISE_TABLE                                                                            \
	{                                                                                          \
		[MU_FLOAT] = DEPTHWISE_LOOPS(float), [MU_DOUBLE] = DEPTHWISE_LOOPS(double)         \
	}
