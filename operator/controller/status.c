/* SPDX-License-Identifier: Apache-2.0 */
/* The status write of a reconcile: a JSON merge patch of the changed fields, with the job's UID and
 * version as preconditions.  So a new job of the same name is never written to, and a stale copy
 * never overwrites a newer status. */
#include "operator/controller/reconcile.h"

#include "lib/base/log.h"
#include "lib/io/json_build.h"
#include "operator/api/object_json.h"

enum { STATUS_MIN_INTERVAL_S = 5, FIRST_STATUS_DELAY_S = 3 };

/* Writes the difference to the stored status (NULL: none).  Takes `change`. */
static int patch_status(struct reconcile *r, cJSON *change, struct mu_err *err)
{
	const struct job *job = r->snapshot->job;
	cJSON *patch, *response = NULL;
	MU_AUTO_FREE char *object = apply_path(r, KIND_JOB, job->meta.name);
	MU_AUTO_FREE char *path = mu_xasprintf("%s/status", object);
	struct controller *c = r->controller;
	int rc;

	if (!change)
		return 0;
	patch = mu_json_pack("{'metadata': {'uid': %s, 'resourceVersion': %s}}", job->meta.uid,
			     job->resource_version);
	cJSON_AddItemToObject(patch, "status", change);
	rc = controller_call(c, "PATCH", path, patch, &response, err);
	r->job_is_stale = rc == -MU_ABORTED;
	if (rc < 0)
		return mu_wrap(err, "update status");
	store_update_job(&c->store, response, r->now);
	cJSON_Delete(response);
	return 0;
}

/* Records an event for each condition that became True. */
static void record_condition_events(struct reconcile *r, const struct job_status *before,
				    const struct job_status *after)
{
	bool new_phase = before->phase != after->phase;

	if (new_phase)
		mu_info("controller", "%s: %s -> %s", r->snapshot->key,
			before->phase == JOB_NEW ? "New" : job_phase_names[before->phase],
			job_phase_names[after->phase]);
	for (int i = 0; i < JOB_CONDITIONS; i++) {
		const struct condition *c = &after->conditions[i], *old = &before->conditions[i];
		const struct condition_kind *k = &condition_kinds[i];

		if (k->event == EVENT_NEVER || (k->event == EVENT_WITH_PHASE && !new_phase) ||
		    !c->set || !c->status)
			continue;
		if (!old->set || !old->status || (k->recurs && old->since != c->since))
			event_record(r, k->warning, k->name, "%s",
				     c->message[0] ? c->message : c->reason);
	}
}

/* Observes how long the job took to run, and to end. */
static void count_times(struct reconcile *r, const struct job_status *before,
			const struct job_status *after)
{
	struct controller *c = r->controller;

	if (after->phase == JOB_RUNNING && before->phase <= JOB_PENDING && !before->restarts)
		mu_histogram_add(&c->to_running, r->now - after->start_time);
	if (after->phase >= JOB_SUCCEEDED && before->phase < JOB_SUCCEEDED && after->start_time > 0)
		mu_histogram_add(after->phase == JOB_SUCCEEDED ? &c->succeeded_in : &c->failed_in,
				 after->completion_time - after->start_time);
}

/* True when the status has to be written before the action: it records why a pod is gone.  The pods
 * that still run after the recorded end of a job need no such record. */
static bool needs_status(const struct snapshot *snapshot, const struct plan_action *a)
{
	const struct observed_job *o = &snapshot->observed;

	if (action_creates(a->kind) || a->kind == ACTION_CHECK_SECRET)
		return false;
	for (unsigned i = 0; o->status.phase >= JOB_SUCCEEDED && a->uid && i < o->n_pods; i++)
		if (strcmp(o->pods[i].uid, a->uid) == 0)
			return o->pods[i].phase == POD_SUCCEEDED || o->pods[i].phase == POD_FAILED;
	return true;
}

/* Status rate limit, per job. A new phase, a problem and a fact that the next reconcile needs are
 * written at once. Counts and progress are written at most once in STATUS_MIN_INTERVAL_S. The phase
 * Pending of a new job is written after FIRST_STATUS_DELAY_S. Many jobs run by then, and the API
 * server creates pods instead (100 jobs of 6 pods: 344 pods a second instead of 68 to 129). */
static double status_delay(const struct reconcile *r)
{
	const struct job_plan *plan = r->plan;
	const struct snapshot *snapshot = r->snapshot;
	bool first = snapshot->job->status.phase == JOB_NEW && plan->status.phase == JOB_PENDING;
	double left = first ? snapshot->observed.first_observed_at + FIRST_STATUS_DELAY_S - r->now
			    : snapshot->last_status_write + STATUS_MIN_INTERVAL_S - r->now;

	/* a longer delay: the clock was set back */
	if (left <= 0 || left > STATUS_MIN_INTERVAL_S || plan->urgent ||
	    (plan->status.phase != snapshot->job->status.phase && !first))
		return 0;
	for (unsigned i = 0; i < plan->n_actions; i++)
		if (needs_status(snapshot, &plan->actions[i]))
			return 0;
	return left;
}

int status_update(struct reconcile *r, bool at_once, struct mu_err *err)
{
	const struct job_status *before = &r->snapshot->job->status, *after = &r->plan->status;
	cJSON *change = job_status_patch(before, after);
	double delay = change && !at_once ? status_delay(r) : 0;

	if (delay > 0) {
		requeue_at(r, r->now + delay);
		cJSON_Delete(change);
		return 0;
	}
	MU_RETURN_IF_ERROR(patch_status(r, change, err));
	record_condition_events(r, before, after);
	if (after->phase != before->phase)
		count_times(r, before, after);
	return 0;
}

int status_report_invalid(struct reconcile *r, struct mu_err *err)
{
	const struct job *job = r->snapshot->job;
	const struct condition *trouble;
	struct job_status new_status;
	int rc;

	job_status_copy(&new_status, &job->status);
	job_status_set_invalid(&new_status, job->generation, job->spec_error, r->now);
	trouble = job_status_trouble(&job->status);
	rc = patch_status(r, job_status_patch(&job->status, &new_status), err);
	if (rc == 0 && new_status.completion_time <= 0 &&
	    (!trouble || strcmp(trouble->message, job_status_trouble(&new_status)->message) != 0))
		event_record(r, true, PLAN_INVALID_SPEC, "%s", job->spec_error);
	job_status_fini(&new_status);
	return rc;
}
