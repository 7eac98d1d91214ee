/* SPDX-License-Identifier: Apache-2.0 */
/* muster submit, logs, wait and explain against a scripted API server. */
#include <pty.h>

#include "tests/cli/job.h"
#include "tests/fake/api_server.c"

#define JOBS "/apis/muster.dev/v1/namespaces/team/distributedtrainingjobs"
#define PODS "/api/v1/namespaces/team/pods"

static struct api_server *server;

static int start_server(void **state)
{
	char path[128];
	FILE *f;

	setup(state);
	server = api_server_start(0);
	snprintf(path, sizeof(path), "%s/kubeconfig", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f,
		"apiVersion: v1\nkind: Config\n"
		"clusters: [{name: t, cluster: {server: 'http://127.0.0.1:%d'}}]\n"
		"users: [{name: t, user: {token: t}}]\n"
		"contexts: [{name: t, context: {cluster: t, user: t, namespace: team}}]\n"
		"current-context: t\n",
		api_server_port(server));
	fclose(f);
	setenv("KUBECONFIG", path, 1);
	return 0;
}

static int stop_server(void **state)
{
	api_server_stop(server);
	return teardown(state);
}

/* JSON is also YAML; the fake server accepts only JSON. */
static void write_job(int workers)
{
	FILE *f = fopen(manifest, "w");

	assert_non_null(f);
	fprintf(f,
		"{\"apiVersion\": \"muster.dev/v1\", \"kind\": \"DistributedTrainingJob\",\n"
		" \"metadata\": {\"name\": \"small\"},\n"
		" \"spec\": {\"program\": {}, \"tasks\": {\"ps\": {\"replicas\": 1},\n"
		"   \"worker\": {\"replicas\": %d}}}}\n",
		workers);
	fclose(f);
}

static void put_job(const char *status)
{
	MU_AUTO_FREE char *json = mu_xasprintf(
	    "{\"metadata\":{\"name\":\"small\"},\"spec\":{\"tasks\":{\"ps\":{\"replicas\":1},"
	    "\"worker\":{\"replicas\":2}}},\"status\":%s}",
	    status);

	api_server_put(server, JOBS, json);
}

static void put_pod(const char *task, int index, const char *state)
{
	MU_AUTO_FREE char *json = mu_xasprintf(
	    "{\"metadata\":{\"name\":\"small-%s-%d\",\"labels\":{\"muster.dev/job\":"
	    "\"small\",\"muster.dev/task\":\"%s\",\"muster.dev/index\":\"%d\"}},"
	    "\"spec\":{\"containers\":[{\"name\":\"muster\"}]},\"status\":"
	    "{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"muster\",\"state\":{\"%s\":{"
	    "\"reason\":\"Because\"}}}]}}",
	    task, index, task, index, state);

	api_server_put(server, PODS, json);
}

static void patch_pod(const char *name, const char *state)
{
	MU_AUTO_FREE char *json = mu_xasprintf(
	    "{\"status\":{\"containerStatuses\":[{\"name\":\"muster\",\"state\":{\"%s\":{}}}]}}",
	    state);

	assert_true(api_server_patch(server, PODS, name, json));
}

/* A command line of at most seven words after "muster". */
#define MUSTER(output, ...) run((const char *[]){"muster", __VA_ARGS__, NULL}, output)
static int run(const char *const *argv, struct mu_buf *output)
{
	int fd;
	pid_t pid = start(argv, &fd);

	return finish(pid, fd, output);
}

static void submit__creates_changes_or_keeps_the_job(void **state)
{
	MU_AUTO_BUF first = {0};
	MU_AUTO_BUF again = {0};
	MU_AUTO_BUF changed = {0};

	write_job(2);
	assert_int_equal(MUSTER(&first, "submit", manifest), 0);
	assert_output_has(first, "job 'small' is created in namespace 'team'");
	assert_output_has(first, "muster wait small");
	assert_int_equal(api_server_count(server, JOBS), 1);
	assert_int_equal(api_server_seen(server, "fieldManager=muster&fieldValidation=Strict"), 1);

	assert_int_equal(MUSTER(&again, "submit", manifest), 0);
	assert_output_has(again, "job 'small' is unchanged");
	write_job(3);
	assert_int_equal(MUSTER(&changed, "submit", manifest, "-n", "team"), 0);
	assert_output_has(changed, "job 'small' is changed");
	assert_output_has(changed, "muster logs small -f -n team");
}

static void submit__of_an_invalid_manifest__sends_no_request(void **state)
{
	MU_AUTO_BUF output = {0};

	write_job(-1);
	assert_int_equal(MUSTER(&output, "submit", manifest), 1);
	assert_output_has(output, "spec.tasks.worker.replicas");
	assert_int_equal(api_server_seen(server, "/"), 0);
}

static void submit__of_a_pod_that_the_server_rejects__sends_no_request(void **state)
{
	FILE *f = fopen(manifest, "w");
	MU_AUTO_BUF output = {0};

	assert_non_null(f);
	fputs("apiVersion: muster.dev/v1\nkind: DistributedTrainingJob\nmetadata: {name: small}\n"
	      "spec: {tasks: {worker: {resources: {limits: {memory: 4GiB}}}}}\n",
	      f);
	fclose(f);
	assert_int_equal(MUSTER(&output, "submit", manifest), 1);
	assert_output_has(output, "must be a quantity");
	assert_int_equal(api_server_seen(server, "/"), 0);
}

static void submit__that_is_rejected__prints_the_reason(void **state)
{
	MU_AUTO_BUF forbidden = {0};
	MU_AUTO_BUF conflict = {0};
	MU_AUTO_BUF forced = {0};
	MU_AUTO_BUF nothing = {0};

	write_job(2);
	api_server_fail(server, "PATCH " JOBS, API_STATUS, 403, 0, 1);
	assert_int_equal(MUSTER(&forbidden, "submit", manifest), 1);
	assert_output_has(forbidden, "Scripted (403)");
	api_server_fail(server, "PATCH " JOBS, API_STATUS, 409, 0, 1);
	assert_int_equal(MUSTER(&conflict, "submit", manifest), 1);
	assert_output_has(conflict, "use --force-conflicts to take over the fields");
	assert_int_equal(MUSTER(&forced, "submit", "--force-conflicts", manifest), 0);
	assert_int_equal(api_server_seen(server, "&force=true"), 1);
	assert_int_equal(MUSTER(&nothing, "submit"), 2);
}

static void submit__of_an_ended_job__explains_how_to_run_it_again(void **state)
{
	MU_AUTO_BUF output = {0};

	put_job("{\"phase\":\"Succeeded\"}");
	write_job(2);
	assert_int_equal(MUSTER(&output, "submit", manifest), 0);
	assert_output_has(output, "kubectl delete dtj small -n team");
}

static void wait__prints_progress_and_ends_with_the_job(void **state)
{
	const char *argv[] = {"muster", "wait", "job/small", NULL};
	MU_AUTO_BUF output = {0};
	pid_t pid;
	int fd;

	put_job("{\"phase\":\"Pending\"}");
	pid = start(argv, &fd);
	WAIT_UNTIL(api_server_seen(server, "WATCH GET " JOBS) == 1);
	api_server_patch(server, JOBS, "small",
			 "{\"status\":{\"phase\":\"Running\",\"tasks\":{\"worker\":{\"desired\":2,"
			 "\"ready\":2}},\"progress\":{\"step\":50,\"targetStep\":200,\"loss\":0.5,"
			 "\"stepsPerSecond\":9.5}}}");
	/* closed connections do not end the wait */
	api_server_compact(server);
	WAIT_UNTIL(api_server_seen(server, "WATCH GET " JOBS) == 2);
	api_server_patch(
	    server, JOBS, "small",
	    "{\"status\":{\"phase\":\"Succeeded\",\"startTime\":\"2026-01-01T00:00:00Z\","
	    "\"completionTime\":\"2026-01-01T00:01:30Z\",\"progress\":{\"step\":200,"
	    "\"accuracy\":0.953,\"lastCheckpoint\":\"/o/model.ckpt-200\"}}}");
	assert_int_equal(finish(pid, fd, &output), 0);
	assert_output_has(output, "small: Pending\n");
	assert_output_has(output, "small: Running\n");
	assert_output_has(output, "small  step 50/200 (25%)  9.5 steps/s  loss 0.5  worker 2/2\n");
	assert_output_has(output, "small: succeeded in 90.0 s, step 200\n");
	assert_output_has(output, "test accuracy  95.3 %");
	assert_output_has(output, "checkpoint     /o/model.ckpt-200");
}

static void wait__of_jobs_that_do_not_succeed__has_an_exit_status_for_each_case(void **state)
{
	MU_AUTO_BUF none = {0};
	MU_AUTO_BUF late = {0};
	MU_AUTO_BUF failed = {0};
	MU_AUTO_BUF wrong = {0};

	assert_int_equal(MUSTER(&none, "wait", "small"), 3);
	assert_output_has(none, "NotFound");
	put_job("{\"phase\":\"Running\"}");
	assert_int_equal(MUSTER(&late, "wait", "small", "--timeout", "1s"), 124);
	assert_output_has(late, "has not ended within the timeout");
	api_server_patch(server, JOBS, "small",
			 "{\"status\":{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"Failed\","
			 "\"status\":\"True\",\"message\":\"worker/0 ended\\u001b[2J\"}]}}");
	assert_int_equal(MUSTER(&failed, "wait", "small", "--timeout", "0"), 1);
	assert_output_has(failed, "small: failed: worker/0 ended");
	assert_null(strchr(failed.data, 033));
	assert_output_has(failed, "muster explain small");
	assert_int_equal(MUSTER(&wrong, "wait", "small", "--timeout=soon"), 2);
}

static void wait__of_a_job_that_is_deleted__ends(void **state)
{
	const char *argv[] = {"muster", "wait", "small", NULL};
	MU_AUTO_BUF output = {0};
	pid_t pid;
	int fd;

	put_job("{\"phase\":\"Running\"}");
	pid = start(argv, &fd);
	WAIT_UNTIL(api_server_seen(server, "WATCH GET " JOBS) == 1);
	api_server_delete(server, JOBS, "small");
	assert_int_equal(finish(pid, fd, &output), 3);
	assert_output_has(output, "small: deleted");
}

static void logs__have_the_task_name_at_the_start_of_each_line(void **state)
{
	MU_AUTO_BUF all = {0};
	MU_AUTO_BUF one = {0};
	MU_AUTO_BUF waiting = {0};

	put_job("{\"phase\":\"Running\"}");
	put_pod("ps", 0, "running");
	put_pod("worker", 0, "terminated");
	api_server_log(server, "small-ps-0", "2026-01-01T00:00:01.5Z listens\n", false);
	api_server_log(server, "small-worker-0",
		       "2026-01-01T00:00:01.5Z step 1\n2026-01-01T00:00:02Z\n"
		       "2026-01-01T00:00:03Z step 2\n",
		       true);
	assert_int_equal(MUSTER(&all, "logs", "small"), 0);
	assert_output_has(all,
			  "ps/0 | listens\nworker/0 | step 1\nworker/0 | \nworker/0 | step 2\n");
	assert_int_equal(MUSTER(&one, "logs", "small", "worker/0", "--tail", "1"), 0);
	assert_string_equal(one.data, "step 2\n");

	put_pod("worker", 1, "waiting");
	assert_int_equal(MUSTER(&waiting, "logs", "small", "worker"), 1);
	assert_output_has(waiting, "worker/1 has no log yet: Because");
}

static void logs__of_a_missing_job_or_task__report_it(void **state)
{
	static const struct {
		const char *task, *output;
		int status;
	} cases[] = {{"wrker", "job 'small' has no task 'wrker'", 1},
		     {"worker/2", "has no worker/2: its last is worker/1", 1},
		     {"worker/x", "'worker/x' is not TASK or TASK/INDEX", 2},
		     {"worker/4294967296", "'worker/4294967296' is not TASK or TASK/INDEX", 2},
		     {"worker/0", "job 'small' is Pending and has no pod of worker yet", 1},
		     {"--previous", "BadRequest (400) (ps/0)", 1}};
	MU_AUTO_BUF none = {0};
	MU_AUTO_BUF wrong = {0};
	MU_AUTO_BUF error_output = {0};

	assert_int_equal(MUSTER(&none, "logs", "small"), 1);
	put_job("{\"phase\":\"Pending\"}");
	put_pod("ps", 0, "running");
	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_BUF output = {0};

		assert_int_equal(MUSTER(&output, "logs", "small", cases[i].task), cases[i].status);
		assert_output_has(output, cases[i].output);
	}
	api_server_patch(server, JOBS, "small", "{\"status\":{\"phase\":\"Succeeded\"}}");
	assert_int_equal(MUSTER(&wrong, "logs", "small", "worker/2"), 1);
	assert_int_equal(MUSTER(&error_output, "logs", "-f", "small", "worker/1"), 1);
	assert_output_has(error_output, "its pods were deleted with their logs");
}

/* Waits for the container, resumes a broken stream without lost or duplicate lines, follows the
 * replacement pod, and ends with the job. */
static void followed_logs__have_each_line_once(void **state)
{
	const char *argv[] = {"muster", "logs", "-f", "small", "worker/0", NULL};
	MU_AUTO_BUF output = {0};
	pid_t pid;
	int fd;

	put_job("{\"phase\":\"Running\"}");
	put_pod("worker", 0, "waiting");
	pid = start(argv, &fd);
	WAIT_UNTIL(api_server_seen(server, "GET " PODS) >= 1);
	api_server_log(server, "small-worker-0",
		       "2026-01-01T00:00:01.25+02:00 one\n2026-01-01T00:00:01.5+02:00 two\n"
		       "2026-01-01T00:00:01.5+02:00 two again\n",
		       false);
	api_server_fail(server, "small-worker-0/log", API_CUT, 0, 0, 1);
	patch_pod("small-worker-0", "running");
	WAIT_UNTIL(api_server_seen(server, "sinceTime=2026-01-01T00:00:01%2B02:00") == 1);
	api_server_log(server, "small-worker-0", "2026-01-01T00:00:01.625+02:00 three\n", true);
	patch_pod("small-worker-0", "terminated");
	WAIT_UNTIL(api_server_seen(server, "GET " PODS) >= 4);

	api_server_delete(server, PODS, "small-worker-0");
	api_server_log(server, "small-worker-0", "2026-01-01T00:00:04Z another life\n", true);
	put_pod("worker", 0, "terminated");
	WAIT_UNTIL(api_server_seen(server, "small-worker-0/log") >= 3);
	api_server_patch(server, JOBS, "small", "{\"status\":{\"phase\":\"Succeeded\"}}");
	assert_int_equal(finish(pid, fd, &output), 0);
	assert_output_has(output, "worker/0 has no log yet: Because\none\ntwo\ntwo again\nthree\n");
	assert_output_has(output, "another life\n");
	assert_int_equal(api_server_seen(server, "small-worker-0/log"), 3);
}

/* The output is a terminal. */
static void top__on_a_failed_refresh__continues(void **state)
{
	char output[4096];
	int fd, status;
	pid_t pid;

	put_job("{\"phase\":\"Running\"}");
	pid = forkpty(&fd, NULL, NULL, NULL);
	if (pid == 0) {
		execl(program, "muster", "top", NULL);
		_exit(127);
	}
	WAIT_UNTIL(api_server_seen(server, "GET " JOBS) == 1);
	api_server_fail(server, "GET " JOBS, API_STATUS, 500, 0, 1);
	WAIT_UNTIL(api_server_seen(server, "GET " JOBS) == 3);
	assert_true(read(fd, output, sizeof(output)) > 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(fd);
}

/* The API server's proxy reports that a port without a listener is unavailable. */
static void explain__of_a_job_with_a_tensorboard__reads_all_tasks(void **state)
{
	MU_AUTO_BUF output = {0};

	put_job("{\"phase\":\"Running\"}");
	put_pod("ps", 0, "running");
	put_pod("tensorboard", 0, "running");
	put_pod("worker", 0, "running");
	api_server_fail(server, "small-tensorboard-0:8079", API_STATUS, 503, 0, 1);
	assert_int_equal(MUSTER(&output, "explain", "small"), 0);
	assert_int_equal(api_server_seen(server, "small-worker-0:8079/proxy/status"), 1);
	assert_null(strstr(output.data, "status of all tasks"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, start_server, stop_server)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(submit__creates_changes_or_keeps_the_job),
	    T(submit__of_an_invalid_manifest__sends_no_request),
	    T(submit__of_a_pod_that_the_server_rejects__sends_no_request),
	    T(submit__that_is_rejected__prints_the_reason),
	    T(submit__of_an_ended_job__explains_how_to_run_it_again),
	    T(wait__prints_progress_and_ends_with_the_job),
	    T(wait__of_jobs_that_do_not_succeed__has_an_exit_status_for_each_case),
	    T(wait__of_a_job_that_is_deleted__ends),
	    T(logs__have_the_task_name_at_the_start_of_each_line),
	    T(logs__of_a_missing_job_or_task__report_it),
	    T(followed_logs__have_each_line_once),
	    T(top__on_a_failed_refresh__continues),
	    T(explain__of_a_job_with_a_tensorboard__reads_all_tasks),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
