/* SPDX-License-Identifier: Apache-2.0 */
/* Waits until another thread or process has reached a state; never for a fixed time. The limit is
 * far beyond the duration on a busy machine, so only a fault reaches it. */
#ifndef TESTS_WAIT_H
#define TESTS_WAIT_H

#include <stdbool.h>
#include <time.h>

#include "lib/base/clock.h"

enum { PATIENCE_SECONDS = 60, GLANCE_MS = 2 };

static inline void wait_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

/* True as soon as it is so, false when it never was. */
#define COMES_TRUE(what)                                                                           \
	({                                                                                         \
		double until_ = mu_clock() + PATIENCE_SECONDS;                                     \
		bool so_;                                                                          \
		while (!(so_ = (what)) && mu_clock() < until_)                                     \
			wait_ms(GLANCE_MS);                                                        \
		so_;                                                                               \
	})

#define UNTIL(what)                                                                                \
	do {                                                                                       \
		if (!COMES_TRUE(what))                                                             \
			fail_msg("not within %d s: %s", PATIENCE_SECONDS, #what);                  \
	} while (0)

#endif
