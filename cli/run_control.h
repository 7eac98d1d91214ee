/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a running `muster run`, over a Unix socket in a folder of the user. */
#ifndef MU_CLI_RUN_CONTROL_H
#define MU_CLI_RUN_CONTROL_H

#include <stddef.h>

#include "lib/base/err.h"

enum { CONTROL_LINE = 512 };

struct run_control {
	int fd; /* -1: no socket */
	char path[108];
};

/* On failure the job runs, but accepts no requests. */
int run_control_open(struct run_control *c, const char *job, struct mu_err *err);
void run_control_close(struct run_control *c);
/* Answers one pending request, if there is one. Each read and write waits at most 200 ms. */
void run_control_serve(struct run_control *c,
		       int (*answer)(void *user, char *request, char *answer_text, size_t size,
				     struct mu_err *err),
		       void *user);
/* job is a name, or NAME.PID if several jobs of that name run. NOT_FOUND if none runs. */
int run_control_ask(const char *job, const char *request, char *answer_text, size_t size,
		    struct mu_err *err);

#endif
