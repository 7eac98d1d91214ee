/* SPDX-License-Identifier: Apache-2.0 */
/* Layers shared by several models. */
#include "client/model/model.h"

#include <math.h>
#include <stdio.h>

/* Initial weights: a truncated normal distribution with standard deviation sqrt(2 / inputs) (He
 * initialisation), which keeps the variance through ReLU layers. Zeros suffice for a layer that is
 * followed only by a softmax. */
struct mu_init layer_weights(int64_t in, int64_t seed, bool zeros)
{
	struct mu_init random = {
	    .kind = MU_INIT_NORMAL, .value = sqrt(2.0 / (double)in), .seed = seed};

	return zeros ? MU_ZEROS : random;
}

struct mu_out layer_dense(struct mu_builder *b, struct mu_out x, int64_t in, int64_t out,
			  const char *name, int64_t seed, bool zeros)
{
	struct mu_out y = MU_NO_OUT;

	mu_push_name(b, name);
	struct mu_var *w = mu_variable(b, "weights", MU_FLOAT, MU_SHAPE(in, out),
				       layer_weights(in, seed, zeros), true);
	struct mu_var *c = mu_variable(b, "biases", MU_FLOAT, MU_SHAPE(out), MU_ZEROS, true);
	if (w && c)
		y = mu_bias_add(b, mu_matmul(b, x, mu_read(w)), mu_read(c));
	mu_pop_name(b);
	return y;
}

struct mu_out layer_hidden(struct mu_builder *b, const struct mu_train_options *o, struct mu_out x,
			   int64_t *width)
{
	char name[32];

	for (unsigned i = 0; i < o->n_hidden; i++) {
		snprintf(name, sizeof(name), "layer%u", i + 1);
		x = mu_relu(b, layer_dense(b, x, *width, o->hidden[i], name, o->seed, false));
		*width = o->hidden[i];
	}
	return x;
}

struct mu_out layer_conv_pool(struct mu_builder *b, struct mu_out x, int64_t kernel, int64_t in,
			      int64_t out, const char *name, int64_t seed)
{
	int64_t unit_strides[] = {1, 1, 1, 1}, pool_window[] = {1, 2, 2, 1};
	const int list = MU_ATTR_LIST + MU_ATTR_INT;
	struct mu_node_attr strides = {"strides", {.kind = list, .n = 4, .is = unit_strides}};
	struct mu_node_attr pool[] = {{"ksize", {.kind = list, .n = 4, .is = pool_window}},
				      {"strides", {.kind = list, .n = 4, .is = pool_window}},
				      MU_A_STR("padding", "SAME")};
	struct mu_out y = MU_NO_OUT;

	mu_push_name(b, name);
	struct mu_var *w = mu_variable(b, "weights", MU_FLOAT, MU_SHAPE(kernel, kernel, in, out),
				       layer_weights(kernel * kernel * in, seed, false), true);
	struct mu_var *c = mu_variable(b, "biases", MU_FLOAT, MU_SHAPE(out), MU_ZEROS, true);
	if (w && c) {
		y = mu_op(b, "Conv2D", MU_IN(x, mu_read(w)),
			  MU_ATTRS(strides, MU_A_STR("padding", "SAME")));
		y = mu_relu(b, mu_bias_add(b, y, mu_read(c)));
		y = mu_op(b, "MaxPool", MU_IN(y), .attrs = pool, .n_attrs = MU_COUNT(pool));
	}
	mu_pop_name(b);
	return y;
}
