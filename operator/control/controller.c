/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the threads, waits for the signal, stops them in order: queue, workers, lease, watches. */
#include "operator/control/controller.h"

#include <stdio.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/net/http_server.h"
#include "operator/control/http.h"
#include "operator/control/leader.h"
#include "operator/control/progress.h"
#include "operator/control/reconcile.h"
#include "operator/control/task_token.h"

enum {
	WORKERS_MAX = 32,
	NAMESPACES_MAX = 64,
	STARTUP_LOG_S = 10,
	GRACE_TICKS = 12,
	CALLS_TOGETHER = 8,
	EVENTS_TICKS = 24, /* for the events that wait */
	TICK_MS = 250,
	SYNC_MS = 5
};

struct kind {
	const char *name, *group, *resource, *selector;
	const struct kube_fields *fields;
	void (*begin)(void *, const char *);
	void (*seen)(void *, const cJSON *);
	void (*gone)(void *, const cJSON *);
	void (*end)(void *, const char *);
	unsigned wanted; /* watched once this bit is asked for; 0: from the start */
	bool of_cluster; /* not in a namespace, and what is known without it will do */
	double gather;   /* kube_reflector's */
};
static const struct kind kinds[] = {
    {"jobs", "/apis/" JOB_API_VERSION, "distributedtrainingjobs", NULL, job_fields,
     cache_jobs_begin, cache_job_seen, cache_job_gone, cache_jobs_end, 0, false, 0.03},
    {"pods", "/api/v1", "pods", LABEL_JOB, pod_fields, cache_pods_begin, cache_pod_seen,
     cache_pod_gone, cache_pods_end, 0, false, 0.1},
    {"services", "/api/v1", "services", LABEL_JOB, cache_owned_fields, cache_services_begin,
     cache_service_seen, cache_service_gone, cache_services_end, 0, false, 0.5},
    {"nodes", "/api/v1", "nodes", NULL, cache_node_fields, cache_nodes_begin, cache_node_seen,
     cache_node_gone, cache_nodes_end, 0, true, 0.5},
    {"networkpolicies", "/apis/networking.k8s.io/v1", "networkpolicies", LABEL_JOB,
     cache_owned_fields, cache_policies_begin, cache_policy_seen, cache_policy_gone,
     cache_policies_end, WATCH_POLICIES, false, 0.5},
    {"volcano's podgroups", "/apis/scheduling.volcano.sh/v1beta1", "podgroups", LABEL_JOB,
     cache_group_fields, cache_volcanos_begin, cache_volcano_seen, cache_volcano_gone,
     cache_volcanos_end, WATCH_VOLCANO, false, 0.1},
    {"the scheduler plug-ins' podgroups", "/apis/scheduling.x-k8s.io/v1alpha1", "podgroups",
     LABEL_JOB, cache_group_fields, cache_plugins_begin, cache_plugin_seen, cache_plugin_gone,
     cache_plugins_end, WATCH_SCHEDULER_PLUGINS, false, 0.1},
};
enum { KINDS = MU_COUNT(kinds) };

/* One reflector, with what its handlers need to know. */
struct watch {
	struct kube_reflector reflector;
	const struct kind *kind;
	struct cache *cache;
	char *ns; /* NULL: all */
	pthread_t thread;
};

struct threads {
	struct control *control;
	char *names; /* of the namespaces, cut up */
	const char *namespaces[NAMESPACES_MAX];
	struct watch *watches[KINDS * NAMESPACES_MAX];
	pthread_t workers[WORKERS_MAX], leader, progress, events;
	unsigned n_namespaces, n_watches, n_workers, watched; /* watched: of watch_wanted */
	bool has_leader, has_progress, has_events;
};

static double wall_clock(void *user)
{
	return mu_wall();
}

/* Nothing is written once leadership may have passed, not even a second time after a wait. */
static struct kube_request guarded(struct control *c, const struct kube_request *rq)
{
	struct kube_request out = *rq;

	if (strcmp(rq->method, "GET") != 0) {
		out.may = leader_may_write;
		out.arg = c;
	}
	return out;
}

static int call_server(void *user, const struct kube_request *rq, cJSON **out, struct mu_err *err)
{
	struct control *c = user;
	struct kube_request mine = guarded(c, rq);

	return kube_call(c->kube, &mine, out, err);
}

static unsigned call_server_many(void *user, const struct kube_request *rqs, unsigned n,
				 struct kube_reply *out)
{
	struct control *c = user;
	struct kube_request mine[CALLS_TOGETHER];

	n = n < CALLS_TOGETHER ? n : CALLS_TOGETHER;
	for (unsigned i = 0; i < n; i++)
		mine[i] = guarded(c, &rqs[i]);
	return kube_call_many(c->kube, mine, n, out);
}

static int finish_task(void *user, const char *ip, const char *job_uid, struct mu_err *err)
{
	return task_post(user, ip, job_uid, "finish", MU_SPAN(""), err);
}

void control_work(struct control *c, const char *key)
{
	struct mu_err err = {0};
	double wake = 0, began = c->queue.now();
	int rc = 0;

	if (c->io.may_write(c->io.user)) {
		rc = reconcile(c, key, &wake, &err);
		mu_histogram_add(&c->looked, c->queue.now() - began);
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
		if (wake > 0) /* a deadline does not wait for the back-off */
			workqueue_after(&c->queue, key, wake);
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

void control_stop_init(struct control_stop *stop)
{
	atomic_store(&stop->asked, false);
	sem_init(&stop->wake, 0, 0);
}

bool control_stop(struct control_stop *stop)
{
	bool before = atomic_exchange(&stop->asked, true);

	sem_post(&stop->wake);
	return before;
}

static void list_begins(void *watch)
{
	struct watch *w = watch;
	w->kind->begin(w->cache, w->ns);
}

static void was_seen(void *watch, const cJSON *object)
{
	struct watch *w = watch;
	w->kind->seen(w->cache, object);
}

static void is_gone(void *watch, const cJSON *object)
{
	struct watch *w = watch;
	w->kind->gone(w->cache, object);
}

static void list_ends(void *watch)
{
	struct watch *w = watch;
	w->kind->end(w->cache, w->ns);
}

/* Names show where the time goes. */
static bool start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
	char cut[16]; /* the kernel takes no longer ones */

	if (pthread_create(thread, NULL, run, arg) != 0)
		return false;
	snprintf(cut, sizeof(cut), "%.15s", name);
	pthread_setname_np(*thread, cut);
	return true;
}

static int add_watch(struct threads *t, const struct kind *k, const char *ns, struct mu_err *err)
{
	struct watch *w = MU_NEW(struct watch);

	w->kind = k;
	w->cache = &t->control->cache;
	w->ns = ns ? mu_xstrdup(ns) : NULL;
	w->reflector = (struct kube_reflector){
	    .client = t->control->kube,
	    .name = k->name,
	    .path = ns ? mu_xasprintf("%s/namespaces/%s/%s", k->group, ns, k->resource)
		       : mu_xasprintf("%s/%s", k->group, k->resource),
	    .selector = k->selector,
	    .fields = k->fields,
	    .gather = k->gather,
	    .begin = list_begins,
	    .seen = was_seen,
	    .gone = is_gone,
	    .end = list_ends,
	    .arg = w,
	};
	if (start(&w->thread, k->name, kube_reflector_run, &w->reflector)) {
		t->watches[t->n_watches++] = w;
		return 0;
	}
	free(w->reflector.path);
	free(w->ns);
	free(w);
	return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no threads for the watches");
}

/* Cuts the list into names. */
static int read_namespaces(struct threads *t, struct mu_err *err)
{
	const char *list = t->control->options.namespaces;
	char *save = NULL;

	t->names = mu_xstrdup(list ? list : "");
	for (char *ns = strtok_r(t->names, ", ", &save); ns; ns = strtok_r(NULL, ", ", &save)) {
		size_t n = strspn(ns, "abcdefghijklmnopqrstuvwxyz0123456789-");
		bool twice = false;

		if (ns[n] || n > 63)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "'%.80s' is no name of a namespace", ns);
		for (unsigned i = 0; i < t->n_namespaces; i++)
			twice = twice || strcmp(t->namespaces[i], ns) == 0;
		if (twice)
			continue;
		if (t->n_namespaces == NAMESPACES_MAX)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "more than %d namespaces: watch them all, or run one more "
				       "operator",
				       NAMESPACES_MAX);
		t->namespaces[t->n_namespaces++] = ns;
	}
	return 0;
}

/* Starts one watch of each kind, or one for each namespace of the list, for all kinds that are
 * asked for with one of `bits` (0: those from the start). */
static int start_watches(struct threads *t, unsigned bits, struct mu_err *err)
{
	int rc = 0;

	for (unsigned k = 0; k < KINDS && rc == 0; k++) {
		if (bits ? !(kinds[k].wanted & bits) : kinds[k].wanted != 0)
			continue;
		if (kinds[k].of_cluster && !t->control->options.nodes)
			continue; /* a Role cannot give it; kernels are then trusted */
		if (!t->n_namespaces || kinds[k].of_cluster)
			rc = add_watch(t, &kinds[k], NULL, err);
		for (unsigned i = 0; i < t->n_namespaces && rc == 0 && !kinds[k].of_cluster; i++)
			rc = add_watch(t, &kinds[k], t->namespaces[i], err);
	}
	t->watched |= bits;
	return rc;
}

static bool all_synced(const struct threads *t)
{
	for (unsigned i = 0; i < t->n_watches; i++)
		if (!atomic_load(&t->watches[i]->reflector.synced) &&
		    !t->watches[i]->kind->of_cluster)
			return false;
	return true;
}

/* Nodes are waited for a little: with labels the first choice is the right one. */
static bool nodes_synced(const struct threads *t)
{
	for (unsigned i = 0; i < t->n_watches; i++)
		if (t->watches[i]->kind->of_cluster &&
		    !atomic_load(&t->watches[i]->reflector.synced) &&
		    !atomic_load(&t->watches[i]->reflector.failing))
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
		if (!start(&t->workers[t->n_workers], "work", work, c))
			return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no threads for workers");
		t->n_workers++;
	}
	atomic_store(&c->events.posting, true);
	t->has_events = start(&t->events, "events", events_run, c);
	if (!t->has_events)
		atomic_store(&c->events.posting, false);
	if (c->options.progress_seconds > 0)
		t->has_progress = start(&t->progress, "progress", progress_run, c);
	return 0;
}

static void nap(int ms)
{
	struct timespec t = {0, ms * 1000000L};
	nanosleep(&t, NULL);
}

static void wait_until_woken(struct control_stop *stop)
{
	while (sem_wait(&stop->wake) != 0)
		;
}

static int run_threads(struct threads *t, struct mu_err *err)
{
	struct control *c = t->control;
	const _Atomic bool *stop = &c->stop->asked;
	double began = mu_clock();
	bool told = false;
	int rc = read_namespaces(t, err);

	if (rc == 0)
		rc = start_watches(t, 0, err);
	while (rc == 0 && !atomic_load(stop) && !(all_synced(t) && nodes_synced(t))) {
		nap(SYNC_MS);
		if (!told && mu_clock() - began > STARTUP_LOG_S) {
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
		if (!c->options.leader_election)
			leader_begin_term(c);
		else if (!(t->has_leader = start(&t->leader, "leader", leader_run, c)))
			rc = mu_fail(err, MU_RESOURCE_EXHAUSTED,
				     "no thread for the lease: it would never lead");
		if (rc == 0)
			rc = start_workers(t, err);
	}
	while (rc == 0 && !atomic_load(stop) && !atomic_load(&c->lost)) {
		unsigned missing = atomic_load(&c->wanted) & ~t->watched;

		if (missing)
			rc = start_watches(t, missing, err);
		wait_until_woken(c->stop);
	}
	if (rc == 0 && atomic_load(&c->lost))
		rc = mu_fail(err, MU_ABORTED, "leadership was lost; starting over is safe");
	return rc;
}

static void stop_threads(struct threads *t)
{
	struct control *c = t->control;

	workqueue_stop(&c->queue);
	for (int i = 0; i < GRACE_TICKS && atomic_load(&c->working); i++)
		nap(TICK_MS); /* for what is under way; the rest is cut off below */
	events_stop(&c->events);
	for (int i = 0; i < EVENTS_TICKS && atomic_load(&c->events.posting); i++)
		nap(TICK_MS);
	if (t->has_leader && !atomic_load(&c->lost))
		leader_release(c);
	kube_client_stop(c->kube);
	for (unsigned i = 0; i < t->n_workers; i++)
		pthread_join(t->workers[i], NULL);
	if (t->has_leader)
		pthread_join(t->leader, NULL);
	if (t->has_progress)
		pthread_join(t->progress, NULL);
	if (t->has_events)
		pthread_join(t->events, NULL);
	for (unsigned i = 0; i < t->n_watches; i++) {
		pthread_join(t->watches[i]->thread, NULL);
		free(t->watches[i]->reflector.path);
		free(t->watches[i]->ns);
		free(t->watches[i]);
	}
	free(t->names);
}

int control_run(const struct control_options *options, struct kube_config *config,
		struct control_stop *stop, struct mu_err *err)
{
	struct control c;
	struct threads *t;
	struct mu_http_server *metrics = NULL, *probes = NULL;
	int rc;

	control_init(&c, options, mu_clock);
	c.stop = stop;
	rc = kube_client_new(&c.kube, config, err);
	if (rc < 0) {
		control_fini(&c);
		return rc;
	}
	t = MU_NEW(struct threads);
	t->control = &c;
	c.io = (struct control_io){.call = call_server,
				   .call_many = call_server_many,
				   .finish = finish_task,
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
	control_fini(&c);
	kube_client_free(c.kube);
	free(t);
	return rc;
}
