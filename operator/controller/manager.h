/* SPDX-License-Identifier: Apache-2.0 */
/* The operator as it runs: all its threads, from start to stop. */
#ifndef MU_OPERATOR_CONTROLLER_MANAGER_H
#define MU_OPERATOR_CONTROLLER_MANAGER_H

#include "operator/controller/controller.h"

/* Runs until it is stopped or leadership is lost; 0 after an orderly stop.  Takes config. */
int manager_run(const struct controller_options *options, struct kube_config *config,
		struct controller_stop *stop, struct mu_err *err);
void controller_stop_init(struct controller_stop *stop);
bool controller_stop(struct controller_stop *stop); /* true: it was already stopping */

#endif
