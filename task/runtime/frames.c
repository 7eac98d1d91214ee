/* SPDX-License-Identifier: Apache-2.0 */
/* While loops: a frame is one execution of a loop, with a block for each active iteration.
 *
 * Enter finds or opens the frame; NextIteration opens the next iteration; Exit passes a live value
 * to the outer iteration.  At most parallel_iterations iterations are active: values for a further
 * one wait until the oldest has ended.  An iteration ends when none of its nodes is ready, running
 * or waiting, no inner frame is open and the previous iteration has ended.  Then its block is
 * freed.  The frame ends with its last iteration.  An Exit without a live value is dead outside, as
 * when the loop is on the untaken side of a Switch.
 *
 * Locks: step->lock for the list of frames, then one frame's lock for its counts.  Values are
 * delivered without a lock.
 */
#include <string.h>

#include "task/runtime/exec_graph.h"

/* Appends an iteration.  Called with f->lock held, or before f is in the step's list. */
static struct iteration *add_iteration(struct frame *f)
{
	struct iteration *t = iteration_new(f->info), **end = &f->iterations;

	while (*end)
		end = &(*end)->next;
	t->frame = f;
	t->number = f->n_started++;
	f->n_active++;
	return *end = t;
}

static struct frame *open_frame(struct step *s, uint32_t index, struct iteration *parent)
{
	struct frame *f;

	pthread_mutex_lock(&s->lock);
	for (f = s->frames; f; f = f->next)
		if (f->index == index && f->parent == parent)
			break;
	if (!f) {
		f = MU_NEW(struct frame);
		f->step = s;
		f->index = index;
		f->info = &s->executor->frames[index];
		f->parent = parent;
		f->id =
		    frame_id(parent->frame ? parent->frame->id : 0, parent->number, f->info->name);
		f->enters_left = f->info->n_enters;
		pthread_mutex_init(&f->lock, NULL);
		add_iteration(f);
		f->next = s->frames;
		s->frames = f;
		if (parent->frame) {
			pthread_mutex_lock(&parent->frame->lock);
			parent->children++;
			pthread_mutex_unlock(&parent->frame->lock);
		}
	}
	pthread_mutex_unlock(&s->lock);
	return f;
}

static void value_ref(struct value *to, const struct value *from)
{
	*to = (struct value){.tensor = mu_tensor_ref(&from->tensor), .ref = from->ref};
	if (from->ref)
		resource_ref(&from->ref->base);
}

static void store_value(struct stored_value **list, const struct exec_node *from,
			const struct value *v)
{
	struct stored_value *k = MU_NEW(struct stored_value);

	k->from = from;
	value_ref(&k->value, v);
	k->next = *list;
	*list = k;
}

static void stored_values_free(struct stored_value *list)
{
	for (struct stored_value *k = list, *next; k; k = next) {
		next = k->next;
		value_clear(&k->value);
		free(k);
	}
}

static void frame_free(struct frame *f)
{
	for (struct iteration *it = f->iterations, *next; it; it = next) {
		next = it->next;
		iteration_free(f->info, it);
	}
	stored_values_free(f->constants);
	stored_values_free(f->waiting);
	pthread_mutex_destroy(&f->lock);
	free(f->live_exits);
	free(f);
}

static void close_frame(struct frame *f)
{
	struct step *s = f->step;

	pthread_mutex_lock(&s->lock);
	for (struct frame **p = &s->frames; *p; p = &(*p)->next)
		if (*p == f) {
			*p = f->next;
			break;
		}
	pthread_mutex_unlock(&s->lock);
	frame_free(f);
}

void frames_free(struct step *s)
{
	while (s->frames) {
		struct frame *next = s->frames->next;
		frame_free(s->frames);
		s->frames = next;
	}
}

void frame_position(const struct iteration *it, unsigned long long *frame, unsigned long long *iter)
{
	*frame = it->frame->id;
	*iter = it->number;
}

/* Delivers dead values for the Exits without a live value. */
static void deliver_dead_exits(struct work *w, struct frame *f)
{
	struct executor *e = f->step->executor;

	for (const struct exec_node *n = f->info->exits; n; n = exec_node_extra(e, n)->next_exit) {
		bool is_live = false;

		for (unsigned k = 0; k < f->n_live; k++)
			is_live |= f->live_exits[k] == n;
		if (!is_live)
			work_deliver_all(w, f->parent, n, NULL, true);
	}
}

/* Delivers a copy of each value to the iteration. */
static void deliver_values(struct work *w, struct iteration *t, const struct stored_value *list)
{
	for (; list; list = list->next) {
		struct value v;

		value_ref(&v, &list->value);
		work_deliver_all(w, t, list->from, &v, false);
		value_clear(&v);
	}
}

/* Starts the next iteration and delivers the waiting values to it.  Called with f->lock held;
 * releases it during the delivery. */
static void start_next_iteration(struct work *w, struct frame *f)
{
	struct stored_value *waiting = mu_steal(&f->waiting);
	struct iteration *t = add_iteration(f);
	struct stored_value *constants = f->constants;

	t->outstanding++;
	pthread_mutex_unlock(&f->lock);
	deliver_values(w, t, constants);
	deliver_values(w, t, waiting);
	stored_values_free(waiting);
	pthread_mutex_lock(&f->lock);
	t->outstanding--;
}

/* Frees the iterations that have ended, and the frame with the last one.  Then the outer iteration
 * may end too, hence the loop.  Called with f->lock held; releases it. */
static void free_ended_iterations(struct work *w, struct frame *f)
{
	while (f) {
		struct iteration *it;
		while ((it = f->iterations) && !it->outstanding && !it->children &&
		       (it->number || !f->enters_left)) {
			f->iterations = it->next;
			f->n_active--;
			iteration_free(f->info, it);
			if (f->waiting)
				start_next_iteration(w, f);
		}
		bool is_last = !f->iterations;
		pthread_mutex_unlock(&f->lock);
		if (!is_last)
			return;
		struct iteration *parent = f->parent;
		deliver_dead_exits(w, f);
		close_frame(f);
		if (!(f = parent->frame))
			return;
		pthread_mutex_lock(&f->lock);
		parent->children--;
	}
}

void frame_decrement_outstanding(struct work *w, struct iteration *it)
{
	struct frame *f = it->frame;

	pthread_mutex_lock(&f->lock);
	it->outstanding--;
	free_ended_iterations(w, f);
}

static void frame_enter(struct work *w, const struct exec_node *n, struct iteration *it,
			struct value *out, bool dead)
{
	struct frame *f = open_frame(w->step, exec_node_extra(w->step->executor, n)->child, it);
	struct iteration *first, *last, *next_active = NULL;

	pthread_mutex_lock(&f->lock);
	first = last =
	    f->iterations; /* the first iteration cannot end before all Enters have run */
	first->outstanding++;
	if (n->constant && !dead) {
		store_value(&f->constants, n, &out[0]);
		/* Active iterations get the value too; later ones find it in the list. */
		next_active = first->next;
		for (struct iteration *t = next_active; t; t = t->next, last = last->next)
			t->outstanding++;
	}
	pthread_mutex_unlock(&f->lock);
	while (next_active) {
		struct value v;
		struct iteration *t = next_active;
		value_ref(&v, &out[0]);
		work_deliver_all(w, t, n, &v, false);
		value_clear(&v);
		pthread_mutex_lock(&f->lock);
		next_active = t == last ? NULL : t->next;
		t->outstanding--;
		pthread_mutex_unlock(&f->lock);
	}
	work_deliver_all(w, first, n, out, dead);
	pthread_mutex_lock(&f->lock);
	f->enters_left--;
	first->outstanding--;
	free_ended_iterations(w, f);
}

static void next_iteration(struct work *w, const struct exec_node *n, struct iteration *it,
			   struct value *out)
{
	struct frame *f = it->frame;
	struct stored_value *constants = NULL;
	struct iteration *t;

	pthread_mutex_lock(&f->lock);
	t = it->next;
	if (!t && f->n_active >= f->info->max_active) {
		store_value(&f->waiting, n, &out[0]);
		pthread_mutex_unlock(&f->lock);
		return;
	}
	if (!t) {
		t = add_iteration(f);
		constants = f->constants;
	}
	t->outstanding++;
	pthread_mutex_unlock(&f->lock);
	deliver_values(w, t, constants);
	work_deliver_all(w, t, n, out, false);
	pthread_mutex_lock(&f->lock);
	t->outstanding--;
	pthread_mutex_unlock(&f->lock); /* t cannot end while `it` is active */
}

static int frame_exit(struct work *w, const struct exec_node *n, struct iteration *it,
		      struct value *out, struct mu_err *err)
{
	struct frame *f = it->frame;
	bool is_live = false;

	pthread_mutex_lock(&f->lock);
	for (unsigned i = 0; i < f->n_live; i++)
		is_live = is_live || f->live_exits[i] == n;
	if (is_live) {
		pthread_mutex_unlock(&f->lock);
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Exit has values in two iterations of '%s'", f->info->name);
	}
	if (f->n_live == f->cap_live) {
		f->cap_live = f->cap_live ? f->cap_live * 2 : 8;
		f->live_exits = mu_xrealloc(f->live_exits, f->cap_live * sizeof *f->live_exits);
	}
	f->live_exits[f->n_live++] = n;
	pthread_mutex_unlock(&f->lock);
	work_deliver_all(w, f->parent, n, out, false);
	return 0;
}

int frame_propagate(struct work *w, const struct exec_node *n, struct iteration *it,
		    struct value *out, bool dead, struct mu_err *err)
{
	dead = dead || out[0].dead;
	if (n->kind == NODE_ENTER)
		frame_enter(w, n, it, out, dead);
	else if (n->kind == NODE_NEXT && !dead)
		next_iteration(w, n, it, out);
	else if (!dead)
		return frame_exit(w, n, it, out, err);
	return 0;
}
