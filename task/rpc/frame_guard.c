/* SPDX-License-Identifier: Apache-2.0 */
/* Replacements of accept4 and recvmsg for the gRPC library, against two faults of gRPC 1.51.
 *
 * gRPC closes a listener permanently when accept4 fails with EMFILE, ENFILE, ENOBUFS or ENOMEM, so
 * a task that once ran out of descriptors would never accept a connection again.  On the completion
 * queue threads, accept4 returns EAGAIN instead.  gRPC then waits for the next connection, because
 * its epoll is edge-triggered.  As soon as a descriptor is free, a thread connects to the listener,
 * and gRPC accepts all pending connections.
 *
 * gRPC checks the size of header fields for each frame, not for the block that a HEADERS frame
 * and its CONTINUATION frames form.  A block without END_HEADERS grows without bound, and a value
 * that arrives in many pieces is copied once for each piece (CVE-2023-33953).  No option limits
 * either: a resource quota is enforced only while the connection has no pending data.
 *
 * recvmsg parses the frames of each accepted HTTP/2 connection.  When a block exceeds
 * MAX_BLOCK, it reports ECONNRESET and gRPC closes the connection.  It does the same when a client
 * sends MAX_BEFORE_ACK without acknowledging SETTINGS, because gRPC enforces its limits on streams
 * and header fields only after that.  TLS connections are not checked: their clients have
 * presented a certificate of the job.
 *
 * gRPC reads a connection from one thread at a time, so its record needs no lock.  The socket
 * cookie identifies the connection, because descriptor numbers are reused. */
#include "task/rpc/frame_guard.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/net/accept_backoff.h"
#include "task/rpc/core.h"

enum { HEADERS = 1, SETTINGS = 4, CONTINUATION = 9 }; /* types of frames */
enum { ACK = 1, END_HEADERS = 4 };                    /* flags */
enum { PREFACE_LEN = 24, MAX_FDS = 1 << 16 };
enum { MAX_BLOCK = 64 << 10, MAX_BEFORE_ACK = 256 << 10 };

struct connection {
	uint64_t cookie; /* 0: not checked */
	struct frame_guard guard;
};

static _Atomic(struct connection *) connections[MAX_FDS]; /* by descriptor; never freed */
static _Atomic bool accept_pending[MAX_FDS];              /* listeners with pending connections */

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) ? 0 : cookie;
}

static void guard_watch(int fd)
{
	struct connection *c;

	if (fd >= MAX_FDS) {
		shutdown(fd, SHUT_RDWR);
		return;
	}
	c = atomic_load(&connections[fd]);
	if (!c)
		c = MU_NEW(struct connection);
	mu_tsan_acquire(c);
	*c = (struct connection){.cookie = cookie_of(fd)};
	atomic_store(&connections[fd], c);
}

static void *accept_retry_thread(void *arg)
{
	static const struct timespec pause = {0, ACCEPT_BACKOFF_MS * 1000000L};
	int listener = (int)(intptr_t)arg, fd = -1;
	struct sockaddr_storage to;
	socklen_t len = sizeof(to);

	while (!getsockname(listener, (struct sockaddr *)&to, &len) &&
	       (fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0)
		nanosleep(&pause, NULL);
	atomic_store(&accept_pending[listener], false);
	if (fd >= 0) {
		(void)!connect(fd, (const struct sockaddr *)&to, len);
		close(fd);
	}
	return NULL;
}

static void schedule_accept(int listener)
{
	pthread_t thread;

	if (listener >= MAX_FDS || atomic_exchange(&accept_pending[listener], true))
		return;
	if (pthread_create(&thread, NULL, accept_retry_thread, (void *)(intptr_t)listener))
		atomic_store(&accept_pending[listener], false);
	else
		pthread_detach(thread);
}

__attribute__((visibility("default"))) int accept4(int fd, struct sockaddr *addr, socklen_t *len,
						   int flags)
{
	int got = (int)syscall(SYS_accept4, fd, addr, len, flags);

	if (!core_is_queue_thread())
		return got;
	if (got >= 0) {
		guard_watch(got);
	} else if (mu_accept_backoff(errno, "rpc")) {
		schedule_accept(fd);
		errno = EAGAIN;
	}
	return got;
}

static bool begin_frame(struct frame_guard *g)
{
	unsigned type = g->head[3], flags = g->head[4];
	bool is_within_limit = true;

	g->n_head = 0;
	g->skip = (size_t)g->head[0] << 16 | (size_t)g->head[1] << 8 | g->head[2];
	if (type == SETTINGS && flags & ACK)
		g->acknowledged = true;
	if (type == HEADERS || type == CONTINUATION) {
		g->block += sizeof(g->head) + g->skip;
		is_within_limit = g->block <= MAX_BLOCK;
		if (flags & END_HEADERS)
			g->block = 0;
	}
	return is_within_limit;
}

const char *frame_guard_follow(struct frame_guard *g, const unsigned char *p, size_t n)
{
	if (n > 0 && !g->started) {
		g->ignored = *p != 'P'; /* TLS, or not HTTP/2 */
		g->skip = PREFACE_LEN;
		g->started = true;
	}
	if (g->ignored)
		return NULL;
	g->before_ack += g->acknowledged ? 0 : n;
	while (n > 0) {
		size_t n_used = g->skip ? g->skip : sizeof(g->head) - g->n_head;

		if (n_used > n)
			n_used = n;
		if (g->skip) {
			g->skip -= n_used;
		} else {
			memcpy(g->head + g->n_head, p, n_used);
			g->n_head += (unsigned)n_used;
			if (g->n_head == sizeof(g->head) && !begin_frame(g))
				return "its header block exceeds 64 KiB";
		}
		p += n_used;
		n -= n_used;
	}
	return !g->acknowledged && g->before_ack > MAX_BEFORE_ACK
		   ? "it sent 256 KiB without acknowledging SETTINGS"
		   : NULL;
}

static void warn_rejected(int fd, const char *violation)
{
	static _Atomic int64_t next_ms;
	char host[64] = "a unix socket", port[16] = "";
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);

	if (!mu_log_ratelimit(&next_ms))
		return;
	if (!getpeername(fd, (struct sockaddr *)&peer, &len) && peer.ss_family != AF_UNIX)
		(void)!getnameinfo((struct sockaddr *)&peer, len, host, sizeof(host), port,
				   sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	mu_warn("rpc", "closing the connection from %s %s: %s", host, port, violation);
}

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	ssize_t got = syscall(SYS_recvmsg, fd, m, flags), left = got;
	bool is_checked = got > 0 && !flags && fd < MAX_FDS;
	struct connection *c = is_checked ? atomic_load(&connections[fd]) : NULL;
	const char *violation = NULL;

	if (!c)
		return got;
	mu_tsan_acquire(c);
	if (c->guard.ignored || !c->cookie || cookie_of(fd) != c->cookie)
		left = 0;
	for (size_t i = 0; left > 0 && !violation && i < m->msg_iovlen; i++) {
		size_t n = m->msg_iov[i].iov_len;

		n = n < (size_t)left ? n : (size_t)left;
		left -= (ssize_t)n;
		violation = frame_guard_follow(&c->guard, m->msg_iov[i].iov_base, n);
	}
	c->cookie = violation ? 0 : c->cookie;
	mu_tsan_release(c);
	if (!violation)
		return got;
	warn_rejected(fd, violation);
	errno = ECONNRESET;
	return -1;
}

void frame_guard_link(void)
{
}
