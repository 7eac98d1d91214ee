/* SPDX-License-Identifier: Apache-2.0 */
/* While loops: a frame is one run of a loop body, an iteration one turn of it.
 *
 * Enter finds or opens the frame; NextIteration opens the next turn; Exit takes a live value out.
 * An iteration ends when nothing in it is ready, runs or waits, no inner frame is open and the turn
 * before has ended; then its block goes.  With the last one the frame ends, and an Exit that never
 * saw a live value is dead outside (the loop stood on the untaken side of a Switch).
 *
 * Locks: step->lock for the list of frames, then one frame's lock for its counts.  Values are
 * delivered without a lock.
 */
#include <string.h>

#include "task/runtime/plan.h"

struct constant {
	struct constant *next;
	const struct plan_node *enter;
	struct value value;
};

struct frame {
	struct frame *next; /* in the step */
	struct step *step;
	const struct plan_frame *plan;
	uint32_t index;
	struct iteration *parent;
	uint64_t id;
	pthread_mutex_t lock;
	struct iteration *turns; /* oldest first */
	uint32_t enters_left;
	struct constant *constants;
	const struct plan_node **live_exits;
	unsigned n_live, cap_live;
};

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
		f->plan = &s->executor->frames[index];
		f->parent = parent;
		f->id =
		    frame_id(parent->frame ? parent->frame->id : 0, parent->number, f->plan->name);
		f->enters_left = f->plan->n_enters;
		pthread_mutex_init(&f->lock, NULL);
		f->turns = iteration_new(f->plan);
		f->turns->frame = f;
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

static void frame_free(struct frame *f)
{
	for (struct iteration *it = f->turns, *next; it; it = next) {
		next = it->next;
		iteration_free(f->plan, it);
	}
	for (struct constant *c = f->constants, *next; c; c = next) {
		next = c->next;
		value_clear(&c->value);
		free(c);
	}
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

void frame_started(struct iteration *it)
{
	pthread_mutex_lock(&it->frame->lock);
	it->outstanding++;
	pthread_mutex_unlock(&it->frame->lock);
}

static void value_ref(struct value *to, const struct value *from)
{
	*to = (struct value){.tensor = mu_tensor_ref(&from->tensor), .ref = from->ref};
	if (from->ref)
		resource_ref(&from->ref->base);
}

/* Exits without a live value are dead where the loop was entered. */
static void deliver_dead_exits(struct work *w, struct frame *f)
{
	struct executor *e = f->step->executor;

	for (uint32_t i = 0; i < e->n_nodes; i++) {
		const struct plan_node *n = &e->nodes[i];
		bool live = false;
		if (n->kind != NODE_EXIT || n->frame != f->index)
			continue;
		for (unsigned k = 0; k < f->n_live; k++)
			live |= f->live_exits[k] == n;
		if (!live)
			work_deliver_all(w, f->parent, n, NULL, true);
	}
}

/* Drops the turns that have ended, and the frame with the last; with f->lock held, which is given
 * back.  The outer turn may end with it: that is why this is a loop. */
static void sweep(struct work *w, struct frame *f)
{
	while (f) {
		struct iteration *it;
		while ((it = f->turns) && !it->outstanding && !it->children &&
		       (it->number || !f->enters_left)) {
			f->turns = it->next;
			iteration_free(f->plan, it);
		}
		bool over = !f->turns;
		pthread_mutex_unlock(&f->lock);
		if (!over)
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

void frame_ended(struct work *w, struct iteration *it)
{
	struct frame *f = it->frame;

	pthread_mutex_lock(&f->lock);
	it->outstanding--;
	sweep(w, f);
}

static void enter(struct work *w, const struct plan_node *n, struct iteration *it,
		  struct value *out, bool dead)
{
	struct frame *f = open_frame(w->step, plan_extra(w->step->executor, n)->child, it);
	struct iteration *first, *last, *later = NULL;

	pthread_mutex_lock(&f->lock);
	first = last = f->turns; /* the first turn cannot end while an Enter is missing */
	first->outstanding++;
	if (n->constant && !dead) {
		struct constant *c = MU_NEW(struct constant);
		c->enter = n;
		value_ref(&c->value, &out[0]);
		c->next = f->constants;
		f->constants = c;
		/* Turns that are open already get it too; those to come find it in the list. */
		later = first->next;
		for (struct iteration *t = later; t; t = t->next, last = last->next)
			t->outstanding++;
	}
	pthread_mutex_unlock(&f->lock);
	while (later) {
		struct value v;
		struct iteration *t = later;
		value_ref(&v, &out[0]);
		work_deliver_all(w, t, n, &v, false);
		value_clear(&v);
		pthread_mutex_lock(&f->lock);
		later = t == last ? NULL : t->next;
		t->outstanding--;
		pthread_mutex_unlock(&f->lock);
	}
	work_deliver_all(w, first, n, out, dead);
	pthread_mutex_lock(&f->lock);
	f->enters_left--;
	first->outstanding--;
	sweep(w, f);
}

static void next_turn(struct work *w, const struct plan_node *n, struct iteration *it,
		      struct value *out)
{
	struct frame *f = it->frame;
	struct constant *c = NULL;
	struct iteration *t;

	pthread_mutex_lock(&f->lock);
	t = it->next;
	if (!t) {
		t = it->next = iteration_new(f->plan);
		t->frame = f;
		t->number = it->number + 1;
		c = f->constants;
	}
	t->outstanding++;
	pthread_mutex_unlock(&f->lock);
	for (; c; c = c->next) {
		struct value v;
		value_ref(&v, &c->value);
		work_deliver_all(w, t, c->enter, &v, false);
		value_clear(&v);
	}
	work_deliver_all(w, t, n, out, false);
	pthread_mutex_lock(&f->lock);
	t->outstanding--;
	pthread_mutex_unlock(&f->lock); /* `it` is still at work, so t cannot be the one to end */
}

static void leave(struct work *w, const struct plan_node *n, struct iteration *it,
		  struct value *out)
{
	struct frame *f = it->frame;

	pthread_mutex_lock(&f->lock);
	if (f->n_live == f->cap_live) {
		f->cap_live = f->cap_live ? f->cap_live * 2 : 8;
		f->live_exits = mu_xrealloc(f->live_exits, f->cap_live * sizeof *f->live_exits);
	}
	f->live_exits[f->n_live++] = n;
	pthread_mutex_unlock(&f->lock);
	work_deliver_all(w, f->parent, n, out, false);
}

void frame_propagate(struct work *w, const struct plan_node *n, struct iteration *it,
		     struct value *out, bool dead)
{
	dead = dead || out[0].dead;
	if (n->kind == NODE_ENTER)
		enter(w, n, it, out, dead);
	else if (dead)
		return;
	else if (n->kind == NODE_NEXT)
		next_turn(w, n, it, out);
	else
		leave(w, n, it, out);
}
