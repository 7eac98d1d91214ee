/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the objects of a plan.
 *
 * Names are deterministic.  AlreadyExists means success when the object's controller is this job;
 * any other object of that name is left alone. */
#include "operator/controller/reconcile.h"

#include <stdio.h>

#include "operator/api/object_json.h"
#include "operator/controller/events.h"
#include "operator/controller/render.h"

static const double REJECTED_RETRY_S = 30;
/* The response to the create of a pod, whose other members the operator has just sent. */
static const char metadata_only[] =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/* Reads the object of this name.  *out is set when it is ours and stays; else NOT_FOUND, ABORTED
 * while it is being deleted, or ALREADY_EXISTS. */
static int find_owned(struct reconcile *r, enum object_kind kind, const char *name, cJSON **out,
		      struct mu_err *err)
{
	const char *resource = kinds[kind].resource;
	MU_AUTO_FREE char *path = apply_path(r, kind, name);
	cJSON *found = NULL;
	int rc = controller_call(r->controller, "GET", path, NULL, &found, err);

	if (rc == 0 && strcmp(object_owner(found), r->seen->job->meta.uid) != 0)
		rc = mu_fail(err, MU_ALREADY_EXISTS,
			     "%s/%s exists and is not this job's: delete it or rename the job",
			     resource, name);
	else if (rc == 0 && at(at(found, "metadata"), "deletionTimestamp"))
		rc = mu_fail(err, MU_ABORTED, "%s/%s is still being deleted", resource, name);
	if (rc == 0)
		*out = found;
	else
		cJSON_Delete(found);
	return rc;
}

/* Records an event about an object that cannot be created.  Returns rc. */
static int report(struct reconcile *r, enum object_kind kind, const char *name, int rc,
		  const struct mu_err *err)
{
	if (rc == -MU_ALREADY_EXISTS)
		event_record(r, true, "NameTaken", "%s", err->msg);
	else if (rc == -MU_PERMISSION_DENIED || rc == -MU_INVALID_ARGUMENT)
		event_record(r, true, "FailedCreate", "%s/%s: %s; %s", kinds[kind].resource, name,
			     err->msg, job_plan_advice(err->msg));
	return rc;
}

/* Creates an object, which it takes.  Returns 0, or 1 if it existed and is ours; then *out is the
 * object on the server.  Pods are validated strictly: the API server rejects unknown members of the
 * user's template instead of dropping them. */
static int create(struct reconcile *r, enum object_kind kind, cJSON *object, cJSON **out,
		  struct mu_err *err)
{
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
	if (rc == -MU_ALREADY_EXISTS && (rc = find_owned(r, kind, name, out, err)) == 0)
		return 1;
	return report(r, kind, name, rc, err);
}

/* Patches the number of members of the group *out, when it is another. */
static int resize_group(struct reconcile *r, enum object_kind kind, int members, cJSON **out,
			struct mu_err *err)
{
	const cJSON *now = at(at(*out, "spec"), "minMember");
	MU_AUTO_FREE char *path = apply_path(r, kind, r->spec->name);
	cJSON *patch;
	int rc;

	if (cJSON_IsNumber(now) && now->valueint == members)
		return 0;
	cJSON_Delete(mu_steal(out));
	patch = mu_json_pack("{'metadata': {'labels': {'" LABEL_JOB
			     "': %s}}, 'spec': {'minMember': %d}}",
			     r->spec->name, members);
	rc = controller_call(r->controller, "PATCH", path, patch, out, err);
	/* gone in between: the next reconcile creates it */
	return rc == -MU_NOT_FOUND ? mu_fail(err, MU_ABORTED, "the podgroup has gone") : rc;
}

static enum object_kind kind_of(const struct reconcile *r, const struct plan_action *a)
{
	switch (a->kind) {
	case ACTION_CREATE_SERVICE:
		return KIND_SERVICE;
	case ACTION_CREATE_POLICY:
		return KIND_POLICY;
	case ACTION_PUT_GROUP:
		return gangs[r->spec->gang].group;
	default:
		return KIND_POD;
	}
}

static cJSON *object_of(const struct reconcile *r, const struct plan_action *a)
{
	const struct controller_options *o = &r->controller->options;

	return render_action(r->spec, a, o->lease_namespace, o->status_from);
}

/* The object of the action exists, in this state. */
static void note_object(struct reconcile *r, const struct plan_action *a, const cJSON *out)
{
	enum object_kind kind = kind_of(r, a);

	store_expect(&r->controller->store, kind, out, r->now);
	if (kinds[kind].on_demand)
		controller_want(r->controller, kind);
}

/* The PodGroup, with so many members.  After a restart it exists, and no watch has shown it. */
static int put_group(struct reconcile *r, const struct plan_action *a, cJSON **out,
		     struct mu_err *err)
{
	enum object_kind kind = kind_of(r, a);
	const char *api = kinds[kind].group + strlen("/apis/");
	int rc = find_owned(r, kind, r->spec->name, out, err);

	if (rc == -MU_NOT_FOUND)
		rc = create(r, kind, object_of(r, a), out, err);
	if (rc >= 0)
		rc = resize_group(r, kind, a->index, out, err);
	if (rc != -MU_NOT_FOUND)
		return rc;
	event_record(r, true, "GangUnavailable",
		     "this cluster has no podgroups of %s: install the scheduler or say "
		     "run.gang: none",
		     api);
	return mu_fail(err, MU_INVALID_ARGUMENT, "no podgroups of %s in this cluster",
		       api); /* a rejection: it becomes a condition */
}

static int create_action(struct reconcile *r, const struct plan_action *a, struct mu_err *err)
{
	enum object_kind kind = kind_of(r, a);
	cJSON *out = NULL;
	int rc = 0;

	if (a->pod && a->pod->role == ROLE_TENSORBOARD) { /* its service comes first */
		rc =
		    create(r, KIND_SERVICE, render_tensorboard_service(r->spec, a->pod), &out, err);
		cJSON_Delete(mu_steal(&out));
	}
	if (rc >= 0)
		rc = a->kind == ACTION_PUT_GROUP ? put_group(r, a, &out, err)
						 : create(r, kind, object_of(r, a), &out, err);
	if (rc >= 0)
		note_object(r, a, out);
	cJSON_Delete(out);
	return rc;
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

/* True for a decision of the API server, which does not pass by itself. */
static bool is_rejection(int rc)
{
	return rc == -MU_PERMISSION_DENIED || rc == -MU_INVALID_ARGUMENT ||
	       rc == -MU_ALREADY_EXISTS;
}

/* The results of the creates so far. */
struct create_results {
	unsigned created[JOB_MAX_TASKS];    /* pods */
	const struct plan_action *rejected; /* the first one */
	struct mu_err reason;               /* of that */
	unsigned n_rejected;
	int first, n; /* the first error; how many objects were created or found */
	struct mu_err *err;
};

/* False when the other creates would fail too. */
static bool note_result(const struct reconcile *r, struct create_results *c,
			const struct plan_action *a, int rc, const struct mu_err *mine)
{
	if (rc == 0 && a->pod)
		c->created[a->pod->spec - r->spec->tasks]++;
	c->n += rc >= 0;
	if (is_rejection(rc) && c->n_rejected++ == 0) {
		c->rejected = a;
		c->reason = *mine;
	}
	/* a quota that rejects one pod rejects the others; without the group the pods would not be
	 * placed, or not together */
	return !apply_keep_error(rc, mine, &c->first, c->err) && rc != -MU_PERMISSION_DENIED &&
	       (rc >= 0 || a->kind != ACTION_PUT_GROUP);
}

int apply_creates(struct reconcile *r, struct job_plan *plan, struct mu_err *err)
{
	struct create_results c = {.err = err};
	bool more = true;

	for (unsigned i = 0; i < plan->n_actions && more; i++) {
		const struct plan_action *a = &plan->actions[i];
		struct mu_err mine = {0};

		if (action_creates(a->kind))
			more = note_result(r, &c, a, create_action(r, a, &mine), &mine);
	}
	record_created_pods(r, c.created);
	if (c.rejected) {
		job_plan_rejected(plan, r->spec, c.rejected, c.reason.msg, c.n_rejected - 1,
				  r->now);
		/* no watch event comes when the server would accept it */
		requeue_at(r, r->now + REJECTED_RETRY_S);
	}
	return c.first < 0 ? c.first : c.n;
}
