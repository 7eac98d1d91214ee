/* SPDX-License-Identifier: Apache-2.0 */
/* Compares each gradient with central differences, and checks that each gradient has a case. */
#include "lib/grad/op_grads.h"
#include "lib/ops/op_def.h"
#include "task/kernels/engine/kernel_table.h"
#include "tests/client/gradient_cases_array.h"
#include "tests/client/gradient_cases_complex.h"
#include "tests/client/gradient_cases_functions.h"
#include "tests/client/gradient_cases_index.h"
#include "tests/client/gradient_cases_math.h"
#include "tests/client/gradient_cases_matrix.h"
#include "tests/client/gradient_cases_nn.h"
#include "tests/client/gradient_cases_numeric.h"
#include "tests/client/gradient_cases_sparse.h"

enum { MAX_OPS = 512 };
static const char *tested_ops[MAX_OPS]; /* differentiated ops; the names are those of the table */
static unsigned n_tested_ops;

static bool is_tested(const char *op)
{
	for (unsigned i = 0; i < n_tested_ops; i++)
		if (strcmp(tested_ops[i], op) == 0)
			return true;
	return false;
}

static void record_ops(struct mu_builder *b)
{
	struct mu_graph *g = mu_builder_graph(b);

	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct op_grad *og = op_grad_find(g->nodes[i]->op);

		if (og && !is_tested(og->op) && n_tested_ops < MAX_OPS)
			tested_ops[n_tested_ops++] = og->op;
	}
}

static void check_case(const struct gradient_case *c)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, c->shape), y = c->y(b, x);
	MU_AUTO_TENSOR value = {0};

	record_ops(b);
	spread_values(&value, &c->shape, c->lowest, c->highest);
	check_gradient(b, c->name, x, y, &value);
}

static void gradients_of_element_wise_ops_and_reductions__match_central_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(math_cases); i++)
		check_case(&math_cases[i]);
}

static void gradients_of_array_ops__match_central_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(array_cases); i++)
		check_case(&array_cases[i]);
}

static void gradients_of_gather_scatter_and_segment_ops__match_central_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(index_cases); i++)
		check_case(&index_cases[i]);
}

static void gradients_of_matrix_ops__match_central_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(matrix_cases); i++)
		check_case(&matrix_cases[i]);
}

static void gradients_of_neural_network_ops__match_central_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(nn_cases); i++)
		check_case(&nn_cases[i]);
}

static void gradients_of_complex_numbers_and_transforms__match_central_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(complex_cases); i++)
		check_case(&complex_cases[i]);
}

static void gradients_of_sparse_tensors__match_central_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(sparse_cases); i++)
		check_case(&sparse_cases[i]);
}

static void gradients_of_sequences_and_decompositions__match_central_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(numeric_cases); i++)
		check_case(&numeric_cases[i]);
}

static void gradients_of_functions_and_tensor_lists__match_central_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(function_cases); i++)
		check_case(&function_cases[i]);
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
	record_ops(b);
	spread_values(&value, &shape, o->lowest, o->highest);
	check_gradient(b, o->op, x, y, &value);
}

static void gradients_of_unary_ops__match_central_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(unary); i++)
		check_named(&unary[i], MU_SHAPE(3, 4), 0, true);
	for (size_t i = 0; i < MU_COUNT(special); i++)
		check_named(&special[i], MU_SHAPE(3, 4), 0, true);
}

static void gradients_of_binary_ops__match_central_differences(void **state)
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

/* The gradient of a resource variable: d x² / d handle. */
static void gradient_of_a_resource_variable__is_that_of_its_handle(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_session_options options = {.isolate_state = true};
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

	record_ops(b);
	mu_gradients(b, loss, &v, 1, &g);
	assert_ok(mu_builder_check(b, &err), &err);
	assert_ok(mu_session_open(&s, test_server(), b, &options, &err), &err);
	assert_ok(mu_session_do(s, set, &err), &err);
	assert_ok(mu_session_get(s, g, &found, &err), &err);
	for (int i = 0; i < 6; i++) {
		static const float times[3] = {1, 0, 2};
		float x = sinf((float)i) + 1.5f;

		assert_float_equal(MU_DATA(float, &found)[i],
				   2 * x + times[i / 2] / x + (i == 2 ? 5 : 0), 1e-4);
	}
}

/* A variable that passes one of two branches and is squared after the merge. */
static void gradient_of_a_switched_variable__passes_the_branch_that_ran(void **state)
{
	for (int way = 0; way < 2; way++) {
		MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
		MU_AUTO(mu_session_close) struct mu_session *s = NULL;
		struct mu_session_options options = {.isolate_state = true};
		struct mu_init three = {.kind = MU_INIT_VALUE, .value = 3};
		struct mu_var *v = mu_variable(b, "v", MU_FLOAT, MU_SHAPE(2), three, true);
		struct mu_out sides = mu_op(b, "RefSwitch", MU_IN(v->ref, const_bool(b, way)));
		struct mu_out joined = mu_op(b, "RefMerge", MU_IN(sides, mu_port(sides, 1)));
		struct mu_out loss = mu_sum(b, mu_square(b, mu_identity(b, joined)), NULL, 0);
		struct mu_out g, init = mu_init_all(b);
		MU_AUTO_TENSOR found = {0};

		record_ops(b);
		mu_gradients(b, loss, &v->ref, 1, &g);
		assert_ok(mu_builder_check(b, &err), &err);
		assert_ok(mu_session_open(&s, test_server(), b, &options, &err), &err);
		assert_ok(mu_session_do(s, init, &err), &err);
		assert_ok(mu_session_get(s, g, &found, &err), &err);
		assert_float_equal(MU_DATA(float, &found)[1], 6, 1e-5);
	}
}

static void every_gradient__has_a_case(void **state)
{
	const struct op_grad *og;

	for (unsigned i = 0; (og = op_grad_at(i)); i++) {
		assert_ptr_equal(op_grad_find(og->op), og); /* each op is in one table */
		if (og->fn && !is_tested(og->op) && strcmp(og->op, "PreventGradient") != 0)
			fail_msg("the gradient of %s has no case", og->op);
	}
}

/* ---- ops without gradients ---- */

/* Ops with real inputs and outputs that have no gradient here. */
static const struct {
	const char *op, *why;
} ops_not_differentiated[] = {
    {"Batch", "its rows belong to several steps; the C client builds BatchFunction"},
    {"BatchFunction", "none in TensorFlow: its calls belong to several steps"},
    {"Unbatch", "its rows belong to several steps; the C client builds BatchFunction"},
    {"UnbatchGrad", "its rows belong to several steps; the C client builds BatchFunction"},
    {"MapDefun", "TensorFlow has none either"},
    {"ApproxTopK", "equals TopKV2 on a CPU, which the C client builds"},
    {"DebugNumericSummaryV2", "TensorFlow has none either"},
    {"TensorMapLookup", "the C client builds no maps of tensors"},
    {"CollectiveBcastRecvV2",
     "none in TensorFlow: gradients are reduced, not reductions differentiated"},
    {"CollectiveBcastSend", "likewise"},
    {"CollectiveBcastSendV2", "likewise"},
    {"CollectiveGather", "likewise"},
    {"CollectiveGatherV2", "likewise"},
    {"CollectiveReduce", "likewise"},
    {"CollectiveReduceV2", "likewise"},
    {"DebugIdentity", "none in TensorFlow: the debugger adds it to partitions of the graph"},
    {"DebugNanCount", "likewise"},
    {"DebugNumericSummary", "likewise"},
    {"SymbolicGradient", "a gradient op itself, of functions with custom gradients"},
    {"_SwitchN", "internal op: the server lowers Case to it"},
    {"Enter", "frames: the server lowers While to them; the builder creates no back edge"},
    {"Exit", "frames"},
    {"NextIteration", "frames"},
    {"RefEnter", "frames"},
    {"RefExit", "frames"},
    {"RefNextIteration", "frames"},
    {"StackPushV2", "frames: other implementations record loop iterations on stacks"},
    {"_FusedMatMul", "internal op: the server fuses MatMul to it"},
    {"Bincount", "TensorFlow has none either"},
    {"DenseBincount", "TensorFlow has none either"},
    {"ParallelConcat", "TensorFlow has none either"},
    {"ResizeArea", "TensorFlow has none either"},
    {"HSVToRGB", "TensorFlow has none either"},
    {"AdjustHue", "TensorFlow has none either"},
    {"AdjustSaturation", "TensorFlow has none either"},
    {"AdjustContrast", "TensorFlow has none either"},
    {"AdjustContrastv2", "TensorFlow has none either"},
    {"RGBToHSV", "input processing of images; nothing is trained through it"},
    {"CropAndResizeGradImage", "a second derivative that TensorFlow does not have either"},
    {"CropAndResizeGradBoxes", "a second derivative that TensorFlow does not have either"},
    {"CombinedNonMaxSuppression", "selects inputs; TensorFlow has none either"},
    {"NonMaxSuppressionV5", "selects inputs; TensorFlow has none either"},
    {"ImageProjectiveTransformV2", "input processing of images; TensorFlow's is an approximation"},
    {"ImageProjectiveTransformV3", "input processing of images; TensorFlow's is an approximation"},
    {"ExtractGlimpse", "input processing of images; TensorFlow has none either"},
    {"ExtractGlimpseV2", "input processing of images; TensorFlow has none either"},
    {"SampleDistortedBoundingBox", "random; TensorFlow has none either"},
    {"SampleDistortedBoundingBoxV2", "random; TensorFlow has none either"},
    {"StatelessSampleDistortedBoundingBox", "random; TensorFlow has none either"},
    {"DrawBoundingBoxes", "draws images for display; TensorFlow has none either"},
    {"DrawBoundingBoxesV2", "draws images for display; TensorFlow has none either"},
    {"Dequantize", "TensorFlow has none either"},
    {"KmeansPlusPlusInitialization", "draws points; TensorFlow has none either"},
    {"KMC2ChainInitialization", "draws points; TensorFlow has none either"},
    {"NearestNeighbors", "TensorFlow has none either"},
    {"QuantizeDownAndShrinkRange", "TensorFlow has none either"},
    {"QuantizeV2", "TensorFlow has none either"},
    {"RequantizationRange", "TensorFlow has none either"},
    {"Requantize", "TensorFlow has none either"},
    {"FusedPadConv2D", "TensorFlow has none either"},
    {"FusedResizeAndPadConv2D", "TensorFlow has none either"},
    {"FractionalMaxPoolGrad", "TensorFlow has none either"},
    {"FractionalAvgPoolGrad", "TensorFlow has none either"},
    {"TensorArrayConcat", "the first version of an op; the C client builds the later one"},
    {"TensorArrayConcatV2", "the first version of an op; the C client builds the later one"},
    {"TensorArrayGather", "the first version of an op; the C client builds the later one"},
    {"TensorArrayGatherV2", "the first version of an op; the C client builds the later one"},
    {"TensorArrayRead", "the first version of an op; the C client builds the later one"},
    {"TensorArrayReadV2", "the first version of an op; the C client builds the later one"},
    {"TensorArrayScatter", "the first version of an op; the C client builds the later one"},
    {"TensorArrayScatterV2", "the first version of an op; the C client builds the later one"},
    {"TensorArraySplit", "the first version of an op; the C client builds the later one"},
    {"TensorArraySplitV2", "the first version of an op; the C client builds the later one"},
    {"TensorArrayWrite", "the first version of an op; the C client builds the later one"},
    {"TensorArrayWriteV2", "the first version of an op; the C client builds the later one"},
    {"TensorArrayPack", "the first version of an op; the C client builds the later one"},
    {"TensorArrayUnpack", "the first version of an op; the C client builds the later one"},
    {"BatchMatrixBandPart", "the first version of an op; the C client builds the later one"},
    {"BatchMatrixDiag", "the first version of an op; the C client builds the later one"},
    {"BatchMatrixDiagPart", "the first version of an op; the C client builds the later one"},
    {"BatchMatrixSetDiag", "the first version of an op; the C client builds the later one"},
    {"QuantizeAndDequantize", "the first version of an op; the C client builds the later one"},
    {"BatchCholesky", "the first version of an op; the C client builds the later one"},
    {"BatchCholeskyGrad", "the first version of an op; the C client builds the later one"},
    {"BatchMatrixDeterminant", "the first version of an op; the C client builds the later one"},
    {"BatchMatrixInverse", "the first version of an op; the C client builds the later one"},
    {"BatchMatrixSolve", "the first version of an op; the C client builds the later one"},
    {"BatchMatrixSolveLs", "the first version of an op; the C client builds the later one"},
    {"BatchMatrixTriangularSolve", "the first version of an op; the C client builds the later one"},
    {"BatchSelfAdjointEig", "the first version of an op; the C client builds the later one"},
    {"BatchSelfAdjointEigV2", "the first version of an op; the C client builds the later one"},
    {"BatchSvd", "the first version of an op; the C client builds the later one"},
    {"SelfAdjointEig", "the first version of an op; the C client builds the later one"},
    {"Reverse", "the first version of an op; the C client builds the later one"},
    {"Conv3DBackpropFilter", "the first version of an op; the C client builds the later one"},
    {"Conv3DBackpropInput", "the first version of an op; the C client builds the later one"},
    {"RandomPoisson", "random counts; TensorFlow has none either"},
    {"CumulativeLogsumexp", "the C client has no function that builds it"},
    {"RandomCrop", "TensorFlow has none either"},
    {"StackPush", "frames: other implementations record loop iterations on stacks"},
    {"StatelessParameterizedTruncatedNormal", "the C client has no function that builds it"},
    {"SparseAddGrad", "only used by tf.sparse in Python"},
    {"SparseSparseMaximum", "only used by tf.sparse in Python"},
    {"SparseSparseMinimum", "only used by tf.sparse in Python"},
    {"SparseReduceMax", "only used by tf.sparse in Python"},
    {"IsotonicRegression", "TensorFlow has one in Python, of tf.nn.isotonic_regression"},
    {"DebugGradientIdentity", "tfdbg gives it one while the graph is built"},
    {"DebugGradientRefIdentity", "tfdbg gives it one while the graph is built"},
    {"FakeParam", "a value that nobody reads"},
    {"RaggedFillEmptyRowsGrad", "only used by tf.sparse in Python"},
    {"SparseFillEmptyRowsGrad", "only used by tf.sparse in Python"},
    {"MaxPoolGradWithArgmax", "needs MaxPoolGradGradWithArgmax, which has no kernel"},
    {"SparseConcat", "only used by tf.sparse in Python"},
    {"SparseReduceMaxSparse", "only used by tf.sparse in Python"},
    {"SparseReduceSumSparse", "only used by tf.sparse in Python"},
    {"SparseSlice", "only used by tf.sparse in Python"},
    {"SparseSliceGrad", "only used by tf.sparse in Python"},
    {"SparseSplit", "only used by tf.sparse in Python"},
    {"SerializeSparse", "only used by tf.sparse in Python"},
    {"SerializeManySparse", "only used by tf.sparse in Python"},
    {"DeserializeSparse", "only used by tf.sparse in Python"},
    {"BlockLSTMGrad", "a second derivative that TensorFlow does not have either"},
    {"BlockLSTMGradV2", "a second derivative that TensorFlow does not have either"},
    {"CholeskyGrad", "a second derivative that TensorFlow does not have either"},
    {"Eig", "the result is complex, and no product of complex matrices has a kernel"},
    {"Lu", "not implemented: the row permutation depends on the matrix"},
    {"FakeQuantWithMinMaxArgsGradient", "a second derivative that TensorFlow does not have either"},
    {"FakeQuantWithMinMaxVarsGradient", "a second derivative that TensorFlow does not have either"},
    {"FakeQuantWithMinMaxVarsPerChannelGradient",
     "a second derivative that TensorFlow does not have either"},
    {"QuantizeAndDequantizeV4Grad", "a second derivative that TensorFlow does not have either"},
    {"AudioSpectrogram", "input processing of audio; TensorFlow has none either"},
    {"Mfcc", "input processing of audio; TensorFlow has none either"},
    {"IgammaGradA", "TensorFlow has none either"},
    {"MatrixExponential", "TensorFlow has none either"},
    {"MatrixLogarithm", "TensorFlow has none either"},
    {"MatrixSolveLs", "not implemented: TensorFlow has one for only one of its two algorithms"},
    {"MatrixSquareRoot", "not implemented: it needs the Kronecker product of the root"},
    {"NonDeterministicInts", "integers"},
    {"RandomGamma", "random; TensorFlow differentiates the sample with RandomGammaGrad"},
    {"StatelessRandomGammaV2", "random; TensorFlow differentiates the sample with RandomGammaGrad"},
    {"StatelessRandomGammaV3", "random; TensorFlow differentiates the sample with RandomGammaGrad"},
    {"RandomGammaGrad", "TensorFlow has none either"},
    {"Svd", "not implemented: undefined for equal singular values"},
    {"TridiagonalMatMul", "not implemented: rarely trained through"},
    {"TridiagonalSolve", "not implemented: rarely trained through"},
    {"Dilation2DBackpropInput", "TensorFlow has none either"},
    {"Dilation2DBackpropFilter", "TensorFlow has none either"},
    {"PyFunc", "runs Python code"},
    {"PyFuncStateless", "runs Python code"},
    {"EagerPyFunc", "runs Python code"},
    {"GetSessionHandle", "stores a tensor; TensorFlow has none either"},
    {"GetSessionHandleV2", "stores a tensor; TensorFlow has none either"},
    {"GetSessionTensor", "reads a stored tensor; TensorFlow has none either"},
    {"DeepCopy", "TensorFlow has none either"},
    {"InplaceAdd", "TensorFlow has none either"},
    {"InplaceSub", "TensorFlow has none either"},
    {"InplaceUpdate", "TensorFlow has none either"},
    {"LSTMBlockCell", "TensorFlow has none either"},
    {"LSTMBlockCellGrad", "TensorFlow has none either"},
    {"GRUBlockCell", "TensorFlow has none either"},
    {"GRUBlockCellGrad", "TensorFlow has none either"},
    {"SparseBincount", "TensorFlow has none either"},
    {"DenseCountSparseOutput", "TensorFlow has none either"},
    {"RaggedBincount", "TensorFlow has none either"},
    {"RaggedCountSparseOutput", "TensorFlow has none either"},
    {"SparseCountSparseOutput", "TensorFlow has none either"},
    {"ReduceDataset", "TensorFlow has none either"},
    {"AdjustHsvInYiq", "TensorFlow has none either"},
    {"BoostedTreesAggregateStats", "TensorFlow has none either"},
    {"BoostedTreesBucketize", "TensorFlow has none either"},
    {"BoostedTreesCalculateBestGainsPerFeature", "TensorFlow has none either"},
    {"BoostedTreesMakeQuantileSummaries", "TensorFlow has none either"},
    {"BoostedTreesMakeStatsSummary", "TensorFlow has none either"},
    {"BoostedTreesPredict", "trees grow by their own rule; TensorFlow has none either"},
    {"BoostedTreesTrainingPredict", "likewise"},
    {"ImageProjectiveTransform", "the C client builds ImageProjectiveTransformV3"},
    {"MaskedMatmul", "TensorFlow has none either"},
    {"Resampler", "only clients of TensorFlow 1 build it"},
    {"ResamplerGrad", "a second derivative that TensorFlow does not have either"},
    {"WALSComputePartialLhsAndRhs", "TensorFlow has none either"},
    {"StringNGrams", "string op: the type attributes are of its splits"},
    {"RaggedGather", "only used by tf.ragged in Python"},
    {"RaggedRange", "only used by tf.ragged in Python"},
    {"RaggedTensorToTensor", "only used by tf.ragged in Python"},
    {"RaggedTensorToSparse", "only used by tf.ragged in Python"},
    {"RaggedTensorToVariant", "only used by tf.ragged in Python"},
    {"RaggedTensorFromVariant", "only used by tf.ragged in Python"},
    {"RaggedTensorToVariantGradient", "only used by tf.ragged in Python"},
    {"StatelessMultinomial", "random"},
    {"BatchNormWithGlobalNormalizationGrad",
     "a second derivative that TensorFlow does not have either"},
    {"SparseSegmentMeanGrad", "a second derivative that TensorFlow does not have either"},
    {"SparseSegmentMeanGradV2", "a second derivative that TensorFlow does not have either"},
    {"SparseSegmentSqrtNGradV2", "a second derivative that TensorFlow does not have either"},
    {"SparseSegmentSumGradV2", "a second derivative that TensorFlow does not have either"},
    {"SparseSegmentSqrtNGrad", "a second derivative that TensorFlow does not have either"},
    {"SparseSegmentSumGrad", "a second derivative that TensorFlow does not have either"},
};

static bool is_real(const struct mu_arg_def *a)
{
	return a->kind != MU_ARG_FIXED || a->type == MU_FLOAT || a->type == MU_DOUBLE;
}

/* True if the op has real inputs and outputs and modifies no variable. */
static bool may_be_differentiable(const struct mu_op_def *op)
{
	bool has_real_input = false, has_real_output = false;

	for (unsigned i = 0; i < op->n_inputs; i++) {
		has_real_input |= is_real(&op->inputs[i]) && !op->inputs[i].is_ref;
		if (op->inputs[i].is_ref)
			return false;
	}
	for (unsigned i = 0; i < op->n_outputs; i++)
		has_real_output |= is_real(&op->outputs[i]);
	return has_real_input && has_real_output;
}

static void every_op_with_a_kernel__has_a_gradient_or_a_reason(void **state)
{
	const struct mu_op_def *op;
	unsigned missing = 0;

	for (unsigned i = 0; (op = mu_op_at(i)); i++) {
		bool has = op_grad_find(op->name), listed = false;

		for (size_t k = 0; k < MU_COUNT(ops_not_differentiated); k++)
			listed |= strcmp(ops_not_differentiated[k].op, op->name) == 0;
		if (has && listed)
			fail_msg("%s has a gradient: remove it from ops_not_differentiated",
				 op->name);
		if (!has && !listed && may_be_differentiable(op) && cpu_kernel_find(op->name)) {
			print_error("%s has neither a gradient nor a reason to have none\n",
				    op->name);
			missing++;
		}
	}
	assert_int_equal(missing, 0);
}

static void op_without_gradient__is_named_in_the_error(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(3)), g;
	struct mu_out at = ints(b, 3, (int32_t[]){0, 2, 0}), n = mu_const_int(b, MU_INT32, 3);

	mu_gradients(b, mu_op(b, "Bincount", MU_IN(at, n, x)), &x, 1, &g);
	assert_fails(mu_builder_check(b, &err), &err, MU_UNIMPLEMENTED,
		     "op Bincount (node 'Bincount') has no gradient");
}

static void gradient_of_a_loop_in_a_frame__fails_and_suggests_mu_while(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(3)), g;
	struct mu_out in = mu_op(b, "Enter", MU_IN(x), MU_ATTRS(MU_A_STR("frame_name", "loop")));

	mu_gradients(b, mu_op(b, "Exit", MU_IN(mu_square(b, in))), &x, 1, &g);
	assert_fails(mu_builder_check(b, &err), &err, MU_UNIMPLEMENTED,
		     "op Exit (node 'Exit') has no gradient; build the loop with mu_while");
}

static void gradient_of_qr__for_an_unsupported_shape__fails(void **state)
{
	static const struct {
		struct mu_pshape shape;
		const char *why;
	} cases[] = {{{2, {-1, 3}}, "if the size of the matrix is unknown"},
		     {{2, {4, 3}}, "with full_matrices and more rows than columns"}};

	for (size_t i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
		struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, cases[i].shape), g;

		mu_gradients(b,
			     mu_op(b, "Qr", MU_IN(x), MU_ATTRS(MU_A_BOOL("full_matrices", true))),
			     &x, 1, &g);
		assert_fails(mu_builder_check(b, &err), &err, MU_UNIMPLEMENTED, cases[i].why);
	}
}

/* The gradient of Exp would need the conjugate of its result. */
static void complex_gradient__of_an_unsupported_op__names_the_op(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(3)), g;
	struct mu_out z = mu_exp(b, mu_op(b, "Complex", MU_IN(x, x)));

	mu_gradients(b, mu_op(b, "Real", MU_IN(z)), &x, 1, &g);
	assert_fails(mu_builder_check(b, &err), &err, MU_UNIMPLEMENTED,
		     "op Exp (node 'Exp') has no gradient of complex numbers");
}

static void prevent_gradient__reports_its_message(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(3)), g;
	struct mu_out y = mu_op(b, "PreventGradient", MU_IN(x),
				MU_ATTRS(MU_A_STR("message", "of frozen layers")));

	mu_gradients(b, mu_square(b, y), &x, 1, &g);
	assert_fails(mu_builder_check(b, &err), &err, MU_UNIMPLEMENTED, "of frozen layers");
}

static void non_differentiable_op__gives_no_gradient(void **state)
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
	    cmocka_unit_test(
		gradients_of_element_wise_ops_and_reductions__match_central_differences),
	    cmocka_unit_test(gradients_of_array_ops__match_central_differences),
	    cmocka_unit_test(
		gradients_of_gather_scatter_and_segment_ops__match_central_differences),
	    cmocka_unit_test(gradients_of_matrix_ops__match_central_differences),
	    cmocka_unit_test(gradients_of_neural_network_ops__match_central_differences),
	    cmocka_unit_test(
		gradients_of_complex_numbers_and_transforms__match_central_differences),
	    cmocka_unit_test(gradients_of_sparse_tensors__match_central_differences),
	    cmocka_unit_test(gradients_of_sequences_and_decompositions__match_central_differences),
	    cmocka_unit_test(gradients_of_functions_and_tensor_lists__match_central_differences),
	    cmocka_unit_test(gradients_of_unary_ops__match_central_differences),
	    cmocka_unit_test(gradients_of_binary_ops__match_central_differences),
	    cmocka_unit_test(gradient_of_a_resource_variable__is_that_of_its_handle),
	    cmocka_unit_test(gradient_of_a_switched_variable__passes_the_branch_that_ran),
	    cmocka_unit_test(every_gradient__has_a_case),
	    cmocka_unit_test(every_op_with_a_kernel__has_a_gradient_or_a_reason),
	    cmocka_unit_test(op_without_gradient__is_named_in_the_error),
	    cmocka_unit_test(gradient_of_a_loop_in_a_frame__fails_and_suggests_mu_while),
	    cmocka_unit_test(gradient_of_qr__for_an_unsupported_shape__fails),
	    cmocka_unit_test(complex_gradient__of_an_unsupported_op__names_the_op),
	    cmocka_unit_test(prevent_gradient__reports_its_message),
	    cmocka_unit_test(non_differentiable_op__gives_no_gradient),
	};

	return cmocka_run_group_tests(tests, NULL, test_server_stop);
}
