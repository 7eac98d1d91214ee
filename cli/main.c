/* SPDX-License-Identifier: Apache-2.0 */
/* muster: the command line.  Everything it can do is a row of the table below. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

static int version(int argc, char **argv)
{
	printf("muster %s\n", MUSTER_VERSION);
	return CLI_OK;
}

static int help(int argc, char **argv);

const struct cli_verb cli_verbs[] = {
    {"run", "JOB.yaml [--fresh] [--logs DIR] [--log-size MIB] [--scale TASK=N]",
     "run a DistributedTrainingJob as processes on this machine; --scale: with that many tasks, "
     "also when it runs already",
     cli_run},
    {"scale", "JOB|JOB.yaml TASK=N", "more or fewer workers for a job that muster run runs",
     cli_scale},
    {"validate", "[--plan] JOB.yaml…",
     "check manifests as the API server would; --plan: say what the operator would do",
     cli_validate},
    {"convert", "TFJOB.yaml…", "turn Kubeflow TFJobs into DistributedTrainingJobs, with notes",
     cli_convert},
    {"checkpoint", "ls DIR | show PREFIX [TENSOR] | diff PREFIX PREFIX",
     "look into checkpoints; diff: which tensors are others, and by how much (1 when any is)",
     cli_checkpoint},
    {"events", "FILE|DIR", "show the curves of TensorBoard event files", cli_events},
    {"status", "HOST:PORT", "ask a task server how it is", cli_status},
    {"submit", "JOB.yaml [--force-conflicts] [-n NAMESPACE] [--context NAME]",
     "check a manifest and apply it to a cluster", cli_submit},
    {"logs", "JOB [TASK/INDEX] [-f] [--tail N] [--previous] [-n NAMESPACE] [--context NAME]",
     "the logs of a job's tasks in a cluster", cli_logs},
    {"wait", "JOB [--timeout TIME] [-n NAMESPACE] [--context NAME]",
     "wait until a job of a cluster has ended", cli_wait},
    {"top", "[-n NAMESPACE | -A] [--once] [--context NAME]",
     "the jobs of a cluster, the busiest first", cli_top},
    {"explain", "JOB [-n NAMESPACE] [--context NAME]",
     "why a job of a cluster waits, is slow or has failed", cli_explain},
    {"train", "[--manifest JOB.yaml]",
     "be one task of a job: the server and the ready-made trainer (TF_CONFIG, MUSTER_TRAIN)",
     cli_train},
    {"completion", "bash|fish|zsh", "print a shell's completion: source <(muster completion bash)",
     cli_completion},
    {"man", "[VERB]", "print the manual page, or that of a verb: muster man run | man -l -",
     cli_man},
    {"version", "", "the version", version},
    {"help", "[VERB]", "this text", help},
};
const unsigned cli_n_verbs = MU_COUNT(cli_verbs);

const struct cli_verb *cli_verb_named(const char *name)
{
	for (size_t i = 0; i < cli_n_verbs; i++)
		if (strcmp(cli_verbs[i].name, name) == 0)
			return &cli_verbs[i];
	return NULL;
}

static int no_verb(const char *name)
{
	fprintf(stderr, "muster: there is no verb '%s'; 'muster help' lists them\n", name);
	return CLI_USAGE;
}

static int help(int argc, char **argv)
{
	const struct cli_verb *of = argc ? cli_verb_named(argv[0]) : NULL;

	if (argc && !of)
		return no_verb(argv[0]);
	printf("muster: distributed training with parameter servers\n\n");
	for (const struct cli_verb *v = cli_verbs; v < cli_verbs + cli_n_verbs; v++)
		if (!of || v == of)
			printf("  muster %s%s%s\n      %s\n", v->name, *v->args ? " " : "", v->args,
			       v->what);
	if (!argc)
		printf("\nTry: muster run examples/digits.yaml\n");
	return CLI_OK;
}

/* Of the first word, which may be an option that asks for one. */
static const struct cli_verb *find(const char *name)
{
	const struct cli_verb *v = cli_verb_named(name);

	if (v)
		return v;
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return find("help");
	return strcmp(name, "--version") == 0 ? find("version") : NULL;
}

int main(int argc, char **argv)
{
	const struct cli_verb *v;

	mu_log_init("muster");
	if (argc < 2) {
		help(0, NULL);
		return CLI_USAGE;
	}
	v = find(argv[1]);
	if (!v)
		return no_verb(argv[1]);
	if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0))
		return help(1, (char *[]){(char *)v->name});
	return v->run(argc - 2, argv + 2);
}
