/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the nodes of a step: takes a ready node, runs its kernel, delivers the outputs.
 *
 * Order.  A thread works until its queue of ready nodes is empty.  The queue is first in, first
 * out, as in TensorFlow, because programs rely on this order.  Example: two gradients of a layer
 * become ready together.  The first goes to a ps, which overwrites the layer's weight; the second
 * must have read the weight by then.
 * The successors of an asynchronous call that finishes at once (a receive of a tensor that has
 * arrived) run after all nodes that are ready now.  Programs rely on this too, because a receive is
 * slow in TensorFlow.  Example: a step reads a variable of a ps and sends the ps its next value.
 *
 * Cheap kernels run in place.  An expensive kernel goes to the pool if other nodes are ready and
 * the pool has several threads.
 *
 * Inline execution: an I/O thread that has received a tensor runs the nodes that became ready
 * itself.  Waking another thread takes 10 to 50 us, and the whole step of a small model takes less
 * than ten times that.  But the I/O thread must return to its connections.  So it passes expensive
 * nodes to the pool, and all nodes once its budget is used up.
 *
 * A node with a dead input is not run; its outputs are dead too.
 */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/denormals.h"
#include "task/runtime/exec_graph.h"
#include "task/runtime/trace.h"

/* Budget of inline execution: nodes, bytes of one node, bytes in total.  Outside inline
 * execution an expensive node goes to the pool if its inputs have at least OFFLOAD_MIN_BYTES. */
enum {
	INLINE_MAX_NODES = 512,
	INLINE_MAX_NODE_BYTES = 1 << 20,
	INLINE_MAX_BYTES = 8 << 20,
	OFFLOAD_MIN_BYTES = 1 << 20
};

static _Thread_local struct work *current;

/* The inline execution of this thread.  It runs one step; the step may finish asynchronous calls of
 * other steps (an enqueue finishes a dequeue); their successors run afterwards.  All these steps
 * share one budget.  When it is used up, the pool runs the remaining work. */
static _Thread_local struct inline_budget {
	bool is_active;
	unsigned n_run;                 /* nodes that have run */
	size_t inline_bytes;            /* input bytes of these nodes */
	struct pool_job *first, **last; /* finished calls of other steps */
} inline_budget;

/* Ready nodes that a thread has passed to the pool. */
struct offloaded {
	struct pool_job job;
	struct step *step;
	unsigned n;
	struct item items[];
};

/* Fails the step if a resource held values of other types than its node declares: the kernels that
 * receive them trust the types of the edges. */
static inline void check_output_types(struct step *s, const struct exec_node *n,
				      const struct value *out)
{
	for (uint32_t i = 0; i < n->n_out; i++) {
		struct mu_err err;

		if (!out[i].tensor.buf || out[i].tensor.dtype == n->out_types[i])
			continue;
		mu_fail(&err, MU_INTERNAL,
			"Output %u of type %s does not match declared output type %s for node "
			"{{node %s}}",
			i, mu_dtype_name(out[i].tensor.dtype),
			mu_dtype_name((enum mu_dtype)n->out_types[i]), n->node->name);
		step_fail(s, n->node, &err);
	}
}

/* Delivers the outputs of a node and releases its inputs. */
static inline void node_complete(struct work *w, const struct exec_node *n, struct iteration *it,
				 struct value *out, bool dead)
{
	struct value *in = &it->slots[n->in_slot];
	struct mu_err err;

	for (uint32_t i = 0; i < n->n_in; i++)
		if (!in[i].is_constant && (in[i].tensor.buf || in[i].ref))
			value_clear(&in[i]);
	if (out && !step_has_failed(w->step))
		check_output_types(w->step, n, out);
	if (!step_has_failed(w->step)) {
		if (n->kind == NODE_PLAIN || n->kind == NODE_MERGE)
			work_deliver_all(w, it, n, out, dead);
		else if (frame_propagate(w, n, it, out, dead, &err))
			step_fail(w->step, n->node, &err);
	}
	if (out)
		for (uint32_t i = 0; i < n->n_out; i++)
			if (out[i].tensor.buf || out[i].ref || out[i].dead)
				value_clear(&out[i]);
	if (it->frame)
		frame_decrement_outstanding(w, it);
}

/* Replaces references to variables by their current values, except for inputs that take
 * references. */
static int dereference_inputs(const struct executor *e, const struct exec_node *n, struct value *in,
			      struct mu_err *err)
{
	const bool *wants = &e->wants_ref[e->ref_at[n - e->nodes]];

	for (uint32_t i = 0; i < n->n_in; i++) {
		struct variable *v = in[i].ref;
		struct mu_tensor t;
		int rc;
		if (!v || (wants[i] && n->uninit_ok))
			continue;
		rc = variable_read(v, &t, err);
		if (rc && n->uninit_ok)
			continue; /* the kernel gets the reference */
		if (rc)
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

static inline void fill_call(struct kernel_call *k, struct step *s, const struct exec_node *n,
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

static void run_async(struct work *w, const struct exec_node *n, struct iteration *it, bool dead)
{
	const struct exec_node_extra *x = exec_node_extra(w->step->executor, n);
	struct call *c = &it->calls[x->call];

	fill_call(&c->k, w->step, n, it, &it->slots[x->out_slot], dead);
	c->it = it;
	c->node = (uint32_t)(n - w->step->executor->nodes);
	c->registered = c->failed = false;
	atomic_fetch_add_explicit(&w->step->outstanding, 1, memory_order_relaxed);
	x->kernel->start(&c->k);
}

/* Dereferences inputs and checks their shapes; an error ends the node. */
static inline bool inputs_are_valid(struct work *w, const struct exec_node *n, struct iteration *it)
{
	struct value *in = &it->slots[n->in_slot];
	struct mu_err err;

	err.code = MU_OK;
	if (!(n->ref_in && dereference_inputs(w->step->executor, n, in, &err)) &&
	    !(n->checks_shapes && kernel_check_shapes(n->node, in, n->n_in, &err)))
		return true;
	step_fail(w->step, n->node, &err);
	node_complete(w, n, it, NULL, true);
	return false;
}

static __attribute__((noinline)) void execute_traced(struct work *w, const struct exec_node *n,
						     struct iteration *it, bool dead)
{
	int64_t start_ns = mu_wall_ns();
	struct mu_err err = {0};

	if (!inputs_are_valid(w, n, it))
		return;
	if (n->async) {
		it->calls[exec_node_extra(w->step->executor, n)->call].start_ns = start_ns;
		run_async(w, n, it, dead);
		return;
	}
	fill_call(&w->call, w->step, n, it, w->out, dead);
	if (n->run && n->run(&w->call, &err))
		step_fail(w->step, n->node, &err);
	step_trace_node(w->step->trace, n->node, start_ns, w->out, n->n_out);
	node_complete(w, n, it, w->out, false);
}

static inline void execute(struct work *w, const struct exec_node *n, struct iteration *it,
			   bool dead)
{
	unsigned char flags = atomic_load_explicit(&w->step->flags, memory_order_relaxed);
	struct mu_err err;

	if ((dead && !n->sees_dead) || flags) {
		if ((flags & STEP_FAILED) || (dead && !n->sees_dead))
			node_complete(w, n, it, NULL, true);
		else
			execute_traced(w, n, it, dead);
		return;
	}
	if (!inputs_are_valid(w, n, it))
		return;
	err.code = MU_OK;
	if (n->async) {
		run_async(w, n, it, dead);
		return;
	}
	if (!n->run) {
		node_complete(w, n, it, NULL, false);
		return;
	}
	fill_call(&w->call, w->step, n, it, w->out, dead);
	if (n->run(&w->call, &err))
		step_fail(w->step, n->node, &err);
	node_complete(w, n, it, w->out, false);
}

static size_t input_bytes(const struct exec_node *n, const struct iteration *it)
{
	size_t bytes = 0;

	for (uint32_t k = 0; k < n->n_in; k++) {
		const struct value *v = &it->slots[n->in_slot + k];
		if (v->tensor.buf)
			bytes += v->tensor.buf->size;
	}
	return bytes;
}

/* Returns the bytes of the first output if an input is its shape; 0: not known, as with -1. */
static size_t shaped_output_bytes(const struct exec_node *n, const struct iteration *it)
{
	const struct mu_tensor *shape = &it->slots[n->in_slot + (uint32_t)n->shape_input].tensor;
	double bytes;

	if (!n->n_out || !shape->buf || shape->buf->device || shape->shape.count > MU_MAX_RANK ||
	    (shape->dtype != MU_INT32 && shape->dtype != MU_INT64))
		return 0;
	bytes = (double)mu_dtype_size((enum mu_dtype)n->out_types[0]);
	for (int64_t i = 0; i < shape->shape.count; i++)
		bytes *= mu_tensor_int(shape, i) > 0 ? (double)mu_tensor_int(shape, i) : 0;
	return bytes < INLINE_MAX_BYTES ? (size_t)bytes : INLINE_MAX_BYTES;
}

/* Decides whether the pool runs a node; counts the bytes of the node's inputs, or of an output of
 * known shape if they are more, in the inline budget. */
static bool offload_or_count(struct work *w, const struct exec_node *n, const struct iteration *it,
			     bool dead)
{
	bool others_wait = n->expensive && (w->n || w->finished) && w->step->executor->has_helpers;

	if (n->async || dead || !(w->is_inline || others_wait))
		return false;
	if (n->slow)
		return true;
	size_t bytes = input_bytes(n, it);
	if (n->shape_input >= 0) {
		size_t shaped = shaped_output_bytes(n, it);
		bytes = shaped > bytes ? shaped : bytes;
	}
	w->inline_bytes += bytes;
	return (others_wait && bytes >= OFFLOAD_MIN_BYTES) ||
	       (w->is_inline &&
		(bytes >= INLINE_MAX_NODE_BYTES || w->inline_bytes >= INLINE_MAX_BYTES));
}

static void work_begin(struct work *w, struct step *s, bool is_inline);
static void work_run(struct work *w);

static void run_offloaded(struct pool_job *job)
{
	struct offloaded *h = MU_CONTAINER(job, struct offloaded, job);
	struct work w;

	work_begin(&w, h->step, false);
	if (h->n > w.cap)
		work_reserve(&w, h->n);
	memcpy(w.items, h->items, h->n * sizeof h->items[0]);
	w.n = h->n;
	free(h);
	work_run(&w);
}

static void offload_items(struct work *w, const struct item *items, unsigned n)
{
	struct offloaded *h = mu_xmalloc(sizeof *h + n * sizeof h->items[0]);

	h->job.run = run_offloaded;
	h->step = w->step;
	h->n = n;
	memcpy(h->items, items, n * sizeof *items);
	atomic_fetch_add_explicit(&w->step->outstanding, 1, memory_order_relaxed);
	thread_pool_add(w->step->executor->rt->pool, &h->job);
}

static void work_begin(struct work *w, struct step *s, bool is_inline)
{
	w->step = s;
	w->outer = current;
	w->items = w->embedded_items;
	w->first = w->n = w->n_run = 0;
	w->finished = NULL;
	w->last_finished = &w->finished;
	w->cap = WORK_EMBEDDED;
	w->is_inline = is_inline;
	w->is_outermost_inline = is_inline && !w->outer && !inline_budget.is_active;
	if (w->is_outermost_inline)
		inline_budget =
		    (struct inline_budget){.is_active = true, .last = &inline_budget.first};
	w->max_nodes =
	    inline_budget.n_run < INLINE_MAX_NODES ? INLINE_MAX_NODES - inline_budget.n_run : 0;
	w->inline_bytes = inline_budget.inline_bytes;
	w->out = w->embedded_out;
	if (s->executor->max_out > OUT_EMBEDDED)
		w->out = MU_NEW_ARRAY(struct value, s->executor->max_out);
	else
		memset(w->embedded_out, 0, sizeof w->embedded_out);
	current = w;
}

/* Adds the successors of a call to this thread's queue.  A receive of a dead tensor is dead itself,
 * so its control edges are dead too. */
static void finish_call(struct work *w, struct call *c)
{
	const struct exec_node *n = &w->step->executor->nodes[c->node];
	bool dead = n->n_out == 1 && c->k.out[0].dead;

	if (w->step->trace && !c->failed)
		step_trace_node(w->step->trace, n->node, c->start_ns, c->k.out, n->n_out);
	node_complete(w, n, c->it, c->k.out, c->failed || dead);
}

/* Adds the successors of the calls that finished on this thread. */
static void finish_calls(struct work *w)
{
	struct pool_job *job = w->finished;

	w->finished = NULL;
	w->last_finished = &w->finished;
	for (struct pool_job *next; job; job = next) {
		next = job->next;
		finish_call(w, MU_CONTAINER(job, struct call, job));
	}
}

/* Finishes the calls of other steps, after the first step of inline execution. */
static void finish_deferred_calls(void)
{
	while (inline_budget.first) {
		struct pool_job *job = inline_budget.first;

		inline_budget.first = job->next;
		if (!inline_budget.first)
			inline_budget.last = &inline_budget.first;
		job->run(job);
	}
	inline_budget = (struct inline_budget){0};
}

/* Runs until no node is ready, then releases this thread's count in `outstanding`. */
static void work_run(struct work *w)
{
	struct step *s = w->step;
	const struct exec_node *nodes = s->executor->nodes;
	bool is_outermost_inline = w->is_outermost_inline;
	uint64_t float_mode = mu_flush_denormals();

	while (w->n || w->finished) {
		if (!w->n) {
			finish_calls(w);
			continue;
		}
		const struct item *next = &w->items[w->first++];
		const struct exec_node *n = &nodes[next->node];
		bool dead = next->dead;
		struct iteration *it = next->it;
		if (--w->n == 0)
			w->first = 0;
		if ((n->expensive || w->is_inline) && offload_or_count(w, n, it, dead)) {
			offload_items(w, next, 1);
			continue;
		}
		execute(w, n, it, dead);
		w->n_run++;
		if (w->is_inline && w->n_run > w->max_nodes && w->n) {
			offload_items(w, w->items + w->first, w->n);
			w->first = w->n = 0;
		}
	}
	mu_set_float_mode(float_mode);
	current = w->outer;
	if (inline_budget.is_active) {
		inline_budget.n_run += w->n_run;
		inline_budget.inline_bytes = inline_budget.inline_bytes > w->inline_bytes
						 ? inline_budget.inline_bytes
						 : w->inline_bytes;
	}
	if (w->items != w->embedded_items)
		free(w->items);
	if (w->out != w->embedded_out)
		free(w->out);
	step_release(s);
	if (is_outermost_inline)
		finish_deferred_calls();
}

/* ---- start ---- */

/* Adds the constants that are not run to the trace. */
static void trace_constants(struct step *s)
{
	const struct executor *e = s->executor;

	for (uint32_t i = 0; i < e->n_nodes; i++)
		if (e->nodes[i].is_bound)
			step_trace_node(s->trace, e->nodes[i].node, mu_wall_ns(), NULL, 0);
}

struct step *executor_start(struct executor *e, struct rendezvous *r, struct step_trace *t,
			    struct call_frame *frame, step_done done, void *arg)
{
	struct step *s = MU_NEW(struct step);
	struct work w;

	atomic_init(&s->refs, 2); /* the caller and the running step */
	atomic_init(&s->outstanding, 1);
	atomic_init(&s->flags, t ? STEP_TRACED : 0);
	s->trace = t;
	pthread_mutex_init(&s->lock, NULL);
	executor_ref(e);
	s->executor = e;
	s->rendezvous = rendezvous_ref(r);
	s->call_frame = frame;
	s->done = done;
	s->arg = arg;
	s->root = iteration_take_root(e);
	if (t)
		trace_constants(s);
	work_begin(&w, s, true);
	if (e->n_roots > w.cap)
		work_reserve(&w, e->n_roots);
	for (uint32_t i = 0; i < e->n_roots; i++)
		work_push(&w, e->roots[i], s->root, false);
	work_run(&w);
	return s;
}

/* ---- completion of asynchronous calls ---- */

static void finish_job(struct pool_job *job)
{
	struct call *c = MU_CONTAINER(job, struct call, job);
	struct work w;

	work_begin(&w, c->k.step, inline_budget.is_active);
	finish_call(&w, c);
	work_run(&w);
}

/* Defers the completion to the end of inline execution or to the pool, because this thread runs
 * another step. */
static void defer_finish(struct call *c)
{
	c->job.run = finish_job;
	if (!inline_budget.is_active || inline_budget.n_run >= INLINE_MAX_NODES ||
	    inline_budget.inline_bytes >= INLINE_MAX_BYTES) {
		thread_pool_add(c->k.step->executor->rt->pool, &c->job);
		return;
	}
	inline_budget.n_run++;
	c->job.next = NULL;
	*inline_budget.last = &c->job;
	inline_budget.last = &c->job.next;
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
		c->job.next = NULL;
		*current->last_finished = &c->job;
		current->last_finished = &c->job.next;
		atomic_fetch_sub_explicit(&s->outstanding, 1, memory_order_relaxed);
	} else if (current) {
		defer_finish(c);
	} else {
		work_begin(&w, s, true);
		finish_call(&w, c);
		work_run(&w);
	}
}
