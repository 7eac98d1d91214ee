/* SPDX-License-Identifier: Apache-2.0 */
#include "task/master/step_reply.h"

#include "lib/base/map.h"
#include "lib/base/pb.h"
#include "task/messages/tensor_writer.h"

void step_reply_error(struct rpc_call *call, bool in_body, const struct mu_err *err)
{
	MU_AUTO_BUF body = {0};

	if (!in_body) {
		rpc_reply_error(call, err);
		return;
	}
	/* RunStepResponse: metadata, status_code, status_error_message */
	mu_pb_put_bytes(&body, 2, MU_SPAN(""));
	mu_pb_put_int(&body, 3, err->code);
	mu_pb_put_str(&body, 4, err->msg);
	rpc_reply(call, &(struct rpc_message){.head = mu_buf_span(&body)});
}

void step_reply_tensors(struct rpc_call *call, const char *const *names,
			const struct mu_tensor *tensors, unsigned n, struct mu_span metadata)
{
	struct tensor_writer w = {0};
	struct mu_map written_names;

	mu_map_init(&written_names);
	for (unsigned i = 0; i < n; i++) {
		if (!names)
			tensor_writer_put(&w, 1, &tensors[i]);
		else if (!mu_map_put(&written_names, names[i], (void *)names[i]))
			tensor_writer_put_named(&w, 1, names[i], &tensors[i]);
	}
	mu_map_fini(&written_names);
	mu_pb_put_bytes(&w.buf, 2, metadata);
	rpc_reply(call, tensor_writer_message(&w));
	tensor_writer_fini(&w);
}
