/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the threads, waits for the signal, stops them in order: queue, workers, lease, watches. */
#include <stdio.h>
#include <time.h>

#include "lib/base/log.h"
#include "operator/control/control.h"

enum { WORKERS_MAX = 32, NAMESPACES_MAX = 64, KINDS = 4, STARTUP_LOG_S = 10, GRACE_TICKS = 30 };

static const double burst_s = 0.03;

struct kind {
	const char *name, *group, *resource, *selector;
	void (*begin)(void *);
	void (*seen)(void *, const cJSON *);
	void (*gone)(void *, const cJSON *);
	void (*end)(void *);
	bool cluster_wide, optional;
};
static const struct kind kinds[KINDS] = {
    {"jobs", "/apis/" JOB_API_VERSION, "distributedtrainingjobs", NULL, cache_jobs_begin,
     cache_job_seen, cache_job_gone, cache_jobs_end, false, false},
    {"pods", "/api/v1", "pods", LABEL_JOB, cache_pods_begin, cache_pod_seen, cache_pod_gone,
     cache_pods_end, false, false},
    {"services", "/api/v1", "services", LABEL_JOB, cache_services_begin, cache_service_seen,
     cache_service_gone, cache_services_end, false, false},
    {"nodes", "/api/v1", "nodes", NULL, cache_nodes_begin, cache_node_seen, cache_node_gone,
     cache_nodes_end, true, true},
};

struct threads {
	struct control *control;
	struct kube_reflector reflectors[KINDS * NAMESPACES_MAX];
	pthread_t watches[KINDS * NAMESPACES_MAX], workers[WORKERS_MAX], leader, progress;
	unsigned n_watches, n_workers;
	bool has_leader, has_progress;
};

static double monotonic(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double wall_clock(void *user)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int call_server(void *user, const struct kube_request *rq, cJSON **out, struct mu_err *err)
{
	struct control *c = user;

	if (strcmp(rq->method, "GET") != 0 && !leader_may_write(c))
		return mu_fail(err, MU_CANCELLED, "another operator may lead now");
	return kube_call(c->kube, rq, out, err);
}

static int finish_task(void *user, const char *ip, int port, struct mu_err *err)
{
	struct control *c = user;
	char url[128];

	snprintf(url, sizeof(url),
		 strchr(ip, ':') ? "http://[%.64s]:%d/finish" : "http://%.64s:%d/finish", ip, port);
	return kube_poke(c->kube, url, err);
}

static void job_changed(void *control, const char *key)
{
	struct control *c = control;
	if (!c->options.leader_election || atomic_load(&c->leading))
		workqueue_add(&c->queue, key);
}

/* Pods change in bursts: a look a little later sees all of one. */
static void pod_changed(void *control, const char *key)
{
	struct control *c = control;
	if (!c->options.leader_election || atomic_load(&c->leading))
		workqueue_after(&c->queue, key, burst_s);
}

void control_work(struct control *c, const char *key)
{
	struct mu_err err = {0};
	double wake = 0;
	int rc = 0;

	if (c->io.may_write(c->io.user)) {
		rc = reconcile(c, key, &wake, &err);
		atomic_fetch_add(&c->reconciles, 1);
	}
	if (rc < 0 && !(c->kube && kube_client_stopped(c->kube))) {
		atomic_fetch_add(&c->reconcile_errors, 1);
		/* the watches say once that the server is away; each job need not */
		if (rc == -MU_UNAVAILABLE || rc == -MU_ABORTED)
			mu_debug("control", "%s", err.msg);
		else
			mu_warn("control", "%s", err.msg);
		workqueue_again(&c->queue, key);
	} else {
		workqueue_forget(&c->queue, key);
		if (wake > 0)
			workqueue_after(&c->queue, key, wake);
	}
	workqueue_done(&c->queue, key);
}

static void *work(void *control)
{
	struct control *c = control;
	char *key;

	atomic_fetch_add(&c->working, 1);
	while ((key = workqueue_get(&c->queue))) {
		control_work(c, key);
		free(key);
	}
	atomic_fetch_sub(&c->working, 1);
	return NULL;
}

static void add_watch(struct threads *t, const struct kind *k, const char *ns)
{
	struct kube_reflector *r = &t->reflectors[t->n_watches];

	r->client = t->control->kube;
	r->name = k->name;
	r->path = ns ? mu_xasprintf("%s/namespaces/%s/%s", k->group, ns, k->resource)
		     : mu_xasprintf("%s/%s", k->group, k->resource);
	r->selector = k->selector;
	r->begin = k->begin;
	r->seen = k->seen;
	r->gone = k->gone;
	r->end = k->end;
	r->arg = &t->control->cache;
	if (pthread_create(&t->watches[t->n_watches], NULL, kube_reflector_run, r) == 0)
		t->n_watches++;
	else
		free(r->path);
}

/* One watch of each kind, or one for each namespace of the list. */
static int start_watches(struct threads *t, struct mu_err *err)
{
	const char *list = t->control->options.namespaces;
	MU_AUTO_FREE char *copy = mu_xstrdup(list ? list : "");
	bool all = !list || !*list;
	char *save = NULL;
	unsigned want = 0, n = 0;

	for (unsigned k = 0; k < KINDS; k++) {
		if (all) {
			add_watch(t, &kinds[k], NULL);
			want++;
		}
	}
	for (char *ns = all ? NULL : strtok_r(copy, ", ", &save); ns;
	     ns = strtok_r(NULL, ", ", &save)) {
		if (++n > 1)
			return mu_fail(err, MU_UNIMPLEMENTED,
				       "one namespace or all of them can be watched: run one "
				       "operator for each namespace");
		for (unsigned k = 0; k < KINDS; k++) {
			if (kinds[k].cluster_wide)
				continue; /* a Role cannot give it; kernels are then trusted */
			add_watch(t, &kinds[k], ns);
			want++;
		}
	}
	if (t->n_watches != want)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no threads for the watches");
	return 0;
}

static bool all_synced(const struct threads *t)
{
	for (unsigned i = 0; i < t->n_watches; i++)
		if (!atomic_load(&t->reflectors[i].synced) &&
		    strcmp(t->reflectors[i].name, "nodes") != 0)
			return false;
	return true;
}

/* Nodes are waited for a little: with labels the first choice is the right one. */
static bool nodes_synced(const struct threads *t)
{
	for (unsigned i = 0; i < t->n_watches; i++)
		if (strcmp(t->reflectors[i].name, "nodes") == 0 &&
		    !atomic_load(&t->reflectors[i].synced) &&
		    !atomic_load(&t->reflectors[i].failing))
			return false;
	return true;
}

static int start_workers(struct threads *t, struct mu_err *err)
{
	struct control *c = t->control;
	int wanted = c->options.workers < 1             ? 1
		     : c->options.workers > WORKERS_MAX ? WORKERS_MAX
							: c->options.workers;

	while ((int)t->n_workers < wanted) {
		if (pthread_create(&t->workers[t->n_workers], NULL, work, c) != 0)
			return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no threads for workers");
		t->n_workers++;
	}
	if (c->options.progress_seconds > 0)
		t->has_progress = pthread_create(&t->progress, NULL, progress_run, c) == 0;
	return 0;
}

static void nap(void)
{
	struct timespec t = {0, 100000000};
	nanosleep(&t, NULL);
}

static int run_threads(struct threads *t, const _Atomic bool *stop, struct mu_err *err)
{
	struct control *c = t->control;
	double began = monotonic();
	bool told = false;
	int rc = start_watches(t, err);

	while (rc == 0 && !atomic_load(stop) && !(all_synced(t) && nodes_synced(t))) {
		nap();
		if (!told && monotonic() - began > STARTUP_LOG_S) {
			mu_warn("control", "still waiting for the first lists");
			told = true;
		}
	}
	if (rc == 0 && !atomic_load(stop)) {
		atomic_store(&c->synced, true);
		mu_info("control", "watching %s; %u jobs",
			c->options.namespaces && *c->options.namespaces ? c->options.namespaces
									: "all namespaces",
			cache_count(&c->cache));
		if (c->options.leader_election)
			t->has_leader = pthread_create(&t->leader, NULL, leader_run, c) == 0;
		rc = start_workers(t, err);
	}
	while (rc == 0 && !atomic_load(stop) && !atomic_load(&c->lost))
		nap();
	if (rc == 0 && atomic_load(&c->lost))
		rc = mu_fail(err, MU_ABORTED, "leadership was lost; starting over is safe");
	return rc;
}

static void stop_threads(struct threads *t)
{
	struct control *c = t->control;

	workqueue_stop(&c->queue);
	for (int i = 0; i < GRACE_TICKS && atomic_load(&c->working); i++)
		nap(); /* for what is under way; the rest is cut off below */
	if (t->has_leader && !atomic_load(&c->lost))
		leader_release(c);
	kube_client_stop(c->kube);
	for (unsigned i = 0; i < t->n_workers; i++)
		pthread_join(t->workers[i], NULL);
	if (t->has_leader)
		pthread_join(t->leader, NULL);
	if (t->has_progress)
		pthread_join(t->progress, NULL);
	for (unsigned i = 0; i < t->n_watches; i++) {
		pthread_join(t->watches[i], NULL);
		free(t->reflectors[i].path);
	}
}

void control_init(struct control *c, const struct control_options *options, double (*now)(void))
{
	memset(c, 0, sizeof(*c));
	c->options = *options;
	cache_init(&c->cache, job_changed, c);
	c->cache.pod_changed = pod_changed;
	workqueue_init(&c->queue, now);
	events_init(&c->events);
}

void control_fini(struct control *c)
{
	events_fini(&c->events);
	workqueue_fini(&c->queue);
	cache_fini(&c->cache);
}

int control_run(const struct control_options *options, struct kube_config *config,
		const _Atomic bool *stop, struct mu_err *err)
{
	struct control c;
	struct threads *t;
	struct probe_server *metrics = NULL, *probes = NULL;
	int rc;

	control_init(&c, options, monotonic);
	rc = kube_client_new(&c.kube, config, err);
	if (rc < 0) {
		control_fini(&c);
		return rc;
	}
	t = MU_NEW(struct threads);
	t->control = &c;
	c.io = (struct control_io){call_server, finish_task, wall_clock, leader_may_write, &c};
	if (options->metrics_port)
		rc = probe_server_start(&metrics, &c, options->metrics_port, err);
	if (rc == 0 && options->probe_port && options->probe_port != options->metrics_port)
		rc = probe_server_start(&probes, &c, options->probe_port, err);
	if (rc == 0)
		rc = run_threads(t, stop, err);
	stop_threads(t);
	probe_server_stop(metrics);
	probe_server_stop(probes);
	control_fini(&c);
	kube_client_free(c.kube);
	free(t);
	return rc;
}
