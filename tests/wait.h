/* SPDX-License-Identifier: Apache-2.0 */
/* Waits until another thread or process has reached a state. The time limit is so long that only a
 * fault reaches it, also on a busy machine. */
#ifndef MU_TESTS_WAIT_H
#define MU_TESTS_WAIT_H

#include <stdbool.h>
#include <time.h>

#include "lib/base/clock.h"

enum { TEST_TIMEOUT_S = 60, POLL_INTERVAL_MS = 2 };

static inline void wait_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

/* True as soon as the condition holds; false after the time limit. */
#define BECOMES_TRUE(condition)                                                                    \
	({                                                                                         \
		double until_ = mu_clock() + TEST_TIMEOUT_S;                                       \
		bool so_;                                                                          \
		while (!(so_ = (condition)) && mu_clock() < until_)                                \
			wait_ms(POLL_INTERVAL_MS);                                                 \
		so_;                                                                               \
	})

#define WAIT_UNTIL(condition)                                                                      \
	do {                                                                                       \
		if (!BECOMES_TRUE(condition))                                                      \
			fail_msg("not within %d s: %s", TEST_TIMEOUT_S, #condition);               \
	} while (0)

#endif
