/* SPDX-License-Identifier: Apache-2.0 */
/* What goes out to the API server, call by call: a controller whose io writes down what it is asked
 * for, and a cache that is told what there is. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "operator/control/control.h"
#include "operator/control/controller.h"
#include "operator/control/events.h"
#include "operator/control/leader.h"
#include "operator/control/reconcile.h"

#define JOB_PATH "/apis/muster.dev/v1/namespaces/d/distributedtrainingjobs/j"
#define STARTED  1700000000.0
#define EVENTS   "/apis/events.k8s.io/v1/namespaces/d/events"

enum { CALLS_MAX = 64 };
struct scene {
	struct control control;
	struct {
		char *method, *path, *body, *type;
	} calls[CALLS_MAX];
	int n;
	double now;
	bool may_write, reachable;
	int finished;        /* times that a task was asked to end */
	const char *taken;   /* there is a pod of every name already: this one */
	const char *refused; /* a create whose body has that fails in this way */
	enum mu_code how;
	unsigned together; /* the most calls that were made at once */
	double wake;
	cJSON *job;
};

static int on_call(void *user, const struct kube_request *rq, cJSON **out, struct mu_err *err)
{
	struct scene *s = user;
	cJSON *sent = kube_json(rq->body, NULL);
	char uid[16];

	assert_true(s->n < CALLS_MAX);
	s->calls[s->n].method = mu_xstrdup(rq->method);
	s->calls[s->n].path = mu_xstrdup(rq->path);
	s->calls[s->n].type = mu_xstrdup(rq->content_type ? rq->content_type : "");
	s->calls[s->n++].body = sent ? cJSON_PrintUnformatted(sent) : mu_xstrdup("");
	cJSON_Delete(sent);
	if (s->refused && strcmp(rq->method, "POST") == 0 &&
	    strstr(s->calls[s->n - 1].body, s->refused))
		return mu_fail(err, s->how, "%s it is", s->refused);
	if (s->taken && strcmp(rq->method, "POST") == 0 && strstr(rq->path, "/pods"))
		return mu_fail(err, MU_ALREADY_EXISTS, "pods already exists (409)");
	if (!out)
		return 0;
	if (s->taken && strstr(rq->path, "/pods/")) {
		*out = cJSON_Parse(s->taken);
		return 0;
	}
	if (strcmp(rq->method, "POST") != 0) {
		*out = cJSON_Duplicate(s->job, true);
		return 0;
	}
	*out = kube_json(rq->body, NULL);
	snprintf(uid, sizeof(uid), "made-%d", s->n);
	cJSON_AddStringToObject(cJSON_GetObjectItem(*out, "metadata"), "uid", uid);
	return 0;
}

static bool on_may_write(void *user);

static unsigned on_call_many(void *user, const struct kube_request *rqs, unsigned n,
			     struct kube_reply *out)
{
	struct scene *s = user;

	s->together = n > s->together ? n : s->together;
	for (unsigned i = n; i-- > 0;) { /* in any order, say this */
		out[i] = (struct kube_reply){0};
		out[i].rc = on_may_write(user) ? on_call(user, &rqs[i], &out[i].out, &out[i].err)
					       : mu_fail(&out[i].err, MU_CANCELLED, "not now");
	}
	return n;
}

static int on_finish(void *user, const char *ip, int port, struct mu_err *err)
{
	struct scene *s = user;

	s->finished++;
	return s->reachable ? 0 : mu_fail(err, MU_UNAVAILABLE, "nobody there");
}

static double on_now(void *user)
{
	return ((struct scene *)user)->now;
}

static bool on_may_write(void *user)
{
	return ((struct scene *)user)->may_write;
}

/* A job of one ps and one worker, whose status says `status` and which has these pods. */
static struct scene *scene_new(const char *run, const char *status, const char *const *pods)
{
	static const struct control_options options = {.image = "task:1", .identity = "me"};
	struct scene *s = MU_NEW(struct scene);
	struct cache *c = &s->control.cache;
	MU_AUTO_FREE char *job = mu_xasprintf(
	    "{\"apiVersion\":\"muster.dev/v1\",\"kind\":\"DistributedTrainingJob\",\"metadata\":{"
	    "\"name\":\"j\",\"namespace\":\"d\",\"uid\":\"u1\",\"resourceVersion\":\"7\","
	    "\"generation\":1},\"spec\":{\"program\":{\"command\":[\"x\"]},\"tasks\":{\"ps\":{},"
	    "\"worker\":{}},\"run\":{%s}},\"status\":%s}",
	    run, status);

	s->now = STARTED;
	s->may_write = s->reachable = true;
	control_init(&s->control, &options, mu_clock);
	s->control.io =
	    (struct control_io){on_call, on_finish, on_now, on_may_write, s, NULL, on_call_many};
	assert_non_null(s->job = cJSON_Parse(job));
	cache_jobs_begin(c, NULL);
	cache_job_seen(c, s->job);
	cache_jobs_end(c, NULL);
	cache_pods_begin(c, NULL);
	for (; pods && *pods; pods++) {
		cJSON *pod = cJSON_Parse(*pods);

		assert_non_null(pod);
		cache_pod_seen(c, pod);
		cJSON_Delete(pod);
	}
	cache_pods_end(c, NULL);
	return s;
}

static void scene_free(struct scene *s)
{
	for (int i = 0; i < s->n; i++) {
		free(s->calls[i].method);
		free(s->calls[i].path);
		free(s->calls[i].body);
		free(s->calls[i].type);
	}
	cJSON_Delete(s->job);
	control_fini(&s->control);
	free(s);
}

static void look(struct scene *s)
{
	struct mu_err err = {0};

	reconcile(&s->control, "d/j", &s->wake, &err);
}

/* The first call of that method to that path (or to one below it, with a '/' at its end). */
static int call_of(const struct scene *s, const char *method, const char *path)
{
	size_t n = strlen(path);

	for (int i = 0; i < s->n; i++)
		if (strcmp(s->calls[i].method, method) == 0 &&
		    (path[n - 1] == '/' ? strncmp(s->calls[i].path, path, n)
					: strcmp(s->calls[i].path, path)) == 0)
			return i;
	return -1;
}

static int count(const struct scene *s, const char *method)
{
	int n = 0;

	for (int i = 0; i < s->n; i++)
		n += strcmp(s->calls[i].method, method) == 0;
	return n;
}

#define POD(task, uid, more)                                                                       \
	"{\"metadata\":{\"name\":\"j-" task "-0\",\"namespace\":\"d\",\"uid\":\"" uid "\","        \
	"\"resourceVersion\":\"5\",\"labels\":{\"muster.dev/job\":\"j\",\"muster.dev/"             \
	"task\":\"" task "\",\"muster.dev/"                                                        \
	"index\":\"0\"},\"ownerReferences\":[{\"uid\":\"u1\",\"controller\":true}]},"              \
	"\"status\":{" more "}}"
/* What of such a text is before its index, and what comes after the name of that. */
#define AT_INDEX(pod)                                                                              \
	(int)(strstr(pod, "\"muster.dev/index") - (pod)), pod,                                     \
	    strstr(pod, "\"muster.dev/index") + strlen("\"muster.dev/index\"")
#define RUNS "\"phase\":\"Running\",\"podIP\":\"10.0.0.9\""
#define ENDED                                                                                      \
	"\"phase\":\"Succeeded\",\"containerStatuses\":[{\"state\":{\"terminated\":{\"exitCode\":" \
	"0}}}]"
#define RUNNING                                                                                    \
	"{\"phase\":\"Running\",\"startTime\":\"2023-11-14T22:00:00Z\",\"observedGeneration\":1}"

static void status__is_stored_for_the_very_job_that_was_looked_at(void **state)
{
	struct scene *s = scene_new("", "{}", NULL);
	int at;

	look(s);
	s->now += 1; /* what follows at once is told with it */
	look(s);
	at = call_of(s, "PATCH", JOB_PATH "/status");
	assert_true(at >= 0);
	assert_string_equal(s->calls[at].type, "application/merge-patch+json");
	assert_non_null(
	    strstr(s->calls[at].body, "\"metadata\":{\"uid\":\"u1\",\"resourceVersion\":\"7\"}"));
	assert_non_null(
	    strstr(s->calls[at].body, "\"selector\":\"muster.dev/job=j,muster.dev/task=worker\""));
	assert_non_null(strstr(s->calls[at].body, "\"type\":\"Created\",\"status\":\"True\""));
	assert_non_null(strstr(s->calls[at].body, "\"observedGeneration\":1}"));
	scene_free(s);
}

static void nothing__is_written_by_who_may_not_lead(void **state)
{
	struct scene *s = scene_new("", "{}", NULL);

	s->may_write = false;
	look(s);
	assert_int_equal(count(s, "POST") + count(s, "PATCH") + count(s, "DELETE"), 0);
	scene_free(s);
}

/* A create that was done already is done; a pod of somebody else's is left alone and said, and one
 * that is still on its way out is waited for. */
static void pod__of_that_name__is_ours_or_is_left_alone(void **state)
{
	static const struct {
		const char *pod;
		bool told, refused;
	} cases[] = {
	    {POD("ps", "u2", RUNS), false, false},
	    {"{\"metadata\":{\"name\":\"j-ps-0\",\"uid\":\"u8\"}}", true, true},
	    {"{\"metadata\":{\"name\":\"j-ps-0\",\"uid\":\"u8\",\"ownerReferences\":[{\"uid\":"
	     "\"other\","
	     "\"controller\":true}]}}",
	     true, true},
	    {"{\"metadata\":{\"name\":\"j-ps-0\",\"uid\":\"u2\",\"deletionTimestamp\":"
	     "\"2023-11-14T22:00:00Z\",\"ownerReferences\":[{\"uid\":\"u1\",\"controller\":true}]}"
	     "}",
	     false, false},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct scene *s = scene_new("", "{}", NULL);
		bool made = i == 0, told = false;

		s->taken = cases[i].pod;
		look(s);
		for (int n = 0; n < s->n; n++)
			told = told || strstr(s->calls[n].body, "\"reason\":\"NameTaken\"");
		assert_int_equal(told, cases[i].told);
		assert_int_equal(count(s, "DELETE"), 0);
		s->now += 1;
		look(s);
		if (cases[i].refused) /* no watch tells when the name is free */
			assert_in_range((int)s->wake, 1, 30);
		told = false;
		for (int n = 0; n < s->n; n++)
			told = told || strstr(s->calls[n].body, "created 1 ps");
		assert_int_equal(told, made);
		scene_free(s);
	}
}

/* All pods at once, and the service. */
#define GANG      "\"gang\":\"kueue\",\"queue\":\"q\""
#define PODS_PATH "/api/v1/namespaces/d/pods"

static int count_of(const struct scene *s, const char *method, const char *path, const char *says)
{
	int n = 0;

	for (int i = 0; i < s->n; i++)
		n += strcmp(s->calls[i].method, method) == 0 &&
		     strncmp(s->calls[i].path, path, strlen(path)) == 0 &&
		     strstr(s->calls[i].body, says) != NULL;
	return n;
}

static void creates__of_one_look__are_made_together(void **state)
{
	struct scene *s = scene_new(GANG, "{}", NULL);

	look(s);
	assert_int_equal(s->together, 3);
	assert_int_equal(count_of(s, "POST", PODS_PATH, ""), 2);
	assert_int_equal(count_of(s, "POST", "/api/v1/namespaces/d/services", ""), 1);
	assert_int_equal(count_of(s, "POST", EVENTS, "created 1 ps, 1 worker"), 1);
	scene_free(s);
}

/* What could not be asked is no news; what was refused is. */
static void status__of_a_world_that_was_not_reached__is_not_stored(void **state)
{
	static const struct {
		enum mu_code how;
		bool stored;
	} cases[] = {{MU_UNAVAILABLE, false},
		     {MU_DEADLINE_EXCEEDED, false},
		     {MU_CANCELLED, false},
		     {MU_PERMISSION_DENIED, true}};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct scene *s = scene_new("", "{}", NULL);

		s->refused = "\"kind\":\"Pod\"";
		s->how = cases[i].how;
		look(s);
		s->now += 1;
		look(s);
		assert_int_equal(call_of(s, "PATCH", JOB_PATH "/status") >= 0, cases[i].stored);
		scene_free(s);
	}
}

/* Its pods would be placed with another's group, or never. */
static void gang__whose_group_cannot_be_made__gets_no_pods(void **state)
{
	static const enum mu_code codes[] = {MU_ALREADY_EXISTS, MU_INVALID_ARGUMENT, MU_ABORTED,
					     MU_PERMISSION_DENIED, MU_UNAVAILABLE};

	for (unsigned i = 0; i < MU_COUNT(codes); i++) {
		struct scene *s = scene_new("\"gang\":\"volcano\"", "{}", NULL);

		s->refused = "\"kind\":\"PodGroup\"";
		s->how = codes[i];
		look(s);
		assert_int_equal(count_of(s, "POST", "/apis/scheduling", ""), 1);
		assert_int_equal(count_of(s, "POST", PODS_PATH, ""), 0);
		scene_free(s);
	}
}

/* Whatever becomes of one of them, what was made is known, and is not made again. */
static void create__that_fails_among_others__is_the_only_one_made_again(void **state)
{
	static const struct {
		const char *which;
		enum mu_code how;
		bool told; /* an event says so */
	} cases[] = {
	    {"\"name\":\"j-ps-0\"", MU_UNAVAILABLE, false},
	    {"\"name\":\"j-worker-0\"", MU_DEADLINE_EXCEEDED, false},
	    {"\"kind\":\"Service\"", MU_UNAVAILABLE, false},
	    {"\"name\":\"j-ps-0\"", MU_PERMISSION_DENIED, true},
	    {"\"kind\":\"Service\"", MU_INVALID_ARGUMENT, true},
	    {"\"kind\":\"Pod\"", MU_PERMISSION_DENIED, true},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct scene *s = scene_new(GANG, "{}", NULL);
		bool both = strstr(cases[i].which, "Pod") != NULL;
		int made;

		s->refused = cases[i].which;
		s->how = cases[i].how;
		look(s);
		assert_int_equal(s->together, 3);
		/* of those who are refused for the same reason one is told of */
		assert_int_equal(count_of(s, "POST", EVENTS, "CreateRefused"), cases[i].told);
		assert_int_equal(count_of(s, "POST", EVENTS, "it is; change the manifest"),
				 cases[i].told);
		s->together = 0;
		made = s->n;
		look(s);
		assert_int_equal(s->together, 1);
		assert_int_equal(count_of(s, "POST", "/api/v1/", cases[i].which), both ? 3 : 2);
		assert_non_null(strstr(s->calls[made].body, cases[i].which));
		s->refused = NULL;
		s->together = 0;
		look(s);
		assert_int_equal(s->together, 1);
		assert_int_equal(count_of(s, "POST", "/api/v1/", ""), both ? 6 : 5);
		scene_free(s);
	}
}

/* It started with the cluster as it was, of which no watch has told; another create fails. */
static void pod__that_the_plan_took_for_missing__is_not_said_to_know_the_cluster(void **state)
{
#define AS_OF(epoch) "\"muster.dev/epoch\":\"" epoch "\",\"muster.dev/index\""
	static const char old_status[] = "{\"phase\":\"Pending\",\"cluster\":{\"epoch\":1,"
					 "\"epochSeen\":1,\"members\":\"others\"}}";
	static const char seen[] = POD("ps", "u2", RUNS), there[] = POD("worker", "u3", RUNS);
	MU_AUTO_FREE char *new_ps = mu_xasprintf("%.*s" AS_OF("2") "%s", AT_INDEX(seen));
	MU_AUTO_FREE char *old_worker = mu_xasprintf("%.*s" AS_OF("1") "%s", AT_INDEX(there));
	const char *const pods[] = {new_ps, NULL};
	struct scene *s = scene_new(GANG, old_status, pods);

	s->refused = "\"kind\"";
	s->how = MU_INVALID_ARGUMENT;
	look(s);
	s->now += 60; /* what is to be told has waited long enough */
	s->taken = old_worker;
	s->refused = "\"kind\":\"Service\"";
	look(s);
	s->now += 60;
	look(s);
	assert_int_equal(count_of(s, "GET", PODS_PATH "/j-worker-0", ""), 1);
	assert_int_equal(count_of(s, "PATCH", JOB_PATH "/status", "\"epoch\":2"), 1);
	assert_int_equal(count_of(s, "PATCH", JOB_PATH "/status", "\"epochSeen\":2"), 0);
	scene_free(s);
}

static void pod__is_deleted_by_its_uid_and_in_its_own_time(void **state)
{
	static const char *const pods[] = {POD("ps", "u2", RUNS), POD("worker", "u3", RUNS), NULL};
	struct scene *s = scene_new("\"suspend\":true", RUNNING, pods);
	int at;

	look(s);
	at = call_of(s, "DELETE", "/api/v1/namespaces/d/pods/");
	assert_true(at >= 0);
	assert_string_equal(s->calls[at].path, "/api/v1/namespaces/d/pods/j-worker-0");
	assert_string_equal(
	    s->calls[at].body,
	    "{\"preconditions\":{\"uid\":\"u3\"},\"propagationPolicy\":\"Background\"}");
	assert_int_equal(count(s, "DELETE"), 1); /* the ps waits for who saves */
	scene_free(s);
}

static void server__that_cannot_be_asked_to_end__is_deleted(void **state)
{
	static const char *const pods[] = {POD("ps", "u2", RUNS), POD("worker", "u3", ENDED), NULL};

	for (int reachable = 0; reachable < 2; reachable++) {
		struct scene *s = scene_new("", RUNNING, pods);

		s->reachable = reachable;
		look(s);
		assert_int_equal(s->finished, 1);
		assert_int_equal(call_of(s, "DELETE", "/api/v1/namespaces/d/pods/j-ps-0") >= 0,
				 !reachable);
		s->now += 9;
		look(s);
		assert_int_equal(count(s, "DELETE"), !reachable);
		s->now += 2; /* it was asked once, and is there still */
		look(s);
		assert_int_equal(s->finished, 1);
		assert_int_equal(count(s, "DELETE"), 1);
		scene_free(s);
	}
}

static void job__whose_time_to_live_is_over__is_deleted_by_its_uid(void **state)
{
	struct scene *s =
	    scene_new("\"ttlSecondsAfterFinished\":5",
		      "{\"phase\":\"Succeeded\",\"completionTime\":\"2023-11-14T22:00:00Z\","
		      "\"startTime\":\"2023-11-14T21:00:00Z\"}",
		      NULL);
	int at;

	look(s);
	at = call_of(s, "DELETE", JOB_PATH);
	assert_true(at >= 0);
	assert_non_null(strstr(s->calls[at].body, "\"preconditions\":{\"uid\":\"u1\"}"));
	scene_free(s);
}

/* ---- events ---- */

static void say(struct scene *s, const char *note)
{
	static const struct snapshot seen = {
	    .key = "d/j", .ns = "d", .name = "j", .uid = "u1", .resource_version = "7"};
	struct reconcile r = {.control = &s->control, .seen = &seen, .now = s->now};

	event_say(&r, true, "Reason", "%s", note);
}

static void event__names_whom_it_is_about_and_who_says_it(void **state)
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
	struct scene *s = scene_new("", "{}", NULL);

	s->now = STARTED + 0.25;
	say(s, "once");
	assert_int_equal(s->n, 1);
	assert_string_equal(s->calls[0].method, "POST");
	assert_string_equal(s->calls[0].path, EVENTS);
	for (unsigned i = 0; i < MU_COUNT(parts); i++)
		if (!strstr(s->calls[0].body, parts[i]))
			fail_msg("no %s in %s", parts[i], s->calls[0].body);
	scene_free(s);
}

static void event__said_again__is_a_series_told_ever_more_rarely(void **state)
{
	struct scene *s = scene_new("", "{}", NULL);

	for (int i = 0; i < 100; i++, s->now += 10)
		say(s, "again");
	assert_int_equal(count(s, "POST"), 1);
	assert_int_equal(count(s, "PATCH"), 6); /* 2, 4, 8, 16, 32 and 64 */
	assert_int_equal(call_of(s, "PATCH", EVENTS "/"), 1);
	assert_memory_equal(s->calls[1].path, EVENTS "/j.", strlen(EVENTS "/j."));
	assert_non_null(strstr(s->calls[1].body, "{\"series\":{\"count\":2,\"lastObservedTime\":"));
	say(s, "something else");
	assert_int_equal(count(s, "POST"), 2);
	s->now += 301; /* long after the last of it, it is news */
	say(s, "again");
	assert_int_equal(count(s, "POST"), 3);
	scene_free(s);
}

/* ---- the lease ---- */

static void leader__whose_lease_may_have_passed__may_not_write(void **state)
{
	struct scene *s = scene_new("", "{}", NULL);
	struct control *c = &s->control;

	c->options.leader_election = true;
	assert_false(leader_may_write(c));
	atomic_store(&c->leading, true);
	atomic_store(&c->lease_until_ms, mu_clock_ms() + 60000);
	assert_true(leader_may_write(c));
	atomic_store(&c->lease_until_ms, mu_clock_ms() - 1); /* it slept, and nobody told it */
	assert_false(leader_may_write(c));
	c->options.leader_election = false;
	assert_true(leader_may_write(c));
	scene_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(status__is_stored_for_the_very_job_that_was_looked_at),
	    cmocka_unit_test(nothing__is_written_by_who_may_not_lead),
	    cmocka_unit_test(pod__of_that_name__is_ours_or_is_left_alone),
	    cmocka_unit_test(creates__of_one_look__are_made_together),
	    cmocka_unit_test(status__of_a_world_that_was_not_reached__is_not_stored),
	    cmocka_unit_test(gang__whose_group_cannot_be_made__gets_no_pods),
	    cmocka_unit_test(create__that_fails_among_others__is_the_only_one_made_again),
	    cmocka_unit_test(pod__that_the_plan_took_for_missing__is_not_said_to_know_the_cluster),
	    cmocka_unit_test(pod__is_deleted_by_its_uid_and_in_its_own_time),
	    cmocka_unit_test(server__that_cannot_be_asked_to_end__is_deleted),
	    cmocka_unit_test(job__whose_time_to_live_is_over__is_deleted_by_its_uid),
	    cmocka_unit_test(event__names_whom_it_is_about_and_who_says_it),
	    cmocka_unit_test(event__said_again__is_a_series_told_ever_more_rarely),
	    cmocka_unit_test(leader__whose_lease_may_have_passed__may_not_write),
	};

	mu_log_set_level(MU_ERROR + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
