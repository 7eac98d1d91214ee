/* SPDX-License-Identifier: Apache-2.0 */
/* Running nodes: take a ready one off the stack, run its kernel, deliver what it made.
 *
 * A thread stays with its stack until it is empty.  Cheap kernels run where they are.  An expensive
 * one goes to the pool when others wait behind it, or when this thread is a guest (a
 * completion-queue thread that has brought a tensor); a guest also hands over after a while.
 * Nodes that only the dead reach are not run: deadness passes through them.
 */
#include <string.h>

#include "task/runtime/plan.h"
#include "task/runtime/work.h"

/* A guest runs at most this many nodes, and nothing on more than this many bytes. */
enum { GUEST_NODES = 512, GUEST_BYTES = 256 << 10, WORTH_A_THREAD = 32 << 10 };

static _Thread_local struct work *current;

struct handed {
	struct pool_job job;
	struct step *step;
	unsigned n;
	struct item items[];
};

void value_clear(struct value *v)
{
	if (v->tensor.buf)
		mu_tensor_unref(&v->tensor);
	v->tensor.dtype = MU_DT_INVALID;
	if (v->ref) {
		resource_unref(&v->ref->base);
		v->ref = NULL;
	}
	v->dead = false;
}

void work_push(struct work *w, uint32_t node, struct iteration *it, bool dead)
{
	if (w->n == w->cap)
		work_reserve(w, 2 * w->cap);
	w->items[w->n++] = (struct item){node, dead, it};
	if (it->frame)
		frame_started(it);
}

/* Merge runs on its first live input, or dead when there can be none. */
static bool merge_arrives(_Atomic uint64_t *word, bool control, bool dead, bool *merge_dead)
{
	uint64_t old;

	if (control) {
		if (dead)
			atomic_fetch_or(word, MERGE_DEAD_CTL);
		old = atomic_fetch_sub(word, 1);
		*merge_dead = (old & MERGE_DEAD_CTL) || !(old & MERGE_LIVE);
		return (uint32_t)old == 1 && ((old & MERGE_LIVE) || MERGE_DATA_OF(old) == 0);
	}
	if (dead) {
		old = atomic_fetch_sub(word, MERGE_DATA);
		*merge_dead = true;
		return MERGE_DATA_OF(old) == 1 && !(old & MERGE_LIVE) && (uint32_t)old == 0;
	}
	old = atomic_fetch_or(word, MERGE_LIVE);
	*merge_dead = (old & MERGE_DEAD_CTL) != 0;
	return !(old & MERGE_LIVE) && (uint32_t)old == 0;
}

static void put_value(struct value *slot, struct value *v, bool last)
{
	if (last) {
		*slot = *v;
		v->tensor.buf = NULL;
		v->tensor.dtype = MU_DT_INVALID;
		v->ref = NULL;
		return;
	}
	slot->tensor = mu_tensor_ref(&v->tensor);
	slot->dead = false;
	slot->ref = v->ref;
	if (v->ref)
		resource_ref(&v->ref->base);
}

static void deliver_merge(struct work *w, struct iteration *it, const struct plan_edge *e,
			  struct value *v, bool dead, bool last)
{
	const struct plan_node *d = &w->step->executor->nodes[e->dst];
	_Atomic uint64_t *word = &it->pending[d->pending];
	bool merge_dead, control = e->slot == NO_SLOT;

	if (!control && !dead) {
		if (atomic_fetch_or(word, MERGE_CLAIMED) & MERGE_CLAIMED)
			return; /* a second live input is of no use */
		put_value(&it->slots[e->slot], v, last);
	}
	/* A dead value that enters a loop makes its Merge dead: no other will come. */
	if (dead && !control && w->step->executor->nodes[e->dst].frame != ROOT_FRAME &&
	    it->number == 0) {
		const struct mu_node *from = d->node->inputs[e->slot - d->in_slot].node;
		if (w->step->executor->nodes[from->id].kind == NODE_ENTER) {
			work_push(w, e->dst, it, true);
			return;
		}
	}
	if (merge_arrives(word, control, dead, &merge_dead))
		work_push(w, e->dst, it, merge_dead);
}

void work_deliver(struct work *w, struct iteration *it, const struct plan_edge *e, struct value *v,
		  bool dead, bool last)
{
	const struct plan_node *d = &w->step->executor->nodes[e->dst];

	if (d->kind == NODE_MERGE) {
		deliver_merge(w, it, e, v, dead, last);
		return;
	}
	if (e->slot != NO_SLOT && !dead)
		put_value(&it->slots[e->slot], v, last);
	if (d->initial == 1) {
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

void work_deliver_all(struct work *w, struct iteration *it, const struct plan_node *n,
		      struct value *out, bool dead)
{
	const struct plan_edge *e = &w->step->executor->edges[n->edges], *end = e + n->n_edges;

	for (; e < end; e++) {
		if (e->port == MU_CONTROL) {
			work_deliver(w, it, e, NULL, dead, false);
			continue;
		}
		bool last = e + 1 == end || e[1].port != e->port;
		struct value *v = dead ? NULL : &out[e->port];
		work_deliver(w, it, e, v, dead || v->dead, last);
	}
}

/* What a node made goes out; what it was given is let go. */
static void complete(struct work *w, const struct plan_node *n, struct iteration *it,
		     struct value *out, bool dead)
{
	struct value *in = &it->slots[n->in_slot];

	for (uint32_t i = 0; i < n->n_in; i++)
		value_clear(&in[i]);
	if (!atomic_load_explicit(&w->step->failed, memory_order_relaxed)) {
		if (n->kind == NODE_PLAIN || n->kind == NODE_MERGE)
			work_deliver_all(w, it, n, out, dead);
		else
			frame_propagate(w, n, it, out, dead);
	}
	if (out)
		for (uint32_t i = 0; i < n->n_out; i++)
			value_clear(&out[i]);
	if (it->frame)
		frame_ended(w, it);
}

/* Ops that take a variable's reference get it; the others get its value of this moment. */
static int take_refs(const struct executor *e, const struct plan_node *n, struct value *in,
		     struct mu_err *err)
{
	const bool *wants = &e->wants_ref[e->ref_at[n - e->nodes]];

	for (uint32_t i = 0; i < n->n_in; i++) {
		struct variable *v = in[i].ref;
		struct mu_tensor t;
		int rc;
		if (!v || (wants[i] && n->uninit_ok))
			continue;
		if ((rc = variable_read(v, &t, err)))
			return rc;
		if (wants[i]) {
			mu_tensor_unref(&t);
			continue;
		}
		resource_unref(&v->base);
		in[i].ref = NULL;
		in[i].tensor = t;
	}
	return 0;
}

static void fill_call(struct kernel_call *k, struct step *s, const struct plan_node *n,
		      struct iteration *it, struct value *out, bool dead)
{
	*k = (struct kernel_call){.node = n->node,
				  .state = n->state,
				  .n_in = n->n_in,
				  .n_out = n->n_out,
				  .in = &it->slots[n->in_slot],
				  .out = out,
				  .step = s,
				  .runtime = s->executor->rt,
				  .dead_input = dead};
	if (it->frame)
		frame_position(it, &k->frame, &k->iter);
}

static void run_async(struct work *w, uint32_t node, struct iteration *it, bool dead)
{
	const struct plan_node *n = &w->step->executor->nodes[node];
	struct call *c = &it->calls[n->call];

	fill_call(&c->k, w->step, n, it, &it->slots[n->out_slot], dead);
	c->it = it;
	c->node = node;
	c->registered = c->failed = false;
	atomic_fetch_add_explicit(&w->step->outstanding, 1, memory_order_relaxed);
	n->kernel->start(&c->k);
}

static void execute(struct work *w, struct item item)
{
	struct executor *e = w->step->executor;
	const struct plan_node *n = &e->nodes[item.node];
	struct iteration *it = item.it;
	struct kernel_call k;
	struct mu_err err;

	if ((item.dead && !n->sees_dead) ||
	    atomic_load_explicit(&w->step->failed, memory_order_relaxed)) {
		complete(w, n, it, NULL, true);
		return;
	}
	err.code = MU_OK;
	if (n->ref_in && take_refs(e, n, &it->slots[n->in_slot], &err)) {
		step_fail(w->step, n->node, &err);
		complete(w, n, it, NULL, true);
		return;
	}
	if (n->async) {
		run_async(w, item.node, it, item.dead);
		return;
	}
	fill_call(&k, w->step, n, it, w->out, item.dead);
	if (n->kernel->run && n->kernel->run(&k, &err))
		step_fail(w->step, n->node, &err);
	complete(w, n, it, w->out, false);
}

static size_t input_bytes(const struct plan_node *n, const struct item *i)
{
	size_t bytes = 0;

	for (uint32_t k = 0; k < n->n_in; k++) {
		const struct value *v = &i->it->slots[n->in_slot + k];
		if (v->tensor.buf)
			bytes += v->tensor.buf->size;
	}
	return bytes;
}

static bool should_hand_over(const struct work *w, const struct item *i)
{
	const struct plan_node *n = &w->step->executor->nodes[i->node];

	if (n->async || i->dead || (!w->guest && !(n->expensive && w->n)))
		return false;
	size_t bytes = input_bytes(n, i);
	return (n->expensive && bytes >= WORTH_A_THREAD) || (w->guest && bytes >= GUEST_BYTES);
}

static void run_handed(struct pool_job *job)
{
	struct handed *h = MU_CONTAINER(job, struct handed, job);
	struct work w;

	work_begin(&w, h->step, false);
	if (h->n > w.cap)
		work_reserve(&w, h->n);
	memcpy(w.items, h->items, h->n * sizeof h->items[0]);
	w.n = h->n;
	free(h);
	work_run(&w);
}

static void hand_over(struct work *w, const struct item *items, unsigned n)
{
	struct handed *h = mu_xmalloc(sizeof *h + n * sizeof h->items[0]);

	h->job.run = run_handed;
	h->step = w->step;
	h->n = n;
	memcpy(h->items, items, n * sizeof *items);
	atomic_fetch_add_explicit(&w->step->outstanding, 1, memory_order_relaxed);
	thread_pool_add(w->step->executor->rt->pool, &h->job);
}

void work_reserve(struct work *w, unsigned cap)
{
	struct item *grown = mu_xmalloc((size_t)cap * sizeof *grown);

	memcpy(grown, w->items, w->n * sizeof *grown);
	if (w->items != w->few)
		free(w->items);
	w->items = grown;
	w->cap = cap;
}

void work_begin(struct work *w, struct step *s, bool guest)
{
	w->step = s;
	w->outer = current;
	w->items = w->few;
	w->n = w->done = 0;
	w->cap = WORK_INLINE;
	w->guest = guest;
	w->out = w->few_out;
	if (s->executor->max_out > OUT_INLINE)
		w->out = MU_NEW_ARRAY(struct value, s->executor->max_out);
	else
		memset(w->few_out, 0, sizeof w->few_out);
	current = w;
}

/* Runs until nothing is ready, then gives back this thread's share of the step. */
void work_run(struct work *w)
{
	struct step *s = w->step;

	while (w->n) {
		struct item i = w->items[--w->n];
		if (should_hand_over(w, &i)) {
			hand_over(w, &i, 1);
			continue;
		}
		execute(w, i);
		if (w->guest && ++w->done > GUEST_NODES && w->n) {
			hand_over(w, w->items, w->n);
			w->n = 0;
		}
	}
	current = w->outer;
	if (w->items != w->few)
		free(w->items);
	if (w->out != w->few_out)
		free(w->out);
	step_release(s);
}

/* ---- the end of an asynchronous call ---- */

static void finish_in(struct work *w, struct call *c)
{
	const struct plan_node *n = &w->step->executor->nodes[c->node];

	complete(w, n, c->it, c->k.out, c->failed);
}

static void finish_job(struct pool_job *job)
{
	struct call *c = MU_CONTAINER(job, struct call, job);
	struct work w;

	work_begin(&w, c->k.step, false);
	finish_in(&w, c);
	work_run(&w);
}

void kernel_finish(struct kernel_call *k, const struct mu_err *err)
{
	struct call *c = call_of(k);
	struct step *s = k->step;
	struct work w;

	if (err) {
		c->failed = true;
		step_fail(s, k->node, err);
	}
	if (current && current->step == s) {
		finish_in(current, c);
		atomic_fetch_sub_explicit(&s->outstanding, 1, memory_order_relaxed);
	} else if (current) { /* deep in another step: not on this stack */
		c->job.run = finish_job;
		thread_pool_add(s->executor->rt->pool, &c->job);
	} else {
		work_begin(&w, s, true);
		finish_in(&w, c);
		work_run(&w);
	}
}
