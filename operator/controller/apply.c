/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to the API server, and the actions of a plan that remove objects.  A delete carries the UID
 * of the object in the snapshot. */
#include "operator/controller/reconcile.h"

#include "lib/io/json_build.h"
#include "operator/api/object_json.h"
#include "operator/controller/events.h"

static const double FINISH_TIMEOUT_S = 10; /* then the pod is deleted */

char *apply_path(const struct reconcile *r, enum object_kind kind, const char *name)
{
	return mu_xasprintf("%s/namespaces/%s/%s%s%s", kinds[kind].group,
			    r->seen->job->meta.namespace, kinds[kind].resource, name ? "/" : "",
			    name ? name : "");
}

/* NotFound counts as success.  A conflict does not: the name may have another object by now. */
static int delete_object(struct reconcile *r, enum object_kind kind, const char *name,
			 const char *uid, bool at_once, struct mu_err *err)
{
	MU_AUTO_FREE char *path = apply_path(r, kind, name);
	cJSON *body =
	    mu_json_pack("{'preconditions': {'uid': %s}, 'propagationPolicy': 'Background'}", uid);
	int rc;

	if (kind == KIND_JOB) /* the user may have just changed how long it stays */
		mu_json_set(
		    (cJSON *)at(body, "preconditions"),
		    mu_json_pack("{'resourceVersion': %s}", r->seen->job->resource_version));
	if (at_once)
		mu_json_set(body, mu_json_pack("{'gracePeriodSeconds': 0}"));
	rc = controller_call(r->controller, "DELETE", path, body, NULL, err);
	return rc == -MU_NOT_FOUND ? 0 : rc;
}

static int delete_pod(struct reconcile *r, const struct plan_action *a, struct mu_err *err)
{
	bool at_once = a->kind == ACTION_FORCE_DELETE_POD;
	int rc = delete_object(r, KIND_POD, a->name, a->uid, at_once, err);

	if (rc == 0 && at_once) { /* it may have been gone before: then no watch tells */
		store_remove_pod(&r->controller->store, a->uid);
		requeue_at(r, r->now + REQUEUE_SOON_S);
	} else if (rc == 0)
		store_expect_deletion(&r->controller->store, a->uid);
	return rc;
}

/* The position of the pod in the snapshot; -1: none. */
static int pod_by_uid(const struct snapshot *seen, const char *uid)
{
	for (unsigned i = 0; i < seen->observed.n_pods; i++)
		if (strcmp(seen->observed.pods[i].uid, uid) == 0)
			return (int)i;
	return -1;
}

/* Asks the server once to end.  When it cannot be reached, or is still there after
 * FINISH_TIMEOUT_S, its pod is deleted. */
static int finish_pod(struct reconcile *r, const struct plan_action *a, struct mu_err *err)
{
	int i = pod_by_uid(r->seen, a->uid);
	const struct observed_pod *o = i < 0 ? NULL : &r->seen->observed.pods[i];
	const struct snapshot_pod *p = i < 0 ? NULL : &r->seen->pods[i];
	struct controller *c = r->controller;
	double left = FINISH_TIMEOUT_S;

	if (!p || o->deleting)
		return 0;
	if (p->task.finish_requested_at > 0)
		left -= r->now - p->task.finish_requested_at;
	else if (o->phase == POD_RUNNING && p->pod->ip &&
		 c->io.post(c->io.user, p->pod, "finish", "", NULL) == 0)
		store_finish_requested(&c->store, a->uid, r->now);
	else
		left = 0;
	if (left <= 0)
		return delete_pod(r, a, err);
	requeue_at(r, r->now + left);
	return 0;
}

static int apply_one(struct reconcile *r, const struct plan_action *a, struct mu_err *err)
{
	const struct owned *service = r->seen->owned[KIND_SERVICE];
	const struct object *o = a->kind == ACTION_DELETE_JOB ? &r->seen->job->meta
				 : service                    ? &service->meta
							      : NULL;

	switch (a->kind) {
	case ACTION_DELETE_POD:
	case ACTION_FORCE_DELETE_POD:
		return delete_pod(r, a, err);
	case ACTION_FINISH_POD:
		return finish_pod(r, a, err);
	case ACTION_DELETE_SERVICE:
	case ACTION_DELETE_JOB:
		return o ? delete_object(r, o->kind, o->name, o->uid, false, err) : 0;
	default:
		return 0; /* secrets: done before all others, by certs_apply */
	}
}

bool apply_keep_error(int rc, const struct mu_err *mine, int *first, struct mu_err *err)
{
	if (rc < 0 && *first == 0) {
		*first = rc;
		if (err)
			*err = *mine;
	}
	return controller_is_unreachable(rc) || rc == -MU_FAILED_PRECONDITION ||
	       rc == -MU_RESOURCE_EXHAUSTED;
}

int apply_removals(struct reconcile *r, const struct job_plan *plan, struct mu_err *err)
{
	int first = 0;

	for (unsigned i = 0; i < plan->n_actions; i++) {
		const struct plan_action *a = &plan->actions[i];
		struct mu_err mine = {0};
		int rc;

		if (action_creates(a->kind))
			continue;
		rc = apply_one(r, a, &mine);
		if (rc == 0 && a->uid && a->kind != ACTION_FINISH_POD && a->reason)
			event_record(r, a->kind == ACTION_FORCE_DELETE_POD, a->reason, "%s",
				     a->message ? a->message : a->name);
		if (apply_keep_error(rc, &mine, &first, err))
			break;
	}
	return first;
}
