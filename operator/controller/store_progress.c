/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of jobs: the answers and final reports of tasks, the tasks that need a changed cluster
 * spec, and the metrics page. */
#include "operator/controller/store.h"

#include <math.h>
#include <stdio.h>

/* A task that serves its page does so before it is ready: one that is ready, and has never
 * answered, is of a program that has none, and there may be a thousand of them.  It is asked four
 * times more rarely each time, others half as often. */
enum { SILENCE_FIRST_S = 5, SILENCE_MAX_S = 60, PAGELESS_MAX_S = 600 };

static bool can_be_asked(const struct stored_pod *p)
{
	const struct observed_pod *o = &p->pod->observed;

	return o->phase == POD_RUNNING && !o->deleting && !p->expects_deletion && p->pod->ip;
}

static bool has_final_report(const struct stored_pod *p)
{
	return p->pod->final != NULL;
}

/* a clock that was set back must not silence anybody */
static bool is_due(const struct poll_backoff *pace, double now)
{
	return now >= pace->after || now < pace->since;
}

static void slow_down(struct poll_backoff *pace, bool pageless, double now)
{
	int times = pace->silent < 8 ? (int)pace->silent : 8;
	double wait = ldexp(SILENCE_FIRST_S, pageless ? 2 * times : times);

	pace->silent++;
	pace->since = now;
	pace->after = now + fmin(wait, pageless ? PAGELESS_MAX_S : SILENCE_MAX_S);
}

static struct stored_pod *pod_of(struct store *c, const struct task_address *task)
{
	struct stored_job *job = mu_map_get(&c->jobs, task->key);

	return job ? store_pod_of(job, task->pod_uid) : NULL;
}

static struct task_address address_of(const struct stored_job *job, const struct stored_pod *p)
{
	return (struct task_address){mu_xstrdup(job->key), mu_xstrdup(p->pod->ip),
				     mu_xstrdup(p->pod->observed.uid),
				     mu_xstrdup(job->object->uid)};
}

/* The pod that decides the job: chief 0, or worker 0. */
static struct stored_pod *chief_of(const struct stored_job *job,
				   bool (*fits)(const struct stored_pod *p))
{
	struct stored_pod *worker = NULL;

	for (struct stored_pod *p = job->pods; p; p = p->next) {
		if (p->pod->observed.index != 0 || strcmp(p->pod->owner, job->object->uid) != 0 ||
		    !fits(p))
			continue;
		if (strcmp(p->pod->observed.task, "chief") == 0)
			return p;
		if (strcmp(p->pod->observed.task, "worker") == 0)
			worker = p;
	}
	return worker;
}

struct task_address *store_due_chiefs(struct store *c, double now, unsigned *n)
{
	struct task_address *out = NULL;

	*n = 0;
	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->jobs, s) {
		const struct stored_job *job = s->value;
		const struct stored_pod *p = job->object ? chief_of(job, can_be_asked) : NULL;

		if (!p || !is_due(&p->ask, now))
			continue;
		if (!out)
			out = MU_NEW_ARRAY(struct task_address, c->jobs.count);
		out[(*n)++] = address_of(job, p);
	}
	pthread_mutex_unlock(&c->lock);
	return out;
}

void store_poll_failed(struct store *c, const struct task_address *chief, double now)
{
	struct stored_pod *p;

	pthread_mutex_lock(&c->lock);
	if ((p = pod_of(c, chief)))
		slow_down(&p->ask, p->pod->observed.ready && !p->ask.heard, now);
	pthread_mutex_unlock(&c->lock);
}

static bool has_older_epoch(const struct stored_job *job, const struct stored_pod *p, double now)
{
	const struct observed_pod *o = &p->pod->observed;
	int epoch = p->epoch > o->epoch ? p->epoch : o->epoch;

	return strcmp(p->pod->owner, job->object->uid) == 0 && epoch > 0 &&
	       epoch < job->object->status.epoch && !o->is_departure_pod && can_be_asked(p) &&
	       is_due(&p->tell, now);
}

/* The tasks of all jobs that have an older epoch than the stored status; no texts yet. */
static struct membership_update *stale_tasks(struct store *c, double now, unsigned *n)
{
	struct membership_update *out = NULL, *one;

	*n = 0;
	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->jobs, s) {
		const struct stored_job *job = s->value;
		unsigned most = 0;

		for (const struct stored_pod *p = job->object ? job->pods : NULL; p; p = p->next)
			most += has_older_epoch(job, p, now);
		if (!most)
			continue;
		if (!out)
			out = MU_NEW_ARRAY(struct membership_update, c->jobs.count);
		one = &out[(*n)++];
		*one = (struct membership_update){.epoch = job->object->status.epoch,
						  .tasks = MU_NEW_ARRAY(struct task_address, most)};
		for (const struct stored_pod *p = job->pods; p; p = p->next)
			if (has_older_epoch(job, p, now))
				one->tasks[one->n++] = address_of(job, p);
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
	struct stored_pod *p;

	pthread_mutex_lock(&c->lock);
	if ((p = pod_of(c, task)) && p->epoch < epoch) {
		p->epoch = epoch;
		p->tell = (struct poll_backoff){0};
	}
	pthread_mutex_unlock(&c->lock);
}

void store_update_failed(struct store *c, const struct task_address *task, double now)
{
	struct stored_pod *p;

	pthread_mutex_lock(&c->lock);
	if ((p = pod_of(c, task)))
		slow_down(&p->tell, false, now);
	pthread_mutex_unlock(&c->lock);
}

void store_take_final_report(struct stored_job *job, double now)
{
	const struct stored_pod *p = chief_of(job, has_final_report);

	if (!p || progress_report_same(&job->progress, p->pod->final))
		return;
	job->progress = *p->pod->final;
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
	struct stored_pod *p;
	bool differs = false;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, chief->key);
	if (job && report->set && !progress_report_same(&job->progress, report)) {
		job->progress = *report;
		job->progress_changed_at = now;
		differs = true;
	}
	if (job && (p = store_pod_of(job, chief->pod_uid))) {
		p->ask = (struct poll_backoff){.heard = true};
		if (kernels && strncmp(p->kernels, kernels, sizeof(p->kernels) - 1) != 0) {
			snprintf(p->kernels, sizeof(p->kernels), "%s", kernels);
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
	n = (unsigned)c->jobs.count;
	pthread_mutex_unlock(&c->lock);
	return n;
}

void store_metrics(struct store *c, struct mu_buf *out)
{
	unsigned counts[JOB_FAILED + 1] = {0}, pods = 0;

	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->jobs, s) {
		const struct stored_job *job = s->value;
		if (job->object)
			counts[job->object->status.phase]++;
		for (const struct stored_pod *p = job->pods; p; p = p->next)
			pods++;
	}
	pthread_mutex_unlock(&c->lock);
	mu_buf_puts(out, "# TYPE muster_jobs gauge\n");
	for (int i = 0; i <= JOB_FAILED; i++)
		mu_buf_printf(out, "muster_jobs{phase=\"%s\"} %u\n",
			      job_phase_names[i][0] ? job_phase_names[i] : "New", counts[i]);
	mu_buf_printf(out, "# TYPE muster_pods gauge\nmuster_pods %u\n", pods);
}
