/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that calls functions when their time has come. */
#ifndef MU_TASK_TIMER_H
#define MU_TASK_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct timer;
struct timer *timer_new(void);
void timer_free(struct timer *t); /* what has not fired never will */
/* fn(arg) once, after ms, from the timer's thread: it must not block.  Returns a number, not 0. */
uint64_t timer_add(struct timer *t, long ms, void (*fn)(void *arg), void *arg);
/* True: fn will not run, nor has it.  False: it has, or is just running. */
bool timer_cancel(struct timer *t, uint64_t id);

#endif
