/* SPDX-License-Identifier: Apache-2.0 */
/* The operator as it runs: all its threads, from start to stop. */
#ifndef CONTROL_CONTROLLER_H
#define CONTROL_CONTROLLER_H

#include "operator/control/control.h"

/* What a worker does with a key from the queue, up to workqueue_done. */
void control_work(struct control *c, const char *key);
/* Runs until *stop becomes true or leadership is lost; 0 after an orderly stop.  Takes config. */
int control_run(const struct control_options *options, struct kube_config *config,
		const _Atomic bool *stop, struct mu_err *err);

#endif
