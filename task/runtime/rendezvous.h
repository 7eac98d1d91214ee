/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tensors of one step meet: a send and a receive with the same key, in either order.
 *
 * Keys are TensorFlow's: "src_device;incarnation in 16 hex digits;dst_device;edge;frame:iter".  A
 * receive whose source is another task goes to `remote`; everything else waits here as a record,
 * not as a thread.  An abort answers all who wait, and all who come later, with the step's error.
 */
#ifndef MU_TASK_RUNTIME_RENDEZVOUS_H
#define MU_TASK_RUNTIME_RENDEZVOUS_H

#include <stdint.h>

#include "lib/tensor/tensor.h"

struct rendezvous; /* reference-counted */

/* Called exactly once; err NULL on success, then tensor's reference is the callee's. */
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
/* The same for what has come from elsewhere: it waits here, wherever it was meant for. */
int rendezvous_put(struct rendezvous *r, const char *key, struct mu_tensor tensor, bool dead,
		   struct mu_err *err);
void rendezvous_recv(struct rendezvous *r, const char *key, rendezvous_done done, void *arg);
void rendezvous_recv_local(struct rendezvous *r, const char *key, rendezvous_done done, void *arg);
void rendezvous_abort(struct rendezvous *r, const struct mu_err *why); /* the first reason stays */

/* The keys that somebody waits for. */
void rendezvous_waits(struct rendezvous *r, void (*see)(void *arg, const char *key), void *arg);

/* What is sent to another task and pushed there instead of waiting here to be fetched; what comes
 * from that task is then waited for here, not fetched. */
struct rendezvous_route_ops {
	/* Takes tensor's reference, also on failure. */
	int (*push)(void *ctx, int64_t step_id, const char *key, struct mu_tensor *tensor,
		    bool dead, struct mu_err *err);
	void (*release)(void *ctx); /* with the rendezvous */
};
/* Before anything is sent or received that the route concerns.  Takes ctx. */
void rendezvous_route(struct rendezvous *r, const char *task_prefix,
		      const struct rendezvous_route_ops *ops, void *ctx);

/* The steps of one task.  RecvTensor may come before its RunGraph, so finding creates. */
struct rendezvous_table;
struct rendezvous_table *
rendezvous_table_new(const char *task_prefix, /* "/job:ps/replica:0/task:0" */
		     const struct rendezvous_remote *remote);
void rendezvous_table_free(struct rendezvous_table *t);
struct rendezvous *rendezvous_table_get(struct rendezvous_table *t,
					int64_t step_id); /* a reference */
void rendezvous_table_drop(
    struct rendezvous_table *t, int64_t step_id,
    const struct mu_err *why); /* CleanupGraph; aborts with why or CANCELLED */

#endif
