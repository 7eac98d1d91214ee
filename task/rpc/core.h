/* SPDX-License-Identifier: Apache-2.0 */
/* Shared use of the gRPC C core library in this folder: initialization, log, completion queue. */
#ifndef MU_TASK_RPC_CORE_H
#define MU_TASK_RPC_CORE_H

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "lib/base/err.h"
#include "lib/base/tsan.h"

enum {
	CORE_MAX_ERROR_TEXT = 2048, /* bytes of a status text; clients limit metadata to 8 KiB */
	CORE_READ_CHUNK = 4 << 20,  /* max bytes of one read from a socket */
	CORE_STREAM_WINDOW = 4 << 20,
};

#define CORE_INT(k, v)                                                                             \
	{                                                                                          \
		.type = GRPC_ARG_INTEGER, .key = (char *)(k), .value.integer = (v)                 \
	}

/* One completion queue for all servers and channels of the process: the thread that reads a
 * request also runs its handler and writes the reply.  Threads start with the first user and end
 * with the last.  Tags are struct core_tag. */
struct core_tag {
	void (*complete)(struct core_tag *tag, bool ok);
};
grpc_completion_queue *core_queue_ref(struct mu_err *err); /* NULL with err: no thread started */
void core_queue_unref(void);                               /* not from one of its threads */
bool core_is_queue_thread(void);

#endif
