/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the threads, waits for the signal, stops them in order: queue, workers, lease, watches. */
#include "operator/controller/manager.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/net/http_server.h"
#include "operator/controller/reconcile.h"

enum {
	WORKERS_MAX = 32,
	NAMESPACES_MAX = 64,
	WATCHES_MAX = KINDS * NAMESPACES_MAX,
	WORKERS_GRACE_S = 3,
	UNAVAILABLE_FAILURES = 4, /* some 6 s */
};
static const double POLL_S = 0.005;

/* One reflector and its handlers' argument. */
struct watch {
	struct kube_reflector reflector;
	struct store_watch target;
};

struct manager {
	struct controller controller;
	struct mu_http_server *metrics, *probes;
	char *names;                                /* of the namespaces, cut up */
	const char *namespaces[NAMESPACES_MAX + 1]; /* NULL-terminated */
	struct watch *watches[WATCHES_MAX];
	pthread_t running[WATCHES_MAX + WORKERS_MAX + 2];
	unsigned n_namespaces, n_watches, n_running, watched; /* watched: bits of kinds */
};

static double wall_clock(void *user)
{
	return mu_wall();
}

static int call_server(void *user, const struct kube_request *rq, cJSON **out, struct mu_err *err)
{
	return kube_call(((struct controller *)user)->kube, rq, out, err);
}

static void *work(void *controller)
{
	struct controller *c = controller;
	char *key;

	atomic_fetch_add(&c->working, 1);
	while ((key = workqueue_get(&c->queue))) {
		struct mu_err err = {0};
		double after = 0;
		int rc = reconcile(c, key, &after, &err);

		controller_requeue(c, key, rc, after, &err);
		free(key);
	}
	atomic_fetch_sub(&c->working, 1);
	return NULL;
}

void controller_stop_init(struct controller_stop *stop)
{
	atomic_store(&stop->requested, false);
	sem_init(&stop->wake, 0, 0);
}

bool controller_stop(struct controller_stop *stop)
{
	bool was_requested = atomic_exchange(&stop->requested, true);

	sem_post(&stop->wake);
	return was_requested;
}

/* Starts a thread with a name, which profilers show. */
static int start(struct manager *m, const char *name, void *(*run)(void *), void *arg,
		 struct mu_err *err)
{
	pthread_t *thread = &m->running[m->n_running];
	char short_name[16]; /* the limit of the kernel */

	if (pthread_create(thread, NULL, run, arg) != 0)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no thread for %s", name);
	snprintf(short_name, sizeof(short_name), "%.15s", name);
	pthread_setname_np(*thread, short_name);
	m->n_running++;
	return 0;
}

static int add_watch(struct manager *m, enum object_kind kind, const char *ns, struct mu_err *err)
{
	const struct kind_info *k = &kinds[kind];
	struct watch *w = MU_NEW(struct watch);

	w->target = (struct store_watch){&m->controller.store, kind, ns};
	w->reflector = (struct kube_reflector){
	    .client = m->controller.kube,
	    .name = k->name,
	    .path = ns ? mu_xasprintf("%s/namespaces/%s/%s", k->group, ns, k->resource)
		       : mu_xasprintf("%s/%s", k->group, k->resource),
	    .selector = k->selector,
	    .list_begin = store_list_begins,
	    .on_upsert = store_object_seen,
	    .on_delete = store_object_gone,
	    .list_end = store_list_ends,
	    .arg = &w->target,
	};
	m->watches[m->n_watches++] = w;
	return start(m, k->name, kube_reflector_run, &w->reflector, err);
}

/* Cuts the list into names. */
static int read_namespaces(struct manager *m, struct mu_err *err)
{
	const char *list = m->controller.options.namespaces;
	char *save = NULL;

	m->names = mu_xstrdup(list ? list : "");
	for (char *ns = strtok_r(m->names, ", ", &save); ns; ns = strtok_r(NULL, ", ", &save)) {
		if (!spec_is_label(ns))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "'%.80s' is not a valid name of a namespace", ns);
		if (m->n_namespaces == NAMESPACES_MAX)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "more than %d namespaces: watch them all, or run one more "
				       "operator",
				       NAMESPACES_MAX);
		if (mu_word_index(ns, m->namespaces) < 0)
			m->namespaces[m->n_namespaces++] = ns;
	}
	return 0;
}

/* Starts one watch of each kind that is wanted and not yet watched, or one for each namespace. */
static int start_watches(struct manager *m, struct mu_err *err)
{
	unsigned wanted = atomic_load(&m->controller.wanted_kinds) & ~m->watched;

	for (int k = 0; k < KINDS; k++) {
		bool of_cluster = kinds[k].of_cluster;

		if (!(wanted & 1U << k))
			continue;
		if (of_cluster && !m->controller.options.nodes)
			continue; /* a Role cannot grant it; kernels are then not checked */
		if (!m->n_namespaces || of_cluster)
			MU_RETURN_IF_ERROR(add_watch(m, k, NULL, err));
		for (unsigned i = 0; i < m->n_namespaces && !of_cluster; i++)
			MU_RETURN_IF_ERROR(add_watch(m, k, m->namespaces[i], err));
	}
	m->watched |= wanted;
	return 0;
}

/* True when the jobs of this namespace cannot be listed: other namespaces do not wait for it. */
static bool is_unavailable(const struct manager *m, const char *namespace)
{
	for (unsigned i = 0; i < m->n_watches; i++) {
		const struct watch *w = m->watches[i];

		if (w->target.kind == KIND_JOB && w->target.namespace == namespace)
			return !atomic_load(&w->reflector.synced) &&
			       atomic_load(&w->reflector.n_failures) >= UNAVAILABLE_FAILURES;
	}
	return false;
}

/* True when the lists of all available namespaces, at least one, were delivered.  Waits for nodes
 * until their list fails: the first choice of kernels needs their labels. */
static bool is_synced(const struct manager *m)
{
	bool any = false;

	for (unsigned i = 0; i < m->n_watches; i++) {
		const struct watch *w = m->watches[i];

		if (atomic_load(&w->reflector.synced))
			any = any || w->target.kind == KIND_JOB;
		else if (!is_unavailable(m, w->target.namespace) &&
			 !(kinds[w->target.kind].of_cluster &&
			   atomic_load(&w->reflector.n_failures)))
			return false;
	}
	return any;
}

/* Starts the workers once the watches have delivered their lists. */
static int start_workers(struct manager *m, struct mu_err *err)
{
	struct controller *c = &m->controller;

	while (!is_synced(m)) {
		if (atomic_load(&c->stop->requested))
			return 0;
		kube_client_sleep(c->kube, POLL_S);
	}
	atomic_store(&c->synced, true);
	mu_info("controller", "watching %s",
		m->n_namespaces ? c->options.namespaces : "all namespaces");
	if (c->options.leader_election)
		MU_RETURN_IF_ERROR(start(m, "leader", leader_run, c, err));
	for (int i = 0; i < c->options.workers; i++)
		MU_RETURN_IF_ERROR(start(m, "work", work, c, err));
	return c->options.progress_seconds > 0 ? start(m, "progress", progress_run, c, err) : 0;
}

static int start_probes(struct manager *m, struct mu_err *err)
{
	struct controller *c = &m->controller;
	int metrics = c->options.metrics_port, probes = c->options.probe_port;

	if (metrics)
		MU_RETURN_IF_ERROR(probe_server_start(&m->metrics, c, metrics, err));
	return probes && probes != metrics ? probe_server_start(&m->probes, c, probes, err) : 0;
}

/* Waits until the manager is stopped or loses leadership.  Starts watches on demand meanwhile. */
static int wait_for_stop(struct manager *m, struct mu_err *err)
{
	struct controller *c = &m->controller;

	while (!atomic_load(&c->stop->requested) && !atomic_load(&c->lost)) {
		MU_RETURN_IF_ERROR(start_watches(m, err));
		while (sem_wait(&c->stop->wake) != 0)
			; /* a signal */
	}
	return atomic_load(&c->lost)
		   ? mu_fail(err, MU_ABORTED, "leadership was lost; starting over is safe")
		   : 0;
}

static void stop_threads(struct manager *m)
{
	struct controller *c = &m->controller;
	double deadline = mu_clock() + WORKERS_GRACE_S;

	workqueue_stop(&c->queue);
	while (atomic_load(&c->working) && mu_clock() < deadline)
		kube_client_sleep(c->kube, POLL_S); /* kube_client_stop ends the others */
	leader_release(c);
	kube_client_stop(c->kube);
	for (unsigned i = 0; i < m->n_running; i++)
		pthread_join(m->running[i], NULL);
	mu_http_stop(m->metrics);
	mu_http_stop(m->probes);
}

static void manager_free(struct manager *m)
{
	for (unsigned i = 0; i < m->n_watches; i++) {
		free(m->watches[i]->reflector.path);
		free(m->watches[i]);
	}
	controller_fini(&m->controller);
	kube_client_free(m->controller.kube);
	free(m->names);
	free(m);
}

int manager_run(const struct controller_options *options, struct kube_config *config,
		struct controller_stop *stop, struct mu_err *err)
{
	struct manager *m = MU_NEW(struct manager);
	struct controller *c = &m->controller;
	int rc;

	controller_init(c, options, mu_clock);
	c->stop = stop;
	c->io = (struct controller_io){.call = call_server,
				       .get_status = task_get_status,
				       .post = task_post,
				       .now = wall_clock,
				       .may_write = leader_may_write,
				       .user = c};
	rc = kube_client_new(&c->kube, config, err);
	if (rc == 0) {
		if ((rc = token_key_load(c, err)) == 0 && (rc = start_probes(m, err)) == 0 &&
		    (rc = read_namespaces(m, err)) == 0 && (rc = start_watches(m, err)) == 0 &&
		    (rc = start_workers(m, err)) == 0)
			rc = wait_for_stop(m, err);
		stop_threads(m);
	}
	manager_free(m);
	return rc;
}
