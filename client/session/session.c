/* SPDX-License-Identifier: Apache-2.0 */
/* Client side of TensorFlow's master protocol.
 *
 * The first step sends CreateSession with the whole graph. A later one sends ExtendSession with the
 * new nodes, then RunStep. Errors of a step are in the body of the reply, because a status message
 * is limited in length. While the server is unreachable, CreateSession is retried until the connect
 * timeout, and the session logs the reason. No other call is retried: only the caller knows whether
 * a step that failed may run again.
 *
 * `lock` guards handle, version and n_sent_nodes. It is held across CreateSession and
 * ExtendSession, because two threads must not send the same nodes. It is not held across RunStep.
 */
#include "muster/session.h"
#include "lib/base/clock.h"

#include <pthread.h>
#include <unistd.h>

#include "client/session/calls.h"
#include "client/session/run_step.h"
#include "client/session/stop.h"
#include "client/session/wait.h"
#include "lib/base/pb.h"
#include "lib/base/random.h"

enum {
	DEFAULT_CONNECT_MS = 60000,
	RETRY_PAUSE_MS = 200,
	FIRST_STOP_CHECK_MS = 1000, /* first check of `stop` during CreateSession */
	CLOSE_MS = 5000,
	EXTEND_MS = 60000,
};

struct mu_session {
	struct rpc_channel *channel; /* NULL if the program supplies a transport */
	struct mu_transport transport;
	struct mu_builder *builder;
	char *target;
	char **filters;
	unsigned n_filters;
	long connect_ms, run_ms;
	bool isolate_state, log_placement;
	const volatile int *stop; /* (optional) non-zero: stop waiting for a session */
	pthread_mutex_t lock;
	char *handle; /* NULL: not created yet */
	int64_t version;
	unsigned n_sent_nodes;  /* number of nodes that the server has */
	_Atomic bool is_closed; /* closed on the server */
	_Atomic int64_t next_request;
};

bool session_stop_is_set(const struct mu_session *s)
{
	return stop_is_set(s->stop);
}

int mu_session_open(struct mu_session **out, const char *target, struct mu_builder *b,
		    const struct mu_session_options *options, struct mu_err *err)
{
	static const struct mu_session_options defaults;
	const struct mu_session_options *o = options ? options : &defaults;
	struct rpc_channel *channel = NULL;
	int rc = o->transport.call ? 0 : rpc_channel_open(target, &channel, err);

	if (rc)
		return rc;
	struct mu_session *s = MU_NEW(struct mu_session);
	s->channel = channel;
	s->transport = o->transport;
	s->builder = b;
	s->target = mu_xstrdup(target);
	s->filters = MU_NEW_ARRAY(char *, o->n_device_filters + 1);
	for (unsigned i = 0; i < o->n_device_filters; i++)
		s->filters[s->n_filters++] = mu_xstrdup(o->device_filters[i]);
	s->connect_ms = o->connect_timeout_ms > 0 ? o->connect_timeout_ms : DEFAULT_CONNECT_MS;
	s->run_ms = o->run_timeout_ms;
	s->isolate_state = o->isolate_state;
	s->log_placement = o->log_placement;
	s->stop = o->stop;
	pthread_mutex_init(&s->lock, NULL);
	/* The server only compares request ids for equality, across all clients. */
	s->next_request = mu_random_u64() & 0x3fffffffffffffff;
	*out = s;
	return 0;
}

int session_call(struct mu_session *s, const char *method, const struct rpc_message *m,
		 long timeout_ms, unsigned flags, struct mu_buf *reply, struct mu_err *err)
{
	if (s->transport.call)
		return s->transport.call(s->transport.ctx, method, m, timeout_ms, reply, err);
	return rpc_call(s->channel, method, m, timeout_ms, flags, reply, err);
}

static int session_call_buf(struct mu_session *s, const char *method, const struct mu_buf *request,
			    long timeout_ms, unsigned flags, struct mu_buf *reply,
			    struct mu_err *err)
{
	struct rpc_message m = {.head = mu_buf_span(request)};

	return session_call(s, method, &m, timeout_ms, flags, reply, err);
}

void mu_session_cancel(struct mu_session *s)
{
	MU_AUTO_BUF request = {0}, reply = {0};
	/* before the lock, so that a thread that creates the session stops trying */
	bool is_first = !atomic_exchange(&s->is_closed, true), is_open;

	pthread_mutex_lock(&s->lock);
	is_open = s->handle && is_first;
	if (is_open)
		mu_pb_put_str(&request, 1, s->handle);
	pthread_mutex_unlock(&s->lock);
	if (is_open) /* even if this call fails, the session has ended for the client */
		session_call_buf(s, MASTER "CloseSession", &request, CLOSE_MS, 0, &reply, NULL);
}

void mu_session_close(struct mu_session *s)
{
	if (!s)
		return;
	mu_session_cancel(s);
	if (s->channel)
		rpc_channel_close(s->channel);
	for (unsigned i = 0; i < s->n_filters; i++)
		free(s->filters[i]);
	free(s->filters);
	free(s->target);
	free(s->handle);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

struct mu_builder *mu_session_builder(struct mu_session *s)
{
	return s->builder;
}

/* CreateSessionRequest: graph_def=1, config=2 {device_filters=4, allow_soft_placement=7,
 * log_device_placement=8, isolate_session_state=15}, target=3. */
static void encode_create(struct mu_session *s, struct mu_buf *b)
{
	size_t at = mu_pb_begin(b, 1);

	mu_graph_write(mu_builder_graph(s->builder), b);
	mu_pb_end(b, at);
	at = mu_pb_begin(b, 2);
	for (unsigned i = 0; i < s->n_filters; i++)
		mu_pb_put_str(b, 4, s->filters[i]);
	mu_pb_put_int(b, 7, 1);
	if (s->log_placement)
		mu_pb_put_int(b, 8, 1);
	if (s->isolate_state)
		mu_pb_put_int(b, 15, 1);
	mu_pb_end(b, at);
	mu_pb_put_str(b, 3, s->target);
}

/* Decodes both replies: handle (field 1) and graph version (field version_field). */
static int decode_reply(const struct mu_buf *reply, uint32_t version_field, char **handle,
			int64_t *version, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(mu_buf_span(reply));
	struct mu_pb_field f;
	struct mu_span name = {"", 0};

	*version = 0;
	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			name = f.bytes;
		else if (f.number == version_field)
			*version = (int64_t)f.value;
	}
	if (m.bad || (handle && !name.len))
		return mu_fail(err, MU_INTERNAL, "the server's reply is truncated");
	if (handle)
		*handle = mu_xstrndup(name.data, name.len);
	return 0;
}

/* A server in this process logs its own waits. */
static int call_create(struct mu_session *s, struct wait *w, const struct mu_buf *request,
		       long timeout_ms, struct mu_buf *reply, struct mu_err *err)
{
	static const char method[] = MASTER "CreateSession";
	struct rpc_message m = {.head = mu_buf_span(request)};

	return s->transport.call ? session_call(s, method, &m, timeout_ms, 0, reply, err)
				 : call_reporting_wait(w, s->channel, s->target, method, &m,
						       timeout_ms, reply, err);
}

static int session_create(struct mu_session *s, struct mu_err *err)
{
	unsigned nodes = mu_builder_graph(s->builder)->n_nodes;
	long deadline = mu_clock_ms() + s->connect_ms, left_ms = s->connect_ms;
	/* doubled for each try, because a large graph takes longer */
	long try_ms = s->stop ? FIRST_STOP_CHECK_MS : left_ms;
	MU_AUTO_BUF request = {0}, reply = {0};
	struct mu_err why = {0};
	struct wait wait;
	int rc;

	wait_begin(&wait);
	encode_create(s, &request);
	for (;;) {
		rc = call_create(s, &wait, &request, try_ms < left_ms ? try_ms : left_ms, &reply,
				 &why);
		left_ms = deadline - mu_clock_ms();
		if (rc && stop_is_set(s->stop))
			return mu_fail(err, MU_CANCELLED,
				       "stopped before the session on %s was created", s->target);
		if (rc && s->is_closed)
			return mu_fail(err, MU_CANCELLED, "the session was cancelled");
		if ((rc != -(int)MU_UNAVAILABLE && rc != -(int)MU_DEADLINE_EXCEEDED) ||
		    left_ms < RETRY_PAUSE_MS)
			break;
		if (rc == -(int)MU_UNAVAILABLE)
			usleep(RETRY_PAUSE_MS * 1000);
		else
			try_ms *= 2;
		mu_buf_clear(&reply);
	}
	if (rc == -(int)MU_DEADLINE_EXCEEDED)
		return mu_fail(err, MU_UNAVAILABLE, "no session on %s within %ld s: %s (%s)",
			       s->target, s->connect_ms / 1000,
			       wait.advice ? wait.advice
					   : "is every task that the session needs running?",
			       *wait.reason ? wait.reason : why.msg);
	if (rc)
		return mu_fail(err, why.code, "create session on %s: %s", s->target, why.msg);
	rc = decode_reply(&reply, 2, &s->handle, &s->version, err);
	if (!rc)
		s->n_sent_nodes = nodes;
	return rc;
}

/* ExtendSessionRequest: session_handle=1, graph_def=2, current_graph_version=3. */
static int session_extend(struct mu_session *s, struct mu_err *err)
{
	struct mu_graph *g = mu_builder_graph(s->builder);
	unsigned nodes = g->n_nodes;
	MU_AUTO_BUF request = {0}, reply = {0};
	int rc;

	mu_pb_put_str(&request, 1, s->handle);
	size_t at = mu_pb_begin(&request, 2);
	mu_graph_write_from(g, s->n_sent_nodes, &request);
	mu_pb_end(&request, at);
	mu_pb_put_int(&request, 3, s->version);
	rc = session_call_buf(s, MASTER "ExtendSession", &request, EXTEND_MS, 0, &reply, err);
	if (!rc)
		rc = decode_reply(&reply, 4, NULL, &s->version, err);
	if (!rc)
		s->n_sent_nodes = nodes;
	return rc;
}

int session_update_graph(struct mu_session *s, struct mu_err *err)
{
	int rc = mu_builder_check(s->builder, err);

	if (rc)
		return rc;
	pthread_mutex_lock(&s->lock);
	if (s->is_closed)
		rc = mu_fail(err, MU_CANCELLED, "the session was cancelled");
	else if (!s->handle)
		rc = session_create(s, err);
	else if (s->n_sent_nodes < mu_builder_graph(s->builder)->n_nodes)
		rc = session_extend(s, err);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

const char *session_handle(const struct mu_session *s)
{
	return s->handle;
}

int64_t session_next_request_id(struct mu_session *s)
{
	return atomic_fetch_add(&s->next_request, 1);
}

long session_timeout(const struct mu_session *s, const struct mu_run *run)
{
	return run->timeout_ms > 0 ? run->timeout_ms : s->run_ms;
}

int mu_session_run(struct mu_session *s, const struct mu_run *run, struct mu_tensor *values,
		   struct mu_err *err)
{
	long timeout = session_timeout(s, run);
	struct run_step step = {0};
	MU_AUTO_BUF reply = {0};
	int rc = session_update_graph(s, err);

	if (!rc)
		rc = run_step_check(s->builder, run, true, err);
	if (rc)
		return rc;
	run_step_encode(&step, s->handle, run, timeout, session_next_request_id(s));
	struct rpc_message m = {.head = mu_buf_span(&step.head),
				.payload = step.payload,
				.payload_len = step.payload_len};
	rc = session_call(s, MASTER "RunStep", &m, session_rpc_timeout(timeout), 0, &reply, err);
	if (!rc)
		rc = run_step_decode(mu_buf_span(&reply), run, values, err);
	run_step_fini(&step);
	return rc;
}

int mu_session_get(struct mu_session *s, struct mu_out fetch, struct mu_tensor *value,
		   struct mu_err *err)
{
	return mu_session_run(s, &(struct mu_run){.fetches = &fetch, .n_fetches = 1}, value, err);
}

int mu_session_do(struct mu_session *s, struct mu_out target, struct mu_err *err)
{
	return mu_session_run(s, &(struct mu_run){.targets = &target, .n_targets = 1}, NULL, err);
}
