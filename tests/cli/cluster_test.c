/* SPDX-License-Identifier: Apache-2.0 */
/* Output of muster top and muster explain for given objects. tests/cluster-api tests their API
 * calls. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/cluster/cluster.h"

static const double now = 1767312000; /* 2026-01-02T00:00:00Z */

static const char stuck_job[] =
    "{\"metadata\":{\"name\":\"mnist\",\"namespace\":\"team\",\"generation\":2,"
    "\"creationTimestamp\":\"2026-01-01T23:00:00Z\"},"
    "\"status\":{\"phase\":\"Pending\",\"observedGeneration\":1,\"restarts\":1,"
    "\"summary\":{\"ready\":\"1/3\"},"
    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"Unschedulable\","
    "\"message\":\"worker/0: no node has room\",\"lastTransitionTime\":\"2026-01-01T23:50:00Z\"},"
    "{\"type\":\"Created\",\"status\":\"True\",\"reason\":\"Accepted\"},"
    "{\"type\":\"Restarting\",\"status\":\"True\",\"reason\":\"TaskFailed\"}],"
    "\"tasks\":{\"ps\":{\"desired\":1,\"ready\":1,\"kernels\":\"cpu-avx2\"}},"
    "\"indexStatuses\":[{\"task\":\"worker\",\"index\":1,\"attempts\":2,\"exitCode\":137,"
    "\"reason\":\"OOMKilled\",\"node\":\"n1\",\"uncounted\":true},"
    "{\"task\":\"worker\",\"index\":2,\"attempts\":1,\"exitCode\":0,\"done\":true}]}}";
static const char pods[] =
    "{\"items\":[{\"metadata\":{\"name\":\"mnist-worker-0\"},\"status\":{\"phase\":\"Pending\","
    "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"
    "\"Unschedulable\",\"message\":\"0/5 nodes are available\"}]}},"
    "{\"metadata\":{\"name\":\"mnist-ps-0\"},\"status\":{\"phase\":\"Running\"}}]}";
static const char events[] =
    "{\"items\":[{\"type\":\"Warning\",\"reason\":\"NameTaken\",\"message\":\"taken\\u001b[2J\","
    "\"eventTime\":\"2026-01-01T23:59:00Z\",\"series\":{\"count\":4}},"
    "{\"type\":\"Warning\",\"reason\":\"Second\",\"lastTimestamp\":\"2026-01-01T23:58:00Z\"},"
    "{\"type\":\"Warning\",\"reason\":\"Third\",\"eventTime\":\"2026-01-01T23:50:00Z\"},"
    "{\"type\":\"Warning\",\"reason\":\"Fourth\",\"eventTime\":\"2026-01-01T23:49:00Z\"},"
    "{\"type\":\"Warning\",\"reason\":\"Fifth\",\"eventTime\":\"2026-01-01T23:48:00Z\"},"
    "{\"type\":\"Warning\",\"reason\":\"Sixth\",\"eventTime\":\"2026-01-01T23:47:00Z\"},"
    "{\"type\":\"Warning\",\"reason\":\"Seventh\",\"eventTime\":\"2026-01-01T23:46:00Z\"},"
    "{\"type\":\"Normal\",\"reason\":\"PodsCreated\",\"message\":\"created\"}]}";

static char *explain(const char *job, const char *pod_list, const char *event_list,
		     const char *task_list)
{
	cJSON *parts[] = {cJSON_Parse(job), pod_list ? cJSON_Parse(pod_list) : NULL,
			  event_list ? cJSON_Parse(event_list) : NULL,
			  task_list ? cJSON_Parse(task_list) : NULL};
	MU_AUTO_BUF out = {0};

	assert_non_null(parts[0]);
	explain_print(&out, parts[0], parts[1], parts[2], parts[3], now);
	for (unsigned i = 0; i < MU_COUNT(parts); i++)
		cJSON_Delete(parts[i]);
	return mu_buf_take(&out);
}

static void expect(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

static void explain__of_a_waiting_job__gives_the_reason_and_its_source(void **state)
{
	MU_AUTO_FREE char *text = explain(stuck_job, pods, events, NULL);

	expect(text, "mnist in team: Pending, created 60m ago, 1/3 tasks ready\n");
	expect(text, "operator has not processed the change yet");
	expect(text, "why         Ready (Unschedulable, 10m): worker/0: no node has room\n");
	expect(text, "why         Restarting (TaskFailed");
	expect(text, "pod         mnist-worker-0: Unschedulable: 0/5 nodes are available\n");
	expect(text, "failure     worker/1: last exit code 137 (OOMKilled) on node n1, "
		     "attempt 2, not counted against backoffLimit\n");
	expect(text, "warning     60s ago, 4 times: NameTaken: taken [2J\n");
	expect(text, "tasks       ps: 1 of 1 ready, kernels cpu-avx2\n");
	assert_true(strstr(text, "NameTaken") < strstr(text, "2m ago: Second"));
	assert_true(strstr(text, "2m ago: Second") < strstr(text, "Third"));
	expect(text, "Sixth");
	assert_null(strstr(text, "Seventh"));
	assert_null(strstr(text, "worker/2"));
	assert_null(strstr(text, "mnist-ps-0"));
	assert_null(strstr(text, "Created"));
}

static void explain__of_a_slow_job__names_stragglers_and_hot_spots(void **state)
{
	MU_AUTO_FREE char *text = explain(
	    "{\"metadata\":{\"name\":\"j\"},\"status\":{\"phase\":\"Running\",\"conditions\":[],"
	    "\"progress\":{\"step\":50,\"targetStep\":200,\"percent\":\"25%\",\"stepsPerSecond\":9."
	    "5,"
	    "\"loss\":0.5}}}",
	    NULL, NULL,
	    "{\"j-worker-0\":{\"task\":\"/job:worker/replica:0/task:0\",\"stepsPerSecond\":10},"
	    "\"j-worker-1\":{\"task\":\"/job:worker/replica:0/task:1\",\"stepsPerSecond\":3},"
	    "\"j-worker-2\":{\"task\":\"/job:worker/replica:0/task:2\",\"stepsPerSecond\":11},"
	    "\"j-ps-0\":{\"task\":\"/job:ps/replica:0/task:0\",\"resourceBytes\":900},"
	    "\"j-ps-1\":{\"task\":\"/job:ps/replica:0/task:1\",\"resourceBytes\":100}}");

	expect(text, "progress    step 50/200 (25%)  9.5 steps/s  loss 0.5\n");
	expect(text, "straggler   j-worker-1: 3.0 steps/s, median worker 10.0\n");
	expect(text, "hot spot    j-ps-0 holds 90 % of the parameters' bytes");
	assert_null(strstr(text, "j-worker-0"));
	assert_null(strstr(text, "j-ps-1"));
}

static void explain__of_busy_ps_or_workers__suggests_other_numbers(void **state)
{
	static const struct {
		double ps, worker;
		const char *output; /* NULL: no message */
	} cases[] = {
	    {0.93, 0.31, "CPU use of ps tasks 93 %, of workers 31 %: more ps tasks, or"},
	    {0.10, 0.95, "this number of ps tasks (1) can serve about 16 workers\n"},
	    {0.70, 0.70, NULL},
	    {0.93, 0.90, NULL},
	    {0.10, 0.10, NULL},
	    {0, 0.95, NULL}, /* older tasks do not report it */
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *tasks =
		    mu_xasprintf("{\"j-worker-0\":{\"task\":\"/job:worker/task:0\",\"busy\":%.2f},"
				 "\"j-worker-1\":{\"task\":\"/job:worker/task:1\",\"busy\":%.2f},"
				 "\"j-ps-0\":{\"task\":\"/job:ps/task:0\",\"busy\":%.2f}}",
				 cases[i].worker, cases[i].worker, cases[i].ps);
		MU_AUTO_FREE char *text =
		    explain("{\"metadata\":{\"name\":\"j\"}}", NULL, NULL, tasks);

		if (cases[i].output)
			expect(text, cases[i].output);
		else
			assert_null(strstr(text, "balance"));
	}
}

static void explain__of_an_unprocessed_job__reports_it(void **state)
{
	MU_AUTO_FREE char *text = explain("{\"metadata\":{\"name\":\"j\"}}", NULL, NULL, NULL);

	expect(text, "j in ?: New");
	expect(text, "the operator has not processed the job");
}

static void explain__of_invalid_objects__prints_the_valid_fields(void **state)
{
	static const char *const invalid_jobs[] = {
	    "[]",
	    "{\"status\":7}",
	    "{\"status\":{\"conditions\":[3,{\"type\":[]}],\"indexStatuses\":{\"a\":1},\"tasks\":["
	    "1]}}",
	    "{\"metadata\":[],\"status\":{\"progress\":{\"step\":\"x\"},\"phase\":{}}}",
	};

	for (unsigned i = 0; i < MU_COUNT(invalid_jobs); i++) {
		MU_AUTO_FREE char *text = explain(
		    invalid_jobs[i], "{\"items\":[1,{\"status\":[]}]}", "{\"items\":{}}", "[1,2]");
		expect(text, " in ?: ");
	}
}

static void top__lists_the_fastest_job_first(void **state)
{
	cJSON *jobs = cJSON_Parse(
	    "[{\"metadata\":{\"name\":\"done\",\"namespace\":\"a\"},\"status\":{\"phase\":"
	    "\"Succeeded\"}},"
	    "{\"metadata\":{\"name\":\"slow\",\"namespace\":\"b\"},\"status\":{\"phase\":"
	    "\"Running\","
	    "\"progress\":{\"examplesPerSecond\":5}}},"
	    "{\"metadata\":{\"name\":\"fast\",\"namespace\":\"a\"},\"status\":{\"phase\":"
	    "\"Running\","
	    "\"restarts\":2,\"summary\":{\"ready\":\"3/3\",\"kernels\":\"cpu-avx2\"},"
	    "\"progress\":{\"step\":1234567,\"examplesPerSecond\":500,\"stepsPerSecond\":12.25}}}"
	    "]");
	MU_AUTO_BUF out = {0};
	const char *fast, *slow, *done;

	top_print(&out, jobs, true, now);
	fast = strstr(out.data, "fast");
	slow = strstr(out.data, "slow");
	done = strstr(out.data, "done");
	assert_true(fast && slow && done && fast < slow && slow < done);
	expect(out.data, "NAMESPACE  NAME  STATE");
	expect(out.data, "3/3  1234567");
	mu_buf_clear(&out);
	top_print(&out, jobs, false, now);
	assert_null(strstr(out.data, "NAMESPACE"));
	cJSON_Delete(jobs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(explain__of_a_waiting_job__gives_the_reason_and_its_source),
	    cmocka_unit_test(explain__of_a_slow_job__names_stragglers_and_hot_spots),
	    cmocka_unit_test(explain__of_busy_ps_or_workers__suggests_other_numbers),
	    cmocka_unit_test(explain__of_an_unprocessed_job__reports_it),
	    cmocka_unit_test(explain__of_invalid_objects__prints_the_valid_fields),
	    cmocka_unit_test(top__lists_the_fastest_job_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
