/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the CUDA driver that the task calls, as one table, and the interface of a GPU
 * plug-in.
 *
 * The task does not link with CUDA.  libmuster-cuda.so fills the table from libcuda.so.1; tests
 * fill it with a fake CUDA that runs in host memory (tests/fake/cuda).  Names, argument orders and
 * numbers are the driver's; handles are opaque.  Every call returns the driver's result, 0 for
 * success.
 */
#ifndef MU_TASK_DEVICE_CUDA_API_H
#define MU_TASK_DEVICE_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t cuda_ptr; /* an address in device memory; the host must not access it */

#include "task/device/dnn_api.h"

/* FN(field, symbol, arguments) */
#define CUDA_API(FN)                                                                               \
	FN(init, cuInit, (unsigned flags))                                                         \
	FN(driver_version, cuDriverGetVersion, (int *version))                                     \
	FN(device_count, cuDeviceGetCount, (int *count))                                           \
	FN(device_get, cuDeviceGet, (int *device, int ordinal))                                    \
	FN(device_name, cuDeviceGetName, (char *name, int len, int device))                        \
	FN(device_bus_id, cuDeviceGetPCIBusId, (char *id, int len, int device))                    \
	FN(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, int device))        \
	FN(context_retain, cuDevicePrimaryCtxRetain, (void **context, int device))                 \
	FN(context_release, cuDevicePrimaryCtxRelease_v2, (int device))                            \
	FN(context_set, cuCtxSetCurrent, (void *context))                                          \
	FN(memory_info, cuMemGetInfo_v2, (size_t * free, size_t * total))                          \
	FN(device_pool, cuDeviceGetDefaultMemPool, (void **pool, int device))                      \
	FN(pool_set, cuMemPoolSetAttribute, (void *pool, int attribute, void *value))              \
	FN(memory_alloc, cuMemAllocAsync, (cuda_ptr * at, size_t bytes, void *stream))             \
	FN(memory_free, cuMemFreeAsync, (cuda_ptr at, void *stream))                               \
	FN(copy_in, cuMemcpyHtoDAsync_v2,                                                          \
	   (cuda_ptr to, const void *from, size_t bytes, void *stream))                            \
	FN(copy_out, cuMemcpyDtoHAsync_v2, (void *to, cuda_ptr from, size_t bytes, void *stream))  \
	FN(copy_within, cuMemcpyDtoDAsync_v2,                                                      \
	   (cuda_ptr to, cuda_ptr from, size_t bytes, void *stream))                               \
	FN(fill, cuMemsetD8Async, (cuda_ptr to, unsigned char byte, size_t bytes, void *stream))   \
	FN(stream_new, cuStreamCreate, (void **stream, unsigned flags))                            \
	FN(stream_free, cuStreamDestroy_v2, (void *stream))                                        \
	FN(stream_sync, cuStreamSynchronize, (void *stream))                                       \
	FN(stream_wait, cuStreamWaitEvent, (void *stream, void *event, unsigned flags))            \
	FN(event_new, cuEventCreate, (void **event, unsigned flags))                               \
	FN(event_free, cuEventDestroy_v2, (void *event))                                           \
	FN(event_record, cuEventRecord, (void *event, void *stream))                               \
	FN(module_load, cuModuleLoadData, (void **module, const void *image))                      \
	FN(module_unload, cuModuleUnload, (void *module))                                          \
	FN(module_function, cuModuleGetFunction,                                                   \
	   (void **function, void *module, const char *name))                                      \
	FN(launch, cuLaunchKernel,                                                                 \
	   (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,       \
	    unsigned bz, unsigned shared, void *stream, void **args, void **extra))                \
	FN(error_text, cuGetErrorString, (int result, const char **text))

struct cuda_api {
#define CUDA_API_FIELD(field, symbol, args) int(*field) args;
	CUDA_API(CUDA_API_FIELD)
};

enum cuda_result {
	CUDA_OK = 0,
	CUDA_NO_MEMORY = 2,
	CUDA_NO_IMAGE_FOR_GPU = 209,
	CUDA_UNSUPPORTED_PTX = 222,
	CUDA_NOT_FOUND = 500,
};
enum cuda_attribute {
	CUDA_MULTIPROCESSORS = 16,
	CUDA_MAJOR = 75,
	CUDA_MINOR = 76,
};
enum { CUDA_STREAM_NON_BLOCKING = 1, CUDA_EVENT_NO_TIMING = 2, CUDA_POOL_RELEASE_THRESHOLD = 4 };

/* ---- matrix products: cuBLAS, 0 for success ---- */

#define BLAS_API(FN)                                                                               \
	FN(library_new, cublasCreate_v2, (void **library))                                         \
	FN(library_free, cublasDestroy_v2, (void *library))                                        \
	FN(stream_set, cublasSetStream_v2, (void *library, void *stream))                          \
	FN(multiply, cublasGemmStridedBatchedEx_64,                                                \
	   (void *library, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,              \
	    const void *alpha, cuda_ptr a, int a_type, int64_t a_leading, long long a_stride,      \
	    cuda_ptr b, int b_type, int64_t b_leading, long long b_stride, const void *beta,       \
	    cuda_ptr c, int c_type, int64_t c_leading, long long c_stride, int64_t batch,          \
	    int compute, int algorithm))

struct blas_api {
	BLAS_API(CUDA_API_FIELD)
};
#undef CUDA_API_FIELD
enum blas_number {
	BLAS_R_32F = 0,
	BLAS_R_64F = 1,
	BLAS_R_16F = 2,
	BLAS_R_16BF = 14,
	BLAS_COMPUTE_32F = 68,
	BLAS_COMPUTE_64F = 70,
	BLAS_COMPUTE_32F_TF32 = 77,
	BLAS_OP_N = 0,
	BLAS_OP_T = 1,
	BLAS_GEMM_DEFAULT = -1,
};

/* The symbol muster_cuda_plugin of libmuster-cuda.so, or of a fake. */
enum { CUDA_PLUGIN_VERSION = 8, CUDA_MIN_DRIVER_VERSION = 12000 };
struct cuda_plugin {
	unsigned version;
	const struct cuda_api *api;
	const struct blas_api *blas; /* NULL: cuBLAS is not installed */
	const struct dnn_api *dnn;   /* NULL: cuDNN is not installed */
	const void *image;           /* the kernels, an argument of cuModuleLoadData */
};
/* Returns 0 and sets *out; or returns another value and writes the reason to `why`. */
typedef int cuda_plugin_fn(const struct cuda_plugin **out, char *why, size_t n);

#endif
