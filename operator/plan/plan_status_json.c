/* SPDX-License-Identifier: Apache-2.0 */
/* Status as the resource's `status`, and back.  Whoever writes it is we, but it has been in other
 * hands since: what does not fit is left out, and only a status that is no map is an error. */
#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "lib/base/rfc3339.h"
#include "lib/io/json.h"
#include "operator/plan/plan_internal.h"

/* ---- writing ---- */

/* What every member begins with; key NULL: an element of a list. */
static void put_key(struct mu_buf *out, const char *key)
{
	char before = out->data[out->len - 1];

	if (before != '{' && before != '[')
		mu_buf_putc(out, ',');
	if (key) {
		mu_json_quote(out, mu_span_of(key));
		mu_buf_putc(out, ':');
	}
}

static void put_open(struct mu_buf *out, const char *key, char bracket)
{
	put_key(out, key);
	mu_buf_putc(out, bracket);
}

static void put_str(struct mu_buf *out, const char *key, const char *text)
{
	put_key(out, key);
	mu_json_quote(out, mu_span_of(text));
}

static void put_text(struct mu_buf *out, const char *key, const char *text)
{
	if (*text)
		put_str(out, key, text);
}

static void put_int(struct mu_buf *out, const char *key, int64_t n)
{
	put_key(out, key);
	mu_json_put_int(out, n);
}

static void put_some(struct mu_buf *out, const char *key, int64_t n)
{
	if (n)
		put_int(out, key, n);
}

static void put_true(struct mu_buf *out, const char *key, bool is)
{
	if (!is)
		return;
	put_key(out, key);
	mu_buf_puts(out, "true");
}

static void put_time(struct mu_buf *out, const char *key, double t)
{
	char text[MU_RFC3339];

	if (t > 0 && mu_rfc3339_write(text, t))
		put_str(out, key, text);
}

static void put_conditions(struct mu_buf *out, const struct job_status *s)
{
	put_open(out, "conditions", '[');
	for (int i = 0; i < JOB_CONDITIONS; i++) {
		const struct condition *c = &s->conditions[i];
		if (!c->set)
			continue;
		put_open(out, NULL, '{');
		put_str(out, "type", condition_names[i]);
		put_str(out, "status", c->status ? "True" : "False");
		put_str(out, "reason", c->reason);
		put_str(out, "message", c->message);
		put_time(out, "lastTransitionTime", c->since);
		put_int(out, "observedGeneration", s->observed_generation);
		mu_buf_putc(out, '}');
	}
	mu_buf_putc(out, ']');
}

static void put_tasks(struct mu_buf *out, const struct job_status *s)
{
	put_open(out, "tasks", '{');
	for (unsigned i = 0; i < s->n_tasks; i++) {
		const struct task_status *t = &s->tasks[i];
		put_open(out, t->name, '{');
		put_int(out, "desired", t->desired);
		put_int(out, "ready", t->ready);
		put_int(out, "active", t->active);
		put_int(out, "succeeded", t->succeeded);
		put_int(out, "failed", t->failed);
		put_some(out, "joined", t->joined);
		put_text(out, "kernels", t->kernels);
		mu_buf_putc(out, '}');
	}
	mu_buf_putc(out, '}');
}

static void put_entry(struct mu_buf *out, const struct ledger_entry *e)
{
	put_open(out, NULL, '{');
	put_str(out, "task", e->task);
	put_int(out, "index", e->index);
	put_true(out, "done", e->done);
	put_some(out, "failures", e->failures);
	put_int(out, "attempts", e->attempts);
	put_int(out, "exitCode", e->exit_code);
	put_text(out, "reason", e->reason);
	put_text(out, "node", e->node);
	put_str(out, "uid", e->uid);
	put_time(out, "podCreated", e->created);
	if (e->retry_at > 0) {
		put_key(out, "retryAt");
		mu_json_put_float(out, e->retry_at);
	}
	put_true(out, "free", e->free_end);
	put_true(out, "noGpu", e->no_gpu);
	put_some(out, "owesLeave", e->owes);
	put_some(out, "sentOff", e->sent_off);
	mu_buf_putc(out, '}');
}

/* One that has ended once, and well: all that is worth keeping is that it did. */
static bool is_plain(const struct ledger_entry *e)
{
	return e->done && e->attempts == 1 && e->exit_code == 0 && !e->failures && !e->free_end &&
	       !e->no_gpu && !e->owes && !e->sent_off && e->index >= 0 &&
	       e->index < JOB_MAX_REPLICAS;
}

static void put_ledger(struct mu_buf *out, const struct job_status *s)
{
	put_open(out, "ledger", '[');
	for (unsigned i = 0; i < s->n_ledger; i++)
		if (!is_plain(&s->ledger[i]))
			put_entry(out, &s->ledger[i]);
	mu_buf_putc(out, ']');
}

/* How many of the entries from *first on are plain ones of one task and indices in a row. */
static unsigned row_length(const struct ledger_entry *first, const struct ledger_entry *end)
{
	const struct ledger_entry *e = first;

	while (e < end && is_plain(e) && strcmp(e->task, first->task) == 0 &&
	       e->index == first->index + (int)(e - first))
		e++;
	return (unsigned)(e - first);
}

/* {"worker":"0-3,7"}: the ledger is sorted, so what is done lies in rows.  A thousand workers that
 * are done would be 200 KB one by one, in each write. */
static void put_completed(struct mu_buf *out, const struct job_status *s)
{
	const struct ledger_entry *end = s->ledger + s->n_ledger, *before = NULL;
	unsigned n = 0;

	for (const struct ledger_entry *e = s->ledger; e < end; e += n ? n : 1) {
		bool same = before && strcmp(before->task, e->task) == 0;

		n = row_length(e, end);
		if (!n)
			continue;
		if (!before)
			put_open(out, "completedIndexes", '{');
		else if (!same)
			mu_buf_putc(out, '"');
		if (!same) {
			put_key(out, e->task);
			mu_buf_putc(out, '"');
		}
		mu_buf_printf(out, "%s%d", same ? "," : "", e->index);
		if (n > 1)
			mu_buf_printf(out, "-%d", e->index + (int)n - 1);
		before = e;
	}
	if (before)
		mu_buf_puts(out, "\"}");
}

static void put_security(struct mu_buf *out, const struct security_status *s)
{
	if (!s->secret)
		return;
	put_open(out, "security", '{');
	put_str(out, "secret", s->secret);
	put_str(out, "ca", s->ca);
	put_time(out, "made", s->made);
	put_time(out, "expires", s->expires);
	put_time(out, "spread", s->spread);
	mu_buf_putc(out, '}');
}

/* "3/3", the kernels in use and what is wrong, for the columns of kubectl get. */
static void put_summary(struct mu_buf *out, const struct job_status *s)
{
	const struct condition *trouble = job_status_trouble(s);
	MU_AUTO_BUF kernels = {0};
	int ready = 0, desired = 0;
	char text[32];

	for (unsigned i = 0; i < s->n_tasks; i++) {
		const struct task_status *t = &s->tasks[i];
		bool known = !t->kernels[0];

		if (strcmp(t->name, JOB_BOARD) == 0)
			continue;
		ready += t->ready;
		desired += t->desired;
		for (unsigned j = 0; j < i; j++)
			known = known || strcmp(s->tasks[j].kernels, t->kernels) == 0;
		if (!known)
			mu_buf_printf(&kernels, "%s%s", kernels.len ? "," : "", t->kernels);
	}
	snprintf(text, sizeof text, "%d/%d", ready, desired);
	put_open(out, "summary", '{');
	put_str(out, "ready", text);
	put_text(out, "kernels", kernels.len ? kernels.data : "");
	put_text(out, "message", trouble ? trouble->message : "");
	mu_buf_putc(out, '}');
}

static void put_number(struct mu_buf *out, const char *key, double n)
{
	if (!isfinite(n))
		return;
	put_key(out, key);
	mu_json_put_float(out, n);
}

static void put_progress(struct mu_buf *out, const struct progress_report *p)
{
	char percent[16];

	if (!p->set)
		return;
	put_open(out, "progress", '{');
	put_int(out, "step", p->step);
	put_some(out, "targetStep", p->target);
	put_number(out, "stepsPerSecond", p->steps_per_second);
	put_number(out, "examplesPerSecond", p->examples_per_second);
	put_number(out, "loss", p->loss);
	put_number(out, "accuracy", p->accuracy);
	put_text(out, "lastCheckpoint", p->last_checkpoint);
	put_text(out, "eta", p->eta);
	put_text(out, "reason", end_reason_names[p->reason]);
	if (p->target > 0) {
		snprintf(percent, sizeof percent, "%d%%",
			 p->step > p->target ? 100
					     : (int)((double)p->step / (double)p->target * 100));
		put_str(out, "percent", percent);
	}
	mu_buf_putc(out, '}');
}

bool progress_report_same(const struct progress_report *a, const struct progress_report *b)
{
	MU_AUTO_BUF x = {0};
	MU_AUTO_BUF y = {0};

	mu_buf_putc(&x, '{');
	mu_buf_putc(&y, '{');
	put_progress(&x, a);
	put_progress(&y, b);
	return mu_span_eq(mu_buf_span(&x), mu_buf_span(&y));
}

void job_status_write(const struct job_status *s, struct mu_buf *out)
{
	mu_buf_putc(out, '{');
	if (s->phase != JOB_NEW)
		put_str(out, "phase", job_phase_names[s->phase]);
	put_int(out, "observedGeneration", s->observed_generation);
	put_conditions(out, s);
	put_time(out, "startTime", s->start_time);
	put_time(out, "completionTime", s->completion_time);
	put_int(out, "restarts", s->restarts);
	put_str(out, "selector", s->selector);
	put_open(out, "cluster", '{');
	put_int(out, "epoch", s->epoch);
	put_some(out, "epochSeen", s->epoch_seen);
	put_str(out, "members", s->members);
	mu_buf_putc(out, '}');
	put_tasks(out, s);
	put_ledger(out, s);
	put_completed(out, s);
	put_security(out, &s->security);
	put_progress(out, &s->progress);
	put_summary(out, s);
	mu_buf_putc(out, '}');
}

/* ---- reading ---- */

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
			struct ledger_entry *e = ledger_get(s, task, i);

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
