/* SPDX-License-Identifier: Apache-2.0 */
/* What those who listen do when accept fails for want of descriptors or memory.
 *
 * The one who knocks stays in the queue, and whoever waits for knocks is told of it at once, again
 * and again: asking on would take a processor, and a line for each try would fill a disk.  So a
 * listener is left alone for a moment, and all of the process's together warn now and then. */
#ifndef MU_BASE_STARVED_H
#define MU_BASE_STARVED_H

#include <stdbool.h>

enum { MU_STARVED_REST_MS = 100 };

/* Whether this errno of accept says so.  Warns then, in the component's name, unless the process
 * was warned in the last ten seconds. */
bool mu_starved(int error, const char *component);

#endif
