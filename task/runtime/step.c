/* SPDX-License-Identifier: Apache-2.0 */
/* Start, failure, cancellation and end of a step.  A step ends when none of its nodes runs or
 * waits.
 *
 * The first error is kept.  It aborts the step's rendezvous, so that receives on this task and on
 * its peers fail, and calls the cancel functions of waiting calls.  Ready nodes are dropped.
 */
#include <string.h>

#include "lib/base/clock.h"
#include "task/runtime/exec_graph.h"
#include "task/runtime/trace.h"
#include "task/runtime/work.h"

/* Limits of root blocks cached for the next steps: their number, and bytes beyond the first one. */
enum { MAX_SPARE = 8, SPARE_BYTES = 8 << 20 };

struct call *call_of(struct kernel_call *k)
{
	return MU_CONTAINER(k, struct call, k);
}

/* Reuses a block of an ended step after resetting its pending words. */
static struct iteration *reuse_root(struct executor *e)
{
	const struct exec_frame *f = &e->frames[ROOT_FRAME];
	struct iteration *it;

	pthread_mutex_lock(&e->lock);
	it = e->spare;
	if (it) {
		e->spare = it->next;
		e->n_spare--;
	}
	pthread_mutex_unlock(&e->lock);
	if (!it)
		return iteration_new_root(e);
	it->next = NULL;
	memcpy(it->pending, f->initial, f->n_nodes * sizeof f->initial[0]);
	return it;
}

static void cache_root(struct executor *e, struct iteration *it, bool clean)
{
	if (!clean)
		for (uint32_t i = 0; i < e->frames[ROOT_FRAME].n_slots; i++)
			if (!it->slots[i].is_constant)
				value_clear(&it->slots[i]);
	pthread_mutex_lock(&e->lock);
	if (!e->n_spare || (e->n_spare < MAX_SPARE &&
			    (e->n_spare + 1) * e->frames[ROOT_FRAME].size <= SPARE_BYTES)) {
		it->next = e->spare;
		e->spare = it;
		e->n_spare++;
		it = NULL;
	}
	pthread_mutex_unlock(&e->lock);
	if (it)
		iteration_free(&e->frames[ROOT_FRAME], it);
}

/* Adds the constants that are not run to the trace. */
static void trace_constants(struct step *s)
{
	const struct executor *e = s->executor;

	for (uint32_t i = 0; i < e->n_nodes; i++)
		if (e->nodes[i].is_bound)
			step_trace_node(s->trace, e->nodes[i].node, mu_wall_ns(), NULL, 0);
}

static struct step *step_start(struct executor *e, struct rendezvous *r, struct step_trace *t,
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
	s->frame = frame;
	s->done = done;
	s->arg = arg;
	s->root = reuse_root(e);
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

struct step *executor_start(struct executor *e, struct rendezvous *r, step_done done, void *arg)
{
	return step_start(e, r, NULL, NULL, done, arg);
}

struct step *executor_start_traced(struct executor *e, struct rendezvous *r, struct step_trace *t,
				   step_done done, void *arg)
{
	return step_start(e, r, t, NULL, done, arg);
}

struct step *executor_start_call(struct executor *e, struct rendezvous *r, struct call_frame *frame,
				 step_done done, void *arg)
{
	return step_start(e, r, NULL, frame, done, arg);
}

void step_release(struct step *s)
{
	if (atomic_fetch_sub_explicit(&s->outstanding, 1, memory_order_acq_rel) != 1)
		return;
	bool failed = step_has_failed(s);
	struct executor *e = s->executor;
	struct mu_err err;
	pthread_mutex_lock(&s->lock);
	err = s->err;
	pthread_mutex_unlock(&s->lock);
	frames_free(s);
	/* Loops and Merge may leave unused values in slots. */
	cache_root(e, s->root, !failed && e->all_taken);
	s->root = NULL;
	if (s->own_container)
		resources_clear(e->rt->resources, s->own_container);
	s->done(s->arg, failed ? &err : NULL);
	step_unref(s);
}

struct step *step_ref(struct step *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void step_unref(struct step *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	rendezvous_unref(s->rendezvous);
	executor_unref(s->executor);
	pthread_mutex_destroy(&s->lock);
	free(s->own_container);
	free(s);
}

struct rendezvous *step_rendezvous(struct step *s)
{
	return s->rendezvous;
}

struct call_frame *step_frame(const struct step *s)
{
	return s->frame;
}

struct mu_library *step_library(const struct step *s)
{
	return s->executor->graph->library;
}

const char *step_container(const struct step *s)
{
	return s->executor->container;
}

const char *step_session(const struct step *s)
{
	static _Atomic unsigned long long made;
	struct executor *e = s->executor;

	pthread_mutex_lock(&e->lock);
	if (!e->session) {
		e->session = mu_xasprintf("_executor_%llu", atomic_fetch_add(&made, 1));
		e->owns_session = true;
	}
	pthread_mutex_unlock(&e->lock);
	return e->session;
}

const char *step_own_container(struct step *s)
{
	static _Atomic unsigned long long made;

	pthread_mutex_lock(&s->lock);
	if (!s->own_container)
		s->own_container = mu_xasprintf("_step_%llu", atomic_fetch_add(&made, 1));
	pthread_mutex_unlock(&s->lock);
	return s->own_container;
}

static void cancel_waiting(struct step *s)
{
	for (;;) {
		pthread_mutex_lock(&s->lock);
		struct call *c = s->waiting;
		if (!c) {
			pthread_mutex_unlock(&s->lock);
			return;
		}
		s->waiting = c->next;
		if (c->next)
			c->next->link = &s->waiting;
		c->registered = false;
		void (*cancel)(void *) = c->cancel;
		void *arg = c->cancel_arg;
		pthread_mutex_unlock(&s->lock);
		cancel(arg);
	}
}

void step_waits(struct step *s, void (*see)(void *arg, const struct mu_node *n), void *arg)
{
	pthread_mutex_lock(&s->lock);
	for (const struct call *c = s->waiting; c; c = c->next)
		see(arg, c->k.node);
	pthread_mutex_unlock(&s->lock);
}

void step_fail(struct step *s, const struct mu_node *n, const struct mu_err *err)
{
	struct mu_err why = *err;

	if (why.code == MU_OK)
		why.code = MU_UNKNOWN;
	if (n && !strstr(why.msg, "[[{{node"))
		mu_append(&why, "\n\t [[{{node %s}}]]", n->name);
	pthread_mutex_lock(&s->lock);
	bool first = !step_has_failed(s);
	if (first) {
		s->err = why;
		atomic_fetch_or(&s->flags, STEP_FAILED);
	}
	pthread_mutex_unlock(&s->lock);
	if (!first)
		return;
	rendezvous_abort(s->rendezvous, &why);
	cancel_waiting(s);
}

void step_cancel(struct step *s, const struct mu_err *why)
{
	step_fail(s, NULL, why);
}

bool kernel_on_cancel(struct kernel_call *k, void (*cancel)(void *arg), void *arg)
{
	struct call *c = call_of(k);
	struct step *s = k->step;

	pthread_mutex_lock(&s->lock);
	bool late = step_has_failed(s);
	if (!late) {
		c->cancel = cancel;
		c->cancel_arg = arg;
		c->registered = true;
		c->next = s->waiting;
		if (c->next)
			c->next->link = &c->next;
		c->link = &s->waiting;
		s->waiting = c;
	}
	pthread_mutex_unlock(&s->lock);
	if (late)
		cancel(arg);
	return !late;
}

bool kernel_uncancel(struct kernel_call *k)
{
	struct call *c = call_of(k);
	struct step *s = k->step;

	pthread_mutex_lock(&s->lock);
	bool ours = c->registered;
	if (ours) {
		*c->link = c->next;
		if (c->next)
			c->next->link = c->link;
		c->registered = false;
	}
	pthread_mutex_unlock(&s->lock);
	return ours;
}
