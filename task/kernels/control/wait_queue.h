/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait at a resource (a queue, an accumulator) until their turn has come: records in
 * lines, no threads.
 *
 * A waiter is tried with the gate's lock held; when it says so it is done, leaves its line and its
 * call is finished after the lock has been let go.  Only the head of a line is tried, so calls
 * are served in the order they came; those who only look stand in nobody's way.  A waiter has two
 * owners until it ends, the line and the step's cancellation; whoever is last frees it.
 */
#ifndef MU_TASK_KERNELS_CONTROL_WAIT_QUEUE_H
#define MU_TASK_KERNELS_CONTROL_WAIT_QUEUE_H

#include <pthread.h>

#include "task/runtime/kernel.h"
#include "task/runtime/resources.h"

enum { GATE_IN, GATE_OUT, GATE_LOOK, GATE_LINES }; /* who brings, who takes, who looks */

struct gate;
struct waiter {
	struct waiter *next;
	struct kernel_call *c;
	struct gate *gate;
	struct resource *owner; /* a reference to the resource that the gate is part of */
	const char *what;       /* "Dequeue": for the error when it is cancelled */
	/* With the lock: true when the call is over, with err set when it has failed.  One that has
	 * gone a part of its way sets `moved`, so that the other line is looked at again. */
	bool (*try)(struct waiter *w);
	bool moved;
	void (*undo)(struct waiter *w); /* (optional) with the lock, when it is cancelled */
	void (*free)(struct waiter *w);
	struct mu_err err; /* code MU_OK: success */
	enum { WAITER_NEW, WAITER_WAITING, WAITER_DONE, WAITER_CANCELLED } state;
	_Atomic int refs;
};

struct gate {
	pthread_mutex_t lock;
	struct {
		struct waiter *head, **tail;
	} line[GATE_LINES];
};

void gate_init(struct gate *g);
void gate_fini(struct gate *g);
/* Starts the wait of w, whose call c, gate, owner (its reference is taken), what, try and free are
 * set. */
void gate_enter(struct waiter *w, int line);
/* Makes a change under the lock and serves who can be served after it. */
void gate_change(struct gate *g, void (*change)(void *arg), void *arg);
/* Fails everybody who waits in a line. */
void gate_fail(struct gate *g, int line, enum mu_code code, const char *fmt, const char *name);

#endif
