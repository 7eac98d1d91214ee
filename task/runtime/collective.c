/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of this task and, on the leader, the open rounds.  While a round is open, the leader
 * checks it every second: it probes the missing members of a group that has met before. */
#include "task/runtime/collective.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/random.h"
#include "lib/base/timer.h"
#include "lib/graph/device_name.h"
#include "task/runtime/thread_pool.h"

enum { CHECK_INTERVAL_MS = 1000, MAX_GROUPS = 4096, MAX_GROUP_SIZE = 4096, MAX_MEMBERS = 65536 };
#define MAX_TIMEOUT_MS 1000000000000 /* a longer timeout has no effect */

struct round;
struct collective_call {
	struct collectives *cs;
	struct collective_part part; /* owns device, tensor and why */
	rendezvous_done done;
	void *arg;
	int64_t id;
	struct round *round; /* the open round that the call has joined; NULL: none */
	bool is_finished;
	_Atomic int refs;
};

struct round {
	struct round *next;
	struct collectives *cs;
	struct pool_job job; /* completes the round */
	int64_t deadline_ms; /* earliest deadline of a call; 0: none */
	unsigned n;
	struct collective_call *calls[]; /* owns one reference to each */
};

/* The devices of the last complete round of a group. */
struct group {
	unsigned n;
	char *devices[];
};

/* A device that has joined a round. */
struct member {
	bool failure_reported; /* its last round failed: the failure of its step is a consequence */
	char *failure; /* the error of its last step if that failed for another reason; else NULL */
};

struct collectives {
	struct collective_hooks hooks;
	struct thread_pool *pool;
	struct mu_timer *timer;
	/* Guards the members below and the calls; not held across a hook or done. */
	pthread_mutex_t lock;
	struct round *rounds;  /* open, oldest first */
	struct mu_map groups;  /* group key -> struct group */
	struct mu_map members; /* device -> struct member */
	bool is_timer_set;
};

struct collectives *collectives_new(struct thread_pool *pool, struct mu_timer *timer,
				    const struct collective_hooks *hooks)
{
	struct collectives *cs = MU_NEW(struct collectives);

	cs->hooks = *hooks;
	cs->pool = pool;
	cs->timer = timer;
	pthread_mutex_init(&cs->lock, NULL);
	mu_map_init(&cs->groups);
	mu_map_init(&cs->members);
	return cs;
}

static void group_free(struct group *g)
{
	for (unsigned i = 0; g && i < g->n; i++)
		free(g->devices[i]);
	free(g);
}

void collectives_free(struct collectives *cs)
{
	if (!cs)
		return;
	mu_map_each (&cs->groups, g)
		group_free(g->value);
	mu_map_fini(&cs->groups);
	mu_map_each (&cs->members, at) {
		struct member *m = at->value;

		free(m->failure);
		free(m);
	}
	mu_map_fini(&cs->members);
	pthread_mutex_destroy(&cs->lock);
	free(cs);
}

/* ---- calls ---- */

struct collective_call *collective_call_new(struct collectives *cs,
					    const struct collective_part *part,
					    rendezvous_done done, void *arg)
{
	struct collective_call *call = MU_NEW(struct collective_call);

	call->cs = cs;
	call->part = *part;
	call->part.device = mu_xstrdup(part->device);
	call->part.tensor = mu_tensor_ref(&part->tensor);
	call->part.why = mu_xstrdup(part->why ? part->why : "");
	call->done = done;
	call->arg = arg;
	call->id = (int64_t)mu_random_u64();
	atomic_init(&call->refs, 1);
	return call;
}

struct collective_call *collective_call_ref(struct collective_call *call)
{
	atomic_fetch_add(&call->refs, 1);
	return call;
}

void collective_call_unref(struct collective_call *call)
{
	if (atomic_fetch_sub(&call->refs, 1) != 1)
		return;
	mu_tensor_unref(&call->part.tensor);
	free((char *)call->part.device);
	free((char *)call->part.why);
	free(call);
}

/* Calls done, unless it has been called.  Takes the reference of the result. */
static void call_finish(struct collective_call *call, const struct mu_err *err,
			struct mu_tensor *result)
{
	struct mu_tensor none = {0};
	bool was_finished;

	pthread_mutex_lock(&call->cs->lock);
	was_finished = call->is_finished;
	call->is_finished = true;
	pthread_mutex_unlock(&call->cs->lock);
	if (!was_finished)
		call->done(call->arg, err, err ? &none : result, false);
	else if (!err)
		mu_tensor_unref(result);
}

/* ---- rounds ---- */

/* Records the result of the last step of a device.  Called with cs->lock held. */
static void set_member(struct collectives *cs, const char *device, bool failure_reported,
		       const char *failure)
{
	struct member *m = mu_map_get(&cs->members, device);

	if (!m && cs->members.count == MAX_MEMBERS)
		return;
	if (!m) {
		m = MU_NEW(struct member);
		mu_map_put(&cs->members, device, m);
	}
	free(m->failure);
	m->failure_reported = failure_reported;
	m->failure = failure ? mu_xstrdup(failure) : NULL;
}

/* Removes the round, so that no further call joins it.  Called with cs->lock held. */
static void round_close(struct collectives *cs, struct round *r)
{
	struct round **at = &cs->rounds;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	for (unsigned i = 0; i < r->n; i++)
		r->calls[i]->round = NULL;
}

/* Finishes all calls of a closed round, and frees it.  result: borrowed. */
static void round_finish(struct round *r, const struct mu_err *err, const struct mu_tensor *result)
{
	for (unsigned i = 0; i < r->n; i++) {
		struct mu_tensor t = err ? (struct mu_tensor){0} : mu_tensor_ref(result);

		call_finish(r->calls[i], err, &t);
		collective_call_unref(r->calls[i]);
	}
	free(r);
}

static const char *describe(const struct round *r, struct mu_buf *b)
{
	const struct collective_part *p = &r->calls[0]->part;

	mu_buf_printf(b, "Collective op of group %lld, instance %lld", (long long)p->group_key,
		      (long long)p->instance_key);
	return b->data;
}

/* Records that the steps of the members fail because of the round.  Called with cs->lock held. */
static void mark_failures_reported(struct collectives *cs, const struct round *r)
{
	for (unsigned i = 0; i < r->n; i++)
		if (!r->calls[i]->is_finished)
			set_member(cs, r->calls[i]->part.device, true, NULL);
}

/* Closes a round and fails its calls.  Called with cs->lock held; releases it. */
static void round_fail_unlock(struct collectives *cs, struct round *r, enum mu_code code,
			      const char *why)
{
	MU_AUTO_BUF b = {0};
	struct mu_err err;

	round_close(cs, r);
	mark_failures_reported(cs, r);
	pthread_mutex_unlock(&cs->lock);
	mu_fail(&err, code, "%s was aborted: %s", describe(r, &b), why);
	round_finish(r, &err, NULL);
}

static bool round_has_device(const struct round *r, const char *device)
{
	for (unsigned i = 0; i < r->n; i++)
		if (!strcmp(r->calls[i]->part.device, device))
			return true;
	return false;
}

/* Finds the round for a part: the first open round of its instance without its device. */
static struct round *find_round(const struct collectives *cs, const struct collective_part *p)
{
	for (struct round *r = cs->rounds; r; r = r->next) {
		const struct collective_part *first = &r->calls[0]->part;

		if (first->group_key == p->group_key && first->instance_key == p->instance_key &&
		    !round_has_device(r, p->device))
			return r;
	}
	return NULL;
}

/* Orders full device names as TensorFlow ranks them: by job, task, type and number. */
static int compare_calls(const void *a, const void *b)
{
	const struct collective_part *p = &(*(struct collective_call *const *)a)->part;
	const struct collective_part *q = &(*(struct collective_call *const *)b)->part;
	struct mu_device_name x, y;
	int order;

	if (mu_device_parse(&x, p->device, NULL) || mu_device_parse(&y, q->device, NULL))
		return strcmp(p->device, q->device);
	if ((order = strcmp(x.job, y.job)))
		return order;
	if (x.replica != y.replica || x.task != y.task)
		return x.replica != y.replica ? x.replica - y.replica : x.task - y.task;
	order = strcmp(x.type, y.type);
	return order ? order : x.index - y.index;
}

/* Records the devices of a complete round.  Called with cs->lock held. */
static void record_group(struct collectives *cs, const struct round *r)
{
	int64_t key = r->calls[0]->part.group_key;
	struct group *g;

	if (cs->groups.count >= MAX_GROUPS && !mu_map_get_n(&cs->groups, &key, sizeof(key)))
		return;
	g = mu_xmalloc(sizeof(*g) + r->n * sizeof(g->devices[0]));
	g->n = r->n;
	for (unsigned i = 0; i < r->n; i++)
		g->devices[i] = mu_xstrdup(r->calls[i]->part.device);
	group_free(mu_map_put_n(&cs->groups, &key, sizeof(key), g));
}

static void round_complete(struct pool_job *job)
{
	struct round *r = MU_CONTAINER(job, struct round, job);
	struct collectives *cs = r->cs;
	const struct collective_part **parts = MU_NEW_ARRAY(const struct collective_part *, r->n);
	struct mu_tensor result = {0};
	struct mu_err err;
	int rc;

	qsort(r->calls, r->n, sizeof(r->calls[0]), compare_calls);
	for (unsigned i = 0; i < r->n; i++)
		parts[i] = &r->calls[i]->part;
	rc = cs->hooks.combine(parts, r->n, &result, &err);
	free(parts);
	if (rc) {
		pthread_mutex_lock(&cs->lock);
		mark_failures_reported(cs, r);
		pthread_mutex_unlock(&cs->lock);
	}
	round_finish(r, rc ? &err : NULL, &result);
	mu_tensor_unref(&result);
}

/* Fails if the part contradicts the first of its round. */
static int check_part(const struct collective_part *p, const struct collective_part *first,
		      struct mu_err *err)
{
	if (p->group_size != first->group_size)
		return mu_fail(err, MU_INTERNAL, "%s has group size %lld, but %s has %lld",
			       p->device, (long long)p->group_size, first->device,
			       (long long)first->group_size);
	if (p->kind != first->kind || p->divide != first->divide)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s and %s run different operations",
			       p->device, first->device);
	if (p->dtype != first->dtype)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s has data type %s, but %s has %s",
			       p->device, mu_dtype_name(p->dtype), first->device,
			       mu_dtype_name(first->dtype));
	if (!mu_shape_eq(&p->shape, &first->shape)) {
		MU_AUTO_FREE char *other = mu_xstrdup(mu_shape_str(&first->shape));

		return mu_fail(err, MU_INVALID_ARGUMENT, "Shape mismatch: %s has %s, but %s has %s",
			       p->device, mu_shape_str(&p->shape), first->device, other);
	}
	return 0;
}

static void check_rounds(void *arg);
/* Called with cs->lock held. */
static void set_timer(struct collectives *cs)
{
	if (!cs->is_timer_set && cs->rounds)
		cs->is_timer_set =
		    mu_timer_add(cs->timer, CHECK_INTERVAL_MS, check_rounds, cs) != 0;
}

/* Opens a round for the part.  Called with cs->lock held. */
static struct round *open_round(struct collectives *cs, const struct collective_part *p)
{
	struct round *r = mu_xmalloc(sizeof(*r) + (size_t)p->group_size * sizeof(r->calls[0]));
	struct round **at = &cs->rounds;

	*r = (struct round){.cs = cs, .job.run = round_complete};
	while (*at)
		at = &(*at)->next;
	*at = r;
	return r;
}

static void join_round(struct collective_call *call)
{
	struct collectives *cs = call->cs;
	const struct collective_part *p = &call->part;
	struct round *r;
	struct mu_err err;

	pthread_mutex_lock(&cs->lock);
	if (call->is_finished) {
		pthread_mutex_unlock(&cs->lock);
		return;
	}
	r = find_round(cs, p);
	if (!r)
		r = open_round(cs, p);
	else if (check_part(p, &r->calls[0]->part, &err)) {
		set_member(cs, p->device, true, NULL);
		round_fail_unlock(cs, r, err.code, err.msg);
		call_finish(call, &err, NULL);
		return;
	}
	set_member(cs, p->device, false, NULL);
	call->round = r;
	r->calls[r->n++] = collective_call_ref(call);
	if (p->timeout_ms > 0 && p->timeout_ms < MAX_TIMEOUT_MS &&
	    (!r->deadline_ms || mu_clock_ms() + p->timeout_ms < r->deadline_ms))
		r->deadline_ms = mu_clock_ms() + p->timeout_ms;
	if (r->n < p->group_size) {
		set_timer(cs);
		pthread_mutex_unlock(&cs->lock);
		return;
	}
	round_close(cs, r);
	record_group(cs, r);
	pthread_mutex_unlock(&cs->lock);
	if (cs->pool) /* the caller may be a thread of the completion queue */
		thread_pool_add(cs->pool, &r->job);
	else
		round_complete(&r->job);
}

/* ---- checks of open rounds ---- */

/* Returns the next device of a known group, from index *at, that has not joined the round; NULL:
 * none.  Called with cs->lock held. */
static const char *next_missing(const struct collectives *cs, const struct round *r, unsigned *at)
{
	const struct group *g =
	    mu_map_get_n(&cs->groups, &r->calls[0]->part.group_key, sizeof(int64_t));

	while (g && *at < g->n) {
		const char *device = g->devices[(*at)++];

		if (!round_has_device(r, device))
			return device;
	}
	return NULL;
}

static bool lacks_member(const struct collectives *cs, const struct round *r, const char *device)
{
	const char *missing;

	for (unsigned at = 0; (missing = next_missing(cs, r, &at));)
		if (!strcmp(missing, device))
			return true;
	return false;
}

static void fail_rounds_without(struct collectives *cs, const char *device, enum mu_code code,
				const char *why)
{
	struct round *r;

	do {
		pthread_mutex_lock(&cs->lock);
		for (r = cs->rounds; r && !lacks_member(cs, r, device);)
			r = r->next;
		if (r)
			round_fail_unlock(cs, r, code, why);
		else
			pthread_mutex_unlock(&cs->lock);
	} while (r);
}

static void probe_failed(void *arg, const char *device, const struct mu_err *err)
{
	MU_AUTO_BUF why = {0};

	mu_buf_printf(&why, "%s cannot be reached: %s", device, err->msg);
	fail_rounds_without(arg, device, MU_UNAVAILABLE, why.data);
}

static void fail_late_rounds(struct collectives *cs)
{
	int64_t now = mu_clock_ms();
	struct round *r;

	do {
		pthread_mutex_lock(&cs->lock);
		for (r = cs->rounds; r && (!r->deadline_ms || now < r->deadline_ms);)
			r = r->next;
		if (r)
			round_fail_unlock(cs, r, MU_DEADLINE_EXCEEDED,
					  "not all members of the group joined before the timeout");
		else
			pthread_mutex_unlock(&cs->lock);
	} while (r);
}

/* Returns NULL if the last step of the device has not failed.  Called with cs->lock held. */
static char *copy_failure(const struct collectives *cs, const char *device)
{
	const struct member *m = mu_map_get(&cs->members, device);

	return m && m->failure ? mu_xstrdup(m->failure) : NULL;
}

static void check_rounds(void *arg)
{
	struct collectives *cs = arg;
	const char *device;
	struct mu_map missing;

	fail_late_rounds(cs);
	mu_map_init(&missing);
	pthread_mutex_lock(&cs->lock);
	cs->is_timer_set = false;
	for (const struct round *r = cs->rounds; r; r = r->next)
		for (unsigned at = 0; (device = next_missing(cs, r, &at));)
			free(mu_map_put(&missing, device, copy_failure(cs, device)));
	set_timer(cs);
	pthread_mutex_unlock(&cs->lock);
	mu_map_each (&missing, m) {
		if (m->value)
			fail_rounds_without(cs, m->key, MU_ABORTED, m->value);
		else
			cs->hooks.probe(cs->hooks.ctx, m->key, probe_failed, cs);
		free(m->value);
	}
	mu_map_fini(&missing);
}

/* ---- entry points ---- */

/* Records the failure of the device's step.  Its open rounds fail at the next check. */
static void record_step_failure(struct collective_call *call)
{
	struct collectives *cs = call->cs;
	const char *device = call->part.device;
	MU_AUTO_BUF why = {0};
	const struct member *m;
	struct mu_err err;

	mu_buf_printf(&why, "the step of %s has failed: %s", device, call->part.why);
	pthread_mutex_lock(&cs->lock);
	m = mu_map_get(&cs->members, device);
	if (m && !m->failure_reported)
		set_member(cs, device, false, why.data);
	pthread_mutex_unlock(&cs->lock);
	mu_fail(&err, MU_CANCELLED, "the step of %s has failed",
		device); /* the caller ignores it */
	call_finish(call, &err, NULL);
}

static void call_replied(void *arg, const struct mu_err *err, struct mu_tensor *result, bool dead)
{
	call_finish(arg, err, result);
	collective_call_unref(arg);
}

void collective_join(struct collective_call *call)
{
	struct collectives *cs = call->cs;
	const struct collective_part *p = &call->part;
	struct mu_err err;
	bool is_finished;

	if (p->kind != COLLECTIVE_STEP_FAILED &&
	    (p->group_size < 1 || p->group_size > MAX_GROUP_SIZE)) {
		mu_fail(&err, MU_INVALID_ARGUMENT, "the group size is %lld, not 1 to %d",
			(long long)p->group_size, MAX_GROUP_SIZE);
		call_finish(call, &err, NULL);
		return;
	}
	collective_call_ref(call);
	if (!cs->hooks.send(cs->hooks.ctx, call->id, p, call_replied, call)) {
		if (p->kind == COLLECTIVE_STEP_FAILED)
			record_step_failure(call);
		else
			join_round(call);
		collective_call_unref(call);
		return;
	}
	pthread_mutex_lock(&cs->lock);
	is_finished = call->is_finished;
	pthread_mutex_unlock(&cs->lock);
	if (is_finished) /* collective_cancel may have run before `send` */
		cs->hooks.cancel_send(cs->hooks.ctx, call->id);
}

void collective_cancel(struct collective_call *call)
{
	struct collectives *cs = call->cs;
	MU_AUTO_BUF why = {0};
	struct mu_err err;

	collective_call_ref(call);
	mu_fail(&err, MU_CANCELLED, "the collective op was cancelled");
	call_finish(call, &err, NULL);
	pthread_mutex_lock(&cs->lock);
	if (call->round) {
		mu_buf_printf(&why, "the step of %s has failed or was cancelled",
			      call->part.device);
		round_fail_unlock(cs, call->round, MU_ABORTED, why.data);
	} else {
		pthread_mutex_unlock(&cs->lock);
		cs->hooks.cancel_send(cs->hooks.ctx, call->id);
	}
	collective_call_unref(call);
}

static void ignore_reply(void *arg, const struct mu_err *err, struct mu_tensor *tensor, bool dead)
{
	mu_tensor_unref(tensor);
}

void collective_report_failure(struct collectives *cs, const char *device, const struct mu_err *why)
{
	struct collective_part part = {
	    .kind = COLLECTIVE_STEP_FAILED, .device = device, .dtype = MU_FLOAT, .why = why->msg};
	struct collective_call *call = collective_call_new(cs, &part, ignore_reply, NULL);

	collective_join(call);
	collective_call_unref(call);
}
