/* SPDX-License-Identifier: Apache-2.0 */
/* When a status is stored while many other jobs are on their way, and while none is. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "operator/control/control.h"
#include "operator/control/reconcile.h"

#define STARTED 1700000000.0

enum { WORKERS = 3, MANY = 40 };

struct scene {
	struct control control;
	cJSON *job;
	int stored, version;
	double wake;
	char phase[32], ready[32]; /* as last stored */
	int events, series;        /* that say that it runs */
	int pods, services;        /* that were made */
};

static double clock_now, set_back; /* set_back: seconds of the wall clock */

static double monotonic(void)
{
	return clock_now;
}

static double wall(void *user)
{
	return STARTED + clock_now - set_back;
}

static bool always(void *user)
{
	return true;
}

/* Keeps what the patch says; everything else is as good as done. */
static int on_call(void *user, const struct kube_request *rq, cJSON **out, struct mu_err *err)
{
	struct scene *s = user;
	cJSON *body = kube_json(rq->body, NULL), *status, *item;
	char version[24];

	if (strcmp(rq->method, "PATCH") == 0 && strstr(rq->path, "/status")) {
		cJSON *to = cJSON_GetObjectItem(s->job, "status");

		status = cJSON_GetObjectItem(body, "status");
		cJSON_ArrayForEach(item, status)
		{
			cJSON_DeleteItemFromObject(to, item->string);
			cJSON_AddItemToObject(to, item->string, cJSON_Duplicate(item, true));
		}
		snprintf(version, sizeof(version), "%d", ++s->version);
		cJSON_SetValuestring(
		    cJSON_GetObjectItem(cJSON_GetObjectItem(s->job, "metadata"), "resourceVersion"),
		    version);
		snprintf(s->phase, sizeof(s->phase), "%s",
			 cJSON_GetStringValue(cJSON_GetObjectItem(to, "phase")));
		snprintf(s->ready, sizeof(s->ready), "%s",
			 cJSON_GetStringValue(
			     cJSON_GetObjectItem(cJSON_GetObjectItem(to, "summary"), "ready")));
		s->stored++;
	}
	if (strcmp(rq->method, "POST") == 0) {
		snprintf(version, sizeof(version), "made-%d", s->pods + s->services);
		cJSON_AddStringToObject(cJSON_GetObjectItem(body, "metadata"), "uid", version);
		s->pods += strstr(rq->path, "/pods") != NULL;
		s->services += strstr(rq->path, "/services") != NULL;
	}
	if (strstr(rq->path, "/events/"))
		s->series++;
	else if (strstr(rq->path, "/events"))
		s->events += strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(body, "reason")),
				    "Running") == 0;
	if (out)
		*out = strstr(rq->path, "/distributedtrainingjobs/") ? cJSON_Duplicate(s->job, true)
								     : cJSON_Duplicate(body, true);
	cJSON_Delete(body);
	return 0;
}

/* rest: of its spec, as JSON. */
static struct scene *scene_of(const char *rest)
{
	static const struct control_options options = {
	    .image = "task:1", .identity = "me", .lease_namespace = "default"};
	struct scene *s = MU_NEW(struct scene);
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"apiVersion\":\"muster.dev/v1\",\"kind\":\"DistributedTrainingJob\",\"metadata\":{"
	    "\"name\":\"j\",\"namespace\":\"d\",\"uid\":\"u1\",\"resourceVersion\":\"100\","
	    "\"generation\":1},\"spec\":{%s,\"tasks\":{\"ps\":{},\"worker\":{\"replicas\":3}},"
	    "\"security\":{\"networkPolicy\":false,\"mtls\":false}},\"status\":{}}",
	    rest);

	s->version = 100;
	s->job = cJSON_Parse(text);
	assert_non_null(s->job);
	control_init(&s->control, &options, monotonic);
	s->control.io =
	    (struct control_io){.call = on_call, .now = wall, .may_write = always, .user = s};
	cache_job_seen(&s->control.cache, s->job);
	return s;
}

static struct scene *scene_new(void)
{
	return scene_of("\"program\":{\"command\":[\"x\"]}");
}

static void scene_free(struct scene *s)
{
	cJSON_Delete(s->job);
	control_fini(&s->control);
	free(s);
}

/* status: of the pod, as JSON. */
static void see_pod_as(struct scene *s, const char *task, int index, const char *status)
{
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"metadata\":{\"name\":\"j-%s-%d\",\"namespace\":\"d\",\"uid\":\"%s%d\",\"labels\":{"
	    "\"muster.dev/job\":\"j\",\"muster.dev/task\":\"%s\",\"muster.dev/index\":\"%d\"},"
	    "\"ownerReferences\":[{\"uid\":\"u1\",\"controller\":true}]},\"status\":%s}",
	    task, index, task, index, task, index, status);
	cJSON *pod = cJSON_Parse(text);

	assert_non_null(pod);
	cache_pod_seen(&s->control.cache, pod);
	cJSON_Delete(pod);
}

static void see_pod(struct scene *s, const char *task, int index, bool ready)
{
	see_pod_as(s, task, index,
		   ready ? "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
			   "\"status\":\"True\"}]}"
			 : "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"Ready\","
			   "\"status\":\"False\"}]}");
}

/* Looks as often as it asks for, until then. */
static void go_on(struct scene *s, double seconds)
{
	double until = clock_now + seconds;

	for (;;) {
		struct mu_err err = {0};

		s->wake = 0;
		assert_int_equal(reconcile(&s->control, "d/j", &s->wake, &err), 0);
		if (s->wake <= 0 || clock_now + s->wake > until)
			break;
		clock_now += s->wake;
	}
	clock_now = until;
}

/* Other jobs enter phases all the time from now on, or do no more. */
static void crowd(struct scene *s, bool is)
{
	atomic_store(&s->control.crowd_us, is ? (long long)1e15 : 0);
}

/* Runs, with the chief and the server alone. */
static struct scene *running(void)
{
	struct scene *s = scene_new();

	see_pod(s, "ps", 0, true);
	for (int i = 0; i < WORKERS; i++)
		see_pod(s, "worker", i, i == 0);
	go_on(s, 10);
	assert_string_equal(s->phase, "Running");
	assert_string_equal(s->ready, "2/4");
	assert_int_equal(s->stored, 1);
	return s;
}

static void running__is_told_at_once_in_a_crowd_too(void **state)
{
	struct scene *s = scene_new();

	crowd(s, true);
	see_pod(s, "ps", 0, true);
	for (int i = 0; i < WORKERS; i++)
		see_pod(s, "worker", i, false);
	go_on(s, 1);
	assert_string_equal(s->phase, "Pending");
	see_pod(s, "worker", 0, true);
	go_on(s, 0);
	assert_string_equal(s->phase, "Running");
	scene_free(s);
}

/* Even if nothing is removed then, and a status was stored just before. */
static void end__is_told_at_once(void **state)
{
	struct scene *s = scene_of("\"program\":{\"command\":[\"x\"]},\"run\":{"
				   "\"cleanPodPolicy\":\"None\"}");
	int before;

	see_pod(s, "ps", 0, true);
	for (int i = 0; i < WORKERS; i++)
		see_pod(s, "worker", i, i < 2);
	go_on(s, 10);
	before = s->stored;
	see_pod(s, "worker", 2, true);
	go_on(s, 2);
	assert_int_equal(s->stored, before + 1);
	see_pod_as(s, "worker", 1,
		   "{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"terminated\":{"
		   "\"exitCode\":3}}}]}");
	go_on(s, 0);
	assert_string_equal(s->phase, "Failed");
	scene_free(s);
}

/* It may be lost any moment, and the next look must know that others wait for it. */
static void worker_in_step__that_has_joined__is_told_at_once(void **state)
{
	struct scene *s =
	    scene_of("\"mode\":\"sync\",\"program\":{\"train\":{\"dataset\":{\"path\":\"d\"}}}");
	int before;

	crowd(s, true);
	see_pod(s, "ps", 0, true);
	for (int i = 0; i < WORKERS; i++)
		see_pod(s, "worker", i, false);
	go_on(s, 20);
	before = s->stored;
	see_pod_as(s, "worker", 1, "{\"phase\":\"Running\"}");
	go_on(s, 0);
	assert_int_equal(s->stored, before + 1);
	scene_free(s);
}

/* Nor does the count of its series say that it was said again. */
static void transition__that_many_looks_see__is_told_by_one_event(void **state)
{
	struct scene *s = running();

	for (int i = 1; i < WORKERS; i++) {
		see_pod(s, "worker", i, true);
		go_on(s, 10);
	}
	assert_string_equal(s->ready, "4/4");
	assert_true(s->stored > 1);
	assert_int_equal(s->events, 1);
	assert_int_equal(s->series, 0);
	scene_free(s);
}

static void counts__of_a_job_on_its_way__wait_for_the_others_in_a_crowd(void **state)
{
	struct scene *s = running();

	crowd(s, true);
	see_pod(s, "worker", 1, true);
	go_on(s, 14);
	assert_int_equal(s->stored, 1);
	see_pod(s, "worker", 2, true); /* it has arrived */
	go_on(s, 2);
	assert_int_equal(s->stored, 2);
	assert_string_equal(s->ready, "4/4");
	scene_free(s);
}

static void counts__in_a_crowd_that_does_not_end__are_told_all_the_same(void **state)
{
	struct scene *s = running();

	crowd(s, true);
	see_pod(s, "worker", 1, true);
	go_on(s, 17.1);
	assert_int_equal(s->stored, 2);
	assert_string_equal(s->ready, "3/4");
	scene_free(s);
}

static void counts__of_a_job_on_its_own__are_told_within_seconds(void **state)
{
	struct scene *s = running();

	see_pod(s, "worker", 1, true);
	go_on(s, 2.1);
	assert_int_equal(s->stored, 2);
	assert_string_equal(s->ready, "3/4");
	scene_free(s);
}

static void counts__that_waited_for_a_crowd__are_told_when_it_is_over(void **state)
{
	struct scene *s = running();

	crowd(s, true);
	see_pod(s, "worker", 1, true);
	go_on(s, 9);
	assert_int_equal(s->stored, 1);
	crowd(s, false);
	go_on(s, 5.1);
	assert_int_equal(s->stored, 2);
	scene_free(s);
}

static void counts__when_the_clock_was_set_back__are_told_all_the_same(void **state)
{
	struct scene *s = running();

	set_back = 1000;
	see_pod(s, "worker", 1, true);
	go_on(s, 10);
	assert_int_equal(s->stored, 2);
	assert_string_equal(s->ready, "3/4");
	set_back = 0;
	scene_free(s);
}

/* It may have been gone again before a watch could show it. */
static void service__that_no_watch_has_shown__is_looked_after_within_a_minute(void **state)
{
	struct scene *s = running();

	assert_true(s->wake > 0 && s->wake <= CACHE_ASSUMED_MAX_S);
	scene_free(s);
}

static void service__of_a_new_job__goes_before_its_pods_or_with_them(void **state)
{
	struct scene *s = scene_new();

	go_on(s, 0);
	assert_int_equal(s->pods, 1); /* the server; workers come when it is ready */
	assert_int_equal(s->services, 1);
	scene_free(s);
}

static void service__of_a_new_job_in_a_crowd__waits_for_the_pods_of_others(void **state)
{
	for (int jobs = 0; jobs < 2; jobs++) { /* others that move, and others that wait */
		struct scene *s = scene_new();

		crowd(s, jobs == 0);
		for (int i = 0; i < MANY && jobs; i++) {
			char key[16];

			snprintf(key, sizeof(key), "d/other%d", i);
			workqueue_add(&s->control.queue, key);
		}
		go_on(s, 1.9);
		assert_int_equal(s->pods, 1); /* the server; workers come when it is ready */
		assert_int_equal(s->services, 0);
		go_on(s, 0.2);
		assert_int_equal(s->pods, 1); /* the server; workers come when it is ready */
		assert_int_equal(s->services, 1);
		scene_free(s);
	}
}

static void service__that_somebody_deletes_in_a_crowd__is_made_at_once(void **state)
{
	struct scene *s = running();

	cJSON *service =
	    cJSON_Parse("{\"metadata\":{\"name\":\"j\",\"namespace\":\"d\",\"uid\":"
			"\"s1\",\"labels\":{\"muster.dev/job\":\"j\"},"
			"\"ownerReferences\":[{\"uid\":\"u1\",\"controller\":true}]}}");

	cache_service_seen(&s->control.cache, service);
	cache_service_gone(&s->control.cache, service);
	cJSON_Delete(service);
	s->services = 0;
	crowd(s, true);
	go_on(s, 0);
	assert_int_equal(s->services, 1);
	scene_free(s);
}

/* Until the next look at a job whose first worker has just become ready. */
static double next_look(bool many)
{
	struct scene *s = scene_new();
	double next;

	crowd(s, many);
	see_pod(s, "ps", 0, true);
	for (int i = 0; i < WORKERS; i++)
		see_pod(s, "worker", i, false);
	free(workqueue_try(&s->control.queue));
	workqueue_done(&s->control.queue, "d/j");
	see_pod(s, "worker", 0, true);
	next = workqueue_next(&s->control.queue) - clock_now;
	scene_free(s);
	return next;
}

static void first_of_many_pods__waits_a_little_longer_for_the_others_in_a_crowd(void **state)
{
	assert_float_equal(next_look(false), 1, 0.001);
	assert_float_equal(next_look(true), 2, 0.001);
}

static void few_phases__are_no_crowd__many_are_for_as_long_as_they_come(void **state)
{
	struct scene *s = scene_new();
	struct control *c = &s->control;

	for (int i = 0; i < 16; i++)
		control_phase_told(c);
	assert_false(control_crowded(c));
	for (int i = 0; i < MANY; i++)
		control_phase_told(c);
	assert_true(control_crowded(c));
	clock_now += 1;
	assert_true(control_crowded(c));
	clock_now += 0.5; /* however many they were */
	assert_false(control_crowded(c));
	clock_now += 10;
	for (int i = 0; i < 15 * 10; i++, clock_now += 1 / 15.0) { /* slowly, for ten seconds */
		control_phase_told(c);
		assert_false(control_crowded(c));
	}
	scene_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(few_phases__are_no_crowd__many_are_for_as_long_as_they_come),
	    cmocka_unit_test(first_of_many_pods__waits_a_little_longer_for_the_others_in_a_crowd),
	    cmocka_unit_test(transition__that_many_looks_see__is_told_by_one_event),
	    cmocka_unit_test(running__is_told_at_once_in_a_crowd_too),
	    cmocka_unit_test(end__is_told_at_once),
	    cmocka_unit_test(service__that_no_watch_has_shown__is_looked_after_within_a_minute),
	    cmocka_unit_test(counts__when_the_clock_was_set_back__are_told_all_the_same),
	    cmocka_unit_test(worker_in_step__that_has_joined__is_told_at_once),
	    cmocka_unit_test(service__of_a_new_job__goes_before_its_pods_or_with_them),
	    cmocka_unit_test(service__of_a_new_job_in_a_crowd__waits_for_the_pods_of_others),
	    cmocka_unit_test(service__that_somebody_deletes_in_a_crowd__is_made_at_once),
	    cmocka_unit_test(counts__of_a_job_on_its_own__are_told_within_seconds),
	    cmocka_unit_test(counts__of_a_job_on_its_way__wait_for_the_others_in_a_crowd),
	    cmocka_unit_test(counts__in_a_crowd_that_does_not_end__are_told_all_the_same),
	    cmocka_unit_test(counts__that_waited_for_a_crowd__are_told_when_it_is_over),
	};

	mu_log_set_level(MU_ERROR + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
