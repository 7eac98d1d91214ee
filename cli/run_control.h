/* SPDX-License-Identifier: Apache-2.0 */
/* How a running `muster run` is spoken to: a unix socket in a folder of the user's own. */
#ifndef CLI_RUN_CONTROL_H
#define CLI_RUN_CONTROL_H

#include <stddef.h>

#include "lib/base/err.h"

enum { CONTROL_LINE = 512 };

struct run_control {
	int fd; /* -1: nobody can reach us */
	char path[108];
};

/* On failure the job runs all the same, and cannot be spoken to. */
int run_control_open(struct run_control *c, const char *job, struct mu_err *err);
void run_control_close(struct run_control *c);
/* Has `answer` answer each line that is waiting; never waits for long. */
void run_control_serve(struct run_control *c,
		       int (*answer)(void *user, char *request, char *said, size_t size,
				     struct mu_err *err),
		       void *user);
/* The job is a name, or NAME.PID when several of that name run.  NOT_FOUND: none does. */
int run_control_ask(const char *job, const char *request, char *said, size_t size,
		    struct mu_err *err);

#endif
