/* SPDX-License-Identifier: Apache-2.0 */
/* The sinks of TensorFlow's debugger (tfdbg), which receive the tensors and graphs of a step as
 * Event messages.  A sink with the URL file://FOLDER writes each event to a file.  A sink with the
 * URL grpc://HOST:PORT sends a stream of events to the service EventListener of that server. */
#ifndef MU_TASK_RUNTIME_DEBUG_SINK_H
#define MU_TASK_RUNTIME_DEBUG_SINK_H

#include <stdbool.h>

#include "lib/base/buf.h"

enum { DEBUG_CHUNK_BYTES = 4000 * 1024 }; /* chunk of a tensor or graph in one event of a stream */

struct mu_offload;
struct runtime;

struct debug_event {
	struct mu_span bytes; /* an encoded Event */
	const char *path; /* file of the event below the URL's folder, without the time suffix */
	int64_t time_us;
	const char *watch_key; /* "node:slot:DebugOp"; NULL: the event has no tensor */
	bool is_last;          /* the last chunk of the tensor or graph */
};

struct debug_sink {
	const char *scheme;
	bool is_stream; /* its functions wait for the network; it gets large tensors in chunks */
	int (*publish)(struct runtime *rt, const char *url, const struct debug_event *e,
		       struct mu_err *err);
};
const struct debug_sink *debug_sink_find(const char *url); /* NULL: no sink has such URLs */

/* The client of EventListener servers.  Tests of kernels have none. */
struct debug_streams {
	/* Sends an event, and waits for a reply where the server sends one. */
	int (*send)(void *ctx, const char *url, const struct debug_event *e, struct mu_err *err);
	/* True if the server has enabled the watch key of a debug op with `gated_grpc`. */
	bool (*is_enabled)(void *ctx, const char *url, const char *watch_key);
	/* Ends the stream to the URL, after the server has received all its events. */
	void (*close)(void *ctx, const char *url);
	void *ctx;
	struct mu_offload *offload; /* threads for nodes that publish; borrowed */
};

/* Returns the current time in microseconds since 1970; each call returns a later time. */
int64_t debug_event_time(void);
void debug_event_begin(struct mu_buf *event, int64_t time_us);
/* Appends the folder name of a device and a slash; nothing for the device "", i.e. for the step. */
void debug_put_folder(struct mu_buf *path, const char *device);

#endif
