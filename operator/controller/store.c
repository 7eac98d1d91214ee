/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of the store, and the jobs in it.
 *
 * A relist marks all objects unseen, marks those that the list holds, and drops the others at its
 * end: so a deletion that no watch delivered is found. */
#include "operator/controller/store.h"

#include <stdio.h>

#include "operator/api/object.h"

char *store_key_of(const cJSON *object, const char *name)
{
	return mu_xasprintf("%s/%s", text_or_empty(at(object, "metadata"), "namespace"), name);
}

void store_init(struct store *c, void (*changed)(void *arg, const char *key), void *arg)
{
	memset(c, 0, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
	mu_map_init(&c->jobs);
	mu_map_init(&c->nodes);
	c->changed = changed;
	c->arg = arg;
}

struct stored_job *store_job_of(struct store *c, const char *key)
{
	struct stored_job *job = mu_map_get(&c->jobs, key);

	if (!job) {
		job = MU_NEW(struct stored_job);
		job->key = mu_xstrdup(key);
		mu_map_put(&c->jobs, key, job);
	}
	return job;
}

static void drop_object(struct stored_job *job)
{
	job_unref(job->object);
	free(job->refused);
	job->object = NULL;
	job->refused = NULL;
	job->progress.set = false;
	job->progress_changed_at = job->first_observed_at = job->last_status_write = 0;
	job->verified = job->stale = false;
}

/* Frees the entry when it holds nothing any more. */
void store_drop_if_empty(struct store *c, struct stored_job *job)
{
	if (job->object || job->pods)
		return;
	for (int k = 0; k < OWNED_KINDS; k++)
		if (job->owned[k].owner)
			return;
	mu_map_del(&c->jobs, job->key);
	drop_object(job);
	store_owned_fini(job);
	free(job->key);
	free(job);
}

/* Reports a change of the job, and frees the key. */
void store_notify(struct store *c, void (*changed)(void *arg, const char *key), char *key)
{
	if (changed)
		changed(c->arg, key);
	free(key);
}

void store_fini(struct store *c)
{
	mu_map_each (&c->jobs, s) {
		struct stored_job *job = s->value;
		store_pods_fini(job);
		drop_object(job);
		store_owned_fini(job);
		free(job->key);
		free(job);
	}
	mu_map_fini(&c->jobs);
	store_nodes_begin(c, NULL);
	store_nodes_end(c, NULL);
	mu_map_fini(&c->nodes);
	pthread_mutex_destroy(&c->lock);
}

bool store_key_in(const char *key, const char *ns)
{
	size_t n = ns ? strlen(ns) : 0;

	return !ns || (strncmp(key, ns, n) == 0 && key[n] == '/');
}

void store_sweep(struct store *c, const char *ns, bool (*end)(struct stored_job *job, int kind),
		 int kind)
{
	char **keys;
	unsigned n = 0;

	pthread_mutex_lock(&c->lock);
	keys = MU_NEW_ARRAY(char *, c->jobs.count + 1);
	mu_map_each (&c->jobs, s)
		if (store_key_in(s->key, ns))
			keys[n++] = mu_xstrdup(s->key);
	for (unsigned i = 0; i < n; i++) {
		struct stored_job *job = mu_map_get(&c->jobs, keys[i]);
		if (!end(job, kind)) {
			free(keys[i]);
			keys[i] = NULL;
		} else {
			store_drop_if_empty(c, job);
		}
	}
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < n; i++)
		if (keys[i])
			store_notify(c, c->changed, keys[i]);
	free(keys);
}

/* ---- jobs ---- */

/* Stores the object; false when the stored one is as new (our own write may be faster than the
 * watch).  `update`: only a newer version of a job that is there. */
static bool store_job(struct store *c, const char *key, const cJSON *object, bool update)
{
	struct stored_job *job = store_job_of(c, key);
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

void store_jobs_begin(void *store, const char *ns)
{
	struct store *c = store;
	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->jobs, s)
		if (store_key_in(s->key, ns))
			((struct stored_job *)s->value)->seen = false;
	pthread_mutex_unlock(&c->lock);
}

void store_job_seen(void *store, const cJSON *object)
{
	struct store *c = store;
	char *key = store_key_of(object, object_name(object));
	bool news;

	pthread_mutex_lock(&c->lock);
	news = store_job(c, key, object, false);
	pthread_mutex_unlock(&c->lock);
	if (news)
		store_notify(c, c->changed, key);
	else
		free(key);
}

void store_update_job(struct store *c, const cJSON *object)
{
	char *key = store_key_of(object, object_name(object));
	struct stored_job *job;

	pthread_mutex_lock(&c->lock);
	store_job(c, key, object, true);
	job = store_job_of(c, key);
	job->verified = job->object != NULL;
	job->stale = false;
	store_drop_if_empty(c, job);
	pthread_mutex_unlock(&c->lock);
	free(key);
}

void store_status_written(struct store *c, const char *key, double now)
{
	struct stored_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job)
		job->last_status_write = now;
	pthread_mutex_unlock(&c->lock);
}

void store_begin_term(struct store *c, uint64_t version)
{
	pthread_mutex_lock(&c->lock);
	c->term = version;
	pthread_mutex_unlock(&c->lock);
}

void store_mark_stale(struct store *c, const char *key)
{
	struct stored_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job)
		job->stale = true;
	pthread_mutex_unlock(&c->lock);
}

void store_job_gone(void *store, const cJSON *object)
{
	struct store *c = store;
	char *key = store_key_of(object, object_name(object));
	struct stored_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job) {
		drop_object(job);
		store_drop_if_empty(c, job);
	}
	pthread_mutex_unlock(&c->lock);
	store_notify(c, c->changed, key);
}

static bool end_job(struct stored_job *job, int kind)
{
	if (job->seen || !job->object)
		return false;
	drop_object(job);
	return true;
}

void store_jobs_end(void *store, const char *ns)
{
	store_sweep(store, ns, end_job, 0);
}

void store_set_rejection(struct store *c, const char *key, const char *why, int64_t generation,
			 unsigned invalid_tasks)
{
	struct stored_job *job;

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
