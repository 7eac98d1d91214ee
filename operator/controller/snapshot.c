/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a snapshot of a job out of the store, by reference. */
#include "operator/controller/store.h"

/* Removes objects whose creation no watch event has confirmed in time. */
static void expire_expectations(struct store *c, struct stored_job *job, double now)
{
	struct stored_object *next;

	for (struct stored_object *s = job->objects; s; s = next) {
		double deadline = s->expected.created_until;

		next = s->next;
		if (deadline > 0 && now > deadline)
			store_remove(c, s->object->kind, s->object->uid);
	}
}

static void observe_pod(struct snapshot *s, unsigned i, const struct stored_object *from)
{
	struct observed_pod *o = (struct observed_pod *)&s->observed.pods[i];

	s->pods[i].pod = object_ref(from->object);
	s->pods[i].task = from->task;
	*o = s->pods[i].pod->observed;
	o->deleting = o->deleting || from->expected.deleted;
	o->finish_requested_at = from->task.finish_requested_at;
	o->epoch = from->task.epoch > o->epoch ? from->task.epoch : o->epoch;
	o->kernels = from->task.kernels[0] ? s->pods[i].task.kernels : NULL;
}

/* Adds the objects of the job, pods in the order of their arrival. */
static void observe_objects(struct snapshot *out, const struct stored_job *job)
{
	struct observed_job *o = &out->observed;
	unsigned i;

	for (struct stored_object *s = NULL; (s = store_next_pod(job, s));)
		o->n_pods++;
	o->pods = MU_ARENA_ARRAY(&out->arena, struct observed_pod, o->n_pods + 1);
	out->pods = MU_ARENA_ARRAY(&out->arena, struct snapshot_pod, o->n_pods + 1);
	i = o->n_pods;
	for (struct stored_object *s = job->objects; s; s = s->next) {
		enum object_kind kind = s->object->kind;
		double deadline = s->expected.created_until;

		if (deadline > 0 &&
		    (out->expectations_expire_at <= 0 || deadline < out->expectations_expire_at))
			out->expectations_expire_at = deadline;
		if (kind == KIND_POD)
			observe_pod(out, --i, s);
		else if (kind != KIND_JOB && !out->owned[kind] &&
			 strcmp(s->object->name, job->job->meta.name) == 0)
			out->owned[kind] = object_ref(s->object);
	}
}

static void observe_nodes(struct snapshot *out, const struct mu_map *nodes)
{
	struct node_info *infos = MU_ARENA_ARRAY(&out->arena, struct node_info, nodes->count + 1);
	struct observed_job *o = &out->observed;

	out->nodes = MU_ARENA_ARRAY(&out->arena, struct object *, nodes->count + 1);
	o->nodes = infos;
	mu_map_each (nodes, m) {
		struct object *node = object_ref(((struct stored_object *)m->value)->object);

		infos[o->n_nodes] = ((const struct node *)node)->info;
		out->nodes[o->n_nodes++] = node;
	}
}

bool task_runs(const struct snapshot *s, unsigned i)
{
	const struct observed_pod *o = &s->observed.pods[i];

	return o->phase == POD_RUNNING && !o->deleting && s->pods[i].pod->ip;
}

int snapshot_chief(const struct snapshot *s, bool with_report)
{
	int worker = -1;

	for (unsigned i = 0; i < s->observed.n_pods; i++) {
		const struct observed_pod *o = &s->observed.pods[i];
		enum task_kind kind = task_kind_of(o->task);

		if (o->index != 0 ||
		    !(with_report ? s->pods[i].pod->final != NULL : task_runs(s, i)))
			continue;
		if (kind == TASK_CHIEF)
			return (int)i;
		if (kind == TASK_WORKER)
			worker = (int)i;
	}
	return worker;
}

/* The final report of a chief that ended replaces the progress. */
static void take_final_report(struct stored_job *job, const struct snapshot *s, double now)
{
	int chief = snapshot_chief(s, true);
	const struct progress_report *final = chief < 0 ? NULL : s->pods[chief].pod->final;

	if (!final || progress_report_same(&job->progress, final))
		return;
	job->progress = *final;
	job->progress_changed_at = now;
}

void snapshot_fini(struct snapshot *s)
{
	for (unsigned i = 0; i < s->observed.n_nodes; i++)
		object_unref(s->nodes[i]);
	object_unref(s->job);
	for (int k = 0; k < KINDS; k++)
		object_unref(s->owned[k]);
	for (unsigned i = 0; i < s->observed.n_pods; i++)
		object_unref(s->pods[i].pod);
	mu_arena_fini(&s->arena);
}

bool snapshot_take(struct store *c, const char *key, double now, struct snapshot *out)
{
	struct observed_job *o = &out->observed;
	const struct owned *group;
	struct stored_job *job;

	memset(out, 0, sizeof(*out));
	mu_arena_init(&out->arena);
	out->key = mu_arena_strdup(&out->arena, key);
	pthread_mutex_lock(&c->lock);
	job = store_job_of(c, key);
	if (!job) {
		pthread_mutex_unlock(&c->lock);
		return false;
	}
	expire_expectations(c, job, now);
	if (job->first_observed_at <= 0)
		job->first_observed_at = now;
	out->job = object_ref(job->job);
	out->verified = job->verified;
	out->last_status_write = job->last_status_write;
	o->first_observed_at = job->first_observed_at;
	o->status = job->job->status;
	observe_objects(out, job);
	take_final_report(job, out, now);
	o->progress = job->progress;
	o->last_progress = job->progress_changed_at;
	o->polled_at = job->polled_at;
	if (c->nodes_listed) /* else a node of a later page would count as removed */
		observe_nodes(out, &c->objects[KIND_NODE]);
	pthread_mutex_unlock(&c->lock);
	o->service = out->owned[KIND_SERVICE] != NULL;
	o->policy = out->owned[KIND_POLICY] != NULL;
	group = out->owned[KIND_VOLCANO] ? out->owned[KIND_VOLCANO] : out->owned[KIND_PLUGINS];
	if (group) {
		o->group = group->members;
		o->group_phase = group->phase;
		o->group_message = group->waiting;
	}
	return true;
}
