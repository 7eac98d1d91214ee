/* SPDX-License-Identifier: Apache-2.0 */
/* muster run with the built-in trainer: results, checkpoints, signals, killed processes. */
#include <glob.h>

#include "lib/base/pb.h"
#include "lib/checkpoint/bundle.h"
#include "lib/checkpoint/checkpoint_state.h"
#include "lib/io/event_writer.h"
#include "lib/io/tfrecord.h"
#include "tests/cli/job.h"

static struct mu_err err;

static int system_in_folder(const char *command)
{
	MU_AUTO_FREE char *all = mu_xasprintf("cd %s && %s", folder, command);

	return system(all);
}

static void killed_process__in_sync_mode__leaves_each_step_counted_once(void **state)
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
	assert_output_has(output, "build/bin/muster checkpoint show "); /* as it was called */
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
	assert_true(step >= 40 && step < 20000); /* the other worker continues meanwhile */
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
	WAIT_UNTIL((chief = printed_number(command)) > 0); /* a restarting task has no process */
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

static void master__in_place_of_a_chief__reaches_the_goal(void **state)
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

static void checkpoint_diff__of_two_steps__shows_trained_variables(void **state)
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
	/* the file name alone identifies the file within a checkpoint */
	snprintf(moved, sizeof(moved), "%s/runs.data-1", folder);
	assert_int_equal(rename(out, moved), 0);
	snprintf(first, sizeof(first), "%s/model.ckpt-0.index", moved);
	assert_int_equal(checkpoint_diff(&in_moved, first, first), 0);
}

static void write_checkpoint(const char *prefix, int64_t value)
{
	struct mu_bundle_writer *w;
	MU_AUTO_TENSOR t = {0};

	assert_ok(mu_tensor_scalar(&t, MU_INT64, &value, &err), &err);
	assert_ok(mu_bundle_create(&w, prefix, &err), &err);
	assert_ok(mu_bundle_add(w, "state", &t, &err), &err);
	assert_ok(mu_bundle_finish(w, &err), &err);
	mu_bundle_writer_free(w);
}

static void checkpoint_diff__of_large_integers__distinguishes_them(void **state)
{
	MU_AUTO_BUF output = {0};
	char a[128], b[128];

	snprintf(a, sizeof(a), "%s/a", folder);
	snprintf(b, sizeof(b), "%s/b", folder);
	write_checkpoint(a, 1ll << 60);
	write_checkpoint(b, (1ll << 60) + 1);
	assert_int_equal(checkpoint_diff(&output, a, b), 1);
	assert_output_has(output, ": 1152921504606846976 -> 1152921504606846977\n");
}

/* The step of the SessionLog event with status START in the newest event file. */
static int64_t start_step(void)
{
	MU_AUTO(mu_tfrecord_reader_free) struct mu_tfrecord_reader *r = NULL;
	MU_AUTO_FREE char *pattern = mu_xasprintf("%s/out/events*", folder);
	struct mu_span record;
	glob_t files;
	int64_t step = 0;
	bool found = false;

	assert_int_equal(glob(pattern, 0, NULL, &files), 0); /* the names have the time */
	assert_ok(mu_tfrecord_open(&r, files.gl_pathv[files.gl_pathc - 1], &err), &err);
	while (!found && mu_tfrecord_next(r, &record, &err) > 0) {
		struct mu_pb event = mu_pb_of(record);
		struct mu_pb_field f;

		for (step = 0; mu_pb_next(&event, &f);) {
			if (f.number == 2)
				step = (int64_t)f.value;
			struct mu_pb log = mu_pb_of(f.bytes);
			struct mu_pb_field status;
			if (f.number == 7 && mu_pb_next(&log, &status))
				found = status.number == 1 && status.value == MU_SESSION_START;
		}
	}
	globfree(&files);
	return found ? step : -1;
}

static void second_run__starts_its_events_after_those_of_the_first(void **state)
{
	MU_AUTO_BUF first = {0};
	MU_AUTO_BUF second = {0};

	write_manifest(100, "");
	assert_int_equal(muster(&first, "run", manifest), 0);
	assert_int_equal(start_step(), 1);
	usleep(1100 * 1000); /* the names of event files have seconds */
	write_manifest(200, "");
	assert_int_equal(muster(&second, "run", manifest), 0);
	assert_true(start_step() > 100);
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

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(job__runs_to_its_goal_and_prints_the_paths_of_its_results),
	    T(killed_process__in_sync_mode__leaves_each_step_counted_once),
	    T(job_of_one_step__writes_its_loss_to_the_termination_message),
	    T(job__stopped_by_validation__reports_it_with_the_right_step),
	    T(master__in_place_of_a_chief__reaches_the_goal),
	    T(checkpoint_diff__of_two_steps__shows_trained_variables),
	    T(checkpoint_diff__of_large_integers__distinguishes_them),
	    T(second_run__starts_its_events_after_those_of_the_first),
	    T(interrupt__saves_and_ends),
	    T(killed_chief__in_sync_mode__restarts_and_reaches_the_goal),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
