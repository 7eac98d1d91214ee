/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to a task that has offered its stream: first to the Unix socket, which works on the same
 * host only, then by TCP.  HELLO has the offer's key and the incarnation of the intended task. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "task/peer/stream_conn.h"
#include "task/runtime/runtime.h"

/* LOCAL_SEND_BUFFER_BYTES: buffer size of Unix sockets.  With the default of about 200 KiB a large
 * tensor needs many wake-ups. */
enum { DIAL_MS = 3000, LOCAL_SEND_BUFFER_BYTES = 2 << 20 };
/* The connection to a silent peer ends after 30 s, also while nothing is sent to it. */
enum { USER_TIMEOUT_MS = 30000, KEEPALIVE_IDLE_S = 10, KEEPALIVE_INTERVAL_S = 10 };

static void set_connect_timeout(int fd)
{
	struct timeval tv = {DIAL_MS / 1000, 0};

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)); /* limits connect() */
}

void stream_enlarge_send_buffer(int fd)
{
	int bytes = LOCAL_SEND_BUFFER_BYTES;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

void stream_set_tcp_options(int fd)
{
	int one = 1, timeout = USER_TIMEOUT_MS;
	int idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

static int dial_local(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t n = strlen(name);
	int fd;

	if (!n || n + 1 > sizeof(a.sun_path))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	memcpy(a.sun_path + 1, name, n);
	set_connect_timeout(fd);
	stream_enlarge_send_buffer(fd);
	if (connect(fd, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int dial_tcp(const char *host, int port, struct mu_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	char service[8];
	int fd = -1, gai_rc, e = 0;

	if (!*host || !port)
		return mu_fail(err, MU_UNAVAILABLE, "the task offers no TCP port for streams");
	snprintf(service, sizeof(service), "%d", port);
	gai_rc = getaddrinfo(host, service, &hints, &list);
	if (gai_rc)
		return mu_fail(err, MU_UNAVAILABLE, "%s: %s", host, gai_strerror(gai_rc));
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			e = errno;
			continue;
		}
		set_connect_timeout(fd);
		if (!connect(fd, a->ai_addr, a->ai_addrlen))
			break;
		e = errno == EINPROGRESS ? ETIMEDOUT : errno; /* EINPROGRESS: send timeout */
		close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	if (fd < 0)
		return mu_fail_errno(err, e ? e : EIO, "stream to %s:%d", host, port);
	stream_set_tcp_options(fd);
	return fd;
}

static int exchange_hello(struct stream_conn *c, const struct stream_offer *o, struct mu_err *err)
{
	const struct stream_peer *p = c->dialled;
	const struct runtime *rt = p->owner->worker->runtime;
	struct stream_hello h = {.sender_incarnation = rt->incarnation,
				 .receiver_incarnation = o->incarnation},
			    peer_hello;
	char header[STREAM_HEADER], head[STREAM_MAX_HEAD];
	int64_t until = mu_clock_ms() + DIAL_MS;
	struct stream_header reply;
	int rc;

	memcpy(h.key, o->key, sizeof(h.key));
	snprintf(h.task, sizeof(h.task), "%s", rt->task_prefix);
	rc = stream_conn_send_hello(c, STREAM_HELLO, &h, until, err);
	if (rc)
		return rc;
	if (stream_io_get_all(c, header, sizeof(header), until))
		return mu_fail(err, MU_UNAVAILABLE, "the task did not answer HELLO");
	rc = stream_header_parse(&reply, header, err);
	if (rc)
		return rc;
	if (reply.type != STREAM_WELCOME || reply.payload_len ||
	    stream_io_get_all(c, head, reply.head_len, until))
		return mu_fail(err, MU_UNAVAILABLE,
			       "the task answered HELLO with an unexpected frame");
	rc = stream_hello_parse(&peer_hello, (struct mu_span){head, reply.head_len}, err);
	if (!rc &&
	    (strcmp(peer_hello.task, p->task) || peer_hello.sender_incarnation != o->incarnation))
		rc = mu_fail(err, MU_UNAVAILABLE, "the stream at this address belongs to %s",
			     peer_hello.task);
	if (!rc)
		rc = stream_conn_on_hello(c, reply.flags, &peer_hello, err);
	return rc;
}

struct stream_conn *stream_dial(struct stream_peer *p, struct mu_err *err)
{
	struct rpc_tls *tls = p->owner->tls;
	struct stream_offer offer;
	struct stream_conn *c;
	bool local;
	int fd;

	pthread_mutex_lock(&p->lock);
	offer = p->offer;
	pthread_mutex_unlock(&p->lock);
	fd = dial_local(offer.local);
	local = fd >= 0;
	if (!local)
		fd = dial_tcp(p->host, offer.port, err);
	if (fd < 0)
		return NULL;
	c = stream_conn_new(p->owner, fd);
	c->dialled = p;
	c->local = local;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	if ((tls && !local && stream_conn_secure(c, tls, p->host, err)) ||
	    exchange_hello(c, &offer, err)) {
		stream_conn_unref(c);
		return NULL;
	}
	return c;
}

void stream_dial_later(struct stream_peer *p)
{
	struct streams *s = p->owner;
	struct stream_peer **last = &s->to_dial;

	pthread_mutex_lock(&s->lock);
	while (*last) /* FIFO: a silent peer must not starve the others */
		last = &(*last)->next;
	p->next = NULL;
	*last = p;
	pthread_cond_signal(&s->queued);
	pthread_mutex_unlock(&s->lock);
}
