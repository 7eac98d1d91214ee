/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in a plan: the backoff of an index, the pod counts, and failures that do not count. */
#include "tests/operator/plan_fixture.h"

static const struct index_status *entry(const struct plan_fixture *w, const char *task, int index)
{
	for (unsigned n = 0; n < w->status.n_indexes; n++)
		if (strcmp(w->status.indexes[n].task, task) == 0 &&
		    w->status.indexes[n].index == index)
			return &w->status.indexes[n];
	return NULL;
}

static void backoff__doubles_up_to_a_minute(void **state)
{
	static const int waits[] = {1, 2, 4, 8, 16, 32, 60, 60};
	struct plan_fixture w;

	start_running(&w, TWO "  run: {restartPolicy: OnFailure, backoffLimit: 100}\n");
	for (unsigned i = 0; i < MU_COUNT(waits); i++) {
		fail_pod(&w, "worker", 1, 1);
		assert_string_equal(run_plan(&w), "-worker/1 ");
		assert_true(entry(&w, "worker", 1)->retry_at == w.now + waits[i]);
		w.now += waits[i] - 0.5;
		assert_string_equal(run_plan(&w), "");
		assert_true(w.requeue_at == w.now + 0.5);
		w.now = w.requeue_at;
		assert_string_equal(run_plan(&w), "+worker/1 ");
		run_all(&w);
	}
	plan_fixture_end(&w);
}

static void node__removed_from_the_cluster__is_lost(void **state)
{
	struct observed_pod *p;
	struct plan_fixture w;

	start_running(&w, TWO);
	w.node = (struct node_info){.name = "other", .schedulable = true};
	p = pod(&w, "worker", 1);
	p->node = "gone";
	p->deleting = true;
	p->deletion_due = w.now + 30;
	w.now = p->deletion_due + 15;
	assert_string_equal(run_plan(&w), "~worker/1 ");
	plan_fixture_end(&w);
}

/* Without permission to list nodes, the planner treats no node as lost. */
static void node__without_permission_to_list__is_not_lost(void **state)
{
	struct observed_pod *p;
	struct plan_fixture w;

	start_running(&w, TWO);
	p = pod(&w, "worker", 1);
	p->node = "unseen";
	p->deleting = true;
	p->deletion_due = w.now + 30;
	w.now += 10000;
	assert_string_equal(run_plan(&w), "");
	plan_fixture_end(&w);
}

static void counts__match_the_existing_pods(void **state)
{
	const struct task_status *t;
	struct plan_fixture w;

	start_running(&w, HEAD "  tasks: {ps: {}, worker: {replicas: 6}}\n"
			       "  run: {restartPolicy: OnFailure, successPolicy: AllWorkers}\n");
	t = &w.status.tasks[1];
	pod(&w, "worker", 1)->ready = false;
	pod(&w, "worker", 2)->phase = POD_PENDING;
	pod(&w, "worker", 2)->ready = false;
	pod(&w, "worker", 3)->deleting = true;
	fail_pod(&w, "worker", 4, 0);
	fail_pod(&w, "worker", 5, 1);
	pod(&w, "worker", 0)->kernels = "cpu-avx2";
	run_plan(&w);
	assert_string_equal(t->name, "worker");
	assert_int_equal(t->desired, 6);
	assert_int_equal(t->active, 3); /* 0, 1 and 2 */
	assert_int_equal(t->ready, 1);
	assert_int_equal(t->succeeded, 1);
	assert_int_equal(t->failed, 1);
	assert_string_equal(t->kernels, "cpu-avx2");
	assert_string_equal(w.status.selector, "muster.dev/job=j,muster.dev/task=worker");
	plan_fixture_end(&w);
}

/* The previous leader created the pods and wrote no status; their program reports no kernels. */
static void kernels__missing_in_the_status__are_taken_from_the_pods(void **state)
{
	static const struct {
		const char *known, *chosen, *reported, *want;
	} rows[] = {
	    {"", "cpu-generic", NULL, "cpu-generic"},
	    {"cpu-avx512", "cpu-generic", NULL, "cpu-avx512"}, /* `auto` chose better ones */
	    {"cpu-avx512", "cpu-generic", "cpu-avx2", "cpu-avx2"},
	};

	for (unsigned i = 0; i < MU_COUNT(rows); i++) {
		struct task_status *t;
		struct plan_fixture w;

		start_running(&w, TWO);
		t = &w.status.tasks[1];
		snprintf(t->kernels, sizeof(t->kernels), "%s", rows[i].known);
		pod(&w, "worker", 0)->chosen_kernels = rows[i].chosen;
		pod(&w, "worker", 0)->kernels = rows[i].reported;
		run_plan(&w);
		assert_string_equal(w.status.tasks[1].kernels, rows[i].want);
		plan_fixture_end(&w);
	}
}

/* The built-in trainer reports its steps; a user's program may report none. */
static void progress_deadline__of_a_program_that_reports_no_steps__never_fires(void **state)
{
	static const struct {
		const char *program;
		bool no_poll, fires;
	} cases[] = {
	    {"command: [x]", false, false},
	    {"train: {dataset: {path: d}}", false, true},
	    {"train: {dataset: {path: d}}", true, false}, /* the operator does not poll the tasks */
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *text =
		    mu_xasprintf(TWO "  program: {%s}\n  security: {mtls: false}\n"
				     "  run: {progressDeadlineSeconds: 30}\n",
				 cases[i].program);
		struct plan_fixture w;

		start_running(&w, text);
		w.no_poll = cases[i].no_poll;
		w.now += 29;
		run_plan(&w);
		assert_int_equal(w.status.phase, JOB_RUNNING);
		w.now += 1;
		run_plan(&w);
		assert_int_equal(w.status.phase == JOB_FAILED, cases[i].fires);
		plan_fixture_end(&w);
	}
}

/* No other event may ever cause a reconcile of the job. */
static void progress_deadline__starts_with_the_reconcile_that_reports_running(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO "  program: {train: {dataset: {path: d}}}\n"
			      "  security: {mtls: false}\n"
			      "  run: {progressDeadlineSeconds: 30}\n");
	assert_true(w.requeue_at == w.now + 30);
	plan_fixture_end(&w);
}

static void scheduling_deadline__ignores_pods_that_are_terminating(void **state)
{
	struct plan_fixture w;

	plan_fixture_start(&w, TWO "  run: {schedulingDeadlineSeconds: 50}\n");
	run_plan(&w);
	pod(&w, "ps", 0)->deleting = true;
	w.now += 51;
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_PENDING);
	plan_fixture_end(&w);
}

/* In a classic program the ps exits moments before the operator sees the end of the chief. */
static void ps__that_ends_with_0__runs_again_under_any_policy(void **state)
{
	static const char *const policies[] = {"Never", "OnFailure", "Always", "ExitCode"};

	for (unsigned i = 0; i < MU_COUNT(policies); i++) {
		MU_AUTO_FREE char *text =
		    mu_xasprintf(TWO "  run: {backoffLimit: 0, restartPolicy: %s}\n", policies[i]);
		struct plan_fixture w;

		start_running(&w, text);
		fail_pod(&w, "ps", 0, 0);
		run_plan(&w);
		assert_int_not_equal(w.status.phase, JOB_FAILED);
		w.now += 2;
		assert_string_equal(run_plan(&w), "+ps/0 ");
		fail_pod(&w, "ps", 0,
			 0); /* a second time is a failure, unless the policy is Always */
		run_plan(&w);
		assert_int_equal(w.status.phase == JOB_FAILED, i != 2);
		plan_fixture_end(&w);
	}
}

/* A ps that exits before the workers is restarted after any exit code. */
static void ps__that_ends_with_0_while_workers_run__runs_again(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	fail_pod(&w, "ps", 0, 0);
	assert_string_equal(run_plan(&w), "-ps/0 ");
	w.now += 2;
	assert_string_equal(run_plan(&w), "+ps/0 ");
	assert_int_not_equal(w.status.phase, JOB_FAILED);
	plan_fixture_end(&w);
}

static void restart_policy__of_a_task__overrides_that_of_the_job(void **state)
{
	struct plan_fixture w;

	start_running(&w,
		      HEAD "  tasks: {ps: {}, worker: {replicas: 2, restartPolicy: OnFailure}}\n"
			   "  run: {restartPolicy: Never}\n");
	fail_pod(&w, "worker", 1, 1);
	assert_string_equal(run_plan(&w), "-worker/1 ");
	assert_int_equal(w.status.phase, JOB_RESTARTING);
	fail_pod(&w, "ps", 0, 1);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_FAILED);
	plan_fixture_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(backoff__doubles_up_to_a_minute),
	    cmocka_unit_test(node__removed_from_the_cluster__is_lost),
	    cmocka_unit_test(node__without_permission_to_list__is_not_lost),
	    cmocka_unit_test(counts__match_the_existing_pods),
	    cmocka_unit_test(kernels__missing_in_the_status__are_taken_from_the_pods),
	    cmocka_unit_test(progress_deadline__of_a_program_that_reports_no_steps__never_fires),
	    cmocka_unit_test(progress_deadline__starts_with_the_reconcile_that_reports_running),
	    cmocka_unit_test(scheduling_deadline__ignores_pods_that_are_terminating),
	    cmocka_unit_test(ps__that_ends_with_0__runs_again_under_any_policy),
	    cmocka_unit_test(ps__that_ends_with_0_while_workers_run__runs_again),
	    cmocka_unit_test(restart_policy__of_a_task__overrides_that_of_the_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
