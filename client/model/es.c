/* SPDX-License-Identifier: Apache-2.0 */
/* Evolution strategies: the gradient is estimated by sampling.
 *
 * Each step draws pairs of mirrored perturbations of all weights, ±σ ε, and compares the two
 * losses. (loss⁺ − loss⁻) / 2σ · ε is an unbiased estimate of the gradient of the smoothed loss.
 * The optimizers receive the estimate as the gradient of Σ w · estimate. So synchronous replicas,
 * clipping and schedules work as for any model. Each worker draws its own noise, so more workers
 * give a better estimate.
 */
#include "client/model/model.h"

#include <stdio.h>

enum { MAX_PARAMS = 2 * (MU_MAX_LAYERS + 1) };

struct network {
	struct mu_builder *b;
	struct mu_var *vars[MAX_PARAMS]; /* alternating weights and biases */
	unsigned n;
};

static void make_variables(struct network *n, const struct mu_train_options *o,
			   const struct model_sizes *s)
{
	int64_t in = s->features;
	char name[32];

	for (unsigned i = 0; i <= o->n_hidden; i++) {
		int64_t out = i < o->n_hidden ? o->hidden[i] : s->classes;

		snprintf(name, sizeof(name), "layer%u", i + 1);
		mu_push_name(n->b, name);
		n->vars[n->n++] = mu_variable(n->b, "weights", MU_FLOAT, MU_SHAPE(in, out),
					      layer_weights(in, o->seed, o->n_hidden == 0), true);
		n->vars[n->n++] =
		    mu_variable(n->b, "biases", MU_FLOAT, MU_SHAPE(out), MU_ZEROS, true);
		mu_pop_name(n->b);
		in = out;
	}
}

static struct mu_out forward(const struct network *n, const struct mu_out *params, struct mu_out x)
{
	for (unsigned i = 0; i < n->n; i += 2) {
		x = mu_bias_add(n->b, mu_matmul(n->b, x, params[i]), params[i + 1]);
		if (i + 2 < n->n)
			x = mu_tanh(n->b, x);
	}
	return x;
}

static struct mu_out loss_at(const struct network *n, const struct mu_out *weights,
			     const struct mu_out *noise, double sigma, const struct model *m)
{
	struct mu_out params[MAX_PARAMS], scale = mu_const_float(n->b, (float)sigma);

	for (unsigned i = 0; i < n->n; i++)
		params[i] = mu_add(n->b, weights[i], mu_mul(n->b, noise[i], scale));
	return mu_mean(n->b, mu_sparse_softmax_xent(n->b, forward(n, params, m->x), m->y), NULL, 0);
}

/* Adds one pair's contribution to grads. */
static void add_pair(const struct network *n, const struct mu_out *weights,
		     const struct mu_train_options *o, const struct model *m, struct mu_out *grads)
{
	struct mu_builder *b = n->b;
	struct mu_out noise[MAX_PARAMS], difference;

	for (unsigned i = 0; i < n->n; i++)
		noise[i] =
		    mu_op(b, "RandomStandardNormal", MU_IN(mu_op(b, "Shape", MU_IN(weights[i]))),
			  MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT)));
	difference = mu_sub(b, loss_at(n, weights, noise, o->noise, m),
			    loss_at(n, weights, noise, -o->noise, m));
	difference =
	    mu_mul(b, difference, mu_const_float(b, (float)(1 / (2 * o->noise * o->pairs))));
	for (unsigned i = 0; i < n->n; i++) {
		struct mu_out part = mu_mul(b, noise[i], difference);

		grads[i] = grads[i].node ? mu_add(b, grads[i], part) : part;
	}
}

struct mu_out model_evolution_strategy(struct mu_builder *b, const struct mu_train_options *o,
				       const struct model_sizes *s, struct model *m)
{
	struct network n = {.b = b};
	struct mu_out weights[MAX_PARAMS], grads[MAX_PARAMS] = {{NULL, 0}};

	if (o->pairs < 1 || !(o->noise > 0)) {
		mu_builder_fail(b, MU_INVALID_ARGUMENT,
				"model es needs noise above 0 and at least one pair of "
				"perturbations");
		return MU_NO_OUT;
	}
	make_variables(&n, o, s);
	for (unsigned i = 0; i < n.n && n.vars[i]; i++)
		weights[i] = mu_read(n.vars[i]);
	if (mu_builder_check(b, NULL))
		return MU_NO_OUT;
	for (int p = 0; p < o->pairs; p++)
		add_pair(&n, weights, o, m, grads);
	for (unsigned i = 0; i < n.n; i++) {
		struct mu_out term = mu_sum(
		    b, mu_mul(b, weights[i], mu_op(b, "StopGradient", MU_IN(grads[i]))), NULL, 0);

		m->objective = m->objective.node ? mu_add(b, m->objective, term) : term;
	}
	return forward(&n, weights, m->x);
}
