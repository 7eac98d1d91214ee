/* SPDX-License-Identifier: Apache-2.0 */
/* Event recorder for events.k8s.io/v1.  An event that repeats within five minutes is counted: the
 * series of the first one is patched when the count reaches a power of two.
 *
 * A thread posts the events in order and retries while the API server is away.  Events are best
 * effort: when too many wait, new ones are dropped.  Without the thread (in tests) event_record
 * posts at once. */
#include "operator/controller/events.h"

#include <stdio.h>
#include <sys/random.h>

#include "lib/base/log.h"
#include "lib/base/rfc3339.h"
#include "operator/controller/controller.h"
#include "operator/controller/json_build.h"
#include "operator/controller/reconcile.h"

enum { RECENT_MAX = 4096, NOTE_MAX = 1000, WAITING_MAX = 4096, TRIES = 5 };
static const double SERIES_S = 300;

struct event_series {
	char name[128];
	unsigned count;
	double last;
};

/* An event that waits to be posted. */
struct pending_event {
	struct pending_event *next;
	char *path, *body;
	bool series;
};

static void pending_free(struct pending_event *p)
{
	free(p->path);
	free(p->body);
	free(p);
}

void events_init(struct event_recorder *e)
{
	memset(e, 0, sizeof(*e));
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	mu_map_init(&e->recent);
	e->last = &e->first;
}

void events_fini(struct event_recorder *e)
{
	for (struct pending_event *p; (p = e->first);) {
		e->first = p->next;
		pending_free(p);
	}
	mu_map_each (&e->recent, s)
		free(s->value);
	mu_map_fini(&e->recent);
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->lock);
}

static cJSON *event_of(struct reconcile *r, const char *name, bool warning, const char *reason,
		       const char *note)
{
	const struct job *job = r->seen->job;
	const struct object *meta = &job->meta;
	char when[MU_RFC3339];

	mu_rfc3339_write_micro(when, r->now);
	return json_pack("{'apiVersion': 'events.k8s.io/v1', 'kind': 'Event',"
			 " 'metadata': {'name': %s, 'namespace': %s}, 'eventTime': %s,"
			 " 'reportingController': 'muster.dev/operator', 'reportingInstance': %s,"
			 " 'action': %s, 'reason': %s, 'note': %s, 'type': %s,"
			 " 'regarding': {'apiVersion': '" JOB_API_VERSION "', 'kind': '" JOB_KIND
			 "',"
			 "  'namespace': %s, 'name': %s, 'uid': %s, 'resourceVersion': %s}}",
			 name, meta->namespace, when, r->controller->options.identity, reason,
			 reason, note, warning ? "Warning" : "Normal", meta->namespace, meta->name,
			 meta->uid, job->resource_version);
}

/* The patch of an event that happened again. */
static cJSON *series_of(const struct event_series *s, double now)
{
	char when[MU_RFC3339];

	mu_rfc3339_write_micro(when, now);
	return json_pack("{'series': {'count': %d, 'lastObservedTime': %s}}", (int)s->count, when);
}

/* Counts the event; true when it, or its series (out->count > 1), has to be posted. */
static bool count_event(struct event_recorder *e, const char *key, const char *job, double now,
			struct event_series *out)
{
	struct event_series *s;
	unsigned long long id = 0;
	bool write = true;

	pthread_mutex_lock(&e->lock);
	if (e->recent.count > RECENT_MAX) { /* forgetting costs a repeated event at worst */
		mu_map_each (&e->recent, slot)
			free(slot->value);
		mu_map_fini(&e->recent);
		mu_map_init(&e->recent);
	}
	s = mu_map_get(&e->recent, key);
	if (s && now - s->last < SERIES_S) {
		s->count++;
		write = (s->count & (s->count - 1)) == 0;
	} else {
		if (!s) {
			s = MU_NEW(struct event_series);
			mu_map_put(&e->recent, key, s);
		}
		if (getrandom(&id, sizeof(id), 0) != sizeof(id))
			id = (unsigned long long)(now * 1e6);
		snprintf(s->name, sizeof(s->name), "%.80s.%016llx", job, id);
		s->count = 1;
	}
	s->last = now;
	*out = *s;
	pthread_mutex_unlock(&e->lock);
	return write;
}

static struct pending_event *pending_new(struct reconcile *r, const struct event_series *s,
					 bool warning, const char *reason, const char *note)
{
	struct pending_event *p = MU_NEW(struct pending_event);
	cJSON *body;

	p->series = s->count > 1;
	p->path = mu_xasprintf("/apis/events.k8s.io/v1/namespaces/%s/events%s%s",
			       r->seen->job->meta.namespace, p->series ? "/" : "",
			       p->series ? s->name : "");
	body = p->series ? series_of(s, r->now) : event_of(r, s->name, warning, reason, note);
	p->body = cJSON_PrintUnformatted(body);
	cJSON_Delete(body);
	return p;
}

static int post(struct controller *c, const struct pending_event *p, struct mu_err *err)
{
	return controller_send(c,
			       &(struct kube_request){.method = p->series ? "PATCH" : "POST",
						      .path = p->path,
						      .body = mu_span_of(p->body)},
			       NULL, err);
}

static bool is_temporary(int rc)
{
	return rc == -MU_UNAVAILABLE || rc == -MU_RESOURCE_EXHAUSTED || rc == -MU_DEADLINE_EXCEEDED;
}

/* Posts the event and frees it.  A retry after a lost answer finds the event already there. */
static void post_with_retry(struct controller *c, struct pending_event *p, int tries)
{
	struct mu_err err = {0};
	int rc = post(c, p, &err);

	for (int i = 1; i < tries && is_temporary(rc) && kube_client_sleep(c->kube, i); i++)
		rc = post(c, p, &err);
	if (rc < 0 && rc != -MU_ALREADY_EXISTS)
		mu_debug("controller", "an event was not written: %s", err.msg);
	pending_free(p);
}

void event_record(struct reconcile *r, bool warning, const char *reason, const char *fmt, ...)
{
	struct event_recorder *e = &r->controller->events;
	MU_AUTO_FREE char *key = NULL;
	struct event_series series;
	struct pending_event *p;
	char note[NOTE_MAX];
	bool posting;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(note, sizeof(note), fmt, ap);
	va_end(ap);
	key = mu_xasprintf("%s|%s|%s", r->seen->job->meta.uid, reason, note);
	if (!count_event(e, key, r->seen->job->meta.name, r->now, &series))
		return;
	p = pending_new(r, &series, warning, reason, note);
	pthread_mutex_lock(&e->lock);
	posting = atomic_load(&e->posting) && !e->stopped;
	if (posting && e->n < WAITING_MAX) {
		*e->last = p;
		e->last = &p->next;
		e->n++;
		pthread_cond_signal(&e->changed);
		p = NULL;
	}
	pthread_mutex_unlock(&e->lock);
	if (p && !posting)
		post_with_retry(r->controller, p, 1);
	else if (p)
		pending_free(p);
}

/* Waits for an event; NULL once stopped and none is left. */
static struct pending_event *next_event(struct event_recorder *e)
{
	struct pending_event *p;

	pthread_mutex_lock(&e->lock);
	while (!e->first && !e->stopped)
		pthread_cond_wait(&e->changed, &e->lock);
	p = e->first;
	if (p) {
		e->first = p->next;
		e->n--;
	}
	if (!e->first)
		e->last = &e->first;
	pthread_mutex_unlock(&e->lock);
	return p;
}

void *events_run(void *controller)
{
	struct controller *c = controller;
	struct pending_event *p;

	atomic_store(&c->events.posting, 1);
	while ((p = next_event(&c->events)))
		post_with_retry(c, p, TRIES);
	atomic_store(&c->events.posting, 0);
	return NULL;
}

void events_stop(struct event_recorder *e)
{
	pthread_mutex_lock(&e->lock);
	e->stopped = true;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
}
