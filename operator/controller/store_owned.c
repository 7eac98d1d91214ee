/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that a job owns under its own name: Service, NetworkPolicy and PodGroup.  The store
 * keeps the owner of each, and the state that its scheduler reports for the group.
 *
 * An object that this operator created may be deleted before the store knows it, and no watch event
 * follows.  The store therefore trusts a created object for a minute, and then only if a watch has
 * shown it. */
#include "operator/controller/store.h"

#include <stdio.h>

#include "operator/api/object.h"

static bool is_group(enum owned_kind kind)
{
	return kind == OWNED_VOLCANO || kind == OWNED_PLUGINS;
}

static void drop(struct stored_job *job, enum owned_kind kind)
{
	free(job->owned[kind].owner);
	job->owned[kind] = (struct stored_owned){0};
	if (!is_group(kind))
		return;
	free(job->group_said);
	job->group_said = NULL;
	job->group_phase[0] = 0;
	job->group_members = 0;
}

void store_owned_fini(struct stored_job *job)
{
	for (int k = 0; k < OWNED_KINDS; k++)
		drop(job, (enum owned_kind)k);
}

/* False when that was known. */
static bool store(struct stored_job *job, enum owned_kind kind, const char *owner,
		  double expected_since)
{
	struct stored_owned *o = &job->owned[kind];
	bool news = !o->owner || strcmp(o->owner, owner) != 0;
	char *copy = mu_xstrdup(owner);

	free(o->owner);
	*o = (struct stored_owned){.owner = copy, .expected_since = expected_since, .seen = true};
	return news;
}

/* With the lock held; the watch may have been faster. */
static void expect(struct stored_job *job, enum owned_kind kind, const char *owner, double now)
{
	const struct stored_owned *o = &job->owned[kind];

	if (!o->owner || strcmp(o->owner, owner) != 0)
		store(job, kind, owner, now);
}

void store_expect_owned(struct store *c, enum owned_kind kind, const char *key, const char *owner,
			double now)
{
	pthread_mutex_lock(&c->lock);
	expect(store_job_of(c, key), kind, owner, now);
	pthread_mutex_unlock(&c->lock);
}

void store_expect_group(struct store *c, enum owned_kind kind, const char *key, const char *owner,
			int members, double now)
{
	struct stored_job *job;

	pthread_mutex_lock(&c->lock);
	job = store_job_of(c, key);
	expect(job, kind, owner, now);
	job->group_members = members;
	pthread_mutex_unlock(&c->lock);
}

void store_owned_expire_expectations(struct stored_job *job, double now)
{
	for (int k = 0; k < OWNED_KINDS; k++)
		if (job->owned[k].expected_since > 0 &&
		    now - job->owned[k].expected_since > EXPECTATION_TIMEOUT_S)
			drop(job, (enum owned_kind)k);
}

/* Volcano says why in a condition; the scheduler plug-ins have a phase only. */
static void read_group(struct stored_job *job, const cJSON *object)
{
	const cJSON *members = at(at(object, "spec"), "minMember"), *status = at(object, "status");
	const cJSON *c;

	job->group_members = cJSON_IsNumber(members) ? members->valueint : -1;
	snprintf(job->group_phase, sizeof(job->group_phase), "%.31s",
		 text_or_empty(status, "phase"));
	free(job->group_said);
	job->group_said = NULL;
	cJSON_ArrayForEach(c, at(status, "conditions"))
	{
		if (strcmp(text_or_empty(c, "type"), "Unschedulable") == 0 &&
		    strcmp(text_or_empty(c, "status"), "True") == 0 && !job->group_said)
			job->group_said = mu_xasprintf("%.180s", text_or_empty(c, "message"));
	}
}

static void begin(struct store *c, const char *ns, enum owned_kind kind)
{
	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->jobs, s) {
		if (store_key_in(s->key, ns))
			((struct stored_job *)s->value)->owned[kind].seen = false;
	}
	pthread_mutex_unlock(&c->lock);
}

static void seen(struct store *c, const cJSON *object, enum owned_kind kind)
{
	char *key = store_key_of(object, object_name(object));
	struct stored_job *job;
	bool news;

	pthread_mutex_lock(&c->lock);
	job = store_job_of(c, key);
	news = store(job, kind, object_owner(object), 0) || is_group(kind);
	if (is_group(kind))
		read_group(job, object);
	pthread_mutex_unlock(&c->lock);
	if (news)
		store_notify(c, c->changed, key);
	else
		free(key);
}

static void gone(struct store *c, const cJSON *object, enum owned_kind kind)
{
	char *key = store_key_of(object, object_name(object));
	struct stored_job *job;

	pthread_mutex_lock(&c->lock);
	job = mu_map_get(&c->jobs, key);
	if (job) {
		drop(job, kind);
		store_drop_if_empty(c, job);
	}
	pthread_mutex_unlock(&c->lock);
	store_notify(c, c->changed, key);
}

static bool end_one(struct stored_job *job, int kind)
{
	if (job->owned[kind].seen || !job->owned[kind].owner)
		return false;
	drop(job, (enum owned_kind)kind);
	return true;
}

#define HANDLERS(one, many, kind)                                                                  \
	void store_##many##_begin(void *store, const char *ns)                                     \
	{                                                                                          \
		begin(store, ns, kind);                                                            \
	}                                                                                          \
	void store_##one##_seen(void *store, const cJSON *object)                                  \
	{                                                                                          \
		seen(store, object, kind);                                                         \
	}                                                                                          \
	void store_##one##_gone(void *store, const cJSON *object)                                  \
	{                                                                                          \
		gone(store, object, kind);                                                         \
	}                                                                                          \
	void store_##many##_end(void *store, const char *ns)                                       \
	{                                                                                          \
		store_sweep(store, ns, end_one, kind);                                             \
	}

HANDLERS(service, services, OWNED_SERVICE)
HANDLERS(policy, policies, OWNED_POLICY)
HANDLERS(volcano, volcanos, OWNED_VOLCANO)
HANDLERS(plugin, plugins, OWNED_PLUGINS)
