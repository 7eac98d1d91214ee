/* SPDX-License-Identifier: Apache-2.0 */
/* Polls the tasks of running jobs. */
#ifndef CONTROLLER_PROGRESS_H
#define CONTROLLER_PROGRESS_H

#include "operator/controller/controller.h"

/* Thread start routine: polls all jobs each progress_seconds. */
void *progress_run(void *controller);
/* Asks the chief of a job how far it is, when its poll is due.  A task that does not answer is
 * asked less and less often. */
void progress_ask(struct controller *c, const char *key);
/* Sends the tasks that have an older epoch than the stored status the members of their cluster
 * (job_plan.membership_update).  True when one has taken it up. */
bool progress_tell(struct controller *c, const char *key);

#endif
