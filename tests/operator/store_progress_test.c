/* SPDX-License-Identifier: Apache-2.0 */
/* Which task is asked how far a job is, and when. */
#include "operator/controller/store.h"
#include "tests/test.h"

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

static void see(struct store *c, enum object_kind kind, cJSON *object)
{
	store_object_seen(&(struct store_watch){c, kind, NULL}, object);
	cJSON_Delete(object);
}

static void see_gone(struct store *c, enum object_kind kind, cJSON *object)
{
	store_object_gone(&(struct store_watch){c, kind, NULL}, object);
	cJSON_Delete(object);
}

/* Asks whoever is to be asked, and hears nothing.  Returns how many. */
static unsigned ask_in_vain(struct store *c, double now)
{
	unsigned n;
	struct task_address *chiefs = store_due_chiefs(c, now, &n);

	for (unsigned i = 0; i < n; i++)
		store_poll_failed(c, &chiefs[i], now);
	task_addresses_free(chiefs, n);
	return n;
}

/* How often a chief that does not answer is asked in an hour. */
static unsigned asked_in_an_hour(bool ready, bool heard)
{
	struct task_address chief = {.key = "default/j", .pod_uid = "w"};
	unsigned asked = 0;
	struct store c;

	store_init(&c, NULL, NULL);
	see(&c, KIND_JOB, job_of("u1"));
	see(&c, KIND_POD, pod_of("worker", "w", "u1", "Running", ready));
	if (heard)
		store_set_progress(&c, &chief, &(struct progress_report){.set = true}, NULL, 1000);
	for (double now = 1000; now < 4600; now += 5)
		asked += ask_in_vain(&c, now);
	store_fini(&c);
	return asked;
}

static void a_chief_without_a_page__is_asked_ever_more_rarely(void **state)
{
	assert_in_range(asked_in_an_hour(true, false), 5, 11);
	assert_in_range(asked_in_an_hour(false, false), 60, 65); /* it may be about to start */
	assert_in_range(asked_in_an_hour(true, true), 60, 65);   /* it may be busy */
}

/* The address that is asked now; "" when nobody is. */
static void expect_asked(struct store *c, double now, const char *want)
{
	unsigned n;
	struct task_address *chiefs = store_due_chiefs(c, now, &n);

	assert_int_equal(n, *want != 0);
	if (n)
		assert_string_equal(chiefs[0].ip, want);
	task_addresses_free(chiefs, n);
}

static void start(struct store *c)
{
	store_init(c, NULL, NULL);
	see(c, KIND_JOB, job_of("u1"));
	see(c, KIND_POD, pod_of("chief", "c1", "u1", "Running", true));
	see(c, KIND_POD, pod_of("worker", "w1", "u1", "Running", true));
	assert_int_equal(ask_in_vain(c, 1000), 1);
	expect_asked(c, 1001, "");
	expect_asked(c, 1002, "");
}

static void chief_is_deleting(struct store *c)
{
	store_expect_deletion(c, "c1");
}

static void chief_is_gone(struct store *c)
{
	see_gone(c, KIND_POD, pod_of("chief", "c1", "u1", "Running", true));
}

static void chief_was_removed(struct store *c)
{
	store_remove_pod(c, "c1");
}

static void chief_is_in_no_list(struct store *c)
{
	struct store_watch pods = {c, KIND_POD, NULL};

	store_list_begins(&pods);
	see(c, KIND_POD, pod_of("worker", "w1", "u1", "Running", true));
	store_list_ends(&pods);
}

static void chief_has_failed(struct store *c)
{
	see(c, KIND_POD, pod_of("chief", "c1", "u1", "Failed", false));
}

static void chief_is_a_new_one(struct store *c)
{
	see(c, KIND_POD, pod_of("chief", "c1", "u1", "Failed", false));
	see(c, KIND_POD, pod_of("chief", "c2", "u1", "Running", true));
}

static void chief_answers_late(struct store *c)
{
	struct task_address chief = {.key = "default/j", .pod_uid = "c1"};

	store_set_progress(c, &chief, &(struct progress_report){.set = true}, NULL, 1002);
}

static void job_is_a_new_one(struct store *c)
{
	see(c, KIND_JOB, job_of("u2"));
	see(c, KIND_POD, pod_of("worker", "w2", "u2", "Running", true));
}

static void job_is_a_new_one__seen_after_its_pod(struct store *c)
{
	see(c, KIND_POD, pod_of("worker", "w2", "u2", "Running", true));
	expect_asked(c, 1002, "");
	see(c, KIND_JOB, job_of("u2"));
}

static void all_are_gone(struct store *c)
{
	see_gone(c, KIND_JOB, job_of("u1"));
}

static void whoever_is_the_chief_now__is_asked_at_once(void **state)
{
	static const struct {
		void (*happens)(struct store *c);
		const char *asked;
	} cases[] = {
	    {chief_is_deleting, "of-w1"},
	    {chief_is_gone, "of-w1"},
	    {chief_was_removed, "of-w1"},
	    {chief_is_in_no_list, "of-w1"},
	    {chief_has_failed, "of-w1"},
	    {chief_is_a_new_one, "of-c2"},
	    {chief_answers_late, "of-c1"},
	    {job_is_a_new_one, "of-w2"},
	    {job_is_a_new_one__seen_after_its_pod, "of-w2"},
	    {all_are_gone, ""},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct store c;

		start(&c);
		cases[i].happens(&c);
		expect_asked(&c, 1003, cases[i].asked);
		store_fini(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_chief_without_a_page__is_asked_ever_more_rarely),
	    cmocka_unit_test(whoever_is_the_chief_now__is_asked_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
