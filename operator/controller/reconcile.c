/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/reconcile.h"

#include "operator/controller/controller.h"

/* Reads the job from the API server, before our first write and after a conflict: another operator
 * may have written what our watch has not delivered yet. */
static int refresh_job(struct reconcile *r, struct mu_err *err)
{
	struct controller *c = r->controller;
	MU_AUTO_FREE char *path = apply_path(r, KIND_JOB, r->seen->job->meta.name);
	cJSON *object = NULL;
	int rc = controller_call(c, "GET", path, NULL, &object, err);

	if (rc < 0)
		return rc == -MU_NOT_FOUND ? 0 : rc; /* the watch will deliver the deletion */
	store_update_job(&c->store, object, 0);
	cJSON_Delete(object);
	requeue_at(r, r->now);
	return 0;
}

static struct job_plan *make_plan(struct reconcile *r, struct snapshot *seen)
{
	const struct controller_options *o = &r->controller->options;
	struct plan_options options = {.image = o->image,
				       .image_gpu = o->image_gpu,
				       .image_tensorboard = o->image_tensorboard,
				       .cert_life = o->cert_life};
	char digest[MU_TOKEN_SIZE];

	if (task_token_digest(r->controller, seen->job->meta.uid, digest) == 0)
		options.token_digest = digest;
	return job_plan_new(r->spec, &options, &seen->observed, r->now);
}

/* Plans, creates, updates the status, deletes.  After a create the next reconcile goes on.  The
 * status comes before the deletes: it is the only record of why a pod was deleted. */
static int sync_job(struct reconcile *r, struct snapshot *seen, struct mu_err *err)
{
	MU_AUTO(job_plan_free) struct job_plan *plan = make_plan(r, seen);
	struct mu_err ignored = {0};
	int rc, rc_create;

	if (plan->n_actions && !seen->verified)
		return refresh_job(r, err);
	rc = certs_apply(r, plan, err);
	if (rc > 0) { /* the certificates are recorded before a pod that trusts them is created */
		requeue_at(r, r->now);
		return status_update(r, plan, true, err);
	}
	if (rc < 0)
		return rc;
	rc_create = apply_creates(r, plan, err);
	if (rc_create > 0) /* the next reconcile, which sees the new pods, writes the status */
		requeue_at(r, r->now + REQUEUE_SOON_S);
	/* A pod that the plan takes for missing may exist, with an older epoch. */
	if (rc_create < 0)
		plan->status.epoch_seen = seen->job->status.epoch_seen;
	if (rc_create > 0 || controller_is_unreachable(rc_create))
		return rc_create < 0 ? rc_create : 0;
	rc = status_update(r, plan, false, rc_create < 0 ? &ignored : err);
	if (rc == 0) /* no delete needs a status that is delayed: status_delay() */
		rc = apply_removals(r, plan, rc_create < 0 ? &ignored : err);
	requeue_at(r, plan->wake);
	requeue_at(r, seen->expectations_expire_at);
	return rc_create < 0 ? rc_create : rc;
}

int reconcile(struct controller *c, const char *key, double *requeue_after, struct mu_err *err)
{
	struct reconcile r = {.controller = c, .now = c->io.now(c->io.user)};
	struct snapshot seen;
	int rc = 0;

	if (snapshot_take(&c->store, key, r.now, &seen)) { /* else: the job is gone */
		r.seen = &seen;
		r.spec = seen.job->spec;
		if (!seen.job->is_foreign)
			rc = r.spec ? sync_job(&r, &seen, err) : status_report_invalid(&r, err);
		if (r.job_is_stale)
			refresh_job(&r, NULL);
	}
	snapshot_fini(&seen);
	*requeue_after = r.wake;
	return rc < 0 ? mu_wrap(err, "job %s", key) : 0;
}
