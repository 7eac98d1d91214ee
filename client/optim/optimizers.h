/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of mu_minimize: gradients and update. Synchronous replicas aggregate the gradients
 * in between. */
#ifndef MU_CLIENT_OPTIM_OPTIMIZERS_H
#define MU_CLIENT_OPTIM_OPTIMIZERS_H

#include "muster/grad.h"

struct optim_grad {
	struct mu_var *var;
	struct mu_out grad;
	/* Indices of the gathered rows, each once; `grad` then has one row for each index.
	 * MU_NO_OUT: grad has the size of the variable. */
	struct mu_out rows;
};
/* Adds the gradients of all trainable variables that loss depends on. Writes them to out (room for
 * all variables) and returns their number; 0 after an error. No gradient at all is an error. */
unsigned optim_gradients(struct mu_builder *b, struct mu_out loss, struct optim_grad *out);
/* Reduces gradients of gathered variables to the gathered rows. */
void optim_find_rows(struct mu_builder *b, struct optim_grad *grads, unsigned n);
/* Finds the readers of a variable among the nodes that these gradients depend on. */
struct optim_readers {
	unsigned n_nodes;
	bool *is_needed;    /* by node id */
	struct mu_out *ops; /* result of the last optim_readers_of */
};
struct optim_readers *optim_readers_new(struct mu_builder *b, const struct optim_grad *grads,
					unsigned n);
/* Writes the readers on the device of the variable to r->ops and returns their number. */
unsigned optim_readers_of(struct optim_readers *r, struct mu_builder *b, const struct mu_var *v);
void optim_readers_free(struct optim_readers *r);

/* The second half of mu_minimize. */
struct mu_out optim_apply(struct mu_builder *b, const struct mu_optimizer *o,
			  const struct optim_grad *grads, unsigned n, struct mu_var *step);

/* The scheduled learning rate as a float on the device of the step; MU_NO_OUT if it is constant. */
struct mu_out optim_rate(struct mu_builder *b, const struct mu_optimizer *o, struct mu_var *step);
/* Applies l2 and clip_norm to the gradients. */
void optim_regularize(struct mu_builder *b, const struct mu_optimizer *o, struct optim_grad *grads,
		      unsigned n);

#endif
