/* SPDX-License-Identifier: Apache-2.0 */
/* The command line and the checks of manifests. */
#include "tests/cli/job.h"

static void suspended_job__is_not_run(void **state)
{
	MU_AUTO_BUF output = {0};

	write_manifest(100, "  run: {suspend: true}\n");
	assert_int_equal(muster(&output, "run", manifest), 1);
	assert_output_has(output, ":16: spec.run.suspend: is true");
}

/* TensorBoard has no local process, so the run neither counts nor shows it. */
static void tensorboard__in_a_local_run__is_not_a_task(void **state)
{
	const char *argv[] = {"muster", "run", "--scale", "tensorboard=2", manifest, NULL};
	MU_AUTO_BUF ran = {0};
	MU_AUTO_BUF scaled = {0};
	FILE *f = fopen(manifest, "w");
	int fd;
	pid_t pid;

	assert_non_null(f);
	fprintf(f,
		"apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\nmetadata: {name: j}\n"
		"spec: {tasks: {worker: {}}, program: {command: ['true']},\n"
		"  checkpoint: {path: %s/out, volumeClaim: c}, tensorboard: {enabled: true}}\n",
		folder);
	fclose(f);
	assert_int_equal(muster(&ran, "run", manifest), 0);
	assert_null(strstr(ran.data, "tensorboard"));
	pid = start(argv, &fd);
	assert_int_equal(finish(pid, fd, &scaled), 1);
	assert_output_has(scaled, "has no task 'tensorboard'");
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

/* Expects muster validate to reject a job with this spec, with these words. */
static void expect_invalid(const char *spec, const char *message)
{
	MU_AUTO_BUF output = {0};
	FILE *f = fopen(manifest, "w");

	assert_non_null(f);
	fprintf(f,
		"apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\nmetadata: {name: j}\n"
		"spec: {%s}\n",
		spec);
	fclose(f);
	assert_int_equal(muster(&output, "validate", manifest), 1);
	assert_output_has(output, message);
}

/* The same checks as the API server at pod creation. */
static void validate__of_pods_that_the_api_server_rejects__rejects_them(void **state)
{
	static const struct {
		const char *task, *message;
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
		MU_AUTO_FREE char *spec = mu_xasprintf("tasks: {worker: {%s}}", cases[i].task);

		expect_invalid(spec, cases[i].message);
	}
}

/* The operator runs stored jobs that break these rules. */
static void validate__of_a_job__applies_rules_that_stored_jobs_may_break(void **state)
{
	static const struct {
		const char *section, *message;
	} cases[] = {
	    {"program: {classicFlags: true}", "spec.program.classicFlags: needs a command"},
	    {"checkpoint: {volumeClaim: c, path: out/x}", "spec.checkpoint.path: must be absolute"},
	    {"run: {gang: scheduler-plugins, queue: q}", "spec.run.queue: gang: scheduler-plugins"},
	};

	write_manifest(100, "");
	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *spec = mu_xasprintf("tasks: {worker: {}}, %s", cases[i].section);

		expect_invalid(spec, cases[i].message);
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

static void plan_of_a_job_with_a_tensorboard__has_its_pod_and_service(void **state)
{
	const char *argv[] = {"muster", "validate", "--plan", "deploy/samples/elastic.yaml", NULL};
	MU_AUTO_BUF output = {0};
	int fd;
	pid_t pid = start(argv, &fd);

	assert_int_equal(finish(pid, fd, &output), 0);
	assert_output_has(output, "create service  elastic-tensorboard ");
	assert_output_has(output, "create pod      elastic-tensorboard-0 ");
	assert_output_has(output, "image localhost/muster-task-tf:dev, ");
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

static void servers__when_ready__show_their_addresses(void **state)
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
	    T(suspended_job__is_not_run),
	    T(tensorboard__in_a_local_run__is_not_a_task),
	    T(task__that_fails_permanently__fails_the_job),
	    T(invalid_manifest__is_reported_with_file_and_line),
	    T(validate__of_pods_that_the_api_server_rejects__rejects_them),
	    T(validate__of_a_job__applies_rules_that_stored_jobs_may_break),
	    T(plans_of_several_manifests__have_headings),
	    T(plan_of_a_job_with_a_tensorboard__has_its_pod_and_service),
	    T(invalid_command_lines__exit_with_2),
	    T(output__that_cannot_be_written__is_a_failure),
	    T(servers__when_ready__show_their_addresses),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
