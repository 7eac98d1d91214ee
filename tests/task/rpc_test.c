/* SPDX-License-Identifier: Apache-2.0 */
#include "task/rpc/server.h"
#include "tests/test.h"
#include "tests/wait.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"

static struct rpc_call *held_call;
static _Atomic int arrived, cancelled;

enum { CALL_MS = TEST_TIMEOUT_S * 1000 };

static void echo(struct rpc_call *call, void *ctx)
{
	struct rpc_message m = {.head = rpc_bytes_flat(rpc_request(call))};

	rpc_reply(call, &m);
}

static void reply_aborted(struct rpc_call *call, void *ctx)
{
	struct mu_err err;

	mu_fail(&err, MU_ABORTED, "no such thing");
	rpc_reply_error(call, &err);
}

static void answer_cancelled(void *arg)
{
	struct mu_err err;

	mu_fail(&err, MU_CANCELLED, "gone");
	atomic_fetch_add(&cancelled, 1);
	rpc_reply_error(arg, &err);
}

static void hold_call(struct rpc_call *call, void *ctx)
{
	held_call = call;
	rpc_on_cancel(call, answer_cancelled, call);
	atomic_fetch_add(&arrived, 1);
}

/* Replies 8 MiB of a tensor between "<" and ">!". */
static void reply_8_mib(struct rpc_call *call, void *ctx)
{
	struct mu_shape shape = mu_shape_vec(2 << 20);
	struct mu_tensor t;
	struct rpc_message last = {.head = MU_SPAN(">!")};
	struct rpc_message m = {.head = MU_SPAN("<"), .next = &last};

	assert_int_equal(mu_tensor_new(&t, MU_FLOAT, &shape, NULL), 0);
	for (int i = 0; i < 2 << 20; i++)
		MU_DATA(float, &t)[i] = (float)i;
	m.payload = &t;
	m.payload_len = mu_tensor_bytes(&t);
	rpc_reply(call, &m);
	mu_tensor_unref(&t);
}

static const struct rpc_method methods[] = {{"/t.T/Echo", .handle = echo},
					    {"/t.T/Abort", .handle = reply_aborted},
					    {"/t.T/Hold", .handle = hold_call},
					    {"/t.T/Big", .handle = reply_8_mib}};

struct fixture {
	struct rpc_server *server;
	struct rpc_channel *ch;
	int port;
};

static const char *late_address; /* of a server without a channel; NULL: any port of 127.0.0.1 */

static int start(void **state)
{
	const char *address = late_address ? late_address : "127.0.0.1:0";
	struct fixture *f = MU_NEW(struct fixture);
	struct rpc_server_options o = {
	    .addresses = &address, .n_addresses = 1, .methods = methods, .n_methods = 4};
	struct mu_err err;
	char target[64];

	assert_ok(rpc_server_start(&o, &f->server, &f->port, &err), &err);
	if (late_address) {
		*state = f;
		return 0;
	}
	assert_true(f->port > 0);
	snprintf(target, sizeof(target), "grpc://127.0.0.1:%d", f->port);
	assert_ok(rpc_channel_open(target, &f->ch, &err), &err);
	*state = f;
	return 0;
}

static int stop(void **state)
{
	struct fixture *f = *state;

	rpc_channel_close(f->ch);
	rpc_server_stop(f->server, 100);
	free(f);
	return 0;
}

static void call__to_a_method__returns_its_reply(void **state)
{
	struct fixture *f = *state;
	struct rpc_message m = {.head = MU_SPAN("hello")};
	MU_AUTO_BUF reply = {0};
	struct mu_err err;

	for (int i = 0; i < 100; i++) {
		mu_buf_clear(&reply);
		assert_ok(rpc_call(f->ch, "/t.T/Echo", &m, CALL_MS, 0, &reply, &err), &err);
		assert_true(mu_span_is(mu_buf_span(&reply), "hello"));
	}
}

static void call__with_an_empty_message__has_an_empty_reply(void **state)
{
	struct fixture *f = *state;
	struct rpc_message m = {0};
	MU_AUTO_BUF reply = {0};
	struct mu_err err;

	assert_ok(rpc_call(f->ch, "/t.T/Echo", &m, CALL_MS, 0, &reply, &err), &err);
	assert_int_equal(reply.len, 0);
}

static void call__that_fails__has_the_code_and_text_of_the_error(void **state)
{
	struct fixture *f = *state;
	struct rpc_message m = {0};
	struct mu_err err;

	assert_fails(rpc_call(f->ch, "/t.T/Abort", &m, CALL_MS, 0, NULL, &err), &err, MU_ABORTED,
		     "no such thing");
}

static void call__of_an_unknown_method__is_unimplemented(void **state)
{
	struct fixture *f = *state;
	struct rpc_message m = {0};
	struct mu_err err;

	assert_fails(rpc_call(f->ch, "/t.T/Nope", &m, CALL_MS, 0, NULL, &err), &err,
		     MU_UNIMPLEMENTED, "/t.T/Nope");
}

static void reply__with_a_large_tensor__is_complete(void **state)
{
	struct fixture *f = *state;
	struct rpc_message m = {0};
	MU_AUTO_BUF reply = {0};
	struct mu_err err;
	float last;

	assert_ok(rpc_call(f->ch, "/t.T/Big", &m, 20000, 0, &reply, &err), &err);
	assert_int_equal(reply.len, (8 << 20) + 3);
	assert_int_equal(reply.data[0], '<');
	memcpy(&last, reply.data + 1 + (8 << 20) - 4, 4);
	assert_true(last == (float)((2 << 20) - 1));
	assert_string_equal(reply.data + reply.len - 2, ">!");
}

static void deadline__of_a_pending_call__ends_it_on_both_sides(void **state)
{
	struct fixture *f = *state;
	struct rpc_message m = {0};
	struct mu_err err;

	cancelled = arrived = 0;
	/* a deadline can pass before the call arrives */
	for (long ms = 50; !atomic_load(&arrived); ms *= 2)
		assert_fails(rpc_call(f->ch, "/t.T/Hold", &m, ms, 0, NULL, &err), &err,
			     MU_DEADLINE_EXCEEDED, "");
	WAIT_UNTIL(atomic_load(&cancelled) == atomic_load(&arrived));
}

static _Atomic int finished;
static void note(void *arg, const struct mu_err *err, struct rpc_bytes *reply)
{
	*(enum mu_code *)arg = err ? err->code : MU_OK;
	atomic_fetch_add(&finished, 1);
}

static void call__cancelled__ends_once(void **state)
{
	struct fixture *f = *state;
	struct rpc_message m = {0};
	enum mu_code code = MU_OK;
	struct mu_err err;
	uint64_t id;

	finished = 0;
	id = rpc_start(f->ch, "/t.T/Hold", &m, 0, 0, note, &code, &err);
	assert_true(id != 0);
	rpc_out_cancel(f->ch, id);
	WAIT_UNTIL(atomic_load(&finished));
	assert_int_equal(atomic_load(&finished), 1);
	assert_int_equal(code, MU_CANCELLED);
	rpc_out_cancel(f->ch, id); /* no effect */
}

static void channel__when_closed__cancels_its_calls(void **state)
{
	struct fixture *f = *state;
	struct rpc_channel *ch;
	struct rpc_message m = {0};
	enum mu_code code = MU_OK;
	struct mu_err err;
	char target[64];

	finished = 0;
	snprintf(target, sizeof(target), "127.0.0.1:%d", f->port);
	assert_ok(rpc_channel_open(target, &ch, &err), &err);
	assert_true(rpc_start(ch, "/t.T/Hold", &m, 0, RPC_WAIT_FOR_READY, note, &code, &err) != 0);
	rpc_channel_close(ch);
	assert_int_equal(atomic_load(&finished), 1);
	assert_int_equal(code, MU_CANCELLED);
}

static void server__when_stopped__ends_pending_calls(void **state)
{
	struct fixture *f = *state;
	struct rpc_message m = {0};
	enum mu_code code = MU_OK;
	struct mu_err err;

	finished = arrived = 0;
	assert_true(rpc_start(f->ch, "/t.T/Hold", &m, 0, RPC_WAIT_FOR_READY, note, &code, &err) !=
		    0);
	WAIT_UNTIL(atomic_load(&arrived));
	rpc_server_stop(f->server, 50);
	f->server = NULL;
	WAIT_UNTIL(atomic_load(&finished));
	assert_int_equal(atomic_load(&finished), 1);
	assert_true(code == MU_CANCELLED || code == MU_UNAVAILABLE);
}

static void call__to_a_closed_port__is_unavailable(void **state)
{
	struct rpc_message m = {0};
	struct rpc_channel *ch;
	struct mu_err err;

	assert_ok(rpc_channel_open("127.0.0.1:1", &ch, &err), &err);
	assert_fails(rpc_call(ch, "/t.T/Echo", &m, CALL_MS, 0, NULL, &err), &err, MU_UNAVAILABLE,
		     "");
	assert_fails(rpc_call(ch, "/t.T/Echo", &m, 50, RPC_WAIT_FOR_READY, NULL, &err), &err,
		     MU_DEADLINE_EXCEEDED, "Deadline Exceeded: cannot connect to 127.0.0.1:1: ");
	rpc_channel_close(ch);
}

/* Returns a listener on `port` that does not answer SYNs, because its backlog of one is full. */
static int listen_without_accepting(int *port, int fill[8])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	for (int i = 0; i < 8; i++) {
		fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		connect(fill[i], (struct sockaddr *)&a, len);
	}
	wait_ms(50);
	return fd;
}

/* The address of a deleted pod behaves like this: packets to it are lost. */
static void peer__that_does_not_answer_syns__is_unavailable_within_seconds(void **state)
{
	struct rpc_message m = {0};
	struct rpc_channel *ch;
	int port, fill[8], fd = listen_without_accepting(&port, fill);
	int64_t start_ms = mu_clock_ms();
	struct mu_err err;
	char target[64];

	snprintf(target, sizeof(target), "127.0.0.1:%d", port);
	assert_ok(rpc_channel_open(target, &ch, &err), &err);
	assert_fails(rpc_call(ch, "/t.T/Echo", &m, 30000, 0, NULL, &err), &err, MU_UNAVAILABLE, "");
	assert_in_range(mu_clock_ms() - start_ms, 0, 5000);
	rpc_channel_close(ch);
	for (int i = 0; i < 8; i++)
		close(fill[i]);
	close(fd);
}

static void short_wait__for_an_absent_peer__is_unavailable(void **state)
{
	struct rpc_message m = {.head = MU_SPAN("x")};
	struct rpc_channel *ch;
	struct mu_err err;

	assert_ok(rpc_channel_open("127.0.0.1:1", &ch, &err), &err);
	assert_fails(rpc_call(ch, "/t.T/Echo", &m, 0, RPC_WAIT_SHORT, NULL, &err), &err,
		     MU_UNAVAILABLE, "no connection");
	rpc_channel_close(ch);
}

static void *start_late(void *arg)
{
	wait_ms(400);
	return start(arg) ? NULL : arg;
}

static void short_wait__for_a_starting_peer__succeeds(void **state)
{
	struct fixture *f = *state, *server = NULL;
	struct rpc_message m = {.head = MU_SPAN("x")};
	static char address[64];
	struct rpc_channel *ch;
	pthread_t starter;
	MU_AUTO_BUF reply = {0};
	struct mu_err err;

	/* the server creates the socket later */
	snprintf(address, sizeof address, "unix:/tmp/muster-late-%d-%d", (int)getpid(), f->port);
	late_address = address;
	assert_ok(rpc_channel_open(address, &ch, &err), &err);
	assert_int_equal(pthread_create(&starter, NULL, start_late, &server), 0);
	assert_ok(rpc_call(ch, "/t.T/Echo", &m, 0, RPC_WAIT_SHORT, &reply, &err), &err);
	assert_true(mu_span_is(mu_buf_span(&reply), "x"));
	pthread_join(starter, NULL);
	rpc_channel_close(ch);
	late_address = NULL;
	stop((void **)&server);
}

static void server__with_a_port_in_use__names_the_port(void **state)
{
	struct fixture *f = *state;
	char address[64], text[64];
	const char *list = address;
	struct rpc_server_options o = {.addresses = &list, .n_addresses = 1};
	struct rpc_server *other;
	struct mu_err err;
	int port;

	snprintf(address, sizeof(address), "127.0.0.1:%d", f->port);
	snprintf(text, sizeof(text), "port %d on 127.0.0.1 is already in use", f->port);
	assert_fails(rpc_server_start(&o, &other, &port, &err), &err, MU_ALREADY_EXISTS, text);
}

static void invalid_address__fails_to_open(void **state)
{
	static const char *const wrong[] = {"127.0.0.1",   "127.0.0.1:",       ":1",
					    "127.0.0.1:x", "127.0.0.1:123456", "unix:"};
	struct rpc_server *s;
	struct rpc_channel *ch;
	struct mu_err err;
	int port;

	for (unsigned i = 0; i < MU_COUNT(wrong); i++) {
		struct rpc_server_options o = {.addresses = &wrong[i], .n_addresses = 1};

		assert_fails(rpc_server_start(&o, &s, &port, &err), &err, MU_INVALID_ARGUMENT,
			     "not a listen address");
	}
	assert_fails(rpc_channel_open("somewhere", &ch, &err), &err, MU_INVALID_ARGUMENT,
		     "not an address");
}

static void server__on_a_unix_socket__replies(void **state)
{
	char address[96];
	const char *list = address;
	struct rpc_server_options o = {
	    .addresses = &list, .n_addresses = 1, .methods = methods, .n_methods = 4};
	struct rpc_message m = {.head = MU_SPAN("x")};
	struct rpc_server *s;
	struct rpc_channel *ch;
	MU_AUTO_BUF reply = {0};
	struct mu_err err;
	int port = -1;

	snprintf(address, sizeof(address), "unix:/tmp/muster-rpc-test-%d", (int)getpid());
	assert_ok(rpc_server_start(&o, &s, &port, &err), &err);
	assert_int_equal(port, 0);
	assert_ok(rpc_channel_open(address, &ch, &err), &err);
	assert_ok(rpc_call(ch, "/t.T/Echo", &m, CALL_MS, 0, &reply, &err), &err);
	assert_string_equal(reply.data, "x");
	rpc_channel_close(ch);
	rpc_server_stop(s, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(call__to_a_method__returns_its_reply, start, stop),
	    cmocka_unit_test_setup_teardown(call__with_an_empty_message__has_an_empty_reply, start,
					    stop),
	    cmocka_unit_test_setup_teardown(call__that_fails__has_the_code_and_text_of_the_error,
					    start, stop),
	    cmocka_unit_test_setup_teardown(call__of_an_unknown_method__is_unimplemented, start,
					    stop),
	    cmocka_unit_test_setup_teardown(reply__with_a_large_tensor__is_complete, start, stop),
	    cmocka_unit_test_setup_teardown(deadline__of_a_pending_call__ends_it_on_both_sides,
					    start, stop),
	    cmocka_unit_test_setup_teardown(call__cancelled__ends_once, start, stop),
	    cmocka_unit_test_setup_teardown(channel__when_closed__cancels_its_calls, start, stop),
	    cmocka_unit_test_setup_teardown(server__when_stopped__ends_pending_calls, start, stop),
	    cmocka_unit_test_setup_teardown(short_wait__for_a_starting_peer__succeeds, start, stop),
	    cmocka_unit_test(short_wait__for_an_absent_peer__is_unavailable),
	    cmocka_unit_test(call__to_a_closed_port__is_unavailable),
	    cmocka_unit_test(peer__that_does_not_answer_syns__is_unavailable_within_seconds),
	    cmocka_unit_test_setup_teardown(server__with_a_port_in_use__names_the_port, start,
					    stop),
	    cmocka_unit_test(invalid_address__fails_to_open),
	    cmocka_unit_test(server__on_a_unix_socket__replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
