/* SPDX-License-Identifier: Apache-2.0 */
/* Iterators in checkpoints: SerializeIterator and DeserializeIterator.
 *
 * Where an iterator is, its cursor knows, and that is its thread's: each op leaves a transfer,
 * which the thread does between two elements while the op waits at the wait queue.  A transfer has
 * two owners, the op and the thread (before it, the list); one that nobody waits for any more is
 * still done.
 *
 * The state is an object that goes into a checkpoint as bytes: a version, the elements that are
 * ready and not yet taken, whether the end has come, and the cursors, from the outermost inwards.
 */
#include <string.h>

#include "lib/tensor/encoded.h"
#include "task/kernels/data/archive.h"
#include "task/kernels/data/iterator.h"
#include "task/kernels/state/handles.h"

#define KIND "muster.Iterator"
enum { VERSION = 1 };

struct transfer {
	struct transfer *next;
	_Atomic int refs;
	struct mu_object *state; /* to be read; or NULL, then what has been written */
	bool reads, queued, done;
	struct mu_err err;
};

static void transfer_drop(struct transfer *t)
{
	if (atomic_fetch_sub(&t->refs, 1) != 1)
		return;
	mu_object_unref(t->state);
	free(t);
}

struct transfer *iterator_next_transfer(struct iterator *it)
{
	struct transfer *t = it->transfers;

	if (t)
		it->transfers = t->next;
	return t;
}

/* ---- the state ---- */

static int archive_failure(struct archive *a, struct mu_err *e, struct mu_err *err)
{
	int64_t code = e->code;
	struct mu_buf text = {.data = e->msg, .len = strlen(e->msg)};
	MU_AUTO_BUF read = {0};
	int rc = archive_number(a, &code, 1, 16, err);

	if (rc || (rc = archive_bytes(a, archive_reads(a) ? &read : &text, err)) ||
	    !archive_reads(a))
		return rc;
	mu_fail(e, (enum mu_code)code, "%.*s", read.len < sizeof e->msg ? (int)read.len : 0,
		read.data ? read.data : "");
	return 0;
}

static int archive_ready(struct archive *a, struct ready *r, unsigned n, struct mu_err *err)
{
	bool failed = r->err.code != MU_OK;
	int rc = archive_flag(a, &failed, err);

	if (rc || failed)
		return rc ? rc : archive_failure(a, &r->err, err);
	if (!(rc = archive_element(a, r->t, n, err)))
		r->n = n;
	return rc;
}

struct state {
	struct ready *head, **tail;
	int64_t n;
	bool ended;
	struct cursor *cursor;
};

static void state_add(struct state *s, struct ready *r)
{
	*s->tail = r;
	s->tail = &r->next;
	s->n++;
}

static void state_fini(struct state *s)
{
	for (struct ready *r = s->head, *next; r; r = next) {
		next = r->next;
		iterator_ready_free(r);
	}
}

static int archive_list_of_ready(struct archive *a, struct state *s, unsigned n, struct mu_err *err)
{
	int64_t left = s->n;
	int rc = archive_number(a, &left, 0, INT64_MAX, err);

	if (!archive_reads(a))
		for (struct ready *r = s->head; r && !rc; r = r->next)
			rc = archive_ready(a, r, n, err);
	for (; archive_reads(a) && left && !rc; left--) {
		struct ready *r = iterator_ready(n);
		state_add(s, r);
		rc = archive_ready(a, r, n, err);
	}
	return rc;
}

static int archive_state(struct archive *a, struct state *s, const struct dataset *d,
			 struct caller *who, struct mu_err *err)
{
	int64_t version = VERSION;
	int rc = archive_number(a, &version, VERSION, VERSION, err);

	if (rc || (rc = archive_list_of_ready(a, s, d->n_out, err)) ||
	    (rc = archive_flag(a, &s->ended, err)))
		return rc;
	return archive_cursor_in(a, d, who, &s->cursor, err);
}

/* ---- on the thread ---- */

static int changed_meanwhile(struct mu_err *err)
{
	return mu_fail(err, MU_ABORTED, "the iterator was given another dataset meanwhile");
}

/* Reads the present state; fails if it does not belong to this round. */
static int look(struct iterator *it, uint64_t round, struct state *s, struct mu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&it->waiters.lock);
	s->ended = it->ended;
	if (it->round != round)
		rc = changed_meanwhile(err);
	for (const struct ready *r = it->head; r && !rc; r = r->next) {
		struct ready *copy = iterator_ready(r->n);
		copy->err = r->err;
		copy->n = r->n;
		for (unsigned i = 0; i < r->n; i++)
			copy->t[i] = mu_tensor_ref(&r->t[i]);
		state_add(s, copy);
	}
	pthread_mutex_unlock(&it->waiters.lock);
	return rc;
}

/* Nothing may have been drawn yet: opening takes seeds, which are part of the state. */
static int save(struct iterator *it, struct transfer *t, const struct dataset *d, uint64_t round,
		struct cursor **cursor, struct mu_err *err)
{
	struct state s = {.tail = &s.head};
	MU_AUTO_BUF b = {0};
	struct archive a = {.to = &b};
	int rc = *cursor ? 0 : cursor_open(d, &it->caller, cursor, err);

	if (rc || (rc = look(it, round, &s, err))) {
		state_fini(&s);
		return rc;
	}
	s.cursor = *cursor;
	if (!(rc = archive_state(&a, &s, d, &it->caller, err)))
		t->state = mu_encoded_new(MU_SPAN(KIND), &b);
	state_fini(&s);
	return rc;
}

struct arrival {
	struct iterator *it;
	struct state *s;
	uint64_t round;
	bool late;
};

static void arrive(void *arg)
{
	struct arrival *n = arg;

	n->late = n->round != n->it->round;
	if (n->late)
		return;
	iterator_put_ready(n->it, n->s->head);
	n->s->head = NULL;
	n->it->ended = n->s->ended;
}

static int restore(struct iterator *it, struct transfer *t, const struct dataset *d, uint64_t round,
		   struct cursor **cursor, struct mu_err *err)
{
	const struct mu_encoded *e = mu_encoded_of(t->state);
	struct archive a = {.from = mu_pb_of(mu_buf_span(&e->bytes))};
	struct state s = {.tail = &s.head};
	int rc = archive_state(&a, &s, d, &it->caller, err);

	if (!rc && a.from.at != a.from.end)
		rc = archive_broken(err);
	if (!rc) {
		struct arrival n = {it, &s, round, false};
		wait_queue_update(&it->waiters, arrive, &n);
		rc = n.late ? changed_meanwhile(err) : 0;
	}
	if (!rc) {
		struct cursor *old = *cursor;
		*cursor = s.cursor;
		s.cursor = old;
	}
	cursor_close(s.cursor);
	state_fini(&s);
	return rc;
}

static void mark_done(void *arg)
{
	((struct transfer *)arg)->done = true;
}

void iterator_refuse(struct iterator *it, struct transfer *t, const struct mu_err *err)
{
	t->err = *err;
	wait_queue_update(&it->waiters, mark_done, t);
	transfer_drop(t);
}

void iterator_transfer(struct iterator *it, struct transfer *t, const struct dataset *d,
		       uint64_t round, struct cursor **cursor)
{
	struct mu_err err = {0};

	if (!d)
		mu_fail(&err, MU_FAILED_PRECONDITION,
			"the iterator has not been initialized: run its initializer before it is "
			"saved or restored");
	else if (t->reads)
		restore(it, t, d, round, cursor, &err);
	else
		save(it, t, d, round, cursor, &err);
	iterator_refuse(it, t, &err); /* code MU_OK: it was no refusal */
}

/* ---- the ops ---- */

struct mover {
	struct waiter w;
	struct iterator *it;
	struct transfer *t;
};

static int give_state(struct kernel_call *c, struct transfer *t, struct mu_err *err)
{
	struct mu_shape one = mu_shape_vec(1);
	struct mu_tensor out;
	int rc = mu_tensor_new(&out, MU_VARIANT, &one, err);

	if (rc)
		return rc;
	*MU_DATA(struct mu_object *, &out) = mu_object_ref(t->state);
	kernel_out_take(c, 0, out);
	return 0;
}

static void iterator_state_leave(struct iterator *it, struct transfer *t)
{
	struct transfer **p = &it->transfers;

	while (*p)
		p = &(*p)->next;
	*p = t;
	t->queued = true;
	atomic_fetch_add(&t->refs, 1);
	pthread_cond_signal(&it->work);
}

static bool move_try(struct waiter *w)
{
	struct transfer *t = MU_CONTAINER(w, struct mover, w)->t;

	if (!t->queued)
		iterator_state_leave(MU_CONTAINER(w, struct mover, w)->it, t);
	if (!t->done)
		return false;
	w->err = t->err;
	if (t->err.code == MU_OK && !t->reads)
		give_state(w->c, t, &w->err);
	return true;
}

/* It may not have begun yet. */
static void move_undo(struct waiter *w)
{
	struct mover *m = MU_CONTAINER(w, struct mover, w);

	for (struct transfer **p = &m->it->transfers; *p; p = &(*p)->next)
		if (*p == m->t) {
			*p = m->t->next;
			transfer_drop(m->t);
			return;
		}
}

static void move_free(struct waiter *w)
{
	struct mover *m = MU_CONTAINER(w, struct mover, w);

	transfer_drop(m->t);
	free(m);
}

/* Takes the reference to the state. */
static void start_moving(struct kernel_call *c, struct mu_object *state)
{
	struct mover *m = MU_NEW(struct mover);
	struct resource *r = NULL;
	struct mu_err err;

	m->t = MU_NEW(struct transfer);
	atomic_init(&m->t->refs, 1);
	m->t->state = state;
	m->t->reads = state != NULL;
	int rc = handle_find(c, 0, &iterator_type, &r, &err);
	if (!rc) {
		m->it = MU_CONTAINER(r, struct iterator, base);
		rc = iterator_start(m->it, &err);
	}
	if (rc) {
		if (r)
			resource_unref(r);
		move_free(&m->w);
		kernel_finish(c, &err);
		return;
	}
	m->w = (struct waiter){.c = c,
			       .waiters = &m->it->waiters,
			       .owner = r,
			       .what = state ? "DeserializeIterator" : "SerializeIterator",
			       .try = move_try,
			       .undo = move_undo,
			       .free = move_free};
	wait_queue_add(&m->w, WAIT_PEEK);
}

void iterator_serialize(struct kernel_call *c)
{
	start_moving(c, NULL);
}

void iterator_deserialize(struct kernel_call *c)
{
	const struct mu_tensor *t = kernel_in(c, 1);
	struct mu_object *o =
	    t->dtype == MU_VARIANT && t->shape.count == 1 ? *MU_DATA(struct mu_object *, t) : NULL;
	const struct mu_encoded *e = mu_encoded_of(o);
	struct mu_err err;

	if (e && strcmp(e->kind, KIND) == 0) {
		start_moving(c, mu_object_ref(o));
		return;
	}
	mu_fail(
	    &err, MU_INVALID_ARGUMENT,
	    "this is no iterator's state that was saved here: those of TensorFlow are not read");
	kernel_finish(c, &err);
}
