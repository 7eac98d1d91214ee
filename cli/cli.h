/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of `muster`, and their common functions.
 *
 * A verb is a row of the table in main.c and has its own file. Its function gets the arguments
 * without the verb and returns the exit status: 0 for success, 1 for a failure, 2 for a wrong
 * command line. The function reports its failures.
 */
#ifndef MU_CLI_CLI_H
#define MU_CLI_CLI_H

#include "lib/base/buf.h"

enum {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_INTERRUPTED = 130, /* 128 + SIGINT, as in a shell */
	CLI_TRY_AGAIN = 138,   /* 128 or more: the restart policy ExitCode restarts the task */
	CLI_TERMINATED = 143,  /* 128 + SIGTERM, as in a shell */
};

struct cli_verb {
	const char *name, *args, *summary;
	int (*run)(int argc, char **argv); /* NULL: a verb of muster-cluster */
};
extern const struct cli_verb cli_verbs[];
extern const unsigned cli_n_verbs;
const struct cli_verb *cli_verb_named(const char *name); /* NULL if there is none */

int cli_man(int argc, char **argv);
int cli_completion(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_scale(int argc, char **argv);
int cli_validate(int argc, char **argv);
int cli_train(int argc, char **argv);
int cli_checkpoint(int argc, char **argv);
int cli_events(int argc, char **argv);
int cli_convert(int argc, char **argv);
/* Executes muster-cluster with this verb; returns only on failure. */
int cli_exec_cluster(const char *verb, int argc, char **argv);

/* Prints "muster: <message>" to standard error; returns CLI_FAILED. */
int cli_fail(const struct mu_err *err);
/* Prints a formatted message and a pointer to the verb's help; returns CLI_USAGE. */
int cli_usage(const char *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* An option of a verb, as getopt_long reads it: with a value, or a flag. */
struct cli_option {
	const char *name;
	char letter; /* 0: it has only the name */
	const char **value;
	bool *flag; /* set when there is no value */
};
/* Reads the options of the table, which ends with a name of NULL, and moves the other words to the
 * front of argv.  Returns their number, at most max_words, or -1 after a report. */
int cli_options(const char *verb, int argc, char **argv, const struct cli_option *table,
		int max_words);

/* Appends text without control characters. */
void put_printable(struct mu_buf *out, const char *text);

#endif
