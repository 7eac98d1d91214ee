/* SPDX-License-Identifier: Apache-2.0 */
/* Which tasks are asked how far a job is, or are sent new members, and when. */
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

/* The first of its kind of task; its address tells them apart. */
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
	char asked[64];    /* the address that was asked last; "" */
	char members[256]; /* that were sent last; "" */
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
	snprintf(world.asked, sizeof(world.asked), "%s", task->ip);
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

static struct store *begin(void)
{
	static const struct controller_options options = {.image = "i"};

	controller_init(&world.controller, &options, monotonic);
	world.controller.io =
	    (struct controller_io){.now = now, .get_status = on_get_status, .post = on_post};
	return &world.controller.store;
}

static void end(void)
{
	controller_fini(&world.controller);
}

/* The address that is asked at this time, in vain; "" when no task is. */
static void expect_asked(double when, const char *want)
{
	world.now = when;
	world.asked[0] = 0;
	progress_poll(&world.controller, "default/j");
	assert_string_equal(world.asked, want);
}

static void a_chief_without_a_page__is_asked_every_ten_minutes(void **state)
{
	struct store *c = begin();
	unsigned asked = 0;

	receive_object(c, KIND_JOB, job_of("u1"));
	receive_object(c, KIND_POD, pod_of("worker", "w", "u1", "Running", true));
	for (world.now = 1000; world.now < 4600; world.now += 5) {
		world.asked[0] = 0;
		progress_poll(&world.controller, "default/j");
		asked += world.asked[0] != 0;
	}
	end();
	assert_in_range(asked, 10, 15);
}

static struct store *start(void)
{
	struct store *c = begin();

	receive_object(c, KIND_JOB, job_of("u1"));
	receive_object(c, KIND_POD, pod_of("chief", "c1", "u1", "Running", true));
	receive_object(c, KIND_POD, pod_of("worker", "w1", "u1", "Running", true));
	expect_asked(1000, "of-c1");
	expect_asked(1001, "");
	expect_asked(1002, "");
	return c;
}

static void chief_is_deleting(struct store *c)
{
	store_deleted(c, "c1", false);
}

static void chief_is_gone(struct store *c)
{
	receive_deletion(c, KIND_POD, pod_of("chief", "c1", "u1", "Running", true));
}

static void chief_was_removed(struct store *c)
{
	store_deleted(c, "c1", true);
}

static void chief_is_in_no_list(struct store *c)
{
	struct store_watch pods = {c, KIND_POD, NULL};

	store_list_begins(&pods);
	receive_object(c, KIND_POD, pod_of("worker", "w1", "u1", "Running", true));
	store_list_ends(&pods);
}

static void chief_has_failed(struct store *c)
{
	receive_object(c, KIND_POD, pod_of("chief", "c1", "u1", "Failed", false));
}

static void chief_is_a_new_one(struct store *c)
{
	receive_object(c, KIND_POD, pod_of("chief", "c1", "u1", "Failed", false));
	receive_object(c, KIND_POD, pod_of("chief", "c2", "u1", "Running", true));
}

static void job_is_a_new_one(struct store *c)
{
	receive_object(c, KIND_JOB, job_of("u2"));
	receive_object(c, KIND_POD, pod_of("worker", "w2", "u2", "Running", true));
}

static void job_is_a_new_one__seen_after_its_pod(struct store *c)
{
	receive_object(c, KIND_POD, pod_of("worker", "w2", "u2", "Running", true));
	expect_asked(1002, "");
	receive_object(c, KIND_JOB, job_of("u2"));
}

static void all_are_gone(struct store *c)
{
	receive_deletion(c, KIND_JOB, job_of("u1"));
}

static void chief__that_is_new__is_asked_at_once(void **state)
{
	static const struct {
		void (*happens)(struct store *c);
		const char *asked;
	} cases[] = {
	    {chief_is_deleting, "of-w1"}, {chief_is_gone, "of-w1"},
	    {chief_was_removed, "of-w1"}, {chief_is_in_no_list, "of-w1"},
	    {chief_has_failed, "of-w1"},  {chief_is_a_new_one, "of-c2"},
	    {job_is_a_new_one, "of-w2"},  {job_is_a_new_one__seen_after_its_pod, "of-w2"},
	    {all_are_gone, ""},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		cases[i].happens(start());
		expect_asked(1003, cases[i].asked);
		end();
	}
}

static void chief__that_answers__is_asked_in_each_round(void **state)
{
	start();
	world.answers = true;
	expect_asked(1006, "of-c1"); /* the backoff of the first failure is over */
	expect_asked(1007, "of-c1");
	world.answers = false;
	end();
}

static void chief__named_master__is_asked_in_any_order_of_the_pods(void **state)
{
	static const char *const orders[][2] = {{"master", "worker"}, {"worker", "master"}};

	for (unsigned i = 0; i < MU_COUNT(orders); i++) {
		struct store *c = begin();

		receive_object(c, KIND_JOB, job_of("u1"));
		for (int n = 0; n < 2; n++)
			receive_object(c, KIND_POD,
				       pod_of(orders[i][n], orders[i][n], "u1", "Running", true));
		expect_asked(1000, "of-master");
		end();
	}
}

/* The worker of the job, created with the first epoch. */
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

/* The job as it is once its reconcile has stored the status with epoch 2. */
static cJSON *job_with_epoch_2(struct store *c)
{
	static const struct plan_options options = {.image = "i"};
	struct job_plan *plan;
	MU_AUTO_BUF status = {0};
	struct snapshot seen;

	receive_object(c, KIND_JOB,
		       job_with("7", "{\"cluster\":{\"epoch\":1,\"members\":\"others\"}}"));
	assert_true(snapshot_take(c, "default/j", 100, &seen));
	plan = job_plan_new(seen.job->spec, &options, &seen.observed, 100);
	status_print(&plan->status, &status);
	job_plan_free(plan);
	snapshot_fini(&seen);
	return job_with("8", status.data);
}

static void expect_told(double when, bool answers, bool want)
{
	world.now = when;
	world.answers = answers;
	world.members[0] = 0;
	assert_int_equal(progress_poll(&world.controller, "default/j"), want && answers);
	assert_int_equal(strstr(world.members, "{\"epoch\":2,\"cluster\":{\"worker\":[") != NULL,
			 want);
}

static void task__with_an_older_epoch__is_sent_the_members_until_it_confirms(void **state)
{
	struct store *c = begin();
	struct snapshot seen;
	cJSON *stored = job_with_epoch_2(c);

	receive_object(c, KIND_POD, member("Pending"));
	expect_told(100, false, false); /* no task is there yet */
	receive_object(c, KIND_POD, member("Running"));
	expect_told(100, false, false); /* the epoch is not stored yet */
	receive_object(c, KIND_JOB, stored);
	expect_told(100, false, true);
	expect_told(104, false, false);
	expect_told(105, false, true);
	expect_told(20, true, true); /* the clock was set back */
	expect_told(200, true, false);
	receive_object(c, KIND_POD, member("Running")); /* its label is what it was created with */
	assert_true(snapshot_take(c, "default/j", 206, &seen));
	assert_int_equal(seen.observed.pods[0].epoch, 2);
	snapshot_fini(&seen);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_chief_without_a_page__is_asked_every_ten_minutes),
	    cmocka_unit_test(chief__that_is_new__is_asked_at_once),
	    cmocka_unit_test(chief__that_answers__is_asked_in_each_round),
	    cmocka_unit_test(chief__named_master__is_asked_in_any_order_of_the_pods),
	    cmocka_unit_test(task__with_an_older_epoch__is_sent_the_members_until_it_confirms),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
