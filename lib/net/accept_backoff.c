/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/net/accept_backoff.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"

enum { WARN_INTERVAL_MS = 10000 };

/* Several threads may ask at the same time; one of them gets true per interval. */
static bool may_warn(void)
{
	static _Atomic int64_t next_ms;
	int64_t now = mu_clock_ms(), next = atomic_load(&next_ms);

	return now >= next &&
	       atomic_compare_exchange_strong(&next_ms, &next, now + WARN_INTERVAL_MS);
}

bool mu_accept_backoff(int error, const char *component)
{
	if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
		return false;
	if (may_warn())
		mu_warn(component, "new connections have to wait: %s (raise ulimit -n)",
			strerror(error));
	return true;
}
