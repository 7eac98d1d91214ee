/* SPDX-License-Identifier: Apache-2.0 */
/* The watch handlers of the store, one set for all kinds: operator/api/object.h.
 *
 * A relist marks all objects as unseen and the listed objects as seen, then removes the others.  So
 * it finds deletions that no watch delivered. */
#include "operator/controller/store.h"

#include <stdatomic.h>
#include <stdio.h>

#include "operator/api/object_json.h"

void store_init(struct store *c, void (*changed)(void *arg, const char *key, enum object_kind kind),
		void *arg)
{
	memset(c, 0, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
	for (int k = 0; k < KINDS; k++)
		mu_map_init(&c->objects[k]);
	mu_map_init(&c->owners);
	mu_map_init(&c->keys);
	c->changed = changed;
	c->arg = arg;
}

void store_fini(struct store *c)
{
	for (int k = 0; k < KINDS; k++) {
		mu_map_each (&c->objects[k], s) {
			struct stored_object *o = s->value;
			object_unref(o->object);
			free(o);
		}
		mu_map_fini(&c->objects[k]);
	}
	mu_map_each (&c->owners, s) {
		struct stored_job *job = s->value;
		free(job->uid);
		free(job);
	}
	mu_map_fini(&c->owners);
	mu_map_fini(&c->keys);
	pthread_mutex_destroy(&c->lock);
}

static char *key_of(const struct object *job)
{
	return mu_xasprintf("%s/%s", job->namespace, job->name);
}

struct stored_job *store_job_of(struct store *c, const char *key)
{
	return mu_map_get(&c->keys, key);
}

struct stored_object *store_next_pod(const struct stored_job *job, const struct stored_object *s)
{
	struct stored_object *next = s ? s->next : job->objects;

	while (next && next->object->kind != KIND_POD)
		next = next->next;
	return next;
}

/* Clears the job of these objects, because it was deleted. */
static void drop_job(struct store *c, struct stored_job *job)
{
	MU_AUTO_FREE char *key = key_of(&job->job->meta);

	if (mu_map_get(&c->keys, key) == job)
		mu_map_del(&c->keys, key);
	*job = (struct stored_job){.uid = job->uid, .objects = job->objects};
}

void store_remove(struct store *c, enum object_kind kind, const char *uid)
{
	struct stored_object *s = mu_map_del(&c->objects[kind], uid), **slot;
	struct stored_job *owner;

	if (!s)
		return;
	owner = s->owner;
	for (slot = &owner->objects; *slot != s;)
		slot = &(*slot)->next;
	*slot = s->next;
	if (kind == KIND_JOB)
		drop_job(c, owner);
	object_unref(s->object);
	free(s);
	if (owner->objects)
		return;
	mu_map_del(&c->owners, owner->uid);
	free(owner->uid);
	free(owner);
}

/* Adds an entry for the object.  Takes the object. */
static struct stored_object *add(struct store *c, struct object *object)
{
	struct stored_object *s = MU_NEW(struct stored_object);
	struct stored_job *owner = mu_map_get(&c->owners, object->owner);

	if (!owner) {
		owner = MU_NEW(struct stored_job);
		owner->uid = mu_xstrdup(object->owner);
		mu_map_put(&c->owners, owner->uid, owner);
	}
	*s = (struct stored_object){
	    .object = object, .owner = owner, .next = owner->objects, .seen = true};
	owner->objects = s;
	mu_map_put(&c->objects[object->kind], object->uid, s);
	return s;
}

/* Makes the job available by its key, and removes an older job of that name. */
static void set_job(struct store *c, struct stored_object *s)
{
	MU_AUTO_FREE char *key = key_of(s->object);
	const struct stored_job *other = mu_map_put(&c->keys, key, s->owner);

	s->owner->job = (struct job *)s->object;
	if (other && other != s->owner)
		store_remove(c, KIND_JOB, other->uid);
}

/* Stores an object.  Returns NULL if the stored object is as new or equal. */
static struct stored_object *put(struct store *c, enum object_kind kind, const cJSON *json)
{
	struct stored_object *s = mu_map_get(&c->objects[kind], object_uid(json));
	struct object *old = s ? s->object : NULL, *new;
	bool changed;

	if (s)
		s->seen = true;
	if (s && object_version(json) && object_version(json) <= old->version)
		return NULL;
	new = kinds[kind].decode(kind, json, old);
	if (!new)
		return NULL;
	changed = !old || !kinds[kind].same || !kinds[kind].same(old, new);
	if (s)
		s->object = new;
	else
		s = add(c, new);
	if (kind == KIND_JOB)
		set_job(c, s);
	object_unref(old);
	return changed ? s : NULL;
}

/* Returns the key for notify(): of the job that the change concerns.  The lock is held. */
static char *note_change(const struct stored_object *s)
{
	if (s->object->kind == KIND_NODE)
		return mu_xstrdup("");
	return s->owner->job ? key_of(&s->owner->job->meta) : NULL;
}

/* Reports a change and frees the key. "" stands for all jobs, NULL for none. */
static void notify(struct store *c, char *key, enum object_kind kind)
{
	if (key && !*key)
		store_requeue_all(c);
	else if (key && c->changed)
		c->changed(c->arg, key, kind);
	free(key);
}

static bool is_in(const struct object *o, const char *namespace)
{
	return !namespace || strcmp(o->namespace, namespace) == 0;
}

void store_list_begins(void *watch)
{
	const struct store_watch *w = watch;

	pthread_mutex_lock(&w->store->lock);
	mu_map_each (&w->store->objects[w->kind], m) {
		struct stored_object *s = m->value;
		if (is_in(s->object, w->namespace))
			s->seen = false;
	}
	pthread_mutex_unlock(&w->store->lock);
}

/* True when the object has another owner reference; a job never does.  No API server renames. */
static bool identity_changed(const struct object *o, const cJSON *json)
{
	return strcmp(o->name, object_name(json)) != 0 ||
	       strcmp(o->namespace, text_or_empty(at(json, "metadata"), "namespace")) != 0 ||
	       (o->kind != KIND_JOB && strcmp(o->owner, object_owner(json)) != 0);
}

void store_object_seen(void *watch, const cJSON *json)
{
	const struct store_watch *w = watch;
	struct store *c = w->store;
	const char *uid = object_uid(json);
	struct stored_object *s;
	char *former_key = NULL, *key = NULL;

	pthread_mutex_lock(&c->lock);
	s = mu_map_get(&c->objects[w->kind], uid);
	if (s && identity_changed(s->object, json)) {
		former_key = note_change(s);
		store_remove(c, w->kind, uid);
	} else if (s) {
		s->expected.created_until = 0;
	}
	s = put(c, w->kind, json);
	if (s)
		key = note_change(s);
	pthread_mutex_unlock(&c->lock);
	notify(c, former_key, w->kind);
	notify(c, key, w->kind);
}

void store_object_gone(void *watch, const cJSON *json)
{
	const struct store_watch *w = watch;
	struct store *c = w->store;
	const struct stored_object *s;
	char *key = NULL;

	pthread_mutex_lock(&c->lock);
	if ((s = mu_map_get(&c->objects[w->kind], object_uid(json))))
		key = note_change(s);
	store_remove(c, w->kind, object_uid(json));
	pthread_mutex_unlock(&c->lock);
	notify(c, key, w->kind);
}

void store_list_ends(void *watch)
{
	const struct store_watch *w = watch;
	struct store *c = w->store;
	struct mu_map *objects = &c->objects[w->kind];
	char **uids, **keys;
	unsigned n = 0;

	pthread_mutex_lock(&c->lock);
	c->nodes_listed = c->nodes_listed || w->kind == KIND_NODE;
	uids = MU_NEW_ARRAY(char *, objects->count + 1);
	keys = MU_NEW_ARRAY(char *, objects->count + 1);
	mu_map_each (objects, m) {
		const struct stored_object *s = m->value;
		if (s->seen || !is_in(s->object, w->namespace) || s->expected.created_until > 0)
			continue;
		keys[n] = note_change(s);
		uids[n++] = mu_xstrdup(s->object->uid);
	}
	for (unsigned i = 0; i < n; i++)
		store_remove(c, w->kind, uids[i]);
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < n; i++) {
		notify(c, keys[i], w->kind);
		free(uids[i]);
	}
	free(uids);
	free(keys);
}

void store_each_key(struct store *c, bool ended, void (*fn)(void *arg, const char *key), void *arg)
{
	char **keys;
	unsigned n = 0;

	pthread_mutex_lock(&c->lock);
	keys = MU_NEW_ARRAY(char *, c->keys.count + 1);
	mu_map_each (&c->keys, s)
		if (ended ||
		    ((const struct stored_job *)s->value)->job->status.phase < JOB_SUCCEEDED)
			keys[n++] = mu_xstrdup(s->key);
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < n; i++) {
		fn(arg, keys[i]);
		free(keys[i]);
	}
	free(keys);
}

static void report_change(void *store, const char *key)
{
	struct store *c = store;

	if (c->changed)
		c->changed(c->arg, key, KIND_JOB);
}

void store_requeue_all(struct store *c)
{
	store_each_key(c, true, report_change, c);
}

/* ---- our own writes ---- */

bool store_expect(struct store *c, enum object_kind kind, const cJSON *json, double now)
{
	const char *uid = object_uid(json);
	struct stored_object *s;

	pthread_mutex_lock(&c->lock);
	s = mu_map_get(&c->objects[kind], uid); /* the watch may have been faster */
	if (!s && (s = put(c, kind, json)))
		s->expected.created_until = now + EXPECTATION_TIMEOUT_S;
	else if (s && object_version(json) > s->object->version)
		put(c, kind, json);
	pthread_mutex_unlock(&c->lock);
	return s != NULL;
}

void store_update_job(struct store *c, const cJSON *json, double written)
{
	MU_AUTO_FREE char *key = mu_xasprintf(
	    "%s/%s", text_or_empty(at(json, "metadata"), "namespace"), object_name(json));
	struct stored_job *job;

	pthread_mutex_lock(&c->lock);
	job = store_job_of(c, key);
	if (job && object_version(json) > job->job->meta.version) {
		put(c, KIND_JOB, json);
		job = store_job_of(c, key);
	}
	if (job) {
		job->verified = true;
		if (written > 0)
			job->last_status_write = written;
	}
	pthread_mutex_unlock(&c->lock);
}

void store_deleted(struct store *c, const char *pod_uid, bool at_once)
{
	struct stored_object *s;

	pthread_mutex_lock(&c->lock);
	if (at_once)
		store_remove(c, KIND_POD, pod_uid);
	else if ((s = mu_map_get(&c->objects[KIND_POD], pod_uid)))
		s->expected.deleted = true;
	pthread_mutex_unlock(&c->lock);
}

void store_finish_requested(struct store *c, const char *pod_uid, double now)
{
	struct stored_object *s;

	pthread_mutex_lock(&c->lock);
	if ((s = mu_map_get(&c->objects[KIND_POD], pod_uid)))
		s->task.finish_requested_at = now;
	pthread_mutex_unlock(&c->lock);
}

bool store_set_progress(struct store *c, const char *key, const char *pod_uid,
			const struct progress_report *report, const char *kernels, double now)
{
	struct stored_job *job;
	struct stored_object *s;
	bool differs = false;

	pthread_mutex_lock(&c->lock);
	job = store_job_of(c, key);
	if (job && report->set && !progress_report_same(&job->progress, report)) {
		job->progress = *report;
		job->progress_changed_at = now;
		differs = true;
	}
	s = mu_map_get(&c->objects[KIND_POD], pod_uid);
	if (s && kernels && strncmp(s->task.kernels, kernels, sizeof(s->task.kernels) - 1) != 0) {
		snprintf(s->task.kernels, sizeof(s->task.kernels), "%s", kernels);
		differs = true;
	}
	pthread_mutex_unlock(&c->lock);
	return differs;
}

void store_metrics(struct store *c, struct mu_buf *out)
{
	unsigned counts[JOB_FAILED + 1] = {0}, pods;

	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->keys, m)
		counts[((const struct stored_job *)m->value)->job->status.phase]++;
	pods = (unsigned)c->objects[KIND_POD].count;
	pthread_mutex_unlock(&c->lock);
	mu_buf_puts(out, "# TYPE muster_jobs gauge\n");
	for (int i = 0; i <= JOB_FAILED; i++)
		mu_buf_printf(out, "muster_jobs{phase=\"%s\"} %u\n",
			      job_phase_names[i][0] ? job_phase_names[i] : "New", counts[i]);
	mu_buf_printf(out, "# TYPE muster_pods gauge\nmuster_pods %u\n", pods);
}
