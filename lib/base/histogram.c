/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/histogram.h"

#include <stdio.h>

const double mu_histogram_call_bounds[MU_HISTOGRAM_BUCKETS] = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
const double mu_histogram_job_bounds[MU_HISTOGRAM_BUCKETS] = {
    1,    2.5,      5,         10,    30,        60,        300,       900,
    3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400, 30 * 86400};
/* Limit of one value in seconds, so that the sum of microseconds does not overflow. */
static const double max_seconds = 1e9;

static unsigned count_bounds(const struct mu_histogram *h)
{
	unsigned n = 0;

	while (n < MU_HISTOGRAM_BUCKETS && h->bounds[n] > 0)
		n++;
	return n;
}

void mu_histogram_add(struct mu_histogram *h, double seconds)
{
	unsigned i = 0, n = count_bounds(h);

	if (!(seconds > 0))
		seconds = 0;
	while (i < n && seconds > h->bounds[i])
		i++;
	atomic_fetch_add_explicit(&h->counts[i], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&h->microseconds,
				  (uint64_t)((seconds < max_seconds ? seconds : max_seconds) * 1e6),
				  memory_order_relaxed);
}

void mu_histogram_write_type(const char *name, struct mu_buf *out)
{
	mu_buf_printf(out, "# TYPE %s histogram\n", name);
}

void mu_histogram_write(struct mu_histogram *h, const char *name, const char *labels,
			struct mu_buf *out)
{
	unsigned n = count_bounds(h);
	uint64_t sum = 0;

	for (unsigned i = 0; i <= n; i++) {
		char bound[32] = "+Inf";

		sum += atomic_load_explicit(&h->counts[i], memory_order_relaxed);
		if (i < n)
			snprintf(bound, sizeof(bound), "%.10g", h->bounds[i]);
		mu_buf_printf(out, "%s_bucket{%s,le=\"%s\"} %llu\n", name, labels, bound,
			      (unsigned long long)sum);
	}
	mu_buf_printf(out, "%s_sum{%s} %.6f\n%s_count{%s} %llu\n", name, labels,
		      (double)atomic_load_explicit(&h->microseconds, memory_order_relaxed) / 1e6,
		      name, labels, (unsigned long long)sum);
}
