/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's entry points as our tables have them (task/device/cuda_api.h) beside its own headers:
 * as many arguments, each as wide and of the same kind, the same numbers, structs laid out alike.
 * Nothing runs; it compiles or says what is wrong.  Made with the plug-in where the headers are. */
#define __CUDA_API_VERSION_INTERNAL 1 /* the names with their versions, too */
#include <cuda.h>

#include <cstddef>
#include <type_traits>

extern "C" {
#include "task/device/cuda_api.h"
}

enum kind { NUMBER, REAL, ADDRESS };

/* Addresses of the device are numbers to us, and handles and addresses to some of the headers. */
template <class T> constexpr kind kind_of()
{
	if (std::is_pointer<T>::value)
		return ADDRESS;
	return std::is_floating_point<T>::value ? REAL : NUMBER;
}

template <class Ours, class Theirs> constexpr bool fit()
{
	constexpr kind a = kind_of<Ours>(), b = kind_of<Theirs>();

	return sizeof(Ours) == sizeof(Theirs) &&
	       (a == b || (std::is_same<Ours, cuda_ptr>::value && b == ADDRESS));
}

template <class Ours, class Theirs> struct same : std::false_type {
};
template <class... A, class R, class... B> struct same<int (*)(A...), R (*)(B...)> {
	template <class...> struct list {
	};
	static constexpr bool each(list<>, list<>)
	{
		return true;
	}
	template <class... X> static constexpr bool each(list<>, list<X...>)
	{
		return false;
	}
	template <class... X> static constexpr bool each(list<X...>, list<>)
	{
		return false;
	}
	template <class X, class... Xs, class Y, class... Ys>
	static constexpr bool each(list<X, Xs...>, list<Y, Ys...>)
	{
		return fit<X, Y>() && each(list<Xs...>(), list<Ys...>());
	}
	static constexpr bool value = sizeof(R) == sizeof(int) && each(list<A...>(), list<B...>());
};

#define SAME(field, symbol, args)                                                                  \
	static_assert(same<int(*) args, decltype(&symbol)>::value, #symbol " is another");
#define EQUAL(ours, theirs)                                                                        \
	static_assert((long)(ours) == (long)(theirs), #ours " is another number");

CUDA_API(SAME)
EQUAL(CUDA_NO_MEMORY, CUDA_ERROR_OUT_OF_MEMORY)
EQUAL(CUDA_NO_IMAGE_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU)
EQUAL(CUDA_UNSUPPORTED_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
EQUAL(CUDA_NOT_FOUND, CUDA_ERROR_NOT_FOUND)
EQUAL(CUDA_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
EQUAL(CUDA_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
EQUAL(CUDA_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
EQUAL(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING)
EQUAL(CUDA_POOL_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
EQUAL(CUDA_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING)

#if __has_include(<cublas_api.h>)
#include <cublas_api.h>

BLAS_API(SAME)
EQUAL(BLAS_R_32F, CUDA_R_32F)
EQUAL(BLAS_R_64F, CUDA_R_64F)
EQUAL(BLAS_R_16F, CUDA_R_16F)
EQUAL(BLAS_R_16BF, CUDA_R_16BF)
EQUAL(BLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F)
EQUAL(BLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F)
EQUAL(BLAS_COMPUTE_32F_TF32, CUBLAS_COMPUTE_32F_FAST_TF32)
EQUAL(BLAS_OP_N, CUBLAS_OP_N)
EQUAL(BLAS_OP_T, CUBLAS_OP_T)
EQUAL(BLAS_GEMM_DEFAULT, CUBLAS_GEMM_DEFAULT)
#endif

#if __has_include(<cudnn.h>)
#include <cudnn.h>

DNN_API(SAME)
#define SAME_CHOICE(theirs)                                                                        \
	static_assert(sizeof(dnn_choice) == sizeof(theirs), "");                                   \
	static_assert(offsetof(dnn_choice, status) == offsetof(theirs, status), "");               \
	static_assert(offsetof(dnn_choice, workspace) == offsetof(theirs, memory), "");            \
	static_assert(offsetof(dnn_choice, deterministic) == offsetof(theirs, determinism), "");   \
	static_assert(offsetof(dnn_choice, math) == offsetof(theirs, mathType), "");
SAME_CHOICE(cudnnConvolutionFwdAlgoPerf_t)
SAME_CHOICE(cudnnConvolutionBwdDataAlgoPerf_t)
SAME_CHOICE(cudnnConvolutionBwdFilterAlgoPerf_t)
EQUAL(DNN_FLOAT, CUDNN_DATA_FLOAT)
EQUAL(DNN_DOUBLE, CUDNN_DATA_DOUBLE)
EQUAL(DNN_HALF, CUDNN_DATA_HALF)
EQUAL(DNN_BFLOAT16, CUDNN_DATA_BFLOAT16)
EQUAL(DNN_NHWC, CUDNN_TENSOR_NHWC)
EQUAL(DNN_CROSS_CORRELATION, CUDNN_CROSS_CORRELATION)
EQUAL(DNN_DETERMINISTIC, CUDNN_DETERMINISTIC)
EQUAL(DNN_DEFAULT_MATH, CUDNN_DEFAULT_MATH)
EQUAL(DNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH)
EQUAL(DNN_FMA_MATH, CUDNN_FMA_MATH)
EQUAL(DNN_BAD_PARAM, CUDNN_STATUS_BAD_PARAM)
EQUAL(DNN_NOT_SUPPORTED, CUDNN_STATUS_NOT_SUPPORTED)
#endif
