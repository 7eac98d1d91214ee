/* SPDX-License-Identifier: Apache-2.0 */
/* The table from ops to their gradient functions. */
#ifndef CLIENT_GRAD_OP_GRADS_H
#define CLIENT_GRAD_OP_GRADS_H

#include "client/builder.h"

/* One node to differentiate: gy[i] is the gradient of output i (MU_NO_OUT: none); fill gx[i] for
 * the inputs that have one (they start as MU_NO_OUT). */
struct grad_call {
	struct mu_builder *b;
	struct mu_node *node;
	const struct mu_out *gy;
	struct mu_out *gx;
};
typedef void (*grad_fn)(struct grad_call *c);

struct op_grad {
	const char *op;
	grad_fn fn; /* NULL: nothing flows back through this op, and that is right */
};
const struct op_grad *op_grad_find(const char *op); /* NULL: the op has no gradient */

static inline struct mu_out grad_in(const struct grad_call *c, unsigned i)
{
	return (struct mu_out){c->node->inputs[i].node, c->node->inputs[i].port};
}
static inline struct mu_out grad_out(const struct grad_call *c, int port)
{
	return (struct mu_out){c->node, port};
}

#endif
