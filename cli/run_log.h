/* SPDX-License-Identifier: Apache-2.0 */
/* A task's log: what it says, in a file that other programs may read as it grows.
 *
 * With a limit, what is full becomes PATH.1, over the one that was there, and PATH begins anew:
 * both together never take more than the limit, and the newest lines are always there, whole,
 * nearly half a limit of them at least.  However we end, one of the two has each line. */
#ifndef CLI_RUN_LOG_H
#define CLI_RUN_LOG_H

#include <stdbool.h>
#include <stddef.h>

struct run_log {
	char *path;
	int fd;       /* -1: it cannot be written, which was said */
	size_t size;  /* of what is in the file */
	bool in_line; /* the last line in it has no end yet */
	size_t limit; /* of both together; 0: none */
};

/* Goes on in a file that is there.  One that cannot be opened takes no lines. */
void run_log_open(struct run_log *l, const char *path, size_t limit);
void run_log_put(struct run_log *l, const char *data, size_t n);
void run_log_close(struct run_log *l);

#endif
