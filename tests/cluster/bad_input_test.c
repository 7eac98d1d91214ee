/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid input: truncated and corrupt requests, a port in use, invalid HTTP. */
#include "tests/cluster/fixture.h"

#include <stdatomic.h>

static int start(void **state)
{
	*state = fixture_new("p01");
	return 0;
}

static int stop(void **state)
{
	fixture_free(*state);
	return 0;
}

static const char *const methods[] = {
    "/tensorflow.MasterService/CreateSession",
    "/tensorflow.MasterService/ExtendSession",
    "/tensorflow.MasterService/PartialRunSetup",
    "/tensorflow.MasterService/RunStep",
    "/tensorflow.MasterService/CloseSession",
    "/tensorflow.MasterService/ListDevices",
    "/tensorflow.MasterService/Reset",
    "/tensorflow.MasterService/MakeCallable",
    "/tensorflow.MasterService/RunCallable",
    "/tensorflow.MasterService/ReleaseCallable",
    "/tensorflow.WorkerService/GetStatus",
    "/tensorflow.WorkerService/CreateWorkerSession",
    "/tensorflow.WorkerService/DeleteWorkerSession",
    "/tensorflow.WorkerService/RegisterGraph",
    "/tensorflow.WorkerService/DeregisterGraph",
    "/tensorflow.WorkerService/RunGraph",
    "/tensorflow.WorkerService/CleanupGraph",
    "/tensorflow.WorkerService/CleanupAll",
    "/tensorflow.WorkerService/RecvTensor",
    "/tensorflow.WorkerService/Logging",
    "/muster.CollectiveService/Join",
    "/muster.MasterService/Waits",
    "/tensorflow.WorkerService/Tracing",
    "/tensorflow.grpc.WorkerService/GetStatus",
    "/tensorflow.grpc.MasterService/RunStep",
    "/tensorflow.MasterService/NoSuchMethod",
};

static void send_request(struct task *t, const char *method, const void *bytes, size_t n)
{
	struct rpc_message m = {.head = {bytes, n}};
	struct mu_err err = {0};

	rpc_call(t->ch, method, &m, CALL_MS, 0, NULL, &err);
	/* any response is fine; the next call shows that the server still runs */
	assert_int_not_equal(err.code, MU_DEADLINE_EXCEEDED);
}

static void truncated_or_corrupt_request__gets_a_response(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	MU_AUTO_BUF def = {0};
	MU_AUTO_BUF good = {0};
	uint32_t dice = 12345;

	constant(g, "c", "", number(1));
	unary(g, "i", "Identity", "/job:ps/task:0", mu_graph_find(g, "c"));
	mu_graph_write(g, &def);
	mu_pb_put_bytes(&good, 1, mu_buf_span(&def));
	mu_pb_put_bytes(&good, 2, MU_SPAN("\x78\x01"));
	for (unsigned i = 0; i < MU_COUNT(methods); i++) {
		for (size_t n = 0; n < good.len; n += 1 + n / 4)
			send_request(&f->ps, methods[i], good.data, n);
		for (int k = 0; k < 20; k++) {
			MU_AUTO_FREE char *copy = malloc(good.len);

			memcpy(copy, good.data, good.len);
			for (int b = 0; b < 3; b++) {
				dice = dice * 1664525 + 1013904223;
				copy[(dice >> 8) % good.len] ^= (char)(1 << (dice >> 29));
			}
			send_request(&f->ps, methods[i], copy, good.len);
		}
	}
}

static void invalid_graph__is_rejected(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct step s = {.fetch = "u:0"};
	char handle[64];
	struct mu_err err;

	node(g, "u", "NoSuchOp", "");
	/* an unknown op may be in a graph as long as no step needs it */
	assert_ok(create(&f->worker[0], g, MU_SPAN("\x22\x07/job:ps"), handle, &err), &err);
	assert_true(run(&f->worker[0], handle, &s, NULL, &err) < 0);
	assert_non_null(strstr(err.msg, "NoSuchOp"));
}

static void request__with_a_stale_incarnation__is_aborted(void **state)
{
	struct fixture *f = *state;
	MU_AUTO_BUF b = {0};
	struct rpc_message m;
	struct mu_err err;

	mu_pb_put_int(&b, 1, 99);
	mu_pb_put_str(&b, 2,
		      "/job:ps/replica:0/task:0/device:CPU:0;0000000000000001;"
		      "/job:worker/replica:0/task:0/device:CPU:0;edge_1_x;0:0");
	m = (struct rpc_message){.head = mu_buf_span(&b)};
	assert_fails(
	    rpc_call(f->ps.ch, "/tensorflow.WorkerService/RecvTensor", &m, CALL_MS, 0, NULL, &err),
	    &err, MU_ABORTED, "different device incarnation");
}

static void server__with_a_port_in_use__names_the_port(void **state)
{
	struct fixture *f = *state;
	struct task_server_options o = {
	    .cluster = &f->cluster, .job = "ps", .index = 0, .http_port = -1};
	struct task_server *s;
	struct mu_err err;

	assert_fails(task_server_start(&o, &s, &err), &err, MU_ALREADY_EXISTS, "is already in use");
	o.job = "nobody";
	assert_fails(task_server_start(&o, &s, &err), &err, MU_NOT_FOUND, "nobody");
	o.job = "worker";
	o.kernels = "cpu-abacus";
	assert_true(task_server_start(&o, &s, &err) < 0);
	assert_non_null(strstr(err.msg, "abacus"));
}

static void http(struct task *t, const char *request, char *out, size_t size)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	size_t n = 0;
	ssize_t got;

	a.sin_port = htons((uint16_t)task_server_http_port(t->server));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(write(fd, request, strlen(request)), strlen(request));
	while (n < size - 1 && (got = read(fd, out + n, size - 1 - n)) > 0)
		n += (size_t)got;
	out[n] = 0;
	close(fd);
}

static void http__serves_known_paths_and_rejects_others(void **state)
{
	static const struct {
		const char *request, *status, *body;
	} cases[] = {
	    {"GET /healthz HTTP/1.1\r\n\r\n", "200", "ok"},
	    {"GET /readyz HTTP/1.0\r\nHost: x\r\n\r\n", "200", "ok"},
	    {"GET /status HTTP/1.1\r\n\r\n", "200", "\"task\":\"/job:ps/replica:0/task:0\""},
	    {"GET /status HTTP/1.1\r\n\r\n", "200", "\"progress\":{\"step\":3}"},
	    {"GET /metrics HTTP/1.1\r\n\r\n", "200", "muster_steps_total"},
	    {"GET /nothing HTTP/1.1\r\n\r\n", "404", "/healthz"},
	    {"GET /finish HTTP/1.1\r\n\r\n", "405", "POST"},
	    {"POST /finish HTTP/1.1\r\n\r\n", "409", "program"},
	    {"GET / HTTP/1.1\r\nno header\r\n\r\n", "400", ""},
	};
	struct fixture *f = *state;
	char out[8192];

	task_server_set_progress(f->ps.server, "{\"step\":3}");
	http(&f->ps, "\x16\x03\x01\r\n\r\n", out,
	     sizeof(out)); /* not HTTP: the server closes the connection */
	assert_string_equal(out, "");
	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		http(&f->ps, cases[i].request, out, sizeof(out));
		assert_memory_equal(out, "HTTP/1.1 ", 9);
		assert_memory_equal(out + 9, cases[i].status, 3);
		if (!strstr(out, cases[i].body))
			fail_msg("'%s' lacks '%s'", out, cases[i].body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(truncated_or_corrupt_request__gets_a_response, start,
					    stop),
	    cmocka_unit_test_setup_teardown(invalid_graph__is_rejected, start, stop),
	    cmocka_unit_test_setup_teardown(request__with_a_stale_incarnation__is_aborted, start,
					    stop),
	    cmocka_unit_test_setup_teardown(server__with_a_port_in_use__names_the_port, start,
					    stop),
	    cmocka_unit_test_setup_teardown(http__serves_known_paths_and_rejects_others, start,
					    stop),
	};

	mu_log_set_level(MU_ERROR + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
