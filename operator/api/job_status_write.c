/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes a status as JSON. */
#include <math.h>
#include <stdio.h>

#include "lib/base/rfc3339.h"
#include "lib/io/json.h"
#include "operator/api/job_status.h"

/* Writes the comma and the key of a member; key NULL: an element of a list. */
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

static void put_entry(struct mu_buf *out, const struct index_status *e)
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
	put_some(out, "owesLeave", e->pending_departure_size);
	put_some(out, "sentOff", e->departure_attempts);
	mu_buf_putc(out, '}');
}

/* One that has ended once, and well: all that is worth keeping is that it did. */
static bool is_plain(const struct index_status *e)
{
	return e->done && e->attempts == 1 && e->exit_code == 0 && !e->failures && !e->free_end &&
	       !e->no_gpu && !e->pending_departure_size && !e->departure_attempts &&
	       e->index >= 0 && e->index < JOB_MAX_REPLICAS;
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
static unsigned row_length(const struct index_status *first, const struct index_status *end)
{
	const struct index_status *e = first;

	while (e < end && is_plain(e) && strcmp(e->task, first->task) == 0 &&
	       e->index == first->index + (int)(e - first))
		e++;
	return (unsigned)(e - first);
}

/* {"worker":"0-3,7"}: the ledger is sorted, so what is done lies in rows.  A thousand workers that
 * are done would be 200 KB one by one, in each write. */
static void put_completed(struct mu_buf *out, const struct job_status *s)
{
	const struct index_status *end = s->ledger + s->n_ledger, *before = NULL;
	unsigned n = 0;

	for (const struct index_status *e = s->ledger; e < end; e += n ? n : 1) {
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
