/* SPDX-License-Identifier: Apache-2.0 */
/* The policies of spec.run as tables of settings and expected results. */
#include "tests/operator/plan_fixture.h"

#include "operator/plan/planner.h"

/* ---- success and clean policies ---- */

#define AGAIN(policy) policy ", restartPolicy: Always"

static void success_policy__decides_which_tasks_complete_the_job(void **state)
{
	static const struct {
		const char *tasks,
		    *policy;         /* policy: successPolicy and further fields of spec.run */
		const char *ends[4]; /* "task/index", in this order */
		int n_ends;          /* the job succeeds after this number of ends */
	} cases[] = {
	    {"ps: {}, worker: {replicas: 2}", "Chief", {"worker/1", "worker/0"}, 2},
	    {"ps: {}, worker: {replicas: 2}", "Chief", {"worker/0"}, 1},
	    {"ps: {}, worker: {replicas: 2}", "AllWorkers", {"worker/0", "worker/1"}, 2},
	    {"ps: {}, chief: {}, worker: {replicas: 1}", "Chief", {"worker/0", "chief/0"}, 2},
	    {"ps: {}, chief: {}, worker: {replicas: 1}", "AllWorkers", {"chief/0", "worker/0"}, 2},
	    {"worker: {replicas: 3}", "AllWorkers", {"worker/2", "worker/1", "worker/0"}, 3},
	    {"chief: {}, worker: {}", AGAIN("AllWorkers"), {"worker/0", "chief/0"}, 2},
	    {"worker: {replicas: 2}", AGAIN("AllWorkers"), {"worker/1", "worker/0"}, 2},
	    {"chief: {}, worker: {}", AGAIN("Chief"), {"worker/0", "chief/0"}, 2},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *text =
		    mu_xasprintf(HEAD "  tasks: {%s}\n  run: {successPolicy: %s}\n", cases[i].tasks,
				 cases[i].policy);
		struct plan_fixture w;

		start_running(&w, text);
		for (int n = 0; cases[i].ends[n]; n++) {
			char task[16];

			snprintf(task, sizeof(task), "%.*s", (int)strcspn(cases[i].ends[n], "/"),
				 cases[i].ends[n]);
			fail_pod(&w, task, atoi(strchr(cases[i].ends[n], '/') + 1), 0);
			run_plan(&w);
			if ((w.status.phase == JOB_SUCCEEDED) != (n + 1 >= cases[i].n_ends))
				fail_msg("case %u after %s: %s", i, cases[i].ends[n],
					 job_phase_names[w.status.phase]);
		}
		plan_fixture_end(&w);
	}
}

static void clean_policy__decides_which_pods_stay(void **state)
{
	static const struct {
		const char *policy;
		int code;              /* exit code of the chief */
		const char *remaining; /* pods after all grace periods */
		bool service;
	} cases[] = {
	    {"None", 0, "ps=Succeeded worker=Succeeded worker=Running ", true},
	    {"Running", 0, "ps=Succeeded worker=Succeeded ", true},
	    {"All", 0, "", false},
	    {"None", 1, "ps=Running worker=Failed worker=Running ", true},
	    {"Running", 1, "worker=Failed ", true},
	    {"All", 1, "", false},
	};
	static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed"};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *text =
		    mu_xasprintf(TWO "  run: {cleanPodPolicy: %s}\n", cases[i].policy);
		static const char *const tasks[] = {"ps/0", "worker/0", "worker/1"};
		char remaining[128] = "";
		struct plan_fixture w;

		start_running(&w, text);
		fail_pod(&w, "worker", 0, cases[i].code);
		run_plan(&w);
		w.now += 11; /* the time in which the worker may exit by itself */
		run_plan(&w);
		w.now += 31;
		run_plan(&w);
		run_plan(&w);
		for (unsigned t = 0; t < MU_COUNT(tasks); t++) {
			char task[16];
			const struct observed_pod *p;

			snprintf(task, sizeof(task), "%.*s", (int)strcspn(tasks[t], "/"), tasks[t]);
			p = pod(&w, task, atoi(strchr(tasks[t], '/') + 1));
			if (p)
				snprintf(remaining + strlen(remaining),
					 sizeof(remaining) - strlen(remaining), "%s=%s ", task,
					 phases[p->phase]);
		}
		if (strcmp(remaining, cases[i].remaining) || w.service != cases[i].service)
			fail_msg("cleanPodPolicy %s, exit code %d leaves '%s', service %d",
				 cases[i].policy, cases[i].code, remaining, w.service);
		plan_fixture_end(&w);
	}
}

static void sidecar__of_a_finished_task__ends_with_the_job(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	fail_pod(&w, "worker", 0, 0);
	pod(&w, "worker", 0)->sidecar_runs = true;
	run_plan(&w);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_SUCCEEDED);
	assert_null(pod(&w, "worker", 0));
	plan_fixture_end(&w);
}

/* Otherwise a second status write follows when the pods have gone. */
static void pods__deleted_at_the_end_of_the_job__are_not_counted(void **state)
{
	static const struct {
		const char *policy;
		int code;               /* exit code of the chief */
		bool other_worker_ends; /* worker 1 has ended as well */
		int servers, workers;   /* active in the status that ends the job */
	} cases[] = {
	    {"Running", 0, true, 0, 0},  {"None", 0, true, 0, 0},
	    {"Running", 0, false, 1, 1}, /* the ps wait for the worker */
	    {"Running", 1, false, 0, 0}, {"None", 1, false, 1, 1},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *text =
		    mu_xasprintf(TWO "  run: {cleanPodPolicy: %s}\n", cases[i].policy);
		const struct task_status *tasks;
		struct plan_fixture w;

		start_running(&w, text);
		tasks = w.status.tasks;
		assert_int_equal(tasks[0].active + tasks[1].active, 3);
		fail_pod(&w, "worker", 0, cases[i].code);
		if (cases[i].other_worker_ends)
			fail_pod(&w, "worker", 1, 0);
		run_plan(&w);
		if (tasks[0].active != cases[i].servers || tasks[0].ready != cases[i].servers ||
		    tasks[1].active != cases[i].workers)
			fail_msg("case %u: %d servers are active, %d ready, %d workers", i,
				 tasks[0].active, tasks[0].ready, tasks[1].active);
		plan_fixture_end(&w);
	}
}

static void time_to_live__ends_the_job_on_the_second(void **state)
{
	static const int ttls[] = {0, 1, 3600};

	for (unsigned i = 0; i < MU_COUNT(ttls); i++) {
		MU_AUTO_FREE char *text =
		    mu_xasprintf(TWO "  run: {ttlSecondsAfterFinished: %d}\n", ttls[i]);
		struct plan_fixture w;

		start_running(&w, text);
		fail_pod(&w, "worker", 0, 1);
		run_plan(&w);
		w.now += ttls[i] - 1;
		if (ttls[i]) {
			assert_null(strstr(run_plan(&w), "gone"));
			assert_true(w.requeue_at > 0 && w.requeue_at <= w.now + 1);
		}
		w.now += 1;
		assert_non_null(strstr(run_plan(&w), "gone"));
		plan_fixture_end(&w);
	}
}

/* ---- index statuses ---- */

static void index_statuses__record_how_each_index_ended(void **state)
{
	static const struct {
		const char *policy;
		int code;
		bool free, runs_again, done;
		int failures;
	} cases[] = {
	    {"Never", 0, false, false, true, 0},       {"Never", 137, false, false, false, 1},
	    {"OnFailure", 0, false, false, true, 0},   {"OnFailure", 1, false, true, false, 1},
	    {"OnFailure", 137, true, true, false, 0},  {"ExitCode", 1, false, false, false, 1},
	    {"ExitCode", 127, false, false, false, 1}, {"ExitCode", 128, false, true, false, 1},
	    {"ExitCode", 143, false, true, false, 1},  {"ExitCode", 2, true, true, false, 0},
	    {"Always", 0, false, false, true, 0}, /* for tasks that the success policy counts */
	    {"Always", 1, false, true, false, 1},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *text =
		    mu_xasprintf(TWO "  run: {restartPolicy: %s}\n", cases[i].policy);
		const struct index_status *e = NULL;
		struct plan_fixture w;

		start_running(&w, text);
		fail_pod(&w, "worker", 1, cases[i].code);
		pod(&w, "worker", 1)->disrupted = cases[i].free;
		pod(&w, "worker", 1)->node = "n1";
		run_plan(&w);
		for (unsigned n = 0; n < w.status.n_indexes; n++)
			if (strcmp(w.status.indexes[n].task, "worker") == 0 &&
			    w.status.indexes[n].index == 1)
				e = &w.status.indexes[n];
		assert_non_null(e);
		if (!cases[i].done) /* the status of a done index has no node */
			assert_string_equal(e->node, "n1");
		assert_int_equal(e->exit_code, cases[i].code);
		assert_int_equal(e->attempts, 1);
		if (e->failures != cases[i].failures || e->done != cases[i].done)
			fail_msg("case %u: %d failures, done %d", i, e->failures, e->done);
		w.now += 2; /* after the backoff */
		run_plan(&w);
		run_plan(&w);
		if ((pod(&w, "worker", 1) && pod(&w, "worker", 1)->phase == POD_PENDING) !=
		    cases[i].runs_again)
			fail_msg("case %u (%s, exit code %d): runs again or not", i,
				 cases[i].policy, cases[i].code);
		plan_fixture_end(&w);
	}
}

static void restart_always__after_exit_code_0__waits_a_second(void **state)
{
	struct plan_fixture w;

	start_running(&w, HEAD "  tasks: {ps: {}, worker: {}, evaluator: {}}\n"
			       "  run: {restartPolicy: Always}\n");
	fail_pod(&w, "evaluator", 0, 0);
	run_plan(&w);
	run_plan(&w);
	assert_null(pod(&w, "evaluator", 0));
	w.now += 1;
	run_plan(&w);
	assert_non_null(pod(&w, "evaluator", 0));
	assert_int_equal(w.status.restarts, 0);
	plan_fixture_end(&w);
}

static void completed_indexes__are_written_as_ranges(void **state)
{
	static const char *const ends[] = {"worker/0", "worker/2", "worker/3", "worker/5"};
	MU_AUTO_BUF text = {0};
	struct plan_fixture w;

	start_running(&w, HEAD "  tasks: {ps: {}, worker: {replicas: 7}}\n"
			       "  run: {successPolicy: AllWorkers}\n");
	for (unsigned i = 0; i < MU_COUNT(ends); i++)
		fail_pod(&w, "worker", ends[i][7] - '0', 0);
	fail_pod(&w, "worker", 1, 137);
	run_plan(&w);
	status_print(&w.plan->status, &text);
	assert_non_null(strstr(text.data, "\"completedIndexes\":{\"worker\":\"0,2-3,5\"}"));
	assert_int_equal(w.status.n_indexes, 5);
	assert_int_equal(w.status.tasks[1].succeeded, 4);
	assert_non_null(strstr(text.data, "\"indexStatuses\":[{\"task\":\"worker\",\"index\":1,"));
	w.now += 100;
	assert_string_equal(run_plan(&w), "+worker/1 ");
	run_all(&w);
	fail_pod(&w, "worker", 1, 0); /* an index with failures keeps its entry in indexStatuses */
	run_plan(&w);
	mu_buf_clear(&text);
	status_print(&w.plan->status, &text);
	assert_non_null(strstr(text.data, "\"completedIndexes\":{\"worker\":\"0,2-3,5\"}"));
	assert_non_null(strstr(text.data, "\"index\":1,\"done\":true,\"failures\":1,"));
	plan_fixture_end(&w);
}

/* With the maximum number of tasks, the object stays far below the server's limit of 1.5 MB. */
static void completed_indexes__of_the_largest_job__are_small(void **state)
{
	static const char *const tasks[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	MU_AUTO_BUF text = {0};
	struct job_status s = {0}, back;

	for (int i = 0; i < JOB_MAX_TASKS * JOB_MAX_REPLICAS; i++) {
		struct index_status *e =
		    index_status_get_or_add(&s, tasks[i / JOB_MAX_REPLICAS], i % JOB_MAX_REPLICAS);

		e->done = true;
		e->attempts = 1;
		e->exit_code = 0;
		snprintf(e->uid, sizeof(e->uid), "01234567-89ab-cdef-0123-%012d", i);
		snprintf(e->node, sizeof(e->node), "node-%d", i);
	}
	status_print(&s, &text);
	assert_in_range(text.len, 1, 1000);
	status_parse(&back, text.data);
	assert_int_equal(back.n_indexes, s.n_indexes);
	for (unsigned i = 0; i < back.n_indexes; i++)
		assert_true(back.indexes[i].done && back.indexes[i].index == s.indexes[i].index);
	job_status_fini(&back);
	job_status_fini(&s);
}

static void ranges__that_are_malformed__are_read_up_to_the_first_error(void **state)
{
	static const struct {
		const char *json;
		unsigned n;
	} cases[] = {
	    {"{\"w\":\"0-2,5\"}", 4},
	    {"{\"w\":\"\"}", 0},
	    {"{\"w\":\"x\"}", 0},
	    {"{\"w\":\"-3\"}", 0},
	    {"{\"w\":\"3-1\"}", 0},
	    {"{\"w\":\"4-\"}", 0},
	    {"{\"w\":\"1-2-3\"}", 2},
	    {"{\"w\":\"5,4\"}", 1},
	    {"{\"w\":\"7,7,7\"}", 1},
	    {"{\"w\":\"999\"}", 1},
	    {"{\"w\":\"1000\"}", 0},
	    {"{\"w\":\"0-99999999999999999999\"}", 0},
	    {"{\"w\":7}", 0},
	    {"{\"\":\"0\"}", 0},
	    {"[\"0\"]", 0},
	    {"\"0\"", 0},
	    {"{\"a\":\"0\",\"b\":\"0\",\"c\":\"0\",\"d\":\"0\",\"e\":\"0\",\"f\":\"0\","
	     "\"g\":\"0\",\"h\":\"0\",\"i\":\"0\"}",
	     8},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *text = mu_xasprintf("{\"completedIndexes\":%s}", cases[i].json);
		struct job_status s;

		status_parse(&s, text);
		if (s.n_indexes != cases[i].n)
			fail_msg("%s: %u indices, not %u", cases[i].json, s.n_indexes, cases[i].n);
		job_status_fini(&s);
	}
}

/* ---- TensorBoard ---- */

#define BOARD                                                                                      \
	HEAD "  tasks: {ps: {}, worker: {}}\n  checkpoint: {volumeClaim: c}\n"                     \
	     "  tensorboard: {enabled: true}\n"

static void tensorboard__that_fails__does_not_affect_the_job(void **state)
{
	struct plan_fixture w;

	start_running(&w, BOARD);
	assert_non_null(pod(&w, JOB_TENSORBOARD, 0));
	assert_null(strstr(w.status.members, JOB_TENSORBOARD));
	for (int n = 0; n < 30; n++) { /* more often than backoffLimit */
		if (pod(&w, JOB_TENSORBOARD, 0))
			fail_pod(&w, JOB_TENSORBOARD, 0, 1);
		w.now += 61;
		run_plan(&w);
		run_plan(&w);
	}
	assert_int_equal(w.status.phase, JOB_RUNNING);
	assert_int_equal(w.status.restarts, 0);
	assert_true(w.status.conditions[COND_READY].status);
	plan_fixture_end(&w);
}

static void tensorboard__that_cannot_start__leaves_the_job_ready(void **state)
{
	struct plan_fixture w;

	start_running(&w, BOARD);
	pod(&w, JOB_TENSORBOARD, 0)->phase = POD_PENDING;
	pod(&w, JOB_TENSORBOARD, 0)->reason = "ImagePullBackOff";
	run_plan(&w);
	assert_true(w.status.conditions[COND_READY].status);
	plan_fixture_end(&w);
}

static void tensorboard__after_the_training__keeps_running(void **state)
{
	struct plan_fixture w;

	start_running(&w, BOARD);
	fail_pod(&w, "worker", 0, 0);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_SUCCEEDED);
	w.now += 100;
	run_plan(&w);
	run_plan(&w);
	assert_non_null(pod(&w, JOB_TENSORBOARD, 0));
	plan_fixture_end(&w);
}

/* ---- phases ---- */

static void ps__that_runs_and_does_not_answer__is_named(void **state)
{
	struct plan_fixture w;

	start_running(&w, HEAD "  tasks: {ps: {}, worker: {}}\n");
	pod(&w, "ps", 0)->ready = false;
	w.now = pod(&w, "ps", 0)->created + 1;
	run_plan(&w);
	assert_null(strstr(w.status.conditions[COND_READY].message, "does not answer"));
	assert_true(w.requeue_at > w.now && w.requeue_at < w.now + 20);
	w.now = w.requeue_at;
	run_plan(&w);
	assert_non_null(strstr(w.status.conditions[COND_READY].message, "ps/0 on node"));
	w.now = pod(&w, "ps", 0)->created + 1;
	pod(&w, "ps", 0)->was_ready = true; /* a task that was ready before is reported at once */
	run_plan(&w);
	assert_non_null(strstr(w.status.conditions[COND_READY].message, "ps/0 on node"));
	pod(&w, "ps", 0)->ready = true;
	run_plan(&w);
	assert_true(w.status.conditions[COND_READY].status);
	plan_fixture_end(&w);
}

static void job__that_is_no_longer_ready__is_reported_at_once(void **state)
{
	struct plan_fixture w;

	start_running(&w, HEAD "  tasks: {ps: {}, worker: {}}\n");
	run_plan(&w);
	assert_true(w.status.conditions[COND_READY].status);
	assert_false(w.plan->urgent);
	pod(&w, "ps", 0)->ready = false;
	run_plan(&w);
	assert_true(w.plan->urgent);
	assert_non_null(strstr(w.status.conditions[COND_READY].message, "waiting for ps/0"));
	run_plan(&w);
	assert_false(w.plan->urgent);
	plan_fixture_end(&w);
}

static void trouble__is_urgent_only_when_it_is_new(void **state)
{
	struct plan_fixture w;

	plan_fixture_start(&w, HEAD "  tasks: {ps: {}, worker: {}}\n");
	run_plan(&w);
	assert_false(w.plan->urgent); /* tasks are starting */
	assert_null(job_status_trouble(&w.status));
	pod(&w, "ps", 0)->reason = "ErrImagePull";
	run_plan(&w);
	assert_true(w.plan->urgent);
	assert_string_equal(job_status_trouble(&w.status)->reason, "ImageUnavailable");
	pod(&w, "ps", 0)->reason =
	    "ImagePullBackOff"; /* both reasons have the same meaning for users */
	run_plan(&w);
	assert_false(w.plan->urgent);
	w.rejected = "pods \"j-ps-0\" is forbidden: exceeded quota: q";
	w.n_pods = 0;
	run_plan(&w);
	assert_true(w.plan->urgent);
	w.n_pods = 0;
	run_plan(&w);
	assert_false(w.plan->urgent);
	plan_fixture_end(&w);
}

static void phase__while_workers_run_after_the_chief__stays_running(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO "  run: {successPolicy: AllWorkers}\n");
	fail_pod(&w, "worker", 0, 0);
	run_plan(&w);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_RUNNING);
	assert_string_equal(w.status.conditions[COND_RUNNING].reason, "ChiefIsDone");
	fail_pod(&w, "worker", 1, 0);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_SUCCEEDED);
	plan_fixture_end(&w);
}

static void phase__when_the_chief_stops_its_server_before_it_exits__stays_running(void **state)
{
	struct plan_fixture w;

	start_running(&w, HEAD "  tasks: {ps: {}, worker: {}}\n");
	w.last_progress = w.now;
	pod(&w, "worker", 0)->ready = false;
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_RUNNING);
	fail_pod(&w, "worker", 0, 0);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_SUCCEEDED);
	plan_fixture_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(success_policy__decides_which_tasks_complete_the_job),
	    cmocka_unit_test(clean_policy__decides_which_pods_stay),
	    cmocka_unit_test(sidecar__of_a_finished_task__ends_with_the_job),
	    cmocka_unit_test(pods__deleted_at_the_end_of_the_job__are_not_counted),
	    cmocka_unit_test(time_to_live__ends_the_job_on_the_second),
	    cmocka_unit_test(index_statuses__record_how_each_index_ended),
	    cmocka_unit_test(restart_always__after_exit_code_0__waits_a_second),
	    cmocka_unit_test(completed_indexes__are_written_as_ranges),
	    cmocka_unit_test(completed_indexes__of_the_largest_job__are_small),
	    cmocka_unit_test(ranges__that_are_malformed__are_read_up_to_the_first_error),
	    cmocka_unit_test(ps__that_runs_and_does_not_answer__is_named),
	    cmocka_unit_test(job__that_is_no_longer_ready__is_reported_at_once),
	    cmocka_unit_test(trouble__is_urgent_only_when_it_is_new),
	    cmocka_unit_test(tensorboard__that_fails__does_not_affect_the_job),
	    cmocka_unit_test(tensorboard__that_cannot_start__leaves_the_job_ready),
	    cmocka_unit_test(tensorboard__after_the_training__keeps_running),
	    cmocka_unit_test(phase__while_workers_run_after_the_chief__stays_running),
	    cmocka_unit_test(phase__when_the_chief_stops_its_server_before_it_exits__stays_running),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
