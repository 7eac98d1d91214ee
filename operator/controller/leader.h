/* SPDX-License-Identifier: Apache-2.0 */
/* Leader election: only the holder of a Lease may write. */
#ifndef CONTROLLER_LEADER_H
#define CONTROLLER_LEADER_H

#include "operator/controller/controller.h"

void *leader_run(void *controller); /* a thread */
void leader_release(struct controller *c);
bool leader_may_write(void *controller);
/* Called at the begin of a term, when no other operator writes any more and this one does not write
 * yet. Asks for the current resource version. A job with a newer version contains all writes of
 * earlier leaders, so reconcile.c need not read it again before its first action. If the request
 * fails, it reads every job. */
void leader_begin_term(struct controller *c);

#endif
