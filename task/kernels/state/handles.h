/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and lookup of resources other than variables. Newer ops pass a handle; older ones pass a
 * reference to two strings, container and name. */
#ifndef MU_TASK_KERNELS_STATE_HANDLES_H
#define MU_TASK_KERNELS_STATE_HANDLES_H

#include "task/kernels/state/variables.h"

/* The node's resource, made by create(arg) when it is not there, given out as output 0 in the form
 * that the op has.  *out is a new reference.  A resource without shared_name belongs to the node in
 * its session: other sessions do not see it, and it is deleted with the session. */
int handle_make(struct kernel_call *c, const struct resource_type *type,
		struct resource *(*create)(void *arg, struct mu_err *err), void *arg,
		struct resource **out, struct mu_err *err);
/* The container of the node's resource.  A resource without shared_name has its session: as in
 * TensorFlow, whose kernels own such a resource, it is deleted when the session's last graph goes.
 */
const char *handle_container(const struct kernel_call *c, struct mu_buf *buf);
/* A resource's name as output 0. */
int handle_output(struct kernel_call *c, const char *container, const char *name,
		  const struct resource_type *type, struct mu_err *err);
/* Output 0: a handle that owns r, a resource without a name, which is taken.  r is deleted with the
 * last copy of the handle.  A second output is a deleter, which newer TensorFlow does not use. */
int handle_make_owned(struct kernel_call *c, struct resource *r, struct mu_err *err);
/* The resource that input i names; a new reference. */
int handle_find(const struct kernel_call *c, unsigned i, const struct resource_type *type,
		struct resource **out, struct mu_err *err);
/* Removes the resource that input 0 names. */
int handle_remove(const struct kernel_call *c, const struct resource_type *type,
		  struct mu_err *err);
/* Makes the resource that the handle of input 0 names by create(arg), unless there is one. */
int handle_create(struct kernel_call *c, const struct resource_type *type,
		  struct resource *(*create)(void *arg, struct mu_err *err), void *arg,
		  struct mu_err *err);
/* Output 0: whether the resource that input 0 names exists. */
int handle_put_found(struct kernel_call *c, const struct resource_type *type, struct mu_err *err);

#endif
