/* SPDX-License-Identifier: Apache-2.0 */
/* What goes on the compute stream.
 *
 * To put a kernel on a stream takes the host longer than a small kernel runs, and a model's steps
 * put the same ones there again and again.  So a GPU keeps a list of what it was given since the
 * last end of a segment: a copy in or out, the end of a step, a library that cannot be recorded, a
 * full list.  A segment that comes a second time is recorded as one of the driver's graphs
 * (gpu_graph.c).  From then on what begins like one that is known is held back, as long as it goes
 * on like it: the whole goes to the driver in one call, and what turns out otherwise at once, piece
 * by piece, in the same order.  Nothing is held when a thread has nothing more to do for its step
 * (gpu_set_send) or when somebody waits for results.
 *
 * A launch that has been held is accepted already.  When the driver refuses it then, what others
 * build on was never made, and nobody can tell whose: the GPU goes out of service.
 * Updates of variables wait for more of their kind besides (gpu_updates.c), on or off.
 *
 * The queue's lock is taken last but for gpu->lock.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "task/device/gpu_internal.h"

enum { ALIGNED = 16, MOST_ARGS = 4096 }; /* the latter of a kernel, by the driver's limit */
_Static_assert(sizeof(struct updates_args) <= MOST_ARGS, "a kernel takes no more");
_Static_assert(MOST_ARGS + ALIGNED <= GPU_LIST_BYTES, "one thing has to fit into a list");

void gpu_queue_init(struct gpu *g)
{
	struct gpu_queue *q = &g->queue;
	const char *off = getenv("MUSTER_CUDA_GRAPHS");

	pthread_mutex_init(&q->lock, NULL);
	q->list = MU_NEW(struct gpu_list);
	q->graphs = gpu_graphs_new(g);
	q->on = !(off && strcmp(off, "0") == 0);
}

void gpu_queue_fini(struct gpu *g)
{
	if (!g->queue.list)
		return;
	gpu_graphs_free(g->queue.graphs);
	free(g->queue.list);
	pthread_mutex_destroy(&g->queue.lock);
}

static void empty(struct gpu_queue *q)
{
	q->list->n = q->list->used = 0;
	q->candidate = NULL;
	atomic_store_explicit(&q->held, false, memory_order_relaxed);
}

static bool has_room(const struct gpu_list *l, size_t size)
{
	return l->n < GPU_LIST_DEEDS && l->used + size + ALIGNED <= sizeof l->bytes;
}

static const struct gpu_deed *add(struct gpu_list *l, const struct gpu_deed *like, const void *args)
{
	struct gpu_deed *d = &l->deeds[l->n++];

	*d = *like;
	d->at = (l->used + ALIGNED - 1) & ~(uint32_t)(ALIGNED - 1);
	l->used = d->at + d->size;
	memcpy(l->bytes + d->at, args, d->size);
	return d;
}

/* What was held, piece by piece. */
static int put_held(struct gpu *g, struct mu_err *err)
{
	struct gpu_queue *q = &g->queue;
	const struct gpu_list *l = q->list;
	int result = 0;

	q->candidate = NULL;
	atomic_store_explicit(&q->held, false, memory_order_relaxed);
	for (unsigned i = 0; i < l->n && !result; i++)
		result =
		    l->deeds[i].put(g, &l->deeds[i], l->bytes + l->deeds[i].at, g->compute.stream);
	if (!result)
		return 0;
	empty(q);
	return gpu_give_up(g, result, "launching what was held back", err);
}

/* From here on each launch goes to the driver by itself: slower, and as right. */
static void go_on_without(struct gpu *g)
{
	g->queue.on = false;
	mu_warn("gpu", "GPU:%u goes on without graphs of launches: the driver refuses them",
		g->number);
}

/* All that makes up a graph is there. */
static int put_whole(struct gpu *g, struct mu_err *err)
{
	struct gpu_queue *q = &g->queue;
	int rc = 0;

	if (gpu_graph_launch(q->graphs, q->candidate, q->list, g->compute.stream)) {
		go_on_without(g); /* it is not as we think it is */
		rc = put_held(g, err);
	}
	empty(q);
	return rc;
}

/* One more of a list that was held until now. */
static int hold(struct gpu *g, struct mu_err *err)
{
	struct gpu_queue *q = &g->queue;

	if (!gpu_graph_goes_on(q->candidate, q->list))
		q->candidate = gpu_graphs_find(q->graphs, q->list);
	if (!q->candidate)
		return put_held(g, err);
	return gpu_graph_is_whole(q->candidate, q->list) ? put_whole(g, err) : 0;
}

static int end_list(struct gpu *g, struct mu_err *err)
{
	struct gpu_queue *q = &g->queue;
	int rc = 0;

	if (atomic_load_explicit(&q->held, memory_order_relaxed))
		rc = put_held(g, err);
	if (!rc && q->on && gpu_graphs_note(q->graphs, q->list))
		go_on_without(g);
	empty(q);
	return rc;
}

/* With the lock.  *result: the driver's or the library's, when it was put there at once. */
static int put(struct gpu *g, const struct gpu_deed *like, const void *args, int *result,
	       struct mu_err *err)
{
	struct gpu_queue *q = &g->queue;
	int rc = 0;

	if (q->on && !has_room(q->list, like->size) && (rc = end_list(g, err)))
		return rc;
	if (q->on)
		add(q->list, like, args);
	if (q->on && q->list->n == 1) {
		q->candidate = gpu_graphs_find(q->graphs, q->list);
		atomic_store_explicit(&q->held, q->candidate != NULL, memory_order_relaxed);
	}
	if (q->candidate)
		return hold(g, err);
	*result = like->put(g, like, args, g->compute.stream);
	if (*result)
		empty(q); /* nothing to be repeated */
	return 0;
}

static int put_kernel(struct gpu *g, const struct gpu_deed *d, const void *args, void *stream)
{
	void *list[] = {(void *)(uintptr_t)args};

	return g->api->launch(d->kernel, d->grid.blocks, 1, 1, d->grid.threads, 1, 1, 0, stream,
			      list, NULL);
}

/* What waits for more of its kind, before anything else.  With the lock. */
static int put_updates(struct gpu *g, struct mu_err *err)
{
	struct gpu_queue *q = &g->queue;
	struct updates_args *a = &q->updates.args;
	int result = 0, rc;

	if (!a->count)
		return 0;
	const struct gpu_deed d = {.put = put_kernel,
				   .kernel = q->updates.kernel,
				   .grid = {a->end[a->count - 1], gpu_grid_for(g, 0).threads},
				   .size = sizeof *a};
	rc = put(g, &d, a, &result, err);
	a->count = 0;
	atomic_store_explicit(&q->waiting, false, memory_order_relaxed);
	return rc || !result ? rc : gpu_give_up(g, result, "updating variables", err);
}

static int end_segment(struct gpu *g, struct mu_err *err)
{
	int rc = put_updates(g, err);

	return rc ? rc : end_list(g, err);
}

int gpu_update(struct gpu *g, void *kernel, enum mu_dtype t, const struct update_args *u,
	       struct mu_err *err)
{
	struct gpu_queue *q = &g->queue;
	const unsigned blocks = gpu_grid_for(g, u->n).blocks;
	const uint64_t size = mu_dtype_size(t);
	int rc = gpu_enter(g, err);

	if (rc || !u->n)
		return rc;
	pthread_mutex_lock(&q->lock);
	if (!gpu_updates_join(&q->updates, kernel, blocks, size, u) && !(rc = put_updates(g, err)))
		gpu_updates_join(&q->updates, kernel, blocks, size, u);
	if (!rc) {
		atomic_store_explicit(&q->waiting, true, memory_order_relaxed);
		atomic_fetch_add(&g->launched, 1);
	}
	pthread_mutex_unlock(&q->lock);
	return rc;
}

int gpu_put_library(struct gpu *g, const struct gpu_deed *like, const void *args, int *refused,
		    struct mu_err *err)
{
	int rc = gpu_enter(g, err);

	*refused = 0;
	if (!rc && like->size > MOST_ARGS)
		rc = mu_fail(err, MU_INTERNAL, "a kernel has %u bytes of arguments", like->size);
	if (rc)
		return rc;
	pthread_mutex_lock(&g->queue.lock);
	if (!(rc = put_updates(g, err)))
		rc = put(g, like, args, refused, err);
	if (!rc && !*refused)
		atomic_fetch_add(&g->launched, 1);
	pthread_mutex_unlock(&g->queue.lock);
	return rc;
}

int gpu_put(struct gpu *g, const struct gpu_deed *like, const void *args, const char *doing,
	    struct mu_err *err)
{
	int result, rc = gpu_put_library(g, like, args, &result, err);

	return rc ? rc : gpu_check(g, result, doing, err);
}

int gpu_end_segment(struct gpu *g, struct mu_err *err)
{
	int rc = gpu_enter(g, err);

	if (rc)
		return rc;
	pthread_mutex_lock(&g->queue.lock);
	rc = end_segment(g, err);
	pthread_mutex_unlock(&g->queue.lock);
	return rc;
}

static int send(struct gpu *g, struct mu_err *err)
{
	struct gpu_queue *q = &g->queue;
	int rc = 0;

	if ((!atomic_load_explicit(&q->held, memory_order_relaxed) &&
	     !atomic_load_explicit(&q->waiting, memory_order_relaxed)) ||
	    (rc = gpu_enter(g, err)))
		return rc;
	pthread_mutex_lock(&q->lock);
	rc = put_updates(g, err);
	if (!rc && atomic_load_explicit(&q->held, memory_order_relaxed))
		rc = put_held(g, err);
	pthread_mutex_unlock(&q->lock);
	return rc;
}

int gpu_set_send(struct gpu_set *s, struct mu_err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < gpu_count(s) && !rc; i++)
		rc = send(gpu_at(s, i), err);
	return rc;
}

void gpu_set_end_segments(struct gpu_set *s)
{
	for (unsigned i = 0; i < gpu_count(s); i++)
		if (gpu_works(gpu_at(s, i)))
			gpu_end_segment(gpu_at(s, i), NULL); /* what fails here says so later */
}

/* ---- kernels, fills and copies ---- */

int gpu_launch_sized(struct gpu *g, void *kernel, struct gpu_grid grid, const void *args,
		     size_t size, struct mu_err *err)
{
	const struct gpu_deed d = {
	    .put = put_kernel, .kernel = kernel, .grid = grid, .size = (uint32_t)size};

	return gpu_put(g, &d, args, "launching a kernel", err);
}

struct filling {
	cuda_ptr to;
	size_t bytes;
	uint64_t byte;
};

static int put_fill(struct gpu *g, const struct gpu_deed *d, const void *args, void *stream)
{
	const struct filling *f = args;

	return g->api->fill(f->to, (unsigned char)f->byte, f->bytes, stream);
}

int gpu_fill(struct gpu *g, const struct mu_tensor *t, unsigned char byte, struct mu_err *err)
{
	const struct filling f = {gpu_address(t), mu_tensor_bytes(t), byte};
	const struct gpu_deed d = {.put = put_fill, .size = sizeof f};

	return f.bytes ? gpu_put(g, &d, &f, "filling memory", err) : gpu_enter(g, err);
}

struct copying {
	cuda_ptr to, from;
	size_t bytes;
};

static int put_copy(struct gpu *g, const struct gpu_deed *d, const void *args, void *stream)
{
	const struct copying *c = args;

	return g->api->copy_within(c->to, c->from, c->bytes, stream);
}

int gpu_copy_within(struct gpu *g, cuda_ptr to, cuda_ptr from, size_t bytes, struct mu_err *err)
{
	const struct copying c = {to, from, bytes};
	const struct gpu_deed d = {.put = put_copy, .size = sizeof c};

	return bytes ? gpu_put(g, &d, &c, "copying on the device", err) : gpu_enter(g, err);
}
