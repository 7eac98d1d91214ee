/* SPDX-License-Identifier: Apache-2.0 */
/* The flag with which a signal handler or another thread stops a training. */
#ifndef MU_CLIENT_SESSION_STOP_H
#define MU_CLIENT_SESSION_STOP_H

#include <stdbool.h>

struct mu_session;

static inline bool stop_is_set(const volatile int *stop)
{
	return stop && __atomic_load_n(stop, __ATOMIC_RELAXED);
}

/* True if the flag in the options of this session is set. */
bool session_stop_is_set(const struct mu_session *s);

#endif
