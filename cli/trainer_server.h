/* SPDX-License-Identifier: Apache-2.0 */
/* The task server in the process of the trainer. */
#ifndef MU_CLI_TRAINER_SERVER_H
#define MU_CLI_TRAINER_SERVER_H

#include "lib/cluster/cluster_spec.h"
#include "muster/session.h"

struct task_server;
/* Starts the server of task `self` of the cluster, with ports and kernels from the environment.
 * finish is called from another thread when the task is asked to finish.  *unsupported is set to
 * true when the machine does not support the kernels. */
int trainer_server_start(const struct mu_cluster *c, const struct mu_self *self,
			 void (*finish)(void *arg), bool *unsupported, struct task_server **out,
			 struct mu_err *err);
/* Direct calls to the server, for sessions in this process. */
struct mu_transport trainer_server_transport(struct task_server *s);
void trainer_server_stop(struct task_server *s); /* s may be NULL */

#endif
