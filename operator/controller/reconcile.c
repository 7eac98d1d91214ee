/* SPDX-License-Identifier: Apache-2.0 */
/* One look at one job: snapshot, plan, create, store the status, remove. */
#include "operator/controller/reconcile.h"

#include <stdio.h>

#include "lib/base/log.h"
#include "lib/io/json.h"
#include "operator/api/object.h"
#include "operator/controller/apply.h"
#include "operator/controller/certs.h"
#include "operator/controller/events.h"
#include "operator/controller/status.h"
#include "operator/controller/task_token.h"

/* What was made is looked at again before the status is written: one write less for each step. */
enum { ROUNDS_MAX = 4 };
/* Status rate limit, per job.  A new phase, a problem and a fact that the next reconcile needs are
 * written at once.  Counts and progress are written at most once in this time. */
enum { STATUS_MIN_INTERVAL_S = 5 };

/* Says what changed since the stored status, once for each change. */
static void record_condition_events(struct reconcile *r, const struct job_status *was,
				    const struct job_status *is)
{
	bool moves = was->phase != is->phase;

	if (moves)
		mu_info("controller", "%s: %s -> %s", r->seen->key,
			was->phase == JOB_NEW ? "New" : job_phase_names[was->phase],
			job_phase_names[is->phase]);
	for (int i = 0; i < JOB_CONDITIONS; i++) {
		const struct condition *c = &is->conditions[i];
		bool before = was->conditions[i].set && was->conditions[i].status;

		bool unphased = i == COND_AWAITED || i == COND_KERNELS ||
				i == COND_STEP_RESET; /* with no new phase, too */

		if (i == COND_STEP_RESET) /* each of them has an event */
			before = before && was->conditions[i].since == c->since;
		if (!c->set || !c->status || before || i == COND_READY || i == COND_CREATED ||
		    (!moves && !unphased))
			continue;
		event_record(r, i == COND_FAILED || i == COND_RESTARTING || unphased,
			     condition_names[i], "%s", c->message[0] ? c->message : c->reason);
	}
}

static bool has_ended(const struct job_status *s)
{
	return s->phase == JOB_SUCCEEDED || s->phase == JOB_FAILED;
}

/* True when the condition Running was never True since the start of the job. */
static bool runs_first(const struct job_status *was, const struct job_status *is)
{
	const struct condition *running = &was->conditions[COND_RUNNING];

	return !running->set || (!running->status && running->since <= is->start_time);
}

/* Observes how long the job took to run, and to end. */
static void count_times(struct reconcile *r, const struct job_status *was,
			const struct job_status *is)
{
	struct controller *c = r->controller;

	if (is->phase == JOB_RUNNING && runs_first(was, is))
		mu_histogram_add(&c->to_running, r->now - is->start_time);
	if (has_ended(is) && !has_ended(was) && is->start_time > 0)
		mu_histogram_add(is->phase == JOB_SUCCEEDED ? &c->succeeded_in : &c->failed_in,
				 is->completion_time - is->start_time);
}

/* Reports a spec that the schema let through and that cannot be used. */
static int report_invalid(struct reconcile *r, struct mu_err *err)
{
	const struct job *job = r->seen->job;
	const struct condition *trouble;
	struct job_status wanted;
	int rc;

	if (job->deleting)
		return 0;
	job_status_copy(&wanted, &job->status);
	job_status_set_invalid(&wanted, job->generation, job->spec_error, r->now);
	trouble = job_status_trouble(&job->status);
	if (wanted.completion_time <= 0 &&
	    (!trouble || strcmp(trouble->message, job_status_trouble(&wanted)->message) != 0))
		event_record(r, true, PLAN_INVALID_SPEC, "%s", job->spec_error);
	rc = status_update(r, &wanted, err);
	job_status_fini(&wanted);
	return rc;
}

/* Whether the status has to be stored before this is done: it says why a pod is gone, of which
 * nobody else will tell.  Of a job whose end is stored the pods that still run may just go. */
static bool needs_status(const struct snapshot *seen, const struct plan_action *a)
{
	const struct observed_job *o = &seen->observed;

	if (action_creates(a->kind) || a->kind == ACTION_CHECK_SECRET)
		return false;
	for (unsigned i = 0; has_ended(&o->status) && a->uid && i < o->n_pods; i++)
		if (strcmp(o->pods[i].uid, a->uid) == 0)
			return o->pods[i].phase == POD_SUCCEEDED || o->pods[i].phase == POD_FAILED;
	return true;
}

/* How long the status write may wait, by the rate limit; 0: it is due. */
static double status_delay(const struct reconcile *r, const struct snapshot *seen,
			   const struct job_plan *plan)
{
	double left = seen->last_status_write + STATUS_MIN_INTERVAL_S - r->now;

	if (plan->status.phase != seen->observed.status.phase || plan->urgent || plan->at_once)
		return 0;
	for (unsigned i = 0; i < plan->n_actions; i++)
		if (needs_status(seen, &plan->actions[i]))
			return 0;
	/* longer: the clock was set back */
	return left > 0 && left <= STATUS_MIN_INTERVAL_S ? left : 0;
}

/* Records the events of a status that has been stored. */
static void record_transitions(struct reconcile *r, const struct snapshot *seen,
			       const struct job_plan *plan)
{
	record_condition_events(r, &seen->observed.status, &plan->status);
	if (plan->status.phase != seen->observed.status.phase)
		count_times(r, &seen->observed.status, &plan->status);
}

/* Updates the status, then deletes pods: the status is the only record of why a pod was deleted. */
static int conclude(struct reconcile *r, const struct snapshot *seen, const struct job_plan *plan,
		    struct mu_err *err)
{
	bool changed = job_plan_changes_status(plan, &seen->observed);
	double wait = changed ? status_delay(r, seen, plan) : 0;
	int rc = 0;

	if (wait > 0) {
		requeue_at(r, r->now + wait);
	} else {
		if (changed)
			rc = status_update(r, &plan->status, err);
		if (rc == 0)
			record_transitions(r, seen, plan);
	}
	if (rc == 0) /* a status that waits has no action that needs it: status_delay() */
		rc = apply_removals(r, plan, err);
	requeue_at(r, plan->wake);
	requeue_at(r, seen->doubt_until);
	return rc;
}

/* The job as the server has it now, before the first deed of our term and after a conflict: another
 * operator may have written what our watch has not brought yet (say, that an index is done). */
static int verify(struct reconcile *r, struct mu_err *err)
{
	struct controller *c = r->controller;
	MU_AUTO_FREE char *path =
	    mu_xasprintf("/apis/" JOB_API_VERSION "/namespaces/%s/distributedtrainingjobs/%s",
			 r->spec->namespace, r->spec->name);
	cJSON *object = NULL;
	int rc = c->io.call(
	    c->io.user, &(struct kube_request){.method = "GET", .path = path, .fields = job_fields},
	    &object, err);

	if (rc == -MU_NOT_FOUND)
		return 0; /* the watch will say so */
	if (rc < 0)
		return rc;
	store_assume_job(&c->store, object);
	cJSON_Delete(object);
	return 1;
}

/* Returns 1 when it made something and should look again, at a world that has it. */
static int look(struct reconcile *r, struct snapshot *seen, bool again, struct mu_err *err)
{
	struct plan_options options = {.image = r->controller->options.image,
				       .image_gpu = r->controller->options.image_gpu,
				       .image_board = r->controller->options.image_board,
				       .cert_life = r->controller->options.cert_life};
	MU_AUTO(job_plan_free) struct job_plan *plan = NULL;
	char digest[MU_TOKEN_SIZE];
	struct mu_err ignored = {0};
	int rc, rc_end;

	if (seen->stale)
		return verify(r, err);
	if (task_token_digest(r->controller, seen->job->uid, digest) == 0)
		options.token_digest = digest;
	seen->observed.next_since =
	    certs_next_since(&r->controller->certs, seen->job->uid,
			     seen->observed.status.security.ca, r->controller->queue.now());
	plan = job_plan_new(r->spec, &options, &seen->observed, r->now);
	if (plan->n_actions && !seen->verified)
		return verify(r, err);
	rc = certs_apply(r, plan, err);
	if (rc > 0) { /* stored at once: a pod is made only by whoever knows what it trusts */
		rc = status_update(r, &plan->status, err);
		if (rc == 0)
			record_transitions(r, seen, plan);
		return rc < 0 ? rc : 1;
	}
	if (rc < 0)
		return rc;
	rc = apply_creates(r, plan, err);
	/* the status of a world that was not reached is no news, nor is one that is old already, or
	 * says of a task that it knows what it does not */
	if (!r->behind && rc != -MU_UNAVAILABLE && rc != -MU_CANCELLED &&
	    rc != -MU_DEADLINE_EXCEEDED && !(rc > 0 && again)) {
		rc_end = conclude(r, seen, plan, rc < 0 ? &ignored : err);
		rc = rc < 0 ? rc : rc_end;
	}
	return rc > 0 ? 1 : rc;
}

static int reconcile_once(struct reconcile *r, const char *key, bool again, struct mu_err *err)
{
	struct controller *c = r->controller;
	struct snapshot seen;
	int rc = 0;

	if (snapshot_take(&c->store, key, r->now, &seen)) { /* else: the job is gone */
		r->behind = false;
		r->seen = &seen;
		r->spec = seen.job->spec;
		if (!r->spec)
			rc = report_invalid(r, err);
		else if (!job_spec_is_foreign(r->spec))
			rc = look(r, &seen, again, err);
	}
	snapshot_fini(&seen);
	return rc;
}

int reconcile(struct controller *c, const char *key, double *wake, struct mu_err *err)
{
	struct reconcile r = {.controller = c, .now = c->io.now(c->io.user)};
	int rc = 1;

	for (int round = 1; rc > 0 && round <= ROUNDS_MAX; round++)
		rc = reconcile_once(&r, key, round < ROUNDS_MAX, err);
	if (rc > 0) /* no watch tells of what we know already */
		requeue_at(&r, r.now + REQUEUE_SOON_S);
	*wake = r.wake;
	return rc < 0 ? mu_wrap(err, "job %s", key) : 0;
}
