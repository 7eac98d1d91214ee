/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's kernels by op name: the tables of gpu_tables.def in one hash table. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/map.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/kernel_table.h"

#define TABLE(name) GPU_KERNEL_TABLE_DECLARE(name)
#include "task/kernels/engine/gpu_tables.def"
#undef TABLE

static const struct gpu_kernel_table *const tables[] = {
#define TABLE(name) &gpu_kernel_table_##name,
#include "task/kernels/engine/gpu_tables.def"
#undef TABLE
};

static struct mu_map by_op;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A row may serve several ops. */
static void put_row(const struct device_kernel *k)
{
	const char *name = k->k.op;

	while (*name) {
		size_t n = strcspn(name, " ");
		mu_map_put_n(&by_op, name, n, (void *)k);
		name += n + (name[n] == ' ');
	}
}

static void gpu_kernels_build(void)
{
	mu_map_init(&by_op);
	for (unsigned t = 0; t < MU_COUNT(tables); t++)
		for (unsigned i = 0; i < tables[t]->count; i++)
			put_row(&tables[t]->rows[i]);
}

const struct device_kernel *gpu_kernel_row(const char *op)
{
	pthread_once(&once, gpu_kernels_build);
	return mu_map_get(&by_op, op);
}

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
