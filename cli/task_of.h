/* SPDX-License-Identifier: Apache-2.0 */
/* The task server beside the trainer, in this process. */
#ifndef CLI_TASK_OF_H
#define CLI_TASK_OF_H

#include "lib/cluster/cluster_spec.h"

struct task_server;
/* Starts the server of task `self` of the cluster; *target is where a session reaches it. */
int task_of_start(const struct mu_cluster *c, const struct mu_self *self, struct task_server **out,
		  char *target, size_t size, struct mu_err *err);
void task_of_stop(struct task_server *s); /* NULL is fine */

#endif
