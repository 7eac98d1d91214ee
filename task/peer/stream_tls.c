/* SPDX-License-Identifier: Apache-2.0 */
/* TLS of a stream through OpenSSL.
 *
 * OpenSSL uses two buffers instead of the socket: input is read in large pieces, and many records
 * are sent in one write.  So a tensor needs one system call per 256 KiB instead of 16 KiB, and
 * there is no SIGPIPE. */
#include "task/peer/stream_tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#include "lib/base/buf.h"
#include "lib/tls/tls_context.h"

enum { INPUT_BYTES = 64 << 10, OUTPUT_BYTES = 256 << 10, RECORD_BYTES = 16 << 10 };

struct tls_conn {
	SSL *ssl;
	int fd;
	struct rpc_tls *tls; /* a reference */
	char *in;
	size_t in_from, in_to;
	struct mu_buf out;
	size_t out_from;
	char staging[RECORD_BYTES];
	char error_text[120];
};

/* ---- BIO ---- */

static int bio_read(BIO *b, char *to, int n)
{
	struct tls_conn *c = BIO_get_data(b);
	size_t have;
	ssize_t got = 0;

	BIO_clear_retry_flags(b);
	if (c->in_from == c->in_to) {
		do
			got = recv(c->fd, c->in, INPUT_BYTES, 0);
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

static int bio_write(BIO *b, const char *from, int n)
{
	struct tls_conn *c = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	mu_buf_put(&c->out, from, (size_t)n);
	return n;
}

static long bio_ctrl(BIO *b, int command, long n, void *p)
{
	return command == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *b)
{
	BIO_set_init(b, 1);
	return 1;
}

static BIO_METHOD *method; /* one per process; NULL: no memory */

static void make_method(void)
{
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "buffers");
	if (!method)
		return;
	BIO_meth_set_read(method, bio_read);
	BIO_meth_set_write(method, bio_write);
	BIO_meth_set_ctrl(method, bio_ctrl);
	BIO_meth_set_create(method, bio_create);
}

static BIO *new_bio(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_method);
	return method ? BIO_new(method) : NULL;
}

static bool expect_host(SSL *ssl, const char *host)
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
	BIO *b = new_bio();

	c->fd = fd;
	c->tls = rpc_tls_ref(t);
	c->in = mu_xmalloc(INPUT_BYTES);
	c->ssl = mu_tls_context_new_ssl(rpc_tls_context(t));
	if (!b || !c->ssl || (host && !expect_host(c->ssl, host))) {
		BIO_free(b);
		tls_conn_free(c);
		ERR_clear_error();
		mu_fail(err, MU_RESOURCE_EXHAUSTED, "TLS: OpenSSL cannot create a connection");
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

/* ---- transfer ---- */

bool tls_conn_unsent(const struct tls_conn *c)
{
	return c->out_from < c->out.len;
}

bool tls_conn_unread(const struct tls_conn *c)
{
	return c->in_from < c->in_to || SSL_has_pending(c->ssl);
}

const char *tls_conn_error_text(const struct tls_conn *c)
{
	return c->error_text;
}

/* Returns 0, or -1 with errno. */
static int flush_output(struct tls_conn *c)
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

/* Converts an OpenSSL result: 0 at the end of the stream, or -1 with errno. */
static ssize_t convert_result(struct tls_conn *c, int rc)
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
		mu_tls_reason(c->error_text, sizeof(c->error_text));
		errno = EPROTO;
		return -1;
	}
}

ssize_t tls_readv(struct tls_conn *c, const struct iovec *iov, int n)
{
	ssize_t total = 0, end = 0;

	ERR_clear_error();
	for (int i = 0; i < n; i++)
		for (size_t at = 0; at < iov[i].iov_len;) {
			int got, max_bytes = iov[i].iov_len - at > INT32_MAX
						 ? INT32_MAX
						 : (int)(iov[i].iov_len - at);

			errno = 0;
			got = SSL_read(c->ssl, (char *)iov[i].iov_base + at, max_bytes);
			if (got <= 0) {
				end = convert_result(c, got);
				goto out;
			}
			at += (size_t)got;
			total += got;
		}
out:;
	int e = errno;

	/* Sends handshake messages, and the alert to a rejected peer.  If the socket is full, the
	 * next write sends the rest. */
	flush_output(c);
	errno = e;
	return total ? total : end;
}

/* Returns the next bytes to encrypt: a large piece in place; small pieces copied to `staging`. */
static size_t next_bytes(struct tls_conn *c, const struct iovec *iov, int n, size_t skip,
			 const char **from)
{
	size_t have = 0;

	for (int i = 0; i < n && have < RECORD_BYTES; i++) {
		const char *p = iov[i].iov_base;
		size_t len = iov[i].iov_len, n_copy;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		p += skip;
		len -= skip;
		skip = 0;
		if (!have && len >= RECORD_BYTES) {
			*from = p;
			return RECORD_BYTES;
		}
		n_copy = len < RECORD_BYTES - have ? len : RECORD_BYTES - have;
		memcpy(c->staging + have, p, n_copy);
		have += n_copy;
	}
	*from = c->staging;
	return have;
}

ssize_t tls_writev(struct tls_conn *c, const struct iovec *iov, int n)
{
	size_t total = 0, len;
	const char *from;

	if (flush_output(c))
		return -1;
	ERR_clear_error();
	while (c->out.len < OUTPUT_BYTES && (len = next_bytes(c, iov, n, total, &from))) {
		int put;

		errno = 0;
		put = SSL_write(c->ssl, from, (int)len);
		if (put <= 0) {
			if (!total) {
				ssize_t bad = convert_result(c, put);
				int e = errno;

				flush_output(c); /* handshake messages */
				errno = e;
				return bad;
			}
			ERR_clear_error();
			break;
		}
		total += (size_t)put;
	}
	if (flush_output(c) && errno != EAGAIN && errno != EWOULDBLOCK)
		return -1;
	return (ssize_t)total;
}
