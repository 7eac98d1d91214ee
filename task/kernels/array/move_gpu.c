/* SPDX-License-Identifier: Apache-2.0 */
/* What moves elements without looking at them: the CPU's functions, which leave the moving to
 * engine/move.h, or what they weigh to image/resize_gpu.c.  Also what sums reflections up again.
 * Positions and sizes are read on the host; indices of rows on the GPU. */
#include "task/kernels/engine/gpu_table.h"

#define ROW(name, attr, set, host, device)                                                         \
	{                                                                                          \
		.k = {.op = name}, .type_attr = attr, .types = set, .host_in = host,               \
		.device_in = device, .same = true                                                  \
	}
static const struct device_kernel rows[] = {
    ROW("Slice", "T", GPU_PLAIN, 1 << 1 | 1 << 2, 0),
    ROW("StridedSlice", "T", GPU_PLAIN, 1 << 1 | 1 << 2 | 1 << 3, 0),
    ROW("StridedSliceGrad", "T", GPU_PLAIN, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3, 0),
    ROW("Tile", "T", GPU_PLAIN, 1 << 1, 0),
    ROW("Transpose", "T", GPU_PLAIN, 1 << 1, 0),
    ROW("ConjugateTranspose", "T", GPU_PLAIN & ~GPU_TYPE(MU_COMPLEX64), 1 << 1, 0),
    ROW("ReverseV2", "T", GPU_PLAIN, 1 << 1, 0),
    ROW("Pad", "T", GPU_PLAIN, 1 << 1, 0),
    ROW("PadV2", "T", GPU_PLAIN, 1 << 1, 0),
    ROW("Concat", "T", GPU_PLAIN, 1 << 0, 0),
    /* the axis comes last, and may be an int64: those are joined on the host, then */
    {.k = {.op = "ConcatV2"},
     .type_attr = "T",
     .types = GPU_PLAIN & ~GPU_INT,
     .host_types = GPU_INT,
     .same = true},
    ROW("ParallelConcat", "T", GPU_PLAIN, 0, 0),
    ROW("Pack", "T", GPU_PLAIN, 0, 0),
    ROW("Unpack", "T", GPU_PLAIN, 0, 0),
    ROW("Split", "T", GPU_PLAIN, 1 << 0, 0),
    ROW("SplitV", "T", GPU_PLAIN, 1 << 1 | 1 << 2, 0),
    ROW("Gather", "Tparams", GPU_PLAIN, 0, 1 << 1),
    ROW("GatherV2", "Tparams", GPU_PLAIN, 1 << 2, 1 << 1),
    ROW("ResourceGather", "dtype", GPU_FLT, 0, 1 << 1),
    ROW("GatherNd", "Tparams", GPU_PLAIN, 0, 1 << 1),
    ROW("ResourceGatherNd", "dtype", GPU_FLT, 0, 1 << 1),
    ROW("BroadcastTo", "T", GPU_PLAIN, 1 << 1, 0),
    ROW("SpaceToBatch", "T", GPU_PLAIN, 1 << 1, 0),
    ROW("SpaceToBatchND", "T", GPU_PLAIN, 1 << 1 | 1 << 2, 0),
    ROW("BatchToSpace", "T", GPU_PLAIN, 1 << 1, 0),
    ROW("BatchToSpaceND", "T", GPU_PLAIN, 1 << 1 | 1 << 2, 0),
    ROW("SpaceToDepth", "T", GPU_PLAIN, 0, 0),
    ROW("DepthToSpace", "T", GPU_PLAIN, 0, 0),
    ROW("MirrorPad", "T", GPU_PLAIN, 1 << 1, 0),
    ROW("MirrorPadGrad", "T", GPU_REAL | GPU_INT, 1 << 1, 0),
    ROW("Roll", "T", GPU_PLAIN, 1 << 1 | 1 << 2, 0),
    ROW("ReverseSequence", "T", GPU_PLAIN, 1 << 1, 0),
    ROW("MatrixDiag", "T", GPU_PLAIN, 0, 0),
    ROW("MatrixDiagV2", "T", GPU_PLAIN, 1 << 1 | 1 << 2 | 1 << 3, 0),
    ROW("MatrixDiagV3", "T", GPU_PLAIN, 1 << 1 | 1 << 2 | 1 << 3, 0),
    ROW("MatrixDiagPart", "T", GPU_PLAIN, 0, 0),
    ROW("MatrixDiagPartV2", "T", GPU_PLAIN, 1 << 1, 0),
    ROW("MatrixDiagPartV3", "T", GPU_PLAIN, 1 << 1, 0),
    ROW("MatrixSetDiag", "T", GPU_PLAIN, 0, 0),
    ROW("MatrixSetDiagV2", "T", GPU_PLAIN, 1 << 2, 0),
    ROW("MatrixSetDiagV3", "T", GPU_PLAIN, 1 << 2, 0),
    ROW("MatrixBandPart", "T", GPU_PLAIN, 1 << 1 | 1 << 2, 0),
    ROW("Diag", "T", GPU_PLAIN, 0, 0),
    ROW("DiagPart", "T", GPU_PLAIN, 0, 0),
    ROW("DynamicStitch", "T", GPU_PLAIN, 0, 0),
    ROW("ParallelDynamicStitch", "T", GPU_PLAIN, 0, 0),
    ROW("DynamicPartition", "T", GPU_PLAIN, 1 << 1, 0),
    ROW("ResizeArea", "T", GPU_TYPE(MU_FLOAT), 1 << 1, 0),
    ROW("ResizeBicubic", "T", GPU_TYPE(MU_FLOAT), 1 << 1, 0),
    ROW("ResizeBicubicGrad", "T", GPU_TYPE(MU_FLOAT), 0, 0),
    ROW("ResizeBilinear", "T", GPU_TYPE(MU_FLOAT), 1 << 1, 0),
    ROW("ResizeBilinearGrad", "T", GPU_TYPE(MU_FLOAT), 0, 0),
    ROW("ResizeNearestNeighbor", "T", GPU_REAL, 1 << 1, 0),
    ROW("ResizeNearestNeighborGrad", "T", GPU_REAL, 1 << 1, 0),
    ROW("OneHot", "T", GPU_PLAIN, 1 << 1 | 1 << 2 | 1 << 3, 1 << 0),
};
GPU_KERNEL_TABLE(array_move_gpu, rows)
