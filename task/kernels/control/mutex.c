/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes that protect a group of nodes within a step.
 *
 * The holder of a lock has a lock object, passed along the graph's edges. The lock is
 * released when the last tensor that holds the object is destroyed: at ConsumeMutexLock, or when a
 * step fails. Then the next waiter gets the lock. The kernel allocates the object before it queues
 * the call, so nothing can fail, and nothing is freed, under the queue's lock. */
#include "task/kernels/control/wait_queue.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/variant.h"
#include "task/kernels/state/handles.h"

struct mutex {
	struct resource base;
	struct wait_queue waiters;
	bool is_locked;
};

struct mutex_lock_object {
	struct mu_object object;
	struct mutex *mutex; /* a reference */
	bool owns_mutex;     /* the call got the mutex; lock_object_free releases it */
};

/* ---- the mutex ---- */

static void mutex_free(struct resource *r)
{
	struct mutex *m = MU_CONTAINER(r, struct mutex, base);

	wait_queue_fini(&m->waiters);
	free(m);
}

static void mutex_close(struct resource *r)
{
	struct mutex *m = MU_CONTAINER(r, struct mutex, base);

	wait_queue_close(&m->waiters, "ends: the mutex was reset");
}

static const struct resource_type mutex_type = {
    .name = "mutex", .free = mutex_free, .close = mutex_close};

static struct resource *mutex_create(void *arg, struct mu_err *err)
{
	struct mutex *m = MU_NEW(struct mutex);

	resource_init(&m->base, &mutex_type);
	wait_queue_init(&m->waiters);
	return &m->base;
}

static int mutex_make(struct kernel_call *c, struct mu_err *err)
{
	struct resource *r;

	MU_RETURN_IF_ERROR(handle_make(c, &mutex_type, mutex_create, NULL, &r, err));
	resource_unref(r);
	return 0;
}

/* ---- the lock object ---- */

static void mutex_release(void *arg)
{
	((struct mutex *)arg)->is_locked = false;
}

static void lock_object_free(struct mu_object *o)
{
	struct mutex_lock_object *h = MU_CONTAINER(o, struct mutex_lock_object, object);

	if (h->owns_mutex)
		wait_queue_update(&h->mutex->waiters, mutex_release, h->mutex);
	resource_unref(&h->mutex->base);
	free(h);
}

static const struct mu_object_type lock_object_type = {.name = "mutex lock",
						       .free = lock_object_free};

struct lock_wait {
	struct waiter w;
	struct mutex *mutex;
	struct mutex_lock_object *lock;
	struct mu_tensor out; /* the variant tensor that contains `lock` */
};

static bool lock_wait_try(struct waiter *w)
{
	struct lock_wait *t = MU_CONTAINER(w, struct lock_wait, w);

	if (t->mutex->is_locked)
		return false;
	t->mutex->is_locked = t->lock->owns_mutex = true;
	kernel_out_take(w->c, 0, t->out);
	t->out = (struct mu_tensor){0};
	return true;
}

static void lock_wait_free(struct waiter *w)
{
	struct lock_wait *t = MU_CONTAINER(w, struct lock_wait, w);

	mu_tensor_unref(&t->out);
	free(t);
}

static void mutex_lock_start(struct kernel_call *c)
{
	struct resource *r;
	struct mu_err err;

	if (handle_find(c, 0, &mutex_type, &r, &err)) {
		kernel_finish(c, &err);
		return;
	}
	struct lock_wait *t = MU_NEW(struct lock_wait);
	t->mutex = MU_CONTAINER(r, struct mutex, base);
	t->lock = MU_NEW(struct mutex_lock_object);
	mu_object_init(&t->lock->object, &lock_object_type);
	t->lock->mutex = t->mutex;
	resource_ref(r);
	t->w = (struct waiter){.c = c,
			       .waiters = &t->mutex->waiters,
			       .owner = r,
			       .what = "MutexLock",
			       .try = lock_wait_try,
			       .free = lock_wait_free};
	if (variant_tensor(&t->out, &t->lock->object, &err)) {
		free(t);
		resource_unref(r);
		kernel_finish(c, &err);
		return;
	}
	wait_queue_add(&t->w, WAIT_TAKE);
}

/* The lock is released when the engine frees the input tensor. */
static int consume_lock(struct kernel_call *c, struct mu_err *err)
{
	struct mu_object *o;

	return variant_in(c, 0, &lock_object_type, &o, err);
}

static const struct kernel rows[] = {
    {"MutexV2", .run = mutex_make},
    {"MutexLock", .start = mutex_lock_start},
    {"ConsumeMutexLock", .run = consume_lock},
};
KERNEL_TABLE(control_mutex, rows)
