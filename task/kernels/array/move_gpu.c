/* SPDX-License-Identifier: Apache-2.0 */
/* GPU kernels that move elements without computing with them.  They are the functions of the CPU,
 * which call engine/move.h for the copies; MirrorPadGrad also adds the reflected elements.
 * Positions and sizes are read on the host, indices of rows on the GPU. */
#include "task/kernels/engine/gpu_table.h"

#define ROW(ops, attr, set, host, device)                                                          \
	GPU_SAME(ops, attr, set, .host_in = host, .device_in = device)
static const struct device_kernel rows[] = {
    ROW("Slice SplitV SpaceToBatchND BatchToSpaceND Roll MatrixBandPart", "T", GPU_PLAIN,
	1 << 1 | 1 << 2, 0),
    ROW("StridedSlice MatrixDiagV2 MatrixDiagV3", "T", GPU_PLAIN, 1 << 1 | 1 << 2 | 1 << 3, 0),
    ROW("StridedSliceGrad", "T", GPU_PLAIN, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3, 0),
    ROW("Tile Transpose ReverseV2 Pad PadV2 BroadcastTo SpaceToBatch "
	"BatchToSpace MirrorPad ReverseSequence MatrixDiagPartV2 "
	"MatrixDiagPartV3 DynamicPartition",
	"T", GPU_PLAIN, 1 << 1, 0),
    ROW("ConjugateTranspose", "T", GPU_PLAIN & ~GPU_TYPE(MU_COMPLEX64), 1 << 1, 0),
    ROW("Concat Split", "T", GPU_PLAIN, 1 << 0, 0),
    /* Input n is the axis.  It can be int64, so int64 tensors are concatenated on the host. */
    GPU_SAME("ConcatV2", "T", GPU_PLAIN & ~GPU_INT, .host_in_types = GPU_INT),
    ROW("ParallelConcat Pack Unpack SpaceToDepth DepthToSpace MatrixDiag "
	"MatrixDiagPart MatrixSetDiag Diag DiagPart DynamicStitch "
	"ParallelDynamicStitch",
	"T", GPU_PLAIN, 0, 0),
    ROW("Gather GatherNd", "Tparams", GPU_PLAIN, 0, 1 << 1),
    ROW("GatherV2", "Tparams", GPU_PLAIN, 1 << 2, 1 << 1),
    ROW("ResourceGather ResourceGatherNd", "dtype", GPU_FLT, 0, 1 << 1),
    ROW("MirrorPadGrad", "T", GPU_REAL | GPU_INT, 1 << 1, 0),
    ROW("MatrixSetDiagV2 MatrixSetDiagV3", "T", GPU_PLAIN, 1 << 2, 0),
    ROW("ResizeArea ResizeBicubic ResizeBilinear", "T", GPU_TYPE(MU_FLOAT), 1 << 1, 0),
    ROW("ResizeBicubicGrad ResizeBilinearGrad", "T", GPU_TYPE(MU_FLOAT), 0, 0),
    ROW("ResizeNearestNeighbor ResizeNearestNeighborGrad", "T", GPU_REAL, 1 << 1, 0),
    ROW("OneHot", "T", GPU_PLAIN, 1 << 1 | 1 << 2 | 1 << 3, 1 << 0),
};
KERNEL_TABLE(array_move_gpu, rows)
