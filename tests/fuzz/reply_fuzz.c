/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as replies of a server: RunStep and RunCallable in the client, RecvTensor in a
 * task, with the payload read directly into the tensor if the first bytes select that. */
#include <stdint.h>
#include <stdlib.h>

#include "client/session/run_step.h"
#include "lib/base/pb.h"
#include "muster/graph.h"
#include "task/messages/step_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_step(struct mu_span reply)
{
	static struct mu_builder *b;
	static struct mu_out fetch;
	struct mu_tensor values[2] = {{0}};
	struct mu_err err;

	if (!b) {
		b = mu_builder_new();
		fetch = mu_const_float(b, 1);
	}
	struct mu_out fetches[2] = {fetch, fetch};
	struct mu_run run = {.fetches = fetches, .n_fetches = 2};

	if (run_step_decode(reply, &run, values, &err))
		return;
	mu_tensor_unref(&values[0]);
	mu_tensor_unref(&values[1]);
}

/* Uses the input as the reply to the last call of a callable. */
static int reply_to_call(void *current_reply, const char *method, const struct rpc_message *request,
			 long timeout_ms, struct mu_buf *reply, struct mu_err *err)
{
	const struct mu_span *last = current_reply;

	if (strstr(method, "CreateSession"))
		mu_pb_put_str(reply, 1, "handle");
	else if (strstr(method, "MakeCallable"))
		mu_pb_put_int(reply, 1, 1);
	else if (strstr(method, "RunCallable"))
		mu_buf_put(reply, last->data, last->len);
	return 0;
}

static void run_callable(struct mu_span reply)
{
	static struct mu_builder *b;
	static struct mu_session *s;
	static struct mu_callable *c;
	static struct mu_span current_reply;
	struct mu_tensor values[3] = {{0}};
	struct mu_err err;

	if (!b) {
		b = mu_builder_new();
		struct mu_out one = mu_const_float(b, 1), two = mu_const_float(b, 2);
		struct mu_run run = {.fetches = (struct mu_out[]){one, two, one}, .n_fetches = 3};
		struct mu_session_options o = {.transport = {reply_to_call, &current_reply}};

		if (mu_session_open(&s, "nowhere:1", b, &o, &err) ||
		    mu_session_callable(&c, s, &run, &err))
			abort();
	}
	current_reply = reply;
	if (mu_callable_run(c, NULL, values, &err))
		return;
	for (int i = 0; i < 3; i++)
		mu_tensor_unref(&values[i]);
}

static void recv_tensor(struct mu_span reply)
{
	struct mu_tensor t = {0};
	struct mu_err err;
	bool dead;

	if (recv_tensor_response_parse(reply, &t, &dead, &err) == 0) {
		if (t.shape.count < 0 || mu_tensor_bytes(&t) > (size_t)mu_tensor_limit)
			abort();
		mu_tensor_unref(&t);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span reply = {(const char *)data, size};

	mu_tensor_limit = 1 << 20;
	run_step(reply);
	run_callable(reply);
	recv_tensor(reply);
	return 0;
}
