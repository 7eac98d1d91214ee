/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as each hand-written message of a step and as each control message.  A parsed
 * RunGraph or RecvTensor must not change when it is written and parsed again. */
#include <stdint.h>
#include <stdlib.h>

#include "proto/debug_service.pb-c.h"
#include "proto/master.pb-c.h"
#include "proto/worker.pb-c.h"
#include "task/messages/control.h"
#include "task/messages/step_messages.h"
#include "task/peer/peer_collective.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const control_messages[] = {
    &muster__create_session_request__descriptor,
    &muster__extend_session_request__descriptor,
    &muster__partial_run_setup_request__descriptor,
    &muster__make_callable_request__descriptor,
    &muster__reset_request__descriptor,
    &muster__config_proto__descriptor,
    &muster__event_reply__descriptor,
    &muster__get_status_response__descriptor,
    &muster__create_worker_session_request__descriptor,
    &muster__register_graph_request__descriptor,
    &muster__cleanup_all_request__descriptor,
    &muster__debug_options__descriptor,
};

static void run_graph(struct mu_span bytes, struct mu_arena *a)
{
	struct run_graph_request m, again;
	MU_AUTO_BUF b = {0};
	struct mu_err err;

	if (run_graph_request_parse(&m, bytes, a, &err))
		return;
	run_graph_request_write(&b, &m);
	if (run_graph_request_parse(&again, mu_buf_span(&b), a, &err) ||
	    again.step_id != m.step_id || again.request_id != m.request_id ||
	    strcmp(again.graph, m.graph) != 0)
		abort();
}

static void recv_tensor(struct mu_span bytes, struct mu_arena *a)
{
	struct recv_tensor_request m, again;
	MU_AUTO_BUF b = {0};
	struct mu_err err;

	if (recv_tensor_request_parse(&m, bytes, a, &err))
		return;
	recv_tensor_request_write(&b, &m);
	if (recv_tensor_request_parse(&again, mu_buf_span(&b), a, &err) ||
	    again.step_id != m.step_id || strcmp(again.key, m.key) != 0)
		abort();
}

static void collective(struct mu_span bytes, struct mu_arena *a)
{
	struct collective_part part;
	struct mu_err err;

	if (!peer_collective_parse(&part, bytes, a, &err))
		mu_tensor_unref(&part.tensor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span bytes = {(const char *)data, size};
	struct run_step_request step;
	struct mu_arena a;
	struct mu_err err;

	mu_arena_init(&a);
	run_step_request_parse(&step, bytes, &a, &err);
	run_callable_request_parse(&step, bytes, &a, &err);
	response_status_parse(bytes, 5, 6, &err);
	run_graph(bytes, &a);
	recv_tensor(bytes, &a);
	collective(bytes, &a);
	for (unsigned i = 0; i < MU_COUNT(control_messages); i++)
		control_unpack(&a, control_messages[i], bytes, &err);
	mu_arena_fini(&a);
	return 0;
}
