/* SPDX-License-Identifier: Apache-2.0 */
/* A convolutional network like LeNet: two blocks of convolution, ReLU and max pooling, then dense
 * layers. Images are square with one or three channels, channels last. */
#include "client/model/model.h"

#include <math.h>

enum { FIRST_CHANNELS = 16, SECOND_CHANNELS = 32 }; /* output channels of the two convolutions */

static int64_t side_of(int64_t pixels)
{
	int64_t side = (int64_t)sqrt((double)pixels);

	while (side * side < pixels)
		side++;
	return side * side == pixels ? side : 0;
}

struct mu_out model_cnn(struct mu_builder *b, const struct mu_train_options *o,
			const struct model_sizes *s, struct mu_out x)
{
	int64_t channels = 1, side = side_of(s->features), kernel, width;

	if (!side && s->features % 3 == 0) {
		channels = 3;
		side = side_of(s->features / 3);
	}
	if (side < 4) {
		mu_builder_fail(b, MU_INVALID_ARGUMENT,
				"model cnn needs square images of at least 4x4 with one or three "
				"channels; %lld features do not match",
				(long long)s->features);
		return MU_NO_OUT;
	}
	/* Two 5x5 windows would cover a small image completely. */
	kernel = side < 16 ? 3 : 5;
	x = mu_reshape(
	    b, x,
	    mu_const_ints(b, (int32_t[]){-1, (int32_t)side, (int32_t)side, (int32_t)channels}, 4));
	x = layer_conv_pool(b, x, kernel, channels, FIRST_CHANNELS, "conv1", o->seed);
	x = layer_conv_pool(b, x, kernel, FIRST_CHANNELS, SECOND_CHANNELS, "conv2", o->seed);
	side = ((side + 1) / 2 + 1) / 2;
	width = side * side * SECOND_CHANNELS;
	x = mu_reshape(b, x, mu_const_ints(b, (int32_t[]){-1, (int32_t)width}, 2));
	x = layer_hidden(b, o, x, &width);
	return layer_dense(b, x, width, s->classes, "softmax", o->seed, false);
}
