/* SPDX-License-Identifier: Apache-2.0 */
/* Function inlining. Malformed functions must end in an error, not in a crash or an endless graph.
 * tests/compat compares the results with TensorFlow's. */
#include <stdio.h>

#include "lib/base/pb.h"
#include "lib/graph/library.h"
#include "lib/inline/inline.h"
#include "tests/test.h"

/* Adds name(x: float) -> (y: float). Its body is the node inner = op(x); y is the output `ret`. */
static void put_function(struct mu_buf *library, const char *name, const char *op, const char *ret)
{
	size_t f = mu_pb_begin(library, 1), s = mu_pb_begin(library, 1), a;

	mu_pb_put_str(library, 1, name);
	for (uint32_t arg = 2; arg <= 3; arg++) {
		a = mu_pb_begin(library, arg);
		mu_pb_put_str(library, 1, arg == 2 ? "x" : "y");
		mu_pb_put_int(library, 3, MU_FLOAT);
		mu_pb_end(library, a);
	}
	mu_pb_end(library, s);
	a = mu_pb_begin(library, 3);
	mu_pb_put_str(library, 1, "inner");
	mu_pb_put_str(library, 2, op);
	mu_pb_put_str(library, 3, "x");
	size_t attr = mu_pb_begin(library, 5);
	mu_pb_put_str(library, 1, "T");
	size_t value = mu_pb_begin(library, 2);
	mu_pb_put_int(library, 6, MU_FLOAT);
	mu_pb_end(library, value);
	mu_pb_end(library, attr);
	mu_pb_end(library, a);
	a = mu_pb_begin(library, 4);
	mu_pb_put_str(library, 1, "y");
	mu_pb_put_str(library, 2, ret);
	mu_pb_end(library, a);
	/* the tag of this field is the byte '2': a number at the end of `ret` must not include it
	 */
	a = mu_pb_begin(library, 6);
	mu_pb_put_str(library, 1, "inner");
	mu_pb_put_str(library, 2, "inner");
	mu_pb_end(library, a);
	mu_pb_end(library, f);
}

static void put_node(struct mu_buf *g, const char *name, const char *op, const char *in)
{
	size_t n = mu_pb_begin(g, 1);

	mu_pb_put_str(g, 1, name);
	mu_pb_put_str(g, 2, op);
	if (in)
		mu_pb_put_str(g, 3, in);
	size_t attr = mu_pb_begin(g, 5);
	mu_pb_put_str(g, 1, "dtype");
	size_t value = mu_pb_begin(g, 2);
	mu_pb_put_int(g, 6, MU_FLOAT);
	mu_pb_end(g, value);
	mu_pb_end(g, attr);
	mu_pb_end(g, n);
}

static struct mu_graph *graph_of(struct mu_buf *nodes, const struct mu_buf *library)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_err err;

	mu_pb_put_bytes(nodes, 2, mu_buf_span(library));
	assert_ok(mu_graph_parse(g, mu_buf_span(nodes), &err), &err);
	mu_buf_fini(nodes);
	return g;
}

static void call__by_name__becomes_the_nodes_of_the_function(void **state)
{
	MU_AUTO_BUF library = {0};
	struct mu_buf nodes = {0};
	struct mu_err err;

	put_function(&library, "outer", "mine", "inner:y:0");
	put_function(&library, "mine", "Neg", "inner:y:0");
	put_node(&nodes, "in", "Placeholder", NULL);
	put_node(&nodes, "call", "outer", "in");
	put_node(&nodes, "out", "outer", "call");
	MU_AUTO(mu_graph_free) struct mu_graph *g = graph_of(&nodes, &library);
	assert_ok(mu_graph_inline(g, &err), &err);
	assert_int_equal(g->n_nodes, 3);
	const struct mu_node *first = mu_graph_find(g, "call/inner/inner");
	const struct mu_node *second = mu_graph_find(g, "out/inner/inner");
	assert_non_null(first);
	assert_non_null(second);
	assert_string_equal(first->op, "Neg");
	assert_string_equal(first->inputs[0].node->name, "in");
	assert_ptr_equal(second->inputs[0].node, first);
}

/* Adds outer(x: T) -> (y: T), which calls double[T=$T]. */
static void put_polymorphic(struct mu_buf *b)
{
	size_t f = mu_pb_begin(b, 1), s = mu_pb_begin(b, 1), at[6];

	mu_pb_put_str(b, 1, "outer");
	for (uint32_t arg = 2; arg <= 4; arg++) { /* input, output, attribute */
		at[0] = mu_pb_begin(b, arg);
		mu_pb_put_str(b, 1, arg == 2 ? "x" : arg == 3 ? "y" : "T");
		mu_pb_put_str(b, arg == 4 ? 2 : 4, arg == 4 ? "type" : "T");
		mu_pb_end(b, at[0]);
	}
	mu_pb_end(b, s);
	at[0] = mu_pb_begin(b, 3);
	mu_pb_put_str(b, 1, "inner");
	mu_pb_put_str(b, 2, "PartitionedCall");
	mu_pb_put_str(b, 3, "x");
	at[1] = mu_pb_begin(b, 5);
	mu_pb_put_str(b, 1, "f");
	at[2] = mu_pb_begin(b, 2);
	at[3] = mu_pb_begin(b, 10);
	mu_pb_put_str(b, 1, "double");
	at[4] = mu_pb_begin(b, 2);
	mu_pb_put_str(b, 1, "T");
	at[5] = mu_pb_begin(b, 2);
	mu_pb_put_str(b, 9, "T");
	for (int i = 5; i >= 0; i--)
		mu_pb_end(b, at[i]);
	at[0] = mu_pb_begin(b, 4);
	mu_pb_put_str(b, 1, "y");
	mu_pb_put_str(b, 2, "x");
	mu_pb_end(b, at[0]);
	at[0] = mu_pb_begin(b, 6);
	mu_pb_put_str(b, 1, "inner");
	mu_pb_put_str(b, 2, "inner");
	mu_pb_end(b, at[0]);
	mu_pb_end(b, f);
}

static void function_attribute__within_a_function__takes_the_attributes_of_the_call(void **state)
{
	struct mu_node_attr type = {"T", {.kind = MU_ATTR_TYPE, .type = MU_INT64}};
	struct mu_library *l = NULL;
	MU_AUTO_BUF library = {0};
	struct mu_err err;

	put_polymorphic(&library);
	assert_ok(mu_library_extend(&l, mu_buf_span(&library), &err), &err);
	MU_AUTO(mu_graph_free) struct mu_graph *g = NULL;
	assert_ok(mu_library_instantiate(l, mu_library_find(l, "outer"), &type, 1, false, &g, &err),
		  &err);
	const struct mu_attr *f = mu_node_attr(mu_graph_find(g, "inner"), "f");
	assert_int_equal(f->func->attrs[0].value.kind, MU_ATTR_TYPE);
	assert_int_equal(f->func->attrs[0].value.type, MU_INT64);
	mu_library_unref(l);
}

static void library__extended_many_times__has_all_functions(void **state)
{
	enum { MANY = 5000 };
	struct mu_library *l = NULL;
	MU_AUTO_BUF out = {0};
	struct mu_err err;
	char name[16];

	for (int i = 0; i < MANY; i++) {
		MU_AUTO_BUF library = {0};
		snprintf(name, sizeof name, "f%d", i);
		put_function(&library, name, "Neg", "inner:y:0");
		assert_ok(mu_library_extend(&l, mu_buf_span(&library), &err), &err);
		MU_AUTO_BUF other = {0};
		put_function(&other, "f0", "Abs", "inner:y:0");
		assert_fails(mu_library_extend(&l, mu_buf_span(&other), &err), &err,
			     MU_INVALID_ARGUMENT, "Cannot add function 'f0'");
	}
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "f%d", i);
		assert_non_null(mu_library_find(l, name));
	}
	mu_library_write(l, &out);
	assert_int_equal(mu_pb_count(mu_buf_span(&out), 1), MANY);
	mu_library_unref(l);
}

/* A function of two nodes with three attributes, in the order of `reversed`. */
static void put_with_maps(struct mu_buf *library, bool reversed, const char *third_attr,
			  int64_t value, const char *input)
{
	size_t f = mu_pb_begin(library, 1), s = mu_pb_begin(library, 1);

	mu_pb_put_str(library, 1, "f");
	mu_pb_end(library, s);
	for (int i = 0; i < 2; i++) {
		size_t n = mu_pb_begin(library, 3);
		mu_pb_put_str(library, 1, i == reversed ? "one" : "two");
		mu_pb_put_str(library, 3, input);
		mu_pb_put_str(library, 3, "y");
		for (int k = 0; k < 3; k++) {
			const char *names[] = {"T", "U", third_attr};
			int which = reversed ? 2 - k : k;
			size_t attr = mu_pb_begin(library, 5);
			mu_pb_put_str(library, 1, names[which]);
			size_t v = mu_pb_begin(library, 2);
			mu_pb_put_int(library, 3, which == 2 ? value : 1);
			mu_pb_end(library, v);
			mu_pb_end(library, attr);
		}
		mu_pb_end(library, n);
	}
	mu_pb_end(library, f);
}

static void function__defined_again__must_be_the_same(void **state)
{
	static const struct {
		const char *third_attr, *input;
		int64_t value;
		bool reversed, is_same;
	} cases[] = {{"V", "x", 1, false, true},  {"V", "x", 1, true, true},
		     {"V", "x", 2, false, false}, {"V", "x", 2, true, false},
		     {"W", "x", 1, true, false},  {"V", "y", 1, true, false}};
	struct mu_library *l = NULL;
	MU_AUTO_BUF first = {0};
	struct mu_err err;

	put_with_maps(&first, false, "V", 1, "x");
	assert_ok(mu_library_extend(&l, mu_buf_span(&first), &err), &err);
	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_BUF next = {0};
		put_with_maps(&next, cases[i].reversed, cases[i].third_attr, cases[i].value,
			      cases[i].input);
		if (cases[i].is_same)
			assert_ok(mu_library_extend(&l, mu_buf_span(&next), &err), &err);
		else
			assert_fails(mu_library_extend(&l, mu_buf_span(&next), &err), &err,
				     MU_INVALID_ARGUMENT,
				     "Cannot add function 'f' because a different function with "
				     "the same name already exists.");
	}
	mu_library_unref(l);
}

static void recursive_function__is_rejected(void **state)
{
	MU_AUTO_BUF library = {0};
	struct mu_buf nodes = {0};
	struct mu_err err;

	put_function(&library, "again", "again", "inner:y:0");
	put_node(&nodes, "in", "Placeholder", NULL);
	put_node(&nodes, "call", "again", "in");
	MU_AUTO(mu_graph_free) struct mu_graph *g = graph_of(&nodes, &library);
	assert_fails(mu_graph_inline(g, &err), &err, MU_UNIMPLEMENTED, "may be recursive");
}

static void function_calls__in_a_cycle__are_rejected(void **state)
{
	MU_AUTO_BUF library = {0};
	struct mu_buf nodes = {0};
	struct mu_err err;

	put_function(&library, "same", "Neg", "x");
	put_node(&nodes, "one", "same", "two");
	put_node(&nodes, "two", "same", "one");
	put_node(&nodes, "end", "Identity", "one");
	MU_AUTO(mu_graph_free) struct mu_graph *g = graph_of(&nodes, &library);
	assert_fails(mu_graph_inline(g, &err), &err, MU_INVALID_ARGUMENT, "form a cycle");
}

static void function_body__with_an_unknown_output__is_invalid(void **state)
{
	static const char *const rets[] = {"nobody:y:0", "inner:z:0", "inner:y:x", "inner:y:7", ""};

	for (unsigned i = 0; i < MU_COUNT(rets); i++) {
		MU_AUTO_BUF library = {0};
		struct mu_buf nodes = {0};
		struct mu_err err;
		put_function(&library, "bad", "Neg", rets[i]);
		put_node(&nodes, "in", "Placeholder", NULL);
		put_node(&nodes, "call", "bad", "in");
		put_node(&nodes, "out", "bad", "call");
		MU_AUTO(mu_graph_free) struct mu_graph *g = graph_of(&nodes, &library);
		int rc = mu_graph_inline(g, &err);
		assert_true(rc < 0 || i == 3); /* a later check finds an invalid output index */
	}
}

/* Inlining uses the ops _Arg and _Retval for arguments and results. */
static void function_body__with_args_or_retvals__is_invalid(void **state)
{
	static const char *const ops[] = {"_Arg", "_Retval"};

	for (unsigned i = 0; i < MU_COUNT(ops); i++) {
		MU_AUTO_BUF library = {0};
		struct mu_buf nodes = {0};
		struct mu_err err;
		put_function(&library, "bad", ops[i], "x");
		put_node(&nodes, "in", "Placeholder", NULL);
		put_node(&nodes, "call", "bad", "in");
		MU_AUTO(mu_graph_free) struct mu_graph *g = graph_of(&nodes, &library);
		assert_fails(mu_graph_inline(g, &err), &err, MU_INVALID_ARGUMENT,
			     "node 'inner': a function may not have the op _");
	}
}

/* Adds a node with the function "f" in the attribute `attr` and one type in each list attribute of
 * `lists`. Its inputs are `n_firsts` times the placeholder "first" of type `first`, then "in". */
static struct mu_node *add_call(struct mu_graph *g, const char *op, const char *attr,
				const char *const *lists, unsigned n_firsts, enum mu_dtype first)
{
	struct mu_func f = {.name = "f"};
	struct mu_attr func = {.kind = MU_ATTR_FUNC, .func = &f};
	enum mu_dtype one = MU_FLOAT;
	struct mu_attr types = {.kind = MU_ATTR_LIST + MU_ATTR_TYPE, .n = 1, .types = &one};
	struct mu_attr dtype = {.kind = MU_ATTR_TYPE, .type = first};
	struct mu_input in[8];
	struct mu_node *n;

	assert_int_equal(mu_graph_add(g, "first", "Placeholder", &n, NULL), 0);
	mu_node_set_attr(g, n, "dtype", &dtype);
	for (unsigned i = 0; i < n_firsts; i++)
		in[i] = (struct mu_input){n, 0};
	in[n_firsts] = (struct mu_input){mu_graph_find(g, "in"), 0};
	assert_int_equal(mu_graph_add(g, "call", op, &n, NULL), 0);
	mu_node_set_attr(g, n, attr, &func);
	for (; *lists; lists++)
		mu_node_set_attr(g, n, *lists, &types);
	mu_node_set_inputs(g, n, in, n_firsts + 1, NULL, 0);
	return n;
}

static void remote_call__to_a_computed_device__is_unimplemented(void **state)
{
	static const char *const lists[] = {"Tin", "Tout", NULL};
	MU_AUTO_BUF library = {0};
	struct mu_buf nodes = {0};
	struct mu_err err;

	put_function(&library, "f", "Neg", "inner:y:0");
	put_node(&nodes, "in", "Placeholder", NULL);
	MU_AUTO(mu_graph_free) struct mu_graph *g = graph_of(&nodes, &library);
	add_call(g, "RemoteCall", "f", lists, 1, MU_STRING);
	assert_fails(mu_graph_inline(g, &err), &err, MU_UNIMPLEMENTED,
		     "must be a constant string here, not an output of Placeholder 'first'");
}

static void remote_call__to_a_device_given_by_an_argument__runs_on_the_default_device(void **state)
{
	static const char *const lists[] = {"Tin", "Tout", NULL};
	MU_AUTO_BUF library = {0};
	struct mu_buf nodes = {0};
	struct mu_node *target;
	struct mu_err err;

	put_function(&library, "f", "Neg", "inner:y:0");
	put_node(&nodes, "in", "Placeholder", NULL);
	MU_AUTO(mu_graph_free) struct mu_graph *g = graph_of(&nodes, &library);
	struct mu_node *call = add_call(g, "RemoteCall", "f", lists, 1, MU_STRING);
	assert_int_equal(mu_graph_add(g, "target", "_Arg", &target, &err), 0);
	struct mu_attr type = {.kind = MU_ATTR_TYPE, .type = MU_STRING};
	struct mu_attr index = {.kind = MU_ATTR_INT};
	mu_node_set_attr(g, target, "T", &type);
	mu_node_set_attr(g, target, "index", &index);
	call->inputs[0].node = target;
	mu_node_set_device(g, call, "/job:worker/task:0/device:CPU:1");
	assert_ok(mu_graph_inline(g, &err), &err);
	assert_non_null(mu_graph_find(g, "call/inner"));
	assert_string_equal(mu_graph_find(g, "call/inner")->device, "");
}

static void remote_call__to_a_constant_device__runs_on_that_device(void **state)
{
	static const char *const lists[] = {"Tin", "Tout", NULL};
	MU_AUTO_BUF library = {0};
	struct mu_buf nodes = {0};
	struct mu_node *target;
	struct mu_tensor name;
	struct mu_err err;

	put_function(&library, "f", "Neg", "inner:y:0");
	put_node(&nodes, "in", "Placeholder", NULL);
	MU_AUTO(mu_graph_free) struct mu_graph *g = graph_of(&nodes, &library);
	struct mu_node *call = add_call(g, "RemoteCall", "f", lists, 1, MU_STRING);
	assert_int_equal(mu_graph_add(g, "target", "Const", &target, &err), 0);
	assert_int_equal(mu_tensor_string(&name, "/job:ps/task:1", 14, &err), 0);
	struct mu_attr value = {.kind = MU_ATTR_TENSOR, .tensor = &name};
	struct mu_attr dtype = {.kind = MU_ATTR_TYPE, .type = MU_STRING};
	mu_node_set_attr(g, target, "value", &value);
	mu_node_set_attr(g, target, "dtype", &dtype);
	mu_tensor_unref(&name);
	call->inputs[0].node = target;
	mu_node_set_device(g, call, "/job:worker/task:0");
	assert_ok(mu_graph_inline(g, &err), &err);
	assert_non_null(mu_graph_find(g, "call/inner"));
	assert_string_equal(mu_graph_find(g, "call/inner")->device, "/job:ps/task:1");
}

static void for_loop__becomes_nodes_and_a_check(void **state)
{
	static const char *const lists[] = {"T", NULL};
	MU_AUTO_BUF library = {0};
	struct mu_buf nodes = {0};
	struct mu_err err;

	put_function(&library, "f", "Neg", "inner:y:0");
	put_node(&nodes, "in", "Placeholder", NULL);
	MU_AUTO(mu_graph_free) struct mu_graph *g = graph_of(&nodes, &library);
	add_call(g, "For", "body", lists, 3, MU_INT32);
	assert_ok(mu_graph_inline(g, &err), &err);
	assert_null(mu_graph_find(g, "call"));
	assert_string_equal(mu_graph_find(g, "call/check_0")->op, "Assert");
	assert_string_equal(mu_graph_find(g, "call/exit_3")->op, "Exit");
	assert_null(mu_graph_find(g, "call/exit_4"));
}

/* Inlines the SymbolicGradient of f(x: float) -> (y: float) = op(x). */
static int inline_gradient(const char *op, const char *ret, struct mu_graph **g, struct mu_err *err)
{
	MU_AUTO_BUF library = {0};
	struct mu_buf nodes = {0};
	enum mu_dtype two[] = {MU_FLOAT, MU_FLOAT};
	struct mu_attr types = {.kind = MU_ATTR_LIST + MU_ATTR_TYPE, .n = 2, .types = two};
	static const char *const lists[] = {"Tout", NULL};

	put_function(&library, "f", op, ret);
	put_node(&nodes, "in", "Placeholder", NULL);
	*g = graph_of(&nodes, &library);
	struct mu_node *call = add_call(*g, "SymbolicGradient", "f", lists, 1, MU_FLOAT);
	mu_node_set_attr(*g, call, "Tin", &types);
	return mu_graph_inline(*g, err);
}

static void gradient__becomes_the_nodes_that_compute_it(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = NULL;
	struct mu_err err;

	assert_ok(inline_gradient("Neg", "inner:y:0", &g, &err), &err);
	assert_null(mu_graph_find(g, "call"));
	assert_int_equal(g->n_nodes, 2); /* "in" and the gradient, which does not use "first" */
	assert_string_equal(g->nodes[1]->op, "Neg");
	assert_string_equal(g->nodes[1]->inputs[0].node->name, "in");
}

static void gradient__of_an_op_without_gradient__is_rejected(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = NULL;
	struct mu_err err;

	assert_fails(inline_gradient("NextIteration", "inner:output:0", &g, &err), &err,
		     MU_UNIMPLEMENTED,
		     "gradient of function f: op NextIteration (node 'inner') has no gradient");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(call__by_name__becomes_the_nodes_of_the_function),
	    cmocka_unit_test(
		function_attribute__within_a_function__takes_the_attributes_of_the_call),
	    cmocka_unit_test(library__extended_many_times__has_all_functions),
	    cmocka_unit_test(function__defined_again__must_be_the_same),
	    cmocka_unit_test(recursive_function__is_rejected),
	    cmocka_unit_test(function_calls__in_a_cycle__are_rejected),
	    cmocka_unit_test(function_body__with_an_unknown_output__is_invalid),
	    cmocka_unit_test(function_body__with_args_or_retvals__is_invalid),
	    cmocka_unit_test(remote_call__to_a_computed_device__is_unimplemented),
	    cmocka_unit_test(remote_call__to_a_constant_device__runs_on_that_device),
	    cmocka_unit_test(
		remote_call__to_a_device_given_by_an_argument__runs_on_the_default_device),
	    cmocka_unit_test(for_loop__becomes_nodes_and_a_check),
	    cmocka_unit_test(gradient__becomes_the_nodes_that_compute_it),
	    cmocka_unit_test(gradient__of_an_op_without_gradient__is_rejected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
