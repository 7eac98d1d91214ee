/* SPDX-License-Identifier: Apache-2.0 */
/* The one status write of a reconcile: a JSON merge patch of what differs, with the uid of the job
 * that was looked at, so that a job of the same name made since is never written to, and with its
 * version, so that a look at an old copy is never taken for news. */
#include "operator/controller/status.h"

#include "operator/api/object.h"

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

/* The patch of the status; NULL when nothing differs. */
static cJSON *status_change(const struct job_status *from, const struct job_status *to)
{
	MU_AUTO_BUF before = {0};
	MU_AUTO_BUF after = {0};
	cJSON *old, *new, *change;

	job_status_write(from, &before);
	job_status_write(to, &after);
	if (mu_span_eq(mu_buf_span(&before), mu_buf_span(&after)))
		return NULL;
	old = kube_json(mu_buf_span(&before), NULL);
	new = kube_json(mu_buf_span(&after), NULL);
	change = merge_patch(old, new);
	cJSON_Delete(old);
	cJSON_Delete(new);
	return change;
}

int status_update(struct reconcile *r, const struct job_status *wanted, struct mu_err *err)
{
	const struct job *job = r->seen->job;
	cJSON *change = status_change(&job->status, wanted), *patch, *about, *answer = NULL;
	MU_AUTO_FREE char *path = NULL;
	MU_AUTO_FREE char *body = NULL;
	struct controller *c = r->controller;
	int rc;

	if (!change)
		return 0;
	patch = cJSON_CreateObject();
	about = cJSON_AddObjectToObject(patch, "metadata");
	cJSON_AddStringToObject(about, "uid", job->uid);
	cJSON_AddStringToObject(about, "resourceVersion", job->resource_version);
	cJSON_AddItemToObject(patch, "status", change);
	body = cJSON_PrintUnformatted(patch);
	cJSON_Delete(patch);
	path = mu_xasprintf("/apis/" JOB_API_VERSION
			    "/namespaces/%s/distributedtrainingjobs/%s/status",
			    job->namespace, job->name);
	rc = c->io.call(c->io.user,
			&(struct kube_request){.method = "PATCH",
					       .path = path,
					       .content_type = "application/merge-patch+json",
					       .body = mu_span_of(body),
					       .fields = job_fields},
			&answer, err);
	if (rc == -MU_ABORTED)
		store_mark_stale(&c->store, r->seen->key);
	if (rc < 0)
		return mu_wrap(err, "update status");
	store_assume_job(&c->store, answer);
	store_status_written(&c->store, r->seen->key, r->now);
	cJSON_Delete(answer);
	return 0;
}
