/* SPDX-License-Identifier: Apache-2.0 */
#include "task/event_listener.h"

#include <dirent.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <pthread.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/pb.h"
#include "tests/test.h"
#include "tests/wait.h"

enum { CONNECT_MS = 2000, REPLY_MS = 700 };
enum { DISABLED = 1, READ_ONLY = 2, READ_WRITE = 3 };

#define KEY "n:0:DebugIdentity"

/* ---- a server with EventListener ---- */

enum behaviour { REPLY, NEVER_REPLY, END_STREAM, REPLY_FOREVER };

static struct {
	grpc_server *server;
	grpc_completion_queue *queue;
	pthread_t thread;
	char url[64];
	pthread_mutex_t lock; /* guards the members below */
	enum behaviour behaviour;
	struct mu_buf reply;    /* to each event whose text begins with '?' */
	struct mu_buf received; /* "[event event][event", a bracket for each stream */
	bool is_serving;        /* true while a stream is open */
} listener = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool run_ops(grpc_call *call, const grpc_op *ops, size_t n)
{
	if (grpc_call_start_batch(call, ops, n, &listener, NULL) != GRPC_CALL_OK)
		return false;
	return grpc_completion_queue_next(listener.queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL)
	    .success;
}

static bool send_reply(grpc_call *call)
{
	grpc_byte_buffer *message;
	grpc_slice slice;
	bool ok;

	pthread_mutex_lock(&listener.lock);
	slice = grpc_slice_from_copied_buffer(listener.reply.data, listener.reply.len);
	pthread_mutex_unlock(&listener.lock);
	message = grpc_raw_byte_buffer_create(&slice, 1);
	grpc_slice_unref(slice);
	ok = run_ops(
	    call, &(grpc_op){.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message},
	    1);
	grpc_byte_buffer_destroy(message);
	return ok;
}

static void record(const char *text, size_t len)
{
	pthread_mutex_lock(&listener.lock);
	mu_buf_put(&listener.received, text, len);
	pthread_mutex_unlock(&listener.lock);
}

/* Receives one event.  Returns false at the end of the stream. */
static bool serve_event(grpc_call *call, bool is_first)
{
	grpc_byte_buffer *message = NULL;
	grpc_byte_buffer_reader reader;
	enum behaviour behaviour;
	grpc_slice bytes;
	bool wants_reply;

	if (!run_ops(
		call,
		&(grpc_op){.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &message},
		1) ||
	    !message)
		return false;
	grpc_byte_buffer_reader_init(&reader, message);
	bytes = grpc_byte_buffer_reader_readall(&reader);
	if (is_first)
		record("[", 1);
	record((char *)GRPC_SLICE_START_PTR(bytes), GRPC_SLICE_LENGTH(bytes));
	wants_reply = GRPC_SLICE_START_PTR(bytes)[0] == '?';
	grpc_slice_unref(bytes);
	grpc_byte_buffer_reader_destroy(&reader);
	grpc_byte_buffer_destroy(message);
	pthread_mutex_lock(&listener.lock);
	behaviour = listener.behaviour;
	pthread_mutex_unlock(&listener.lock);
	if (behaviour == REPLY_FOREVER)
		while (send_reply(call))
			;
	return behaviour != END_STREAM &&
	       (behaviour == NEVER_REPLY || !wants_reply || send_reply(call));
}

static void serve_stream(grpc_call *call)
{
	grpc_slice details = grpc_empty_slice();
	grpc_op status = {.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
			  .data.send_status_from_server = {.status_details = &details}};

	bool is_first = true;

	run_ops(call, &(grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA}, 1);
	for (; serve_event(call, is_first); is_first = false)
		;
	record("]", 1);
	run_ops(call, &status, 1);
	grpc_call_unref(call);
}

static void set_serving(bool is_serving)
{
	pthread_mutex_lock(&listener.lock);
	listener.is_serving = is_serving;
	pthread_mutex_unlock(&listener.lock);
}

static bool is_idle(void)
{
	bool idle;

	pthread_mutex_lock(&listener.lock);
	idle = !listener.is_serving;
	pthread_mutex_unlock(&listener.lock);
	return idle;
}

static void *serve(void *arg)
{
	for (;;) {
		grpc_metadata_array metadata;
		grpc_call_details details;
		grpc_call *call;
		grpc_event e;

		grpc_call_details_init(&details);
		grpc_metadata_array_init(&metadata);
		grpc_server_request_call(listener.server, &call, &details, &metadata,
					 listener.queue, listener.queue, &call);
		e = grpc_completion_queue_next(listener.queue, gpr_inf_future(GPR_CLOCK_MONOTONIC),
					       NULL);
		grpc_call_details_destroy(&details);
		grpc_metadata_array_destroy(&metadata);
		if (!e.success)
			return NULL;
		set_serving(true);
		serve_stream(call);
		set_serving(false);
	}
}

static int start_listener(void **state)
{
	grpc_server_credentials *creds = grpc_insecure_server_credentials_create();
	int port;

	grpc_init();
	listener.server = grpc_server_create(NULL, NULL);
	listener.queue = grpc_completion_queue_create_for_next(NULL);
	grpc_server_register_completion_queue(listener.server, listener.queue, NULL);
	port = grpc_server_add_http2_port(listener.server, "127.0.0.1:0", creds);
	grpc_server_credentials_release(creds);
	snprintf(listener.url, sizeof(listener.url), "grpc://127.0.0.1:%d", port);
	grpc_server_start(listener.server);
	return pthread_create(&listener.thread, NULL, serve, NULL);
}

static int stop_listener(void **state)
{
	grpc_server_shutdown_and_notify(listener.server, listener.queue, &listener);
	grpc_server_cancel_all_calls(listener.server);
	pthread_join(listener.thread, NULL);
	grpc_completion_queue_shutdown(listener.queue);
	while (grpc_completion_queue_next(listener.queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL)
		   .type != GRPC_QUEUE_SHUTDOWN)
		;
	grpc_server_destroy(listener.server);
	grpc_completion_queue_destroy(listener.queue);
	mu_buf_fini(&listener.reply);
	mu_buf_fini(&listener.received);
	grpc_shutdown_blocking();
	return 0;
}

/* ---- the client ---- */

static struct event_listeners *listeners;
static struct debug_streams streams;
static struct mu_err err;

static int start_client(void **state)
{
	pthread_mutex_lock(&listener.lock);
	listener.behaviour = REPLY;
	mu_buf_clear(&listener.reply);
	mu_buf_clear(&listener.received);
	pthread_mutex_unlock(&listener.lock);
	listeners = event_listeners_new(CONNECT_MS, REPLY_MS, &streams);
	return 0;
}

static int stop_client(void **state)
{
	event_listeners_stop(listeners);
	event_listeners_free(listeners);
	WAIT_UNTIL(is_idle());
	return 0;
}

/* Sends an event, which is a tensor if it has a watch key. */
static int send_at(const char *url, const char *text, const char *watch_key, bool is_last)
{
	return streams.send(streams.ctx, url,
			    &(struct debug_event){.bytes = mu_span_of(text),
						  .watch_key = watch_key,
						  .is_last = is_last},
			    &err);
}

static int send_names(const char *text)
{
	return send_at(listener.url, text, NULL, true);
}

static int send_tensor(const char *text)
{
	return send_at(listener.url, text, KEY, true);
}

static bool has_received(const char *text)
{
	bool has;

	pthread_mutex_lock(&listener.lock);
	has = mu_span_is(mu_buf_span(&listener.received), text);
	pthread_mutex_unlock(&listener.lock);
	return has;
}

static void set_behaviour(enum behaviour behaviour)
{
	pthread_mutex_lock(&listener.lock);
	listener.behaviour = behaviour;
	pthread_mutex_unlock(&listener.lock);
}

/* Sets the listener's reply. */
static void reply_with_bytes(const struct mu_buf *bytes)
{
	pthread_mutex_lock(&listener.lock);
	mu_buf_clear(&listener.reply);
	mu_buf_put(&listener.reply, bytes->data, bytes->len);
	pthread_mutex_unlock(&listener.lock);
}

/* Sets a reply that changes the state of the watch key. */
static void reply_with(int state)
{
	MU_AUTO_BUF bytes = {0};
	size_t at = mu_pb_begin(&bytes, 1);

	mu_pb_put_int(&bytes, 1, state);
	mu_pb_put_str(&bytes, 2, "n");
	mu_pb_put_str(&bytes, 4, "DebugIdentity");
	mu_pb_end(&bytes, at);
	reply_with_bytes(&bytes);
}

static bool key_is_enabled(void)
{
	return streams.is_enabled(streams.ctx, listener.url, KEY);
}

/* ---- tests ---- */

static void events__arrive_in_order_on_one_stream_until_it_is_closed(void **state)
{
	assert_ok(send_names("?names"), &err);
	assert_ok(send_at(listener.url, " chunk", NULL, false), &err);
	assert_ok(send_names("?graph"), &err);
	assert_ok(send_tensor(" tensor"), &err);
	streams.close(streams.ctx, listener.url);
	WAIT_UNTIL(has_received("[?names chunk?graph tensor]"));
}

static void event__after_close__opens_another_stream(void **state)
{
	assert_ok(send_names("?1"), &err);
	streams.close(streams.ctx, listener.url);
	streams.close(streams.ctx, listener.url);
	assert_ok(send_names("?2"), &err);
	streams.close(streams.ctx, listener.url);
	WAIT_UNTIL(has_received("[?1][?2]"));
}

static void urls__with_different_paths__have_separate_streams(void **state)
{
	MU_AUTO_FREE char *url = mu_xasprintf("%s/path", listener.url);

	assert_ok(send_tensor("1"), &err);
	WAIT_UNTIL(has_received("[1"));
	assert_ok(send_at(url, "2", KEY, true), &err);
	streams.close(streams.ctx, listener.url);
	streams.close(streams.ctx, url);
	WAIT_UNTIL(has_received("[1][2]"));
}

static void replies__enable_and_disable_watch_keys(void **state)
{
	assert_false(key_is_enabled());
	reply_with(READ_ONLY);
	assert_ok(send_names("?on"), &err);
	assert_true(key_is_enabled());
	streams.close(streams.ctx, listener.url);
	assert_true(key_is_enabled());
	reply_with(DISABLED);
	assert_ok(send_names("?off"), &err);
	assert_false(key_is_enabled());
	assert_ok(send_names("?again"), &err);
}

static void unread_replies__are_read_when_the_stream_is_closed(void **state)
{
	reply_with(READ_ONLY);
	assert_ok(send_tensor("?"), &err);
	assert_false(key_is_enabled());
	streams.close(streams.ctx, listener.url);
	assert_true(key_is_enabled());
}

static void breakpoint__waits_for_a_reply(void **state)
{
	reply_with(READ_WRITE);
	assert_ok(send_names("?on"), &err);
	assert_ok(send_tensor("?tensor"), &err);
	assert_ok(send_at(listener.url, "chunk", KEY, false), &err);
	assert_fails(send_tensor("tensor"), &err, MU_DEADLINE_EXCEEDED, "does not reply within");
}

static void malformed_reply__fails(void **state)
{
	MU_AUTO_BUF bytes = {0};

	mu_buf_puts(&bytes, "\x0a\xff");
	reply_with_bytes(&bytes);
	assert_int_not_equal(send_names("?"), 0);
}

static void too_many_watch_keys__fail(void **state)
{
	MU_AUTO_BUF bytes = {0};

	for (int i = 0; i < 5000; i++) {
		size_t at = mu_pb_begin(&bytes, 1);

		mu_pb_put_int(&bytes, 1, READ_ONLY);
		mu_pb_put_int(&bytes, 3, i);
		mu_pb_end(&bytes, at);
	}
	reply_with_bytes(&bytes);
	assert_fails(send_names("?"), &err, MU_RESOURCE_EXHAUSTED, "enables more than");
}

static void *send_in_thread(void *rc)
{
	struct mu_err ignored;

	*(int *)rc =
	    streams.send(streams.ctx, listener.url,
			 &(struct debug_event){.bytes = MU_SPAN("?"), .is_last = true}, &ignored);
	return NULL;
}

static void listener__that_never_replies__fails_all_waiting_events_in_time(void **state)
{
	int64_t start = mu_clock_ms();
	pthread_t threads[8];
	int rc[8];

	set_behaviour(NEVER_REPLY);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, send_in_thread, &rc[i]), 0);
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		assert_int_not_equal(rc[i], 0);
	}
	/* The first event waits, the others fail with it. */
	assert_in_range(mu_clock_ms() - start, REPLY_MS / 2, 4 * REPLY_MS);
	set_behaviour(REPLY);
	assert_ok(send_names("?"), &err);
}

static void listener__that_replies_forever__does_not_delay_close(void **state)
{
	int64_t start = mu_clock_ms();

	set_behaviour(REPLY_FOREVER);
	assert_ok(send_names("?"), &err);
	streams.close(streams.ctx, listener.url);
	assert_in_range(mu_clock_ms() - start, 0, 10 * REPLY_MS);
}

static void listener__that_ends_the_stream__fails_the_next_event(void **state)
{
	set_behaviour(END_STREAM);
	assert_ok(send_names("?1"), &err);
	WAIT_UNTIL(has_received("[?1]"));
	set_behaviour(REPLY);
	assert_fails(send_names("?2"), &err, MU_CANCELLED, "Write event to stream URL grpc://");
	assert_ok(send_names("?3"), &err);
}

static void address__without_a_listener__fails_in_time(void **state)
{
	assert_fails(send_at("grpc://127.0.0.1:1/path", "?", NULL, true), &err,
		     MU_FAILED_PRECONDITION,
		     "Failed to connect to gRPC channel at 127.0.0.1:1 within a timeout of 2 s.");
	assert_int_not_equal(send_at("grpc://", "?", NULL, true), 0);
}

static void stop__during_a_wait__ends_it(void **state)
{
	int64_t start = mu_clock_ms();
	pthread_t thread;
	int rc;

	event_listeners_free(listeners);
	listeners = event_listeners_new(CONNECT_MS, TEST_TIMEOUT_S * 1000, &streams);
	set_behaviour(NEVER_REPLY);
	assert_int_equal(pthread_create(&thread, NULL, send_in_thread, &rc), 0);
	WAIT_UNTIL(has_received("[?"));
	event_listeners_stop(listeners);
	pthread_join(thread, NULL);
	assert_in_range(mu_clock_ms() - start, 0, TEST_TIMEOUT_S * 500);
}

static unsigned open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void closed_streams__leave_no_connections(void **state)
{
	unsigned before = open_descriptors();

	for (int i = 0; i < 50; i++) {
		assert_ok(send_names("?"), &err);
		streams.close(streams.ctx, listener.url);
	}
	WAIT_UNTIL(open_descriptors() < before + 10);
}

static void many_urls__drop_the_least_recently_used_stream(void **state)
{
	reply_with(READ_ONLY);
	for (int i = 0; i < 65; i++) {
		MU_AUTO_FREE char *url = mu_xasprintf("%s/%d", listener.url, i);

		assert_ok(send_at(url, "?", NULL, true), &err);
		streams.close(streams.ctx, url);
	}
	for (int i = 0; i < 65; i += 64) {
		MU_AUTO_FREE char *url = mu_xasprintf("%s/%d", listener.url, i);

		assert_int_equal(streams.is_enabled(streams.ctx, url, KEY), i == 64);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_client, stop_client)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(events__arrive_in_order_on_one_stream_until_it_is_closed),
	    TEST(event__after_close__opens_another_stream),
	    TEST(urls__with_different_paths__have_separate_streams),
	    TEST(replies__enable_and_disable_watch_keys),
	    TEST(unread_replies__are_read_when_the_stream_is_closed),
	    TEST(breakpoint__waits_for_a_reply),
	    TEST(malformed_reply__fails),
	    TEST(too_many_watch_keys__fail),
	    TEST(listener__that_never_replies__fails_all_waiting_events_in_time),
	    TEST(listener__that_replies_forever__does_not_delay_close),
	    TEST(listener__that_ends_the_stream__fails_the_next_event),
	    TEST(address__without_a_listener__fails_in_time),
	    TEST(stop__during_a_wait__ends_it),
	    TEST(closed_streams__leave_no_connections),
	    TEST(many_urls__drop_the_least_recently_used_stream),
	};

	return cmocka_run_group_tests(tests, start_listener, stop_listener);
}
