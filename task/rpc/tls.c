/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL below a connection's bytes.
 *
 * The library sees two buffers instead of the socket: what comes is read in large pieces, and many
 * records go out in one write, so a tensor costs a system call for each 256 KiB instead of one for
 * each 16.  It also never meets a SIGPIPE.
 *
 * No session is resumed: a certificate is looked at each time, and none that is trusted no more
 * stays so by a ticket. */
#include "task/rpc/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

enum { IN = 64 << 10, OUT = 256 << 10, RECORD = 16 << 10, LOOK_MS = 1000 };

static const char *const names[] = {"ca.crt", "tls.crt", "tls.key"};
struct stamp {
	struct timespec changed[MU_COUNT(names)];
	ino_t inode[MU_COUNT(names)];
};

struct rpc_tls {
	_Atomic unsigned refs;
	char *path[MU_COUNT(names)], *folder;
	BIO_METHOD *method;
	pthread_mutex_t lock; /* guards what follows */
	SSL_CTX *ctx;
	struct stamp stamp; /* of what was tried last */
	int64_t looked_ms;
};

struct tls_conn {
	SSL *ssl;
	int fd;
	struct rpc_tls *tls; /* a reference */
	char *in;
	size_t in_from, in_to;
	struct mu_buf out;
	size_t out_from;
	char staging[RECORD];
	char why[120];
};

/* ---- the folder ---- */

static void look(struct rpc_tls *t, struct stamp *s)
{
	struct stat st;

	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < MU_COUNT(names); i++)
		if (stat(t->path[i], &st) == 0) {
			s->changed[i] = st.st_mtim;
			s->inode[i] = st.st_ino;
		}
}

static void say_why(char *why, size_t size)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = ERR_reason_error_string(code);

	snprintf(why, size, "%s", reason ? reason : "unknown");
	ERR_clear_error();
}

static const unsigned char h2_only[] = "\x02h2";

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *in,
		     unsigned n_in, void *arg)
{
	unsigned char *chosen;

	if (SSL_select_next_proto(&chosen, n, h2_only, sizeof(h2_only) - 1, in, n_in) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *load(struct rpc_tls *t, struct mu_err *err)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());
	const char *bad = NULL;
	char why[120];

	ERR_clear_error();
	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
		bad = "TLS 1.2";
	else if (SSL_CTX_load_verify_file(ctx, t->path[0]) != 1)
		bad = t->path[0];
	else if (SSL_CTX_use_certificate_chain_file(ctx, t->path[1]) != 1)
		bad = t->path[1];
	else if (SSL_CTX_use_PrivateKey_file(ctx, t->path[2], SSL_FILETYPE_PEM) != 1 ||
		 SSL_CTX_check_private_key(ctx) != 1)
		bad = t->path[2];
	if (bad) {
		say_why(why, sizeof(why));
		SSL_CTX_free(ctx);
		mu_fail(err, MU_FAILED_PRECONDITION,
			"TLS: %s cannot be used (%s): the folder must have tls.crt, tls.key and "
			"ca.crt that belong together",
			bad, why);
		return NULL;
	}
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
				     SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				  SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_alpn_select_cb(ctx, choose_h2, NULL);
	return ctx;
}

/* With the lock held: files that have changed are read again; those that do not fit together, as
 * while they are being replaced, leave what was there. */
static void refresh(struct rpc_tls *t)
{
	int64_t now = mu_clock_ms();
	struct stamp s;
	struct mu_err err;
	SSL_CTX *ctx;

	if (now - t->looked_ms < LOOK_MS)
		return;
	t->looked_ms = now;
	look(t, &s);
	if (!memcmp(&s, &t->stamp, sizeof(s)))
		return;
	t->stamp = s;
	ctx = load(t, &err);
	if (!ctx) {
		mu_warn("tls", "the files before stay in use: %s", err.msg);
		return;
	}
	SSL_CTX_free(t->ctx);
	t->ctx = ctx;
	mu_info("tls", "new certificates from %s", t->folder);
}

/* ---- the socket, as the library sees it ---- */

static int take_in(BIO *b, char *to, int n)
{
	struct tls_conn *c = BIO_get_data(b);
	size_t have;
	ssize_t got = 0;

	BIO_clear_retry_flags(b);
	if (c->in_from == c->in_to) {
		do
			got = recv(c->fd, c->in, IN, 0);
		while (got < 0 && errno == EINTR);
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			BIO_set_retry_read(b);
		if (got <= 0)
			return (int)got;
		c->in_from = 0;
		c->in_to = (size_t)got;
	}
	have = c->in_to - c->in_from;
	if ((size_t)n > have)
		n = (int)have;
	memcpy(to, c->in + c->in_from, (size_t)n);
	c->in_from += (size_t)n;
	return n;
}

static int put_out(BIO *b, const char *from, int n)
{
	struct tls_conn *c = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	mu_buf_put(&c->out, from, (size_t)n);
	return n;
}

static long control(BIO *b, int command, long n, void *p)
{
	return command == BIO_CTRL_FLUSH;
}

static int created(BIO *b)
{
	BIO_set_init(b, 1);
	return 1;
}

static BIO_METHOD *make_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "buffers");

	if (!m)
		return NULL;
	BIO_meth_set_read(m, take_in);
	BIO_meth_set_write(m, put_out);
	BIO_meth_set_ctrl(m, control);
	BIO_meth_set_create(m, created);
	return m;
}

/* ---- life ---- */

int rpc_tls_open(const char *folder, struct rpc_tls **out, struct mu_err *err)
{
	struct rpc_tls *t = MU_NEW(struct rpc_tls);

	t->refs = 1;
	pthread_mutex_init(&t->lock, NULL);
	t->folder = mu_xstrdup(folder);
	for (unsigned i = 0; i < MU_COUNT(names); i++)
		t->path[i] = mu_xasprintf("%s/%s", folder, names[i]);
	look(t, &t->stamp);
	t->looked_ms = mu_clock_ms();
	t->method = make_method();
	t->ctx = t->method ? load(t, err) : NULL;
	if (!t->ctx) {
		if (!t->method)
			mu_fail(err, MU_INTERNAL, "TLS: OpenSSL has no more room");
		rpc_tls_unref(t);
		return -MU_FAILED_PRECONDITION;
	}
	*out = t;
	return 0;
}

struct rpc_tls *rpc_tls_ref(struct rpc_tls *t)
{
	atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
	return t;
}

void rpc_tls_unref(struct rpc_tls *t)
{
	if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
		return;
	SSL_CTX_free(t->ctx);
	BIO_meth_free(t->method);
	for (unsigned i = 0; i < MU_COUNT(names); i++)
		free(t->path[i]);
	free(t->folder);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static bool expect(SSL *ssl, const char *host)
{
	if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1)
		return true;
	ERR_clear_error();
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

struct tls_conn *tls_conn_new(struct rpc_tls *t, int fd, const char *host, struct mu_err *err)
{
	struct tls_conn *c = MU_NEW(struct tls_conn);
	BIO *b = BIO_new(t->method);

	c->fd = fd;
	c->tls = rpc_tls_ref(t);
	c->in = mu_xmalloc(IN);
	pthread_mutex_lock(&t->lock);
	refresh(t);
	c->ssl = SSL_new(t->ctx);
	pthread_mutex_unlock(&t->lock);
	if (!b || !c->ssl || (host && !expect(c->ssl, host))) {
		BIO_free(b);
		tls_conn_free(c);
		ERR_clear_error();
		mu_fail(err, MU_RESOURCE_EXHAUSTED, "TLS: OpenSSL makes no connection");
		return NULL;
	}
	BIO_set_data(b, c);
	SSL_set_bio(c->ssl, b, b);
	if (host)
		SSL_set_connect_state(c->ssl);
	else
		SSL_set_accept_state(c->ssl);
	return c;
}

void tls_conn_free(struct tls_conn *c)
{
	if (!c)
		return;
	SSL_free(c->ssl);
	mu_buf_fini(&c->out);
	free(c->in);
	rpc_tls_unref(c->tls);
	free(c);
}

/* ---- bytes ---- */

bool tls_conn_unsent(const struct tls_conn *c)
{
	return c->out_from < c->out.len;
}

bool tls_conn_unread(const struct tls_conn *c)
{
	return c->in_from < c->in_to || SSL_has_pending(c->ssl);
}

const char *tls_conn_why(const struct tls_conn *c)
{
	return c->why;
}

/* 0, or -1 with errno. */
static int send_out(struct tls_conn *c)
{
	while (tls_conn_unsent(c)) {
		ssize_t n = send(c->fd, c->out.data + c->out_from, c->out.len - c->out_from,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		c->out_from += (size_t)n;
	}
	c->out.len = c->out_from = 0;
	return 0;
}

/* What the library's answer means: 0 the end, or -1 with errno. */
static ssize_t verdict(struct tls_conn *c, int rc)
{
	int e = errno;

	switch (SSL_get_error(c->ssl, rc)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		ERR_clear_error();
		errno = e ? e : ECONNRESET;
		return -1;
	default:
		say_why(c->why, sizeof(c->why));
		errno = EPROTO;
		return -1;
	}
}

void tls_conn_begin(struct tls_conn *c)
{
	ERR_clear_error();
	SSL_set_alpn_protos(c->ssl, h2_only, sizeof(h2_only) - 1);
	SSL_do_handshake(c->ssl); /* what is wrong shows when it is read */
	ERR_clear_error();
	send_out(c);
}

bool tls_conn_shaking(const struct tls_conn *c)
{
	return !SSL_is_init_finished(c->ssl);
}

ssize_t tls_readv(struct tls_conn *c, const struct iovec *iov, int n)
{
	ssize_t total = 0, end = 0;

	ERR_clear_error();
	for (int i = 0; i < n; i++)
		for (size_t at = 0; at < iov[i].iov_len;) {
			int got, most = iov[i].iov_len - at > INT32_MAX
					    ? INT32_MAX
					    : (int)(iov[i].iov_len - at);

			errno = 0;
			got = SSL_read(c->ssl, (char *)iov[i].iov_base + at, most);
			if (got <= 0) {
				end = verdict(c, got);
				goto out;
			}
			at += (size_t)got;
			total += got;
		}
out:;
	int e = errno;

	/* what the handshake has to say, also the last word to a stranger; a full socket is seen by
	 * the next write */
	send_out(c);
	errno = e;
	return total ? total : end;
}

/* The next bytes to encrypt: those of one large piece as they lie, small ones together. */
static size_t next_bytes(struct tls_conn *c, const struct iovec *iov, int n, size_t skip,
			 const char **from)
{
	size_t have = 0;

	for (int i = 0; i < n && have < RECORD; i++) {
		const char *p = iov[i].iov_base;
		size_t len = iov[i].iov_len, take;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		p += skip;
		len -= skip;
		skip = 0;
		if (!have && len >= RECORD) {
			*from = p;
			return RECORD;
		}
		take = len < RECORD - have ? len : RECORD - have;
		memcpy(c->staging + have, p, take);
		have += take;
	}
	*from = c->staging;
	return have;
}

ssize_t tls_writev(struct tls_conn *c, const struct iovec *iov, int n)
{
	size_t total = 0, len;
	const char *from;

	if (send_out(c))
		return -1;
	ERR_clear_error();
	while (c->out.len < OUT && (len = next_bytes(c, iov, n, total, &from))) {
		int put;

		errno = 0;
		put = SSL_write(c->ssl, from, (int)len);
		if (put <= 0) {
			if (!total) {
				ssize_t bad = verdict(c, put);
				int e = errno;

				send_out(c); /* what the handshake has to say */
				errno = e;
				return bad;
			}
			ERR_clear_error();
			break;
		}
		total += (size_t)put;
	}
	if (send_out(c) && errno != EAGAIN && errno != EWOULDBLOCK)
		return -1;
	return (ssize_t)total;
}
