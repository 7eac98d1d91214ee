/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-written encoding of the messages of every step: RunStep, RunCallable, RunGraph, RecvTensor.
 *
 * Parsed requests borrow the encoded bytes; lists are in the arena. */
#ifndef MU_TASK_MESSAGES_STEP_MESSAGES_H
#define MU_TASK_MESSAGES_STEP_MESSAGES_H

#include "task/rpc/channel.h"

enum { MAX_STEP_NAMES = 1 << 20 }; /* feeds, fetches or targets of one step */

struct name_list {
	const char **list; /* NUL-terminated, in the arena */
	unsigned n, cap;
};
/* Records that a step returns besides its results; the bits of ExecutorOpts. */
enum step_record { RECORD_COSTS = 1, RECORD_TIMELINE = 2, RECORD_PARTITIONS = 4 };
/* Returns the records that RunOptions request. */
unsigned step_record_of(int64_t trace_level, bool partition_graphs);
struct run_step_request {
	const char *session;
	struct name_list feeds, fetches, targets;
	struct name_list connected, sources; /* callables: tensors, and their replacements */
	struct mu_span *feed_tensors;        /* serialised TensorProtos */
	unsigned cap_tensors;
	int64_t timeout_ms, request_id, callable;
	const char *partial; /* the handle of a partial run; NULL: an ordinary step */
	unsigned record;     /* enum step_record */
	bool store_errors;
	struct mu_span debug; /* DebugOptions; empty: no tensor is watched */
};
int run_step_request_parse(struct run_step_request *out, struct mu_span bytes, struct mu_arena *a,
			   struct mu_err *err);
/* Parses a RunCallableRequest, whose feeds have no names. */
int run_callable_request_parse(struct run_step_request *out, struct mu_span bytes,
			       struct mu_arena *a, struct mu_err *err);

struct run_graph_request {
	const char *graph, *session;
	int64_t step_id, request_id;
	unsigned record; /* enum step_record */
	bool has_send_or_recv, partial, store_errors, session_called;
};
int run_graph_request_parse(struct run_graph_request *out, struct mu_span bytes, struct mu_arena *a,
			    struct mu_err *err);
void run_graph_request_write(struct mu_buf *b, const struct run_graph_request *m);
/* Parses the status inside a RunGraphResponse or RunStepResponse.  Returns 0, or its code with err
 * filled. */
int response_status_parse(struct mu_span bytes, uint32_t code_field, uint32_t text_field,
			  struct mu_err *err);

struct recv_tensor_request {
	int64_t step_id, request_id;
	const char *key;
};
int recv_tensor_request_parse(struct recv_tensor_request *out, struct mu_span bytes,
			      struct mu_arena *a, struct mu_err *err);
void recv_tensor_request_write(struct mu_buf *b, const struct recv_tensor_request *m);
/* A TensorProto {dtype=DT_FLOAT, shape=[0]}: the tensor of a dead value. */
#define EMPTY_FLOAT_PROTO "\x08\x01\x12\x04\x12\x02\x08\x00"
/* Parses a RecvTensorResponse. */
int recv_tensor_response_parse(struct mu_span bytes, struct mu_tensor *out, bool *dead,
			       struct mu_err *err);

#endif
