/* SPDX-License-Identifier: Apache-2.0 */
/* Makes client graphs: prune, check, inline, place, partition, register.  The key of a client graph
 * is its signature, the names of feeds, fetches and targets in order, and the watches of the
 * debugger.  Later steps with the same signature reuse it. */
#include "lib/base/log.h"
#include "lib/base/pb.h"
#include "lib/inline/inline.h"
#include "proto/worker.pb-c.h"
#include "task/master/master.h"
#include "task/messages/control.h"

enum { DEREGISTER_TIMEOUT_MS = 5000 };

static void put_names(struct mu_buf *b, const struct name_list *n)
{
	for (unsigned i = 0; i < n->n; i++)
		mu_buf_put(b, n->list[i], strlen(n->list[i]) + 1);
	mu_buf_putc(b, '\1'); /* end of the list: no name begins with this byte */
}

/* Appends the watches of DebugOptions. */
static void put_watches(struct mu_buf *b, struct mu_span debug)
{
	enum { DEBUG_TENSOR_WATCH_OPTS = 4 };
	struct mu_pb m = mu_pb_of(debug);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f))
		if (f.number == DEBUG_TENSOR_WATCH_OPTS)
			mu_pb_put_bytes(b, f.number, f.bytes);
}

static void write_signature(struct mu_buf *key, const struct run_step_request *r)
{
	put_names(key, &r->feeds);
	put_names(key, &r->fetches);
	put_names(key, &r->targets);
	put_names(key, &r->connected);
	put_names(key, &r->sources);
	put_watches(key, r->debug);
}

static void client_graph_free(struct client_graph *cg)
{
	for (unsigned i = 0; i < cg->n_partitions; i++)
		free(cg->partitions[i].graph);
	for (unsigned i = 0; i < cg->n_feeds; i++)
		free(cg->feed_keys[i]);
	for (unsigned i = 0; i < cg->n_fetches; i++)
		free(cg->fetch_keys[i]);
	free(cg->partitions);
	free(cg->feed_keys);
	free(cg->fetch_keys);
	free(cg);
}

void client_graph_unref(struct client_graph *cg)
{
	if (cg && atomic_fetch_sub(&cg->refs, 1) == 1)
		client_graph_free(cg);
}

static struct client_graph *find_locked(struct session *s, struct mu_span key)
{
	struct client_graph *cg = mu_map_get_n(&s->client_graphs, key.data, key.len);

	if (cg)
		atomic_fetch_add(&cg->refs, 1);
	return cg;
}

struct client_graph *client_graph_find(struct session *s, const struct run_step_request *r)
{
	MU_AUTO_BUF key = {0};
	struct client_graph *cg;

	write_signature(&key, r);
	pthread_mutex_lock(&s->lock);
	cg = find_locked(s, mu_buf_span(&key));
	pthread_mutex_unlock(&s->lock);
	return cg;
}

/* Appends ":0" to names without a port. */
static const char **with_ports(struct mu_arena *a, const struct name_list *names)
{
	const char **out = MU_ARENA_ARRAY(a, const char *, names->n + 1);

	for (unsigned i = 0; i < names->n; i++)
		out[i] = strchr(names->list[i], ':') ? names->list[i]
						     : mu_arena_printf(a, "%s:0", names->list[i]);
	return out;
}

static char **copy_keys(const char *const *keys, unsigned n)
{
	char **out = MU_NEW_ARRAY(char *, n + 1);

	for (unsigned i = 0; i < n; i++)
		out[i] = mu_xstrdup(keys[i]);
	return out;
}

static void write_register_request(struct mu_buf *b, const struct session *s,
				   const struct mu_graph *g, struct mu_span debug)
{
	Muster__RegisterGraphRequest m = MUSTER__REGISTER_GRAPH_REQUEST__INIT;
	Muster__GraphOptions options = MUSTER__GRAPH_OPTIONS__INIT;
	MU_AUTO_BUF def = {0};

	mu_graph_write(g, &def);
	m.session_handle = (char *)s->handle;
	m.graph_def = (ProtobufCBinaryData){def.len, (uint8_t *)def.data};
	m.graph_options = &options;
	m.create_worker_session_called = true;
	m.config_proto = (ProtobufCBinaryData){s->config.len, (uint8_t *)s->config.data};
	m.debug_options = (ProtobufCBinaryData){debug.len, (uint8_t *)debug.data};
	control_pack(b, &m);
}

static int read_handle(const struct fan_out_entry *e, char **handle, struct mu_err *err)
{
	Muster__RegisterGraphResponse *m;
	MU_AUTO_ARENA a = {0};

	if (e->rc) {
		*err = e->err;
		return e->rc;
	}
	m = control_unpack(&a, &muster__register_graph_response__descriptor, mu_buf_span(&e->reply),
			   err);
	if (m)
		*handle = mu_xstrdup(m->graph_handle);
	return m ? 0 : -MU_INVALID_ARGUMENT;
}

/* Sends the RegisterGraph calls to the other tasks.  session_close cancels them. */
static void call_other_tasks(struct session *s, struct fan_out *calls, long timeout_ms)
{
	bool closed;

	pthread_mutex_lock(&s->lock);
	closed = s->closed;
	s->registering = calls;
	pthread_mutex_unlock(&s->lock);
	if (!closed)
		fan_out_run(calls, PEER_REGISTER_GRAPH, MU_SPAN(""), timeout_ms, false,
			    "RegisterGraph");
	pthread_mutex_lock(&s->lock);
	s->registering = NULL;
	pthread_mutex_unlock(&s->lock);
}

/* Registers the partitions on their tasks; takes the graph of this task. */
static int register_partitions(struct session *s, struct client_graph *cg,
			       struct partition *partitions, struct fan_out *calls,
			       const struct run_step_request *r, struct mu_err *err)
{
	const struct fan_out_entry *e;
	int rc = 0;

	for (unsigned i = 0; i < cg->n_partitions; i++) {
		struct partition *p = &partitions[i];
		struct peer *peer = cg->partitions[i].peer = peers_find(s->cluster, p->task);

		if (!peer)
			return mu_fail(
			    err, MU_INTERNAL,
			    "the graph has nodes on %s, which is not a task of the session",
			    p->task);
		if (!peer->local) {
			fan_out_add(calls, peer);
			write_register_request(&calls->entries[calls->n - 1].request, s, p->graph,
					       r->debug);
		} else if (peer->ops->register_graph(peer, s->handle, mu_steal(&p->graph),
						     s->config, r->debug, &cg->partitions[i].graph,
						     err)) {
			return peer_error(peer, err);
		}
	}
	call_other_tasks(s, calls, step_timeout_ms(s, r));
	e = calls->entries;
	for (unsigned i = 0; i < cg->n_partitions; i++) {
		struct mu_err why;

		if (cg->partitions[i].peer->local ||
		    !read_handle(e++, &cg->partitions[i].graph, &why) || rc)
			continue;
		*err = why;
		rc = peer_error(cg->partitions[i].peer, err);
	}
	return rc;
}

/* Deregisters the registered partitions after the registration of another one has failed. */
static void deregister_partitions(const struct session *s, const struct client_graph *cg)
{
	struct fan_out calls;

	fan_out_init(&calls);
	for (unsigned i = 0; i < cg->n_partitions; i++) {
		Muster__DeregisterGraphRequest m = MUSTER__DEREGISTER_GRAPH_REQUEST__INIT;

		if (!cg->partitions[i].graph)
			continue;
		m.session_handle = (char *)s->handle;
		m.graph_handle = cg->partitions[i].graph;
		m.create_worker_session_called = true;
		fan_out_add(&calls, cg->partitions[i].peer);
		control_pack(&calls.entries[calls.n - 1].request, &m);
	}
	fan_out_run(&calls, PEER_DEREGISTER_GRAPH, MU_SPAN(""), DEREGISTER_TIMEOUT_MS, false,
		    "DeregisterGraph");
	fan_out_fini(&calls);
}

/* Logs one line per node in the format of TensorFlow's servers, because scripts parse it. */
static void log_placement(const struct mu_graph *g)
{
	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];

		mu_info("placement", "%s: (%s): %s", n->name, n->op, n->device);
	}
}

/* Replaces the error of a registration if the session was closed meanwhile: its tasks have
 * forgotten it, and report that. */
static int check_not_closed(struct session *s, int rc, struct mu_err *err)
{
	pthread_mutex_lock(&s->lock);
	bool closed = s->closed;
	pthread_mutex_unlock(&s->lock);
	return closed ? mu_fail(err, MU_CANCELLED, "Session is closed.") : rc;
}

static int client_graph_build(struct session *s, const struct run_step_request *r,
			      struct client_graph *cg, struct mu_arena *a, struct mu_err *err)
{
	struct graph_signature sig = {.feeds = with_ports(a, &r->feeds),
				      .fetches = with_ports(a, &r->fetches),
				      .targets = r->targets.list,
				      .n_feeds = r->feeds.n,
				      .n_fetches = r->fetches.n,
				      .n_targets = r->targets.n,
				      .connected = with_ports(a, &r->connected),
				      .sources = with_ports(a, &r->sources),
				      .n_connected = r->connected.n};
	MU_AUTO(mu_graph_free) struct mu_graph *g = NULL;
	const char **feed_keys, **fetch_keys;
	struct partition *partitions;
	unsigned n_partitions;
	struct fan_out calls;
	int rc;

	graph_place_stateful(s->graph, &s->devices, &s->stateful);
	rc = graph_prune(s->graph, &sig, &s->devices, &g, &feed_keys, &fetch_keys, err);

	if (rc)
		return rc;
	cg->feed_keys = copy_keys(feed_keys, sig.n_feeds);
	cg->fetch_keys = copy_keys(fetch_keys, sig.n_fetches);
	cg->n_feeds = sig.n_feeds;
	cg->n_fetches = sig.n_fetches;
	if ((rc = graph_check_step(g, err)) || (rc = mu_graph_inline(g, err)) ||
	    (rc = graph_place(g, &s->devices, &s->stateful, err)))
		return rc;
	graph_mark_singular_errors(g);
	if (s->log_placement)
		log_placement(g);
	rc = graph_partition(g, &s->devices, &partitions, &n_partitions, err);
	if (rc)
		return rc;
	cg->partitions = MU_NEW_ARRAY(struct registered_partition, n_partitions + 1);
	cg->n_partitions = n_partitions;
	fan_out_init(&calls);
	rc = register_partitions(s, cg, partitions, &calls, r, err);
	fan_out_fini(&calls);
	rc = check_not_closed(s, rc, err);
	if (rc)
		deregister_partitions(s, cg);
	graph_partitions_free(partitions, n_partitions);
	return rc;
}

int client_graph_get(struct session *s, const struct run_step_request *r, struct client_graph **out,
		     struct mu_err *err)
{
	MU_AUTO_BUF key = {0};
	MU_AUTO_ARENA a = {0};
	struct client_graph *cg;
	int rc = 0;

	if (!r->fetches.n && !r->targets.n)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Must specify at least one target to fetch or execute.");
	write_signature(&key, r);
	pthread_mutex_lock(&s->graph_lock);
	pthread_mutex_lock(&s->lock);
	cg = find_locked(s, mu_buf_span(&key)); /* perhaps made by another call meanwhile */
	pthread_mutex_unlock(&s->lock);
	if (!cg) {
		cg = MU_NEW(struct client_graph);
		cg->refs = 2; /* the map and the caller */
		rc = client_graph_build(s, r, cg, &a, err);
		if (rc) {
			client_graph_free(cg);
		} else {
			pthread_mutex_lock(&s->lock);
			mu_map_put_n(&s->client_graphs, key.data, key.len, cg);
			pthread_mutex_unlock(&s->lock);
		}
	}
	pthread_mutex_unlock(&s->graph_lock);
	if (!rc)
		*out = cg;
	return rc;
}
