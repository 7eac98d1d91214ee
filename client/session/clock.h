/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic seconds, for intervals. */
#ifndef CLIENT_SESSION_CLOCK_H
#define CLIENT_SESSION_CLOCK_H

#include <time.h>

static inline double client_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
