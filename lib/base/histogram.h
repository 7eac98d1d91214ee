/* SPDX-License-Identifier: Apache-2.0 */
/* How long something took, counted in buckets, in Prometheus' form.  Any thread may add and write
 * at any time; what is written while others add is off by what they add. */
#ifndef MU_BASE_HISTOGRAM_H
#define MU_BASE_HISTOGRAM_H

#include <stdatomic.h>

#include "lib/base/buf.h"

enum { MU_HISTOGRAM_BUCKETS = 16 };

/* Upper bounds in seconds, rising; a row that is full or ends in 0. */
extern const double mu_histogram_calls[MU_HISTOGRAM_BUCKETS]; /* 1 ms to a minute */
extern const double mu_histogram_jobs[MU_HISTOGRAM_BUCKETS];  /* 1 s to 30 days */

/* All zero but for bounds at first. */
struct mu_histogram {
	const double *bounds;
	_Atomic uint64_t counts[MU_HISTOGRAM_BUCKETS + 1]; /* the last: above all bounds */
	_Atomic uint64_t microseconds;
};
/* What is less than nothing, after a clock was set back, counts as nothing. */
void mu_histogram_add(struct mu_histogram *h, double seconds);
/* The lines of one series; labels: as between the braces, "a=\"b\"".  Its "# TYPE" comes once for
 * all series of a name: mu_histogram_head. */
void mu_histogram_write(struct mu_histogram *h, const char *name, const char *labels,
			struct mu_buf *out);
void mu_histogram_head(const char *name, struct mu_buf *out);

#endif
