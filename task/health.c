/* SPDX-License-Identifier: Apache-2.0 */
/* The method Check reports the status of the whole task ("") or of a service by its name.  Watch is
 * a streaming method, which this server does not support.  It returns UNIMPLEMENTED; then clients
 * may poll Check, according to the protocol. */
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

static int health_check(void *ctx, struct mu_span request, struct mu_buf *reply, struct mu_err *err)
{
	const struct master *master = ((struct task_context *)ctx)->master;
	struct mu_pb m = mu_pb_of(request);
	struct mu_span name = MU_SPAN("");
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f))
		if (f.number == 1)
			name = f.bytes;
	if (m.bad || !is_service(name))
		return mu_fail(err, m.bad ? MU_INVALID_ARGUMENT : MU_NOT_FOUND,
			       "unknown service '%.*s'", (int)(name.len > 200 ? 200 : name.len),
			       name.data);
	mu_pb_put_int(reply, 1, master->stopping ? NOT_SERVING : SERVING);
	return 0;
}

static int health_watch(void *ctx, struct mu_span request, struct mu_buf *reply, struct mu_err *err)
{
	return mu_fail(err, MU_UNIMPLEMENTED, "Watch is not supported: call Check");
}

const struct rpc_method health_methods[] = {
    {"/grpc.health.v1.Health/Check", .respond = health_check},
    {"/grpc.health.v1.Health/Watch", .respond = health_watch},
};
const unsigned health_n_methods = MU_COUNT(health_methods);
