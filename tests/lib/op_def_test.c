/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "lib/graph/graph.h"
#include "lib/ops/op_def.h"

static void op_table__every_row__is_parsed(void **state)
{
	unsigned n = 0;

	while (mu_op_at(n))
		n++;
	assert_int_equal(n, mu_op_rows());
}

static void op_table__matmul__has_its_attributes_and_defaults(void **state)
{
	const struct mu_op_def *op = mu_op_find("MatMul");

	assert_non_null(op);
	assert_int_equal(op->n_inputs, 2);
	assert_int_equal(op->n_outputs, 1);
	assert_int_equal(op->inputs[1].kind, MU_ARG_ATTR);
	assert_string_equal(op->inputs[1].type_attr, "T");
	const struct mu_attr_def *a = mu_op_attr(op, "transpose_b");
	assert_true(a && a->has_default && a->kind == MU_ATTR_BOOL && !a->value.b);
	assert_false(mu_op_attr(op, "T")->has_default);
	assert_null(mu_op_attr(op, "nothing"));
}

static void op_table__list_and_ref_arguments__are_parsed(void **state)
{
	const struct mu_op_def *merge = mu_op_find("RefMerge"), *save = mu_op_find("SaveV2");

	assert_int_equal(merge->inputs[0].kind, MU_ARG_REPEAT);
	assert_true(merge->inputs[0].is_ref);
	assert_string_equal(merge->inputs[0].number_attr, "N");
	assert_int_equal(merge->outputs[1].type, MU_INT32);
	assert_int_equal(save->inputs[3].kind, MU_ARG_TYPE_LIST);
	assert_string_equal(save->inputs[3].type_attr, "dtypes");
	assert_true(save->flags & MU_OP_STATEFUL);
}

static void op_table__defaults_of_lists_and_shapes__are_kept(void **state)
{
	const struct mu_attr_def *d = mu_op_attr(mu_op_find("Conv2D"), "dilations");
	const struct mu_attr_def *s = mu_op_attr(mu_op_find("Placeholder"), "shape");
	const struct mu_attr_def *e = mu_op_attr(mu_op_find("Conv2D"), "explicit_paddings");

	assert_int_equal(d->value.kind, MU_ATTR_LIST + MU_ATTR_INT);
	assert_int_equal(d->value.n, 4);
	assert_int_equal(d->value.is[3], 1);
	assert_int_equal(s->value.shape->rank, -1);
	assert_int_equal(e->value.kind, MU_ATTR_LIST);
	assert_int_equal(e->value.n, 0);
}

static void op_table__allowed_values_and_minima__are_parsed(void **state)
{
	const struct mu_op_def *pool = mu_op_find("AvgPool");
	const struct mu_attr_def *t = mu_op_attr(mu_op_find("Sum"), "T"), *index;

	assert_int_equal(t->allowed.n, 19);
	assert_int_equal(t->allowed.types[0], MU_FLOAT);
	index = mu_op_attr(mu_op_find("Sum"), "Tidx");
	assert_int_equal(index->allowed.n, 2);
	assert_int_equal(index->value.type, MU_INT32);
	assert_int_equal(mu_op_attr(pool, "ksize")->minimum, 4);
	assert_true(mu_span_is(mu_op_attr(pool, "padding")->allowed.ss[1], "VALID"));
	assert_int_equal(mu_op_attr(mu_op_find("Identity"), "T")->allowed.kind, MU_ATTR_NONE);
}

static void check_attrs__wrong_attribute__fails_with_the_text_of_tensorflow(void **state)
{
	static int64_t beyond_32_bits[] = {1LL << 31};
	static const struct {
		const char *op, *attr, *text;
		struct mu_attr value;
	} cases[] = {
	    {"Abs",
	     "T",
	     "Value for attr 'T' of string is not in the list of allowed values: bfloat16, half, "
	     "float, double, int8, int16, int32, int64\n\t; NodeDef: {{node y}}; Op<name=Abs>",
	     {.kind = MU_ATTR_TYPE, .type = MU_STRING}},
	    {"Abs",
	     "T",
	     "AttrValue had value with type 'int' when 'type' expected\n\t for attr 'T'\n\t; "
	     "NodeDef: {{node y}}; Op<name=Abs>",
	     {.kind = MU_ATTR_INT, .i = 1}},
	    {"Abs",
	     "U",
	     "NodeDef missing attr 'T' from Op<name=Abs>; NodeDef: {{node y}}",
	     {.kind = MU_ATTR_INT, .i = 1}},
	    {"AddN",
	     "N",
	     "Value for attr 'N' of 0 must be at least minimum 1\n\t; NodeDef: {{node y}}; "
	     "Op<name=AddN>",
	     {.kind = MU_ATTR_INT}},
	    {"AvgPool",
	     "ksize",
	     "Length for attr 'ksize' of 0 must be at least minimum 4\n\t; NodeDef: {{node y}}; "
	     "Op<name=AvgPool>",
	     {.kind = MU_ATTR_LIST}},
	    {"Squeeze",
	     "squeeze_dims",
	     "Attr squeeze_dims has value 2147483648 out of range for an int32\n\t; NodeDef: "
	     "{{node y}}; Op<name=Squeeze>",
	     {.kind = MU_ATTR_LIST + MU_ATTR_INT, .n = 1, .is = beyond_32_bits}},
	    {"MirrorPad",
	     "mode",
	     "Value for attr 'mode' of \"FOO\" is not in the list of allowed values: "
	     "\"REFLECT\", \"SYMMETRIC\"\n\t; NodeDef: {{node y}}; Op<name=MirrorPad>",
	     {.kind = MU_ATTR_STRING, .s = {"FOO", 3}}},
	};
	const struct mu_attr type = {.kind = MU_ATTR_TYPE, .type = MU_FLOAT};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct mu_graph *g = mu_graph_new();
		struct mu_node *n;
		struct mu_err err = {0};

		assert_ok(mu_graph_add(g, "y", cases[i].op, &n, &err), &err);
		if (cases[i].attr[0] != 'U' && cases[i].attr[0] != 'T')
			mu_node_set_attr(g, n, "T", &type);
		mu_node_set_attr(g, n, cases[i].attr, &cases[i].value);
		assert_int_equal(mu_op_check_attrs(n, &err), -MU_INVALID_ARGUMENT);
		assert_string_equal(err.msg, cases[i].text);
		mu_graph_free(g);
	}
}

/* A row whose output shapes cannot be inferred has shape_unknown. */
static void op_table__every_row__has_the_shapes_of_its_outputs(void **state)
{
	unsigned without = 0;

	for (unsigned i = 0; mu_op_at(i); i++) {
		const struct mu_op_def *op = mu_op_at(i);
		bool is_known = true;
		for (unsigned o = 0; o < op->n_outputs; o++)
			is_known &= op->shape || op->outputs[o].shape;
		if (!is_known)
			print_error("%s has no shape rule: lib/ops/op_def.h "
				    "explains the notation\n",
				    op->name);
		without += !is_known;
	}
	assert_int_equal(without, 0);
}

static void op_table__unknown_name__is_null(void **state)
{
	assert_null(mu_op_find("NoSuchOp"));
	assert_null(mu_op_at(100000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(op_table__every_row__is_parsed),
	    cmocka_unit_test(op_table__matmul__has_its_attributes_and_defaults),
	    cmocka_unit_test(op_table__list_and_ref_arguments__are_parsed),
	    cmocka_unit_test(op_table__defaults_of_lists_and_shapes__are_kept),
	    cmocka_unit_test(op_table__allowed_values_and_minima__are_parsed),
	    cmocka_unit_test(check_attrs__wrong_attribute__fails_with_the_text_of_tensorflow),
	    cmocka_unit_test(op_table__every_row__has_the_shapes_of_its_outputs),
	    cmocka_unit_test(op_table__unknown_name__is_null),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
