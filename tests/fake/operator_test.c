/* SPDX-License-Identifier: Apache-2.0 */
/* The program muster-operator with a scripted API server: slow, lost, rejected, truncated or stale
 * responses. Each case ends in the same state as the case without faults, and then nothing more is
 * written. */
#include "lib/net/http_client.h"
#include "tests/ports.h"
#include "tests/program.h"
#include "tests/test.h"
#include "tests/wait.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fake/api_server.c"

#define NS     "/namespaces/default"
#define JOBS   "/apis/muster.dev/v1" NS "/distributedtrainingjobs"
#define PODS   "/api/v1" NS "/pods"
#define LEASES "/apis/coordination.k8s.io/v1" NS "/leases"
#define EVENTS "/apis/events.k8s.io/v1" NS "/events"

static char metrics_option[32] = "--metrics-port=0", probe_option[32] = "--probe-port=0";
static char config_file[] = "/tmp/operator_test.XXXXXX";

static const char job_text[] =
    "{\"apiVersion\":\"muster.dev/v1\",\"kind\":\"DistributedTrainingJob\","
    "\"metadata\":{\"name\":\"j\",\"generation\":1},\"spec\":{\"program\":{\"command\":[\"x\"]},"
    "\"tasks\":{\"ps\":{\"replicas\":2},\"worker\":{\"replicas\":2}}}}";

static const char succeeded_status[] =
    "{\"status\":{\"phase\":\"Succeeded\",\"containerStatuses\":[{\"name\":\"muster\",\"state\":{"
    "\"terminated\":{\"exitCode\":0}}}]}}";

struct world {
	struct api_server *server;
	pid_t operator;
};

static pid_t start_operator(struct api_server *s, const char *leader)
{
	FILE *f = fopen(config_file, "w");
	pid_t pid;

	fprintf(f,
		"current-context: t\ncontexts: [{name: t, context: {cluster: t, user: t}}]\n"
		"clusters: [{name: t, cluster: {server: 'http://127.0.0.1:%d'}}]\n"
		"users: [{name: t, user: {token: secret}}]\n",
		api_server_port(s));
	fclose(f);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves no process behind */
		if (!getenv("OPERATOR_TEST_LOG") && !freopen("/dev/null", "w", stderr))
			_exit(126);
		execl(program, program, "--kubeconfig", config_file, leader, metrics_option,
		      probe_option, "--progress-seconds=0", NULL);
		_exit(127);
	}
	return pid;
}

static int stop_operator(pid_t pid)
{
	int status = -1;

	kill(pid, SIGTERM);
	if (BECOMES_TRUE(waitpid(pid, &status, WNOHANG) == pid))
		return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -1;
}

static struct world start_world(void)
{
	struct world w = {.server = api_server_start(0)};

	w.operator= start_operator(w.server, "--leader-elect=false");
	return w;
}

static void stop_world(struct world *w)
{
	assert_int_equal(stop_operator(w->operator), 0);
	api_server_stop(w->server);
}

/* ---- the kubelet ---- */

static void run_pod(void *arg, const cJSON *pod)
{
	const char *phase = api_text(pod, "status", "phase");

	if (!phase)
		api_server_patch(arg, PODS, api_text(pod, "metadata", "name"),
				 "{\"status\":{\"phase\":\"Running\",\"podIP\":\"127.0.0.9\","
				 "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
}

static bool phase_is(struct api_server *s, const char *name, const char *phase)
{
	cJSON *job = api_server_get(s, JOBS, name);
	const char *is = api_text(job, "status", "phase");
	bool same = is && strcmp(is, phase) == 0;

	cJSON_Delete(job);
	return same;
}

static bool run_new_pods(struct api_server *s, const char *phase)
{
	if (phase_is(s, "j", phase))
		return true;
	api_server_each(s, PODS, run_pod, s);
	return false;
}

/* Runs new pods until the job has this phase. */
static void run_pods_until(struct api_server *s, const char *phase)
{
	if (!BECOMES_TRUE(run_new_pods(s, phase)))
		fail_msg("the job never was %s", phase);
}

static void expect_running(struct api_server *s)
{
	run_pods_until(s, "Running");
	assert_int_equal(api_server_count(s, PODS), 4);
	assert_int_equal(api_server_count(s, "/api/v1" NS "/services"), 1);
}

static int count_writes(struct api_server *s)
{
	return api_server_seen(s, "POST ") + api_server_seen(s, "PATCH ") +
	       api_server_seen(s, "PUT ") + api_server_seen(s, "DELETE ");
}

static bool no_writes_for_a_second(struct api_server *s)
{
	int before = count_writes(s);

	wait_ms(1000);
	return count_writes(s) == before;
}

/* Expects the operator to finish its writes soon, and then to write nothing. */
static void expect_quiet(struct api_server *s)
{
	WAIT_UNTIL(no_writes_for_a_second(s));
}

static void wait_for_watches(struct api_server *s)
{
	WAIT_UNTIL(api_server_seen(s, "jobs?watch") && api_server_seen(s, "pods?watch"));
}

/* ---- cases ---- */

static void run_without_faults(struct world w)
{
	api_server_put(w.server, JOBS, job_text);
	expect_running(w.server);
	expect_quiet(w.server);
	printf("    writes until Running: %d\n", count_writes(w.server));
	assert_in_range(count_writes(w.server), 1,
			14); /* maximum number of writes for a job of 6 pods */
	/* the ps tasks stay while a worker is running */
	api_server_patch(w.server, PODS, "j-worker-1", succeeded_status);
	api_server_patch(w.server, PODS, "j-worker-0", succeeded_status);
	run_pods_until(w.server, "Succeeded");
	expect_quiet(w.server);
	assert_int_equal(api_server_seen(w.server, "DELETE " PODS "/j-ps-"), 2);
}

static void job__without_faults__runs_and_succeeds(void **state)
{
	struct world w = start_world();

	run_without_faults(w);
	assert_true(api_server_seen(w.server, "/pods?limit=250&labelSelector=muster.dev/job"));
	stop_world(&w);
}

static void first_status__has_the_number_of_restarts(void **state)
{
	struct world w = start_world();
	const cJSON *restarts;
	cJSON *job;

	api_server_put(w.server, JOBS, job_text);
	WAIT_UNTIL(run_new_pods(w.server, "Running"));
	job = api_server_get(w.server, JOBS, "j");
	restarts = cJSON_GetObjectItem(cJSON_GetObjectItem(job, "status"), "restarts");
	assert_true(cJSON_IsNumber(restarts) && restarts->valueint == 0);
	cJSON_Delete(job);
	stop_world(&w);
}

/* The stored job may be newer than the watch: another operator may have written to it. */
static void job__is_read_once_before_the_first_write(void **state)
{
	struct world w = start_world();

	api_server_put(w.server, JOBS, job_text);
	expect_running(w.server);
	assert_int_equal(api_server_seen(w.server, "GET " JOBS "/j"), 1);
	stop_world(&w);
}

static void lists__in_pages__are_complete(void **state)
{
	struct world w = {.server = api_server_start(0)};
	char text[1024];

	api_server_page(w.server, 2);
	for (int i = 0; i < 7; i++) {
		snprintf(text, sizeof(text),
			 "{\"apiVersion\":\"muster.dev/v1\",\"kind\":\"DistributedTrainingJob\","
			 "\"metadata\":{\"name\":\"j%d\"},\"spec\":{\"tasks\":{\"ps\":{}}}}",
			 i);
		api_server_put(w.server, JOBS, text);
	}
	w.operator= start_operator(w.server, "--leader-elect=false");
	WAIT_UNTIL(api_server_count(w.server, PODS) >= 7);
	assert_int_equal(api_server_count(w.server, PODS), 7);
	stop_world(&w);
}

struct fault {
	const char *what, *match;
	enum api_fault fault;
	int status, seconds, times;
};

static void job__with_faults__ends_as_without(void **state)
{
	static const struct fault cases[] = {
	    {"creates fail with 500", "POST " PODS, API_STATUS, 500, 0, 3},
	    {"creates are throttled", "POST " PODS, API_STATUS, 429, 1, 2},
	    {"creates meet 503 with Retry-After", "POST " PODS, API_STATUS, 503, 1, 1},
	    {"the answer to a create is lost", "POST " PODS, API_LOSE_ANSWER, 0, 0, 2},
	    {"the answer to the service is lost", "POST /api/v1" NS "/services", API_LOSE_ANSWER, 0,
	     0, 1},
	    {"connections close without an answer", "POST ", API_HANG_UP, 0, 0, 3},
	    {"status conflicts", "PATCH " JOBS, API_STATUS, 409, 0, 2},
	    {"status writes fail", "PATCH " JOBS, API_STATUS, 504, 0, 2},
	    {"events are forbidden", "POST " EVENTS, API_STATUS, 403, 0, 100},
	    {"a watch of pods is cut in an event", "pods?watch", API_CUT, 0, 0, 1},
	    {"a watch of jobs says 410", "jobs?watch", API_GONE, 0, 0, 1},
	    {"a watch of pods says 410", "pods?watch", API_GONE, 0, 0, 2},
	    {"lists fail at first", "GET /api/v1/pods?limit", API_STATUS, 500, 0, 1},
	    {"nodes may not be listed", "GET /api/v1/nodes", API_STATUS, 403, 0, 1000},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		const struct fault *d = &cases[i];
		struct world w = {.server = api_server_start(0)};

		printf("    %s\n", d->what);
		api_server_fail(w.server, d->match, d->fault, d->status, d->seconds, d->times);
		w.operator= start_operator(w.server, "--leader-elect=false");
		wait_for_watches(w.server);
		api_server_put(w.server, JOBS, job_text);
		expect_running(w.server);
		expect_quiet(w.server);
		stop_world(&w);
	}
}

static void watch__whose_history_is_gone__lists_again(void **state)
{
	struct world w = start_world();

	api_server_put(w.server, JOBS, job_text);
	expect_running(w.server);
	/* a deletion without a watch event */
	api_server_fail(w.server, "pods?watch", API_SILENT_DELETE, 0, 0, 1);
	api_server_delete(w.server, PODS, "j-worker-1");
	wait_ms(200);
	assert_int_equal(api_server_count(w.server, PODS), 3);
	api_server_compact(w.server);
	WAIT_UNTIL(api_server_count(w.server, PODS) >= 4);
	assert_int_equal(api_server_count(w.server, PODS), 4);
	stop_world(&w);
}

static void operator__whose_server_goes_down__waits_and_continues(void **state)
{
	struct world w = start_world();

	wait_for_watches(w.server);
	api_server_down(w.server, true);
	wait_ms(1200);
	api_server_put(w.server, JOBS, job_text);
	api_server_down(w.server, false);
	expect_running(w.server);
	expect_quiet(w.server);
	stop_world(&w);
}

static void operator__killed_at_any_time__does_nothing_twice(void **state)
{
	struct api_server *s = api_server_start(0);
	pid_t pid;

	api_server_put(s, JOBS, job_text);
	for (int ms = 20; ms < 400; ms += 35) {
		pid = start_operator(s, "--leader-elect=false");
		api_server_each(s, PODS, run_pod, s);
		wait_ms(ms);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	pid = start_operator(s, "--leader-elect=false");
	expect_running(s);
	expect_quiet(s);
	assert_int_equal(stop_operator(pid), 0);
	api_server_stop(s);
}

static void leader__that_is_stopped__releases_the_lease(void **state)
{
	struct api_server *s = api_server_start(0);
	pid_t first = start_operator(s, "--leader-elect=true"), second;

	WAIT_UNTIL(api_server_count(s, LEASES));
	second = start_operator(s, "--leader-elect=true");
	wait_ms(500);
	assert_int_equal(stop_operator(first), 0);
	api_server_put(s, JOBS, job_text);
	expect_running(s);
	assert_int_equal(stop_operator(second), 0);
	api_server_stop(s);
}

static void operator__without_leader_election__writes_no_lease(void **state)
{
	struct world w = start_world();

	api_server_put(w.server, JOBS, job_text);
	expect_running(w.server);
	assert_int_equal(api_server_seen(w.server, LEASES), 0);
	stop_world(&w);
}

static void option__that_is_neither_true_nor_false__is_a_usage_error(void **state)
{
	static const char *const cases[][2] = {{"leader-elect", "maybe"},
					       {"leader-elect", ""},
					       {"leader-elect", "True"},
					       {"nodes", "1"}};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		const char *name = cases[i][0], *value = cases[i][1];
		MU_AUTO_FREE char *command =
		    mu_xasprintf("%s --kubeconfig=/dev/null --%s=%s 2>&1", program, name, value);
		MU_AUTO_FREE char *message = mu_xasprintf(
		    "muster-operator: --%s: '%s' is neither true nor false\n", name, value);
		FILE *output = popen(command, "r");
		char line[256] = "";

		assert_non_null(fgets(line, sizeof(line), output));
		assert_string_equal(line, message);
		assert_int_equal(pclose(output), 2 << 8);
	}
}

static void operator__that_cannot_start__ends_with_1(void **state)
{
	static const char *const servers[] = {"ftp://x", "http://[", ""};

	for (unsigned i = 0; i < MU_COUNT(servers); i++) {
		FILE *f = fopen(config_file, "w");
		int status;
		pid_t pid;

		fprintf(
		    f,
		    "current-context: t\ncontexts: [{name: t, context: {cluster: t, user: t}}]\n"
		    "clusters: [{name: t, cluster: {server: '%s'}}]\n"
		    "users: [{name: t, user: {token: secret}}]\n",
		    servers[i]);
		fclose(f);
		if ((pid = fork()) == 0) {
			if (!freopen("/dev/null", "w", stderr))
				_exit(126);
			execl(program, program, "--kubeconfig", config_file, (char *)NULL);
			_exit(127);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 1);
	}
}

/* Simulates a concurrent write to the lease, for example a renewal. */
static void leader__whose_release_conflicts__releases_the_lease(void **state)
{
	struct api_server *s = api_server_start(0);
	pid_t pid = start_operator(s, "--leader-elect=true");
	cJSON *lease;

	WAIT_UNTIL(api_server_count(s, LEASES));
	wait_for_watches(s);
	api_server_fail(s, "PUT " LEASES, API_STATUS, 409, 0, 1);
	assert_int_equal(stop_operator(pid), 0);
	lease = api_server_get(s, LEASES, "muster-operator");
	assert_string_equal(api_text(lease, "spec", "holderIdentity"), "");
	cJSON_Delete(lease);
	api_server_stop(s);
}

/* A failed or timed-out (5 s) renewal must be repeated before the lease expires. */
static void leader__whose_renewal_fails__retries_before_the_next_renewal(void **state)
{
	struct api_server *s = api_server_start(0);
	pid_t pid = start_operator(s, "--leader-elect=true");
	double failed;

	WAIT_UNTIL(api_server_count(s, LEASES));
	api_server_fail(s, "PUT " LEASES, API_STATUS, 500, 0, 1);
	WAIT_UNTIL(api_server_seen(s, "PUT " LEASES) == 1);
	failed = mu_clock();
	WAIT_UNTIL(api_server_seen(s, "PUT " LEASES) == 2);
	assert_true(mu_clock() - failed < 2.5);
	assert_int_equal(stop_operator(pid), 0);
	api_server_stop(s);
}

/* True if the response of the page contains `text`. */
static bool page_contains(int port, const char *page, const char *text)
{
	MU_AUTO_FREE char *url = mu_xasprintf("http://127.0.0.1:%d/%s", port, page);
	MU_AUTO_BUF body = {0};
	struct mu_http_client *c;
	bool found;

	assert_int_equal(mu_http_client_new(&c, NULL), 0);
	found = mu_http_fetch(c, url, NULL, NULL, 1, 1 << 20, &body, NULL) == 0 && body.len &&
		memmem(body.data, body.len, text, strlen(text));
	mu_http_client_free(c);
	return found;
}

static void operator__after_its_first_lists__is_ready_and_names_the_leader(void **state)
{
	struct api_server *s = api_server_start(0);
	int probes = free_port(), metrics = free_port();
	pid_t pid;

	api_server_fail(s, "pods?limit", API_STATUS, 500, 0, 1 << 20);
	snprintf(probe_option, sizeof(probe_option), "--probe-port=%d", probes);
	snprintf(metrics_option, sizeof(metrics_option), "--metrics-port=%d", metrics);
	pid = start_operator(s, "--leader-elect=true");
	WAIT_UNTIL(page_contains(probes, "healthz", "ok"));
	WAIT_UNTIL(api_server_seen(s, "jobs?watch") && api_server_seen(s, "pods?limit") >= 2);
	assert_false(page_contains(probes, "readyz", "ok"));
	assert_false(page_contains(metrics, "metrics",
				   "leader_election_master_status{name=\"muster-operator\"} 1\n"));
	api_server_heal(s);
	WAIT_UNTIL(page_contains(probes, "readyz", "ok"));
	WAIT_UNTIL(page_contains(metrics, "metrics",
				 "leader_election_master_status{name=\"muster-operator\"} 1\n"));
	assert_int_equal(stop_operator(pid), 0);
	api_server_stop(s);
	strcpy(probe_option, "--probe-port=0");
	strcpy(metrics_option, "--metrics-port=0");
}

static void namespace__without_permission__does_not_affect_the_others(void **state)
{
	struct world w = {.server = api_server_start(0)};

	api_server_fail(w.server, "/namespaces/closed/", API_STATUS, 403, 0, 1 << 20);
	w.operator= start_operator(w.server, "--namespace=default,closed");
	api_server_put(w.server, JOBS, job_text);
	expect_running(w.server);
	stop_world(&w);
}

static void foreign_pod__is_left_alone(void **state)
{
	struct world w = {.server = api_server_start(0)};
	cJSON *pod;

	api_server_put(w.server, PODS, "{\"metadata\":{\"name\":\"j-ps-0\"}}");
	w.operator= start_operator(w.server, "--leader-elect=false");
	api_server_put(w.server, JOBS, job_text);
	WAIT_UNTIL(api_server_seen(w.server, "POST " EVENTS));
	wait_ms(500);
	pod = api_server_get(w.server, PODS, "j-ps-0");
	assert_non_null(pod);
	assert_int_equal(api_server_seen(w.server, "DELETE "), 0);
	cJSON_Delete(pod);
	stop_world(&w);
}

static bool has_object_too_large_condition(struct api_server *s)
{
	cJSON *job = api_server_get(s, JOBS, "j");
	MU_AUTO_FREE char *text = cJSON_PrintUnformatted(job);

	cJSON_Delete(job);
	return strstr(text, "ObjectTooLarge") && strstr(text, "or have fewer replicas");
}

/* The server responds with a server error, but a retry alone does not help. */
static void pod__that_etcd_rejects__is_reported_and_retried(void **state)
{
	struct world w = start_world();

	api_server_fail(w.server, "POST " PODS, API_TOO_LARGE, 0, 0, 1 << 20);
	api_server_put(w.server, JOBS, job_text);
	assert_true(BECOMES_TRUE(has_object_too_large_condition(w.server)));
	WAIT_UNTIL(api_server_seen(w.server, "POST " EVENTS));
	api_server_heal(w.server);
	expect_running(w.server);
	stop_world(&w);
}

/* Objects of other controllers whose pages are larger than the operator accepts. */
static void lists__of_large_objects__use_smaller_pages(void **state)
{
	static const char *const fills[] = {"\"%0*d\"", "[%0*d]"}; /* many bytes, many values */
	enum { SIZE = 1000000 };
	struct api_server *s = api_server_start(0);
	struct world w = {.server = s};

	for (int i = 0; i < 24; i++) {
		MU_AUTO_FREE char *text = NULL;
		MU_AUTO_FREE char *fill = mu_xasprintf(fills[i % 2], SIZE, 1);

		for (char *p = fill; i % 2 && p < fill + SIZE - 2; p += 2)
			p[2] = ',';
		text = mu_xasprintf("{\"metadata\":{\"name\":\"big%d\"},\"spec\":{\"managedBy\":"
				    "\"x/y\",\"fill\":%s}}",
				    i, fill);
		api_server_put(s, JOBS, text);
	}
	w.operator= start_operator(s, "--leader-elect=false");
	api_server_put(s, JOBS, job_text);
	expect_running(s);
	stop_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(job__without_faults__runs_and_succeeds),
	    cmocka_unit_test(first_status__has_the_number_of_restarts),
	    cmocka_unit_test(job__is_read_once_before_the_first_write),
	    cmocka_unit_test(lists__in_pages__are_complete),
	    cmocka_unit_test(job__with_faults__ends_as_without),
	    cmocka_unit_test(watch__whose_history_is_gone__lists_again),
	    cmocka_unit_test(operator__whose_server_goes_down__waits_and_continues),
	    cmocka_unit_test(operator__killed_at_any_time__does_nothing_twice),
	    cmocka_unit_test(leader__that_is_stopped__releases_the_lease),
	    cmocka_unit_test(operator__without_leader_election__writes_no_lease),
	    cmocka_unit_test(option__that_is_neither_true_nor_false__is_a_usage_error),
	    cmocka_unit_test(operator__that_cannot_start__ends_with_1),
	    cmocka_unit_test(leader__whose_release_conflicts__releases_the_lease),
	    cmocka_unit_test(leader__whose_renewal_fails__retries_before_the_next_renewal),
	    cmocka_unit_test(operator__after_its_first_lists__is_ready_and_names_the_leader),
	    cmocka_unit_test(namespace__without_permission__does_not_affect_the_others),
	    cmocka_unit_test(foreign_pod__is_left_alone),
	    cmocka_unit_test(pod__that_etcd_rejects__is_reported_and_retried),
	    cmocka_unit_test(lists__of_large_objects__use_smaller_pages),
	};
	int failed;

	if (find_program_named("muster-operator") || mkstemp(config_file) < 0)
		return 1;
	signal(SIGPIPE, SIG_IGN);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(config_file);
	return failed;
}
