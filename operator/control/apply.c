/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of a plan as calls.
 *
 * Names are deterministic, so a create that was already done says AlreadyExists: that is success
 * when the object's controller is this very job, and a foreign object to be left alone otherwise.
 * Deletes carry the uid of what was looked at.
 */
#include "operator/control/apply.h"

#include <stdio.h>

#include "lib/base/log.h"
#include "operator/control/at.h"
#include "operator/control/events.h"
#include "operator/control/render.h"

static const double refused_again_s = 30;
static const double finish_patience_s = 10; /* then the pod is deleted */

static int call(struct reconcile *r, const char *method, const char *path, const cJSON *body,
		const struct kube_fields *fields, cJSON **out, struct mu_err *err)
{
	struct control *c = r->control;
	MU_AUTO_FREE char *text = body ? cJSON_PrintUnformatted(body) : NULL;

	if (!c->io.may_write(c->io.user))
		return mu_fail(err, MU_CANCELLED, "another operator may lead now");
	return c->io.call(
	    c->io.user,
	    &(struct kube_request){
		.method = method, .path = path, .body = mu_span_of(text), .fields = fields},
	    out, err);
}

static bool is_ours(const struct reconcile *r, const cJSON *object)
{
	const cJSON *ref;

	cJSON_ArrayForEach(ref, at(at(object, "metadata"), "ownerReferences"))
	{
		const char *uid = cJSON_GetStringValue(at(ref, "uid"));
		if (cJSON_IsTrue(at(ref, "controller")) && uid && strcmp(uid, r->seen->uid) == 0)
			return true;
	}
	return false;
}

/* Creates an object; *out is the object as it is on the server, ours in any case. */
static int create(struct reconcile *r, const char *api, const char *resource, cJSON *object,
		  const struct kube_fields *fields, cJSON **out, struct mu_err *err)
{
	const char *name = cJSON_GetStringValue(at(at(object, "metadata"), "name"));
	MU_AUTO_FREE char *path =
	    mu_xasprintf("%s/namespaces/%s/%s", api, r->spec->namespace, resource);
	MU_AUTO_FREE char *named = mu_xasprintf("%s/%s", path, name);
	int rc = call(r, "POST", path, object, fields, out, err);

	if (rc == -MU_ALREADY_EXISTS) {
		rc = call(r, "GET", named, NULL, fields, out, err);
		if (rc == 0 && !is_ours(r, *out)) {
			cJSON_Delete(*out);
			*out = NULL;
			rc = mu_fail(err, MU_ALREADY_EXISTS,
				     "%s/%s exists and is not this job's: delete it or rename the "
				     "job",
				     resource, name);
		} else if (rc == 0 && at(at(*out, "metadata"), "deletionTimestamp")) {
			cJSON_Delete(*out);
			*out = NULL;
			rc = mu_fail(err, MU_ABORTED, "%s/%s is still being deleted", resource,
				     name);
		}
	}
	if (rc == -MU_ALREADY_EXISTS)
		event_say(r, true, "NameTaken", "%s", err->msg);
	else if (rc == -MU_PERMISSION_DENIED || rc == -MU_INVALID_ARGUMENT)
		event_say(r, true, "CreateRefused", "%s/%s: %s", resource, name, err->msg);
	cJSON_Delete(object);
	return rc;
}

static int create_service(struct reconcile *r, struct mu_err *err)
{
	cJSON *out = NULL;
	int rc = create(r, "/api/v1", "services",
			render_service(r->spec, JOB_DEFAULT_PORT, JOB_DEFAULT_HTTP_PORT),
			cache_owned_fields, &out, err);
	if (rc == 0)
		cache_assume_owned(&r->control->cache, OWNED_SERVICE, r->seen->key, r->seen->uid,
				   r->now);
	cJSON_Delete(out);
	return rc;
}

/* As create, but looks first: their watch starts with the first of them, and after a restart most
 * are there already. */
static int ensure(struct reconcile *r, const char *version, const char *resource, cJSON *object,
		  cJSON **out, struct mu_err *err)
{
	MU_AUTO_FREE char *api = mu_xasprintf("/apis/%s", version);
	MU_AUTO_FREE char *path = mu_xasprintf("%s/namespaces/%s/%s/%s", api, r->spec->namespace,
					       resource, r->spec->name);
	int rc = call(r, "GET", path, NULL, NULL, out, err);

	if (rc == 0 && is_ours(r, *out)) {
		cJSON_Delete(object);
		return 0;
	}
	cJSON_Delete(*out);
	*out = NULL;
	if (rc == 0 || rc == -MU_NOT_FOUND)
		return create(r, api, resource, object, NULL, out, err);
	cJSON_Delete(object);
	return rc;
}

static int create_policy(struct reconcile *r, struct mu_err *err)
{
	const struct observed_job *o = &r->seen->observed;
	bool new = o->status.phase == JOB_NEW && !o->service && !o->n_pods; /* nothing to find */
	cJSON *object = render_policy(r->spec, JOB_DEFAULT_PORT, JOB_DEFAULT_HTTP_PORT);
	cJSON *out = NULL;
	int rc = new ? create(r, "/apis/networking.k8s.io/v1", "networkpolicies", object,
			      cache_owned_fields, &out, err)
		     : ensure(r, "networking.k8s.io/v1", "networkpolicies", object, &out, err);

	if (rc == 0)
		cache_assume_owned(&r->control->cache, OWNED_POLICY, r->seen->key, r->seen->uid,
				   r->now);
	if (rc == 0)
		control_want(r->control, WATCH_POLICIES);
	cJSON_Delete(out);
	return rc;
}

static int resize_group(struct reconcile *r, int members, struct mu_err *err)
{
	MU_AUTO_FREE char *path =
	    mu_xasprintf("/apis/%s/namespaces/%s/podgroups/%s", group_api(r->spec),
			 r->spec->namespace, r->spec->name);
	MU_AUTO_FREE char *body = mu_xasprintf("{\"metadata\":{\"labels\":{\"" LABEL_JOB
					       "\":\"%s\"}},\"spec\":{\"minMember\":%d}}",
					       r->spec->name, members);

	if (!r->control->io.may_write(r->control->io.user))
		return mu_fail(err, MU_CANCELLED, "another operator may lead now");
	return r->control->io.call(
	    r->control->io.user,
	    &(struct kube_request){.method = "PATCH",
				   .path = path,
				   .content_type = "application/merge-patch+json",
				   .body = mu_span_of(body)},
	    NULL, err);
}

/* Without the group no pod of it would be placed: what goes wrong here ends the look. */
static int put_group(struct reconcile *r, int members, struct mu_err *err)
{
	bool volcano = r->spec->gang == GANG_VOLCANO;
	cJSON *out = NULL;
	int rc =
	    ensure(r, group_api(r->spec), "podgroups", render_group(r->spec, members), &out, err);

	if (rc == 0) {
		const cJSON *n = at(at(out, "spec"), "minMember");
		if (!cJSON_IsNumber(n) || n->valueint != members)
			rc = resize_group(r, members, err);
		if (rc == -MU_NOT_FOUND) /* gone in between: the next look makes it */
			rc = mu_fail(err, MU_ABORTED, "the podgroup has gone");
	}
	cJSON_Delete(out);
	if (rc == 0) {
		cache_assume_group(&r->control->cache, volcano ? OWNED_VOLCANO : OWNED_PLUGINS,
				   r->seen->key, r->seen->uid, members, r->now);
		control_want(r->control, volcano ? WATCH_VOLCANO : WATCH_SCHEDULER_PLUGINS);
	}
	if (rc == -MU_NOT_FOUND) {
		event_say(r, true, "GangUnavailable",
			  "this cluster has no podgroups of %s: install the scheduler or say "
			  "run.gang: none",
			  group_api(r->spec));
		rc = mu_fail(err, MU_FAILED_PRECONDITION, "no podgroups of %s in this cluster",
			     group_api(r->spec));
	}
	return rc;
}

/* The variant that the pod has to run; "" when its task may choose, and then says what it chose. */
static const char *bound_to(const struct kernel_choice *k)
{
	for (unsigned i = 0; i < k->n_env; i++)
		if (strcmp(k->env[i].key, "MUSTER_KERNELS") == 0 &&
		    strcmp(k->env[i].value, k->variant) == 0)
			return k->variant;
	return "";
}

static int create_pod(struct reconcile *r, const struct plan_pod *pod, struct mu_err *err)
{
	cJSON *out = NULL;
	int rc = 0;

	/* with its pod: nobody waits for this service, so no watch is kept on it */
	if (pod->role == ROLE_BOARD)
		rc = create(r, "/api/v1", "services", render_board_service(r->spec, pod),
			    cache_owned_fields, &out, err);
	cJSON_Delete(out);
	out = NULL;
	if (rc == 0)
		rc = create(r, "/api/v1", "pods", render_pod(r->spec, pod), cache_pod_fields, &out,
			    err);

	if (rc == 0)
		cache_assume_pod(&r->control->cache, out, bound_to(&pod->kernels), r->now);
	cJSON_Delete(out);
	return rc;
}

/* Gone already is as good as deleted.  A conflict is not: it may be another pod by now, or
 * another's write that came first; the next look tells. */
static int delete_uid(struct reconcile *r, const char *path, const char *uid, bool at_once,
		      struct mu_err *err)
{
	cJSON *body = cJSON_CreateObject(), *preconditions;
	int rc;

	preconditions = cJSON_AddObjectToObject(body, "preconditions");
	cJSON_AddStringToObject(preconditions, "uid", uid);
	cJSON_AddStringToObject(body, "propagationPolicy", "Background");
	if (at_once)
		cJSON_AddNumberToObject(body, "gracePeriodSeconds", 0);
	rc = call(r, "DELETE", path, body, NULL, NULL, err);
	cJSON_Delete(body);
	return rc == -MU_NOT_FOUND ? 0 : rc;
}

static int delete_pod(struct reconcile *r, const struct plan_action *a, struct mu_err *err)
{
	MU_AUTO_FREE char *path =
	    mu_xasprintf("/api/v1/namespaces/%s/pods/%s", r->spec->namespace, a->name);
	bool at_once = a->kind == ACTION_FORGET_POD;
	int rc = delete_uid(r, path, a->uid, at_once, err);

	if (rc == 0 && at_once) { /* it may have been gone before: then no watch tells */
		cache_assume_gone(&r->control->cache, r->seen->key, a->uid);
		reconcile_wake(r, r->now + RECONCILE_SOON_S);
	} else if (rc == 0)
		cache_assume_deleting(&r->control->cache, r->seen->key, a->uid);
	return rc;
}

static const struct cached_pod *pod_by_uid(const struct reconcile *r, const char *uid)
{
	for (unsigned i = 0; i < r->seen->observed.n_pods; i++)
		if (strcmp(r->seen->pods[i]->uid, uid) == 0)
			return r->seen->pods[i];
	return NULL;
}

/* Asks once; a server that cannot be reached, or that is still there a while later, is deleted. */
static int finish_pod(struct reconcile *r, const struct plan_action *a, struct mu_err *err)
{
	const struct cached_pod *pod = pod_by_uid(r, a->uid);
	struct control *c = r->control;
	double left = finish_patience_s;

	if (!pod || pod->deleting)
		return 0;
	if (pod->finish_asked > 0)
		left -= r->now - pod->finish_asked;
	else if (pod->phase == POD_RUNNING && pod->ip &&
		 c->io.finish(c->io.user, pod->ip, JOB_DEFAULT_HTTP_PORT, NULL) == 0)
		cache_finish_asked(&c->cache, r->seen->key, pod->uid, r->now);
	else
		left = 0;
	if (left <= 0)
		return delete_pod(r, a, err);
	reconcile_wake(r, r->now + left);
	return 0;
}

static int delete_job(struct reconcile *r, struct mu_err *err)
{
	MU_AUTO_FREE char *path =
	    mu_xasprintf("/apis/" JOB_API_VERSION "/namespaces/%s/distributedtrainingjobs/%s",
			 r->spec->namespace, r->spec->name);

	return delete_uid(r, path, r->seen->uid, false, err);
}

/* The cache knows whose it is, not which: another's may have come under the name since. */
static int delete_service(struct reconcile *r, struct mu_err *err)
{
	MU_AUTO_FREE char *path =
	    mu_xasprintf("/api/v1/namespaces/%s/services/%s", r->spec->namespace, r->spec->name);
	cJSON *service = NULL;
	const char *uid;
	int rc = call(r, "GET", path, NULL, NULL, &service, err);

	uid = cJSON_GetStringValue(at(at(service, "metadata"), "uid"));
	if (rc == 0 && uid && is_ours(r, service))
		rc = delete_uid(r, path, uid, false, err);
	cJSON_Delete(service);
	return rc == -MU_NOT_FOUND ? 0 : rc;
}

static int apply_one(struct reconcile *r, const struct plan_action *a, struct mu_err *err)
{
	switch (a->kind) {
	case ACTION_MAKE_SECRET:
	case ACTION_SPREAD_CA:
	case ACTION_SWITCH_SECRET:
	case ACTION_CHECK_SECRET:
		return 0; /* done before all others: certs_apply */
	case ACTION_CREATE_POLICY:
		return create_policy(r, err);
	case ACTION_PUT_GROUP:
		return put_group(r, a->index, err);
	case ACTION_CREATE_SERVICE:
		return create_service(r, err);
	case ACTION_CREATE_POD:
		return create_pod(r, a->pod, err);
	case ACTION_DELETE_POD:
	case ACTION_FORGET_POD:
		return delete_pod(r, a, err);
	case ACTION_FINISH_POD:
		return finish_pod(r, a, err);
	case ACTION_DELETE_SERVICE:
		return delete_service(r, err);
	case ACTION_DELETE_JOB:
		return delete_job(r, err);
	}
	return 0;
}

bool action_creates(enum action_kind kind)
{
	return kind == ACTION_CREATE_SERVICE || kind == ACTION_CREATE_POD ||
	       kind == ACTION_CREATE_POLICY || kind == ACTION_PUT_GROUP;
}

/* Keeps the first error; true when there is no point in going on. */
static bool note(int rc, const struct mu_err *mine, int *first, struct mu_err *err)
{
	if (rc < 0 && *first == 0) {
		*first = rc;
		if (err)
			*err = *mine;
	}
	return rc == -MU_FAILED_PRECONDITION || rc == -MU_UNAVAILABLE || rc == -MU_CANCELLED ||
	       rc == -MU_DEADLINE_EXCEEDED || rc == -MU_RESOURCE_EXHAUSTED;
}

/* "created ps 0-1" and so on: one event for all pods that a look made. */
static void say_created(struct reconcile *r, const struct job_plan *plan, const bool *made)
{
	MU_AUTO_BUF text = {0};

	for (unsigned t = 0; t < r->spec->n_tasks; t++) {
		const char *task = r->spec->tasks[t].name;
		int n = 0;
		for (unsigned i = 0; i < plan->n_actions; i++)
			n += made[i] && plan->actions[i].pod &&
			     strcmp(plan->actions[i].pod->task, task) == 0;
		if (n)
			mu_buf_printf(&text, "%s%d %s", text.len ? ", " : "", n, task);
	}
	if (text.len)
		event_made(r, text.data);
}

/* Not a fault that passes by itself, but somebody's decision. */
static bool is_refusal(int rc)
{
	return rc == -MU_PERMISSION_DENIED || rc == -MU_INVALID_ARGUMENT ||
	       rc == -MU_ALREADY_EXISTS;
}

int apply_creates(struct reconcile *r, const struct job_plan *plan, struct mu_err *err)
{
	MU_AUTO_FREE bool *made = MU_NEW_ARRAY(bool, plan->n_actions + 1);
	MU_AUTO_FREE char *refused = NULL;
	int first = 0, n = 0;

	for (unsigned i = 0; i < plan->n_actions; i++) {
		struct mu_err mine = {0};
		int rc;

		if (!action_creates(plan->actions[i].kind))
			continue;
		rc = apply_one(r, &plan->actions[i], &mine);
		made[i] = rc == 0;
		n += made[i];
		if (is_refusal(rc) && !refused)
			refused = mu_xstrdup(mine.msg);
		/* who is refused one for its quota is refused the others too */
		if (note(rc, &mine, &first, err) || rc == -MU_PERMISSION_DENIED)
			break;
	}
	say_created(r, plan, made);
	if (refused || r->seen->observed.refused)
		cache_set_refused(&r->control->cache, r->seen->key, refused);
	if (refused) /* no watch tells when it is taken */
		reconcile_wake(r, r->now + refused_again_s);
	return first < 0 ? first : n;
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
			event_say(r, a->kind == ACTION_FORGET_POD, a->reason, "%s",
				  a->message ? a->message : a->name);
		if (note(rc, &mine, &first, err))
			break;
	}
	return first;
}
