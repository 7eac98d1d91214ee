/* SPDX-License-Identifier: Apache-2.0 */
/* Index of nodes by name: a hash table of {hash, id + 1} with open addressing.  It is filled by the
 * first lookup, so graphs that are only copied and partitioned do not need it. */
#include "lib/graph/graph_index.h"

#include "lib/base/mem.h"

struct slot {
	uint32_t hash, at; /* at 0: free */
};

static uint32_t hash_of(const struct mu_graph_index *x, const char *name, size_t len)
{
	return (uint32_t)mu_hash(name, len, x->seed);
}

static void index_insert(struct mu_graph_index *x, uint32_t hash, uint32_t at)
{
	unsigned i = hash & (x->cap - 1);

	while (x->slots[i].at)
		i = (i + 1) & (x->cap - 1);
	x->slots[i] = (struct slot){hash, at};
}

static void index_reserve(struct mu_graph_index *x, unsigned n)
{
	struct slot *old = x->slots;
	unsigned cap = x->cap, want = cap ? cap : 64;
	struct mu_map seeded;

	while (want / 2 < n)
		want *= 2;
	if (want == cap)
		return;
	mu_map_init(&seeded);
	x->seed = seeded.seed;
	x->slots = MU_NEW_ARRAY(struct slot, want);
	x->cap = want;
	for (unsigned i = 0; i < cap; i++)
		if (old[i].at)
			index_insert(x, old[i].hash, old[i].at);
	free(old);
}

struct mu_node *mu_graph_index_find(struct mu_graph *g, const char *name, size_t len)
{
	struct mu_graph_index *x = &g->index;

	index_reserve(x, g->n_nodes + 1);
	for (; x->n_indexed < g->n_nodes; x->n_indexed++) {
		const char *node_name = g->nodes[x->n_indexed]->name;
		index_insert(x, hash_of(x, node_name, strlen(node_name)), x->n_indexed + 1);
	}
	uint32_t hash = hash_of(x, name, len);
	for (unsigned i = hash & (x->cap - 1); x->slots[i].at; i = (i + 1) & (x->cap - 1)) {
		struct mu_node *n = g->nodes[x->slots[i].at - 1];
		if (x->slots[i].hash == hash && strlen(n->name) == len &&
		    !memcmp(n->name, name, len))
			return n;
	}
	return NULL;
}

void mu_graph_index_reset(struct mu_graph *g)
{
	free(g->index.slots);
	g->index = (struct mu_graph_index){0};
}
