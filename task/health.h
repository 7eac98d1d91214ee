/* SPDX-License-Identifier: Apache-2.0 */
/* The gRPC health checking protocol (grpc.health.v1). */
#ifndef MU_TASK_HEALTH_H
#define MU_TASK_HEALTH_H

#include "task/rpc/server.h"

/* The methods' ctx is a struct task_context. */
extern const struct rpc_method health_methods[];
extern const unsigned health_n_methods;

#endif
