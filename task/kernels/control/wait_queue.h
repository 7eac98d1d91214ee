/* SPDX-License-Identifier: Apache-2.0 */
/* FIFO wait queues of asynchronous kernel calls on a resource (queue, barrier, accumulator).  A
 * waiting call holds a record, not a thread.
 *
 * `try` of a waiter runs with the lock held.  When it returns true, the waiter leaves its queue,
 * and its call is finished once the lock is released.  Only the head of a queue is tried, so calls
 * are served in the order of their arrival.  Of the calls that peek all are tried.  A waiter has
 * two owners until it ends, the queue and the step's cancellation; the last of them frees it.
 */
#ifndef MU_TASK_KERNELS_CONTROL_WAIT_QUEUE_H
#define MU_TASK_KERNELS_CONTROL_WAIT_QUEUE_H

#include <pthread.h>

#include "task/runtime/kernel.h"
#include "task/runtime/resources.h"

enum { WAIT_PUT, WAIT_TAKE, WAIT_PEEK, WAIT_KINDS }; /* one queue for each */

struct wait_queue;
struct waiter {
	struct waiter *next;
	struct kernel_call *c;
	struct wait_queue *waiters;
	struct resource *owner; /* a reference to the resource that the wait queue is part of */
	const char *what;       /* the operation in error messages, such as "Dequeue" */
	/* Called with the lock.  Returns true when the wait has ended, with err set if it failed.
	 * A call that has done a part of its work sets `made_progress`, so that the other queues
	 * are tried again. */
	bool (*try)(struct waiter *w);
	bool made_progress;
	/* (optional) Called without the lock, instead of kernel_finish, when try has ended the wait
	 * without an error.  The call continues; w is freed afterwards. */
	void (*resume)(struct waiter *w);
	void (*undo)(struct waiter *w); /* (optional) with the lock, when it is cancelled */
	void (*free)(struct waiter *w);
	struct mu_err err; /* code MU_OK: success */
	enum { WAITER_NEW, WAITER_WAITING, WAITER_DONE, WAITER_CANCELLED } state;
	_Atomic int refs;
};

struct wait_queue {
	pthread_mutex_t lock;
	struct {
		struct waiter *head, **tail;
	} queues[WAIT_KINDS];
	const char *closed; /* why calls that would wait fail; NULL: they may wait */
};

void wait_queue_init(struct wait_queue *q);
void wait_queue_fini(struct wait_queue *q);
/* Starts the wait of w.  The caller has set c, waiters, owner, what, try and free.  Takes the
 * reference to the owner. */
void wait_queue_add(struct waiter *w, int kind);
/* Calls `change` with the lock, then serves the calls that can complete now. */
void wait_queue_update(struct wait_queue *q, void (*change)(void *arg), void *arg);
/* Fails all calls that wait in the queue of this kind: "<what> '<name of the owner>' <why>". */
void wait_queue_fail(struct wait_queue *q, int kind, enum mu_code code, const char *why);
/* Fails the calls of all queues with CANCELLED, and every later call that would have to wait. `why`
 * is borrowed. */
void wait_queue_close(struct wait_queue *q, const char *why);

#endif
