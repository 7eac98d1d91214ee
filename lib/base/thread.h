/* SPDX-License-Identifier: Apache-2.0 */
/* Thread creation for callers that cannot return an error. */
#ifndef MU_LIB_BASE_THREAD_H
#define MU_LIB_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/log.h"

/* Logs a failure and returns false.  The caller tries again when it has more work. */
static inline bool mu_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	static _Atomic int64_t next_ms;
	int rc = pthread_create(thread, NULL, fn, arg);

	if (rc && mu_log_ratelimit(&next_ms))
		mu_error("thread", "cannot start a thread: %s; raise the limit of threads",
			 strerror(rc));
	return rc == 0;
}

#endif
