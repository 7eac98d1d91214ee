/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes a status.  Others may have written to it: members that do not fit are skipped, and only a
 * status that is no map is an error. */
#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "lib/base/rfc3339.h"
#include "lib/io/json.h"
#include "operator/api/job_status.h"

static double get_time(const struct mu_doc_node *from, const char *key)
{
	return mu_rfc3339_read(mu_doc_text(from, key, NULL));
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
		struct index_status *e = index_status_get(s, task, small_int(n, "index", 0));
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
		e->pending_departure_size = small_int(n, "owesLeave", 0);
		e->departure_attempts = small_int(n, "sentOff", 0);
	}
}

/* The number at *at, of an index; -1 when there is none. */
static int get_index(const char **at)
{
	int n = -1;

	for (; **at >= '0' && **at <= '9' && n < JOB_MAX_REPLICAS; ++*at)
		n = (n < 0 ? 0 : n) * 10 + (**at - '0');
	return n < JOB_MAX_REPLICAS ? n : -1;
}

/* Rows come in rising order; what comes after anything else is left out. */
static void get_rows(struct job_status *s, const char *task, const char *at)
{
	for (int from, to, last = -1; (from = get_index(&at)) > last; last = to) {
		to = from;
		if (*at == '-') {
			at++;
			to = get_index(&at);
		}
		for (int i = from; i <= to; i++) {
			struct index_status *e = index_status_get(s, task, i);

			e->done = true;
			e->attempts = 1;
			e->exit_code = 0;
			snprintf(e->reason, sizeof e->reason, "Completed");
		}
		if (to < from || *at++ != ',')
			return;
	}
}

static void get_completed(struct job_status *s, const struct mu_doc_node *map)
{
	unsigned tasks = 0;

	if (!map || map->kind != MU_DOC_MAP)
		return;
	mu_doc_each(map, n)
	{
		if (n->kind != MU_DOC_STRING || !*n->key || strlen(n->key) > JOB_MAX_NAME ||
		    tasks++ == JOB_MAX_TASKS)
			return;
		get_rows(s, n->key, n->text);
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

static double get_number(const struct mu_doc_node *map, const char *key)
{
	const struct mu_doc_node *n = mu_doc_key(map, key);

	return n && (n->kind == MU_DOC_INT || n->kind == MU_DOC_FLOAT) ? n->f : NAN;
}

/* A step; -1 when there is none. */
static int64_t get_step(const struct mu_doc_node *map, const char *key)
{
	double n = get_number(map, key);

	return n >= 0 && n < 1e18 ? (int64_t)n : -1;
}

static void get_short_text(char *to, size_t size, const struct mu_doc_node *map, const char *key)
{
	const char *text = mu_doc_text(map, key, "");

	if (strlen(text) < size)
		snprintf(to, size, "%s", text);
}

void progress_report_read(struct progress_report *out, const struct mu_doc_node *report)
{
	int64_t step = get_step(report, "step"), target = get_step(report, "targetStep");

	*out = (struct progress_report){0};
	if (step < 0)
		return;
	out->set = true;
	out->step = step;
	out->target = target > 0 ? target : 0;
	out->steps_per_second = get_number(report, "stepsPerSecond");
	out->examples_per_second = get_number(report, "examplesPerSecond");
	out->loss = get_number(report, "loss");
	out->accuracy = get_number(report, "accuracy");
	get_short_text(out->last_checkpoint, sizeof out->last_checkpoint, report, "lastCheckpoint");
	get_short_text(out->eta, sizeof out->eta, report, "eta");
	out->reason = end_reason_of(mu_doc_text(report, "reason", NULL));
}

void progress_report_parse(struct progress_report *out, const char *json)
{
	MU_AUTO(mu_doc_free) struct mu_doc *doc = NULL;

	*out = (struct progress_report){0};
	if (json && mu_json_parse(&doc, mu_span_of(json), "progress", NULL) == 0)
		progress_report_read(out, doc->root);
}

int job_status_read(struct job_status *out, const struct mu_doc_node *status, struct mu_err *err)
{
	struct job_status s = {0};

	if (status && status->kind != MU_DOC_MAP)
		return mu_doc_fail(status, err, MU_INVALID_ARGUMENT, "must be a map, got %s",
				   mu_doc_kind_name(status->kind));
	s.phase = job_phase_of(mu_doc_text(status, "phase", NULL));
	s.observed_generation = mu_doc_int(status, "observedGeneration", 0);
	s.start_time = get_time(status, "startTime");
	s.completion_time = get_time(status, "completionTime");
	s.restarts = small_int(status, "restarts", 0);
	s.epoch = small_int(status, "cluster.epoch", 0);
	s.epoch_seen = small_int(status, "cluster.epochSeen", 0);
	progress_report_read(&s.progress, mu_doc_key(status, "progress"));
	COPY_TEXT(s.members, status, "cluster.members");
	COPY_TEXT(s.selector, status, "selector");
	get_conditions(&s, mu_doc_key(status, "conditions"));
	get_tasks(&s, mu_doc_key(status, "tasks"));
	get_completed(&s, mu_doc_key(status, "completedIndexes"));
	get_ledger(&s, mu_doc_key(status, "ledger"));
	get_security(&s.security, mu_doc_key(status, "security"));
	*out = s;
	return 0;
}
