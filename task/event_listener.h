/* SPDX-License-Identifier: Apache-2.0 */
/* Client of tensorflow.EventListener, the service that receives debugger dumps (grpc:// URLs).
 *
 * A task has one stream for each URL.  As in TensorFlow, the master closes its streams at the end
 * of the step, and the streams of other tasks stay open for the next step.  Every wait has a limit;
 * after it the event fails, and the next event opens a new stream. */
#ifndef MU_TASK_EVENT_LISTENER_H
#define MU_TASK_EVENT_LISTENER_H

#include "task/runtime/debug_sink.h"

struct event_listeners;
/* connect_ms: limit of a connection attempt; reply_ms: limit of each other wait.  Fills streams
 * except for the offload threads. */
struct event_listeners *event_listeners_new(long connect_ms, long reply_ms,
					    struct debug_streams *streams);
/* Cancels the streams: waiting calls fail soon, later ones at once. */
void event_listeners_stop(struct event_listeners *ls);
void event_listeners_free(struct event_listeners *ls); /* NULL is allowed; no call may be left */

#endif
