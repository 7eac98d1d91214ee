/* SPDX-License-Identifier: Apache-2.0 */
/* muster scale on a running job: workers start and end, ps tasks and their variables stay. */
#include "tests/cli/job.h"

struct job {
	pid_t pid;
	int fd;
	char name[64];
	struct mu_buf output;
};

static struct job begin_job_with(const char *scale, const char *extra_spec)
{
	const char *argv[] = {"muster", "run", "--scale", scale, manifest, NULL};
	struct job j = {.pid = 0};

	write_manifest(100000000, extra_spec);
	j.pid = start(argv, &j.fd);
	snprintf(j.name, sizeof(j.name), "small.%d", (int)j.pid);
	return j;
}

static struct job begin_job(const char *scale)
{
	return begin_job_with(scale, "");
}

/* Interrupts the job and returns its output. */
static void end_job(struct job *j)
{
	kill(j->pid, SIGINT);
	assert_int_equal(finish(j->pid, j->fd, &j->output), 130);
}

static int scale(struct mu_buf *output, const char *job, const char *text)
{
	const char *argv[] = {"muster", "scale", job, text, NULL};
	int fd;
	pid_t pid = start(argv, &fd);

	return finish(pid, fd, output);
}

/* Number of occurrences of a text in a task's log. */
static unsigned count_in_log(const char *task, const char *text)
{
	char path[128], line[1024];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/out/logs/%s.log", folder, task);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return n;
}

static void wait_for(const char *task, const char *text)
{
	if (!BECOMES_TRUE(count_in_log(task, text)))
		fail_msg("the log of %s lacks '%s'", task, text);
}

static void wait_for_tasks(pid_t job, unsigned n)
{
	pid_t all[16];

	WAIT_UNTIL(tasks_of(job, all, 16) == n);
}

static void workers__start_and_end_while_the_ps_stays(void **state)
{
	struct job j = begin_job("worker=1");
	MU_AUTO_BUF up = {0};
	MU_AUTO_BUF down = {0};

	wait_for("worker-0", "progress step=");
	assert_int_equal(scale(&up, j.name, "worker=4"), 0);
	assert_output_has(up, "worker 1 -> 4");
	wait_for("worker-3", "progress step=");
	assert_int_equal(scale(&down, manifest, "worker=2"), 0);
	assert_output_has(down, "worker 4 -> 2");
	wait_for_tasks(j.pid, 3);
	end_job(&j);
	assert_int_equal(count_in_log("ps-0", "serves on"), 1);
	assert_int_equal(count_in_log("worker-0", "serves on"), 1);
	assert_null(strstr(j.output.data, "failed"));
	assert_output_has(j.output, "/out/model.ckpt-"); /* the checkpoint saved at the interrupt */
	mu_buf_fini(&j.output);
}

/* The process of task worker-<index>. */
static pid_t worker_pid(pid_t job, int index)
{
	char task_json[64], path[64], env[16384];
	pid_t all[16];
	unsigned n = tasks_of(job, all, 16);

	snprintf(task_json, sizeof(task_json), "\"task\":{\"type\":\"worker\",\"index\":%d}",
		 index);
	for (unsigned i = 0; i < n; i++) {
		size_t len;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/environ", (int)all[i]);
		f = fopen(path, "r");
		len = f ? fread(env, 1, sizeof(env) - 1, f) : 0;
		if (f)
			fclose(f);
		for (size_t at = 0; at < len; at++)
			env[at] = env[at] ? env[at] : ' ';
		env[len] = 0;
		if (strstr(env, task_json))
			return all[i];
	}
	return 0;
}

/* The killed worker has not deregistered. After the scale-down it does not restart, so the other
 * workers must not wait for its gradients. */
static void worker__killed_before_a_scale_down__does_not_block_the_others(void **state)
{
	struct job j =
	    begin_job_with("worker=3", "  mode: sync\n  sync: {replicasToAggregate: 3}\n");
	unsigned n_lines;

	for (int round = 0; round < 3; round++) {
		MU_AUTO_BUF down = {0};
		MU_AUTO_BUF up = {0};
		pid_t victim;

		wait_for("worker-2", "progress step=");
		WAIT_UNTIL((victim = worker_pid(j.pid, 2)) > 0);
		kill(victim, SIGKILL);
		assert_int_equal(scale(&down, j.name, "worker=2"), 0);
		n_lines = count_in_log("worker-0", "progress step=");
		if (!BECOMES_TRUE(count_in_log("worker-0", "progress step=") > n_lines + 3))
			fail_msg("round %d: the others stand still", round);
		wait_for_tasks(j.pid, 3);
		n_lines = count_in_log("worker-2", "progress step=");
		assert_int_equal(scale(&up, j.name, "worker=3"), 0);
		if (!BECOMES_TRUE(count_in_log("worker-2", "progress step=") > n_lines))
			fail_msg("round %d: worker 2 does not come back", round);
	}
	end_job(&j);
	mu_buf_fini(&j.output);
}

static void second_run_with_scale__changes_the_running_job(void **state)
{
	struct job j = begin_job("worker=1");
	const char *again[] = {"muster", "run", manifest, "--scale=worker=2", NULL};
	MU_AUTO_BUF output = {0};
	int fd;
	pid_t pid;

	wait_for("worker-0", "progress step=");
	pid = start(again, &fd);
	assert_int_equal(finish(pid, fd, &output), 0);
	assert_output_has(output, "worker 1 -> 2");
	wait_for("worker-1", "progress step=");
	end_job(&j);
	mu_buf_fini(&j.output);
}

/* Both would write to the same folders. */
static void second_run_of_a_running_job__fails(void **state)
{
	static const char *const again[][5] = {{"muster", "run", manifest},
					       {"muster", "run", "--fresh", manifest}};
	struct job j = begin_job("worker=1");

	wait_for("worker-0", "progress step=");
	for (size_t i = 0; i < MU_COUNT(again); i++) {
		MU_AUTO_BUF output = {0};
		int fd;
		pid_t pid = start(again[i], &fd);

		assert_int_equal(finish(pid, fd, &output), 1);
		assert_output_has(output, "another muster run uses");
		assert_output_has(output, "muster scale small worker=N");
	}
	end_job(&j);
	assert_int_equal(count_in_log("worker-0", "serves on"), 1);
	mu_buf_fini(&j.output);
}

static void invalid_scale__is_reported_in_one_line(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
	    {"ps=2", "the number of ps tasks is fixed"},
	    {"worker=0", "at least 1 is needed"},
	    {"helper=2", "has no task 'helper'"},
	    {"worker=x", "is not TASK=N"},
	    {"worker=-1", "is not TASK=N"},
	    {"worker=1000000", "tasks of one kind are allowed"},
	};
	struct job j = begin_job("worker=1");

	wait_for("ps-0", "serves on");
	for (size_t i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_BUF output = {0};

		assert_int_equal(scale(&output, j.name, cases[i].text), 1);
		assert_output_has(output, cases[i].why);
	}
	end_job(&j);
	mu_buf_fini(&j.output);
}

static void scale__of_a_job_that_is_not_running__fails(void **state)
{
	MU_AUTO_BUF output = {0};

	assert_int_equal(scale(&output, "nobody", "worker=2"), 1);
	assert_output_has(output, "you run no job 'nobody'");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(workers__start_and_end_while_the_ps_stays),
	    T(worker__killed_before_a_scale_down__does_not_block_the_others),
	    T(second_run_with_scale__changes_the_running_job),
	    T(second_run_of_a_running_job__fails),
	    T(invalid_scale__is_reported_in_one_line),
	    T(scale__of_a_job_that_is_not_running__fails),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
