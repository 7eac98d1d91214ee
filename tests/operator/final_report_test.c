/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer's final report, from the pod's termination message to the status of the job. */
#include "tests/operator/controller_fixture.h"

/* Changes the job to one of the built-in trainer. */
static void set_trainer(struct controller_fixture *s, int steps)
{
	cJSON *spec = cJSON_GetObjectItem(s->job, "spec");
	MU_AUTO_FREE char *text =
	    mu_xasprintf("{\"train\":{\"steps\":%d,\"dataset\":{\"path\":\"x.csv\"}}}", steps);

	cJSON_ReplaceItemInObject(spec, "program", cJSON_Parse(text));
	cJSON_AddItemToObject(spec, "security", cJSON_Parse("{\"mtls\":false}"));
	cJSON_ReplaceItemInObject(cJSON_GetObjectItem(s->job, "metadata"), "resourceVersion",
				  cJSON_CreateString("8"));
	receive_object(&s->controller.store, KIND_JOB, s->job);
}

/* The target is step 200000. */
static void training__that_ended_early__reports_its_step_and_the_reason(void **state)
{
	static const struct {
		const char *message, *step, *why;
	} rows[] = {
	    {"{\\\"step\\\":1400,\\\"targetStep\\\":200000,\\\"loss\\\":0.5,\\\"reason\\\":"
	     "\\\"ValidationStopped\\\"}",
	     "\"progress\":{\"step\":1400,\"targetStep\":200000,\"loss\":0.5,\"reason\":"
	     "\"ValidationStopped\",\"percent\":\"0%\"}",
	     "\"reason\":\"ValidationStopped\",\"message\":\"validation stopped the training at "
	     "step 1400 of 200000\""},
	    {"{\\\"step\\\":103,\\\"reason\\\":\\\"FinishRequested\\\"}", "\"step\":103,",
	     "\"message\":\"a finish request stopped the training at step 103\""},
	    {"", NULL, "\"reason\":\"ChiefFinished\",\"message\":\"the chief finished\""},
	};

	for (unsigned i = 0; i < MU_COUNT(rows); i++) {
		MU_AUTO_FREE char *worker =
		    mu_xasprintf(POD("worker", "w1",
				     "\"phase\":\"Succeeded\",\"containerStatuses\":[{\"state\":{"
				     "\"terminated\":{"
				     "\"exitCode\":0,\"message\":\"%s\"}}}]"),
				 rows[i].message);
		const char *const pods[] = {POD("ps", "p1", RUNS), worker, NULL};
		struct controller_fixture *s = fixture_new("", RUNNING, pods);
		int at;

		set_trainer(s, 200000);
		for (int n = 0; n < 3; n++)
			run_reconcile(s);
		at = call_of(s, "PATCH", JOB_PATH "/status");
		assert_true(at >= 0);
		assert_non_null(strstr(s->calls[at].body, "\"phase\":\"Succeeded\""));
		assert_non_null(strstr(s->calls[at].body, rows[i].why));
		if (rows[i].step)
			assert_non_null(strstr(s->calls[at].body, rows[i].step));
		else
			assert_null(strstr(s->calls[at].body, "\"progress\""));
		fixture_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(training__that_ended_early__reports_its_step_and_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
