/* SPDX-License-Identifier: Apache-2.0 */
/* Shuffling by a buffer.  With seeds the order is the one that TensorFlow gives: a generator of the
 * dataset draws two seeds for each iteration, or each has the dataset's own when it is not to
 * change; the element drawn makes place for the oldest one in the buffer. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "task/kernels/data/dataset.h"
#include "task/kernels/philox.h"

/* Philox draws four numbers at a time; these are taken one by one. */
struct draws {
	struct philox philox;
	uint32_t x[4];
	unsigned left;
};

static struct draws draws_seeded(uint64_t seed, uint64_t seed2)
{
	return (struct draws){.philox = philox_seeded(seed, seed2)};
}

static uint32_t draw(struct draws *d)
{
	if (!d->left) {
		philox_next(&d->philox, d->x);
		d->left = 4;
	}
	return d->x[4 - d->left--];
}

struct seeds {
	pthread_mutex_t lock;
	uint64_t fixed[2];
	struct draws draws;
};

enum { BUFFER_SIZE, SEED, SEED2 };

static int check_shuffle(struct dataset *d, struct mu_err *err)
{
	struct seeds *s = d->shared;

	pthread_mutex_init(&s->lock, NULL);
	s->fixed[0] = (uint64_t)dataset_number(d, SEED);
	s->fixed[1] = (uint64_t)dataset_number(d, SEED2);
	if (!s->fixed[0] && !s->fixed[1] &&
	    getrandom(s->fixed, sizeof s->fixed, 0) != sizeof s->fixed)
		return mu_fail_errno(err, errno, "no random seed from the system");
	s->draws = draws_seeded(s->fixed[0], s->fixed[1]);
	if (dataset_number(d, BUFFER_SIZE) < 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "buffer_size must be greater than zero.");
	return 0;
}

static void finish_shuffle(struct dataset *d)
{
	pthread_mutex_destroy(&((struct seeds *)d->shared)->lock);
}

/* A ring of buffer_size elements, of which only what has been used is there. */
struct shuffle {
	struct draws draws;
	struct mu_tensor *t;
	int64_t room, head, count;
	bool dry;
};

static int shuffle_open(struct cursor *c, struct mu_err *err)
{
	struct seeds *s = c->d->shared;
	struct shuffle *w = c->own;

	pthread_mutex_lock(&s->lock);
	uint64_t a = c->d->flag ? draw(&s->draws) : s->fixed[0];
	uint64_t b = c->d->flag ? draw(&s->draws) : s->fixed[1];
	pthread_mutex_unlock(&s->lock);
	w->draws = draws_seeded(a, b);
	return cursor_open_up(c, err);
}

static void shuffle_close(struct cursor *c)
{
	struct shuffle *w = c->own;

	for (int64_t i = 0; i < w->room * c->d->n_out; i++)
		mu_tensor_unref(&w->t[i]);
	free(w->t);
}

static int fill(struct cursor *c, struct shuffle *w, int64_t size, struct mu_err *err)
{
	unsigned n = c->d->n_out;

	while (!w->dry && w->count < size) {
		int64_t at = (w->head + w->count) % size;
		if (at >= w->room) {
			int64_t room = w->room ? 2 * w->room : 64;
			room = room < size ? room : size;
			w->t = mu_xrealloc(w->t, (size_t)room * n * sizeof *w->t);
			memset(w->t + w->room * n, 0, (size_t)(room - w->room) * n * sizeof *w->t);
			w->room = room;
		}
		int rc = cursor_next(c->up, &w->t[at * n], err);
		if (rc < 0)
			return rc;
		w->dry = rc == 0;
		w->count += rc;
	}
	return 0;
}

static int shuffle_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	int64_t size = dataset_number(c->d, BUFFER_SIZE);
	struct shuffle *w = c->own;
	unsigned n = c->d->n_out;
	int rc = fill(c, w, size, err);

	if (rc || !w->count)
		return rc;
	int64_t at = (w->head + draw(&w->draws) % w->count) % size;
	memcpy(out, &w->t[at * n], n * sizeof *out);
	memmove(&w->t[at * n], &w->t[w->head * n], n * sizeof *out);
	memset(&w->t[w->head * n], 0, n * sizeof *out);
	w->head = (w->head + 1) % size;
	w->count--;
	return 1;
}

const struct dataset_kind shuffle_kinds[] = {
    {"ShuffleDataset", .shared_size = sizeof(struct seeds), .cursor_size = sizeof(struct shuffle),
     .n_in = 1, .n_scalars = 3, .check = check_shuffle, .finish = finish_shuffle,
     .open = shuffle_open, .next = shuffle_next, .close = shuffle_close},
    {.op = NULL},
};
