/* SPDX-License-Identifier: Apache-2.0 */
/* The iterator resource and its thread.
 *
 * Each iterator has a thread, because functions of the pipeline block and the threads of the
 * compute pool must not.  A caller waits for an element in the wait queue, without a thread.
 * The thread draws an element when a caller waits, and fills a buffer of the size that the
 * outermost prefetch of the dataset asks for.  The queue's lock guards all members except the
 * dataset iterator, which only the thread uses.
 *
 * A one-shot iterator gets its dataset from a function, which the thread calls first. */
#include "task/kernels/data/iterator.h"

#include <string.h>

#include "lib/base/ints.h"

enum { MAX_BUFFER_SIZE = 1024, DEFAULT_BUFFER_SIZE = 16 };

static void destroy(struct iterator *it)
{
	iterator_clear_buffer(it);
	if (it->dataset)
		mu_object_unref(&it->dataset->object);
	function_free(it->factory);
	caller_fini(&it->caller);
	pthread_cond_destroy(&it->work);
	wait_queue_fini(&it->waiters);
	free(it);
}

/* Nobody waits for the thread: this thread may belong to the compute pool, which a function of the
 * pipeline needs, and may be the iterator's own. */
static void iterator_free(struct resource *r)
{
	struct iterator *it = MU_CONTAINER(r, struct iterator, base);
	bool started;

	caller_stop(&it->caller);
	pthread_mutex_lock(&it->waiters.lock);
	started = it->started;
	it->stop = true;
	pthread_cond_signal(&it->work);
	pthread_mutex_unlock(&it->waiters.lock);
	if (!started)
		destroy(it);
}

static void iterator_close(struct resource *r)
{
	struct iterator *it = MU_CONTAINER(r, struct iterator, base);

	wait_queue_close(&it->waiters, "ends: its iterator was reset");
}

const struct resource_type iterator_type = {
    .name = "iterator", .free = iterator_free, .close = iterator_close};

struct resource *iterator_create(void *arg, struct mu_err *err)
{
	struct iterator *it = MU_NEW(struct iterator);

	resource_init(&it->base, &iterator_type);
	wait_queue_init(&it->waiters);
	pthread_cond_init(&it->work, NULL);
	caller_init(&it->caller);
	it->tail = &it->head;
	it->n_shards = 1;
	it->factory = arg;
	return &it->base;
}

/* ---- the thread ---- */

/* Returns the buffer size of the outermost PrefetchDataset; for AUTOTUNE a default. */
static int64_t prefetch_buffer_size(const struct dataset *d)
{
	while (dataset_has_same_elements(d) && strcmp(d->op, "PrefetchDataset"))
		d = d->in[0];
	if (strcmp(d->op, "PrefetchDataset"))
		return 0;
	int64_t n = dataset_number(d, 0);
	return n < 0 ? DEFAULT_BUFFER_SIZE : n < MAX_BUFFER_SIZE ? n : MAX_BUFFER_SIZE;
}

static int call_factory(struct iterator *it, struct dataset **out, struct mu_err *err)
{
	struct mu_tensor t;

	MU_RETURN_IF_ERROR(function_call(it->factory, &it->caller, NULL, 0, &t, 1, err));
	struct dataset *d = dataset_in(&t);
	int rc = d ? dataset_copy(d, out, err)
		   : mu_invalid(err, "The `dataset_factory` function must return a dataset.");
	mu_tensor_unref(&t);
	return rc;
}

struct draw_result {
	struct iterator *it;
	struct buffered_element *r; /* NULL: the end of the dataset */
	uint64_t round;
};

static void add_draw_result(void *arg)
{
	struct draw_result *d = arg;
	struct iterator *it = d->it;

	if (d->round != it->round) { /* the iterator has another dataset now */
		if (d->r)
			buffered_element_free(d->r);
		return;
	}
	it->element_requested = false;
	if (!d->r) {
		it->ended = true;
		return;
	}
	d->r->shard = it->next_shard;
	it->next_shard = (it->next_shard + 1) % it->n_shards;
	*it->tail = d->r;
	it->tail = &d->r->next;
	it->n_buffered++;
}

static struct buffered_element *iterator_draw(struct iterator *it, const struct dataset *d,
					      struct dataset_iterator **dataset_iterator)
{
	unsigned n = d ? d->n_out : 0;
	struct buffered_element *r = buffered_element_new(n);
	int rc = *dataset_iterator
		     ? 0
		     : dataset_iterator_open(d, &it->caller, dataset_iterator, &r->err);

	if (!rc)
		rc = dataset_iterator_next(*dataset_iterator, r->t, &r->err);
	if (rc > 0) {
		r->n = n;
		r->err.code = MU_OK;
	}
	if (rc)
		return r;
	free(r);
	return NULL;
}

/* Waits until there is work; returns false when the thread must stop.  Called with the lock. */
static bool wait_for_work(struct iterator *it)
{
	while (!it->stop && !it->requests &&
	       (it->ended || !(it->dataset || it->factory) ||
		!(it->element_requested || (it->dataset && it->n_buffered < it->buffer_size))))
		pthread_cond_wait(&it->work, &it->waiters.lock);
	return !it->stop;
}

void iterator_set_dataset(struct iterator *it, struct dataset *d, int64_t shard_buffer_size)
{
	int64_t shards_size = mu_min(shard_buffer_size, MAX_BUFFER_SIZE) * it->n_shards;
	struct dataset *old = it->dataset;

	it->dataset = d;
	it->buffer_size = prefetch_buffer_size(d);
	if (it->buffer_size < shards_size)
		it->buffer_size = shards_size;
	it->ended = false;
	it->next_shard = 0;
	it->round++;
	iterator_clear_buffer(it);
	if (old)
		mu_object_unref(&old->object);
}

static struct buffered_element *error_element(const struct mu_err *err)
{
	struct buffered_element *r = buffered_element_new(0);

	r->err = *err;
	return r;
}

/* Fails a state request or a GetNext because the dataset factory failed. */
static void report_failure(struct iterator *it, struct draw_result *result,
			   const struct mu_err *err)
{
	pthread_mutex_lock(&it->waiters.lock);
	struct state_request *t = iterator_next_request(it);
	pthread_mutex_unlock(&it->waiters.lock);
	if (t) {
		iterator_end_request(it, t, err);
		return;
	}
	result->r = error_element(err);
	wait_queue_update(&it->waiters, add_draw_result, result);
}

static void iterator_run(void *arg)
{
	struct iterator *it = arg;
	struct dataset_iterator *dataset_iterator = NULL;
	uint64_t round = 0;

	pthread_mutex_lock(&it->waiters.lock);
	while (wait_for_work(it)) {
		struct dataset *d = it->dataset, *new_dataset = NULL;
		struct draw_result result = {.it = it, .round = it->round};
		struct state_request *t = d || !it->factory ? iterator_next_request(it) : NULL;
		if (d)
			mu_object_ref(&d->object);
		pthread_mutex_unlock(&it->waiters.lock);
		if (round != result.round) {
			dataset_iterator_close(dataset_iterator);
			dataset_iterator = NULL;
			round = result.round;
		}
		struct mu_err err = {0};
		if (t) {
			iterator_execute_request(it, t, d, round, &dataset_iterator);
		} else if (d) {
			result.r = iterator_draw(it, d, &dataset_iterator);
			mu_object_unref(&mu_steal(&d)->object);
			wait_queue_update(&it->waiters, add_draw_result, &result);
		} else if (call_factory(it, &new_dataset, &err)) {
			report_failure(it, &result, &err);
		}
		if (d)
			mu_object_unref(&d->object);
		pthread_mutex_lock(&it->waiters.lock);
		if (new_dataset)
			iterator_set_dataset(it, new_dataset, 0);
	}
	pthread_mutex_unlock(&it->waiters.lock);
	dataset_iterator_close(dataset_iterator);
	destroy(it);
}

int iterator_start(struct iterator *it, struct runtime *rt, struct mu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&it->waiters.lock);
	if (!it->started) {
		rc = runtime_start_thread(rt, iterator_run, it, err);
		it->started = !rc;
	}
	pthread_mutex_unlock(&it->waiters.lock);
	return rc;
}
