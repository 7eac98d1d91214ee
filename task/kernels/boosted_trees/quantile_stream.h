/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles of a stream of weighted numbers, with a bound of the error: summaries of blocks, merged
 * and compressed level by level (Greenwald and Khanna, 2004; Zhang and Wang, 2007; the weighted
 * form is in the paper on XGBoost). */
#ifndef MU_TASK_KERNELS_BOOSTED_TREES_QUANTILE_STREAM_H
#define MU_TASK_KERNELS_BOOSTED_TREES_QUANTILE_STREAM_H

#include "lib/base/err.h"
#include "lib/base/mem.h"

/* A number of a summary.  min_rank: lower bound of the weight of all smaller numbers.  max_rank:
 * upper bound of that weight plus its own. */
struct quantile_entry {
	float value, weight, min_rank, max_rank;
};
struct quantile_summary {
	struct quantile_entry *entries; /* sorted by value */
	size_t n;
};

struct quantile_stream {
	double epsilon;
	int64_t block_size, buffer_size;
	struct quantile_entry *buffer; /* numbers that are not in a summary yet */
	size_t n_buffer, buffer_capacity;
	struct quantile_summary *levels, final;
	unsigned n_levels;
};

/* Fails unless 0 < epsilon < 1 and max_elements > 0. */
int quantile_stream_init(struct quantile_stream *s, float epsilon, int64_t max_elements,
			 struct mu_err *err);
void quantile_stream_fini(struct quantile_stream *s);
void quantile_stream_push(struct quantile_stream *s, float value, float weight);
void quantile_stream_push_summary(struct quantile_stream *s, const struct quantile_entry *entries,
				  size_t n);
/* Computes s->final from all pushed numbers and summaries. */
void quantile_stream_finish(struct quantile_stream *s);

/* Returns a new array of at least n distinct numbers, or of all if there are fewer. */
float *quantile_boundaries(const struct quantile_summary *s, int64_t n, size_t *count);
/* Returns a new array of the numbers at n + 1 equidistant ranks. */
float *quantile_values(const struct quantile_summary *s, int64_t n, size_t *count);

#endif
