/* SPDX-License-Identifier: Apache-2.0 */
/* A client's session: memory management and graph.  session_open.c opens and closes it. */
#include <stdio.h>

#include "lib/base/random.h"
#include "task/master/master.h"

void session_unref(struct session *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	mu_map_each (&s->client_graphs, p)
		client_graph_unref(p->value);
	mu_map_fini(&s->client_graphs);
	callables_free(s);
	mu_map_fini(&s->partials); /* session_close has emptied it */
	mu_graph_free(s->graph);
	mu_map_fini(&s->stateful.by_name);
	mu_arena_fini(&s->arena);
	pthread_mutex_destroy(&s->graph_lock);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->idle);
	free(s);
}

struct session *session_new(struct master *m)
{
	struct session *s = MU_NEW(struct session);

	s->refs = 1;
	s->master = m;
	s->cluster = m->peers;
	snprintf(s->handle, sizeof(s->handle), "%016llx", (unsigned long long)mu_random_u64());
	pthread_mutex_init(&s->graph_lock, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->idle, NULL);
	mu_map_init(&s->client_graphs);
	mu_map_init(&s->callables);
	mu_map_init(&s->partials);
	mu_arena_init(&s->arena);
	s->graph = mu_graph_new();
	mu_map_init(&s->stateful.by_name);
	return s;
}

int session_extend(struct session *s, struct mu_span graph_def, int64_t version,
		   int64_t *new_version, struct mu_err *err)
{
	unsigned first_new;
	int rc;

	pthread_mutex_lock(&s->lock);
	bool closed = s->closed;
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_lock(&s->graph_lock);
	first_new = s->graph->n_nodes;
	if (closed)
		rc = mu_fail(err, MU_FAILED_PRECONDITION, "Session is closed.");
	else if (version != s->version)
		rc = mu_fail(err, MU_ABORTED, "Current version is %lld but caller expected %lld.",
			     (long long)s->version, (long long)version);
	else
		rc = mu_graph_parse(s->graph, graph_def, err);
	if (!rc)
		rc = graph_check_new(s->graph, first_new, true, err);
	if (!rc)
		*new_version = ++s->version;
	pthread_mutex_unlock(&s->graph_lock);
	return rc;
}
