/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 of any process of a `muster run` job, at any moment, only costs time.
 *
 * Each round runs a job of one ps and two workers and kills one process of it. This can be `muster
 * run` itself, which is then started again. The moment is drawn from a seed, within the measured
 * duration of a job without a kill. If that measurement was too long, a job can end before its
 * kill; then the round is repeated with an earlier moment. The job must reach its last step, in
 * sync mode exactly that step, and its checkpoint must hold a working model. MUSTER_KILL_ROUNDS is
 * the number of rounds, MUSTER_KILL_SEED the seed.
 */
#include <math.h>

#include "lib/base/clock.h"
#include "lib/checkpoint/bundle.h"
#include "lib/checkpoint/checkpoint_state.h"
#include "tests/cli/job.h"

enum { STEPS = 6000, FEW_ROUNDS = 4, WORKERS = 2, TASKS = 1 + WORKERS };

static uint64_t seed = 20240229;

static unsigned random_below(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

static unsigned from_environment(const char *name, unsigned default_value)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : default_value;
}

static unsigned effective_kills; /* rounds that killed a running process */

/* victim: 0 is muster run; other numbers are its tasks, in the order of their start. Returns true
 * if it killed muster run. */
static bool kill_one(pid_t job, unsigned victim)
{
	pid_t tasks[8];
	unsigned n = tasks_of(job, tasks, 8);

	effective_kills += n > 0;
	if (victim > n)
		victim = n;
	return kill(victim ? tasks[victim - 1] : job, SIGKILL) == 0 && victim == 0;
}

static void run_with_kill(bool sync, unsigned victim, unsigned after_ms, struct mu_buf *output)
{
	const char *argv[] = {"muster", "run", manifest, NULL};
	bool killed_run;
	int fd, status;
	pid_t pid, tasks[8];

	write_manifest(STEPS, sync ? "  mode: sync\n" : "");
	pid = start(argv, &fd);
	if (victim) /* on a busy machine tasks can start late; muster run itself can also be killed
		       before that */
		WAIT_UNTIL(tasks_of(pid, tasks, 8) >= TASKS);
	wait_ms(after_ms);
	killed_run = kill_one(pid, victim);
	status = finish(pid, fd, output);
	if (killed_run && status == 128 + SIGKILL) {
		pid = start(argv, &fd);
		status = finish(pid, fd, output);
	}
	if (status)
		fail_msg("ends with %d: %s", status, output->data);
}

/* Maximum number of steps beyond the goal. In sync mode 0: only the chief counts. In async mode a
 * worker begins a step only while its last known count is below the goal. So each worker makes at
 * most one step that ends at or above the goal, and one of these steps is the goal itself. A kill
 * adds no step.
 *
 * Killed worker: its ps cancel its pending step when the connection breaks. The restarted worker
 * begins a second later and first reads the count, and makes no step if the goal is reached. Killed
 * ps: the count returns to that of the checkpoint, and pending steps are lost. A kill can leave an
 * update applied, in part or completely, but not counted, because the count comes last. Then the
 * step is repeated: in async mode updates are applied at least once and counted once.
 */
static long max_overshoot(bool sync)
{
	return sync ? 0 : WORKERS - 1;
}

/* The step count in a checkpoint; it can include a step of another worker after the step of the
 * file name. */
static long checkpoint_step(const char *checkpoint)
{
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	MU_AUTO_TENSOR step = {0};
	struct mu_err err;

	assert_ok(mu_bundle_open(&r, checkpoint, &err), &err);
	assert_ok(mu_bundle_read(r, "global_step", &step, &err), &err);
	return (long)mu_tensor_int(&step, 0);
}

/* Expects a checkpoint of the last step with a working model. */
static void expect_model(bool sync, const struct mu_buf *output)
{
	const char *line = strstr(output->data, "  test accuracy");
	MU_AUTO_FREE char *latest = NULL;
	MU_AUTO_BUF listing = {0};
	struct mu_err err;
	double accuracy = 0;
	char out[128];
	long step;

	snprintf(out, sizeof(out), "%s/out", folder);
	assert_ok(mu_checkpoint_latest(&latest, out, &err), &err);
	step = strtol(strrchr(latest, '-') + 1, NULL, 10);
	if (step < STEPS || checkpoint_step(latest) < step ||
	    checkpoint_step(latest) > STEPS + max_overshoot(sync))
		fail_msg("the last checkpoint is %s, of step %ld: %s", latest,
			 checkpoint_step(latest), output->data);
	if (!line || sscanf(line, " test accuracy %lf", &accuracy) != 1 || accuracy < 85)
		fail_msg("the accuracy of the model is %.1f %%: %s", accuracy, output->data);
	const char *argv[] = {"muster", "checkpoint", "show", latest, NULL};
	int fd;
	pid_t pid = start(argv, &fd);
	assert_int_equal(finish(pid, fd, &listing), 0);
	assert_output_has(listing, "softmax/weights");
}

/* Duration in ms of a job without a kill. */
static unsigned job_duration_ms(bool sync)
{
	const char *argv[] = {"muster", "run", manifest, NULL};
	MU_AUTO_BUF output = {0};
	int64_t from, duration_ms;
	int fd, status;
	pid_t pid;

	write_manifest(STEPS, sync ? "  mode: sync\n" : "");
	from = mu_clock_ms();
	pid = start(argv, &fd);
	status = finish(pid, fd, &output);
	duration_ms = mu_clock_ms() - from;
	if (status)
		fail_msg("ends with %d: %s", status, output.data);
	teardown(NULL);
	setup(NULL);
	return (unsigned)duration_ms;
}

static void job__with_a_killed_process__reaches_its_goal(void **state)
{
	unsigned rounds = from_environment("MUSTER_KILL_ROUNDS", FEW_ROUNDS);
	unsigned takes_ms[2] = {job_duration_ms(false), job_duration_ms(true)}, n_repeated = 0;

	print_message("a job takes %u ms, in sync %u\n", takes_ms[0], takes_ms[1]);
	effective_kills = 0;
	seed = from_environment("MUSTER_KILL_SEED", (unsigned)seed);
	for (unsigned i = 0; i < rounds; i++) {
		unsigned victim = i % 4;
		bool sync = random_below(2);
		unsigned after_ms = random_below(takes_ms[sync] + 1), before = effective_kills;
		MU_AUTO_BUF output = {0};

		print_message("round %u: %s, process %u after %u ms\n", i, sync ? "sync" : "async",
			      victim, after_ms);
		if (i + n_repeated)
			setup(NULL);
		run_with_kill(sync, victim, after_ms, &output);
		expect_model(sync, &output);
		if (effective_kills == before && n_repeated < rounds) {
			takes_ms[sync] = after_ms / 2;
			n_repeated++;
			i--;
		}
		if (i + 1 < rounds)
			teardown(NULL);
	}
	print_message("%u of %u rounds killed a running process\n", effective_kills,
		      rounds + n_repeated);
	assert_true(2 * effective_kills >= rounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(job__with_a_killed_process__reaches_its_goal, setup,
					    teardown),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
