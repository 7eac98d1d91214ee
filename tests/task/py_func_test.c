/* SPDX-License-Identifier: Apache-2.0 */
/* PyFunc ops with a scripted program: valid, malformed and missing replies.  tests/compat runs real
 * Python functions. */
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/tensor/tensor_proto.h"
#include "task/runtime/python_process.h"
#include "tests/task/run_step.h"

/* The program replies to the first request of each connection, or never.  Then it waits until the
 * task closes the connection. */
struct program {
	int socket; /* the program's end of the control socket */
	struct mu_span reply;
	bool shuts_down; /* shuts the connection down after the reply */
	_Atomic int requests, closed;
	pthread_t thread;
};

static int receive_connection(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec data = {&byte, 1};
	struct msghdr m = {.msg_iov = &data,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof control};
	int fd;

	if (recvmsg(socket, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

static void *program_main(void *arg)
{
	struct program *p = arg;
	char request[4096];
	int fd;

	while ((fd = receive_connection(p->socket)) >= 0) {
		bool has_replied = false;

		while (recv(fd, request, sizeof request, 0) > 0) {
			atomic_fetch_add(&p->requests, 1);
			if (p->reply.data && !has_replied)
				send(fd, p->reply.data, p->reply.len, MSG_NOSIGNAL);
			if (p->shuts_down)
				shutdown(fd, SHUT_WR);
			has_replied = true;
		}
		close(fd);
		atomic_fetch_add(&p->closed, 1);
	}
	return NULL;
}

static void start_program(struct program *p, int *task_end)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	p->socket = pair[0];
	*task_end = pair[1];
	rt->python_process = python_process_new(pair[1]);
	assert_int_equal(pthread_create(&p->thread, NULL, program_main, p), 0);
}

static void stop_program(struct program *p, int task_end)
{
	python_process_free(rt->python_process);
	rt->python_process = NULL;
	close(task_end);
	pthread_join(p->thread, NULL);
	close(p->socket);
}

static void attr_one_type(struct mu_graph *g, struct mu_node *n, const char *name, enum mu_dtype t)
{
	struct mu_attr a = {.kind = MU_ATTR_LIST + MU_ATTR_TYPE, .n = 1, .types = &t};

	mu_node_set_attr(g, n, name, &a);
}

/* f(2.0), sent under the edge "out" */
static struct mu_graph *py_func_graph(void)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "x", 2, NULL);
	struct mu_node *n = node(g, "f", "PyFunc", "x", NULL);
	attr_string(g, n, "token", "pyfunc_7");
	attr_one_type(g, n, "Tin", MU_FLOAT);
	attr_one_type(g, n, "Tout", MU_FLOAT);
	end(g, "out", "_Send", "f", "out");
	return g;
}

/* A reply: the length of the message, a message with n scalars of one type, and their contents. */
static struct mu_buf reply_of(unsigned n, enum mu_dtype type, struct mu_span contents)
{
	struct mu_buf b = {0};
	uint64_t length = 0;

	mu_buf_put(&b, &length, sizeof length);
	for (unsigned i = 0; i < n; i++) {
		size_t t = mu_pb_begin(&b, 8);
		mu_pb_put_int(&b, 1, type);
		mu_pb_end(&b, mu_pb_begin(&b, 2));
		mu_pb_end(&b, t);
	}
	length = b.len - sizeof length; /* assumes a little-endian machine */
	memcpy(b.data, &length, sizeof length);
	mu_buf_put(&b, contents.data, contents.len);
	return b;
}

/* Runs a step whose function gets this reply; returns its error code. */
static enum mu_code step_with(struct mu_span reply, const char *text, float *value)
{
	struct program p = {.reply = reply, .shuts_down = !text && !value};
	struct wait w = WAIT;
	struct got got = {0};
	struct executor *e;
	int task_end;

	start_program(&p, &task_end);
	e = compile(py_func_graph());
	run(e, &w, &got);
	executor_unref(e);
	if (value)
		*value = *MU_DATA(float, &got.tensor);
	mu_tensor_unref(&got.tensor);
	if (text && !strstr(w.err.msg, text))
		fail_msg("'%s' lacks '%s'", w.err.msg, text);
	stop_program(&p, task_end);
	assert_int_equal(atomic_load(&p.requests) > 0, 1);
	return w.err.code;
}

static void result__in_the_reply__is_the_output(void **state)
{
	const float four = 4;
	struct mu_buf b = reply_of(1, MU_FLOAT, (struct mu_span){(const char *)&four, sizeof four});
	float got = 0;

	assert_int_equal(step_with(mu_buf_span(&b), NULL, &got), MU_OK);
	assert_true(got == 4);
	mu_buf_fini(&b);
}

static void results__of_other_number_or_type__are_rejected(void **state)
{
	const double two[] = {1, 2};
	struct mu_span contents = {(const char *)two, sizeof two};
	struct mu_buf none = reply_of(0, MU_FLOAT, MU_SPAN("")),
		      both = reply_of(2, MU_DOUBLE, contents);
	struct mu_buf other = reply_of(1, MU_DOUBLE, (struct mu_span){contents.data, 8});
	struct mu_buf handle = reply_of(1, MU_RESOURCE, MU_SPAN(""));

	assert_int_equal(step_with(mu_buf_span(&none), "pyfunc_7 returns 0 values", NULL),
			 MU_INVALID_ARGUMENT);
	assert_int_equal(step_with(mu_buf_span(&both), "pyfunc_7 returns 2 values", NULL),
			 MU_INVALID_ARGUMENT);
	assert_int_equal(
	    step_with(mu_buf_span(&other), "0-th value returned by pyfunc_7 is double", NULL),
	    MU_INVALID_ARGUMENT);
	assert_int_not_equal(step_with(mu_buf_span(&handle), NULL, NULL), MU_OK);
	mu_buf_fini(&none);
	mu_buf_fini(&both);
	mu_buf_fini(&other);
	mu_buf_fini(&handle);
}

static void error__of_the_function__fails_the_step(void **state)
{
	static const char error[] = "\x0c\0\0\0\0\0\0\0\x12\x07Stop: x\x1a\x01\x0b"; /* 11 */

	assert_int_equal(
	    step_with((struct mu_span){error, 8 + 12}, "Stop: x\n\t [[{{node f}}]]", NULL),
	    MU_OUT_OF_RANGE);
}

static void malformed_reply__fails_the_step(void **state)
{
	static const struct mu_span replies[] = {
	    {"", 0},                                  /* the connection ends */
	    {"\xff\xff\xff\xff\xff\xff\xff\xff", 8},  /* length 2^64 - 1 */
	    {"\4\0\0\0\0\0\0\0\x42\x7f\x08\x01", 12}, /* truncated within a tensor */
	    {"\4\0\0\0\0\0\0\0\x1a\x02\xff\xff", 12}, /* truncated within the error code */
	    {"\xc\0\0\0\0\0\0\0\x42\x0a\x08\x01\x12\x06\x12\x04\x08\xff\xff\x7f",
	     20}, /* large shape without contents */
	};

	for (unsigned i = 0; i < MU_COUNT(replies); i++)
		assert_int_not_equal(step_with(replies[i], NULL, NULL), MU_OK);
}

static void cancelled_step__does_not_wait_for_the_function(void **state)
{
	struct mu_err why = {.code = MU_CANCELLED, .msg = "the client is gone"};
	struct program p = {0};
	struct one_step s;
	int task_end;

	start_program(&p, &task_end);
	close(STDIN_FILENO); /* so that the connection has descriptor 0 */
	s = open_step(py_func_graph());
	start_step(&s);
	WAIT_UNTIL(atomic_load(&p.requests) > 0);
	step_cancel(s.step, &why);
	wait_done(&s.wait);
	assert_int_equal(s.wait.err.code, MU_CANCELLED);
	WAIT_UNTIL(atomic_load(&p.closed) == 1);
	close_step(&s);
	stop_program(&p, task_end);
}

static void task__without_a_program__finds_no_callback(void **state)
{
	struct wait w = WAIT;
	struct executor *e = compile(py_func_graph());

	run(e, &w, NULL);
	executor_unref(e);
	assert_int_equal(w.err.code, MU_INVALID_ARGUMENT);
	assert_non_null(strstr(w.err.msg, "Could not find callback with key=pyfunc_7"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(result__in_the_reply__is_the_output),
	    cmocka_unit_test(results__of_other_number_or_type__are_rejected),
	    cmocka_unit_test(error__of_the_function__fails_the_step),
	    cmocka_unit_test(malformed_reply__fails_the_step),
	    cmocka_unit_test(cancelled_step__does_not_wait_for_the_function),
	    cmocka_unit_test(task__without_a_program__finds_no_callback),
	};

	return cmocka_run_group_tests(tests, start_runtime, stop_runtime);
}
