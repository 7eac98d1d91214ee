/* SPDX-License-Identifier: Apache-2.0 */
/* A controller whose io records the calls to the API server, and a store with one job and its
 * pods. */
#ifndef MU_TESTS_OPERATOR_CONTROLLER_FIXTURE_H
#define MU_TESTS_OPERATOR_CONTROLLER_FIXTURE_H

#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "operator/controller/controller.h"
#include "operator/controller/events.h"
#include "operator/controller/manager.h"
#include "operator/controller/reconcile.h"

#define JOB_PATH "/apis/muster.dev/v1/namespaces/d/distributedtrainingjobs/j"
#define STARTED  1700000000.0
#define EVENTS   "/apis/events.k8s.io/v1/namespaces/d/events"

enum { CALLS_MAX = 64 };
struct controller_fixture {
	struct controller controller;
	struct {
		char *method, *path, *body, *type;
	} calls[CALLS_MAX];
	int n;
	double now;
	bool may_write, reachable;
	bool stores_status;       /* the server stores the status patches of the job */
	int finish_requests;      /* number of finish requests to tasks */
	const char *existing_pod; /* each pod name already exists, as this pod */
	const char *rejected;     /* creates whose body contains this text fail */
	enum mu_code reject_code; /* the code of the failure */
	const char
	    *reject_message; /* the server's message; NULL: one that the plan does not recognise */
	double requeue_after;
	cJSON *job;
};

static inline void merge(cJSON *into, const cJSON *patch)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, patch)
	{
		cJSON *old = cJSON_GetObjectItem(into, item->string);

		if (cJSON_IsObject(old) && cJSON_IsObject(item)) {
			merge(old, item);
			continue;
		}
		cJSON_DeleteItemFromObject(into, item->string);
		if (!cJSON_IsNull(item))
			cJSON_AddItemToObject(into, item->string, cJSON_Duplicate(item, true));
	}
}

/* Stores the status of a patch in a new version of the job. */
static inline void store_status(struct controller_fixture *s, struct mu_span body)
{
	cJSON *version =
	    cJSON_GetObjectItem(cJSON_GetObjectItem(s->job, "metadata"), "resourceVersion");
	MU_AUTO_FREE char *next = mu_xasprintf("%d", atoi(version->valuestring) + 1);
	cJSON *patch = kube_json(body);

	merge(cJSON_GetObjectItem(s->job, "status"), cJSON_GetObjectItem(patch, "status"));
	cJSON_Delete(patch);
	cJSON_SetValuestring(version, next);
}

static inline int on_call(void *user, const struct kube_request *rq, cJSON **out,
			  struct mu_err *err)
{
	struct controller_fixture *s = user;
	cJSON *sent = kube_json(rq->body);
	char uid[16];

	assert_true(s->n < CALLS_MAX);
	s->calls[s->n].method = mu_xstrdup(rq->method);
	s->calls[s->n].path = mu_xstrdup(rq->path);
	s->calls[s->n].type = mu_xstrdup(rq->content_type ? rq->content_type : "");
	s->calls[s->n++].body = sent ? cJSON_PrintUnformatted(sent) : mu_xstrdup("");
	cJSON_Delete(sent);
	if (s->rejected && strcmp(rq->method, "POST") == 0 &&
	    strstr(s->calls[s->n - 1].body, s->rejected))
		return s->reject_message ? mu_fail(err, s->reject_code, "%s", s->reject_message)
					 : mu_fail(err, s->reject_code, "%s it is", s->rejected);
	if (s->existing_pod && strcmp(rq->method, "POST") == 0 && strstr(rq->path, "/pods"))
		return mu_fail(err, MU_ALREADY_EXISTS, "pods already exists (409)");
	if (strcmp(rq->method, "GET") == 0 && strstr(rq->path, "/podgroups/"))
		return mu_fail(err, MU_NOT_FOUND, "no such podgroup (404)");
	if (!out)
		return 0;
	if (s->existing_pod && strstr(rq->path, "/pods/")) {
		*out = cJSON_Parse(s->existing_pod);
		return 0;
	}
	if (s->stores_status && strcmp(rq->method, "PATCH") == 0)
		store_status(s, rq->body);
	if (strcmp(rq->method, "POST") != 0) {
		*out = cJSON_Duplicate(s->job, true);
		return 0;
	}
	*out = kube_json(rq->body);
	snprintf(uid, sizeof(uid), "made-%d", s->n);
	cJSON_AddStringToObject(cJSON_GetObjectItem(*out, "metadata"), "uid", uid);
	return 0;
}

static inline int on_post(void *user, const struct pod *task, const char *page, const char *body,
			  struct mu_err *err)
{
	struct controller_fixture *s = user;

	assert_string_equal(page, "finish");
	s->finish_requests++;
	return s->reachable ? 0 : mu_fail(err, MU_UNAVAILABLE, "nobody there");
}

static inline double on_now(void *user)
{
	return ((struct controller_fixture *)user)->now;
}

static inline bool on_may_write(void *user)
{
	return ((struct controller_fixture *)user)->may_write;
}

/* Delivers an object as a watch does. */
static inline void receive_object(struct store *c, enum object_kind kind, const cJSON *json)
{
	store_object_seen(&(struct store_watch){c, kind, NULL}, json);
}

/* A job with one ps, one worker, this status and these pods. */
static inline struct controller_fixture *fixture_new(const char *run, const char *status,
						     const char *const *pods)
{
	static const struct controller_options options = {
	    .image = "task:1", .identity = "me", .lease_namespace = "default"};
	struct controller_fixture *s = MU_NEW(struct controller_fixture);
	struct store *c = &s->controller.store;
	MU_AUTO_FREE char *job = mu_xasprintf(
	    "{\"apiVersion\":\"muster.dev/v1\",\"kind\":\"DistributedTrainingJob\",\"metadata\":{"
	    "\"name\":\"j\",\"namespace\":\"d\",\"uid\":\"u1\",\"resourceVersion\":\"7\","
	    "\"generation\":1},\"spec\":{\"program\":{\"command\":[\"x\"]},\"tasks\":{\"ps\":{},"
	    "\"worker\":{}},\"run\":{%s}},\"status\":%s}",
	    run, status);

	s->now = STARTED;
	s->may_write = s->reachable = true;
	controller_init(&s->controller, &options, mu_clock);
	s->controller.io = (struct controller_io){
	    .call = on_call, .post = on_post, .now = on_now, .may_write = on_may_write, .user = s};
	assert_non_null(s->job = cJSON_Parse(job));
	receive_object(c, KIND_JOB, s->job);
	for (; pods && *pods; pods++) {
		cJSON *pod = cJSON_Parse(*pods);

		assert_non_null(pod);
		receive_object(c, KIND_POD, pod);
		cJSON_Delete(pod);
	}
	return s;
}

static inline void fixture_free(struct controller_fixture *s)
{
	for (int i = 0; i < s->n; i++) {
		free(s->calls[i].method);
		free(s->calls[i].path);
		free(s->calls[i].body);
		free(s->calls[i].type);
	}
	cJSON_Delete(s->job);
	controller_fini(&s->controller);
	free(s);
}

static inline void run_reconcile(struct controller_fixture *s)
{
	for (int i = 0; i < 4; i++) { /* while the job is requeued because of its own writes */
		struct mu_err err = {0};

		int rc = reconcile(&s->controller, "d/j", &s->requeue_after, &err);

		if (rc < 0 || s->requeue_after <= 0 || s->requeue_after > REQUEUE_SOON_S)
			break;
	}
}

/* Index of the first call with this method and path. A path that ends with '/' is a prefix. */
static inline int call_of(const struct controller_fixture *s, const char *method, const char *path)
{
	size_t n = strlen(path);

	for (int i = 0; i < s->n; i++)
		if (strcmp(s->calls[i].method, method) == 0 &&
		    (path[n - 1] == '/' ? strncmp(s->calls[i].path, path, n)
					: strcmp(s->calls[i].path, path)) == 0)
			return i;
	return -1;
}

static inline int count(const struct controller_fixture *s, const char *method)
{
	int n = 0;

	for (int i = 0; i < s->n; i++)
		n += strcmp(s->calls[i].method, method) == 0;
	return n;
}

#define POD(task, uid, status)                                                                     \
	"{\"metadata\":{\"name\":\"j-" task "-0\",\"namespace\":\"d\",\"uid\":\"" uid "\","        \
	"\"resourceVersion\":\"5\",\"labels\":{\"muster.dev/job\":\"j\",\"muster.dev/"             \
	"task\":\"" task "\",\"muster.dev/"                                                        \
	"index\":\"0\"},\"ownerReferences\":[{\"uid\":\"u1\",\"controller\":true}]},"              \
	"\"status\":{" status "}}"
/* Arguments of a %.*s and a %s: the text before the pod's index, and the text after the label's
 * name. */
#define AT_INDEX(pod)                                                                              \
	(int)(strstr(pod, "\"muster.dev/index") - (pod)), pod,                                     \
	    strstr(pod, "\"muster.dev/index") + strlen("\"muster.dev/index\"")
#define RUNS "\"phase\":\"Running\",\"podIP\":\"10.0.0.9\""
#define ENDED                                                                                      \
	"\"phase\":\"Succeeded\",\"containerStatuses\":[{\"state\":{\"terminated\":{\"exitCode\":" \
	"0}}}]"
#define RUNNING                                                                                    \
	"{\"phase\":\"Running\",\"startTime\":\"2023-11-14T22:00:00Z\",\"observedGeneration\":1}"

#endif
