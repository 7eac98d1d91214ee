/* SPDX-License-Identifier: Apache-2.0 */
/* CTCBeamSearchDecoder: the likeliest texts, whichever way they are stretched over the time.
 *
 * A text is a node of a tree, its last class on the edge from its beginning.  At each moment the
 * beam holds the `width` likeliest ones; each goes on by the blank, by its last class again, or by
 * one class more.  Which texts fall out of the beam on the way depends on the order in which they
 * are tried, and that is TensorFlow's: the members from the likeliest down, classes upwards, each
 * new text in the place of the beam's least likely one. */
#include <stdlib.h>
#include <string.h>

#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/rnn/ctc.h"
#include "task/kernels/sparse/sparse.h"

/* Logarithms of how likely a text is: in all, ending in the blank, ending in its last class. */
struct chance {
	double total, blank, label;
};
static const struct chance never = {-INFINITY, -INFINITY, -INFINITY};

struct text {
	struct chance was, now;      /* a moment ago; and by this one, never: out of the beam */
	int64_t parent, first, next; /* of its longer ones; -1: none */
	int32_t label;
};

struct beam {
	const struct ctc_scores *s;
	int64_t width;
	struct text *texts;
	int64_t n_texts, cap;
	int64_t *heap, n_heap, heap_cap; /* the least likely first */
	int64_t *order;                  /* the members of a moment ago, the likeliest first */
	int64_t *child;                  /* by class, of the text that is being extended */
	double *y;
};

enum { ROOT = 0 };

static double path_score(const struct beam *b, int64_t i)
{
	return b->texts[b->heap[i]].now.total;
}

static void ctc_beam_swap(struct beam *b, int64_t i, int64_t k)
{
	int64_t t = b->heap[i];

	b->heap[i] = b->heap[k];
	b->heap[k] = t;
}

static void sift_up(struct beam *b, int64_t i)
{
	for (; i && path_score(b, i) < path_score(b, (i - 1) / 2); i = (i - 1) / 2)
		ctc_beam_swap(b, i, (i - 1) / 2);
}

static void sift_down(struct beam *b, int64_t i)
{
	for (int64_t k; (k = 2 * i + 1) < b->n_heap; i = k) {
		if (k + 1 < b->n_heap && path_score(b, k + 1) < path_score(b, k))
			k++;
		if (path_score(b, i) <= path_score(b, k))
			return;
		ctc_beam_swap(b, i, k);
	}
}

/* Room for one more of *n in a list that grows by doubling. */
static bool ctc_beam_grow(void **list, int64_t n, int64_t *cap, size_t size)
{
	int64_t more = *cap ? *cap * 2 : 256;
	void *p = n < *cap ? *list : realloc(*list, (size_t)more * size);

	if (p) {
		*cap = n < *cap ? *cap : more;
		*list = p;
	}
	return p;
}

/* The text enters, and where the beam is full, the least likely one leaves. */
static bool enter(struct beam *b, int64_t text)
{
	if (b->n_heap == b->width) {
		b->texts[b->heap[0]].now = never;
		b->heap[0] = text;
		sift_down(b, 0);
		return true;
	}
	if (!ctc_beam_grow((void **)&b->heap, b->n_heap, &b->heap_cap, sizeof *b->heap))
		return false;
	b->heap[b->n_heap++] = text;
	sift_up(b, b->n_heap - 1);
	return true;
}

static bool is_candidate(const struct beam *b, double total)
{
	return total > -INFINITY && (b->n_heap < b->width || total > path_score(b, 0));
}

/* Moves the beam into b->order, most probable first. */
static bool take_out(struct beam *b)
{
	int64_t *order = realloc(b->order, (size_t)(b->n_heap + 1) * sizeof *order);

	if (!order)
		return false;
	b->order = order;
	while (b->n_heap) {
		order[b->n_heap - 1] = b->heap[0];
		b->heap[0] = b->heap[--b->n_heap];
		sift_down(b, 0);
	}
	return true;
}

static int64_t add_text(struct beam *b, int64_t parent, int32_t label)
{
	if (!ctc_beam_grow((void **)&b->texts, b->n_texts, &b->cap, sizeof *b->texts))
		return -1;
	b->texts[b->n_texts] = (struct text){
	    .was = never, .now = never, .parent = parent, .first = -1, .next = -1, .label = label};
	if (parent >= 0) {
		b->texts[b->n_texts].next = b->texts[parent].first;
		b->texts[parent].first = b->n_texts;
	}
	return b->n_texts++;
}

/* A member stays: by the blank, by its last class again, or made anew from its beginning. */
static void stay(struct beam *b, struct text *t)
{
	if (t->parent >= 0) {
		const struct text *p = &b->texts[t->parent];
		if (p->now.total > -INFINITY)
			t->now.label = ctc_log_add(
			    t->now.label, t->label == p->label ? p->was.blank : p->was.total);
		t->now.label += b->y[t->label];
	}
	t->now.blank = t->was.total + b->y[b->s->classes - 1];
	t->now.total = ctc_log_add(t->now.blank, t->now.label);
}

/* One class more, each in turn. */
static bool extend(struct beam *b, int64_t at)
{
	for (int64_t k = b->texts[at].first; k >= 0; k = b->texts[k].next)
		b->child[b->texts[k].label] = k;
	for (int32_t class = 0; class < b->s->classes - 1; class ++) {
		const struct text *t = &b->texts[at];
		int64_t child = b->child[class];
		double label = b->y[class] + (class == t->label ? t->was.blank : t->was.total);

		b->child[class] = -1;
		if (child >= 0 && b->texts[child].now.total > -INFINITY)
			continue;
		if (!is_candidate(b, label)) {
			if (child >= 0) /* left the beam just now: it shall not go on either */
				b->texts[child].was = never;
			continue;
		}
		if (child < 0 && (child = add_text(b, at, class)) < 0)
			return false;
		b->texts[child].now = (struct chance){label, -INFINITY, label};
		if (!enter(b, child))
			return false;
	}
	return true;
}

static bool step(struct beam *b, int64_t t, int64_t sequence)
{
	int64_t n = b->n_heap;

	ctc_log_softmax(b->s, t, sequence, b->y);
	if (!take_out(b))
		return false;
	for (int64_t i = 0; i < n; i++)
		b->texts[b->order[i]].was = b->texts[b->order[i]].now;
	for (int64_t i = 0; i < n; i++) {
		stay(b, &b->texts[b->order[i]]);
		if (!enter(b, b->order[i]))
			return false;
	}
	for (int64_t i = 0; i < n; i++)
		if (is_candidate(b, b->texts[b->order[i]].was.total) && !extend(b, b->order[i]))
			return false;
	return true;
}

/* The beam at the end of a sequence is in b->order. */
static bool search(struct beam *b, int64_t sequence)
{
	b->n_texts = b->n_heap = 0;
	if (add_text(b, -1, -1) < 0)
		return false;
	b->texts[ROOT].now = (struct chance){0, 0, -INFINITY};
	if (!enter(b, ROOT))
		return false;
	for (int64_t t = 0; t < b->s->length[sequence]; t++)
		if (!step(b, t, sequence))
			return false;
	return true;
}

/* ---- what was found, until all sequences are through ---- */

struct path {
	int32_t *label;
	int64_t n;
};

struct found {
	struct path *paths; /* [top, batch] */
	int64_t n;
};

static void found_fini(struct found *f)
{
	for (int64_t i = 0; f->paths && i < f->n; i++)
		free(f->paths[i].label);
	free(f->paths);
}

static void beam_fini(struct beam *b)
{
	free(b->texts);
	free(b->heap);
	free(b->order);
	free(b->child);
	free(b->y);
}

/* The classes of the path from its beginning; merges repeated ones if requested. */
static bool read_path(const struct beam *b, int64_t text, bool merge, struct path *p)
{
	int64_t n = 0;
	int32_t behind = -1;

	for (int64_t i = text; b->texts[i].parent >= 0; i = b->texts[i].parent)
		n++;
	if (!(p->label = malloc((size_t)(n + 1) * sizeof *p->label)))
		return false;
	p->n = 0;
	for (int64_t i = text; b->texts[i].parent >= 0; i = b->texts[i].parent) {
		if (!merge || b->texts[i].label != behind)
			p->label[p->n++] = b->texts[i].label;
		behind = b->texts[i].label;
	}
	for (int64_t i = 0; i < p->n / 2; i++) {
		int32_t t = p->label[i];
		p->label[i] = p->label[p->n - 1 - i];
		p->label[p->n - 1 - i] = t;
	}
	return true;
}

static int put_paths(struct kernel_call *c, const struct found *f, int64_t top, int64_t batch,
		     struct mu_err *err)
{
	for (int64_t k = 0; k < top; k++) {
		const struct path *p = f->paths + k * batch;
		int64_t total = 0, longest = 0, i = 0, *at;
		unsigned out[] = {(unsigned)k, (unsigned)(top + k), (unsigned)(2 * top + k)};
		struct mu_tensor *values;
		struct mu_shape shape;
		for (int64_t b = 0; b < batch; b++) {
			total += p[b].n;
			longest = p[b].n > longest ? p[b].n : longest;
		}
		MU_RETURN_IF_ERROR(mu_shape_set(&shape, 2, (int64_t[]){batch, longest}, err));
		MU_RETURN_IF_ERROR(sparse_out(c, out, total, &shape, MU_INT64, &at, &values, err));
		for (int64_t b = 0; b < batch; b++)
			for (int64_t j = 0; j < p[b].n; j++, i++) {
				at[2 * i] = b;
				at[2 * i + 1] = j;
				MU_DATA(int64_t, values)[i] = p[b].label[j];
			}
	}
	return 0;
}

static int fail_no_memory(struct mu_err *err)
{
	return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for the texts of the beam");
}

/* The `top` likeliest of one sequence. */
static int take_best(struct beam *b, int64_t sequence, int64_t top, bool merge, struct found *f,
		     struct mu_tensor *scores, struct mu_err *err)
{
	int64_t have = b->n_heap;

	if (have < top)
		return mu_invalid(err, "Less leaves in the beam search than requested.");
	if (!take_out(b))
		return fail_no_memory(err);
	for (int64_t k = 0; k < top; k++) {
		int64_t at = sequence * top + k;
		if (!read_path(b, b->order[k], merge, &f->paths[k * b->s->batch + sequence]))
			return fail_no_memory(err);
		convert(scores->dtype,
			(char *)scores->data + (size_t)at * mu_dtype_size(scores->dtype), MU_DOUBLE,
			&b->texts[b->order[k]].now.total, 1);
	}
	return 0;
}

static int beam_search(struct kernel_call *c, struct mu_err *err)
{
	int64_t top = args_attr_int(c->node, "top_paths", 1);
	bool merge = args_attr_bool(c->node, "merge_repeated", true);
	__attribute__((cleanup(found_fini))) struct found f = {0};
	struct ctc_scores s;
	__attribute__((cleanup(beam_fini))) struct beam b = {
	    .s = &s, .width = args_attr_int(c->node, "beam_width", 1)};
	struct mu_shape shape;
	struct mu_tensor *scores;
	int rc = 0;

	MU_RETURN_IF_ERROR(ctc_scores_in(c, 1, MU_FAILED_PRECONDITION, &s, err));
	if (b.width < 1 || top < 1 || top > b.width || 3 * top + 1 != c->n_out)
		return mu_invalid(err, "requested more paths than the beam width: %lld of %lld",
				  (long long)top, (long long)b.width);
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 2, (int64_t[]){s.batch, top}, err));
	MU_RETURN_IF_ERROR(kernel_out(c, (unsigned)(3 * top), s.in->dtype, &shape, &scores, err));
	f.n = shape.count;
	f.paths = calloc((size_t)f.n + 1, sizeof *f.paths);
	b.child = malloc((size_t)s.classes * sizeof *b.child);
	b.y = calloc((size_t)s.classes, sizeof *b.y);
	if (!f.paths || !b.child || !b.y)
		return fail_no_memory(err);
	memset(b.child, 0xff, (size_t)s.classes * sizeof *b.child);
	for (int64_t i = 0; i < s.batch; i++)
		if (!search(&b, i))
			return fail_no_memory(err);
		else if ((rc = take_best(&b, i, top, merge, &f, scores, err)))
			return rc;
	return put_paths(c, &f, top, s.batch, err);
}

static const struct kernel rows[] = {
    {"CTCBeamSearchDecoder", .flags = KERNEL_EXPENSIVE, .run = beam_search},
};
KERNEL_TABLE(rnn_ctc_beam, rows)
