/* SPDX-License-Identifier: Apache-2.0 */
/* The choice between the GPU kernel and the CPU kernel of a node. */
#include <stdio.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/kernel_table.h"

const struct device_kernel *gpu_kernel_find(const struct mu_node *n)
{
	const struct device_kernel *k = gpu_kernel_row(n->op);

	if (!k || !k->type_attr)
		return k;
	return device_kernel_has_type(k, args_attr_type(n, k->type_attr, MU_DT_INVALID)) ? k : NULL;
}

/* Ops that TensorFlow's graphs may place on GPUs and that run on the host here: ops on small
 * integers, ops on shapes and types, and ops without a GPU kernel.  Such a placement is not an
 * error.  None of them may change a variable, which would be on the GPU. */
static const char host_ops[] =
    " Range LinSpace BroadcastGradientArgs BroadcastArgs ConcatOffset "
    "InvertPermutation DataFormatVecPermute DataFormatDimMap Assert PrintV2 "
    "_Send _Recv _HostSend _HostRecv _Arg _Retval _SwitchN ToBool "
    "PartitionedCall StatefulPartitionedCall Unique UniqueV2 UniqueWithCounts "
    "UniqueWithCountsV2 Bincount DenseBincount HistogramFixedWidth Bucketize "
    "PopulationCount Bitcast Empty Betainc Complex Real Imag ComplexAbs Angle "
    "Conj RGBToHSV HSVToRGB AdjustHue AdjustSaturation AdjustContrastv2 "
    "CropAndResize CropAndResizeGradImage CropAndResizeGradBoxes SparseToDense "
    "SparseReshape SparseReorder SparseFillEmptyRows SparseFillEmptyRowsGrad "
    "SparseConcat SparseSplit SparseSlice Cholesky CholeskyGrad Qr Svd Lu "
    "LogMatrixDeterminant MatrixDeterminant MatrixInverse MatrixSolve "
    "MatrixTriangularSolve SelfAdjointEigV2 TridiagonalMatMul TridiagonalSolve "
    "FFT FFT2D FFT3D IFFT IFFT2D IFFT3D RFFT RFFT2D RFFT3D IRFFT IRFFT2D "
    "IRFFT3D Stage Unstage StagePeek StageSize StageClear IteratorV2 "
    "MakeIterator IteratorGetNext IteratorGetNextSync IteratorToStringHandle "
    "IteratorFromStringHandleV2 ";

enum kernel_gpu kernel_on_gpu(const struct mu_node *n)
{
	char word[64];

	snprintf(word, sizeof word, " %s ", n->op);
	if (gpu_kernel_find(n))
		return KERNEL_GPU_NATIVE;
	return gpu_kernel_row(n->op) || strstr(host_ops, word) ? KERNEL_GPU_HOST : KERNEL_GPU_NONE;
}
