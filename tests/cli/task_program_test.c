/* SPDX-License-Identifier: Apache-2.0 */
/* muster run with scripts as tasks: environment, template, logs, exit codes, signals. */
#include "tests/cli/job.h"

/* A job whose tasks are this shell script. */
static void write_tasks(const char *tasks, const char *script)
{
	FILE *f = fopen(manifest, "w");

	assert_non_null(f);
	fprintf(f,
		"apiVersion: muster.dev/v1\n"
		"kind: DistributedTrainingJob\n"
		"metadata: {name: script}\n"
		"spec:\n"
		"  program: {command: [bash, -c, \"%s\"]}\n"
		"  tasks: %s\n"
		"  checkpoint: {path: %s/out}\n",
		script, tasks, folder);
	fclose(f);
}

static void write_script(const char *script)
{
	write_tasks("{worker: {replicas: 1}}", script);
}

/* Waits until a file exists in the test's folder. */
static void wait_for_file(const char *name)
{
	MU_AUTO_FREE char *path = mu_xasprintf("%s/%s", folder, name);

	WAIT_UNTIL(access(path, F_OK) == 0);
}

/* A task that ignores the first interrupt is killed after the second. */
static void second_interrupt__kills_a_task_that_does_not_end(void **state)
{
	MU_AUTO_BUF output = {0};
	const char *argv[] = {"muster", "run", manifest, NULL};
	char command[256];
	pid_t pid, task = 0;
	FILE *f = fopen(manifest, "w");
	int fd;

	assert_non_null(f);
	fprintf(f,
		"apiVersion: muster.dev/v1\n"
		"kind: DistributedTrainingJob\n"
		"metadata: {name: stubborn}\n"
		"spec:\n"
		"  program:\n"
		"    command: [bash, -c, \"trap '' TERM INT; echo $$$$ >%s/pid; sleep 100; sleep "
		"100\"]\n"
		"  tasks:\n"
		"    worker: {replicas: 1}\n"
		"  checkpoint: {path: %s/out}\n",
		folder, folder);
	fclose(f);
	pid = start(argv, &fd);
	snprintf(command, sizeof(command), "cat %s/pid 2>/dev/null", folder);
	WAIT_UNTIL((task = printed_number(command)) > 0);
	kill(pid, SIGINT);
	wait_ms(100); /* two signals at the same time merge to one */
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	assert_int_equal(kill(task, 0), 0);
	kill(pid, SIGINT);
	assert_int_equal(finish(pid, fd, &output), 130);
	assert_int_equal(kill(task, 0), -1);
	assert_output_has(output, "stubborn: stopped");
}

/* The task is killed after the grace period of its pod template. */
static void interrupt__of_a_task_that_does_not_end__waits_for_its_grace_period(void **state)
{
	const char *argv[] = {"muster", "run", manifest, NULL};
	MU_AUTO_BUF output = {0};
	double interrupted_at, seconds;
	char script[200];
	pid_t pid;
	int fd;

	snprintf(script, sizeof(script),
		 "trap '' TERM; touch %s/started; while :; do sleep 1; done", folder);
	write_tasks("{worker: {template: {spec: {terminationGracePeriodSeconds: 3}}}}", script);
	pid = start(argv, &fd);
	wait_for_file("started");
	interrupted_at = mu_clock();
	kill(pid, SIGINT);
	assert_int_equal(finish(pid, fd, &output), 130);
	seconds = mu_clock() - interrupted_at;
	if (seconds < 3 || seconds > 10)
		fail_msg("the task ended after %.1f s", seconds);
}

/* Other tasks still end when the chief has succeeded. */
static void interrupt__after_success__keeps_exit_code_0(void **state)
{
	const char *argv[] = {"muster", "run", manifest, NULL};
	MU_AUTO_FREE char *over = mu_xasprintf("%s/over", folder);
	MU_AUTO_BUF output = {0};
	char script[400];
	pid_t pid;
	int fd;

	snprintf(script, sizeof(script),
		 "cd %s; until [ -e $UNTIL ]; do trap 'touch asked' TERM; "
		 "touch waits-for-$UNTIL; sleep 0.1; done",
		 folder);
	write_tasks("{chief: {template: {spec: {containers: [{env: [{name: UNTIL, value: "
		    "waits-for-over}]}]}}}, worker: {template: {spec: {containers: [{env: [{name: "
		    "UNTIL, value: over}]}]}}}}",
		    script);
	pid = start(argv, &fd);
	wait_for_file("asked");
	kill(pid, SIGINT);
	fclose(fopen(over, "w"));
	assert_int_equal(finish(pid, fd, &output), 0);
	assert_output_has(output, "script: succeeded in ");
}

/* Starts `muster run` with its logs in a folder of the test's folder. */
static pid_t start_with_logs(const char *logs, int *fd)
{
	MU_AUTO_FREE char *path = mu_xasprintf("%s/%s", folder, logs);
	const char *argv[] = {"muster", "run", "--logs", path, manifest, NULL};

	return start(argv, fd);
}

static void second_run_with_other_logs__does_not_get_the_checkpoint_folder(void **state)
{
	MU_AUTO_BUF first_output = {0};
	MU_AUTO_BUF second_output = {0};
	int first_fd, second_fd;
	pid_t first, second;

	write_script("sleep 100");
	first = start_with_logs("first", &first_fd);
	wait_for_file("first/worker-0.log");
	second = start_with_logs("second", &second_fd);
	assert_int_equal(finish(second, second_fd, &second_output), 1);
	assert_output_has(second_output, "another muster run uses");
	kill(first, SIGINT);
	assert_int_equal(finish(first, first_fd, &first_output), 130);
}

static void task_log__stays_below_its_limit(void **state)
{
	const char *argv[] = {"muster", "run", "--log-size", "1", manifest, NULL};
	MU_AUTO_BUF output = {0};
	char command[256];
	int fd;
	pid_t pid;

	write_script("seq 1 400000; echo the end; exit 1");
	pid = start(argv, &fd);
	assert_int_equal(finish(pid, fd, &output), 1);
	assert_output_has(output, "worker-0.log: the end");
	snprintf(command, sizeof(command),
		 "cd %s/out/logs; tail -n 1 worker-0.log | grep -qx 'the end' && "
		 "test $(cat worker-0.log* | wc -c) -le 1048576",
		 folder);
	assert_int_equal(system(command), 0);
}

/* Standard input is empty, signals have their defaults, and the processes that the task started end
 * with it. */
static void environment_of_a_task__is_as_in_a_pod(void **state)
{
	MU_AUTO_BUF output = {0};
	char script[400], command[256];
	pid_t child;

	snprintf(script, sizeof(script),
		 "sleep 100 & echo $! >%s/child; read line || echo no input; "
		 "yes | head -n 1; echo status ${PIPESTATUS[0]}; exit 0",
		 folder);
	write_script(script);
	assert_int_equal(muster(&output, "run", manifest), 0);
	snprintf(command, sizeof(command),
		 "grep -c -e 'no input' -e 'status 141' %s/out/logs/worker-0.log", folder);
	assert_int_equal(printed_number(command), 2);
	snprintf(command, sizeof(command), "cat %s/child", folder);
	child = printed_number(command);
	assert_true(child > 0);
	WAIT_UNTIL(kill(child, 0) != 0);
}

static void variables_of_the_template__take_precedence(void **state)
{
	MU_AUTO_BUF output = {0};

	write_tasks("{worker: {template: {spec: {containers: [{env: ["
		    "{name: FOO, value: a b}, {name: MUSTER_EPOCH, value: '7'}]}]}}}}",
		    "echo [$FOO] $MUSTER_EPOCH; exit 5");
	assert_int_equal(muster(&output, "run", manifest), 1);
	assert_output_has(output, "worker-0.log: [a b] 7");
}

static void fields_and_references_of_the_template__are_replaced_as_in_a_pod(void **state)
{
	MU_AUTO_BUF output = {0};
	char command[256];

	write_tasks("{worker: {template: {spec: {containers: [{workingDir: /usr, env: ["
		    "{name: ME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, "
		    "{name: AT, value: '$(ME).$$(ME).$(NONE)'}, "
		    "{name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}}}}",
		    "echo $AT in $PWD at $(ME); exit 5");
	assert_int_equal(muster(&output, "run", manifest), 1);
	assert_output_has(output, "-worker-0.$(ME).$(NONE) in /usr at ");
	snprintf(command, sizeof(command),
		 "grep -c 'KEY is not set: a process has no secretKeyRef; export KEY before' "
		 "%s/out/logs/worker-0.log",
		 folder);
	assert_int_equal(printed_number(command), 1);
}

/* The failure report shows the line of the program, not a later line of a server's log, and no
 * control characters. */
static void failure_report__of_a_task__has_the_last_line_of_its_program(void **state)
{
	MU_AUTO_BUF output = {0};

	write_script("printf 'no \\\\033[31mdata\\\\n'; "
		     "echo '12:00:00.000Z info  muster-task: task: exiting'; exit 1");
	assert_int_equal(muster(&output, "run", manifest), 1);
	assert_output_has(output, "worker-0.log: no  [31mdata");
}

/* The ps is restarted until the job ends. */
static void ps__that_exits_with_0__is_reported(void **state)
{
	MU_AUTO_BUF output = {0};

	write_tasks("{ps: {replicas: 1}, worker: {replicas: 1}}\n"
		    "  run: {activeDeadlineSeconds: 3}",
		    "exit 0");
	assert_int_equal(muster(&output, "run", manifest), 1);
	assert_output_has(output, "ps-0 ended with exit code 0 before the job has ended");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(second_interrupt__kills_a_task_that_does_not_end),
	    T(second_run_with_other_logs__does_not_get_the_checkpoint_folder),
	    T(interrupt__after_success__keeps_exit_code_0),
	    T(interrupt__of_a_task_that_does_not_end__waits_for_its_grace_period),
	    T(task_log__stays_below_its_limit),
	    T(environment_of_a_task__is_as_in_a_pod),
	    T(variables_of_the_template__take_precedence),
	    T(fields_and_references_of_the_template__are_replaced_as_in_a_pod),
	    T(failure_report__of_a_task__has_the_last_line_of_its_program),
	    T(ps__that_exits_with_0__is_reported),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
