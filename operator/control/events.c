/* SPDX-License-Identifier: Apache-2.0 */
/* Events in events.k8s.io/v1.  One that was said within the last five minutes is not said again but
 * counted; its series is written when the count reaches a power of two.
 *
 * Events are for people, nothing depends on them: a thread of their own writes them, a second after
 * they were said, so that those of one time go out in one go.  While something is being made or
 * many jobs wait to be looked at they wait longer: warnings two seconds, which go before all
 * others, and what is well fifteen, unless much has gathered, which would have to be written when
 * we stop.  It tries again while the server is away.  Where there is no such thread (in tests) they
 * are written at once.
 *
 * Locks: the log's, then the queue's. */
#include "operator/control/events.h"

#include <math.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/rfc3339.h"
#include "lib/io/json.h"
#include "operator/control/control.h"
#include "operator/control/reconcile.h"

enum { RECENT_MAX = 4096, NOTE_MAX = 1000, WAITING_MAX = 4096, TRIES = 5, TOGETHER = 6 };
enum { PATIENT_MAX = 1024 }; /* more do not wait for others to be done */
static const double series_s = 300, gather_s = 1, pause_s = 0.1;
static const double patience_s[EVENT_QUEUES] = {[EVENTS_WARNING] = 2, [EVENTS_NORMAL] = 15};

struct event_series {
	char name[128];
	unsigned count;
	double last;
};

static void letter_free(struct event_letter *l)
{
	free(l->path);
	free(l->body);
	free(l->uid);
	free(l->name);
	free(l->made);
	free(l->key);
	free(l);
}

void events_init(struct event_log *e)
{
	memset(e, 0, sizeof(*e));
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	mu_map_init(&e->recent);
	mu_map_init(&e->made);
	for (int q = 0; q < EVENT_QUEUES; q++)
		e->queues[q].last = &e->queues[q].first;
}

/* The first of a queue; NULL when it is empty.  The lock is held. */
static struct event_letter *take(struct event_log *e, struct event_queue *q)
{
	struct event_letter *l = q->first;

	if (!l)
		return NULL;
	q->first = l->next;
	if (!q->first)
		q->last = &q->first;
	e->n--;
	if (l->uid && mu_map_get(&e->made, l->uid) == l)
		mu_map_del(&e->made, l->uid);
	return l;
}

void events_fini(struct event_log *e)
{
	for (int q = 0; q < EVENT_QUEUES; q++)
		for (struct event_letter *l; (l = take(e, &e->queues[q]));)
			letter_free(l);
	mu_map_each (&e->recent, s)
		free(s->value);
	mu_map_fini(&e->recent);
	mu_map_fini(&e->made);
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

static char *event_text(struct reconcile *r, const char *name, bool warning, const char *reason,
			const char *note)
{
	const struct snapshot *job = r->seen;
	char when[40];
	const struct {
		const char *before, *text;
	} parts[] = {
	    {"{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":",
	     name},
	    {",\"namespace\":", job->ns},
	    {"},\"eventTime\":", when},
	    {",\"reportingController\":\"muster.dev/operator\",\"reportingInstance\":",
	     r->control->options.identity},
	    {",\"action\":", reason},
	    {",\"reason\":", reason},
	    {",\"note\":", note},
	    {",\"type\":", warning ? "Warning" : "Normal"},
	    {",\"regarding\":{\"apiVersion\":\"" JOB_API_VERSION "\",\"kind\":\"" JOB_KIND
	     "\",\"namespace\":",
	     job->ns},
	    {",\"name\":", job->name},
	    {",\"uid\":", job->uid},
	    {",\"resourceVersion\":", job->resource_version},
	};
	MU_AUTO_BUF text = {0};

	micro_time(r->now, when);
	for (unsigned i = 0; i < MU_COUNT(parts); i++) {
		mu_buf_puts(&text, parts[i].before);
		mu_json_quote(&text, mu_span_of(parts[i].text));
	}
	mu_buf_puts(&text, "}}");
	return mu_xstrdup(text.data);
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

	l->path = mu_xasprintf("/apis/events.k8s.io/v1/namespaces/%s/events", r->seen->ns);
	l->body = event_text(r, name, warning, reason, note);
	return l;
}

static struct kube_request request_of(const struct event_letter *l)
{
	return (struct kube_request){.method = l->series ? "PATCH" : "POST",
				     .path = l->path,
				     .content_type =
					 l->series ? "application/merge-patch+json" : NULL,
				     .body = mu_span_of(l->body),
				     .unread = true};
}

static int post(struct control *c, const struct event_letter *l, struct mu_err *err)
{
	struct kube_request rq = request_of(l);

	return c->io.call(c->io.user, &rq, NULL, err);
}

/* To the thread that writes them, or at once when there is none or it is far behind. */
static void hand_over(struct control *c, struct event_letter *l, bool warning)
{
	struct event_log *e = &c->events;
	struct event_queue *q = &e->queues[warning ? EVENTS_WARNING : EVENTS_NORMAL];
	struct mu_err err = {0};

	l->since = c->queue.now();
	pthread_mutex_lock(&e->lock);
	if (atomic_load(&e->posting) && !e->stopped && e->n < WAITING_MAX) {
		*q->last = l;
		q->last = &l->next;
		if (l->uid)
			mu_map_put(&e->made, l->uid, l);
		if (!e->n++) /* else the thread sleeps for the first of them */
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

/* made: what the note says was made, or NULL. */
static void say(struct reconcile *r, bool warning, const char *reason, const char *note,
		const char *made)
{
	MU_AUTO_FREE char *key = mu_xasprintf("%s|%s|%s", r->seen->uid, reason, note);
	struct event_series series;
	struct event_letter *l;

	if (!count_event(&r->control->events, key, r->seen->name, r->now, &series))
		return;
	if (series.count > 1) {
		hand_over(r->control, series_letter(r, &series), warning);
		return;
	}
	l = event_letter(r, series.name, warning, reason, note);
	if (made) {
		l->uid = mu_xstrdup(r->seen->uid);
		l->name = mu_xstrdup(series.name);
		l->made = mu_xstrdup(made);
		l->key = mu_steal(&key);
	}
	hand_over(r->control, l, warning);
}

void event_say(struct reconcile *r, bool warning, const char *reason, const char *fmt, ...)
{
	char note[NOTE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(note, sizeof(note), fmt, ap);
	va_end(ap);
	say(r, warning, reason, note, NULL);
}

static const char made_reason[] = "PodsCreated";

/* Adds to the letter; what that said alone was then never said.  The lock is held. */
static void join(struct reconcile *r, struct event_letter *l, const char *what)
{
	char *made = mu_xasprintf("%s, %s", l->made, what);
	MU_AUTO_FREE char *note = mu_xasprintf("created %s", made);

	free(mu_map_del(&r->control->events.recent, l->key));
	free(l->body);
	l->body = event_text(r, l->name, false, made_reason, note);
	free(l->made);
	l->made = made;
}

void event_made(struct reconcile *r, const char *what)
{
	struct event_log *e = &r->control->events;
	MU_AUTO_FREE char *note = mu_xasprintf("created %.*s", NOTE_MAX / 2, what);
	struct event_letter *l;
	bool joins;

	pthread_mutex_lock(&e->lock);
	l = mu_map_get(&e->made, r->seen->uid);
	joins = l && strlen(l->made) + strlen(what) < NOTE_MAX / 2;
	if (joins)
		join(r, l, what);
	pthread_mutex_unlock(&e->lock);
	if (!joins)
		say(r, false, made_reason, note, what);
}

/* ---- the thread ---- */

/* How long the first of a queue may wait still; INFINITY when it is empty.  The lock is held. */
static double left_of(struct control *c, enum event_urgency urgency)
{
	const struct event_log *e = &c->events;
	const struct event_letter *l = e->queues[urgency].first;
	double age = l ? c->queue.now() - l->since : 0;

	if (!l)
		return INFINITY;
	if (e->stopped)
		return 0;
	if (age < gather_s)
		return gather_s - age;
	return age < patience_s[urgency] && e->n <= PATIENT_MAX && control_busy(c) ? pause_s : 0;
}

static void wait_for_change(struct event_log *e, double seconds)
{
	double until = mu_clock() + seconds;
	struct timespec t = {(time_t)until, (long)((until - (double)(time_t)until) * 1e9)};

	pthread_cond_clockwait(&e->changed, &e->lock, CLOCK_MONOTONIC, &t);
}

/* One whose turn it is, or NULL and how long there is none.  The lock is held. */
static struct event_letter *due_letter(struct control *c, double *left)
{
	*left = INFINITY;
	for (int q = 0; q < EVENT_QUEUES; q++) {
		double mine = left_of(c, (enum event_urgency)q);

		if (mine <= 0)
			return take(&c->events, &c->events.queues[q]);
		*left = fmin(*left, mine);
	}
	return NULL;
}

/* Those whose turn it is, `most` of them; 0 once stopped and all are written. */
static unsigned next_letters(struct control *c, struct event_letter **out, unsigned most)
{
	struct event_log *e = &c->events;
	unsigned n = 0;
	double left;

	pthread_mutex_lock(&e->lock);
	while (!(out[0] = due_letter(c, &left)) && !e->stopped) {
		if (e->n)
			wait_for_change(e, left);
		else
			pthread_cond_wait(&e->changed, &e->lock);
	}
	while (out[n] && ++n < most)
		out[n] = due_letter(c, &left);
	pthread_mutex_unlock(&e->lock);
	return n;
}

static bool is_passing(int rc)
{
	return rc == -MU_UNAVAILABLE || rc == -MU_RESOURCE_EXHAUSTED || rc == -MU_DEADLINE_EXCEEDED;
}

/* A series goes after the event that it counts, and so waits for what went before it. */
static unsigned post_some(struct control *c, struct event_letter *const *l, unsigned n,
			  struct kube_reply *out)
{
	struct kube_request rqs[TOGETHER];
	unsigned together = 0;

	while (together < n && !l[together]->series) {
		rqs[together] = request_of(l[together]);
		together++;
	}
	if (together > 1 && c->io.call_many)
		return c->io.call_many(c->io.user, rqs, together, out);
	*out = (struct kube_reply){0};
	out->rc = post(c, l[0], &out->err);
	return 1;
}

/* Posts it again, as long as that may help. */
static void insist(struct control *c, const struct event_letter *l, int rc, struct mu_err *err)
{
	for (int i = 1; i < TRIES && is_passing(rc) && kube_client_sleep(c->kube, i); i++)
		rc = post(c, l, err);
	/* after an answer that was lost it is there already */
	if (rc < 0 && rc != -MU_ALREADY_EXISTS)
		mu_debug("control", "an event was not written: %s", err->msg);
}

/* One at a time beside pods that are made, else some at once. */
void *events_run(void *control)
{
	struct control *c = control;
	struct event_letter *l[TOGETHER];
	unsigned n;

	while ((n = next_letters(c, l, control_busy(c) ? 1 : TOGETHER))) {
		struct kube_reply replies[TOGETHER];
		unsigned done = 0;

		while (done < n)
			done += post_some(c, l + done, n - done, replies + done);
		for (unsigned i = 0; i < n; i++) {
			insist(c, l[i], replies[i].rc, &replies[i].err);
			letter_free(l[i]);
		}
	}
	atomic_store(&c->events.posting, false);
	return NULL;
}

bool events_write_due(struct control *c)
{
	struct event_letter *l;
	struct mu_err err = {0};
	double left;

	pthread_mutex_lock(&c->events.lock);
	l = due_letter(c, &left);
	pthread_mutex_unlock(&c->events.lock);
	if (!l)
		return false;
	post(c, l, &err);
	letter_free(l);
	return true;
}

void events_stop(struct event_log *e)
{
	pthread_mutex_lock(&e->lock);
	e->stopped = true;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
}
