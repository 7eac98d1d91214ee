/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations: reduce, gather and broadcast over the devices of a group.
 *
 * One task of the cluster is the group leader.  Each member sends its part to the leader, which
 * holds it in a round until all members of the group have joined.  Then the leader combines the
 * parts and replies to all members.  The rounds of an instance follow the order in which a member
 * joins, so the step ids of the members need not agree.  A failed round does not affect the next.
 *
 * A round fails for all its members if their parts contradict, if the step of a member fails or is
 * cancelled, if a known member cannot be reached, or at the timeout. */
#ifndef MU_TASK_RUNTIME_COLLECTIVE_H
#define MU_TASK_RUNTIME_COLLECTIVE_H

#include "task/runtime/rendezvous.h"

enum collective_kind {
	COLLECTIVE_GATHER,
	COLLECTIVE_BROADCAST,
	COLLECTIVE_ADD,
	COLLECTIVE_MUL,
	COLLECTIVE_MAX,
	COLLECTIVE_MIN,
	COLLECTIVE_STEP_FAILED, /* not an op: the step of the device has failed */
	COLLECTIVE_KINDS
};

struct collective_part {
	enum collective_kind kind;
	bool divide; /* divide the result of a reduction by the size of the group */
	int64_t group_size, group_key, instance_key;
	int64_t timeout_ms; /* 0: none */
	const char *device; /* full name */
	bool sends;         /* false: the receiver of a broadcast, which has no tensor */
	enum mu_dtype dtype;
	struct mu_shape shape;
	struct mu_tensor tensor;
	const char *why; /* COLLECTIVE_STEP_FAILED: the error message */
};

struct collective_hooks {
	/* Computes the result from the parts, in the order of their devices. */
	int (*combine)(const struct collective_part *const *parts, unsigned n,
		       struct mu_tensor *out, struct mu_err *err);
	/* Sends the part to the leader.  Returns false if this task is the leader. */
	bool (*send)(void *ctx, int64_t id, const struct collective_part *part,
		     rendezvous_done done, void *arg);
	void (*cancel_send)(void *ctx, int64_t id);
	/* Asks the task of a device whether it is up; calls failed(arg, device, err) if not. */
	void (*probe)(void *ctx, const char *device,
		      void (*failed)(void *arg, const char *device, const struct mu_err *err),
		      void *arg);
	void *ctx;
};

struct mu_timer;
struct thread_pool;
struct collectives;
/* pool: combines the parts; NULL: the thread of the last member that joins. */
struct collectives *collectives_new(struct thread_pool *pool, struct mu_timer *timer,
				    const struct collective_hooks *hooks);
void collectives_free(struct collectives *cs); /* NULL is allowed; no call may be left */

/* Reports to the leader that a step of this task with collective ops on `device` has failed. */
void collective_report_failure(struct collectives *cs, const char *device,
			       const struct mu_err *why);

/* A member's call.  `done` is called exactly once after collective_join or collective_cancel. */
struct collective_call;
/* Copies the part, with a reference to its tensor. */
struct collective_call *collective_call_new(struct collectives *cs,
					    const struct collective_part *part,
					    rendezvous_done done, void *arg);
struct collective_call *collective_call_ref(struct collective_call *call);
void collective_call_unref(struct collective_call *call);
void collective_join(struct collective_call *call);
void collective_cancel(struct collective_call *call); /* idempotent, also before the join */

#endif
