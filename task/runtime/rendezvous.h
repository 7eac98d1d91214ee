/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous of a step: matches sends and receives with the same key, in either order.
 *
 * Keys are TensorFlow's: "src_device;incarnation in 16 hex digits;dst_device;edge;frame:iter".  A
 * receive from another task is passed to `remote`.  A waiting receive is a record, not a thread. An
 * abort fails all waiting and all later receives with the step's error.
 */
#ifndef MU_TASK_RUNTIME_RENDEZVOUS_H
#define MU_TASK_RUNTIME_RENDEZVOUS_H

#include <stdint.h>

#include "lib/tensor/tensor.h"

struct rendezvous; /* reference-counted */

/* Called exactly once.  On success err is NULL, and the callee takes the tensor's reference. */
typedef void (*rendezvous_done)(void *arg, const struct mu_err *err, struct mu_tensor *tensor,
				bool dead);

struct rendezvous_remote {
	/* Fetches the tensor from the task that owns key's source device. */
	void (*recv)(void *ctx, struct rendezvous *r, const char *key, rendezvous_done done,
		     void *arg);
	void *ctx;
};

struct rendezvous_key {
	struct mu_span src_device, dst_device, edge, frame_iter;
	uint64_t src_incarnation;
};
int rendezvous_key_parse(struct rendezvous_key *out, const char *key, struct mu_err *err);

struct rendezvous *rendezvous_ref(struct rendezvous *r);
void rendezvous_unref(struct rendezvous *r);
int64_t rendezvous_step_id(const struct rendezvous *r);
int rendezvous_send(struct rendezvous *r, const char *key, struct mu_tensor tensor, bool dead,
		    struct mu_err *err); /* takes tensor's reference, also on failure */
/* As rendezvous_send, for a tensor received from another task: it stays on this task even if its
 * key has a route. */
int rendezvous_put(struct rendezvous *r, const char *key, struct mu_tensor tensor, bool dead,
		   struct mu_err *err);
void rendezvous_recv(struct rendezvous *r, const char *key, rendezvous_done done, void *arg);
/* Waits on this task for a key of any task. */
void rendezvous_recv_local(struct rendezvous *r, const char *key, rendezvous_done done, void *arg);
void rendezvous_abort(struct rendezvous *r, const struct mu_err *why); /* the first error is kept */

bool rendezvous_was_aborted(struct rendezvous *r, struct mu_err *why); /* sets *why if true */

/* Sets the name of this task in the step's keys, and the function that receives from other tasks.
 * Must precede the start of the step.  task_prefix must stay valid as long as the table. */
void rendezvous_rename(struct rendezvous *r, const char *task_prefix,
		       const struct rendezvous_remote *remote);

/* Calls fn() for each key with a waiting receiver, with the lock held. */
void rendezvous_each_waiting(struct rendezvous *r, void (*fn)(void *arg, const char *key),
			     void *arg);

/* A route to another task: tensors for it are pushed instead of waiting for a RecvTensor.  The
 * other task pushes too, so receives from it wait locally. */
struct rendezvous_route_ops {
	/* Takes tensor's reference, also on failure. */
	int (*push)(void *ctx, int64_t step_id, const char *key, struct mu_tensor *tensor,
		    bool dead, struct mu_err *err);
	void (*release)(void *ctx); /* when the rendezvous is freed */
};
/* Adds a route; takes ctx.  Must be called before any send or receive that uses the route. */
void rendezvous_add_route(struct rendezvous *r, const char *task_prefix,
			  const struct rendezvous_route_ops *ops, void *ctx);

/* The rendezvous of all steps of a task.  rendezvous_table_get creates them, because RecvTensor may
 * arrive before RunGraph. */
struct rendezvous_table;
struct rendezvous_table *
rendezvous_table_new(const char *task_prefix, /* "/job:ps/replica:0/task:0" */
		     const struct rendezvous_remote *remote);
void rendezvous_table_free(struct rendezvous_table *t);
/* Makes a rendezvous outside of the table, for a step without transfers to other tasks. */
struct rendezvous *rendezvous_new(const struct rendezvous_table *t, int64_t step_id);
struct rendezvous *rendezvous_table_get(struct rendezvous_table *t,
					int64_t step_id); /* returns a reference */
void rendezvous_table_drop(
    struct rendezvous_table *t, int64_t step_id,
    const struct mu_err *why); /* CleanupGraph; aborts with why or CANCELLED */

#endif
