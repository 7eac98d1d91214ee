/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the C programs in examples/ as their comments say, and checks their output and files.
 * tests/compat compares them with their Python counterparts. */
#include "tests/cli/job.h"
#include "tests/ports.h"

enum { OUTPUT_BYTES = 8192 };

/* Free ports as "localhost:A,localhost:B". */
static void choose_hosts(char *out, size_t size, int n)
{
	size_t at = 0;

	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(out + at, size - at, "%slocalhost:%d", i ? "," : "",
				       free_port());
}

/* Runs a shell command, where $E is the folder of the programs and $M is muster; returns its
 * output. */
static void shell(char *output, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void shell(char *output, const char *fmt, ...)
{
	char line[4096], command[16384], self[2048] = "";
	size_t n;
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	*strrchr(self, '/') = 0; /* build/<mode>/tests/cli */
	snprintf(command, sizeof(command),
		 "E=%s/../../examples M=%s MUSTER_LOG=warn timeout 100 bash -c '%s' 2>&1", self,
		 program, line);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(output, 1, OUTPUT_BYTES - 1, f);
	output[n] = 0;
	if (pclose(f))
		fail_msg("%s: %s", line, output);
}

static void expect(const char *output, const char *expected)
{
	if (strcmp(output, expected) != 0)
		fail_msg("the output is '%s', expected '%s'", output, expected);
}

static void hello__prints_its_greeting(void **state)
{
	char output[OUTPUT_BYTES];

	shell(output, "$E/hello");
	expect(output, "Hello, distributed TensorFlow!\n");
}

static void cluster_spec__prints_tasks_and_an_unknown_task(void **state)
{
	char output[OUTPUT_BYTES];

	shell(output, "$E/cluster_spec | grep -v _def");
	expect(output, "jobs: ps worker\nnum_tasks: 3\ntask_indices: 0 1 2\n"
		       "task_address: worker2.example.com:2222\n"
		       "job_tasks: worker0.example.com:2222 worker1.example.com:2222 "
		       "worker2.example.com:2222\n"
		       "as_dict: {\"ps\":[\"ps0.example.com:2222\",\"ps1.example.com:2222\"],"
		       "\"worker\":[\"worker0.example.com:2222\",\"worker1.example.com:2222\","
		       "\"worker2.example.com:2222\"]}\n"
		       "worker 7: job 'worker' has no task 7; it has 3, the last is 2\n");
}

static void two_tasks__share_a_variable(void **state)
{
	char output[OUTPUT_BYTES], hosts[256];

	choose_hosts(hosts, sizeof(hosts), 2);
	shell(output, "$E/two_tasks %s 1 & $E/two_tasks %s 0; kill $!; wait $!", hosts, hosts);
	expect(output, "total: 10\ndoubled: [2, 4, 6, 8]\ntotal: 20\n");
}

static void three_adds__prints_the_shared_sum(void **state)
{
	char output[OUTPUT_BYTES], hosts[256];

	choose_hosts(hosts, sizeof(hosts), 3);
	shell(output, "$E/three_adds %s", hosts);
	expect(output, "worker 0: 7.0\nworker 1: 13.0\nseen on the ps: 13.0\n");
}

/* Programs that print "step N: loss L": the loss of the last step is below a bound. */
static void training_programs__reduce_their_loss(void **state)
{
	static const struct {
		const char *name;
		int first, second; /* number of hosts in each of its two arguments */
		double max_loss;
	} programs[] = {
	    {"place_ps_worker", 2, 1, 0.02},
	    {"in_graph", 1, 2, 0.00001},
	    {"model_parallel", 2, 0, 0.02},
	    {"evolution", 1, 2, 0.03},
	};

	for (size_t i = 0; i < MU_COUNT(programs); i++) {
		char output[OUTPUT_BYTES], first[256] = "", second[256] = "";
		double before = 0, after = 1e9;
		const char *last;

		choose_hosts(first, sizeof(first), programs[i].first);
		choose_hosts(second, sizeof(second), programs[i].second);
		shell(output, "$E/%s %s %s", programs[i].name, first, second);
		sscanf(output, "step 0: loss %lf", &before);
		last = strrchr(output, ':');
		if (!last || sscanf(last, ": loss %lf", &after) != 1 || !(before > 0.5) ||
		    !(after < programs[i].max_loss))
			fail_msg("%s: its loss went from %g to %g, expected less than %g: %s",
				 programs[i].name, before, after, programs[i].max_loss, output);
	}
}

/* Runs both workers of a trainer with two ps tasks. flags: additional flags. */
static void train_with(const char *flags)
{
	char output[OUTPUT_BYTES], ps[256], workers[256], hosts[640];
	int here[2], global[2];
	double loss[2];

	choose_hosts(ps, sizeof(ps), 2);
	choose_hosts(workers, sizeof(workers), 2);
	snprintf(hosts, sizeof(hosts), "--ps_hosts=%s --worker_hosts=%s", ps, workers);
	shell(output,
	      "T=\"$E/trainer %s --steps=400 --checkpoint_dir=%s/checkpoints %s\"; "
	      "$T --job_name=ps --task_index=0 & $T --job_name=ps --task_index=1 & "
	      "$T --job_name=worker --task_index=1 >%s/one & one=$!; "
	      "$T --job_name=worker --task_index=0 >%s/zero && wait $one && kill %%1 %%2; wait; "
	      "grep -h ^worker %s/zero %s/one; ls %s/checkpoints",
	      hosts, folder, flags, folder, folder, folder, folder, folder);
	if (sscanf(output,
		   "worker 0: %d steps here, global step %d, loss %lf worker 1: %d steps here, "
		   "global step %d, loss %lf",
		   &here[0], &global[0], &loss[0], &here[1], &global[1], &loss[1]) != 6)
		fail_msg("the output of the trainer is '%s'", output);
	assert_true(global[0] >= 400);
	assert_true(here[0] + here[1] >= 400);
	if (here[0] > 50)
		assert_true(loss[0] < 0.7);
	assert_non_null(strstr(output, "checkpoint"));
}

static void trainer__in_async_mode__reaches_its_steps(void **state)
{
	train_with("");
}

static void trainer__in_sync_mode__reaches_its_steps(void **state)
{
	train_with("--sync");
}

static void trainer__with_a_backup_worker__reaches_its_steps(void **state)
{
	train_with("--sync --aggregate=1");
}

static void trainer__as_the_program_of_a_manifest__trains(void **state)
{
	char output[OUTPUT_BYTES];

	shell(output,
	      "sed \"s|build/release/examples|$E|; s|out/own-program|%s/out|\" "
	      "examples/own-program.yaml >%s/job.yaml && $M run %s/job.yaml && "
	      "$M checkpoint ls %s/out",
	      folder, folder, folder, folder);
	assert_non_null(strstr(output, "own-program: succeeded"));
	assert_non_null(strstr(output, ", step 60")); /* 600; the ps report it */
	assert_non_null(strstr(output, "model.ckpt-60"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(hello__prints_its_greeting),
	    T(cluster_spec__prints_tasks_and_an_unknown_task),
	    T(two_tasks__share_a_variable),
	    T(three_adds__prints_the_shared_sum),
	    T(training_programs__reduce_their_loss),
	    T(trainer__in_async_mode__reaches_its_steps),
	    T(trainer__in_sync_mode__reaches_its_steps),
	    T(trainer__with_a_backup_worker__reaches_its_steps),
	    T(trainer__as_the_program_of_a_manifest__trains),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
