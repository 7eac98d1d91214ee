/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting on a condition variable until a time of mu_clock_ms(). */
#ifndef MU_LIB_BASE_COND_H
#define MU_LIB_BASE_COND_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Returns 0 after a wake-up, ETIMEDOUT at until_ms.  INT64_MAX: no time-out. */
static inline int mu_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t until_ms)
{
	const struct timespec deadline = {until_ms / 1000, until_ms % 1000 * 1000000};

	return until_ms == INT64_MAX ? pthread_cond_wait(c, lock)
				     : pthread_cond_clockwait(c, lock, CLOCK_MONOTONIC, &deadline);
}

#endif
