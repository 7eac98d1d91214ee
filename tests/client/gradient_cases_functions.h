/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient cases: functions (calls, branches, loops) and tensor lists. */
#ifndef MU_TESTS_CLIENT_GRADIENT_CASES_FUNCTIONS_H
#define MU_TESTS_CLIENT_GRADIENT_CASES_FUNCTIONS_H

#include "muster/function.h"
#include "tests/client/gradient.h"

#define FN(name, body)                                                                             \
	static void name(struct mu_builder *b, void *arg, const struct mu_out *in,                 \
			 struct mu_out *out)                                                       \
	{                                                                                          \
		body;                                                                              \
	}
#define LIKE(...) (const struct mu_out[]){__VA_ARGS__}, MU_COUNT(((struct mu_out[]){__VA_ARGS__}))

/* ---- calls ---- */
FN(twice, (out[0] = mu_mul(b, in[0], in[1]), out[1] = mu_exp(b, in[0])))
static struct mu_out call(struct mu_builder *b, struct mu_out x, struct mu_out y)
{
	return mu_call(b, mu_function_new(b, "twice", twice, NULL, LIKE(x, y), 2), LIKE(x, y));
}
CASE(y_call, call(b, x, values(b, 3, 2, 0)))
CASE(y_call_second, mu_port(call(b, x, values(b, 3, 2, 0)), 1))
CASE(y_call_both, mu_add(b, call(b, x, x), mu_port(call(b, values(b, 3, 2, 1), x), 0)))
FN(calls, out[0] = call(b, in[0], mu_square(b, in[0])))
CASE(y_call_within, mu_call(b, mu_function_new(b, "calls", calls, NULL, LIKE(x), 1), LIKE(x)))
static struct mu_out call_stateful(struct mu_builder *b, struct mu_out x)
{
	struct mu_out y = mu_call(b, mu_function_new(b, "calls", calls, NULL, LIKE(x), 1), LIKE(x));
	const struct mu_attr *f = mu_node_attr(y.node, "f");

	return mu_op(b, "StatefulPartitionedCall", MU_IN(x),
		     MU_ATTRS(MU_A_TYPES("Tout", (enum mu_dtype[]){MU_FLOAT}, 1), {"f", *f}));
}
CASE(y_call_stateful, call_stateful(b, x))

/* ---- branches: one of them does not depend on x ---- */
FN(one_way, out[0] = mu_mul(b, in[0], mu_square(b, in[0])))
FN(other_way, out[0] = mu_identity(b, in[1]))
static struct mu_out branches(struct mu_builder *b, const char *op, struct mu_out x,
			      int branch_index)
{
	struct mu_out y = values(b, 3, 2, 1), o;
	const struct mu_fn *f[] = {mu_function_new(b, "one_way", one_way, NULL, LIKE(x, y), 1),
				   mu_function_new(b, "other_way", other_way, NULL, LIKE(x, y), 1)};

	if (strstr(op, "If"))
		o = mu_if(b, const_bool(b, branch_index == 0), f[0], f[1], LIKE(x, y));
	else
		o = mu_case(b, mu_const_int(b, MU_INT32, branch_index), f, 2, LIKE(x, y));
	return mu_add(b, o, mu_square(b, x)); /* the sum has a gradient in both branches */
}
CASE(y_if, branches(b, "If", x, 0))
CASE(y_if_not, branches(b, "If", x, 1))
CASE(y_case_first, branches(b, "Case", x, 0))
CASE(y_case_last, branches(b, "Case", x, 1))
/* Replaces the op by its stateful form, although the functions are stateless. */
static struct mu_out as_stateful(struct mu_builder *b, struct mu_out o, const char *op)
{
	struct mu_out in[8];

	for (unsigned i = 0; i < o.node->n_inputs; i++)
		in[i] = (struct mu_out){o.node->inputs[i].node, o.node->inputs[i].port};
	return mu_op_add(b, &(struct mu_op_args){.op = op,
						 .in = in,
						 .n_in = o.node->n_inputs,
						 .attrs = o.node->attrs,
						 .n_attrs = o.node->n_attrs});
}
static struct mu_out input_of(struct mu_out o, unsigned i)
{
	return (struct mu_out){o.node->inputs[i].node, o.node->inputs[i].port};
}
CASE(y_if_stateful, as_stateful(b, input_of(branches(b, "If", x, 0), 0), "If"))
CASE(y_case_stateful, as_stateful(b, input_of(branches(b, "Case", x, 0), 0), "Case"))

/* ---- loops: variables i, h, w and the number of iterations ---- */
FN(more, out[0] = mu_op(b, "Less", MU_IN(in[0], in[3])))
FN(recur, struct mu_out product = mu_matmul(b, in[1], in[2]);
   out[0] = mu_add(b, in[0], mu_const_int(b, MU_INT32, 1));
   out[1] = mu_tanh(b, mu_add(b, mu_mul(b, product, mu_const_float(b, 0.2f)),
			      mu_mul(b, mu_cast(b, in[0], MU_FLOAT),
				     mu_mul(b, in[1], mu_const_float(b, 0.3f)))));
   out[2] = in[2]; out[3] = in[3])
static struct mu_out loop(struct mu_builder *b, mu_make body, struct mu_out h, struct mu_out w,
			  int iterations)
{
	struct mu_out zero = mu_const_int(b, MU_INT32, 0),
		      n = mu_const_int(b, MU_INT32, iterations);

	return mu_while(b, mu_function_new(b, "more", more, NULL, LIKE(zero, h, w, n), 1),
			mu_function_new(b, "body", body, NULL, LIKE(zero, h, w, n), 4),
			LIKE(zero, h, w, n));
}
CASE(y_while_state, mu_port(loop(b, recur, x, values(b, 2, 2, 0), 3), 1))
CASE(y_while_weights, mu_port(loop(b, recur, values(b, 3, 2, 0), x, 3), 1))
CASE(y_while_handed_on, mu_port(loop(b, recur, values(b, 3, 2, 0), mu_square(b, x), 2), 2))
CASE(y_while_never, mu_port(loop(b, recur, mu_square(b, x), values(b, 2, 2, 0), 0), 1))
CASE(y_while_stateful,
     mu_port(as_stateful(b, loop(b, recur, x, values(b, 2, 2, 0), 2), "While"), 1))
/* Nested loops with a branch. */
FN(outer, (out[0] = mu_add(b, in[0], mu_const_int(b, MU_INT32, 1)),
	   out[1] = mu_port(loop(b, recur, in[1], in[2], 2), 1), out[2] = in[2], out[3] = in[3]))
CASE(y_while_within, mu_port(loop(b, outer, values(b, 3, 2, 0), x, 2), 1))
FN(odd, out[0] = mu_matmul(b, in[0], in[1]))
FN(even, out[0] = mu_sigmoid(b, in[0]))
static struct mu_out odd_or_even(struct mu_builder *b, struct mu_out i, struct mu_out h,
				 struct mu_out w)
{
	struct mu_out rest = mu_op(b, "FloorMod", MU_IN(i, mu_const_int(b, MU_INT32, 2)));

	return mu_if(b, mu_equal(b, rest, mu_const_int(b, MU_INT32, 1)),
		     mu_function_new(b, "odd", odd, NULL, LIKE(h, w), 1),
		     mu_function_new(b, "even", even, NULL, LIKE(h, w), 1), LIKE(h, w));
}
FN(choosy, (out[0] = mu_add(b, in[0], mu_const_int(b, MU_INT32, 1)),
	    out[1] = odd_or_even(b, in[0], in[1], in[2]), out[2] = in[2], out[3] = in[3]))
CASE(y_while_if, mu_port(loop(b, choosy, values(b, 3, 2, 0), x, 4), 1))
/* The second derivative of a loop: the gradient of its gradient loop. */
static struct mu_out loop_twice(struct mu_builder *b, struct mu_out x)
{
	struct mu_out y = mu_port(loop(b, recur, values(b, 3, 2, 0), x, 3), 1), g;

	mu_gradients(b, mu_square(b, y), &x, 1, &g);
	return g;
}
CASE(y_while_second, loop_twice(b, x))
/* ---- tensor lists ---- */
#define ELEMENTS MU_ATTRS(MU_A_TYPE("element_dtype", MU_FLOAT))
static struct mu_out of_rows(struct mu_builder *b, struct mu_out x, int columns)
{
	return mu_op(b, "TensorListFromTensor", MU_IN(x, ints(b, 1, (int32_t[]){columns})));
}
static struct mu_out stacked(struct mu_builder *b, struct mu_out list)
{
	return mu_op(b, "TensorListStack", MU_IN(list, mu_const_int(b, MU_INT32, -1)), ELEMENTS);
}
static struct mu_out item(struct mu_builder *b, struct mu_out list, int i)
{
	return mu_op(b, "TensorListGetItem",
		     MU_IN(list, mu_const_int(b, MU_INT32, i), mu_const_int(b, MU_INT32, -1)),
		     ELEMENTS);
}
static struct mu_out pushed(struct mu_builder *b, struct mu_out x)
{
	struct mu_out l =
	    mu_op(b, "EmptyTensorList",
		  MU_IN(ints(b, 1, (int32_t[]){2}), mu_const_int(b, MU_INT32, -1)), ELEMENTS);

	for (int i = 0; i < 3; i++)
		l = mu_op(b, "TensorListPushBack",
			  MU_IN(l, mu_mul(b, x, mu_const_float(b, (float)i + 0.5f))));
	return l;
}
/* A loop that copies rows from one list to another. */
FN(walk, struct mu_out taken = mu_op(b, "TensorListGetItem",
				     MU_IN(in[1], in[0], mu_const_int(b, MU_INT32, -1)), ELEMENTS);
   out[0] = mu_add(b, in[0], mu_const_int(b, MU_INT32, 1)); out[1] = in[1];
   out[2] = mu_op(b, "TensorListSetItem", MU_IN(in[2], in[0], mu_mul(b, taken, in[3])));
   out[3] = mu_tanh(b, mu_add(b, in[3], taken)))
FN(walks, out[0] = mu_op(b, "Less", MU_IN(in[0], mu_const_int(b, MU_INT32, 3))))
static struct mu_out lists_in_a_loop(struct mu_builder *b, struct mu_out x)
{
	struct mu_out to =
	    mu_op(b, "TensorListReserve",
		  MU_IN(ints(b, 1, (int32_t[]){2}), mu_const_int(b, MU_INT32, 3)), ELEMENTS);
	struct mu_out vars[] = {mu_const_int(b, MU_INT32, 0), of_rows(b, x, 2), to, row(b, 2)};
	struct mu_out end = mu_while(b, mu_function_new(b, "walks", walks, NULL, vars, 4, 1),
				     mu_function_new(b, "walk", walk, NULL, vars, 4, 4), vars, 4);

	return stacked(b, mu_port(end, 2));
}
CASE(y_while_lists, lists_in_a_loop(b, x))

CASE(y_list_stack, stacked(b, of_rows(b, mu_square(b, x), 2)))
CASE(y_list_push, stacked(b, pushed(b, x)))
static struct mu_out popped(struct mu_builder *b, struct mu_out x)
{
	struct mu_out p = mu_op(b, "TensorListPopBack",
				MU_IN(of_rows(b, x, 2), mu_const_int(b, MU_INT32, -1)), ELEMENTS);

	return mu_mul(b, stacked(b, p), mu_port(p, 1));
}
CASE(y_list_pop, popped(b, x))
static struct mu_out items(struct mu_builder *b, struct mu_out x)
{
	struct mu_out l = of_rows(b, x, 2);

	return mu_mul(b, item(b, l, 0), mu_add(b, item(b, l, 2), item(b, l, 2)));
}
CASE(y_list_get, items(b, x))
CASE(y_list_set,
     stacked(b, mu_op(b, "TensorListSetItem",
		      MU_IN(of_rows(b, values(b, 3, 2, 0), 2), mu_const_int(b, MU_INT32, 1), x))))
CASE(y_list_set_over,
     stacked(b, mu_op(b, "TensorListSetItem",
		      MU_IN(of_rows(b, x, 2), mu_const_int(b, MU_INT32, 1), row(b, 2)))))
CASE(y_list_resize, stacked(b, mu_op(b, "TensorListResize",
				     MU_IN(of_rows(b, x, 2), mu_const_int(b, MU_INT32, 2)))))
CASE(y_list_gather,
     mu_op(b, "TensorListGather",
	   MU_IN(of_rows(b, x, 2), ints(b, 3, (int32_t[]){2, 0, 2}), mu_const_int(b, MU_INT32, -1)),
	   ELEMENTS))
CASE(y_list_scatter,
     stacked(b, mu_op(b, "TensorListScatter",
		      MU_IN(x, ints(b, 3, (int32_t[]){2, 0, 1}), ints(b, 1, (int32_t[]){2})))))
CASE(y_list_scatter2,
     stacked(b, mu_op(b, "TensorListScatterV2",
		      MU_IN(x, ints(b, 3, (int32_t[]){2, 0, 1}), ints(b, 1, (int32_t[]){2}),
			    mu_const_int(b, MU_INT32, 3)))))
static struct mu_out scatter_into(struct mu_builder *b, struct mu_out list, struct mu_out x)
{
	return stacked(b, mu_op(b, "TensorListScatterIntoExistingList",
				MU_IN(list, x, ints(b, 2, (int32_t[]){2, 0}))));
}
CASE(y_list_scatter_into, scatter_into(b, of_rows(b, values(b, 3, 2, 0), 2), x))
CASE(y_list_scatter_over, scatter_into(b, of_rows(b, x, 2), values(b, 2, 2, 0)))
static struct mu_out longs(struct mu_builder *b, int n, const int32_t *v)
{
	return mu_cast(b, ints(b, (unsigned)n, v), MU_INT64);
}
static struct mu_out split(struct mu_builder *b, struct mu_out x)
{
	return mu_op(b, "TensorListSplit",
		     MU_IN(x, ints(b, 2, (int32_t[]){-1, 2}), longs(b, 2, (int32_t[]){1, 3})));
}
CASE(y_list_split, item(b, split(b, x), 1))
CASE(y_list_concat,
     mu_op(b, "TensorListConcatV2",
	   MU_IN(split(b, mu_square(b, x)), ints(b, 2, (int32_t[]){-1, 2}), longs(b, 0, NULL)),
	   ELEMENTS))
static struct mu_out optional(struct mu_builder *b, struct mu_out x)
{
	struct mu_pshape shapes[] = {MU_SHAPE(3, 2), MU_SHAPE(3, 2)};
	struct mu_out o = mu_op(b, "OptionalFromValue", MU_IN(x, mu_square(b, x)));
	struct mu_out v =
	    mu_op(b, "OptionalGetValue", MU_IN(o),
		  MU_ATTRS(MU_A_TYPES("output_types", ((enum mu_dtype[]){MU_FLOAT, MU_FLOAT}), 2),
			   {"output_shapes",
			    {.kind = MU_ATTR_LIST + MU_ATTR_SHAPE, .n = 2, .shapes = shapes}}));

	return mu_mul(b, v, mu_port(v, 1));
}
CASE(y_optional, optional(b, x))

static const struct gradient_case function_cases[] = {
    {"PartitionedCall", {2, {3, 2}}, y_call, -1, 1},
    {"PartitionedCall, its second output", {2, {3, 2}}, y_call_second, -1, 1},
    {"PartitionedCall, twice", {2, {3, 2}}, y_call_both, -1, 1},
    {"PartitionedCall within another", {2, {-1, 2}}, y_call_within, -1, 1},
    {"StatefulPartitionedCall", {2, {3, 2}}, y_call_stateful, -1, 1},
    {"StatelessIf", {2, {3, 2}}, y_if, -1, 1},
    {"StatelessIf, the other way", {2, {3, 2}}, y_if_not, -1, 1},
    {"StatelessCase, the first", {2, {3, 2}}, y_case_first, -1, 1},
    {"StatelessCase, the last", {2, {3, 2}}, y_case_last, -1, 1},
    {"If", {2, {3, 2}}, y_if_stateful, -1, 1},
    {"Case", {2, {3, 2}}, y_case_stateful, -1, 1},
    {"StatelessWhile, what goes round", {2, {3, 2}}, y_while_state, -1, 1},
    {"StatelessWhile, what is handed on", {2, {2, 2}}, y_while_weights, -1, 1},
    {"StatelessWhile, fetched as it was handed on", {2, {2, 2}}, y_while_handed_on, -1, 1},
    {"StatelessWhile that never turns", {2, {3, 2}}, y_while_never, -1, 1},
    {"StatelessWhile of an unknown shape", {2, {-1, 2}}, y_while_state, -1, 1},
    {"While", {2, {3, 2}}, y_while_stateful, -1, 1},
    {"a loop within a loop", {2, {2, 2}}, y_while_within, -1, 1},
    {"a branch within a loop", {2, {2, 2}}, y_while_if, -1, 1},
    {"lists in a loop", {2, {3, 2}}, y_while_lists, -1, 1},
    {"a loop's second derivative", {2, {2, 2}}, y_while_second, -1, 1},
    {"TensorListStack", {2, {3, 2}}, y_list_stack, -1, 1},
    {"TensorListPushBack", {1, {2}}, y_list_push, -1, 1},
    {"TensorListPopBack", {2, {3, 2}}, y_list_pop, -1, 1},
    {"TensorListGetItem", {2, {3, 2}}, y_list_get, -1, 1},
    {"TensorListSetItem", {1, {2}}, y_list_set, -1, 1},
    {"TensorListSetItem, over another", {2, {3, 2}}, y_list_set_over, -1, 1},
    {"TensorListResize", {2, {3, 2}}, y_list_resize, -1, 1},
    {"TensorListGather", {2, {3, 2}}, y_list_gather, -1, 1},
    {"TensorListScatter", {2, {3, 2}}, y_list_scatter, -1, 1},
    {"TensorListScatterV2", {2, {3, 2}}, y_list_scatter2, -1, 1},
    {"TensorListScatterIntoExistingList", {2, {2, 2}}, y_list_scatter_into, -1, 1},
    {"TensorListScatterIntoExistingList, over others", {2, {3, 2}}, y_list_scatter_over, -1, 1},
    {"TensorListSplit", {2, {4, 2}}, y_list_split, -1, 1},
    {"TensorListConcatV2", {2, {4, 2}}, y_list_concat, -1, 1},
    {"Optional", {2, {3, 2}}, y_optional, -1, 1},
};

#endif
