/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that the API server or a scheduler rejects: the condition names the next step, and the
 * deadlines apply. */
#include "tests/operator/plan_fixture.h"

static const char quota[] = "pods \"j-ps-0\" is forbidden: exceeded quota: small, used: pods=3";

static void quota__that_is_exceeded__is_reported_and_ends_the_job_at_its_deadline(void **state)
{
	struct plan_fixture w;

	plan_fixture_start(&w, TWO "  run: {schedulingDeadlineSeconds: 100}\n");
	run_plan(&w);
	w.n_pods = 0; /* no pod was created */
	w.rejected = quota;
	run_plan(&w);
	w.n_pods = 0;
	assert_true(w.status.conditions[COND_REJECTED].status);
	assert_string_equal(w.status.conditions[COND_REJECTED].reason, "QuotaExceeded");
	assert_non_null(strstr(w.status.conditions[COND_READY].message, quota));
	assert_non_null(strstr(w.status.conditions[COND_READY].message, "raise the quota"));
	w.now += 99;
	run_plan(&w);
	w.n_pods = 0;
	assert_int_equal(w.status.phase, JOB_PENDING);
	assert_true(w.requeue_at > w.now && w.requeue_at <= w.now + 1);
	w.now += 1;
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_FAILED);
	assert_string_equal(w.status.conditions[COND_FAILED].reason, "SchedulingDeadlineExceeded");
	assert_non_null(strstr(w.status.conditions[COND_FAILED].message, "exceeded quota"));
	assert_false(w.status.conditions[COND_REJECTED].set);
	plan_fixture_end(&w);
}

static void rejection__of_any_kind__names_the_next_step(void **state)
{
	static const struct {
		const char *why, *reason, *advice;
	} cases[] = {
	    {"exceeded quota: small", "QuotaExceeded", "raise the quota"},
	    {"admission webhook \"x\" denied the request", "FailedCreate", "change the manifest"},
	    {"Internal error occurred: failed calling webhook \"x\": connection refused (500)",
	     "WebhookUnavailable", "repair or remove it"},
	    {"Internal error occurred: add operation does not apply: doc is missing path (500)",
	     "AdmissionFailed", "see its log"},
	    {"etcdserver: request is too large (500)", "ObjectTooLarge", "template"},
	    {"rpc error: trying to send message larger than max (9 vs. 8) (500)", "ObjectTooLarge",
	     "fewer replicas"},
	    {"Request entity too large: limit is 3145728 (413)", "ObjectTooLarge", "smaller"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		const struct condition *c;
		struct plan_fixture w;

		plan_fixture_start(&w, TWO);
		w.rejected = cases[i].why;
		run_plan(&w);
		c = &w.status.conditions[COND_REJECTED];
		assert_true(c->status);
		assert_string_equal(c->reason, cases[i].reason);
		assert_non_null(strstr(c->message, cases[i].advice));
		assert_non_null(strstr(c->message, cases[i].why));
		plan_fixture_end(&w);
	}
}

/* A job with a scheduling deadline of 100 s; the API server rejects its pods. */
static void start_rejected(struct plan_fixture *w)
{
	plan_fixture_start(w, TWO "  run: {schedulingDeadlineSeconds: 100}\n");
	w->rejected = quota;
	run_plan(w);
	w->n_pods = 0;
}

static void quota__that_is_raised_before_the_deadline__clears_the_condition(void **state)
{
	struct plan_fixture w;

	start_rejected(&w);
	w.now += 50;
	w.rejected = NULL;
	run_plan(&w); /* creates the pods */
	run_plan(&w);
	assert_false(w.status.conditions[COND_REJECTED].set);
	run_all(&w);
	run_plan(&w);
	run_all(&w);
	w.now += 60;
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_RUNNING);
	plan_fixture_end(&w);
}

/* The operator restarts, or the API server is unreachable for a while. */
static void quota__rejecting_again_after_a_restart__keeps_the_first_deadline(void **state)
{
	struct plan_fixture w;

	start_rejected(&w);
	w.now += 60;
	w.rejected = NULL;
	run_plan(&w);
	w.n_pods = 0; /* rejected again */
	w.now += 40;
	w.rejected = quota;
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_FAILED);
	plan_fixture_end(&w);
}

/* The time of a suspension does not count towards the deadline of a rejection. */
static void quota__of_a_job_that_is_suspended__clears_the_condition(void **state)
{
	struct plan_fixture w;

	start_rejected(&w);
	w.rejected = NULL;
	plan_fixture_edit(&w, TWO "  run: {schedulingDeadlineSeconds: 100, suspend: true}\n");
	run_plan(&w);
	assert_false(w.status.conditions[COND_REJECTED].set);
	w.now += 1000;
	plan_fixture_edit(&w, TWO "  run: {schedulingDeadlineSeconds: 100}\n");
	run_plan(&w);
	assert_int_equal(w.status.phase, JOB_PENDING);
	plan_fixture_end(&w);
}

static void tensorboard__that_is_rejected__does_not_fail_the_job(void **state)
{
	struct plan_fixture w;

	plan_fixture_start(&w, TWO "  run: {schedulingDeadlineSeconds: 100}\n"
				   "  checkpoint: {volumeClaim: c}\n"
				   "  tensorboard: {enabled: true}\n");
	run_plan(&w);
	run_all(&w);
	run_plan(&w);
	run_all(&w);
	remove_uid(&w, pod(&w, JOB_TENSORBOARD, 0)->uid);
	w.rejected = quota;
	w.creates_fail = true;
	for (int n = 0; n < 3; n++, w.now += 100) {
		run_plan(&w);
		assert_string_equal(w.status.conditions[COND_REJECTED].reason,
				    "TensorBoardRejected");
		assert_int_equal(w.status.phase, JOB_RUNNING);
		assert_true(w.status.conditions[COND_READY].status);
	}
	plan_fixture_end(&w);
}

static void gang__that_waits__has_the_message_of_its_scheduler(void **state)
{
	static const struct {
		const char *phase, *group_message, *reason, *message;
	} cases[] = {
	    {"Inqueue", "3/3 tasks in gang unschedulable", "GangWaiting",
	     "is Inqueue: 3/3 tasks in gang unschedulable"},
	    {"Pending", NULL, "GangWaiting", "not all of them have a place yet"},
	    {"Running", NULL, "Unschedulable", "no node has room"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct plan_fixture w;

		plan_fixture_start(&w, TWO "  run: {gang: volcano}\n");
		run_plan(&w);
		for (unsigned n = 0; n < w.n_pods; n++)
			w.pods[n].reason = "Unschedulable";
		w.group_phase = cases[i].phase;
		w.group_message = cases[i].group_message;
		run_plan(&w);
		assert_string_equal(w.status.conditions[COND_READY].reason, cases[i].reason);
		if (!strstr(w.status.conditions[COND_READY].message, cases[i].message))
			fail_msg("'%s' does not say '%s'", w.status.conditions[COND_READY].message,
				 cases[i].message);
		plan_fixture_end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(quota__that_is_exceeded__is_reported_and_ends_the_job_at_its_deadline),
	    cmocka_unit_test(rejection__of_any_kind__names_the_next_step),
	    cmocka_unit_test(quota__that_is_raised_before_the_deadline__clears_the_condition),
	    cmocka_unit_test(quota__rejecting_again_after_a_restart__keeps_the_first_deadline),
	    cmocka_unit_test(quota__of_a_job_that_is_suspended__clears_the_condition),
	    cmocka_unit_test(tensorboard__that_is_rejected__does_not_fail_the_job),
	    cmocka_unit_test(gang__that_waits__has_the_message_of_its_scheduler),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
