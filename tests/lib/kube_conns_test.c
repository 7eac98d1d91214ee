/* SPDX-License-Identifier: Apache-2.0 */
/* Calls over TLS to a server that plays an API server's ways to answer, and not to. */
#include "tests/test.h"

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/kube/kube_client.h"
#include "lib/kube/kube_trust.h"
#include "lib/kube/kube_wire.h"
#include "lib/tls/certs.h"
#include "tests/wait.h"

#define OK(body) "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n" body
#define THING    "{\"a\":\"b\"}  "

/* Answers each request in turn; NULL ends the connection, "" says nothing, "!..." ends it after
 * the rest. */
struct server {
	int fd, port;
	SSL_CTX *tls;
	const char *const *answers;
	_Atomic int asked, accepted, known; /* known: that showed a session of before */
	char last[4096];                    /* request */
	const char *proxys;                 /* what it says first, as a proxy; NULL: it is none */
	char connect[4096];                 /* what it was asked then */
	_Atomic bool done;
	pthread_t thread;
};

static struct mu_certs certs, others;

static int make_certs(void **state)
{
	static const char *const names[] = {"api.test", "127.0.0.1"}, *const foreign[] = {"other"};
	int64_t now = time(NULL);

	return mu_certs_make(&certs, names, 2, now - 60, now + 3600, NULL) ||
	       mu_certs_make(&others, foreign, 1, now - 60, now + 3600, NULL);
}

static int free_certs(void **state)
{
	mu_certs_fini(&certs);
	mu_certs_fini(&others);
	return 0;
}

static SSL_CTX *server_tls(const struct mu_certs *c)
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

static int hear(struct server *s, int fd, SSL *ssl)
{
	return ssl ? SSL_read(ssl, s->last, sizeof(s->last) - 1)
		   : (int)read(fd, s->last, sizeof(s->last) - 1);
}

static void say(int fd, SSL *ssl, const char *text)
{
	size_t n = strlen(text);

	if (n && (ssl ? SSL_write(ssl, text, (int)n) : (int)send(fd, text, n, MSG_NOSIGNAL)) < 0)
		print_message("the answer was not heard to its end\n");
}

static void answer_all(struct server *s, int fd, SSL *ssl)
{
	int n;

	while ((n = hear(s, fd, ssl)) > 0) {
		const char *answer = s->answers[s->asked];

		s->last[n] = 0;
		s->asked++;
		if (!answer)
			return;
		say(fd, ssl, answer + (*answer == '!'));
		if (*answer == '!')
			return;
	}
}

/* The proxy and the server behind it are one here: what it is asked first is for the proxy. */
static bool let_through(struct server *s, int fd)
{
	size_t n = 0;
	ssize_t got = 1;

	while (s->proxys && got > 0 && !strstr(s->connect, "\r\n\r\n")) {
		got = read(fd, s->connect + n, sizeof(s->connect) - 1 - n);
		n += got > 0 ? (size_t)got : 0;
		s->connect[n] = 0;
	}
	if (s->proxys)
		say(fd, NULL, s->proxys);
	return !s->proxys || s->tls;
}

static void *serve(void *arg)
{
	struct server *s = arg;
	sigset_t pipe;
	int fd;

	/* of this thread's own writes; the client's must not raise it */
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL);
	while (!s->done && (fd = accept(s->fd, NULL, NULL)) >= 0) {
		SSL *ssl = s->tls ? SSL_new(s->tls) : NULL;

		if (ssl)
			SSL_set_fd(ssl, fd);
		s->accepted++;
		s->connect[0] = 0;
		if (!s->done && let_through(s, fd) && (!ssl || SSL_accept(ssl) == 1))
			answer_all(s, fd, ssl);
		s->known += ssl && SSL_session_reused(ssl);
		SSL_free(ssl);
		close(fd);
	}
	return NULL;
}

/* proxys NULL: without a proxy; c NULL: without TLS, or a proxy that leads nowhere. */
static void start_behind(struct server *s, const char *proxys, const struct mu_certs *c,
			 const char *const *answers)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(a);

	memset(s, 0, sizeof(*s));
	s->answers = answers;
	s->proxys = proxys;
	s->tls = c ? server_tls(c) : NULL;
	s->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(s->fd, 8), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
	s->port = ntohs(a.sin_port);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void start(struct server *s, const struct mu_certs *c, const char *const *answers)
{
	start_behind(s, NULL, c, answers);
}

static void stop(struct server *s)
{
	s->done = true;
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
	SSL_CTX_free(s->tls);
}

static struct kube_client *client_of(const struct server *s, const struct mu_certs *trusted,
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

/* A server that gives these answers, and a client that trusts it. */
static struct kube_client *begin(struct server *s, const char *const *answers)
{
	start(s, &certs, answers);
	return client_of(s, &certs, NULL);
}

static void end(struct kube_client *c, struct server *s)
{
	kube_client_free(c);
	stop(s);
}

static int get(struct kube_client *c, long timeout_ms, struct mu_err *err)
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

static void calls__over_one_connection__carry_who_asks(void **state)
{
	static const char *const answers[] = {OK(THING), OK(THING), OK(THING), NULL};
	MU_AUTO_BUF said = {0};
	struct mu_err err = {0};
	struct server s;
	struct kube_client *c = begin(&s, answers);

	for (int i = 0; i < 3; i++)
		assert_int_equal(get(c, 0, &err), 0);
	assert_int_equal(s.accepted, 1);
	kube_client_metrics(c, &said);
	assert_non_null(
	    strstr(said.data, "rest_client_requests_total{method=\"GET\",code=\"200\"} 3\n"));
	assert_non_null(
	    strstr(said.data, "rest_client_request_duration_seconds_count{verb=\"GET\"} 3\n"));
	assert_non_null(strstr(s.last, "GET /x HTTP/1.1\r\n"));
	assert_non_null(strstr(s.last, "\r\nAuthorization: Bearer the-token\r\n"));
	end(c, &s);
}

static void call__on_a_connection_that_was_closed__is_made_again(void **state)
{
	static const char *const answers[] = {OK(THING), NULL, OK(THING), NULL, NULL};
	struct mu_err err = {0};
	struct server s;
	struct kube_client *c = begin(&s, answers);

	assert_int_equal(get(c, 0, &err), 0);
	assert_int_equal(get(c, 0, &err), 0); /* closed, and asked anew */
	assert_int_equal(s.accepted, 2);
	/* but not for ever: a new connection that says nothing is an error */
	assert_int_equal(get(c, 0, &err), -MU_UNAVAILABLE);
	assert_int_equal(s.accepted, 3);
	end(c, &s);
}

static void connection__after_one_that_ended__goes_on_with_its_session(void **state)
{
	static const char *const answers[] = {"!" OK(THING), "!" OK(THING), "!" OK(THING)};
	struct server s;
	struct kube_client *c = begin(&s, answers);

	for (int i = 0; i < 3; i++)
		assert_int_equal(get(c, 0, NULL), 0);
	end(c, &s);
	assert_int_equal(s.accepted, 3);
	assert_int_equal(s.known, 2);
}

static void call__to_a_server_of_another_name__is_refused(void **state)
{
	static const struct {
		const struct mu_certs *served, *trusted;
		const char *name, *says; /* says NULL: accepted */
	} cases[] = {
	    {&certs, &certs, NULL, NULL},
	    {&certs, &certs, "api.test", NULL},
	    {&certs, &certs, "evil.test", "not accepted: hostname mismatch"},
	    {&certs, &others, NULL, "not accepted: "},
	    {&others, &others, NULL, "not accepted: IP address mismatch"},
	    {&others, &others, "other", NULL},
	};
	static const char *const answers[] = {OK(THING), NULL};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct mu_err err = {0};
		struct kube_client *c;
		struct server s;

		start(&s, cases[i].served, answers);
		c = client_of(&s, cases[i].trusted, cases[i].name);
		if (cases[i].says) {
			assert_int_equal(get(c, 0, &err), -MU_UNAVAILABLE);
			assert_non_null(strstr(err.msg, cases[i].says));
			assert_int_equal(s.asked, 0); /* the token stayed here */
		} else {
			assert_int_equal(get(c, 0, &err), 0);
		}
		end(c, &s);
	}
}

static void call__without_an_answer__ends_in_time(void **state)
{
	static const char *const answers[] = {"", "HTTP/1.1 200 OK\r\n", NULL};
	struct mu_err err = {0};
	struct server s;
	struct kube_client *c = begin(&s, answers);

	/* long enough to have asked, handshake and all, on a machine that is busy */
	assert_int_equal(get(c, 1000, &err), -MU_DEADLINE_EXCEEDED);
	assert_int_equal(get(c, 1000, &err), -MU_DEADLINE_EXCEEDED);
	assert_int_equal(s.asked, 2);
	end(c, &s);
}

struct waiting {
	struct kube_client *client;
	int rc;
};

static void *wait_for_it(void *arg)
{
	struct waiting *w = arg;

	w->rc = get(w->client, 60000, NULL);
	return NULL;
}

static void call__under_way__ends_when_the_client_is_stopped(void **state)
{
	static const char *const answers[] = {"", NULL};
	struct waiting w = {0};
	struct server s;
	pthread_t thread;

	w.client = begin(&s, answers);
	pthread_create(&thread, NULL, wait_for_it, &w);
	while (!s.asked)
		sched_yield();
	kube_client_stop(w.client);
	pthread_join(thread, NULL);
	assert_int_equal(w.rc, -MU_CANCELLED);
	end(w.client, &s);
}

static int keep(void *arg, const char *data, size_t len, struct mu_err *err)
{
	mu_buf_put(arg, data, len);
	return 0;
}

static int watch(struct kube_client *c, long seconds, double gather, struct mu_buf *got,
		 struct mu_err *err)
{
	return kube_stream(
	    c,
	    &(struct kube_stream){
		.path = "/watch", .seconds = seconds, .gather = gather, .chunk = keep, .arg = got},
	    err);
}

static void stream__gathers__and_loses_nothing(void **state)
{
	MU_AUTO_FREE char *chunk = malloc(40001);
	MU_AUTO_BUF answer = {0};
	MU_AUTO_BUF got = {0};
	const char *answers[] = {NULL, NULL};
	struct mu_err err = {0};
	struct kube_client *c;
	struct server s;

	memset(chunk, 'x', 40000);
	chunk[40000] = 0;
	mu_buf_puts(&answer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 5; i++)
		mu_buf_printf(&answer, "%x\r\n%s\r\n", 40000, chunk);
	mu_buf_puts(&answer, "0\r\n\r\n");
	answers[0] = answer.data;
	c = begin(&s, answers);
	assert_int_equal(watch(c, 10, 0.001, &got, &err), 0);
	assert_int_equal(got.len, 5 * 40000);
	end(c, &s);
}

/* One read for each wait would let through so many bytes a second and no more. */
static void stream__while_more_is_there_than_one_read_takes__does_not_wait(void **state)
{
	enum { BYTES = 4 << 20 };
	MU_AUTO_BUF answer = {0};
	MU_AUTO_BUF got = {0};
	const char *answers[] = {NULL, NULL};
	struct mu_err err = {0};
	struct kube_client *c;
	struct server s;

	mu_buf_printf(&answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BYTES);
	for (int i = 0; i < BYTES / 16; i++)
		mu_buf_puts(&answer, "0123456789abcde\n");
	answers[0] = answer.data;
	c = begin(&s, answers);
	assert_ok(watch(c, 6, 0.2, &got, &err), &err);
	assert_int_equal(got.len, BYTES);
	end(c, &s);
}

/* How much has arrived and was not read. */
static int unread(int fd)
{
	int n = 0;

	assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
	return n;
}

/* A watch that gathers would else read what has come in pieces of one record each. */
static void wire__that_reads_ahead__takes_what_has_arrived_at_once(void **state)
{
	enum { BYTES = 48 << 10, AHEAD = 64 << 10 };
	MU_AUTO_FREE char *much = malloc(BYTES + 1);
	const char *answers[] = {"x", much, NULL};
	const _Atomic bool never = false;
	struct kube_config config = {0};
	struct kube_identity identity;
	struct kube_trust trust;
	struct kube_address to;
	struct kube_wire w;
	struct server s;
	char piece[16 << 10];
	SSL *ssl;

	memset(much, 'x', BYTES);
	much[BYTES] = 0;
	start(&s, &certs, answers);
	config.server = mu_xasprintf("https://127.0.0.1:%d", s.port);
	mu_buf_puts(&config.ca, certs.ca);
	assert_int_equal(kube_address_parse(&to, config.server, NULL, NULL), 0);
	kube_identity_init(&identity, &config);
	kube_trust_init(&trust, &config, &identity);
	kube_wire_init(&w);
	assert_int_equal(kube_trust_begin(&trust, &ssl, NULL), 0);
	assert_int_equal(kube_wire_open(&w, &to, 10, &never, NULL), 0);
	assert_int_equal(kube_wire_secure(&w, to.name, ssl, NULL), 0);
	kube_wire_read_ahead(&w, AHEAD);
	assert_int_equal(kube_wire_write(&w, "?", 1, NULL), 0);
	assert_int_equal(kube_wire_read(&w, piece, sizeof(piece), NULL), 1);
	assert_int_equal(kube_wire_write(&w, "?", 1, NULL), 0);
	assert_true(COMES_TRUE(unread(w.fd) >= BYTES));
	assert_true(kube_wire_read(&w, piece, sizeof(piece), NULL) > 0);
	assert_int_equal(unread(w.fd), 0);
	kube_wire_fini(&w);
	kube_trust_fini(&trust);
	kube_identity_fini(&identity);
	kube_address_fini(&to);
	kube_config_fini(&config);
	stop(&s);
}

static void stream__cut_in_the_middle__is_an_error(void **state)
{
	static const char *const answers[] = {
	    "!HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", NULL};
	MU_AUTO_BUF got = {0};
	struct mu_err err = {0};
	struct server s;
	struct kube_client *c = begin(&s, answers);

	assert_int_equal(watch(c, 10, 0.001, &got, &err), -MU_UNAVAILABLE);
	assert_int_equal(got.len, 3);
	end(c, &s);
}

static struct kube_client *client_behind(const struct server *s, const char *user)
{
	struct kube_config k = {.server = mu_xstrdup("https://api.test:81"),
				.token = mu_xstrdup("the-token")};
	struct kube_client *c;

	mu_buf_puts(&k.ca, certs.ca);
	k.proxy_url = mu_xasprintf("http://%s127.0.0.1:%d", user, s->port);
	assert_int_equal(kube_client_new(&c, &k, NULL), 0);
	return c;
}

static void call__behind_a_proxy__speaks_tls_through_it(void **state)
{
	static const char *const answers[] = {OK(THING),
					      "HTTP/1.1 429 No\r\nRetry-After: 1\r\n"
					      "Content-Length: 0\r\n\r\n",
					      OK(THING), NULL},
				 *const yes[] = {
				     "HTTP/1.1 200 Connection established\r\n\r\n",
				     "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
				     "HTTP/1.1 100 Wait\r\n\r\nHTTP/1.1 204 Yes\r\n\r\n"};

	for (unsigned i = 0; i < MU_COUNT(yes); i++) {
		struct mu_err err = {0};
		struct kube_client *c;
		struct server s;

		start_behind(&s, yes[i], &certs, answers);
		c = client_behind(&s, "me:p%40ss@");
		assert_int_equal(get(c, 0, &err), 0);
		if (i == 0)
			assert_int_equal(get(c, 0, &err), 0); /* after the second it has to wait */
		assert_int_equal(s.accepted, 1);
		end(c, &s);
		assert_string_equal(s.connect, "CONNECT api.test:81 HTTP/1.1\r\n"
					       "Host: api.test:81\r\n"
					       "Proxy-Authorization: Basic bWU6cEBzcw==\r\n\r\n");
		assert_non_null(strstr(s.last, "GET /x HTTP/1.1\r\nHost: api.test:81\r\n"));
		assert_non_null(strstr(s.last, "\r\nAuthorization: Bearer the-token\r\n"));
	}
}

static void call__that_the_proxy_does_not_let_through__says_why(void **state)
{
	static const struct {
		const char *user, *answer, *says;
	} cases[] = {
	    {"", "HTTP/1.1 407 Who?\r\nContent-Length: 3\r\n\r\nno!",
	     "wants a user and a password: name it as http://USER:PASSWORD@127.0.0.1:"},
	    {"me:x@", "HTTP/1.1 407 Who?\r\n\r\n", "does not accept the user and password"},
	    {"", "HTTP/1.1 403 No\r\nTransfer-Encoding: gzip\r\n\r\n",
	     "does not connect us to api.test:81 (it answers 403)"},
	    {"", "HTTP/1.1 503 No\r\n\r\n", "(it answers 503)"},
	    {"", "HTTP/1.1 200 OK\r\n\r\nand more", "more than it was asked for"},
	    {"", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n!", "more than was asked for"},
	    {"", "SSH-2.0-x\r\n", "the answer is no HTTP"},
	    {"", "HTTP/1.1 200 OK\r\n", "hung up"},
	    {"", "", "hung up"},
	};
	static const char *const answers[] = {OK(THING), NULL};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct mu_err err = {0};
		struct kube_client *c;
		struct server s;

		start_behind(&s, cases[i].answer, NULL, answers);
		c = client_behind(&s, cases[i].user);
		assert_int_equal(get(c, 0, &err), -MU_UNAVAILABLE);
		assert_non_null(strstr(err.msg, "the proxy 127.0.0.1:"));
		assert_non_null(strstr(err.msg, cases[i].says));
		/* it may still be taking a second try: what it was asked is read when it has ended
		 */
		end(c, &s);
		assert_null(strstr(s.connect, "the-token"));
		assert_int_equal(s.asked, 0);
	}
}

static void proxy__of_another_kind__is_refused_at_once(void **state)
{
	struct kube_config k = {.server = mu_xstrdup("https://api.test"),
				.proxy_url = mu_xstrdup("https://me:secret@proxy.test")};
	struct kube_client *c;
	struct mu_err err = {0};

	assert_int_equal(kube_client_new(&c, &k, &err), -MU_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "only http:// proxies are supported"));
	assert_null(strstr(err.msg, "secret"));
	kube_config_fini(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(calls__over_one_connection__carry_who_asks),
	    cmocka_unit_test(call__on_a_connection_that_was_closed__is_made_again),
	    cmocka_unit_test(connection__after_one_that_ended__goes_on_with_its_session),
	    cmocka_unit_test(call__to_a_server_of_another_name__is_refused),
	    cmocka_unit_test(call__without_an_answer__ends_in_time),
	    cmocka_unit_test(call__under_way__ends_when_the_client_is_stopped),
	    cmocka_unit_test(stream__gathers__and_loses_nothing),
	    cmocka_unit_test(stream__while_more_is_there_than_one_read_takes__does_not_wait),
	    cmocka_unit_test(wire__that_reads_ahead__takes_what_has_arrived_at_once),
	    cmocka_unit_test(stream__cut_in_the_middle__is_an_error),
	    cmocka_unit_test(call__behind_a_proxy__speaks_tls_through_it),
	    cmocka_unit_test(call__that_the_proxy_does_not_let_through__says_why),
	    cmocka_unit_test(proxy__of_another_kind__is_refused_at_once),
	};
	return cmocka_run_group_tests(tests, make_certs, free_certs);
}
