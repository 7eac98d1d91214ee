/* SPDX-License-Identifier: Apache-2.0 */
/* How far the running jobs are, and who is told of new members. */
#ifndef CONTROL_PROGRESS_H
#define CONTROL_PROGRESS_H

void *progress_run(void *control); /* a thread */

#endif
