/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the threads, waits for the signal, stops them in order: queue, workers, lease, watches. */
#include "operator/controller/manager.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/net/http_server.h"
#include "operator/controller/controller.h"
#include "operator/controller/reconcile.h"

enum {
	WORKERS_MAX = 32,
	NAMESPACES_MAX = 64,
	WATCHES_MAX = KINDS * NAMESPACES_MAX,
	WORKERS_GRACE_S = 3,
};
static const double POLL_S = 0.005;

/* One reflector and its handlers' argument. */
struct watch {
	struct kube_reflector reflector;
	struct store_watch target;
};

struct threads {
	struct controller *controller;
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

void controller_work(struct controller *c, const char *key)
{
	struct mu_err err = {0};
	double requeue_after = 0, began = c->queue.now();
	int rc = 0;

	if (c->io.may_write(c->io.user)) {
		rc = reconcile(c, key, &requeue_after, &err);
		mu_histogram_add(&c->reconcile_seconds, c->queue.now() - began);
		atomic_fetch_add(&c->reconciles, 1);
	}
	if (rc < 0 && !(c->kube && kube_client_stopped(c->kube))) {
		atomic_fetch_add(&c->reconcile_errors, 1);
		/* the watches report once that the server is away; each job need not */
		if (controller_is_unreachable(rc) || rc == -MU_ABORTED)
			mu_debug("controller", "%s", err.msg);
		else
			mu_warn("controller", "%s", err.msg);
		workqueue_add_rate_limited(&c->queue, key);
	} else {
		workqueue_forget(&c->queue, key);
	}
	if (requeue_after > 0) /* a deadline does not wait for the backoff */
		workqueue_add_after(&c->queue, key, requeue_after);
	workqueue_done(&c->queue, key);
}

static void *work(void *controller)
{
	struct controller *c = controller;
	char *key;

	atomic_fetch_add(&c->working, 1);
	while ((key = workqueue_get(&c->queue))) {
		controller_work(c, key);
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
	bool before = atomic_exchange(&stop->requested, true);

	sem_post(&stop->wake);
	return before;
}

/* Starts a thread; the name shows where the time goes. */
static int start(struct threads *t, const char *name, void *(*run)(void *), void *arg,
		 struct mu_err *err)
{
	pthread_t *thread = &t->running[t->n_running];
	char cut[16]; /* the kernel takes no longer ones */

	if (pthread_create(thread, NULL, run, arg) != 0)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no thread for %s", name);
	snprintf(cut, sizeof(cut), "%.15s", name);
	pthread_setname_np(*thread, cut);
	t->n_running++;
	return 0;
}

static int add_watch(struct threads *t, enum object_kind kind, const char *ns, struct mu_err *err)
{
	const struct kind_info *k = &kinds[kind];
	struct watch *w = MU_NEW(struct watch);

	w->target = (struct store_watch){&t->controller->store, kind, ns};
	w->reflector = (struct kube_reflector){
	    .client = t->controller->kube,
	    .name = k->name,
	    .path = ns ? mu_xasprintf("%s/namespaces/%s/%s", k->group, ns, k->resource)
		       : mu_xasprintf("%s/%s", k->group, k->resource),
	    .selector = k->selector,
	    .begin = store_list_begins,
	    .seen = store_object_seen,
	    .gone = store_object_gone,
	    .end = store_list_ends,
	    .arg = &w->target,
	};
	t->watches[t->n_watches++] = w;
	return start(t, k->name, kube_reflector_run, &w->reflector, err);
}

/* Cuts the list into names. */
static int read_namespaces(struct threads *t, struct mu_err *err)
{
	const char *list = t->controller->options.namespaces;
	char *save = NULL;

	t->names = mu_xstrdup(list ? list : "");
	for (char *ns = strtok_r(t->names, ", ", &save); ns; ns = strtok_r(NULL, ", ", &save)) {
		if (!spec_is_label(ns))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "'%.80s' is no name of a namespace", ns);
		if (t->n_namespaces == NAMESPACES_MAX)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "more than %d namespaces: watch them all, or run one more "
				       "operator",
				       NAMESPACES_MAX);
		if (mu_word_index(ns, t->namespaces) < 0)
			t->namespaces[t->n_namespaces++] = ns;
	}
	return 0;
}

/* Starts one watch of each kind in `wanted`, or one for each namespace of the list. */
static int start_watches(struct threads *t, unsigned wanted, struct mu_err *err)
{
	for (int k = 0; k < KINDS; k++) {
		bool of_cluster = kinds[k].of_cluster;

		if (!(wanted & 1U << k))
			continue;
		if (of_cluster && !t->controller->options.nodes)
			continue; /* a Role cannot give it; kernels are then trusted */
		if (!t->n_namespaces || of_cluster)
			MU_RETURN_IF_ERROR(add_watch(t, k, NULL, err));
		for (unsigned i = 0; i < t->n_namespaces && !of_cluster; i++)
			MU_RETURN_IF_ERROR(add_watch(t, k, t->namespaces[i], err));
	}
	t->watched |= wanted;
	return 0;
}

/* True when all lists were delivered.  Nodes are waited for a little: with labels the first choice
 * is the right one. */
static bool is_synced(const struct threads *t)
{
	for (unsigned i = 0; i < t->n_watches; i++) {
		const struct watch *w = t->watches[i];

		if (!atomic_load(&w->reflector.synced) &&
		    !(kinds[w->target.kind].of_cluster && atomic_load(&w->reflector.failing)))
			return false;
	}
	return true;
}

static int start_workers(struct threads *t, struct mu_err *err)
{
	struct controller *c = t->controller;

	if (c->options.leader_election)
		MU_RETURN_IF_ERROR(start(t, "leader", leader_run, c, err));
	for (int i = 0; i < c->options.workers; i++)
		MU_RETURN_IF_ERROR(start(t, "work", work, c, err));
	return c->options.progress_seconds > 0 ? start(t, "progress", progress_run, c, err) : 0;
}

static int run_threads(struct threads *t, struct mu_err *err)
{
	struct controller *c = t->controller;
	const _Atomic bool *stop = &c->stop->requested;
	unsigned first = 0;

	for (int k = 0; k < KINDS; k++)
		first |= kinds[k].on_demand ? 0 : 1U << k;
	MU_RETURN_IF_ERROR(read_namespaces(t, err));
	MU_RETURN_IF_ERROR(start_watches(t, first, err));
	while (!is_synced(t) && !atomic_load(stop))
		kube_client_sleep(c->kube, POLL_S);
	if (!atomic_load(stop)) {
		atomic_store(&c->synced, true);
		mu_info("controller", "watching %s",
			t->n_namespaces ? c->options.namespaces : "all namespaces");
		MU_RETURN_IF_ERROR(start_workers(t, err));
	}
	while (!atomic_load(stop) && !atomic_load(&c->lost)) {
		MU_RETURN_IF_ERROR(start_watches(t, atomic_load(&c->wanted) & ~t->watched, err));
		while (sem_wait(&c->stop->wake) != 0)
			; /* a signal */
	}
	return atomic_load(&c->lost)
		   ? mu_fail(err, MU_ABORTED, "leadership was lost; starting over is safe")
		   : 0;
}

static void stop_threads(struct threads *t)
{
	struct controller *c = t->controller;
	double until = mu_clock() + WORKERS_GRACE_S;

	workqueue_stop(&c->queue);
	while (atomic_load(&c->working) && mu_clock() < until)
		kube_client_sleep(c->kube, POLL_S); /* the rest is cut off below */
	leader_release(c);
	kube_client_stop(c->kube);
	for (unsigned i = 0; i < t->n_running; i++)
		pthread_join(t->running[i], NULL);
	for (unsigned i = 0; i < t->n_watches; i++) {
		free(t->watches[i]->reflector.path);
		free(t->watches[i]);
	}
	free(t->names);
}

int manager_run(const struct controller_options *options, struct kube_config *config,
		struct controller_stop *stop, struct mu_err *err)
{
	struct controller c;
	struct threads *t;
	struct mu_http_server *metrics = NULL, *probes = NULL;
	int rc;

	controller_init(&c, options, mu_clock);
	c.stop = stop;
	rc = kube_client_new(&c.kube, config, err);
	if (rc < 0) {
		controller_fini(&c);
		return rc;
	}
	t = MU_NEW(struct threads);
	t->controller = &c;
	c.io = (struct controller_io){.call = call_server,
				      .get_status = task_get_status,
				      .post = task_post,
				      .now = wall_clock,
				      .may_write = leader_may_write,
				      .user = &c};
	rc = token_key_load(&c, err);
	if (rc == 0 && options->metrics_port)
		rc = probe_server_start(&metrics, &c, options->metrics_port, err);
	if (rc == 0 && options->probe_port && options->probe_port != options->metrics_port)
		rc = probe_server_start(&probes, &c, options->probe_port, err);
	if (rc == 0)
		rc = run_threads(t, err);
	stop_threads(t);
	mu_http_stop(metrics);
	mu_http_stop(probes);
	controller_fini(&c);
	kube_client_free(c.kube);
	free(t);
	return rc;
}
