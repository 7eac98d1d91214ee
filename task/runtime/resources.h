/* SPDX-License-Identifier: Apache-2.0 */
/* State that outlives steps: containers of named, typed, reference-counted resources.
 *
 * Sessions share resources with the same container, type and name.  As in TensorFlow, resources of
 * different types may have the same name.  A variable's value is a tensor.
 * Readers take a reference to the buffer.  A writer updates in place if it has the only reference,
 * else a copy, so readers never see a partial update.  Lock order: table, then one resource.
 */
#ifndef MU_TASK_RUNTIME_RESOURCES_H
#define MU_TASK_RUNTIME_RESOURCES_H

#include <pthread.h>

#include "lib/base/map.h"
#include "lib/tensor/tensor.h"

struct resource;
struct resource_type {
	const char *name; /* "variable", "queue", …; unique, and the type of handles */
	void (*free)(struct resource *r);
	size_t (*bytes)(struct resource *r); /* (optional) size in memory, for /status */
	void (*close)(struct resource *r); /* (optional) completes waiting calls; before removal */
};
struct resource {
	const struct resource_type *type;
	_Atomic unsigned refs;
	char *container, *name;
};
void resource_init(struct resource *r, const struct resource_type *type); /* one reference */
void resource_ref(struct resource *r);
void resource_unref(struct resource *r);

/* The separator between a session's container and the name of a container within it. */
enum { CONTAINER_SEPARATOR = '\x1f' };
/* Returns a new string: the container for kernel state within a session's container. */
char *resources_of_kernels(const char *session);

struct resources;
/* default_container: the name of the task's job, as in TensorFlow. */
struct resources *resources_new(const char *default_container);
const char *resources_default(const struct resources *rs);
void resources_free(struct resources *rs);
/* "" is the default container.  *out gets a reference.  NOT_FOUND if absent. */
int resources_find(struct resources *rs, const char *container, const char *name,
		   const struct resource_type *type, struct resource **out, struct mu_err *err);
/* As resources_find.  If absent, adds the result of create(arg); the table takes its reference. */
int resources_find_or_create(struct resources *rs, const char *container, const char *name,
			     const struct resource_type *type,
			     struct resource *(*create)(void *arg, struct mu_err *err), void *arg,
			     struct resource **out, struct mu_err *err);
/* type: the name of the resource's type, as a handle has it. */
int resources_remove(struct resources *rs, const char *container, const char *name,
		     const char *type, struct mu_err *err);
/* Removes the resources of a container and of the containers within it. */
void resources_clear(struct resources *rs, const char *container);
void resources_clear_all(struct resources *rs);
void resources_each(struct resources *rs, void (*fn)(void *arg, struct resource *r), void *arg);

/* ---- variables ---- */
struct variable {
	struct resource base;
	pthread_mutex_t
	    lock; /* guards value; held during an update, not during a read of the buffer */
	struct mu_tensor value; /* unset: uninitialised */
	enum mu_dtype dtype;
	struct mu_pshape shape; /* as declared */
};
/* Reference variables, which old programs use, and resource variables. */
extern const struct resource_type reference_variable_type, variable_type;
bool resource_is_variable(const struct resource *r);
/* Returns a resource variable without a name. */
struct variable *variable_new(enum mu_dtype dtype, const struct mu_pshape *shape);
/* Gets a reference to the current value; FAILED_PRECONDITION if it is not initialized. */
int variable_read(struct variable *v, struct mu_tensor *out, struct mu_err *err);
void variable_assign(struct variable *v, struct mu_tensor t); /* takes t's reference */
/* Makes v->value's buffer exclusive, by copying it if it is shared, and returns it.  v->lock must
 * be held. */
int variable_exclusive(struct variable *v, struct mu_tensor **out, struct mu_err *err);

#endif
