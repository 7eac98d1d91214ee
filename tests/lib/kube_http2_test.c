/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP version that the client and a TLS server agree on by ALPN.  The HTTP/2 server here knows
 * only the frames that the test needs. */
#include "tests/lib/scripted_server.h"
#include "tests/wait.h"

enum { DATA = 0, HEADERS = 1, SETTINGS = 4, FRAME_HEAD = 9, FRAME_MAX = 1 << 14, CALLS = 6 };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };
enum { WATCH = 1 }; /* the client's first stream */

#define FIRST_EVENT "{\"n\":1}\n"
#define LAST_EVENT  "{\"n\":2}\n"

static int select_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
			   const unsigned char *offered, unsigned n, void *protocol)
{
	const unsigned char *name = protocol;

	return SSL_select_next_proto((unsigned char **)out, out_len, name, name[0] + 1u, offered,
				     n) == OPENSSL_NPN_NEGOTIATED
		   ? SSL_TLSEXT_ERR_OK
		   : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static bool read_all(SSL *ssl, void *to, size_t n)
{
	size_t got = 0, piece;

	while (got < n && SSL_read_ex(ssl, (char *)to + got, n - got, &piece) == 1)
		got += piece;
	return got == n;
}

static void send_frame(SSL *ssl, int type, int flags, unsigned stream, const char *payload)
{
	unsigned char frame[64] = {[3] = (unsigned char)type, (unsigned char)flags};
	size_t n = strlen(payload), sent;

	frame[2] = (unsigned char)n;
	frame[8] = (unsigned char)stream;
	memcpy(frame + FRAME_HEAD, payload, n);
	SSL_write_ex(ssl, frame, FRAME_HEAD + n, &sent);
}

static void respond(SSL *ssl, unsigned stream, int flags, const char *body)
{
	send_frame(ssl, HEADERS, END_HEADERS, stream, "\x88"); /* :status 200 */
	send_frame(ssl, DATA, flags, stream, body);
}

/* Answers the watch at once, but leaves it open until all calls have come on this connection. */
static void serve_streams(struct server *s, SSL *ssl)
{
	static unsigned char payload[FRAME_MAX];
	unsigned char head[FRAME_HEAD];
	unsigned n = 0;

	if (!read_all(ssl, payload, strlen("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
		return;
	send_frame(ssl, SETTINGS, 0, 0, "");
	while (read_all(ssl, head, sizeof(head))) {
		size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];

		if (len > sizeof(payload) || !read_all(ssl, payload, len))
			return;
		if (head[3] == SETTINGS && !(head[4] & ACK))
			send_frame(ssl, SETTINGS, ACK, 0, "");
		if (head[3] != HEADERS)
			continue;
		s->asked++;
		if (head[8] == WATCH)
			respond(ssl, WATCH, 0, FIRST_EVENT);
		else
			respond(ssl, head[8], END_STREAM, THING);
		if (head[8] != WATCH && ++n == CALLS)
			send_frame(ssl, DATA, END_STREAM, WATCH, LAST_EVENT);
	}
}

static void *serve_http2(void *arg)
{
	struct server *s = arg;
	int fd;

	while (!s->done && (fd = accept(s->fd, NULL, NULL)) >= 0) {
		SSL *ssl = SSL_new(s->tls);

		SSL_set_fd(ssl, fd);
		s->accepted++;
		if (!s->done && SSL_accept(ssl) == 1)
			serve_streams(s, ssl);
		SSL_free(ssl);
		close(fd);
	}
	return NULL;
}

struct watch {
	struct kube_client *client;
	struct mu_buf events;
	_Atomic bool is_open;
	int rc;
	struct mu_err err;
};

static int take_chunk(void *arg, const char *data, size_t len, struct mu_err *err)
{
	struct watch *w = arg;

	mu_buf_put(&w->events, data, len);
	w->is_open = true;
	return 0;
}

static void *run_watch(void *arg)
{
	struct watch *w = arg;

	const struct kube_stream stream = {
	    .path = "/x?watch=1", .seconds = 20, .chunk = take_chunk, .arg = w};

	w->rc = kube_stream(w->client, &stream, &w->err);
	return NULL;
}

static void server_that_offers_http2__gets_a_watch_and_calls_on_one_connection(void **state)
{
	static const struct kube_request rq = {
	    .method = "POST", .path = "/x", .body = {"{}", 2}, .timeout_ms = 10000};
	struct mu_err err = {0};
	struct server s;
	struct watch w = {0};
	pthread_t thread;

	start_with(&s, serve_http2, NULL, &certs, NULL);
	SSL_CTX_set_alpn_select_cb(s.tls, select_protocol, "\x02h2");
	w.client = client_of(&s, &certs, NULL);
	assert_int_equal(pthread_create(&thread, NULL, run_watch, &w), 0);
	WAIT_UNTIL(w.is_open);
	for (int i = 0; i < CALLS; i++)
		assert_ok(kube_call(w.client, &rq, NULL, &err), &err);
	pthread_join(thread, NULL);
	assert_ok(w.rc, &w.err);
	mu_buf_putc(&w.events, 0);
	assert_string_equal(w.events.data, FIRST_EVENT LAST_EVENT);
	assert_int_equal(s.accepted, 1);
	assert_int_equal(s.asked, 1 + CALLS);
	mu_buf_fini(&w.events);
	end(w.client, &s);
}

static void server_that_selects_http1__is_called_by_http1(void **state)
{
	static const char *const answers[] = {OK(THING), OK(THING), NULL};
	struct mu_err err = {0};
	struct server s;
	struct kube_client *c;

	start(&s, &certs, answers);
	SSL_CTX_set_alpn_select_cb(s.tls, select_protocol, "\x08http/1.1");
	c = client_of(&s, &certs, NULL);
	assert_ok(get(c, 10000, &err), &err);
	assert_ok(get(c, 10000, &err), &err);
	assert_non_null(strstr(s.last, "GET /x HTTP/1.1\r\n"));
	assert_int_equal(s.accepted, 1);
	end(c, &s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(server_that_offers_http2__gets_a_watch_and_calls_on_one_connection),
	    cmocka_unit_test(server_that_selects_http1__is_called_by_http1),
	};

	return cmocka_run_group_tests(tests, make_certs, free_certs);
}
