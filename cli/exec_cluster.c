/* SPDX-License-Identifier: Apache-2.0 */
/* Executes muster-cluster for verbs that make HTTP requests. That program is in the same folder as
 * this one and has the HTTP client (see cli/cluster/cluster.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "lib/base/mem.h"

#define PROGRAM "muster-cluster"

int cli_exec_cluster(const char *verb, int argc, char **argv)
{
	MU_AUTO_FREE const char **words = MU_NEW_ARRAY(const char *, (size_t)argc + 3);
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(PROGRAM) - 1);
	char *slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
	struct mu_err err;

	words[0] = PROGRAM;
	words[1] = verb;
	for (int i = 0; i < argc; i++)
		words[i + 2] = argv[i];
	if (slash) {
		strcpy(slash + 1, PROGRAM);
		execv(path, (char *const *)words);
	}
	execvp(PROGRAM, (char *const *)words);
	mu_fail_errno(&err, errno, "cannot execute " PROGRAM " (the verbs for clusters need it)");
	return cli_fail(&err);
}
