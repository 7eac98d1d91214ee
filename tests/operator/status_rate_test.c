/* SPDX-License-Identifier: Apache-2.0 */
/* The rate limit of status writes in status.c. */
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
	int events, series;        /* of the transition to Running */
	int pods, services;        /* created */
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

/* Stores status patches; all other requests succeed without effect. */
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

static void receive_object(struct scene *s, enum object_kind kind, const cJSON *json)
{
	store_object_seen(&(struct store_watch){&s->controller.store, kind, NULL}, json);
}

/* spec: further members of the job's spec, as JSON. */
static struct scene *scene_of(const char *spec)
{
	static const struct controller_options options = {
	    .image = "task:1", .identity = "me", .lease_namespace = "default"};
	struct scene *s = MU_NEW(struct scene);
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"apiVersion\":\"muster.dev/v1\",\"kind\":\"DistributedTrainingJob\",\"metadata\":{"
	    "\"name\":\"j\",\"namespace\":\"d\",\"uid\":\"u1\",\"resourceVersion\":\"100\","
	    "\"generation\":1},\"spec\":{%s,\"tasks\":{\"ps\":{},\"worker\":{\"replicas\":3}},"
	    "\"security\":{\"networkPolicy\":false,\"mtls\":false}},\"status\":{}}",
	    spec);

	s->version = 100;
	s->job = cJSON_Parse(text);
	assert_non_null(s->job);
	controller_init(&s->controller, &options, monotonic);
	s->controller.io =
	    (struct controller_io){.call = on_call, .now = wall, .may_write = always, .user = s};
	receive_object(s, KIND_JOB, s->job);
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

/* status: the pod's status, as JSON. */
static void receive_pod_with_status(struct scene *s, const char *task, int index,
				    const char *status)
{
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"metadata\":{\"name\":\"j-%s-%d\",\"namespace\":\"d\",\"uid\":\"%s%d\",\"labels\":{"
	    "\"muster.dev/job\":\"j\",\"muster.dev/task\":\"%s\",\"muster.dev/index\":\"%d\"},"
	    "\"ownerReferences\":[{\"uid\":\"u1\",\"controller\":true}]},\"status\":%s}",
	    task, index, task, index, task, index, status);
	cJSON *pod = cJSON_Parse(text);

	assert_non_null(pod);
	receive_object(s, KIND_POD, pod);
	cJSON_Delete(pod);
}

static void receive_pod(struct scene *s, const char *task, int index, bool ready)
{
	receive_pod_with_status(s, task, index,
				ready
				    ? "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
				      "\"status\":\"True\"}]}"
				    : "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"Ready\","
				      "\"status\":\"False\"}]}");
}

/* Reconciles each time that the job is requeued, for this time. */
static void reconcile_for(struct scene *s, double seconds)
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

/* A running_job job in which only the chief and the ps are ready. */
static struct scene *running_job(void)
{
	struct scene *s = scene_new();

	receive_pod(s, "ps", 0, true);
	for (int i = 0; i < WORKERS; i++)
		receive_pod(s, "worker", i, i == 0);
	reconcile_for(s, 10);
	assert_string_equal(s->phase, "Running");
	assert_string_equal(s->ready, "2/4");
	assert_int_equal(s->stored, 1);
	return s;
}

static void phase__is_written_at_once(void **state)
{
	struct scene *s = scene_new();

	receive_pod(s, "ps", 0, true);
	for (int i = 0; i < WORKERS; i++)
		receive_pod(s, "worker", i, false);
	reconcile_for(s, 1);
	assert_string_equal(s->phase, "Pending");
	receive_pod(s, "worker", 0, true);
	reconcile_for(s, 0);
	assert_string_equal(s->phase, "Running");
	scene_free(s);
}

/* The end is written although no pod is deleted and a status was written just before. */
static void end__is_written_at_once(void **state)
{
	struct scene *s = scene_of("\"program\":{\"command\":[\"x\"]},\"run\":{"
				   "\"cleanPodPolicy\":\"None\"}");
	int before;

	receive_pod(s, "ps", 0, true);
	for (int i = 0; i < WORKERS; i++)
		receive_pod(s, "worker", i, i < 2);
	reconcile_for(s, 10);
	before = s->stored;
	receive_pod(s, "worker", 2, true);
	reconcile_for(s, 2);
	assert_int_equal(s->stored, before + 1);
	receive_pod_with_status(
	    s, "worker", 1,
	    "{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"terminated\":{"
	    "\"exitCode\":3}}}]}");
	reconcile_for(s, 0);
	assert_string_equal(s->phase, "Failed");
	scene_free(s);
}

/* The worker may be lost at any moment; the status must record that its peers wait for it. */
static void sync_worker__that_has_joined__is_written_at_once(void **state)
{
	struct scene *s =
	    scene_of("\"mode\":\"sync\",\"program\":{\"train\":{\"dataset\":{\"path\":\"d\"}}}");
	int before;

	receive_pod(s, "ps", 0, true);
	for (int i = 0; i < WORKERS; i++)
		receive_pod(s, "worker", i, false);
	reconcile_for(s, 20);
	before = s->stored;
	receive_pod_with_status(s, "worker", 1, "{\"phase\":\"Running\"}");
	reconcile_for(s, 0);
	assert_int_equal(s->stored, before + 1);
	scene_free(s);
}

/* The series count of the event does not increase either. */
static void transition__that_many_reconciles_see__has_one_event(void **state)
{
	struct scene *s = running_job();

	for (int i = 1; i < WORKERS; i++) {
		receive_pod(s, "worker", i, true);
		reconcile_for(s, 10);
	}
	assert_string_equal(s->ready, "4/4");
	assert_true(s->stored > 1);
	assert_int_equal(s->events, 1);
	assert_int_equal(s->series, 0);
	scene_free(s);
}

static void counts__are_written_once_in_an_interval(void **state)
{
	struct scene *s = running_job();

	receive_pod(s, "worker", 1, true);
	reconcile_for(s, 0); /* the last write is long ago */
	assert_int_equal(s->stored, 2);
	assert_string_equal(s->ready, "3/4");
	receive_pod(s, "worker", 2, true);
	reconcile_for(s, 4.9);
	assert_int_equal(s->stored, 2);
	reconcile_for(s, 0.2);
	assert_int_equal(s->stored, 3);
	assert_string_equal(s->ready, "4/4");
	scene_free(s);
}

static void counts__when_the_clock_was_set_back__are_written(void **state)
{
	struct scene *s = running_job();

	set_back = 1000;
	receive_pod(s, "worker", 1, true);
	reconcile_for(s, 10);
	assert_int_equal(s->stored, 2);
	assert_string_equal(s->ready, "3/4");
	set_back = 0;
	scene_free(s);
}

/* The service may have been deleted before a watch could receive_object it. */
static void service__that_no_watch_has_shown__is_checked_within_a_minute(void **state)
{
	struct scene *s = running_job();

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
	    cmocka_unit_test(service__that_no_watch_has_shown__is_checked_within_a_minute),
	};

	mu_log_set_level(MU_ERROR + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
