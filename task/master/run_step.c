/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a client.
 *
 * The request is parsed on the queue thread.  With a cached client graph the step starts there;
 * else an offload thread makes the client graph first.  The step has ended when every partition has
 * replied and every fetch has arrived: `pending` counts these, plus one for the function that
 * starts them.
 *
 * The first error is the step's error, but a later error replaces a cancellation, unless the client
 * closed the session.  An error cancels the other partitions and aborts the local rendezvous, so
 * that all pending operations end soon.  The reply is sent before the clean-up on the other tasks.
 *
 * References: the session's list, the timer, and local variables. */
#include <stdio.h>

#include "lib/base/log.h"
#include "lib/base/pb.h"
#include "lib/base/random.h"
#include "lib/tensor/tensor_proto.h"
#include "proto/worker.pb-c.h"
#include "task/master/debug_run.h"
#include "task/master/master.h"
#include "task/master/step_reply.h"
#include "task/messages/control.h"
#include "task/messages/tensor_writer.h"
#include "task/peer/peer_stream.h"

struct fetch {
	struct run_step *step;
	struct mu_tensor tensor;
	bool dead;
};
struct partition_run {
	struct run_step *step;
	struct peer *peer;
	struct stream_conn *stream; /* owned by the rendezvous; NULL: runs over gRPC */
	uint64_t id;                /* id of the RunGraph call; 0: not started, or ended */
	bool ended;
};
enum error_source { FROM_PARTITION, FROM_FETCH, FROM_CLOSE };
struct run_step {
	_Atomic unsigned refs;
	struct run_step *prev, *next; /* the session's list, under its lock */
	struct master *master;
	struct rpc_call *call; /* NULL: started by run_step_open */
	void (*ended)(void *arg, const struct mu_err *err);
	void *ended_arg;
	bool callable;
	struct mu_arena arena;
	struct run_step_request req;
	struct session *session;
	struct client_graph *client_graph;
	int64_t step_id;
	struct rendezvous *rendezvous;
	uint64_t timer;
	struct fetch *fetches;
	struct partition_run *partitions;
	pthread_mutex_t lock; /* guards the members below */
	unsigned pending;
	bool failed;
	bool is_final;          /* `failed` and `err` do not change any more */
	bool released;          /* run_step_release was called */
	struct mu_buf metadata; /* a RunMetadata with the records of the partitions */
	struct mu_err err;
	enum error_source source; /* source of err */
};

void run_step_unref(struct run_step *r)
{
	if (atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	for (unsigned i = 0; r->fetches && i < r->req.fetches.n; i++)
		mu_tensor_unref(&r->fetches[i].tensor);
	mu_buf_fini(&r->metadata);
	client_graph_unref(r->client_graph);
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

/* ---- replies ---- */

static void run_step_reply_error(struct run_step *r, const struct mu_err *err)
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

static void ignore_reply(void *arg, const struct mu_err *err, struct mu_span reply)
{
}

static void clean_up_partitions(struct run_step *r)
{
	MU_AUTO_BUF request = {0};

	mu_pb_put_int(&request, 1, r->step_id);
	for (unsigned i = 0; i < r->client_graph->n_partitions; i++) {
		struct peer *p = r->client_graph->partitions[i].peer;

		if (r->partitions[i].stream)
			stream_clean_up(r->partitions[i].stream, r->step_id);
		else if (!p->local)
			p->ops->call(p, PEER_CLEANUP_GRAPH, mu_buf_span(&request), 10000, false,
				     ignore_reply, NULL);
	}
	rendezvous_table_drop(r->master->rt->steps, r->step_id, NULL);
	if (r->failed) /* else no partition has a pending RecvTensor */
		peers_drop_step(r->master->peers, r->step_id);
}

static void remove_from_session(struct run_step *r)
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

/* Ends the step after the last pending operation. */
static void run_step_finish(struct run_step *r)
{
	pthread_mutex_lock(&r->lock);
	r->is_final = true;
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
		run_step_reply_error(r, &r->err);
	else
		reply_tensors(r);
	clean_up_partitions(r);
	remove_from_session(r);
}

/* On an offload thread. */
static void finish_debugged(void *arg)
{
	struct run_step *r = arg;

	debug_end_run(r->master->rt, &r->req);
	run_step_finish(r);
}

static void run_step_complete_one(struct run_step *r)
{
	bool is_last;

	pthread_mutex_lock(&r->lock);
	is_last = --r->pending == 0;
	pthread_mutex_unlock(&r->lock);
	if (is_last && r->req.debug.len)
		mu_offload_run(r->master->offload, finish_debugged, r);
	else if (is_last)
		run_step_finish(r);
}

void run_step_release(struct run_step *r)
{
	bool first;

	pthread_mutex_lock(&r->lock);
	first = !r->released;
	r->released = true;
	pthread_mutex_unlock(&r->lock);
	if (first)
		run_step_complete_one(r);
}

/* ---- failure ---- */

static void cancel_partitions(struct run_step *r)
{
	for (unsigned i = 0; i < r->client_graph->n_partitions; i++) {
		uint64_t id;

		pthread_mutex_lock(&r->lock);
		id = r->partitions[i].id;
		pthread_mutex_unlock(&r->lock);
		if (id)
			r->partitions[i].peer->ops->cancel_run(r->partitions[i].peer, id,
							       r->step_id);
	}
}

/* A partition's error names its task, so it replaces the same error of a fetch. */
static bool is_better_error(const struct run_step *r, const struct mu_err *why)
{
	if (!r->failed || (r->source == FROM_FETCH && why->code == r->err.code))
		return true;
	return r->err.code == MU_CANCELLED && why->code != MU_CANCELLED && r->source != FROM_CLOSE;
}

static void fail_from(struct run_step *r, const struct mu_err *why, enum error_source source)
{
	bool first;

	pthread_mutex_lock(&r->lock);
	if (r->is_final) {
		pthread_mutex_unlock(&r->lock);
		return;
	}
	first = !r->failed;
	if (is_better_error(r, why)) {
		r->err = *why;
		r->source = source;
	}
	r->failed = true;
	pthread_mutex_unlock(&r->lock);
	if (!first)
		return;
	rendezvous_abort(r->rendezvous, why);
	cancel_partitions(r);
	if (r->ended)
		run_step_release(r);
}

void run_step_fail(struct run_step *r, const struct mu_err *why)
{
	fail_from(r, why, FROM_PARTITION);
}

void run_step_close(struct run_step *r, const struct mu_err *why)
{
	fail_from(r, why, FROM_CLOSE);
}

static void run_step_on_timeout(void *arg)
{
	struct run_step *r = arg;
	struct mu_err err;

	mu_fail(&err, MU_DEADLINE_EXCEEDED, STEP_TIMED_OUT);
	run_step_fail(r, &err);
	run_step_unref(r);
}

static void run_step_on_cancelled(void *arg)
{
	struct run_step *r = arg;
	struct mu_err err;

	atomic_fetch_add(&r->refs, 1); /* run_step_fail may end the step */
	mu_fail(&err, MU_CANCELLED, "The client cancelled the step");
	run_step_fail(r, &err);
	run_step_unref(r);
}

/* ---- start ---- */

static void on_fetched(void *arg, const struct mu_err *err, struct mu_tensor *tensor, bool dead)
{
	struct fetch *f = arg;
	struct run_step *r = f->step;

	if (err) {
		fail_from(r, err, FROM_FETCH);
	} else {
		f->tensor = *tensor;
		f->dead = dead;
	}
	run_step_complete_one(r);
}

/* Appends the records in a partition's RunGraphResponse as fields of a RunMetadata.  Protobuf
 * parsers merge a message field that occurs several times.  Called with r->lock held. */
static void add_record(struct run_step *r, struct mu_span reply)
{
	static const uint32_t fields[] = {[2] = 1, [3] = 2, [4] = 3};
	struct mu_pb m = mu_pb_of(reply);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f))
		if (f.number < MU_COUNT(fields) && fields[f.number] && f.type == MU_PB_BYTES)
			mu_pb_put_bytes(&r->metadata, fields[f.number], f.bytes);
}

static void partition_ended(void *arg, const struct mu_err *err, struct mu_span reply)
{
	struct partition_run *p = arg;
	struct run_step *r = p->step;
	struct mu_err peer_err;

	pthread_mutex_lock(&r->lock);
	p->id = 0;
	p->ended = true;
	if (!err && r->req.record)
		add_record(r, reply);
	pthread_mutex_unlock(&r->lock);
	if (err) {
		peer_err = *err;
		peer_error(p->peer, &peer_err);
		run_step_fail(r, &peer_err);
	}
	run_step_complete_one(r);
}

static int send_feeds(struct run_step *r, struct mu_err *err)
{
	for (unsigned i = 0; i < r->req.feeds.n; i++) {
		struct mu_tensor t = {0};
		int rc = mu_tensor_parse(&t, r->req.feed_tensors[i], err);

		if (rc)
			return mu_wrap(err, "feed '%.200s'", r->req.feeds.list[i]);
		rc = rendezvous_send(r->rendezvous, r->client_graph->feed_keys[i], t, false, err);
		if (rc)
			return rc;
	}
	return 0;
}

static void run_partitions(struct run_step *r)
{
	unsigned n = r->client_graph->n_partitions;
	bool failed;

	for (unsigned i = 0; i < n; i++)
		if (!r->req.record) /* the stream protocol cannot carry records */
			r->partitions[i].stream =
			    stream_peer_join(r->partitions[i].peer->stream, r->rendezvous);
	for (unsigned i = 0; i < n; i++) {
		struct partition_run *p = &r->partitions[i];

		pthread_mutex_lock(&r->lock);
		failed = r->failed;
		pthread_mutex_unlock(&r->lock);
		if (failed) { /* before the partition has started */
			run_step_complete_one(r);
			continue;
		}
		struct peer_run run = {.session = r->session->handle,
				       .graph = r->client_graph->partitions[i].graph,
				       .step_id = r->step_id,
				       .stream = p->stream,
				       .record = r->req.record,
				       .request_id = (int64_t)mu_random_u64()};
		uint64_t id = p->peer->ops->run_graph(p->peer, &run, partition_ended, p);

		pthread_mutex_lock(&r->lock);
		if (!p->ended)
			p->id = id;
		failed = r->failed && !p->ended;
		pthread_mutex_unlock(&r->lock);
		if (failed && id)
			p->peer->ops->cancel_run(p->peer, id, r->step_id);
	}
}

/* Adds the step to the session's list; fails if the session is closed. */
static int add_to_session(struct run_step *r, struct mu_err *err)
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

/* Makes r, which has a client graph, a running step of its session.  `pending` counts the
 * partitions, the function that starts the step, and extra_pending. */
static int run_step_begin(struct run_step *r, unsigned extra_pending, struct mu_err *err)
{
	unsigned n_partitions = r->client_graph->n_partitions;
	int rc;

	atomic_fetch_add(&r->master->steps, 1);
	/* TensorFlow's masters use ids with bit 56 set and no higher bit. */
	r->step_id = (int64_t)((mu_random_u64() & ((1ull << 56) - 1)) | (1ull << 56));
	r->rendezvous = rendezvous_table_get(r->master->rt->steps, r->step_id);
	r->partitions = MU_ARENA_ARRAY(&r->arena, struct partition_run, n_partitions + 1);
	r->pending = 1 + n_partitions + extra_pending;
	for (unsigned i = 0; i < n_partitions; i++)
		r->partitions[i] =
		    (struct partition_run){.step = r, .peer = r->client_graph->partitions[i].peer};
	rc = add_to_session(r, err);
	if (rc)
		rendezvous_table_drop(r->master->rt->steps, r->step_id, NULL);
	return rc;
}

/* True in every build_cost_model-th step of the client graph. */
static bool records_costs(const struct session *s, struct client_graph *cg)
{
	int64_t steps = atomic_fetch_add(&cg->steps, 1) + 1;

	return s->cost_every > 0 && (steps - s->cost_after) % s->cost_every == 0;
}

/* Starts r, which has a client graph; takes the caller's reference. */
static void run_step_run(struct run_step *r)
{
	unsigned n_fetches = r->req.fetches.n;
	long timeout = step_timeout_ms(r->session, &r->req);
	struct mu_err err;

	r->fetches = MU_ARENA_ARRAY(&r->arena, struct fetch, n_fetches + 1);
	if (records_costs(r->session, r->client_graph))
		r->req.record |= RECORD_COSTS;
	if (run_step_begin(r, n_fetches, &err)) {
		run_step_reply_error(r, &err);
		run_step_unref(r);
		return;
	}
	if (timeout > 0) {
		atomic_fetch_add(&r->refs, 1);
		r->timer = mu_timer_add(r->master->timer, timeout, run_step_on_timeout, r);
	}
	rpc_on_cancel(r->call, run_step_on_cancelled, r);
	if (send_feeds(r, &err))
		run_step_fail(r, &err);
	for (unsigned i = 0; i < n_fetches; i++) {
		r->fetches[i].step = r;
		rendezvous_recv_local(r->rendezvous, r->client_graph->fetch_keys[i], on_fetched,
				      &r->fetches[i]);
	}
	run_partitions(r);
	run_step_complete_one(r);
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

int run_step_open(struct session *s, struct client_graph *client_graph,
		  void (*ended)(void *arg, const struct mu_err *err), void *arg,
		  struct run_step **out, struct mu_err *err)
{
	struct run_step *r = run_step_new(s->master);
	int rc;

	r->session = session_ref(s);
	r->client_graph = client_graph;
	atomic_fetch_add(&client_graph->refs, 1);
	r->ended = ended;
	r->ended_arg = arg;
	rc = run_step_begin(r, 1, err); /* 1: until run_step_release */
	if (rc) {
		run_step_unref(r);
		return rc;
	}
	*out = r;
	run_partitions(r);
	run_step_complete_one(r);
	return 0;
}

struct rendezvous *run_step_rendezvous(struct run_step *r)
{
	return r->rendezvous;
}

/* On an offload thread. */
static void prepare_and_run(void *arg)
{
	struct run_step *r = arg;
	int64_t steps_before = r->client_graph ? atomic_load(&r->client_graph->steps) : 0;
	struct mu_err err;

	if ((r->req.debug.len && debug_publish_run(r->master->rt, &r->req, steps_before, &err)) ||
	    (!r->client_graph && client_graph_get(r->session, &r->req, &r->client_graph, &err))) {
		if (r->req.debug.len)
			debug_end_run(r->master->rt, &r->req);
		run_step_reply_error(r, &err);
		run_step_unref(r);
		return;
	}
	run_step_run(r);
}

static int parse_request(struct run_step *r, struct mu_err *err)
{
	struct mu_span bytes = rpc_bytes_flat(rpc_request(r->call));
	int rc;

	if (r->callable)
		rc = run_callable_request_parse(&r->req, bytes, &r->arena, err);
	else
		rc = run_step_request_parse(&r->req, bytes, &r->arena, err);
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

bool run_step_start(struct master *m, struct rpc_call *call, bool callable)
{
	struct run_step *r = run_step_new(m);
	struct mu_err err;

	r->call = call;
	r->callable = callable;
	if (parse_request(r, &err)) {
		run_step_reply_error(r, &err);
		run_step_unref(r);
		return true;
	}
	if (r->req.partial) {
		run_step_unref(r);
		return false;
	}
	r->client_graph = client_graph_find(r->session, &r->req);
	if (r->client_graph && !r->req.debug.len)
		run_step_run(r);
	else
		mu_offload_run(m->offload, prepare_and_run, r);
	return true;
}
