/* SPDX-License-Identifier: Apache-2.0 */
/* Runs `muster` as users do: a temporary folder, a small job in it, and the output of the program.
 */
#ifndef MU_TESTS_CLI_JOB_H
#define MU_TESTS_CLI_JOB_H

#include "tests/test.h"
#include "tests/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "tests/program.h"

static char folder[64], manifest[128];

static inline int find_program(void **state)
{
	return find_program_named("muster");
}

static inline void write_manifest(int steps, const char *extra_spec)
{
	FILE *f = fopen(manifest, "w");

	assert_non_null(f);
	fprintf(f,
		"apiVersion: muster.dev/v1\n"
		"kind: DistributedTrainingJob\n"
		"metadata: {name: small}\n"
		"spec:\n"
		"  program:\n"
		"    train:\n"
		"      model: softmax\n"
		"      dataset: {format: csv, path: examples/data/digits.csv.gz}\n"
		"      learningRate: 0.5\n"
		"      steps: %d\n"
		"  tasks:\n"
		"    ps: {replicas: 1}\n"
		"    worker: {replicas: 2}\n"
		"  checkpoint: {path: %s/out}\n"
		"  summaries: {path: %s/out}\n%s",
		steps, folder, folder, extra_spec);
	fclose(f);
}

static inline int setup(void **state)
{
	strcpy(folder, "/tmp/muster-cli-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(manifest, sizeof(manifest), "%s/job.yaml", folder);
	setenv("XDG_RUNTIME_DIR", folder,
	       1); /* isolates the control sockets from other jobs of the user */
	return 0;
}

static inline int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static inline pid_t start(const char *const *argv, int *out)
{
	int pipes[2];
	pid_t pid;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(pipes[1], STDOUT_FILENO);
		dup2(pipes[1], STDERR_FILENO);
		alarm(150); /* generous, for loaded machines */
		execv(program, (char *const *)argv);
		_exit(127);
	}
	close(pipes[1]);
	*out = pipes[0];
	return pid;
}

static inline int finish(pid_t pid, int fd, struct mu_buf *output)
{
	char chunk[4096];
	ssize_t n;
	int status;

	while ((n = read(fd, chunk, sizeof(chunk))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			mu_buf_put(output, chunk, (size_t)n);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int muster(struct mu_buf *output, const char *verb, const char *arg)
{
	const char *argv[] = {"muster", verb, arg, NULL};
	int fd;
	pid_t pid = start(argv, &fd);

	return finish(pid, fd, output);
}

/* Finds the processes of a running job; returns their number. */
static inline unsigned tasks_of(pid_t job, pid_t *out, unsigned max_tasks)
{
	char path[64];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)job, (int)job);
	f = fopen(path, "r");
	while (f && n < max_tasks && fscanf(f, "%d", &out[n]) == 1)
		n++;
	if (f)
		fclose(f);
	return n;
}

/* Returns the number in the first line that a shell command prints; 0: none. */
static inline pid_t printed_number(const char *command)
{
	FILE *f = popen(command, "r");
	char line[64] = "";

	assert_non_null(f);
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	pclose(f);
	return (pid_t)atoi(line);
}

#define assert_output_has(output, text)                                                            \
	do {                                                                                       \
		if (!(output).data || !strstr((output).data, (text)))                              \
			fail_msg("'%s' does not contain '%s'", (output).data ? (output).data : "", \
				 (text));                                                          \
	} while (0)

#endif
