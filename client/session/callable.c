/* SPDX-License-Identifier: Apache-2.0 */
/* Callables: the feeds, fetches and targets of a step are registered once and then run by handle.
 *
 * MakeCallableRequest: session_handle=1, options=2 {feed=1, fetch=2, target=3, run_options=4
 * {timeout_in_ms=2}}, request_id=3. Response: handle=1.
 *
 * RunCallableRequest: session_handle=1, handle=2, feed=3, request_id=4. Response: fetch=1, in the
 * order of the options, without names. An error is the status of the RPC.
 *
 * ReleaseCallableRequest: session_handle=1, handle=2.
 */
#include "client/session/calls.h"
#include "client/session/run_step.h"
#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"

enum { MAKE_MS = 60000, RELEASE_MS = 5000 };

struct mu_callable {
	struct mu_session *session;
	int64_t handle;
	unsigned n_feeds, n_fetches, n_values;
	/* Index of the transferred value of each fetch. A duplicate fetch is transferred once. */
	unsigned *value_index;
	long timeout_ms;
};

static void callable_free_fields(struct mu_callable *c)
{
	free(c->value_index);
	free(c);
}

static void put_options(struct mu_callable *c, struct mu_buf *b, const struct mu_run *run)
{
	size_t options = mu_pb_begin(b, 2);

	for (unsigned i = 0; i < run->n_feeds; i++)
		run_step_put_tensor_name(b, 1, run->feeds[i].at);
	for (unsigned i = 0; i < run->n_fetches; i++) {
		unsigned first = run_step_first_fetch(run, i);

		c->value_index[i] = first < i ? c->value_index[first] : c->n_values++;
		if (first == i)
			run_step_put_tensor_name(b, 2, run->fetches[i]);
	}
	for (unsigned i = 0; i < run->n_targets; i++)
		mu_pb_put_str(b, 3, run->targets[i].node->name);
	if (c->timeout_ms > 0) {
		size_t at = mu_pb_begin(b, 4);

		mu_pb_put_int(b, 2, c->timeout_ms);
		mu_pb_end(b, at);
	}
	mu_pb_end(b, options);
}

static int make_callable(struct mu_callable *c, const struct mu_run *run, struct mu_err *err)
{
	MU_AUTO_BUF request = {0}, reply = {0};
	struct mu_pb m;
	struct mu_pb_field f;
	int rc;

	mu_pb_put_str(&request, 1, session_handle(c->session));
	put_options(c, &request, run);
	mu_pb_put_int(&request, 3, session_next_request_id(c->session));
	rc = session_call(c->session, MASTER "MakeCallable",
			  &(struct rpc_message){.head = mu_buf_span(&request)}, MAKE_MS, 0, &reply,
			  err);
	if (rc)
		return mu_wrap(err, "make a callable"), rc;
	m = mu_pb_of(mu_buf_span(&reply));
	while (mu_pb_next(&m, &f))
		if (f.number == 1)
			c->handle = (int64_t)f.value;
	return m.bad ? mu_fail(err, MU_INTERNAL, "the server's reply is truncated") : 0;
}

int mu_session_callable(struct mu_callable **out, struct mu_session *s, const struct mu_run *run,
			struct mu_err *err)
{
	struct mu_callable *c;
	int rc = run_step_check(mu_session_builder(s), run, false, err);

	if (!rc)
		rc = session_update_graph(s, err);
	if (rc)
		return rc;
	c = MU_NEW(struct mu_callable);
	*c = (struct mu_callable){.session = s,
				  .n_feeds = run->n_feeds,
				  .n_fetches = run->n_fetches,
				  .value_index = MU_NEW_ARRAY(unsigned, run->n_fetches + 1),
				  .timeout_ms = session_timeout(s, run)};
	rc = make_callable(c, run, err);
	if (rc)
		callable_free_fields(c);
	else
		*out = c;
	return rc;
}

/* A feed is a bare TensorProto. The largest feed is sent from the tensor's memory without a copy.
 * Feeds have no names and their order matters, so all feeds behind it go to `tail`. */
static void put_feeds(struct mu_buf *head, struct mu_buf *tail, struct rpc_message *m,
		      const struct mu_tensor *const *feeds, unsigned n)
{
	struct mu_buf *b = head;
	unsigned largest = n;

	for (unsigned i = 0; i < n; i++)
		if (run_step_borrows(feeds[i], largest < n ? feeds[largest] : NULL))
			largest = i;
	for (unsigned i = 0; i < n; i++) {
		if (i == largest) {
			MU_AUTO_BUF proto = {0};

			m->payload = feeds[i];
			m->payload_len = mu_tensor_write_head(&proto, feeds[i]);
			mu_pb_put_tag(b, 3, MU_PB_BYTES);
			mu_pb_put_varint(b, proto.len + m->payload_len);
			mu_buf_put(b, proto.data, proto.len);
			b = tail;
			continue;
		}
		size_t at = mu_pb_begin(b, 3);

		mu_tensor_write(b, feeds[i]);
		mu_pb_end(b, at);
	}
}

static int decode_fetches(struct mu_span reply, struct mu_tensor *values, unsigned n,
			  struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(reply);
	struct mu_pb_field f;
	unsigned n_received = 0;

	while (mu_pb_next(&m, &f))
		if (f.number == 1 && n_received < n &&
		    mu_tensor_parse(&values[n_received++], f.bytes, err))
			return mu_wrap(err, "value %u of a callable", n_received - 1);
	if (m.bad)
		return mu_fail(err, MU_INTERNAL, "the server's reply is truncated");
	if (n_received != n)
		return mu_fail(err, MU_INTERNAL, "the server's reply has %u values instead of %u",
			       n_received, n);
	return 0;
}

int mu_callable_run(struct mu_callable *c, const struct mu_tensor *const *feeds,
		    struct mu_tensor *values, struct mu_err *err)
{
	MU_AUTO_BUF head = {0}, tail = {0}, reply = {0};
	struct mu_tensor *received;
	struct rpc_message m = {0}, tail_message = {0};
	int rc;

	for (unsigned i = 0; i < c->n_feeds; i++)
		if (!feeds || !feeds[i])
			return mu_fail(err, MU_INVALID_ARGUMENT, "feed %u has no value", i);
	mu_pb_put_str(&head, 1, session_handle(c->session));
	mu_pb_put_int(&head, 2, c->handle);
	mu_pb_put_int(&head, 4, session_next_request_id(c->session));
	put_feeds(&head, &tail, &m, feeds, c->n_feeds);
	m.head = mu_buf_span(&head);
	tail_message.head = mu_buf_span(&tail);
	m.next = &tail_message;
	rc = session_call(c->session, MASTER "RunCallable", &m, session_rpc_timeout(c->timeout_ms),
			  0, &reply, err);
	if (rc)
		return rc;
	received = MU_NEW_ARRAY(struct mu_tensor, c->n_values + 1);
	rc = decode_fetches(mu_buf_span(&reply), received, c->n_values, err);
	for (unsigned i = 0; i < c->n_fetches && !rc; i++)
		values[i] = mu_tensor_ref(&received[c->value_index[i]]);
	for (unsigned i = 0; i < c->n_values; i++)
		mu_tensor_unref(&received[i]);
	free(received);
	return rc;
}

void mu_callable_free(struct mu_callable *c)
{
	MU_AUTO_BUF request = {0}, reply = {0};

	if (!c)
		return;
	mu_pb_put_str(&request, 1, session_handle(c->session));
	mu_pb_put_int(&request, 2, c->handle);
	/* if this call fails, the server frees the callable with its session */
	session_call(c->session, MASTER "ReleaseCallable",
		     &(struct rpc_message){.head = mu_buf_span(&request)}, RELEASE_MS, 0, &reply,
		     NULL);
	callable_free_fields(c);
}
