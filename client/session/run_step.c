/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding of RunStepRequest: session_handle=1, feed=2 {name=1, tensor=2}, fetch=3, target=4,
 * options=5 {trace_level=1, timeout_in_ms=2}, store_errors_in_response_body=7, request_id=8.
 * RunStepResponse: tensor=1 {name=1, tensor=2}, metadata=2, status_code=3, status_error_message=4.
 *
 * The largest feed is written last without a copy: gRPC sends the bytes of the tensor. A duplicate
 * fetch is transferred once.
 */
#include "client/session/run_step.h"

#include "lib/builder/builder.h"
#include "lib/tensor/tensor_proto.h"

/* Below BORROW_MIN_BYTES a copy is cheaper than another slice. */
enum { BORROW_MIN_BYTES = 4096 };
enum { FULL_TRACE = 3 };

void run_step_fini(struct run_step *r)
{
	mu_buf_fini(&r->head);
}

void run_step_put_tensor_name(struct mu_buf *b, uint32_t number, struct mu_out o)
{
	size_t at = mu_pb_begin(b, number);

	mu_buf_printf(b, "%s:%d", o.node->name, o.port);
	mu_pb_end(b, at);
}

static void put_feed(struct mu_buf *b, const struct mu_feed *f)
{
	size_t feed = mu_pb_begin(b, 2);

	run_step_put_tensor_name(b, 1, f->at);
	size_t tensor = mu_pb_begin(b, 2);
	mu_tensor_write(b, f->value);
	mu_pb_end(b, tensor);
	mu_pb_end(b, feed);
}

/* As put_feed, but without the bytes of the tensor, which the caller sends. All lengths include
 * them. */
static size_t put_feed_head(struct mu_buf *b, const struct mu_feed *f)
{
	MU_AUTO_BUF name = {0}, head = {0};
	size_t payload = mu_tensor_write_head(&head, f->value), tensor = head.len + payload;

	run_step_put_tensor_name(&name, 1, f->at);
	mu_pb_put_tag(b, 2, MU_PB_BYTES);
	mu_pb_put_varint(b, name.len + 1 + mu_pb_varint_size(tensor) + tensor);
	mu_buf_put(b, name.data, name.len);
	mu_pb_put_tag(b, 2, MU_PB_BYTES);
	mu_pb_put_varint(b, tensor);
	mu_buf_put(b, head.data, head.len);
	return payload;
}

static int check_fed_value(const struct mu_builder *b, const struct mu_feed *f, struct mu_err *err)
{
	enum mu_dtype type = mu_dtype_base(mu_out_dtype(b, f->at));
	const struct mu_pshape *shape = mu_out_shape(b, f->at);

	if (!f->value)
		return mu_fail(err, MU_INVALID_ARGUMENT, "'%s' gets no value", f->at.node->name);
	if (f->value->dtype == type && mu_shape_matches(&f->value->shape, shape))
		return 0;
	return mu_fail(err, MU_INVALID_ARGUMENT, "'%s' is %s of %s, but the value is %s of %s",
		       f->at.node->name, mu_dtype_name(type), mu_pshape_str(shape),
		       mu_dtype_name(f->value->dtype), mu_shape_str(&f->value->shape));
}

int run_step_check(const struct mu_builder *b, const struct mu_run *run, bool values,
		   struct mu_err *err)
{
	int rc;

	for (unsigned i = 0; i < run->n_feeds; i++) {
		rc = builder_check_out(b, run->feeds[i].at, err);
		if (!rc && values)
			rc = check_fed_value(b, &run->feeds[i], err);
		if (rc)
			return mu_wrap(err, "feed %u", i);
	}
	for (unsigned i = 0; i < run->n_fetches; i++)
		if (builder_check_out(b, run->fetches[i], err))
			return mu_wrap(err, "fetch %u", i);
	for (unsigned i = 0; i < run->n_targets; i++) {
		if (!run->targets[i].node)
			return mu_fail(err, MU_INVALID_ARGUMENT, "target %u names no operation", i);
		if (builder_check_node(b, run->targets[i].node, err))
			return mu_wrap(err, "target %u", i);
	}
	return 0;
}

bool run_step_borrows(const struct mu_tensor *feed, const struct mu_tensor *other)
{
	return mu_dtype_size(feed->dtype) &&
	       mu_tensor_bytes(feed) >= (other ? mu_tensor_bytes(other) + 1 : BORROW_MIN_BYTES);
}

unsigned run_step_first_fetch(const struct mu_run *run, unsigned i)
{
	unsigned j = 0;

	while (run->fetches[j].node != run->fetches[i].node ||
	       run->fetches[j].port != run->fetches[i].port)
		j++;
	return j;
}

void run_step_encode(struct run_step *r, const char *handle, const struct mu_run *run,
		     long timeout_ms, int64_t request_id)
{
	const struct mu_feed *borrowed = NULL;
	struct mu_buf *b = &r->head;

	mu_pb_put_str(b, 1, handle);
	for (unsigned i = 0; i < run->n_fetches; i++)
		if (run_step_first_fetch(run, i) == i)
			run_step_put_tensor_name(b, 3, run->fetches[i]);
	for (unsigned i = 0; i < run->n_targets; i++)
		mu_pb_put_str(b, 4, run->targets[i].node->name);
	if (timeout_ms > 0 || run->metadata) {
		size_t at = mu_pb_begin(b, 5);
		if (run->metadata)
			mu_pb_put_int(b, 1, FULL_TRACE);
		if (timeout_ms > 0)
			mu_pb_put_int(b, 2, timeout_ms);
		mu_pb_end(b, at);
	}
	mu_pb_put_int(b, 7, 1);
	mu_pb_put_int(b, 8, request_id);
	for (unsigned i = 0; i < run->n_feeds; i++)
		if (run_step_borrows(run->feeds[i].value, borrowed ? borrowed->value : NULL))
			borrowed = &run->feeds[i];
	for (unsigned i = 0; i < run->n_feeds; i++)
		if (&run->feeds[i] != borrowed)
			put_feed(b, &run->feeds[i]);
	if (borrowed) {
		r->payload = borrowed->value;
		r->payload_len = put_feed_head(b, borrowed);
	}
}

/* Decodes one NamedTensorProto into every fetch of that name. */
static int decode_tensor(struct mu_span body, const struct mu_run *run, struct mu_tensor *decoded,
			 struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(body);
	struct mu_pb_field f;
	struct mu_span name = {"", 0}, proto = {"", 0};
	MU_AUTO_TENSOR t = {0};

	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			name = f.bytes;
		else if (f.number == 2)
			proto = f.bytes;
	}
	if (m.bad)
		return mu_fail(err, MU_INTERNAL, "the server's reply is truncated");
	if (mu_tensor_parse(&t, proto, err))
		return mu_wrap(err, "value of '%.*s'", (int)name.len, name.data);
	for (unsigned i = 0; i < run->n_fetches; i++) {
		MU_AUTO_BUF text = {0};

		mu_buf_printf(&text, "%s:%d", run->fetches[i].node->name, run->fetches[i].port);
		if (mu_span_eq(name, mu_buf_span(&text)) && !mu_tensor_is_set(&decoded[i]))
			decoded[i] = mu_tensor_ref(&t);
	}
	return 0;
}

static int decode_reply(struct mu_span reply, const struct mu_run *run, struct mu_tensor *decoded,
			struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(reply);
	struct mu_pb_field f;
	struct mu_span why = {"", 0};
	long code = 0;
	int rc;

	while (mu_pb_next(&m, &f)) {
		if (f.number == 3)
			code = (long)f.value;
		else if (f.number == 4)
			why = f.bytes;
	}
	if (m.bad)
		return mu_fail(err, MU_INTERNAL, "the server's reply is truncated");
	if (code)
		return mu_fail(err, mu_code_from(code), "%.*s", (int)why.len, why.data);
	m = mu_pb_of(reply);
	while (mu_pb_next(&m, &f))
		if (f.number == 1 && (rc = decode_tensor(f.bytes, run, decoded, err)))
			return rc;
		else if (f.number == 2 && run->metadata)
			mu_buf_put(run->metadata, f.bytes.data, f.bytes.len);
	for (unsigned i = 0; i < run->n_fetches; i++)
		if (!mu_tensor_is_set(&decoded[i]))
			return mu_fail(err, MU_INTERNAL, "the server's reply lacks '%s:%d'",
				       run->fetches[i].node->name, run->fetches[i].port);
	return 0;
}

int run_step_decode(struct mu_span reply, const struct mu_run *run, struct mu_tensor *values,
		    struct mu_err *err)
{
	struct mu_tensor *decoded = MU_NEW_ARRAY(struct mu_tensor, run->n_fetches + 1);
	int rc = decode_reply(reply, run, decoded, err);

	for (unsigned i = 0; i < run->n_fetches; i++) {
		if (rc)
			mu_tensor_unref(&decoded[i]);
		else
			values[i] = decoded[i];
	}
	free(decoded);
	return rc;
}
