/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/api/object.h"

#include <stdatomic.h>

#include "operator/api/object_json.h"

void *object_new(enum object_kind kind, size_t size, const cJSON *json,
		 void (*fini)(struct object *o))
{
	const cJSON *metadata = at(json, "metadata");
	struct object *o = mu_xcalloc(1, size);

	atomic_store(&o->refs, 1);
	o->kind = kind;
	o->fini = fini;
	o->namespace = mu_xstrdup(text_or_empty(metadata, "namespace"));
	o->name = mu_xstrdup(text_or_empty(metadata, "name"));
	o->uid = mu_xstrdup(text_or_empty(metadata, "uid"));
	o->owner = mu_xstrdup(kind == KIND_JOB ? o->uid : object_owner(json));
	o->version = object_version(json);
	return o;
}

void *object_ref(void *object)
{
	atomic_fetch_add(&((struct object *)object)->refs, 1);
	return object;
}

void object_unref(void *object)
{
	struct object *o = object;

	if (!o || atomic_fetch_sub(&o->refs, 1) > 1)
		return;
	o->fini(o);
	free(o->namespace);
	free(o->name);
	free(o->uid);
	free(o->owner);
	free(o);
}
