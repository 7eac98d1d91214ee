/* SPDX-License-Identifier: Apache-2.0 */
/* Partial runs: one step that is fed and fetched over several calls.
 *
 * PartialRunSetup names all feeds and fetches and starts the step at once; receives of missing
 * feeds wait in the rendezvous.  Each RunStep with the handle has some of the feeds and fetches.
 * The call with the last of them also waits for the end of the step.  If the step fails, the next
 * call returns its error.  Closing the session ends the step.
 *
 * References to a partial: the session's map, its step until it has ended, each call. */
#include "task/master/partial.h"

#include <stdio.h>

#include "lib/base/map.h"
#include "lib/tensor/tensor_proto.h"
#include "proto/master.pb-c.h"
#include "task/master/master.h"
#include "task/master/step_reply.h"
#include "task/messages/control.h"

struct partial {
	_Atomic unsigned refs;
	struct mu_arena arena;
	struct run_step_request names;
	struct mu_map feeds, fetches;     /* name -> its element of the next arrays */
	unsigned *feed_call, *fetch_call; /* number of the call that used the name; 0: none yet */
	struct client_graph *client_graph;
	struct session *session;
	struct run_step *step; /* NULL until it has started */
	char handle[40];
	pthread_mutex_t lock; /* guards feed_call, fetch_call and the members below */
	unsigned n_unused;    /* names that no call has fed or fetched yet */
	unsigned n_calls;
	bool ended;
	struct mu_err err; /* error of the step, once ended */
	struct partial_call *last;
};

/* One RunStep call of a partial run. */
struct partial_call {
	struct rpc_call *call;
	struct partial *partial;
	struct mu_arena arena;
	struct run_step_request req;
	struct partial_fetch {
		struct partial_call *owner;
		struct mu_tensor tensor;
	} * fetches;
	struct mu_tensor *feeds;
	unsigned *feed_at, *fetch_at; /* indices into the partial's names */
	unsigned number;              /* in the partial run, from 1 */
	_Atomic unsigned pending;
	pthread_mutex_t lock; /* guards the members below */
	uint64_t timer;
	bool failed;
	struct mu_err err;
};

static void partial_unref(struct partial *p)
{
	if (atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	if (p->step)
		run_step_unref(p->step);
	client_graph_unref(p->client_graph);
	session_unref(p->session);
	pthread_mutex_destroy(&p->lock);
	mu_map_fini(&p->feeds);
	mu_map_fini(&p->fetches);
	mu_arena_fini(&p->arena);
	free(p);
}

static struct partial *partial_find(struct session *s, const char *handle, bool removes)
{
	struct partial *p;

	pthread_mutex_lock(&s->lock);
	p = removes ? mu_map_del(&s->partials, handle) : mu_map_get(&s->partials, handle);
	if (p && !removes)
		atomic_fetch_add(&p->refs, 1);
	pthread_mutex_unlock(&s->lock);
	return p;
}

void partials_drop(struct session *s)
{
	struct mu_map all;

	pthread_mutex_lock(&s->lock);
	all = s->partials;
	mu_map_init(&s->partials);
	pthread_mutex_unlock(&s->lock);
	mu_map_each (&all, p)
		partial_unref(p->value);
	mu_map_fini(&all);
}

/* ---- calls ---- */

static void partial_call_free(struct partial_call *c)
{
	for (unsigned i = 0; c->fetches && i < c->req.fetches.n; i++)
		mu_tensor_unref(&c->fetches[i].tensor);
	for (unsigned i = 0; c->feeds && i < c->req.feeds.n; i++)
		mu_tensor_unref(&c->feeds[i]);
	if (c->partial)
		partial_unref(c->partial);
	pthread_mutex_destroy(&c->lock);
	mu_arena_fini(&c->arena);
	free(c);
}

static void complete_one(struct partial_call *c)
{
	if (atomic_fetch_sub(&c->pending, 1) != 1)
		return;
	if (c->timer && mu_timer_cancel(c->partial->session->master->timer, c->timer))
		partial_unref(c->partial);
	if (c->failed) {
		step_reply_error(c->call, c->req.store_errors, &c->err);
	} else {
		struct mu_tensor *t =
		    MU_ARENA_ARRAY(&c->arena, struct mu_tensor, c->req.fetches.n + 1);

		for (unsigned i = 0; i < c->req.fetches.n; i++)
			t[i] = c->fetches[i].tensor;
		step_reply_tensors(c->call, c->req.fetches.list, t, c->req.fetches.n, MU_SPAN(""));
	}
	partial_call_free(c);
}

static void call_fail(struct partial_call *c, const struct mu_err *why)
{
	pthread_mutex_lock(&c->lock);
	if (!c->failed)
		c->err = *why;
	c->failed = true;
	pthread_mutex_unlock(&c->lock);
}

static void on_fetched(void *arg, const struct mu_err *err, struct mu_tensor *tensor, bool dead)
{
	struct partial_fetch *f = arg;
	struct mu_err why;

	if (err) {
		call_fail(f->owner, err);
	} else {
		f->tensor = *tensor;
		if (dead) {
			mu_fail(&why, MU_INVALID_ARGUMENT, "a fetched tensor was not valid");
			call_fail(f->owner, &why);
		}
	}
	complete_one(f->owner);
}

static void partial_step_ended(void *arg, const struct mu_err *err)
{
	struct partial *p = arg;
	struct partial_call *last;

	pthread_mutex_lock(&p->lock);
	p->ended = true;
	if (err)
		p->err = *err;
	last = p->last;
	p->last = NULL;
	pthread_mutex_unlock(&p->lock);
	if (last) {
		if (err)
			call_fail(last, err);
		complete_one(last);
	}
	partial_unref(p);
}

static void partial_on_cancelled(void *arg)
{
	struct partial_call *c = arg;
	struct mu_err err;

	mu_fail(&err, MU_CANCELLED, "The client cancelled the step");
	run_step_fail(c->partial->step, &err);
}

static void partial_on_timeout(void *arg)
{
	struct partial *p = arg;
	struct mu_err err;

	mu_fail(&err, MU_DEADLINE_EXCEEDED, STEP_TIMED_OUT);
	run_step_fail(p->step, &err);
	partial_unref(p);
}

static void start_timer(struct partial_call *c)
{
	struct partial *p = c->partial;
	long ms = step_timeout_ms(p->session, &c->req);

	if (!ms)
		return;
	atomic_fetch_add(&p->refs, 1);
	c->timer = mu_timer_add(p->session->master->timer, ms, partial_on_timeout, p);
}

/* ---- validation of a call ---- */

/* Looks up the names of a call and marks them in `used` with the call's number.  Fails if a name is
 * not in PartialRunSetup, or is marked. */
static int use_names(const struct partial_call *c, const struct name_list *requested,
		     const struct mu_map *names, unsigned *used, const char *kind, const char *verb,
		     unsigned *at, struct mu_err *err)
{
	for (unsigned i = 0; i < requested->n; i++) {
		const char *name = requested->list[i];
		unsigned *u = mu_map_get(names, name);

		if (!u)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "The %s %.200s was not specified in partial_run_setup.",
				       kind, name);
		if (*u == c->number)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "The %s %.200s appears twice in the request", kind, name);
		if (*u)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "The %s %.200s has already been %s.", kind, name, verb);
		*u = c->number;
		at[i] = (unsigned)(u - used);
	}
	return 0;
}

static void unmark_names(const struct partial_call *c, unsigned *used, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (used[i] == c->number)
			used[i] = 0;
}

/* Returns a pointer to the number of the call that fed this output; NULL if it is not a feed. */
static const unsigned *feed_of(const struct partial *p, struct mu_input in)
{
	MU_AUTO_BUF name = {0};
	const unsigned *used;

	mu_buf_printf(&name, "%s:%d", in.node->name, in.port);
	used = mu_map_get_n(&p->feeds, name.data, name.len);
	return used || in.port != 0 ? used : mu_map_get(&p->feeds, in.node->name);
}

/* Fails if a fetch depends on a missing feed: the client would wait for the fetch and never send
 * the feed.  Called with the session's graph lock and the partial's lock. */
static int check_computable(struct partial_call *c, struct mu_err *err)
{
	const struct mu_graph *g = c->partial->session->graph;
	bool *visited = MU_ARENA_ARRAY(&c->arena, bool, g->n_nodes + 1);
	const struct mu_node **stack =
	    MU_ARENA_ARRAY(&c->arena, const struct mu_node *, g->n_nodes + 1);
	unsigned n_stack = 0;

	for (unsigned i = 0; i < c->req.fetches.n; i++) {
		struct mu_input fetch;

		if (!mu_graph_resolve(g, c->req.fetches.list[i], &fetch, NULL) &&
		    !visited[fetch.node->id]) {
			visited[fetch.node->id] = true;
			stack[n_stack++] = fetch.node;
		}
		while (n_stack) {
			const struct mu_node *n = stack[--n_stack];

			for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++) {
				struct mu_input in = n->inputs[k];
				const unsigned *used = feed_of(c->partial, in);

				if (used && !*used)
					return mu_fail(err, MU_INVALID_ARGUMENT,
						       "Fetch %s:%d can't be computed from the "
						       "feeds that have been fed so far.",
						       in.node->name, in.port);
				if (used || visited[in.node->id])
					continue;
				visited[in.node->id] = true;
				stack[n_stack++] = in.node;
			}
		}
	}
	return 0;
}

/* Checks the call and marks its names as used.  Sets *is_last if all names are used. */
static int claim_names(struct partial_call *c, bool *is_last, struct mu_err *err)
{
	struct partial *p = c->partial;
	int rc;

	pthread_mutex_lock(&p->session->graph_lock);
	pthread_mutex_lock(&p->lock);
	c->number = ++p->n_calls;
	if (p->ended)
		rc = p->err.code ? mu_fail(err, p->err.code, "%s", p->err.msg)
				 : mu_fail(err, MU_INVALID_ARGUMENT, "the partial run has ended");
	else
		rc = use_names(c, &c->req.feeds, &p->feeds, p->feed_call, "feed", "fed", c->feed_at,
			       err);
	if (!rc)
		rc = use_names(c, &c->req.fetches, &p->fetches, p->fetch_call, "fetch", "fetched",
			       c->fetch_at, err);
	if (!rc)
		rc = check_computable(c, err);
	if (rc) {
		unmark_names(c, p->feed_call, p->names.feeds.n);
		unmark_names(c, p->fetch_call, p->names.fetches.n);
	} else {
		p->n_unused -= c->req.feeds.n + c->req.fetches.n;
		*is_last = p->n_unused == 0;
		if (*is_last)
			p->last = c;
	}
	pthread_mutex_unlock(&p->lock);
	pthread_mutex_unlock(&p->session->graph_lock);
	return rc;
}

static int parse_feeds(struct partial_call *c, struct mu_err *err)
{
	c->feeds = MU_ARENA_ARRAY(&c->arena, struct mu_tensor, c->req.feeds.n + 1);
	for (unsigned i = 0; i < c->req.feeds.n; i++) {
		int rc = mu_tensor_parse(&c->feeds[i], c->req.feed_tensors[i], err);

		if (rc)
			return mu_wrap(err, "feed '%.200s'", c->req.feeds.list[i]);
	}
	return 0;
}

static void send_and_fetch(struct partial_call *c, bool is_last)
{
	struct partial *p = c->partial;
	struct rendezvous *rv = run_step_rendezvous(p->step);
	struct mu_err err;

	for (unsigned i = 0; i < c->req.feeds.n; i++) {
		struct mu_tensor t = c->feeds[i];

		c->feeds[i] = (struct mu_tensor){0};
		if (rendezvous_send(rv, p->client_graph->feed_keys[c->feed_at[i]], t, false, &err))
			run_step_fail(p->step, &err);
	}
	for (unsigned i = 0; i < c->req.fetches.n; i++)
		rendezvous_recv_local(rv, p->client_graph->fetch_keys[c->fetch_at[i]], on_fetched,
				      &c->fetches[i]);
	if (!is_last)
		return;
	p = partial_find(p->session, p->handle, true);
	if (p)
		partial_unref(p);
}

static void partial_call_run(void *arg)
{
	struct partial_call *c = arg;
	struct partial *p = c->partial;
	unsigned n_fetches = c->req.fetches.n;
	bool is_last = false;
	struct mu_err err;

	c->fetches = MU_ARENA_ARRAY(&c->arena, struct partial_fetch, n_fetches + 1);
	c->feed_at = MU_ARENA_ARRAY(&c->arena, unsigned, c->req.feeds.n + 1);
	c->fetch_at = MU_ARENA_ARRAY(&c->arena, unsigned, n_fetches + 1);
	for (unsigned i = 0; i < n_fetches; i++)
		c->fetches[i].owner = c;
	/* Counts the fetches, this function and the end of the step, for which only the last call
	 * waits.  Set before claim_names, which may make this the last call. */
	atomic_store(&c->pending, 2 + n_fetches);
	if (parse_feeds(c, &err) || claim_names(c, &is_last, &err)) {
		step_reply_error(c->call, c->req.store_errors, &err);
		partial_call_free(c);
		return;
	}
	start_timer(c);
	rpc_on_cancel(c->call, partial_on_cancelled, c);
	send_and_fetch(c, is_last);
	if (is_last)
		run_step_release(p->step);
	else
		complete_one(c);
	complete_one(c);
}

void partial_run(struct master *m, struct rpc_call *call, struct mu_span request)
{
	struct partial_call *c = MU_NEW(struct partial_call);
	struct session *s = NULL;
	struct mu_err err;
	int rc;

	c->call = call;
	mu_arena_init(&c->arena);
	pthread_mutex_init(&c->lock, NULL);
	rc = run_step_request_parse(&c->req, request, &c->arena, &err);
	if (!rc && !(s = master_session(m, c->req.session, &err)))
		rc = -MU_ABORTED;
	if (!rc && c->req.targets.n)
		rc = mu_fail(&err, MU_INVALID_ARGUMENT,
			     "a partial run's targets are named in PartialRunSetup");
	if (!rc && !(c->partial = partial_find(s, c->req.partial, false)))
		rc = mu_fail(&err, MU_INVALID_ARGUMENT,
			     "Must run PartialRunSetup before performing partial runs");
	session_unref(s);
	if (rc) {
		step_reply_error(call, c->req.store_errors, &err);
		partial_call_free(c);
		return;
	}
	mu_offload_run(m->offload, partial_call_run, c);
}

/* ---- setup ---- */

/* Returns a new array with an element for each name. */
static unsigned *index_names(struct partial *p, const struct name_list *names, struct mu_map *map)
{
	unsigned *used = MU_ARENA_ARRAY(&p->arena, unsigned, names->n + 1);

	for (unsigned i = 0; i < names->n; i++)
		mu_map_put(map, names->list[i], &used[i]);
	return used;
}

static int partial_start(struct partial *p, struct mu_err *err)
{
	static _Atomic unsigned last;
	struct session *s = p->session;
	int rc = client_graph_get(s, &p->names, &p->client_graph, err);

	if (rc)
		return rc;
	p->feed_call = index_names(p, &p->names.feeds, &p->feeds);
	p->fetch_call = index_names(p, &p->names.fetches, &p->fetches);
	p->n_unused = p->names.feeds.n + p->names.fetches.n;
	snprintf(p->handle, sizeof(p->handle), "%s;%u", s->handle, ++last);
	atomic_fetch_add(&p->refs, 1); /* owned by the step */
	rc = run_step_open(s, p->client_graph, partial_step_ended, p, &p->step, err);
	if (rc) {
		partial_unref(p);
		return rc;
	}
	if (p->n_unused == 0)
		run_step_release(p->step);
	pthread_mutex_lock(&s->lock);
	rc = s->closed ? mu_fail(err, MU_FAILED_PRECONDITION, "Session is closed.") : 0;
	if (!rc && p->n_unused) {
		atomic_fetch_add(&p->refs, 1);
		mu_map_put(&s->partials, p->handle, p);
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

/* A call fetches a name once, so a repeated name would leave the partial run open forever. */
static void remove_repeated(struct name_list *names)
{
	struct mu_map seen_names;
	unsigned n = 0;

	mu_map_init(&seen_names);
	for (unsigned i = 0; i < names->n; i++)
		if (!mu_map_put(&seen_names, names->list[i], names))
			names->list[n++] = names->list[i];
	names->n = n;
	mu_map_fini(&seen_names);
}

int partial_setup(struct master *m, struct mu_span request, struct mu_buf *reply,
		  struct mu_err *err)
{
	Muster__PartialRunSetupResponse out = MUSTER__PARTIAL_RUN_SETUP_RESPONSE__INIT;
	struct partial *p = MU_NEW(struct partial);
	Muster__PartialRunSetupRequest *req;
	int rc = -MU_INVALID_ARGUMENT;

	p->refs = 1;
	mu_arena_init(&p->arena);
	mu_map_init(&p->feeds);
	mu_map_init(&p->fetches);
	pthread_mutex_init(&p->lock, NULL);
	req =
	    control_unpack(&p->arena, &muster__partial_run_setup_request__descriptor, request, err);
	if (req && (req->n_feed > MAX_STEP_NAMES || req->n_fetch > MAX_STEP_NAMES ||
		    req->n_target > MAX_STEP_NAMES)) {
		mu_fail(err, MU_INVALID_ARGUMENT,
			"a partial run has at most %d feeds, fetches or targets", MAX_STEP_NAMES);
	} else if (req) {
		p->names.feeds =
		    (struct name_list){(const char **)req->feed, (unsigned)req->n_feed, 0};
		p->names.fetches =
		    (struct name_list){(const char **)req->fetch, (unsigned)req->n_fetch, 0};
		remove_repeated(&p->names.fetches);
		p->names.targets =
		    (struct name_list){(const char **)req->target, (unsigned)req->n_target, 0};
		p->session = master_session(m, req->session_handle, err);
		rc = p->session ? partial_start(p, err) : -MU_ABORTED;
	}
	if (!rc) {
		out.partial_run_handle = p->handle;
		control_pack(reply, &out);
	}
	partial_unref(p);
	return rc;
}
