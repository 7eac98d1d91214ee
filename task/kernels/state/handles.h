/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and lookup of resources other than variables. Newer ops pass a handle; older ones pass a
 * reference to two strings, container and name. */
#ifndef MU_TASK_KERNELS_STATE_HANDLES_H
#define MU_TASK_KERNELS_STATE_HANDLES_H

#include "task/kernels/state/variables.h"

/* Finds the node's resource, or creates it with create(arg), and outputs its handle or its two
 * strings, as the op requires.  *out is a new reference.  A resource without shared_name belongs to
 * the node in its session: other sessions do not see it, and it is deleted with the session. */
int handle_make(struct kernel_call *c, const struct resource_type *type,
		struct resource *(*create)(void *arg, struct mu_err *err), void *arg,
		struct resource **out, struct mu_err *err);
/* The container of the node's resource; without shared_name, that of the session.  As in
 * TensorFlow, where the kernel owns such a resource, it is deleted with the session's last graph.
 */
const char *handle_container(const struct kernel_call *c, struct mu_buf *buf);
/* Outputs the handle or the two strings of a resource as output 0. */
int handle_output(struct kernel_call *c, const char *container, const char *name,
		  const struct resource_type *type, struct mu_err *err);
/* Output 0: a handle that owns r, a resource without a name.  Takes the reference to r, which is
 * deleted with the last copy of the handle.  A second output is a deleter, which newer versions of
 * TensorFlow do not use. */
int handle_make_owned(struct kernel_call *c, struct resource *r, struct mu_err *err);
/* Finds the resource of input i; *out is a new reference. */
int handle_find(const struct kernel_call *c, unsigned i, const struct resource_type *type,
		struct resource **out, struct mu_err *err);
/* Removes the resource of input 0. */
int handle_remove(const struct kernel_call *c, const struct resource_type *type,
		  struct mu_err *err);
/* Creates the resource of the handle in input 0 with create(arg), unless it exists. */
int handle_create(struct kernel_call *c, const struct resource_type *type,
		  struct resource *(*create)(void *arg, struct mu_err *err), void *arg,
		  struct mu_err *err);
/* Output 0: true if the resource of input 0 exists. */
int handle_put_found(struct kernel_call *c, const struct resource_type *type, struct mu_err *err);

#endif
