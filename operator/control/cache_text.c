/* SPDX-License-Identifier: Apache-2.0 */
/* A job as two texts, as they came off the wire: what its owner wrote, which seldom changes, and
 * its status. */
#include "operator/control/cache.h"

#include "lib/io/json.h"
#include "operator/control/at.h"

uint64_t cache_version_of(const cJSON *object)
{
	const char *version = cJSON_GetStringValue(at(at(object, "metadata"), "resourceVersion"));

	return version ? strtoull(version, NULL, 10) : 0;
}

/* What does not belong to the manifest, or only takes room. */
static const struct kube_fields no_annotations[] = {
    {.name = "kubectl.kubernetes.io/last-applied-configuration"}, {0}};
static const struct kube_fields no_metadata[] = {{.name = "managedFields"},
						 {.name = "resourceVersion"},
						 {.name = "annotations", .below = no_annotations},
						 {0}};
static const struct kube_fields omitted[] = {
    {.name = "status"}, {.name = "metadata", .below = no_metadata}, {0}};

static void put_value(struct mu_buf *out, const cJSON *item)
{
	MU_AUTO_FREE char *text = NULL;

	if (cJSON_IsRaw(item)) {
		mu_buf_puts(out, item->valuestring);
	} else if (cJSON_IsString(item)) {
		mu_json_quote(out, mu_span_of(item->valuestring));
	} else {
		text = cJSON_PrintUnformatted(item);
		mu_buf_puts(out, text ? text : "null");
	}
}

/* An object as text, without what is omitted. */
static void put_object(struct mu_buf *out, const cJSON *object, const struct kube_fields *without)
{
	char before = '{';
	const cJSON *item;

	cJSON_ArrayForEach(item, object)
	{
		const struct kube_fields *f = without;

		while (f->name && strcmp(f->name, item->string) != 0)
			f++;
		if (f->name && !f->below)
			continue;
		mu_buf_putc(out, before);
		before = ',';
		mu_json_quote(out, mu_span_of(item->string));
		mu_buf_putc(out, ':');
		if (f->name && cJSON_IsObject(item))
			put_object(out, item, f->below);
		else
			put_value(out, item);
	}
	mu_buf_puts(out, before == '{' ? "{}" : "}");
}

static void take_manifest(struct cache *c, struct cached_job *job, const cJSON *object)
{
	MU_AUTO_BUF text = {0};

	put_object(&text, object, omitted);
	if (job->text && strcmp(job->text, text.data) == 0)
		return;
	free(job->text);
	job->text = mu_xstrdup(text.data);
	job->manifest = ++c->manifests;
}

static void take_status(struct cached_job *job, const cJSON *status)
{
	MU_AUTO_BUF text = {0};

	free(job->status);
	job->status = NULL;
	if (!status)
		return;
	put_value(&text, status);
	job->status = mu_xstrdup(text.data);
}

void cache_take_texts(struct cache *c, struct cached_job *job, const cJSON *object)
{
	take_manifest(c, job, object);
	take_status(job, at(object, "status"));
}
