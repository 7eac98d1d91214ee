/* SPDX-License-Identifier: Apache-2.0 */
/* Handles the frames of streams.
 *
 * The side that dialled is the master of the steps on a connection.  It sends RUN, CANCEL and
 * CLEANUP and receives RUN_DONE; both sides send TENSOR.  On the master c->steps contains the runs
 * without a reply.  On the other side it contains the runs of the master, and the steps whose
 * tensors arrived before their RUN.  When a connection ends, the runs on the master fail with
 * UNAVAILABLE; the steps on the other side are cancelled and dropped.
 *
 * Both sides add the connection as a route to the step's rendezvous before the step runs.  So each
 * side waits locally for the tensors that the other pushes.  Frames keep their order: the tensors
 * of a step arrive before its RUN_DONE. */
#include "task/peer/peer_stream.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/graph/device_name.h"
#include "lib/tensor/tensor_proto.h"
#include "task/peer/stream_conn.h"
#include "task/runtime/runtime.h"

enum { MAX_EARLY_STEPS = 4096, REDIAL_MS = 1000 };
#define MAX_EARLY_BYTES ((size_t)4 << 30) /* for one step, before its RUN */

/* ---- peers ---- */

struct stream_peer *stream_peer_new(struct streams *s, const char *task, const char *address)
{
	struct stream_peer *p = MU_NEW(struct stream_peer);
	const char *colon = strrchr(address, ':');
	size_t n = colon ? (size_t)(colon - address) : 0;

	p->owner = s;
	p->task = mu_xstrdup(task);
	if (!strncmp(address, "unix:", 5))
		n = 0;
	if (n > 2 && address[0] == '[')
		p->host = mu_xstrndup(address + 1, n - 2);
	else
		p->host = mu_xstrndup(address, n);
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

void stream_peer_free(struct stream_peer *p)
{
	if (!p)
		return;
	stream_conn_unref(p->conn);
	pthread_mutex_destroy(&p->lock);
	free(p->task);
	free(p->host);
	free(p);
}

static void dial_locked(struct stream_peer *p)
{
	int64_t now = mu_clock_ms();

	if (!p->has_offer || p->is_dialling || p->conn ||
	    (p->last_dial_ms && now - p->last_dial_ms < REDIAL_MS))
		return;
	p->is_dialling = true;
	p->last_dial_ms = now;
	stream_dial_later(p);
}

void stream_peer_offered(struct stream_peer *p, struct mu_span status)
{
	struct stream_offer o;

	if (!stream_offer_parse(&o, status))
		return;
	pthread_mutex_lock(&p->lock);
	if (!p->has_offer || memcmp(o.key, p->offer.key, sizeof(o.key)) != 0)
		p->last_dial_ms = 0; /* a new incarnation */
	p->offer = o;
	p->has_offer = true;
	dial_locked(p);
	pthread_mutex_unlock(&p->lock);
}

bool stream_peer_live(struct stream_peer *p)
{
	bool live;

	pthread_mutex_lock(&p->lock);
	live = p->conn != NULL;
	pthread_mutex_unlock(&p->lock);
	return live;
}

/* ---- sent tensors ---- */

static int stream_push_shared(struct stream_conn *c, int64_t step_id, const char *key,
			      struct mu_tensor *t, struct mu_err *err)
{
	struct mu_tensor shape = *t; /* for the frame; t is taken */
	struct shm_handle handle = exporter_add(c->exporter, t);
	MU_AUTO_BUF b = {0};
	int rc = stream_shared_write(&b, step_id, key, &shape, &handle, err);

	if (rc)
		exporter_remove(c->exporter, handle.id);
	return rc ? rc : stream_conn_send(c, &b, NULL, 0, err);
}

static int stream_push(void *ctx, int64_t step_id, const char *key, struct mu_tensor *t, bool dead,
		       struct mu_err *err)
{
	struct stream_conn *c = ctx;
	MU_AUTO_BUF b = {0};
	size_t payload;
	int rc;

	if (!dead && c->exporter && exporter_accepts(t))
		return stream_push_shared(c, step_id, key, t, err);
	rc = stream_tensor_write(&b, step_id, key, t, dead, &payload, err);
	if (rc)
		mu_tensor_unref(t);
	else
		rc = stream_conn_send(c, &b, t, payload, err);
	return rc;
}

static void unref_route_conn(void *ctx)
{
	stream_conn_unref(ctx);
}

static void add_route(struct stream_conn *c, struct rendezvous *r)
{
	static const struct rendezvous_route_ops ops = {stream_push, unref_route_conn};

	rendezvous_add_route(r, c->task, &ops, stream_conn_ref(c));
}

struct stream_conn *stream_peer_join(struct stream_peer *p, struct rendezvous *r)
{
	struct stream_conn *c;

	if (!p)
		return NULL;
	pthread_mutex_lock(&p->lock);
	c = p->conn;
	if (c)
		add_route(c, r);
	else
		dial_locked(p);
	pthread_mutex_unlock(&p->lock);
	return c;
}

/* ---- runs, on the master ---- */

static struct stream_step *remove_step(struct stream_conn *c, int64_t step_id)
{
	struct stream_step *s;

	pthread_mutex_lock(&c->lock);
	s = mu_map_del_n(&c->steps, &step_id, sizeof(step_id));
	pthread_mutex_unlock(&c->lock);
	return s;
}

void stream_run_graph(struct stream_conn *c, const struct peer_run *run, peer_done done, void *arg)
{
	struct stream_run m = {run->request_id, run->session, run->graph};
	struct stream_step *s = MU_NEW(struct stream_step);
	MU_AUTO_BUF b = {0};
	struct mu_err err;
	bool broken;
	int rc;

	*s = (struct stream_step){.step_id = run->step_id, .done = done, .arg = arg};
	rc = stream_run_write(&b, run->step_id, &m, &err);
	if (rc) {
		free(s);
		done(arg, &err, MU_SPAN(""));
		return;
	}
	pthread_mutex_lock(&c->lock);
	broken = c->is_shut_down;
	if (!broken)
		mu_map_put_n(&c->steps, &s->step_id, sizeof(s->step_id), s);
	pthread_mutex_unlock(&c->lock);
	if (broken) {
		free(s);
		stream_lost(&err, c);
		done(arg, &err, MU_SPAN(""));
		return;
	}
	stream_conn_send(c, &b, NULL, 0, &err); /* a failure is reported when the connection ends */
}

static void send_empty(struct stream_conn *c, enum stream_type type, int64_t step_id)
{
	MU_AUTO_BUF b = {0};
	struct mu_err err;

	stream_frame_begin(&b, type, 0, step_id);
	stream_conn_send(c, &b, NULL, 0, &err);
}

void stream_peer_cancel(struct stream_peer *p, int64_t step_id)
{
	struct stream_conn *c;

	pthread_mutex_lock(&p->lock);
	c = p->conn ? stream_conn_ref(p->conn) : NULL;
	pthread_mutex_unlock(&p->lock);
	if (c)
		send_empty(c, STREAM_CANCEL, step_id);
	stream_conn_unref(c);
}

void stream_clean_up(struct stream_conn *c, int64_t step_id)
{
	send_empty(c, STREAM_CLEANUP, step_id);
}

static int on_run_done(struct stream_conn *c, struct mu_span head, struct mu_err *err)
{
	struct stream_step *s;
	struct mu_err result;
	int rc = stream_run_done_parse(&result, head, err);

	if (rc)
		return rc;
	s = remove_step(c, c->header.step_id);
	if (s) {
		s->done(s->arg, result.code ? &result : NULL, MU_SPAN(""));
		free(s);
	}
	return 0;
}

/* ---- runs, on the other side ---- */

static void stream_run_ended(void *arg, const struct mu_err *err, struct mu_span records)
{
	struct stream_step *s = arg;
	struct stream_conn *c = s->conn;
	MU_AUTO_BUF b = {0};
	struct mu_err ignored;

	pthread_mutex_lock(&c->lock);
	if (mu_map_get_n(&c->steps, &s->step_id, sizeof(s->step_id)) == s)
		mu_map_del_n(&c->steps, &s->step_id, sizeof(s->step_id));
	pthread_mutex_unlock(&c->lock);
	stream_run_done_write(&b, s->step_id, err);
	stream_conn_send(c, &b, NULL, 0, &ignored);
	stream_conn_unref(c);
	free(s);
}

static int on_run(struct stream_conn *c, struct mu_span head, struct mu_err *err)
{
	const struct local_worker *w = c->owner->worker;
	struct stream_step *s, *old;
	struct rendezvous *r;
	struct stream_run m;
	struct peer_run run;
	bool duplicate;
	int rc = stream_run_parse(&m, head, err);

	if (rc)
		return rc;
	s = MU_NEW(struct stream_step);
	*s = (struct stream_step){
	    .step_id = c->header.step_id, .is_running = true, .conn = stream_conn_ref(c)};
	pthread_mutex_lock(&c->lock);
	old = mu_map_get_n(&c->steps, &s->step_id, sizeof(s->step_id));
	duplicate = old && old->is_running; /* it may end and be freed after the unlock */
	if (!duplicate)
		mu_map_put_n(&c->steps, &s->step_id, sizeof(s->step_id), s);
	pthread_mutex_unlock(&c->lock);
	if (duplicate) {
		stream_conn_unref(c);
		free(s);
		return mu_fail(err, MU_INVALID_ARGUMENT, "duplicate RUN of step %lld",
			       (long long)c->header.step_id);
	}
	free(old);
	run = (struct peer_run){.session = m.session,
				.graph = m.graph,
				.step_id = s->step_id,
				.request_id = m.request_id};
	r = rendezvous_table_get(w->runtime->steps, s->step_id);
	add_route(c, r);
	w->ops->run(w->worker, &run, true, stream_run_ended, s);
	rendezvous_unref(r);
	return 0;
}

/* Removes a step of the connection if it does not run. */
static void remove_idle_step(struct stream_conn *c, int64_t step_id)
{
	struct stream_step *s;

	pthread_mutex_lock(&c->lock);
	s = mu_map_get_n(&c->steps, &step_id, sizeof(step_id));
	if (s && !s->is_running)
		mu_map_del_n(&c->steps, &step_id, sizeof(step_id));
	else
		s = NULL; /* stream_run_ended will free it */
	pthread_mutex_unlock(&c->lock);
	free(s);
}

static void on_cancel(struct stream_conn *c)
{
	const struct local_worker *w = c->owner->worker;
	int64_t step_id = c->header.step_id;
	struct mu_err why;

	remove_idle_step(c, step_id);
	mu_fail(&why, MU_CANCELLED, "The master cancelled step %lld", (long long)step_id);
	w->ops->drop_step(w->worker, step_id, &why);
}

static int on_hello(struct stream_conn *c, struct mu_span head, struct mu_err *err)
{
	const struct runtime *rt = c->owner->worker->runtime;
	const struct stream_offer *own_offer = &c->owner->offer;
	struct stream_hello h;
	unsigned char differs = 0;
	int rc;

	if (c->header.type != STREAM_HELLO)
		return mu_fail(err, MU_UNAUTHENTICATED, "the first frame is not HELLO");
	rc = stream_hello_parse(&h, head, err);
	if (rc)
		return rc;
	for (int i = 0; i < STREAM_KEY; i++)
		differs |= (unsigned char)(h.key[i] ^ own_offer->key[i]);
	if (differs || h.receiver_incarnation != rt->incarnation)
		return mu_fail(err, MU_UNAUTHENTICATED, "HELLO with the wrong key");
	if (mu_device_task_len(h.task) != strlen(h.task))
		return mu_fail(err, MU_INVALID_ARGUMENT, "HELLO without a valid task name");
	rc = stream_conn_on_hello(c, c->header.flags, &h, err);
	if (rc)
		return rc;
	memset(h.key, 0, sizeof(h.key));
	h.receiver_incarnation = h.sender_incarnation;
	h.sender_incarnation = rt->incarnation;
	snprintf(h.task, sizeof(h.task), "%s", rt->task_prefix);
	return stream_conn_send_hello(c, STREAM_WELCOME, &h, 0, err);
}

static int on_frame(struct stream_conn *c, struct mu_span head, struct mu_err *err)
{
	switch (c->header.type) {
	case STREAM_RUN_DONE:
		if (c->dialled)
			return on_run_done(c, head, err);
		break;
	case STREAM_RUN:
		if (!c->dialled)
			return on_run(c, head, err);
		break;
	case STREAM_CANCEL:
	case STREAM_CLEANUP:
		if (!c->dialled) {
			on_cancel(c);
			return 0;
		}
		break;
	case STREAM_RETURN:
		if (c->exporter)
			return exporter_returned(c->exporter, head, err);
		break;
	default:
		break;
	}
	return mu_fail(err, MU_INVALID_ARGUMENT, "unexpected frame of type %d",
		       (int)c->header.type);
}

/* ---- received tensors ---- */

static bool is_on_task(struct mu_span device, const char *task)
{
	size_t n = strlen(task);

	return device.len > n && !memcmp(device.data, task, n) && device.data[n] == '/';
}

/* Sets *is_needed if the frame's step may use the tensor.  Counts the bytes before its RUN. */
static int check_step(struct stream_conn *c, bool *is_needed, struct mu_err *err)
{
	int64_t step_id = c->header.step_id;
	struct stream_step *s;
	int rc = 0;

	pthread_mutex_lock(&c->lock);
	s = mu_map_get_n(&c->steps, &step_id, sizeof(step_id));
	*is_needed = s || !c->dialled;
	if (!s && !c->dialled) {
		s = MU_NEW(struct stream_step);
		s->step_id = step_id;
		mu_map_put_n(&c->steps, &step_id, sizeof(step_id), s);
		if (c->steps.count > MAX_EARLY_STEPS)
			rc = mu_fail(err, MU_RESOURCE_EXHAUSTED,
				     "tensors for more than %d steps without a RUN",
				     MAX_EARLY_STEPS);
	}
	if (s && !c->dialled && !s->is_running) {
		s->early_bytes += c->header.payload_len + c->header.head_len;
		if (s->early_bytes > MAX_EARLY_BYTES)
			rc = mu_fail(err, MU_RESOURCE_EXHAUSTED,
				     "more than %zu bytes for a step without a RUN",
				     MAX_EARLY_BYTES);
	}
	pthread_mutex_unlock(&c->lock);
	return rc;
}

static int on_shared(struct stream_conn *c, const struct stream_tensor *t, struct mu_err *err)
{
	int rc;

	if (!c->importer)
		return mu_fail(err, MU_INVALID_ARGUMENT, "a shared tensor without shared memory");
	rc = importer_map(c->importer, &c->tensor, t->dtype, &t->shape, &t->handle, err);
	if (!rc && c->skip)
		mu_tensor_unref(&c->tensor); /* returned at once */
	return rc;
}

/* Allocates the memory for a TensorProto.  The other side chooses the size, so this may fail. */
static int alloc_proto(struct stream_conn *c, struct mu_err *err)
{
	size_t n = c->header.payload_len;
	char *memory = realloc(c->proto.data, n + 1);

	if (!memory)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a tensor of %zu bytes",
			       n);
	c->proto = (struct mu_buf){memory, n, n + 1};
	c->payload_at = memory;
	return 0;
}

static int on_tensor(struct stream_conn *c, struct mu_span head, struct mu_err *err)
{
	const struct runtime *rt = c->owner->worker->runtime;
	struct rendezvous_key k;
	struct stream_tensor t;
	bool is_needed;
	int rc = stream_tensor_parse(&t, &c->header, head, err);

	if (!rc)
		rc = rendezvous_key_parse(&k, t.key, err);
	if (rc)
		return rc;
	if (!is_on_task(k.src_device, c->task) || !is_on_task(k.dst_device, rt->task_prefix))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the key is not of a tensor from this peer to this task: %.300s",
			       t.key);
	rc = check_step(c, &is_needed, err);
	if (rc)
		return rc;
	c->skip = !is_needed;
	if (k.src_incarnation != c->incarnation)
		c->skip = true; /* from an earlier incarnation of the other task */
	if (t.shared) {
		rc = on_shared(c, &t, err);
	} else if (!c->skip && t.raw) {
		rc = mu_tensor_new(&c->tensor, t.dtype, &t.shape, err);
		c->payload_at = rc ? NULL : c->tensor.data;
	} else if (!c->skip && (c->header.flags & STREAM_PROTO)) {
		rc = alloc_proto(c, err);
	}
	if (rc)
		return rc;
	if (!c->skip)
		c->key = mu_xstrdup(t.key);
	c->in_payload = true;
	c->payload_left = c->header.payload_len;
	return 0;
}

static void stream_deliver(struct stream_conn *c, struct mu_tensor *t, bool dead,
			   const struct mu_err *parse_err)
{
	const struct local_worker *w = c->owner->worker;
	struct rendezvous *r = rendezvous_table_get(w->runtime->steps, c->header.step_id);
	struct mu_err err;

	if (parse_err)
		rendezvous_abort(r, parse_err);
	else if (rendezvous_put(r, c->key, *t, dead, &err) && !c->dialled)
		remove_idle_step(c, c->header.step_id); /* the step has ended */
	rendezvous_unref(r);
}

static void on_payload(struct stream_conn *c)
{
	struct mu_tensor t = c->tensor;
	bool dead = (c->header.flags & STREAM_DEAD) != 0;
	struct mu_err err;
	int rc = 0;

	c->tensor = (struct mu_tensor){0};
	if (!c->skip) {
		if (!dead && (c->header.flags & STREAM_PROTO)) {
			rc = mu_tensor_parse(&t, mu_buf_span(&c->proto), &err);
			if (c->proto.cap > STREAM_BUFFER)
				mu_buf_fini(&c->proto);
		}
		if (rc)
			mu_wrap(&err, "from %s", c->task);
		stream_deliver(c, &t, dead, rc ? &err : NULL);
	}
	free(c->key);
	c->key = NULL;
}

/* ---- end of a connection ---- */

static void on_close(struct stream_conn *c, const struct mu_err *why)
{
	const struct local_worker *w = c->owner->worker;
	struct stream_peer *p = c->dialled;
	struct stream_step **list;
	struct mu_err lost;
	bool was_current = false;
	size_t n = 0;

	if (p) {
		pthread_mutex_lock(&p->lock);
		was_current = p->conn == c;
		if (was_current)
			p->conn = NULL;
		pthread_mutex_unlock(&p->lock);
	}
	mu_fail(&lost, MU_UNAVAILABLE, "%.800s", why->msg);
	pthread_mutex_lock(&c->lock);
	list = MU_NEW_ARRAY(struct stream_step *, c->steps.count + 1);
	mu_map_each (&c->steps, s)
		list[n++] = s->value;
	for (size_t i = 0; i < n; i++) {
		if (p || !list[i]->is_running) { /* else stream_run_ended frees it */
			int64_t id = list[i]->step_id;

			mu_map_del_n(&c->steps, &id, sizeof(id));
		} else {
			struct stream_step *copy = MU_NEW(struct stream_step);

			*copy = *list[i];
			list[i] = copy;
		}
	}
	pthread_mutex_unlock(&c->lock);
	for (size_t i = 0; i < n; i++) {
		if (p)
			list[i]->done(list[i]->arg, &lost, MU_SPAN(""));
		else
			w->ops->drop_step(w->worker, list[i]->step_id, &lost);
		free(list[i]);
	}
	free(list);
	if (was_current)
		stream_conn_unref(c);
}

const struct stream_handlers stream_handlers = {.on_hello = on_hello,
						.on_frame = on_frame,
						.on_tensor = on_tensor,
						.on_payload = on_payload,
						.on_close = on_close};
