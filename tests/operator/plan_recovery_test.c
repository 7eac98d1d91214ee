/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of a job that has lost a parameter server. */
#include "tests/operator/plan_fixture.h"

static const struct condition *condition(const struct plan_fixture *w, enum condition_type type)
{
	return &w->status.conditions[type];
}

static void report(struct plan_fixture *w, int64_t step)
{
	w->step = step;
	w->last_progress = w->now;
	run_plan(w);
}

/* kill -9 of the ps: its new pod is ready, and the workers have not connected to it yet. */
static void lose_ps(struct plan_fixture *w)
{
	w->now += 10;
	fail_pod(w, "ps", 0, 137);
	run_plan(w);
	assert_int_equal(w->status.phase, JOB_RESTARTING);
	assert_non_null(strstr(job_status_trouble(&w->status)->message,
			       "ps/0 ended with exit code 137 (SIGKILL) and runs again"));
	w->now += 100;
	run_plan(w);
	run_all(w);
	w->now += 1;
	run_plan(w);
}

static void ps__that_was_restarted__is_named_until_the_next_step(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	w.now += 5;
	report(&w, 100);
	assert_null(job_status_trouble(&w.status));
	lose_ps(&w);
	assert_int_equal(w.status.phase, JOB_RUNNING);
	assert_string_equal(condition(&w, COND_RUNNING)->reason, PLAN_RECOVERING);
	assert_non_null(strstr(job_status_trouble(&w.status)->message,
			       "ps/0 has started again and no step has been reported since"));
	report(&w, 101);
	assert_string_equal(condition(&w, COND_RUNNING)->reason, "ChiefRuns");
	assert_null(job_status_trouble(&w.status));
	plan_fixture_end(&w);
}

static void ps__of_a_job_that_reports_no_steps__is_not_waited_for(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	lose_ps(&w);
	assert_string_equal(condition(&w, COND_RUNNING)->reason, "ChiefRuns");
	plan_fixture_end(&w);
}

static void step__that_decreases__sets_a_condition_with_both_steps(void **state)
{
	static const struct {
		const char *manifest, *reason, *text;
	} cases[] = {
	    {TWO, "NoCheckpoint", "there is no checkpoint to restore, set spec.checkpoint"},
	    {TWO "  checkpoint: {path: /c}\n", "CheckpointRestored",
	     "the last checkpoint was restored, a smaller checkpoint.everySeconds loses less"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct plan_fixture w;
		double first;

		start_running(&w, cases[i].manifest);
		w.now += 5;
		report(&w, 12679);
		lose_ps(&w);
		assert_false(condition(&w, COND_STEP_RESET)->set);
		report(&w, 1724);
		assert_true(condition(&w, COND_STEP_RESET)->status);
		assert_string_equal(condition(&w, COND_STEP_RESET)->reason, cases[i].reason);
		assert_non_null(strstr(
		    condition(&w, COND_STEP_RESET)->message,
		    "parameters of ps/0 were lost and the step went back from 12679 to 1724; "));
		assert_non_null(strstr(condition(&w, COND_STEP_RESET)->message, cases[i].text));
		assert_true(w.plan->urgent);
		first = condition(&w, COND_STEP_RESET)->since;
		w.now += 5;
		report(&w, 2000); /* the condition stays as the record of the lost steps */
		assert_true(condition(&w, COND_STEP_RESET)->status);
		assert_true(condition(&w, COND_STEP_RESET)->since == first);
		lose_ps(&w);
		report(&w, 1000); /* a second loss has its own transition time, and so an event */
		assert_true(condition(&w, COND_STEP_RESET)->since > first);
		plan_fixture_end(&w);
	}
}

/* An operator that becomes leader again may have an old step in memory. */
static void step__that_decreases_without_a_ps_restart__sets_no_condition(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	w.now += 5;
	report(&w, 100);
	report(&w, 50);
	assert_false(condition(&w, COND_STEP_RESET)->set);
	plan_fixture_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ps__that_was_restarted__is_named_until_the_next_step),
	    cmocka_unit_test(ps__of_a_job_that_reports_no_steps__is_not_waited_for),
	    cmocka_unit_test(step__that_decreases__sets_a_condition_with_both_steps),
	    cmocka_unit_test(step__that_decreases_without_a_ps_restart__sets_no_condition),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
