/* SPDX-License-Identifier: Apache-2.0 */
/* A relist marks everything unseen, sees what the list holds, and drops the rest at its end: so a
 * deletion that no watch told of is found.  What we assumed ourselves survives one minute without
 * being confirmed; a pod that was created and deleted between two watches must not live here for
 * ever. */
#include "operator/control/cache.h"

#include <stdio.h>

static const cJSON *at(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

static const char *text_at(const cJSON *object, const char *key)
{
	const char *s = cJSON_GetStringValue(at(object, key));
	return s ? s : "";
}

static char *key_of(const cJSON *object, const char *name)
{
	return mu_xasprintf("%s/%s", text_at(at(object, "metadata"), "namespace"), name);
}

static const char *job_label(const cJSON *object)
{
	return text_at(at(at(object, "metadata"), "labels"), LABEL_JOB);
}

void cache_init(struct cache *c, void (*changed)(void *arg, const char *key), void *arg)
{
	memset(c, 0, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
	mu_map_init(&c->jobs);
	mu_map_init(&c->nodes);
	c->changed = changed;
	c->arg = arg;
}

static struct cached_job *job_of(struct cache *c, const char *key)
{
	struct cached_job *job = mu_map_get(&c->jobs, key);

	if (!job) {
		job = MU_NEW(struct cached_job);
		job->key = mu_xstrdup(key);
		mu_map_put(&c->jobs, key, job);
	}
	return job;
}

static void drop_object(struct cached_job *job)
{
	free(job->text);
	free(job->uid);
	free(job->progress);
	job->text = job->uid = job->progress = NULL;
	job->version = 0;
	job->progress_at = job->watched_since = 0;
	job->verified = job->stale = job->policy = false;
	job->settled = 0;
	job->group = 0;
}

/* Frees the entry when nothing hangs on it any more. */
static void drop_if_empty(struct cache *c, struct cached_job *job)
{
	if (job->text || job->pods || job->service_owner)
		return;
	mu_map_del(&c->jobs, job->key);
	drop_object(job);
	free(job->key);
	free(job);
}

static void tell(struct cache *c, char *key)
{
	if (c->changed)
		c->changed(c->arg, key);
	free(key);
}

static void tell_of_pod(struct cache *c, char *key)
{
	if (c->pod_changed)
		c->pod_changed(c->arg, key);
	free(key);
}

void cache_fini(struct cache *c)
{
	mu_map_each (&c->jobs, s) {
		struct cached_job *job = s->value;
		while (job->pods) {
			struct cached_pod *p = job->pods;
			job->pods = p->next;
			pod_record_free(p);
		}
		drop_object(job);
		free(job->service_owner);
		free(job->key);
		free(job);
	}
	mu_map_fini(&c->jobs);
	cache_nodes_begin(c);
	cache_nodes_end(c);
	mu_map_fini(&c->nodes);
	pthread_mutex_destroy(&c->lock);
}

/* Calls end() for every entry, which drops what was not seen and says whether it did. */
static void sweep(struct cache *c, bool (*end)(struct cached_job *job))
{
	char **keys;
	unsigned n = 0;

	pthread_mutex_lock(&c->lock);
	keys = MU_NEW_ARRAY(char *, c->jobs.count + 1);
	mu_map_each (&c->jobs, s)
		keys[n++] = mu_xstrdup(s->key);
	for (unsigned i = 0; i < n; i++) {
		struct cached_job *job = mu_map_get(&c->jobs, keys[i]);
		if (!end(job)) {
			free(keys[i]);
			keys[i] = NULL;
		} else {
			drop_if_empty(c, job);
		}
	}
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < n; i++)
		if (keys[i])
			tell(c, keys[i]);
	free(keys);
}

/* ---- jobs ---- */

static uint64_t version_of(const cJSON *object)
{
	return strtoull(text_at(at(object, "metadata"), "resourceVersion"), NULL, 10);
}

/* The object without what only takes room. */
static char *compact(const cJSON *object)
{
	cJSON *copy = cJSON_Duplicate(object, true);
	cJSON *metadata = cJSON_GetObjectItemCaseSensitive(copy, "metadata");
	char *text;

	cJSON_DeleteItemFromObjectCaseSensitive(metadata, "managedFields");
	cJSON_DeleteItemFromObjectCaseSensitive(
	    cJSON_GetObjectItemCaseSensitive(metadata, "annotations"),
	    "kubectl.kubernetes.io/last-applied-configuration");
	text = cJSON_PrintUnformatted(copy);
	cJSON_Delete(copy);
	return text;
}

static void store_job(struct cache *c, const char *key, const cJSON *object, bool only_newer)
{
	struct cached_job *job = job_of(c, key);

	job->seen = true;
	if (only_newer && (!job->text || version_of(object) <= job->version))
		return;
	if (!only_newer && job->text && version_of(object) <= job->version &&
	    strcmp(job->uid, text_at(at(object, "metadata"), "uid")) == 0)
		return; /* our own write was faster than the watch, or is what it brings */
	if (job->uid && strcmp(job->uid, text_at(at(object, "metadata"), "uid")) != 0)
		drop_object(job);
	free(job->text);
	free(job->uid);
	job->text = compact(object);
	job->uid = mu_xstrdup(text_at(at(object, "metadata"), "uid"));
	job->version = version_of(object);
	job->settled = 0;
}

void cache_jobs_begin(void *cache)
{
	struct cache *c = cache;
	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->jobs, s)
		((struct cached_job *)s->value)->seen = false;
	pthread_mutex_unlock(&c->lock);
}

void cache_job_seen(void *cache, const cJSON *object)
{
	struct cache *c = cache;
	char *key = key_of(object, text_at(at(object, "metadata"), "name"));

	pthread_mutex_lock(&c->lock);
	store_job(c, key, object, false);
	pthread_mutex_unlock(&c->lock);
	tell(c, key);
}

void cache_assume_job(struct cache *c, const cJSON *object)
{
	char *key = key_of(object, text_at(at(object, "metadata"), "name"));
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	store_job(c, key, object, true);
	job = job_of(c, key);
	job->verified = job->text != NULL;
	job->stale = false;
	drop_if_empty(c, job);
	pthread_mutex_unlock(&c->lock);
	free(key);
}

void cache_settle(struct cache *c, const cJSON *object, uint64_t hash)
{
	char *key = key_of(object, text_at(at(object, "metadata"), "name"));
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job && job->text && job->version == version_of(object))
		job->settled = hash;
	pthread_mutex_unlock(&c->lock);
	free(key);
}

void cache_doubt_job(struct cache *c, const char *key)
{
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job)
		job->stale = true;
	pthread_mutex_unlock(&c->lock);
}

/* The server says that something of a job is gone: `drop` forgets it. */
static void forget(struct cache *c, const cJSON *object, void (*drop)(struct cached_job *job))
{
	char *key = key_of(object, text_at(at(object, "metadata"), "name"));
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job) {
		drop(job);
		drop_if_empty(c, job);
	}
	pthread_mutex_unlock(&c->lock);
	tell(c, key);
}

void cache_job_gone(void *cache, const cJSON *object)
{
	forget(cache, object, drop_object);
}

static bool end_job(struct cached_job *job)
{
	if (job->seen || !job->text)
		return false;
	drop_object(job);
	return true;
}

void cache_jobs_end(void *cache)
{
	sweep(cache, end_job);
}

/* ---- pods ---- */

static struct cached_pod **slot_of(struct cached_job *job, const char *uid)
{
	struct cached_pod **at_pod = &job->pods;
	while (*at_pod && strcmp((*at_pod)->uid, uid) != 0)
		at_pod = &(*at_pod)->next;
	return at_pod;
}

static void store_pod(struct cached_job *job, struct cached_pod *p)
{
	struct cached_pod **slot = slot_of(job, p->uid), *old = *slot;

	p->seen = true;
	if (old) { /* what only we know goes over */
		p->next = old->next;
		p->finish_asked = old->finish_asked;
		memcpy(p->kernels, old->kernels, sizeof(p->kernels));
		pod_record_free(old);
	}
	*slot = p;
}

void cache_pods_begin(void *cache)
{
	struct cache *c = cache;
	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->jobs, s) {
		for (struct cached_pod *p = ((struct cached_job *)s->value)->pods; p; p = p->next)
			p->seen = false;
	}
	pthread_mutex_unlock(&c->lock);
}

void cache_pod_seen(void *cache, const cJSON *object)
{
	struct cache *c = cache;
	struct cached_pod *p = pod_record_new(object);
	char *key;

	if (!p)
		return;
	key = key_of(object, job_label(object));
	pthread_mutex_lock(&c->lock);
	store_pod(job_of(c, key), p);
	pthread_mutex_unlock(&c->lock);
	tell_of_pod(c, key);
}

void cache_assume_pod(struct cache *c, const cJSON *object, double now)
{
	struct cached_pod *p = pod_record_new(object);
	char *key;

	if (!p)
		return;
	key = key_of(object, job_label(object));
	p->assumed = now;
	pthread_mutex_lock(&c->lock);
	if (*slot_of(job_of(c, key), p->uid))
		pod_record_free(p); /* the watch was faster */
	else
		store_pod(job_of(c, key), p);
	pthread_mutex_unlock(&c->lock);
	free(key);
}

static void remove_pod(struct cached_pod **slot)
{
	struct cached_pod *p = *slot;
	*slot = p->next;
	pod_record_free(p);
}

void cache_pod_gone(void *cache, const cJSON *object)
{
	struct cache *c = cache;
	char *key = key_of(object, job_label(object));
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job) {
		struct cached_pod **slot = slot_of(job, text_at(at(object, "metadata"), "uid"));
		if (*slot)
			remove_pod(slot);
		drop_if_empty(c, job);
	}
	pthread_mutex_unlock(&c->lock);
	tell_of_pod(c, key);
}

static bool end_pods(struct cached_job *job)
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

void cache_pods_end(void *cache)
{
	sweep(cache, end_pods);
}

void cache_assume_deleting(struct cache *c, const char *key, const char *pod_uid)
{
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job && *slot_of(job, pod_uid))
		(*slot_of(job, pod_uid))->deleting = true;
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

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job && *slot_of(job, pod_uid))
		(*slot_of(job, pod_uid))->finish_asked = now;
	pthread_mutex_unlock(&c->lock);
}

/* ---- services ---- */

static const char *owner_of(const cJSON *object)
{
	const cJSON *ref;

	cJSON_ArrayForEach(
	    ref,
	    at(at(object, "metadata"),
	       "ownerReferences")) if (cJSON_IsTrue(at(ref, "controller"))) return text_at(ref,
											   "uid");
	return "";
}

void cache_services_begin(void *cache)
{
	struct cache *c = cache;
	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->jobs, s)
		((struct cached_job *)s->value)->service_seen = false;
	pthread_mutex_unlock(&c->lock);
}

void cache_assume_service(struct cache *c, const char *key, const char *owner, double now)
{
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = job_of(c, key);
	free(job->service_owner);
	job->service_owner = mu_xstrdup(owner);
	job->service_seen = true;
	job->service_assumed = now;
	pthread_mutex_unlock(&c->lock);
}

void cache_service_seen(void *cache, const cJSON *object)
{
	char *key = key_of(object, text_at(at(object, "metadata"), "name"));

	cache_assume_service(cache, key, owner_of(object), 0);
	tell(cache, key);
}

static void drop_service(struct cached_job *job)
{
	free(job->service_owner);
	job->service_owner = NULL;
}

void cache_service_gone(void *cache, const cJSON *object)
{
	forget(cache, object, drop_service);
}

static bool end_service(struct cached_job *job)
{
	if (job->service_seen || !job->service_owner || job->service_assumed > 0)
		return false;
	drop_service(job);
	return true;
}

void cache_services_end(void *cache)
{
	sweep(cache, end_service);
}

/* ---- the rest ---- */

void cache_set_phase(struct cache *c, const char *key, enum job_phase phase)
{
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job)
		job->phase = (int)phase;
	pthread_mutex_unlock(&c->lock);
}

/* Pods that we put in and no watch confirmed in time do not exist; the lock is held. */
void cache_drop_unconfirmed(struct cached_job *job, double now)
{
	for (struct cached_pod **slot = &job->pods; *slot;) {
		if ((*slot)->assumed > 0 && now - (*slot)->assumed > CACHE_ASSUMED_MAX_S)
			remove_pod(slot);
		else
			slot = &(*slot)->next;
	}
}
