/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the objects of a plan.
 *
 * Names are deterministic.  AlreadyExists means success when the object's controller is this job;
 * any other object of that name is left alone.
 *
 * A service and pods do not depend on each other's answers, so they are sent in batches.
 */
#include "operator/controller/apply.h"

#include <stdio.h>

#include "operator/api/object_json.h"
#include "operator/controller/events.h"
#include "operator/controller/render.h"

enum { BATCH_MAX = 8 }; /* creates under way at once */
static const double REJECTED_RETRY_S = 30;

/* An object to create. */
struct create_request {
	enum object_kind kind;
	char *name, *path; /* path: of the create, with its query */
	char *body;        /* JSON, with all members of the user's template */
	struct kube_request http;
};

/* Takes the object.  Pods are validated strictly: the API server rejects unknown members of the
 * user's template instead of dropping them. */
static void create_request_init(struct create_request *w, const struct reconcile *r,
				enum object_kind kind, cJSON *object)
{
	MU_AUTO_FREE char *path = apply_path(r, kind, NULL);

	w->kind = kind;
	w->name = mu_xstrdup(object_name(object));
	w->path = mu_xasprintf("%s%s", path, kind == KIND_POD ? "?fieldValidation=Strict" : "");
	w->body = cJSON_PrintUnformatted(object);
	w->http =
	    (struct kube_request){.method = "POST", .path = w->path, .body = mu_span_of(w->body)};
	cJSON_Delete(object);
}

static void create_request_fini(struct create_request *w)
{
	free(w->name);
	free(w->path);
	free(w->body);
}

/* Reads the object of this name.  *out is set when it is ours and stays; else NOT_FOUND, ABORTED
 * while it is being deleted, or ALREADY_EXISTS. */
static int find(struct reconcile *r, enum object_kind kind, const char *name, cJSON **out,
		struct mu_err *err)
{
	const char *resource = kinds[kind].resource;
	MU_AUTO_FREE char *path = apply_path(r, kind, name);
	cJSON *found = NULL;
	int rc = controller_call(r->controller, "GET", path, NULL, &found, err);

	if (rc == 0 && !apply_is_ours(r, found))
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
		event_record(r, true, "CreateRefused", "%s/%s: %s; %s", kinds[kind].resource, name,
			     err->msg, job_plan_advice(err->msg));
	return rc;
}

/* Handles the result of a create.  On success *out is the object on the server, and ours. */
static int handle_conflict(struct reconcile *r, const struct create_request *w, int rc, cJSON **out,
			   struct mu_err *err)
{
	if (rc == -MU_ALREADY_EXISTS)
		rc = find(r, w->kind, w->name, out, err);
	return report(r, w->kind, w->name, rc, err);
}

/* Creates an object, which it takes. */
static int create(struct reconcile *r, enum object_kind kind, cJSON *object, cJSON **out,
		  struct mu_err *err)
{
	struct create_request w;
	int rc;

	create_request_init(&w, r, kind, object);
	rc = controller_send(r->controller, &w.http, out, err);
	rc = handle_conflict(r, &w, rc, out, err);
	create_request_fini(&w);
	return rc;
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
	patch =
	    json_pack("{'metadata': {'labels': {'" LABEL_JOB "': %s}}, 'spec': {'minMember': %d}}",
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
		return r->spec->gang == GANG_VOLCANO ? KIND_VOLCANO : KIND_PLUGINS;
	default:
		return KIND_POD;
	}
}

static cJSON *object_of(const struct reconcile *r, const struct plan_action *a)
{
	const struct controller_options *o = &r->controller->options;

	return render_action(r->spec, a, o->lease_namespace, o->status_from);
}

/* True when an existing pod started with an older cluster epoch than the planned one. */
static bool is_behind(const cJSON *pod, const struct plan_pod *planned)
{
	const cJSON *labels = at(at(pod, "metadata"), "labels");
	const char *epoch = text_at(labels, LABEL_EPOCH);

	return epoch && strcmp(text_or_empty(labels, LABEL_TASK), planned->task) == 0 &&
	       atoi(epoch) < planned->epoch;
}

/* The object of the action exists, in this state. */
static void note_object(struct reconcile *r, const struct plan_action *a, const cJSON *out)
{
	enum object_kind kind = kind_of(r, a);

	store_expect(&r->controller->store, kind, out, r->now);
	if (kinds[kind].on_demand)
		controller_want(r->controller, kind);
	if (a->pod && is_behind(out, a->pod))
		r->behind = true;
}

/* The pod of TensorBoard, after its service, which is not watched. */
static int create_board(struct reconcile *r, const struct plan_action *a, cJSON **out,
			struct mu_err *err)
{
	cJSON *service = NULL;
	int rc = create(r, KIND_SERVICE, render_board_service(r->spec, a->pod), &service, err);

	cJSON_Delete(service);
	return rc < 0 ? rc : create(r, KIND_POD, object_of(r, a), out, err);
}

/* A policy or group.  It is looked for first: its watch starts with the first object of its kind,
 * and after a restart most exist. */
static int create_watched_on_demand(struct reconcile *r, const struct plan_action *a, cJSON **out,
				    struct mu_err *err)
{
	const struct observed_job *o = &r->seen->observed;
	bool new_job = o->status.phase == JOB_NEW && !o->service && !o->n_pods;
	enum object_kind kind = kind_of(r, a);
	const char *name = r->spec->name, *api = kinds[kind].group + strlen("/apis/");
	int rc = new_job ? -MU_NOT_FOUND : find(r, kind, name, out, err);

	if (rc == -MU_NOT_FOUND)
		rc = create(r, kind, object_of(r, a), out, err);
	else
		report(r, kind, name, rc, err);
	if (a->kind != ACTION_PUT_GROUP)
		return rc;
	if (rc == 0)
		rc = resize_group(r, kind, a->index, out, err);
	if (rc != -MU_NOT_FOUND)
		return rc;
	event_record(r, true, "GangUnavailable",
		     "this cluster has no podgroups of %s: install the scheduler or say "
		     "run.gang: none",
		     api);
	return mu_fail(err, MU_INVALID_ARGUMENT, "no podgroups of %s in this cluster",
		       api); /* a refusal: it becomes a condition */
}

/* Creates the object of an action that is not sent in a batch. */
static int create_alone(struct reconcile *r, const struct plan_action *a, struct mu_err *err)
{
	cJSON *out = NULL;
	int rc = a->pod ? create_board(r, a, &out, err) : create_watched_on_demand(r, a, &out, err);

	if (rc == 0)
		note_object(r, a, out);
	cJSON_Delete(out);
	return rc;
}

/* Records one event for all pods that this reconcile created. */
static void record_created_pods(struct reconcile *r, const struct job_plan *plan,
				const bool *created)
{
	MU_AUTO_BUF text = {0};

	for (unsigned t = 0; t < r->spec->n_tasks; t++) {
		const char *task = r->spec->tasks[t].name;
		int n = 0;
		for (unsigned i = 0; i < plan->n_actions; i++)
			n += created[i] && plan->actions[i].pod &&
			     strcmp(plan->actions[i].pod->task, task) == 0;
		if (n)
			mu_buf_printf(&text, "%s%d %s", text.len ? ", " : "", n, task);
	}
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
	struct job_plan *plan;
	bool *created;                      /* of each action */
	const struct plan_action *rejected; /* the first one */
	struct mu_err reason;               /* of that */
	unsigned n_rejected;
	bool retry;
	int first, n; /* the first error; how many objects were created */
	bool stop;
	struct mu_err *err;
};

static void note_result(const struct reconcile *r, struct create_results *c, unsigned action,
			int rc, const struct mu_err *mine)
{
	const struct plan_action *a = &c->plan->actions[action];
	bool final = is_rejection(rc) && job_plan_refusal_is_final(mine->msg);

	c->created[action] = rc == 0;
	c->n += rc == 0;
	if (is_rejection(rc) && c->n_rejected++ == 0) {
		c->rejected = a;
		c->reason = *mine;
	}
	if (final && a->pod)
		job_plan_invalid(c->plan, r->spec, a);
	c->retry = c->retry || (is_rejection(rc) && !final);
	/* a quota that rejects one pod rejects the others too */
	if (apply_keep_error(rc, mine, &c->first, c->err) || rc == -MU_PERMISSION_DENIED)
		c->stop = true;
}

/* Sends n creates at once.  Every success counts.  After an error that ends the creates, later
 * errors of the batch are ignored. */
static void create_batch(struct reconcile *r, struct create_results *c, const unsigned *actions,
			 unsigned n)
{
	struct kube_request rqs[BATCH_MAX];
	struct kube_reply replies[BATCH_MAX];
	struct create_request w[BATCH_MAX];
	unsigned done = 0, i = 0;

	for (unsigned k = 0; k < n; k++) {
		const struct plan_action *a = &c->plan->actions[actions[k]];

		create_request_init(&w[k], r, kind_of(r, a), object_of(r, a));
		rqs[k] = w[k].http;
	}
	while (done < n && !c->stop) {
		done += controller_send_many(r->controller, rqs + done, n - done, replies + done);
		for (; i < done; i++) {
			struct kube_reply *reply = &replies[i];

			if (c->stop && reply->rc != 0)
				continue;
			reply->rc = handle_conflict(r, &w[i], reply->rc, &reply->out, &reply->err);
			if (reply->rc == 0)
				note_object(r, &c->plan->actions[actions[i]], reply->out);
			note_result(r, c, actions[i], reply->rc, &reply->err);
			cJSON_Delete(reply->out);
		}
	}
	for (unsigned k = 0; k < n; k++)
		create_request_fini(&w[k]);
}

static bool can_batch(const struct plan_action *a)
{
	return a->kind == ACTION_CREATE_SERVICE ||
	       (a->kind == ACTION_CREATE_POD && a->pod->role != ROLE_TENSORBOARD);
}

/* Executes the creates in order. Consecutive creates that may be concurrent are sent in batches of
 * up to `most`. */
static void create_all(struct reconcile *r, struct create_results *c, unsigned most)
{
	unsigned batch[BATCH_MAX], n = 0;

	for (unsigned i = 0; i < c->plan->n_actions && !c->stop; i++) {
		const struct plan_action *a = &c->plan->actions[i];
		struct mu_err mine = {0};

		if (!action_creates(a->kind))
			continue;
		if (can_batch(a))
			batch[n++] = i;
		if (n && (n == most || !can_batch(a))) {
			create_batch(r, c, batch, n);
			n = 0;
		}
		if (can_batch(a) || c->stop)
			continue;
		note_result(r, c, i, create_alone(r, a, &mine), &mine);
		if (a->kind == ACTION_PUT_GROUP && c->first < 0)
			c->stop = true; /* its pods would not be placed, or not together */
	}
	if (n && !c->stop)
		create_batch(r, c, batch, n);
}

int apply_creates(struct reconcile *r, struct job_plan *plan, struct mu_err *err)
{
	MU_AUTO_FREE bool *created = MU_NEW_ARRAY(bool, plan->n_actions + 1);
	struct create_results c = {.plan = plan, .created = created, .err = err};

	/* a job that was rejected the last time mostly is again: one create finds out */
	create_all(r, &c, r->seen->job->status.conditions[COND_REFUSED].status ? 1 : BATCH_MAX);
	record_created_pods(r, plan, created);
	if (c.rejected)
		job_plan_rejected(plan, r->spec, c.rejected, c.reason.msg, c.n_rejected - 1,
				  r->now);
	/* no watch event comes when the server would accept it */
	if (c.retry)
		requeue_at(r, r->now + REJECTED_RETRY_S);
	return c.first < 0 ? c.first : c.n;
}
