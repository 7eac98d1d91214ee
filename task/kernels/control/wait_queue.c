/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/control/wait_queue.h"

#include <stdio.h>

void wait_queue_init(struct wait_queue *q)
{
	pthread_mutex_init(&q->lock, NULL);
	q->closed = NULL;
	for (int i = 0; i < WAIT_KINDS; i++) {
		q->queues[i].head = NULL;
		q->queues[i].tail = &q->queues[i].head;
	}
}

void wait_queue_fini(struct wait_queue *q)
{
	pthread_mutex_destroy(&q->lock);
}

static void waiter_drop(struct waiter *w)
{
	if (atomic_fetch_sub(&w->refs, 1) != 1)
		return;
	resource_unref(w->owner);
	w->free(w);
}

static void link_last(struct wait_queue *q, int kind, struct waiter *w)
{
	w->next = NULL;
	*q->queues[kind].tail = w;
	q->queues[kind].tail = &w->next;
}

static bool unlink_from(struct wait_queue *q, int kind, struct waiter *w)
{
	for (struct waiter **p = &q->queues[kind].head; *p; p = &(*p)->next)
		if (*p == w) {
			*p = w->next;
			if (!*p)
				q->queues[kind].tail = p;
			return true;
		}
	return false;
}

/* Removes completed calls from their queues until no call makes progress; returns them. */
static struct waiter *wait_queue_serve(struct wait_queue *q)
{
	struct waiter *done = NULL, **last = &done;

	for (bool made_progress = true; made_progress;) {
		made_progress = false;
		for (int i = 0; i < WAIT_KINDS; i++)
			for (struct waiter *w = q->queues[i].head, *next; w; w = next) {
				next = w->next;
				if (w->try(w)) {
					unlink_from(q, i, w);
					w->state = WAITER_DONE;
					w->next = NULL;
					*last = w;
					last = &w->next;
					made_progress = true;
					continue;
				}
				made_progress = made_progress || w->made_progress;
				w->made_progress = false;
				if (i != WAIT_PEEK)
					break;
			}
	}
	return done;
}

/* Called with the lock, after w was removed from its queue. */
static void fail_waiter(struct waiter *w, enum mu_code code, const char *why)
{
	w->state = WAITER_DONE;
	w->err.code = code;
	snprintf(w->err.msg, sizeof w->err.msg, "%s '%s' %s", w->what, w->owner->name, why);
	if (w->undo)
		w->undo(w);
}

/* Unregisters the cancellation of the calls and finishes them.  Called without the lock. */
static void finish_all(struct waiter *done)
{
	for (struct waiter *w = done, *next; w; w = next) {
		struct mu_err err = w->err;
		struct kernel_call *c = w->c;
		next = w->next;
		bool resumes = w->resume && !err.code;
		if (kernel_uncancel(c))
			waiter_drop(w);
		if (resumes)
			w->resume(w);
		waiter_drop(w);
		if (!resumes)
			kernel_finish(c, err.code ? &err : NULL);
	}
}

static void wait_queue_cancelled(void *arg)
{
	struct waiter *w = arg;
	struct wait_queue *q = w->waiters;
	struct waiter *done = NULL;

	pthread_mutex_lock(&q->lock);
	bool is_pending = w->state == WAITER_NEW || w->state == WAITER_WAITING;
	bool is_waiting = w->state == WAITER_WAITING;
	if (is_pending)
		w->state = WAITER_CANCELLED;
	for (int i = 0; is_waiting && i < WAIT_KINDS; i++)
		unlink_from(q, i, w);
	if (is_waiting && w->undo)
		w->undo(w);
	if (is_waiting)
		done = wait_queue_serve(q);
	pthread_mutex_unlock(&q->lock);
	finish_all(done);
	if (is_pending) {
		struct mu_err err;
		mu_fail(&err, MU_CANCELLED, "%s operation was cancelled", w->what);
		kernel_finish(w->c, &err);
	}
	if (is_waiting)
		waiter_drop(w); /* the queue's reference */
	waiter_drop(w);
}

void wait_queue_add(struct waiter *w, int kind)
{
	struct wait_queue *q = w->waiters;
	struct waiter *done = NULL;

	w->state = WAITER_NEW;
	w->err.code = MU_OK;
	atomic_init(&w->refs, 2);
	if (!kernel_on_cancel(w->c, wait_queue_cancelled, w)) {
		waiter_drop(w); /* the queue's reference; the cancellation has finished the call */
		return;
	}
	pthread_mutex_lock(&q->lock);
	bool is_cancelled = w->state == WAITER_CANCELLED;
	if (!is_cancelled) {
		w->state = WAITER_WAITING;
		link_last(q, kind, w);
		done = wait_queue_serve(q);
	}
	if (q->closed && w->state == WAITER_WAITING && unlink_from(q, kind, w)) {
		fail_waiter(w, MU_CANCELLED, q->closed);
		w->next = done;
		done = w;
	}
	pthread_mutex_unlock(&q->lock);
	if (is_cancelled)
		waiter_drop(w);
	finish_all(done);
}

void wait_queue_update(struct wait_queue *q, void (*change)(void *arg), void *arg)
{
	pthread_mutex_lock(&q->lock);
	if (change)
		change(arg);
	struct waiter *done = wait_queue_serve(q);
	pthread_mutex_unlock(&q->lock);
	finish_all(done);
}

void wait_queue_fail(struct wait_queue *q, int kind, enum mu_code code, const char *why)
{
	pthread_mutex_lock(&q->lock);
	struct waiter *all = q->queues[kind].head;
	q->queues[kind].head = NULL;
	q->queues[kind].tail = &q->queues[kind].head;
	for (struct waiter *w = all; w; w = w->next)
		fail_waiter(w, code, why);
	pthread_mutex_unlock(&q->lock);
	finish_all(all);
}

void wait_queue_close(struct wait_queue *q, const char *why)
{
	pthread_mutex_lock(&q->lock);
	q->closed = why;
	pthread_mutex_unlock(&q->lock);
	for (int i = 0; i < WAIT_KINDS; i++)
		wait_queue_fail(q, i, MU_CANCELLED, why);
}
