/* SPDX-License-Identifier: Apache-2.0 */
/* The folders of a local run: checkpoints and logs, which belong to one run at a time. */
#ifndef CLI_RUN_FOLDERS_H
#define CLI_RUN_FOLDERS_H

#include "lib/base/err.h"

struct run_folders {
	int held[4];
	unsigned n;
};

/* Moves what an earlier run left out of the way, under the first free "<path>.old-N"; nothing when
 * there is none, or path is NULL. */
int run_folders_set_aside(const char *path, struct mu_err *err);
/* Keeps the folder, where there is one, for this process until run_folders_fini or its end.
 * FAILED_PRECONDITION: another run has it. */
int run_folders_hold(struct run_folders *f, const char *path, const char *job, struct mu_err *err);
void run_folders_fini(struct run_folders *f);

#endif
