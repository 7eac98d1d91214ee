/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of cuDNN 9 that the task calls, as one table; 0 for success.  Names, argument
 * orders and numbers are the library's; tests/kernels/cuda_headers.cc checks them against its
 * headers. */
#ifndef MU_TASK_DEVICE_DNN_API_H
#define MU_TASK_DEVICE_DNN_API_H

#include <stddef.h>
#include <stdint.h>

struct dnn_choice { /* cudnnConvolution…AlgoPerf_t: the three structs have the same layout */
	int algorithm, status;
	float time;
	size_t workspace;
	int deterministic, math;
	int reserved[3];
};

/* FN(field, symbol, arguments) */
#define DNN_API(FN)                                                                                \
	FN(library_new, cudnnCreate, (void **library))                                             \
	FN(library_free, cudnnDestroy, (void *library))                                            \
	FN(stream_set, cudnnSetStream, (void *library, void *stream))                              \
	FN(tensor_new, cudnnCreateTensorDescriptor, (void **tensor))                               \
	FN(tensor_set, cudnnSetTensor4dDescriptor,                                                 \
	   (void *tensor, int format, int type, int n, int c, int h, int w))                       \
	FN(tensor_free, cudnnDestroyTensorDescriptor, (void *tensor))                              \
	FN(filter_new, cudnnCreateFilterDescriptor, (void **filter))                               \
	FN(filter_set, cudnnSetFilter4dDescriptor,                                                 \
	   (void *filter, int type, int format, int k, int c, int h, int w))                       \
	FN(filter_free, cudnnDestroyFilterDescriptor, (void *filter))                              \
	FN(conv_new, cudnnCreateConvolutionDescriptor, (void **conv))                              \
	FN(conv_set, cudnnSetConvolution2dDescriptor,                                              \
	   (void *conv, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,          \
	    int dilation_w, int mode, int compute))                                                \
	FN(conv_groups, cudnnSetConvolutionGroupCount, (void *conv, int groups))                   \
	FN(conv_math, cudnnSetConvolutionMathType, (void *conv, int math))                         \
	FN(conv_free, cudnnDestroyConvolutionDescriptor, (void *conv))                             \
	FN(choose_forward, cudnnGetConvolutionForwardAlgorithm_v7,                                 \
	   (void *library, void *x, void *w, void *conv, void *y, int max, int *count,             \
	    struct dnn_choice *out))                                                               \
	FN(choose_input, cudnnGetConvolutionBackwardDataAlgorithm_v7,                              \
	   (void *library, void *w, void *dy, void *conv, void *dx, int max, int *count,           \
	    struct dnn_choice *out))                                                               \
	FN(choose_filter, cudnnGetConvolutionBackwardFilterAlgorithm_v7,                           \
	   (void *library, void *x, void *dy, void *conv, void *dw, int max, int *count,           \
	    struct dnn_choice *out))                                                               \
	FN(forward, cudnnConvolutionForward,                                                       \
	   (void *library, const void *alpha, void *x_desc, cuda_ptr x, void *w_desc, cuda_ptr w,  \
	    void *conv, int algorithm, cuda_ptr workspace, size_t bytes, const void *beta,         \
	    void *y_desc, cuda_ptr y))                                                             \
	FN(to_input, cudnnConvolutionBackwardData,                                                 \
	   (void *library, const void *alpha, void *w_desc, cuda_ptr w, void *dy_desc,             \
	    cuda_ptr dy, void *conv, int algorithm, cuda_ptr workspace, size_t bytes,              \
	    const void *beta, void *dx_desc, cuda_ptr dx))                                         \
	FN(to_filter, cudnnConvolutionBackwardFilter,                                              \
	   (void *library, const void *alpha, void *x_desc, cuda_ptr x, void *dy_desc,             \
	    cuda_ptr dy, void *conv, int algorithm, cuda_ptr workspace, size_t bytes,              \
	    const void *beta, void *dw_desc, cuda_ptr dw))

struct dnn_api {
#define DNN_API_FIELD(field, symbol, args) int(*field) args;
	DNN_API(DNN_API_FIELD)
#undef DNN_API_FIELD
};

enum dnn_number {
	DNN_FLOAT = 0,
	DNN_DOUBLE = 1,
	DNN_HALF = 2,
	DNN_BFLOAT16 = 9,
	DNN_NHWC = 1,
	DNN_CROSS_CORRELATION = 1,
	DNN_DETERMINISTIC = 1,
	DNN_DEFAULT_MATH = 0,
	DNN_TENSOR_OP_MATH = 1,
	DNN_FMA_MATH = 3,
	DNN_BAD_PARAM = 2000,
	DNN_NOT_SUPPORTED = 3000,
};

#endif
