/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that a client compresses. */
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <stdio.h>

#include "task/rpc/server.h"
#include "tests/test.h"
#include "tests/wait.h"

enum { LENGTH = 100000 };

static void echo(struct rpc_call *call, void *ctx)
{
	struct rpc_message m = {.head = rpc_bytes_flat(rpc_request(call))};

	rpc_reply(call, &m);
}

/* Sends LENGTH equal bytes to Echo over a channel that compresses requests; returns the reply. */
static grpc_byte_buffer *call_compressed(const char *target, grpc_compression_algorithm algorithm)
{
	grpc_completion_queue *queue = grpc_completion_queue_create_for_pluck(NULL);
	grpc_arg arg = {.type = GRPC_ARG_INTEGER,
			.key = (char *)GRPC_COMPRESSION_CHANNEL_DEFAULT_ALGORITHM,
			.value.integer = algorithm};
	grpc_channel_args args = {1, &arg};
	grpc_channel_credentials *creds = grpc_insecure_credentials_create();
	grpc_channel *channel = grpc_channel_create(target, creds, &args);
	gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
					     gpr_time_from_seconds(TEST_TIMEOUT_S, GPR_TIMESPAN));
	grpc_call *call = grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, queue,
						   grpc_slice_from_static_string("/t.T/Echo"), NULL,
						   deadline, NULL);
	grpc_slice body = grpc_slice_malloc(LENGTH), details;
	grpc_byte_buffer *request, *reply = NULL;
	grpc_metadata_array initial, trailing;
	grpc_status_code status;
	grpc_op ops[6] = {
	    {.op = GRPC_OP_SEND_INITIAL_METADATA},  {.op = GRPC_OP_SEND_MESSAGE},
	    {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT}, {.op = GRPC_OP_RECV_INITIAL_METADATA},
	    {.op = GRPC_OP_RECV_MESSAGE},           {.op = GRPC_OP_RECV_STATUS_ON_CLIENT}};

	memset(GRPC_SLICE_START_PTR(body), 'a', LENGTH);
	request = grpc_raw_byte_buffer_create(&body, 1);
	grpc_metadata_array_init(&initial);
	grpc_metadata_array_init(&trailing);
	ops[1].data.send_message.send_message = request;
	ops[3].data.recv_initial_metadata.recv_initial_metadata = &initial;
	ops[4].data.recv_message.recv_message = &reply;
	ops[5].data.recv_status_on_client.trailing_metadata = &trailing;
	ops[5].data.recv_status_on_client.status = &status;
	ops[5].data.recv_status_on_client.status_details = &details;
	assert_int_equal(grpc_call_start_batch(call, ops, MU_COUNT(ops), call, NULL), GRPC_CALL_OK);
	grpc_completion_queue_pluck(queue, call, deadline, NULL);
	assert_int_equal(status, GRPC_STATUS_OK);

	grpc_slice_unref(details);
	grpc_slice_unref(body);
	grpc_byte_buffer_destroy(request);
	grpc_metadata_array_destroy(&initial);
	grpc_metadata_array_destroy(&trailing);
	grpc_call_unref(call);
	grpc_channel_destroy(channel);
	grpc_channel_credentials_release(creds);
	grpc_completion_queue_shutdown(queue);
	grpc_completion_queue_destroy(queue);
	return reply;
}

static void compressed_request__arrives_decompressed(void **state)
{
	static const grpc_compression_algorithm algorithms[] = {
	    GRPC_COMPRESS_NONE, GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP};
	static const struct rpc_method methods[] = {{"/t.T/Echo", .handle = echo}};
	static const char *const address = "127.0.0.1:0";
	struct rpc_server_options o = {
	    .addresses = &address, .n_addresses = 1, .methods = methods, .n_methods = 1};
	struct rpc_server *server;
	struct mu_err err;
	char target[32];
	int port;

	assert_ok(rpc_server_start(&o, &server, &port, &err), &err);
	snprintf(target, sizeof(target), "127.0.0.1:%d", port);
	for (unsigned i = 0; i < MU_COUNT(algorithms); i++) {
		grpc_byte_buffer *reply = call_compressed(target, algorithms[i]);
		grpc_byte_buffer_reader reader;
		grpc_slice all;

		assert_non_null(reply);
		assert_true(grpc_byte_buffer_reader_init(&reader, reply));
		all = grpc_byte_buffer_reader_readall(&reader);
		assert_int_equal(GRPC_SLICE_LENGTH(all), LENGTH);
		for (size_t k = 0; k < LENGTH; k++)
			assert_int_equal(GRPC_SLICE_START_PTR(all)[k], 'a');
		grpc_slice_unref(all);
		grpc_byte_buffer_reader_destroy(&reader);
		grpc_byte_buffer_destroy(reply);
	}
	rpc_server_stop(server, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(compressed_request__arrives_decompressed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
