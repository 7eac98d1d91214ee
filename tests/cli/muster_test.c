// SPDX-License-Identifier: Apache-2.0
/* The program itself, as its users run it: small jobs, wrong manifests, Ctrl-C. */
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/io/checkpoint_state.h"

static char program[4096], folder[64], manifest[128];
static struct mu_err err;

/* build/<mode>/bin/muster, or build/bin/muster, seen from build/<mode>/tests/cli. */
static int find_program(void **state)
{
	static const char *const places[] = {"/../../bin/muster", "/../../../bin/muster"};
	char self[2048];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = 0;
	*strrchr(self, '/') = 0;
	for (size_t i = 0; i < MU_COUNT(places); i++) {
		snprintf(program, sizeof(program), "%s%s", self, places[i]);
		if (access(program, X_OK) == 0)
			return 0;
	}
	return -1;
}

static void write_manifest(int steps, const char *more)
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
		steps, folder, folder, more);
	fclose(f);
}

static int setup(void **state)
{
	strcpy(folder, "/tmp/muster-cli-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(manifest, sizeof(manifest), "%s/job.yaml", folder);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static pid_t start(const char *const *argv, int *out)
{
	int pipes[2];
	pid_t pid;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(pipes[1], STDOUT_FILENO);
		dup2(pipes[1], STDERR_FILENO);
		alarm(60);
		execv(program, (char *const *)argv);
		_exit(127);
	}
	close(pipes[1]);
	*out = pipes[0];
	return pid;
}

static int finish(pid_t pid, int fd, struct mu_buf *said)
{
	char chunk[4096];
	ssize_t n;
	int status;

	while ((n = read(fd, chunk, sizeof(chunk))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			mu_buf_put(said, chunk, (size_t)n);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int muster(struct mu_buf *said, const char *verb, const char *arg)
{
	const char *argv[] = {"muster", verb, arg, NULL};
	int fd;
	pid_t pid = start(argv, &fd);

	return finish(pid, fd, said);
}

#define assert_says(said, text)                                                                    \
	do {                                                                                       \
		if (!(said).data || !strstr((said).data, (text)))                                  \
			fail_msg("'%s' does not say '%s'", (said).data ? (said).data : "",         \
				 (text));                                                          \
	} while (0)

static void a_job_in_sync__takes_each_step_once(void **state)
{
	MU_AUTO_BUF said = {0};

	write_manifest(200, "  mode: sync\n");
	assert_int_equal(muster(&said, "run", manifest), 0);
	assert_says(said, "succeeded");
	assert_says(said, "model.ckpt-200\n"); /* async overshoots by what is under way */
}

static void a_job__runs_to_its_goal_and_says_where_things_are(void **state)
{
	MU_AUTO_BUF said = {0};
	MU_AUTO_BUF shown = {0};
	MU_AUTO_BUF curves = {0};
	char out[128];

	write_manifest(400, "");
	assert_int_equal(muster(&said, "run", manifest), 0);
	assert_says(said, "succeeded");
	assert_says(said, "test accuracy");
	assert_says(said, "model.ckpt-40");
	assert_says(said, "tensorboard --logdir");

	snprintf(out, sizeof(out), "%s/out", folder);
	assert_int_equal(muster(&curves, "events", out), 0);
	assert_says(curves, "test_accuracy");
	const char *argv[] = {"muster", "checkpoint", "show", out, NULL};
	int fd;
	pid_t pid = start(argv, &fd);
	assert_int_equal(finish(pid, fd, &shown), 0);
	assert_says(shown, "softmax/weights");
}

static void an_interrupt__saves_and_ends(void **state)
{
	MU_AUTO_BUF said = {0};
	MU_AUTO_FREE char *latest = NULL;
	const char *argv[] = {"muster", "run", manifest, NULL};
	char out[128], first[256];
	int fd, waited = 0;
	pid_t pid;

	write_manifest(100000000, "");
	snprintf(out, sizeof(out), "%s/out", folder);
	snprintf(first, sizeof(first), "%s/model.ckpt-0.index", out);
	pid = start(argv, &fd);
	while (access(first, F_OK) && waited++ < 600)
		usleep(50000);
	usleep(300000); /* a few steps, so that there is something to save */
	kill(pid, SIGINT);
	assert_int_equal(finish(pid, fd, &said), 130);
	assert_says(said, "run it again to go on from there");
	assert_ok(mu_checkpoint_latest(&latest, out, &err), &err);
	assert_non_null(latest);
	assert_null(strstr(latest, "model.ckpt-0"));
}

static void a_task_that_fails_for_good__fails_the_job(void **state)
{
	MU_AUTO_BUF said = {0};
	char command[256];

	write_manifest(100, "");
	snprintf(command, sizeof(command), "sed -i 's|examples/data/digits.csv.gz|%s/none.csv|' %s",
		 folder, manifest);
	assert_int_equal(system(command), 0);
	assert_int_equal(muster(&said, "run", manifest), 1);
	assert_says(said, "none.csv");
	assert_says(said, "failed");
}

static void a_wrong_manifest__is_told_with_file_and_line(void **state)
{
	MU_AUTO_BUF said = {0};
	MU_AUTO_BUF again = {0};
	char want[160];

	write_manifest(100, "  nonsense: 1\n");
	snprintf(want, sizeof(want), "%s:16", manifest);
	assert_int_equal(muster(&said, "validate", manifest), 1);
	assert_says(said, want);
	assert_says(said, "nonsense");
	assert_int_equal(muster(&again, "run", manifest), 1);
	assert_says(again, want);
}

static void wrong_command_lines__end_with_2(void **state)
{
	static const char *const lines[][2] = {
	    {"fly", NULL}, {"run", NULL}, {"validate", NULL}, {"events", NULL}, {"train", "--x"}};

	for (size_t i = 0; i < MU_COUNT(lines); i++) {
		MU_AUTO_BUF said = {0};

		assert_int_equal(muster(&said, lines[i][0], lines[i][1]), 2);
		assert_says(said, "muster");
	}
}

static void the_manual_and_the_completion__know_every_verb(void **state)
{
	MU_AUTO_BUF page = {0};
	MU_AUTO_BUF words = {0};

	assert_int_equal(muster(&words, "completion", "bash"), 0);
	assert_says(words, "run validate");
	assert_says(words, "complete -o filenames");
	const char *argv[] = {"muster", "man", NULL};
	int fd;
	pid_t pid = start(argv, &fd);
	assert_int_equal(finish(pid, fd, &page), 0);
	assert_says(page, ".B muster run");
	assert_says(page, "\\-\\-fresh");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(a_job__runs_to_its_goal_and_says_where_things_are),
	    T(a_job_in_sync__takes_each_step_once),
	    T(an_interrupt__saves_and_ends),
	    T(a_task_that_fails_for_good__fails_the_job),
	    T(a_wrong_manifest__is_told_with_file_and_line),
	    T(wrong_command_lines__end_with_2),
	    T(the_manual_and_the_completion__know_every_verb),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
