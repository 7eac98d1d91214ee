/* SPDX-License-Identifier: Apache-2.0 */
/* State that a node keeps between steps, such as a random generator. It belongs to the session and
 * is identified by the node's name, because a session registers the graph anew for each set of
 * fetches. Outside a session it belongs to the registered node. */
#ifndef MU_TASK_KERNELS_RANDOM_NODE_STATE_H
#define MU_TASK_KERNELS_RANDOM_NODE_STATE_H

#include "task/kernels/random/philox.h"
#include "task/runtime/kernel.h"
#include "task/runtime/resources.h"

/* State of a registered node, initially zero.  The first run of the node sets the resource. */
struct node_state {
	_Atomic(struct resource *) resource;
};
void node_state_fini(struct node_state *s);
/* prepare and release of kernels without other state. */
int node_state_prepare(const struct mu_node *n, struct runtime *rt, void **state,
		       struct mu_err *err);
void node_state_release(void *state);
/* Finds the state of a node, or creates it with create(node); *out is borrowed. A node with several
 * resources distinguishes them by a suffix of its name. */
int node_state_find(struct node_state *s, struct kernel_call *c, const char *suffix,
		    const struct resource_type *type,
		    struct resource *(*create)(void *node, struct mu_err *err),
		    struct resource **out, struct mu_err *err);

/* Reserves the next `groups` groups of four random numbers of the node; *out is their start.  The
 * seeds are the attributes seed and seed2.  If both are zero, the system provides a seed. */
int node_draws(struct node_state *s, struct kernel_call *c, uint64_t groups, struct philox *out,
	       struct mu_err *err);
/* Sets *out to the start of the random numbers for the two seeds in input i. */
int stateless_draws(const struct kernel_call *c, unsigned i, struct philox *out,
		    struct mu_err *err);

#endif
