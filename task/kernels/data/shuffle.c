/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that shuffle elements in a buffer, and datasets of random numbers and samples. With
 * seeds the order is TensorFlow's. Each pass over the input (a round) has two seeds: drawn from
 * the dataset's generator if it reshuffles, else the dataset's own. The oldest element of the
 * buffer fills the place of the drawn one, so that the head of the ring can advance. */
#include <pthread.h>
#include <string.h>

#include "lib/base/random.h"
#include "task/kernels/data/dataset.h"
#include "task/kernels/data/serializer.h"
#include "task/kernels/random/philox.h"

/* A Philox generator that returns the four numbers of a block one by one. */
struct draws {
	struct philox philox;
	uint32_t x[4];
	unsigned left;
};

static struct draws draws_seeded(uint64_t seed, uint64_t seed2)
{
	return (struct draws){.philox = philox_seeded(seed, seed2)};
}

static uint32_t draws_next(struct draws *d)
{
	if (!d->left) {
		philox_next(&d->philox, d->x);
		d->left = 4;
	}
	return d->x[4 - d->left--];
}

static int draws_serialize(struct draws *d, struct serializer *ser, struct mu_err *err)
{
	uint32_t *const words[] = {d->philox.counter, d->philox.key, d->x, &d->left};
	static const unsigned lengths[] = {4, 2, 4, 1};
	int rc = 0;

	for (unsigned i = 0; i < MU_COUNT(words); i++)
		for (unsigned k = 0; k < lengths[i] && !rc; k++)
			rc = serialize_word(ser, &words[i][k], err);
	return !rc && d->left > 4 ? serializer_fail(err) : rc;
}

struct seeds {
	pthread_mutex_t lock;
	uint64_t fixed[2];
	struct draws draws;
};

enum { BUFFER_SIZE, SEED, SEED2, COUNT };
enum { MAX_ROUNDS_AHEAD = 3 }; /* in the buffer beyond the current round */

static int64_t epochs_of(const struct dataset *d)
{
	return d->kind->n_scalars > COUNT ? dataset_number(d, COUNT) : 1;
}

/* A buffer of unknown size holds all elements of a round. */
static int64_t buffer_size(const struct dataset *d)
{
	int64_t n = dataset_number(d, BUFFER_SIZE);

	return n == UNKNOWN_CARDINALITY ? INT64_MAX / 2 : n;
}

/* Sets the seeds to the scalar parameters `first` and `first` + 1. */
static int init_seeds(struct dataset *d, unsigned first, struct mu_err *err)
{
	struct seeds *s = d->shared;

	pthread_mutex_init(&s->lock, NULL);
	s->fixed[0] = (uint64_t)dataset_number(d, first);
	s->fixed[1] = (uint64_t)dataset_number(d, first + 1);
	if (!s->fixed[0] && !s->fixed[1])
		s->fixed[0] = mu_random_u64();
	s->draws = draws_seeded(s->fixed[0], s->fixed[1]);
	return 0;
}

static int check_shuffle(struct dataset *d, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(init_seeds(d, SEED, err));
	if (epochs_of(d) < 1 && epochs_of(d) != -1)
		return mu_invalid(err, "count must be greater than zero or equal to -1.");
	if (dataset_number(d, BUFFER_SIZE) == UNKNOWN_CARDINALITY && epochs_of(d) != 1)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "buffer_size UNKNOWN_CARDINALITY with repeats in the same op");
	if (dataset_number(d, BUFFER_SIZE) < 1 &&
	    dataset_number(d, BUFFER_SIZE) != UNKNOWN_CARDINALITY)
		return mu_invalid(err,
				  "buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
	return 0;
}

/* Serializes the generator of the seeds of later rounds. */
static int seeds_serialize(const struct dataset *d, struct serializer *ser, struct mu_err *err)
{
	struct seeds *s = d->shared, saved;
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	memcpy(saved.fixed, s->fixed, sizeof saved.fixed);
	saved.draws = s->draws;
	for (unsigned i = 0; i < MU_COUNT(saved.fixed) && !rc; i++)
		rc = serialize_number(ser, (int64_t *)&saved.fixed[i], INT64_MIN, INT64_MAX, err);
	if (!rc && !(rc = draws_serialize(&saved.draws, ser, err))) {
		memcpy(s->fixed, saved.fixed, sizeof saved.fixed);
		s->draws = saved.draws;
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

static void finish_shuffle(struct dataset *d)
{
	pthread_mutex_destroy(&((struct seeds *)d->shared)->lock);
}

/* A ring buffer of buffer_size elements, which grows as it is filled. With repetition it also has
 * elements of the next rounds; a draw takes one of the current round. */
struct shuffle {
	struct draws draws;
	struct mu_tensor *t;
	int64_t cap, head, count; /* count: elements of all rounds */
	int64_t *rounds;          /* buffered elements of each round */
	int64_t first, n_rounds;  /* index of the current round in `rounds`, and its length */
	int64_t rounds_begun;
	bool round_has_elements; /* the round that reads the input has returned an element */
};

/* New seeds for each round if the dataset reshuffles (d->op_flag), else the same ones. */
static struct draws draws_of_round(const struct dataset *d)
{
	struct seeds *s = d->shared;

	pthread_mutex_lock(&s->lock);
	uint64_t a = d->op_flag ? draws_next(&s->draws) : s->fixed[0];
	uint64_t b = d->op_flag ? draws_next(&s->draws) : s->fixed[1];
	pthread_mutex_unlock(&s->lock);
	return draws_seeded(a, b);
}

static void end_round(struct dataset_iterator *it, struct shuffle *w)
{
	if (++w->first > w->n_rounds / 2) {
		w->n_rounds -= w->first;
		memmove(w->rounds, w->rounds + w->first, (size_t)w->n_rounds * sizeof *w->rounds);
		w->first = 0;
	}
	w->draws = draws_of_round(it->d);
}

static int begin_round(struct dataset_iterator *it, struct shuffle *w, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(dataset_iterator_open_input(it, err));
	if (!w->count && w->n_rounds > w->first)
		end_round(it, w); /* limits the list of rounds without elements */
	w->rounds = mu_xrealloc(w->rounds, (size_t)(w->n_rounds + 1) * sizeof *w->rounds);
	w->rounds[w->n_rounds++] = 0;
	w->rounds_begun++;
	w->round_has_elements = false;
	return 0;
}

static int shuffle_open(struct dataset_iterator *it, struct mu_err *err)
{
	((struct shuffle *)it->state)->draws = draws_of_round(it->d);
	return begin_round(it, it->state, err);
}

static void shuffle_close(struct dataset_iterator *it)
{
	struct shuffle *w = it->state;

	for (int64_t i = 0; i < w->cap * it->d->n_out; i++)
		mu_tensor_unref(&w->t[i]);
	free(w->t);
	free(w->rounds);
}

static void shuffle_reserve(struct shuffle *w, int64_t at, int64_t size, unsigned n)
{
	if (at < w->cap)
		return;
	int64_t cap = w->cap ? 2 * w->cap : 64;
	cap = cap < size ? cap : size;
	w->t = mu_xrealloc(w->t, (size_t)cap * n * sizeof *w->t);
	memset(w->t + w->cap * n, 0, (size_t)(cap - w->cap) * n * sizeof *w->t);
	w->cap = cap;
}

static int shuffle_fill(struct dataset_iterator *it, struct shuffle *w, int64_t size,
			struct mu_err *err)
{
	int64_t max_rounds = epochs_of(it->d);
	unsigned n = it->d->n_out;
	int rc;

	while (it->input && w->count < size &&
	       !(w->count && w->n_rounds - w->first > MAX_ROUNDS_AHEAD)) {
		int64_t at = (w->head + w->count) % size;
		shuffle_reserve(w, at, size, n);
		if ((rc = dataset_iterator_next(it->input, &w->t[at * n], err)) < 0)
			return rc;
		if (rc) {
			w->round_has_elements = true;
			w->count++;
			w->rounds[w->n_rounds - 1]++;
			continue;
		}
		dataset_iterator_close_input(it);
		/* a negative count repeats forever, but a round without elements ends it */
		if ((max_rounds < 0 ? w->round_has_elements : w->rounds_begun < max_rounds) &&
		    (rc = begin_round(it, w, err)))
			return rc;
	}
	return 0;
}

static int shuffle_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int64_t size = buffer_size(it->d);
	struct shuffle *w = it->state;
	unsigned n = it->d->n_out;

	MU_RETURN_IF_ERROR(shuffle_fill(it, w, size, err));
	if (!w->count)
		return 0;
	while (!w->rounds[w->first])
		end_round(it, w);
	int64_t at = (w->head + draws_next(&w->draws) % w->rounds[w->first]) % size;
	memcpy(out, &w->t[at * n], n * sizeof *out);
	memmove(&w->t[at * n], &w->t[w->head * n], n * sizeof *out);
	memset(&w->t[w->head * n], 0, n * sizeof *out);
	w->head = (w->head + 1) % size;
	w->count--;
	w->rounds[w->first]--;
	return 1;
}

/* Saves or restores the number of buffered elements of each round; restored ones begin at the start
 * of the ring. */
static int rounds_serialize(struct shuffle *w, int64_t size, struct serializer *ser,
			    struct mu_err *err)
{
	int64_t n = w->n_rounds - w->first, sum = 0;

	MU_RETURN_IF_ERROR(serialize_number(ser, &w->count, 0, size, err));
	MU_RETURN_IF_ERROR(serialize_number(ser, &w->rounds_begun, 1, INT64_MAX - 1, err));
	MU_RETURN_IF_ERROR(serialize_number(ser, &n, 1, INT64_MAX, err));
	if (serializer_is_reading(ser)) {
		if (n > ser->from.end - ser->from.at) /* each has at least one byte */
			return serializer_fail(err);
		w->rounds = mu_xrealloc(w->rounds, (size_t)n * sizeof *w->rounds);
		w->n_rounds = n;
		w->first = w->head = 0;
	}
	for (int64_t i = w->first; i < w->n_rounds; i++) {
		MU_RETURN_IF_ERROR(serialize_number(ser, &w->rounds[i], 0, w->count, err));
		sum += w->rounds[i];
	}
	return sum != w->count ? serializer_fail(err) : 0;
}

static int shuffle_serialize(struct dataset_iterator *it, struct serializer *ser,
			     struct mu_err *err)
{
	int64_t size = buffer_size(it->d);
	struct shuffle *w = it->state;
	unsigned n = it->d->n_out;

	MU_RETURN_IF_ERROR(seeds_serialize(it->d, ser, err));
	MU_RETURN_IF_ERROR(draws_serialize(&w->draws, ser, err));
	MU_RETURN_IF_ERROR(serialize_flag(ser, &w->round_has_elements, err));
	MU_RETURN_IF_ERROR(rounds_serialize(w, size, ser, err));
	for (int64_t i = 0; i < w->count; i++) {
		int64_t at = (w->head + i) % size;
		shuffle_reserve(w, at, size, n);
		MU_RETURN_IF_ERROR(serialize_element(ser, &w->t[at * n], n, err));
	}
	return 0;
}

static int64_t shuffle_cardinality(const struct dataset *d, int64_t n)
{
	int64_t rounds = epochs_of(d), total;

	if (n == UNKNOWN_CARDINALITY || n == 0 || rounds == 0)
		return rounds == 0 ? 0 : n;
	if (n < 0 || rounds < 0 || __builtin_mul_overflow(n, rounds, &total))
		return INFINITE_CARDINALITY;
	return total;
}

/* ---- datasets of random numbers, and random samples ---- */

static int seeded_open(struct dataset_iterator *it, struct mu_err *err)
{
	uint64_t seed[2] = {(uint64_t)dataset_number(it->d, 0), (uint64_t)dataset_number(it->d, 1)};

	if (!seed[0] && !seed[1])
		seed[0] = mu_random_u64();
	*(struct draws *)it->state = draws_seeded(seed[0], seed[1]);
	return it->d->n_in ? dataset_iterator_open_input(it, err) : 0;
}

static int check_random(struct dataset *d, struct mu_err *err)
{
	return d->n_out == 1 ? 0 : mu_invalid(err, "random numbers are one component");
}

static int check_random_rounds(struct dataset *d, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(init_seeds(d, 0, err));
	return check_random(d, err);
}

static int random_open(struct dataset_iterator *it, struct mu_err *err)
{
	*(struct draws *)it->state = draws_of_round(it->d);
	return 0;
}

static int random_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(it->d->shared ? seeds_serialize(it->d, ser, err) : 0);
	return draws_serialize(it->state, ser, err);
}

static int random_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int64_t x = draws_next(it->state);

	MU_RETURN_IF_ERROR(mu_tensor_scalar(out, MU_INT64, &x, err));
	return 1;
}

static int64_t infinite_cardinality(const struct dataset *d, int64_t n)
{
	return INFINITE_CARDINALITY;
}

static int check_sampling(struct dataset *d, struct mu_err *err)
{
	return d->n_params_before_captured == 1 && d->params[0].dtype == MU_FLOAT &&
		       d->params[0].shape.count == 1
		   ? 0
		   : mu_invalid(err, "rate must be one float");
}

static int sample_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct draws *draws = it->state;
	int rc;

	while ((rc = dataset_iterator_next(it->input, out, err)) > 0) {
		if (philox_float(draws_next(draws)) < MU_DATA(float, &it->d->params[0])[0])
			return 1;
		element_drop(out, it->d->n_out);
	}
	return rc;
}

#define SHUFFLE                                                                                    \
	.shared_size = sizeof(struct seeds), .state_size = sizeof(struct shuffle), .n_in = 1,      \
	.check = check_shuffle, .finish = finish_shuffle, .open = shuffle_open,                    \
	.next = shuffle_next, .close = shuffle_close, .cardinality = shuffle_cardinality,          \
	.serialize = shuffle_serialize, .releases_input = true
#define RANDOM                                                                                     \
	.state_size = sizeof(struct draws), .n_scalars = 2, .check = check_random,                 \
	.open = seeded_open, .next = random_next, .cardinality = infinite_cardinality,             \
	.serialize = random_serialize
static const struct dataset_kind rows[] = {
    {DATASET("ShuffleDataset"), SHUFFLE, .n_scalars = 3, .is_copied = true},
    {DATASET("ShuffleAndRepeatDataset"), SHUFFLE, .n_scalars = 4, .is_copied = true},
    /* the last input is the generator, which the uses of the dataset share */
    {DATASET("ShuffleDatasetV3"), SHUFFLE, .n_scalars = 3, .n_ignored_inputs = 1},
    {DATASET("ShuffleAndRepeatDatasetV2"), SHUFFLE, .n_scalars = 4, .n_ignored_inputs = 1},
    {DATASET("RandomDataset ExperimentalRandomDataset"), RANDOM},
    {DATASET("RandomDatasetV2"), .shared_size = sizeof(struct seeds),
     .state_size = sizeof(struct draws), .n_scalars = 2, .n_ignored_inputs = 1,
     .check = check_random_rounds, .finish = finish_shuffle, .open = random_open,
     .next = random_next, .cardinality = infinite_cardinality, .serialize = random_serialize},
    {DATASET("SamplingDataset"), .state_size = sizeof(struct draws), .n_in = 1, .n_scalars = 2,
     .check = check_sampling, .open = seeded_open, .next = sample_next,
     .cardinality = dataset_unknown_cardinality, .serialize = random_serialize},
};
KERNEL_TABLE(data_shuffle, rows)
