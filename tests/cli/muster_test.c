/* SPDX-License-Identifier: Apache-2.0 */
/* The program as users run it: small jobs, invalid manifests, Ctrl-C. */
#include "lib/checkpoint/checkpoint_state.h"
#include "tests/cli/job.h"

static struct mu_err err;

static int system_in_folder(const char *command)
{
	MU_AUTO_FREE char *all = mu_xasprintf("cd %s && %s", folder, command);

	return system(all);
}

static void killed_process_in_sync_mode__each_step_counts_once(void **state)
{
	MU_AUTO_BUF output = {0};

	write_manifest(200, "  mode: sync\n");
	assert_int_equal(muster(&output, "run", manifest), 0);
	assert_output_has(output, "succeeded");
	assert_output_has(output,
			  "model.ckpt-200\n"); /* async mode overshoots by the pending steps */
}

static void job__runs_to_its_goal_and_prints_the_paths_of_its_results(void **state)
{
	MU_AUTO_BUF output = {0};
	MU_AUTO_BUF shown = {0};
	MU_AUTO_BUF curves = {0};
	const char *run[] = {"build/bin/muster", "run", manifest, NULL};
	char out[128];
	pid_t pid;
	int fd;

	write_manifest(400, "");
	pid = start(run, &fd);
	assert_int_equal(finish(pid, fd, &output), 0);
	assert_output_has(output, "succeeded");
	assert_output_has(output, "test accuracy");
	assert_output_has(output, "model.ckpt-40");
	assert_output_has(output,
			  "build/bin/muster checkpoint show "); /* with the path it was called by */
	assert_output_has(output, "build/bin/muster events ");
	assert_output_has(output, "tensorboard --logdir");

	snprintf(out, sizeof(out), "%s/out", folder);
	assert_int_equal(muster(&curves, "events", out), 0);
	assert_output_has(curves, "test_accuracy");
	const char *argv[] = {"muster", "checkpoint", "show", out, NULL};
	pid = start(argv, &fd);
	assert_int_equal(finish(pid, fd, &shown), 0);
	assert_output_has(shown, "softmax/weights");
}

/* The loss of the last progress line of the chief's log. */
static double logged_loss(void)
{
	char log[128], line[1024];
	double loss = -1;
	FILE *f;

	snprintf(log, sizeof(log), "%s/out/logs/worker-0.log", folder);
	f = fopen(log, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "progress step=%*d target=%*d loss=%lf", &loss);
	fclose(f);
	return loss;
}

/* With learning rate 0 the second score is not better than the first. */
static void job__stopped_by_validation__reports_it_with_the_right_step(void **state)
{
	MU_AUTO_BUF output = {0};
	const char *why;
	long long step = 0, at = 0;

	write_manifest(200000, "");
	assert_int_equal(system_in_folder("sed -i 's/learningRate: 0.5/learningRate: 0/; "
					  "s/^      steps:/      validation: {everySteps: 20, "
					  "patience: 1}\\n      steps:/' job.yaml"),
			 0);
	assert_int_equal(muster(&output, "run", manifest), 0);
	why = strstr(output.data, "succeeded in ");
	assert_non_null(why);
	assert_int_equal(sscanf(why,
				"succeeded in %*f s, step %lld: validation stopped the training at "
				"step %lld of 200000",
				&step, &at),
			 2);
	assert_true(step >= 40 && step < 1000);
	assert_int_equal(step, at);
}

/* The termination message of a job that ends at once. */
static void job_of_one_step__writes_its_loss_to_the_termination_message(void **state)
{
	MU_AUTO_BUF output = {0};
	char path[128], word[512] = "";
	double loss = -1, accuracy = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/termination-log", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	setenv("MUSTER_TERMINATION_LOG", path, 1);
	write_manifest(1, "  mode: sync\n");
	assert_int_equal(muster(&output, "run", manifest), 0);
	unsetenv("MUSTER_TERMINATION_LOG");
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(word, sizeof(word), f));
	fclose(f);
	assert_ptr_equal(strstr(word, "{\"step\":1,\"targetStep\":1,"), word);
	assert_non_null(strstr(word, "\"loss\":"));
	sscanf(strstr(word, "\"loss\":"), "\"loss\":%lf,\"accuracy\":%lf", &loss, &accuracy);
	assert_true(loss > 0);
	assert_true(accuracy >= 0);
	assert_non_null(strstr(word, "\"reason\":\"TargetReached\"}"));
	/* loss of the final model; the only step began with the untrained model */
	assert_true(loss < logged_loss());
	assert_int_equal(unlink(path), 0);
}

/* The last step that the chief reported, or -1. */
static long long progress(void)
{
	char log[128], line[1024];
	long long got = -1;
	FILE *f;

	snprintf(log, sizeof(log), "%s/out/logs/worker-0.log", folder);
	f = fopen(log, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "progress step=%lld", &got);
	if (f)
		fclose(f);
	return got;
}

/* Waits until the chief reports a later step and returns it. */
static long long progress_after(long long step)
{
	long long got;

	WAIT_UNTIL((got = progress()) > step);
	return got;
}

static pid_t number_said_by(const char *command)
{
	FILE *f = popen(command, "r");
	char line[64] = "";

	assert_non_null(f);
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	pclose(f);
	return (pid_t)atoi(line);
}

/* The process of a child task, found by its environment. */
static pid_t chief_of(pid_t parent)
{
	char command[512];
	pid_t chief;

	snprintf(command, sizeof(command),
		 "for p in $(pgrep -P %d); do tr '\\0' '\\n' </proc/$p/environ | tr -d ' ' | "
		 "grep '^TF_CONFIG=' | grep -q '\"type\":\"worker\".*\"index\":0\\|"
		 "\"index\":0.*\"type\":\"worker\"' && echo $p; done",
		 (int)parent);
	WAIT_UNTIL((chief = number_said_by(command)) > 0); /* a restarting task has no process */
	return chief;
}

static void killed_chief__in_sync_mode__restarts_and_reaches_the_goal(void **state)
{
	MU_AUTO_BUF output = {0};
	const char *argv[] = {"muster", "run", manifest, NULL};
	long long step = 0;
	int fd;
	pid_t pid;

	/* long enough to kill the chief twice */
	write_manifest(20000, "  mode: sync\n  run: {restartPolicy: OnFailure, backoffLimit: 5}\n");
	pid = start(argv, &fd);
	for (int i = 0; i < 2; i++) {
		step = progress_after(step);
		kill(chief_of(pid), SIGKILL);
	}
	assert_int_equal(finish(pid, fd, &output), 0);
	assert_output_has(output, "model.ckpt-20000\n");
}

static void master__leads_as_a_chief_does(void **state)
{
	static const char *const workers[] = {"master: {}", "master: {}, worker: {replicas: 1}"};

	for (unsigned i = 0; i < MU_COUNT(workers); i++) {
		MU_AUTO_BUF output = {0};
		MU_AUTO_FREE char *edit = NULL;
		const char *argv[] = {"muster", "run", manifest, NULL};
		int fd;
		pid_t pid;

		write_manifest(100 * (int)(i + 1), "  mode: sync\n");
		edit = mu_xasprintf("sed -i '/replicas: 1/d; s/tasks:/tasks: {ps: {}, %s}/; "
				    "/worker: {replicas: 2}/d' %s",
				    workers[i], manifest);
		assert_int_equal(system(edit), 0);
		pid = start(argv, &fd);
		assert_int_equal(finish(pid, fd, &output), 0);
		assert_output_has(output, i ? "model.ckpt-200\n" : "model.ckpt-100\n");
	}
}

static int checkpoint_diff(struct mu_buf *output, const char *a, const char *b)
{
	const char *argv[] = {"muster", "checkpoint", "diff", a, b, NULL};
	int fd;
	pid_t pid = start(argv, &fd);

	return finish(pid, fd, output);
}

static void checkpoint_diff__shows_trained_variables(void **state)
{
	MU_AUTO_BUF output = {0};
	MU_AUTO_BUF same = {0};
	MU_AUTO_BUF diff = {0};
	MU_AUTO_BUF none = {0};
	MU_AUTO_BUF in_moved = {0};
	char first[160], out[128], moved[128];

	write_manifest(200, "  mode: sync\n");
	if (muster(&output, "run", manifest))
		fail_msg("%s", output.data);
	snprintf(first, sizeof(first), "%s/out/model.ckpt-0", folder);
	snprintf(out, sizeof(out), "%s/out", folder);
	assert_int_equal(checkpoint_diff(&diff, first, out), 1);
	assert_output_has(
	    diff, "~ global_step int64 []: 1 of 1 values, largest difference at 0: 0 -> 200");
	assert_output_has(diff, "~ softmax/weights float [64,10]: ");
	assert_output_has(diff, ", 0 only in ");
	assert_int_equal(checkpoint_diff(&same, out, out), 0);
	assert_output_has(same, " equal, 0 changed, 0 only in ");
	assert_int_equal(checkpoint_diff(&none, out, "/nowhere/model"), 2);
	assert_output_has(none, "/nowhere/model");
	/* only the file name says which file of a checkpoint it is */
	snprintf(moved, sizeof(moved), "%s/runs.data-1", folder);
	assert_int_equal(rename(out, moved), 0);
	snprintf(first, sizeof(first), "%s/model.ckpt-0.index", moved);
	assert_int_equal(checkpoint_diff(&in_moved, first, first), 0);
}

static void interrupt__saves_and_ends(void **state)
{
	MU_AUTO_BUF output = {0};
	MU_AUTO_FREE char *latest = NULL;
	const char *argv[] = {"muster", "run", manifest, NULL};
	char out[128];
	long long step = 0, saved = 0;
	int fd;
	pid_t pid;

	write_manifest(100000000, "");
	snprintf(out, sizeof(out), "%s/out", folder);
	pid = start(argv, &fd);
	step = progress_after(0);
	kill(pid, SIGINT);
	assert_int_equal(finish(pid, fd, &output), 130);
	assert_output_has(output, "run it again to continue from there");
	assert_ok(mu_checkpoint_latest(&latest, out, &err), &err);
	assert_non_null(latest);
	assert_non_null(strstr(latest, "model.ckpt-"));
	saved = atoll(strstr(latest, "model.ckpt-") + strlen("model.ckpt-"));
	assert_true(saved >= step);
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
	fprintf(
	    f,
	    "apiVersion: muster.dev/v1\n"
	    "kind: DistributedTrainingJob\n"
	    "metadata: {name: stubborn}\n"
	    "spec:\n"
	    "  program:\n"
	    "    command: [bash, -c, \"trap '' TERM INT; echo $$$$ >%s/pid; sleep 100; sleep 100\"]\n"
	    "  tasks:\n"
	    "    worker: {replicas: 1}\n"
	    "  checkpoint: {path: %s/out}\n",
	    folder, folder);
	fclose(f);
	pid = start(argv, &fd);
	snprintf(command, sizeof(command), "cat %s/pid 2>/dev/null", folder);
	WAIT_UNTIL((task = number_said_by(command)) > 0);
	kill(pid, SIGINT);
	wait_ms(100); /* two signals at the same time merge to one */
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	assert_int_equal(kill(task, 0), 0);
	kill(pid, SIGINT);
	assert_int_equal(finish(pid, fd, &output), 130);
	assert_int_equal(kill(task, 0), -1);
	assert_output_has(output, "stubborn: stopped");
}

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
	const char *argv[] = {"muster", "run", manifest, NULL};
	MU_AUTO_BUF output = {0};
	char script[400], command[256];
	pid_t pid, child;
	int fd;

	snprintf(script, sizeof(script),
		 "sleep 100 & echo $! >%s/child; read line || echo no input; "
		 "yes | head -n 1; echo status ${PIPESTATUS[0]}; exit 0",
		 folder);
	write_script(script);
	pid = start(argv, &fd);
	assert_int_equal(finish(pid, fd, &output), 0);
	snprintf(command, sizeof(command),
		 "grep -c -e 'no input' -e 'status 141' %s/out/logs/worker-0.log", folder);
	assert_int_equal(number_said_by(command), 2);
	snprintf(command, sizeof(command), "cat %s/child", folder);
	child = number_said_by(command);
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
	assert_int_equal(number_said_by(command), 1);
}

static void job__that_is_suspended__is_not_run(void **state)
{
	MU_AUTO_BUF output = {0};

	write_manifest(100, "  run: {suspend: true}\n");
	assert_int_equal(muster(&output, "run", manifest), 1);
	assert_output_has(output, ":16: spec.run.suspend: is true");
}

/* The failure report shows the line of the program, not a later line of a server's log, and no
 * control characters. */
static void last_line_of_a_failed_task__is_that_of_its_program(void **state)
{
	MU_AUTO_BUF output = {0};

	write_script("printf 'no \\\\033[31mdata\\\\n'; "
		     "echo '12:00:00.000Z info  muster-task: task: exiting'; exit 1");
	assert_int_equal(muster(&output, "run", manifest), 1);
	assert_output_has(output, "worker-0.log: no  [31mdata");
}

/* It is started again until the job ends. */
static void ps__that_ends_with_0__is_reported(void **state)
{
	MU_AUTO_BUF output = {0};

	write_tasks("{ps: {replicas: 1}, worker: {replicas: 1}}\n"
		    "  run: {activeDeadlineSeconds: 3}",
		    "exit 0");
	assert_int_equal(muster(&output, "run", manifest), 1);
	assert_output_has(output, "ps-0 ended with exit code 0 before the job has ended");
}

static void task__that_fails_permanently__fails_the_job(void **state)
{
	MU_AUTO_BUF output = {0};
	char command[256];

	write_manifest(100, "");
	snprintf(command, sizeof(command), "sed -i 's|examples/data/digits.csv.gz|%s/none.csv|' %s",
		 folder, manifest);
	assert_int_equal(system(command), 0);
	assert_int_equal(muster(&output, "run", manifest), 1);
	assert_output_has(output, "none.csv");
	assert_output_has(output, "failed");
}

static void invalid_manifest__is_reported_with_file_and_line(void **state)
{
	MU_AUTO_BUF output = {0};
	MU_AUTO_BUF again = {0};
	char want[160];

	write_manifest(100, "  nonsense: 1\n");
	snprintf(want, sizeof(want), "%s:16", manifest);
	assert_int_equal(muster(&output, "validate", manifest), 1);
	assert_output_has(output, want);
	assert_output_has(output, "nonsense");
	assert_int_equal(muster(&again, "run", manifest), 1);
	assert_output_has(again, want);
}

/* The same checks as the API server at pod creation. */
static void validate__rejects_pods_that_the_api_server_rejects(void **state)
{
	static const struct {
		const char *task, *says;
	} cases[] = {
	    {"resources: {limits: {memory: 2GB}}", "limits.memory: must be a quantity"},
	    {"template: {metadata: {labels: {a: no label}}}",
	     "labels.a: must be a valid label value"},
	    {"template: {metadata: {labels: {a/b/c: d}}}", "is not a valid label name"},
	    {"template: {container: []}", "template.container: unknown field"},
	    {"template: {spec: {containers: [{env: {A: b}}]}}", "env: must be a list"},
	    {"template: {spec: {containers: [{env: [A]}]}}", "env[0]: must be a map with a name"},
	    {"template: {spec: {containers: [{env: [{name: y}]}]}}",
	     "env[0].name: must be a string, got true or false: put it in quotes"},
	    {"template: {spec: {containers: [{env: [{name: A, value: 1}]}]}}",
	     "env[0].value: must be a string"},
	};
	write_manifest(100, "");
	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_BUF output = {0};
		FILE *f = fopen(manifest, "w");

		assert_non_null(f);
		fprintf(f,
			"apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\nmetadata: {name: "
			"j}\nspec: {tasks: {worker: {%s}}}\n",
			cases[i].task);
		fclose(f);
		assert_int_equal(muster(&output, "validate", manifest), 1);
		assert_output_has(output, cases[i].says);
	}
}

/* The plan of a single manifest has no heading; with several each begins with the manifest. */
static void plans_of_several_manifests__have_headings(void **state)
{
	MU_AUTO_BUF one = {0};
	MU_AUTO_BUF both = {0};
	const char *alone[] = {"muster", "validate", "--plan", manifest, NULL};
	const char *twice[] = {"muster", "validate", "--plan", manifest, "examples/cnn.yaml", NULL};
	char first[160];
	int fd;
	pid_t pid;

	write_manifest(100, "");
	pid = start(alone, &fd);
	assert_int_equal(finish(pid, fd, &one), 0);
	assert_memory_equal(one.data, "step 1\n", 7);
	pid = start(twice, &fd);
	assert_int_equal(finish(pid, fd, &both), 0);
	snprintf(first, sizeof(first), "%s: job 'small'\nstep 1\n", manifest);
	assert_memory_equal(both.data, first, strlen(first));
	assert_output_has(both, "\nexamples/cnn.yaml: job '");
}

static void invalid_command_lines__exit_with_2(void **state)
{
	static const char *const lines[][2] = {
	    {"fly", NULL},    {"run", NULL},           {"validate", NULL}, {"events", NULL},
	    {"train", "--x"}, {"run", "--log-size=x"}, {"validate", "--x"}};

	for (size_t i = 0; i < MU_COUNT(lines); i++) {
		MU_AUTO_BUF output = {0};

		assert_int_equal(muster(&output, lines[i][0], lines[i][1]), 2);
		assert_output_has(output, "muster");
	}
}

static void servers__show_their_addresses_and_when_they_are_ready(void **state)
{
	MU_AUTO_BUF output = {0};
	FILE *f = fopen(manifest, "w");

	assert_non_null(f);
	fprintf(f,
		"apiVersion: muster.dev/v1\n"
		"kind: DistributedTrainingJob\n"
		"metadata: {name: servers}\n"
		"spec:\n"
		"  tasks: {ps: {replicas: 1}, worker: {replicas: 1}}\n"
		"  checkpoint: {path: %s/out}\n"
		"  run: {activeDeadlineSeconds: 8}\n",
		folder);
	fclose(f);
	assert_int_equal(muster(&output, "run", manifest), 1);
	assert_output_has(output, "ps-0  grpc://127.0.0.1:");
	assert_output_has(output, "worker-0  grpc://127.0.0.1:");
	assert_output_has(output, "ps 1/1  worker 1/1");
}

static void output__that_cannot_be_written__is_a_failure(void **state)
{
	MU_AUTO_FREE char *command = NULL, *look = NULL;

	write_manifest(100, "");
	command = mu_xasprintf("%s validate %s >/dev/full 2>%s/said", program, manifest, folder);
	assert_int_equal(WEXITSTATUS(system(command)), 1);
	look = mu_xasprintf("grep -q 'muster: cannot write the output' %s/said", folder);
	assert_int_equal(system(look), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(job__runs_to_its_goal_and_prints_the_paths_of_its_results),
	    T(killed_process_in_sync_mode__each_step_counts_once),
	    T(job_of_one_step__writes_its_loss_to_the_termination_message),
	    T(job__stopped_by_validation__reports_it_with_the_right_step),
	    T(master__leads_as_a_chief_does),
	    T(checkpoint_diff__shows_trained_variables),
	    T(interrupt__saves_and_ends),
	    T(second_interrupt__kills_a_task_that_does_not_end),
	    T(killed_chief__in_sync_mode__restarts_and_reaches_the_goal),
	    T(task_log__stays_below_its_limit),
	    T(environment_of_a_task__is_as_in_a_pod),
	    T(variables_of_the_template__take_precedence),
	    T(fields_and_references_of_the_template__are_replaced_as_in_a_pod),
	    T(job__that_is_suspended__is_not_run),
	    T(last_line_of_a_failed_task__is_that_of_its_program),
	    T(ps__that_ends_with_0__is_reported),
	    T(task__that_fails_permanently__fails_the_job),
	    T(invalid_manifest__is_reported_with_file_and_line),
	    T(validate__rejects_pods_that_the_api_server_rejects),
	    T(plans_of_several_manifests__have_headings),
	    T(invalid_command_lines__exit_with_2),
	    T(output__that_cannot_be_written__is_a_failure),
	    T(servers__show_their_addresses_and_when_they_are_ready),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
