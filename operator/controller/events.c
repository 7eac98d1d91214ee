/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/events.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/base/log.h"
#include "lib/base/random.h"
#include "lib/base/rfc3339.h"
#include "lib/io/json_build.h"
#include "operator/controller/reconcile.h"

enum { NOTE_MAX = 1000 };
static const double REPEAT_S = 300;

void events_init(struct event_recorder *e)
{
	pthread_mutex_init(&e->lock, NULL);
}

void events_fini(struct event_recorder *e)
{
	pthread_mutex_destroy(&e->lock);
}

/* True when the event was not posted recently; records it as posted now.  If two events share an
 * entry, an event may be repeated. */
static bool is_new(struct event_recorder *e, uint64_t hash, double now)
{
	struct recent_event *recent = &e->recent[hash % MU_COUNT(e->recent)];
	bool new;

	pthread_mutex_lock(&e->lock);
	new = recent->hash != hash || now >= recent->posted + REPEAT_S;
	if (new)
		*recent = (struct recent_event){hash, now};
	pthread_mutex_unlock(&e->lock);
	return new;
}

static void forget(struct event_recorder *e, uint64_t hash)
{
	pthread_mutex_lock(&e->lock);
	e->recent[hash % MU_COUNT(e->recent)] = (struct recent_event){0};
	pthread_mutex_unlock(&e->lock);
}

static cJSON *event_of(struct reconcile *r, bool warning, const char *reason, const char *note)
{
	const struct job *job = r->snapshot->job;
	const struct object *meta = &job->meta;
	char name[128], when[MU_RFC3339];

	snprintf(name, sizeof(name), "%.80s.%016" PRIx64, meta->name, mu_random_u64());
	mu_rfc3339_write_micro(when, r->now);
	return mu_json_pack(
	    "{'apiVersion': 'events.k8s.io/v1', 'kind': 'Event',"
	    " 'metadata': {'name': %s, 'namespace': %s}, 'eventTime': %s,"
	    " 'reportingController': 'muster.dev/operator', 'reportingInstance': %s,"
	    " 'action': %s, 'reason': %s, 'note': %s, 'type': %s,"
	    " 'regarding': {'apiVersion': '" JOB_API_VERSION "', 'kind': '" JOB_KIND "',"
	    "  'namespace': %s, 'name': %s, 'uid': %s, 'resourceVersion': %s}}",
	    name, meta->namespace, when, r->controller->options.identity, reason, reason, note,
	    warning ? "Warning" : "Normal", meta->namespace, meta->name, meta->uid,
	    job->resource_version);
}

void event_record(struct reconcile *r, bool warning, const char *reason, const char *fmt, ...)
{
	const struct object *job = &r->snapshot->job->meta;
	MU_AUTO_FREE char *key = NULL;
	MU_AUTO_FREE char *path = NULL;
	struct mu_err err = {0};
	char note[NOTE_MAX];
	uint64_t hash;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(note, sizeof(note), fmt, ap);
	va_end(ap);
	key = mu_xasprintf("%s|%s|%s", job->uid, reason, note);
	hash = mu_hash(key, strlen(key), 0);
	if (!is_new(&r->controller->events, hash, r->now))
		return;
	path = mu_xasprintf("/apis/events.k8s.io/v1/namespaces/%s/events", job->namespace);
	if (controller_call(r->controller, "POST", path, event_of(r, warning, reason, note), NULL,
			    &err) < 0) {
		mu_debug("controller", "an event was not written: %s", err.msg);
		forget(&r->controller->events, hash);
	}
}
