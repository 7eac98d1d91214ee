/* SPDX-License-Identifier: Apache-2.0 */
/* Events in events.k8s.io/v1.  One that was said within the last five minutes is not said again but
 * counted; its series is written when the count reaches a power of two.
 *
 * Events are for people, nothing depends on them: a thread of their own writes them, when nothing
 * is being made and few jobs wait to be looked at or they are two seconds old, and tries again
 * while the server is away. Where there is no such thread (in tests) they are written at once. */
#include "operator/control/events.h"

#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#include "lib/base/log.h"
#include "lib/base/rfc3339.h"
#include "operator/control/control.h"
#include "operator/control/reconcile.h"

enum { RECENT_MAX = 4096, NOTE_MAX = 1000, WAITING_MAX = 4096, TRIES = 5 };
static const double series_s = 300, patience_s = 2, pause_s = 0.02;

struct event_series {
	char name[128];
	unsigned count;
	double last;
};

static void letter_free(struct event_letter *l)
{
	free(l->path);
	free(l->body);
	free(l);
}

void events_init(struct event_log *e)
{
	memset(e, 0, sizeof(*e));
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	mu_map_init(&e->recent);
	e->last = &e->first;
}

void events_fini(struct event_log *e)
{
	mu_map_each (&e->recent, s)
		free(s->value);
	mu_map_fini(&e->recent);
	while (e->first) {
		struct event_letter *l = e->first;
		e->first = l->next;
		letter_free(l);
	}
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->lock);
}

static void micro_time(double t, char out[40])
{
	char whole[32];

	mu_rfc3339_write_clock(whole, t);
	whole[strlen(whole) - 1] = 0; /* the Z */
	snprintf(out, 40, "%s.%06dZ", whole, (int)((t - (double)(long long)t) * 1e6));
}

static cJSON *event_object(struct reconcile *r, const char *name, bool warning, const char *reason,
			   const char *note)
{
	const struct snapshot *job = r->seen;
	cJSON *e = cJSON_CreateObject(), *m, *about;
	char when[40];

	micro_time(r->now, when);
	cJSON_AddStringToObject(e, "apiVersion", "events.k8s.io/v1");
	cJSON_AddStringToObject(e, "kind", "Event");
	m = cJSON_AddObjectToObject(e, "metadata");
	cJSON_AddStringToObject(m, "name", name);
	cJSON_AddStringToObject(m, "namespace", job->ns);
	cJSON_AddStringToObject(e, "eventTime", when);
	cJSON_AddStringToObject(e, "reportingController", "muster.dev/operator");
	cJSON_AddStringToObject(e, "reportingInstance", r->control->options.identity);
	cJSON_AddStringToObject(e, "action", reason);
	cJSON_AddStringToObject(e, "reason", reason);
	cJSON_AddStringToObject(e, "note", note);
	cJSON_AddStringToObject(e, "type", warning ? "Warning" : "Normal");
	about = cJSON_AddObjectToObject(e, "regarding");
	cJSON_AddStringToObject(about, "apiVersion", JOB_API_VERSION);
	cJSON_AddStringToObject(about, "kind", JOB_KIND);
	cJSON_AddStringToObject(about, "namespace", job->ns);
	cJSON_AddStringToObject(about, "name", job->name);
	cJSON_AddStringToObject(about, "uid", job->uid);
	cJSON_AddStringToObject(about, "resourceVersion", job->resource_version);
	return e;
}

/* Counts it; true when something is to be written, with what and how often it was said. */
static bool count_event(struct event_log *e, const char *key, const char *job, double now,
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
	if (s && now - s->last < series_s) {
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

static struct event_letter *series_letter(struct reconcile *r, const struct event_series *s)
{
	struct event_letter *l = MU_NEW(struct event_letter);
	char when[40];

	micro_time(r->now, when);
	l->series = true;
	l->path =
	    mu_xasprintf("/apis/events.k8s.io/v1/namespaces/%s/events/%s", r->seen->ns, s->name);
	l->body =
	    mu_xasprintf("{\"series\":{\"count\":%u,\"lastObservedTime\":\"%s\"}}", s->count, when);
	return l;
}

static struct event_letter *event_letter(struct reconcile *r, const char *name, bool warning,
					 const char *reason, const char *note)
{
	struct event_letter *l = MU_NEW(struct event_letter);
	cJSON *e = event_object(r, name, warning, reason, note);

	l->path = mu_xasprintf("/apis/events.k8s.io/v1/namespaces/%s/events", r->seen->ns);
	l->body = cJSON_PrintUnformatted(e);
	cJSON_Delete(e);
	return l;
}

static int post(struct control *c, const struct event_letter *l, struct mu_err *err)
{
	return c->io.call(c->io.user,
			  &(struct kube_request){
			      .method = l->series ? "PATCH" : "POST",
			      .path = l->path,
			      .content_type = l->series ? "application/merge-patch+json" : NULL,
			      .body = mu_span_of(l->body)},
			  NULL, err);
}

/* To the thread that writes them, or at once when there is none or it is far behind. */
static void hand_over(struct control *c, struct event_letter *l)
{
	struct event_log *e = &c->events;
	struct mu_err err = {0};

	l->since = c->queue.now();
	pthread_mutex_lock(&e->lock);
	if (atomic_load(&e->posting) && !e->stopped && e->n < WAITING_MAX) {
		*e->last = l;
		e->last = &l->next;
		e->n++;
		pthread_cond_signal(&e->changed);
		l = NULL;
	}
	pthread_mutex_unlock(&e->lock);
	if (!l)
		return;
	if (post(c, l, &err) < 0)
		mu_debug("control", "an event was not written: %s", err.msg);
	letter_free(l);
}

void event_say(struct reconcile *r, bool warning, const char *reason, const char *fmt, ...)
{
	struct event_series series;
	char note[NOTE_MAX];
	MU_AUTO_FREE char *key = NULL;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(note, sizeof(note), fmt, ap);
	va_end(ap);
	key = mu_xasprintf("%s|%s|%s", r->seen->uid, reason, note);
	if (!count_event(&r->control->events, key, r->seen->name, r->now, &series))
		return;
	hand_over(r->control, series.count > 1
				  ? series_letter(r, &series)
				  : event_letter(r, series.name, warning, reason, note));
}

/* ---- the thread ---- */

/* The next one, when it is its turn: pods that wait to be made come first, for a while. */
static struct event_letter *next_letter(struct control *c)
{
	struct event_log *e = &c->events;
	struct event_letter *l;

	pthread_mutex_lock(&e->lock);
	while (!e->first && !e->stopped)
		pthread_cond_wait(&e->changed, &e->lock);
	l = e->first;
	if (l) {
		e->first = l->next;
		if (!e->first)
			e->last = &e->first;
		e->n--;
	}
	pthread_mutex_unlock(&e->lock);
	return l;
}

static bool must_wait(struct control *c, const struct event_letter *l)
{
	bool stopped;

	pthread_mutex_lock(&c->events.lock);
	stopped = c->events.stopped;
	pthread_mutex_unlock(&c->events.lock);
	return !stopped && control_busy(c) && c->queue.now() - l->since < patience_s;
}

static bool is_passing(int rc)
{
	return rc == -MU_UNAVAILABLE || rc == -MU_RESOURCE_EXHAUSTED || rc == -MU_DEADLINE_EXCEEDED;
}

void *events_run(void *control)
{
	struct control *c = control;
	struct event_letter *l;

	while ((l = next_letter(c))) {
		struct mu_err err = {0};
		int rc;

		while (must_wait(c, l) && kube_client_sleep(c->kube, pause_s))
			;
		rc = post(c, l, &err);
		for (int i = 1; i < TRIES && is_passing(rc) && kube_client_sleep(c->kube, i); i++)
			rc = post(c, l, &err);
		/* after an answer that was lost it is there already */
		if (rc < 0 && rc != -MU_ALREADY_EXISTS)
			mu_debug("control", "an event was not written: %s", err.msg);
		letter_free(l);
	}
	atomic_store(&c->events.posting, false);
	return NULL;
}

void events_stop(struct event_log *e)
{
	pthread_mutex_lock(&e->lock);
	e->stopped = true;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
}
