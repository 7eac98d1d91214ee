/* SPDX-License-Identifier: Apache-2.0 */
/* State that outlives steps: containers of named, typed, reference-counted resources.
 *
 * Two sessions share what has the same container and name.  A variable's value is a tensor: readers
 * take a reference to the buffer; a writer updates in place when it holds the only reference, else
 * on a copy (so a reader in flight never sees half an update).  Lock order: table, then one
 * resource.
 */
#ifndef MU_TASK_RUNTIME_RESOURCES_H
#define MU_TASK_RUNTIME_RESOURCES_H

#include <pthread.h>

#include "lib/base/map.h"
#include "lib/tensor/tensor.h"

struct resource;
struct resource_type {
	const char *name; /* "variable", "queue", … */
	void (*free)(struct resource *r);
	size_t (*bytes)(struct resource *r); /* (optional) for /status */
	void (*close)(
	    struct resource *r); /* (optional) wakes whoever waits when the container goes */
};
struct resource {
	const struct resource_type *type;
	_Atomic unsigned refs;
	char *container, *name;
};
void resource_init(struct resource *r, const struct resource_type *type); /* one reference */
void resource_ref(struct resource *r);
void resource_unref(struct resource *r);

/* What stands between a session's container and one within it. */
enum { RESOURCES_WITHIN = '\x1f' };
/* The container, within a session's, of what its kernels keep. */
char *resources_of_kernels(const char *session); /* returns new */

struct resources;
/* default_container: TensorFlow's is the task's job name. */
struct resources *resources_new(const char *default_container);
const char *resources_default(const struct resources *rs);
void resources_free(struct resources *rs);
/* "" is the default container.  *out gets a reference.  NOT_FOUND when absent,
 * INVALID_ARGUMENT when it is of another type. */
int resources_find(struct resources *rs, const char *container, const char *name,
		   const struct resource_type *type, struct resource **out, struct mu_err *err);
/* As find; when absent, adds what create(arg) returns (already one reference, which the table
 * takes). */
int resources_find_or_create(struct resources *rs, const char *container, const char *name,
			     const struct resource_type *type,
			     struct resource *(*create)(void *arg, struct mu_err *err), void *arg,
			     struct resource **out, struct mu_err *err);
/* type NULL: of any. */
int resources_remove(struct resources *rs, const char *container, const char *name,
		     const struct resource_type *type, struct mu_err *err);
/* The container, and those within it. */
void resources_clear(struct resources *rs, const char *container);
void resources_each(struct resources *rs, void (*see)(void *arg, struct resource *r), void *arg);

/* ---- variables ---- */
struct variable {
	struct resource base;
	pthread_mutex_t
	    lock; /* guards value; held during an update, not during a read of the buffer */
	struct mu_tensor value; /* unset: uninitialised */
	enum mu_dtype dtype;
	struct mu_pshape shape; /* as declared */
};
extern const struct resource_type variable_type;
struct variable *variable_new(enum mu_dtype dtype, const struct mu_pshape *shape);
/* A reference to the current value; FAILED_PRECONDITION "Attempting to use uninitialized value
 * <name>". */
int variable_read(struct variable *v, struct mu_tensor *out, struct mu_err *err);
void variable_assign(struct variable *v, struct mu_tensor t); /* takes t's reference */
/* With v->lock held: makes v->value's buffer exclusively ours (copying if shared) and returns it.
 */
int variable_exclusive(struct variable *v, struct mu_tensor **out, struct mu_err *err);

#endif
