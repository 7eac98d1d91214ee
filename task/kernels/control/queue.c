/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/control/queue.h"

#include <string.h>

static void queue_release(struct resource *r)
{
	struct queue *q = MU_CONTAINER(r, struct queue, base);

	for (int64_t i = 0; i < q->count; i++)
		for (unsigned k = 0; k < q->spec.n; k++)
			mu_tensor_unref(&q->ring[(q->head + i) % q->cap * q->spec.n + k]);
	free(q->ring);
	queue_spec_fini(&q->spec);
	wait_queue_fini(&q->waiters);
	free(q);
}

static size_t queue_bytes(struct resource *r)
{
	struct queue *q = MU_CONTAINER(r, struct queue, base);
	size_t total = 0;

	pthread_mutex_lock(&q->waiters.lock);
	for (int64_t i = 0; i < q->count; i++)
		for (unsigned k = 0; k < q->spec.n; k++)
			total += mu_tensor_bytes(&q->ring[(q->head + i) % q->cap * q->spec.n + k]);
	pthread_mutex_unlock(&q->waiters.lock);
	return total;
}

static void queue_close(struct resource *r)
{
	struct queue *q = MU_CONTAINER(r, struct queue, base);

	pthread_mutex_lock(&q->waiters.lock);
	q->closed = true;
	pthread_mutex_unlock(&q->waiters.lock);
	wait_queue_close(&q->waiters, "ends: its queue was reset");
}

const struct resource_type queue_type = {
    .name = "queue", .free = queue_release, .bytes = queue_bytes, .close = queue_close};

void queue_spec_init(struct queue_spec *spec, unsigned n)
{
	spec->n = n;
	spec->type = MU_NEW_ARRAY(enum mu_dtype, n);
	spec->shape = MU_NEW_ARRAY(struct mu_pshape, n);
}

void queue_spec_fini(struct queue_spec *spec)
{
	free(spec->type);
	free(spec->shape);
}

struct queue *queue_new(const struct queue_spec *spec)
{
	struct queue *q = MU_NEW(struct queue);

	resource_init(&q->base, &queue_type);
	wait_queue_init(&q->waiters);
	q->spec = *spec;
	queue_spec_init(&q->spec, spec->n);
	memcpy(q->spec.type, spec->type, spec->n * sizeof *spec->type);
	memcpy(q->spec.shape, spec->shape, spec->n * sizeof *spec->shape);
	q->random.from = philox_seeded(spec->seed, spec->seed2);
	return q;
}

int64_t queue_free_slots(const struct queue *q)
{
	return q->spec.capacity < 0 ? INT64_MAX : q->spec.capacity - q->count;
}

static struct mu_tensor *slot(const struct queue *q, int64_t i)
{
	return &q->ring[(q->head + i) % q->cap * q->spec.n];
}

static void queue_grow(struct queue *q)
{
	if (q->count < q->cap)
		return;
	int64_t cap = q->cap ? q->cap * 2 : 16;
	struct mu_tensor *ring = mu_xcalloc((size_t)cap * q->spec.n, sizeof *ring);
	for (int64_t i = 0; i < q->count; i++)
		memcpy(&ring[i * q->spec.n], slot(q, i), q->spec.n * sizeof *ring);
	free(q->ring);
	q->ring = ring;
	q->cap = cap;
	q->head = 0;
}

/* ---- the heap ---- */

static int64_t queue_priority(const struct queue *q, int64_t i)
{
	return *MU_DATA(int64_t, slot(q, i));
}

static void queue_swap(struct queue *q, int64_t i, int64_t j)
{
	struct mu_tensor *a = slot(q, i), *b = slot(q, j);

	for (unsigned k = 0; k < q->spec.n; k++) {
		struct mu_tensor t = a[k];
		a[k] = b[k];
		b[k] = t;
	}
}

static void sift_up(struct queue *q, int64_t i)
{
	for (; i > 0 && queue_priority(q, i) < queue_priority(q, (i - 1) / 2); i = (i - 1) / 2)
		queue_swap(q, i, (i - 1) / 2);
}

static void sift_down(struct queue *q)
{
	for (int64_t i = 0, child; (child = 2 * i + 1) < q->count; i = child) {
		if (child + 1 < q->count && queue_priority(q, child + 1) < queue_priority(q, child))
			child++;
		if (queue_priority(q, i) <= queue_priority(q, child))
			break;
		queue_swap(q, i, child);
	}
}

/* ---- push and pop ---- */

void queue_push(struct queue *q, struct mu_tensor *element)
{
	queue_grow(q);
	q->count++;
	memcpy(slot(q, q->count - 1), element, q->spec.n * sizeof *element);
	if (q->spec.by_priority)
		sift_up(q, q->count - 1);
}

void queue_return_element(struct queue *q, struct mu_tensor *element)
{
	if (q->spec.by_priority || q->spec.shuffled) {
		queue_push(q, element);
		return;
	}
	queue_grow(q);
	q->head = (q->head + q->cap - 1) % q->cap;
	q->count++;
	memcpy(slot(q, 0), element, q->spec.n * sizeof *element);
}

void queue_pop(struct queue *q, struct mu_tensor *element)
{
	size_t size = q->spec.n * sizeof *element;

	if (q->spec.shuffled) {
		/* The last element takes the place of the one drawn, as in TensorFlow, so that a
		 * seed gives the same order. */
		int64_t i = philox_32(&q->random) % q->count;
		memcpy(element, slot(q, i), size);
		memmove(slot(q, i), slot(q, --q->count), size);
		return;
	}
	memcpy(element, slot(q, 0), size);
	if (q->spec.by_priority) {
		memmove(slot(q, 0), slot(q, --q->count), size);
		sift_down(q);
		return;
	}
	q->head = (q->head + 1) % q->cap;
	q->count--;
}

int64_t queue_available(const struct queue *q)
{
	int64_t n = q->closed ? q->count : q->count - q->spec.min_after;

	return n > 0 ? n : 0;
}
