/* SPDX-License-Identifier: Apache-2.0 */
/* Progress polls and membership updates: their tasks and their times. */
#include "operator/controller/controller.h"

#include <stdio.h>

#include "tests/test.h"

#include "tests/operator/status_text.h"

static cJSON *job_of(const char *uid)
{
	MU_AUTO_FREE char *text = mu_xasprintf("{\"metadata\":{\"name\":\"j\",\"namespace\":"
					       "\"default\",\"uid\":\"%s\",\"resourceVersion\":"
					       "\"7\"},\"spec\":{}}",
					       uid);
	cJSON *object = cJSON_Parse(text);

	assert_non_null(object);
	return object;
}

/* A pod with index 0. Its address contains its UID. */
static cJSON *pod_of(const char *task, const char *uid, const char *owner, const char *phase,
		     bool ready)
{
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"metadata\":{\"name\":\"j-%s-0\",\"namespace\":\"default\",\"uid\":\"%s\","
	    "\"labels\":{\"" LABEL_JOB "\":\"j\",\"" LABEL_TASK "\":\"%s\",\"" LABEL_INDEX
	    "\":\"0\"},\"ownerReferences\":[{\"uid\":\"%s\",\"controller\":true}]},"
	    "\"status\":{\"phase\":\"%s\",\"podIP\":\"of-%s\","
	    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
	    task, uid, task, owner, phase, uid, ready ? "True" : "False");
	cJSON *object = cJSON_Parse(text);

	assert_non_null(object);
	return object;
}

static void receive_object(struct store *c, enum object_kind kind, cJSON *object)
{
	store_object_seen(&(struct store_watch){c, kind, NULL}, object);
	cJSON_Delete(object);
}

static void receive_deletion(struct store *c, enum object_kind kind, cJSON *object)
{
	store_object_gone(&(struct store_watch){c, kind, NULL}, object);
	cJSON_Delete(object);
}

/* A controller without threads, whose tasks are polled by hand. */
static struct {
	struct controller controller;
	double now;
	char polled[64];   /* the address of the last poll, or "" */
	char members[256]; /* the last membership update, or "" */
	bool answers;
} world;

static double now(void *user)
{
	return world.now;
}

static double monotonic(void)
{
	return 1;
}

static int on_get_status(void *user, const struct pod *task, struct mu_buf *out)
{
	snprintf(world.polled, sizeof(world.polled), "%s", task->ip);
	if (!world.answers)
		return -MU_UNAVAILABLE;
	mu_buf_puts(out, "{}");
	return 0;
}

static int on_post(void *user, const struct pod *task, const char *page, const char *members,
		   struct mu_err *err)
{
	assert_string_equal(page, "cluster");
	assert_string_equal(task->ip, "10.0.0.1");
	snprintf(world.members, sizeof(world.members), "%s", members);
	return world.answers ? 0 : -MU_UNAVAILABLE;
}

static struct store *start_controller(void)
{
	static const struct controller_options options = {.image = "i"};

	controller_init(&world.controller, &options, monotonic);
	world.controller.io =
	    (struct controller_io){.now = now, .get_status = on_get_status, .post = on_post};
	return &world.controller.store;
}

static void stop_controller(void)
{
	controller_fini(&world.controller);
}

/* Polls at this time and expects a request to this address; "" for none. */
static void expect_polled(double when, const char *want)
{
	world.now = when;
	world.polled[0] = 0;
	progress_poll(&world.controller, "default/j");
	assert_string_equal(world.polled, want);
}

static void chief__without_a_status_page__is_polled_every_ten_minutes(void **state)
{
	struct store *c = start_controller();
	unsigned polled = 0;

	receive_object(c, KIND_JOB, job_of("u1"));
	receive_object(c, KIND_POD, pod_of("worker", "w", "u1", "Running", true));
	for (world.now = 1000; world.now < 4600; world.now += 5) {
		world.polled[0] = 0;
		progress_poll(&world.controller, "default/j");
		polled += world.polled[0] != 0;
	}
	stop_controller();
	assert_in_range(polled, 10, 15);
}

static struct store *start_with_chief_and_worker(void)
{
	struct store *c = start_controller();

	receive_object(c, KIND_JOB, job_of("u1"));
	receive_object(c, KIND_POD, pod_of("chief", "c1", "u1", "Running", true));
	receive_object(c, KIND_POD, pod_of("worker", "w1", "u1", "Running", true));
	expect_polled(1000, "of-c1");
	expect_polled(1001, "");
	expect_polled(1002, "");
	return c;
}

static void delete_chief(struct store *c)
{
	store_deleted(c, "c1", false);
}

static void remove_chief_by_watch(struct store *c)
{
	receive_deletion(c, KIND_POD, pod_of("chief", "c1", "u1", "Running", true));
}

static void remove_chief_by_reply(struct store *c)
{
	store_deleted(c, "c1", true);
}

static void relist_without_chief(struct store *c)
{
	struct store_watch pods = {c, KIND_POD, NULL};

	store_list_begins(&pods);
	receive_object(c, KIND_POD, pod_of("worker", "w1", "u1", "Running", true));
	store_list_ends(&pods);
}

static void fail_chief(struct store *c)
{
	receive_object(c, KIND_POD, pod_of("chief", "c1", "u1", "Failed", false));
}

static void replace_chief(struct store *c)
{
	receive_object(c, KIND_POD, pod_of("chief", "c1", "u1", "Failed", false));
	receive_object(c, KIND_POD, pod_of("chief", "c2", "u1", "Running", true));
}

static void replace_job(struct store *c)
{
	receive_object(c, KIND_JOB, job_of("u2"));
	receive_object(c, KIND_POD, pod_of("worker", "w2", "u2", "Running", true));
}

static void replace_job_after_its_pod(struct store *c)
{
	receive_object(c, KIND_POD, pod_of("worker", "w2", "u2", "Running", true));
	expect_polled(1002, "");
	receive_object(c, KIND_JOB, job_of("u2"));
}

static void delete_job(struct store *c)
{
	receive_deletion(c, KIND_JOB, job_of("u1"));
}

static void poll__after_a_change_of_the_chief__is_immediate(void **state)
{
	static const struct {
		void (*change)(struct store *c);
		const char *polled;
	} cases[] = {
	    {delete_chief, "of-w1"},
	    {remove_chief_by_watch, "of-w1"},
	    {remove_chief_by_reply, "of-w1"},
	    {relist_without_chief, "of-w1"},
	    {fail_chief, "of-w1"},
	    {replace_chief, "of-c2"},
	    {replace_job, "of-w2"},
	    {replace_job_after_its_pod, "of-w2"},
	    {delete_job, ""},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		cases[i].change(start_with_chief_and_worker());
		expect_polled(1003, cases[i].polled);
		stop_controller();
	}
}

static void chief__that_answers__is_polled_in_each_round(void **state)
{
	start_with_chief_and_worker();
	world.answers = true;
	expect_polled(1006, "of-c1"); /* the backoff of the first failure is over */
	expect_polled(1007, "of-c1");
	world.answers = false;
	stop_controller();
}

static void chief__named_master__is_polled_in_any_order_of_the_pods(void **state)
{
	static const char *const orders[][2] = {{"master", "worker"}, {"worker", "master"}};

	for (unsigned i = 0; i < MU_COUNT(orders); i++) {
		struct store *c = start_controller();

		receive_object(c, KIND_JOB, job_of("u1"));
		for (int n = 0; n < 2; n++)
			receive_object(c, KIND_POD,
				       pod_of(orders[i][n], orders[i][n], "u1", "Running", true));
		expect_polled(1000, "of-master");
		stop_controller();
	}
}

/* The worker pod, created in epoch 1. */
static cJSON *member(const char *phase)
{
	cJSON *object = pod_of("worker", "p1", "u1", phase, false);

	cJSON_AddStringToObject(
	    cJSON_GetObjectItem(cJSON_GetObjectItem(object, "metadata"), "labels"), LABEL_EPOCH,
	    "1");
	cJSON_SetValuestring(cJSON_GetObjectItem(cJSON_GetObjectItem(object, "status"), "podIP"),
			     "10.0.0.1");
	return object;
}

static cJSON *job_with(const char *version, const char *status)
{
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"apiVersion\":\"muster.dev/v1\",\"kind\":\"DistributedTrainingJob\",\"metadata\":{"
	    "\"name\":\"j\",\"namespace\":\"default\",\"uid\":\"u1\",\"resourceVersion\":\"%s\","
	    "\"generation\":1},\"spec\":{\"tasks\":{\"worker\":{}}},\"status\":%s}",
	    version, status);
	cJSON *object = cJSON_Parse(text);

	assert_non_null(object);
	return object;
}

/* The job after a reconcile has stored the status with epoch 2. */
static cJSON *job_with_epoch_2(struct store *c)
{
	static const struct plan_options options = {.image = "i"};
	struct job_plan *plan;
	MU_AUTO_BUF status = {0};
	struct snapshot snapshot;

	receive_object(c, KIND_JOB,
		       job_with("7", "{\"cluster\":{\"epoch\":1,\"members\":\"others\"}}"));
	assert_true(snapshot_take(c, "default/j", 100, &snapshot));
	plan = job_plan_new(snapshot.job->spec, &options, &snapshot.observed, 100);
	status_print(&plan->status, &status);
	job_plan_free(plan);
	snapshot_fini(&snapshot);
	return job_with("8", status.data);
}

static void expect_membership_update(double when, bool answers, bool want)
{
	world.now = when;
	world.answers = answers;
	world.members[0] = 0;
	assert_int_equal(progress_poll(&world.controller, "default/j"), want && answers);
	assert_int_equal(strstr(world.members, "{\"epoch\":2,\"cluster\":{\"worker\":[") != NULL,
			 want);
}

static void task__with_an_older_epoch__gets_membership_updates_until_it_confirms(void **state)
{
	struct store *c = start_controller();
	struct snapshot snapshot;
	cJSON *stored = job_with_epoch_2(c);

	receive_object(c, KIND_POD, member("Pending"));
	expect_membership_update(100, false, false); /* no task runs yet */
	receive_object(c, KIND_POD, member("Running"));
	expect_membership_update(100, false, false); /* the epoch is not stored yet */
	receive_object(c, KIND_JOB, stored);
	expect_membership_update(100, false, true);
	expect_membership_update(104, false, false);
	expect_membership_update(105, false, true);
	expect_membership_update(20, true, true); /* the clock was set back */
	expect_membership_update(200, true, false);
	receive_object(c, KIND_POD,
		       member("Running")); /* the label keeps the epoch of its creation */
	assert_true(snapshot_take(c, "default/j", 206, &snapshot));
	assert_int_equal(snapshot.observed.pods[0].epoch, 2);
	snapshot_fini(&snapshot);
	stop_controller();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(chief__without_a_status_page__is_polled_every_ten_minutes),
	    cmocka_unit_test(poll__after_a_change_of_the_chief__is_immediate),
	    cmocka_unit_test(chief__that_answers__is_polled_in_each_round),
	    cmocka_unit_test(chief__named_master__is_polled_in_any_order_of_the_pods),
	    cmocka_unit_test(task__with_an_older_epoch__gets_membership_updates_until_it_confirms),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
