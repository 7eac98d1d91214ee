/* SPDX-License-Identifier: Apache-2.0 */
/* The creates of a plan.
 *
 * Names are deterministic, so a create that was already done says AlreadyExists: that is success
 * when the object's controller is this very job, and a foreign object to be left alone otherwise.
 *
 * A service and pods do not need each other's answers, so those of one look are under way together:
 * a thread that waits for all of them sleeps once or twice, not for each.
 */
#include "operator/controller/apply.h"

#include <stdio.h>

#include "operator/api/object.h"
#include "operator/controller/apply_call.h"
#include "operator/controller/events.h"
#include "operator/controller/render.h"

enum { TOGETHER = 8 }; /* creates of one look that are under way at once */
static const double refused_again_s = 30;

/* An object that is to be there, and what is sent to make it. */
struct wanted {
	const char *resource;
	char *name, *path; /* path: of the collection */
	char *create_path; /* with the query of its create */
	char *body; /* JSON, as the API server has it whole: a template's members are all in it */
	const struct kube_fields *fields;
};

/* Takes the object.  A pod holds what the user's template says: the API server refuses members
 * that it does not know, where it would drop them otherwise. */
static void wanted_init(struct wanted *w, const struct reconcile *r, const char *api,
			const char *resource, cJSON *object, const struct kube_fields *fields)
{
	bool strict = strcmp(resource, "pods") == 0;

	*w = (struct wanted){
	    .resource = resource,
	    .name = mu_xstrdup(cJSON_GetStringValue(at(at(object, "metadata"), "name"))),
	    .path = mu_xasprintf("%s/namespaces/%s/%s", api, r->spec->namespace, resource),
	    .body = cJSON_PrintUnformatted(object),
	    .fields = fields};
	w->create_path = mu_xasprintf("%s%s", w->path, strict ? "?fieldValidation=Strict" : "");
	cJSON_Delete(object);
}

static void wanted_fini(struct wanted *w)
{
	free(w->name);
	free(w->path);
	free(w->create_path);
	free(w->body);
}

static struct kube_request request_of(const struct wanted *w)
{
	return (struct kube_request){.method = "POST",
				     .path = w->create_path,
				     .body = mu_span_of(w->body),
				     .fields = w->fields};
}

/* There is one of its name: *out is it when it is ours and stays. */
static int take_over(struct reconcile *r, const struct wanted *w, cJSON **out, struct mu_err *err)
{
	MU_AUTO_FREE char *named = mu_xasprintf("%s/%s", w->path, w->name);
	cJSON *found = NULL;
	int rc = apply_call(r, "GET", named, NULL, w->fields, &found, err);

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

/* What the answer to its create means; *out is the object as it is on the server, ours in any
 * case. */
static int settle(struct reconcile *r, const struct wanted *w, int rc, cJSON **out,
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
		  const struct kube_fields *fields, cJSON **out, struct mu_err *err)
{
	struct kube_request rq;
	struct wanted w;
	int rc;

	wanted_init(&w, r, api, resource, object, fields);
	rq = request_of(&w);
	rc = settle(r, &w, apply_ask(r, &rq, out, err), out, err);
	wanted_fini(&w);
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
	int rc = apply_call(r, "GET", path, NULL, NULL, out, err);

	if (rc == 0 && apply_is_ours(r, *out)) {
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
	const struct controller_options *options = &r->controller->options;
	cJSON *object = render_policy(r->spec, JOB_DEFAULT_PORT, JOB_DEFAULT_HTTP_PORT,
				      options->lease_namespace, options->status_from);
	cJSON *out = NULL;
	int rc = new ? create(r, "/apis/networking.k8s.io/v1", "networkpolicies", object,
			      store_owned_fields, &out, err)
		     : ensure(r, "networking.k8s.io/v1", "networkpolicies", object, &out, err);

	if (rc == 0)
		store_assume_owned(&r->controller->store, OWNED_POLICY, r->seen->key,
				   r->seen->job->uid, r->now);
	if (rc == 0)
		controller_want(r->controller, WATCH_POLICIES);
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

	return apply_ask(r,
			 &(struct kube_request){.method = "PATCH",
						.path = path,
						.content_type = "application/merge-patch+json",
						.body = mu_span_of(body)},
			 NULL, err);
}

/* Without the group no pod of it would be placed, or it would be placed with another's: what goes
 * wrong here ends the look. */
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
		store_assume_group(&r->controller->store, volcano ? OWNED_VOLCANO : OWNED_PLUGINS,
				   r->seen->key, r->seen->job->uid, members, r->now);
		controller_want(r->controller, volcano ? WATCH_VOLCANO : WATCH_SCHEDULER_PLUGINS);
	}
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

/* The variant that the pod has to run; "" when its task may choose, and then says what it chose. */
static const char *bound_to(const struct kernel_choice *k)
{
	for (unsigned i = 0; i < k->n_env; i++)
		if (strcmp(k->env[i].key, "MUSTER_KERNELS") == 0 &&
		    strcmp(k->env[i].value, k->variant) == 0)
			return k->variant;
	return "";
}

static void wanted_of(struct wanted *w, const struct reconcile *r, const struct plan_action *a)
{
	if (a->kind == ACTION_CREATE_SERVICE)
		wanted_init(w, r, "/api/v1", "services",
			    render_service(r->spec, JOB_DEFAULT_PORT, JOB_DEFAULT_HTTP_PORT),
			    store_owned_fields);
	else
		wanted_init(w, r, "/api/v1", "pods", render_pod(r->spec, a->pod), pod_fields);
}

/* Whether a pod that was there already started with an older cluster than the plan would have given
 * it. */
static bool is_behind(const cJSON *pod, const struct plan_pod *planned)
{
	const cJSON *labels = at(at(pod, "metadata"), "labels");
	const char *task = cJSON_GetStringValue(at(labels, LABEL_TASK));
	const char *epoch = cJSON_GetStringValue(at(labels, LABEL_EPOCH));

	return task && epoch && strcmp(task, planned->task) == 0 && atoi(epoch) < planned->epoch;
}

/* What became of a service's or a pod's create; takes the reply. */
static int take_reply(struct reconcile *r, const struct plan_action *a, const struct wanted *w,
		      struct kube_reply *reply)
{
	struct store *c = &r->controller->store;
	int rc = settle(r, w, reply->rc, &reply->out, &reply->err);

	if (rc == 0 && a->kind == ACTION_CREATE_SERVICE)
		store_assume_owned(c, OWNED_SERVICE, r->seen->key, r->seen->job->uid, r->now);
	else if (rc == 0)
		store_assume_pod(c, reply->out, bound_to(&a->pod->kernels), r->now);
	if (rc == 0 && a->pod && is_behind(reply->out, a->pod))
		r->behind = true;
	cJSON_Delete(reply->out);
	return rc;
}

/* With its service: nobody waits for that, so no watch is kept on it. */
static int create_board(struct reconcile *r, const struct plan_pod *pod, struct mu_err *err)
{
	cJSON *out = NULL;
	int rc = create(r, "/api/v1", "services", render_board_service(r->spec, pod),
			store_owned_fields, &out, err);

	cJSON_Delete(out);
	out = NULL;
	if (rc == 0)
		rc = create(r, "/api/v1", "pods", render_pod(r->spec, pod), pod_fields, &out, err);
	if (rc == 0)
		store_assume_pod(&r->controller->store, out, bound_to(&pod->kernels), r->now);
	cJSON_Delete(out);
	return rc;
}

static int create_alone(struct reconcile *r, const struct plan_action *a, struct mu_err *err)
{
	switch (a->kind) {
	case ACTION_CREATE_POLICY:
		return create_policy(r, err);
	case ACTION_PUT_GROUP:
		return put_group(r, a->index, err);
	default:
		return create_board(r, a->pod, err);
	}
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
		event_record(r, false, "PodsCreated", "created %s", text.data);
}

/* Not a fault that passes by itself, but somebody's decision. */
static bool is_refusal(int rc)
{
	return rc == -MU_PERMISSION_DENIED || rc == -MU_INVALID_ARGUMENT ||
	       rc == -MU_ALREADY_EXISTS;
}

/* What came of the creates of a plan so far. */
struct creating {
	const struct job_plan *plan;
	bool *made;    /* of each action */
	char *refused; /* the server's words, the first time */
	unsigned
	    invalid_tasks; /* bit i: the pods of tasks[i] stay refused until the spec changes */
	int first, n;      /* the first error; how many were made */
	bool stop;
	struct mu_err *err;
};

/* The bit of the action's task; 0: the action creates no pod. */
static unsigned task_bit(const struct reconcile *r, const struct plan_action *a)
{
	return a->pod ? 1U << (a->pod->spec - r->spec->tasks) : 0;
}

static void note_create(const struct reconcile *r, struct creating *c, unsigned action, int rc,
			const struct mu_err *mine)
{
	const struct plan_action *a = &c->plan->actions[action];
	bool invalid = a->pod && is_refusal(rc) && job_plan_refusal_is_final(mine->msg);

	c->made[action] = rc == 0;
	c->n += rc == 0;
	if (invalid)
		c->invalid_tasks |= task_bit(r, a);
	if (is_refusal(rc) && !c->refused)
		c->refused = invalid ? mu_xasprintf("spec.tasks.%s: %s", a->pod->task, mine->msg)
				     : mu_xstrdup(mine->msg);
	/* who is refused one for its quota is refused the others too */
	if (apply_note(rc, mine, &c->first, c->err) || rc == -MU_PERMISSION_DENIED)
		c->stop = true;
}

/* As kube_call_many. */
static unsigned ask_many(struct reconcile *r, const struct kube_request *rqs, unsigned n,
			 struct kube_reply *out)
{
	const struct controller_io *io = &r->controller->io;

	if (io->call_many)
		return io->call_many(io->user, rqs, n, out);
	*out = (struct kube_reply){0};
	out->rc = apply_ask(r, rqs, &out->out, &out->err);
	return 1;
}

/* So many creates at once.  Each that was done counts, whatever became of those before it; of an
 * error that came after one at which it would have ended nothing is said. */
static void create_together(struct reconcile *r, struct creating *c, const unsigned *actions,
			    unsigned n)
{
	struct kube_request rqs[TOGETHER];
	struct kube_reply replies[TOGETHER];
	struct wanted w[TOGETHER];
	unsigned done = 0, i = 0;

	for (unsigned k = 0; k < n; k++) {
		wanted_of(&w[k], r, &c->plan->actions[actions[k]]);
		rqs[k] = request_of(&w[k]);
	}
	while (done < n && !c->stop) {
		done += ask_many(r, rqs + done, n - done, replies + done);
		for (; i < done; i++)
			if (!c->stop || replies[i].rc == 0)
				note_create(r, c, actions[i],
					    take_reply(r, &c->plan->actions[actions[i]], &w[i],
						       &replies[i]),
					    &replies[i].err);
	}
	for (unsigned k = 0; k < n; k++)
		wanted_fini(&w[k]);
}

static bool goes_along(const struct plan_action *a)
{
	return a->kind == ACTION_CREATE_SERVICE ||
	       (a->kind == ACTION_CREATE_POD && a->pod->role != ROLE_TENSORBOARD);
}

/* The next creates from *at on that can go together, or one alone; moves *at behind them. */
static unsigned next_creates(const struct reconcile *r, const struct job_plan *plan, unsigned *at,
			     unsigned most, unsigned out[TOGETHER])
{
	unsigned n = 0;

	for (; *at < plan->n_actions && n < most; ++*at) {
		const struct plan_action *a = &plan->actions[*at];

		if (!action_creates(a->kind) || (r->seen->invalid_tasks & task_bit(r, a)))
			continue;
		if (n && !goes_along(a))
			break;
		out[n++] = *at;
		if (!goes_along(a))
			most = 1;
	}
	return n;
}

int apply_creates(struct reconcile *r, struct job_plan *plan, struct mu_err *err)
{
	MU_AUTO_FREE bool *made = MU_NEW_ARRAY(bool, plan->n_actions + 1);
	struct creating c = {.plan = plan, .made = made, .err = err};
	/* who was refused the last time mostly is again: one refusal tells as much as many */
	unsigned most = r->seen->observed.refused ? 1 : TOGETHER, actions[TOGETHER], at = 0, n;

	while (!c.stop && (n = next_creates(r, plan, &at, most, actions))) {
		const struct plan_action *a = &plan->actions[actions[0]];
		struct mu_err mine = {0};

		if (goes_along(a))
			create_together(r, &c, actions, n);
		else
			note_create(r, &c, actions[0], create_alone(r, a, &mine), &mine);
		if (a->kind == ACTION_PUT_GROUP && c.first < 0)
			c.stop = true;
	}
	for (unsigned i = 0; i < plan->n_actions; i++)
		if (!made[i])
			job_plan_not_made(plan, &plan->actions[i]);
	say_created(r, plan, made);
	if (c.refused || (r->seen->observed.refused && !r->seen->invalid_tasks))
		store_set_rejected(&r->controller->store, r->seen->key, c.refused,
				   r->seen->job->generation,
				   c.invalid_tasks | r->seen->invalid_tasks);
	/* no watch tells when the server accepts it */
	if (c.refused && !job_plan_refusal_is_final(c.refused))
		requeue_at(r, r->now + refused_again_s);
	free(c.refused);
	return c.first < 0 ? c.first : c.n;
}
