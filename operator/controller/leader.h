/* SPDX-License-Identifier: Apache-2.0 */
/* Leader election: only the holder of a Lease may write. */
#ifndef CONTROLLER_LEADER_H
#define CONTROLLER_LEADER_H

#include "operator/controller/controller.h"

void *leader_run(void *controller); /* a thread */
void leader_release(struct controller *c);
bool leader_may_write(void *controller);
/* To be called when nobody else writes any more and we do not yet: asks for the version of now.  A
 * job that is newer holds all that others have written, so it need not be read again before the
 * first deed (reconcile.c).  Where the answer fails to come, each job is. */
void leader_begin_term(struct controller *c);

#endif
