/* SPDX-License-Identifier: Apache-2.0 */
/* Faults during a step, with a scripted ps. It takes part in everything but answers RunGraph only
 * when the test decides the outcome. */
#include "tests/cluster/fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "task/rpc/server.h"

#define PS "/job:ps/task:0"

/* ---- the scripted ps ---- */

struct script {
	struct rpc_server *server;
	pthread_mutex_t lock;
	struct rpc_call *pending_run; /* the pending RunGraph */
	_Atomic int runs, cancels, cleanups, registrations;
	_Atomic bool register_hangs; /* RegisterGraph has no reply until it is cancelled */
};

static void reply_bytes(struct rpc_call *call, const struct mu_buf *b)
{
	struct rpc_message m = {.head = mu_buf_span(b)};

	rpc_reply(call, &m);
}

static void get_status(struct rpc_call *call, void *ctx)
{
	MU_AUTO_BUF b = {0};
	size_t at = mu_pb_begin(&b, 1);

	mu_pb_put_str(&b, 1, "/job:ps/replica:0/task:0/device:CPU:0");
	mu_pb_put_str(&b, 2, "CPU");
	mu_pb_put_fixed64(&b, 6, 42);
	mu_pb_end(&b, at);
	reply_bytes(call, &b);
}

static void reply_empty(struct rpc_call *call, void *ctx)
{
	MU_AUTO_BUF b = {0};

	reply_bytes(call, &b);
}

static void cleanup(struct rpc_call *call, void *ctx)
{
	atomic_fetch_add(&((struct script *)ctx)->cleanups, 1);
	reply_empty(call, ctx);
}

static void on_cancel(void *arg)
{
	struct script *s = arg;
	struct rpc_call *call;
	struct mu_err err;

	mu_fail(&err, MU_CANCELLED, "given up");
	pthread_mutex_lock(&s->lock);
	call = s->pending_run;
	s->pending_run = NULL;
	pthread_mutex_unlock(&s->lock);
	if (call)
		rpc_reply_error(call, &err);
	atomic_fetch_add(&s->cancels, 1);
}

static void run_graph(struct rpc_call *call, void *ctx)
{
	struct script *s = ctx;

	pthread_mutex_lock(&s->lock);
	s->pending_run = call;
	pthread_mutex_unlock(&s->lock);
	rpc_on_cancel(call, on_cancel, s);
	atomic_fetch_add(&s->runs, 1);
}

static void register_graph(struct rpc_call *call, void *ctx)
{
	struct script *s = ctx;
	MU_AUTO_BUF b = {0};

	atomic_fetch_add(&s->registrations, 1);
	if (s->register_hangs) {
		pthread_mutex_lock(&s->lock);
		s->pending_run = call;
		pthread_mutex_unlock(&s->lock);
		rpc_on_cancel(call, on_cancel, s);
		return;
	}
	mu_pb_put_str(&b, 1, "g");
	reply_bytes(call, &b);
}

#define METHOD(name, fn)                                                                           \
	{                                                                                          \
		"/tensorflow.WorkerService/" name, .handle = fn                                    \
	}
static const struct rpc_method methods[] = {
    METHOD("GetStatus", get_status),
    METHOD("CreateWorkerSession", reply_empty),
    METHOD("DeleteWorkerSession", reply_empty),
    METHOD("RegisterGraph", register_graph),
    METHOD("RunGraph", run_graph),
    METHOD("CleanupGraph", cleanup),
};

static void wait_for_count(_Atomic int *counter, int n)
{
	WAIT_UNTIL(atomic_load(counter) >= n);
}

/* ---- the fixture: a scripted ps, a real worker, a session with one target on the ps ---- */

struct faults {
	struct fixture *f;
	struct script ps;
	char handle[64];
};

static int start(void **state)
{
	struct faults *t = MU_NEW(struct faults);
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	const char *address;
	struct mu_err err;
	int port;

	t->f = fixture_new("01");
	pthread_mutex_init(&t->ps.lock, NULL);
	address = t->f->address[0];
	struct rpc_server_options o = {.addresses = &address,
				       .n_addresses = 1,
				       .methods = methods,
				       .n_methods = MU_COUNT(methods),
				       .ctx = &t->ps};

	assert_ok(rpc_server_start(&o, &t->ps.server, &port, &err), &err);
	node(g, "wait", "NoOp", PS);
	constant(g, "here", "/job:worker/task:0", number(1));
	assert_ok(create(&t->f->worker[0], g, MU_SPAN(""), t->handle, &err), &err);
	*state = t;
	return 0;
}

static int stop(void **state)
{
	struct faults *t = *state;

	fixture_free(t->f);
	rpc_server_stop(t->ps.server, 0);
	pthread_mutex_destroy(&t->ps.lock);
	free(t);
	return 0;
}

struct step_thread {
	struct faults *t;
	struct step step;
	struct mu_err err;
	int rc;
	pthread_t thread;
};

static void *run_step(void *arg)
{
	struct step_thread *w = arg;

	w->rc = run(&w->t->f->worker[0], w->t->handle, &w->step, NULL, &w->err);
	return NULL;
}

static struct step_thread *start_step_until(struct faults *t, _Atomic int *counter)
{
	struct step_thread *w = MU_NEW(struct step_thread);

	*w = (struct step_thread){.t = t, .step = {.target = "wait", .fetch = "here:0"}};
	assert_int_equal(pthread_create(&w->thread, NULL, run_step, w), 0);
	wait_for_count(counter, 1);
	return w;
}

static struct step_thread *start_step(struct faults *t)
{
	return start_step_until(t, &t->ps.runs);
}

static void expect_error(struct step_thread *w, enum mu_code code, const char *text)
{
	pthread_join(w->thread, NULL);
	assert_int_equal(w->rc, -(int)code);
	if (!strstr(w->err.msg, text))
		fail_msg("'%s' does not say '%s'", w->err.msg, text);
	free(w);
}

static void step__when_its_ps_dies__is_unavailable(void **state)
{
	struct faults *t = *state;
	struct step_thread *w = start_step(t);

	rpc_server_stop(t->ps.server, 0);
	t->ps.server = NULL;
	/* gRPC distinguishes a call cancelled by the shutdown of a server from a broken connection
	 */
	pthread_join(w->thread, NULL);
	assert_true(w->err.code == MU_UNAVAILABLE || w->err.code == MU_CANCELLED);
	assert_non_null(strstr(w->err.msg, "From /job:ps/replica:0/task:0"));
	free(w);
}

static void step__after_its_timeout__has_deadline_exceeded(void **state)
{
	struct faults *t = *state;
	struct mu_err err;

	/* long enough also on a busy machine */
	for (long ms = 50; !atomic_load(&t->ps.runs); ms *= 2) {
		struct step s = {.target = "wait", .fetch = "here:0", .timeout_ms = ms};

		assert_fails(run(&t->f->worker[0], t->handle, &s, NULL, &err), &err,
			     MU_DEADLINE_EXCEEDED, "Deadline Exceeded");
	}
	wait_for_count(&t->ps.cancels, 1);
	wait_for_count(&t->ps.cleanups, 1);
}

static void step__when_its_session_is_closed__is_cancelled(void **state)
{
	struct faults *t = *state;
	struct step_thread *w = start_step(t);
	struct step again = {.target = "wait"};
	struct mu_err err;

	assert_ok(close_session(&t->f->worker[0], t->handle, &err), &err);
	expect_error(w, MU_CANCELLED, "Session::Close");
	wait_for_count(&t->ps.cancels, 1);
	assert_fails(run(&t->f->worker[0], t->handle, &again, NULL, &err), &err, MU_ABORTED,
		     "not found");
}

static void registration__that_hangs__ends_with_the_steps_timeout(void **state)
{
	struct faults *t = *state;
	struct step s = {.target = "wait", .fetch = "here:0", .timeout_ms = 50};
	struct mu_err err;

	t->ps.register_hangs = true;
	assert_fails(run(&t->f->worker[0], t->handle, &s, NULL, &err), &err, MU_DEADLINE_EXCEEDED,
		     "From /job:ps/replica:0/task:0");
}

static void registration__when_its_session_is_closed__is_cancelled(void **state)
{
	struct faults *t = *state;
	struct step_thread *w;
	struct mu_err err;

	t->ps.register_hangs = true;
	w = start_step_until(t, &t->ps.registrations);
	assert_ok(close_session(&t->f->worker[0], t->handle, &err), &err);
	expect_error(w, MU_CANCELLED, "Session is closed.");
	wait_for_count(&t->ps.cancels, 1);
}

static void step__when_one_partition_fails__returns_its_error(void **state)
{
	struct faults *t = *state;
	struct step_thread *w = start_step(t);
	struct rpc_call *call;
	MU_AUTO_BUF b = {0};

	mu_pb_put_int(&b, 5, MU_OUT_OF_RANGE);
	mu_pb_put_str(&b, 6, "the queue is empty");
	pthread_mutex_lock(&t->ps.lock);
	call = t->ps.pending_run;
	t->ps.pending_run = NULL;
	pthread_mutex_unlock(&t->ps.lock);
	reply_bytes(call, &b);
	expect_error(w, MU_OUT_OF_RANGE, "From /job:ps/replica:0/task:0:\nthe queue is empty");
}

static _Atomic int ended;
static void count_end(void *arg, const struct mu_err *err, struct rpc_bytes *reply)
{
	atomic_fetch_add(&ended, 1);
}

static void step__when_its_client_disconnects__is_freed(void **state)
{
	struct faults *t = *state;
	struct step s = {.target = "wait"};
	struct rpc_message m;
	MU_AUTO_BUF request = {0};
	struct mu_err err;
	uint64_t id;

	ended = 0;
	step_request(&request, t->handle, &s);
	m = (struct rpc_message){.head = mu_buf_span(&request)};
	id = rpc_start(t->f->worker[0].ch, "/tensorflow.MasterService/RunStep", &m, 0, 0, count_end,
		       NULL, &err);
	assert_true(id != 0);
	wait_for_count(&t->ps.runs, 1);
	rpc_out_cancel(t->f->worker[0].ch, id);
	wait_for_count(&ended, 1);
	wait_for_count(&t->ps.cancels, 1);
	wait_for_count(&t->ps.cleanups, 1);
}

static void step__when_its_master_stops__ends(void **state)
{
	struct faults *t = *state;
	struct step_thread *w = start_step(t);

	task_server_stop(t->f->worker[0].server, 10);
	t->f->worker[0].server = NULL;
	pthread_join(w->thread, NULL);
	assert_int_equal(w->err.code, MU_UNAVAILABLE);
	free(w);
	rpc_channel_close(t->f->worker[0].ch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(step__when_its_ps_dies__is_unavailable, start, stop),
	    cmocka_unit_test_setup_teardown(step__after_its_timeout__has_deadline_exceeded, start,
					    stop),
	    cmocka_unit_test_setup_teardown(step__when_its_session_is_closed__is_cancelled, start,
					    stop),
	    cmocka_unit_test_setup_teardown(registration__that_hangs__ends_with_the_steps_timeout,
					    start, stop),
	    cmocka_unit_test_setup_teardown(registration__when_its_session_is_closed__is_cancelled,
					    start, stop),
	    cmocka_unit_test_setup_teardown(step__when_one_partition_fails__returns_its_error,
					    start, stop),
	    cmocka_unit_test_setup_teardown(step__when_its_client_disconnects__is_freed, start,
					    stop),
	    cmocka_unit_test_setup_teardown(step__when_its_master_stops__ends, start, stop),
	};

	mu_log_set_level(MU_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
