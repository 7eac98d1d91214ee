/* SPDX-License-Identifier: Apache-2.0 */
/* The folders of a local run (checkpoints and logs), which only one run at a time may use. */
#ifndef MU_CLI_RUN_FOLDERS_H
#define MU_CLI_RUN_FOLDERS_H

#include "lib/base/err.h"

struct run_folders {
	int locks[4];
	unsigned n;
};

/* Renames the folder of an earlier run to the first free "<path>.old-N". Does nothing if it does
 * not exist or path is NULL. */
int run_folders_rename_old(const char *path, struct mu_err *err);
/* Locks the folder, if it exists, until run_folders_fini or the end of the process.
 * FAILED_PRECONDITION if another run has it. */
int run_folders_lock(struct run_folders *f, const char *path, const char *job, struct mu_err *err);
void run_folders_fini(struct run_folders *f);

#endif
