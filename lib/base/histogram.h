/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus histograms of durations.  Any thread may add and write at any time; a concurrent write
 * may miss some of the additions. */
#ifndef MU_LIB_BASE_HISTOGRAM_H
#define MU_LIB_BASE_HISTOGRAM_H

#include <stdatomic.h>

#include "lib/base/buf.h"

enum { MU_HISTOGRAM_BUCKETS = 16 };

/* Upper bounds in seconds, ascending; terminated by 0 unless full. */
extern const double mu_histogram_call_bounds[MU_HISTOGRAM_BUCKETS]; /* 1 ms to a minute */
extern const double mu_histogram_job_bounds[MU_HISTOGRAM_BUCKETS];  /* 1 s to 30 days */

/* Initialized with zeros, except for bounds. */
struct mu_histogram {
	const double *bounds;
	_Atomic uint64_t counts[MU_HISTOGRAM_BUCKETS + 1]; /* the last: above all bounds */
	_Atomic uint64_t microseconds;
};
/* Negative durations, as after a clock was set back, count as 0. */
void mu_histogram_add(struct mu_histogram *h, double seconds);
/* Writes the lines of one series.  labels: the text between the braces, "a=\"b\"".
 * mu_histogram_write_type writes the "# TYPE" line, once for all series of a name. */
void mu_histogram_write(struct mu_histogram *h, const char *name, const char *labels,
			struct mu_buf *out);
void mu_histogram_write_type(const char *name, struct mu_buf *out);

#endif
