/* SPDX-License-Identifier: Apache-2.0 */
/* muster-cluster: the program that `muster` executes for verbs that make HTTP requests (see
 * cluster.h). */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cluster/cluster.h"
#include "lib/base/log.h"

static const struct cli_verb verbs[] = {
    {"top", NULL, NULL, cluster_top},       {"explain", NULL, NULL, cluster_explain},
    {"submit", NULL, NULL, cluster_submit}, {"logs", NULL, NULL, cluster_logs},
    {"wait", NULL, NULL, cluster_wait},     {"status", NULL, NULL, cluster_status},
};

int main(int argc, char **argv)
{
	mu_log_init("muster");
	mu_log_set_level(MU_ERROR); /* the verb itself reports a failure, once */
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; argc > 1 && i < MU_COUNT(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 2, argv + 2);
	fputs("muster-cluster: this program is executed by muster; see 'muster help'\n", stderr);
	return CLI_USAGE;
}
