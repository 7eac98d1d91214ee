/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of blocks and the order of float operations are the same as in TensorFlow, so that the
 * same numbers become boundaries. */
#include "task/kernels/boosted_trees/quantile_stream.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- summaries ---- */

static float prev_max_rank(const struct quantile_entry *e) /* upper bound for the previous number */
{
	return e->max_rank - e->weight;
}

static float next_min_rank(const struct quantile_entry *e) /* lower bound for the next number */
{
	return e->min_rank + e->weight;
}

static float total_weight(const struct quantile_summary *s)
{
	return s->n ? s->entries[s->n - 1].max_rank : 0;
}

static void summary_fini(struct quantile_summary *s)
{
	free(s->entries);
	*s = (struct quantile_summary){0};
}

static struct quantile_summary summary_copy(const struct quantile_entry *entries, size_t n)
{
	struct quantile_summary s = {MU_NEW_ARRAY(struct quantile_entry, n + 1), n};

	if (n)
		memcpy(s.entries, entries, n * sizeof *entries);
	return s;
}

/* Entry e in a merged summary.  `previous` is the entry of the other summary before e, or NULL.
 * `other_max_rank` bounds the weight of the other summary before e. */
static struct quantile_entry merged_entry(const struct quantile_entry *e,
					  const struct quantile_entry *previous,
					  float other_max_rank)
{
	return (struct quantile_entry){e->value, e->weight,
				       e->min_rank + (previous ? next_min_rank(previous) : 0),
				       e->max_rank + other_max_rank};
}

/* Merges `b` into `a`. */
static void summary_merge(struct quantile_summary *a, const struct quantile_summary *b)
{
	struct quantile_summary out = {MU_NEW_ARRAY(struct quantile_entry, a->n + b->n + 1), 0};
	size_t i = 0, k = 0;

	while (i < a->n || k < b->n) {
		const struct quantile_entry *x = i < a->n ? &a->entries[i] : NULL;
		const struct quantile_entry *y = k < b->n ? &b->entries[k] : NULL;
		const struct quantile_entry *before_x = i ? &a->entries[i - 1] : NULL;
		const struct quantile_entry *before_y = k ? &b->entries[k - 1] : NULL;
		struct quantile_entry *to = &out.entries[out.n++];
		if (!y || (x && x->value < y->value)) {
			*to = merged_entry(x, before_y, y ? prev_max_rank(y) : total_weight(b));
			i++;
		} else if (!x || y->value < x->value) {
			*to = merged_entry(y, before_x, x ? prev_max_rank(x) : total_weight(a));
			k++;
		} else {
			*to = (struct quantile_entry){x->value, x->weight + y->weight,
						      x->min_rank + y->min_rank,
						      x->max_rank + y->max_rank};
			i++;
			k++;
		}
	}
	free(a->entries);
	*a = out;
}

/* Removes entries until about `size` are left; keeps the first and the last entry.  The error of a
 * rank grows by max(1/size, epsilon) times the total weight. */
static void summary_compress(struct quantile_summary *s, int64_t size, double epsilon)
{
	size = size > 2 ? size : 2;
	if (s->n <= (uint64_t)size)
		return;
	double slack = (double)total_weight(s) * fmax(1.0 / (double)size, epsilon);
	/* Credit keeps one entry in n/size where all weights are within the slack. */
	int64_t credit = 0, step = (int64_t)s->n;
	size_t n_kept = 1, last = 1;
	for (size_t at = 0; at + 1 < s->n;) {
		size_t next = at + 1;
		while (next < s->n && credit < step &&
		       (double)(prev_max_rank(&s->entries[next]) -
				next_min_rank(&s->entries[at])) <= slack) {
			credit += size;
			next++;
		}
		at = next - 1 > at ? next - 1 : at + 1;
		s->entries[n_kept++] = s->entries[at];
		last = at;
		credit -= step;
	}
	if (last + 1 != s->n)
		s->entries[n_kept++] = s->entries[s->n - 1];
	s->n = n_kept;
}

static double summary_error(const struct quantile_summary *s)
{
	float gap = 0;

	for (size_t i = 1; i < s->n; i++) {
		const struct quantile_entry *e = &s->entries[i];
		float own_gap = e->max_rank - e->min_rank - e->weight;
		float previous_gap = prev_max_rank(e) - next_min_rank(e - 1);
		float larger = own_gap < previous_gap ? previous_gap : own_gap;
		gap = gap < larger ? larger : gap;
	}
	return s->n ? (double)gap / (double)total_weight(s) : 0;
}

/* ---- streams ---- */

int quantile_stream_init(struct quantile_stream *s, float epsilon, int64_t max_elements,
			 struct mu_err *err)
{
	*s = (struct quantile_stream){.epsilon = (double)epsilon, .block_size = 2};
	if (!(epsilon > 0))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "An epsilon value of zero is not allowed.");
	if (!(epsilon < 1) || max_elements < 1)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Expected an epsilon below 1 and a positive number of elements, got "
			       "%g and %lld",
			       (double)epsilon, (long long)max_elements);
	if (s->epsilon <= DBL_EPSILON)
		s->block_size = max_elements > 2 ? max_elements : 2;
	else
		/* The top level of `level` levels must not overflow. */
		for (int level = 1; s->block_size <= (max_elements - 1) >> level; level++)
			s->block_size = (int64_t)ceil(level / s->epsilon) + 1;
	s->buffer_size = s->block_size > max_elements / 2 ? max_elements : 2 * s->block_size;
	return 0;
}

void quantile_stream_fini(struct quantile_stream *s)
{
	for (unsigned i = 0; i < s->n_levels; i++)
		summary_fini(&s->levels[i]);
	free(s->levels);
	free(s->buffer);
	summary_fini(&s->final);
	*s = (struct quantile_stream){0};
}

/* Merges the summary into the levels, from the lowest to the first with room.  Takes ownership. */
static void propagate(struct quantile_stream *s, struct quantile_summary summary)
{
	if (!summary.n) {
		summary_fini(&summary);
		return;
	}
	for (unsigned level = 0;; level++) {
		if (level == s->n_levels) {
			s->levels = mu_xrealloc(s->levels, (level + 1) * sizeof *s->levels);
			s->levels[s->n_levels++] = (struct quantile_summary){0};
		}
		struct quantile_summary *at = &s->levels[level];
		bool was_empty = !at->n;
		if (!was_empty)
			summary_merge(&summary, at);
		summary_fini(at);
		if (was_empty || (int64_t)summary.n <= s->block_size + 1) {
			*at = summary;
			return;
		}
		summary_compress(&summary, s->block_size, s->epsilon);
	}
}

static int by_value(const void *a, const void *b)
{
	float x = ((const struct quantile_entry *)a)->value;
	float y = ((const struct quantile_entry *)b)->value;

	return (x > y) - (x < y);
}

static void push_buffer(struct quantile_stream *s)
{
	struct quantile_summary summary = {s->buffer, 0};
	float total = 0;

	if (s->n_buffer)
		qsort(s->buffer, s->n_buffer, sizeof *s->buffer, by_value);
	for (size_t i = 0; i < s->n_buffer; i++) {
		struct quantile_entry e = s->buffer[i];
		if (summary.n && summary.entries[summary.n - 1].value == e.value)
			summary.entries[summary.n - 1].weight += e.weight;
		else
			summary.entries[summary.n++] = e;
	}
	for (size_t i = 0; i < summary.n; i++) {
		struct quantile_entry *e = &summary.entries[i];
		e->min_rank = total;
		total += e->weight;
		e->max_rank = total;
	}
	s->buffer = NULL;
	s->n_buffer = s->buffer_capacity = 0;
	summary_compress(&summary, s->block_size, s->epsilon);
	propagate(s, summary);
}

void quantile_stream_push(struct quantile_stream *s, float value, float weight)
{
	if (weight <= 0)
		return;
	if (s->n_buffer == s->buffer_capacity) {
		s->buffer_capacity = s->buffer_capacity ? 2 * s->buffer_capacity : 64;
		s->buffer = mu_xrealloc(s->buffer, s->buffer_capacity * sizeof *s->buffer);
	}
	s->buffer[s->n_buffer++] = (struct quantile_entry){.value = value, .weight = weight};
	if ((int64_t)s->n_buffer >= s->buffer_size)
		push_buffer(s);
}

void quantile_stream_push_summary(struct quantile_stream *s, const struct quantile_entry *entries,
				  size_t n)
{
	struct quantile_summary summary = summary_copy(entries, n);

	summary_compress(&summary, s->block_size, s->epsilon);
	propagate(s, summary);
}

void quantile_stream_finish(struct quantile_stream *s)
{
	push_buffer(s);
	for (unsigned i = 0; i < s->n_levels; i++)
		if (s->levels[i].n)
			summary_merge(&s->final, &s->levels[i]);
}

/* ---- boundaries ---- */

float *quantile_boundaries(const struct quantile_summary *s, int64_t n, size_t *count)
{
	struct quantile_summary compressed = summary_copy(s->entries, s->n);
	float *out = MU_NEW_ARRAY(float, s->n + 1);

	*count = 0;
	if (s->n) {
		float epsilon = (float)(summary_error(s) + 1.0 / (double)n);
		summary_compress(&compressed, n, (double)epsilon);
	}
	for (size_t i = 0; i < compressed.n; i++)
		if (!*count || out[*count - 1] != compressed.entries[i].value)
			out[(*count)++] = compressed.entries[i].value;
	summary_fini(&compressed);
	return out;
}

float *quantile_values(const struct quantile_summary *s, int64_t n, size_t *count)
{
	n = n > 2 ? n : 2;
	*count = s->n ? (size_t)n + 1 : 0;
	float *out = MU_NEW_ARRAY(float, *count + 1);
	size_t at = 0;
	for (size_t rank = 0; rank < *count; rank++) {
		float twice = 2 * ((float)rank * total_weight(s) / (float)n);
		size_t next = at + 1;
		while (next < s->n &&
		       twice >= s->entries[next].min_rank + s->entries[next].max_rank)
			next++;
		at = next - 1;
		bool is_current = next == s->n || twice < next_min_rank(&s->entries[at]) +
							      prev_max_rank(&s->entries[next]);
		out[rank] = s->entries[is_current ? at : next].value;
	}
	return out;
}
