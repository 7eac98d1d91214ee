/* SPDX-License-Identifier: Apache-2.0 */
/* Each stream has its own completion queue, which the caller polls.  It needs no thread of the
 * shared queue, so any thread may block in these functions. */
#include "task/rpc/stream_call.h"

#include <grpc/byte_buffer.h>
#include <grpc/support/time.h>

#include "task/rpc/bytes.h"
#include "task/rpc/core.h"

struct rpc_stream {
	grpc_channel *channel;
	grpc_completion_queue *queue;
	grpc_call *call;
	grpc_metadata_array initial;
	bool has_initial; /* the server's initial metadata was requested */
};

/* Waits for one batch.  A batch that exceeds the timeout ends because its call is cancelled. */
static int run_batch(struct rpc_stream *s, const grpc_op *ops, size_t n, long timeout_ms,
		     struct mu_err *err)
{
	gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
					  gpr_time_from_millis(timeout_ms, GPR_TIMESPAN));
	grpc_event e;

	if (grpc_call_start_batch(s->call, ops, n, s, NULL) != GRPC_CALL_OK)
		return mu_fail(err, MU_INTERNAL, "the call cannot be used");
	e = grpc_completion_queue_pluck(s->queue, s, until, NULL);
	if (e.type != GRPC_QUEUE_TIMEOUT)
		return e.success ? 0 : mu_fail(err, MU_CANCELLED, "the stream has ended");
	grpc_call_cancel(s->call, NULL);
	grpc_completion_queue_pluck(s->queue, s, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
	return mu_fail(err, MU_DEADLINE_EXCEEDED, "no progress within %ld ms", timeout_ms);
}

static grpc_channel *open_channel(const char *target)
{
	MU_AUTO_FREE char *uri = mu_xasprintf("dns:///%s", target);
	grpc_arg args[] = {CORE_INT(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
			   CORE_INT(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
			   CORE_INT(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, RPC_BACKOFF_INITIAL_MS),
			   CORE_INT(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, RPC_BACKOFF_MAX_MS)};
	grpc_channel_credentials *creds = grpc_insecure_credentials_create();
	grpc_channel *c =
	    grpc_channel_create(uri, creds, &(grpc_channel_args){MU_COUNT(args), args});

	grpc_channel_credentials_release(creds);
	return c;
}

int rpc_stream_open(const char *target, const char *method, long timeout_ms,
		    struct rpc_stream **out, struct mu_err *err)
{
	struct rpc_stream *s = MU_NEW(struct rpc_stream);
	grpc_slice path = grpc_slice_from_copied_string(method);
	grpc_op op = {.op = GRPC_OP_SEND_INITIAL_METADATA,
		      .flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY |
			       GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET};
	int rc;

	grpc_init();
	s->channel = open_channel(target);
	s->queue = grpc_completion_queue_create_for_pluck(NULL);
	s->call = grpc_channel_create_call(s->channel, NULL, GRPC_PROPAGATE_DEFAULTS, s->queue,
					   path, NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
	grpc_slice_unref(path);
	grpc_metadata_array_init(&s->initial);
	rc = run_batch(s, &op, 1, timeout_ms, err);
	if (rc)
		rpc_stream_free(s);
	else
		*out = s;
	return rc;
}

int rpc_stream_send(struct rpc_stream *s, struct mu_span message, long timeout_ms,
		    struct mu_err *err)
{
	grpc_byte_buffer *buffer = message_to_buffer(&(struct rpc_message){.head = message});
	grpc_op op = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = buffer};
	int rc = run_batch(s, &op, 1, timeout_ms, err);

	grpc_byte_buffer_destroy(buffer);
	return rc;
}

int rpc_stream_send_end(struct rpc_stream *s, long timeout_ms, struct mu_err *err)
{
	return run_batch(s, &(grpc_op){.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT}, 1, timeout_ms, err);
}

int rpc_stream_receive(struct rpc_stream *s, long timeout_ms, struct mu_buf *message,
		       struct mu_err *err)
{
	grpc_byte_buffer *buffer = NULL;
	grpc_op ops[] = {
	    {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &buffer},
	    {.op = GRPC_OP_RECV_INITIAL_METADATA,
	     .data.recv_initial_metadata.recv_initial_metadata = &s->initial},
	};
	struct rpc_bytes received;
	struct mu_span bytes;
	int rc = run_batch(s, ops, s->has_initial ? 1 : 2, timeout_ms, err);

	s->has_initial = true;
	bytes_receive(&received, buffer);
	if (!rc && !buffer)
		rc = mu_fail(err, MU_OUT_OF_RANGE, "the server has ended the stream");
	if (!rc) {
		bytes = rpc_bytes_flat(&received);
		mu_buf_put(message, bytes.data, bytes.len);
	}
	bytes_fini(&received);
	return rc;
}

void rpc_stream_cancel(struct rpc_stream *s)
{
	grpc_call_cancel(s->call, NULL);
}

void rpc_stream_free(struct rpc_stream *s)
{
	if (!s)
		return;
	grpc_call_cancel(s->call, NULL);
	grpc_call_unref(s->call);
	grpc_metadata_array_destroy(&s->initial);
	grpc_channel_destroy(s->channel);
	grpc_completion_queue_destroy(s->queue);
	grpc_shutdown();
	free(s);
}
