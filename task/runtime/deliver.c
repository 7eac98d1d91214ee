/* SPDX-License-Identifier: Apache-2.0 */
/* Delivers the outputs of a node along its edges, and pushes the nodes that become ready. */
#include <string.h>

#include "task/runtime/exec_graph.h"

void work_reserve(struct work *w, unsigned n)
{
	struct item *queue = w->items + w->first;

	w->first = 0;
	if (w->n + n <= w->cap / 2) {
		memmove(w->items, queue, w->n * sizeof *queue);
		return;
	}
	w->cap = 2 * (w->n + n);
	struct item *grown = mu_xmalloc((size_t)w->cap * sizeof *grown);
	memcpy(grown, queue, w->n * sizeof *queue);
	if (w->items != w->embedded_items)
		free(w->items);
	w->items = grown;
}

static void increment_outstanding(struct iteration *it)
{
	pthread_mutex_lock(&it->frame->lock);
	it->outstanding++;
	pthread_mutex_unlock(&it->frame->lock);
}

void work_push(struct work *w, uint32_t node, struct iteration *it, bool dead)
{
	if (w->first + w->n == w->cap)
		work_reserve(w, 1);
	w->items[w->first + w->n++] = (struct item){node, dead, it};
	if (__builtin_expect(it->frame != NULL, 0))
		increment_outstanding(it);
}

/* Counts an input of a Merge.  Returns true if the node is ready: on its first live input, or dead
 * if no live input can arrive.  A Merge waits for its control inputs, but a dead control input does
 * not make it dead. */
static bool count_merge_input(_Atomic uint64_t *word, bool control, bool dead, bool *merge_dead)
{
	uint64_t old;

	if (control) {
		old = atomic_fetch_sub(word, 1);
		*merge_dead = !(old & MERGE_LIVE);
		return (uint32_t)old == 1 && ((old & MERGE_LIVE) || MERGE_DATA_OF(old) == 0);
	}
	*merge_dead = dead;
	if (dead) {
		old = atomic_fetch_sub(word, MERGE_DATA);
		return MERGE_DATA_OF(old) == 1 && !(old & MERGE_LIVE) && (uint32_t)old == 0;
	}
	old = atomic_fetch_or(word, MERGE_LIVE);
	return !(old & MERGE_LIVE) && (uint32_t)old == 0;
}

/* is_last_use: moves v instead of sharing its buffer. */
static inline void put_value(struct value *slot, struct value *v, bool is_last_use)
{
	slot->ref = v->ref;
	if (is_last_use) {
		mu_tensor_move(&slot->tensor, &v->tensor);
		v->tensor.buf = NULL;
		v->tensor.dtype = MU_DT_INVALID;
		v->ref = NULL;
		return;
	}
	mu_tensor_share(&slot->tensor, &v->tensor);
	if (v->ref)
		resource_ref(&v->ref->base);
}

static void deliver_merge(struct work *w, struct iteration *it, const struct exec_edge *e,
			  struct value *v, bool dead, bool is_last_use)
{
	const struct exec_node *d = &w->step->executor->nodes[e->dst];
	_Atomic uint64_t *word = &it->pending[d->pending];
	bool merge_dead, control = e->slot == NO_SLOT;

	if (!control && !dead) {
		if (atomic_fetch_or(word, MERGE_CLAIMED) & MERGE_CLAIMED)
			return; /* only the first live input counts */
		put_value(&it->slots[e->slot], v, is_last_use);
	}
	/* A dead value that enters a loop makes its Merge dead, because the loop does not run. */
	if (dead && !control && w->step->executor->nodes[e->dst].frame != ROOT_FRAME &&
	    it->number == 0) {
		const struct mu_node *from = d->node->inputs[e->slot - d->in_slot].node;
		if (w->step->executor->nodes[from->id].kind == NODE_ENTER) {
			work_push(w, e->dst, it, true);
			return;
		}
	}
	if (count_merge_input(word, control, dead, &merge_dead))
		work_push(w, e->dst, it, merge_dead);
}

static inline void deliver(struct work *w, struct iteration *it, const struct exec_edge *e,
			   struct value *v, bool dead, bool is_last_use)
{
	const struct exec_node *d = &w->step->executor->nodes[e->dst];

	if (d->kind == NODE_MERGE) {
		deliver_merge(w, it, e, v, dead, is_last_use);
		return;
	}
	if (e->slot != NO_SLOT && !dead)
		put_value(&it->slots[e->slot], v, is_last_use);
	if (d->single_input) {
		work_push(w, e->dst, it, dead);
		return;
	}
	uint64_t change = dead ? PENDING_DEAD - 1 : (uint64_t)-1;
	uint64_t now =
	    atomic_fetch_add_explicit(&it->pending[d->pending], change, memory_order_acq_rel) +
	    change;
	if ((uint32_t)now == 0)
		work_push(w, e->dst, it, now >= PENDING_DEAD);
}

void work_deliver_all(struct work *w, struct iteration *it, const struct exec_node *n,
		      struct value *out, bool dead)
{
	const struct exec_edge *e = &w->step->executor->edges[n->edges], *end = e + n->n_edges;

	for (; e < end; e++) {
		if (e->port == MU_CONTROL) {
			deliver(w, it, e, NULL, dead, false);
			continue;
		}
		bool is_last_use = e + 1 == end || e[1].port != e->port;
		struct value *v = dead ? NULL : &out[e->port];
		deliver(w, it, e, v, dead || v->dead, is_last_use);
	}
}
