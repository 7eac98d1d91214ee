/* SPDX-License-Identifier: Apache-2.0 */
/* Gives memory back when work has ended for a while: an operator rests most of its life. */
#ifndef CONTROL_TIDY_H
#define CONTROL_TIDY_H

#include <stdbool.h>

struct tidy {
	unsigned looks; /* at jobs, when it was last asked */
	int quiet;      /* ticks until it is time; 0: done */
};

struct tidy tidy_new(void);
/* To be called every 250 ms or so, with the number of looks at jobs so far; false when nothing is
 * left to do, so that it may be called more rarely until there have been more. */
bool tidy_tick(struct tidy *t, unsigned looks);

#endif
