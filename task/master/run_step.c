/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a client.
 *
 * Parsed on the queue's thread.  With a plan at hand it starts there and then; else an offload
 * thread makes the plan first.  It is over when every part has answered and every fetch has come
 * home: `pending` counts them, and one for whoever is still starting things.  The first error wins
 * (a cancellation is replaced by a cause): it cancels the other parts and aborts the local
 * rendezvous, so that what is pending comes home soon.  The answer goes out first, the clean-up on
 * the other tasks after it.
 *
 * References: the session's list, the timer, and whoever holds it for a moment. */
#include <stdio.h>

#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"
#include "proto/worker.pb-c.h"
#include "task/master/master.h"
#include "task/master/partial.h"
#include "task/master/step_reply.h"
#include "task/messages/control.h"
#include "task/messages/tensor_writer.h"
#include "task/peer/peer_stream.h"

struct fetch {
	struct run_step *step;
	struct mu_tensor tensor;
	bool dead;
};
struct part {
	struct run_step *step;
	struct peer *peer;
	struct stream_conn *stream; /* the rendezvous holds it; NULL: by gRPC */
	uint64_t id;                /* 0: not known yet, or ended */
	bool ended;
};
struct run_step {
	_Atomic unsigned refs;
	struct run_step *prev, *next; /* the session's list, under its lock */
	struct master *master;
	struct rpc_call *call; /* NULL: run_step_open's */
	void (*ended)(void *arg, const struct mu_err *err);
	void *ended_arg;
	bool callable;
	struct mu_arena arena;
	struct hot_run_step req;
	struct session *session;
	struct plan *plan;
	int64_t step_id;
	struct rendezvous *rendezvous;
	uint64_t timer;
	struct fetch *fetches;
	struct part *parts;
	pthread_mutex_t lock; /* guards what follows */
	unsigned pending;
	bool failed;
	bool over;              /* its answer is settled */
	bool let_go;            /* by who opened it */
	struct mu_buf metadata; /* a RunMetadata, of what the parts recorded */
	struct mu_err err;
};

void run_step_unref(struct run_step *r)
{
	if (atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	for (unsigned i = 0; r->fetches && i < r->req.fetches.n; i++)
		mu_tensor_unref(&r->fetches[i].tensor);
	mu_buf_fini(&r->metadata);
	plan_unref(r->plan);
	session_unref(r->session);
	rendezvous_unref(r->rendezvous);
	mu_arena_fini(&r->arena);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

struct run_step **run_steps_of(struct session *s, unsigned *n)
{
	struct run_step **list = NULL;

	*n = 0;
	for (struct run_step *r = s->running; r; r = r->next) {
		list = mu_xrealloc(list, (*n + 1) * sizeof(struct run_step *));
		atomic_fetch_add(&r->refs, 1);
		list[(*n)++] = r;
	}
	return list;
}

/* ---- the answer ---- */

static void reply_error(struct run_step *r, const struct mu_err *err)
{
	atomic_fetch_add(&r->master->failed_steps, 1);
	step_reply_error(r->call, r->req.store_errors, err);
}

static void reply_tensors(struct run_step *r)
{
	unsigned n = r->req.fetches.n;
	struct mu_tensor *t = MU_ARENA_ARRAY(&r->arena, struct mu_tensor, n + 1);

	for (unsigned i = 0; i < n; i++)
		t[i] = r->fetches[i].tensor;
	step_reply_tensors(r->call, r->callable ? NULL : r->req.fetches.list, t, n,
			   mu_buf_span(&r->metadata));
}

static void forget(void *arg, const struct mu_err *err, struct mu_span reply)
{
}

/* With one part elsewhere there is nobody but us whom that one could exchange tensors with: then
 * it cleans up by itself. */
static bool is_sole(const struct plan *p)
{
	unsigned elsewhere = 0;

	for (unsigned i = 0; i < p->n_parts; i++)
		elsewhere += !p->parts[i].peer->local;
	return elsewhere == 1;
}

static void clean_up(struct run_step *r)
{
	MU_AUTO_BUF request = {0};

	mu_pb_put_int(&request, 1, r->step_id);
	for (unsigned i = 0; i < r->plan->n_parts; i++) {
		struct peer *p = r->plan->parts[i].peer;

		if (r->parts[i].stream) {
			if (!is_sole(r->plan) || r->failed)
				stream_clean_up(r->parts[i].stream, r->step_id);
		} else if (!p->local)
			p->ops->call(p, PEER_CLEANUP_GRAPH, mu_buf_span(&request), 10000, false,
				     forget, NULL);
	}
	rendezvous_table_drop(r->master->rt->steps, r->step_id, NULL);
	peers_drop_step(r->master->peers, r->step_id);
}

static void unlist(struct run_step *r)
{
	struct session *s = r->session;

	pthread_mutex_lock(&s->lock);
	if (r->prev)
		r->prev->next = r->next;
	else
		s->running = r->next;
	if (r->next)
		r->next->prev = r->prev;
	if (!s->running)
		pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
	run_step_unref(r);
}

/* Everything has come home. */
static void finish(struct run_step *r)
{
	pthread_mutex_lock(&r->lock);
	r->over = true; /* from here on failed and err stay as they are */
	pthread_mutex_unlock(&r->lock);
	if (r->timer && mu_timer_cancel(r->master->timer, r->timer))
		run_step_unref(r);
	for (unsigned i = 0; i < r->req.fetches.n && !r->failed; i++)
		if (r->fetches[i].dead)
			r->failed = mu_fail(&r->err, MU_INVALID_ARGUMENT,
					    "The tensor returned for %s was not valid.",
					    r->req.fetches.list[i]) != 0;
	if (r->ended)
		r->ended(r->ended_arg, r->failed ? &r->err : NULL);
	else if (r->failed)
		reply_error(r, &r->err);
	else
		reply_tensors(r);
	clean_up(r);
	unlist(r);
}

static void arrived(struct run_step *r)
{
	bool last;

	pthread_mutex_lock(&r->lock);
	last = --r->pending == 0;
	pthread_mutex_unlock(&r->lock);
	if (last)
		finish(r);
}

void run_step_let_go(struct run_step *r)
{
	bool first;

	pthread_mutex_lock(&r->lock);
	first = !r->let_go;
	r->let_go = true;
	pthread_mutex_unlock(&r->lock);
	if (first)
		arrived(r);
}

/* ---- failing ---- */

static void cancel_parts(struct run_step *r)
{
	for (unsigned i = 0; i < r->plan->n_parts; i++) {
		uint64_t id;

		pthread_mutex_lock(&r->lock);
		id = r->parts[i].id;
		pthread_mutex_unlock(&r->lock);
		if (id)
			r->parts[i].peer->ops->cancel_run(r->parts[i].peer, id, r->step_id);
	}
}

void run_step_fail(struct run_step *r, const struct mu_err *why)
{
	bool first;

	pthread_mutex_lock(&r->lock);
	if (r->over) {
		pthread_mutex_unlock(&r->lock);
		return;
	}
	first = !r->failed;
	if (first || (r->err.code == MU_CANCELLED && why->code != MU_CANCELLED &&
		      !strstr(r->err.msg, "Session::Close")))
		r->err = *why;
	r->failed = true;
	pthread_mutex_unlock(&r->lock);
	if (!first)
		return;
	rendezvous_abort(r->rendezvous, why);
	cancel_parts(r);
	if (r->ended)
		run_step_let_go(r);
}

static void on_timeout(void *arg)
{
	struct run_step *r = arg;
	struct mu_err err;

	mu_fail(&err, MU_DEADLINE_EXCEEDED, STEP_TIMED_OUT);
	run_step_fail(r, &err);
	run_step_unref(r);
}

static void on_client_gone(void *arg)
{
	struct run_step *r = arg;
	struct mu_err err;

	atomic_fetch_add(&r->refs, 1); /* failing may finish it */
	mu_fail(&err, MU_CANCELLED, "The client cancelled the step");
	run_step_fail(r, &err);
	run_step_unref(r);
}

/* ---- starting ---- */

static void fetched(void *arg, const struct mu_err *err, struct mu_tensor *tensor, bool dead)
{
	struct fetch *f = arg;
	struct run_step *r = f->step;

	if (err) {
		run_step_fail(r, err);
	} else {
		f->tensor = *tensor;
		f->dead = dead;
	}
	arrived(r);
}

/* What a part recorded, a RunGraphResponse, as fields of a RunMetadata; with r->lock held. Messages
 * that come several times are merged by who reads them. */
static void add_record(struct run_step *r, struct mu_span reply)
{
	static const uint32_t fields[] = {[2] = 1, [3] = 2, [4] = 3};
	struct mu_pb m = mu_pb_of(reply);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f))
		if (f.number < MU_COUNT(fields) && fields[f.number] && f.type == MU_PB_BYTES)
			mu_pb_put_bytes(&r->metadata, fields[f.number], f.bytes);
}

static void part_ended(void *arg, const struct mu_err *err, struct mu_span reply)
{
	struct part *p = arg;
	struct run_step *r = p->step;
	struct mu_err from;

	pthread_mutex_lock(&r->lock);
	p->id = 0;
	p->ended = true;
	if (!err && r->req.record)
		add_record(r, reply);
	pthread_mutex_unlock(&r->lock);
	if (err) {
		/* an error that came through another task says so already */
		if (strncmp(err->msg, "From /job:", 10))
			mu_fail(&from, err->code, "From %s:\n%s", p->peer->task, err->msg);
		else
			from = *err;
		run_step_fail(r, &from);
	}
	arrived(r);
}

static int send_feeds(struct run_step *r, struct mu_err *err)
{
	for (unsigned i = 0; i < r->req.feeds.n; i++) {
		struct mu_tensor t = {0};
		int rc = mu_tensor_parse(&t, r->req.feed_tensors[i], err);

		if (rc)
			return mu_wrap(err, "feed '%.200s'", r->req.feeds.list[i]);
		rc = rendezvous_send(r->rendezvous, r->plan->feed_keys[i], t, false, err);
		if (rc)
			return rc;
	}
	return 0;
}

static void run_parts(struct run_step *r)
{
	unsigned n = r->plan->n_parts;
	bool failed;

	for (unsigned i = 0; i < n; i++)
		if (!r->req.record) /* streams have no words for it */
			r->parts[i].stream = peer_join(r->parts[i].peer, r->rendezvous);
	for (unsigned i = 0; i < n; i++) {
		struct part *p = &r->parts[i];
		struct peer_run run = {.session = r->session->handle,
				       .graph = r->plan->parts[i].graph,
				       .step_id = r->step_id,
				       .stream = p->stream,
				       .sole = is_sole(r->plan),
				       .record = r->req.record,
				       .request_id = (int64_t)mu_random_u64()};
		uint64_t id = p->peer->ops->run_graph(p->peer, &run, part_ended, p);

		pthread_mutex_lock(&r->lock);
		if (!p->ended)
			p->id = id;
		failed = r->failed && !p->ended;
		pthread_mutex_unlock(&r->lock);
		if (failed && id)
			p->peer->ops->cancel_run(p->peer, id, r->step_id);
	}
}

/* Enters the session's list; refuses when it is closed. */
static int enlist(struct run_step *r, struct mu_err *err)
{
	struct session *s = r->session;
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	if (s->closed) {
		rc = mu_fail(err, MU_FAILED_PRECONDITION, "Session is closed.");
	} else {
		atomic_fetch_add(&r->refs, 1);
		r->next = s->running;
		if (r->next)
			r->next->prev = r;
		s->running = r;
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

/* Has a plan: becomes a step of its session.  Waits for `more` besides its parts and its starter.
 */
static int begin(struct run_step *r, unsigned more, struct mu_err *err)
{
	unsigned n_parts = r->plan->n_parts;
	int rc;

	atomic_fetch_add(&r->master->steps, 1);
	/* bit 56 set and none above, as TensorFlow's masters draw them */
	r->step_id = (int64_t)((mu_random_u64() & ((1ull << 56) - 1)) | (1ull << 56));
	r->rendezvous = rendezvous_table_get(r->master->rt->steps, r->step_id);
	r->parts = MU_ARENA_ARRAY(&r->arena, struct part, n_parts + 1);
	r->pending = 1 + n_parts + more;
	for (unsigned i = 0; i < n_parts; i++)
		r->parts[i] = (struct part){.step = r, .peer = r->plan->parts[i].peer};
	rc = enlist(r, err);
	if (rc)
		rendezvous_table_drop(r->master->rt->steps, r->step_id, NULL);
	return rc;
}

/* Has a plan; takes the caller's reference. */
static void go(struct run_step *r)
{
	unsigned n_fetches = r->req.fetches.n;
	int64_t timeout = r->req.timeout_ms > 0 ? r->req.timeout_ms : r->session->timeout_ms;
	struct mu_err err;

	r->fetches = MU_ARENA_ARRAY(&r->arena, struct fetch, n_fetches + 1);
	if (begin(r, n_fetches, &err)) {
		reply_error(r, &err);
		run_step_unref(r);
		return;
	}
	if (timeout > 0) {
		atomic_fetch_add(&r->refs, 1);
		r->timer = mu_timer_add(r->master->timer, (long)timeout, on_timeout, r);
	}
	rpc_on_cancel(r->call, on_client_gone, r);
	if (send_feeds(r, &err))
		run_step_fail(r, &err);
	for (unsigned i = 0; i < n_fetches; i++) {
		r->fetches[i].step = r;
		rendezvous_recv_local(r->rendezvous, r->plan->fetch_keys[i], fetched,
				      &r->fetches[i]);
	}
	run_parts(r);
	arrived(r);
	run_step_unref(r);
}

static struct run_step *run_step_new(struct master *m)
{
	struct run_step *r = MU_NEW(struct run_step);

	r->refs = 1;
	r->master = m;
	mu_arena_init(&r->arena);
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

int run_step_open(struct session *s, struct plan *plan,
		  void (*ended)(void *arg, const struct mu_err *err), void *arg,
		  struct run_step **out, struct mu_err *err)
{
	struct run_step *r = run_step_new(s->master);
	int rc;

	r->session = session_ref(s);
	r->plan = plan;
	atomic_fetch_add(&plan->refs, 1);
	r->ended = ended;
	r->ended_arg = arg;
	rc = begin(r, 1, err); /* one more: until it is let go of */
	if (rc) {
		run_step_unref(r);
		return rc;
	}
	*out = r;
	run_parts(r);
	arrived(r);
	return 0;
}

struct rendezvous *run_step_rendezvous(struct run_step *r)
{
	return r->rendezvous;
}

static void prepare(void *arg)
{
	struct run_step *r = arg;
	struct mu_err err;

	if (plan_make(r->session, &r->req, &r->plan, &err)) {
		reply_error(r, &err);
		run_step_unref(r);
		return;
	}
	go(r);
}

static int parse(struct run_step *r, struct mu_err *err)
{
	struct mu_span bytes = rpc_bytes_flat(rpc_request(r->call));
	int rc;

	if (r->callable)
		rc = hot_run_callable_parse(&r->req, bytes, &r->arena, err);
	else
		rc = hot_run_step_parse(&r->req, bytes, &r->arena, err);
	if (rc)
		return rc;
	if (r->master->stopping)
		return mu_fail(err, MU_UNAVAILABLE, "%s is shutting down",
			       r->master->rt->task_prefix);
	r->session = master_session(r->master, r->req.session, err);
	if (!r->session)
		return -MU_ABORTED;
	if (!mu_request_ids_add(r->master->ids, r->req.request_id))
		return mu_fail(err, MU_ABORTED,
			       "The same RunStep (Master) request was received twice. request_id: "
			       "%lld",
			       (long long)r->req.request_id);
	return r->callable ? callable_names(r->session, &r->req, &r->arena, err) : 0;
}

void run_step_start(struct master *m, struct rpc_call *call, bool callable)
{
	struct run_step *r = run_step_new(m);
	struct mu_err err;

	r->call = call;
	r->callable = callable;
	if (parse(r, &err)) {
		reply_error(r, &err);
		run_step_unref(r);
		return;
	}
	if (r->req.partial) {
		partial_run(m, call, rpc_bytes_flat(rpc_request(call)));
		run_step_unref(r);
		return;
	}
	r->plan = plan_find(r->session, &r->req);
	if (r->plan)
		go(r);
	else
		mu_offload_run(m->offload, prepare, r);
}
