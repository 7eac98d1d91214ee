/* SPDX-License-Identifier: Apache-2.0 */
/* Leader election: only the holder of a Lease may write. */
#ifndef CONTROLLER_LEADER_H
#define CONTROLLER_LEADER_H

#include "operator/controller/controller.h"

void *leader_run(void *controller); /* a thread */
void leader_release(struct controller *c);
bool leader_may_write(void *controller);

#endif
