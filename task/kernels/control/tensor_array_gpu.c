/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor arrays, stacks and tensor lists on a GPU.  The kernels are those of the CPU.  They
 * store tensors in GPU memory unchanged and copy elements with move.h.  Handles, lists, indices and
 * lengths are on the host. */
#include "task/kernels/engine/gpu_table.h"

#define ROW(ops, attr, host_i, host_o)                                                             \
	GPU_SAME(ops, attr, GPU_FLT | GPU_EQ, .host_in = host_i, .host_out = host_o)
/* A list may be an element of a list. */
#define LIST(ops, attr, host_i, host_o)                                                            \
	GPU_SAME(ops, attr, GPU_FLT | GPU_EQ | GPU_TYPE(MU_VARIANT), .host_in = host_i,            \
		 .host_out = host_o)
static const struct device_kernel rows[] = {
    ROW("TensorArrayV3", "dtype", 0, 0),
    ROW("TensorArrayGradV3 TensorArraySizeV3 TensorArrayCloseV3 StackClose "
	"StackCloseV2",
	NULL, 0, 0),
    ROW("TensorArrayGradWithShape", NULL, 1 << 2, 0),
    ROW("TensorArrayWriteV3 TensorArrayScatterV3", "T", 1 << 1, 0),
    ROW("TensorArrayReadV3 TensorArrayGatherV3", "dtype", 1 << 1, 0),
    ROW("TensorArrayConcatV3", "dtype", 0, 1 << 1),
    ROW("TensorArraySplitV3", "T", 1 << 2, 0),
    ROW("Stack StackPop StackV2 StackPopV2", "elem_type", 0, 0),
    ROW("StackPush StackPushV2", "T", 0, 0),
    LIST("EmptyTensorList TensorListReserve", "element_dtype", 1 << 0 | 1 << 1, 0),
    LIST("TensorListFromTensor TensorListPopBack TensorListSetItem "
	 "TensorListStack",
	 "element_dtype", 1 << 1, 0),
    LIST("TensorListSplit TensorListGetItem TensorListScatter TensorListGather", "element_dtype",
	 1 << 1 | 1 << 2, 0),
    LIST("TensorListPushBack", "element_dtype", 0, 0),
    LIST("TensorListResize", NULL, 1 << 1, 0),
    LIST("TensorListScatterIntoExistingList", "element_dtype", 1 << 2, 0),
    LIST("TensorListScatterV2", "element_dtype", 1 << 1 | 1 << 2 | 1 << 3, 0),
    LIST("TensorListLength", NULL, 0, 0),
    LIST("TensorListElementShape", NULL, 0, 1 << 0),
    LIST("TensorListConcat", "element_dtype", 0, 1 << 1),
    LIST("TensorListConcatV2", "element_dtype", 1 << 1 | 1 << 2, 1 << 1),
};
KERNEL_TABLE(control_tensor_array_gpu, rows)
