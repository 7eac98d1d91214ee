/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines fire from timers, on time, without other events: the controller in the simulated
 * cluster (sim.h), without faults. */
#include "lib/base/rfc3339.h"
#include "operator/controller/controller.h"
#include "tests/fake/one_job.h"

static int ends_well(const struct sim_script *s, const char *task, int index, int n)
{
	return strcmp(task, "ps") == 0 ? -1 : 0;
}

static struct sim *start(struct sim_script *script, const char *program, const char *run)
{
	return start_job(script, program, run, 1, false);
}

static const cJSON *failed_condition(struct sim *s)
{
	return condition_of(s, "Failed");
}

/* Expects the job to fail for this reason, `after` seconds after `from`, to the second. */
static void expect_failed(struct sim *s, const char *reason, double from, double after)
{
	const cJSON *job = sim_find(s, JOB_PATH)->json, *c = failed_condition(s);
	double at = mu_rfc3339_read(sim_text(job, "status.completionTime"));

	assert_string_equal(sim_text(job, "status.phase"), "Failed");
	assert_string_equal(sim_text(c, "reason"), reason);
	if (at < from + after - 1 || at > from + after + 1.1)
		fail_msg("%s after %.0f s, not %.0f", reason, at - from, after);
}

static void job__that_takes_too_long__fails_on_time(void **state)
{
	struct sim_script script = {.end = never_ends};
	struct sim *s = start(&script, COMMAND, "\"activeDeadlineSeconds\":50");

	sim_settle(s, 45);
	assert_null(failed_condition(s));
	sim_settle(s, 3600);
	expect_failed(s, "DeadlineExceeded", SIM_EPOCH, 50);
	stop(s, &script);
}

static void job__that_is_resumed__gets_its_full_deadline_again(void **state)
{
	struct sim_script script = {.end = never_ends,
				    .user_actions = {{USER_SUSPEND, 30, 0}, {USER_RESUME, 100, 0}}};
	struct sim *s = start(&script, COMMAND, "\"activeDeadlineSeconds\":50");

	sim_settle(s, 3600);
	expect_failed(s, "DeadlineExceeded", SIM_EPOCH + 100, 50);
	stop(s, &script);
}

static void job__whose_pods_wait_too_long__fails_on_time(void **state)
{
	struct sim_script script = {.end = never_ends, .stuck_pending = true};
	struct sim *s = start(&script, COMMAND, "\"schedulingDeadlineSeconds\":40");

	sim_settle(s, 3600);
	expect_failed(s, "SchedulingDeadlineExceeded", SIM_EPOCH, 40);
	stop(s, &script);
}

static double running_since(struct sim *s)
{
	return mu_rfc3339_read(sim_text(condition_of(s, "Running"), "lastTransitionTime"));
}

static void job__whose_step_does_not_increase__fails_on_time(void **state)
{
	struct sim_script script = {.end = never_ends};
	struct sim *s = start(&script, TRAIN, "\"progressDeadlineSeconds\":60");
	double running;

	sim_settle(s, 30);
	running = running_since(s);
	assert_true(running > 0);
	assert_null(failed_condition(s));
	sim_settle(s, running + 50 - s->now);
	store_set_progress(&s->leader->controller.store, SIM_KEY, "none",
			   &(struct progress_report){.set = true, .step = 1}, NULL, s->now);
	workqueue_add(&s->leader->controller.queue, SIM_KEY);
	sim_settle(s, 3600);
	expect_failed(s, "ProgressDeadlineExceeded", running + 50, 60);
	stop(s, &script);
}

/* A network policy, for example, may block the operator's requests to the pods of a healthy job. */
static void job__whose_ready_chief_cannot_be_reached__does_not_fail(void **state)
{
	struct sim_script script = {.end = never_ends, .unreachable = true};
	struct sim *s = start(&script, TRAIN, "\"progressDeadlineSeconds\":60");

	sim_settle(s, 3600);
	assert_null(failed_condition(s));
	assert_string_equal(sim_text(sim_find(s, JOB_PATH)->json, "status.phase"), "Running");
	stop(s, &script);
}

static void job__whose_operator_was_down__does_not_fail(void **state)
{
	struct sim_script script = {.end = never_ends};
	struct sim *s = start(&script, TRAIN, "\"progressDeadlineSeconds\":60");
	double again;

	sim_settle(s, 30);
	s->now += 1000;
	again = s->now;
	sim_restart(s);
	sim_settle(s, 55);
	assert_null(failed_condition(s));
	sim_settle(s, 3600);
	expect_failed(s, "ProgressDeadlineExceeded", again, 60);
	stop(s, &script);
}

static void job__that_has_ended__is_deleted_after_its_time_to_live(void **state)
{
	struct sim_script script = {.end = ends_well, .work = 20};
	struct sim *s = start(&script, COMMAND, "\"ttlSecondsAfterFinished\":100");

	sim_settle(s, 60);
	assert_string_equal(sim_text(sim_find(s, JOB_PATH)->json, "status.phase"), "Succeeded");
	sim_settle(s, 50);
	assert_non_null(sim_find(s, JOB_PATH));
	sim_settle(s, 30);
	assert_null(sim_find(s, JOB_PATH));
	sim_settle(s, 60); /* time for the garbage collector and the kubelets */
	for (int i = 0; i < s->n_objects; i++)
		assert_true(s->objects[i].kind == SIM_NODE ||
			    strstr(s->objects[i].path, "foreign"));
	stop(s, &script);
}

/* The ps end one by one after the workers. The rate limit combines these status changes. */
static void end__of_a_job__causes_few_writes(void **state)
{
	struct sim_script script = {.end = ends_well, .work = 30};
	struct sim *s = start(&script, COMMAND, "");
	int before;

	sim_settle(s, 20);
	assert_string_equal(sim_text(sim_find(s, JOB_PATH)->json, "status.phase"), "Running");
	before = s->writes;
	sim_settle(s, 100);
	assert_string_equal(sim_text(sim_find(s, JOB_PATH)->json, "status.phase"), "Succeeded");
	assert_true(sim_at(sim_find(s, JOB_PATH)->json, "status.tasks.ps.active")->valueint == 0);
	assert_in_range(s->writes - before, 3, 4); /* counts, the end, its event, counts */
	stop(s, &script);
}

static bool any_pod(const struct sim *s)
{
	for (int i = 0; i < s->n_objects; i++)
		if (s->objects[i].kind == SIM_POD && !strstr(s->objects[i].path, "foreign"))
			return true;
	return false;
}

/* Users wait for the end of a suspension; the intermediate pod counts may be delayed. */
static void suspension__that_is_complete__is_written_at_once(void **state)
{
	struct sim_script script = {.end = never_ends, .user_actions = {{USER_SUSPEND, 40, 0}}};
	struct sim *s = start(&script, COMMAND, "");
	const cJSON *condition;

	sim_settle(s, 40);
	for (int i = 0; i < 100 && any_pod(s); i++)
		sim_settle(s, 0.2);
	assert_false(any_pod(s));
	sim_settle(s, 1);
	condition = condition_of(s, "Suspended");
	assert_non_null(condition);
	assert_string_equal(sim_text(condition, "status"), "True");
	stop(s, &script);
}

static void expect_bucket(struct mu_histogram *h, const char *line)
{
	MU_AUTO_BUF out = {0};

	mu_histogram_write(h, "n", "", &out);
	if (!strstr(out.data, line))
		fail_msg("no %s in\n%s", line, out.data);
}

static void job__that_ran_and_ended__has_its_duration_recorded_once(void **state)
{
	struct sim_script script = {.end = ends_well, .work = 30};
	struct sim *s = start(&script, COMMAND, "");
	struct controller *c = &s->operators[0].controller;

	expect_bucket(&c->to_running, "n_count{} 0\n");
	sim_settle(s, 20);
	expect_bucket(&c->to_running, "n_count{} 1\n");
	expect_bucket(&c->succeeded_in, "n_count{} 0\n");
	sim_settle(s, 100);
	expect_bucket(&c->to_running, "n_count{} 1\n");
	expect_bucket(&c->succeeded_in, "le=\"10\"} 0\n");
	expect_bucket(&c->succeeded_in, "le=\"60\"} 1\n");
	expect_bucket(&c->failed_in, "n_count{} 0\n");
	stop(s, &script);
}

static const char *phase_of(struct sim *s)
{
	return sim_text(sim_find(s, JOB_PATH)->json, "status.phase");
}

static void first_status__of_a_pending_job__is_written_within_seconds(void **state)
{
	struct sim_script script = {.end = never_ends, .stuck_pending = true};
	struct sim *s = start(&script, COMMAND, "");

	sim_settle(s, 4);
	assert_string_equal(phase_of(s), "Pending");
	stop(s, &script);
}

/* Number of writes in a minute in which the chief reports progress every second. */
static int count_progress_writes(void)
{
	struct sim_script script = {.end = never_ends};
	struct sim *s = start(&script, COMMAND, "");
	struct controller *c = &s->leader->controller;
	int before;

	sim_settle(s, 60);
	assert_string_equal(phase_of(s), "Running");
	before = s->writes;
	for (int i = 1; i <= 60; i++) {
		struct progress_report report = {.set = true, .step = i};

		store_set_progress(&c->store, SIM_KEY, "none", &report, NULL, s->now);
		workqueue_add(&c->queue, SIM_KEY);
		sim_settle(s, 1);
	}
	before = s->writes - before;
	stop(s, &script);
	return before;
}

static void progress__is_written_once_in_an_interval(void **state)
{
	assert_in_range(count_progress_writes(), 8, 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(first_status__of_a_pending_job__is_written_within_seconds),
	    cmocka_unit_test(progress__is_written_once_in_an_interval),
	    cmocka_unit_test(end__of_a_job__causes_few_writes),
	    cmocka_unit_test(suspension__that_is_complete__is_written_at_once),
	    cmocka_unit_test(job__that_takes_too_long__fails_on_time),
	    cmocka_unit_test(job__that_is_resumed__gets_its_full_deadline_again),
	    cmocka_unit_test(job__whose_pods_wait_too_long__fails_on_time),
	    cmocka_unit_test(job__whose_step_does_not_increase__fails_on_time),
	    cmocka_unit_test(job__whose_ready_chief_cannot_be_reached__does_not_fail),
	    cmocka_unit_test(job__whose_operator_was_down__does_not_fail),
	    cmocka_unit_test(job__that_has_ended__is_deleted_after_its_time_to_live),
	    cmocka_unit_test(job__that_ran_and_ended__has_its_duration_recorded_once),
	};

	mu_log_set_level(getenv("SIM_TRACE") ? MU_DEBUG : MU_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
