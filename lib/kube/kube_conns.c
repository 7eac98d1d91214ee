/* SPDX-License-Identifier: Apache-2.0 */
/* A server may close a connection that idles just when we send on it.  An exchange on a kept
 * connection that ends before the first byte of an answer is therefore made once more on a new one;
 * the server may have done what the first one asked for, which all callers bear (names are fixed,
 * writes carry versions or uids).
 *
 * Stopping shuts the sockets down and wakes every sleeper; nobody polls for the flag. */
#include "lib/kube/kube_conns.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/kube/kube_proxy.h"

enum { PIECE = 16 << 10, BATCH = 64 << 10 };
static const double connect_s = 10, idle_s = 1;

struct kube_conn {
	struct kube_wire wire;
	struct mu_buf out;
	unsigned shown;         /* kube_identity_version of the certificate it was made with */
	double used_last;       /* when it was given back */
	struct kube_conn *next; /* in the pool, or among those in use */
};

int kube_conns_init(struct kube_conns *c, const struct kube_config *config, struct mu_err *err)
{
	const char *proxy;
	int rc;

	*c = (struct kube_conns){.config = config};
	rc = kube_address_parse(&c->to, config->server, config->tls_server_name, err);
	if (rc < 0)
		return rc;
	proxy = kube_proxy_for(config, &c->to);
	c->proxied = proxy;
	if (proxy && (rc = kube_tunnel_parse(&c->tunnel, proxy, err)) < 0) {
		kube_address_fini(&c->to);
		return rc;
	}
	c->lines =
	    mu_xasprintf("User-Agent: %s/" MUSTER_VERSION "\r\n", program_invocation_short_name);
	kube_identity_init(&c->identity, config);
	kube_trust_init(&c->trust, config, &c->identity);
	pthread_mutex_init(&c->lock, NULL);
	c->stopping = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->stopping < 0) {
		rc = mu_fail_errno(err, errno, "no file for a client");
		kube_conns_fini(c);
	}
	return rc;
}

static void conn_free(struct kube_conn *conn)
{
	kube_wire_fini(&conn->wire);
	mu_buf_fini(&conn->out);
	free(conn);
}

void kube_conns_fini(struct kube_conns *c)
{
	while (c->pool) {
		struct kube_conn *conn = c->pool;
		c->pool = conn->next;
		conn_free(conn);
	}
	kube_trust_fini(&c->trust);
	kube_identity_fini(&c->identity);
	kube_tunnel_fini(&c->tunnel);
	kube_address_fini(&c->to);
	free(c->lines);
	if (c->stopping >= 0)
		close(c->stopping);
	pthread_mutex_destroy(&c->lock);
}

void kube_conns_stop(struct kube_conns *c)
{
	pthread_mutex_lock(&c->lock);
	atomic_store(&c->stopped, true);
	for (struct kube_conn *conn = c->used; conn; conn = conn->next)
		kube_wire_cut(&conn->wire);
	pthread_mutex_unlock(&c->lock);
	eventfd_write(c->stopping, 1);
}

/* A watch that gathers sleeps after each piece: one system call, where a condition takes five. */
bool kube_conns_sleep(struct kube_conns *c, double seconds)
{
	double until = mu_clock() + seconds;

	for (double left = seconds; left > 0 && !atomic_load(&c->stopped);
	     left = until - mu_clock()) {
		struct timespec t = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
		struct pollfd p = {.fd = c->stopping, .events = POLLIN};

		ppoll(&p, 1, &t, NULL);
	}
	return !atomic_load(&c->stopped);
}

/* NULL when the client was stopped. */
static struct kube_conn *borrow(struct kube_conns *c)
{
	struct kube_conn *conn = NULL;

	pthread_mutex_lock(&c->lock);
	if (!c->stopped && c->pool) {
		conn = c->pool;
		c->pool = conn->next;
	} else if (!c->stopped) {
		conn = MU_NEW(struct kube_conn);
		kube_wire_init(&conn->wire);
	}
	if (conn) {
		conn->next = c->used;
		c->used = conn;
	}
	pthread_mutex_unlock(&c->lock);
	return conn;
}

static void give_back(struct kube_conns *c, struct kube_conn *conn)
{
	struct kube_conn **at = &c->used;

	conn->used_last = mu_clock();
	pthread_mutex_lock(&c->lock);
	while (*at != conn)
		at = &(*at)->next;
	*at = conn->next;
	conn->next = c->pool;
	c->pool = conn;
	pthread_mutex_unlock(&c->lock);
}

/* To the server, or through the proxy to it. */
static int connect_conn(struct kube_conns *c, struct kube_conn *conn, struct mu_err *err)
{
	int rc;

	if (!c->proxied)
		return kube_wire_open(&conn->wire, &c->to, connect_s, &c->stopped, err);
	rc = kube_wire_open(&conn->wire, &c->tunnel.by, connect_s, &c->stopped, err);
	if (rc == 0)
		return kube_tunnel_dig(&c->tunnel, &conn->wire, &c->to, connect_s, err);
	mu_wrap(err, "the proxy %s", c->tunnel.by.in_header);
	return rc;
}

static int open_conn(struct kube_conns *c, struct kube_conn *conn, struct mu_err *err)
{
	SSL *ssl = NULL;
	int rc = 0;

	conn->shown = kube_identity_version(&c->identity);
	if (c->to.tls)
		rc = kube_trust_begin(&c->trust, &ssl, err);
	if (rc == 0)
		rc = connect_conn(c, conn, err);
	if (rc < 0)
		SSL_free(ssl);
	else if (ssl)
		rc = kube_wire_secure(&conn->wire, c->to.name, ssl, err);
	if (rc < 0)
		kube_wire_close(&conn->wire);
	return rc;
}

/* One that was kept and is as good as a new one. */
static bool is_good(const struct kube_conns *c, struct kube_conn *conn)
{
	return kube_wire_is_open(&conn->wire) &&
	       conn->shown == kube_identity_version(&c->identity) &&
	       (mu_clock() < conn->used_last + idle_s || !kube_wire_ready(&conn->wire));
}

/* After what came some time passes before the next look, so that what comes in it comes together.
 * The read that follows may wait as long as one is left to. */
static bool gather(struct kube_conns *c, struct kube_conn *conn, double seconds, double until)
{
	double left;

	if (!kube_wire_has_more(&conn->wire) && !kube_conns_sleep(c, seconds))
		return false;
	left = until - mu_clock();
	if (left <= 0)
		return false;
	if (left < conn->wire.patience / 2) /* each setting is a system call */
		kube_wire_set_patience(&conn->wire, left);
	return true;
}

static int receive(struct kube_conns *c, struct kube_conn *conn, const struct kube_exchange *x,
		   double until, struct kube_http *answer, struct mu_err *err)
{
	char piece[PIECE];
	bool some = false;

	while (answer->state != HTTP_DONE) {
		long n;
		int rc;

		if (x->gather > 0 && some && !gather(c, conn, x->gather, until))
			n = mu_fail(err, MU_DEADLINE_EXCEEDED, "no end in time");
		else
			n = kube_wire_read(&conn->wire, piece, sizeof(piece), err);
		if (n < 0)
			return (int)n;
		rc = n ? kube_http_feed(answer, piece, (size_t)n, err) : kube_http_end(answer, err);
		if (rc < 0)
			return rc;
		some = n > 0;
		if (answer->state != HTTP_DONE && mu_clock() > until)
			return mu_fail(err, MU_DEADLINE_EXCEEDED, "no end in time");
	}
	return 0;
}

/* Whether nothing of the answer has come yet. */
static bool untouched(const struct kube_http *answer)
{
	return answer->state == HTTP_STATUS && !answer->status && !answer->line.len;
}

/* Sends what its buffer holds, on the connection as it was kept or on a new one. */
static int send_on(struct kube_conns *c, const struct kube_exchange *x, struct kube_asked *a,
		   struct mu_err *err)
{
	struct kube_conn *conn = a->conn;
	int rc = a->kept ? 0 : open_conn(c, conn, err);

	if (rc < 0)
		return rc;
	a->until = mu_clock() + x->patience;
	kube_wire_set_patience(&conn->wire, x->patience);
	kube_wire_read_ahead(&conn->wire, x->gather > 0 ? BATCH : 0);
	return kube_wire_write(&conn->wire, conn->out.data, conn->out.len, err);
}

/* Whether what went wrong on it may be the end of a connection that had idled for too long. */
static bool may_be_stale(const struct kube_conns *c, const struct kube_asked *a, int rc)
{
	return rc == -MU_UNAVAILABLE && a->kept && !atomic_load(&c->stopped);
}

static int send_anew(struct kube_conns *c, const struct kube_exchange *x, struct kube_asked *a,
		     struct mu_err *err)
{
	kube_wire_close(&a->conn->wire);
	a->kept = false;
	return send_on(c, x, a, err);
}

/* Gives the connection back, closed unless it is good for another exchange. */
static void let_go(struct kube_conns *c, struct kube_asked *a, bool keep)
{
	struct kube_conn *conn = a->conn;

	if (!keep)
		kube_wire_close(&conn->wire);
	if (conn->out.len) /* it holds a token, and perhaps a key */
		OPENSSL_cleanse(conn->out.data, conn->out.len);
	give_back(c, conn);
	a->conn = NULL;
}

static int write_request(struct kube_conns *c, const struct kube_exchange *x, struct mu_buf *out,
			 struct mu_err *err)
{
	bool has_body = x->body.len || strcmp(x->method, "POST") == 0;
	MU_AUTO_FREE char *prefixed =
	    *c->to.prefix ? mu_xasprintf("%s%s", c->to.prefix, x->path) : NULL;
	MU_AUTO_BUF head = {0};
	struct kube_http_request rq = {.method = x->method,
				       .path = prefixed ? prefixed : x->path,
				       .host = c->to.in_header,
				       .body = x->body,
				       .has_body = has_body};
	int rc;

	mu_buf_puts(&head, c->lines);
	mu_buf_puts(&head, x->protobuf ? "Accept: " KUBE_PROTOBUF ", application/json;q=0.9\r\n"
				       : "Accept: application/json\r\n");
	if (has_body)
		mu_buf_printf(&head, "Content-Type: %s\r\n",
			      x->content_type ? x->content_type : "application/json");
	rc = kube_identity_headers(&c->identity, x->fresh, &head, err);
	rq.headers = head.data;
	mu_buf_clear(out);
	if (rc == 0)
		rc = kube_http_write(out, &rq, err);
	OPENSSL_cleanse(head.data, head.len);
	return rc;
}

static int or_stopped(const struct kube_conns *c, int rc, struct mu_err *err)
{
	return rc < 0 && atomic_load(&c->stopped) ? mu_fail(err, MU_CANCELLED, "stopped") : rc;
}

int kube_exchange_begin(struct kube_conns *c, const struct kube_exchange *x, struct kube_asked *a,
			struct mu_err *err)
{
	int rc;

	*a = (struct kube_asked){.conn = borrow(c)};
	if (!a->conn)
		return mu_fail(err, MU_CANCELLED, "stopped");
	rc = write_request(c, x, &a->conn->out, err);
	if (rc < 0) {
		let_go(c, a, true);
		return or_stopped(c, rc, err);
	}
	a->kept = is_good(c, a->conn);
	rc = send_on(c, x, a, err);
	if (may_be_stale(c, a, rc))
		rc = send_anew(c, x, a, err);
	if (rc < 0)
		let_go(c, a, false);
	return or_stopped(c, rc, err);
}

int kube_exchange_end(struct kube_conns *c, const struct kube_exchange *x, struct kube_asked *a,
		      struct kube_http *answer, struct mu_err *err)
{
	double left = a->until - mu_clock();
	int rc;

	if (left <
	    x->patience / 2) /* others were waited for since; each setting is a system call */
		kube_wire_set_patience(&a->conn->wire, left > 0 ? left : 0);
	rc = receive(c, a->conn, x, a->until, answer, err);
	if (may_be_stale(c, a, rc) && untouched(answer)) {
		rc = send_anew(c, x, a, err);
		if (rc == 0)
			rc = receive(c, a->conn, x, a->until, answer, err);
	}
	let_go(c, a, rc == 0 && answer->keep);
	return or_stopped(c, rc, err);
}
