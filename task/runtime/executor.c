/* SPDX-License-Identifier: Apache-2.0 */
/* Running nodes: take a ready one off the stack, run its kernel, deliver what it made.
 *
 * A thread stays with its stack until it is empty.  Cheap kernels run where they are.  An expensive
 * one goes to the pool when others wait behind it and the pool has several threads.  A guest (a
 * thread of streams or calls that has brought a tensor) has connections to look after: it hands
 * over what is large, and after a while everything.  Not before: waking another thread takes 10 to
 * 50 us of a busy machine, and a small model's whole step is not ten times that.
 * Nodes that only the dead reach are not run: deadness passes through them.
 */
#include <string.h>

#include "lib/base/clock.h"
#include "task/runtime/plan.h"
#include "task/runtime/trace.h"
#include "task/runtime/work.h"

/* A guest runs at most this many nodes in a turn, nothing on more than this many bytes, nor on more
 * than this many altogether. */
enum { GUEST_NODES = 512, GUEST_BYTES = 1 << 20, GUEST_SEES = 8 << 20, WORTH_A_THREAD = 1 << 20 };
/* How far down the stack a node is fetched early, and how often a thread sees whether the others
 * have gone. */
enum { AHEAD = 4, LOOK_EVERY = 64 };

static _Thread_local struct work *current;

/* A guest's turn: its own step, then the calls of other steps that this one has finished (who took
 * from a queue or an accumulator that it filled).  They share one allowance, what goes beyond it is
 * the pool's. */
static _Thread_local struct turn {
	bool on;
	unsigned done;
	size_t seen;
	struct pool_job *first, **last;
} turn;

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
	v->dead = v->kept = false;
}

static inline void push(struct work *w, uint32_t node, struct iteration *it, bool dead)
{
	if (w->n == w->cap)
		work_reserve(w, 2 * w->cap);
	w->items[w->n++] = (struct item){node, dead, it};
	if (__builtin_expect(it->frame != NULL, 0))
		frame_started(it);
}

void work_push(struct work *w, uint32_t node, struct iteration *it, bool dead)
{
	push(w, node, it, dead);
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

static inline void put_value(struct value *slot, struct value *v, bool last)
{
	slot->ref = v->ref;
	if (last) {
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

static inline void deliver(struct work *w, struct iteration *it, const struct plan_edge *e,
			   struct value *v, bool dead, bool last)
{
	const struct plan_node *d = &w->step->executor->nodes[e->dst];

	if (d->kind == NODE_MERGE) {
		deliver_merge(w, it, e, v, dead, last);
		return;
	}
	if (e->slot != NO_SLOT && !dead)
		put_value(&it->slots[e->slot], v, last);
	if (d->single) {
		push(w, e->dst, it, dead);
		return;
	}
	_Atomic uint64_t *word = &it->pending[d->pending];
	uint64_t now, change = dead ? PENDING_DEAD - 1 : (uint64_t)-1;
	if (w->alone) {
		now = atomic_load_explicit(word, memory_order_relaxed) + change;
		atomic_store_explicit(word, now, memory_order_relaxed);
	} else {
		now = atomic_fetch_add_explicit(word, change, memory_order_acq_rel) + change;
	}
	if ((uint32_t)now == 0)
		push(w, e->dst, it, now >= PENDING_DEAD);
}

static inline void deliver_all(struct work *w, struct iteration *it, const struct plan_node *n,
			       struct value *out, bool dead)
{
	const struct plan_edge *e = &w->step->executor->edges[n->edges], *end = e + n->n_edges;

	for (; e < end; e++) {
		if (e->port == MU_CONTROL) {
			deliver(w, it, e, NULL, dead, false);
			continue;
		}
		bool last = e + 1 == end || e[1].port != e->port;
		struct value *v = dead ? NULL : &out[e->port];
		deliver(w, it, e, v, dead || v->dead, last);
	}
}

void work_deliver_all(struct work *w, struct iteration *it, const struct plan_node *n,
		      struct value *out, bool dead)
{
	deliver_all(w, it, n, out, dead);
}

/* What a node made goes out; what it was given is let go. */
static inline void complete(struct work *w, const struct plan_node *n, struct iteration *it,
			    struct value *out, bool dead)
{
	struct value *in = &it->slots[n->in_slot];

	for (uint32_t i = 0; i < n->n_in; i++)
		if (!in[i].kept && (in[i].tensor.buf || in[i].ref))
			value_clear(&in[i]);
	if (!step_has_failed(w->step)) {
		if (n->kind == NODE_PLAIN || n->kind == NODE_MERGE)
			deliver_all(w, it, n, out, dead);
		else
			frame_propagate(w, n, it, out, dead);
	}
	if (out)
		for (uint32_t i = 0; i < n->n_out; i++)
			if (out[i].tensor.buf || out[i].ref || out[i].dead)
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

static inline void fill_call(struct kernel_call *k, struct step *s, const struct plan_node *n,
			     struct iteration *it, struct value *out, bool dead)
{
	k->node = n->node;
	k->state = n->state;
	k->n_in = n->n_in;
	k->n_out = n->n_out;
	k->in = &it->slots[n->in_slot];
	k->out = out;
	k->step = s;
	k->runtime = s->executor->rt;
	k->dead_input = dead;
	k->frame = k->iter = 0;
	if (it->frame)
		frame_position(it, &k->frame, &k->iter);
}

static void look_around(struct work *w)
{
	w->alone = atomic_load_explicit(&w->step->outstanding, memory_order_acquire) == 1;
}

static void run_async(struct work *w, const struct plan_node *n, struct iteration *it, bool dead)
{
	const struct plan_extra *x = plan_extra(w->step->executor, n);
	struct call *c = &it->calls[x->call];

	fill_call(&c->k, w->step, n, it, &it->slots[x->out_slot], dead);
	c->it = it;
	c->node = (uint32_t)(n - w->step->executor->nodes);
	c->registered = c->failed = false;
	w->alone = false;
	atomic_fetch_add_explicit(&w->step->outstanding, 1, memory_order_relaxed);
	x->kernel->start(&c->k);
	look_around(w); /* it may have ended at once */
}

static inline bool refs_are_there(struct work *w, const struct plan_node *n, struct iteration *it)
{
	struct mu_err err;

	err.code = MU_OK;
	if (!n->ref_in || !take_refs(w->step->executor, n, &it->slots[n->in_slot], &err))
		return true;
	step_fail(w->step, n->node, &err);
	complete(w, n, it, NULL, true);
	return false;
}

static __attribute__((noinline)) void execute_traced(struct work *w, const struct plan_node *n,
						     struct iteration *it, bool dead)
{
	int64_t began = mu_wall_ns();
	struct mu_err err = {0};

	if (!refs_are_there(w, n, it))
		return;
	if (n->async) {
		it->calls[plan_extra(w->step->executor, n)->call].began = began;
		run_async(w, n, it, dead);
		return;
	}
	fill_call(&w->call, w->step, n, it, w->out, dead);
	if (n->run && n->run(&w->call, &err))
		step_fail(w->step, n->node, &err);
	step_trace_node(w->step->trace, n->node, began, w->out, n->n_out);
	complete(w, n, it, w->out, false);
}

static inline void execute(struct work *w, const struct plan_node *n, struct iteration *it,
			   bool dead)
{
	unsigned char flags = atomic_load_explicit(&w->step->flags, memory_order_relaxed);
	struct mu_err err;

	if ((dead && !n->sees_dead) || flags) {
		if ((flags & STEP_FAILED) || (dead && !n->sees_dead))
			complete(w, n, it, NULL, true);
		else
			execute_traced(w, n, it, dead);
		return;
	}
	if (!refs_are_there(w, n, it))
		return;
	err.code = MU_OK;
	if (n->async) {
		run_async(w, n, it, dead);
		return;
	}
	if (!n->run) {
		complete(w, n, it, NULL, false);
		return;
	}
	fill_call(&w->call, w->step, n, it, w->out, dead);
	if (n->run(&w->call, &err))
		step_fail(w->step, n->node, &err);
	complete(w, n, it, w->out, false);
}

static size_t input_bytes(const struct plan_node *n, const struct iteration *it)
{
	size_t bytes = 0;

	for (uint32_t k = 0; k < n->n_in; k++) {
		const struct value *v = &it->slots[n->in_slot + k];
		if (v->tensor.buf)
			bytes += v->tensor.buf->size;
	}
	return bytes;
}

static bool should_hand_over(struct work *w, const struct plan_node *n, const struct iteration *it,
			     bool dead)
{
	bool others_wait = n->expensive && w->n && w->step->executor->has_helpers;

	if (n->async || dead || !(w->guest || others_wait))
		return false;
	size_t bytes = input_bytes(n, it);
	w->seen += bytes;
	return (others_wait && bytes >= WORTH_A_THREAD) ||
	       (w->guest && (bytes >= GUEST_BYTES || w->seen >= GUEST_SEES));
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
	w->alone = false;
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
	w->host = guest && !w->outer && !turn.on;
	if (w->host)
		turn = (struct turn){.on = true, .last = &turn.first};
	w->most = turn.done < GUEST_NODES ? GUEST_NODES - turn.done : 0;
	w->seen = turn.seen;
	w->out = w->few_out;
	if (s->executor->max_out > OUT_INLINE)
		w->out = MU_NEW_ARRAY(struct value, s->executor->max_out);
	else
		memset(w->few_out, 0, sizeof w->few_out);
	look_around(w);
	current = w;
}

/* The host's own step is behind it: now what it made ready in others. */
static void finish_turn(void)
{
	while (turn.first) {
		struct pool_job *job = turn.first;

		turn.first = job->next;
		if (!turn.first)
			turn.last = &turn.first;
		job->run(job);
	}
	turn = (struct turn){0};
}

/* Runs until nothing is ready, then gives back this thread's share of the step. */
void work_run(struct work *w)
{
	struct step *s = w->step;
	const struct plan_node *nodes = s->executor->nodes;
	bool host = w->host;

	while (w->n) {
		/* Field by field: a 16-byte load just after two stores would wait for them. */
		const struct item *top = &w->items[--w->n];
		const struct plan_node *n = &nodes[top->node];
		bool dead = top->dead;
		struct iteration *it = top->it;
		if (w->n >= AHEAD)
			__builtin_prefetch(&nodes[w->items[w->n - AHEAD].node]);
		if ((n->expensive || w->guest) && should_hand_over(w, n, it, dead)) {
			hand_over(w, top, 1);
			continue;
		}
		execute(w, n, it, dead);
		if (++w->done % LOOK_EVERY == 0 && !w->alone)
			look_around(w);
		if (w->guest && w->done > w->most && w->n) {
			hand_over(w, w->items, w->n);
			w->n = 0;
		}
	}
	current = w->outer;
	if (turn.on) {
		turn.done += w->done;
		turn.seen = turn.seen > w->seen ? turn.seen : w->seen;
	}
	if (w->items != w->few)
		free(w->items);
	if (w->out != w->few_out)
		free(w->out);
	step_release(s);
	if (host)
		finish_turn();
}

/* ---- the end of an asynchronous call ---- */

/* What is received dead was not run by its sender: who waits for the receive alone, by a control
 * edge, is dead too. */
static void finish_in(struct work *w, struct call *c)
{
	const struct plan_node *n = &w->step->executor->nodes[c->node];
	bool dead = n->n_out == 1 && c->k.out[0].dead;

	if (w->step->trace && !c->failed)
		step_trace_node(w->step->trace, n->node, c->began, c->k.out, n->n_out);
	complete(w, n, c->it, c->k.out, c->failed || dead);
}

static void finish_job(struct pool_job *job)
{
	struct call *c = MU_CONTAINER(job, struct call, job);
	struct work w;

	work_begin(&w, c->k.step, turn.on);
	finish_in(&w, c);
	work_run(&w);
}

/* Deep in another step, so not on this stack: at the end of the guest's turn, or the pool's. */
static void finish_later(struct call *c)
{
	c->job.run = finish_job;
	if (!turn.on || turn.done >= GUEST_NODES || turn.seen >= GUEST_SEES) {
		thread_pool_add(c->k.step->executor->rt->pool, &c->job);
		return;
	}
	turn.done++;
	c->job.next = NULL;
	*turn.last = &c->job;
	turn.last = &c->job.next;
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
	} else if (current) {
		finish_later(c);
	} else {
		work_begin(&w, s, true);
		finish_in(&w, c);
		work_run(&w);
	}
}
