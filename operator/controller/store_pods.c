/* SPDX-License-Identifier: Apache-2.0 */
/* Pods in the store.  A pod that we created is put in at once, from the answer to its create; one
 * that we deleted is marked.  An expectation that no watch confirms within a minute is dropped:
 * the pod may have come and gone between two watches. */
#include "operator/controller/store.h"

#include <stdio.h>

#include "operator/api/object.h"

static const char *job_label(const cJSON *object)
{
	return text_or_empty(at(at(object, "metadata"), "labels"), LABEL_JOB);
}

static struct stored_pod **slot_of(struct stored_job *job, const char *uid)
{
	struct stored_pod **slot = &job->pods;

	while (*slot && strcmp((*slot)->pod->observed.uid, uid) != 0)
		slot = &(*slot)->next;
	return slot;
}

struct stored_pod *store_pod_of(struct stored_job *job, const char *uid)
{
	return *slot_of(job, uid);
}

static void remove_pod(struct stored_pod **slot)
{
	struct stored_pod *p = *slot;

	*slot = p->next;
	pod_unref(p->pod);
	free(p);
}

void store_pods_fini(struct stored_job *job)
{
	while (job->pods)
		remove_pod(&job->pods);
}

/* Stores the pod as the watch has it.  False when that is what was known, say from the answer to
 * our own create. */
static bool store_pod(struct stored_job *job, const cJSON *object)
{
	struct stored_pod **slot = slot_of(job, object_uid(object)), *p = *slot;
	struct pod *pod = pod_decode(object, p ? p->pod : NULL);
	bool changed;

	if (!pod)
		return false;
	if (!p)
		p = *slot = MU_NEW(struct stored_pod);
	changed = !p->pod || !pod_same(p->pod, pod);
	pod_unref(p->pod);
	p->pod = pod;
	p->seen = true;
	p->expected_since = 0;
	return changed;
}

void store_pods_begin(void *store, const char *ns)
{
	struct store *c = store;

	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->jobs, s) {
		struct stored_job *job = s->value;
		for (struct stored_pod *p = job->pods; p && store_key_in(s->key, ns); p = p->next)
			p->seen = false;
	}
	pthread_mutex_unlock(&c->lock);
}

void store_pod_seen(void *store, const cJSON *object)
{
	struct store *c = store;
	char *key = store_key_of(object, job_label(object));
	struct stored_job *job;
	bool changed;

	pthread_mutex_lock(&c->lock);
	job = store_job_of(c, key);
	changed = store_pod(job, object);
	store_drop_if_empty(c, job);
	pthread_mutex_unlock(&c->lock);
	if (changed)
		store_notify(c, c->pod_changed, key);
	else
		free(key);
}

void store_expect_pod(struct store *c, const cJSON *object, const char *kernels, double now)
{
	char *key = store_key_of(object, job_label(object));
	struct stored_job *job;
	struct stored_pod *p;

	pthread_mutex_lock(&c->lock);
	job = store_job_of(c, key);
	if (!store_pod_of(job, object_uid(object))) { /* else the watch was faster */
		store_pod(job, object);
		if ((p = store_pod_of(job, object_uid(object))))
			p->expected_since = now;
	}
	if ((p = store_pod_of(job, object_uid(object))))
		snprintf(p->kernels, sizeof(p->kernels), "%s", kernels);
	store_drop_if_empty(c, job);
	pthread_mutex_unlock(&c->lock);
	free(key);
}

void store_pod_gone(void *store, const cJSON *object)
{
	struct store *c = store;
	char *key = store_key_of(object, job_label(object));
	struct stored_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job) {
		struct stored_pod **slot = slot_of(job, object_uid(object));
		if (*slot)
			remove_pod(slot);
		store_drop_if_empty(c, job);
	}
	pthread_mutex_unlock(&c->lock);
	store_notify(c, c->pod_changed, key);
}

static bool end_pods(struct stored_job *job, int kind)
{
	bool removed = false;

	for (struct stored_pod **slot = &job->pods; *slot;) {
		if ((*slot)->seen || (*slot)->expected_since > 0) {
			slot = &(*slot)->next;
		} else {
			remove_pod(slot);
			removed = true;
		}
	}
	return removed;
}

void store_pods_end(void *store, const char *ns)
{
	store_sweep(store, ns, end_pods, 0);
}

void store_expect_deletion(struct store *c, const char *key, const char *pod_uid)
{
	struct stored_job *job;
	struct stored_pod *p;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job && (p = store_pod_of(job, pod_uid)))
		p->expects_deletion = true;
	pthread_mutex_unlock(&c->lock);
}

void store_remove_pod(struct store *c, const char *key, const char *pod_uid)
{
	struct stored_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job && *slot_of(job, pod_uid))
		remove_pod(slot_of(job, pod_uid));
	pthread_mutex_unlock(&c->lock);
}

void store_finish_requested(struct store *c, const char *key, const char *pod_uid, double now)
{
	struct stored_job *job;
	struct stored_pod *p;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job && (p = store_pod_of(job, pod_uid)))
		p->finish_requested_at = now;
	pthread_mutex_unlock(&c->lock);
}

void store_expire_expectations(struct stored_job *job, double now)
{
	store_owned_expire_expectations(job, now);
	for (struct stored_pod **slot = &job->pods; *slot;) {
		if ((*slot)->expected_since > 0 &&
		    now - (*slot)->expected_since > EXPECTATION_TIMEOUT_S)
			remove_pod(slot);
		else
			slot = &(*slot)->next;
	}
}
