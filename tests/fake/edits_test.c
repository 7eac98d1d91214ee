/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of a job's spec.  A spec that the schema accepts but that cannot work (here an invalid pod
 * template): effects on a new job, a running job and an ended job.  A synchronous job that is
 * scaled down. */
#include "tests/fake/one_job.h"

#define WRONG "{\"spec\":{\"containers\":[\"no map\"]}}"
#define RIGHT "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"

static void edit_template(struct sim *s, const char *text)
{
	edit(s, "spec.tasks.worker", "template", cJSON_Parse(text));
}

static const char *status_text(struct sim *s, const char *path)
{
	MU_AUTO_FREE char *full_path = mu_xasprintf("status.%s", path);

	return sim_text(sim_find(s, JOB_PATH)->json, full_path);
}

/* Expects the condition with this status; its message describes the problem of the current spec. */
static void expect_invalid_spec_condition(struct sim *s, const char *type, const char *status)
{
	const cJSON *c = condition_of(s, type), *job = sim_find(s, JOB_PATH)->json;

	assert_non_null(c);
	assert_string_equal(sim_text(c, "status"), status);
	assert_string_equal(sim_text(c, "reason"), "InvalidSpec");
	assert_non_null(strstr(sim_text(c, "message"), "containers"));
	assert_int_equal(sim_at(c, "observedGeneration")->valueint,
			 sim_at(job, "metadata.generation")->valueint);
	assert_int_equal(sim_at(job, "status.observedGeneration")->valueint,
			 sim_at(job, "metadata.generation")->valueint);
	assert_string_equal(status_text(s, "summary.message"), sim_text(c, "message"));
}

static int count_pods(const struct sim *s)
{
	int n = 0;

	for (int i = 0; i < s->n_objects; i++)
		n += s->objects[i].kind == SIM_POD && !strstr(s->objects[i].path, "/foreign");
	return n;
}

static void job__with_a_spec_that_cannot_work__starts_when_it_is_corrected(void **state)
{
	struct sim_script script = {.end = never_ends};
	struct sim *s = start_job(&script, COMMAND, "\"suspend\":true", 1, false);

	edit_template(s, WRONG);
	edit(s, "spec.run", "suspend", cJSON_CreateFalse());
	sim_settle(s, 60);
	assert_string_equal(status_text(s, "phase"), "Failed");
	expect_invalid_spec_condition(s, "Failed", "True");
	assert_int_equal(count_pods(s), 0);
	edit_template(s, RIGHT);
	sim_settle(s, 60);
	assert_string_equal(status_text(s, "phase"), "Running");
	assert_string_equal(status_text(s, "summary.message"), "");
	assert_int_equal(count_pods(s), 3);
	stop(s, &script);
}

static void job__that_runs__continues_while_its_new_spec_cannot_work(void **state)
{
	struct sim_script script = {.end = never_ends};
	struct sim *s = start_job(&script, COMMAND, "", 1, false);
	int writes;

	sim_settle(s, 60);
	assert_string_equal(status_text(s, "phase"), "Running");
	edit_template(s, WRONG);
	sim_settle(s, 60);
	assert_string_equal(status_text(s, "phase"), "Running");
	assert_null(condition_of(s, "Failed"));
	expect_invalid_spec_condition(s, "Ready", "False");
	assert_int_equal(count_pods(s), 3);
	writes = s->writes;
	sim_settle(s, 600);
	assert_int_equal(s->writes, writes); /* reported once */
	edit_template(s, RIGHT);
	sim_settle(s, 60);
	assert_string_equal(status_text(s, "phase"), "Running");
	assert_string_equal(sim_text(condition_of(s, "Ready"), "status"), "True");
	assert_string_equal(status_text(s, "summary.message"), "");
	assert_int_equal(count_pods(s), 3);
	stop(s, &script);
}

static int ends_well(const struct sim_script *s, const char *task, int index, int n)
{
	return strcmp(task, "ps") == 0 ? -1 : 0;
}

static void job__that_has_ended__keeps_its_state(void **state)
{
	struct sim_script script = {.end = ends_well, .work = 20};
	struct sim *s = start_job(&script, COMMAND, "", 1, false);
	int writes;

	sim_settle(s, 120);
	assert_string_equal(status_text(s, "phase"), "Succeeded");
	writes = s->writes;
	edit_template(s, WRONG);
	sim_settle(s, 60);
	assert_int_equal(s->writes, writes);
	assert_string_equal(status_text(s, "phase"), "Succeeded");
	assert_null(condition_of(s, "Failed"));
	stop(s, &script);
}

/* The status must record each attempt, although the plan that creates a pod writes no status. */
static void departure__that_fails_three_times__is_a_condition(void **state)
{
	struct sim_script script = {
	    .end = never_ends,
	    .in_step = true,
	    .departure_exit_code = 1,
	    .user_actions = {{USER_SCALE, 60, 1}, {USER_FORCE_DELETE, 60, 1}}};
	struct sim *s = start_job(
	    &script,
	    "{\"train\":{\"model\":\"mlp\",\"dataset\":{\"format\":\"csv\",\"path\":\"x\"}}}", "",
	    1, false);

	edit(s, "spec", "mode", cJSON_CreateString("sync"));
	sim_settle(s, 600);
	assert_string_equal(sim_text(condition_of(s, "WorkersAwaited"), "status"), "True");
	assert_non_null(strstr(sim_text(condition_of(s, "WorkersAwaited"), "message"),
			       "3 departure pods failed"));
	stop(s, &script);
}

/* The second edit arrives before the operator stores the status with the epoch of the first. */
static void two_edits__at_once__leave_no_task_with_the_first_members(void **state)
{
	struct sim_script script = {.end = never_ends};
	struct sim *s = start_job(&script, COMMAND, "", 1, false);
	int epoch, checked = 0;

	sim_settle(s, 60);
	edit(s, "spec.tasks.worker", "replicas", cJSON_CreateNumber(4));
	sim_settle(s, 0.02);
	assert_int_equal(count_pods(s), 5);
	edit(s, "spec.tasks.worker", "replicas", cJSON_CreateNumber(6));
	sim_settle(s, 120);
	epoch = sim_at(sim_find(s, JOB_PATH)->json, "status.cluster.epoch")->valueint;
	for (int i = 0; i < s->n_objects; i++) {
		const struct sim_object *o = &s->objects[i];
		const cJSON *label = cJSON_GetObjectItemCaseSensitive(
		    sim_at(o->json, "metadata.labels"), LABEL_EPOCH);
		MU_AUTO_FREE char *text = cJSON_PrintUnformatted(o->json);

		if (o->kind != SIM_POD || strstr(o->path, "/foreign"))
			continue;
		if (atoi(cJSON_GetStringValue(label)) == epoch)
			assert_non_null(strstr(text, "j-worker-5."));
		else
			assert_int_equal(o->acked_epoch, epoch);
		checked++;
	}
	assert_int_equal(checked, 7);
	stop(s, &script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(job__with_a_spec_that_cannot_work__starts_when_it_is_corrected),
	    cmocka_unit_test(job__that_runs__continues_while_its_new_spec_cannot_work),
	    cmocka_unit_test(job__that_has_ended__keeps_its_state),
	    cmocka_unit_test(departure__that_fails_three_times__is_a_condition),
	    cmocka_unit_test(two_edits__at_once__leave_no_task_with_the_first_members),
	};

	mu_log_set_level(getenv("SIM_TRACE") ? MU_DEBUG : MU_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
