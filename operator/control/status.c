/* SPDX-License-Identifier: Apache-2.0 */
/* The one status write of a reconcile: a JSON merge patch of what differs, with the uid of the job
 * that was looked at, so that a job of the same name made since is never written to, and with its
 * version, so that a look at an old copy is never taken for news. */
#include "operator/control/status.h"

#include <math.h>
#include <stdio.h>

#include "lib/base/rfc3339.h"
#include "operator/control/at.h"

cJSON *merge_patch(const cJSON *from, const cJSON *to)
{
	cJSON *patch = cJSON_CreateObject();
	const cJSON *item;

	cJSON_ArrayForEach(item, to)
	{
		const cJSON *old = at(from, item->string);
		cJSON *change;

		if (cJSON_IsObject(item) && cJSON_IsObject(old))
			change = merge_patch(old, item);
		else
			change =
			    cJSON_Compare(item, old, true) ? NULL : cJSON_Duplicate(item, true);
		if (change)
			cJSON_AddItemToObject(patch, item->string, change);
	}
	cJSON_ArrayForEach(item, from)
	{
		if (!at(to, item->string))
			cJSON_AddNullToObject(patch, item->string);
	}
	if (patch->child)
		return patch;
	cJSON_Delete(patch);
	return NULL;
}

int status_store(struct reconcile *r, cJSON *wanted, uint64_t hash, struct mu_err *err)
{
	cJSON *change = merge_patch(reconcile_stored(r), wanted), *patch, *about, *answer = NULL;
	MU_AUTO_FREE char *path = NULL;
	MU_AUTO_FREE char *body = NULL;
	struct control *c = r->control;
	int rc;

	cJSON_Delete(wanted);
	if (!change) {
		cache_settle(&c->cache, r->seen->key, r->seen->version, hash);
		return 0;
	}
	patch = cJSON_CreateObject();
	about = cJSON_AddObjectToObject(patch, "metadata");
	cJSON_AddStringToObject(about, "uid", r->seen->uid);
	cJSON_AddStringToObject(about, "resourceVersion", r->seen->resource_version);
	cJSON_AddItemToObject(patch, "status", change);
	body = cJSON_PrintUnformatted(patch);
	cJSON_Delete(patch);
	path = mu_xasprintf("/apis/" JOB_API_VERSION
			    "/namespaces/%s/distributedtrainingjobs/%s/status",
			    r->seen->ns, r->seen->name);
	rc = c->io.call(c->io.user,
			&(struct kube_request){.method = "PATCH",
					       .path = path,
					       .content_type = "application/merge-patch+json",
					       .body = mu_span_of(body),
					       .fields = cache_job_fields},
			&answer, err);
	if (rc == -MU_ABORTED)
		cache_doubt_job(&c->cache, r->seen->key);
	if (rc < 0)
		return mu_wrap(err, "store status");
	cache_assume_job(&c->cache, answer);
	cache_settle(&c->cache, r->seen->key, cache_version_of(answer), hash);
	cache_stored(&c->cache, r->seen->key, r->now);
	cJSON_Delete(answer);
	return 0;
}

/* "3/3", the kernels in use and what is wrong, for the columns of kubectl get. */
static void add_summary(cJSON *status, const struct job_status *s)
{
	MU_AUTO_BUF kernels = {0};
	cJSON *summary = cJSON_AddObjectToObject(status, "summary");
	const struct condition *trouble = job_status_trouble(s);
	int ready = 0, desired = 0;
	char text[32];

	for (unsigned i = 0; i < s->n_tasks; i++) {
		const struct task_status *t = &s->tasks[i];
		bool known = false;

		if (strcmp(t->name, JOB_BOARD) == 0)
			continue;
		ready += t->ready;
		desired += t->desired;
		for (unsigned j = 0; j < i; j++)
			known = known || strcmp(s->tasks[j].kernels, t->kernels) == 0;
		if (t->kernels[0] && !known)
			mu_buf_printf(&kernels, "%s%s", kernels.len ? "," : "", t->kernels);
	}
	snprintf(text, sizeof(text), "%d/%d", ready, desired);
	cJSON_AddStringToObject(summary, "ready", text);
	if (kernels.len)
		cJSON_AddStringToObject(summary, "kernels", kernels.data);
	if (trouble)
		cJSON_AddStringToObject(summary, "message", trouble->message);
}

/* Progress is what the chief reported last, in an answer or as it ended; nothing is inferred. */
static void add_progress(struct reconcile *r, cJSON *status)
{
	const cJSON *stored = at(reconcile_stored(r), "progress");
	cJSON *reported = r->seen->progress ? cJSON_Parse(r->seen->progress) : NULL;

	if (!reported && stored)
		reported = cJSON_Duplicate(stored, true);
	if (reported)
		cJSON_AddItemToObject(status, "progress", reported);
}

uint64_t status_hash(const struct reconcile *r, struct mu_span text)
{
	const char *progress = r->seen->progress ? r->seen->progress : "";
	uint64_t hash = mu_hash(text.data, text.len, mu_hash(progress, strlen(progress), 1));

	return hash ? hash : 1;
}

cJSON *status_wanted(struct reconcile *r, const struct job_status *s, struct mu_span text)
{
	cJSON *status = kube_json(text, NULL);

	if (!status)
		status = cJSON_CreateObject();
	add_progress(r, status);
	add_summary(status, s);
	return status;
}

/* Puts it in the place of the one of its type, whose time it keeps if it says the same. */
static void put_condition(cJSON *status, const char *type, bool is, const char *reason,
			  const char *message, const cJSON *generation, double now)
{
	const cJSON *old = at(status, "conditions"), *item;
	cJSON *conditions = cJSON_CreateArray(), *mine = cJSON_CreateObject();
	char since[32];

	mu_rfc3339_write_clock(since, now);
	cJSON_ArrayForEach(item, old)
	{
		const char *named = cJSON_GetStringValue(at(item, "type"));
		const char *was = cJSON_GetStringValue(at(item, "status"));
		const char *then = cJSON_GetStringValue(at(item, "lastTransitionTime"));

		if (!named || strcmp(named, type) != 0)
			cJSON_AddItemToArray(conditions, cJSON_Duplicate(item, true));
		else if (was && then && strcmp(was, is ? "True" : "False") == 0)
			snprintf(since, sizeof(since), "%.31s", then);
	}
	cJSON_AddStringToObject(mine, "type", type);
	cJSON_AddStringToObject(mine, "status", is ? "True" : "False");
	cJSON_AddStringToObject(mine, "reason", reason);
	cJSON_AddStringToObject(mine, "message", message);
	cJSON_AddStringToObject(mine, "lastTransitionTime", since);
	if (generation)
		cJSON_AddItemToObject(mine, "observedGeneration",
				      cJSON_Duplicate(generation, true));
	cJSON_AddItemToArray(conditions, mine);
	cJSON_DeleteItemFromObjectCaseSensitive(status, "conditions");
	cJSON_AddItemToObject(status, "conditions", conditions);
}

/* `object`, whatever it holds, has `value` under `key`. */
static void put(cJSON *object, const char *key, cJSON *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	cJSON_AddItemToObject(object, key, value);
}

cJSON *status_invalid(const cJSON *old, const cJSON *generation, const char *why, double now)
{
	cJSON *status = cJSON_IsObject(old) ? cJSON_Duplicate(old, true) : cJSON_CreateObject();
	bool begun = cJSON_IsString(at(old, "startTime"));
	MU_AUTO_FREE char *message = mu_xasprintf(
	    "%s%s", why,
	    begun ? "; what runs goes on, nothing is started or ended until that is corrected"
		  : "");

	if (cJSON_IsString(at(old, "completionTime")))
		return status; /* it is what it was when it ended */
	put_condition(status, begun ? condition_names[COND_READY] : condition_names[COND_FAILED],
		      !begun, PLAN_INVALID_SPEC, message, generation, now);
	if (!begun)
		put(status, "phase", cJSON_CreateString(job_phase_names[JOB_FAILED]));
	if (generation)
		put(status, "observedGeneration", cJSON_Duplicate(generation, true));
	if (!cJSON_IsObject(at(status, "summary")))
		put(status, "summary", cJSON_CreateObject());
	put(cJSON_GetObjectItemCaseSensitive(status, "summary"), "message",
	    cJSON_CreateString(message));
	return status;
}
