/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <string.h>

#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

enum { MAX_IN = 4, MAX_OUT = 3 };

static struct mu_graph *g;
static struct mu_node *node;
static struct mu_pshape in[MAX_IN], out[MAX_OUT];
static struct mu_tensor constant[MAX_IN];
static const struct mu_tensor *known[MAX_IN];
static struct mu_err err;

/* Starts a new node of this op; shape() and value() set its inputs. */
static void op(const char *name)
{
	for (int i = 0; i < MAX_IN; i++) {
		in[i] = (struct mu_pshape){.rank = -1};
		mu_tensor_unref(&constant[i]);
		known[i] = NULL;
	}
	mu_graph_free(g);
	g = mu_graph_new();
	assert_int_equal(mu_graph_add(g, "n", name, &node, &err), 0);
}

static void shape(int i, int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
	in[i] = (struct mu_pshape){.rank = rank, .dim = {a, b, c, d}};
}

static void value(int i, int n, const int32_t *v)
{
	struct mu_shape s = mu_shape_vec(n);

	mu_tensor_unref(&constant[i]);
	assert_int_equal(mu_tensor_new(&constant[i], MU_INT32, &s, &err), 0);
	memcpy(constant[i].data, v, (size_t)n * sizeof *v);
	known[i] = &constant[i];
	in[i] = (struct mu_pshape){.rank = 1, .dim = {n}};
}
#define VALUE(i, ...)                                                                              \
	value(i, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t), (int32_t[]){__VA_ARGS__})

static void scalar(int i, int32_t v)
{
	value(i, 1, &v);
	in[i].rank = 0;
}

static void attr_int(const char *name, int64_t v)
{
	mu_node_set_attr(g, node, name, &(struct mu_attr){.kind = MU_ATTR_INT, .i = v});
}

static void attr_ints(const char *name, int64_t a, int64_t b, int64_t c, int64_t d)
{
	mu_node_set_attr(g, node, name,
			 &(struct mu_attr){.kind = MU_ATTR_LIST + MU_ATTR_INT,
					   .n = 4,
					   .is = (int64_t[]){a, b, c, d}});
}

static void attr_string(const char *name, const char *s)
{
	mu_node_set_attr(g, node, name,
			 &(struct mu_attr){.kind = MU_ATTR_STRING, .s = {s, strlen(s)}});
}

static int infer(unsigned n_in, unsigned n_out)
{
	struct mu_shape_ctx c = {node, n_in, n_out, in, known, out};

	for (int i = 0; i < MAX_OUT; i++)
		out[i] = (struct mu_pshape){.rank = -1};
	return mu_op_shapes(&c, &err);
}

static void expect_shape(unsigned n_in, const char *want)
{
	assert_int_equal(infer(n_in, 1), 0);
	assert_string_equal(mu_pshape_str(&out[0]), want);
}

static void elementwise__with_unknown_dimensions__broadcasts(void **state)
{
	op("AddV2");
	shape(0, 2, -1, 4, 0, 0);
	shape(1, 1, 4, 0, 0, 0);
	expect_shape(2, "[?,4]");
	shape(1, 3, 5, 1, 1, 0);
	expect_shape(2, "[5,?,4]");
	shape(1, 1, 3, 0, 0, 0);
	assert_int_equal(infer(2, 1), -MU_INVALID_ARGUMENT);
	in[1].rank = -1;
	expect_shape(2, "<unknown>");
}

static void matmul__of_different_inner_dimensions__is_invalid(void **state)
{
	op("MatMul");
	shape(0, 2, -1, 64, 0, 0);
	shape(1, 2, 64, 10, 0, 0);
	expect_shape(2, "[?,10]");
	shape(1, 2, 63, 10, 0, 0);
	assert_int_equal(infer(2, 1), -MU_INVALID_ARGUMENT);
	op("BatchMatMulV2");
	shape(0, 3, 7, 2, 3, 0);
	shape(1, 2, 3, 5, 0, 0);
	expect_shape(2, "[7,2,5]");
}

static void einsum(const char *text)
{
	op("Einsum");
	attr_string("equation", text);
}

static void einsum__with_an_equation__has_its_output_shape(void **state)
{
	static const char *const invalid[] = {
	    "",         "ab,bc",    "ab,bc->ad",    "ab,b->->a", "ab->a",
	    "a,b,c->a", "a..,b->a", "......a,b->a", "a1,b->a",   "ab,abcdefghijk->a"};

	einsum("ab,cb->ca");
	shape(0, 2, -1, 64, 0, 0);
	shape(1, 2, 7, 64, 0, 0);
	expect_shape(2, "[7,?]");
	shape(1, 2, 7, 63, 0, 0);
	assert_int_equal(infer(2, 1), -MU_INVALID_ARGUMENT);
	shape(1, 3, 7, 64, 1, 0);
	assert_int_equal(infer(2, 1), -MU_INVALID_ARGUMENT);
	einsum("...ab,...bc->...ac");
	shape(0, 3, 5, 2, 3, 0);
	shape(1, 3, 1, 3, 4, 0);
	expect_shape(2, "[5,2,4]");
	shape(1, 2, 3, 4, 0, 0);
	expect_shape(2, "[5,2,4]");
	einsum("aab->bb");
	shape(0, 3, 2, -1, 3, 0);
	expect_shape(1, "[3,3]");
	for (unsigned i = 0; i < MU_COUNT(invalid); i++) {
		einsum(invalid[i]);
		shape(0, 2, 2, 3, 0, 0);
		shape(1, 1, 2, 0, 0, 0);
		assert_int_equal(infer(2, 1), -MU_INVALID_ARGUMENT);
	}
}

static void reductions__of_axes__remove_or_keep_them(void **state)
{
	op("Mean");
	shape(0, 3, 2, -1, 4, 0);
	VALUE(1, 0, -1);
	expect_shape(2, "[?]");
	mu_node_set_attr(g, node, "keep_dims", &(struct mu_attr){.kind = MU_ATTR_BOOL, .b = true});
	expect_shape(2, "[1,?,1]");
	op("ArgMax");
	shape(0, 2, -1, 10, 0, 0);
	scalar(1, 1);
	expect_shape(2, "[?]");
}

static void reshape__with_minus_1__infers_the_dimension(void **state)
{
	op("Reshape");
	shape(0, 2, 6, 4, 0, 0);
	VALUE(1, -1, 8);
	expect_shape(2, "[3,8]");
	VALUE(1, 5, 5);
	assert_int_equal(infer(2, 1), -MU_INVALID_ARGUMENT);
	shape(0, 2, -1, 4, 0, 0);
	VALUE(1, -1, 8);
	expect_shape(2, "[?,8]");
}

static void array_ops__of_known_arguments__have_their_shapes(void **state)
{
	op("Transpose");
	shape(0, 3, 2, 3, 4, 0);
	VALUE(1, 2, 0, 1);
	expect_shape(2, "[4,2,3]");
	op("ConcatV2");
	shape(0, 2, -1, 3, 0, 0);
	shape(1, 2, 5, 4, 0, 0);
	VALUE(2, 1);
	expect_shape(3, "[5,7]");
	op("Pack");
	attr_int("axis", -1);
	shape(0, 1, 4, 0, 0, 0);
	expect_shape(2, "[4,2]");
	op("ExpandDims");
	shape(0, 1, 4, 0, 0, 0);
	VALUE(1, -1);
	expect_shape(2, "[4,1]");
	op("GatherV2");
	shape(0, 2, 50, 8, 0, 0);
	shape(1, 2, -1, 3, 0, 0);
	scalar(2, 0);
	expect_shape(3, "[?,3,8]");
	op("OneHot");
	shape(0, 1, -1, 0, 0, 0);
	scalar(1, 10);
	expect_shape(4, "[?,10]");
}

static void strided_slice__with_masks__has_its_shape(void **state)
{
	op("StridedSlice");
	attr_int("shrink_axis_mask", 1);
	shape(0, 3, 2, 3, 4, 0);
	VALUE(1, 0);
	VALUE(2, 1);
	VALUE(3, 1);
	expect_shape(4, "[3,4]");
	op("StridedSlice");
	attr_int("begin_mask", 1);
	attr_int("end_mask", 1);
	attr_int("shrink_axis_mask", 2);
	shape(0, 2, -1, 3, 0, 0);
	VALUE(1, 0, 1);
	VALUE(2, 0, 2);
	VALUE(3, 1, 1);
	expect_shape(4, "[?]");
}

static void convolution_and_pooling__with_strides__have_their_shapes(void **state)
{
	op("Conv2D");
	attr_ints("strides", 1, 2, 2, 1);
	attr_string("padding", "SAME");
	shape(0, 4, -1, 28, 27, 3);
	shape(1, 4, 5, 5, 3, 16);
	expect_shape(2, "[?,14,14,16]");
	attr_string("padding", "VALID");
	expect_shape(2, "[?,12,12,16]");
	op("MaxPool");
	attr_ints("strides", 1, 2, 2, 1);
	attr_ints("ksize", 1, 2, 2, 1);
	attr_string("padding", "VALID");
	shape(0, 4, 8, 27, 28, 3);
	expect_shape(1, "[8,13,14,3]");
}

static void segments_and_splits__have_the_remaining_dimensions(void **state)
{
	op("UnsortedSegmentSum");
	shape(0, 3, 2, -1, 4, 0);
	shape(1, 2, 2, 3, 0, 0);
	scalar(2, 7);
	expect_shape(3, "[7,4]");
	shape(1, 2, 1, 3, 0, 0);
	assert_int_equal(infer(3, 1), -MU_INVALID_ARGUMENT);
	op("SplitV");
	shape(0, 2, 6, 2, 0, 0);
	VALUE(1, 4, -1);
	scalar(2, 0);
	assert_int_equal(infer(3, 2), 0);
	assert_string_equal(mu_pshape_str(&out[1]), "[2,2]");
	VALUE(1, 4, 3);
	assert_int_equal(infer(3, 2), -MU_INVALID_ARGUMENT);
}

static void space_to_batch__with_padding__has_its_shape(void **state)
{
	op("SpaceToBatchND");
	shape(0, 3, 2, 5, 7, 0);
	VALUE(1, 3);
	value(2, 2, (int32_t[]){0, 1});
	in[2] = (struct mu_pshape){.rank = 2, .dim = {1, 2}};
	expect_shape(3, "[6,2,7]");
	VALUE(1, 4);
	assert_int_equal(infer(3, 1), -MU_INVALID_ARGUMENT);
	op("MatrixTriangularSolve");
	shape(0, 3, 7, 4, 4, 0);
	shape(1, 2, -1, 5, 0, 0);
	expect_shape(2, "[7,4,5]");
}

static void optimizer_op__of_variable_and_gradient__merges_their_shapes(void **state)
{
	op("ApplyGradientDescent");
	shape(0, 2, -1, 4, 0, 0);
	shape(1, 0, 0, 0, 0, 0);
	shape(2, 2, 3, -1, 0, 0);
	expect_shape(3, "[3,4]");
	shape(1, 1, 1, 0, 0, 0);
	assert_int_equal(infer(3, 1), -MU_INVALID_ARGUMENT);
}

static void every_rule__with_unknown_inputs__does_not_crash(void **state)
{
	for (unsigned i = 0; mu_op_at(i); i++) {
		if (!mu_op_at(i)->shape)
			continue;
		op(mu_op_at(i)->name);
		infer(2, 2); /* only must not crash */
		shape(0, 0, 0, 0, 0, 0);
		shape(1, 0, 0, 0, 0, 0);
		infer(2, 2);
	}
}

static void pattern__with_repeated_names__relates_inputs_and_outputs(void **state)
{
	op("SparseSegmentSum");
	shape(0, 3, -1, 4, 5, 0);
	shape(1, 1, 7, 0, 0, 0);
	assert_int_equal(infer(3, 1), 0);
	assert_string_equal(mu_pshape_str(&out[0]), "[?,4,5]");
	shape(2, 1, 6, 0, 0, 0);
	assert_int_equal(infer(3, 1), -MU_INVALID_ARGUMENT);
	assert_string_equal(err.msg, "segment_ids must have shape [m], not [6]: Dimensions must be "
				     "equal, but are 7 and 6");
	shape(2, 2, 7, 1, 0, 0);
	assert_int_equal(infer(3, 1), -MU_INVALID_ARGUMENT);
	assert_string_equal(err.msg, "segment_ids must have shape [m], not [7,1]");
	shape(2, 1, 7, 0, 0, 0);
	shape(0, 0, 0, 0, 0, 0);
	assert_int_equal(infer(3, 1), -MU_INVALID_ARGUMENT);
}

static void pattern__with_the_name_of_an_attribute__has_its_value(void **state)
{
	op("LogUniformCandidateSampler");
	attr_int("num_true", 3);
	attr_int("num_sampled", 9);
	assert_int_equal(infer(1, 3), 0);
	assert_string_equal(mu_pshape_str(&out[0]), "[9]");
	assert_string_equal(mu_pshape_str(&out[1]), "[?,3]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(elementwise__with_unknown_dimensions__broadcasts),
	    cmocka_unit_test(matmul__of_different_inner_dimensions__is_invalid),
	    cmocka_unit_test(einsum__with_an_equation__has_its_output_shape),
	    cmocka_unit_test(reductions__of_axes__remove_or_keep_them),
	    cmocka_unit_test(reshape__with_minus_1__infers_the_dimension),
	    cmocka_unit_test(array_ops__of_known_arguments__have_their_shapes),
	    cmocka_unit_test(strided_slice__with_masks__has_its_shape),
	    cmocka_unit_test(convolution_and_pooling__with_strides__have_their_shapes),
	    cmocka_unit_test(segments_and_splits__have_the_remaining_dimensions),
	    cmocka_unit_test(space_to_batch__with_padding__has_its_shape),
	    cmocka_unit_test(optimizer_op__of_variable_and_gradient__merges_their_shapes),
	    cmocka_unit_test(every_rule__with_unknown_inputs__does_not_crash),
	    cmocka_unit_test(pattern__with_repeated_names__relates_inputs_and_outputs),
	    cmocka_unit_test(pattern__with_the_name_of_an_attribute__has_its_value),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
