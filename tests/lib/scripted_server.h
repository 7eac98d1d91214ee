/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted HTTP/1.1 server and its clients, with or without TLS and a proxy. It is header-only,
 * because each test is one program. */
#ifndef MU_TESTS_LIB_SCRIPTED_SERVER_H
#define MU_TESTS_LIB_SCRIPTED_SERVER_H

#include "tests/test.h"

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/kube/kube_client.h"
#include "lib/tls/certs.h"

#define OK(body) "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n" body
#define THING    "{\"a\":\"b\"}  "

/* Sends one answer per request. NULL closes the connection, "" sends nothing, "!..." sends the rest
 * and closes. */
struct server {
	int fd, port;
	SSL_CTX *tls;
	const char *const *answers;
	_Atomic int n_requests, n_connections;
	char last[4096];            /* the last request */
	const char *connect_answer; /* answer to CONNECT; NULL: not a proxy */
	char connect[4096];         /* the CONNECT request */
	char client[256];           /* subject of the last client's certificate */
	_Atomic bool done;
	pthread_t thread;
};

static struct mu_certs certs, others;

static inline int make_certs(void **state)
{
	static const char *const names[] = {"api.test", "127.0.0.1"}, *const foreign[] = {"other"};
	int64_t now = time(NULL);

	return mu_certs_make(&certs, names, 2, now - 60, now + 3600, NULL) ||
	       mu_certs_make(&others, foreign, 1, now - 60, now + 3600, NULL);
}

static inline int free_certs(void **state)
{
	mu_certs_fini(&certs);
	mu_certs_fini(&others);
	return 0;
}

static inline void record_client(struct server *s, SSL *ssl)
{
	X509 *x = SSL_get1_peer_certificate(ssl);

	if (x)
		X509_NAME_oneline(X509_get_subject_name(x), s->client, sizeof(s->client));
	X509_free(x);
}

/* Requires client certificates of this CA. */
static inline void require_client_certificate(SSL_CTX *ctx, const struct mu_certs *c)
{
	BIO *ca = BIO_new_mem_buf(c->ca, -1);
	X509 *x = PEM_read_bio_X509(ca, NULL, NULL, NULL);

	X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), x);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	X509_free(x);
	BIO_free(ca);
}

static inline SSL_CTX *server_tls(const struct mu_certs *c)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	BIO *crt = BIO_new_mem_buf(c->crt, -1), *key = BIO_new_mem_buf(c->key, -1);
	X509 *x = PEM_read_bio_X509(crt, NULL, NULL, NULL);
	EVP_PKEY *k = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);

	assert_int_equal(SSL_CTX_use_certificate(ctx, x), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, k), 1);
	X509_free(x);
	EVP_PKEY_free(k);
	BIO_free(crt);
	BIO_free(key);
	return ctx;
}

static inline int read_request(struct server *s, int fd, SSL *ssl)
{
	return ssl ? SSL_read(ssl, s->last, sizeof(s->last) - 1)
		   : (int)read(fd, s->last, sizeof(s->last) - 1);
}

static inline void send_text(int fd, SSL *ssl, const char *text)
{
	size_t n = strlen(text);

	if (n && (ssl ? SSL_write(ssl, text, (int)n) : (int)send(fd, text, n, MSG_NOSIGNAL)) < 0)
		print_message("the client did not read the whole answer\n");
}

static inline void answer_all(struct server *s, int fd, SSL *ssl)
{
	int n;

	while ((n = read_request(s, fd, ssl)) > 0) {
		const char *answer = s->answers[s->n_requests];

		s->last[n] = 0;
		s->n_requests++;
		if (!answer)
			return;
		send_text(fd, ssl, answer + (*answer == '!'));
		if (*answer == '!')
			return;
	}
}

/* This server is also the proxy: reads and answers the CONNECT request. Returns true if the client
 * can go on. */
static inline bool answer_connect(struct server *s, int fd)
{
	size_t n = 0;
	ssize_t got = 1;

	while (s->connect_answer && got > 0 && !strstr(s->connect, "\r\n\r\n")) {
		got = read(fd, s->connect + n, sizeof(s->connect) - 1 - n);
		n += got > 0 ? (size_t)got : 0;
		s->connect[n] = 0;
	}
	if (s->connect_answer)
		send_text(fd, NULL, s->connect_answer);
	return !s->connect_answer || s->tls;
}

static inline void *serve(void *arg)
{
	struct server *s = arg;
	sigset_t pipe;
	int fd;

	/* only for this thread: the writes of the client must not raise it */
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL);
	while (!s->done && (fd = accept(s->fd, NULL, NULL)) >= 0) {
		SSL *ssl = s->tls ? SSL_new(s->tls) : NULL;

		if (ssl)
			SSL_set_fd(ssl, fd);
		s->n_connections++;
		s->connect[0] = 0;
		if (!s->done && answer_connect(s, fd) && (!ssl || SSL_accept(ssl) == 1)) {
			if (ssl)
				record_client(s, ssl);
			answer_all(s, fd, ssl);
		}
		SSL_free(ssl);
		close(fd);
	}
	return NULL;
}

static inline void start_with(struct server *s, void *(*serve_fn)(void *),
			      const char *connect_answer, const struct mu_certs *c,
			      const char *const *answers)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(a);

	memset(s, 0, sizeof(*s));
	s->answers = answers;
	s->connect_answer = connect_answer;
	s->tls = c ? server_tls(c) : NULL;
	s->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(s->fd, 8), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
	s->port = ntohs(a.sin_port);
	assert_int_equal(pthread_create(&s->thread, NULL, serve_fn, s), 0);
}

/* connect_answer NULL: no proxy. c NULL: no TLS, or a proxy that closes the connection. */
static inline void start_behind(struct server *s, const char *connect_answer,
				const struct mu_certs *c, const char *const *answers)
{
	start_with(s, serve, connect_answer, c, answers);
}

static inline void start(struct server *s, const struct mu_certs *c, const char *const *answers)
{
	start_behind(s, NULL, c, answers);
}

static inline void stop(struct server *s)
{
	s->done = true;
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
	SSL_CTX_free(s->tls);
}

static inline struct kube_client *client_of(const struct server *s, const struct mu_certs *trusted,
					    const char *name)
{
	struct kube_config k = {.server = mu_xasprintf("https://127.0.0.1:%d", s->port),
				.tls_server_name = name ? mu_xstrdup(name) : NULL,
				.token = mu_xstrdup("the-token")};
	struct kube_client *c;

	mu_buf_puts(&k.ca, trusted->ca);
	assert_int_equal(kube_client_new(&c, &k, NULL), 0);
	return c;
}

/* Starts a server with these answers; returns a client that trusts it. */
static inline struct kube_client *begin(struct server *s, const char *const *answers)
{
	start(s, &certs, answers);
	return client_of(s, &certs, NULL);
}

static inline void end(struct kube_client *c, struct server *s)
{
	kube_client_free(c);
	stop(s);
}

static inline int get(struct kube_client *c, long timeout_ms, struct mu_err *err)
{
	cJSON *out = NULL;
	int rc = kube_call(
	    c, &(struct kube_request){.method = "GET", .path = "/x", .timeout_ms = timeout_ms},
	    &out, err);

	if (rc == 0)
		assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(out, "a")), "b");
	cJSON_Delete(out);
	return rc;
}

#endif
