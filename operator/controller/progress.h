/* SPDX-License-Identifier: Apache-2.0 */
/* How far the running jobs are, and who is told of new members. */
#ifndef CONTROLLER_PROGRESS_H
#define CONTROLLER_PROGRESS_H

void *progress_run(void *controller); /* a thread */

#endif
