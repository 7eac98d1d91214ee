/* SPDX-License-Identifier: Apache-2.0 */
/* When a status is written: the rate limit of status.c. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "operator/controller/controller.h"
#include "operator/controller/reconcile.h"

#define STARTED 1700000000.0

enum { WORKERS = 3 };

struct scene {
	struct controller controller;
	cJSON *job;
	int stored, version;
	double requeue_after;
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
	cJSON *body = kube_json(rq->body), *status, *item;
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
static void show(struct scene *s, enum object_kind kind, const cJSON *json)
{
	store_object_seen(&(struct store_watch){&s->controller.store, kind, NULL}, json);
}

static struct scene *scene_of(const char *rest)
{
	static const struct controller_options options = {
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
	controller_init(&s->controller, &options, monotonic);
	s->controller.io =
	    (struct controller_io){.call = on_call, .now = wall, .may_write = always, .user = s};
	show(s, KIND_JOB, s->job);
	return s;
}

static struct scene *scene_new(void)
{
	return scene_of("\"program\":{\"command\":[\"x\"]}");
}

static void scene_free(struct scene *s)
{
	cJSON_Delete(s->job);
	controller_fini(&s->controller);
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
	show(s, KIND_POD, pod);
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

		s->requeue_after = 0;
		assert_int_equal(reconcile(&s->controller, "d/j", &s->requeue_after, &err), 0);
		if (s->requeue_after <= 0 || clock_now + s->requeue_after > until)
			break;
		clock_now += s->requeue_after;
	}
	clock_now = until;
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

static void phase__is_written_at_once(void **state)
{
	struct scene *s = scene_new();

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
static void end__is_written_at_once(void **state)
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
static void sync_worker__that_has_joined__is_written_at_once(void **state)
{
	struct scene *s =
	    scene_of("\"mode\":\"sync\",\"program\":{\"train\":{\"dataset\":{\"path\":\"d\"}}}");
	int before;

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
static void transition__that_many_reconciles_see__has_one_event(void **state)
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

static void counts__are_written_once_in_an_interval(void **state)
{
	struct scene *s = running();

	see_pod(s, "worker", 1, true);
	go_on(s, 0); /* the last write is long ago */
	assert_int_equal(s->stored, 2);
	assert_string_equal(s->ready, "3/4");
	see_pod(s, "worker", 2, true);
	go_on(s, 4.9);
	assert_int_equal(s->stored, 2);
	go_on(s, 0.2);
	assert_int_equal(s->stored, 3);
	assert_string_equal(s->ready, "4/4");
	scene_free(s);
}

static void counts__when_the_clock_was_set_back__are_written(void **state)
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

	assert_true(s->requeue_after > 0 && s->requeue_after <= EXPECTATION_TIMEOUT_S);
	scene_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(phase__is_written_at_once),
	    cmocka_unit_test(end__is_written_at_once),
	    cmocka_unit_test(sync_worker__that_has_joined__is_written_at_once),
	    cmocka_unit_test(transition__that_many_reconciles_see__has_one_event),
	    cmocka_unit_test(counts__are_written_once_in_an_interval),
	    cmocka_unit_test(counts__when_the_clock_was_set_back__are_written),
	    cmocka_unit_test(service__that_no_watch_has_shown__is_looked_after_within_a_minute),
	};

	mu_log_set_level(MU_ERROR + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
