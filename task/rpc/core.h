/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: gRPC's library, its slices and status. */
#ifndef MU_TASK_RPC_CORE_H
#define MU_TASK_RPC_CORE_H

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/status.h>

#include "task/rpc/channel.h"

struct rpc_bytes {
	grpc_byte_buffer *buffer; /* owned; NULL is the empty message */
	grpc_slice flat;
	bool has_flat;
};

void core_init(void);     /* counts; initialises gRPC at the first */
void core_shutdown(void); /* the last one lets go of it, without waiting */

void bytes_init(struct rpc_bytes *b, grpc_byte_buffer *buffer); /* takes buffer */
void bytes_fini(struct rpc_bytes *b);

grpc_byte_buffer *message_to_buffer(const struct rpc_message *m);

gpr_timespec core_deadline(long timeout_ms); /* <= 0: never */
/* What a peer answered.  gRPC's own "Stream removed" is a connection that went away. */
void core_status(struct mu_err *err, grpc_status_code code, grpc_slice details);

/* Both ends: large tensors in larger frames, windows and reads than gRPC's defaults of 16 KiB to
 * 64 KiB (16 MiB from a variable on the ps: about a fifth less time here). */
#define CORE_INT(name, number)                                                                     \
	{                                                                                          \
		.type = GRPC_ARG_INTEGER, .key = (char *)(name), .value.integer = (number)         \
	}
#define CORE_TRANSPORT_ARGS                                                                        \
	CORE_INT(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20),                                          \
	    CORE_INT(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 8 << 20),                              \
	    CORE_INT("grpc.experimental.tcp_max_read_chunk_size", 4 << 20)

/* One poll loop for all channels of the process. */
struct core_tag {
	void (*fire)(struct core_tag *tag, bool ok);
};
/* What goes through gRPC to another thread is handed over before and taken over after: gRPC does
 * synchronise, but ThreadSanitizer, which does not see into it, must be told. */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *p);
void __tsan_release(void *p);
#define core_hand_over(p) __tsan_release(p)
#define core_take_over(p) __tsan_acquire(p)
#else
#define core_hand_over(p) ((void)(p))
#define core_take_over(p) ((void)(p))
#endif
grpc_completion_queue *loop_ref(void);
void loop_unref(void);
bool loop_is_this_thread(void);

#endif
