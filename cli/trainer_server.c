/* SPDX-License-Identifier: Apache-2.0 */
/* The task server in the process of the trainer. */
#include "cli/trainer_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "task/server.h"

enum { GRACE_MS = 2000 };

int trainer_server_start(const struct mu_cluster *c, const struct mu_self *self,
			 void (*finish)(void *arg), bool *unsupported, struct task_server **out,
			 struct mu_err *err)
{
	const char *address = mu_cluster_address(c, self->job, self->index, err);
	char bind[TASK_SERVER_BIND];
	struct task_server_options o = {
	    .cluster = c,
	    .job = self->job,
	    .index = self->index,
	    .http_port = -1,
	    .finish = finish,
	    .unsupported = unsupported,
	};
	int rc;

	if (!address)
		return -(int)MU_NOT_FOUND;
	rc = task_options_from_env(&o, address, bind, err);
	return rc ? rc : task_server_start(&o, out, err);
}

static int server_call(void *server, const char *method, const struct rpc_message *request,
		       long timeout_ms, struct mu_buf *reply, struct mu_err *err)
{
	return task_server_call(server, method, request, timeout_ms, reply, err);
}

struct mu_transport trainer_server_transport(struct task_server *s)
{
	return (struct mu_transport){.call = server_call, .ctx = s};
}

void trainer_server_stop(struct task_server *s)
{
	if (s)
		task_server_stop(s, GRACE_MS);
}
