/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of a minimization; between them gradients may be gathered. */
#ifndef CLIENT_OPTIM_OPTIMIZERS_H
#define CLIENT_OPTIM_OPTIMIZERS_H

#include "muster/grad.h"

struct optim_grad {
	struct mu_var *var;
	struct mu_out grad;
};
/* Of every trainable variable that loss depends on, into out (room for all variables).  0 after an
 * error, which none at all is too.  l2 and clip_norm are in them. */
unsigned optim_gradients(struct mu_builder *b, const struct mu_optimizer *o, struct mu_out loss,
			 struct optim_grad *out);
/* As mu_minimize, with gradients at hand. */
struct mu_out optim_apply(struct mu_builder *b, const struct mu_optimizer *o,
			  const struct optim_grad *grads, unsigned n, struct mu_var *step);

/* The scheduled learning rate as a float beside the step; nothing when it is constant. */
struct mu_out optim_rate(struct mu_builder *b, const struct mu_optimizer *o, struct mu_var *step);
/* l2 and clip_norm. */
void optim_regularize(struct mu_builder *b, const struct mu_optimizer *o, struct optim_grad *grads,
		      unsigned n);

#endif
