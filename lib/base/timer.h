/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that calls functions when their time has come. */
#ifndef MU_BASE_TIMER_H
#define MU_BASE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct mu_timer;
struct mu_timer *mu_timer_new(void);
void mu_timer_free(struct mu_timer *t); /* what has not fired never will */
/* fn(arg) once, after ms, from the timer's thread: it must not block.  Returns a number, not 0. */
uint64_t mu_timer_add(struct mu_timer *t, long ms, void (*fn)(void *arg), void *arg);
/* True: fn will not run, nor has it.  False: it has, or is just running. */
bool mu_timer_cancel(struct mu_timer *t, uint64_t id);

#endif
