/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of a plan that create and replace certificates. */
#include "tests/operator/plan_fixture.h"

/* True if a reconcile at this time, with no pods in the list, has an action of this kind. */
static bool has_action(struct plan_fixture *w, enum action_kind kind, double at)
{
	static const struct plan_options options = {.image = "task:1"};
	struct observed_job observed = {.service = true, .status = w->status};
	struct job_plan *plan = job_plan_new(w->spec, &options, &observed, at);
	bool found = false;

	for (unsigned i = 0; i < plan->n_actions; i++)
		found = found || plan->actions[i].kind == kind;
	job_plan_free(plan);
	return found;
}

static void start_secured(struct plan_fixture *w)
{
	plan_fixture_start(w, TWO "  security: {mtls: true}\n");
	assert_string_equal(run_plan(w), ""); /* no pod before the status names the Secret */
	assert_string_equal(w->status.security.secret, "j-tls");
	assert_string_equal(run_plan(w), "+ps/0 ");
}

/* The list may be stale, and pods may mount the old Secret: the new CA must be trusted first. */
static void certificates__due_while_no_pod_is_listed__are_rotated(void **state)
{
	struct plan_fixture w;
	double due;

	start_secured(&w);
	due = w.status.security.issued_at + PLAN_CERT_LIFE * 2 / 3;
	assert_false(has_action(&w, ACTION_ADD_CA, due - 1));
	assert_true(has_action(&w, ACTION_ADD_CA, due));
	assert_false(has_action(&w, ACTION_MAKE_SECRET, due));
	assert_true(has_action(&w, ACTION_CREATE_POD,
			       due)); /* the old certificates are still valid for a while */
	plan_fixture_end(&w);
}

static void certificates__expired_for_a_job_without_pods__are_replaced(void **state)
{
	struct plan_fixture w;
	double issued_at;

	start_secured(&w);
	issued_at = w.status.security.issued_at;
	assert_false(has_action(&w, ACTION_MAKE_SECRET, issued_at + PLAN_CERT_LIFE - 1));
	assert_true(has_action(&w, ACTION_MAKE_SECRET, issued_at + PLAN_CERT_LIFE));
	assert_false(has_action(&w, ACTION_CREATE_POD, issued_at + PLAN_CERT_LIFE));
	assert_true(has_action(&w, ACTION_MAKE_SECRET, issued_at - PLAN_CERT_LIFE));
	plan_fixture_end(&w);
}

/* Pods that ended before a suspension are kept. */
static void certificates__expired_while_ended_pods_are_kept__are_replaced(void **state)
{
	static const struct plan_options options = {.image = "task:1"};
	struct observed_pod ended = {
	    .task = "worker", .index = 1, .uid = "u", .phase = POD_SUCCEEDED};
	struct plan_fixture w;
	struct observed_job observed;
	struct job_plan *plan;

	start_secured(&w);
	observed =
	    (struct observed_job){.service = true, .status = w.status, .pods = &ended, .n_pods = 1};
	plan =
	    job_plan_new(w.spec, &options, &observed, w.status.security.issued_at + PLAN_CERT_LIFE);
	assert_int_equal(plan->n_actions, 1);
	assert_int_equal(plan->actions[0].kind, ACTION_MAKE_SECRET);
	job_plan_free(plan);
	plan_fixture_end(&w);
}

/* The certificate is replaced five minutes after its CA, by any leader. */
static void certificate__five_minutes_after_its_ca__is_replaced(void **state)
{
	struct plan_fixture w;
	double ca_added_at;

	start_secured(&w);
	ca_added_at = w.status.security.ca_added_at =
	    w.status.security.issued_at + PLAN_CERT_LIFE * 2 / 3 + 60;
	assert_false(has_action(&w, ACTION_ADD_CA, ca_added_at));
	assert_false(has_action(&w, ACTION_ROTATE_CERTIFICATE, ca_added_at + 299));
	assert_true(has_action(&w, ACTION_ROTATE_CERTIFICATE, ca_added_at + 300));
	assert_true(has_action(&w, ACTION_ADD_CA, ca_added_at - 1)); /* the clock was set back */
	plan_fixture_end(&w);
}

/* A reconcile checks the Secret depending on the age of the waiting pod and the time since the
 * operator started. */
static void secret__that_may_be_missing__is_checked_every_ten_minutes(void **state)
{
	static const struct {
		double pod_waits_s, observed_s;
		bool is_checked;
	} cases[] = {
	    {29, 1e6, false},  {30, 1e6, true},    {39, 1e6, true},  {41, 1e6, false},
	    {629, 1e6, false}, {630, 1e6, true},   {639, 1e6, true}, {641, 1e6, false},
	    {6030, 1e6, true}, {6041, 1e6, false}, {1e5, 30, true},  {1e5, 5, false},
	};
	struct plan_fixture w;

	start_secured(&w);
	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		static const struct plan_options options = {.image = "task:1"};
		struct observed_pod waiting = {.task = "ps",
					       .uid = "u",
					       .node = "n",
					       .exit_code = -1,
					       .created = w.now - cases[i].pod_waits_s};
		struct observed_job observed = {.service = true,
						.status = w.status,
						.pods = &waiting,
						.n_pods = 1,
						.first_observed_at = w.now - cases[i].observed_s};
		struct job_plan *plan;
		bool is_checked = false;

		w.status.security.issued_at = w.now;
		observed.status.security.issued_at = w.now;
		plan = job_plan_new(w.spec, &options, &observed, w.now);
		for (unsigned n = 0; n < plan->n_actions; n++)
			is_checked = is_checked || plan->actions[n].kind == ACTION_CHECK_SECRET;
		assert_int_equal(is_checked, cases[i].is_checked);
		assert_true(plan->requeue_at > w.now); /* the check repeats */
		assert_true(plan->requeue_at <= w.now + 600);
		job_plan_free(plan);
	}
	plan_fixture_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(certificates__due_while_no_pod_is_listed__are_rotated),
	    cmocka_unit_test(certificates__expired_for_a_job_without_pods__are_replaced),
	    cmocka_unit_test(certificates__expired_while_ended_pods_are_kept__are_replaced),
	    cmocka_unit_test(certificate__five_minutes_after_its_ca__is_replaced),
	    cmocka_unit_test(secret__that_may_be_missing__is_checked_every_ten_minutes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
