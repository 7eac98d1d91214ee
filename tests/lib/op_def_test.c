/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "lib/ops/op_def.h"

static void op_table__every_row__parses(void **state)
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

static void op_table__list_and_ref_arguments__are_told_apart(void **state)
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

static void op_table__unknown_name__is_null(void **state)
{
	assert_null(mu_op_find("NoSuchOp"));
	assert_null(mu_op_at(100000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(op_table__every_row__parses),
	    cmocka_unit_test(op_table__matmul__has_its_attributes_and_defaults),
	    cmocka_unit_test(op_table__list_and_ref_arguments__are_told_apart),
	    cmocka_unit_test(op_table__defaults_of_lists_and_shapes__are_kept),
	    cmocka_unit_test(op_table__unknown_name__is_null),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
