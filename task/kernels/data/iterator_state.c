/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an iterator: the buffered elements, and requests to save the whole state to
 * checkpoints or to restore it.
 *
 * Only the thread of the iterator may use its dataset iterator.  SerializeIterator and
 * DeserializeIterator queue a request, which the thread executes between two elements while the op
 * waits.  The op has one reference to a request.  The queue has the other one, until the thread
 * takes it over.  The thread completes a request that it has started, even if the op is cancelled.
 *
 * A checkpoint stores the state as bytes: a version, the buffered elements, a flag for the end of
 * the dataset, and the dataset iterators, the outermost first.
 */
#include <string.h>

#include "lib/tensor/encoded.h"
#include "task/kernels/data/iterator.h"
#include "task/kernels/data/serializer.h"

enum { VERSION = 1 };

/* ---- buffered elements ---- */

void buffered_element_free(struct buffered_element *r)
{
	element_drop(r->t, r->n);
	free(r);
}

void iterator_clear_buffer(struct iterator *it)
{
	while (it->head) {
		struct buffered_element *r = it->head;
		it->head = r->next;
		buffered_element_free(r);
	}
	it->tail = &it->head;
	it->n_buffered = 0;
}

struct buffered_element *buffered_element_new(unsigned n)
{
	return mu_xcalloc(1, sizeof(struct buffered_element) + (n + 1) * sizeof(struct mu_tensor));
}

/* Replaces the buffered elements; takes the list. */
static void iterator_set_buffer(struct iterator *it, struct buffered_element *head)
{
	iterator_clear_buffer(it);
	it->head = head;
	for (; head; head = head->next) {
		it->tail = &head->next;
		it->n_buffered++;
	}
}

/* ---- requests ---- */

void state_request_unref(struct state_request *t)
{
	if (atomic_fetch_sub(&t->refs, 1) != 1)
		return;
	mu_object_unref(t->state);
	free(t);
}

struct state_request *iterator_next_request(struct iterator *it)
{
	struct state_request *t = it->requests;

	if (t)
		it->requests = t->next;
	return t;
}

/* ---- the state ---- */

static int serialize_failure(struct serializer *ser, struct mu_err *e, struct mu_err *err)
{
	int64_t code = e->code;
	struct mu_buf text = {.data = e->msg, .len = strlen(e->msg)};
	MU_AUTO_BUF saved = {0};

	MU_RETURN_IF_ERROR(serialize_number(ser, &code, 1, 16, err));
	MU_RETURN_IF_ERROR(serialize_bytes(ser, serializer_is_reading(ser) ? &saved : &text, err));
	if (!serializer_is_reading(ser))
		return 0;
	mu_fail(e, (enum mu_code)code, "%.*s", saved.len < sizeof e->msg ? (int)saved.len : 0,
		saved.data ? saved.data : "");
	return 0;
}

static int serialize_buffered_element(struct serializer *ser, struct buffered_element *r,
				      unsigned n, struct mu_err *err)
{
	bool failed = r->err.code != MU_OK;
	int rc = serialize_flag(ser, &failed, err);

	if (rc || failed)
		return rc ? rc : serialize_failure(ser, &r->err, err);
	if (!(rc = serialize_element(ser, r->t, n, err)))
		r->n = n;
	return rc;
}

struct state {
	struct buffered_element *head, **tail;
	int64_t n;
	bool ended;
	struct dataset_iterator *dataset_iterator;
};

static void state_add(struct state *s, struct buffered_element *r)
{
	*s->tail = r;
	s->tail = &r->next;
	s->n++;
}

static void state_fini(struct state *s)
{
	for (struct buffered_element *r = s->head, *next; r; r = next) {
		next = r->next;
		buffered_element_free(r);
	}
}

static int serialize_buffer(struct serializer *ser, struct state *s, unsigned n, struct mu_err *err)
{
	int64_t left = s->n;
	int rc = serialize_number(ser, &left, 0, INT64_MAX, err);

	if (!serializer_is_reading(ser))
		for (struct buffered_element *r = s->head; r && !rc; r = r->next)
			rc = serialize_buffered_element(ser, r, n, err);
	for (; serializer_is_reading(ser) && left && !rc; left--) {
		struct buffered_element *r = buffered_element_new(n);
		state_add(s, r);
		rc = serialize_buffered_element(ser, r, n, err);
	}
	return rc;
}

static int serialize_state(struct serializer *ser, struct state *s, const struct dataset *d,
			   struct caller *caller, struct mu_err *err)
{
	int64_t version = VERSION;

	MU_RETURN_IF_ERROR(serialize_number(ser, &version, VERSION, VERSION, err));
	MU_RETURN_IF_ERROR(serialize_buffer(ser, s, d->n_out, err));
	MU_RETURN_IF_ERROR(serialize_flag(ser, &s->ended, err));
	return serialize_optional_iterator(ser, d, caller, &s->dataset_iterator, err);
}

/* ---- save and restore, on the thread ---- */

static int fail_changed_dataset(struct mu_err *err)
{
	return mu_fail(err, MU_ABORTED, "the iterator was given another dataset meanwhile");
}

/* Copies the buffered elements; fails if the iterator is in another round. */
static int copy_buffer(struct iterator *it, uint64_t round, struct state *s, struct mu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&it->waiters.lock);
	s->ended = it->ended;
	if (it->round != round)
		rc = fail_changed_dataset(err);
	for (const struct buffered_element *r = it->head; r && !rc; r = r->next) {
		struct buffered_element *copy = buffered_element_new(r->n);
		copy->err = r->err;
		copy->n = r->n;
		element_ref(copy->t, r->t, r->n);
		state_add(s, copy);
	}
	pthread_mutex_unlock(&it->waiters.lock);
	return rc;
}

/* Opens the dataset iterator if it is not open, because opening draws seeds, which are part of the
 * state. */
static int save(struct iterator *it, struct state_request *t, const struct dataset *d,
		uint64_t round, struct dataset_iterator **dataset_iterator, struct mu_err *err)
{
	struct state s = {.tail = &s.head};
	MU_AUTO_BUF b = {0};
	struct serializer ser = {.to = &b};
	int rc =
	    *dataset_iterator ? 0 : dataset_iterator_open(d, &it->caller, dataset_iterator, err);

	if (rc || (rc = copy_buffer(it, round, &s, err))) {
		state_fini(&s);
		return rc;
	}
	s.dataset_iterator = *dataset_iterator;
	if (!(rc = serialize_state(&ser, &s, d, &it->caller, err)))
		t->state = mu_encoded_new(MU_SPAN(ITERATOR_STATE_KIND), &b);
	state_fini(&s);
	return rc;
}

struct restore_request {
	struct iterator *it;
	struct state *s;
	uint64_t round;
	bool is_stale; /* set by install: the iterator has another dataset now */
};

static void install(void *arg)
{
	struct restore_request *n = arg;

	n->is_stale = n->round != n->it->round;
	if (n->is_stale)
		return;
	iterator_set_buffer(n->it, n->s->head);
	n->s->head = NULL;
	n->it->ended = n->s->ended;
}

static int restore(struct iterator *it, struct state_request *t, const struct dataset *d,
		   uint64_t round, struct dataset_iterator **dataset_iterator, struct mu_err *err)
{
	const struct mu_encoded *e = mu_encoded_of(t->state);
	struct serializer ser = {.from = mu_pb_of(mu_buf_span(&e->bytes))};
	struct state s = {.tail = &s.head};
	int rc = serialize_state(&ser, &s, d, &it->caller, err);

	if (!rc && ser.from.at != ser.from.end)
		rc = serializer_fail(err);
	if (!rc) {
		struct restore_request n = {it, &s, round, false};
		wait_queue_update(&it->waiters, install, &n);
		rc = n.is_stale ? fail_changed_dataset(err) : 0;
	}
	if (!rc) {
		struct dataset_iterator *old = *dataset_iterator;
		*dataset_iterator = s.dataset_iterator;
		s.dataset_iterator = old;
	}
	dataset_iterator_close(s.dataset_iterator);
	state_fini(&s);
	return rc;
}

static void mark_done(void *arg)
{
	((struct state_request *)arg)->done = true;
}

void iterator_end_request(struct iterator *it, struct state_request *t, const struct mu_err *err)
{
	t->err = *err;
	wait_queue_update(&it->waiters, mark_done, t);
	state_request_unref(t);
}

void iterator_execute_request(struct iterator *it, struct state_request *t, const struct dataset *d,
			      uint64_t round, struct dataset_iterator **dataset_iterator)
{
	struct mu_err err = {0};

	if (!d)
		mu_fail(&err, MU_FAILED_PRECONDITION,
			"the iterator has not been initialized: run its initializer before it is "
			"saved or restored");
	else if (t->restores)
		restore(it, t, d, round, dataset_iterator, &err);
	else
		save(it, t, d, round, dataset_iterator, &err);
	iterator_end_request(it, t, &err);
}
