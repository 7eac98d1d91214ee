/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of a minimization; between them gradients may be gathered. */
#ifndef CLIENT_OPTIM_OPTIMIZERS_H
#define CLIENT_OPTIM_OPTIMIZERS_H

#include "muster/grad.h"

struct optim_grad {
	struct mu_var *var;
	struct mu_out grad;
	/* When only some rows of the variable were gathered: which ones, each once, and `grad` has
	 * a row for each of these.  None: grad is as large as the variable. */
	struct mu_out rows;
};
/* Of every trainable variable that loss depends on, into out (room for all variables).  0 after an
 * error, which none at all is too. */
unsigned optim_gradients(struct mu_builder *b, struct mu_out loss, struct optim_grad *out);
/* Finds those that are sums over gathered rows, and leaves it at the rows. */
void optim_find_rows(struct mu_builder *b, struct optim_grad *grads, unsigned n);
/* Readers of variables among what makes these gradients. */
struct optim_readers {
	unsigned n_nodes;
	bool *needed;         /* by node id */
	struct mu_out *found; /* of the variable that was asked for last */
};
struct optim_readers *optim_readers_new(struct mu_builder *b, const struct optim_grad *grads,
					unsigned n);
/* Those beside the variable, into r->found; how many. */
unsigned optim_readers_of(struct optim_readers *r, struct mu_builder *b, const struct mu_var *v);
void optim_readers_free(struct optim_readers *r);

/* As mu_minimize, with gradients at hand. */
struct mu_out optim_apply(struct mu_builder *b, const struct mu_optimizer *o,
			  const struct optim_grad *grads, unsigned n, struct mu_var *step);

/* The scheduled learning rate as a float beside the step; nothing when it is constant. */
struct mu_out optim_rate(struct mu_builder *b, const struct mu_optimizer *o, struct mu_var *step);
/* l2 and clip_norm. */
void optim_regularize(struct mu_builder *b, const struct mu_optimizer *o, struct optim_grad *grads,
		      unsigned n);

#endif
