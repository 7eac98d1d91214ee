/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_RPC_CLOCK_H
#define MU_TASK_RPC_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t rpc_now_ms(void) /* monotonic */
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline int64_t rpc_now_us(void) /* likewise */
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

#endif
