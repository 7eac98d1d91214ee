/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet and the users: pods start, run, end as in their script, and are deleted; users act on
 * the cluster. */
#include "lib/base/rfc3339.h"
#include "lib/cluster/cluster_spec.h"
#include "tests/fake/sim.h"

#define SIM_NS   "/namespaces/default/"
#define SIM_PODS "/api/v1" SIM_NS "pods/"
#define SIM_JOBS "/apis/muster.dev/v1" SIM_NS "distributedtrainingjobs/"

static const char *label(const cJSON *pod, const char *key)
{
	return cJSON_GetStringValue(
	    cJSON_GetObjectItemCaseSensitive(sim_at(pod, "metadata.labels"), key));
}

static struct sim_ends *ends_of(struct sim *s, const char *task, int index)
{
	for (int i = 0; i < s->n_ends; i++)
		if (strcmp(s->ends[i].task, task) == 0 && s->ends[i].index == index)
			return &s->ends[i];
	if (s->n_ends == SIM_ENDS)
		abort();
	s->ends[s->n_ends].index = index;
	snprintf(s->ends[s->n_ends].task, sizeof(s->ends[0].task), "%s", task);
	return &s->ends[s->n_ends++];
}

static void set_status(struct sim *s, struct sim_object *o, const char *phase, bool ready, int code,
		       const char *reason)
{
	MU_AUTO_BUF text = {0};
	char when[32];

	mu_rfc3339_write(when, s->now);
	mu_buf_printf(&text,
		      "{\"phase\":\"%s\",\"podIP\":\"10.0.0.%s\",\"conditions\":[{\"type\":"
		      "\"Ready\",\"status\":\"%s\"}%s]",
		      phase, sim_text(o->json, "metadata.uid") + 4, ready ? "True" : "False",
		      reason && strcmp(reason, "Evicted") == 0
			  ? ",{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":"
			    "\"EvictionByEvictionAPI\"}"
			  : "");
	if (code >= 0)
		mu_buf_printf(
		    &text,
		    ",\"containerStatuses\":[{\"name\":\"%s\",\"state\":{\"terminated\":{"
		    "\"exitCode\":%d,\"finishedAt\":\"%s\"}}}]",
		    sim_text(cJSON_GetArrayItem(sim_at(o->json, "spec.containers"), 0), "name"),
		    code, when);
	if (reason)
		mu_buf_printf(&text, ",\"reason\":\"%s\"", reason);
	mu_buf_puts(&text, "}");
	cJSON_DeleteItemFromObjectCaseSensitive(o->json, "status");
	cJSON_AddItemToObject(o->json, "status", cJSON_Parse(text.data));
	sim_changed(s, o);
}

static bool is_sync_worker(const struct sim *s, const struct sim_object *o)
{
	return s->script.in_step && strcmp(label(o->json, LABEL_TASK), "worker") == 0 && !o->orphan;
}

/* True while the chief must continue: a member neither runs nor has left. */
static bool waits_for_others(struct sim *s, const struct sim_object *chief)
{
	for (int i = 1; i < SIM_WORKERS_MAX && is_sync_worker(s, chief); i++) {
		bool runs = false;

		for (int k = 0; k < s->n_objects; k++) {
			struct sim_object *o = &s->objects[k];
			runs = runs || (o->kind == SIM_POD && label(o->json, LABEL_INDEX) &&
					is_sync_worker(s, o) && o->stage == STAGE_READY &&
					atoi(label(o->json, LABEL_INDEX)) == i);
		}
		if (s->members[i] && !runs)
			return true;
	}
	return false;
}

static void end_pod(struct sim *s, struct sim_object *o, int code, const char *reason)
{
	if (is_sync_worker(s, o) && (code == 0 || code == 143))
		s->members[atoi(label(o->json, LABEL_INDEX))] = false;
	o->stage = STAGE_OVER;
	o->due = INFINITY;
	set_status(s, o, code == 0 ? "Succeeded" : "Failed", false, code, reason);
}

bool sim_wants_gpu(const cJSON *pod)
{
	const cJSON *container = cJSON_GetArrayItem(sim_at(pod, "spec.containers"), 0);

	return cJSON_GetObjectItemCaseSensitive(sim_at(container, "resources.limits"),
						"nvidia.com/gpu");
}

static double work_time(struct sim *s)
{
	return s->script.work > 0 ? s->script.work : sim_between(s, 5, 60);
}

static void begin_work(struct sim *s, struct sim_object *o)
{
	const char *task = label(o->json, LABEL_TASK);
	int index = atoi(label(o->json, LABEL_INDEX));

	if (s->script.broken_gpus && sim_wants_gpu(o->json)) {
		end_pod(s, o, MU_EXIT_KERNELS, NULL);
		return;
	}
	o->stage = STAGE_READY;
	if (is_sync_worker(s, o))
		s->members[index] = true;
	else if (strcmp(task, "ps") == 0) /* its state is lost, and all workers restart */
		memset(s->members, 0, sizeof(s->members));
	o->due = s->script.end(&s->script, task, index, ends_of(s, task, index)->n) < 0
		     ? INFINITY
		     : s->now + work_time(s);
	if (label(o->json, LABEL_DEPARTURE))
		o->due = s->now + 1;
	set_status(s, o, "Running", true, -1, NULL);
}

static void finish_work(struct sim *s, struct sim_object *o)
{
	const char *task = label(o->json, LABEL_TASK);
	int index = atoi(label(o->json, LABEL_INDEX));
	struct sim_ends *e = ends_of(s, task, index);

	if (label(o->json, LABEL_DEPARTURE)) {
		end_pod(s, o, s->script.departure_exit_code, NULL);
		return;
	}
	/* Without the service no task finds the others. */
	bool alone = !o->finishing && !sim_find(s, "/api/v1/namespaces/default/services/j");

	if (alone || (index == 0 && waits_for_others(s, o))) {
		o->due = s->now + 1;
		return;
	}
	end_pod(s, o, o->finishing ? 0 : s->script.end(&s->script, task, index, e->n), NULL);
	e->n++;
}

/* Places the pod; returns true if its node changed. */
static bool schedule(struct sim *s, struct sim_object *o)
{
	if (sim_at(o->json, "spec.nodeName"))
		return false;
	cJSON_AddStringToObject(cJSON_GetObjectItemCaseSensitive(o->json, "spec"), "nodeName",
				s->node_lost ? "node-2" : "node-1");
	return true;
}

static bool misses_secret(struct sim *s, const struct sim_object *o)
{
	const cJSON *v;

	cJSON_ArrayForEach(v, sim_at(o->json, "spec.volumes"))
	{
		const char *name = sim_text(v, "secret.secretName");
		MU_AUTO_FREE char *path = mu_xasprintf("/api/v1" SIM_NS "secrets/%s", name);
		if (*name && !sim_find(s, path))
			return true;
	}
	return false;
}

static void step_pod(struct sim *s, struct sim_object *o)
{
	if (sim_at(o->json, "metadata.deletionTimestamp")) {
		if ((o->stage == STAGE_STARTED || o->stage == STAGE_READY) &&
		    sim_random(s) % 2 == 0) { /* it handled SIGTERM, or was killed */
			end_pod(s, o, sim_random(s) % 2 ? 0 : 143, NULL);
			o->due = s->now + sim_between(s, 0.1, 3);
		} else {
			sim_confirm(s, o);
		}
		return;
	}
	switch (o->stage) {
	case STAGE_PENDING:
		if (s->script.stuck_pending || (s->script.gpus_taken && sim_wants_gpu(o->json))) {
			o->due = INFINITY;
			return;
		}
		if (misses_secret(s, o)) { /* placed; the kubelet retries the mount */
			o->due = s->now + 5;
			if (schedule(s, o))
				sim_changed(s, o);
			return;
		}
		o->stage = STAGE_STARTED;
		o->due = s->now + sim_between(s, 0.1, 2);
		schedule(s, o);
		set_status(s, o, "Running", false, -1, NULL);
		return;
	case STAGE_STARTED:
		begin_work(s, o);
		return;
	case STAGE_READY:
		finish_work(s, o);
		return;
	case STAGE_OVER:
		o->due = INFINITY;
	}
}

int sim_finish(struct sim *s, const char *ip)
{
	for (int i = 0; i < s->n_objects; i++) {
		struct sim_object *o = &s->objects[i];
		if (o->kind == SIM_POD && o->stage == STAGE_READY &&
		    strcmp(sim_text(o->json, "status.podIP"), ip) == 0) {
			o->finishing = true;
			o->due = s->now + sim_between(s, 0, 2);
			return 0;
		}
	}
	return -MU_UNAVAILABLE;
}

/* ---- users ---- */

static void edit(struct sim *s, const char *part, const char *key, cJSON *value)
{
	struct sim_object *o = sim_find(s, SIM_JOBS "j");
	cJSON *at = o ? (cJSON *)sim_at(o->json, part) : NULL;
	cJSON *generation = o ? (cJSON *)sim_at(o->json, "metadata.generation") : NULL;

	if (!at) {
		cJSON_Delete(value);
		return;
	}
	cJSON_DeleteItemFromObjectCaseSensitive(at, key);
	if (value)
		cJSON_AddItemToObject(at, key, value);
	if (generation)
		cJSON_SetNumberValue(generation, generation->valuedouble + 1);
	sim_changed(s, o);
}

static struct sim_object *some_live_pod(struct sim *s, int nth)
{
	struct sim_object *found = NULL;

	for (int i = 0; i < s->n_objects; i++) {
		struct sim_object *o = &s->objects[i];
		bool is_live_task =
		    o->kind == SIM_POD && o->stage != STAGE_OVER && !o->finishing &&
		    !sim_at(o->json, "metadata.deletionTimestamp") &&
		    *sim_text(cJSON_GetArrayItem(sim_at(o->json, "metadata.ownerReferences"), 0),
			      "uid");
		if (is_live_task && (!found || nth-- > 0))
			found = o;
	}
	return found;
}

/* The node stops; the node controller marks its pods for deletion. */
static void lose_node(struct sim *s)
{
	cJSON *node =
	    cJSON_Parse("{\"metadata\":{\"name\":\"node-1\"},\"status\":{\"conditions\":[{"
			"\"type\":\"Ready\",\"status\":\"Unknown\"}]}}");
	struct sim_object *o = sim_find(s, "/api/v1/nodes/node-1");

	s->node_lost = true;
	s->node_lost_at = s->now;
	cJSON_ReplaceItemInObjectCaseSensitive(
	    o->json, "status", cJSON_DetachItemFromObjectCaseSensitive(node, "status"));
	cJSON_Delete(node);
	sim_changed(s, o);
	for (int i = 0; i < s->n_objects; i++) {
		o = &s->objects[i];
		if (o->kind != SIM_POD || strcmp(sim_text(o->json, "spec.nodeName"), "node-1") != 0)
			continue;
		sim_serve(s, "DELETE", o->path, NULL, NULL, NULL);
		/* pods of a deleted job belong to the garbage collector */
		s->objects[i].due = owner_lives(s, o->json) ? INFINITY : s->now + 30;
	}
}

static void force_delete(struct sim *s, int worker)
{
	MU_AUTO_FREE char *path = mu_xasprintf(SIM_PODS "j-worker-%d", worker);
	struct sim_object *o = sim_find(s, path);

	if (o)
		sim_remove(s, o);
}

/* Deletes an existing Service, NetworkPolicy, pod group or Secret of the job. */
static void delete_owned(struct sim *s, int nth)
{
	int last = -1;

	for (int i = 0; i < s->n_objects && nth >= 0; i++) {
		const struct sim_object *o = &s->objects[i];
		if ((o->kind == SIM_SERVICE || o->kind == SIM_OTHER) &&
		    sim_at(o->json, "metadata.ownerReferences")) {
			last = i;
			nth--;
		}
	}
	s->lost_owned = true;
	if (last >= 0)
		sim_remove(s, &s->objects[last]);
}

/* The new job starts its scenario while dependents of the old one are still being deleted. */
static void recreate_job(struct sim *s)
{
	struct sim_object *o = sim_find(s, SIM_JOBS "j");

	if (!o)
		return;
	sim_remove(s, o);
	s->n_ends = 0;
	memset(s->members, 0, sizeof(s->members));
	sim_add(s, SIM_JOBS "j", cJSON_Duplicate(s->script.job, true));
}

static void kill_pod(struct sim *s, struct sim_object *o)
{
	snprintf(s->killed, sizeof(s->killed), "%s/%s ", label(o->json, LABEL_TASK),
		 label(o->json, LABEL_INDEX));
	end_pod(s, o, 137, NULL);
}

static void do_user_action(struct sim *s, enum sim_user_action action, int value)
{
	struct sim_object *o;

	switch (action) {
	case USER_SUSPEND:
	case USER_RESUME:
		edit(s, "spec.run", "suspend", cJSON_CreateBool(action == USER_SUSPEND));
		return;
	case USER_SCALE:
		edit(s, "spec.tasks.worker", "replicas", cJSON_CreateNumber(value));
		return;
	case USER_DELETE_POD:
		if ((o = some_live_pod(s, value)))
			sim_serve(s, "DELETE", o->path, NULL, NULL, NULL);
		return;
	case USER_EVICT:
		if ((o = some_live_pod(s, value)) && o->stage != STAGE_PENDING)
			end_pod(s, o, 137, "Evicted");
		return;
	case USER_KILL:
		if ((o = some_live_pod(s, value)) && o->stage != STAGE_PENDING)
			kill_pod(s, o);
		return;
	case USER_FORCE_DELETE:
		force_delete(s, value);
		return;
	case USER_NODE_LOST:
		lose_node(s);
		return;
	case USER_BREAK_MANIFEST:
		edit(s, "spec.run", "nonsense", cJSON_CreateTrue());
		return;
	case USER_FIX_MANIFEST:
		edit(s, "spec.run", "nonsense", NULL);
		return;
	case USER_FREE_NAME:
		if ((o = sim_find(s, s->script.taken_name)) &&
		    !sim_at(o->json, "metadata.ownerReferences"))
			sim_remove(s, o);
		return;
	case USER_RAISE_QUOTA:
		s->script.quota = 0;
		return;
	case USER_DELETE_OWNED:
		delete_owned(s, value);
		return;
	case USER_RECREATE_JOB:
		recreate_job(s);
		return;
	case USER_DELETE_JOB:
		if ((o = sim_find(s, SIM_JOBS "j")))
			sim_remove(s, o);
		return;
	case USER_NONE:
		return;
	}
}

double sim_world_due(const struct sim *s)
{
	double due = INFINITY;

	for (int i = 0; i < s->n_objects; i++) {
		due = fmin(due, s->objects[i].due);
		if (s->objects[i].orphan > 0)
			due = fmin(due, s->objects[i].orphan);
	}
	for (int i = 0; i < SIM_USER_ACTIONS; i++)
		if (s->script.user_actions[i].action)
			due = fmin(due, s->script.user_actions[i].at);
	return due;
}

void sim_world(struct sim *s)
{
	for (int i = 0; i < SIM_USER_ACTIONS; i++) {
		enum sim_user_action action = s->script.user_actions[i].action;
		if (!action || s->script.user_actions[i].at > s->now)
			continue;
		s->script.user_actions[i].action = USER_NONE;
		do_user_action(s, action, s->script.user_actions[i].value);
	}
	for (int i = s->n_objects - 1; i >= 0; i--) {
		if (i < s->n_objects && s->objects[i].due <= s->now)
			step_pod(s, &s->objects[i]);
		if (i < s->n_objects && s->objects[i].orphan > 0 && s->objects[i].orphan <= s->now)
			sim_collect(s, &s->objects[i]);
	}
}
