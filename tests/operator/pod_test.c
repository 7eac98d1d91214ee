/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of pods and nodes: phase, exit code, reason and message. */
#include "tests/test.h"

#include <string.h>

#include "operator/api/kinds.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"

static struct pod *decode(const char *text)
{
	cJSON *json = cJSON_Parse(text);
	struct pod *p = (struct pod *)pod_decode(KIND_POD, json, NULL);

	assert_non_null(p);
	cJSON_Delete(json);
	return p;
}

/* A pod status in which the second init container has this state. */
#define INITS(state)                                                                               \
	"{\"phase\":\"Pending\",\"initContainerStatuses\":[{\"state\":{\"terminated\":{"           \
	"\"exitCode\":0}}},{\"image\":\"i:1\",\"state\":{" state "}}],\"containerStatuses\":[{"    \
	"\"state\":{\"waiting\":{\"reason\":\"PodInitializing\"}}}]}"

static const struct {
	const char *status;
	enum pod_phase phase;
	int exit_code;
	bool ready, free;
	const char *reason;
} decoded_pods[] = {
    {"{}", POD_UNKNOWN, -1, false, false, NULL},
    {"{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}",
     POD_RUNNING, -1, true, false, NULL},
    {"{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"terminated\":{"
     "\"exitCode\":137,\"reason\":\"OOMKilled\"}}}]}",
     POD_FAILED, 137, false, false, "OOMKilled"},
    {"{\"phase\":\"Failed\",\"reason\":\"Evicted\"}", POD_FAILED, -1, false, true, "Evicted"},
    {"{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
     "\"True\",\"reason\":\"PreemptionByScheduler\"}]}",
     POD_FAILED, -1, false, true, NULL},
    {"{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
     "\"True\",\"reason\":\"MovedByAnAutoscaler\"}]}",
     POD_FAILED, -1, false, true, NULL},
    {"{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
     "\"False\",\"reason\":\"EvictionByEvictionAPI\"}]}",
     POD_FAILED, -1, false, false, NULL},
    {"{\"phase\":\"Pending\",\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":"
     "\"ImagePullBackOff\"}}}]}",
     POD_PENDING, -1, false, false, "ImagePullBackOff"},
    {"{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
     "\"False\",\"reason\":\"Unschedulable\"}]}",
     POD_PENDING, -1, false, false, "Unschedulable"},
    {"{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
     "\"False\",\"reason\":\"Unschedulable\",\"message\":\"0/1 nodes are available: "
     "persistentvolumeclaim \\\"c\\\" not found.\"}]}",
     POD_PENDING, -1, false, false, POD_CLAIM_MISSING},
    {"{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"terminated\":{"
     "\"exitCode\":128,\"reason\":\"StartError\",\"message\":\"failed to create containerd "
     "task: exec: \\\"nosuch\\\": executable file not found in $PATH: unknown\"}}}]}",
     POD_FAILED, 128, false, false, POD_NO_EXECUTABLE},
    {"{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"terminated\":{"
     "\"exitCode\":128,\"reason\":\"StartError\",\"message\":\"cgroup is gone\"}}}]}",
     POD_FAILED, 128, false, false, "StartError"},
    {"{\"phase\":\"Failed\",\"reason\":\"OutOfcpu\"}", POD_FAILED, -1, false, true, "OutOfcpu"},
    {"{\"phase\":\"Failed\",\"reason\":\"TopologyAffinityError\"}", POD_FAILED, -1, false, true,
     "TopologyAffinityError"},
    {INITS("\"waiting\":{\"reason\":\"ErrImagePull\"}"), POD_PENDING, -1, false, false,
     "ErrImagePull"},
    {INITS("\"terminated\":{\"exitCode\":1,\"reason\":\"Error\"}"), POD_PENDING, -1, false, false,
     POD_INIT_FAILED},
    {INITS("\"terminated\":{\"exitCode\":0,\"reason\":\"Completed\"}"), POD_PENDING, -1, false,
     false, NULL},
    {"null", POD_PENDING, -1, false, false, NULL},
    {"{\"phase\":7,\"conditions\":3,\"containerStatuses\":{}}", POD_UNKNOWN, -1, false, false,
     NULL},
};

static void pods__are_decoded_to_phase_exit_code_and_reason(void **state)
{
	static const char head[] = "{\"metadata\":{\"name\":\"j-w-3\",\"uid\":\"u\",\"labels\":{"
				   "\"muster.dev/task\":\"w\",\"muster.dev/index\":\"3\"}},"
				   "\"status\":%s}";
	for (unsigned i = 0; i < MU_COUNT(decoded_pods); i++) {
		MU_AUTO_FREE char *text = mu_xasprintf(head, decoded_pods[i].status);
		struct pod *p = decode(text);

		assert_int_equal(p->observed.index, 3);
		assert_int_equal(p->observed.phase, decoded_pods[i].phase);
		assert_int_equal(p->observed.exit_code, decoded_pods[i].exit_code);
		assert_int_equal(p->observed.ready, decoded_pods[i].ready);
		assert_int_equal(p->observed.disrupted, decoded_pods[i].free);
		if (decoded_pods[i].reason)
			assert_string_equal(p->observed.reason, decoded_pods[i].reason);
		else
			assert_null(p->observed.reason);
		if (decoded_pods[i].reason &&
		    strcmp(decoded_pods[i].reason, POD_CLAIM_MISSING) == 0)
			assert_string_equal(p->observed.detail, "c");
		else if (strstr(decoded_pods[i].status, "i:1") && decoded_pods[i].reason)
			assert_string_equal(p->observed.detail, "i:1");
		else
			assert_null(p->observed.detail);
		object_unref(p);
	}
}

/* The kubelet sorts container statuses by name, and the pod runs until its sidecar ends. */
static void pod__with_a_sidecar__has_the_state_of_its_main_container(void **state)
{
	static const struct {
		const char *main, *sidecar; /* container states */
		enum pod_phase phase;       /* expected; the phase in the pod status is Running */
		int exit_code;
		bool sidecar_runs;
	} cases[] = {
	    {"\"running\":{}", "\"running\":{}", POD_RUNNING, -1, false},
	    {"\"running\":{}", "\"terminated\":{\"exitCode\":1}", POD_RUNNING, -1, false},
	    {"\"terminated\":{\"exitCode\":0}", "\"running\":{}", POD_SUCCEEDED, 0, true},
	    {"\"terminated\":{\"exitCode\":3}", "\"running\":{}", POD_FAILED, 3, true},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *text = mu_xasprintf(
		    "{\"metadata\":{\"name\":\"j-w-3\",\"uid\":\"u\",\"labels\":{"
		    "\"muster.dev/task\":\"w\",\"muster.dev/"
		    "index\":\"3\"}},\"spec\":{\"containers\":"
		    "[{\"name\":\"muster\"},{\"name\":\"istio-proxy\"}]},\"status\":{\"phase\":"
		    "\"Running\",\"containerStatuses\":[{\"name\":\"istio-proxy\",\"state\":{%s}},"
		    "{\"name\":\"muster\",\"state\":{%s}}]}}",
		    cases[i].sidecar, cases[i].main);
		struct pod *p = decode(text);

		assert_int_equal(p->observed.phase, cases[i].phase);
		assert_int_equal(p->observed.exit_code, cases[i].exit_code);
		assert_int_equal(p->observed.sidecar_runs, cases[i].sidecar_runs);
		object_unref(p);
	}
}

static void message__of_a_failed_pod__is_its_last_line_of_output(void **state)
{
	static const char text[] =
	    "{\"metadata\":{\"name\":\"j-w-3\",\"uid\":\"u\",\"labels\":{\"muster.dev/task\":\"w\","
	    "\"muster.dev/index\":\"3\"}},\"status\":{\"containerStatuses\":[{\"state\":{"
	    "\"terminated\":{\"exitCode\":%d,\"message\":\"%s\"}}}]}}";
	static const struct {
		int exit_code;
		const char *message, *want_message;
	} cases[] = {
	    {3, "starting\\nmuster-task: no CUDA here\\n", "muster-task: no CUDA here"},
	    {1, "one line", "one line"},
	    {1, "ValueError: no data\\n12:00:00.123Z info  muster-task: task: exiting\\n",
	     "ValueError: no data"},
	    {1, "12:00:00.122Z info  muster-task: a\\n12:00:00.123Z info  muster-task: b\\n", NULL},
	    {1, "\\n\\n", NULL},
	    {1, "", NULL},
	    {1, "{\\\"step\\\": 7}", NULL}, /* the trainer's progress */
	    {0, "done", NULL},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *json = mu_xasprintf(text, cases[i].exit_code, cases[i].message);
		struct pod *p = decode(json);

		if (cases[i].want_message)
			assert_string_equal(p->observed.message, cases[i].want_message);
		else
			assert_null(p->observed.message);
		object_unref(p);
	}
}

static void pod__that_was_deleted__was_killed_unless_it_had_ended_before(void **state)
{
	/* deleted at 12:00:00 with a grace period of 30 s */
	static const char text[] =
	    "{\"metadata\":{\"name\":\"j-w-3\",\"uid\":\"u\",\"labels\":{\"muster.dev/task\":\"w\","
	    "\"muster.dev/index\":\"3\"},\"deletionTimestamp\":\"2026-01-01T12:00:30Z\","
	    "\"deletionGracePeriodSeconds\":30},\"status\":{\"phase\":\"Failed\"%s}}";
	static const struct {
		const char *more;
		bool ended_by_deletion;
	} cases[] = {
	    {"", true}, /* the container never started */
	    {",\"containerStatuses\":[{\"state\":{\"terminated\":{\"exitCode\":137,\"reason\":"
	     "\"ContainerStatusUnknown\"}}}]",
	     true},
	    {",\"containerStatuses\":[{\"state\":{\"terminated\":{\"exitCode\":143,\"finishedAt\":"
	     "\"2026-01-01T12:00:00Z\"}}}]",
	     true},
	    {",\"containerStatuses\":[{\"state\":{\"terminated\":{\"exitCode\":3,\"finishedAt\":"
	     "\"2026-01-01T11:59:59Z\"}}}]",
	     false},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *pod = mu_xasprintf(text, cases[i].more);
		struct pod *p = decode(pod);

		assert_int_equal(p->observed.ended_by_deletion, cases[i].ended_by_deletion);
		object_unref(p);
	}
}

/* Kubernetes sets Ready to Unknown when the heartbeats stop.  A kubelet that reports False is
 * alive. */
static void node__is_lost_only_without_heartbeats(void **state)
{
	static const struct {
		const char *ready;
		bool lost, schedulable;
	} cases[] = {{"True", false, true}, {"False", false, false}, {"Unknown", true, false}};

	for (size_t i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *text =
		    mu_xasprintf("{\"metadata\":{\"name\":\"n\"},\"status\":{\"conditions\":[{"
				 "\"type\":\"Ready\",\"status\":\"%s\"}]}}",
				 cases[i].ready);
		cJSON *json = cJSON_Parse(text);
		struct node *n = (struct node *)node_decode(KIND_NODE, json, NULL);

		assert_int_equal(n->info.lost, cases[i].lost);
		assert_int_equal(n->info.schedulable, cases[i].schedulable);
		object_unref(n);
		cJSON_Delete(json);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(node__is_lost_only_without_heartbeats),
	    cmocka_unit_test(pods__are_decoded_to_phase_exit_code_and_reason),
	    cmocka_unit_test(pod__with_a_sidecar__has_the_state_of_its_main_container),
	    cmocka_unit_test(message__of_a_failed_pod__is_its_last_line_of_output),
	    cmocka_unit_test(pod__that_was_deleted__was_killed_unless_it_had_ended_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
