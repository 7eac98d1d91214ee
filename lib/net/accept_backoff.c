/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/net/accept_backoff.h"

#include <errno.h>
#include <string.h>

#include "lib/base/log.h"

bool mu_accept_backoff(int error, const char *component)
{
	static _Atomic int64_t next_warning_ms;

	if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
		return false;
	if (mu_log_ratelimit(&next_warning_ms))
		mu_warn(component, "cannot accept connections, retrying: %s (raise ulimit -n)",
			strerror(error));
	return true;
}
