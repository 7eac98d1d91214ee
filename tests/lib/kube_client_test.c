/* SPDX-License-Identifier: Apache-2.0 */
/* Calls and streams over TLS to a scripted HTTP/1.1 server. */
#include "tests/lib/scripted_server.h"

static void calls__over_one_connection__carry_the_token(void **state)
{
	static const char *const answers[] = {OK(THING), OK(THING), OK(THING), NULL};
	MU_AUTO_BUF metrics = {0};
	struct mu_err err = {0};
	struct server s;
	struct kube_client *c = begin(&s, answers);

	for (int i = 0; i < 3; i++)
		assert_int_equal(get(c, 0, &err), 0);
	assert_int_equal(s.n_connections, 1);
	kube_client_metrics(c, &metrics);
	assert_non_null(
	    strstr(metrics.data, "rest_client_requests_total{method=\"GET\",code=\"200\"} 3\n"));
	assert_non_null(
	    strstr(metrics.data, "rest_client_request_duration_seconds_count{verb=\"GET\"} 3\n"));
	assert_non_null(strstr(s.last, "GET /x HTTP/1.1\r\n"));
	assert_non_null(strstr(s.last, "\r\nAuthorization: Bearer the-token\r\n"));
	end(c, &s);
}

static int prefer_http2(SSL *ssl, const unsigned char **out, unsigned char *out_len,
			const unsigned char *offered, unsigned n, void *arg)
{
	static const unsigned char preferred[] = "\x02h2\x08http/1.1";

	return SSL_select_next_proto((unsigned char **)out, out_len, preferred,
				     sizeof(preferred) - 1, offered, n) == OPENSSL_NPN_NEGOTIATED
		   ? SSL_TLSEXT_ERR_OK
		   : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void server__that_prefers_http2__is_called_by_http1(void **state)
{
	static const char *const answers[] = {OK(THING), NULL};
	struct mu_err err = {0};
	struct server s;
	struct kube_client *c;

	start(&s, &certs, answers);
	SSL_CTX_set_alpn_select_cb(s.tls, prefer_http2, NULL);
	c = client_of(&s, &certs, NULL);
	assert_ok(get(c, 10000, &err), &err);
	assert_non_null(strstr(s.last, "GET /x HTTP/1.1\r\n"));
	end(c, &s);
}

static void call__on_a_closed_connection__is_repeated(void **state)
{
	static const char *const answers[] = {OK(THING), NULL, OK(THING), NULL, NULL};
	struct mu_err err = {0};
	struct server s;
	struct kube_client *c = begin(&s, answers);

	assert_int_equal(get(c, 0, &err), 0);
	assert_int_equal(get(c, 0, &err), 0); /* repeated on a new connection */
	assert_int_equal(s.n_connections, 2);
	/* a new connection without a response is an error */
	assert_int_equal(get(c, 0, &err), -MU_UNAVAILABLE);
	assert_int_equal(s.n_connections, 3);
	end(c, &s);
}

/* The server records the subject of the client certificate. */
static void call__with_a_client_certificate__sends_it(void **state)
{
	static const char *const answers[] = {OK(THING), NULL};
	const struct {
		const struct mu_certs *client_certs; /* NULL: none */
		int rc;
	} cases[] = {{&certs, 0}, {&others, -MU_UNAVAILABLE}, {NULL, -MU_UNAVAILABLE}};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct mu_err err = {0};
		struct kube_config k = {0};
		struct kube_client *c;
		struct server s;

		start(&s, &certs, answers);
		require_client_certificate(s.tls, &certs);
		k.server = mu_xasprintf("https://127.0.0.1:%d", s.port);
		mu_buf_puts(&k.ca, certs.ca);
		if (cases[i].client_certs) {
			mu_buf_puts(&k.cert, cases[i].client_certs->crt);
			mu_buf_puts(&k.key, cases[i].client_certs->key);
		}
		assert_int_equal(kube_client_new(&c, &k, NULL), 0);
		assert_int_equal(get(c, 0, &err), cases[i].rc);
		end(c, &s);
		assert_int_equal(s.n_requests, cases[i].rc == 0);
		assert_true(cases[i].rc ? !*s.client : *s.client);
	}
}

static void client_certificate__malformed__is_an_invalid_argument(void **state)
{
	static const char *const answers[] = {OK(THING), NULL};
	struct mu_err err = {0};
	struct kube_config k = {0};
	struct kube_client *c;
	struct server s;

	start(&s, &certs, answers);
	k.server = mu_xasprintf("https://127.0.0.1:%d", s.port);
	mu_buf_puts(&k.ca, certs.ca);
	mu_buf_puts(&k.cert, "no certificate");
	mu_buf_puts(&k.key, certs.key);
	assert_int_equal(kube_client_new(&c, &k, NULL), 0);
	assert_int_equal(get(c, 0, &err), -MU_INVALID_ARGUMENT);
	end(c, &s);
}

/* The CA file is read again for new connections. */
static void ca_file__read_for_each_connection__verifies_the_server(void **state)
{
	static const char *const answers[] = {OK(THING), NULL};
	char path[] = "/tmp/muster-ca-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	for (int good = 0; good < 2; good++) {
		const struct mu_certs *ca = good ? &certs : &others;
		struct kube_config k = {0};
		struct mu_err err = {0};
		struct kube_client *c;
		struct server s;

		start(&s, &certs, answers);
		assert_int_equal(mu_write_file(path, ca->ca, strlen(ca->ca), NULL), 0);
		k.server = mu_xasprintf("https://127.0.0.1:%d", s.port);
		k.ca_file = mu_xstrdup(path);
		assert_int_equal(kube_client_new(&c, &k, NULL), 0);
		assert_int_equal(get(c, 0, &err), good ? 0 : -MU_UNAVAILABLE);
		end(c, &s);
	}
	close(fd);
	unlink(path);
}

static void call__to_a_server_with_another_certificate__fails(void **state)
{
	static const struct {
		const struct mu_certs *served, *trusted;
		const char *name, *message; /* message NULL: accepted */
	} cases[] = {
	    {&certs, &certs, NULL, NULL},
	    {&certs, &certs, "api.test", NULL},
	    {&certs, &certs, "evil.test", "not accepted: "},
	    {&certs, &others, NULL, "not accepted: "},
	    {&others, &others, NULL, "not accepted: "},
	    {&others, &others, "other", NULL},
	};
	static const char *const answers[] = {OK(THING), NULL};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct mu_err err = {0};
		struct kube_client *c;
		struct server s;

		start(&s, cases[i].served, answers);
		c = client_of(&s, cases[i].trusted, cases[i].name);
		if (cases[i].message) {
			assert_int_equal(get(c, 0, &err), -MU_UNAVAILABLE);
			assert_non_null(strstr(err.msg, cases[i].message));
			assert_int_equal(s.n_requests, 0); /* the token was not sent */
		} else {
			assert_int_equal(get(c, 0, &err), 0);
		}
		end(c, &s);
	}
}

static void call__without_a_response__ends_in_time(void **state)
{
	static const char *const answers[] = {"", "HTTP/1.1 200 OK\r\n", NULL};
	struct mu_err err = {0};
	struct server s;
	struct kube_client *c = begin(&s, answers);

	/* long enough for handshake and request, also on a busy machine */
	assert_int_equal(get(c, 1000, &err), -MU_DEADLINE_EXCEEDED);
	assert_int_equal(get(c, 1000, &err), -MU_DEADLINE_EXCEEDED);
	assert_int_equal(s.n_requests, 2);
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

static void call__pending__ends_when_the_client_is_stopped(void **state)
{
	static const char *const answers[] = {"", NULL};
	struct waiting w = {0};
	struct server s;
	pthread_t thread;

	w.client = begin(&s, answers);
	pthread_create(&thread, NULL, wait_for_it, &w);
	while (!s.n_requests)
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

static int watch(struct kube_client *c, long seconds, struct mu_buf *got, struct mu_err *err)
{
	return kube_stream(
	    c,
	    &(struct kube_stream){.path = "/watch", .seconds = seconds, .chunk = keep, .arg = got},
	    err);
}

static void stream__of_many_chunks__is_complete(void **state)
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
	assert_int_equal(watch(c, 10, &got, &err), 0);
	assert_int_equal(got.len, 5 * 40000);
	end(c, &s);
}

static int keep_slowly(void *arg, const char *data, size_t len, struct mu_err *err)
{
	const struct timespec pause = {.tv_nsec = 20000000};

	nanosleep(&pause, NULL);
	mu_buf_put(arg, data, len);
	return 0;
}

/* The client pauses and resumes the stream. */
static void stream__read_slowly__is_complete(void **state)
{
	enum { BYTES = 8 << 20 };
	MU_AUTO_BUF answer = {0};
	MU_AUTO_BUF got = {0};
	const char *answers[] = {NULL, NULL};
	struct mu_err err = {0};
	struct kube_client *c;
	struct server s;
	size_t head;

	mu_buf_printf(&answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BYTES);
	head = answer.len;
	for (int i = 0; i < BYTES / 8; i++)
		mu_buf_printf(&answer, "%07d\n", i);
	answers[0] = answer.data;
	c = begin(&s, answers);
	assert_ok(
	    kube_stream(c,
			&(struct kube_stream){
			    .path = "/watch", .seconds = 60, .chunk = keep_slowly, .arg = &got},
			&err),
	    &err);
	assert_int_equal(got.len, BYTES);
	assert_memory_equal(got.data, answer.data + head, BYTES);
	end(c, &s);
}

static int fail_chunk(void *arg, const char *data, size_t len, struct mu_err *err)
{
	return mu_fail(err, MU_OUT_OF_RANGE, "no more");
}

/* The server never ends the stream; the reader returns an error. */
static void stream__with_a_failing_reader__ends_at_once(void **state)
{
	static const char *const answers[] = {
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", NULL};
	struct mu_err err = {0};
	struct server s;
	struct kube_client *c = begin(&s, answers);

	assert_int_equal(
	    kube_stream(c,
			&(struct kube_stream){.path = "/watch", .seconds = 60, .chunk = fail_chunk},
			&err),
	    -MU_OUT_OF_RANGE);
	end(c, &s);
}

struct watching {
	struct kube_client *client;
	struct mu_buf got;
	int rc;
};

static void *watch_it(void *arg)
{
	struct watching *w = arg;

	w->rc = watch(w->client, 60, &w->got, NULL);
	return NULL;
}

static void stream__pending__ends_when_the_client_is_stopped(void **state)
{
	static const char *const answers[] = {
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", NULL};
	struct watching w = {0};
	struct server s;
	pthread_t thread;
	double start_s;

	w.client = begin(&s, answers);
	pthread_create(&thread, NULL, watch_it, &w);
	while (!s.n_requests)
		sched_yield();
	start_s = mu_clock();
	kube_client_stop(w.client);
	pthread_join(thread, NULL);
	assert_true(mu_clock() - start_s < 2);
	assert_int_equal(w.rc, -MU_CANCELLED);
	mu_buf_fini(&w.got);
	end(w.client, &s);
}

static void stream__truncated__is_an_error(void **state)
{
	static const char *const answers[] = {
	    "!HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", NULL};
	MU_AUTO_BUF got = {0};
	struct mu_err err = {0};
	struct server s;
	struct kube_client *c = begin(&s, answers);

	assert_int_equal(watch(c, 10, &got, &err), -MU_UNAVAILABLE);
	assert_int_equal(got.len, 3);
	end(c, &s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(calls__over_one_connection__carry_the_token),
	    cmocka_unit_test(server__that_prefers_http2__is_called_by_http1),
	    cmocka_unit_test(call__on_a_closed_connection__is_repeated),
	    cmocka_unit_test(call__with_a_client_certificate__sends_it),
	    cmocka_unit_test(client_certificate__malformed__is_an_invalid_argument),
	    cmocka_unit_test(ca_file__read_for_each_connection__verifies_the_server),
	    cmocka_unit_test(call__to_a_server_with_another_certificate__fails),
	    cmocka_unit_test(call__without_a_response__ends_in_time),
	    cmocka_unit_test(call__pending__ends_when_the_client_is_stopped),
	    cmocka_unit_test(stream__of_many_chunks__is_complete),
	    cmocka_unit_test(stream__read_slowly__is_complete),
	    cmocka_unit_test(stream__with_a_failing_reader__ends_at_once),
	    cmocka_unit_test(stream__pending__ends_when_the_client_is_stopped),
	    cmocka_unit_test(stream__truncated__is_an_error),
	};
	return cmocka_run_group_tests(tests, make_certs, free_certs);
}
