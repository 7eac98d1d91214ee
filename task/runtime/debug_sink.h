/* SPDX-License-Identifier: Apache-2.0 */
/* Where TensorFlow's debugger (tfdbg) finds the tensors and graphs of a step: Event messages, each
 * in a file of its own below the folder that a URL file://FOLDER names. */
#ifndef MU_TASK_RUNTIME_DEBUG_SINK_H
#define MU_TASK_RUNTIME_DEBUG_SINK_H

#include "lib/base/buf.h"

/* Begins an Event at the present time.  Returns that time in microseconds since 1970, which is
 * later than that of each other event of this process. */
int64_t debug_event_begin(struct mu_buf *event);
/* Appends the folder of a device below that of the URL, with its slash; "": none, for the step. */
void debug_put_folder(struct mu_buf *path, const char *device);
/* Publishes an event.  path: of its file below the URL's folder, without the time at its end. */
int debug_publish(const char *url, const char *path, int64_t time_us, struct mu_span event,
		  struct mu_err *err);

#endif
