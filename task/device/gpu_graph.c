/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of launches as graphs of the driver's: recorded by putting them on a stream that
 * records, launched as one, each piece after the one before.
 *
 * Two lists are alike when they have the same kernels on the same grids, and of everything else the
 * same arguments.  Kernels' arguments may differ: those that do are set in the graph before it is
 * launched, which does not touch launches made earlier.  What was recorded has addresses in it by
 * value, so it owns nothing and outlives nothing that matters.
 *
 * With the queue's lock throughout. */
#include <string.h>

#include "lib/base/log.h"
#include "task/device/gpu_internal.h"

enum { LEAST = 3, MOST_GRAPHS = 32, SEEN = 512, MOST_REFUSED = 8 };

struct gpu_graph {
	struct gpu_graph *next;
	void *graph, *exec;
	unsigned n;
	struct gpu_deed *deeds;
	char *bytes;
	void **nodes;
};
struct gpu_graphs {
	struct gpu *gpu;
	void *stream;            /* that records; made when it is wanted */
	struct gpu_graph *first; /* used last */
	unsigned n;
	uint64_t seen[SEEN]; /* segments that came once, by what they hash to */
	uint64_t refused[MOST_REFUSED];
	unsigned n_refused;
};

struct gpu_graphs *gpu_graphs_new(struct gpu *g)
{
	struct gpu_graphs *s = MU_NEW(struct gpu_graphs);

	s->gpu = g;
	return s;
}

static void free_graph(const struct cuda_api *api, struct gpu_graph *x)
{
	if (x->exec)
		api->graph_exec_free(x->exec);
	if (x->graph)
		api->graph_free(x->graph);
	free(x->deeds);
	free(x->bytes);
	free(x->nodes);
	free(x);
}

void gpu_graphs_free(struct gpu_graphs *s)
{
	const struct cuda_api *api = s->gpu->api;

	while (s->first) {
		struct gpu_graph *x = s->first;
		s->first = x->next;
		free_graph(api, x);
	}
	if (s->stream)
		api->stream_free(s->stream);
	free(s);
}

/* ---- alike or not ---- */

static bool alike(const struct gpu_deed *a, const char *a_bytes, const struct gpu_deed *b,
		  const char *b_bytes)
{
	return a->put == b->put && a->kernel == b->kernel && a->grid.blocks == b->grid.blocks &&
	       a->grid.threads == b->grid.threads && a->size == b->size &&
	       (a->kernel || memcmp(a_bytes + a->at, b_bytes + b->at, a->size) == 0);
}

static bool begins_with(const struct gpu_graph *x, const struct gpu_list *l, unsigned from)
{
	if (l->n > x->n)
		return false;
	for (unsigned i = from; i < l->n; i++)
		if (!alike(&x->deeds[i], x->bytes, &l->deeds[i], l->bytes))
			return false;
	return true;
}

bool gpu_graph_goes_on(const struct gpu_graph *x, const struct gpu_list *l)
{
	return begins_with(x, l, l->n - 1);
}

bool gpu_graph_is_whole(const struct gpu_graph *x, const struct gpu_list *l)
{
	return x->n == l->n;
}

struct gpu_graph *gpu_graphs_find(const struct gpu_graphs *s, const struct gpu_list *l)
{
	struct gpu_graph *x = s->first;

	while (x && !begins_with(x, l, 0))
		x = x->next;
	return x;
}

static uint64_t hash(const struct gpu_list *l)
{
	uint64_t h = 0;

	for (unsigned i = 0; i < l->n; i++) {
		const struct gpu_deed *d = &l->deeds[i];
		const uint64_t all[] = {(uintptr_t)d->put, (uintptr_t)d->kernel, d->grid.blocks,
					d->grid.threads, d->size};
		h = mu_hash(all, sizeof all, h);
		if (!d->kernel)
			h = mu_hash(l->bytes + d->at, d->size, h);
	}
	return h;
}

/* ---- recording ---- */

/* The piece of the graph that came of what was put on the recording stream last. */
static int last_piece(struct gpu_graphs *s, void **out)
{
	void *const *before = NULL, *graph;
	size_t n = 0;
	uint64_t id;
	int status, bad = s->gpu->api->capture_see(s->stream, &status, &id, &graph, &before, &n);

	if (bad || status != CUDA_CAPTURE_ACTIVE || n != 1)
		return bad ? bad : -1;
	*out = before[0];
	return 0;
}

static int record(struct gpu_graphs *s, struct gpu_graph *x)
{
	struct gpu *g = s->gpu;
	int bad = 0, end;

	if (!s->stream && (bad = g->api->stream_new(&s->stream, CUDA_STREAM_NON_BLOCKING)))
		return bad;
	if ((bad = g->api->capture_begin(s->stream, CUDA_CAPTURE_THREAD_LOCAL)))
		return bad;
	for (unsigned i = 0; i < x->n && !bad; i++) {
		const struct gpu_deed *d = &x->deeds[i];
		bad = d->put(g, d, x->bytes + d->at, s->stream);
		/* a library's call may be several pieces, or be told of in another way; nothing of
		 * it is ever set */
		if (!bad && d->kernel)
			bad = last_piece(s, &x->nodes[i]);
	}
	end = g->api->capture_end(s->stream, &x->graph);
	bad = bad ? bad : end;
	return bad ? bad : g->api->graph_make(&x->exec, x->graph, 0);
}

static void drop_oldest(struct gpu_graphs *s)
{
	struct gpu_graph **at = &s->first;

	while ((*at)->next)
		at = &(*at)->next;
	free_graph(s->gpu->api, *at);
	*at = NULL;
	s->n--;
}

static int add(struct gpu_graphs *s, const struct gpu_list *l)
{
	struct gpu_graph *x = MU_NEW(struct gpu_graph);
	int bad;

	x->n = l->n;
	x->deeds = memcpy(MU_NEW_ARRAY(struct gpu_deed, l->n), l->deeds, l->n * sizeof *x->deeds);
	x->bytes = memcpy(mu_xmalloc(l->used + 1), l->bytes, l->used);
	x->nodes = MU_NEW_ARRAY(void *, l->n);
	if ((bad = record(s, x))) {
		free_graph(s->gpu->api, x);
		return bad;
	}
	if (s->n == MOST_GRAPHS)
		drop_oldest(s);
	x->next = s->first;
	s->first = x;
	s->n++;
	return 0;
}

/* Some ways of a library cannot be recorded: what has one is launched piece by piece, the rest is
 * none the worse for it.  When as many are refused as we remember it is not them but the driver. */
static int refuse(struct gpu_graphs *s, uint64_t h, int bad)
{
	s->refused[s->n_refused++] = h;
	mu_debug("gpu", "GPU:%u: a segment of launches cannot be a graph (%d)", s->gpu->number,
		 bad);
	return s->n_refused < MOST_REFUSED ? 0 : bad;
}

int gpu_graphs_note(struct gpu_graphs *s, const struct gpu_list *l)
{
	uint64_t h, *was;
	int bad;

	if (l->n < LEAST)
		return 0;
	h = hash(l);
	for (unsigned i = 0; i < s->n_refused; i++)
		if (s->refused[i] == h)
			return 0;
	was = &s->seen[h % SEEN];
	if (*was != h) {
		*was = h;
		return 0;
	}
	for (const struct gpu_graph *x = s->first; x; x = x->next)
		if (x->n == l->n && begins_with(x, l, 0))
			return 0; /* cut off by something else in between */
	bad = add(s, l);
	return bad ? refuse(s, h, bad) : 0;
}

/* ---- launching ---- */

static int set_piece(struct gpu_graphs *s, struct gpu_graph *x, unsigned i, const char *args)
{
	const struct gpu_deed *d = &x->deeds[i];
	void *list[] = {x->bytes + d->at};
	const struct cuda_kernel_piece p = {.kernel = d->kernel,
					    .blocks = {d->grid.blocks, 1, 1},
					    .threads = {d->grid.threads, 1, 1},
					    .args = list};

	if (memcmp(x->bytes + d->at, args, d->size) == 0)
		return 0;
	memcpy(x->bytes + d->at, args, d->size);
	return s->gpu->api->graph_set(x->exec, x->nodes[i], &p);
}

static void use(struct gpu_graphs *s, struct gpu_graph *x)
{
	struct gpu_graph **at = &s->first;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	x->next = s->first;
	s->first = x;
}

int gpu_graph_launch(struct gpu_graphs *s, struct gpu_graph *x, const struct gpu_list *l,
		     void *stream)
{
	int bad = 0;

	for (unsigned i = 0; i < x->n && !bad; i++)
		if (x->deeds[i].kernel)
			bad = set_piece(s, x, i, l->bytes + l->deeds[i].at);
	if (bad)
		return bad;
	use(s, x);
	return s->gpu->api->graph_launch(x->exec, stream);
}
