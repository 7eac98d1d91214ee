/* SPDX-License-Identifier: Apache-2.0 */
/* The operator as it runs: all its threads, from start to stop. */
#ifndef CONTROL_CONTROLLER_H
#define CONTROL_CONTROLLER_H

#include "operator/control/control.h"

/* What a worker does with a key from the queue, up to workqueue_done. */
void control_work(struct control *c, const char *key);
/* Runs until it is stopped or leadership is lost; 0 after an orderly stop.  Takes config. */
int control_run(const struct control_options *options, struct kube_config *config,
		struct control_stop *stop, struct mu_err *err);
void control_stop_init(struct control_stop *stop);
bool control_stop(struct control_stop *stop); /* whether it had been told before */

#endif
