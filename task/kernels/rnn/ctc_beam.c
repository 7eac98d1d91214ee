/* SPDX-License-Identifier: Apache-2.0 */
/* CTCBeamSearchDecoder: the most probable label sequences, each summed over its alignments.
 *
 * A prefix is a node of a tree; its last label is on the edge from its parent.  At each time step
 * the beam holds the `width` most probable prefixes.  Each is extended by the blank, by a
 * repetition of its last label, or by one more label.  The order in which prefixes are tried
 * decides which ones leave the beam.  It is TensorFlow's: members by falling probability, labels
 * upwards; each new prefix replaces the least probable one of the beam. */
#include <stdlib.h>
#include <string.h>

#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/rnn/ctc.h"
#include "task/kernels/sparse/sparse.h"

/* Log probabilities of a prefix: of all alignments, of those ending in the blank, of those ending
 * in its last label. */
struct log_probs {
	double total, blank, label;
};
static const struct log_probs log_probs_zero = {-INFINITY, -INFINITY, -INFINITY};

struct prefix {
	struct log_probs previous, current; /* at two time steps; current zero: not in the beam */
	int64_t parent, first_child, next_sibling; /* -1: none */
	int32_t label;
};

struct beam {
	const struct ctc_scores *s;
	int64_t width;
	struct prefix *prefixes;
	int64_t n_prefixes, cap;
	int64_t *heap, n_heap, heap_cap; /* the least probable first */
	int64_t *order;      /* the members at the last time step, the most probable first */
	int64_t *child;      /* by label, of the prefix that is being extended */
	double *log_softmax; /* by class, at this time step */
};

enum { ROOT = 0 };

static double path_score(const struct beam *b, int64_t i)
{
	return b->prefixes[b->heap[i]].current.total;
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

/* Makes room for one more element after the first n. */
static bool ctc_beam_grow(void **list, int64_t n, int64_t *cap, size_t size)
{
	int64_t new_cap = *cap ? *cap * 2 : 256;
	void *p = n < *cap ? *list : realloc(*list, (size_t)new_cap * size);

	if (p) {
		*cap = n < *cap ? *cap : new_cap;
		*list = p;
	}
	return p;
}

/* Adds a prefix to the beam.  If the beam is full, the least probable prefix leaves it. */
static bool beam_insert(struct beam *b, int64_t prefix)
{
	if (b->n_heap == b->width) {
		b->prefixes[b->heap[0]].current = log_probs_zero;
		b->heap[0] = prefix;
		sift_down(b, 0);
		return true;
	}
	if (!ctc_beam_grow((void **)&b->heap, b->n_heap, &b->heap_cap, sizeof *b->heap))
		return false;
	b->heap[b->n_heap++] = prefix;
	sift_up(b, b->n_heap - 1);
	return true;
}

static bool is_candidate(const struct beam *b, double total)
{
	return total > -INFINITY && (b->n_heap < b->width || total > path_score(b, 0));
}

/* Moves the beam into b->order, most probable first. */
static bool beam_sort(struct beam *b)
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

static int64_t add_prefix(struct beam *b, int64_t parent, int32_t label)
{
	if (!ctc_beam_grow((void **)&b->prefixes, b->n_prefixes, &b->cap, sizeof *b->prefixes))
		return -1;
	b->prefixes[b->n_prefixes] = (struct prefix){.previous = log_probs_zero,
						     .current = log_probs_zero,
						     .parent = parent,
						     .first_child = -1,
						     .next_sibling = -1,
						     .label = label};
	if (parent >= 0) {
		b->prefixes[b->n_prefixes].next_sibling = b->prefixes[parent].first_child;
		b->prefixes[parent].first_child = b->n_prefixes;
	}
	return b->n_prefixes++;
}

/* Updates the probabilities of a member for the alignments that end at it: with a blank, a
 * repetition of its last label, or its last label added to its parent. */
static void update_member(struct beam *b, struct prefix *t)
{
	if (t->parent >= 0) {
		const struct prefix *p = &b->prefixes[t->parent];
		if (p->current.total > -INFINITY)
			t->current.label =
			    ctc_log_add(t->current.label, t->label == p->label ? p->previous.blank
									       : p->previous.total);
		t->current.label += b->log_softmax[t->label];
	}
	t->current.blank = t->previous.total + b->log_softmax[b->s->classes - 1];
	t->current.total = ctc_log_add(t->current.blank, t->current.label);
}

/* Extends the prefix by each label. */
static bool extend_prefix(struct beam *b, int64_t at)
{
	for (int64_t k = b->prefixes[at].first_child; k >= 0; k = b->prefixes[k].next_sibling)
		b->child[b->prefixes[k].label] = k;
	for (int32_t class = 0; class < b->s->classes - 1; class ++) {
		const struct prefix *t = &b->prefixes[at];
		int64_t child = b->child[class];
		double label = b->log_softmax[class] +
			       (class == t->label ? t->previous.blank : t->previous.total);

		b->child[class] = -1;
		if (child >= 0 && b->prefixes[child].current.total > -INFINITY)
			continue;
		if (!is_candidate(b, label)) {
			if (child >= 0) /* it left the beam at this time step: do not extend it */
				b->prefixes[child].previous = log_probs_zero;
			continue;
		}
		if (child < 0 && (child = add_prefix(b, at, class)) < 0)
			return false;
		b->prefixes[child].current = (struct log_probs){label, -INFINITY, label};
		if (!beam_insert(b, child))
			return false;
	}
	return true;
}

static bool advance_time_step(struct beam *b, int64_t t, int64_t sequence)
{
	int64_t n = b->n_heap;

	ctc_log_softmax(b->s, t, sequence, b->log_softmax);
	if (!beam_sort(b))
		return false;
	for (int64_t i = 0; i < n; i++)
		b->prefixes[b->order[i]].previous = b->prefixes[b->order[i]].current;
	for (int64_t i = 0; i < n; i++) {
		update_member(b, &b->prefixes[b->order[i]]);
		if (!beam_insert(b, b->order[i]))
			return false;
	}
	for (int64_t i = 0; i < n; i++)
		if (is_candidate(b, b->prefixes[b->order[i]].previous.total) &&
		    !extend_prefix(b, b->order[i]))
			return false;
	return true;
}

/* Searches one sequence; at the end the heap holds the beam. */
static bool search_sequence(struct beam *b, int64_t sequence)
{
	b->n_prefixes = b->n_heap = 0;
	if (add_prefix(b, -1, -1) < 0)
		return false;
	b->prefixes[ROOT].current = (struct log_probs){0, 0, -INFINITY};
	if (!beam_insert(b, ROOT))
		return false;
	for (int64_t t = 0; t < b->s->length[sequence]; t++)
		if (!advance_time_step(b, t, sequence))
			return false;
	return true;
}

/* ---- the paths of all sequences, before they are written to the outputs ---- */

struct path {
	int32_t *label;
	int64_t n;
};

struct results {
	struct path *paths; /* [top, batch] */
	int64_t n;
};

static void results_fini(struct results *f)
{
	for (int64_t i = 0; f->paths && i < f->n; i++)
		free(f->paths[i].label);
	free(f->paths);
}

static void beam_fini(struct beam *b)
{
	free(b->prefixes);
	free(b->heap);
	free(b->order);
	free(b->child);
	free(b->log_softmax);
}

/* Reads the labels of the path from the root; merges repeated labels if requested. */
static bool read_path(const struct beam *b, int64_t prefix, bool merge, struct path *p)
{
	int64_t n = 0;
	int32_t last = -1;

	for (int64_t i = prefix; b->prefixes[i].parent >= 0; i = b->prefixes[i].parent)
		n++;
	if (!(p->label = malloc((size_t)(n + 1) * sizeof *p->label)))
		return false;
	p->n = 0;
	for (int64_t i = prefix; b->prefixes[i].parent >= 0; i = b->prefixes[i].parent) {
		if (!merge || b->prefixes[i].label != last)
			p->label[p->n++] = b->prefixes[i].label;
		last = b->prefixes[i].label;
	}
	for (int64_t i = 0; i < p->n / 2; i++) {
		int32_t t = p->label[i];
		p->label[i] = p->label[p->n - 1 - i];
		p->label[p->n - 1 - i] = t;
	}
	return true;
}

static int write_paths(struct kernel_call *c, const struct results *f, int64_t top, int64_t batch,
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
	return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for the prefixes of the beam");
}

/* Reads the `top` most probable paths of one sequence and writes their scores. */
static int read_top_paths(struct beam *b, int64_t sequence, int64_t top, bool merge,
			  struct results *f, struct mu_tensor *scores, struct mu_err *err)
{
	int64_t n_paths = b->n_heap;

	if (n_paths < top)
		return mu_invalid(err, "Less leaves in the beam search than requested.");
	if (!beam_sort(b))
		return fail_no_memory(err);
	for (int64_t k = 0; k < top; k++) {
		int64_t at = sequence * top + k;
		if (!read_path(b, b->order[k], merge, &f->paths[k * b->s->batch + sequence]))
			return fail_no_memory(err);
		convert(scores->dtype,
			(char *)scores->data + (size_t)at * mu_dtype_size(scores->dtype), MU_DOUBLE,
			&b->prefixes[b->order[k]].current.total, 1);
	}
	return 0;
}

static int beam_search(struct kernel_call *c, struct mu_err *err)
{
	int64_t top = args_attr_int(c->node, "top_paths", 1);
	bool merge = args_attr_bool(c->node, "merge_repeated", true);
	__attribute__((cleanup(results_fini))) struct results f = {0};
	struct ctc_scores s;
	__attribute__((cleanup(beam_fini))) struct beam b = {
	    .s = &s, .width = args_attr_int(c->node, "beam_width", 1)};
	struct mu_shape shape;
	struct mu_tensor *scores;

	MU_RETURN_IF_ERROR(ctc_scores_in(c, 1, MU_FAILED_PRECONDITION, &s, err));
	if (b.width < 1 || top < 1 || top > b.width || 3 * top + 1 != c->n_out)
		return mu_invalid(err, "requested more paths than the beam width: %lld of %lld",
				  (long long)top, (long long)b.width);
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 2, (int64_t[]){s.batch, top}, err));
	MU_RETURN_IF_ERROR(kernel_out(c, (unsigned)(3 * top), s.in->dtype, &shape, &scores, err));
	f.n = shape.count;
	f.paths = calloc((size_t)f.n + 1, sizeof *f.paths);
	b.child = malloc((size_t)s.classes * sizeof *b.child);
	b.log_softmax = calloc((size_t)s.classes, sizeof *b.log_softmax);
	if (!f.paths || !b.child || !b.log_softmax)
		return fail_no_memory(err);
	memset(b.child, 0xff, (size_t)s.classes * sizeof *b.child);
	for (int64_t i = 0; i < s.batch; i++) {
		MU_RETURN_IF_ERROR(kernel_check_cancelled(c, err));
		if (!search_sequence(&b, i))
			return fail_no_memory(err);
		MU_RETURN_IF_ERROR(read_top_paths(&b, i, top, merge, &f, scores, err));
	}
	return write_paths(c, &f, top, s.batch, err);
}

static const struct kernel rows[] = {
    {"CTCBeamSearchDecoder", .flags = KERNEL_EXPENSIVE, .run = beam_search},
};
KERNEL_TABLE(rnn_ctc_beam, rows)
