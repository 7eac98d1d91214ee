/* SPDX-License-Identifier: Apache-2.0 */
/* The sinks of TensorFlow's debugger (tfdbg), which receive the tensors and graphs of a step as
 * Event messages.  A URL file://FOLDER gets a file for each event; grpc://HOST:PORT names a server
 * with the service EventListener, which gets a stream of them. */
#ifndef MU_TASK_RUNTIME_DEBUG_SINK_H
#define MU_TASK_RUNTIME_DEBUG_SINK_H

#include <stdbool.h>

#include "lib/base/buf.h"

enum { DEBUG_CHUNK_BYTES = 4000 * 1024 }; /* of a tensor or graph in an event of a stream */

struct mu_offload;
struct runtime;

struct debug_event {
	struct mu_span bytes; /* an encoded Event */
	const char *path;     /* of its file below the URL's folder, without the time at its end */
	int64_t time_us;
	const char *watch_key; /* of a tensor, "node:slot:DebugOp"; NULL: names or a graph */
	bool is_last;          /* chunk of the tensor or graph */
};

struct debug_sink {
	const char *scheme;
	bool is_stream; /* its functions wait for the network; it gets large tensors in chunks */
	int (*publish)(struct runtime *rt, const char *url, const struct debug_event *e,
		       struct mu_err *err);
};
const struct debug_sink *debug_sink_find(const char *url); /* NULL: no sink has such URLs */

/* The client of EventListener servers; a task has it, and tests of kernels do not. */
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

/* Returns the present time in microseconds since 1970; each call returns a later one. */
int64_t debug_event_time(void);
void debug_event_begin(struct mu_buf *event, int64_t time_us);
/* Appends the folder of a device below that of the URL, with its slash; "": none, for the step. */
void debug_put_folder(struct mu_buf *path, const char *device);

#endif
