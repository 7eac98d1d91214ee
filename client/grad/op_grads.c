// SPDX-License-Identifier: Apache-2.0
/* Looking a gradient up, and the ops that nothing flows back through: their outputs are whole
 * numbers, truth values, text or shapes, are flat almost everywhere, or come from nowhere. */
#include "client/grad/op_grads.h"

#define NOTHING(op)                                                                                \
	{                                                                                          \
#op, NULL, GRAD_FIRST                                                              \
	}
const struct op_grad grads_nothing[] = {
    NOTHING(All),
    NOTHING(Any),
    NOTHING(ApproximateEqual),
    NOTHING(ArgMax),
    NOTHING(ArgMin),
    NOTHING(AsString),
    NOTHING(Assert),
    NOTHING(Assign),
    NOTHING(AssignAdd),
    NOTHING(AssignSub),
    NOTHING(Bitcast),
    NOTHING(BitwiseAnd),
    NOTHING(BitwiseOr),
    NOTHING(BitwiseXor),
    NOTHING(BroadcastArgs),
    NOTHING(BroadcastGradientArgs),
    NOTHING(Ceil),
    NOTHING(ConcatOffset),
    NOTHING(Const),
    NOTHING(DataFormatDimMap),
    NOTHING(DataFormatVecPermute),
    NOTHING(DecodeCSV),
    NOTHING(DecodeRaw),
    NOTHING(DenseToDenseSetOperation),
    NOTHING(DenseToSparseSetOperation),
    NOTHING(Empty),
    NOTHING(Equal),
    NOTHING(FIFOQueueV2),
    NOTHING(Floor),
    NOTHING(FloorDiv),
    NOTHING(Greater),
    NOTHING(GreaterEqual),
    NOTHING(HashTableV2),
    NOTHING(HistogramFixedWidth),
    NOTHING(HistogramSummary),
    NOTHING(ImageSummary),
    NOTHING(InTopK),
    NOTHING(InTopKV2),
    NOTHING(Invert),
    NOTHING(InvertPermutation),
    NOTHING(IsFinite),
    NOTHING(IsInf),
    NOTHING(IsNan),
    NOTHING(IsVariableInitialized),
    NOTHING(Iterator),
    NOTHING(IteratorGetNext),
    NOTHING(IteratorV2),
    NOTHING(LeftShift),
    NOTHING(Less),
    NOTHING(LessEqual),
    NOTHING(LinSpace),
    NOTHING(ListDiff),
    NOTHING(LoadAndRemapMatrix),
    NOTHING(LogicalAnd),
    NOTHING(LogicalNot),
    NOTHING(LogicalOr),
    NOTHING(LookupTableFind),
    NOTHING(LookupTableFindV2),
    NOTHING(LookupTableSizeV2),
    NOTHING(LowerBound),
    NOTHING(MatchingFiles),
    NOTHING(MergeSummary),
    NOTHING(Multinomial),
    NOTHING(NextAfter),
    NOTHING(NoOp),
    NOTHING(NotEqual),
    NOTHING(OneHot),
    NOTHING(OneShotIterator),
    NOTHING(OnesLike),
    NOTHING(ParseExample),
    NOTHING(ParseExampleV2),
    NOTHING(ParseSingleExample),
    NOTHING(Placeholder),
    NOTHING(QueueDequeueManyV2),
    NOTHING(QueueDequeueUpToV2),
    NOTHING(QueueDequeueV2),
    NOTHING(RandomShuffle),
    NOTHING(RandomShuffleQueueV2),
    NOTHING(RandomStandardNormal),
    NOTHING(RandomUniform),
    NOTHING(RandomUniformInt),
    NOTHING(Range),
    NOTHING(Rank),
    NOTHING(ReadFile),
    NOTHING(ReaderReadUpToV2),
    NOTHING(ReaderReadV2),
    NOTHING(RestoreV2),
    NOTHING(RightShift),
    NOTHING(Rint),
    NOTHING(Round),
    NOTHING(ScalarSummary),
    NOTHING(Shape),
    NOTHING(ShapeN),
    NOTHING(Sign),
    NOTHING(Size),
    NOTHING(SparseCross),
    NOTHING(SparseReshape),
    NOTHING(SparseToSparseSetOperation),
    NOTHING(StatelessRandomNormal),
    NOTHING(StatelessRandomUniform),
    NOTHING(StatelessTruncatedNormal),
    NOTHING(StopGradient),
    NOTHING(StringJoin),
    NOTHING(StringSplit),
    NOTHING(StringSplitV2),
    NOTHING(StringToHashBucketFast),
    NOTHING(Substr),
    NOTHING(TensorArrayGradV3),
    NOTHING(TensorArraySizeV3),
    NOTHING(TensorArrayV3),
    NOTHING(TruncateDiv),
    NOTHING(TruncatedNormal),
    NOTHING(Unique),
    NOTHING(UniqueV2),
    NOTHING(UniqueWithCounts),
    NOTHING(UniqueWithCountsV2),
    NOTHING(UpperBound),
    NOTHING(VarHandleOp),
    NOTHING(VarIsInitializedOp),
    NOTHING(Variable),
    NOTHING(VariableShape),
    NOTHING(VariableV2),
    NOTHING(Where),
    NOTHING(ZerosLike),
    {NULL, NULL, GRAD_FIRST},
};

static const struct op_grad *const tables[] = {
    grads_of_math,      grads_of_grads,         grads_of_reductions,
    grads_of_arrays,    grads_of_slices,        grads_of_spaces,
    grads_of_nn,        grads_of_indices,       grads_of_segments,
    grads_of_diagonals, grads_of_tensor_arrays, grads_of_sparse,
    grads_composed,     grads_nothing};

const struct op_grad *op_grad_at(unsigned i)
{
	for (size_t t = 0; t < MU_COUNT(tables); t++)
		for (const struct op_grad *g = tables[t]; g->op; g++)
			if (i-- == 0)
				return g;
	return NULL;
}

const struct op_grad *op_grad_find(const char *op)
{
	for (size_t t = 0; t < MU_COUNT(tables); t++)
		for (const struct op_grad *g = tables[t]; g->op; g++)
			if (strcmp(g->op, op) == 0)
				return g;
	return NULL;
}
