/* SPDX-License-Identifier: Apache-2.0 */
/* Every op's gradient against central differences; an op whose gradient has no case fails. */
#include "client/grad/op_grads.h"
#include "lib/ops/op_def.h"
#include "task/kernels/engine/kernel_table.h"
#include "tests/client/gradient_cases_functions.h"
#include "tests/client/gradient_cases_more.h"
#include "tests/client/gradient_cases_numeric.h"
#include "tests/client/gradient_cases_sparse.h"

enum { MAX_OPS = 512 };
static const char *seen[MAX_OPS]; /* ops that were differentiated, as the table spells them */
static unsigned n_seen;

static bool was_seen(const char *op)
{
	for (unsigned i = 0; i < n_seen; i++)
		if (strcmp(seen[i], op) == 0)
			return true;
	return false;
}

static void note(struct mu_builder *b)
{
	struct mu_graph *g = mu_builder_graph(b);

	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct op_grad *og = op_grad_find(g->nodes[i]->op);

		if (og && !was_seen(og->op) && n_seen < MAX_OPS)
			seen[n_seen++] = og->op;
	}
}

static void check(const struct gradient_case *c)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, c->shape), y = c->y(b, x);
	MU_AUTO_TENSOR value = {0};

	note(b);
	spread_values(&value, &c->shape, c->lowest, c->highest);
	check_gradient(b, c->name, x, y, &value);
}

static void gradients__agree_with_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(cases); i++)
		check(&cases[i]);
}

static void gradients_of_gradients_diagonals_and_arrays__agree_with_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(more_cases); i++)
		check(&more_cases[i]);
}

static void gradients_of_sparse_tensors__agree_with_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(sparse_cases); i++)
		check(&sparse_cases[i]);
}

static void gradients_of_sequences_and_matrices__agree_with_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(numeric_cases); i++)
		check(&numeric_cases[i]);
}

static void gradients_of_functions_and_lists__agree_with_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(function_cases); i++)
		check(&function_cases[i]);
}

/* y = op(x, other) or op(other, x). */
static void check_named(const struct named_op *o, struct mu_pshape shape, int other_rows,
			bool first)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, shape), y;
	MU_AUTO_TENSOR value = {0};

	if (!other_rows) {
		y = mu_op_add(b, &(struct mu_op_args){.op = o->op, .in = &x, .n_in = 1});
	} else {
		struct mu_out other = other_rows > 1 ? values(b, other_rows, 4, 0.3f) : row(b, 4);
		struct mu_out in[2] = {first ? x : other, first ? other : x};

		y = mu_op_add(b, &(struct mu_op_args){.op = o->op, .in = in, .n_in = 2});
	}
	note(b);
	spread_values(&value, &shape, o->lowest, o->highest);
	check_gradient(b, o->op, x, y, &value);
}

static void gradients_of_one_tensor__agree_with_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(unary); i++)
		check_named(&unary[i], MU_SHAPE(3, 4), 0, true);
	for (size_t i = 0; i < MU_COUNT(special); i++)
		check_named(&special[i], MU_SHAPE(3, 4), 0, true);
}

static void gradients_of_two_tensors__agree_with_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(binary); i++)
		for (int first = 0; first < 2; first++) {
			check_named(&binary[i], MU_SHAPE(3, 4), 3, first);
			check_named(&binary[i], MU_SHAPE(-1, 4), 1, first);
			check_named(&binary[i], MU_SHAPE(4), 3, first);
		}
	for (size_t i = 0; i < MU_COUNT(seconds); i++)
		for (int first = 0; first < 2; first++)
			check_named(&seconds[i], MU_SHAPE(3, 4), 3, first);
}

/* Variables by handle: d x² / d handle. */
static void gradient_of_a_resource_variable__comes_at_its_handle(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_session_options own = {.isolate_state = true};
	struct mu_pshape shape = MU_SHAPE(3, 2);
	struct mu_out v = mu_op(
	    b, "VarHandleOp", MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT), MU_A_SHAPE("shape", &shape)));
	struct mu_out set = mu_op(b, "AssignVariableOp", MU_IN(v, values(b, 3, 2, 0)));
	struct mu_out read =
	    mu_op(b, "ReadVariableOp", MU_IN(v), MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT)));
	struct mu_out rows = mu_op(b, "ResourceGather", MU_IN(v, ints(b, 3, (int32_t[]){2, 0, 2})),
				   MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT)));
	struct mu_out one =
	    mu_op(b, "ResourceGatherNd", MU_IN(v, table(b, 1, 2, (int32_t[]){1, 0})),
		  MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT)));
	struct mu_out loss =
	    mu_add(b, mu_sum(b, mu_square(b, read), NULL, 0), mu_sum(b, mu_ln(b, rows), NULL, 0));

	loss = mu_add(b, loss, mu_sum(b, mu_mul(b, one, mu_const_float(b, 5)), NULL, 0));
	struct mu_out g;
	MU_AUTO_TENSOR found = {0};

	note(b);
	mu_gradients(b, loss, &v, 1, &g);
	assert_ok(mu_builder_check(b, &err), &err);
	assert_ok(mu_session_open(&s, test_server(), b, &own, &err), &err);
	assert_ok(mu_session_do(s, set, &err), &err);
	assert_ok(mu_session_get(s, g, &found, &err), &err);
	for (int i = 0; i < 6; i++) {
		static const float times[3] = {1, 0, 2};
		float x = sinf((float)i) + 1.5f;

		assert_float_equal(MU_DATA(float, &found)[i],
				   2 * x + times[i / 2] / x + (i == 2 ? 5 : 0), 1e-4);
	}
}

/* A variable that goes one of two ways: squared, either way. */
static void gradient_of_a_switched_variable__comes_back_the_way_it_went(void **state)
{
	for (int way = 0; way < 2; way++) {
		MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
		MU_AUTO(mu_session_close) struct mu_session *s = NULL;
		struct mu_session_options own = {.isolate_state = true};
		struct mu_init three = {.kind = MU_INIT_VALUE, .value = 3};
		struct mu_var *v = mu_variable(b, "v", MU_FLOAT, MU_SHAPE(2), three, true);
		struct mu_out sides = mu_op(b, "RefSwitch", MU_IN(v->ref, truth(b, way)));
		struct mu_out joined = mu_op(b, "RefMerge", MU_IN(sides, mu_port(sides, 1)));
		struct mu_out loss = mu_sum(b, mu_square(b, mu_identity(b, joined)), NULL, 0);
		struct mu_out g, init = mu_init_all(b);
		MU_AUTO_TENSOR found = {0};

		note(b);
		mu_gradients(b, loss, &v->ref, 1, &g);
		assert_ok(mu_builder_check(b, &err), &err);
		assert_ok(mu_session_open(&s, test_server(), b, &own, &err), &err);
		assert_ok(mu_session_do(s, init, &err), &err);
		assert_ok(mu_session_get(s, g, &found, &err), &err);
		assert_float_equal(MU_DATA(float, &found)[1], 6, 1e-5);
	}
}

static void every_gradient__has_a_case(void **state)
{
	const struct op_grad *og;

	for (unsigned i = 0; (og = op_grad_at(i)); i++) {
		assert_ptr_equal(op_grad_find(og->op), og); /* no op is in two tables */
		if (og->fn && !was_seen(og->op) && strcmp(og->op, "PreventGradient") != 0)
			fail_msg("the gradient of %s is not checked", og->op);
	}
}

/* ---- which ops have none ---- */

/* Differentiable, or passing on what is, and yet without a gradient here. */
static const struct {
	const char *op, *why;
} without[] = {
    {"SymbolicGradient", "is one: of functions that bring theirs"},
    {"_SwitchN", "functions: what a Case becomes on the server"},
    {"Enter", "frames: what a While becomes on the server; the builder makes no edge back"},
    {"Exit", "frames"},
    {"NextIteration", "frames"},
    {"RefEnter", "frames"},
    {"RefExit", "frames"},
    {"RefNextIteration", "frames"},
    {"StackPushV2", "frames: stacks are how others keep a loop's turns"},
    {"_FusedMatMul", "what the server makes of a MatMul"},
    {"Bincount", "TensorFlow has none either"},
    {"DenseBincount", "TensorFlow has none either"},
    {"ParallelConcat", "TensorFlow has none either"},
    {"ResizeArea", "TensorFlow has none either"},
    {"HSVToRGB", "TensorFlow has none either"},
    {"AdjustHue", "TensorFlow has none either"},
    {"AdjustSaturation", "TensorFlow has none either"},
    {"AdjustContrastv2", "TensorFlow has none either"},
    {"RGBToHSV", "colours of pictures that are read; nothing trains through them"},
    {"CropAndResizeGradImage", "a second derivative that TensorFlow has not either"},
    {"CropAndResizeGradBoxes", "a second derivative that TensorFlow has not either"},
    {"CombinedNonMaxSuppression", "a choice among what is given; TensorFlow has none either"},
    {"NonMaxSuppressionV5", "a choice among what is given; TensorFlow has none either"},
    {"ImageProjectiveTransformV2", "pictures as they are read; TensorFlow's is an estimate"},
    {"ImageProjectiveTransformV3", "pictures as they are read; TensorFlow's is an estimate"},
    {"ExtractGlimpse", "pictures as they are read; TensorFlow has none either"},
    {"ExtractGlimpseV2", "pictures as they are read; TensorFlow has none either"},
    {"SampleDistortedBoundingBox", "drawn by chance; TensorFlow has none either"},
    {"SampleDistortedBoundingBoxV2", "drawn by chance; TensorFlow has none either"},
    {"StatelessSampleDistortedBoundingBox", "drawn by chance; TensorFlow has none either"},
    {"DrawBoundingBoxes", "pictures that are looked at; TensorFlow has none either"},
    {"DrawBoundingBoxesV2", "pictures that are looked at; TensorFlow has none either"},
    {"MaxPool3DGrad", "needs MaxPool3DGradGrad, which has no kernel"},
    {"StackPush", "frames: stacks are how others keep a loop's turns"},
    {"SparseAddGrad", "the sparse tensors of TensorFlow's Python"},
    {"SparseSparseMaximum", "the sparse tensors of TensorFlow's Python"},
    {"SparseSparseMinimum", "the sparse tensors of TensorFlow's Python"},
    {"SparseReduceMax", "the sparse tensors of TensorFlow's Python"},
    {"SparseFillEmptyRowsGrad", "the sparse tensors of TensorFlow's Python"},
    {"MaxPoolGradWithArgmax", "needs MaxPoolGradGradWithArgmax, which has no kernel"},
    {"SparseConcat", "the sparse tensors of TensorFlow's Python"},
    {"SparseReduceMaxSparse", "the sparse tensors of TensorFlow's Python"},
    {"SparseReduceSumSparse", "the sparse tensors of TensorFlow's Python"},
    {"SparseSlice", "the sparse tensors of TensorFlow's Python"},
    {"SparseSliceGrad", "the sparse tensors of TensorFlow's Python"},
    {"SparseSplit", "the sparse tensors of TensorFlow's Python"},
    {"SerializeSparse", "the sparse tensors of TensorFlow's Python"},
    {"SerializeManySparse", "the sparse tensors of TensorFlow's Python"},
    {"DeserializeSparse", "the sparse tensors of TensorFlow's Python"},
    {"BlockLSTMGrad", "a second derivative that TensorFlow has not either"},
    {"BlockLSTMGradV2", "a second derivative that TensorFlow has not either"},
    {"CholeskyGrad", "a second derivative that TensorFlow has not either"},
    {"Eig", "its values are complex, and no product of complex matrices has a kernel"},
    {"Lu", "not built: its rows come in another order from matrix to matrix"},
    {"FakeQuantWithMinMaxArgsGradient", "a second derivative that TensorFlow has not either"},
    {"FakeQuantWithMinMaxVarsGradient", "a second derivative that TensorFlow has not either"},
    {"FakeQuantWithMinMaxVarsPerChannelGradient",
     "a second derivative that TensorFlow has not either"},
    {"QuantizeAndDequantizeV4Grad", "a second derivative that TensorFlow has not either"},
    {"AudioSpectrogram", "sounds as they are read; TensorFlow has none either"},
    {"Mfcc", "sounds as they are read; TensorFlow has none either"},
    {"IgammaGradA", "TensorFlow has none either"},
    {"MatrixLogarithm", "TensorFlow has none either"},
    {"MatrixSolveLs", "not built: of its two ways only one has one in TensorFlow too"},
    {"MatrixSquareRoot", "not built: it needs the Kronecker product of the root"},
    {"NonDeterministicInts", "whole numbers"},
    {"RandomGamma", "draws; TensorFlow goes through the sample by RandomGammaGrad"},
    {"StatelessRandomGammaV2", "draws; TensorFlow goes through the sample by RandomGammaGrad"},
    {"StatelessRandomGammaV3", "draws; TensorFlow goes through the sample by RandomGammaGrad"},
    {"RandomGammaGrad", "TensorFlow has none either"},
    {"Svd", "not built: it is undefined where two values are alike"},
    {"TridiagonalMatMul", "not built: few programs learn through it"},
    {"TridiagonalSolve", "not built: few programs learn through it"},
    {"Dilation2DBackpropInput", "TensorFlow has none either"},
    {"Dilation2DBackpropFilter", "TensorFlow has none either"},
    {"PyFunc", "Python's own"},
    {"PyFuncStateless", "Python's own"},
    {"EagerPyFunc", "Python's own"},
    {"GetSessionHandle", "keeps a tensor; TensorFlow has none either"},
    {"GetSessionHandleV2", "keeps a tensor; TensorFlow has none either"},
    {"GetSessionTensor", "gives what was kept; TensorFlow has none either"},
    {"DeepCopy", "TensorFlow has none either"},
    {"InplaceAdd", "TensorFlow has none either"},
    {"InplaceSub", "TensorFlow has none either"},
    {"InplaceUpdate", "TensorFlow has none either"},
    {"LSTMBlockCell", "TensorFlow has none either"},
    {"LSTMBlockCellGrad", "TensorFlow has none either"},
    {"GRUBlockCell", "TensorFlow has none either"},
    {"GRUBlockCellGrad", "TensorFlow has none either"},
    {"SparseBincount", "TensorFlow has none either"},
    {"ReduceDataset", "TensorFlow has none either"},
    {"StringNGrams", "of strings: what looks real are types of splits"},
    {"RaggedGather", "the ragged tensors of TensorFlow's Python"},
    {"RaggedRange", "the ragged tensors of TensorFlow's Python"},
    {"RaggedTensorToTensor", "the ragged tensors of TensorFlow's Python"},
    {"RaggedTensorToSparse", "the ragged tensors of TensorFlow's Python"},
    {"StatelessMultinomial", "draws"},
    {"BatchNormWithGlobalNormalizationGrad", "a second derivative that TensorFlow has not either"},
    {"SparseSegmentMeanGrad", "a second derivative that TensorFlow has not either"},
    {"SparseSegmentMeanGradV2", "a second derivative that TensorFlow has not either"},
    {"SparseSegmentSqrtNGradV2", "a second derivative that TensorFlow has not either"},
    {"SparseSegmentSumGradV2", "a second derivative that TensorFlow has not either"},
    {"SparseSegmentSqrtNGrad", "a second derivative that TensorFlow has not either"},
    {"SparseSegmentSumGrad", "a second derivative that TensorFlow has not either"},
};

static bool is_real(const struct mu_arg_def *a)
{
	return a->kind != MU_ARG_FIXED || a->type == MU_FLOAT || a->type == MU_DOUBLE;
}

/* Takes real numbers and gives some, and changes no variable. */
static bool may_be_differentiable(const struct mu_op_def *op)
{
	bool takes = false, gives = false;

	for (unsigned i = 0; i < op->n_inputs; i++) {
		takes |= is_real(&op->inputs[i]) && !op->inputs[i].is_ref;
		if (op->inputs[i].is_ref)
			return false;
	}
	for (unsigned i = 0; i < op->n_outputs; i++)
		gives |= is_real(&op->outputs[i]);
	return takes && gives;
}

static void every_op_with_a_kernel__has_a_gradient_or_a_reason(void **state)
{
	const struct mu_op_def *op;
	unsigned missing = 0;

	for (unsigned i = 0; (op = mu_op_at(i)); i++) {
		bool has = op_grad_find(op->name), excused = false;

		for (size_t k = 0; k < MU_COUNT(without); k++)
			excused |= strcmp(without[k].op, op->name) == 0;
		if (has && excused)
			fail_msg("%s has a gradient: it needs no excuse", op->name);
		if (!has && !excused && may_be_differentiable(op) && cpu_kernel_find(op->name)) {
			print_error("%s has neither a gradient nor a reason to have none\n",
				    op->name);
			missing++;
		}
	}
	assert_int_equal(missing, 0);
}

static void an_op_without_gradient__is_named(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(3)), g;
	struct mu_out at = ints(b, 3, (int32_t[]){0, 2, 0}), n = mu_const_int(b, MU_INT32, 3);

	mu_gradients(b, mu_op(b, "Bincount", MU_IN(at, n, x)), &x, 1, &g);
	assert_fails(mu_builder_check(b, &err), &err, MU_UNIMPLEMENTED,
		     "op Bincount (node 'Bincount') has no gradient");
}

static void a_loop_in_a_frame__is_sent_to_mu_while(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(3)), g;
	struct mu_out in = mu_op(b, "Enter", MU_IN(x), MU_ATTRS(MU_A_STR("frame_name", "loop")));

	mu_gradients(b, mu_op(b, "Exit", MU_IN(mu_square(b, in))), &x, 1, &g);
	assert_fails(mu_builder_check(b, &err), &err, MU_UNIMPLEMENTED,
		     "op Exit (node 'Exit') has no gradient; build the loop with mu_while");
}

static void a_matrix_whose_size_decides__is_refused_where_it_does_not_fit(void **state)
{
	static const struct {
		struct mu_pshape shape;
		const char *why;
	} refused[] = {{{2, {-1, 3}}, "if the size of the matrix is unknown"},
		       {{2, {4, 3}}, "with full_matrices and more rows than columns"}};

	for (size_t i = 0; i < MU_COUNT(refused); i++) {
		MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
		struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, refused[i].shape), g;

		mu_gradients(b,
			     mu_op(b, "Qr", MU_IN(x), MU_ATTRS(MU_A_BOOL("full_matrices", true))),
			     &x, 1, &g);
		assert_fails(mu_builder_check(b, &err), &err, MU_UNIMPLEMENTED, refused[i].why);
	}
}

/* Exp's would need the conjugate of its result. */
static void an_op_that_does_not_know_complex_numbers__is_named(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(3)), g;
	struct mu_out z = mu_exp(b, mu_op(b, "Complex", MU_IN(x, x)));

	mu_gradients(b, mu_op(b, "Real", MU_IN(z)), &x, 1, &g);
	assert_fails(mu_builder_check(b, &err), &err, MU_UNIMPLEMENTED,
		     "op Exp (node 'Exp') has no gradient of complex numbers");
}

static void a_gradient_that_was_forbidden__says_why(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(3)), g;
	struct mu_out y = mu_op(b, "PreventGradient", MU_IN(x),
				MU_ATTRS(MU_A_STR("message", "of frozen layers")));

	mu_gradients(b, mu_square(b, y), &x, 1, &g);
	assert_fails(mu_builder_check(b, &err), &err, MU_UNIMPLEMENTED, "of frozen layers");
}

static void what_nothing_flows_through__gets_no_gradient(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(3)), g;

	mu_gradients(b, mu_op(b, "Floor", MU_IN(x)), &x, 1, &g);
	assert_ok(mu_builder_check(b, &err), &err);
	assert_null(g.node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(gradients__agree_with_differences),
	    cmocka_unit_test(gradients_of_gradients_diagonals_and_arrays__agree_with_differences),
	    cmocka_unit_test(gradients_of_sparse_tensors__agree_with_differences),
	    cmocka_unit_test(gradients_of_sequences_and_matrices__agree_with_differences),
	    cmocka_unit_test(gradients_of_functions_and_lists__agree_with_differences),
	    cmocka_unit_test(gradients_of_one_tensor__agree_with_differences),
	    cmocka_unit_test(gradients_of_two_tensors__agree_with_differences),
	    cmocka_unit_test(gradient_of_a_resource_variable__comes_at_its_handle),
	    cmocka_unit_test(gradient_of_a_switched_variable__comes_back_the_way_it_went),
	    cmocka_unit_test(every_gradient__has_a_case),
	    cmocka_unit_test(every_op_with_a_kernel__has_a_gradient_or_a_reason),
	    cmocka_unit_test(an_op_without_gradient__is_named),
	    cmocka_unit_test(a_loop_in_a_frame__is_sent_to_mu_while),
	    cmocka_unit_test(a_matrix_whose_size_decides__is_refused_where_it_does_not_fit),
	    cmocka_unit_test(an_op_that_does_not_know_complex_numbers__is_named),
	    cmocka_unit_test(a_gradient_that_was_forbidden__says_why),
	    cmocka_unit_test(what_nothing_flows_through__gets_no_gradient),
	};

	return cmocka_run_group_tests(tests, NULL, test_server_stop);
}
