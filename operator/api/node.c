/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/api/node.h"

#include "operator/api/object_json.h"

static bool is_stored_label(const char *label)
{
	static const char *const prefixes[] = {"nvidia.com/", "feature.node.kubernetes.io/",
					       "kubernetes.io/arch"};

	for (unsigned i = 0; i < MU_COUNT(prefixes); i++)
		if (strncmp(label, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static void fini(struct object *o)
{
	mu_arena_fini(&((struct node *)o)->arena);
}

struct object *node_decode(enum object_kind kind, const cJSON *json, const struct object *before)
{
	const cJSON *labels = at(at(json, "metadata"), "labels"), *label;
	const cJSON *status = at(json, "status"), *conditions = at(status, "conditions");
	struct node *n = object_new(kind, sizeof(*n), json, fini);
	struct label *stored;

	mu_arena_init(&n->arena);
	stored = MU_ARENA_ARRAY(&n->arena, struct label, (size_t)cJSON_GetArraySize(labels) + 1);
	n->info.name = n->meta.name;
	n->info.labels = stored;
	cJSON_ArrayForEach(label, labels)
	{
		if (!cJSON_IsString(label) || !label->string || !is_stored_label(label->string))
			continue;
		stored[n->info.n_labels].key = mu_arena_strdup(&n->arena, label->string);
		stored[n->info.n_labels++].value = mu_arena_strdup(&n->arena, label->valuestring);
	}
	n->info.gpus = atoi(text_or_empty(at(status, "allocatable"), "nvidia.com/gpu"));
	n->info.lost = condition_is(conditions, "Ready", "Unknown");
	n->info.schedulable = !n->info.lost && !condition_is(conditions, "Ready", "False") &&
			      !cJSON_IsTrue(at(at(json, "spec"), "unschedulable"));
	return &n->meta;
}

bool node_same(const struct object *x, const struct object *y)
{
	const struct node_info *a = &((const struct node *)x)->info;
	const struct node_info *b = &((const struct node *)y)->info;

	if (a->schedulable != b->schedulable || a->lost != b->lost || a->gpus != b->gpus ||
	    a->n_labels != b->n_labels)
		return false;
	for (unsigned i = 0; i < a->n_labels; i++)
		if (strcmp(a->labels[i].key, b->labels[i].key) != 0 ||
		    strcmp(a->labels[i].value, b->labels[i].value) != 0)
			return false;
	return true;
}
