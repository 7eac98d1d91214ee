/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "task/runtime/trace.h"
#include "tests/task/run_step.h"

static void executor__of_a_small_graph__runs_many_times(void **state)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "a", 3, "");
	scalar(g, "b", 4, "");
	floats(g, "m", "Mul", "a b", "");
	floats(g, "s", "Add", "m m", "");
	end(g, "send", "_Send", "s", "out");
	struct executor *e = compile(g);
	for (int i = 0; i < 20; i++)
		assert_float_equal(run_scalar(e), 24, 0);
	executor_unref(e);
}

static void trace__of_a_step__lists_each_node_with_its_inputs(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct step_trace *t = step_trace_new(NULL);
	MU_AUTO_BUF b = {0};

	scalar(g, "a", 3, "cpu");
	floats(g, "m", "Mul", "a a ^a", "cpu");
	end(g, "send", "_Send", "m", "out");
	struct one_step s = open_step(g);
	s.step = executor_start(s.executor, s.rendezvous, t, NULL, on_done, &s.wait);
	wait_done(&s.wait);
	step_trace_write(t, &b);
	assert_non_null(memmem(b.data, b.len, "a = Const()", 11));
	assert_non_null(memmem(b.data, b.len, "m = Mul(a, a, ^a)", 17));
	assert_null(memmem(b.data, b.len, "_Send", 5));
	step_trace_free(t);
	close_step(&s);
}

static void step__that_receives__waits_for_the_tensor(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct got got = {0};
	struct mu_tensor t;
	struct mu_err err = {0};
	float two = 2;

	end(g, "in", "_Recv", "", "in");
	floats(g, "sq", "Mul", "in in", "");
	end(g, "send", "_Send", "sq", "out");
	struct one_step s = open_step(g);
	start_step(&s);
	assert_int_equal(s.wait.calls, 0);
	assert_ok(mu_tensor_scalar(&t, MU_FLOAT, &two, &err), &err);
	assert_ok(rendezvous_send(s.rendezvous, EDGE_KEY("in"), t, false, &err), &err);
	rendezvous_recv_local(s.rendezvous, EDGE_KEY("out"), on_tensor, &got);
	wait_done(&s.wait);
	assert_int_equal(got.calls, 1);
	assert_float_equal(MU_DATA(float, &got.tensor)[0], 4, 0);
	mu_tensor_unref(&got.tensor);
	close_step(&s);
}

static void recv__of_another_type__fails_the_step(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_tensor t;
	struct mu_err err = {0};
	int32_t two = 2;

	end(g, "in", "_Recv", "", "in");
	struct one_step s = open_step(g);
	assert_ok(mu_tensor_scalar(&t, MU_INT32, &two, &err), &err);
	assert_ok(rendezvous_send(s.rendezvous, EDGE_KEY("in"), t, false, &err), &err);
	start_step(&s);
	wait_done(&s.wait);
	assert_int_equal(s.wait.err.code, MU_INTERNAL);
	assert_non_null(strstr(s.wait.err.msg, "[[{{node in}}]]"));
	close_step(&s);
}

static void cancel__of_a_step_that_waits__ends_it_once_with_the_reason(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_err why = {MU_CANCELLED, "enough"};

	end(g, "in", "_Recv", "", "in");
	floats(g, "sq", "Mul", "in in", "");
	end(g, "send", "_Send", "sq", "out");
	struct one_step s = open_step(g);
	start_step(&s);
	step_cancel(s.step, &why);
	step_cancel(s.step, &why);
	wait_done(&s.wait);
	assert_int_equal(s.wait.err.code, MU_CANCELLED);
	assert_string_equal(s.wait.err.msg, "enough");
	close_step(&s);
}

static void kernel_error__names_the_node_and_fails_pending_receives(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct wait w = WAIT;
	struct got got = {0};
	struct mu_node *p = node(g, "x", "Placeholder", "", "");

	attr_type(g, p, "dtype", MU_FLOAT);
	end(g, "in", "_Recv", "", "in");
	floats(g, "s", "Add", "x in", "");
	end(g, "send", "_Send", "s", "out");
	struct executor *e = compile(g);
	run(e, &w, &got);
	assert_int_equal(w.err.code, MU_INVALID_ARGUMENT);
	assert_non_null(strstr(w.err.msg, "You must feed a value for placeholder tensor 'x'"));
	assert_non_null(strstr(w.err.msg, "\n\t [[{{node x}}]]"));
	assert_int_equal(got.calls, 1);
	assert_int_equal(got.err.code, MU_INVALID_ARGUMENT);
	executor_unref(e);
}

static int fail_without_code(struct kernel_call *c, struct mu_err *err)
{
	return -1;
}

static int wrap_without_code(struct kernel_call *c, struct mu_err *err)
{
	return mu_wrap(err, "%s", c->node->op);
}

static void start_without_code(struct kernel_call *c)
{
	static const struct mu_err none = {0};

	kernel_finish(c, &none);
}

static const struct kernel *find_broken(const char *op)
{
	static const struct kernel rows[] = {{"Neg", .run = fail_without_code},
					     {"Abs", .run = wrap_without_code},
					     {"Sign", .start = start_without_code}};

	for (unsigned i = 0; i < MU_COUNT(rows); i++)
		if (strcmp(op, rows[i].op) == 0)
			return &rows[i];
	return task_kernels.find(op);
}

static void kernel__that_fails_without_a_code__is_an_internal_error(void **state)
{
	static const char *const ops[] = {"Neg", "Abs", "Sign"};
	struct kernel_registry broken = task_kernels;

	broken.find = find_broken;
	rt->kernels = &broken;
	for (unsigned i = 0; i < MU_COUNT(ops); i++) {
		struct mu_graph *g = mu_graph_new();
		scalar(g, "a", 3, "");
		floats(g, "x", ops[i], "a", "");
		end(g, "send", "_Send", "x", "out");
		struct one_step s = open_step(g);
		start_step(&s);
		wait_done(&s.wait);
		assert_int_equal(s.wait.err.code, MU_INTERNAL);
		assert_non_null(strstr(s.wait.err.msg, ops[i]));
		assert_non_null(strstr(s.wait.err.msg, "failed without an error code"));
		assert_non_null(strstr(s.wait.err.msg, "[[{{node x}}]]"));
		close_step(&s);
	}
	rt->kernels = &task_kernels;
}

/* pred ? a * 2 : a + 10 */
static struct executor *cond_graph(bool pred)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_node *n;

	scalar(g, "a", 5, "");
	constant(g, "pred", MU_BOOL, &pred, "", "");
	floats(g, "sw", "Switch", "a pred", "");
	scalar(g, "two", 2, "");
	scalar(g, "ten", 10, "");
	floats(g, "mul", "Mul", "sw:1 two", "");
	floats(g, "add", "Add", "sw:0 ten", "");
	/* one of the control inputs is dead */
	n = floats(g, "merge", "Merge", "add mul ^add ^mul", "");
	attr_int(g, n, "N", 2);
	end(g, "send", "_Send", "merge", "out");
	return compile(g);
}

static void merge__takes_the_live_input(void **state)
{
	struct executor *e = cond_graph(true), *f = cond_graph(false);

	for (int i = 0; i < 3; i++) {
		assert_float_equal(run_scalar(e), 10, 0);
		assert_float_equal(run_scalar(f), 15, 0);
	}
	executor_unref(e);
	executor_unref(f);
}

static void send__of_a_dead_tensor__marks_it_dead(void **state)
{
	struct mu_graph *g = mu_graph_new();
	bool no = false;
	struct wait w = WAIT;
	struct got got = {0};

	scalar(g, "a", 5, "");
	constant(g, "pred", MU_BOOL, &no, "", "");
	floats(g, "sw", "Switch", "a pred", "");
	floats(g, "id", "Identity", "sw:1", "");
	end(g, "send", "_Send", "id", "out");
	struct executor *e = compile(g);
	run(e, &w, &got);
	assert_int_equal(w.err.code, 0);
	assert_int_equal(got.calls, 1);
	assert_true(got.dead);
	executor_unref(e);
}

static void recv__of_a_dead_tensor__makes_its_control_outputs_dead(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct wait w = WAIT;
	struct got got = {0};
	struct mu_err err = {0};
	float one = 1;

	end(g, "in", "_Recv", "", "in");
	constant(g, "c", MU_FLOAT, &one, "^in", "");
	end(g, "send", "_Send", "c", "out");
	struct executor *e = compile(g);
	struct rendezvous *r = rendezvous_table_get(rt->steps, next_step);
	assert_ok(rendezvous_send(r, EDGE_KEY("in"), (struct mu_tensor){0}, true, &err), &err);
	rendezvous_unref(r);
	run(e, &w, &got);
	assert_int_equal(w.err.code, 0);
	assert_int_equal(got.calls, 1);
	assert_true(got.dead);
	executor_unref(e);
}

/* while (i < limit) i = i + step, `step` being a loop constant. */
static struct mu_graph *loop_graph(float limit)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_err err = {0};
	struct mu_node *n, *merge;
	struct mu_input in[2];
	struct mu_attr yes = {.kind = MU_ATTR_BOOL, .b = true};

	scalar(g, "zero", 0, "");
	scalar(g, "by", 1.5f, "");
	scalar(g, "limit", limit, "");
	static const char *const enters[][2] = {
	    {"e_i", "zero"}, {"e_by", "by"}, {"e_limit", "limit"}};
	for (int i = 0; i < 3; i++) {
		n = floats(g, enters[i][0], "Enter", enters[i][1], "");
		attr_string(g, n, "frame_name", "loop");
		if (i)
			mu_node_set_attr(g, n, "is_constant", &yes);
	}
	merge = floats(g, "merge", "Merge", "e_i", "");
	attr_int(g, merge, "N", 2);
	floats(g, "less", "Less", "merge e_limit", "");
	node(g, "cond", "LoopCond", "less", "");
	floats(g, "sw", "Switch", "merge cond", "");
	floats(g, "body", "Add", "sw:1 e_by", "");
	floats(g, "next", "NextIteration", "body", "");
	floats(g, "exit", "Exit", "sw:0", "");
	end(g, "send", "_Send", "exit", "out");
	assert_ok(mu_graph_resolve(g, "e_i", &in[0], &err), &err);
	assert_ok(mu_graph_resolve(g, "next", &in[1], &err), &err);
	mu_node_set_inputs(g, merge, in, 2, NULL, 0);
	return g;
}

static void while_loop__runs_until_its_condition_fails(void **state)
{
	struct executor *e = compile(loop_graph(1000)), *none = compile(loop_graph(-1));

	for (int i = 0; i < 3; i++) {
		assert_float_equal(run_scalar(e), 1000.5, 0);
		assert_float_equal(run_scalar(none), 0, 0);
	}
	executor_unref(e);
	executor_unref(none);
}

/* A loop without a Switch: Exit runs in every iteration. */
static void exit__in_two_iterations__fails_the_step(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_err err = {0};
	struct wait w = WAIT;
	struct got got = {0};
	struct mu_node *merge;
	struct mu_input in[2];

	scalar(g, "zero", 0, "");
	attr_string(g, floats(g, "enter", "Enter", "zero", ""), "frame_name", "loop");
	merge = floats(g, "merge", "Merge", "enter", "");
	attr_int(g, merge, "N", 2);
	floats(g, "next", "NextIteration", "merge", "");
	floats(g, "exit", "Exit", "merge", "");
	end(g, "send", "_Send", "exit", "out");
	assert_ok(mu_graph_resolve(g, "enter", &in[0], &err), &err);
	assert_ok(mu_graph_resolve(g, "next", &in[1], &err), &err);
	mu_node_set_inputs(g, merge, in, 2, NULL, 0);
	struct executor *e = compile(g);
	run(e, &w, &got);
	assert_int_equal(w.err.code, MU_INVALID_ARGUMENT);
	assert_non_null(strstr(w.err.msg, "Exit has values in two iterations of 'loop'"));
	executor_unref(e);
	mu_tensor_unref(&got.tensor);
}

static void compile__of_an_invalid_graph__fails(void **state)
{
	struct mu_err err = {0};
	struct executor *e = NULL;
	struct mu_graph *g = mu_graph_new();

	node(g, "n", "NoSuchOp", "", "");
	assert_fails(executor_new(rt, g, "", &e, &err), &err, MU_NOT_FOUND,
		     "Op type not registered 'NoSuchOp' in binary running on");
	g = mu_graph_new();
	scalar(g, "a", 1, "");
	floats(g, "m", "Mul", "a", "");
	assert_fails(executor_new(rt, g, "", &e, &err), &err, MU_INVALID_ARGUMENT, "2 inputs");
	g = mu_graph_new();
	scalar(g, "a", 1, "");
	floats(g, "m", "Mul", "a a:7", "");
	assert_fails(executor_new(rt, g, "", &e, &err), &err, MU_INVALID_ARGUMENT, "a:7");
	g = mu_graph_new();
	int32_t one = 1;
	constant(g, "a", MU_INT32, &one, "", "");
	floats(g, "m", "Mul", "a a", "");
	assert_fails(executor_new(rt, g, "", &e, &err), &err, MU_INVALID_ARGUMENT, "int32");
	g = mu_graph_new();
	struct mu_node *x = floats(g, "x", "Identity", "", "");
	struct mu_input in = {x, 0};
	mu_node_set_inputs(g, x, &in, 1, NULL, 0);
	assert_fails(executor_new(rt, g, "", &e, &err), &err, MU_INVALID_ARGUMENT, "cycle");
}

/* A variable of one float. */
static void variable(struct mu_graph *g, const char *name)
{
	struct mu_pshape any = {.rank = 0};
	struct mu_attr shape = {.kind = MU_ATTR_SHAPE, .shape = &any};
	struct mu_node *v = node(g, name, "VariableV2", "", "");

	attr_type(g, v, "dtype", MU_FLOAT);
	mu_node_set_attr(g, v, "shape", &shape);
}

static void variable__unset_then_assigned__is_read_by_value(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct wait w = WAIT;
	struct got got = {0};

	variable(g, "v");
	floats(g, "v/read", "Identity", "v", "");
	end(g, "send", "_Send", "v/read", "out");
	struct executor *read = compile(g);
	run(read, &w, &got);
	assert_int_equal(w.err.code, MU_FAILED_PRECONDITION);
	assert_string_equal(w.err.msg,
			    "Attempting to use uninitialized value v\n\t [[{{node v/read}}]]");
	g = mu_graph_new();
	variable(g, "v");
	scalar(g, "seven", 7, "");
	floats(g, "assign", "Assign", "v seven", "");
	struct executor *assign = compile(g);
	struct wait again = WAIT;
	run(assign, &again, NULL);
	if (again.err.code)
		fail_msg("%s", again.err.msg);
	assert_float_equal(run_scalar(read), 7, 0);
	executor_unref(read);
	executor_unref(assign);
}

/* Both products read the old value of w.  `new`, which becomes ready with them, leads to its
 * assignment. */
static void nodes__that_become_ready_together__run_before_their_successors(void **state)
{
	struct mu_graph *g = mu_graph_new();

	variable(g, "w");
	scalar(g, "two", 2, "");
	floats(g, "initial", "Assign", "w two", "");
	floats(g, "read", "Identity", "w ^initial", "");
	floats(g, "ready", "Neg", "two ^read", "");
	floats(g, "before", "Mul", "ready read", "");
	floats(g, "new", "Neg", "ready", "");
	floats(g, "after", "Mul", "ready read", "");
	scalar(g, "seven", 7, "");
	floats(g, "seven_more", "Add", "new seven", "");
	floats(g, "assign", "Assign", "w seven_more", "");
	floats(g, "sum", "Add", "before after ^assign", "");
	end(g, "send", "_Send", "sum", "out");
	struct executor *e = compile(g);
	assert_float_equal(run_scalar(e), -8, 0);
	executor_unref(e);
}

/* `in` has arrived when the step starts, and its assignment overwrites the value of `read`. */
static void nodes__that_are_ready__run_before_the_successors_of_a_receive(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct got got = {0};
	struct mu_tensor t;
	struct mu_err err = {0};
	float seven = 7;

	variable(g, "w");
	scalar(g, "two", 2, "");
	floats(g, "initial", "Assign", "w two", "");
	floats(g, "read", "Identity", "w ^initial", "");
	floats(g, "negative", "Neg", "read", "");
	end(g, "send", "_Send", "negative", "out");
	end(g, "in", "_Recv", "", "in");
	floats(g, "assign", "Assign", "w in ^initial", "");
	struct one_step s = open_step(g);
	assert_ok(mu_tensor_scalar(&t, MU_FLOAT, &seven, &err), &err);
	assert_ok(rendezvous_send(s.rendezvous, EDGE_KEY("in"), t, false, &err), &err);
	start_step(&s);
	rendezvous_recv_local(s.rendezvous, EDGE_KEY("out"), on_tensor, &got);
	wait_done(&s.wait);
	assert_float_equal(MU_DATA(float, &got.tensor)[0], -2, 0);
	mu_tensor_unref(&got.tensor);
	close_step(&s);
}

/* Many threads start the same exec graph at once. */
static _Atomic int hammered;

static void count_done(void *arg, const struct mu_err *err)
{
	if (!err)
		atomic_fetch_add(&hammered, 1);
}

static void *run_many_steps(void *arg)
{
	struct executor *e = arg;
	static _Atomic int64_t id = 1000000;

	for (int i = 0; i < 200; i++) {
		int64_t step = atomic_fetch_add(&id, 1);
		struct rendezvous *r = rendezvous_table_get(rt->steps, step);
		struct step *s = executor_start(e, r, NULL, NULL, count_done, NULL);
		step_unref(s);
		rendezvous_unref(r);
		rendezvous_table_drop(rt->steps, step, NULL);
	}
	return NULL;
}

static void steps__from_many_threads__do_not_disturb_each_other(void **state)
{
	struct mu_graph *g = loop_graph(20);
	struct executor *e;
	pthread_t t[4];

	floats(g, "extra", "Mul", "exit zero", "");
	e = compile(g);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, run_many_steps, e), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(hammered, 800);
	executor_unref(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(executor__of_a_small_graph__runs_many_times),
	    cmocka_unit_test(trace__of_a_step__lists_each_node_with_its_inputs),
	    cmocka_unit_test(step__that_receives__waits_for_the_tensor),
	    cmocka_unit_test(recv__of_another_type__fails_the_step),
	    cmocka_unit_test(cancel__of_a_step_that_waits__ends_it_once_with_the_reason),
	    cmocka_unit_test(kernel_error__names_the_node_and_fails_pending_receives),
	    cmocka_unit_test(kernel__that_fails_without_a_code__is_an_internal_error),
	    cmocka_unit_test(merge__takes_the_live_input),
	    cmocka_unit_test(send__of_a_dead_tensor__marks_it_dead),
	    cmocka_unit_test(recv__of_a_dead_tensor__makes_its_control_outputs_dead),
	    cmocka_unit_test(while_loop__runs_until_its_condition_fails),
	    cmocka_unit_test(exit__in_two_iterations__fails_the_step),
	    cmocka_unit_test(compile__of_an_invalid_graph__fails),
	    cmocka_unit_test(variable__unset_then_assigned__is_read_by_value),
	    cmocka_unit_test(nodes__that_become_ready_together__run_before_their_successors),
	    cmocka_unit_test(nodes__that_are_ready__run_before_the_successors_of_a_receive),
	    cmocka_unit_test(steps__from_many_threads__do_not_disturb_each_other),
	};
	return cmocka_run_group_tests(tests, start_runtime, stop_runtime);
}
