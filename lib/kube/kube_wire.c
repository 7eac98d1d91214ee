/* SPDX-License-Identifier: Apache-2.0 */
/* The socket blocks, with the time that a read may take set on it: so a call is one system call to
 * send and one or two to receive, without a poll between them.  Being cut off is shutdown(), which
 * wakes whoever waits.
 *
 * OpenSSL reads and writes the socket through a method of our own, because its own raises SIGPIPE.
 */
#include "lib/kube/kube_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

enum { SLICE_MS = 100, KEEP_IDLE_S = 30, KEEP_EVERY_S = 10, KEEP_TRIES = 4, UNSENT_MS = 60000 };

void kube_wire_init(struct kube_wire *w)
{
	*w = (struct kube_wire){.fd = -1};
	pthread_mutex_init(&w->lock, NULL);
}

void kube_wire_fini(struct kube_wire *w)
{
	kube_wire_close(w);
	pthread_mutex_destroy(&w->lock);
}

bool kube_wire_is_open(const struct kube_wire *w)
{
	return w->fd >= 0;
}

static void set_fd(struct kube_wire *w, int fd)
{
	pthread_mutex_lock(&w->lock);
	if (w->fd >= 0)
		close(w->fd);
	w->fd = fd;
	pthread_mutex_unlock(&w->lock);
}

void kube_wire_close(struct kube_wire *w)
{
	/* what is freed without a goodbye takes its session along, and the next connection would
	 * have to prove anew who both are */
	if (w->ssl)
		SSL_set_shutdown(w->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(w->ssl);
	w->ssl = NULL;
	set_fd(w, -1);
}

void kube_wire_cut(struct kube_wire *w)
{
	pthread_mutex_lock(&w->lock);
	if (w->fd >= 0)
		shutdown(w->fd, SHUT_RDWR);
	pthread_mutex_unlock(&w->lock);
}

void kube_wire_set_patience(struct kube_wire *w, double seconds)
{
	struct timeval t = {(time_t)seconds,
			    (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};

	if (seconds == w->patience)
		return;
	if (t.tv_sec == 0 && t.tv_usec < 1000)
		t.tv_usec = 1000; /* zero would be for ever */
	setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(w->fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
	w->patience = seconds;
}

/* ---- TLS ---- */

static int bio_write(BIO *b, const char *data, int len)
{
	const struct kube_wire *w = BIO_get_data(b);
	ssize_t n = send(w->fd, data, (size_t)len, MSG_NOSIGNAL);

	BIO_clear_retry_flags(b);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(b);
	return (int)n;
}

static int bio_read(BIO *b, char *into, int room)
{
	struct kube_wire *w = BIO_get_data(b);
	ssize_t n = recv(w->fd, into, (size_t)room, 0);

	w->full = n == room;
	BIO_clear_retry_flags(b);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(b);
	if (n == 0)
		BIO_set_flags(b, BIO_FLAGS_IN_EOF);
	return (int)n;
}

static long bio_control(BIO *b, int what, long number, void *p)
{
	if (what == BIO_CTRL_EOF)
		return BIO_test_flags(b, BIO_FLAGS_IN_EOF) != 0;
	return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;

static void make_method(void)
{
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "kube");
	if (!method)
		return;
	BIO_meth_set_write(method, bio_write);
	BIO_meth_set_read(method, bio_read);
	BIO_meth_set_ctrl(method, bio_control);
}

/* What went wrong in OpenSSL, or under it. */
static int failed(struct kube_wire *w, int result, const char *doing, struct mu_err *err)
{
	int saved = errno, kind = SSL_get_error(w->ssl, result);
	long verified = SSL_get_verify_result(w->ssl);
	unsigned long code = ERR_peek_last_error();

	ERR_clear_error();
	if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
		return mu_fail(err, MU_DEADLINE_EXCEEDED, "%s: no answer in time", doing);
	if (verified != X509_V_OK && strcmp(doing, "TLS handshake") == 0)
		return mu_fail(err, MU_UNAVAILABLE, "the server's certificate is not accepted: %s",
			       X509_verify_cert_error_string(verified));
	if (kind == SSL_ERROR_SYSCALL || !code)
		return mu_fail(err, MU_UNAVAILABLE, "%s: %s", doing,
			       saved ? strerror(saved) : "the server hung up");
	return mu_fail(err, MU_UNAVAILABLE, "%s: %s", doing,
		       ERR_reason_error_string(code) ? ERR_reason_error_string(code)
						     : "unknown error");
}

static bool is_number(const char *host)
{
	unsigned char out[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, out) == 1 || inet_pton(AF_INET6, host, out) == 1;
}

int kube_wire_secure(struct kube_wire *w, const char *name, SSL *ssl, struct mu_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	bool number = is_number(name);
	BIO *bio;
	int rc;

	w->ssl = ssl;
	pthread_once(&once, make_method);
	bio = method ? BIO_new(method) : NULL;
	if (!bio)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a connection");
	BIO_set_data(bio, w);
	BIO_set_init(bio, 1);
	SSL_set_bio(w->ssl, bio, bio);
	rc = number ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(w->ssl), name)
		    : SSL_set1_host(w->ssl, name);
	if (rc == 1 && !number)
		rc = SSL_set_tlsext_host_name(w->ssl, name) == 1;
	if (rc != 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "'%.100s' is no name of a server", name);
	ERR_clear_error();
	errno = 0;
	rc = SSL_connect(w->ssl);
	return rc == 1 ? 0 : failed(w, rc, "TLS handshake", err);
}

/* ---- opening ---- */

/* 0, or an errno. */
static int await_connect(int fd, double until, const _Atomic bool *stopped)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t n = sizeof(int);
	int error = 0;

	while (!atomic_load(stopped) && mu_clock() < until) {
		if (poll(&p, 1, SLICE_MS) <= 0)
			continue;
		return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0 ? errno : error;
	}
	return ETIMEDOUT;
}

static void set_options(int fd)
{
	const struct {
		int level, option, value;
	} options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
		       {IPPROTO_TCP, TCP_NODELAY, 1},
		       {IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S},
		       {IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY_S},
		       {IPPROTO_TCP, TCP_KEEPCNT, KEEP_TRIES},
		       {IPPROTO_TCP, TCP_USER_TIMEOUT, UNSENT_MS}};

	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		setsockopt(fd, options[i].level, options[i].option, &options[i].value, sizeof(int));
}

/* 0, or an errno. */
static int connect_to(struct kube_wire *w, const struct addrinfo *a, double until,
		      const _Atomic bool *stopped)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;

	if (fd < 0)
		return errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen) < 0)
		error = errno == EINPROGRESS ? await_connect(fd, until, stopped) : errno;
	if (!error && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) < 0)
		error = errno;
	if (error) {
		close(fd);
	} else { /* many who are asked refuse: for them that would be half of it all */
		set_options(fd);
		set_fd(w, fd);
	}
	return error;
}

int kube_wire_open(struct kube_wire *w, const struct kube_address *to, double patience,
		   const _Atomic bool *stopped, struct mu_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	double until = mu_clock() + patience;
	int error = ECONNREFUSED, rc;

	kube_wire_close(w);
	rc = getaddrinfo(to->host, to->port, &hints, &found);
	if (rc != 0)
		return mu_fail(err, MU_UNAVAILABLE, "%s: %s", to->host, gai_strerror(rc));
	for (const struct addrinfo *a = found; a; a = a->ai_next) {
		error = connect_to(w, a, until, stopped);
		if (!error)
			break;
	}
	freeaddrinfo(found);
	if (error)
		return mu_fail(err, MU_UNAVAILABLE, "cannot connect: %s", strerror(error));
	w->patience = -1;
	kube_wire_set_patience(w, patience);
	if (atomic_load(stopped)) /* before it could be cut */
		kube_wire_cut(w);
	return 0;
}

/* ---- bytes ---- */

int kube_wire_write(struct kube_wire *w, const void *data, size_t len, struct mu_err *err)
{
	const char *at = data;

	while (len) {
		ssize_t n;

		errno = 0;
		ERR_clear_error();
		n = w->ssl ? SSL_write(w->ssl, at, len > 1 << 30 ? 1 << 30 : (int)len)
			   : send(w->fd, at, len, MSG_NOSIGNAL);
		if (n <= 0 && !w->ssl && errno == EINTR)
			continue;
		if (n <= 0)
			return w->ssl ? failed(w, (int)n, "send", err)
				      : mu_fail_errno(err, errno, "send");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

long kube_wire_read(struct kube_wire *w, void *into, size_t room, struct mu_err *err)
{
	ssize_t n;

	errno = 0;
	if (w->ssl) {
		ERR_clear_error();
		n = SSL_read(w->ssl, into, (int)room);
		if (n > 0)
			return n;
		if (SSL_get_error(w->ssl, (int)n) == SSL_ERROR_ZERO_RETURN)
			return 0;
		return failed(w, (int)n, "receive", err);
	}
	do
		n = recv(w->fd, into, room, 0);
	while (n < 0 && errno == EINTR);
	w->full = n == (ssize_t)room;
	if (n >= 0)
		return n;
	if (errno == EAGAIN)
		return mu_fail(err, MU_DEADLINE_EXCEEDED, "no answer in time");
	return mu_fail(err, MU_UNAVAILABLE, "receive: %s", strerror(errno));
}

bool kube_wire_ready(struct kube_wire *w)
{
	struct pollfd p = {.fd = w->fd, .events = POLLIN};

	return (w->ssl && SSL_has_pending(w->ssl)) || poll(&p, 1, 0) != 0;
}

bool kube_wire_has_more(struct kube_wire *w)
{
	return w->full || (w->ssl && SSL_has_pending(w->ssl));
}

void kube_wire_read_ahead(struct kube_wire *w, size_t bytes)
{
	if (!w->ssl)
		return;
	/* the buffer of the handshake stays otherwise, and its size */
	if (bytes)
		SSL_set_mode(w->ssl, SSL_MODE_RELEASE_BUFFERS);
	else
		SSL_clear_mode(w->ssl, SSL_MODE_RELEASE_BUFFERS);
	SSL_set_default_read_buffer_len(w->ssl, bytes);
}
