/* SPDX-License-Identifier: Apache-2.0 */
/* Changes for which the store requests a reconcile. A reconcile costs more than the comparison. */
#include "tests/test.h"

#include "lib/kube/kube_client.h"
#include "operator/controller/store.h"

static int job_changes, pod_changes;

static void on_change(void *arg, const char *key, enum object_kind kind)
{
	assert_string_equal(key, "default/j");
	job_changes += kind == KIND_JOB;
	pod_changes += kind == KIND_POD;
}

static cJSON *pod_of(const char *uid, const char *phase, const char *ip)
{
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"metadata\":{\"name\":\"j-ps-0\",\"namespace\":\"default\",\"uid\":\"%s\","
	    "\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{\"" LABEL_JOB
	    "\":\"j\",\"" LABEL_TASK "\":\"%s\",\"" LABEL_INDEX "\":\"0\"},\"ownerReferences\":["
	    "{\"uid\":\"u1\",\"controller\":true}]},\"status\":{\"phase\":\"%s\",\"podIP\":\"%s\"}"
	    "}",
	    uid, *uid == 's' ? "ps" : "worker", phase, ip);
	cJSON *object = cJSON_Parse(text);

	assert_non_null(object);
	return object;
}

static cJSON *pod(const char *phase, const char *ip)
{
	return pod_of("p1", phase, ip);
}

static cJSON *job_of(const char *uid, const char *version)
{
	MU_AUTO_FREE char *text = mu_xasprintf("{\"metadata\":{\"name\":\"j\",\"namespace\":"
					       "\"default\",\"uid\":\"%s\",\"resourceVersion\":"
					       "\"%s\"},\"spec\":{}}",
					       uid, version);
	cJSON *object = cJSON_Parse(text);

	assert_non_null(object);
	return object;
}

static cJSON *job(const char *version)
{
	return job_of("u1", version);
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

static void start(struct store *c)
{
	store_init(c, on_change, NULL);
	job_changes = pod_changes = 0;
}

static cJSON *pod_version(const char *version)
{
	cJSON *json = pod("Pending", "");

	cJSON_AddStringToObject(cJSON_GetObjectItem(json, "metadata"), "resourceVersion", version);
	return json;
}

static void pod__in_the_version_of_our_own_create__is_not_reconciled(void **state)
{
	struct store c;
	cJSON *answer = pod_version("8");

	start(&c);
	receive_object(&c, KIND_JOB, job("7"));
	store_expect(&c, KIND_POD, answer, 100);
	cJSON_Delete(answer);
	receive_object(&c, KIND_POD, pod_version("8"));
	assert_int_equal(pod_changes, 0);
	receive_object(&c, KIND_POD, pod_version("9"));
	assert_int_equal(pod_changes, 1);
	receive_object(&c, KIND_POD, pod_version("9"));
	assert_int_equal(pod_changes, 1);
	receive_deletion(&c, KIND_POD, pod_version("9"));
	assert_int_equal(pod_changes, 2);
	store_fini(&c);
}

static void pod__has_its_chosen_and_its_reported_kernels(void **state)
{
	cJSON *created = pod("Pending", "");
	struct snapshot snapshot;
	struct store c;

	cJSON_AddStringToObject(
	    cJSON_GetObjectItem(cJSON_GetObjectItem(created, "metadata"), "labels"), LABEL_KERNELS,
	    "cpu-avx2");
	start(&c);
	receive_object(&c, KIND_JOB, job("7"));
	receive_object(&c, KIND_POD, created);
	assert_true(snapshot_take(&c, "default/j", 100, &snapshot));
	assert_string_equal(snapshot.observed.pods[0].chosen_kernels, "cpu-avx2");
	assert_null(snapshot.observed.pods[0].kernels);
	snapshot_fini(&snapshot);
	assert_true(store_set_progress(&c, "default/j", "p1", &(struct progress_report){0},
				       "cpu-avx512", 101));
	assert_true(snapshot_take(&c, "default/j", 100, &snapshot));
	assert_string_equal(snapshot.observed.pods[0].kernels, "cpu-avx512");
	snapshot_fini(&snapshot);
	store_fini(&c);
}

/* A relist without a pod that we created removes the pod only after a watch has shown it. */
static void created_pod__that_no_watch_shows__is_dropped_after_a_minute(void **state)
{
	cJSON *answer = pod("Pending", "");
	struct snapshot snapshot;
	struct store c;
	struct store_watch pods = {&c, KIND_POD, NULL};

	for (int shown = 0; shown < 2; shown++) {
		start(&c);
		receive_object(&c, KIND_JOB, job("7"));
		store_expect(&c, KIND_POD, answer, 100);
		if (shown)
			receive_object(&c, KIND_POD, pod("Pending", ""));
		store_list_begins(&pods);
		store_list_ends(&pods);
		assert_true(snapshot_take(&c, "default/j", 159, &snapshot));
		assert_int_equal(snapshot.observed.n_pods, !shown);
		assert_true(shown || snapshot.expectations_expire_at == 160);
		snapshot_fini(&snapshot);
		assert_true(snapshot_take(&c, "default/j", 161, &snapshot));
		assert_int_equal(snapshot.observed.n_pods, 0);
		snapshot_fini(&snapshot);
		store_fini(&c);
	}
	cJSON_Delete(answer);
}

/* kubectl delete --cascade=orphan removes the owner reference. */
static void pod__that_is_orphaned__is_removed_from_the_job(void **state)
{
	cJSON *orphan = pod("Running", "10.0.0.1");
	struct snapshot snapshot;
	struct store c;

	cJSON_DeleteItemFromObject(cJSON_GetObjectItem(orphan, "metadata"), "ownerReferences");
	start(&c);
	receive_object(&c, KIND_JOB, job("7"));
	receive_object(&c, KIND_POD, pod("Running", "10.0.0.1"));
	pod_changes = 0;
	receive_object(&c, KIND_POD, orphan);
	assert_int_equal(pod_changes, 1);
	assert_true(snapshot_take(&c, "default/j", 100, &snapshot));
	assert_int_equal(snapshot.observed.n_pods, 0);
	snapshot_fini(&snapshot);
	store_fini(&c);
}

static void job__that_replaces_one_of_the_same_name__is_the_only_one(void **state)
{
	struct snapshot snapshot;
	struct store c;

	start(&c);
	receive_object(&c, KIND_JOB, job("7"));
	receive_object(&c, KIND_POD, pod("Running", "10.0.0.1"));
	receive_object(&c, KIND_JOB, job_of("u2", "9"));
	assert_int_equal(c.keys.count, 1);
	receive_deletion(&c, KIND_JOB, job("8"));
	assert_true(snapshot_take(&c, "default/j", 100, &snapshot));
	assert_string_equal(snapshot.job->meta.uid, "u2");
	assert_int_equal(snapshot.observed.n_pods, 0);
	snapshot_fini(&snapshot);
	store_fini(&c);
}

static void job__in_the_version_of_our_own_write__is_not_reconciled(void **state)
{
	struct store c;
	cJSON *answer = job("8");

	start(&c);
	receive_object(&c, KIND_JOB, job("7"));
	assert_int_equal(job_changes, 1);
	store_update_job(&c, answer, 0);
	cJSON_Delete(answer);
	receive_object(&c, KIND_JOB, job("8"));
	assert_int_equal(job_changes, 1);
	receive_object(&c, KIND_JOB, job("9"));
	assert_int_equal(job_changes, 2);
	store_fini(&c);
}

static cJSON *job_as_read(const char *version, int generation, const char *spec, const char *status)
{
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"apiVersion\":\"muster.dev/v1\",\"kind\":\"DistributedTrainingJob\",\"metadata\":{"
	    "\"name\":\"j\",\"namespace\":\"default\",\"uid\":\"u1\","
	    "\"resourceVersion\":\"%s\",\"generation\":%d,\"annotations\":{\"a\":\"b\"}},"
	    "\"spec\":%s,\"status\":%s}",
	    version, generation, spec, status);
	cJSON *object = kube_json(mu_span_of(text));

	assert_non_null(object);
	return object;
}

static void job__is_decoded_once__and_a_snapshot_keeps_its_version(void **state)
{
	static const char good[] = "{\"tasks\":{\"worker\":{\"replicas\":3}}}";
	struct snapshot first, next;
	struct store c;

	start(&c);
	receive_object(&c, KIND_JOB, job_as_read("7", 1, good, "{\"phase\": \"Running\"}"));
	assert_true(snapshot_take(&c, "default/j", 100, &first));
	assert_int_equal(first.job->spec->tasks[0].replicas, 3);
	assert_int_equal(first.observed.status.phase, JOB_RUNNING);
	receive_object(&c, KIND_JOB, job_as_read("8", 2, "{\"tasks\":7}", "{\"phase\": 7}"));
	assert_true(snapshot_take(&c, "default/j", 100, &next));
	assert_null(next.job->spec);
	assert_non_null(strstr(next.job->spec_error, "spec.tasks"));
	assert_int_equal(next.job->generation, 2);
	assert_int_equal(next.observed.status.phase, JOB_NEW);
	assert_int_equal(first.job->spec->tasks[0].replicas, 3);
	snapshot_fini(&first);
	snapshot_fini(&next);
	store_fini(&c);
}

/* The versions of a pod that is deleted at 12:00:10: step 0 is terminating, step 1 ended at
 * 12:00:12. In step 2 the kubelet confirms the end at 12:00:15 with a grace period of 0. */
static cJSON *deleted_pod(int step)
{
	static const char *const due[] = {"40Z\",\"deletionGracePeriodSeconds\":30",
					  "40Z\",\"deletionGracePeriodSeconds\":30",
					  "15Z\",\"deletionGracePeriodSeconds\":0"};
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"metadata\":{\"name\":\"j-ps-0\",\"namespace\":\"default\",\"uid\":\"p1\","
	    "\"labels\":{\"" LABEL_JOB "\":\"j\",\"" LABEL_TASK "\":\"ps\",\"" LABEL_INDEX
	    "\":\"0\"},\"deletionTimestamp\":\"2026-01-01T12:00:%s},\"status\":{\"phase\":\"%s\"%s}"
	    "}",
	    due[step], step ? "Failed" : "Running",
	    step ? ",\"containerStatuses\":[{\"state\":{\"terminated\":{\"exitCode\":143,"
		   "\"finishedAt\":\"2026-01-01T12:00:12Z\"}}}]"
		 : "");
	cJSON *object = cJSON_Parse(text);

	assert_non_null(object);
	return object;
}

/* A running pod whose Ready condition has this status. */
static cJSON *pod_with_ready(const char *ready)
{
	cJSON *object = pod("Running", "10.0.0.1"), *condition = cJSON_CreateObject();

	cJSON_AddStringToObject(condition, "type", "Ready");
	cJSON_AddStringToObject(condition, "status", ready);
	cJSON_AddItemToArray(
	    cJSON_AddArrayToObject(cJSON_GetObjectItem(object, "status"), "conditions"), condition);
	return object;
}

static void count_key(void *n, const char *key)
{
	++*(int *)n;
}

static void keys__can_exclude_finished_jobs(void **state)
{
	static const char *const spec = "{\"tasks\":{\"worker\":{}}}";
	int all = 0, running = 0;
	struct store c;

	start(&c);
	receive_object(&c, KIND_JOB, job_as_read("7", 1, spec, "{\"phase\":\"Running\"}"));
	store_each_key(&c, false, count_key, &running);
	assert_int_equal(running, 1);
	receive_object(&c, KIND_JOB, job_as_read("8", 1, spec, "{\"phase\":\"Succeeded\"}"));
	store_each_key(&c, false, count_key, &running);
	store_each_key(&c, true, count_key, &all);
	assert_int_equal(running, 1);
	assert_int_equal(all, 1);
	store_fini(&c);
}

/* The parsed document of such a job takes a hundred times the memory of its text. */
static void job__with_too_many_values__has_no_spec(void **state)
{
	MU_AUTO_BUF spec = {0};
	struct snapshot got;
	struct store c;

	mu_buf_puts(&spec, "{\"tasks\":{\"worker\":{\"template\":{\"x\":[0");
	for (int i = 0; i < JOB_MAX_VALUES; i++)
		mu_buf_puts(&spec, ",0");
	mu_buf_puts(&spec, "]}}}}");
	start(&c);
	receive_object(&c, KIND_JOB, job_as_read("7", 1, spec.data, "{}"));
	assert_true(snapshot_take(&c, "default/j", 100, &got));
	assert_null(got.job->spec);
	assert_string_equal(got.job->spec_error, "default/j: more than 20000 values");
	snapshot_fini(&got);
	store_fini(&c);
}

static void pod__that_was_ready_once__keeps_was_ready(void **state)
{
	static const struct {
		const char *condition;
		bool ready, was_ready;
	} versions[] = {{"False", false, false}, {"True", true, true}, {"False", false, true}};
	struct store c;

	start(&c);
	receive_object(&c, KIND_JOB, job("7"));
	for (unsigned i = 0; i < MU_COUNT(versions); i++) {
		struct snapshot snapshot;

		receive_object(&c, KIND_POD, pod_with_ready(versions[i].condition));
		assert_true(snapshot_take(&c, "default/j", 100, &snapshot));
		assert_int_equal(snapshot.observed.pods[0].ready, versions[i].ready);
		assert_int_equal(snapshot.observed.pods[0].was_ready, versions[i].was_ready);
		snapshot_fini(&snapshot);
	}
	store_fini(&c);
}

static void pod__whose_end_is_confirmed__stays_ended_by_deletion(void **state)
{
	struct store c;

	start(&c);
	for (int step = 0; step < 3; step++) {
		const struct stored_object *s;

		receive_object(&c, KIND_POD, deleted_pod(step));
		s = mu_map_get(&c.objects[KIND_POD], "p1");
		assert_non_null(s);
		assert_int_equal(((const struct pod *)s->object)->observed.ended_by_deletion,
				 step > 0);
	}
	store_fini(&c);
}

/* An ended pod with index 0 and a termination message. */
static cJSON *ended_pod(const char *task, const char *message)
{
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"metadata\":{\"name\":\"j-%s-0\",\"namespace\":\"default\",\"uid\":\"%s\","
	    "\"labels\":{\"" LABEL_JOB "\":\"j\",\"" LABEL_TASK "\":\"%s\",\"" LABEL_INDEX
	    "\":\"0\"},\"ownerReferences\":[{\"uid\":\"u1\",\"controller\":true}]},\"status\":{"
	    "\"phase\":\"Succeeded\",\"containerStatuses\":[{\"state\":{\"terminated\":{"
	    "\"exitCode\":0}}}]}}",
	    task, task, task);
	cJSON *object = cJSON_Parse(text), *at;

	assert_non_null(object);
	at = cJSON_GetObjectItem(object, "status");
	at = cJSON_GetArrayItem(cJSON_GetObjectItem(at, "containerStatuses"), 0);
	at = cJSON_GetObjectItem(cJSON_GetObjectItem(at, "state"), "terminated");
	cJSON_AddStringToObject(at, "message", message);
	return object;
}

static void expect_progress(struct store *c, const char *want)
{
	struct progress_report report;
	struct snapshot snapshot;

	progress_report_parse(&report, want);
	assert_true(snapshot_take(c, "default/j", 100, &snapshot));
	assert_true(progress_report_same(&snapshot.observed.progress, &report));
	snapshot_fini(&snapshot);
}

static void final_report__of_the_chief__replaces_the_progress(void **state)
{
	static const char *const nonsense[] = {
	    "", "out of memory", "{\"step\":", "{\"loss\":1}", "{\"step\":-1}", "[1]"};
	struct progress_report answer;
	struct store c;

	progress_report_parse(&answer, "{\"step\":8}");
	start(&c);
	receive_object(&c, KIND_JOB, job("7"));
	receive_object(&c, KIND_POD, ended_pod("ps", "{\"step\":1}"));
	expect_progress(&c, NULL);
	for (unsigned i = 0; i < MU_COUNT(nonsense); i++) {
		receive_object(&c, KIND_POD, ended_pod("worker", nonsense[i]));
		expect_progress(&c, NULL);
	}
	store_set_progress(&c, "default/j", "worker", &answer, NULL, 99);
	expect_progress(&c, "{\"step\":8}");
	receive_object(&c, KIND_POD, ended_pod("worker", "{\"step\":9,\"loss\":0.5,\"other\":[]}"));
	expect_progress(&c, "{\"step\":9,\"loss\":0.5}");
	receive_object(&c, KIND_POD, ended_pod("worker", "{\"step\":9,\"reason\":\"Because\"}"));
	expect_progress(&c, "{\"step\":9}");
	receive_object(&c, KIND_POD,
		       ended_pod("worker", "{\"step\":9,\"reason\":\"ValidationStopped\"}"));
	expect_progress(&c, "{\"step\":9,\"reason\":\"ValidationStopped\"}");
	receive_object(&c, KIND_POD, ended_pod("worker", "{\"step\":9,\"loss\":0.5}"));
	/* the late answer of a poll */
	store_set_progress(&c, "default/j", "worker", &answer, NULL, 101);
	expect_progress(&c, "{\"step\":9,\"loss\":0.5}");
	receive_deletion(&c, KIND_POD, ended_pod("worker", "{\"step\":9,\"loss\":0.5}"));
	expect_progress(&c, "{\"step\":9,\"loss\":0.5}");
	store_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pod__in_the_version_of_our_own_create__is_not_reconciled),
	    cmocka_unit_test(keys__can_exclude_finished_jobs),
	    cmocka_unit_test(job__with_too_many_values__has_no_spec),
	    cmocka_unit_test(pod__that_was_ready_once__keeps_was_ready),
	    cmocka_unit_test(pod__whose_end_is_confirmed__stays_ended_by_deletion),
	    cmocka_unit_test(pod__has_its_chosen_and_its_reported_kernels),
	    cmocka_unit_test(created_pod__that_no_watch_shows__is_dropped_after_a_minute),
	    cmocka_unit_test(pod__that_is_orphaned__is_removed_from_the_job),
	    cmocka_unit_test(job__that_replaces_one_of_the_same_name__is_the_only_one),
	    cmocka_unit_test(job__in_the_version_of_our_own_write__is_not_reconciled),
	    cmocka_unit_test(final_report__of_the_chief__replaces_the_progress),
	    cmocka_unit_test(job__is_decoded_once__and_a_snapshot_keeps_its_version),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
