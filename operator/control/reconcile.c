/* SPDX-License-Identifier: Apache-2.0 */
/* One look at one job: snapshot, plan, create, store the status, remove. */
#include "operator/control/reconcile.h"

#include <stdio.h>

#include "lib/base/log.h"
#include "lib/io/json.h"
#include "operator/control/apply.h"
#include "operator/control/at.h"
#include "operator/control/certs.h"
#include "operator/control/events.h"
#include "operator/control/status.h"
#include "operator/control/task_token.h"

/* What was made is looked at again before the status is written: one write less for each step. */
enum { ROUNDS_MAX = 4 };
/* Status rate limit, per job.  A new phase, a problem and a fact that the next reconcile needs are
 * written at once.  Counts and progress are written at most once in this time. */
enum { STATUS_MIN_INTERVAL_S = 5 };

const cJSON *reconcile_stored(struct reconcile *r)
{
	if (!r->stored && r->seen->status)
		r->stored = kube_json(mu_span_of(r->seen->status), NULL);
	return r->stored;
}

/* Says what changed since the stored status, once for each change. */
static void say_transitions(struct reconcile *r, const struct job_status *was,
			    const struct job_status *is)
{
	bool moves = was->phase != is->phase;

	if (moves)
		mu_info("control", "%s: %s -> %s", r->seen->key,
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
	struct control *c = r->control;

	if (is->phase == JOB_RUNNING && runs_first(was, is))
		mu_histogram_add(&c->to_running, r->now - is->start_time);
	if (has_ended(is) && !has_ended(was) && is->start_time > 0)
		mu_histogram_add(is->phase == JOB_SUCCEEDED ? &c->succeeded_in : &c->failed_in,
				 is->completion_time - is->start_time);
}

static const char *summary_of(const cJSON *status)
{
	const char *message = cJSON_GetStringValue(at(at(status, "summary"), "message"));

	return message ? message : "";
}

/* The schema let it through and it cannot work.  What is on its way out is left alone. */
static int refuse(struct reconcile *r, const char *why, struct mu_err *err)
{
	cJSON *object = kube_json(mu_span_of(r->seen->text), NULL);
	const cJSON *metadata = at(object, "metadata");
	bool going = at(metadata, "deletionTimestamp");
	cJSON *status =
	    status_invalid(reconcile_stored(r), at(metadata, "generation"), why, r->now);

	cJSON_Delete(object);
	if (going) {
		cJSON_Delete(status);
		return 0;
	}
	if (strcmp(summary_of(reconcile_stored(r)), summary_of(status)) != 0)
		event_record(r, true, PLAN_INVALID_SPEC, "%s", why);
	cache_set_phase(&r->control->cache, r->seen->key,
			job_phase_of(cJSON_GetStringValue(at(status, "phase"))));
	return status_store(r, status, 0, err);
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
	say_transitions(r, &seen->observed.status, &plan->status);
	if (plan->status.phase != seen->observed.status.phase)
		count_times(r, &seen->observed.status, &plan->status);
	cache_set_phase(&r->control->cache, seen->key, plan->status.phase);
}

/* Stores what the plan says of the job, then removes what may go only after that. */
static int conclude(struct reconcile *r, const struct snapshot *seen, const struct job_plan *plan,
		    struct mu_err *err)
{
	MU_AUTO_BUF text = {0};
	uint64_t said;
	double wait;
	int rc = 0;

	job_status_write(&plan->status, &text);
	said = status_hash(r, mu_buf_span(&text));
	wait = said == seen->settled ? 0 : status_delay(r, seen, plan);
	if (said != seen->settled && wait <= 0)
		rc =
		    status_store(r, status_wanted(r, &plan->status, mu_buf_span(&text)), said, err);
	if (wait > 0) {
		reconcile_wake(r, r->now + wait);
	} else if (rc == 0) {
		cache_set_notice(&r->control->cache, seen->key, plan->notice, plan->status.epoch);
		record_transitions(r, seen, plan);
	}
	if (rc == 0) /* a status that waits has no action that needs it: status_delay() */
		rc = apply_removals(r, plan, err);
	reconcile_wake(r, plan->wake);
	reconcile_wake(r, seen->doubt_until);
	return rc;
}

/* The job as the server has it now, before the first deed of our term and after a conflict: another
 * operator may have written what our watch has not brought yet (say, that an index is done). */
static int verify(struct reconcile *r, struct mu_err *err)
{
	struct control *c = r->control;
	MU_AUTO_FREE char *path =
	    mu_xasprintf("/apis/" JOB_API_VERSION "/namespaces/%s/distributedtrainingjobs/%s",
			 r->spec->namespace, r->spec->name);
	cJSON *object = NULL;
	int rc = c->io.call(
	    c->io.user,
	    &(struct kube_request){.method = "GET", .path = path, .fields = cache_job_fields},
	    &object, err);

	if (rc == -MU_NOT_FOUND)
		return 0; /* the watch will say so */
	if (rc < 0)
		return rc;
	cache_assume_job(&c->cache, object);
	cJSON_Delete(object);
	return 1;
}

static int read_status(struct snapshot *seen, struct mu_err *err)
{
	MU_AUTO(mu_doc_free) struct mu_doc *doc = NULL;
	struct mu_err why = {0};
	int rc;

	if (!seen->status)
		return 0;
	rc = mu_json_parse(&doc, mu_span_of(seen->status), "status", err);
	if (rc == 0 && job_status_read(&seen->observed.status, doc->root, &why) < 0)
		mu_warn("control", "%s: the stored status does not read, starting anew: %s",
			seen->key, why.msg);
	return rc;
}

static int64_t step_number(const cJSON *n)
{
	return cJSON_IsNumber(n) && n->valuedouble >= 0 && n->valuedouble < 1e18
		   ? (int64_t)n->valuedouble
		   : 0;
}

/* The progress that a chief reports as it ends has the reason. */
static void read_final_report(struct snapshot *seen)
{
	cJSON *report = seen->progress && strstr(seen->progress, "\"reason\"")
			    ? cJSON_Parse(seen->progress)
			    : NULL;
	struct final_report *out = &seen->observed.final;

	out->reason = end_reason_of(cJSON_GetStringValue(at(report, "reason")));
	if (out->reason != END_UNKNOWN) {
		out->step = step_number(at(report, "step"));
		out->target = step_number(at(report, "targetStep"));
	}
	cJSON_Delete(report);
}

/* Returns 1 when it made something and should look again, at a world that has it. */
static int look(struct reconcile *r, struct snapshot *seen, bool again, struct mu_err *err)
{
	struct plan_options options = {.image = r->control->options.image,
				       .image_gpu = r->control->options.image_gpu,
				       .image_board = r->control->options.image_board,
				       .cert_life = r->control->options.cert_life};
	MU_AUTO(job_plan_free) struct job_plan *plan = NULL;
	char digest[MU_TOKEN_SIZE];
	struct mu_err ignored = {0};
	int rc, rc_end;

	if (seen->stale)
		return verify(r, err);
	rc = read_status(seen, err);
	if (rc < 0)
		return rc;
	read_final_report(seen);
	if (task_token_digest(r->control, seen->uid, digest) == 0)
		options.token_digest = digest;
	seen->observed.next_since =
	    certs_next_since(&r->control->certs, seen->uid, seen->observed.status.security.ca,
			     r->control->queue.now());
	plan = job_plan_new(r->spec, &options, &seen->observed, r->now);
	if (plan->n_actions && !seen->verified) {
		job_status_fini(&seen->observed.status);
		return verify(r, err);
	}
	rc = certs_apply(r, plan, err);
	if (rc) { /* stored at once: a pod is made only by whoever knows what it trusts */
		MU_AUTO_BUF text = {0};

		job_status_write(&plan->status, &text);
		if (rc > 0)
			rc_end = status_store(
			    r, status_wanted(r, &plan->status, mu_buf_span(&text)), 0, err);
		if (rc > 0 && rc_end == 0)
			record_transitions(r, seen, plan);
		job_status_fini(&seen->observed.status);
		return rc < 0 ? rc : rc_end < 0 ? rc_end : 1;
	}
	rc = apply_creates(r, plan, err);
	/* the status of a world that was not reached is no news, nor is one that is old already, or
	 * says of a task that it knows what it does not */
	if (!r->behind && rc != -MU_UNAVAILABLE && rc != -MU_CANCELLED &&
	    rc != -MU_DEADLINE_EXCEEDED && !(rc > 0 && again)) {
		rc_end = conclude(r, seen, plan, rc < 0 ? &ignored : err);
		rc = rc < 0 ? rc : rc_end;
	}
	job_status_fini(&seen->observed.status);
	return rc > 0 ? 1 : rc;
}

static int read_spec(struct job_spec **out, struct control *c, const struct snapshot *seen,
		     struct mu_err *err)
{
	struct mu_doc *doc;
	int rc;

	*out = spec_memo_take(&c->specs, seen->uid, seen->manifest);
	if (*out)
		return 0;
	rc = mu_json_parse(&doc, mu_span_of(seen->text), seen->key, err);
	return rc < 0 ? rc : job_spec_from_doc(out, doc, err);
}

static int reconcile_once(struct reconcile *r, const char *key, bool again, struct mu_err *err)
{
	struct control *c = r->control;
	struct snapshot seen;
	struct job_spec *spec = NULL;
	struct mu_err why = {0};
	int rc;

	if (!cache_snapshot(&c->cache, key, r->now, &seen)) {
		snapshot_fini(&seen);
		return 0; /* the job is gone; the garbage collector has what it owned */
	}
	r->stored = NULL;
	r->behind = false;
	r->seen = &seen;
	rc = read_spec(&spec, c, &seen, &why);
	r->spec = spec;
	if (rc == 0 && job_spec_is_foreign(spec))
		rc = 0; /* another controller writes its pods and its status */
	else if (rc == 0)
		rc = look(r, &seen, again, err);
	else
		rc = refuse(r, why.msg, err);
	cJSON_Delete(r->stored);
	if (spec)
		spec_memo_put(&c->specs, seen.uid, seen.manifest, spec);
	snapshot_fini(&seen);
	return rc;
}

int reconcile(struct control *c, const char *key, double *wake, struct mu_err *err)
{
	struct reconcile r = {.control = c, .now = c->io.now(c->io.user)};
	int rc = 1;

	for (int round = 1; rc > 0 && round <= ROUNDS_MAX; round++)
		rc = reconcile_once(&r, key, round < ROUNDS_MAX, err);
	if (rc > 0) /* no watch tells of what we know already */
		reconcile_wake(&r, r.now + RECONCILE_SOON_S);
	*wake = r.wake;
	return rc < 0 ? mu_wrap(err, "job %s", key) : 0;
}
