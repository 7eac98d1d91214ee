/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/api/job.h"

#include "lib/io/json.h"
#include "operator/api/object_json.h"

static void decode_spec(struct job *j, const cJSON *object, const char *source)
{
	cJSON *manifest = cJSON_CreateObject(), *metadata = cJSON_CreateObject();
	struct mu_doc *doc = NULL;
	struct mu_err err = {0};
	const cJSON *item;

	cJSON_ArrayForEach(item, at(object, "metadata"))
	{
		if (!cJSON_IsObject(item) && !cJSON_IsArray(item))
			cJSON_AddItemReferenceToObject(metadata, item->string, (cJSON *)item);
	}
	cJSON_ArrayForEach(item, object)
	{
		if (strcmp(item->string, "status") != 0 && strcmp(item->string, "metadata") != 0)
			cJSON_AddItemReferenceToObject(manifest, item->string, (cJSON *)item);
	}
	cJSON_AddItemToObject(manifest, "metadata", metadata);
	if (mu_json_doc(&doc, manifest, source, JOB_MAX_VALUES, &err) < 0 ||
	    job_spec_from_doc(&j->spec, doc, &err) < 0) {
		j->spec = NULL;
		j->spec_error = mu_xstrdup(err.msg);
	}
	cJSON_Delete(manifest);
}

static void fini(struct object *o)
{
	struct job *j = (struct job *)o;

	free(j->resource_version);
	job_spec_free(j->spec);
	free(j->spec_error);
	job_status_fini(&j->status);
}

struct object *job_decode(enum object_kind kind, const cJSON *json, const struct object *before)
{
	const cJSON *meta = at(json, "metadata"), *generation = at(meta, "generation");
	const char *managed_by = text_at(at(json, "spec"), "managedBy");
	struct job *j = object_new(kind, sizeof(*j), json, fini);
	MU_AUTO_FREE char *source = mu_xasprintf("%s/%s", j->meta.namespace, j->meta.name);

	j->resource_version = mu_xstrdup(text_or_empty(meta, "resourceVersion"));
	j->generation = cJSON_IsNumber(generation) ? (int64_t)generation->valuedouble : 0;
	j->deleting = at(meta, "deletionTimestamp") != NULL;
	j->is_foreign = managed_by && strcmp(managed_by, JOB_CONTROLLER) != 0;
	decode_spec(j, json, source);
	job_status_decode(&j->status, at(json, "status"));
	return &j->meta;
}
