/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that calls functions at given times. */
#ifndef MU_LIB_BASE_TIMER_H
#define MU_LIB_BASE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct mu_timer;
struct mu_timer *mu_timer_new(void);
void mu_timer_free(struct mu_timer *t); /* pending functions are not called */
/* Calls fn(arg) once, after ms, on the timer thread; fn must not block.  Returns an id, not 0. */
uint64_t mu_timer_add(struct mu_timer *t, long ms, void (*fn)(void *arg), void *arg);
/* Returns true if fn has not run and will not run; false if it has run or is running. */
bool mu_timer_cancel(struct mu_timer *t, uint64_t id);

#endif
