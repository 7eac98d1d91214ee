/* SPDX-License-Identifier: Apache-2.0 */
/* The log file of a task: its output, in a file that other programs can read meanwhile.
 *
 * With a limit, a full file is renamed to PATH.1, replacing the previous one, and PATH starts
 * empty. Both files together stay below the limit. They always contain the newest lines completely,
 * at least almost half the limit. After a crash each line is in one of them.
 */
#ifndef MU_CLI_RUN_LOG_H
#define MU_CLI_RUN_LOG_H

#include <stdbool.h>
#include <stddef.h>

struct run_log {
	char *path;
	int fd;       /* -1: the log is disabled */
	size_t size;  /* size of the file */
	bool in_line; /* the last line has no newline yet */
	size_t limit; /* limit of both files together; 0: none */
};

/* Appends to an existing file. If the file cannot be opened, lines are dropped. */
void run_log_open(struct run_log *l, const char *path, size_t limit);
void run_log_put(struct run_log *l, const char *data, size_t n);
void run_log_close(struct run_log *l);

#endif
