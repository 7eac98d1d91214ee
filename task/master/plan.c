/* SPDX-License-Identifier: Apache-2.0 */
/* Makes plans: prune, place, partition, register on each task.  The key of a plan is its signature,
 * the names of feeds, fetches and targets in order.  Later steps with the same names reuse it. */
#include "lib/base/log.h"
#include "lib/inline/inline.h"
#include "task/master/master.h"

static void plan_put_names(struct mu_buf *b, const struct name_list *n)
{
	for (unsigned i = 0; i < n->n; i++)
		mu_buf_put(b, n->list[i], strlen(n->list[i]) + 1);
	mu_buf_putc(b, '\1'); /* no name begins with it */
}

static void signature(struct mu_buf *key, const struct run_step_request *r)
{
	plan_put_names(key, &r->feeds);
	plan_put_names(key, &r->fetches);
	plan_put_names(key, &r->targets);
}

static void plan_free(struct plan *p)
{
	for (unsigned i = 0; i < p->n_parts; i++)
		free(p->parts[i].graph);
	for (unsigned i = 0; i < p->n_feeds; i++)
		free(p->feed_keys[i]);
	for (unsigned i = 0; i < p->n_fetches; i++)
		free(p->fetch_keys[i]);
	free(p->parts);
	free(p->feed_keys);
	free(p->fetch_keys);
	free(p);
}

void plan_unref(struct plan *p)
{
	if (p && atomic_fetch_sub(&p->refs, 1) == 1)
		plan_free(p);
}

static struct plan *find_locked(struct session *s, struct mu_span key)
{
	struct plan *p = mu_map_get_n(&s->plans, key.data, key.len);

	if (p)
		atomic_fetch_add(&p->refs, 1);
	return p;
}

struct plan *plan_find(struct session *s, const struct run_step_request *r)
{
	MU_AUTO_BUF key = {0};
	struct plan *p;

	signature(&key, r);
	pthread_mutex_lock(&s->lock);
	p = find_locked(s, mu_buf_span(&key));
	pthread_mutex_unlock(&s->lock);
	return p;
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

/* Adds the task in TensorFlow's form, which its clients print. */
static int from_task(const struct peer *p, struct mu_err *err)
{
	struct mu_err said = *err;

	return mu_fail(err, said.code, "From %s:\n%s", p->task, said.msg);
}

/* Registers the parts on their tasks; takes the graphs. */
static int register_parts(struct session *s, struct plan *p, struct graph_part *parts, unsigned n,
			  struct mu_err *err)
{
	p->parts = MU_NEW_ARRAY(struct plan_part, n + 1);
	for (unsigned i = 0; i < n; i++) {
		struct peer *peer = peers_find(s->cluster, parts[i].task);
		struct mu_graph *g = parts[i].graph;
		int rc;

		if (!peer)
			return mu_fail(
			    err, MU_INTERNAL,
			    "the graph has nodes on %s, which is not a task of the session",
			    parts[i].task);
		parts[i].graph = NULL;
		rc = peer->ops->register_graph(peer, s->handle, g, s->config, &p->parts[i].graph,
					       err);
		if (rc)
			return from_task(peer, err);
		p->parts[i].peer = peer;
		p->n_parts++;
	}
	return 0;
}

/* Logs one line per node in the format of TensorFlow's servers, because scripts parse it. */
static void log_placement(const struct mu_graph *g)
{
	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];

		mu_info("placement", "%s: (%s): %s", n->name, n->op, n->device);
	}
}

static int plan_build(struct session *s, const struct run_step_request *r, struct plan *p,
		      struct mu_arena *a, struct mu_err *err)
{
	struct graph_signature sig = {.feeds = with_ports(a, &r->feeds),
				      .fetches = with_ports(a, &r->fetches),
				      .targets = r->targets.list,
				      .n_feeds = r->feeds.n,
				      .n_fetches = r->fetches.n,
				      .n_targets = r->targets.n};
	MU_AUTO(mu_graph_free) struct mu_graph *g = NULL;
	const char **feed_keys, **fetch_keys;
	struct graph_part *parts;
	unsigned n_parts;
	int rc;

	graph_place_stateful(s->graph, &s->devices, &s->stateful);
	rc = graph_prune(s->graph, &sig, &s->devices, &g, &feed_keys, &fetch_keys, err);

	if (rc)
		return rc;
	p->feed_keys = copy_keys(feed_keys, sig.n_feeds);
	p->fetch_keys = copy_keys(fetch_keys, sig.n_fetches);
	p->n_feeds = sig.n_feeds;
	p->n_fetches = sig.n_fetches;
	if ((rc = graph_check_step(g, err)) || (rc = mu_graph_inline(g, err)) ||
	    (rc = graph_place(g, &s->devices, &s->stateful, err)))
		return rc;
	if (s->log_placement)
		log_placement(g);
	rc = graph_partition(g, &s->devices, &parts, &n_parts, err);
	if (rc)
		return rc;
	rc = register_parts(s, p, parts, n_parts, err);
	graph_parts_free(parts, n_parts);
	return rc;
}

int plan_make(struct session *s, const struct run_step_request *r, struct plan **out,
	      struct mu_err *err)
{
	MU_AUTO_BUF key = {0};
	struct mu_arena a;
	struct plan *p;
	int rc = 0;

	if (!r->fetches.n && !r->targets.n)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Must specify at least one target to fetch or execute.");
	signature(&key, r);
	pthread_mutex_lock(&s->graph_lock);
	pthread_mutex_lock(&s->lock);
	p = find_locked(s, mu_buf_span(&key)); /* another call may have made it meanwhile */
	pthread_mutex_unlock(&s->lock);
	if (!p) {
		p = MU_NEW(struct plan);
		p->refs = 2;
		mu_arena_init(&a);
		rc = plan_build(s, r, p, &a, err);
		mu_arena_fini(&a);
		if (rc) {
			plan_free(p);
		} else {
			pthread_mutex_lock(&s->lock);
			mu_map_put_n(&s->plans, key.data, key.len, p);
			pthread_mutex_unlock(&s->lock);
		}
	}
	pthread_mutex_unlock(&s->graph_lock);
	if (!rc)
		*out = p;
	return rc;
}
