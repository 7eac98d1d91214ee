/* SPDX-License-Identifier: Apache-2.0 */
/* When a plan has certificates made, and when it has them replaced. */
#include "tests/operator/plan_fixture.h"

/* True if a reconcile at that time, with a list without a pod, has an action of this kind. */
static bool asks_for(struct plan_fixture *w, enum action_kind kind, double at)
{
	static const struct plan_options options = {.image = "task:1"};
	struct observed_job seen = {.service = true, .status = w->status};
	struct job_plan *plan = job_plan_new(w->spec, &options, &seen, at);
	bool found = false;

	for (unsigned i = 0; i < plan->n_actions; i++)
		found = found || plan->actions[i].kind == kind;
	job_plan_free(plan);
	return found;
}

static void start_secured(struct plan_fixture *w)
{
	plan_fixture_start(w, TWO "  security: {mtls: true}\n");
	assert_string_equal(run_plan(w), ""); /* no pod before the status has its Secret's name */
	assert_string_equal(w->status.security.secret, "j-tls");
	assert_string_equal(run_plan(w), "+ps/0 ");
}

/* The list may lag, and the pods mount the Secret that there is: a new CA goes ahead. */
static void certificates__that_are_due__stay_trusted_though_no_pod_is_seen(void **state)
{
	struct plan_fixture w;
	double due;

	start_secured(&w);
	due = w.status.security.issued_at + PLAN_CERT_LIFE * 2 / 3;
	assert_false(asks_for(&w, ACTION_ADD_CA, due - 1));
	assert_true(asks_for(&w, ACTION_ADD_CA, due));
	assert_false(asks_for(&w, ACTION_MAKE_SECRET, due));
	assert_true(asks_for(&w, ACTION_CREATE_POD, due)); /* with what is good for a while yet */
	plan_fixture_end(&w);
}

static void certificates__that_are_over__are_made_anew_for_a_job_without_pods(void **state)
{
	struct plan_fixture w;
	double issued_at;

	start_secured(&w);
	issued_at = w.status.security.issued_at;
	assert_false(asks_for(&w, ACTION_MAKE_SECRET, issued_at + PLAN_CERT_LIFE - 1));
	assert_true(asks_for(&w, ACTION_MAKE_SECRET, issued_at + PLAN_CERT_LIFE));
	assert_false(asks_for(&w, ACTION_CREATE_POD, issued_at + PLAN_CERT_LIFE));
	assert_true(asks_for(&w, ACTION_MAKE_SECRET, issued_at - PLAN_CERT_LIFE));
	plan_fixture_end(&w);
}

/* The pods of a suspended job that had ended are kept. */
static void certificates__that_are_over__are_made_anew_though_ended_pods_are_kept(void **state)
{
	static const struct plan_options options = {.image = "task:1"};
	struct observed_pod ended = {
	    .task = "worker", .index = 1, .uid = "u", .phase = POD_SUCCEEDED};
	struct plan_fixture w;
	struct observed_job seen;
	struct job_plan *plan;

	start_secured(&w);
	seen =
	    (struct observed_job){.service = true, .status = w.status, .pods = &ended, .n_pods = 1};
	plan = job_plan_new(w.spec, &options, &seen, w.status.security.issued_at + PLAN_CERT_LIFE);
	assert_int_equal(plan->n_actions, 1);
	assert_int_equal(plan->actions[0].kind, ACTION_MAKE_SECRET);
	job_plan_free(plan);
	plan_fixture_end(&w);
}

/* The certificate follows its CA after five minutes, whoever leads by then. */
static void certificate__follows_its_ca(void **state)
{
	struct plan_fixture w;
	double ca_added_at;

	start_secured(&w);
	ca_added_at = w.status.security.ca_added_at =
	    w.status.security.issued_at + PLAN_CERT_LIFE * 2 / 3 + 60;
	assert_false(asks_for(&w, ACTION_ADD_CA, ca_added_at));
	assert_false(asks_for(&w, ACTION_ROTATE_CERTIFICATE, ca_added_at + 299));
	assert_true(asks_for(&w, ACTION_ROTATE_CERTIFICATE, ca_added_at + 300));
	assert_true(asks_for(&w, ACTION_ADD_CA, ca_added_at - 1)); /* the clock was set back */
	plan_fixture_end(&w);
}

/* True if a reconcile looks for the Secret, by how long a pod has waited for its volume and how
 * long ago the operator started. */
static void secret__that_a_pod_may_miss__is_checked_every_ten_minutes(void **state)
{
	static const struct {
		double waits, watched;
		bool looks;
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
					       .created = w.now - cases[i].waits};
		struct observed_job seen = {.service = true,
					    .status = w.status,
					    .pods = &waiting,
					    .n_pods = 1,
					    .first_observed_at = w.now - cases[i].watched};
		struct job_plan *plan;
		bool looks = false;

		w.status.security.issued_at = w.now;
		seen.status.security.issued_at = w.now;
		plan = job_plan_new(w.spec, &options, &seen, w.now);
		for (unsigned n = 0; n < plan->n_actions; n++)
			looks = looks || plan->actions[n].kind == ACTION_CHECK_SECRET;
		assert_int_equal(looks, cases[i].looks);
		assert_true(plan->requeue_at > w.now); /* and again */
		assert_true(plan->requeue_at <= w.now + 600);
		job_plan_free(plan);
	}
	plan_fixture_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(certificates__that_are_due__stay_trusted_though_no_pod_is_seen),
	    cmocka_unit_test(certificates__that_are_over__are_made_anew_for_a_job_without_pods),
	    cmocka_unit_test(certificates__that_are_over__are_made_anew_though_ended_pods_are_kept),
	    cmocka_unit_test(certificate__follows_its_ca),
	    cmocka_unit_test(secret__that_a_pod_may_miss__is_checked_every_ten_minutes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
