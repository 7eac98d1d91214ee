/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for a task that failed or cannot start: the object, the problem, the next step. */
#include "tests/operator/plan_fixture.h"

static void expect_message(const struct plan_fixture *w, enum condition_type type, const char *text)
{
	const struct condition *c = &w->status.conditions[type];

	if (!strstr(c->message, text))
		fail_msg("%s is '%s: %s', which does not say '%s'", condition_kinds[type].name,
			 c->reason, c->message, text);
}

static void end_twice(struct plan_fixture *w, int code, const char *reason)
{
	start_running(w, TWO "  run: {backoffLimit: 1, restartPolicy: OnFailure}\n");
	for (int n = 0; n < 2; n++) {
		fail_pod(w, "worker", 1, code);
		pod(w, "worker", 1)->reason = reason;
		pod(w, "worker", 1)->node = "n7";
		run_plan(w);
		w->now += 100;
		if (n == 0) {
			run_plan(w);
			run_all(w);
			run_plan(w);
		}
	}
}

static void backoff_limit__that_is_exceeded__names_the_last_failure(void **state)
{
	static const struct {
		int code;
		const char *reason, *text;
	} cases[] = {
	    {137, "OOMKilled",
	     "worker/1 ended with exit code 137 (OOMKilled: it used more than its memory limit, "
	     "raise resources.limits.memory) on node n7; why: kubectl logs -n default j-worker-1"},
	    {137, "Error", "worker/1 ended with exit code 137 (SIGKILL) on node n7"},
	    {139, NULL, "worker/1 ended with exit code 139 (SIGSEGV) on node n7"},
	    {128, POD_NO_EXECUTABLE,
	     "exit code 128 (ExecutableNotFound: executable not found in the image, check "
	     "program.command and image) on node n7"},
	    {127, "Error", "exit code 127 (executable not found, check program.command) on node"},
	    {3, "Error", "worker/1 ended with exit code 3 (Error) on node n7"},
	    {-1, "Evicted", "worker/1 ended without an exit code (Evicted) on node n7"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct plan_fixture w;

		end_twice(&w, cases[i].code, cases[i].reason);
		assert_int_equal(w.status.phase, JOB_FAILED);
		expect_message(&w, COND_FAILED,
			       "2 failures, more than backoffLimit: 1; worker/1 ended ");
		expect_message(&w, COND_FAILED, cases[i].text);
		plan_fixture_end(&w);
	}
}

/* The message is not truncated when each name has its maximum length. */
static void failure_message__with_names_of_maximum_length__is_complete(void **state)
{
	static const char manifest[] =
	    "apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\n"
	    "metadata: {name: a2345678901234567890123456789012345678901234567890123, "
	    "namespace: n23456789012345678901234567890123456789012345678901234567890123}\n"
	    "spec:\n  tasks: {ps: {}, a: {}, worker: {}}\n  run: {backoffLimit: 0}\n";
	struct plan_fixture w;

	plan_fixture_start(&w, manifest);
	run_plan(&w);
	run_all(&w);
	run_plan(&w);
	run_all(&w);
	fail_pod(&w, "a", 0, 137);
	pod(&w, "a", 0)->reason = "OOMKilled";
	pod(&w, "a", 0)->node = "x23456789012345678901234567890123456789012345678901234567890123";
	run_plan(&w);
	expect_message(&w, COND_FAILED, "kubectl logs -n n2345");
	expect_message(&w, COND_FAILED, "0123-a-0");
	plan_fixture_end(&w);
}

static void restart__in_progress__names_the_task_and_the_reason(void **state)
{
	struct plan_fixture w;

	start_running(&w, TWO);
	fail_pod(&w, "worker", 1, 137);
	pod(&w, "worker", 1)->reason = "OOMKilled";
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_RESTARTING);
	expect_message(&w, COND_RESTARTING, "worker/1 ended with exit code 137 (OOMKilled: ");
	expect_message(&w, COND_RESTARTING, " and runs again; 1 failures so far, backoffLimit 20");
	/* `kubectl get` shows this message of the job */
	assert_ptr_equal(job_status_trouble(&w.status), &w.status.conditions[COND_RESTARTING]);
	w.now += 100;
	run_plan(&w);
	run_all(&w);
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_RUNNING);
	assert_null(job_status_trouble(&w.status));
	plan_fixture_end(&w);
}

static void job__without_workers__is_reported(void **state)
{
	struct plan_fixture w;

	plan_fixture_start(&w, HEAD "  tasks: {ps: {}, worker: {replicas: 0}}\n");
	run_plan(&w);
	run_all(&w);
	run_plan(&w);
	assert_string_equal(w.status.conditions[COND_READY].reason, "NoWorkers");
	expect_message(&w, COND_READY, "tasks.worker.replicas is 0, so nothing trains");
	assert_non_null(job_status_trouble(&w.status));
	plan_fixture_edit(&w, HEAD "  tasks: {ps: {}, worker: {replicas: 1}}\n");
	run_plan(&w);
	run_all(&w);
	run_plan(&w);
	assert_null(job_status_trouble(&w.status));
	plan_fixture_end(&w);
}

static void claim__that_is_missing__is_named(void **state)
{
	struct plan_fixture w;

	plan_fixture_start(&w, TWO "  checkpoint: {volumeClaim: ckpt}\n");
	run_plan(&w);
	pod(&w, "ps", 0)->reason = POD_CLAIM_MISSING;
	run_plan(&w);
	expect_message(&w, COND_READY, "ps/0: volume claim ckpt does not exist; create it");
	pod(&w, "ps", 0)->detail = "data"; /* the volume of the pod template */
	run_plan(&w);
	expect_message(&w, COND_READY, "ps/0: volume claim data does not exist; create it");
	plan_fixture_end(&w);
}

static void scheduler__that_does_not_run__is_named(void **state)
{
	static const struct {
		const char *manifest, *text;
	} cases[] = {
	    {TWO "  run: {gang: volcano}\n", "start the scheduler volcano, or use run.gang: none"},
	    {TWO "  run: {gang: scheduler-plugins}\n", "scheduler scheduler-plugins-scheduler, or"},
	    {HEAD "  tasks: {ps: {template: {spec: {schedulerName: mine}}}, worker: {}}\n",
	     "start the scheduler mine"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct plan_fixture w;

		plan_fixture_start(&w, cases[i].manifest);
		run_plan(&w);
		run_plan(&w);
		assert_string_equal(w.status.conditions[COND_READY].reason, "Waiting");
		assert_true(w.requeue_at > w.now && w.requeue_at <= w.now + 30);
		w.now = w.requeue_at;
		run_plan(&w);
		assert_string_equal(w.status.conditions[COND_READY].reason, "SchedulerMissing");
		expect_message(&w, COND_READY,
			       "ps/0: no scheduler has considered its pod for 30 s");
		expect_message(&w, COND_READY, cases[i].text);
		for (unsigned n = 0; n < w.n_pods; n++)
			w.pods[n].node = "n1"; /* the pods are scheduled and pull their image */
		run_plan(&w);
		assert_string_equal(w.status.conditions[COND_READY].reason, "Waiting");
		plan_fixture_end(&w);
	}
}

static void pod__that_does_not_end__is_named(void **state)
{
	struct plan_fixture w;
	struct observed_pod *p;

	start_running(&w, TWO);
	w.node = (struct node_info){.name = "n1", .schedulable = true};
	p = pod(&w, "worker", 1);
	p->deleting = true;
	p->node = "n1";
	p->deletion_due = w.now + 30;
	w.now += 89;
	run_plan(&w);
	assert_string_equal(w.status.conditions[COND_READY].reason, "Waiting");
	assert_true(w.requeue_at <= p->deletion_due + 60);
	w.now = p->deletion_due + 60;
	run_plan(&w);
	assert_string_equal(w.status.conditions[COND_READY].reason, "PodTerminating");
	assert_non_null(strstr(w.status.conditions[COND_READY].message,
			       "worker/1: its pod on node n1 does not end"));
	plan_fixture_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(backoff_limit__that_is_exceeded__names_the_last_failure),
	    cmocka_unit_test(failure_message__with_names_of_maximum_length__is_complete),
	    cmocka_unit_test(restart__in_progress__names_the_task_and_the_reason),
	    cmocka_unit_test(job__without_workers__is_reported),
	    cmocka_unit_test(claim__that_is_missing__is_named),
	    cmocka_unit_test(scheduler__that_does_not_run__is_named),
	    cmocka_unit_test(pod__that_does_not_end__is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
