/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that return elements of their inputs unchanged: take, skip, shard, repeat, zip,
 * concatenate, cache, and hints without an effect on the elements. */
#include <pthread.h>
#include <time.h>

#include "task/kernels/data/element_list.h"
#include "task/kernels/data/serializer.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"

struct count {
	int64_t at;
	bool has_elements; /* RepeatDataset: the current repetition had an element */
};

static int count_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	struct count *n = it->state;

	MU_RETURN_IF_ERROR(serialize_number(ser, &n->at, 0, INT64_MAX, err));
	return serialize_flag(ser, &n->has_elements, err);
}

/* ---- the same elements: the iterator resource prefetches, options are hints ---- */

static int pass_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	return dataset_iterator_next(it->input, out, err);
}

bool dataset_has_same_elements(const struct dataset *d)
{
	return d->kind->next == pass_next;
}

static int check_prefetch(struct dataset *d, struct mu_err *err)
{
	return dataset_number(d, 0) >= -1
		   ? 0
		   : mu_invalid(err, "buffer_size must be >= 0 or set buffer_size to be -1 for "
				     "auto-tuning");
}

/* The datasets have the same elements, so there is no need to measure which one is faster. */
static int check_fastest(struct dataset *d, struct mu_err *err)
{
	int64_t n = d->in[0]->cardinality, other;

	for (unsigned i = 0; i < d->n_in; i++) {
		if (d->in[i]->n_out != d->n_out)
			return mu_invalid(
			    err,
			    "All inputs to ChooseFastestDataset must have compatible "
			    "outputs. Input %u has %u components. Expected to have %u "
			    "components.",
			    i, d->in[i]->n_out, d->n_out);
		other = d->in[i]->cardinality;
		if (n != UNKNOWN_CARDINALITY && other != UNKNOWN_CARDINALITY && other != n)
			return mu_invalid(
			    err,
			    "All inputs to ChooseFastestDataset must have compatible "
			    "cardinalities. Input %u has cardinality: %lld, while all "
			    "prior inputs have cardinality: %lld.",
			    i, (long long)other, (long long)n);
		n = n == UNKNOWN_CARDINALITY ? other : n;
	}
	return 0;
}

/* ---- sleep ---- */

enum { SLEEP_SLICE_US = 20000 }; /* a stopped iterator ends within a slice */

static int check_sleep(struct dataset *d, struct mu_err *err)
{
	return dataset_number(d, 0) >= 0 ? 0 : mu_invalid(err, "`sleep_microseconds` must be >= 0");
}

static int sleep_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int64_t us = dataset_number(it->d, 0);

	for (int64_t slice; us > 0 && !caller_stopped(it->caller); us -= slice) {
		slice = us < SLEEP_SLICE_US ? us : SLEEP_SLICE_US;
		nanosleep(&(struct timespec){.tv_nsec = slice * 1000}, NULL);
	}
	return dataset_iterator_next(it->input, out, err);
}

/* ---- take, skip, shard, repeat ---- */

static int take_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int64_t limit = dataset_number(it->d, 0);
	struct count *n = it->state;

	if (it->input && (limit < 0 || n->at < limit)) {
		int rc = dataset_iterator_next(it->input, out, err);
		n->at += rc > 0; /* an element that fails is not counted */
		return rc;
	}
	dataset_iterator_close_input(it); /* a cache below may hold a lock file */
	return 0;
}

/* Skips n elements of the input.  After a failed element, the next call skips n again, as in
 * TensorFlow. */
static int skip_input(struct dataset_iterator *it, int64_t n, struct mu_tensor *out,
		      struct mu_err *err)
{
	int rc = 1;

	for (; n > 0 && rc > 0; n--)
		if ((rc = dataset_iterator_next(it->input, out, err)) > 0)
			element_drop(out, it->d->n_out);
	return rc;
}

static int skip_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int64_t skip = dataset_number(it->d, 0);
	struct count *n = it->state;
	int rc = 1;

	if (skip < 0)
		return 0;
	if (!n->at)
		rc = skip_input(it, skip, out, err);
	if (rc <= 0)
		return rc;
	n->at = 1;
	return dataset_iterator_next(it->input, out, err);
}

static int check_shard(struct dataset *d, struct mu_err *err)
{
	int64_t n = dataset_number(d, 0), i = dataset_number(d, 1);

	if (n < 1)
		return mu_invalid(
		    err,
		    "Number of shards must be greater than zero (currently num_shards = %lld).",
		    (long long)n);
	if (i < 0 || i >= n)
		return mu_invalid(err, "Index must be between 0 and %lld (currently index = %lld).",
				  (long long)n - 1, (long long)i);
	return 0;
}

static int shard_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int64_t shards = dataset_number(it->d, 0), index = dataset_number(it->d, 1);
	struct count *n = it->state; /* `at` is the input's next element, modulo the shards */
	int64_t skip = index - n->at % shards;
	int rc = skip_input(it, skip < 0 ? skip + shards : skip, out, err);

	if (rc <= 0)
		return rc;
	rc = dataset_iterator_next(it->input, out, err);
	n->at = index + (rc > 0);
	return rc;
}

/* The elements that one of several workers reads. TensorFlow may instead distribute whole files,
 * which only changes which worker reads which element. */
enum { POLICY_OFF = -1 };

static void pass_read_policy(struct dataset *d, const struct mu_node *n)
{
	d->op_flag = args_attr_int(n, "auto_shard_policy", 0) != POLICY_OFF;
}

static int auto_shard_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	return (it->d->op_flag ? shard_next : pass_next)(it, out, err);
}

/* Opens the input at once, because its iterators draw their seeds when they are opened. */
static int repeat_open(struct dataset_iterator *it, struct mu_err *err)
{
	return dataset_number(it->d, 0) ? dataset_iterator_open_input(it, err) : 0;
}

/* A negative count repeats forever, but a repetition without elements ends the dataset. */
static int repeat_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int64_t repetitions = dataset_number(it->d, 0);
	struct count *n = it->state;
	int rc;

	while (repetitions < 0 || n->at < repetitions) {
		if (!it->input && (rc = dataset_iterator_open_input(it, err)))
			return rc;
		if ((rc = dataset_iterator_next(it->input, out, err))) {
			n->has_elements |= rc > 0;
			return rc;
		}
		dataset_iterator_close_input(it);
		n->at++;
		if (repetitions < 0 && !n->has_elements)
			return 0;
		n->has_elements = false;
	}
	return 0;
}

/* ---- zip and concatenate ---- */

struct zip_state {
	struct dataset_iterator **inputs;
};

static int zip_open(struct dataset_iterator *it, struct mu_err *err)
{
	struct zip_state *s = it->state;
	unsigned total = 0;

	for (unsigned i = 0; i < it->d->n_in; i++)
		total += it->d->in[i]->n_out;
	if (total != it->d->n_out)
		return mu_invalid(err, "%u components are zipped to %u", total, it->d->n_out);
	s->inputs = MU_NEW_ARRAY(struct dataset_iterator *, it->d->n_in + 1);
	for (unsigned i = 0; i < it->d->n_in; i++)
		MU_RETURN_IF_ERROR(
		    dataset_iterator_open(it->d->in[i], it->caller, &s->inputs[i], err));
	return 0;
}

static void zip_close(struct dataset_iterator *it)
{
	struct zip_state *s = it->state;

	for (unsigned i = 0; s->inputs && i < it->d->n_in; i++)
		dataset_iterator_close(s->inputs[i]);
	free(s->inputs);
}

static int zip_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct zip_state *s = it->state;
	unsigned at = 0;
	int rc = 1;

	/* After an error in one input, the others still advance, so that all stay aligned. */
	for (unsigned i = 0; i < it->d->n_in && rc; i++) {
		struct mu_err ignored;
		int got = dataset_iterator_next(s->inputs[i], out + at, rc < 0 ? &ignored : err);

		if (got > 0)
			at += it->d->in[i]->n_out;
		else if (rc > 0)
			rc = got;
	}
	if (rc <= 0)
		element_drop(out, at);
	return rc;
}

static int zip_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	struct zip_state *s = it->state;

	for (unsigned i = 0; i < it->d->n_in; i++)
		MU_RETURN_IF_ERROR(serialize_dataset_iterator(ser, s->inputs[i], err));
	return 0;
}

static int check_concatenate(struct dataset *d, struct mu_err *err)
{
	return d->in[0]->n_out == d->in[1]->n_out && d->in[0]->n_out == d->n_out
		   ? 0
		   : mu_invalid(err, "datasets of %u and %u components cannot follow each other",
				d->in[0]->n_out, d->in[1]->n_out);
}

static int concatenate_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct count *n = it->state;

	for (; n->at < 2; n->at++) {
		MU_RETURN_IF_ERROR(it->input ? 0
					     : dataset_iterator_open(it->d->in[n->at], it->caller,
								     &it->input, err));
		MU_RETURN_IF_ERROR(dataset_iterator_next(it->input, out, err));
		dataset_iterator_close_input(it);
	}
	return 0;
}

/* The saved position selects the dataset of the input iterator. */
static int concatenate_serialize(struct dataset_iterator *it, struct serializer *ser,
				 struct mu_err *err)
{
	struct count *n = it->state;

	MU_RETURN_IF_ERROR(count_serialize(it, ser, err));
	if (!serializer_is_reading(ser))
		return 0;
	dataset_iterator_close_input(it);
	return n->at == 1 ? dataset_iterator_open(it->d->in[1], it->caller, &it->input, err) : 0;
}

/* ---- cache in memory ---- */

struct cache {
	pthread_mutex_t lock;
	struct element_list elements;
	bool is_complete; /* `elements` does not change any more */
};

/* An iterator that opens after the cache is complete reads the cache; others read the input.  The
 * elements of the first iterator that reaches the end become the cache. */
struct cache_iterator {
	bool reads_cache;
	int64_t at;                         /* in the cache */
	struct element_list input_elements; /* read so far */
};

static int check_cache(struct dataset *d, struct mu_err *err)
{
	const struct mu_tensor *name = d->n_params ? &d->params[0] : NULL;

	pthread_mutex_init(&((struct cache *)d->shared)->lock, NULL);
	if (!name || name->dtype != MU_STRING || name->shape.count != 1)
		return mu_invalid(err, "filename must be one string");
	if (MU_DATA(struct mu_string, name)->len)
		d->kind = &file_cache_kind;
	return 0;
}

static void finish_cache(struct dataset *d)
{
	struct cache *k = d->shared;

	element_list_fini(&k->elements, d->n_out);
	pthread_mutex_destroy(&k->lock);
}

static int cache_open(struct dataset_iterator *it, struct mu_err *err)
{
	struct cache_iterator *w = it->state;
	struct cache *k = it->d->shared;

	pthread_mutex_lock(&k->lock);
	w->reads_cache = k->is_complete;
	pthread_mutex_unlock(&k->lock);
	return w->reads_cache ? 0 : dataset_iterator_open_input(it, err);
}

static void cache_close(struct dataset_iterator *it)
{
	element_list_fini(&((struct cache_iterator *)it->state)->input_elements, it->d->n_out);
}

static void fill_cache(struct cache *k, struct element_list *l)
{
	pthread_mutex_lock(&k->lock);
	if (!k->is_complete) {
		k->elements = *l;
		k->is_complete = true;
		*l = (struct element_list){0};
	}
	pthread_mutex_unlock(&k->lock);
}

static int cache_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct cache_iterator *w = it->state;
	struct cache *k = it->d->shared;
	unsigned n = it->d->n_out;

	if (w->reads_cache) {
		if (w->at >= k->elements.n)
			return 0;
		element_ref(out, &k->elements.t[w->at++ * n], n);
		return 1;
	}
	int rc = it->input ? dataset_iterator_next(it->input, out, err) : 0;
	if (rc > 0) {
		element_ref(element_list_next(&w->input_elements, n), out, n);
		w->input_elements.n++;
	} else if (!rc) {
		fill_cache(k, &w->input_elements);
	}
	return rc;
}

static int cache_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	struct cache_iterator *w = it->state;
	struct cache *k = it->d->shared;
	bool saves_cache = w->reads_cache && !serializer_is_reading(ser);

	MU_RETURN_IF_ERROR(serialize_flag(ser, &w->reads_cache, err));
	MU_RETURN_IF_ERROR(serialize_number(ser, &w->at, 0, INT64_MAX, err));
	MU_RETURN_IF_ERROR(serialize_element_list(
	    ser, saves_cache ? &k->elements : &w->input_elements, it->d->n_out, err));
	if (serializer_is_reading(ser) && w->reads_cache)
		fill_cache(k, &w->input_elements);
	return 0;
}

/* ---- cardinality ---- */

static int64_t take_cardinality(const struct dataset *d, int64_t n)
{
	int64_t limit = dataset_number(d, 0);

	if (limit < 0 || n == UNKNOWN_CARDINALITY)
		return limit == 0 ? 0 : n;
	return n < 0 || n > limit ? limit : n;
}

static int64_t skip_cardinality(const struct dataset *d, int64_t n)
{
	int64_t skip = dataset_number(d, 0);

	if (n < 0)
		return skip < 0 ? 0 : n;
	return skip < 0 || skip > n ? 0 : n - skip;
}

static int64_t shard_cardinality(const struct dataset *d, int64_t n)
{
	int64_t shards = dataset_number(d, 0);

	return n < 0 ? n : n / shards + (dataset_number(d, 1) < n % shards);
}

static int64_t auto_shard_cardinality(const struct dataset *d, int64_t n)
{
	return d->op_flag ? shard_cardinality(d, n) : n;
}

static int64_t repeat_cardinality(const struct dataset *d, int64_t n)
{
	int64_t repetitions = dataset_number(d, 0), total;

	if (repetitions == 0 || n == 0)
		return 0;
	if (repetitions < 0 || n == INFINITE_CARDINALITY)
		return INFINITE_CARDINALITY;
	return n < 0                                            ? n
	       : __builtin_mul_overflow(n, repetitions, &total) ? INFINITE_CARDINALITY
								: total;
}

/* The smallest cardinality among the finite inputs. */
static int64_t zip_cardinality(const struct dataset *d, int64_t n)
{
	int64_t min = INFINITE_CARDINALITY;

	for (unsigned i = 0; i < d->n_in; i++) {
		n = d->in[i]->cardinality;
		if (n == UNKNOWN_CARDINALITY)
			return n;
		if (n != INFINITE_CARDINALITY && (min == INFINITE_CARDINALITY || n < min))
			min = n;
	}
	return min;
}

static int64_t concatenate_cardinality(const struct dataset *d, int64_t n)
{
	int64_t second = d->in[1]->cardinality, total;

	if (n == INFINITE_CARDINALITY || second == INFINITE_CARDINALITY)
		return INFINITE_CARDINALITY;
	return n < 0 || second < 0                         ? UNKNOWN_CARDINALITY
	       : __builtin_add_overflow(n, second, &total) ? INFINITE_CARDINALITY
							   : total;
}

#define PASS    .n_in = 1, .open = dataset_iterator_open_input, .next = pass_next
#define COUNTED .state_size = sizeof(struct count), .n_in = 1, .serialize = count_serialize
#define CACHE                                                                                      \
	.state_size = sizeof(struct cache_iterator), .n_in = 1,                                    \
	.shared_size = sizeof(struct cache), .check = check_cache, .finish = finish_cache,         \
	.open = cache_open, .next = cache_next, .close = cache_close,                              \
	.serialize = cache_serialize, .releases_input = true
#define AUTO_SHARD                                                                                 \
	COUNTED, .n_scalars = 2, .check = check_shard, .read = pass_read_policy,                   \
		 .open = dataset_iterator_open_input, .next = auto_shard_next,                     \
		 .cardinality = auto_shard_cardinality
static const struct dataset_kind rows[] = {
    {DATASET("OptionsDataset ModelDataset OptimizeDataset OptimizeDatasetV2 FinalizeDataset "
	     "RewriteDataset NonSerializableDataset AssertNextDataset AssertPrevDataset "
	     "BytesProducedStatsDataset "
	     "LatencyStatsDataset ExperimentalNonSerializableDataset ExperimentalAssertNextDataset "
	     "ExperimentalBytesProducedStatsDataset ExperimentalLatencyStatsDataset"),
     PASS},
    {DATASET("ChooseFastestDataset ExperimentalChooseFastestDataset"), .n_in = ANY_NUMBER,
     .check = check_fastest, .open = dataset_iterator_open_input, .next = pass_next},
    {DATASET("PrefetchDataset"), PASS, .n_scalars = 1, .check = check_prefetch},
    {DATASET("MaxIntraOpParallelismDataset ExperimentalMaxIntraOpParallelismDataset "
	     "PrivateThreadPoolDataset ExperimentalPrivateThreadPoolDataset"),
     PASS, .n_scalars = 1},
    {DATASET("ThreadPoolDataset ExperimentalThreadPoolDataset"), PASS},
    {DATASET("SleepDataset ExperimentalSleepDataset"), .n_in = 1, .n_scalars = 1,
     .check = check_sleep, .open = dataset_iterator_open_input, .next = sleep_next},
    {DATASET("TakeDataset"), COUNTED, .n_scalars = 1, .open = dataset_iterator_open_input,
     .next = take_next, .cardinality = take_cardinality, .releases_input = true},
    {DATASET("SkipDataset"), COUNTED, .n_scalars = 1, .open = dataset_iterator_open_input,
     .next = skip_next, .cardinality = skip_cardinality},
    {DATASET("ShardDataset"), COUNTED, .n_scalars = 2, .check = check_shard,
     .open = dataset_iterator_open_input, .next = shard_next, .cardinality = shard_cardinality},
    {DATASET("AutoShardDataset ExperimentalAutoShardDataset"), AUTO_SHARD},
    {DATASET("RepeatDataset"), COUNTED, .n_scalars = 1, .open = repeat_open, .next = repeat_next,
     .cardinality = repeat_cardinality, .releases_input = true},
    {DATASET("ZipDataset"), .state_size = sizeof(struct zip_state), .n_in = ANY_NUMBER,
     .open = zip_open, .next = zip_next, .close = zip_close, .cardinality = zip_cardinality,
     .serialize = zip_serialize},
    {DATASET("ConcatenateDataset"), .state_size = sizeof(struct count), .n_in = 2,
     .check = check_concatenate, .open = dataset_iterator_open_input, .releases_input = true,
     .next = concatenate_next, .cardinality = concatenate_cardinality,
     .serialize = concatenate_serialize},
    {DATASET("CacheDataset"), CACHE},
    /* the cache belongs to the dataset, not to a resource */
    {DATASET("CacheDatasetV2"), CACHE, .n_ignored_inputs = 1},
};
KERNEL_TABLE(data_flow, rows)
