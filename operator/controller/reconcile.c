/* SPDX-License-Identifier: Apache-2.0 */
/* The reconcile of one job: takes a snapshot, plans, executes the actions, updates the status. */
#include "operator/controller/reconcile.h"

/* Reads the job from the API server, after a conflict and before our first write: another operator
 * may have made changes that our watch has not delivered yet. */
static int refresh_job(struct reconcile *r, struct mu_err *err)
{
	struct controller *c = r->controller;
	MU_AUTO_FREE char *path = apply_path(r, KIND_JOB, r->snapshot->job->meta.name);
	cJSON *object = NULL;
	int rc = controller_call(c, "GET", path, NULL, &object, err);

	if (rc < 0)
		return rc == -MU_NOT_FOUND ? 0 : rc; /* the watch will deliver the deletion */
	store_update_job(&c->store, object, 0);
	cJSON_Delete(object);
	requeue_at(r, r->now);
	return 0;
}

/* The digest of the job's token, "" without one.  Only a plan that creates pods needs it. */
static const char *token_digest(void *reconcile)
{
	struct reconcile *r = reconcile;

	if (!r->token_digest[0])
		task_token_digest(r->controller, r->snapshot->job->meta.uid, r->token_digest);
	return r->token_digest;
}

/* Each planned pod has the addresses of all tasks.  The reconcile after a create plans others. */
enum { CREATES_MAX = 100 };

static struct job_plan *make_plan(struct reconcile *r)
{
	const struct controller_options *o = &r->controller->options;
	struct plan_options options = {.image = o->image,
				       .image_gpu = o->image_gpu,
				       .image_tensorboard = o->image_tensorboard,
				       .cert_life = o->cert_life,
				       .creates_max = CREATES_MAX,
				       .token_digest = token_digest,
				       .user = r};

	return job_plan_new(r->spec, &options, &r->snapshot->observed, r->now);
}

/* Plans, creates, updates the status, deletes.  The status comes before the deletes: it is the only
 * record of why a pod was deleted.  A step that returns 1 ends the reconcile; the next reconcile
 * continues. */
int reconcile(struct controller *c, const char *key, double *requeue_after, struct mu_err *err)
{
	struct snapshot snapshot = {0};
	struct reconcile r = {.controller = c, .snapshot = &snapshot, .now = c->io.now(c->io.user)};
	double start = c->queue.now();
	int rc = 0;

	if (!c->io.may_write(c->io.user))
		return 0;
	if (!snapshot_take(&c->store, key, r.now, &snapshot) || snapshot.job->is_foreign ||
	    snapshot.job->deleting) {
		/* the job is gone, being deleted, or another controller's */
	} else if (!snapshot.job->spec) {
		rc = status_report_invalid(&r, err);
	} else {
		r.spec = snapshot.job->spec;
		r.plan = make_plan(&r);
		requeue_at(&r, r.plan->requeue_at);
		requeue_at(&r, snapshot.expectations_expire_at);
		if (r.plan->n_actions && !snapshot.verified)
			rc = refresh_job(&r, err);
		else if ((rc = certs_apply(&r, err)) == 0 && (rc = apply_creates(&r)) == 0 &&
			 (rc = status_update(&r, false, err)) == 0)
			apply_removals(&r);
	}
	if (r.job_is_stale) /* best effort: the retry after the conflict reads it again */
		refresh_job(&r, NULL);
	if (r.first_error < 0) {
		rc = r.first_error;
		*err = r.first_message;
	}
	job_plan_free(r.plan);
	snapshot_fini(&snapshot);
	*requeue_after = r.requeue_after;
	mu_histogram_add(&c->reconcile_seconds, c->queue.now() - start);
	atomic_fetch_add(&c->reconciles, 1);
	return rc < 0 ? mu_wrap(err, "job %s", key) : 0;
}
