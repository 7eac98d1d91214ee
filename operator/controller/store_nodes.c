/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes: of each only what the kernel resolver looks at.  A node that changes in one of these wakes
 * every job; the heartbeats of its status do not. */
#include "operator/controller/store.h"

#include <stdatomic.h>

#include "operator/api/object.h"

struct stored_node {
	struct node_info info;
	struct mu_arena arena;
	bool seen;
};

static const char *const wanted[] = {"nvidia.com/", "feature.node.kubernetes.io/",
				     "kubernetes.io/arch"};

static bool is_wanted(const char *key)
{
	for (unsigned i = 0; i < MU_COUNT(wanted); i++)
		if (strncmp(key, wanted[i], strlen(wanted[i])) == 0)
			return true;
	return false;
}

static bool is_ready(const cJSON *object)
{
	const cJSON *condition;

	cJSON_ArrayForEach(condition, at(at(object, "status"), "conditions"))
	{
		const char *type = cJSON_GetStringValue(at(condition, "type"));
		const char *value = cJSON_GetStringValue(at(condition, "status"));
		if (type && value && strcmp(type, "Ready") == 0)
			return strcmp(value, "True") == 0;
	}
	return true; /* no kubelet has said anything yet */
}

static struct stored_node *node_new(const cJSON *object)
{
	struct stored_node *n = MU_NEW(struct stored_node);
	const cJSON *labels = at(at(object, "metadata"), "labels"), *label;
	const char *name = cJSON_GetStringValue(at(at(object, "metadata"), "name"));
	const char *gpus =
	    cJSON_GetStringValue(at(at(at(object, "status"), "allocatable"), "nvidia.com/gpu"));
	struct label *kept;

	mu_arena_init(&n->arena);
	n->info.name = mu_arena_strdup(&n->arena, name ? name : "");
	kept = MU_ARENA_ARRAY(&n->arena, struct label, (size_t)cJSON_GetArraySize(labels) + 1);
	cJSON_ArrayForEach(label, labels)
	{
		if (!cJSON_IsString(label) || !label->string || !is_wanted(label->string))
			continue;
		kept[n->info.n_labels].key = mu_arena_strdup(&n->arena, label->string);
		kept[n->info.n_labels++].value = mu_arena_strdup(&n->arena, label->valuestring);
	}
	n->info.labels = kept;
	n->info.gpus = gpus ? (int)strtol(gpus, NULL, 10) : 0;
	n->info.lost = !is_ready(object);
	n->info.schedulable =
	    !n->info.lost && !cJSON_IsTrue(at(at(object, "spec"), "unschedulable"));
	n->seen = true;
	return n;
}

static void node_free(struct stored_node *n)
{
	if (n)
		mu_arena_fini(&n->arena);
	free(n);
}

static bool same(const struct node_info *a, const struct node_info *b)
{
	if (a->schedulable != b->schedulable || a->lost != b->lost || a->gpus != b->gpus ||
	    a->n_labels != b->n_labels)
		return false;
	for (unsigned i = 0; i < a->n_labels; i++)
		if (strcmp(a->labels[i].key, b->labels[i].key) != 0 ||
		    strcmp(a->labels[i].value, b->labels[i].value) != 0)
			return false;
	return true;
}

void store_each_key(struct store *c, void (*fn)(void *arg, const char *key), void *arg)
{
	char **keys;
	unsigned n = 0;

	pthread_mutex_lock(&c->lock);
	keys = MU_NEW_ARRAY(char *, c->jobs.count + 1);
	mu_map_each (&c->jobs, s)
		keys[n++] = mu_xstrdup(s->key);
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < n; i++) {
		fn(arg, keys[i]);
		free(keys[i]);
	}
	free(keys);
}

static void wake_all(struct store *c)
{
	if (c->changed)
		store_each_key(c, c->changed, c->arg);
}

/* The lock is held. */
static void forget_table(struct store *c)
{
	node_table_unref(c->table);
	c->table = NULL;
}

void store_nodes_begin(void *store, const char *ns)
{
	struct store *c = store;
	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->nodes, s)
		((struct stored_node *)s->value)->seen = false;
	pthread_mutex_unlock(&c->lock);
}

void store_node_seen(void *store, const cJSON *object)
{
	struct store *c = store;
	struct stored_node *n = node_new(object), *old;
	bool differs;

	pthread_mutex_lock(&c->lock);
	old = mu_map_put(&c->nodes, n->info.name, n);
	differs = !old || !same(&old->info, &n->info);
	if (differs)
		forget_table(c);
	pthread_mutex_unlock(&c->lock);
	node_free(old);
	if (differs)
		wake_all(c);
}

void store_node_gone(void *store, const cJSON *object)
{
	struct store *c = store;
	const char *name = cJSON_GetStringValue(at(at(object, "metadata"), "name"));
	struct stored_node *old;

	pthread_mutex_lock(&c->lock);
	old = name ? mu_map_del(&c->nodes, name) : NULL;
	forget_table(c);
	pthread_mutex_unlock(&c->lock);
	node_free(old);
	wake_all(c);
}

void store_nodes_end(void *store, const char *ns)
{
	struct store *c = store;
	struct mu_map kept;

	mu_map_init(&kept);
	pthread_mutex_lock(&c->lock);
	mu_map_each (&c->nodes, s) {
		struct stored_node *n = s->value;
		if (n->seen)
			mu_map_put(&kept, n->info.name, n);
		else
			node_free(n);
	}
	mu_map_fini(&c->nodes);
	c->nodes = kept;
	forget_table(c);
	pthread_mutex_unlock(&c->lock);
}

void node_table_unref(struct node_table *t)
{
	if (!t || atomic_fetch_sub(&t->refs, 1) > 1)
		return;
	mu_arena_fini(&t->arena);
	free(t);
}

struct node_table *store_nodes(struct store *c)
{
	struct node_table *t = c->table;
	struct mu_arena *a;

	if (!t) {
		t = c->table = MU_NEW(struct node_table);
		atomic_store(&t->refs, 1); /* the store's own */
		a = &t->arena;
		mu_arena_init(a);
		t->nodes = MU_ARENA_ARRAY(a, struct node_info, c->nodes.count + 1);
		mu_map_each (&c->nodes, s) {
			const struct node_info *from = &((struct stored_node *)s->value)->info;
			struct label *labels = MU_ARENA_ARRAY(a, struct label, from->n_labels + 1);

			for (unsigned i = 0; i < from->n_labels; i++) {
				labels[i].key = mu_arena_strdup(a, from->labels[i].key);
				labels[i].value = mu_arena_strdup(a, from->labels[i].value);
			}
			t->nodes[t->n] = *from;
			t->nodes[t->n].name = mu_arena_strdup(a, from->name);
			t->nodes[t->n++].labels = labels;
		}
	}
	atomic_fetch_add(&t->refs, 1);
	return t;
}
