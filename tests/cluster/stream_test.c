/* SPDX-License-Identifier: Apache-2.0 */
/* Streams between tasks: steps use them; broken streams; peers without streams; connections without
 * the key. */
#include "tests/cluster/fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/un.h>

#include "task/peer/stream_conn.h"
#include "task/server_internal.h"

#define PS     "/job:ps/task:0"
#define WORKER "/job:worker/task:0"

static struct peer *ps_of(struct task *t)
{
	struct peer *p = peers_find(t->server->peers, "/job:ps/replica:0/task:0");

	assert_non_null(p);
	return p;
}

static bool stream_is_live(struct task *t)
{
	struct peer *p = ps_of(t);

	return p->stream && stream_peer_live(p->stream);
}

/* A variable v on the ps; adds a number of a worker to it and reads it at the worker. */
static void open_session(struct fixture *f, char handle[64])
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct mu_node *v = variable(g, "v", PS), *one = constant(g, "one", WORKER, number(1));
	struct mu_node *zero = constant(g, "zero", PS, number(0));
	struct mu_node *two = unary(g, "twice", "Neg", WORKER, one);
	struct mu_err err;

	binary(g, "init", "Assign", PS, v, zero);
	binary(g, "add", "AssignAdd", PS, v, unary(g, "plus", "Neg", WORKER, two));
	unary(g, "read", "Identity", WORKER, v);
	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
}

static void run_target(struct task *t, const char *handle, const char *name)
{
	struct step s = {.target = name};
	struct mu_err err;

	assert_ok(run(t, handle, &s, NULL, &err), &err);
}

static void steps__when_both_tasks_have_streams__use_them_with_equal_results(void **state)
{
	struct fixture *f = fixture_new("p01");
	char handle[64];

	open_session(f, handle);
	WAIT_UNTIL(stream_is_live(&f->worker[0]));
	run_target(&f->worker[0], handle, "init");
	for (int i = 0; i < 200; i++)
		run_target(&f->worker[0], handle, "add");
	assert_true(run_float(&f->worker[0], handle, "read:0") == 200);
	assert_true(stream_is_live(&f->worker[0]));
	fixture_free(f);
}

static const char *_Atomic failing_thread; /* its EPOLL_CTL_ADD fails; NULL: none */

int epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	static __typeof__(epoll_ctl) *_Atomic next;
	const char *failing = atomic_load(&failing_thread);
	char name[16] = "";

	if (!next)
		next = (__typeof__(epoll_ctl) *)dlsym(RTLD_NEXT, "epoll_ctl");
	if (op == EPOLL_CTL_ADD && failing &&
	    !pthread_getname_np(pthread_self(), name, sizeof name) && strcmp(name, failing) == 0) {
		errno = ENOSPC;
		return -1;
	}
	return next(set, op, fd, event);
}

static void steps__when_a_stream_cannot_be_polled__use_rpcs_until_it_can(void **state)
{
	static const char *const threads[] = {"stream", "stream-dial"};

	for (unsigned i = 0; i < MU_COUNT(threads); i++) {
		struct fixture *f = fixture_new("p01");
		char handle[64];

		atomic_store(&failing_thread, threads[i]);
		open_session(f, handle);
		run_target(&f->worker[0], handle, "init");
		run_target(&f->worker[0], handle, "add");
		assert_true(run_float(&f->worker[0], handle, "read:0") == 1);
		assert_false(stream_is_live(&f->worker[0]));
		atomic_store(&failing_thread, NULL);
		WAIT_UNTIL(
		    (run_target(&f->worker[0], handle, "init"), stream_is_live(&f->worker[0])));
		run_target(&f->worker[0], handle, "add");
		assert_true(run_float(&f->worker[0], handle, "read:0") == 1);
		fixture_free(f);
	}
}

static void large_tensor__makes_a_round_trip(void **state)
{
	struct fixture *f = fixture_new("p01");
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	MU_AUTO_TENSOR out = {0};
	struct mu_shape shape = mu_shape_vec(3000001);
	struct step s = {.fetch = "back:0"};
	struct mu_tensor t;
	struct mu_err err;
	char handle[64];

	assert_ok(mu_tensor_new(&t, MU_FLOAT, &shape, &err), &err);
	for (int64_t i = 0; i < shape.count; i++)
		MU_DATA(float, &t)[i] = (float)(i % 1000003);
	struct mu_node *c = constant(g, "c", WORKER, t);
	struct mu_node *there = unary(g, "there", "Neg", PS, c);
	unary(g, "back", "Neg", WORKER, there);
	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	WAIT_UNTIL(stream_is_live(&f->worker[0]));
	assert_ok(run(&f->worker[0], handle, &s, &out, &err), &err);
	assert_int_equal(out.shape.count, shape.count);
	for (int64_t i = 0; i < shape.count; i++)
		assert_true(MU_DATA(float, &out)[i] == (float)(i % 1000003));
	assert_true(stream_is_live(&f->worker[0]));
	fixture_free(f);
}

static void restarted_peer__fails_the_step_and_is_reconnected(void **state)
{
	struct fixture *f = fixture_new("p01");
	struct step s = {.target = "add"};
	struct mu_err err;
	char handle[64];

	open_session(f, handle);
	WAIT_UNTIL(stream_is_live(&f->worker[0]));
	run_target(&f->worker[0], handle, "init");
	stop_task(&f->ps);
	WAIT_UNTIL(!stream_is_live(&f->worker[0]));
	assert_true(run(&f->worker[0], handle, &s, NULL, &err) != 0);
	assert_true(err.code == MU_UNAVAILABLE || err.code == MU_ABORTED);
	start_task(f, &f->ps, "ps", 0);
	open_session(f, handle);
	WAIT_UNTIL(stream_is_live(&f->worker[0]));
	run_target(&f->worker[0], handle, "init");
	run_target(&f->worker[0], handle, "add");
	assert_true(run_float(&f->worker[0], handle, "read:0") == 1);
	fixture_free(f);
}

static void task_without_streams__is_reached_by_grpc(void **state)
{
	struct fixture *f = fixture_new("01");
	struct task_server_options o = {.cluster = &f->cluster,
					.job = "ps",
					.index = 0,
					.threads = 2,
					.peer = "grpc",
					.connect_timeout_ms = CALL_MS};
	struct mu_err err;
	char handle[64];

	assert_ok(task_server_start(&o, &f->ps.server, &err), &err);
	assert_ok(rpc_channel_open(task_server_target(f->ps.server), &f->ps.ch, &err), &err);
	open_session(f, handle);
	run_target(&f->worker[0], handle, "init");
	run_target(&f->worker[0], handle, "add");
	assert_true(run_float(&f->worker[0], handle, "read:0") == 1);
	assert_false(stream_is_live(&f->worker[0]));
	fixture_free(f);
}

static void remote_error__names_its_node(void **state)
{
	struct fixture *f = fixture_new("p01");
	struct step s = {.target = "add"};
	struct mu_err err;
	char handle[64];

	open_session(f, handle);
	WAIT_UNTIL(stream_is_live(&f->worker[0]));
	for (int i = 0; i < 20; i++) { /* v is not initialised */
		assert_int_equal(-MU_FAILED_PRECONDITION,
				 run(&f->worker[0], handle, &s, NULL, &err));
		assert_non_null(strstr(err.msg, "From /job:ps/replica:0/task:0"));
		assert_non_null(strstr(err.msg, "uninitialized value"));
	}
	assert_true(stream_is_live(&f->worker[0]));
	run_target(&f->worker[0], handle, "init");
	run_target(&f->worker[0], handle, "add");
	fixture_free(f);
}

struct load {
	struct fixture *f;
	const char *handle;
	_Atomic int stop, succeeded, unavailable, failed;
};

static void *run_add_steps(void *arg)
{
	struct load *l = arg;
	struct step s = {.target = "add"};
	struct mu_err err;

	while (!l->stop) {
		if (!run(&l->f->worker[0], l->handle, &s, NULL, &err))
			l->succeeded++;
		else if (err.code == MU_UNAVAILABLE)
			l->unavailable++;
		else
			l->failed++;
	}
	return NULL;
}

/* Closes the worker's connection to the ps. */
static void shut_down_stream(struct task *t)
{
	struct stream_peer *p = ps_of(t)->stream;

	pthread_mutex_lock(&p->lock);
	assert_non_null(p->conn);
	shutdown(p->conn->fd, SHUT_RDWR);
	pthread_mutex_unlock(&p->lock);
}

static void
broken_stream__fails_pending_steps_and_falls_back_to_grpc_until_reconnected(void **state)
{
	struct fixture *f = fixture_new("p01");
	struct load l = {.f = f};
	char handle[64];
	pthread_t threads[3];

	open_session(f, handle);
	WAIT_UNTIL(stream_is_live(&f->worker[0]));
	run_target(&f->worker[0], handle, "init");
	l.handle = handle;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_add_steps, &l), 0);
	for (int i = 0; i < 3; i++) {
		int before = l.succeeded;

		WAIT_UNTIL(l.succeeded > before + 50);
		shut_down_stream(&f->worker[0]);
		before = l.succeeded;
		WAIT_UNTIL(l.succeeded > before + 10); /* by gRPC, until the stream is back */
		WAIT_UNTIL(stream_is_live(&f->worker[0]));
	}
	l.stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(l.failed, 0);
	fixture_free(f);
}

static bool stream_is_tcp(struct task *t)
{
	struct stream_peer *p = ps_of(t)->stream;
	struct sockaddr_storage a = {0};
	socklen_t len = sizeof(a);

	pthread_mutex_lock(&p->lock);
	if (p->conn)
		getsockname(p->conn->fd, (struct sockaddr *)&a, &len);
	pthread_mutex_unlock(&p->lock);
	return a.ss_family == AF_INET;
}

/* A step reconnects the stream; it may fail because the connection was closed. */
static bool stream_is_tcp_after_a_step(struct task *t, const char *handle)
{
	struct step s = {.target = "init"};
	struct mu_err err;

	run(t, handle, &s, NULL, &err);
	return stream_is_tcp(t);
}

static void peer_on_another_host__is_reached_by_tcp(void **state)
{
	struct fixture *f = fixture_new("p01");
	struct stream_peer *p = ps_of(&f->worker[0])->stream;
	char handle[64];

	open_session(f, handle);
	WAIT_UNTIL(stream_is_live(&f->worker[0]));
	pthread_mutex_lock(&p->lock);
	p->offer.local[0] = 0; /* as if the local address did not exist */
	pthread_mutex_unlock(&p->lock);
	run_target(&f->worker[0], handle, "init");
	shut_down_stream(&f->worker[0]);
	WAIT_UNTIL(stream_is_tcp_after_a_step(&f->worker[0], handle));
	run_target(&f->worker[0], handle, "init");
	for (int i = 0; i < 50; i++)
		run_target(&f->worker[0], handle, "add");
	assert_true(run_float(&f->worker[0], handle, "read:0") == 50);
	assert_true(stream_is_tcp(&f->worker[0]));
	fixture_free(f);
}

/* ---- raw connections ---- */

static int connect_to(struct task *t)
{
	MU_AUTO_BUF b = {0};
	struct stream_offer o;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	peers_offer(t->server->peers, &b);
	assert_true(stream_offer_parse(&o, mu_buf_span(&b)));
	memcpy(a.sun_path + 1, o.local, strlen(o.local));
	assert_int_equal(
	    connect(fd, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(o.local))),
	    0);
	return fd;
}

static void send_frame(int fd, const struct mu_buf *b)
{
	assert_int_equal(send(fd, b->data, b->len, MSG_NOSIGNAL), b->len);
}

static bool is_closed(int fd)
{
	char byte;
	struct timeval tv = {TEST_TIMEOUT_S, 0};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));

	ssize_t n = recv(fd, &byte, 1, 0);

	return n == 0 || (n < 0 && errno != EAGAIN);
}

static void connection_without_the_key__is_closed(void **state)
{
	struct fixture *f = fixture_new("p");
	struct stream_hello h = {.task = "/job:worker/replica:0/task:0",
				 .sender_incarnation = 1,
				 .receiver_incarnation = 2};
	MU_AUTO_BUF b = {0};
	int fd = connect_to(&f->ps);

	stream_hello_write(&b, STREAM_HELLO, 0, &h);
	send_frame(fd, &b);
	assert_true(is_closed(fd));
	close(fd);
	fd = connect_to(&f->ps);
	mu_buf_clear(&b);
	mu_buf_puts(&b, "GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n");
	send_frame(fd, &b);
	assert_true(is_closed(fd));
	close(fd);
	fixture_free(f);
}

/* Makes the handshake as the worker with incarnation 7. */
static int connect_as_worker(struct task *t)
{
	struct stream_hello h = {.task = "/job:worker/replica:0/task:0", .sender_incarnation = 7};
	char welcome[STREAM_HEADER + 200];
	MU_AUTO_BUF status = {0};
	MU_AUTO_BUF b = {0};
	struct stream_offer o;
	int fd = connect_to(t);

	peers_offer(t->server->peers, &status);
	assert_true(stream_offer_parse(&o, mu_buf_span(&status)));
	memcpy(h.key, o.key, sizeof(h.key));
	h.receiver_incarnation = o.incarnation;
	stream_hello_write(&b, STREAM_HELLO, 0, &h);
	send_frame(fd, &b);
	assert_true(recv(fd, welcome, sizeof(welcome), 0) > STREAM_HEADER);
	assert_int_equal(welcome[0], STREAM_WELCOME);
	return fd;
}

static const char *const edge = "/job:worker/replica:0/task:0/device:CPU:0;0000000000000007;"
				"/job:ps/replica:0/task:0/device:CPU:0;edge_1;0:0";

struct got {
	_Atomic int n;
	struct mu_err err;
	struct mu_tensor tensor;
	bool dead;
};

static void on_tensor(void *arg, const struct mu_err *err, struct mu_tensor *t, bool dead)
{
	struct got *g = arg;

	if (err)
		g->err = *err;
	else
		g->tensor = *t;
	g->dead = dead;
	atomic_fetch_add(&g->n, 1);
}

static void put_number(int fd, int64_t step, float v, bool dead)
{
	MU_AUTO_TENSOR t = number(v);
	MU_AUTO_BUF b = {0};
	size_t payload;
	struct mu_err err;

	assert_ok(stream_tensor_write(&b, step, edge, &t, dead, &payload, &err), &err);
	mu_buf_put(&b, t.data, payload);
	send_frame(fd, &b);
}

static void tensor__that_arrives_before_its_step__waits_for_the_receiver(void **state)
{
	struct fixture *f = fixture_new("p");
	int fd = connect_as_worker(&f->ps);
	struct rendezvous *r = rendezvous_table_get(f->ps.server->rt->steps, 1234);
	struct got first = {0}, second = {0};

	put_number(fd, 1234, 5, false);
	put_number(fd, 1234, 6, true);
	rendezvous_recv_local(r, edge, on_tensor, &first);
	WAIT_UNTIL(first.n == 1);
	assert_true(MU_DATA(float, &first.tensor)[0] == 5);
	rendezvous_recv_local(r, edge, on_tensor, &second);
	WAIT_UNTIL(second.n == 1);
	assert_true(second.dead);
	mu_tensor_unref(&first.tensor);
	rendezvous_unref(r);
	close(fd);
	fixture_free(f);
}

static void pending_calls__end_with_their_connection(void **state)
{
	struct fixture *f = fixture_new("p");
	int fd = connect_as_worker(&f->ps);
	struct rendezvous *r = rendezvous_table_get(f->ps.server->rt->steps, 77);
	struct got g = {0};

	put_number(fd, 77, 5, false);
	rendezvous_recv_local(r, edge, on_tensor, &g);
	WAIT_UNTIL(g.n == 1);
	mu_tensor_unref(&g.tensor);
	rendezvous_recv_local(r, edge, on_tensor, &g);
	close(fd);
	WAIT_UNTIL(g.n == 2);
	assert_int_equal(g.err.code, MU_UNAVAILABLE);
	rendezvous_unref(r);
	fixture_free(f);
}

static void dropped_step__accepts_no_more_tensors(void **state)
{
	struct fixture *f = fixture_new("p");
	int fd = connect_as_worker(&f->ps);
	struct rendezvous *r = rendezvous_table_get(f->ps.server->rt->steps, 99);
	MU_AUTO_BUF b = {0};
	struct got g = {0};

	put_number(fd, 99, 5, false);
	stream_frame_begin(&b, STREAM_CLEANUP, 0, 99);
	send_frame(fd, &b);
	put_number(fd, 99, 6, false);
	put_number(fd, 100, 7, false);
	rendezvous_unref(r);
	r = rendezvous_table_get(f->ps.server->rt->steps, 100);
	rendezvous_recv_local(r, edge, on_tensor,
			      &g); /* the earlier frames were read before this one */
	WAIT_UNTIL(g.n == 1);
	mu_tensor_unref(&g.tensor);
	rendezvous_unref(r);
	r = rendezvous_table_get(f->ps.server->rt->steps, 99);
	rendezvous_recv_local(r, edge, on_tensor, &g);
	WAIT_UNTIL(g.n == 2);
	assert_int_equal(g.err.code, MU_ABORTED);
	rendezvous_unref(r);
	close(fd);
	fixture_free(f);
}

static void invalid_bytes__close_only_their_connection(void **state)
{
	static const struct {
		unsigned char type;
		uint32_t head;
		uint64_t payload;
	} frames[] = {{99, 0, 0},
		      {STREAM_RUN_DONE, 4, 0},
		      {STREAM_TENSOR, 1 << 30, 0},
		      {STREAM_TENSOR, 10, UINT64_MAX},
		      {STREAM_RUN, 3, 0},
		      {STREAM_CANCEL, 0, 8}};
	struct fixture *f = fixture_new("p");

	for (size_t i = 0; i < MU_COUNT(frames); i++) {
		MU_AUTO_BUF b = {0};
		int fd = connect_as_worker(&f->ps);

		stream_frame_begin(&b, (enum stream_type)frames[i].type, 0, 5);
		memcpy(b.data + 4, &frames[i].head, 4);
		memcpy(b.data + 8, &frames[i].payload, 8);
		for (int k = 0; k < 64; k++)
			mu_buf_putc(&b, '\x7f');
		send_frame(fd, &b);
		assert_true(is_closed(fd));
		close(fd);
	}
	close(connect_as_worker(&f->ps)); /* a valid connection is still accepted */
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(steps__when_both_tasks_have_streams__use_them_with_equal_results),
	    cmocka_unit_test(steps__when_a_stream_cannot_be_polled__use_rpcs_until_it_can),
	    cmocka_unit_test(large_tensor__makes_a_round_trip),
	    cmocka_unit_test(restarted_peer__fails_the_step_and_is_reconnected),
	    cmocka_unit_test(
		broken_stream__fails_pending_steps_and_falls_back_to_grpc_until_reconnected),
	    cmocka_unit_test(peer_on_another_host__is_reached_by_tcp),
	    cmocka_unit_test(task_without_streams__is_reached_by_grpc),
	    cmocka_unit_test(remote_error__names_its_node),
	    cmocka_unit_test(connection_without_the_key__is_closed),
	    cmocka_unit_test(tensor__that_arrives_before_its_step__waits_for_the_receiver),
	    cmocka_unit_test(pending_calls__end_with_their_connection),
	    cmocka_unit_test(dropped_step__accepts_no_more_tensors),
	    cmocka_unit_test(invalid_bytes__close_only_their_connection),
	};

	mu_log_set_level(MU_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
