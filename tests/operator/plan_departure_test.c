/* SPDX-License-Identifier: Apache-2.0 */
/* Removed synchronous workers: each deregisters, or a departure pod deregisters in its place. */
#include "tests/operator/plan_fixture.h"

#define SYNC(mode, workers)                                                                        \
	HEAD                                                                                       \
	    "  program: {train: {model: mlp, dataset: {path: x.csv, format: csv}}}\n  mode: " mode \
	    "\n"                                                                                   \
	    "  security: {mtls: false}\n  tasks: {ps: {}, worker: {replicas: " workers "}}\n"

static const char *env_of(const struct plan_fixture *w, const char *name)
{
	const struct plan_pod *departure_pod = NULL;

	for (unsigned i = 0; i < w->plan->n_actions; i++)
		if (w->plan->actions[i].pod)
			departure_pod = w->plan->actions[i].pod;
	for (unsigned i = 0; departure_pod && i < departure_pod->n_env; i++)
		if (strcmp(departure_pod->env[i].name, name) == 0)
			return departure_pod->env[i].value;
	return NULL;
}

static void expect_actions(struct plan_fixture *w, const char *want)
{
	const char *did = run_plan(w);

	if (strcmp(did, want) != 0)
		fail_msg("the plan is '%s' instead of '%s'", did, want);
}

static const struct index_status *entry(const struct plan_fixture *w, int index)
{
	for (unsigned n = 0; n < w->status.n_indexes; n++)
		if (strcmp(w->status.indexes[n].task, "worker") == 0 &&
		    w->status.indexes[n].index == index)
			return &w->status.indexes[n];
	return NULL;
}

/* The state of worker/2 when, or after, the manifest reduces the workers to two. */
enum worker_end {
	RUNS_AT_REMOVAL,
	KILLED_AFTER_REMOVAL,
	NOT_STARTED,
	KILLED_AND_GONE,
	KILLED_AND_WAITS_FOR_RESTART,
	FORCE_DELETED,
	FORCE_DELETED_AND_WAITS_FOR_RESTART
};

/* All pods run except worker/2, which is pending. */
static void start_with_worker_2_pending(struct plan_fixture *w, const char *manifest)
{
	plan_fixture_start(w, manifest);
	run_plan(w);
	run_all(w);
	run_plan(w);
	run_all(w);
	pod(w, "worker", 2)->phase = POD_PENDING;
	pod(w, "worker", 2)->ready = false;
	run_plan(w);
}

/* A departure pod that is terminated before it has deregistered its worker is repeated. */
static void departure_pod__that_is_terminated__has_not_deregistered(void **state)
{
	struct plan_fixture w;
	struct observed_pod *p;

	start_running(&w, SYNC("sync", "3"));
	remove_uid(&w, pod(&w, "worker", 2)->uid);
	plan_fixture_edit(&w, SYNC("sync", "2"));
	run_plan(&w);
	p = pod(&w, "worker", 2);
	assert_true(p->is_departure_pod);
	p->deleting = p->ended_by_deletion = true;
	fail_pod(&w, "worker", 2, 143);
	run_plan(&w);
	for (int i = 0; i < 3 && !pod(&w, "worker", 2); i++) {
		w.now += 60;
		run_plan(&w);
	}
	assert_non_null(pod(&w, "worker", 2));
	assert_true(pod(&w, "worker", 2)->is_departure_pod);
	plan_fixture_end(&w);
}

static void removed_worker__that_may_not_have_deregistered__gets_a_departure_pod(void **state)
{
	static const struct {
		const char *mode;
		enum worker_end worker_end;
		int exit_code; /* observed before the pod is deleted; -1: not observed */
		bool departure_attempts;
	} cases[] = {
	    {"sync", RUNS_AT_REMOVAL, 143, false},
	    {"sync", RUNS_AT_REMOVAL, 0, false},
	    {"sync", RUNS_AT_REMOVAL, 137, true},
	    {"sync", RUNS_AT_REMOVAL, -1, true},
	    {"sync", KILLED_AFTER_REMOVAL, 137, true},
	    {"sync", NOT_STARTED, -1, false},
	    {"sync", KILLED_AND_WAITS_FOR_RESTART, -1, true},
	    {"sync", KILLED_AND_GONE, -1, true},
	    {"sync", FORCE_DELETED, -1, true},
	    {"sync", FORCE_DELETED_AND_WAITS_FOR_RESTART, -1, true},
	    {"async", KILLED_AND_GONE, -1, false},
	    {"async", FORCE_DELETED, -1, false},
	    {"async", RUNS_AT_REMOVAL, 137, false},
	    {"async", KILLED_AFTER_REMOVAL, 137, false},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		bool sync = strcmp(cases[i].mode, "sync") == 0;
		const char *three = sync ? SYNC("sync", "3") : SYNC("async", "3");
		enum worker_end worker_end = cases[i].worker_end;
		bool by_force = worker_end >= FORCE_DELETED;
		struct observed_pod *p;
		struct plan_fixture w;

		if (worker_end == NOT_STARTED)
			start_with_worker_2_pending(&w, three);
		else
			start_running(&w, three);
		p = pod(&w, "worker", 2);
		if (by_force)
			remove_uid(&w, p->uid);
		else if (worker_end != RUNS_AT_REMOVAL && worker_end != NOT_STARTED)
			fail_pod(&w, "worker", 2, 137);
		if (worker_end == FORCE_DELETED_AND_WAITS_FOR_RESTART)
			expect_actions(&w, "+worker/2 ");
		if (worker_end == KILLED_AND_GONE)
			expect_actions(&w, "-worker/2 ");
		if (worker_end == KILLED_AND_WAITS_FOR_RESTART) {
			run_plan(&w); /* deleted, and created again after a second */
			w.now += 1;
			expect_actions(&w, "+worker/2 ");
		}
		plan_fixture_edit(&w, sync ? SYNC("sync", "2") : SYNC("async", "2"));
		if (worker_end == RUNS_AT_REMOVAL && cases[i].exit_code >= 0) {
			p->deleting = p->ended_by_deletion =
			    true; /* the pod has ended after its SIGTERM */
			fail_pod(&w, "worker", 2, cases[i].exit_code);
			p->phase = POD_FAILED;
			expect_actions(&w, "");
			remove_uid(&w, p->uid);
		} else if (worker_end != KILLED_AND_GONE && worker_end != FORCE_DELETED) {
			expect_actions(&w, "-worker/2 ");
		}
		run_plan(&w);
		if (!!pod(&w, "worker", 2) != cases[i].departure_attempts)
			fail_msg("case %u: %s", i, w.log);
		if (cases[i].departure_attempts) {
			assert_string_equal(env_of(&w, "MUSTER_LEAVE"), "1");
			assert_non_null(strstr(env_of(&w, "TF_CONFIG"), "j-worker-2."));
			assert_true(pod(&w, "worker", 2)->is_departure_pod);
		}
		plan_fixture_end(&w);
	}
}

static void start_with_departure_pod(struct plan_fixture *w)
{
	start_running(w, SYNC("sync", "3"));
	fail_pod(w, "worker", 2, 137);
	plan_fixture_edit(w, SYNC("sync", "2"));
	expect_actions(w, "-worker/2 ");
	assert_int_equal(entry(w, 2)->pending_departure_size, 3);
	expect_actions(w, "+worker/2 ");
	run_all(w);
	expect_actions(w, "");
	assert_int_equal(w->status.tasks[1].active,
			 2); /* the departure pod does not count as a worker */
	assert_int_equal(w->status.tasks[1].ready, 2);
}

static void departure_pod__that_succeeded__is_deleted_and_not_counted(void **state)
{
	struct plan_fixture w;

	start_with_departure_pod(&w);
	fail_pod(&w, "worker", 2, 0);
	expect_actions(&w, "-worker/2 ");
	assert_true(w.plan->urgent);                 /* the departure must not be lost */
	assert_int_equal(entry(&w, 2)->attempts, 1); /* the earlier end by a signal */
	assert_int_equal(entry(&w, 2)->pending_departure_size, 0);
	assert_false(entry(&w, 2)->done);
	expect_actions(&w, "");
	assert_false(w.changed);
	plan_fixture_end(&w);
}

/* The reconcile that created the departure pod did not store for which worker. */
static void departure_pod__that_disappears__is_created_again(void **state)
{
	struct plan_fixture w;

	start_running(&w, SYNC("sync", "3"));
	remove_uid(&w, pod(&w, "worker", 2)->uid);
	plan_fixture_edit(&w, SYNC("sync", "2"));
	expect_actions(&w, "+worker/2 ");
	w.status.n_indexes = 0;
	w.status.tasks[1].joined = 3;
	expect_actions(&w, "");
	assert_int_equal(entry(&w, 2)->pending_departure_size, 3);
	remove_uid(&w, pod(&w, "worker", 2)->uid);
	expect_actions(&w, "+worker/2 ");
	assert_true(pod(&w, "worker", 2)->is_departure_pod);
	plan_fixture_end(&w);
}

static void departure_pod__that_is_pending__does_not_fail_the_job(void **state)
{
	struct plan_fixture w;

	start_running(&w, SYNC("sync", "3") "  run: {schedulingDeadlineSeconds: 50}\n");
	fail_pod(&w, "worker", 2, 137);
	plan_fixture_edit(&w, SYNC("sync", "2") "  run: {schedulingDeadlineSeconds: 50}\n");
	expect_actions(&w, "-worker/2 ");
	expect_actions(&w, "+worker/2 ");
	w.now += 60;
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_RUNNING);
	plan_fixture_end(&w);
}

static void departure_pod__that_fails__is_created_three_times(void **state)
{
	struct plan_fixture w;
	int times = 1;

	start_with_departure_pod(&w);
	w.now += 0.7;
	for (int i = 0; i < 20; i++) {
		if (pod(&w, "worker", 2))
			fail_pod(&w, "worker", 2, 1);
		run_plan(&w);
		w.now = w.requeue_at > w.now ? w.requeue_at : w.now + 4;
		if (strstr(run_plan(&w), "+worker/2")) {
			times++;
			/* in the form of the API server */
			pod(&w, "worker", 2)->created = floor(w.now);
		}
	}
	assert_int_equal(times, 3);
	assert_int_equal(w.status.phase, JOB_RUNNING);
	assert_int_equal(w.status.restarts, 1); /* of the worker itself */
	assert_true(w.status.conditions[COND_WORKERS_AWAITED].status);
	assert_non_null(strstr(w.status.conditions[COND_WORKERS_AWAITED].message,
			       "scale worker to 3 or more, or stop the job"));
	w.now += 1;
	run_plan(&w);
	assert_false(w.changed); /* the condition is written once */
	plan_fixture_edit(&w, SYNC("sync", "3"));
	expect_actions(&w, "+worker/2 ");
	run_all(&w);
	run_plan(&w);
	assert_false(w.status.conditions[COND_WORKERS_AWAITED].set);
	plan_fixture_end(&w);
}

/* Attempts count created pods; a pod that a quota rejects, for example, is not one. */
static void departure_pod__that_is_rejected__is_retried_without_an_attempt(void **state)
{
	struct plan_fixture w;

	start_running(&w, SYNC("sync", "3"));
	fail_pod(&w, "worker", 2, 137);
	plan_fixture_edit(&w, SYNC("sync", "2"));
	expect_actions(&w, "-worker/2 ");
	w.creates_fail = true;
	expect_actions(&w, "+worker/2 ");
	for (int i = 0; i < 5; i++) {
		w.now += 30;
		expect_actions(&w, "+worker/2 ");
		assert_false(w.changed); /* a retry writes no status */
		assert_int_equal(entry(&w, 2)->departure_attempts, 0);
	}
	assert_false(w.status.conditions[COND_WORKERS_AWAITED].set);
	w.creates_fail = false;
	expect_actions(&w, "+worker/2 ");
	assert_true(pod(&w, "worker", 2)->is_departure_pod);
	plan_fixture_end(&w);
}

static void departure_pod__that_does_not_end__is_deleted(void **state)
{
	struct plan_fixture w;

	start_with_departure_pod(&w);
	assert_true(w.requeue_at > w.now);
	w.now = w.requeue_at;
	expect_actions(&w, "-worker/2 ");
	plan_fixture_end(&w);
}

static void worker__added_back_during_its_departure__waits_for_the_departure_pod(void **state)
{
	struct plan_fixture w;

	start_with_departure_pod(&w);
	plan_fixture_edit(&w, SYNC("sync", "3"));
	expect_actions(&w, "");
	fail_pod(&w, "worker", 2, 0);
	expect_actions(&w, "-worker/2 ");
	assert_int_equal(w.status.phase, JOB_RESTARTING);
	expect_actions(&w, "+worker/2 ");
	assert_false(pod(&w, "worker", 2)->is_departure_pod);
	assert_null(env_of(&w, "MUSTER_LEAVE"));
	run_all(&w);
	run_plan(&w);
	assert_int_equal(entry(&w, 2)->pending_departure_size, 0);
	assert_int_equal(w.status.phase, JOB_RUNNING);
	plan_fixture_end(&w);
}

static void departure__of_a_job_resumed_before_its_ps_ended__is_still_pending(void **state)
{
	struct plan_fixture w;

	start_running(&w, SYNC("sync", "3"));
	fail_pod(&w, "worker", 2, 137);
	plan_fixture_edit(&w, SYNC("sync", "2") "  run: {suspend: true}\n");
	run_plan(&w);
	assert_non_null(pod(&w, "ps", 0));
	assert_int_equal(entry(&w, 2)->pending_departure_size, 3);
	plan_fixture_edit(&w, SYNC("sync", "2"));
	run_plan(&w);
	assert_true(pod(&w, "worker", 2)->is_departure_pod);
	plan_fixture_end(&w);
}

static void departure__of_a_suspended_job__is_cleared(void **state)
{
	struct plan_fixture w;

	start_with_departure_pod(&w);
	plan_fixture_edit(&w, SYNC("sync", "2") "  run: {suspend: true}\n");
	run_plan(&w);
	run_plan(&w);
	run_plan(&w);
	assert_int_equal(w.n_pods, 0);
	plan_fixture_edit(&w, SYNC("sync", "2"));
	run_plan(&w);
	run_all(&w);
	run_plan(&w);
	run_all(&w);
	expect_actions(&w, "");
	assert_null(pod(&w, "worker", 2));
	plan_fixture_end(&w);
}

/* A snapshot may still contain the pod of the removed worker. */
static void departure_pod__beside_the_pod_of_its_worker__stays(void **state)
{
	struct plan_fixture w;

	start_with_departure_pod(&w);
	w.pods[w.n_pods++] = (struct observed_pod){.task = "worker",
						   .index = 2,
						   .uid = "removed",
						   .phase = POD_FAILED,
						   .exit_code = 137,
						   .deleting = true};
	expect_actions(&w, "");
	plan_fixture_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(departure_pod__that_is_terminated__has_not_deregistered),
	    cmocka_unit_test(removed_worker__that_may_not_have_deregistered__gets_a_departure_pod),
	    cmocka_unit_test(departure_pod__that_succeeded__is_deleted_and_not_counted),
	    cmocka_unit_test(departure_pod__that_disappears__is_created_again),
	    cmocka_unit_test(departure_pod__that_fails__is_created_three_times),
	    cmocka_unit_test(departure_pod__that_is_pending__does_not_fail_the_job),
	    cmocka_unit_test(departure_pod__that_is_rejected__is_retried_without_an_attempt),
	    cmocka_unit_test(departure_pod__that_does_not_end__is_deleted),
	    cmocka_unit_test(departure_pod__beside_the_pod_of_its_worker__stays),
	    cmocka_unit_test(worker__added_back_during_its_departure__waits_for_the_departure_pod),
	    cmocka_unit_test(departure__of_a_job_resumed_before_its_ps_ended__is_still_pending),
	    cmocka_unit_test(departure__of_a_suspended_job__is_cleared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
