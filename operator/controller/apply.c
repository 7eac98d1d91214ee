/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the actions of a plan.
 *
 * Creates: names are deterministic.  AlreadyExists means success when the object's controller is
 * this job; any other object of that name is not changed.
 *
 * Removals: a delete carries the UID of the object in the snapshot. */
#include "operator/controller/reconcile.h"

#include <stdio.h>

#include "operator/api/object_json.h"
#include "operator/controller/render.h"

/* Accept header for the create of a pod: the operator knows all but the metadata. */
static const char metadata_only[] =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

char *apply_path(const struct reconcile *r, enum object_kind kind, const char *name)
{
	return mu_xasprintf("%s/namespaces/%s/%s%s%s", kinds[kind].group,
			    r->snapshot->job->meta.namespace, kinds[kind].resource, name ? "/" : "",
			    name ? name : "");
}

/* Records the first error.  Returns true if the remaining actions would fail too. */
static bool record_error(struct reconcile *r, int rc, const struct mu_err *err)
{
	if (rc < 0 && r->first_error == 0) {
		r->first_error = rc;
		r->first_message = *err;
	}
	return controller_is_unreachable(rc) || rc == -MU_FAILED_PRECONDITION ||
	       rc == -MU_RESOURCE_EXHAUSTED;
}

/* ---- creates ---- */

/* Reads the object of this name.  Returns 0 with *out if it is this job's and not being deleted.
 * ABORTED: it is being deleted, or belongs to an earlier job of this name, whose objects the
 * garbage collector deletes.  ALREADY_EXISTS: it has any other owner. */
static int find_owned(struct reconcile *r, enum object_kind kind, const char *name, cJSON **out,
		      struct mu_err *err)
{
	const char *resource = kinds[kind].resource;
	const struct object *job = &r->snapshot->job->meta;
	MU_AUTO_FREE char *path = apply_path(r, kind, name);
	cJSON *found = NULL;
	int rc = controller_call(r->controller, "GET", path, NULL, &found, err);
	const cJSON *owner = object_controller(found);
	bool ours = strcmp(text_or_empty(owner, "uid"), job->uid) == 0;

	if (rc == 0 && (at(at(found, "metadata"), "deletionTimestamp") ||
			(!ours && strcmp(text_or_empty(owner, "kind"), JOB_KIND) == 0 &&
			 strcmp(text_or_empty(owner, "name"), job->name) == 0)))
		rc = mu_fail(err, MU_ABORTED, "%s/%s is still being deleted", resource, name);
	else if (rc == 0 && !ours)
		rc = mu_fail(err, MU_ALREADY_EXISTS,
			     "%s/%s exists and is not this job's: delete it or rename the job",
			     resource, name);
	if (rc == 0)
		*out = found;
	else
		cJSON_Delete(found);
	return rc;
}

/* Records an event about an object that cannot be created.  Returns rc. */
static int report_create_failure(struct reconcile *r, enum object_kind kind, const char *name,
				 int rc, const struct mu_err *err)
{
	if (rc == -MU_ALREADY_EXISTS)
		event_record(r, true, "NameTaken", "%s", err->msg);
	else if (rc == -MU_PERMISSION_DENIED || rc == -MU_INVALID_ARGUMENT)
		event_record(r, true, "FailedCreate", "%s/%s: %s; %s", kinds[kind].resource, name,
			     err->msg, job_plan_advice(err->msg));
	return rc;
}

static enum object_kind kind_of(const struct reconcile *r, const struct plan_action *a)
{
	return a->kind == ACTION_CREATE_SERVICE  ? KIND_SERVICE
	       : a->kind == ACTION_CREATE_POLICY ? KIND_POLICY
	       : a->kind == ACTION_PUT_GROUP     ? gangs[r->spec->gang].group
						 : KIND_POD;
}

static cJSON *object_of(const struct reconcile *r, const struct plan_action *a)
{
	const struct controller_options *o = &r->controller->options;

	return a->kind == ACTION_CREATE_SERVICE
		   ? (a->pod ? render_tensorboard_service(r->spec, a->pod)
			     : render_service(r->spec))
	       : a->kind == ACTION_CREATE_POLICY
		   ? render_policy(r->spec, o->lease_namespace, o->status_from)
	       : a->kind == ACTION_PUT_GROUP ? render_group(r->spec, a->index)
					     : render_pod(r->spec, a->pod);
}

/* Creates the object of the action.  Returns 0, or 1 if it existed and is ours; then *out is the
 * object on the server.  Pods are validated strictly: the API server rejects unknown members of the
 * user's template instead of dropping them. */
static int create_object(struct reconcile *r, const struct plan_action *a, cJSON **out,
			 struct mu_err *err)
{
	enum object_kind kind = kind_of(r, a);
	cJSON *object = object_of(r, a);
	MU_AUTO_FREE char *name = mu_xstrdup(object_name(object));
	MU_AUTO_FREE char *all = apply_path(r, kind, NULL);
	MU_AUTO_FREE char *path =
	    mu_xasprintf("%s%s", all, kind == KIND_POD ? "?fieldValidation=Strict" : "");
	MU_AUTO_FREE char *body = cJSON_PrintUnformatted(object);
	struct kube_request rq = {.method = "POST",
				  .path = path,
				  .body = mu_span_of(body),
				  .accept = kind == KIND_POD ? metadata_only : NULL};
	int rc = controller_send(r->controller, &rq, out, err);

	cJSON_Delete(object);
	if (rc == -MU_ALREADY_EXISTS) {
		if ((rc = find_owned(r, kind, name, out, err)) == 0)
			return 1;
		if (rc == -MU_NOT_FOUND) /* it was deleted meanwhile */
			rc = -MU_ABORTED;
	}
	if (rc == -MU_ABORTED) /* the deletion of the other object has no event for this job */
		requeue_at(r, r->now + BEING_DELETED_RETRY_S);
	return report_create_failure(r, kind, name, rc, err);
}

/* Patches minMember of the group *out if it differs from `members`. */
static int resize_group(struct reconcile *r, enum object_kind kind, int members, cJSON **out,
			struct mu_err *err)
{
	const cJSON *current = at(at(*out, "spec"), "minMember");
	MU_AUTO_FREE char *path = apply_path(r, kind, r->spec->name);
	cJSON *patch;
	int rc;

	if (cJSON_IsNumber(current) && current->valueint == members)
		return 0;
	cJSON_Delete(mu_steal(out));
	patch = mu_json_pack("{'metadata': {'labels': {'" LABEL_JOB
			     "': %s}}, 'spec': {'minMember': %d}}",
			     r->spec->name, members);
	rc = controller_call(r->controller, "PATCH", path, patch, out, err);
	/* deleted since it was read: the next reconcile creates it */
	return rc == -MU_NOT_FOUND ? mu_fail(err, MU_ABORTED, "the PodGroup was deleted") : rc;
}

/* Creates or resizes the PodGroup.  After a restart it may exist before a watch delivers it. */
static int put_group(struct reconcile *r, const struct plan_action *a, cJSON **out,
		     struct mu_err *err)
{
	enum object_kind kind = kind_of(r, a);
	const char *api = kinds[kind].group + strlen("/apis/");
	int rc = find_owned(r, kind, r->spec->name, out, err);

	if (rc == -MU_NOT_FOUND)
		rc = create_object(r, a, out, err);
	if (rc >= 0)
		rc = resize_group(r, kind, a->index, out, err);
	if (rc >= 0)
		controller_watch_kind(r->controller, kind);
	if (rc != -MU_NOT_FOUND)
		return rc;
	mu_fail(err, MU_INVALID_ARGUMENT, "no podgroups of %s in this cluster", api);
	event_record(r, true, "GangUnavailable", "%s; %s", err->msg, job_plan_advice(err->msg));
	return -MU_INVALID_ARGUMENT; /* a rejection: it becomes a condition */
}

/* Records one event for all pods that this reconcile created. */
static void record_created_pods(struct reconcile *r, const unsigned *created)
{
	MU_AUTO_BUF text = {0};

	for (unsigned t = 0; t < r->spec->n_tasks; t++)
		if (created[t])
			mu_buf_printf(&text, "%s%u %s", text.len ? ", " : "", created[t],
				      r->spec->tasks[t].name);
	if (text.len)
		event_record(r, false, "PodsCreated", "created %s", text.data);
}

/* True if the API server rejected the request, so that a retry alone does not help. */
static bool is_rejection(int rc)
{
	return rc == -MU_PERMISSION_DENIED || rc == -MU_INVALID_ARGUMENT ||
	       rc == -MU_ALREADY_EXISTS;
}

/* The results of the creates so far. */
struct create_results {
	unsigned created[JOB_MAX_TASKS];    /* pods */
	const struct plan_action *rejected; /* the first rejected action */
	struct mu_err reason;               /* why it was rejected */
	unsigned n_rejected;                /* all rejected actions */
	bool created_or_found;              /* at least one object */
};

/* Records the result of one create.  Returns false if the remaining creates would fail too. */
static bool record_result(struct reconcile *r, struct create_results *c,
			  const struct plan_action *a, int rc, const struct mu_err *err)
{
	/* without the group the pods would not be placed, or not together; TensorBoard's Service is
	 * only created before its pod */
	bool needed = a->kind == ACTION_PUT_GROUP || (a->kind == ACTION_CREATE_SERVICE && a->pod);

	if (rc == 0 && a->kind == ACTION_CREATE_POD)
		c->created[a->pod->spec - r->spec->tasks]++;
	c->created_or_found = c->created_or_found || rc >= 0;
	if (is_rejection(rc) && c->n_rejected++ == 0) {
		c->rejected = a;
		c->reason = *err;
	}
	/* a quota that rejects one pod rejects the others */
	if (record_error(r, rc, err) || rc == -MU_PERMISSION_DENIED)
		return false;
	return rc >= 0 || !needed;
}

int apply_creates(struct reconcile *r)
{
	struct job_plan *plan = r->plan;
	struct create_results c = {0};
	bool may_continue = true;

	for (unsigned i = 0; i < plan->n_actions && may_continue; i++) {
		const struct plan_action *a = &plan->actions[i];
		struct mu_err err = {0};
		cJSON *out = NULL;
		int rc;

		if (!action_creates(a->kind))
			continue;
		rc = a->kind == ACTION_PUT_GROUP ? put_group(r, a, &out, &err)
						 : create_object(r, a, &out, &err);
		if (rc >= 0 && !store_expect(&r->controller->store, kind_of(r, a), out, r->now))
			rc = mu_fail(&err, MU_INVALID_ARGUMENT,
				     "something removed the labels muster.dev/* of %s: delete it",
				     a->name ? a->name : r->spec->name);
		cJSON_Delete(out);
		may_continue = record_result(r, &c, a, rc, &err);
	}
	record_created_pods(r, c.created);
	if (c.rejected) {
		job_plan_rejected(plan, c.rejected, c.reason.msg, c.n_rejected - 1, r->now);
		requeue_at(r, r->now + REJECTED_RETRY_S);
	}
	if (r->first_error < 0) {
		/* a pod that the plan does not know may exist, with an older epoch */
		plan->status.epoch_seen = r->snapshot->job->status.epoch_seen;
		return controller_is_unreachable(r->first_error) ? r->first_error : 0;
	}
	if (c.created_or_found)
		requeue_at(r, r->now + REQUEUE_SOON_S);
	return c.created_or_found;
}

/* ---- removals ---- */

/* NotFound counts as success.  A conflict does not: the name may have another object by now. */
static int delete_object(struct reconcile *r, enum object_kind kind, const char *name,
			 const char *uid, bool without_grace, struct mu_err *err)
{
	MU_AUTO_FREE char *path = apply_path(r, kind, name);
	cJSON *body =
	    mu_json_pack("{'preconditions': {'uid': %s}, 'propagationPolicy': 'Background'}", uid);
	int rc;

	if (kind == KIND_JOB) /* the user may just have changed its ttlSecondsAfterFinished */
		mu_json_set(
		    (cJSON *)at(body, "preconditions"),
		    mu_json_pack("{'resourceVersion': %s}", r->snapshot->job->resource_version));
	if (without_grace)
		mu_json_set(body, mu_json_pack("{'gracePeriodSeconds': 0}"));
	rc = controller_call(r->controller, "DELETE", path, body, NULL, err);
	r->job_is_stale = r->job_is_stale || (kind == KIND_JOB && rc == -MU_ABORTED);
	return rc == -MU_NOT_FOUND ? 0 : rc;
}

static int delete_pod(struct reconcile *r, const struct plan_action *a, struct mu_err *err)
{
	bool without_grace = a->kind == ACTION_FORCE_DELETE_POD;
	int rc = delete_object(r, KIND_POD, a->name, a->uid, without_grace, err);

	if (rc == 0)
		store_deleted(&r->controller->store, a->uid, without_grace);
	if (rc == 0 && without_grace) /* there is no watch event if the pod was deleted before */
		requeue_at(r, r->now + REQUEUE_SOON_S);
	return rc;
}

/* Requests the server to finish.  If it cannot be reached, deletes its pod. */
static int finish_pod(struct reconcile *r, const struct plan_action *a, struct mu_err *err)
{
	const struct snapshot *snapshot = r->snapshot;
	struct controller *c = r->controller;
	unsigned i = 0;

	while (i < snapshot->observed.n_pods && strcmp(snapshot->observed.pods[i].uid, a->uid) != 0)
		i++;
	if (i < snapshot->observed.n_pods && task_runs(snapshot, i) &&
	    c->io.post(c->io.user, snapshot->pods[i].pod, "finish", "", NULL) == 0) {
		store_finish_requested(&c->store, a->uid, r->now);
		requeue_at(r, r->now + REQUEUE_SOON_S);
		return 0;
	}
	return r->spec->clean == CLEAN_NONE ? 0 : delete_pod(r, a, err);
}

static int apply_one(struct reconcile *r, const struct plan_action *a, struct mu_err *err)
{
	const struct owned *service = r->snapshot->owned[KIND_SERVICE];
	const struct object *o = a->kind == ACTION_DELETE_JOB ? &r->snapshot->job->meta
				 : a->kind == ACTION_DELETE_SERVICE && service ? &service->meta
									       : NULL;

	if (a->kind == ACTION_DELETE_POD || a->kind == ACTION_FORCE_DELETE_POD)
		return delete_pod(r, a, err);
	if (a->kind == ACTION_FINISH_POD)
		return finish_pod(r, a, err);
	/* secrets: done before all others, by certs_apply */
	return o ? delete_object(r, o->kind, o->name, o->uid, false, err) : 0;
}

void apply_removals(struct reconcile *r)
{
	bool may_continue = true;

	for (unsigned i = 0; i < r->plan->n_actions && may_continue; i++) {
		const struct plan_action *a = &r->plan->actions[i];
		struct mu_err err = {0};
		int rc;

		if (action_creates(a->kind))
			continue;
		rc = apply_one(r, a, &err);
		if (rc == 0 && a->uid && a->kind != ACTION_FINISH_POD && a->reason)
			event_record(r, a->kind == ACTION_FORCE_DELETE_POD, a->reason, "%s",
				     a->message ? a->message : a->name);
		may_continue = !record_error(r, rc, &err);
	}
}
