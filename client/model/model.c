// SPDX-License-Identifier: Apache-2.0
/* Softmax regression and multi-layer perceptrons. */
#include "client/model/model.h"

#include <math.h>
#include <stdio.h>

/* x W + b.  Weights start from a truncated normal of standard deviation sqrt(2 / inputs), which
 * keeps the variance through rectified layers; zeros would do for softmax regression alone. */
static struct mu_out dense(struct mu_builder *b, struct mu_out x, int64_t in, int64_t out,
			   const char *name, int64_t seed, bool zeros)
{
	struct mu_init random = {
	    .kind = MU_INIT_NORMAL, .value = sqrt(2.0 / (double)in), .seed = seed};
	struct mu_out y = MU_NO_OUT;

	mu_push_name(b, name);
	struct mu_var *w =
	    mu_variable(b, "weights", MU_FLOAT, MU_SHAPE(in, out), zeros ? MU_ZEROS : random, true);
	struct mu_var *c = mu_variable(b, "biases", MU_FLOAT, MU_SHAPE(out), MU_ZEROS, true);
	if (w && c)
		y = mu_bias_add(b, mu_matmul(b, x, mu_read(w)), mu_read(c));
	mu_pop_name(b);
	return y;
}

static struct mu_out build_softmax(struct mu_builder *b, const struct mu_train_options *o,
				   struct model_sizes s, struct mu_out x)
{
	return dense(b, x, s.features, s.classes, "softmax", o->seed, true);
}

static struct mu_out build_mlp(struct mu_builder *b, const struct mu_train_options *o,
			       struct model_sizes s, struct mu_out x)
{
	int64_t in = s.features;
	char name[32];

	for (unsigned i = 0; i < o->n_hidden; i++) {
		snprintf(name, sizeof(name), "layer%u", i + 1);
		x = mu_relu(b, dense(b, x, in, o->hidden[i], name, o->seed, false));
		in = o->hidden[i];
	}
	return dense(b, x, in, s.classes, "softmax", o->seed, false);
}

static const struct {
	const char *name;
	struct mu_out (*logits)(struct mu_builder *b, const struct mu_train_options *o,
				struct model_sizes s, struct mu_out x);
} models[] = {
    {"softmax", build_softmax},
    {"mlp", build_mlp},
};

int model_build(struct mu_builder *b, const struct mu_train_options *o, struct model_sizes sizes,
		struct model *out, struct mu_err *err)
{
	struct mu_out logits = MU_NO_OUT, hit;
	size_t i = 0;

	while (i < MU_COUNT(models) && strcmp(models[i].name, o->model) != 0)
		i++;
	if (i == MU_COUNT(models))
		return mu_fail(err, MU_INVALID_ARGUMENT, "no model '%s': there are softmax and mlp",
			       o->model);
	out->x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(-1, sizes.features));
	out->y = mu_placeholder(b, "y", MU_INT32, MU_SHAPE(-1));
	logits = models[i].logits(b, o, sizes, out->x);
	out->loss = mu_mean(b, mu_sparse_softmax_xent(b, logits, out->y), NULL, 0);
	hit = mu_cast(b, mu_equal(b, mu_argmax(b, logits, 1), mu_cast(b, out->y, MU_INT64)),
		      MU_FLOAT);
	out->accuracy = mu_mean(b, hit, NULL, 0);
	out->correct = mu_sum(b, hit, NULL, 0);
	return mu_builder_check(b, err);
}
