/* SPDX-License-Identifier: Apache-2.0 */
/* Gets the progress of each running job from its chief: GET /status on its HTTP port. When the
 * members of a job have changed, sends them to its tasks: POST /cluster.
 *
 * One thread sends one request at a time, with a limit of one second; with many jobs a round takes
 * longer. A chief that ends may leave its final report in its container's termination message
 * (pod.c). */
#include "operator/controller/controller.h"

#include "lib/base/backoff.h"
#include "operator/api/object_json.h"

/* Backoff for a task that does not answer.  A program of the user may serve no status. */
enum { BACKOFF_FIRST_S = 5, STATUS_BACKOFF_MAX_S = 600, MEMBERS_BACKOFF_MAX_S = 60 };
enum { FAILURES_MAX = 8 }; /* to one job in a round: each takes up to a second, and others wait */

/* a clock that was set back must not stop the requests */
static bool is_due(const struct poll_backoff *backoff, double now)
{
	return now >= backoff->after || now < backoff->since;
}

/* epoch: of the members that were sent; 0: the status was requested. */
static void record_answer(struct store *c, const struct pod *task, int epoch, bool ok, double now)
{
	struct stored_object *s;
	struct poll_backoff *backoff;

	pthread_mutex_lock(&c->lock);
	s = mu_map_get(&c->objects[KIND_POD], task->meta.uid); /* NULL: the pod is gone */
	backoff = !s ? NULL : epoch ? &s->task.members_backoff : &s->task.status_backoff;
	if (s && !epoch && (ok || !task->observed.ready))
		s->owner->polled_at = now;
	if (s && ok) {
		*backoff = (struct poll_backoff){0};
		s->task.epoch = epoch > s->task.epoch ? epoch : s->task.epoch;
	} else if (s) {
		backoff->since = now;
		backoff->after =
		    now + mu_backoff((int)backoff->failures++, BACKOFF_FIRST_S,
				     epoch ? MEMBERS_BACKOFF_MAX_S : STATUS_BACKOFF_MAX_S);
	}
	pthread_mutex_unlock(&c->lock);
}

static void update_progress(struct controller *c, const struct snapshot *snapshot, double now)
{
	int chief = snapshot_chief(snapshot, false);
	const struct snapshot_pod *p = chief < 0 ? NULL : &snapshot->pods[chief];
	MU_AUTO_BUF body = {0};
	struct progress_report report;
	cJSON *page = NULL;

	if (!p || !is_due(&p->task.status_backoff, now))
		return;
	if (c->io.get_status(c->io.user, p->pod, &body) == 0)
		page = kube_json(mu_buf_span(&body));
	record_answer(&c->store, p->pod, 0, page != NULL, now);
	if (!page)
		return;
	progress_report_decode(&report, at(page, "progress"));
	if (!report.set)
		progress_report_decode(&report, page);
	if (store_set_progress(&c->store, snapshot->key, p->pod->meta.uid, &report,
			       text_at(page, "kernels"), now))
		workqueue_add(&c->queue, snapshot->key);
	cJSON_Delete(page);
}

static bool has_older_epoch(const struct snapshot *snapshot, unsigned i, double now)
{
	const struct observed_pod *o = &snapshot->observed.pods[i];

	return o->epoch > 0 && o->epoch < snapshot->job->status.epoch && !o->is_departure_pod &&
	       task_runs(snapshot, i) && is_due(&snapshot->pods[i].task.members_backoff, now);
}

/* A task answers 200 once it has that epoch or a later one. */
static bool update_members(struct controller *c, const struct snapshot *snapshot, double now)
{
	static const struct plan_options options = {.image = "", .creates_max = 1};
	MU_AUTO(job_plan_free) struct job_plan *plan = NULL;
	int epoch = snapshot->job->status.epoch;
	unsigned failures = 0;
	bool is_accepted = false;

	for (unsigned i = 0; snapshot->job->spec && i < snapshot->observed.n_pods; i++) {
		const struct pod *task = snapshot->pods[i].pod;
		bool ok;

		if (failures == FAILURES_MAX)
			break;
		if (!has_older_epoch(snapshot, i, now))
			continue;
		if (!plan)
			plan =
			    job_plan_new(snapshot->job->spec, &options, &snapshot->observed, now);
		/* the members of the spec are not those of the stored epoch any more */
		if (!plan->membership_update || plan->status.epoch != epoch)
			break;
		ok = c->io.post(c->io.user, task, "cluster", plan->membership_update, NULL) == 0;
		record_answer(&c->store, task, epoch, ok, now);
		is_accepted = is_accepted || ok;
		failures += !ok;
	}
	if (is_accepted)
		workqueue_add(&c->queue, snapshot->key);
	return is_accepted;
}

bool progress_poll(struct controller *c, const char *key)
{
	double now = c->io.now(c->io.user);
	struct snapshot snapshot;
	bool any = false;

	if (snapshot_take(&c->store, key, now, &snapshot)) {
		any = update_members(c, &snapshot, now);
		update_progress(c, &snapshot, now);
	}
	snapshot_fini(&snapshot);
	return any;
}

static void poll_job(void *controller, const char *key)
{
	struct controller *c = controller;

	if (!kube_client_stopped(c->kube))
		progress_poll(c, key);
}

void *progress_run(void *controller)
{
	struct controller *c = controller;

	while (!kube_client_stopped(c->kube)) {
		if (leader_may_write(c))
			store_each_key(&c->store, false, poll_job, c);
		kube_client_sleep(c->kube, c->options.progress_seconds);
	}
	return NULL;
}
