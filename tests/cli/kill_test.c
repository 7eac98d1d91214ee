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

static unsigned draw(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

static unsigned from_environment(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static unsigned hits; /* rounds that killed a running process */

/* victim: 0 is muster run, others are its tasks in the order of their starts. */
static bool kill_one(pid_t job, unsigned victim)
{
	pid_t tasks[8];
	unsigned n = tasks_of(job, tasks, 8);

	hits += n > 0;
	if (victim > n)
		victim = n;
	return kill(victim ? tasks[victim - 1] : job, SIGKILL) == 0 && victim == 0;
}

static void runs_to_its_end(bool sync, unsigned victim, unsigned after_ms, struct mu_buf *output)
{
	const char *argv[] = {"muster", "run", manifest, NULL};
	bool again;
	int fd, status;
	pid_t pid, tasks[8];

	write_manifest(STEPS, sync ? "  mode: sync\n" : "");
	pid = start(argv, &fd);
	if (victim) /* on a busy machine tasks can start late; muster run itself can also be killed
		       before that */
		WAIT_UNTIL(tasks_of(pid, tasks, 8) >= TASKS);
	wait_ms(after_ms);
	again = kill_one(pid, victim);
	status = finish(pid, fd, output);
	if (again && status == 128 + SIGKILL) {
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
static long most_above(bool sync)
{
	return sync ? 0 : WORKERS - 1;
}

/* The step count in a checkpoint; it can include a step of another worker after the step of the
 * file name. */
static long counted(const char *checkpoint)
{
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	MU_AUTO_TENSOR step = {0};
	struct mu_err err;

	assert_ok(mu_bundle_open(&r, checkpoint, &err), &err);
	assert_ok(mu_bundle_read(r, "global_step", &step, &err), &err);
	return (long)mu_tensor_int(&step, 0);
}

/* The checkpoint is of the last step and the model works. */
static void is_a_model(bool sync, const struct mu_buf *output)
{
	const char *line = strstr(output->data, "  test accuracy");
	MU_AUTO_FREE char *latest = NULL;
	MU_AUTO_BUF shown = {0};
	struct mu_err err;
	double accuracy = 0;
	char out[128];
	long step;

	snprintf(out, sizeof(out), "%s/out", folder);
	assert_ok(mu_checkpoint_latest(&latest, out, &err), &err);
	step = strtol(strrchr(latest, '-') + 1, NULL, 10);
	if (step < STEPS || counted(latest) < step || counted(latest) > STEPS + most_above(sync))
		fail_msg("the last checkpoint is %s, of step %ld: %s", latest, counted(latest),
			 output->data);
	if (!line || sscanf(line, " test accuracy %lf", &accuracy) != 1 || accuracy < 85)
		fail_msg("the model is right about %.1f %%: %s", accuracy, output->data);
	const char *argv[] = {"muster", "checkpoint", "show", latest, NULL};
	int fd;
	pid_t pid = start(argv, &fd);
	assert_int_equal(finish(pid, fd, &shown), 0);
	assert_output_has(shown, "softmax/weights");
}

/* Duration in ms of a job without a kill. */
static unsigned takes(bool sync)
{
	const char *argv[] = {"muster", "run", manifest, NULL};
	MU_AUTO_BUF output = {0};
	int64_t from, took;
	int fd, status;
	pid_t pid;

	write_manifest(STEPS, sync ? "  mode: sync\n" : "");
	from = mu_clock_ms();
	pid = start(argv, &fd);
	status = finish(pid, fd, &output);
	took = mu_clock_ms() - from;
	if (status)
		fail_msg("ends with %d: %s", status, output.data);
	teardown(NULL);
	setup(NULL);
	return (unsigned)took;
}

static void killed_process__only_costs_time(void **state)
{
	unsigned rounds = from_environment("MUSTER_KILL_ROUNDS", FEW_ROUNDS);
	unsigned takes_ms[2] = {takes(false), takes(true)}, late = 0;

	print_message("a job takes %u ms, in sync %u\n", takes_ms[0], takes_ms[1]);
	hits = 0;
	seed = from_environment("MUSTER_KILL_SEED", (unsigned)seed);
	for (unsigned i = 0; i < rounds; i++) {
		unsigned victim = i % 4;
		bool sync = draw(2);
		unsigned after_ms = draw(takes_ms[sync] + 1), before = hits;
		MU_AUTO_BUF output = {0};

		print_message("round %u: %s, process %u after %u ms\n", i, sync ? "sync" : "async",
			      victim, after_ms);
		if (i + late)
			setup(NULL);
		runs_to_its_end(sync, victim, after_ms, &output);
		is_a_model(sync, &output);
		if (hits == before && late < rounds) {
			takes_ms[sync] = after_ms / 2;
			late++;
			i--;
		}
		if (i + 1 < rounds)
			teardown(NULL);
	}
	print_message("%u of %u rounds met a job that ran\n", hits, rounds + late);
	assert_true(2 * hits >= rounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(killed_process__only_costs_time, setup, teardown),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
