/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a snapshot of a job out of the store, by reference. */
#include "operator/controller/store.h"

static const char *keep(struct mu_arena *a, const char *s)
{
	return s ? mu_arena_strdup(a, s) : NULL;
}

static void note_expiry(struct snapshot *s, double expected_since)
{
	double until = expected_since + EXPECTATION_TIMEOUT_S;

	if (expected_since > 0 &&
	    (s->expectations_expire_at <= 0 || until < s->expectations_expire_at))
		s->expectations_expire_at = until;
}

static void observe_pod(struct snapshot *s, unsigned i, const struct stored_pod *p)
{
	struct observed_pod *o = (struct observed_pod *)&s->observed.pods[i];

	s->pods[i].pod = pod_ref(p->pod);
	s->pods[i].finish_requested_at = p->finish_requested_at;
	note_expiry(s, p->expected_since);
	*o = p->pod->observed;
	o->deleting = o->deleting || p->expects_deletion;
	o->epoch = p->epoch > o->epoch ? p->epoch : o->epoch;
	o->kernels = p->kernels[0] ? mu_arena_strdup(&s->arena, p->kernels) : NULL;
}

static bool is_its(const struct stored_job *job, enum owned_kind kind)
{
	return job->owned[kind].owner && strcmp(job->owned[kind].owner, job->object->uid) == 0;
}

void snapshot_fini(struct snapshot *s)
{
	node_table_unref(s->table);
	job_unref(s->job);
	for (unsigned i = 0; i < s->observed.n_pods; i++)
		pod_unref(s->pods[i].pod);
	mu_arena_fini(&s->arena);
}

bool snapshot_take(struct store *c, const char *key, double now, struct snapshot *out)
{
	struct stored_job *job;
	unsigned n = 0, at_pod = 0;

	memset(out, 0, sizeof(*out));
	mu_arena_init(&out->arena);
	out->key = mu_arena_strdup(&out->arena, key);
	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (!job || !job->object) {
		pthread_mutex_unlock(&c->lock);
		return false;
	}
	store_expire_expectations(job, now);
	store_take_final_report(job, now);
	if (job->first_observed_at <= 0)
		job->first_observed_at = now;
	out->observed.first_observed_at = job->first_observed_at;
	out->verified = job->verified || (c->term > 0 && job->object->version > c->term);
	out->stale = job->stale;
	out->last_status_write = job->last_status_write;
	out->job = job_ref(job->object);
	out->observed.status = job->object->status;
	out->observed.progress = job->progress;
	out->observed.last_progress = job->progress_changed_at;
	for (struct stored_pod *p = job->pods; p; p = p->next)
		n += strcmp(p->pod->owner, job->object->uid) == 0;
	out->observed.pods = MU_ARENA_ARRAY(&out->arena, struct observed_pod, n + 1);
	out->pods = MU_ARENA_ARRAY(&out->arena, struct snapshot_pod, n + 1);
	for (struct stored_pod *p = job->pods; p; p = p->next)
		if (strcmp(p->pod->owner, job->object->uid) == 0)
			observe_pod(out, at_pod++, p);
	out->observed.n_pods = n;
	out->observed.refused = keep(&out->arena, job->refused);
	out->invalid_tasks = job->invalid_in == job->object->generation ? job->invalid_tasks : 0;
	for (int k = 0; k < OWNED_KINDS; k++)
		note_expiry(out, job->owned[k].expected_since);
	out->observed.service = is_its(job, OWNED_SERVICE);
	out->observed.policy = is_its(job, OWNED_POLICY);
	if (is_its(job, OWNED_VOLCANO) || is_its(job, OWNED_PLUGINS)) {
		out->observed.group = job->group_members;
		out->observed.group_phase = keep(&out->arena, job->group_phase);
		out->observed.group_said = keep(&out->arena, job->group_said);
	}
	out->table = store_nodes(c);
	out->observed.nodes = out->table->nodes;
	out->observed.n_nodes = out->table->n;
	pthread_mutex_unlock(&c->lock);
	return true;
}
