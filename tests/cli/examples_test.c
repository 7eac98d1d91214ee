/* SPDX-License-Identifier: Apache-2.0 */
/* The manifests in examples/, run as their readers would run them: each model learns what it is
 * there to learn. */
#include "tests/cli/job.h"

/* Runs examples/<name>.yaml with its output in our folder; the accuracy that it tells, in percent.
 */
static double run(const char *name)
{
	char command[8192], line[1024];
	double accuracy = -1;
	FILE *f;

	snprintf(command, sizeof(command),
		 "sed 's|out/%s|%s/out|g' examples/%s.yaml >%s/job.yaml && timeout 100 %s run "
		 "%s/job.yaml 2>&1",
		 name, folder, name, folder, program, folder);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " test accuracy %lf", &accuracy) != 1 && accuracy < 0)
			print_message("%s", line);
	assert_int_equal(pclose(f), 0);
	return accuracy;
}

/* What the evaluator said last; -1: nothing. */
static double last_evaluation(void)
{
	char path[128], line[1024];
	double accuracy = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/out/logs/evaluator-0.log", folder);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "evaluation step=%*d accuracy=%lf", &accuracy);
	if (f)
		fclose(f);
	return accuracy;
}

static void at_least(const char *name, double percent)
{
	double got = run(name);

	if (!(got >= percent))
		fail_msg("examples/%s.yaml reaches %.1f %%, expected %.1f %%", name, got, percent);
}

static void digits__a_small_network_reads_them(void **state)
{
	at_least("digits", 95);
}

static void sync__with_a_backup_worker_reads_them_too(void **state)
{
	at_least("sync", 88);
}

static void cnn__sees_more_of_an_image(void **state)
{
	char path[128];

	at_least("cnn",
		 95.5); /* 96.4 to 97.7 in ten runs: its workers do not wait for each other */
	snprintf(path, sizeof(path), "%s/out/best/checkpoint", folder);
	assert_int_equal(access(path, R_OK), 0);
	snprintf(path, sizeof(path), "%s/out/final.index", folder);
	assert_int_equal(access(path, R_OK), 0);
}

/* An mlp on the bare columns, numbers that they are, reaches 50 %. */
static void wide_deep__knows_users_and_pages(void **state)
{
	at_least("wide-deep", 88);
	if (!(last_evaluation() >= 0.88))
		fail_msg("the evaluator's last score is %g", last_evaluation());
}

static void es__learns_without_a_gradient(void **state)
{
	at_least("es", 88);
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
	puts("skipped: thousands of steps take too long under AddressSanitizer");
	return 0;
#endif
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(digits__a_small_network_reads_them), T(sync__with_a_backup_worker_reads_them_too),
	    T(cnn__sees_more_of_an_image),         T(wide_deep__knows_users_and_pages),
	    T(es__learns_without_a_gradient),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
