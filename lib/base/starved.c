/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/starved.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"

enum { WARN_EVERY_MS = 10000 };

/* To one of those who come at the same time, and not so soon after another. */
static bool may_warn(void)
{
	static _Atomic int64_t next_ms;
	int64_t now = mu_clock_ms(), next = atomic_load(&next_ms);

	return now >= next && atomic_compare_exchange_strong(&next_ms, &next, now + WARN_EVERY_MS);
}

bool mu_starved(int error, const char *component)
{
	if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
		return false;
	if (may_warn())
		mu_warn(component, "whoever connects has to wait or to try again: %s (ulimit -n)",
			strerror(error));
	return true;
}
