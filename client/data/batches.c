/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of a data set. The row order is shuffled again for each epoch.
 *
 * With `ahead` batches a thread prefetches, and only that thread accesses order, at and state. The
 * slots form a ring. Slots [n_taken, n_filled) are filled. The slot before n_taken belongs to the
 * caller until the next call. The session of a synchronous worker may hold the slot before that:
 * the feeds of its last step. The thread may fill all other slots. Without a thread a free slot is
 * filled on demand.
 */
#include <pthread.h>

#include "client/data/shuffle.h"
#include "muster/data.h"

enum { HELD_SLOTS = 2 };

struct slot {
	struct mu_tensor x, y;
};

struct mu_batches {
	const struct mu_dataset *d;
	struct mu_batch_options o;
	int64_t *order, rows, at, round;
	uint64_t state;
	struct slot *slots;
	unsigned n_slots;
	/* prefetching only */
	pthread_t thread;
	pthread_mutex_t lock; /* guards the following fields */
	pthread_cond_t change;
	uint64_t n_filled, n_taken;
	bool running, stopping;
	int rc; /* error of the batch after the last filled slot */
	struct mu_err err;
};

static void begin_epoch(struct mu_batches *b)
{
	if (!b->o.in_order)
		data_shuffle(b->order, b->rows, &b->state);
	b->at = 0;
}

/* Reuses the slot's tensors if it holds the only reference to them. */
static int reserve_slot(struct mu_batches *b, struct slot *s, int64_t rows, struct mu_err *err)
{
	struct mu_tensor x, y;
	struct mu_shape sx, sy;
	int rc;

	if (mu_tensor_is_set(&s->x) && s->y.shape.count == rows && mu_tensor_is_sole(&s->x) &&
	    mu_tensor_is_sole(&s->y))
		return 0;
	rc = mu_shape_set(&sx, 2, (int64_t[]){rows, b->d->features}, err);
	if (!rc)
		rc = mu_shape_set(&sy, 1, &rows, err);
	if (!rc)
		rc = mu_tensor_new(&x, MU_FLOAT, &sx, err);
	if (rc)
		return rc;
	rc = mu_tensor_new(&y, MU_INT32, &sy, err);
	if (rc) {
		mu_tensor_unref(&x);
		return rc;
	}
	mu_tensor_unref(&s->x);
	mu_tensor_unref(&s->y);
	s->x = x;
	s->y = y;
	return 0;
}

/* Number of rows in the next batch; 0 at the end of the last epoch. */
static int64_t next_batch_rows(const struct mu_batches *b)
{
	int64_t left;

	if (!b->o.rounds)
		return b->o.batch;
	left = (b->o.rounds - b->round) * b->rows - b->at;
	return left < b->o.batch ? left : b->o.batch;
}

static int fill_slot(struct mu_batches *b, struct slot *s, struct mu_err *err)
{
	size_t width = (size_t)b->d->features;
	int64_t n = next_batch_rows(b);
	int rc =
	    n > 0 ? reserve_slot(b, s, n, err)
		  : mu_fail(err, MU_OUT_OF_RANGE, "end of data: the data set was read %lld times",
			    (long long)b->o.rounds);

	if (rc)
		return rc;
	for (int64_t i = 0; i < n; i++) {
		if (b->at == b->rows) {
			b->round++;
			begin_epoch(b);
		}
		int64_t r = b->order[b->at++];

		mu_dataset_row(b->d, r, MU_DATA(float, &s->x) + (size_t)i * width);
		MU_DATA(int32_t, &s->y)[i] = MU_DATA(int32_t, &b->d->y)[r];
	}
	return 0;
}

/* ---- prefetching ---- */

static void *prefetch_thread(void *arg)
{
	struct mu_batches *b = arg;

	pthread_mutex_lock(&b->lock);
	while (!b->stopping && !b->rc) {
		if (b->n_filled - b->n_taken >= b->n_slots - HELD_SLOTS) {
			pthread_cond_wait(&b->change, &b->lock);
			continue;
		}
		struct slot *s = &b->slots[b->n_filled % b->n_slots];
		struct mu_err err = {0};

		pthread_mutex_unlock(&b->lock);
		int rc = fill_slot(b, s, &err);

		pthread_mutex_lock(&b->lock);
		if (rc) {
			b->rc = rc;
			b->err = err;
		} else {
			b->n_filled++;
		}
		pthread_cond_signal(&b->change);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

static int take_slot(struct mu_batches *b, struct slot **s, struct mu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&b->lock);
	while (b->n_filled == b->n_taken && !b->rc)
		pthread_cond_wait(&b->change, &b->lock);
	if (b->n_filled > b->n_taken)
		*s = &b->slots[b->n_taken++ % b->n_slots];
	else
		rc = mu_fail(err, b->err.code, "%s", b->err.msg);
	pthread_cond_signal(&b->change);
	pthread_mutex_unlock(&b->lock);
	return rc;
}

/* ---- public functions ---- */

static int choose_rows(struct mu_batches *b, struct mu_err *err)
{
	int64_t parts = b->o.parts ? b->o.parts : 1;

	if (parts < 1 || b->o.part < 0 || b->o.part >= parts || b->o.batch < 1 || b->o.rounds < 0)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "batches of %lld rows of part %lld of %lld: the part must be below "
			       "the number of parts and a batch needs a row",
			       (long long)b->o.batch, (long long)b->o.part, (long long)parts);
	b->order = MU_NEW_ARRAY(int64_t, (size_t)(b->d->rows / parts) + 1);
	for (int64_t i = b->o.part; i < b->d->rows; i += parts)
		b->order[b->rows++] = i;
	return b->rows ? 0
		       : mu_fail(err, MU_OUT_OF_RANGE,
				 "the data set has %lld rows, none for part "
				 "%lld of %lld",
				 (long long)b->d->rows, (long long)b->o.part, (long long)parts);
}

static int start_batches(struct mu_batches *b, struct mu_err *err)
{
	int rc = choose_rows(b, err);

	if (rc)
		return rc;
	begin_epoch(b);
	b->n_slots = b->o.prefetch + HELD_SLOTS;
	b->slots = MU_NEW_ARRAY(struct slot, b->n_slots);
	if (!b->o.prefetch)
		return 0;
	rc = pthread_create(&b->thread, NULL, prefetch_thread, b);
	if (rc)
		return mu_fail_errno(err, rc, "start the prefetch thread");
	b->running = true;
	return 0;
}

int mu_batches_open(struct mu_batches **out, const struct mu_dataset *d,
		    const struct mu_batch_options *o, struct mu_err *err)
{
	struct mu_batches *b = MU_NEW(struct mu_batches);
	int rc;

	b->d = d;
	b->o = *o;
	b->state = o->seed;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->change, NULL);
	rc = start_batches(b, err);
	if (rc)
		mu_batches_free(b);
	else
		*out = b;
	return rc;
}

void mu_batches_free(struct mu_batches *b)
{
	if (!b)
		return;
	if (b->running) {
		pthread_mutex_lock(&b->lock);
		b->stopping = true;
		pthread_cond_signal(&b->change);
		pthread_mutex_unlock(&b->lock);
		pthread_join(b->thread, NULL);
	}
	for (unsigned i = 0; i < b->n_slots; i++) {
		mu_tensor_unref(&b->slots[i].x);
		mu_tensor_unref(&b->slots[i].y);
	}
	pthread_cond_destroy(&b->change);
	pthread_mutex_destroy(&b->lock);
	free(b->slots);
	free(b->order);
	free(b);
}

int mu_batches_next(struct mu_batches *b, const struct mu_tensor **x, const struct mu_tensor **y,
		    struct mu_err *err)
{
	struct slot *s = b->slots;
	int rc;

	if (b->running) {
		rc = take_slot(b, &s, err);
	} else {
		if (mu_tensor_is_set(&s->x) && !mu_tensor_is_sole(&s->x))
			s++; /* the caller still holds the first one */
		rc = fill_slot(b, s, err);
	}
	if (rc)
		return rc;
	*x = &s->x;
	*y = &s->y;
	return 0;
}
