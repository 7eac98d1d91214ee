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

/* An object to create, and its request. */
struct create_request {
	const char *resource;
	char *name, *path; /* path: of the collection */
	char *create_path; /* with the query of its create */
	char *body;        /* JSON, with all members of the user's template */
};

/* Takes the object.  Pods are validated strictly: the API server rejects unknown members of the
 * user's template instead of dropping them. */
static void create_request_init(struct create_request *w, const struct reconcile *r,
				const char *api, const char *resource, cJSON *object)
{
	bool strict = strcmp(resource, "pods") == 0;

	*w = (struct create_request){
	    .resource = resource,
	    .name = mu_xstrdup(cJSON_GetStringValue(at(at(object, "metadata"), "name"))),
	    .path = mu_xasprintf("%s/namespaces/%s/%s", api, r->spec->namespace, resource),
	    .body = cJSON_PrintUnformatted(object)};
	w->create_path = mu_xasprintf("%s%s", w->path, strict ? "?fieldValidation=Strict" : "");
	cJSON_Delete(object);
}

static void create_request_fini(struct create_request *w)
{
	free(w->name);
	free(w->path);
	free(w->create_path);
	free(w->body);
}

static struct kube_request http_request_of(const struct create_request *w)
{
	return (struct kube_request){
	    .method = "POST", .path = w->create_path, .body = mu_span_of(w->body)};
}

/* Adopts an object that exists under the name: *out is set when it is ours and stays. */
static int take_over(struct reconcile *r, const struct create_request *w, cJSON **out,
		     struct mu_err *err)
{
	MU_AUTO_FREE char *named = mu_xasprintf("%s/%s", w->path, w->name);
	cJSON *found = NULL;
	int rc = apply_call(r, "GET", named, NULL, &found, err);

	if (rc == 0 && !apply_is_ours(r, found))
		rc = mu_fail(err, MU_ALREADY_EXISTS,
			     "%s/%s exists and is not this job's: delete it or rename the job",
			     w->resource, w->name);
	else if (rc == 0 && at(at(found, "metadata"), "deletionTimestamp"))
		rc = mu_fail(err, MU_ABORTED, "%s/%s is still being deleted", w->resource, w->name);
	if (rc == 0)
		*out = found;
	else
		cJSON_Delete(found);
	return rc;
}

/* Handles a failed create.  On success *out is the object on the server, and ours. */
static int handle_conflict(struct reconcile *r, const struct create_request *w, int rc, cJSON **out,
			   struct mu_err *err)
{
	if (rc == -MU_ALREADY_EXISTS)
		rc = take_over(r, w, out, err);
	if (rc == -MU_ALREADY_EXISTS)
		event_record(r, true, "NameTaken", "%s", err->msg);
	else if (rc == -MU_PERMISSION_DENIED || rc == -MU_INVALID_ARGUMENT)
		event_record(r, true, "CreateRefused", "%s/%s: %s; %s", w->resource, w->name,
			     err->msg, job_plan_advice(err->msg));
	return rc;
}

/* Creates an object, which it takes. */
static int create(struct reconcile *r, const char *api, const char *resource, cJSON *object,
		  cJSON **out, struct mu_err *err)
{
	struct kube_request rq;
	struct create_request w;
	int rc;

	create_request_init(&w, r, api, resource, object);
	rq = http_request_of(&w);
	rc = handle_conflict(r, &w, apply_request(r, &rq, out, err), out, err);
	create_request_fini(&w);
	return rc;
}

/* Reads the object before creating it: its watch starts with the first object of its kind, and
 * after a restart most objects exist already. */
static int create_unless_there(struct reconcile *r, const char *version, const char *resource,
			       cJSON *object, cJSON **out, struct mu_err *err)
{
	MU_AUTO_FREE char *api = mu_xasprintf("/apis/%s", version);
	MU_AUTO_FREE char *path = mu_xasprintf("%s/namespaces/%s/%s/%s", api, r->spec->namespace,
					       resource, r->spec->name);
	int rc = apply_call(r, "GET", path, NULL, out, err);

	if (rc == 0 && apply_is_ours(r, *out)) {
		cJSON_Delete(object);
		return 0;
	}
	cJSON_Delete(*out);
	*out = NULL;
	if (rc == 0 || rc == -MU_NOT_FOUND)
		return create(r, api, resource, object, out, err);
	cJSON_Delete(object);
	return rc;
}

static int create_policy(struct reconcile *r, struct mu_err *err)
{
	const struct observed_job *o = &r->seen->observed;
	bool new = o->status.phase == JOB_NEW && !o->service && !o->n_pods; /* nothing to find */
	const struct controller_options *options = &r->controller->options;
	cJSON *object = render_policy(r->spec, JOB_DEFAULT_PORT, JOB_DEFAULT_HTTP_PORT,
				      options->lease_namespace, options->status_from);
	cJSON *out = NULL;
	int rc = new ? create(r, "/apis/networking.k8s.io/v1", "networkpolicies", object, &out, err)
		     : create_unless_there(r, "networking.k8s.io/v1", "networkpolicies", object,
					   &out, err);

	if (rc == 0) {
		store_expect(&r->controller->store, KIND_POLICY, out, r->now);
		controller_want(r->controller, KIND_POLICY);
	}
	cJSON_Delete(out);
	return rc;
}

static int resize_group(struct reconcile *r, int members, cJSON **out, struct mu_err *err)
{
	MU_AUTO_FREE char *path =
	    mu_xasprintf("/apis/%s/namespaces/%s/podgroups/%s", group_api(r->spec),
			 r->spec->namespace, r->spec->name);
	MU_AUTO_FREE char *body = mu_xasprintf("{\"metadata\":{\"labels\":{\"" LABEL_JOB
					       "\":\"%s\"}},\"spec\":{\"minMember\":%d}}",
					       r->spec->name, members);

	return apply_request(r,
			     &(struct kube_request){.method = "PATCH",
						    .path = path,
						    .content_type = "application/merge-patch+json",
						    .body = mu_span_of(body)},
			     out, err);
}

/* Without the group its pods would not be placed, or not together: an error ends the creates. */
static int ensure_group(struct reconcile *r, int members, struct mu_err *err)
{
	enum object_kind kind = r->spec->gang == GANG_VOLCANO ? KIND_VOLCANO : KIND_PLUGINS;
	cJSON *out = NULL, *resized = NULL;
	int rc = create_unless_there(r, group_api(r->spec), "podgroups",
				     render_group(r->spec, members), &out, err);

	if (rc == 0) {
		const cJSON *n = at(at(out, "spec"), "minMember");
		if (!cJSON_IsNumber(n) || n->valueint != members)
			rc = resize_group(r, members, &resized, err);
		if (rc == -MU_NOT_FOUND) /* gone in between: the next reconcile creates it */
			rc = mu_fail(err, MU_ABORTED, "the podgroup has gone");
	}
	if (rc == 0) {
		store_expect(&r->controller->store, kind, resized ? resized : out, r->now);
		controller_want(r->controller, kind);
	}
	cJSON_Delete(out);
	cJSON_Delete(resized);
	if (rc == -MU_NOT_FOUND) {
		event_record(r, true, "GangUnavailable",
			     "this cluster has no podgroups of %s: install the scheduler or say "
			     "run.gang: none",
			     group_api(r->spec));
		rc = mu_fail(err, MU_INVALID_ARGUMENT, "no podgroups of %s in this cluster",
			     group_api(r->spec)); /* a refusal: it becomes a condition */
	}
	return rc;
}

static void create_request_of(struct create_request *w, const struct reconcile *r,
			      const struct plan_action *a)
{
	if (a->kind == ACTION_CREATE_SERVICE)
		create_request_init(
		    w, r, "/api/v1", "services",
		    render_service(r->spec, JOB_DEFAULT_PORT, JOB_DEFAULT_HTTP_PORT));
	else
		create_request_init(w, r, "/api/v1", "pods", render_pod(r->spec, a->pod));
}

/* True when an existing pod started with an older cluster epoch than the planned one. */
static bool is_behind(const cJSON *pod, const struct plan_pod *planned)
{
	const cJSON *labels = at(at(pod, "metadata"), "labels");
	const char *task = cJSON_GetStringValue(at(labels, LABEL_TASK));
	const char *epoch = cJSON_GetStringValue(at(labels, LABEL_EPOCH));

	return task && epoch && strcmp(task, planned->task) == 0 && atoi(epoch) < planned->epoch;
}

/* Handles the reply to the create of a service or a pod, which it takes. */
static int handle_reply(struct reconcile *r, const struct plan_action *a,
			const struct create_request *w, struct kube_reply *reply)
{
	enum object_kind kind = a->kind == ACTION_CREATE_SERVICE ? KIND_SERVICE : KIND_POD;
	int rc = handle_conflict(r, w, reply->rc, &reply->out, &reply->err);

	if (rc == 0)
		store_expect(&r->controller->store, kind, reply->out, r->now);
	if (rc == 0 && a->pod && is_behind(reply->out, a->pod))
		r->behind = true;
	cJSON_Delete(reply->out);
	return rc;
}

/* Creates the TensorBoard pod and its service, which is not watched. */
static int create_tensorboard(struct reconcile *r, const struct plan_pod *pod, struct mu_err *err)
{
	cJSON *out = NULL;
	int rc = create(r, "/api/v1", "services", render_board_service(r->spec, pod), &out, err);

	cJSON_Delete(out);
	out = NULL;
	if (rc == 0)
		rc = create(r, "/api/v1", "pods", render_pod(r->spec, pod), &out, err);
	if (rc == 0)
		store_expect(&r->controller->store, KIND_POD, out, r->now);
	cJSON_Delete(out);
	return rc;
}

static int create_alone(struct reconcile *r, const struct plan_action *a, struct mu_err *err)
{
	switch (a->kind) {
	case ACTION_CREATE_POLICY:
		return create_policy(r, err);
	case ACTION_PUT_GROUP:
		return ensure_group(r, a->index, err);
	default:
		return create_tensorboard(r, a->pod, err);
	}
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
	const struct job_plan *plan;
	bool *created; /* of each action */
	char *refused; /* the first rejection, in the API server's words */
	unsigned
	    invalid_tasks; /* bit i: the pods of tasks[i] stay rejected until the spec changes */
	int first, n;      /* the first error; how many objects were created */
	bool stop;
	struct mu_err *err;
};

/* The bit of the action's task; 0: the action creates no pod. */
static unsigned task_bit(const struct reconcile *r, const struct plan_action *a)
{
	return a->pod ? 1U << (a->pod->spec - r->spec->tasks) : 0;
}

static void note_result(const struct reconcile *r, struct create_results *c, unsigned action,
			int rc, const struct mu_err *mine)
{
	const struct plan_action *a = &c->plan->actions[action];
	bool invalid = a->pod && is_rejection(rc) && job_plan_refusal_is_final(mine->msg);

	c->created[action] = rc == 0;
	c->n += rc == 0;
	if (invalid)
		c->invalid_tasks |= task_bit(r, a);
	if (is_rejection(rc) && !c->refused)
		c->refused = invalid ? mu_xasprintf("spec.tasks.%s: %s", a->pod->task, mine->msg)
				     : mu_xstrdup(mine->msg);
	/* a quota that rejects one pod rejects the others too */
	if (apply_keep_error(rc, mine, &c->first, c->err) || rc == -MU_PERMISSION_DENIED)
		c->stop = true;
}

/* As kube_call_many. */
static unsigned send_batch(struct reconcile *r, const struct kube_request *rqs, unsigned n,
			   struct kube_reply *out)
{
	const struct controller_io *io = &r->controller->io;

	if (io->call_many)
		return io->call_many(io->user, rqs, n, out);
	*out = (struct kube_reply){0};
	out->rc = apply_request(r, rqs, &out->out, &out->err);
	return 1;
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
		create_request_of(&w[k], r, &c->plan->actions[actions[k]]);
		rqs[k] = http_request_of(&w[k]);
	}
	while (done < n && !c->stop) {
		done += send_batch(r, rqs + done, n - done, replies + done);
		for (; i < done; i++)
			if (!c->stop || replies[i].rc == 0)
				note_result(r, c, actions[i],
					    handle_reply(r, &c->plan->actions[actions[i]], &w[i],
							 &replies[i]),
					    &replies[i].err);
	}
	for (unsigned k = 0; k < n; k++)
		create_request_fini(&w[k]);
}

static bool can_batch(const struct plan_action *a)
{
	return a->kind == ACTION_CREATE_SERVICE ||
	       (a->kind == ACTION_CREATE_POD && a->pod->role != ROLE_TENSORBOARD);
}

/* The next creates from *at on that can be sent as one batch, or one that cannot; moves *at behind
 * them. */
static unsigned next_batch(const struct reconcile *r, const struct job_plan *plan, unsigned *at,
			   unsigned most, unsigned out[BATCH_MAX])
{
	unsigned n = 0;

	for (; *at < plan->n_actions && n < most; ++*at) {
		const struct plan_action *a = &plan->actions[*at];

		if (!action_creates(a->kind) || (r->seen->invalid_tasks & task_bit(r, a)))
			continue;
		if (n && !can_batch(a))
			break;
		out[n++] = *at;
		if (!can_batch(a))
			most = 1;
	}
	return n;
}

int apply_creates(struct reconcile *r, struct job_plan *plan, struct mu_err *err)
{
	MU_AUTO_FREE bool *created = MU_NEW_ARRAY(bool, plan->n_actions + 1);
	struct create_results c = {.plan = plan, .created = created, .err = err};
	/* a job that was rejected the last time mostly is again: one create is enough to find out
	 */
	unsigned most = r->seen->observed.refused ? 1 : BATCH_MAX, actions[BATCH_MAX], at = 0, n;

	while (!c.stop && (n = next_batch(r, plan, &at, most, actions))) {
		const struct plan_action *a = &plan->actions[actions[0]];
		struct mu_err mine = {0};

		if (can_batch(a))
			create_batch(r, &c, actions, n);
		else
			note_result(r, &c, actions[0], create_alone(r, a, &mine), &mine);
		if (a->kind == ACTION_PUT_GROUP && c.first < 0)
			c.stop = true;
	}
	for (unsigned i = 0; i < plan->n_actions; i++)
		if (!created[i])
			job_plan_not_made(plan, &plan->actions[i]);
	record_created_pods(r, plan, created);
	if (c.refused || (r->seen->observed.refused && !r->seen->invalid_tasks))
		store_set_rejection(&r->controller->store, r->seen->key, c.refused,
				    r->seen->job->generation,
				    c.invalid_tasks | r->seen->invalid_tasks);
	/* no watch event comes when the server would accept it */
	if (c.refused && !job_plan_refusal_is_final(c.refused))
		requeue_at(r, r->now + REJECTED_RETRY_S);
	free(c.refused);
	return c.first < 0 ? c.first : c.n;
}
