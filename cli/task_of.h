/* SPDX-License-Identifier: Apache-2.0 */
/* The task server beside the trainer, in this process. */
#ifndef CLI_TASK_OF_H
#define CLI_TASK_OF_H

#include "lib/cluster/cluster_spec.h"
#include "muster/session.h"

struct task_server;
/* Starts the server of task `self` of the cluster, with the ports and kernels that the environment
 * says.  finish is called, from another thread, when the task is asked to end by itself. */
int task_of_start(const struct mu_cluster *c, const struct mu_self *self, void (*finish)(void *arg),
		  struct task_server **out, struct mu_err *err);
/* Straight to it, for sessions in this process. */
struct mu_transport task_of_transport(struct task_server *s);
void task_of_stop(struct task_server *s); /* NULL is fine */

#endif
