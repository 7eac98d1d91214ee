/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of jobs: the answers and final reports of tasks, the tasks that need a changed cluster
 * spec, and the metrics page. */
#include "operator/controller/store.h"

#include <stdio.h>

#include "lib/base/backoff.h"

/* A task that serves its page does so before it is ready: one that is ready, and has never
 * answered, is of a program that has none, and there may be a thousand of them.  It is asked four
 * times more rarely each time, others half as often. */
enum { SILENCE_FIRST_S = 5, SILENCE_MAX_S = 60, PAGELESS_MAX_S = 600 };

static bool can_be_asked(struct store *c, const struct pod *p)
{
	const struct observed_pod *o = &p->observed;

	return o->phase == POD_RUNNING && !o->deleting && p->ip &&
	       !is_expected_deleted(&c->expected, o->uid);
}

/* a clock that was set back must not silence anybody */
static bool is_due(const struct poll_backoff *pace, double now)
{
	return now >= pace->after || now < pace->since;
}

static void slow_down(struct poll_backoff *pace, bool pageless, double now)
{
	int failures = (int)pace->silent++;

	pace->since = now;
	pace->after = now + (pageless ? mu_backoff(2 * failures, SILENCE_FIRST_S, PAGELESS_MAX_S)
				      : mu_backoff(failures, SILENCE_FIRST_S, SILENCE_MAX_S));
}

static struct task_address address_of(const struct stored_job *job, const struct pod *p)
{
	const struct object *o = &job->job->meta;

	return (struct task_address){mu_xasprintf("%s/%s", o->namespace, o->name),
				     mu_xstrdup(p->ip), mu_xstrdup(p->meta.uid),
				     mu_xstrdup(job->uid)};
}

/* The pod that decides the job, chief 0 or worker 0: that runs (c given), or that left a report. */
static struct stored_object *chief_of(struct store *c, const struct stored_job *job)
{
	struct stored_object *worker = NULL;

	for (struct stored_object *s = NULL; (s = store_next_pod(job, s));) {
		const struct pod *p = stored_pod(s);

		if (p->observed.index != 0 || (c ? !can_be_asked(c, p) : !p->final))
			continue;
		if (strcmp(p->observed.task, "chief") == 0)
			return s;
		if (strcmp(p->observed.task, "worker") == 0)
			worker = s;
	}
	return worker;
}

struct task_address *store_due_chiefs(struct store *c, double now, unsigned *n)
{
	struct task_address *out = NULL;

	*n = 0;
	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->keys, m) {
		const struct stored_job *job = m->value;
		const struct stored_object *s = chief_of(c, job);

		if (!s || !is_due(&s->task.ask, now))
			continue;
		if (!out)
			out = MU_NEW_ARRAY(struct task_address, c->keys.count);
		out[(*n)++] = address_of(job, stored_pod(s));
	}
	pthread_mutex_unlock(&c->lock);
	return out;
}

void store_poll_failed(struct store *c, const struct task_address *chief, double now)
{
	struct stored_object *s;

	pthread_mutex_lock(&c->lock);
	if ((s = mu_map_get(&c->objects[KIND_POD], chief->pod_uid)))
		slow_down(&s->task.ask, stored_pod(s)->observed.ready && !s->task.ask.heard, now);
	pthread_mutex_unlock(&c->lock);
}

static bool has_older_epoch(struct store *c, const struct stored_object *s, double now)
{
	const struct observed_pod *o = &stored_pod(s)->observed;
	int epoch = s->task.epoch > o->epoch ? s->task.epoch : o->epoch;

	return epoch > 0 && epoch < s->owner->job->status.epoch && !o->is_departure_pod &&
	       can_be_asked(c, stored_pod(s)) && is_due(&s->task.tell, now);
}

/* The tasks of all jobs that have an older epoch than the stored status; no texts yet. */
static struct membership_update *stale_tasks(struct store *c, double now, unsigned *n)
{
	struct membership_update *out = NULL, *one;

	*n = 0;
	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->keys, m) {
		const struct stored_job *job = m->value;
		unsigned most = 0;

		for (struct stored_object *s = NULL; (s = store_next_pod(job, s));)
			most += has_older_epoch(c, s, now);
		if (!most)
			continue;
		if (!out)
			out = MU_NEW_ARRAY(struct membership_update, c->keys.count);
		one = &out[(*n)++];
		*one = (struct membership_update){.epoch = job->job->status.epoch,
						  .tasks = MU_NEW_ARRAY(struct task_address, most)};
		for (struct stored_object *s = NULL; (s = store_next_pod(job, s));)
			if (has_older_epoch(c, s, now))
				one->tasks[one->n++] = address_of(job, stored_pod(s));
	}
	pthread_mutex_unlock(&c->lock);
	return out;
}

/* The update for this epoch, when it is the stored one and the spec still has its members; or NULL.
 */
static char *membership_update(struct store *c, const char *key, int epoch, double now)
{
	static const struct plan_options options = {.image = ""};
	struct job_plan *plan = NULL;
	struct snapshot seen;
	char *text = NULL;

	if (snapshot_take(c, key, now, &seen) && seen.job->spec) {
		plan = job_plan_new(seen.job->spec, &options, &seen.observed, now);
		if (plan->membership_update && seen.job->status.epoch == epoch &&
		    plan->status.epoch == epoch)
			text = mu_xstrdup(plan->membership_update);
	}
	job_plan_free(plan);
	snapshot_fini(&seen);
	return text;
}

struct membership_update *store_due_updates(struct store *c, double now, unsigned *n)
{
	unsigned found;
	struct membership_update *out = stale_tasks(c, now, &found);

	*n = 0;
	for (unsigned i = 0; i < found; i++) {
		out[i].text = membership_update(c, out[i].tasks[0].key, out[i].epoch, now);
		if (out[i].text)
			out[(*n)++] = out[i];
		else
			task_addresses_free(out[i].tasks, out[i].n);
	}
	return out;
}

void membership_updates_free(struct membership_update *notices, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		free(notices[i].text);
		task_addresses_free(notices[i].tasks, notices[i].n);
	}
	free(notices);
}

void store_confirm_epoch(struct store *c, const struct task_address *task, int epoch)
{
	struct task_state *state;

	pthread_mutex_lock(&c->lock);
	if ((state = store_task_of(c, task->pod_uid)) && state->epoch < epoch) {
		state->epoch = epoch;
		state->tell = (struct poll_backoff){0};
	}
	pthread_mutex_unlock(&c->lock);
}

void store_update_failed(struct store *c, const struct task_address *task, double now)
{
	struct task_state *state;

	pthread_mutex_lock(&c->lock);
	if ((state = store_task_of(c, task->pod_uid)))
		slow_down(&state->tell, false, now);
	pthread_mutex_unlock(&c->lock);
}

void store_take_final_report(struct stored_job *job, double now)
{
	const struct stored_object *s = chief_of(NULL, job);

	if (!s || progress_report_same(&job->progress, stored_pod(s)->final))
		return;
	job->progress = *stored_pod(s)->final;
	job->progress_changed_at = now;
}

void task_addresses_free(struct task_address *chiefs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		free(chiefs[i].key);
		free(chiefs[i].ip);
		free(chiefs[i].pod_uid);
		free(chiefs[i].job_uid);
	}
	free(chiefs);
}

bool store_set_progress(struct store *c, const struct task_address *chief,
			const struct progress_report *report, const char *kernels, double now)
{
	struct stored_job *job;
	struct task_state *task;
	bool differs = false;

	pthread_mutex_lock(&c->lock);
	job = store_job_of(c, chief->key);
	if (job && report->set && !progress_report_same(&job->progress, report)) {
		job->progress = *report;
		job->progress_changed_at = now;
		differs = true;
	}
	if ((task = store_task_of(c, chief->pod_uid))) {
		task->ask = (struct poll_backoff){.heard = true};
		if (kernels && strncmp(task->kernels, kernels, sizeof(task->kernels) - 1) != 0) {
			snprintf(task->kernels, sizeof(task->kernels), "%s", kernels);
			differs = true;
		}
	}
	pthread_mutex_unlock(&c->lock);
	return differs;
}

unsigned store_count(struct store *c)
{
	unsigned n;

	pthread_mutex_lock(&c->lock);
	n = (unsigned)c->keys.count;
	pthread_mutex_unlock(&c->lock);
	return n;
}

void store_metrics(struct store *c, struct mu_buf *out)
{
	unsigned counts[JOB_FAILED + 1] = {0}, pods;

	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->keys, m)
		counts[((const struct stored_job *)m->value)->job->status.phase]++;
	pods = (unsigned)c->objects[KIND_POD].count;
	pthread_mutex_unlock(&c->lock);
	mu_buf_puts(out, "# TYPE muster_jobs gauge\n");
	for (int i = 0; i <= JOB_FAILED; i++)
		mu_buf_printf(out, "muster_jobs{phase=\"%s\"} %u\n",
			      job_phase_names[i][0] ? job_phase_names[i] : "New", counts[i]);
	mu_buf_printf(out, "# TYPE muster_pods gauge\nmuster_pods %u\n", pods);
}
