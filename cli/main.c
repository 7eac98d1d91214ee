/* SPDX-License-Identifier: Apache-2.0 */
/* muster: the command line. Each verb is a row of the table below. */
#include <errno.h>
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
     "run a DistributedTrainingJob as processes on this machine; --scale: set the number of tasks, "
     "also of a running job",
     cli_run},
    {"scale", "JOB|JOB.yaml TASK=N", "change the number of workers of a job that muster run runs",
     cli_scale},
    {"validate", "[--plan] JOB.yaml…",
     "check manifests as the API server does; --plan: show what the operator would do",
     cli_validate},
    {"convert", "TFJOB.yaml…", "convert Kubeflow TFJobs to DistributedTrainingJobs, with notes",
     cli_convert},
    {"checkpoint", "ls DIR | show PREFIX [TENSOR] | diff PREFIX PREFIX",
     "list, show and compare checkpoints; diff: exit status 1 if they differ", cli_checkpoint},
    {"events", "FILE|DIR", "show the curves of TensorBoard event files", cli_events},
    {"status", "HOST:PORT", "show the state of a task server", NULL},
    {"submit", "JOB.yaml [--force-conflicts] [-n NAMESPACE] [--context NAME] [--kubeconfig FILE]",
     "check a manifest and apply it to a cluster", NULL},
    {"logs",
     "JOB [TASK/INDEX] [-f] [--tail N] [--previous] [-n NAMESPACE] [--context NAME] [--kubeconfig "
     "FILE]",
     "print the logs of a job's tasks in a cluster", NULL},
    {"wait", "JOB [--timeout TIME] [-n NAMESPACE] [--context NAME] [--kubeconfig FILE]",
     "wait until a job of a cluster has ended", NULL},
    {"top", "[-n NAMESPACE | -A] [--once] [--context NAME] [--kubeconfig FILE]",
     "list the jobs of a cluster, the fastest first", NULL},
    {"explain", "JOB [-n NAMESPACE] [--context NAME] [--kubeconfig FILE]",
     "explain why a job of a cluster waits, is slow or has failed", NULL},
    {"train", "[--manifest JOB.yaml] [--target HOST:PORT]",
     "run one task of a job: the server and the built-in trainer (TF_CONFIG, MUSTER_TRAIN)",
     cli_train},
    {"completion", "bash|fish|zsh", "print a shell's completion: source <(muster completion bash)",
     cli_completion},
    {"man", "[VERB]", "print a manual page: muster man run | man -l -", cli_man},
    {"version", "", "print the version", version},
    {"help", "[VERB]", "print this text, or the help of a verb", help},
};
const unsigned cli_n_verbs = MU_COUNT(cli_verbs);

const struct cli_verb *cli_verb_named(const char *name)
{
	for (size_t i = 0; i < cli_n_verbs; i++)
		if (strcmp(cli_verbs[i].name, name) == 0)
			return &cli_verbs[i];
	return NULL;
}

static int unknown_verb(const char *name)
{
	fprintf(stderr, "muster: unknown verb '%s'; 'muster help' lists the verbs\n", name);
	return CLI_USAGE;
}

static int help(int argc, char **argv)
{
	const struct cli_verb *verb = argc ? cli_verb_named(argv[0]) : NULL;

	if (argc && !verb)
		return unknown_verb(argv[0]);
	printf("muster: distributed training with parameter servers\n\n");
	for (const struct cli_verb *v = cli_verbs; v < cli_verbs + cli_n_verbs; v++)
		if (!verb || v == verb)
			printf("  muster %s%s%s\n      %s\n", v->name, *v->args ? " " : "", v->args,
			       v->summary);
	if (!argc)
		printf("\nTry: muster run examples/digits.yaml\n");
	return CLI_OK;
}

/* Finds the verb of the first argument, which may also be --help or --version. */
static const struct cli_verb *find_verb(const char *name)
{
	const struct cli_verb *v = cli_verb_named(name);

	if (v)
		return v;
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return find_verb("help");
	return strcmp(name, "--version") == 0 ? find_verb("version") : NULL;
}

/* A verb whose output cannot be written has failed. The output of run and train is a report beside
 * their results, and its reader may have gone. */
static int check_output(const struct cli_verb *v, int status)
{
	if (v->run == cli_run || v->run == cli_train || (!fflush(stdout) && !ferror(stdout)))
		return status;
	fprintf(stderr, "muster: cannot write the output: %s\n", strerror(errno));
	return status ? status : CLI_FAILED;
}

int main(int argc, char **argv)
{
	const struct cli_verb *v;

	mu_log_init("muster");
	if (argc < 2) {
		help(0, NULL);
		return CLI_USAGE;
	}
	v = find_verb(argv[1]);
	if (!v)
		return unknown_verb(argv[1]);
	if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0))
		return help(1, (char *[]){(char *)v->name});
	return v->run ? check_output(v, v->run(argc - 2, argv + 2))
		      : cli_exec_cluster(v->name, argc - 2, argv + 2);
}
