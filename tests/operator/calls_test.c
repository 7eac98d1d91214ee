/* SPDX-License-Identifier: Apache-2.0 */
/* The calls to the API server, one by one: a controller whose io records the requests, and a store
 * with given objects. */
#include "tests/operator/controller_fixture.h"

static void status__is_patched_with_the_uid_and_version_that_were_read(void **state)
{
	struct controller_fixture *s = fixture_new("", "{}", NULL);
	int at;

	run_reconcile(s);
	s->now += 3; /* the delay of the first status */
	run_reconcile(s);
	at = call_of(s, "PATCH", JOB_PATH "/status");
	assert_true(at >= 0);
	assert_string_equal(s->calls[at].type, "application/merge-patch+json");
	assert_non_null(
	    strstr(s->calls[at].body, "\"metadata\":{\"uid\":\"u1\",\"resourceVersion\":\"7\"}"));
	assert_non_null(
	    strstr(s->calls[at].body, "\"selector\":\"muster.dev/job=j,muster.dev/task=worker\""));
	assert_non_null(strstr(s->calls[at].body, "\"type\":\"Created\",\"status\":\"True\""));
	assert_non_null(strstr(s->calls[at].body, "\"observedGeneration\":1}"));
	fixture_free(s);
}

static void first_status__has_all_members(void **state)
{
	static const char *const members[] = {"\"restarts\":0", "\"indexStatuses\":[]",
					      "\"ready\":0"};
	struct controller_fixture *s = fixture_new("", "{}", NULL);
	int at;

	run_reconcile(s);
	s->now += 3;
	run_reconcile(s);
	at = call_of(s, "PATCH", JOB_PATH "/status");
	assert_true(at >= 0);
	for (unsigned i = 0; i < MU_COUNT(members); i++)
		if (!strstr(s->calls[at].body, members[i]))
			fail_msg("no %s in %s", members[i], s->calls[at].body);
	fixture_free(s);
}

static void process__that_is_not_the_leader__writes_nothing(void **state)
{
	struct controller_fixture *s = fixture_new("", "{}", NULL);

	s->may_write = false;
	run_reconcile(s);
	assert_int_equal(count(s, "POST") + count(s, "PATCH") + count(s, "DELETE"), 0);
	fixture_free(s);
}

#define PODS_PATH "/api/v1/namespaces/d/pods"

static int count_of(const struct controller_fixture *s, const char *method, const char *path,
		    const char *says)
{
	int n = 0;

	for (int i = 0; i < s->n; i++)
		n += strcmp(s->calls[i].method, method) == 0 &&
		     strncmp(s->calls[i].path, path, strlen(path)) == 0 &&
		     strstr(s->calls[i].body, says) != NULL;
	return n;
}

/* A pod that the job owns is used, and not counted as created.  A pod with another owner stays and
 * causes an event.  The operator waits until a pod that is being deleted has gone. */
static void existing_pod__is_used_only_if_the_job_owns_it(void **state)
{
	static const struct {
		const char *pod;
		bool has_event, rejected;
	} cases[] = {
	    {POD("ps", "u2", RUNS), false, false},
	    /* owned by the job, without its labels */
	    {"{\"metadata\":{\"name\":\"j-ps-0\",\"uid\":\"u2\",\"ownerReferences\":[{\"uid\":"
	     "\"u1\",\"controller\":true}]}}",
	     false, true},
	    {"{\"metadata\":{\"name\":\"j-ps-0\",\"uid\":\"u8\"}}", true, true},
	    {"{\"metadata\":{\"name\":\"j-ps-0\",\"uid\":\"u8\",\"ownerReferences\":[{\"uid\":"
	     "\"other\","
	     "\"controller\":true}]}}",
	     true, true},
	    {"{\"metadata\":{\"name\":\"j-ps-0\",\"uid\":\"u2\",\"deletionTimestamp\":"
	     "\"2023-11-14T22:00:00Z\",\"ownerReferences\":[{\"uid\":\"u1\",\"controller\":true}]}"
	     "}",
	     false, false},
	    /* owned by an earlier job of this name, without and with deletionTimestamp */
	    {"{\"metadata\":{\"name\":\"j-ps-0\",\"uid\":\"u8\",\"ownerReferences\":[{\"kind\":"
	     "\"" JOB_KIND "\",\"name\":\"j\",\"uid\":\"u0\",\"controller\":true}]}}",
	     false, false},
	    {"{\"metadata\":{\"name\":\"j-ps-0\",\"uid\":\"u8\",\"deletionTimestamp\":"
	     "\"2023-11-14T22:00:00Z\",\"ownerReferences\":[{\"uid\":\"other\",\"controller\":"
	     "true}]}}",
	     false, false},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct controller_fixture *s = fixture_new("", "{}", NULL);
		bool has_event = false;

		s->existing_pod = cases[i].pod;
		run_reconcile(s);
		for (int n = 0; n < s->n; n++)
			has_event =
			    has_event || strstr(s->calls[n].body, "\"reason\":\"NameTaken\"");
		assert_int_equal(has_event, cases[i].has_event);
		assert_int_equal(count(s, "DELETE"), 0);
		s->now += 1;
		run_reconcile(s);
		if (cases[i].rejected) /* no watch event shows that the name is free */
			assert_in_range((int)s->requeue_after, 1, 30);
		else if (i > 0) /* no watch event shows that the pod has gone */
			assert_in_range((int)s->requeue_after, 1, 2);
		/* one request if the pod is used, else one in each reconcile */
		assert_int_equal(count_of(s, "POST", PODS_PATH, "\"name\":\"j-ps-0\"") == 1,
				 i == 0);
		assert_int_equal(count_of(s, "POST", EVENTS, "created "), 0);
		fixture_free(s);
	}
}

/* A job that creates all its pods and the service in one reconcile. */
#define GANG "\"gang\":\"kueue\",\"queue\":\"q\""
static void pods__of_one_reconcile__have_one_event(void **state)
{
	struct controller_fixture *s = fixture_new(GANG, "{}", NULL);

	run_reconcile(s);
	assert_int_equal(count_of(s, "POST", PODS_PATH, ""), 2);
	assert_int_equal(count_of(s, "POST", "/api/v1/namespaces/d/services", ""), 1);
	assert_int_equal(count_of(s, "POST", EVENTS, "created 1 ps, 1 worker"), 1);
	fixture_free(s);
}

/* A request that could not be sent is not reported; a rejected one is. */
static void status__of_a_request_that_was_not_sent__is_not_stored(void **state)
{
	static const struct {
		enum mu_code reject_code;
		bool stored;
	} cases[] = {{MU_UNAVAILABLE, false},
		     {MU_DEADLINE_EXCEEDED, false},
		     {MU_CANCELLED, false},
		     {MU_PERMISSION_DENIED, true}};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct controller_fixture *s = fixture_new("", "{}", NULL);

		s->rejected = "\"kind\":\"Pod\"";
		s->reject_code = cases[i].reject_code;
		run_reconcile(s);
		s->now += 1;
		run_reconcile(s);
		assert_int_equal(call_of(s, "PATCH", JOB_PATH "/status") >= 0, cases[i].stored);
		fixture_free(s);
	}
}

/* Pods without their group would wait forever, or join a group of the same name. */
static void gang__whose_pod_group_cannot_be_created__gets_no_pods(void **state)
{
	static const enum mu_code codes[] = {MU_ALREADY_EXISTS, MU_INVALID_ARGUMENT, MU_ABORTED,
					     MU_PERMISSION_DENIED, MU_UNAVAILABLE};

	for (unsigned i = 0; i < MU_COUNT(codes); i++) {
		struct controller_fixture *s = fixture_new("\"gang\":\"volcano\"", "{}", NULL);

		s->rejected = "\"kind\":\"PodGroup\"";
		s->reject_code = codes[i];
		run_reconcile(s);
		assert_int_equal(count_of(s, "POST", "/apis/scheduling", ""), 1);
		assert_int_equal(count_of(s, "POST", PODS_PATH, ""), 0);
		fixture_free(s);
	}
}

/* The scheduler of run.gang is not installed: the API server does not have its PodGroup kind. */
static void gang__whose_scheduler_is_not_installed__is_a_condition(void **state)
{
	struct controller_fixture *s = fixture_new("\"gang\":\"volcano\"", "{}", NULL);

	s->rejected = "\"kind\":\"PodGroup\"";
	s->reject_code = MU_NOT_FOUND;
	run_reconcile(s);
	s->now += 60;
	run_reconcile(s);
	assert_int_equal(count_of(s, "POST", PODS_PATH, ""), 0);
	assert_true(count_of(s, "PATCH", "/apis/muster.dev",
			     "install the gang scheduler, or use run.gang: none in a new job: no "
			     "podgroups of scheduling.volcano.sh") > 0);
	assert_true(count_of(s, "PATCH", "/apis/muster.dev", "GangUnavailable") > 0);
	fixture_free(s);
}

/* If one create of several fails, the created objects are known and are not created again.  A pod
 * that is rejected, as by a quota, and a server that is away end the creates of this reconcile. */
static void create__that_fails_among_others__is_the_only_one_repeated(void **state)
{
	static const struct {
		const char *which;
		enum mu_code reject_code;
		bool has_event; /* an event reports the failure */
	} cases[] = {
	    {"\"name\":\"j-ps-0\"", MU_UNAVAILABLE, false},
	    {"\"name\":\"j-worker-0\"", MU_DEADLINE_EXCEEDED, false},
	    {"\"kind\":\"Service\"", MU_UNAVAILABLE, false},
	    {"\"name\":\"j-ps-0\"", MU_PERMISSION_DENIED, true},
	    {"\"kind\":\"Service\"", MU_INVALID_ARGUMENT, true},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct controller_fixture *s = fixture_new(GANG, "{}", NULL);

		s->stores_status = true;
		s->rejected = cases[i].which;
		s->reject_code = cases[i].reject_code;
		run_reconcile(s);
		s->now += 1;
		run_reconcile(s);
		/* one event for all creates that are rejected for the same reason */
		assert_int_equal(count_of(s, "POST", EVENTS, "\"action\":\"FailedCreate\""),
				 cases[i].has_event);
		s->rejected = NULL;
		s->now += 1;
		run_reconcile(s);
		for (unsigned k = 0; k < MU_COUNT(cases); k++)
			if (strcmp(cases[k].which, cases[i].which) != 0)
				assert_int_equal(count_of(s, "POST", "/api/v1/", cases[k].which),
						 1);
		fixture_free(s);
	}
}

/* As with Job's managedBy: another controller (MultiKueue) writes the pods and the status. */
static void job__that_another_controller_manages__is_left_alone(void **state)
{
	static const struct {
		const char *by;
		bool valid, is_managed;
	} cases[] = {{"kueue.x-k8s.io/multikueue", true, false},
		     {"kueue.x-k8s.io/multikueue", false, false},
		     {"muster.dev/operator", true, true},
		     {"muster.dev/operator", false, true}};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct controller_fixture *s = fixture_new("", "{}", NULL);
		cJSON *spec = cJSON_GetObjectItem(s->job, "spec");

		cJSON_AddStringToObject(spec, "managedBy", cases[i].by);
		if (!cases[i].valid)
			cJSON_AddStringToObject(spec, "tasks", "none");
		cJSON_SetValuestring(
		    cJSON_GetObjectItem(s->job->child->next->next, "resourceVersion"), "9");
		receive_object(&s->controller.store, KIND_JOB, s->job);
		run_reconcile(s);
		assert_int_equal(s->n > 0, cases[i].is_managed);
		fixture_free(s);
	}
}

static void pod__that_is_rejected__is_retried_every_half_minute(void **state)
{
	static const char *const messages[] = {
	    "strict decoding error: unknown field \"spec.x\" (400)",
	    "webhook \"w\" denied the request: x is invalid: y"};

	for (unsigned i = 0; i < MU_COUNT(messages); i++) {
		struct controller_fixture *s = fixture_new(GANG, "{}", NULL);
		const char *worker = s->rejected = "\"name\":\"j-worker-0\"";

		s->stores_status = true;
		s->reject_code = MU_INVALID_ARGUMENT;
		s->reject_message = messages[i];
		for (int n = 0; n < 3; n++, s->now += 30) {
			run_reconcile(s);
			assert_true(s->requeue_after > 0 && s->requeue_after <= 30);
		}
		assert_int_equal(count_of(s, "POST", PODS_PATH "?fieldValidation=Strict", worker),
				 3);
		assert_int_equal(
		    count_of(s, "PATCH", JOB_PATH "/status", "spec.tasks.worker: ") > 0, i == 0);
		s->rejected = NULL;
		run_reconcile(s);
		assert_int_equal(count_of(s, "POST", PODS_PATH, worker), 4);
		fixture_free(s);
	}
}

static void rejections__of_several_creates__name_the_first_and_count_the_others(void **state)
{
	struct controller_fixture *s = fixture_new(GANG, "{}", NULL);

	s->stores_status = true;
	s->rejected = "\"kind\":\"Pod\"";
	s->reject_code = MU_INVALID_ARGUMENT;
	s->reject_message = "strict decoding error: unknown field (400)";
	run_reconcile(s);
	assert_int_equal(count_of(s, "POST", PODS_PATH, ""), 2);
	assert_true(count_of(s, "PATCH", JOB_PATH "/status",
			     "spec.tasks.ps: strict decoding error: unknown field (400) (and 1 "
			     "more)") > 0);
	assert_int_equal(count_of(s, "PATCH", JOB_PATH "/status", "spec.tasks.worker: "), 0);
	fixture_free(s);
}

/* No watch event has shown the pod of epoch 1 before its create fails with ALREADY_EXISTS. The
 * create of the service fails too. */
static void pod__of_an_earlier_epoch_that_already_exists__does_not_count_as_updated(void **state)
{
#define AS_OF(epoch) "\"muster.dev/epoch\":\"" epoch "\",\"muster.dev/index\""
	static const char old_status[] = "{\"phase\":\"Pending\",\"cluster\":{\"epoch\":1,"
					 "\"epochSeen\":1,\"members\":\"others\"}}";
	static const char ps_pod[] = POD("ps", "u2", RUNS),
			  existing_worker[] = POD("worker", "u3", RUNS);
	MU_AUTO_FREE char *new_ps = mu_xasprintf("%.*s" AS_OF("2") "%s", AT_INDEX(ps_pod));
	MU_AUTO_FREE char *old_worker =
	    mu_xasprintf("%.*s" AS_OF("1") "%s", AT_INDEX(existing_worker));
	const char *const pods[] = {new_ps, NULL};
	struct controller_fixture *s = fixture_new(GANG, old_status, pods);

	s->reject_code = MU_INVALID_ARGUMENT;
	s->existing_pod = old_worker;
	s->rejected = "\"kind\":\"Service\"";
	run_reconcile(s);
	s->now += 60;
	run_reconcile(s);
	assert_int_equal(count_of(s, "GET", PODS_PATH "/j-worker-0", ""), 1);
	assert_true(count_of(s, "PATCH", JOB_PATH "/status", "\"epoch\":2") > 0);
	assert_int_equal(count_of(s, "PATCH", JOB_PATH "/status", "\"epochSeen\":2"), 0);
	fixture_free(s);
}

static void pod__is_deleted_by_its_uid_with_its_own_grace_period(void **state)
{
	static const char *const pods[] = {POD("ps", "u2", RUNS), POD("worker", "u3", RUNS), NULL};
	struct controller_fixture *s = fixture_new("\"suspend\":true", RUNNING, pods);
	int at;

	run_reconcile(s);
	at = call_of(s, "DELETE", "/api/v1/namespaces/d/pods/");
	assert_true(at >= 0);
	assert_string_equal(s->calls[at].path, "/api/v1/namespaces/d/pods/j-worker-0");
	assert_string_equal(
	    s->calls[at].body,
	    "{\"preconditions\":{\"uid\":\"u3\"},\"propagationPolicy\":\"Background\"}");
	assert_int_equal(count(s, "DELETE"), 1); /* the ps stays while a worker may save */
	fixture_free(s);
}

static void ps__that_cannot_be_reached_to_finish__is_deleted(void **state)
{
	static const char *const pods[] = {POD("ps", "u2", RUNS), POD("worker", "u3", ENDED), NULL};

	for (int reachable = 0; reachable < 2; reachable++) {
		struct controller_fixture *s = fixture_new("", RUNNING, pods);

		s->reachable = reachable;
		run_reconcile(s);
		assert_int_equal(s->finish_requests, 1);
		assert_int_equal(call_of(s, "DELETE", "/api/v1/namespaces/d/pods/j-ps-0") >= 0,
				 !reachable);
		s->now += 9;
		run_reconcile(s);
		assert_int_equal(count(s, "DELETE"), !reachable);
		s->now += 2; /* the finish request was sent once, and the pod still exists */
		run_reconcile(s);
		assert_int_equal(s->finish_requests, 1);
		assert_int_equal(count(s, "DELETE"), 1);
		fixture_free(s);
	}
}

static void ps__that_was_asked_to_finish__is_not_active_again(void **state)
{
	static const char *const pods[] = {POD("ps", "u2", RUNS), POD("worker", "u3", ENDED), NULL};
	struct controller_fixture *s = fixture_new("", RUNNING, pods);

	s->stores_status = true;
	run_reconcile(s);
	assert_int_equal(s->finish_requests, 1);
	assert_int_equal(count(s, "PATCH"), 1);
	s->now += 9;
	run_reconcile(s);
	assert_int_equal(count(s, "PATCH"), 1);
	fixture_free(s);
}

static void ps__of_a_command__stays_with_the_clean_policy_none(void **state)
{
	static const char *const pods[] = {POD("ps", "u2", RUNS), POD("worker", "u3", ENDED), NULL};
	struct controller_fixture *s = fixture_new("\"cleanPodPolicy\":\"None\"", RUNNING, pods);

	s->reachable = false;
	run_reconcile(s);
	s->now += 60;
	run_reconcile(s);
	assert_true(s->finish_requests > 0);
	assert_int_equal(count(s, "DELETE"), 0);
	fixture_free(s);
}

static void secret__that_is_rejected__is_a_condition(void **state)
{
	struct controller_fixture *s = fixture_new("", "{}", NULL);
	cJSON *security = cJSON_AddObjectToObject(cJSON_GetObjectItem(s->job, "spec"), "security");

	cJSON_AddTrueToObject(security, "mtls");
	cJSON_SetValuestring(cJSON_GetObjectItem(s->job->child->next->next, "resourceVersion"),
			     "9");
	receive_object(&s->controller.store, KIND_JOB, s->job);
	s->stores_status = true;
	s->rejected = "\"kind\":\"Secret\"";
	s->reject_code = MU_PERMISSION_DENIED;
	s->reject_message = "secrets is forbidden: exceeded quota: small (403)";
	for (int n = 0; n < 2; n++, s->now += 30) {
		run_reconcile(s);
		assert_true(s->requeue_after > 0 && s->requeue_after <= 30);
	}
	assert_int_equal(count_of(s, "PATCH", JOB_PATH "/status", "PodsRejected"), 1);
	assert_int_equal(count_of(s, "POST", PODS_PATH, ""), 0);
	assert_int_equal(count_of(s, "POST", "/api/v1/namespaces/d/services", ""), 1);
	fixture_free(s);
}

static void job__whose_time_to_live_is_over__is_deleted_by_uid_and_version(void **state)
{
	struct controller_fixture *s =
	    fixture_new("\"ttlSecondsAfterFinished\":5",
			"{\"phase\":\"Succeeded\",\"completionTime\":\"2023-11-14T22:00:00Z\","
			"\"startTime\":\"2023-11-14T21:00:00Z\"}",
			NULL);
	int at;

	run_reconcile(s);
	at = call_of(s, "DELETE", JOB_PATH);
	assert_true(at >= 0);
	assert_non_null(strstr(s->calls[at].body,
			       "\"preconditions\":{\"uid\":\"u1\",\"resourceVersion\":\"7\"}"));
	fixture_free(s);
}

/* ---- events ---- */

static void record_event(struct controller_fixture *s, const char *note)
{
	struct job job = {.meta = {.namespace = "d", .name = "j", .uid = "u1"},
			  .resource_version = "7"};
	struct snapshot ps_pod = {.key = "d/j", .job = &job};
	struct reconcile r = {.controller = &s->controller, .snapshot = &ps_pod, .now = s->now};

	event_record(&r, true, "Reason", "%s", note);
}

static void event__names_its_object_and_its_reporter(void **state)
{
	static const char *const parts[] = {
	    "\"apiVersion\":\"events.k8s.io/v1\"",
	    "\"eventTime\":\"2023-11-14T22:13:20.250000Z\"",
	    "\"reportingController\":\"muster.dev/operator\"",
	    "\"reportingInstance\":\"me\"",
	    "\"reason\":\"Reason\"",
	    "\"note\":\"once\"",
	    "\"type\":\"Warning\"",
	    "\"kind\":\"DistributedTrainingJob\",\"namespace\":\"d\",\"name\":\"j\",\"uid\":\"u1\"",
	};
	struct controller_fixture *s = fixture_new("", "{}", NULL);

	s->now = STARTED + 0.25;
	record_event(s, "once");
	assert_int_equal(s->n, 1);
	assert_string_equal(s->calls[0].method, "POST");
	assert_string_equal(s->calls[0].path, EVENTS);
	for (unsigned i = 0; i < MU_COUNT(parts); i++)
		if (!strstr(s->calls[0].body, parts[i]))
			fail_msg("no %s in %s", parts[i], s->calls[0].body);
	fixture_free(s);
}

static void event__repeated__is_posted_every_five_minutes(void **state)
{
	struct controller_fixture *s = fixture_new("", "{}", NULL);

	for (int i = 0; i < 100; i++, s->now += 10)
		record_event(s, "again");
	assert_int_equal(count(s, "POST"), 4); /* after 0, 300, 600 and 900 seconds */
	record_event(s, "something else");
	assert_int_equal(count(s, "POST"), 5);
	fixture_free(s);
}

static void event__that_was_not_posted__is_posted_again(void **state)
{
	struct controller_fixture *s = fixture_new("", "{}", NULL);

	s->rejected = "again";
	s->reject_code = MU_UNAVAILABLE;
	record_event(s, "again");
	s->rejected = NULL;
	record_event(s, "again");
	record_event(s, "again");
	assert_int_equal(count(s, "POST"), 2);
	fixture_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(status__is_patched_with_the_uid_and_version_that_were_read),
	    cmocka_unit_test(first_status__has_all_members),
	    cmocka_unit_test(process__that_is_not_the_leader__writes_nothing),
	    cmocka_unit_test(existing_pod__is_used_only_if_the_job_owns_it),
	    cmocka_unit_test(pods__of_one_reconcile__have_one_event),
	    cmocka_unit_test(status__of_a_request_that_was_not_sent__is_not_stored),
	    cmocka_unit_test(gang__whose_pod_group_cannot_be_created__gets_no_pods),
	    cmocka_unit_test(gang__whose_scheduler_is_not_installed__is_a_condition),
	    cmocka_unit_test(create__that_fails_among_others__is_the_only_one_repeated),
	    cmocka_unit_test(job__that_another_controller_manages__is_left_alone),
	    cmocka_unit_test(pod__that_is_rejected__is_retried_every_half_minute),
	    cmocka_unit_test(rejections__of_several_creates__name_the_first_and_count_the_others),
	    cmocka_unit_test(
		pod__of_an_earlier_epoch_that_already_exists__does_not_count_as_updated),
	    cmocka_unit_test(pod__is_deleted_by_its_uid_with_its_own_grace_period),
	    cmocka_unit_test(ps__that_cannot_be_reached_to_finish__is_deleted),
	    cmocka_unit_test(ps__that_was_asked_to_finish__is_not_active_again),
	    cmocka_unit_test(ps__of_a_command__stays_with_the_clean_policy_none),
	    cmocka_unit_test(secret__that_is_rejected__is_a_condition),
	    cmocka_unit_test(job__whose_time_to_live_is_over__is_deleted_by_uid_and_version),
	    cmocka_unit_test(event__names_its_object_and_its_reporter),
	    cmocka_unit_test(event__repeated__is_posted_every_five_minutes),
	    cmocka_unit_test(event__that_was_not_posted__is_posted_again),
	};

	mu_log_set_level(MU_ERROR + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
