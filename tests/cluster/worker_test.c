/* SPDX-License-Identifier: Apache-2.0 */
/* The worker service, called by a scripted master. */
#include "task/server_internal.h"
#include "tests/cluster/fixture.h"

#include <stdatomic.h>

static int start(void **state)
{
	*state = fixture_new("p");
	return 0;
}

static int stop(void **state)
{
	fixture_free(*state);
	return 0;
}

static int worker_call(struct task *t, const char *method, const struct mu_buf *request,
		       struct mu_buf *reply, struct mu_err *err)
{
	MU_AUTO_FREE char *path = mu_xasprintf("/tensorflow.WorkerService/%s", method);
	struct rpc_message m = {.head = mu_buf_span(request)};

	return rpc_call(t->ch, path, &m, CALL_MS, 0, reply, err);
}

/* A rendezvous key of a tensor from the ps, with its current incarnation. */
static char *key_of(struct task *ps, const char *edge)
{
	MU_AUTO_BUF empty = {0};
	MU_AUTO_BUF reply = {0};
	unsigned long long incarnation = 0;
	struct mu_pb_field f, in;
	struct mu_pb m, d;
	struct mu_err err;

	assert_ok(worker_call(ps, "GetStatus", &empty, &reply, &err), &err);
	m = mu_pb_of(mu_buf_span(&reply));
	while (mu_pb_next(&m, &f)) {
		d = mu_pb_of(f.bytes);
		while (mu_pb_next(&d, &in))
			if (in.number == 6)
				incarnation = in.value;
	}
	return mu_xasprintf("/job:ps/replica:0/task:0/device:CPU:0;%016llx;"
			    "/job:worker/replica:0/task:0/device:CPU:0;%s;0:0",
			    incarnation, edge);
}

static void recv_request(struct mu_buf *b, int64_t step, const char *key)
{
	mu_pb_put_int(b, 1, step);
	mu_pb_put_str(b, 2, key);
}

struct answer {
	_Atomic int ended;
	enum mu_code code;
};

static void store_end(void *arg, const struct mu_err *err, struct rpc_bytes *reply)
{
	struct answer *a = arg;

	a->code = err ? err->code : MU_OK;
	atomic_store(&a->ended, 1);
}

static void count_key(void *n, const char *key)
{
	++*(unsigned *)n;
}

/* Number of pending receives of a step at a task. */
static unsigned n_pending_recvs(struct task *t, int64_t step)
{
	struct rendezvous *r = rendezvous_table_get(t->server->rt->steps, step);
	unsigned n = 0;

	rendezvous_each_waiting(r, count_key, &n);
	rendezvous_unref(r);
	return n;
}

static uint64_t receive(struct task *ps, int64_t step, struct answer *a)
{
	MU_AUTO_FREE char *key = key_of(ps, "edge_1_x");
	MU_AUTO_BUF request = {0};
	struct rpc_message m;
	struct mu_err err;
	uint64_t id;

	recv_request(&request, step, key);
	m = (struct rpc_message){.head = mu_buf_span(&request)};
	id =
	    rpc_start(ps->ch, "/tensorflow.WorkerService/RecvTensor", &m, 0, 0, store_end, a, &err);
	assert_true(id != 0);
	return id;
}

static void receive__waits_until_its_step_is_cleaned_up(void **state)
{
	struct fixture *f = *state;
	struct answer a = {0};
	MU_AUTO_BUF request = {0};
	struct mu_err err;

	receive(&f->ps, 17, &a);
	WAIT_UNTIL(n_pending_recvs(&f->ps, 17) == 1);
	assert_false(atomic_load(&a.ended));
	mu_pb_put_int(&request, 1, 17);
	assert_ok(worker_call(&f->ps, "CleanupGraph", &request, NULL, &err), &err);
	WAIT_UNTIL(atomic_load(&a.ended));
	assert_int_equal(a.code, MU_CANCELLED);
}

static void step__when_a_receiver_disconnects__ends(void **state)
{
	struct fixture *f = *state;
	struct answer first = {0}, second = {0}, late = {0};
	uint64_t id = receive(&f->ps, 18, &first);

	receive(&f->ps, 18, &second);
	WAIT_UNTIL(n_pending_recvs(&f->ps, 18) == 2);
	assert_false(atomic_load(&second.ended));
	rpc_out_cancel(f->ps.ch, id);
	WAIT_UNTIL(atomic_load(&first.ended) && atomic_load(&second.ended));
	assert_int_equal(second.code, MU_CANCELLED);
	receive(&f->ps, 18, &late); /* no tensor of that step will arrive */
	WAIT_UNTIL(atomic_load(&late.ended));
	assert_int_equal(late.code, MU_ABORTED);
}

static void receive__with_the_key_of_another_task__is_rejected(void **state)
{
	static const char *const keys[] = {
	    "",
	    "x",
	    ";;;;",
	    "a;b;c;d;e",
	    "/job:ps/replica:0/task:0/device:CPU:0;zz;/job:w;e;0:0",
	    "/job:worker/replica:0/task:0/device:CPU:0;0000000000000001;/job:ps;e;0:0",
	    "/job:ps/replica:0/task:00/device:CPU:0;0000000000000001;/job:ps;e;0:0"};
	struct fixture *f = *state;
	struct mu_err err;

	for (unsigned i = 0; i < MU_COUNT(keys); i++) {
		MU_AUTO_BUF request = {0};

		recv_request(&request, 1, keys[i]);
		assert_true(worker_call(&f->ps, "RecvTensor", &request, NULL, &err) < 0);
		assert_int_equal(err.code, MU_INVALID_ARGUMENT);
	}
}

static void duplicate_receive__is_rejected(void **state)
{
	struct fixture *f = *state;
	MU_AUTO_FREE char *key = key_of(&f->ps, "twice");
	MU_AUTO_BUF one = {0};
	struct answer first = {0};
	struct rpc_message m;
	struct mu_err err;
	uint64_t id;

	recv_request(&one, 5, key);
	mu_pb_put_int(&one, 7, 77);
	m = (struct rpc_message){.head = mu_buf_span(&one)};
	id = rpc_start(f->ps.ch, "/tensorflow.WorkerService/RecvTensor", &m, 0, 0, store_end,
		       &first, &err);
	assert_true(id != 0);
	WAIT_UNTIL(n_pending_recvs(&f->ps, 5) == 1);
	assert_fails(worker_call(&f->ps, "RecvTensor", &one, NULL, &err), &err, MU_ABORTED,
		     "The same RecvTensor (GrpcWorker) request was received twice");
	rpc_out_cancel(f->ps.ch, id);
	WAIT_UNTIL(atomic_load(&first.ended));
}

static void request__with_an_unknown_handle__is_aborted(void **state)
{
	struct fixture *f = *state;
	MU_AUTO_BUF run = {0};
	MU_AUTO_BUF deleted = {0};
	MU_AUTO_BUF registered = {0};
	struct mu_err err;

	mu_pb_put_str(&run, 1, "0000000000000009");
	mu_pb_put_int(&run, 2, 5);
	assert_fails(worker_call(&f->ps, "RunGraph", &run, NULL, &err), &err, MU_ABORTED,
		     "Graph handle is not found");
	mu_pb_put_str(&run, 8, "feed");
	mu_pb_put_int(&run, 10, 1);
	assert_fails(worker_call(&f->ps, "RunGraph", &run, NULL, &err), &err, MU_ABORTED,
		     "Session handle is not found: feed");
	mu_pb_put_str(&registered, 1, "feed");
	mu_pb_put_int(&registered, 6, 1);
	assert_fails(worker_call(&f->ps, "RegisterGraph", &registered, NULL, &err), &err,
		     MU_ABORTED, "Session handle is not found: feed");
	mu_pb_put_str(&deleted, 1, "feed");
	assert_ok(worker_call(&f->ps, "DeleteWorkerSession", &deleted, NULL, &err), &err);
}

/* ---- incarnations of a master ---- */

static void open_session(struct task *t, const char *handle, int64_t incarnation)
{
	MU_AUTO_BUF request = {0};
	struct mu_err err;

	mu_pb_put_str(&request, 1, handle);
	mu_pb_put_str(&request, 5, "/job:worker/replica:0/task:0");
	mu_pb_put_int(&request, 6, incarnation);
	assert_ok(worker_call(t, "CreateWorkerSession", &request, NULL, &err), &err);
}

/* Registers and runs a graph that waits at an empty queue. */
static void wait_in_a_step(struct task *t, const char *session, int64_t step, struct answer *a)
{
	static enum mu_dtype types[] = {MU_FLOAT};
	struct mu_attr list = {
	    .kind = (enum mu_attr_kind)(MU_ATTR_LIST + MU_ATTR_TYPE), .types = types, .n = 1};
	const char *device = "/job:ps/replica:0/task:0/device:CPU:0";
	struct mu_graph *g = mu_graph_new();
	struct mu_node *q = node(g, "q", "FIFOQueueV2", device),
		       *get = node(g, "get", "QueueDequeueV2", device);
	struct mu_input in = {q, 0};
	MU_AUTO_BUF def = {0};
	MU_AUTO_BUF request = {0};
	MU_AUTO_BUF reply = {0};
	struct rpc_message m;
	struct mu_pb_field f;
	struct mu_pb fields;
	struct mu_err err;

	mu_node_set_attr(g, q, "component_types", &list);
	mu_node_set_inputs(g, get, &in, 1, NULL, 0);
	mu_node_set_attr(g, get, "component_types", &list);
	mu_graph_write(g, &def);
	mu_graph_free(g);
	mu_pb_put_str(&request, 1, session);
	mu_pb_put_bytes(&request, 2, mu_buf_span(&def));
	mu_pb_put_int(&request, 6, 1);
	assert_ok(worker_call(t, "RegisterGraph", &request, &reply, &err), &err);
	fields = mu_pb_of(mu_buf_span(&reply));
	assert_true(mu_pb_next(&fields, &f));
	mu_buf_clear(&request);
	mu_pb_put_bytes(&request, 1, f.bytes);
	mu_pb_put_int(&request, 2, step);
	mu_pb_put_str(&request, 8, session);
	mu_pb_put_int(&request, 10, 1);
	m = (struct rpc_message){.head = mu_buf_span(&request)};
	assert_true(rpc_start(t->ch, "/tensorflow.WorkerService/RunGraph", &m, 0, 0, store_end, a,
			      &err) != 0);
}

static unsigned n_running_steps(struct task *t)
{
	struct worker_counts n;

	worker_count(t->server->context.worker, &n);
	return n.running;
}

static void step__of_an_earlier_incarnation_of_its_master__ends(void **state)
{
	struct fixture *f = *state;
	struct answer first = {0}, second = {0};
	struct worker_counts n;

	open_session(&f->ps, "a", 1);
	wait_in_a_step(&f->ps, "a", 31, &first);
	WAIT_UNTIL(n_running_steps(&f->ps) == 1);
	open_session(&f->ps, "b", 1); /* another session of the same incarnation */
	wait_in_a_step(&f->ps, "b", 32, &second);
	WAIT_UNTIL(n_running_steps(&f->ps) == 2);
	assert_false(atomic_load(&first.ended));
	open_session(&f->ps, "c", 2);
	WAIT_UNTIL(atomic_load(&first.ended) && atomic_load(&second.ended));
	assert_int_equal(first.code, MU_ABORTED);
	assert_int_equal(second.code, MU_ABORTED);
	worker_count(f->ps.server->context.worker, &n);
	assert_int_equal(n.sessions, 1);
	assert_int_equal(n.graphs, 0);
}

/* The step goes on: its master cancels it with the reason of the receiver. */
static void running_step__when_a_receiver_disconnects__continues(void **state)
{
	struct fixture *f = *state;
	struct answer step = {0}, cancelled = {0}, other = {0};
	uint64_t id;

	open_session(&f->ps, "a", 1);
	wait_in_a_step(&f->ps, "a", 33, &step);
	WAIT_UNTIL(n_running_steps(&f->ps) == 1);
	id = receive(&f->ps, 33, &cancelled);
	receive(&f->ps, 33, &other);
	WAIT_UNTIL(n_pending_recvs(&f->ps, 33) >= 2);
	rpc_out_cancel(f->ps.ch, id);
	WAIT_UNTIL(atomic_load(&cancelled.ended));
	usleep(100000); /* the server has probably seen the disconnect */
	assert_false(atomic_load(&step.ended));
	assert_false(atomic_load(&other.ended));
	open_session(&f->ps, "b", 2); /* ends the steps of the first incarnation */
	WAIT_UNTIL(atomic_load(&step.ended) && atomic_load(&other.ended));
	assert_int_equal(step.code, MU_ABORTED);
	assert_int_equal(other.code, MU_ABORTED);
}

/* A cancellation can arrive before the request of its step. */
static void step__cancelled_before_its_request__ends(void **state)
{
	struct fixture *f = *state;
	struct answer cancelled = {0}, step = {0};
	uint64_t id = receive(&f->ps, 34, &cancelled);

	WAIT_UNTIL(n_pending_recvs(&f->ps, 34) == 1);
	rpc_out_cancel(f->ps.ch, id);
	WAIT_UNTIL(atomic_load(&cancelled.ended));
	open_session(&f->ps, "a", 1);
	WAIT_UNTIL(n_pending_recvs(&f->ps, 34) == 0);
	wait_in_a_step(&f->ps, "a", 34, &step);
	WAIT_UNTIL(atomic_load(&step.ended));
	assert_int_equal(step.code, MU_ABORTED);
	WAIT_UNTIL(n_running_steps(&f->ps) == 0);
}

static void unimplemented_method__is_reported(void **state)
{
	static const char *const names[] = {"Tracing", "RecvBuf", "GetStepSequence"};
	struct fixture *f = *state;
	MU_AUTO_BUF request = {0};
	struct mu_err err;

	for (unsigned i = 0; i < MU_COUNT(names); i++)
		assert_fails(worker_call(&f->ps, names[i], &request, NULL, &err), &err,
			     MU_UNIMPLEMENTED, "not supported");
	mu_pb_put_str(&request, 4, "key");
	assert_fails(worker_call(&f->ps, "RunGraph", &request, NULL, &err), &err, MU_UNIMPLEMENTED,
		     "RecvTensor");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(receive__waits_until_its_step_is_cleaned_up, start,
					    stop),
	    cmocka_unit_test_setup_teardown(step__when_a_receiver_disconnects__ends, start, stop),
	    cmocka_unit_test_setup_teardown(receive__with_the_key_of_another_task__is_rejected,
					    start, stop),
	    cmocka_unit_test_setup_teardown(request__with_an_unknown_handle__is_aborted, start,
					    stop),
	    cmocka_unit_test_setup_teardown(step__of_an_earlier_incarnation_of_its_master__ends,
					    start, stop),
	    cmocka_unit_test_setup_teardown(running_step__when_a_receiver_disconnects__continues,
					    start, stop),
	    cmocka_unit_test_setup_teardown(duplicate_receive__is_rejected, start, stop),
	    cmocka_unit_test_setup_teardown(step__cancelled_before_its_request__ends, start, stop),
	    cmocka_unit_test_setup_teardown(unimplemented_method__is_reported, start, stop),
	};

	mu_log_set_level(MU_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
