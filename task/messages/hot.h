/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-written encoding of the messages of every step: RunStep, RunCallable, RunGraph, RecvTensor.
 *
 * Parsed requests borrow the encoded bytes; lists are in the arena. */
#ifndef MU_TASK_MESSAGES_HOT_H
#define MU_TASK_MESSAGES_HOT_H

#include "task/rpc/channel.h"

enum { HOT_MAX_NAMES = 1 << 20 }; /* feeds, fetches or targets of one step */

struct hot_names {
	const char **list; /* NUL-terminated, in the arena */
	unsigned n, cap;
};
/* Records that a step returns besides its results; the bits of ExecutorOpts. */
enum hot_record { RECORD_COSTS = 1, RECORD_TIMELINE = 2, RECORD_PARTITIONS = 4 };
/* Returns the records that RunOptions request. */
unsigned hot_record_of(int64_t trace_level, bool partition_graphs);
struct hot_run_step {
	const char *session;
	struct hot_names feeds, fetches, targets;
	struct mu_span *feed_tensors; /* serialised TensorProtos */
	unsigned cap_tensors;
	int64_t timeout_ms, request_id, callable;
	const char *partial; /* the handle of a partial run; NULL: an ordinary step */
	unsigned record;     /* enum hot_record */
	bool store_errors;
	bool debug; /* tensors of the step are to be dumped */
};
int hot_run_step_parse(struct hot_run_step *out, struct mu_span bytes, struct mu_arena *a,
		       struct mu_err *err);
/* Parses a RunCallableRequest, whose feeds have no names. */
int hot_run_callable_parse(struct hot_run_step *out, struct mu_span bytes, struct mu_arena *a,
			   struct mu_err *err);

struct hot_run_graph {
	const char *graph, *session;
	int64_t step_id, request_id;
	unsigned record; /* enum hot_record */
	bool has_send_or_recv, partial, store_errors, session_called;
};
int hot_run_graph_parse(struct hot_run_graph *out, struct mu_span bytes, struct mu_arena *a,
			struct mu_err *err);
void hot_run_graph_write(struct mu_buf *b, const struct hot_run_graph *m);
/* Parses the status inside a RunGraphResponse or RunStepResponse.  Returns 0, or its code with err
 * filled. */
int hot_status_parse(struct mu_span bytes, uint32_t code_field, uint32_t text_field,
		     struct mu_err *err);

struct hot_recv_tensor {
	int64_t step_id, request_id;
	const char *key;
};
int hot_recv_tensor_parse(struct hot_recv_tensor *out, struct mu_span bytes, struct mu_arena *a,
			  struct mu_err *err);
void hot_recv_tensor_write(struct mu_buf *b, const struct hot_recv_tensor *m);
/* Parses a RecvTensorResponse. */
int hot_recv_tensor_reply(struct mu_span bytes, struct mu_tensor *out, bool *dead,
			  struct mu_err *err);

#endif
