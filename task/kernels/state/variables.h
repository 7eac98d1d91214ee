/* SPDX-License-Identifier: Apache-2.0 */
/* Access to variables from kernels, by reference or by handle. */
#ifndef MU_TASK_KERNELS_STATE_VARIABLES_H
#define MU_TASK_KERNELS_STATE_VARIABLES_H

#include "task/kernels/engine/args.h"
#include "task/runtime/resources.h"
#include "task/runtime/runtime.h"

/* Container and name of a node's shared resource: its attributes, else the session's container and
 * the node's name.  In a session with isolated state, the container of the attribute is within that
 * of the session; buf holds the combined name. */
const char *resource_container(const struct kernel_call *c, struct mu_buf *buf);
const char *resource_name(const struct kernel_call *c);

/* Sets output `o` to a handle to (container, name). */
int resource_handle_out(struct kernel_call *c, unsigned o, const char *container, const char *name,
			const char *type_name, struct mu_err *err);
/* Sets output 0 to a handle to the resource that the node's attributes name. */
int resource_handle_out_named(struct kernel_call *c, const char *type_name, struct mu_err *err);
/* Input i as a handle of this task; borrowed. */
int resource_handle_in(const struct kernel_call *c, unsigned i, const struct mu_handle **out,
		       struct mu_err *err);

/* The variable of input i, which is a reference or a handle; *out is a new reference. */
int variable_in(const struct kernel_call *c, unsigned i, struct variable **out, struct mu_err *err);
static inline void variable_put(struct variable *v)
{
	resource_unref(&v->base);
}
MU_AUTO_DEFINE(variable_put, struct variable)

/* The variables of inputs 0 … n-1, locked in one global order, with writable values: in place for
 * references, exclusive for handles. variables_unlock undoes this. */
enum { VARIABLES_MAX = 4 };
struct variables {
	unsigned n;
	struct variable *v[VARIABLES_MAX], *order[VARIABLES_MAX];
	struct mu_tensor *t[VARIABLES_MAX];
};
int variables_lock(const struct kernel_call *c, unsigned n, struct variables *out,
		   struct mu_err *err);
void variables_unlock(struct variables *vs);
#define VARIABLES_AUTO __attribute__((cleanup(variables_unlock))) struct variables

/* Forwards the reference of input 0 as output 0, for reference ops. */
static inline void variable_forward(struct kernel_call *c)
{
	if (c->n_out && c->in[0].ref)
		kernel_out_ref(c, 0, c->in[0].ref);
}

#endif
