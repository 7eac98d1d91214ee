/* SPDX-License-Identifier: Apache-2.0 */
/* Events in events.k8s.io/v1.  One that was said within the last five minutes is not said again but
 * counted; its series is written when the count reaches a power of two.  An event that cannot be
 * written is dropped: events are for people, nothing depends on them. */
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#include "lib/base/log.h"
#include "operator/control/control.h"

enum { RECENT_MAX = 4096, NOTE_MAX = 1000 };
static const double series_s = 300;

struct event_series {
	char name[128];
	unsigned count;
	double last;
};

void events_init(struct event_log *e)
{
	pthread_mutex_init(&e->lock, NULL);
	mu_map_init(&e->recent);
}

void events_fini(struct event_log *e)
{
	mu_map_each (&e->recent, s)
		free(s->value);
	mu_map_fini(&e->recent);
	pthread_mutex_destroy(&e->lock);
}

static void micro_time(double t, char out[40])
{
	char whole[32];

	format_time(t, whole);
	whole[strlen(whole) - 1] = 0; /* the Z */
	snprintf(out, 40, "%s.%06dZ", whole, (int)((t - (double)(long long)t) * 1e6));
}

static cJSON *event_object(struct reconcile *r, const char *name, bool warning, const char *reason,
			   const char *note)
{
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(reconcile_object(r), "metadata");
	cJSON *e = cJSON_CreateObject(), *m, *about;
	char when[40];
	static const char *const copied[] = {"namespace", "name", "uid", "resourceVersion"};

	micro_time(r->now, when);
	cJSON_AddStringToObject(e, "apiVersion", "events.k8s.io/v1");
	cJSON_AddStringToObject(e, "kind", "Event");
	m = cJSON_AddObjectToObject(e, "metadata");
	cJSON_AddStringToObject(m, "name", name);
	cJSON_AddItemToObject(
	    m, "namespace",
	    cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(metadata, "namespace"), true));
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
	for (unsigned i = 0; i < MU_COUNT(copied); i++) {
		const cJSON *v = cJSON_GetObjectItemCaseSensitive(metadata, copied[i]);
		if (v)
			cJSON_AddItemToObject(about, copied[i], cJSON_Duplicate(v, true));
	}
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

static int write_series(struct reconcile *r, const char *ns, const struct event_series *s,
			struct mu_err *err)
{
	MU_AUTO_FREE char *path =
	    mu_xasprintf("/apis/events.k8s.io/v1/namespaces/%s/events/%s", ns, s->name);
	MU_AUTO_FREE char *body = NULL;
	char when[40];

	micro_time(r->now, when);
	body =
	    mu_xasprintf("{\"series\":{\"count\":%u,\"lastObservedTime\":\"%s\"}}", s->count, when);
	return r->control->io.call(
	    r->control->io.user,
	    &(struct kube_request){.method = "PATCH",
				   .path = path,
				   .content_type = "application/merge-patch+json",
				   .body = mu_span_of(body)},
	    NULL, err);
}

void event_say(struct reconcile *r, bool warning, const char *reason, const char *fmt, ...)
{
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(reconcile_object(r), "metadata");
	const char *ns =
	    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, "namespace"));
	const char *job = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, "name"));
	struct event_series series;
	struct mu_err err = {0};
	char note[NOTE_MAX];
	MU_AUTO_FREE char *key = NULL;
	va_list ap;
	int rc;

	va_start(ap, fmt);
	vsnprintf(note, sizeof(note), fmt, ap);
	va_end(ap);
	key = mu_xasprintf("%s|%s|%s", r->seen->uid, reason, note);
	if (!ns || !job || !count_event(&r->control->events, key, job, r->now, &series))
		return;
	if (series.count > 1) {
		rc = write_series(r, ns, &series, &err);
	} else {
		cJSON *e = event_object(r, series.name, warning, reason, note);
		MU_AUTO_FREE char *path =
		    mu_xasprintf("/apis/events.k8s.io/v1/namespaces/%s/events", ns);
		MU_AUTO_FREE char *body = cJSON_PrintUnformatted(e);

		rc = r->control->io.call(r->control->io.user,
					 &(struct kube_request){.method = "POST",
								.path = path,
								.body = mu_span_of(body)},
					 NULL, &err);
		cJSON_Delete(e);
	}
	if (rc < 0)
		mu_debug("control", "%s: event %s not written: %s", r->seen->key, reason, err.msg);
}
