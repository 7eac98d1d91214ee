/* SPDX-License-Identifier: Apache-2.0 */
/* Streams with mutual TLS between tasks on two machines: steps use them, other clients get no data,
 * and the requested port is used. */
#include "tests/cluster/secured.h"

#include "task/peer/stream_conn.h"

static struct stream_peer *stream_to_ps(struct secured *s)
{
	struct peer *p = peers_find(s->f.worker[0].server->peers, "/job:ps/replica:0/task:0");

	assert_non_null(p);
	return p->stream;
}

/* True if there is a live stream over TCP and TLS. */
static bool secured_stream(struct secured *s)
{
	struct stream_peer *p = stream_to_ps(s);
	bool yes;

	pthread_mutex_lock(&p->lock);
	yes = p->conn && !p->conn->local && p->conn->tls && !p->conn->is_shut_down;
	pthread_mutex_unlock(&p->lock);
	return yes;
}

/* "localhost:port" of the stream listener of the ps. */
static void stream_address(struct secured *s, char out[64])
{
	MU_AUTO_BUF b = {0};
	struct stream_offer o;

	peers_offer(s->f.ps.server->peers, &b);
	assert_true(stream_offer_parse(&o, mu_buf_span(&b)));
	assert_int_equal(o.local[0], 0);
	assert_true(o.port > 0);
	snprintf(out, 64, "localhost:%d", o.port);
}

static void *add_repeatedly(void *arg)
{
	struct secured *s = ((void **)arg)[0];

	run_add_steps(s, ((void **)arg)[1], 300);
	return NULL;
}

static void steps__between_machines_with_certificates__use_a_tls_stream(void **state)
{
	struct secured *s = secured_new("tcp");
	struct mu_err err;
	char handle[64];
	void *both[] = {s, handle};
	pthread_t threads[3];

	open_session(s, handle);
	WAIT_UNTIL(secured_stream(s));
	assert_ok(target(&s->f.worker[0], handle, "init", &err), &err);
	for (unsigned i = 0; i < MU_COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_repeatedly, both), 0);
	for (unsigned i = 0; i < MU_COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	assert_true(run_float(&s->f.worker[0], handle, "read:0") == 900);
	assert_true(secured_stream(s));
	secured_free(s);
}

static void large_tensors__make_a_round_trip(void **state)
{
	struct secured *s = secured_new("tcp");
	char handle[64];

	open_session(s, handle);
	WAIT_UNTIL(secured_stream(s));
	for (int n = 1000; n < 8 << 20; n = n * 7 + 3)
		round_trip(s, n);
	assert_true(secured_stream(s));
	secured_free(s);
}

/* Makes an HTTP/2 request to the server over TLS with the certificates of folder. Returns the
 * number of bytes read, 0 if the server closes the connection, -1 if TLS fails. */
static ssize_t send_http2_preface(const char *address, const char *folder)
{
	static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
	struct iovec sent = {(char *)hello, sizeof(hello) - 1};
	char answer[256];
	struct iovec received = {answer, sizeof(answer)};
	int fd = dial(address);
	bool output = false;
	ssize_t got = -1;
	struct rpc_tls *t;
	struct tls_conn *c;
	struct mu_err err;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	assert_ok(rpc_tls_open(folder, &t, &err), &err);
	c = tls_conn_new(t, fd, "localhost", &err);
	assert_non_null(c);
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (!output)
			got = tls_writev(c, &sent, 1);
		output = output || got > 0;
		if (output)
			got = tls_readv(c, &received, 1);
		if (got >= 0 || errno != EAGAIN || poll(&p, 1, CALL_MS) <= 0)
			break;
	}
	tls_conn_free(c);
	rpc_tls_unref(t);
	close(fd);
	return got;
}

static void unauthenticated_client__at_the_stream_port__gets_at_most_a_tls_alert(void **state)
{
	struct stream_hello h = {.task = "/job:worker/replica:0/task:0",
				 .sender_incarnation = 1,
				 .receiver_incarnation = 2};
	struct secured *s = secured_new("tcp");
	struct mu_certs foreign_certs;
	MU_AUTO_BUF b = {0};
	char at[64], folder[40], answer[256], handle[64];
	ssize_t n;
	int fd;

	stream_address(s, at);
	fd = dial(at);
	stream_hello_write(&b, STREAM_HELLO, 0, &h);
	assert_int_equal(write(fd, b.data, b.len), b.len);
	n = read(fd, answer, sizeof(answer));
	assert_true(n <= 0 || (n == 7 && answer[0] == 0x15));
	close(fd);
	make_task_certs(&foreign_certs);
	make_folder(folder, &foreign_certs,
		    s->certs.ca); /* the server trusts us, but we do not trust it */
	assert_true(send_http2_preface(at, folder) <= 0);
	remove_certs_folder(folder);
	mu_certs_fini(&foreign_certs);
	assert_true(send_http2_preface(at, s->folder[1]) <=
		    0); /* the certificate is of the job, but the protocol is not HTTP */
	open_session(s, handle);
	WAIT_UNTIL(secured_stream(s));
	secured_free(s);
}

static void stream_port__is_the_requested_one(void **state)
{
	char want[64], at[64];
	int port = free_port();
	struct secured *s;

	snprintf(want, sizeof(want), "localhost:%d", port);
	s = secured_new_at("tcp",
			   port); /* both request the port: the worker runs without streams */
	stream_address(s, at);
	assert_string_equal(at, want);
	secured_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(steps__between_machines_with_certificates__use_a_tls_stream),
	    cmocka_unit_test(large_tensors__make_a_round_trip),
	    cmocka_unit_test(unauthenticated_client__at_the_stream_port__gets_at_most_a_tls_alert),
	    cmocka_unit_test(stream_port__is_the_requested_one),
	};

	mu_log_init("tls_stream_test");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
