/* SPDX-License-Identifier: Apache-2.0 */
/* The method Check answers for the whole task ("") and for each service by its name.  Watch is a
 * streaming method, which this server does not support.  It returns UNIMPLEMENTED; the protocol
 * lets clients poll Check then. */
#include "task/health.h"

#include "lib/base/pb.h"
#include "task/context.h"
#include "task/master/master.h"

enum { SERVING = 1, NOT_SERVING = 2 };

static const char *const services[] = {
    "",
    "tensorflow.MasterService",
    "tensorflow.WorkerService",
    "tensorflow.grpc.MasterService",
    "tensorflow.grpc.WorkerService",
    "grpc.health.v1.Health",
};

static bool is_service(struct mu_span name)
{
	for (unsigned i = 0; i < MU_COUNT(services); i++)
		if (strlen(services[i]) == name.len && !memcmp(services[i], name.data, name.len))
			return true;
	return false;
}

static void check(struct rpc_call *call, void *ctx)
{
	const struct master *m = ((struct task_context *)ctx)->master;
	struct mu_pb request = mu_pb_of(rpc_bytes_flat(rpc_request(call)));
	struct mu_span name = MU_SPAN("");
	MU_AUTO_BUF body = {0};
	struct mu_pb_field f;
	struct mu_err err;

	while (mu_pb_next(&request, &f))
		if (f.number == 1)
			name = f.bytes;
	if (request.bad || !is_service(name)) {
		mu_fail(&err, request.bad ? MU_INVALID_ARGUMENT : MU_NOT_FOUND,
			"unknown service '%.*s'", (int)(name.len > 200 ? 200 : name.len),
			name.data);
		rpc_reply_error(call, &err);
		return;
	}
	mu_pb_put_int(&body, 1, m->stopping ? NOT_SERVING : SERVING);
	rpc_reply(call, &(struct rpc_message){.head = mu_buf_span(&body)});
}

static void health_watch(struct rpc_call *call, void *ctx)
{
	struct mu_err err;

	mu_fail(&err, MU_UNIMPLEMENTED, "Watch is not supported: call Check");
	rpc_reply_error(call, &err);
}

const struct rpc_method health_methods[] = {
    {"/grpc.health.v1.Health/Check", check},
    {"/grpc.health.v1.Health/Watch", health_watch},
};
const unsigned health_n_methods = MU_COUNT(health_methods);
