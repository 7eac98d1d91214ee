/* SPDX-License-Identifier: Apache-2.0 */
/* Pods in the store.  A pod that we created is put in at once, from the answer to its create; one
 * that we deleted is marked.  Such an assumption that no watch confirms within a minute is dropped:
 * the pod may have come and gone between two watches. */
#include "operator/control/cache.h"

#include <stdio.h>

#include "operator/api/object.h"

static const char *job_label(const cJSON *object)
{
	return text_or_empty(at(at(object, "metadata"), "labels"), LABEL_JOB);
}

static struct cached_pod **slot_of(struct cached_job *job, const char *uid)
{
	struct cached_pod **slot = &job->pods;

	while (*slot && strcmp((*slot)->pod->observed.uid, uid) != 0)
		slot = &(*slot)->next;
	return slot;
}

struct cached_pod *cache_pod_of(struct cached_job *job, const char *uid)
{
	return *slot_of(job, uid);
}

static void remove_pod(struct cached_pod **slot)
{
	struct cached_pod *p = *slot;

	*slot = p->next;
	pod_unref(p->pod);
	free(p);
}

void cache_pods_fini(struct cached_job *job)
{
	while (job->pods)
		remove_pod(&job->pods);
}

/* Stores the pod as the watch has it.  False when that is what was known, say from the answer to
 * our own create. */
static bool store_pod(struct cached_job *job, const cJSON *object)
{
	struct cached_pod **slot = slot_of(job, object_uid(object)), *p = *slot;
	struct pod *pod = pod_decode(object, p ? p->pod : NULL);
	bool changed;

	if (!pod)
		return false;
	if (!p)
		p = *slot = MU_NEW(struct cached_pod);
	changed = !p->pod || !pod_same(p->pod, pod);
	pod_unref(p->pod);
	p->pod = pod;
	p->seen = true;
	p->assumed = 0;
	return changed;
}

void cache_pods_begin(void *cache, const char *ns)
{
	struct cache *c = cache;

	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->jobs, s) {
		struct cached_job *job = s->value;
		for (struct cached_pod *p = job->pods; p && cache_key_in(s->key, ns); p = p->next)
			p->seen = false;
	}
	pthread_mutex_unlock(&c->lock);
}

void cache_pod_seen(void *cache, const cJSON *object)
{
	struct cache *c = cache;
	char *key = cache_key_of(object, job_label(object));
	struct cached_job *job;
	bool changed;

	pthread_mutex_lock(&c->lock);
	job = cache_job_of(c, key);
	changed = store_pod(job, object);
	cache_drop_if_empty(c, job);
	pthread_mutex_unlock(&c->lock);
	if (changed)
		cache_tell(c, c->pod_changed, key);
	else
		free(key);
}

void cache_assume_pod(struct cache *c, const cJSON *object, const char *kernels, double now)
{
	char *key = cache_key_of(object, job_label(object));
	struct cached_job *job;
	struct cached_pod *p;

	pthread_mutex_lock(&c->lock);
	job = cache_job_of(c, key);
	if (!cache_pod_of(job, object_uid(object))) { /* else the watch was faster */
		store_pod(job, object);
		if ((p = cache_pod_of(job, object_uid(object))))
			p->assumed = now;
	}
	if ((p = cache_pod_of(job, object_uid(object))))
		snprintf(p->kernels, sizeof(p->kernels), "%s", kernels);
	cache_drop_if_empty(c, job);
	pthread_mutex_unlock(&c->lock);
	free(key);
}

void cache_pod_gone(void *cache, const cJSON *object)
{
	struct cache *c = cache;
	char *key = cache_key_of(object, job_label(object));
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job) {
		struct cached_pod **slot = slot_of(job, object_uid(object));
		if (*slot)
			remove_pod(slot);
		cache_drop_if_empty(c, job);
	}
	pthread_mutex_unlock(&c->lock);
	cache_tell(c, c->pod_changed, key);
}

static bool end_pods(struct cached_job *job, int kind)
{
	bool removed = false;

	for (struct cached_pod **slot = &job->pods; *slot;) {
		if ((*slot)->seen || (*slot)->assumed > 0) {
			slot = &(*slot)->next;
		} else {
			remove_pod(slot);
			removed = true;
		}
	}
	return removed;
}

void cache_pods_end(void *cache, const char *ns)
{
	cache_sweep(cache, ns, end_pods, 0);
}

void cache_assume_deleting(struct cache *c, const char *key, const char *pod_uid)
{
	struct cached_job *job;
	struct cached_pod *p;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job && (p = cache_pod_of(job, pod_uid)))
		p->deletion_sent = true;
	pthread_mutex_unlock(&c->lock);
}

void cache_assume_gone(struct cache *c, const char *key, const char *pod_uid)
{
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job && *slot_of(job, pod_uid))
		remove_pod(slot_of(job, pod_uid));
	pthread_mutex_unlock(&c->lock);
}

void cache_finish_asked(struct cache *c, const char *key, const char *pod_uid, double now)
{
	struct cached_job *job;
	struct cached_pod *p;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job && (p = cache_pod_of(job, pod_uid)))
		p->finish_asked = now;
	pthread_mutex_unlock(&c->lock);
}

void cache_drop_unconfirmed(struct cached_job *job, double now)
{
	cache_owned_drop_unconfirmed(job, now);
	for (struct cached_pod **slot = &job->pods; *slot;) {
		if ((*slot)->assumed > 0 && now - (*slot)->assumed > CACHE_ASSUMED_MAX_S)
			remove_pod(slot);
		else
			slot = &(*slot)->next;
	}
}
