/* SPDX-License-Identifier: Apache-2.0 */
/* Status as the resource's `status`, and back.  Whoever writes it is we, but it has been in other
 * hands since: what does not fit is left out, and only a status that is no map is an error. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "lib/io/json.h"
#include "operator/plan/plan_internal.h"

static void put_time(struct mu_doc *d, struct mu_doc_node *to, const char *key, double t)
{
	char text[40];
	time_t seconds = (time_t)t;
	struct tm tm;

	if (t <= 0 || !gmtime_r(&seconds, &tm))
		return;
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	mu_doc_add_str(d, to, key, text);
}

static double get_time(const struct mu_doc_node *from, const char *key)
{
	const char *text = mu_doc_text(from, key, NULL);
	struct tm tm = {0};

	return text && strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? (double)timegm(&tm) : 0;
}

static void put_conditions(struct mu_doc *d, const struct job_status *s)
{
	struct mu_doc_node *list = mu_doc_add(d, d->root, "conditions", MU_DOC_LIST);

	for (int i = 0; i < JOB_CONDITIONS; i++) {
		const struct condition *c = &s->conditions[i];
		if (!c->set)
			continue;
		struct mu_doc_node *n = mu_doc_add(d, list, NULL, MU_DOC_MAP);
		mu_doc_add_str(d, n, "type", condition_names[i]);
		mu_doc_add_str(d, n, "status", c->status ? "True" : "False");
		mu_doc_add_str(d, n, "reason", c->reason);
		mu_doc_add_str(d, n, "message", c->message);
		put_time(d, n, "lastTransitionTime", c->since);
		mu_doc_add_int(d, n, "observedGeneration", s->observed_generation);
	}
}

static void put_tasks(struct mu_doc *d, const struct job_status *s)
{
	struct mu_doc_node *tasks = mu_doc_add(d, d->root, "tasks", MU_DOC_MAP);

	for (unsigned i = 0; i < s->n_tasks; i++) {
		const struct task_status *t = &s->tasks[i];
		struct mu_doc_node *n = mu_doc_add(d, tasks, t->name, MU_DOC_MAP);
		mu_doc_add_int(d, n, "desired", t->desired);
		mu_doc_add_int(d, n, "ready", t->ready);
		mu_doc_add_int(d, n, "active", t->active);
		mu_doc_add_int(d, n, "succeeded", t->succeeded);
		mu_doc_add_int(d, n, "failed", t->failed);
		if (t->joined)
			mu_doc_add_int(d, n, "joined", t->joined);
		if (t->kernels[0])
			mu_doc_add_str(d, n, "kernels", t->kernels);
	}
}

static void put_ledger(struct mu_doc *d, const struct job_status *s)
{
	struct mu_doc_node *list = mu_doc_add(d, d->root, "ledger", MU_DOC_LIST);

	for (unsigned i = 0; i < s->n_ledger; i++) {
		const struct ledger_entry *e = &s->ledger[i];
		struct mu_doc_node *n = mu_doc_add(d, list, NULL, MU_DOC_MAP);
		mu_doc_add_str(d, n, "task", e->task);
		mu_doc_add_int(d, n, "index", e->index);
		if (e->done)
			mu_doc_add_bool(d, n, "done", true);
		if (e->failures)
			mu_doc_add_int(d, n, "failures", e->failures);
		mu_doc_add_int(d, n, "attempts", e->attempts);
		mu_doc_add_int(d, n, "exitCode", e->exit_code);
		if (e->reason[0])
			mu_doc_add_str(d, n, "reason", e->reason);
		if (e->node[0])
			mu_doc_add_str(d, n, "node", e->node);
		mu_doc_add_str(d, n, "uid", e->uid);
		put_time(d, n, "podCreated", e->created);
		if (e->retry_at > 0)
			mu_doc_add_float(d, n, "retryAt", e->retry_at);
		if (e->free_end)
			mu_doc_add_bool(d, n, "free", true);
		if (e->no_gpu)
			mu_doc_add_bool(d, n, "noGpu", true);
		if (e->owes)
			mu_doc_add_int(d, n, "owesLeave", e->owes);
		if (e->sent_off)
			mu_doc_add_int(d, n, "sentOff", e->sent_off);
	}
}

static void put_security(struct mu_doc *d, const struct security_status *s)
{
	struct mu_doc_node *n;

	if (!s->secret)
		return;
	n = mu_doc_add(d, d->root, "security", MU_DOC_MAP);
	mu_doc_add_str(d, n, "secret", s->secret);
	mu_doc_add_str(d, n, "ca", s->ca);
	put_time(d, n, "made", s->made);
	put_time(d, n, "expires", s->expires);
	put_time(d, n, "spread", s->spread);
}

void job_status_write(const struct job_status *s, struct mu_buf *out)
{
	MU_AUTO(mu_doc_free) struct mu_doc *d = mu_doc_new("status");
	struct mu_doc_node *root = mu_doc_add(d, NULL, NULL, MU_DOC_MAP);

	if (s->phase != JOB_NEW)
		mu_doc_add_str(d, root, "phase", job_phase_names[s->phase]);
	mu_doc_add_int(d, root, "observedGeneration", s->observed_generation);
	put_conditions(d, s);
	put_time(d, root, "startTime", s->start_time);
	put_time(d, root, "completionTime", s->completion_time);
	mu_doc_add_int(d, root, "restarts", s->restarts);
	mu_doc_add_str(d, root, "selector", s->selector);
	struct mu_doc_node *cluster = mu_doc_add(d, root, "cluster", MU_DOC_MAP);
	mu_doc_add_int(d, cluster, "epoch", s->epoch);
	if (s->epoch_seen)
		mu_doc_add_int(d, cluster, "epochSeen", s->epoch_seen);
	mu_doc_add_str(d, cluster, "members", s->members);
	put_tasks(d, s);
	put_ledger(d, s);
	put_security(d, &s->security);
	mu_json_write(out, root);
}

static int small_int(const struct mu_doc_node *n, const char *key, int otherwise)
{
	int64_t v = mu_doc_int(n, key, otherwise);

	return v < INT_MIN || v > INT_MAX ? otherwise : (int)v;
}

static int position(const char *text, const char *const *names)
{
	for (int i = 0; names[i]; i++)
		if (strcmp(names[i], text) == 0)
			return i;
	return -1;
}

#define COPY_TEXT(to, node, key) snprintf((to), sizeof(to), "%s", mu_doc_text((node), (key), ""))

static void get_conditions(struct job_status *s, const struct mu_doc_node *list)
{
	mu_doc_each(list, n)
	{
		int i = position(mu_doc_text(n, "type", ""), condition_names);
		if (i < 0)
			continue;
		struct condition *c = &s->conditions[i];
		c->set = true;
		c->status = strcmp(mu_doc_text(n, "status", ""), "True") == 0;
		COPY_TEXT(c->reason, n, "reason");
		COPY_TEXT(c->message, n, "message");
		c->since = get_time(n, "lastTransitionTime");
	}
}

static void get_tasks(struct job_status *s, const struct mu_doc_node *tasks)
{
	mu_doc_each(tasks, n)
	{
		if (s->n_tasks == JOB_MAX_TASKS || tasks->kind != MU_DOC_MAP)
			return;
		struct task_status *t = &s->tasks[s->n_tasks++];
		snprintf(t->name, sizeof t->name, "%s", n->key);
		t->desired = small_int(n, "desired", 0);
		t->ready = small_int(n, "ready", 0);
		t->active = small_int(n, "active", 0);
		t->succeeded = small_int(n, "succeeded", 0);
		t->failed = small_int(n, "failed", 0);
		t->joined = small_int(n, "joined", 0);
		COPY_TEXT(t->kernels, n, "kernels");
	}
}

static void get_ledger(struct job_status *s, const struct mu_doc_node *list)
{
	mu_doc_each(list, n)
	{
		const struct mu_doc_node *retry = mu_doc_key(n, "retryAt");
		const char *task = mu_doc_text(n, "task", "");
		if (!*task || strlen(task) > JOB_MAX_NAME)
			continue;
		struct ledger_entry *e = ledger_get(s, task, small_int(n, "index", 0));
		e->done = mu_doc_bool(n, "done", false);
		e->failures = small_int(n, "failures", 0);
		e->attempts = small_int(n, "attempts", 0);
		e->exit_code = small_int(n, "exitCode", -1);
		COPY_TEXT(e->reason, n, "reason");
		COPY_TEXT(e->node, n, "node");
		COPY_TEXT(e->uid, n, "uid");
		e->created = get_time(n, "podCreated");
		e->retry_at = retry && (retry->kind == MU_DOC_FLOAT || retry->kind == MU_DOC_INT)
				  ? retry->f
				  : 0;
		e->free_end = mu_doc_bool(n, "free", false);
		e->no_gpu = mu_doc_bool(n, "noGpu", false);
		e->owes = small_int(n, "owesLeave", 0);
		e->sent_off = small_int(n, "sentOff", 0);
	}
}

static void get_security(struct security_status *s, const struct mu_doc_node *n)
{
	const char *secret = mu_doc_text(n, "secret", ""), *ca = mu_doc_text(n, "ca", "");

	if (!*secret || !*ca)
		return;
	s->secret = mu_xstrdup(secret);
	s->ca = mu_xstrdup(ca);
	s->made = get_time(n, "made");
	s->expires = get_time(n, "expires");
	s->spread = get_time(n, "spread");
}

int job_status_read(struct job_status *out, const struct mu_doc_node *status, struct mu_err *err)
{
	struct job_status s = {0};

	if (status && status->kind != MU_DOC_MAP)
		return mu_doc_fail(status, err, MU_INVALID_ARGUMENT, "must be a map, got %s",
				   mu_doc_kind_name(status->kind));
	int phase = position(mu_doc_text(status, "phase", ""), job_phase_names);
	s.phase = phase < 0 ? JOB_NEW : (enum job_phase)phase;
	s.observed_generation = mu_doc_int(status, "observedGeneration", 0);
	s.start_time = get_time(status, "startTime");
	s.completion_time = get_time(status, "completionTime");
	s.restarts = small_int(status, "restarts", 0);
	s.epoch = small_int(status, "cluster.epoch", 0);
	s.epoch_seen = small_int(status, "cluster.epochSeen", 0);
	COPY_TEXT(s.members, status, "cluster.members");
	COPY_TEXT(s.selector, status, "selector");
	get_conditions(&s, mu_doc_key(status, "conditions"));
	get_tasks(&s, mu_doc_key(status, "tasks"));
	get_ledger(&s, mu_doc_key(status, "ledger"));
	get_security(&s.security, mu_doc_key(status, "security"));
	*out = s;
	return 0;
}
