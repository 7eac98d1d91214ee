/* SPDX-License-Identifier: Apache-2.0 */
/* A server's sockets: it listens, takes clients in, and sends away who says nothing.
 *
 * A listener is watched once at a time.  When there are no descriptors its next client is taken in
 * on one held in reserve and sent away at once; when even that fails, all listeners rest until a
 * timer, which was made while there were descriptors, has them watched again.
 *
 * A dead machine at the other end is noticed by TCP's own keepalive. */
#include "lib/base/clock.h"
#include "task/rpc/h2/h2.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/net/accept_backoff.h"
#include "task/rpc/h2/server.h"
#include "task/rpc/h2/socket.h"
#include "task/rpc/tls.h"

enum {
	MAX_CONNS = 16384,
	GREETING_MS = 20000, /* who says nothing is sent away */
	WRITE_OUT_MS = 1000, /* for answers that are still queued at the end */
};

/* ---- a connection's end ---- */

static void greeted(struct h2_conn *c)
{
	struct h2 *h = c->owner;

	atomic_fetch_sub(&h->n_strangers, 1);
}

static void ended(struct h2_conn *c, const struct mu_err *why)
{
	if (!c->greeted)
		greeted(c);
}

static void ref(struct h2_stream *s)
{
	atomic_fetch_add(&h2_call_of(s)->call.refs, 1);
}

static void unref(struct h2_stream *s)
{
	rpc_call_unref(&h2_call_of(s)->call);
}

static void gone(struct h2_stream *s)
{
	if (s->whole)
		rpc_call_gone(&h2_call_of(s)->call);
}

static const struct h2_side side = {
    .headers = h2_request_headers,
    .whole = h2_request_end,
    .reset = h2_request_reset,
    .gone = gone,
    .sent = h2_reply_close,
    .ref = ref,
    .unref = unref,
    .greeted = greeted,
    .ended = ended,
    .compressed = "a message is compressed in a way that this server does not know: use gzip, "
		  "deflate or nothing",
    .too_long = "the request is longer than this server takes",
    .damaged = "the compressed request message is damaged",
    .broken = MU_INVALID_ARGUMENT,
};

struct h2_conn *h2_server_conn_new(struct h2 *h, int fd)
{
	struct h2_conn *c = h2_conn_new(&side, h, fd);

	c->max_message = rpc_max_message(h->server);
	atomic_fetch_add(&h->n_strangers, 1);
	return c;
}

/* ---- clients come ---- */

static bool is_secured(const struct h2 *h, int listener)
{
	for (unsigned i = 0; i < h->n_secured; i++)
		if (h->listeners[i] == listener)
			return true;
	return false;
}

static void add(struct h2 *h, int fd, bool secured)
{
	struct h2_conn *c = h2_server_conn_new(h, fd);
	struct mu_err err;

	if (secured && !(c->tls = tls_conn_new(h->tls, fd, NULL, &err))) {
		mu_warn("rpc", "a client was sent away: %s", err.msg);
		ended(c, &err);
		h2_conn_unref(c);
		return;
	}
	h2_socket_tune(fd);
	h2_loop_add(&h->loop, c);
	h2_conn_unref(c);
}

/* With the lock held; one is given up to take the client in and send it away at once.  False: that
 * did not help either. */
static bool turn_away(struct h2 *h, int listener)
{
	bool none_left;
	int fd;

	if (h->reserve >= 0)
		close(h->reserve);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	none_left = fd < 0 && errno == EAGAIN;
	if (fd >= 0)
		close(fd);
	h->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd >= 0 || none_left;
}

static void rest(struct h2 *h)
{
	struct itimerspec once = {.it_value = {.tv_nsec = ACCEPT_BACKOFF_MS * 1000000L}};

	timerfd_settime(h->rested, 0, &once, NULL);
}

static void listen_again(struct h2 *h)
{
	uint64_t n;

	if (read(h->rested, &n, sizeof(n)) < 0)
		n = 0; /* another thread was here first */
	h2_loop_watch_fd(&h->loop, h->rested, false);
	pthread_mutex_lock(&h->lock);
	for (unsigned i = 0; i < h->n_listeners; i++)
		h2_loop_watch_fd(&h->loop, h->listeners[i], false);
	pthread_mutex_unlock(&h->lock);
}

static void take_in(struct h2 *h, int listener)
{
	bool crowded, draining, secured, resting = false;
	int fd;

	for (int i = 0; i < 64; i++) {
		pthread_mutex_lock(&h->lock);
		draining = h->draining;
		secured = is_secured(h, listener);
		crowded = h2_loop_count(&h->loop) >= MAX_CONNS;
		fd = draining ? -1 : accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && !draining && mu_accept_backoff(errno, "rpc"))
			resting = !turn_away(h, listener);
		pthread_mutex_unlock(&h->lock);
		if (draining)
			return;
		if (fd < 0)
			break;
		if (crowded) {
			mu_warn("rpc", "%d connections are open: one more was refused", MAX_CONNS);
			close(fd);
			continue;
		}
		add(h, fd, secured);
	}
	pthread_mutex_lock(&h->lock);
	if (resting)
		rest(h);
	else if (!h->draining)
		h2_loop_watch_fd(&h->loop, listener, false);
	pthread_mutex_unlock(&h->lock);
}

static void ready(void *ctx, int fd)
{
	struct h2 *h = ctx;

	if (fd == h->rested)
		listen_again(h);
	else
		take_in(h, fd);
}

static void end_stranger(struct h2_conn *c)
{
	if (!c->greeted && mu_clock_ms() - c->since_ms > GREETING_MS)
		shutdown(c->fd, SHUT_RDWR);
}

static void end_strangers(void *ctx)
{
	struct h2 *h = ctx;

	h2_loop_for_each(&h->loop, end_stranger);
}

static int patience_ms(void *ctx)
{
	struct h2 *h = ctx;

	return atomic_load(&h->n_strangers) ? 1000 : -1;
}

/* ---- life ---- */

static void close_listeners(struct h2 *h)
{
	for (unsigned i = 0; i < h->n_listeners; i++)
		close(h->listeners[i]);
	h->n_listeners = h->n_secured = 0;
}

int h2_start(struct rpc_server *server, const struct h2_options *o, struct h2 **out,
	     struct mu_err *err)
{
	struct h2 *h = MU_NEW(struct h2);
	int rc;

	*h = (struct h2){.server = server,
			 .tls = o->tls,
			 .n_secured = o->n_secured,
			 .reserve = open("/dev/null", O_RDONLY | O_CLOEXEC),
			 .rested = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
			 .loop = {.name = "rpc",
				  .ctx = h,
				  .ready = ready,
				  .patience_ms = patience_ms,
				  .idle = end_strangers}};
	pthread_mutex_init(&h->lock, NULL);
	for (unsigned i = 0; i < o->n_listeners; i++)
		if (i < H2_MAX_LISTENERS)
			h->listeners[h->n_listeners++] = o->listeners[i];
		else
			close(o->listeners[i]);
	rc = h2_loop_start(&h->loop, o->threads, err);
	if (!rc && h->rested < 0)
		rc = mu_fail_errno(err, errno, "cannot listen");
	if (rc) {
		h2_free(h);
		return rc;
	}
	h2_loop_watch_fd(&h->loop, h->rested, true);
	for (unsigned i = 0; i < h->n_listeners; i++)
		h2_loop_watch_fd(&h->loop, h->listeners[i], true);
	*out = h;
	return 0;
}

bool h2_is_open(struct h2 *h, uint32_t serial)
{
	return h2_loop_has(&h->loop, serial);
}

/* No stream of the client's is refused for it: those on their way are answered by the server. */
static void say_goodbye(struct h2_conn *c)
{
	static const char why[8] = {0x7f, (char)0xff, (char)0xff, (char)0xff};

	pthread_mutex_lock(&c->lock);
	if (!c->broken && (c->greeted || !c->tls)) {
		h2_out_frame(c, H2_GOAWAY, 0, 0, why, sizeof(why));
		h2_out_flush(c);
	}
	pthread_mutex_unlock(&c->lock);
}

void h2_drain(struct h2 *h)
{
	pthread_mutex_lock(&h->lock);
	h->draining = true;
	close_listeners(h);
	pthread_mutex_unlock(&h->lock);
	h2_loop_for_each(&h->loop, say_goodbye);
}

/* The callers of all calls of the connection are gone. */
static void cancel(struct h2_conn *c)
{
	struct h2_stream **all;
	unsigned n;

	pthread_mutex_lock(&c->lock);
	all = h2_stream_all(c, false, &n);
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < n; i++) {
		gone(all[i]);
		unref(all[i]);
	}
	free(all);
}

void h2_cancel_all(struct h2 *h)
{
	h2_loop_for_each(&h->loop, cancel);
}

static void write_out(struct h2_conn *c)
{
	int64_t end_ms = mu_clock_ms() + WRITE_OUT_MS;
	bool more = true;

	while (more && mu_clock_ms() < end_ms) {
		struct pollfd p = {.fd = c->fd, .events = POLLOUT};

		pthread_mutex_lock(&c->lock);
		c->reading = true; /* nobody else does any more */
		h2_out_flush(c);
		more = h2_out_left(c) && !c->broken;
		pthread_mutex_unlock(&c->lock);
		if (more && poll(&p, 1, 50) > 0 && p.revents & (POLLERR | POLLHUP))
			return;
	}
}

void h2_free(struct h2 *h)
{
	struct mu_err why;

	h2_loop_stop(&h->loop);
	close_listeners(h);
	h2_loop_for_each(&h->loop, write_out);
	mu_fail(&why, MU_UNAVAILABLE, "the server has stopped");
	h2_loop_fini(&h->loop, &why);
	if (h->reserve >= 0)
		close(h->reserve);
	if (h->rested >= 0)
		close(h->rested);
	pthread_mutex_destroy(&h->lock);
	free(h);
}
