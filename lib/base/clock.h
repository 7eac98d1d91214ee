/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks.  mu_clock… is monotonic, for intervals and deadlines.  mu_wall… is the time since 1970,
 * for dates in files and messages; it jumps when the system clock is set. */
#ifndef MU_LIB_BASE_CLOCK_H
#define MU_LIB_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t mu_clock_read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t mu_clock_ns(void)
{
	return mu_clock_read_ns(CLOCK_MONOTONIC);
}

static inline int64_t mu_clock_ms(void)
{
	return mu_clock_ns() / 1000000;
}

static inline double mu_clock(void) /* seconds */
{
	return (double)mu_clock_ns() / 1e9;
}

static inline int64_t mu_wall_ns(void)
{
	return mu_clock_read_ns(CLOCK_REALTIME);
}

static inline double mu_wall(void) /* seconds */
{
	return (double)mu_wall_ns() / 1e9;
}

#endif
