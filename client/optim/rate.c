/* SPDX-License-Identifier: Apache-2.0 */
/* Learning-rate schedules, L2 regularisation and gradient clipping. */
#include <math.h>

#include "client/optim/optimizers.h"
#include "lib/builder/builder.h"

static struct mu_out float_constant(struct mu_builder *b, double x)
{
	return mu_const_float(b, (float)x);
}

/* rate · (decay + (1 − decay) · (1 + cos(π · min(progress, 1))) / 2) */
static struct mu_out cosine_decay(struct mu_builder *b, const struct mu_optimizer *o,
				  struct mu_out progress)
{
	struct mu_out angle = mu_mul(b, float_constant(b, M_PI),
				     mu_op(b, "Minimum", MU_IN(progress, float_constant(b, 1))));
	struct mu_out one_plus_cosine =
	    mu_add(b, float_constant(b, 1), mu_op(b, "Cos", MU_IN(angle)));
	double half_range = o->rate * (1 - o->schedule.decay) / 2;

	return mu_add(b, float_constant(b, o->rate * o->schedule.decay),
		      mu_mul(b, float_constant(b, half_range), one_plus_cosine));
}

struct mu_out optim_rate(struct mu_builder *b, const struct mu_optimizer *o, struct mu_var *step)
{
	const struct mu_schedule *s = &o->schedule;
	struct mu_out progress, rate;

	if (s->kind == MU_RATE_CONSTANT || builder_failed(b))
		return MU_NO_OUT;
	if (!step || s->steps < 1 || !(s->decay >= 0)) {
		mu_builder_fail(b, MU_INVALID_ARGUMENT,
				"a learning-rate schedule needs a global step, `steps` of at "
				"least 1 and a decay that is not negative");
		return MU_NO_OUT;
	}
	mu_push_device(b, step->ref.node->device);
	progress =
	    mu_div(b, mu_cast(b, mu_read(step), MU_FLOAT), float_constant(b, (double)s->steps));
	if (s->kind == MU_RATE_STEPS)
		progress = mu_op(b, "Floor", MU_IN(progress));
	rate = s->kind == MU_RATE_COSINE
		   ? cosine_decay(b, o, progress)
		   : mu_mul(b, float_constant(b, o->rate),
			    mu_op(b, "Pow", MU_IN(float_constant(b, s->decay), progress)));
	mu_pop_device(b);
	return rate;
}

static struct mu_out cast_to(struct mu_builder *b, struct mu_out x, enum mu_dtype dtype)
{
	return mu_out_dtype(b, x) == dtype ? x : mu_cast(b, x, dtype);
}

/* clip / max(clip, global norm of the gradients) */
static struct mu_out clip_factor(struct mu_builder *b, double clip, const struct optim_grad *grads,
				 unsigned n)
{
	struct mu_out sum = MU_NO_OUT;

	for (unsigned i = 0; i < n; i++) {
		struct mu_out half_square =
		    cast_to(b, mu_op(b, "L2Loss", MU_IN(grads[i].grad)), MU_FLOAT);

		sum = sum.node ? mu_add(b, sum, half_square) : half_square;
	}
	sum = mu_op(b, "Sqrt", MU_IN(mu_mul(b, float_constant(b, 2), sum)));
	return mu_div(b, float_constant(b, clip),
		      mu_op(b, "Maximum", MU_IN(float_constant(b, clip), sum)));
}

void optim_regularize(struct mu_builder *b, const struct mu_optimizer *o, struct optim_grad *grads,
		      unsigned n)
{
	struct mu_out factor;

	for (unsigned i = 0; i < n && o->l2 > 0; i++)
		grads[i].grad =
		    mu_add(b, grads[i].grad,
			   mu_mul(b, cast_to(b, float_constant(b, o->l2), grads[i].var->dtype),
				  mu_read(grads[i].var)));
	if (!(o->clip_norm > 0) || !n || builder_failed(b))
		return;
	factor = clip_factor(b, o->clip_norm, grads, n);
	for (unsigned i = 0; i < n; i++)
		grads[i].grad = mu_mul(b, grads[i].grad, cast_to(b, factor, grads[i].var->dtype));
}
