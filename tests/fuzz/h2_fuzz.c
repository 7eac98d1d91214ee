/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of a connection sends anything, and it is read from a socket, piece by piece.  The
 * first byte says how long the pieces are, whether a proper greeting goes before them, and which
 * end ours is: a server's, or a client's with calls under way. */
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "task/rpc/h2/client.h"
#include "task/rpc/h2/server.h"
#include "task/rpc/hot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void echo(struct rpc_call *call, void *ctx)
{
	struct rpc_message m = {.head = rpc_bytes_flat(rpc_request(call))};

	rpc_reply(call, &m);
}

/* Answered when the caller is gone, or with the next one. */
static struct rpc_call *parked;

static void gone(void *arg)
{
	struct mu_err err;

	mu_fail(&err, MU_CANCELLED, "gone");
	parked = NULL;
	rpc_reply_error(arg, &err);
}

static void park(struct rpc_call *call, void *ctx)
{
	struct rpc_call *before = parked;

	parked = NULL;
	if (before)
		rpc_reply(before, NULL);
	parked = call;
	rpc_on_cancel(call, gone, call);
}

static const struct rpc_method methods[] = {{"/", echo}, {"/index.html", park}};

static struct rpc_server *server(void)
{
	struct rpc_server_options o = {.methods = methods, .n_methods = 2, .max_message = 1 << 16};
	static struct rpc_server *s;
	struct mu_err err;

	if (!s && rpc_server_start(&o, &s, NULL, &err))
		abort();
	return s;
}

/* False when the connection is at its end. */
static bool feed(struct h2_conn *c, int fd, const void *data, size_t n)
{
	static char drain[1 << 16];
	struct mu_err err;
	bool live;

	if (write(fd, data, n) != (ssize_t)n)
		return false;
	live = h2_conn_read(c, &err);
	pthread_mutex_lock(&c->lock);
	h2_out_flush(c);
	pthread_mutex_unlock(&c->lock);
	while (recv(fd, drain, sizeof(drain), MSG_DONTWAIT) > 0)
		;
	return live;
}

/* ---- a client's end ---- */

enum { CALLS = 4 };
static unsigned ended; /* each call once, and no more often */

static void settled(void *owner, struct h2_conn *c)
{
}

static void lost(void *owner, struct h2_conn *c, const struct mu_err *why)
{
}

static void answered(struct h2_ask *a, const struct mu_err *err, struct rpc_bytes *reply)
{
	struct mu_tensor t;
	struct mu_err bad;
	bool dead;

	ended++;
	if (!reply)
		return;
	if (hot_recv_tensor_reply(reply, &t, &dead, &bad) == 0)
		mu_tensor_unref(&t);
	bytes_fini(reply);
}

static void again(struct h2_ask *a)
{
	ended++;
}

static void unref(struct h2_ask *a)
{
	if (atomic_fetch_sub(&a->refs, 1) != 1)
		return;
	h2_ask_fini(a);
	free(a);
}

static const struct h2_client_events events = {
    .settled = settled, .lost = lost, .answered = answered, .again = again, .unref = unref};
static struct h2_client client = {.events = &events, .authority = "a:1", .name = "a:1"};

static struct h2_conn *client_conn(int fd)
{
	struct h2_conn *c = h2_conn_new(&h2_client_side, &client, fd);
	struct rpc_message m = {.head = MU_SPAN("hello")};

	c->reading = true;
	h2_conn_hello(c);
	ended = 0;
	for (int i = 0; i < CALLS; i++) {
		struct h2_ask *a = MU_NEW(struct h2_ask);

		h2_ask_init(a, "/t/Call", &m);
		if (i % 2)
			a->stream.in.place = hot_recv_tensor_place;
		if (h2_client_start(c, a) != H2_STARTED)
			abort();
		unref(a); /* the connection keeps it */
	}
	return c;
}

/* ---- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char hello[] = H2_PREFACE "\0\0\0\4\0\0\0\0";
	static struct h2 h;
	struct mu_err why;
	bool live = true, at_client;
	size_t piece, skip;
	struct h2_conn *c;
	int fds[2];

	if (size < 1 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
		return 0;
	piece = (data[0] & 63) + 1;
	at_client = data[0] & 128;
	h.server = server();
	c = at_client ? client_conn(fds[0]) : h2_server_conn_new(&h, fds[0]);
	c->reading = true;
	skip = at_client ? H2_PREFACE_LEN : 0;
	if (data[0] & 64)
		live = feed(c, fds[1], hello + skip, sizeof(hello) - skip);
	for (size_t at = 1; live && at < size; at += piece)
		live = feed(c, fds[1], data + at, size - at < piece ? size - at : piece);
	mu_fail(&why, MU_UNAVAILABLE, "over");
	h2_conn_break(c, &why, true);
	if (at_client && ended != CALLS)
		abort();
	h2_conn_unref(c);
	close(fds[1]);
	return 0;
}
