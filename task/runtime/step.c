/* SPDX-License-Identifier: Apache-2.0 */
/* Failure, cancellation and end of a step.  A step ends when none of its nodes runs or waits.
 *
 * The first error is kept.  It aborts the step's rendezvous, so that receives on this task and on
 * its peers fail, and calls the cancel functions of waiting calls.  Ready nodes are dropped.
 */
#include <string.h>

#include "task/runtime/exec_graph.h"

bool step_has_failed(const struct step *s)
{
	return atomic_load_explicit(&s->flags, memory_order_relaxed) & STEP_FAILED;
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
	iteration_cache_root(e, s->root);
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

struct call_frame *step_call_frame(const struct step *s)
{
	return s->call_frame;
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
	static _Atomic unsigned long long next_id;
	struct executor *e = s->executor;

	pthread_mutex_lock(&e->lock);
	if (!e->session) {
		e->session = mu_xasprintf("_executor_%llu", atomic_fetch_add(&next_id, 1));
		e->owns_session = true;
	}
	pthread_mutex_unlock(&e->lock);
	return e->session;
}

void step_share_session(const struct step *s, struct executor *e, const char *name)
{
	e->session = mu_xasprintf("%s%c%s", step_session(s), CONTAINER_SEPARATOR, name);
}

const char *step_own_container(struct step *s)
{
	static _Atomic unsigned long long next_id;

	pthread_mutex_lock(&s->lock);
	if (!s->own_container)
		s->own_container = mu_xasprintf("_step_%llu", atomic_fetch_add(&next_id, 1));
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

void step_each_waiting(struct step *s, void (*fn)(void *arg, const struct mu_node *n), void *arg)
{
	pthread_mutex_lock(&s->lock);
	for (const struct call *c = s->waiting; c; c = c->next)
		fn(arg, c->k.node);
	pthread_mutex_unlock(&s->lock);
}

void step_fail(struct step *s, const struct mu_node *n, const struct mu_err *err)
{
	struct mu_err why = *err;

	if (why.code == MU_OK)
		mu_fail(&why, MU_INTERNAL, "%s failed without an error code",
			n ? n->op : "The step");
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
	bool has_failed = step_has_failed(s);
	if (!has_failed) {
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
	if (has_failed)
		cancel(arg);
	return !has_failed;
}

bool kernel_uncancel(struct kernel_call *k)
{
	struct call *c = call_of(k);
	struct step *s = k->step;

	pthread_mutex_lock(&s->lock);
	bool was_registered = c->registered;
	if (was_registered) {
		*c->link = c->next;
		if (c->next)
			c->next->link = c->link;
		c->registered = false;
	}
	pthread_mutex_unlock(&s->lock);
	return was_registered;
}

int kernel_check_cancelled(const struct kernel_call *c, struct mu_err *err)
{
	bool is_cancelled = c->step && step_has_failed(c->step);

	return is_cancelled ? mu_fail(err, MU_CANCELLED, "the step was cancelled") : 0;
}
