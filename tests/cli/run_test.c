/* SPDX-License-Identifier: Apache-2.0 */
/* Local tasks and the view of a run. */
#include "tests/test.h"
#include "tests/wait.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run_folders.h"
#include "cli/run_tasks.h"
#include "cli/run_view.h"

static struct mu_err err;
static char logs[64];
static char output[256];
static struct run_tasks tasks;

static void store_output(void *user, const struct local_task *t, const char *text)
{
	snprintf(output, sizeof(output), "%s", text);
}

static int setup(void **state)
{
	strcpy(logs, "/tmp/muster-run-XXXXXX");
	assert_non_null(mkdtemp(logs));
	output[0] = 0;
	tasks = (struct run_tasks){.logs = logs, .bin_dir = "/nonexistent", .line = store_output};
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	run_tasks_fini(&tasks);
	snprintf(command, sizeof(command), "rm -r %s", logs);
	return system(command);
}

static struct local_task *start(const char *script)
{
	static const char *argv[] = {"sh", "-c", NULL, NULL};
	struct plan_env env = {"GREETING", "hello"};
	struct plan_pod pod = {
	    .name = "j-worker-0", .task = "worker", .argv = argv, .env = &env, .n_env = 1};

	argv[2] = script;
	assert_ok(run_tasks_start(&tasks, &pod, 1, &err), &err);
	return tasks.list[tasks.n - 1];
}

static void wait_for_end(const struct local_task *t)
{
	WAIT_UNTIL((run_tasks_poll(&tasks, 50, 2), t->pid == 0));
}

static void task__output_and_exit_code__are_recorded(void **state)
{
	struct local_task *t = start("echo $GREETING; exit 3");

	wait_for_end(t);
	assert_int_equal(t->exit_code, 3);
	assert_string_equal(output, "hello");
	assert_string_equal(t->last_line, "hello");
	assert_float_equal((float)t->finished, 2, 0);
}

static size_t put_file(struct mu_buf *out, const char *name)
{
	size_t before = out->len, n;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", logs, name);
	f = fopen(path, "r");
	do {
		mu_buf_reserve(out, 4096);
		n = f ? fread(out->data + out->len, 1, 4096, f) : 0;
		out->len += n;
	} while (n);
	if (f)
		fclose(f);
	return out->len - before;
}

/* Expects complete lines in order, which end with line `last`. */
static void expect_log_end(const struct mu_buf *log, int last)
{
	const char *at = log->data, *end = log->data + log->len;
	int first = atoi(at), n = first;

	for (; at < end; n++) {
		char line[16];

		snprintf(line, sizeof(line), "%08d\n", n);
		assert_memory_equal(at, line, 9);
		at += 9;
	}
	assert_int_equal(n, last + 1);
	assert_true(first > 1);
}

static void log__keeps_the_newest_lines_within_its_limit(void **state)
{
	enum { LIMIT = 64 << 10, LINES = 20000 };
	size_t older, newer;

	tasks.log_limit = LIMIT;
	for (int run = 0; run < 3; run++) { /* the next run appends to the same file */
		MU_AUTO_BUF log = {0};
		char script[64];

		snprintf(script, sizeof(script), "seq -f %%08.0f %d %d", run * LINES + 1,
			 (run + 1) * LINES);
		wait_for_end(start(script));
		older = put_file(&log, "worker-0.log.1");
		newer = put_file(&log, "worker-0.log");
		assert_true(older + newer <= LIMIT);
		assert_true(older + newer >= LIMIT / 16 * 7);
		expect_log_end(&log, (run + 1) * LINES);
	}
	assert_string_equal(output, "00060000"); /* the view received all lines */
}

/* Chunks as from a pipe, independent of line ends. */
static void log__written_in_chunks__has_complete_lines_in_both_files(void **state)
{
	enum { LIMIT = 64 << 10, LINES = 20000, PIECE = 7 };
	MU_AUTO_BUF all = {0};
	MU_AUTO_BUF older = {0};
	MU_AUTO_BUF log = {0};
	struct run_log l;
	char path[128];

	for (int i = 1; i <= LINES; i++)
		mu_buf_printf(&all, "%08d\n", i);
	snprintf(path, sizeof(path), "%s/worker-0.log", logs);
	run_log_open(&l, path, LIMIT);
	for (size_t at = 0; at < all.len; at += PIECE)
		run_log_put(&l, all.data + at, all.len - at < PIECE ? all.len - at : PIECE);
	run_log_close(&l);
	put_file(&older, "worker-0.log.1");
	assert_int_equal(older.data[older.len - 1], '\n');
	mu_buf_put(&log, older.data, older.len);
	put_file(&log, "worker-0.log");
	assert_true(log.len <= LIMIT);
	expect_log_end(&log, LINES);
}

static void log__splits_a_line_longer_than_a_file(void **state)
{
	MU_AUTO_BUF log = {0};

	tasks.log_limit = 1000;
	wait_for_end(start("printf '%03000d\\n' 7; echo end"));
	assert_true(put_file(&log, "worker-0.log.1") <= 500);
	assert_true(put_file(&log, "worker-0.log") <= 500);
	mu_buf_putc(&log, 0);
	assert_non_null(strstr(log.data, "0007\nend\n"));
}

static void log__that_cannot_be_renamed__is_truncated(void **state)
{
	MU_AUTO_BUF log = {0};
	char path[128];

	snprintf(path, sizeof(path), "%s/worker-0.log.1", logs);
	assert_int_equal(mkdir(path, 0700), 0); /* a folder prevents the rename */
	tasks.log_limit = 64 << 10;
	wait_for_end(start("seq -f %08.0f 1 20000"));
	assert_true(put_file(&log, "worker-0.log") <= 32 << 10);
	expect_log_end(&log, 20000);
}

static void task__gets_its_share_of_the_cpus(void **state)
{
	tasks.threads = 3;
	wait_for_end(start("echo $MUSTER_THREADS"));
	assert_string_equal(output, "3");
}

static void ports__of_a_task__are_in_its_environment(void **state)
{
	char address[64], want[96];

	run_tasks_address(&tasks, NULL, "worker", 0, address, sizeof(address));
	snprintf(want, sizeof(want), "%s %d any", address, tasks.ports[0].http_port);
	setenv("MUSTER_STREAM_PORT", "2223", 1); /* as in a pod */
	wait_for_end(start("echo 127.0.0.1:$MUSTER_PORT $MUSTER_HTTP_PORT "
			   "${MUSTER_STREAM_PORT-any}"));
	unsetenv("MUSTER_STREAM_PORT");
	assert_string_equal(output, want);
}

static void task__asked_to_finish__has_succeeded(void **state)
{
	struct local_task *t = start("sleep 100");

	t->finish_requested_at = 1;
	while (run_tasks_poll(&tasks, 10, 1), kill(-t->pid, 0))
		;
	run_tasks_signal(t, SIGTERM);
	wait_for_end(t);
	assert_int_equal(t->exit_code, 0);
}

static void missing_program__is_reported(void **state)
{
	static const char *argv[] = {"no-such-program", NULL};
	struct plan_pod pod = {.name = "j-ps-0", .task = "ps", .argv = argv};

	assert_ok(run_tasks_start(&tasks, &pod, 1, &err), &err);
	wait_for_end(tasks.list[0]);
	assert_int_equal(tasks.list[0]->exit_code, 127);
	assert_non_null(strstr(output, "cannot start no-such-program"));
}

static void addresses__are_distinct_and_stable(void **state)
{
	char a[64], b[64], again[64];

	run_tasks_address(&tasks, NULL, "ps", 0, a, sizeof(a));
	run_tasks_address(&tasks, NULL, "worker", 0, b, sizeof(b));
	run_tasks_address(&tasks, NULL, "ps", 0, again, sizeof(again));
	assert_string_not_equal(a, b);
	assert_string_equal(a, again);
	assert_non_null(strstr(a, "127.0.0.1:"));
}

static void view__follows_the_report_lines_of_the_trainer(void **state)
{
	struct run_view v;

	run_view_init(&v, "digits", 2000);
	assert_false(run_view_parse(&v, "I something else step=5", 1));
	assert_true(run_view_parse(&v,
				   "progress step=120 target=2000 loss=0.41 steps_per_second=800.5 "
				   "examples_per_second=25616",
				   2));
	assert_int_equal(v.progress.step, 120);
	assert_float_equal((float)v.progress.loss, 0.41f, 1e-6f);
	assert_float_equal((float)v.progress.steps_per_second, 800.5f, 1e-3f);
	assert_true(run_view_parse(&v, "progress step=90 loss=0.5", 3));
	assert_int_equal(v.progress.step,
			 90); /* a ps was lost, so the training continues from an older step */
	assert_float_equal((float)v.step_at, 3, 0);
	assert_float_equal((float)v.progress.steps_per_second, 800.5f, 1e-3f); /* not in the line */
	assert_true(run_view_parse(&v,
				   "final step=1400 reason=ValidationStopped accuracy=0.953 "
				   "checkpoint=/o/model.ckpt-2000 events= loss=0.25",
				   4));
	assert_true(v.final);
	assert_int_equal(v.progress.step, 1400);
	assert_int_equal(v.end_reason, END_VALIDATION_STOPPED);
	assert_float_equal((float)v.progress.loss, 0.25f, 1e-6f);
	assert_string_equal(v.checkpoint, "/o/model.ckpt-2000");
	assert_string_equal(v.events, "");
	assert_true(
	    run_view_parse(&v,
			   "final step=1400 reason=TargetReached "
			   "checkpoint=/my out/model.ckpt-2000 events=/my out/e.1 loss=0.25",
			   5));
	assert_string_equal(v.checkpoint, "/my out/model.ckpt-2000");
	assert_string_equal(v.events, "/my out/e.1");
}

static void folder_with_a_trailing_slash__is_renamed(void **state)
{
	char path[128], moved[128];

	snprintf(path, sizeof(path), "%s/out/", logs);
	snprintf(moved, sizeof(moved), "%s/out.old-1", logs);
	assert_int_equal(mkdir(path, 0777), 0);
	assert_ok(run_folders_rename_old(path, &err), &err);
	assert_int_equal(access(moved, F_OK), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(task__output_and_exit_code__are_recorded),
	    T(log__keeps_the_newest_lines_within_its_limit),
	    T(log__written_in_chunks__has_complete_lines_in_both_files),
	    T(log__splits_a_line_longer_than_a_file),
	    T(log__that_cannot_be_renamed__is_truncated),
	    T(task__gets_its_share_of_the_cpus),
	    T(ports__of_a_task__are_in_its_environment),
	    T(task__asked_to_finish__has_succeeded),
	    T(missing_program__is_reported),
	    T(addresses__are_distinct_and_stable),
	    T(folder_with_a_trailing_slash__is_renamed),
	    T(view__follows_the_report_lines_of_the_trainer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
