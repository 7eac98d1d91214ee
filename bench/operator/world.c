/* SPDX-License-Identifier: Apache-2.0 */
/* The pods and jobs as seen by the watches, and a kubelet of several threads. A ps runs as soon as
 * it exists, because some operators create workers only then. Workers run and end on request. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "bench/operator/load.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"

enum { KUBELETS = 8 };
enum stage { CREATED, RUNNING, ENDED };

struct pod {
	struct pod *next; /* list of pods to update */
	char *path;
	bool worker;
	enum stage is, wanted;
};
struct job {
	bool running, succeeded, behind;
};
struct world {
	struct kube_client *client;
	struct kube_reflector pods_watch, jobs_watch;
	pthread_t threads[KUBELETS + 2];
	pthread_mutex_t lock; /* guards all fields below */
	pthread_cond_t changed;
	struct mu_map pods, jobs;
	struct pod *first, **last;
	double *seen; /* time of creation of the n-th pod */
	int cap, n_pods, n_marked, n_running, n_succeeded;
	enum stage workers;
	double news;
	bool stopped;
};

static const cJSON *at(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

static const char *text_at(const cJSON *object, const char *key)
{
	const char *s = cJSON_GetStringValue(at(object, key));
	return s ? s : "";
}

/* ---- the kubelet ---- */

/* Called with the lock held. */
static void want(struct world *w, struct pod *p, enum stage stage)
{
	if (p->wanted >= stage)
		return;
	if (p->wanted == p->is) { /* otherwise it is already in the list */
		p->next = NULL;
		*w->last = p;
		w->last = &p->next;
	}
	p->wanted = stage;
	pthread_cond_broadcast(&w->changed);
}

static void mark(struct world *w, const char *path, enum stage stage)
{
	static const char running[] =
	    "{\"status\":{\"phase\":\"Running\",\"podIP\":\"127.0.0.9\",\"podIPs\":[{\"ip\":"
	    "\"127.0.0.9\"}],\"startTime\":\"%1$s\",\"conditions\":[{\"type\":\"Ready\","
	    "\"status\":\"True\"}],\"containerStatuses\":[{\"name\":\"main\",\"ready\":true,"
	    "\"restartCount\":0,\"image\":\"x\",\"imageID\":\"x\",\"state\":{\"running\":{"
	    "\"startedAt\":\"%1$s\"}}}]}}";
	static const char ended[] =
	    "{\"status\":{\"phase\":\"Succeeded\",\"conditions\":[{\"type\":\"Ready\",\"status\":"
	    "\"False\"}],\"containerStatuses\":[{\"name\":\"main\",\"ready\":false,"
	    "\"restartCount\":0,\"image\":\"x\",\"imageID\":\"x\",\"state\":{\"terminated\":{"
	    "\"exitCode\":0,\"reason\":\"Completed\",\"finishedAt\":\"%s\"}}}]}}";
	MU_AUTO_FREE char *status_path = mu_xasprintf("%s/status", path);
	MU_AUTO_FREE char *body = NULL;
	struct mu_err err = {0};
	char when[32];
	time_t now = time(NULL);
	struct tm tm;

	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	body = stage == RUNNING ? mu_xasprintf(running, when) : mu_xasprintf(ended, when);
	if (kube_call(w->client,
		      &(struct kube_request){.method = "PATCH",
					     .path = status_path,
					     .content_type = "application/merge-patch+json",
					     .body = mu_span_of(body)},
		      NULL, &err) < 0 &&
	    err.code != MU_NOT_FOUND && err.code != MU_CANCELLED)
		fprintf(stderr, "load: %s\n", err.msg);
}

static void *kubelet(void *arg)
{
	struct world *w = arg;

	pthread_mutex_lock(&w->lock);
	while (!w->stopped) {
		struct pod *p = w->first;
		enum stage stage;

		if (!p) {
			pthread_cond_wait(&w->changed, &w->lock);
			continue;
		}
		w->first = p->next;
		if (!w->first)
			w->last = &w->first;
		stage = p->is = p->wanted;
		pthread_mutex_unlock(&w->lock);
		mark(w, p->path, stage);
		pthread_mutex_lock(&w->lock);
		w->n_marked++;
		w->news = mu_clock();
		if (!w->first)
			pthread_cond_broadcast(&w->changed);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* ---- the watches ---- */

static void nothing(void *arg)
{
}

static void nothing_gone(void *arg, const cJSON *object)
{
}

static void pod_seen(void *arg, const cJSON *object)
{
	struct world *w = arg;
	const char *name = text_at(at(object, "metadata"), "name");
	struct pod *p;

	pthread_mutex_lock(&w->lock);
	if (!mu_map_get(&w->pods, name)) {
		p = MU_NEW(struct pod);
		p->path = mu_xasprintf("/api/v1/namespaces/%s/pods/%s",
				       text_at(at(object, "metadata"), "namespace"), name);
		p->worker = strstr(name, "-worker-") != NULL;
		mu_map_put(&w->pods, name, p);
		if (w->n_pods < w->cap)
			w->seen[w->n_pods] = mu_clock();
		w->n_pods++;
		w->news = mu_clock();
		want(w, p, p->worker ? w->workers : RUNNING);
		pthread_cond_broadcast(&w->changed);
	}
	pthread_mutex_unlock(&w->lock);
}

static bool says(const cJSON *job, const char *what)
{
	const cJSON *c;

	if (strcmp(text_at(at(job, "status"), "phase"), what) == 0)
		return true;
	cJSON_ArrayForEach(c, at(at(job, "status"), "conditions"))
	{
		if (strcmp(text_at(c, "type"), what) == 0 &&
		    strcmp(text_at(c, "status"), "True") == 0)
			return true;
	}
	return false;
}

static void job_seen(void *arg, const cJSON *object)
{
	struct world *w = arg;
	const char *name = text_at(at(object, "metadata"), "name");
	const char *ready = text_at(at(at(object, "status"), "summary"), "ready"); /* "6/6" */
	struct job *j;

	pthread_mutex_lock(&w->lock);
	j = mu_map_get(&w->jobs, name);
	if (!j) {
		j = MU_NEW(struct job);
		mu_map_put(&w->jobs, name, j);
	}
	if (!j->running && says(object, "Running")) {
		j->running = true;
		w->n_running++;
		w->news = mu_clock();
	}
	if (!j->succeeded && says(object, "Succeeded")) {
		j->succeeded = true;
		w->n_succeeded++;
		w->news = mu_clock();
	}
	j->behind =
	    strchr(ready, '/') && strncmp(ready, strchr(ready, '/') + 1, strcspn(ready, "/")) != 0;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

static void watch(struct world *w, struct kube_reflector *r, const char *name, const char *path,
		  void (*seen)(void *, const cJSON *))
{
	*r = (struct kube_reflector){.client = w->client,
				     .name = name,
				     .path = mu_xstrdup(path),
				     .list_begin = nothing,
				     .on_upsert = seen,
				     .on_delete = nothing_gone,
				     .list_end = nothing,
				     .arg = w};
}

struct world *world_new(struct kube_client *c, const char *job_path, int cap)
{
	struct world *w = MU_NEW(struct world);
	pthread_condattr_t attr;

	w->client = c;
	w->cap = cap;
	w->seen = MU_NEW_ARRAY(double, (size_t)cap + 1);
	w->last = &w->first;
	w->news = mu_clock();
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	mu_map_init(&w->pods);
	mu_map_init(&w->jobs);
	watch(w, &w->pods_watch, "pods", "/api/v1/namespaces/default/pods", pod_seen);
	watch(w, &w->jobs_watch, "jobs", job_path, job_seen);
	for (int i = 0; i < KUBELETS; i++)
		pthread_create(&w->threads[i], NULL, kubelet, w);
	pthread_create(&w->threads[KUBELETS], NULL, kube_reflector_run, &w->pods_watch);
	pthread_create(&w->threads[KUBELETS + 1], NULL, kube_reflector_run, &w->jobs_watch);
	while (!atomic_load(&w->pods_watch.synced) || !atomic_load(&w->jobs_watch.synced))
		kube_client_sleep(c, 0.05);
	return w;
}

void world_stop(struct world *w)
{
	pthread_mutex_lock(&w->lock);
	w->stopped = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	kube_client_stop(w->client);
	for (int i = 0; i < KUBELETS + 2; i++)
		pthread_join(w->threads[i], NULL);
	free(w->pods_watch.path);
	free(w->jobs_watch.path);
	mu_map_each (&w->pods, s) {
		free(((struct pod *)s->value)->path);
		free(s->value);
	}
	mu_map_each (&w->jobs, s)
		free(s->value);
	mu_map_fini(&w->pods);
	mu_map_fini(&w->jobs);
	free(w->seen);
	free(w);
}

static void move_workers(struct world *w, enum stage stage)
{
	pthread_mutex_lock(&w->lock);
	w->workers = stage;
	w->news = mu_clock();
	mu_map_each (&w->pods, s) {
		struct pod *p = s->value;
		if (p->worker)
			want(w, p, stage);
	}
	pthread_mutex_unlock(&w->lock);
}

void world_run_workers(struct world *w)
{
	move_workers(w, RUNNING);
}

void world_end_workers(struct world *w)
{
	move_workers(w, ENDED);
}

static bool await(struct world *w, const int *count, int n, double seconds)
{
	bool there;

	pthread_mutex_lock(&w->lock);
	while (*count < n && mu_clock() - w->news < seconds) {
		double until = mu_clock() + 0.5;
		struct timespec t = {(time_t)until, (long)((until - (double)(time_t)until) * 1e9)};
		pthread_cond_timedwait(&w->changed, &w->lock, &t);
	}
	there = *count >= n;
	if (!there)
		fprintf(stderr, "load: %d of %d, and nothing new for %.0f s\n", *count, n, seconds);
	pthread_mutex_unlock(&w->lock);
	return there;
}

bool world_await_pods(struct world *w, int n, double seconds)
{
	return await(w, &w->n_pods, n, seconds);
}

bool world_await_marks(struct world *w, int n, double seconds)
{
	return await(w, &w->n_marked, n, seconds);
}

bool world_await_jobs(struct world *w, const char *what, int n, double seconds)
{
	return await(w, strcmp(what, "Running") == 0 ? &w->n_running : &w->n_succeeded, n, seconds);
}

int world_pods_over(struct world *w, int n)
{
	int over;

	pthread_mutex_lock(&w->lock);
	over = w->n_pods - n;
	pthread_mutex_unlock(&w->lock);
	return over;
}

int world_jobs_behind(struct world *w)
{
	int n = 0;

	pthread_mutex_lock(&w->lock);
	mu_map_each (&w->jobs, s)
		n += ((struct job *)s->value)->behind;
	pthread_mutex_unlock(&w->lock);
	return n;
}

double world_pod_time(struct world *w, int n, double share)
{
	int i = (int)(share * n);
	return n > 0 && n <= w->cap ? w->seen[i >= n ? n - 1 : i] : 0;
}
