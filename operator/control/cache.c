/* SPDX-License-Identifier: Apache-2.0 */
/* A relist marks everything unseen, sees what the list holds, and drops the rest at its end: so a
 * deletion that no watch told of is found.  What we assumed ourselves survives one minute without
 * being confirmed; a pod that was created and deleted between two watches must not live here for
 * ever. */
#include "operator/control/cache.h"

#include <stdio.h>

#include "operator/control/at.h"

static const char *text_at(const cJSON *object, const char *key)
{
	const char *s = cJSON_GetStringValue(at(object, key));
	return s ? s : "";
}

char *cache_key_of(const cJSON *object, const char *name)
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

struct cached_job *cache_job_of(struct cache *c, const char *key)
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
	job_unref(job->object);
	free(job->refused);
	job->object = NULL;
	job->refused = NULL;
	job->progress.set = false;
	job->progress_at = job->watched_since = job->last_status_write = 0;
	job->verified = job->stale = false;
}

/* Frees the entry when nothing hangs on it any more. */
void cache_drop_if_empty(struct cache *c, struct cached_job *job)
{
	if (job->object || job->pods)
		return;
	for (int k = 0; k < OWNED_KINDS; k++)
		if (job->owned[k].owner)
			return;
	mu_map_del(&c->jobs, job->key);
	drop_object(job);
	cache_owned_fini(job);
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
		cache_owned_fini(job);
		free(job->key);
		free(job);
	}
	mu_map_fini(&c->jobs);
	cache_nodes_begin(c, NULL);
	cache_nodes_end(c, NULL);
	mu_map_fini(&c->nodes);
	pthread_mutex_destroy(&c->lock);
}

bool cache_key_in(const char *key, const char *ns)
{
	size_t n = ns ? strlen(ns) : 0;

	return !ns || (strncmp(key, ns, n) == 0 && key[n] == '/');
}

void cache_sweep(struct cache *c, const char *ns, bool (*end)(struct cached_job *job, int kind),
		 int kind)
{
	char **keys;
	unsigned n = 0;

	pthread_mutex_lock(&c->lock);
	keys = MU_NEW_ARRAY(char *, c->jobs.count + 1);
	mu_map_each (&c->jobs, s)
		if (cache_key_in(s->key, ns))
			keys[n++] = mu_xstrdup(s->key);
	for (unsigned i = 0; i < n; i++) {
		struct cached_job *job = mu_map_get(&c->jobs, keys[i]);
		if (!end(job, kind)) {
			free(keys[i]);
			keys[i] = NULL;
		} else {
			cache_drop_if_empty(c, job);
		}
	}
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < n; i++)
		if (keys[i])
			tell(c, keys[i]);
	free(keys);
}

/* ---- jobs ---- */

/* Stores the object; false when the stored one is as new (our own write may be faster than the
 * watch).  `update`: only a newer version of a job that is there. */
static bool store_job(struct cache *c, const char *key, const cJSON *object, bool update)
{
	struct cached_job *job = cache_job_of(c, key);
	const struct job *old = job->object;
	bool newer = old && object_version(object) > old->version;
	bool same = old && strcmp(old->uid, object_uid(object)) == 0;

	job->seen = true;
	if (update ? !newer : same && !newer)
		return false;
	if (old && !same)
		drop_object(job);
	job_unref(job->object);
	job->object = job_decode(object);
	return true;
}

void cache_jobs_begin(void *cache, const char *ns)
{
	struct cache *c = cache;
	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->jobs, s)
		if (cache_key_in(s->key, ns))
			((struct cached_job *)s->value)->seen = false;
	pthread_mutex_unlock(&c->lock);
}

void cache_job_seen(void *cache, const cJSON *object)
{
	struct cache *c = cache;
	char *key = cache_key_of(object, text_at(at(object, "metadata"), "name"));
	bool news;

	pthread_mutex_lock(&c->lock);
	news = store_job(c, key, object, false);
	pthread_mutex_unlock(&c->lock);
	if (news)
		tell(c, key);
	else
		free(key);
}

void cache_assume_job(struct cache *c, const cJSON *object)
{
	char *key = cache_key_of(object, text_at(at(object, "metadata"), "name"));
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	store_job(c, key, object, true);
	job = cache_job_of(c, key);
	job->verified = job->object != NULL;
	job->stale = false;
	cache_drop_if_empty(c, job);
	pthread_mutex_unlock(&c->lock);
	free(key);
}

void cache_stored(struct cache *c, const char *key, double now)
{
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job)
		job->last_status_write = now;
	pthread_mutex_unlock(&c->lock);
}

void cache_begin_term(struct cache *c, uint64_t version)
{
	pthread_mutex_lock(&c->lock);
	c->term = version;
	pthread_mutex_unlock(&c->lock);
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

void cache_job_gone(void *cache, const cJSON *object)
{
	struct cache *c = cache;
	char *key = cache_key_of(object, text_at(at(object, "metadata"), "name"));
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job) {
		drop_object(job);
		cache_drop_if_empty(c, job);
	}
	pthread_mutex_unlock(&c->lock);
	tell(c, key);
}

static bool end_job(struct cached_job *job, int kind)
{
	if (job->seen || !job->object)
		return false;
	drop_object(job);
	return true;
}

void cache_jobs_end(void *cache, const char *ns)
{
	cache_sweep(cache, ns, end_job, 0);
}

/* ---- pods ---- */

static struct cached_pod **slot_of(struct cached_job *job, const char *uid)
{
	struct cached_pod **at_pod = &job->pods;
	while (*at_pod && strcmp((*at_pod)->uid, uid) != 0)
		at_pod = &(*at_pod)->next;
	return at_pod;
}

/* False when that is what was known already, say from the answer to our own create. */
static bool store_pod(struct cached_job *job, struct cached_pod *p)
{
	struct cached_pod **slot = slot_of(job, p->uid), *old = *slot;
	bool news;

	if (old)
		pod_record_follow(p, old);
	news = !old || !pod_record_same(old, p);
	p->seen = true;
	if (old) { /* what only we know goes over */
		p->next = old->next;
		p->finish_asked = old->finish_asked;
		p->ask = old->ask;
		p->tell = old->tell;
		memcpy(p->kernels, old->kernels, sizeof(p->kernels));
		pod_record_free(old);
	}
	*slot = p;
	return news;
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
	struct cached_pod *p = pod_record_new(object);
	bool news;
	char *key;

	if (!p)
		return;
	key = cache_key_of(object, job_label(object));
	pthread_mutex_lock(&c->lock);
	news = store_pod(cache_job_of(c, key), p);
	pthread_mutex_unlock(&c->lock);
	if (news)
		tell_of_pod(c, key);
	else
		free(key);
}

void cache_assume_pod(struct cache *c, const cJSON *object, const char *kernels, double now)
{
	struct cached_pod *p = pod_record_new(object), *known;
	char *key;

	if (!p)
		return;
	key = cache_key_of(object, job_label(object));
	p->assumed = now;
	pthread_mutex_lock(&c->lock);
	snprintf(p->kernels, sizeof(p->kernels), "%s", kernels);
	known = *slot_of(cache_job_of(c, key), p->uid);
	if (!known) {
		store_pod(cache_job_of(c, key), p);
	} else { /* the watch was faster */
		memcpy(known->kernels, p->kernels, sizeof(known->kernels));
		pod_record_free(p);
	}
	pthread_mutex_unlock(&c->lock);
	free(key);
}

static void remove_pod(struct cached_job *job, struct cached_pod **slot)
{
	struct cached_pod *p = *slot;
	*slot = p->next;
	pod_record_free(p);
}

void cache_pod_gone(void *cache, const cJSON *object)
{
	struct cache *c = cache;
	char *key = cache_key_of(object, job_label(object));
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job) {
		struct cached_pod **slot = slot_of(job, text_at(at(object, "metadata"), "uid"));
		if (*slot)
			remove_pod(job, slot);
		cache_drop_if_empty(c, job);
	}
	pthread_mutex_unlock(&c->lock);
	tell_of_pod(c, key);
}

static bool end_pods(struct cached_job *job, int kind)
{
	bool removed = false;

	for (struct cached_pod **slot = &job->pods; *slot;) {
		if ((*slot)->seen || (*slot)->assumed > 0) {
			slot = &(*slot)->next;
		} else {
			remove_pod(job, slot);
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

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job && *slot_of(job, pod_uid)) {
		(*slot_of(job, pod_uid))->deleting = true;
	}
	pthread_mutex_unlock(&c->lock);
}

void cache_assume_gone(struct cache *c, const char *key, const char *pod_uid)
{
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job && *slot_of(job, pod_uid))
		remove_pod(job, slot_of(job, pod_uid));
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

/* ---- the rest ---- */

void cache_set_refused(struct cache *c, const char *key, const char *why, int64_t generation,
		       unsigned invalid_tasks)
{
	struct cached_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job && job->object && (why || job->refused)) {
		free(job->refused);
		job->refused = why ? mu_xstrdup(why) : NULL;
		job->invalid_in = generation;
		job->invalid_tasks = invalid_tasks;
	}
	pthread_mutex_unlock(&c->lock);
}

void cache_drop_unconfirmed(struct cached_job *job, double now)
{
	cache_owned_drop_unconfirmed(job, now);
	for (struct cached_pod **slot = &job->pods; *slot;) {
		if ((*slot)->assumed > 0 && now - (*slot)->assumed > CACHE_ASSUMED_MAX_S)
			remove_pod(job, slot);
		else
			slot = &(*slot)->next;
	}
}
