/* SPDX-License-Identifier: Apache-2.0 */
#include "task/messages/step_messages.h"

#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"

static const char *text(struct mu_arena *a, struct mu_span s)
{
	return mu_arena_strndup(a, s.data, s.len);
}

static int add_name(struct name_list *l, struct mu_arena *a, struct mu_span s, struct mu_err *err)
{
	if (l->n == MAX_STEP_NAMES)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "a step has more than %d feeds, fetches or targets", MAX_STEP_NAMES);
	if (memchr(s.data, 0, s.len))
		return mu_fail(err, MU_INVALID_ARGUMENT, "a tensor name contains a NUL byte");
	if (l->n == l->cap) {
		const char **grown = MU_ARENA_ARRAY(a, const char *, l->cap ? l->cap * 2 : 8);

		if (l->n)
			memcpy(grown, l->list, l->n * sizeof(*grown));
		l->list = grown;
		l->cap = l->cap ? l->cap * 2 : 8;
	}
	l->list[l->n++] = text(a, s);
	return 0;
}

static int add_feed(struct run_step_request *out, struct mu_arena *a, struct mu_span name,
		    struct mu_span tensor, struct mu_err *err)
{
	if (out->feeds.n == out->cap_tensors) {
		unsigned cap = out->cap_tensors ? out->cap_tensors * 2 : 8;
		struct mu_span *grown = MU_ARENA_ARRAY(a, struct mu_span, cap);

		if (out->feeds.n)
			memcpy(grown, out->feed_tensors, out->feeds.n * sizeof(*grown));
		out->feed_tensors = grown;
		out->cap_tensors = cap;
	}
	out->feed_tensors[out->feeds.n] = tensor;
	return add_name(&out->feeds, a, name, err);
}

static int parse_named_feed(struct run_step_request *out, struct mu_arena *a, struct mu_span bytes,
			    struct mu_err *err)
{
	struct mu_span name = MU_SPAN(""), tensor = MU_SPAN("");
	struct mu_pb m = mu_pb_of(bytes);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			name = f.bytes;
		else if (f.number == 2)
			tensor = f.bytes;
	}
	if (m.bad)
		return mu_fail(err, MU_INVALID_ARGUMENT, "a feed of the request is truncated");
	return add_feed(out, a, name, tensor, err);
}

/* As in TensorFlow, only FULL_TRACE enables tracing. */
unsigned step_record_of(int64_t trace_level, bool partition_graphs)
{
	enum { FULL_TRACE = 3 };

	return (trace_level == FULL_TRACE ? RECORD_TIMELINE : 0) |
	       (partition_graphs ? RECORD_PARTITIONS : 0);
}

static void parse_run_options(struct run_step_request *out, struct mu_span options)
{
	struct mu_pb m = mu_pb_of(options);
	struct mu_pb_field f;
	int64_t trace_level = 0;
	bool partition_graphs = false;

	while (mu_pb_next(&m, &f))
		if (f.number == 1)
			trace_level = (int64_t)f.value;
		else if (f.number == 2)
			out->timeout_ms = (int64_t)f.value;
		else if (f.number == 5)
			partition_graphs = f.value;
		else if (f.number == 6)
			out->debug = f.bytes;
	out->record = step_record_of(trace_level, partition_graphs);
}

static const struct {
	uint32_t field;
	unsigned bit;
} executor_opts[] = {{1, RECORD_COSTS}, {3, RECORD_TIMELINE}, {4, RECORD_PARTITIONS}};

static unsigned record_parse(struct mu_span opts)
{
	struct mu_pb m = mu_pb_of(opts);
	struct mu_pb_field f;
	unsigned record = 0;

	while (mu_pb_next(&m, &f))
		for (unsigned i = 0; i < MU_COUNT(executor_opts); i++)
			if (f.number == executor_opts[i].field && f.value)
				record |= executor_opts[i].bit;
	return record;
}

static void record_write(struct mu_buf *b, uint32_t number, unsigned record)
{
	size_t at = mu_pb_begin(b, number);

	for (unsigned i = 0; i < MU_COUNT(executor_opts); i++)
		if (record & executor_opts[i].bit)
			mu_pb_put_int(b, executor_opts[i].field, 1);
	mu_pb_end(b, at);
}

int run_step_request_parse(struct run_step_request *out, struct mu_span bytes, struct mu_arena *a,
			   struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(bytes);
	struct mu_pb_field f;
	int rc = 0;

	*out = (struct run_step_request){.session = ""};
	while (!rc && mu_pb_next(&m, &f)) {
		switch (f.number) {
		case 1:
			out->session = text(a, f.bytes);
			break;
		case 2:
			rc = parse_named_feed(out, a, f.bytes, err);
			break;
		case 3:
			rc = add_name(&out->fetches, a, f.bytes, err);
			break;
		case 4:
			rc = add_name(&out->targets, a, f.bytes, err);
			break;
		case 5:
			parse_run_options(out, f.bytes);
			break;
		case 6:
			out->partial = f.bytes.len ? text(a, f.bytes) : NULL;
			break;
		case 7:
			out->store_errors = f.value;
			break;
		case 8:
			out->request_id = (int64_t)f.value;
			break;
		}
	}
	if (m.bad)
		return mu_fail(err, MU_INVALID_ARGUMENT, "the RunStep request is truncated");
	return rc;
}

int run_callable_request_parse(struct run_step_request *out, struct mu_span bytes,
			       struct mu_arena *a, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(bytes);
	struct mu_pb_field f;
	int rc = 0;

	*out = (struct run_step_request){.session = ""};
	while (!rc && mu_pb_next(&m, &f)) {
		if (f.number == 1)
			out->session = text(a, f.bytes);
		else if (f.number == 2)
			out->callable = (int64_t)f.value;
		else if (f.number == 3)
			rc = add_feed(out, a, MU_SPAN(""), f.bytes, err);
		else if (f.number == 4)
			out->request_id = (int64_t)f.value;
	}
	if (m.bad)
		return mu_fail(err, MU_INVALID_ARGUMENT, "the RunCallable request is truncated");
	return rc;
}

int run_graph_request_parse(struct run_graph_request *out, struct mu_span bytes, struct mu_arena *a,
			    struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(bytes);
	struct mu_pb_field f;

	*out = (struct run_graph_request){.graph = "", .session = ""};
	while (mu_pb_next(&m, &f)) {
		switch (f.number) {
		case 1:
			out->graph = text(a, f.bytes);
			break;
		case 2:
			out->step_id = (int64_t)f.value;
			break;
		case 3:
		case 4:
			out->has_send_or_recv = true;
			break;
		case 5:
			out->record = record_parse(f.bytes);
			break;
		case 6:
			out->partial = f.value;
			break;
		case 8:
			out->session = text(a, f.bytes);
			break;
		case 9:
			out->store_errors = f.value;
			break;
		case 10:
			out->session_called = f.value;
			break;
		case 11:
			out->request_id = (int64_t)f.value;
			break;
		}
	}
	if (m.bad)
		return mu_fail(err, MU_INVALID_ARGUMENT, "the RunGraph request is truncated");
	return 0;
}

void run_graph_request_write(struct mu_buf *b, const struct run_graph_request *m)
{
	mu_pb_put_str(b, 1, m->graph);
	mu_pb_put_int(b, 2, m->step_id);
	record_write(b, 5, m->record);
	mu_pb_put_str(b, 8, m->session);
	mu_pb_put_int(b, 9, m->store_errors);
	mu_pb_put_int(b, 10, m->session_called);
	mu_pb_put_int(b, 11, m->request_id);
}

int response_status_parse(struct mu_span bytes, uint32_t code_field, uint32_t text_field,
			  struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(bytes);
	struct mu_span message = MU_SPAN("");
	struct mu_pb_field f;
	int64_t code = 0;

	while (mu_pb_next(&m, &f)) {
		if (f.number == code_field && f.type == MU_PB_VARINT)
			code = (int64_t)f.value;
		else if (f.number == text_field)
			message = f.bytes;
	}
	if (m.bad)
		return mu_fail(err, MU_INTERNAL, "the peer's reply is truncated");
	if (code == 0)
		return 0;
	return mu_fail(err, mu_code_from((long)code), "%.*s",
		       (int)(message.len > 4096 ? 4096 : message.len), message.data);
}

int recv_tensor_request_parse(struct recv_tensor_request *out, struct mu_span bytes,
			      struct mu_arena *a, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(bytes);
	struct mu_pb_field f;

	*out = (struct recv_tensor_request){.key = ""};
	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			out->step_id = (int64_t)f.value;
		else if (f.number == 2)
			out->key = text(a, f.bytes);
		else if (f.number == 7)
			out->request_id = (int64_t)f.value;
	}
	if (m.bad)
		return mu_fail(err, MU_INVALID_ARGUMENT, "the RecvTensor request is truncated");
	return 0;
}

void recv_tensor_request_write(struct mu_buf *b, const struct recv_tensor_request *m)
{
	mu_pb_put_int(b, 1, m->step_id);
	mu_pb_put_str(b, 2, m->key);
	mu_pb_put_int(b, 7, m->request_id);
}

int recv_tensor_response_parse(struct mu_span bytes, struct mu_tensor *out, bool *dead,
			       struct mu_err *err)
{
	struct mu_span proto = MU_SPAN("");
	struct mu_pb m = mu_pb_of(bytes);
	struct mu_tensor received;
	struct mu_pb_field f;
	bool is_dead = false;
	int rc;

	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			proto = f.bytes;
		else if (f.number == 2)
			is_dead = f.value;
	}
	if (m.bad)
		return mu_fail(err, MU_INTERNAL, "the peer's RecvTensor reply is truncated");
	if (is_dead)
		proto = MU_SPAN(EMPTY_FLOAT_PROTO);
	rc = mu_tensor_parse(&received, proto, err);
	if (rc)
		return rc;
	*out = received;
	*dead = is_dead;
	return 0;
}
