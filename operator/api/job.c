/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/api/job.h"

#include <stdatomic.h>

#include "lib/io/json.h"
#include "operator/api/object.h"

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
	if (mu_json_doc(&doc, manifest, source, &err) < 0 ||
	    job_spec_from_doc(&j->spec, doc, &err) < 0) {
		j->spec = NULL;
		j->spec_error = mu_xstrdup(err.msg);
	}
	cJSON_Delete(manifest);
}

struct job *job_decode(const cJSON *object)
{
	const cJSON *meta = at(object, "metadata"), *generation = at(meta, "generation");
	struct job *j = MU_NEW(struct job);
	MU_AUTO_FREE char *source = NULL;

	atomic_store(&j->refs, 1);
	j->namespace = mu_xstrdup(text_or_empty(meta, "namespace"));
	j->name = mu_xstrdup(text_or_empty(meta, "name"));
	j->uid = mu_xstrdup(text_or_empty(meta, "uid"));
	j->resource_version = mu_xstrdup(text_or_empty(meta, "resourceVersion"));
	j->version = object_version(object);
	j->generation = cJSON_IsNumber(generation) ? (int64_t)generation->valuedouble : 0;
	j->deleting = at(meta, "deletionTimestamp") != NULL;
	source = mu_xasprintf("%s/%s", j->namespace, j->name);
	decode_spec(j, object, source);
	job_status_decode(&j->status, at(object, "status"));
	return j;
}

struct job *job_ref(struct job *j)
{
	atomic_fetch_add(&j->refs, 1);
	return j;
}

void job_unref(struct job *j)
{
	if (!j || atomic_fetch_sub(&j->refs, 1) > 1)
		return;
	free(j->namespace);
	free(j->name);
	free(j->uid);
	free(j->resource_version);
	job_spec_free(j->spec);
	free(j->spec_error);
	job_status_fini(&j->status);
	free(j);
}
