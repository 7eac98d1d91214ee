/* SPDX-License-Identifier: Apache-2.0 */
/* Who may write: the holder of a Lease. */
#ifndef CONTROL_LEADER_H
#define CONTROL_LEADER_H

#include "operator/control/control.h"

void *leader_run(void *control); /* a thread */
void leader_release(struct control *c);
bool leader_may_write(void *control);
/* To be called when nobody else writes any more and we do not yet: asks for the version of now.  A
 * job that is newer holds all that others have written, so it need not be read again before the
 * first deed (reconcile.c).  Where the answer fails to come, each job is. */
void leader_begin_term(struct control *c);

#endif
