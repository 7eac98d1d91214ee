/* SPDX-License-Identifier: Apache-2.0 */
/* Macros for device code that compiles as CUDA and as C.
 *
 * nvcc compiles a kernel to device code.  A C compiler compiles it to a function that
 * tests/fake/cuda calls once for each thread of a grid, so every kernel can be tested without a
 * GPU.  A kernel takes one struct of args.h, `a`:
 *
 *	KERNEL(name, struct_tag) { EACH (i, a.n) PTR(float, a.out)[i] = 0; }
 *
 * BLOCK_KERNEL defines a kernel whose threads synchronise at SYNC() and use SHARED memory.
 */
#ifndef MU_TASK_KERNELS_ENGINE_CUDA_DEVICE_MACROS_H
#define MU_TASK_KERNELS_ENGINE_CUDA_DEVICE_MACROS_H

#include <stdint.h>

/* A grid-stride loop: the first element of this thread, and the distance to its next one. */
#define FIRST      ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define STEP       ((int64_t)gridDim.x * blockDim.x)
#define EACH(i, n) for (int64_t i = FIRST, i##_step = STEP; i < (n); i += i##_step)

#ifdef __CUDACC__

#include <math.h>

#define PTR(type, address)       ((type *)(uintptr_t)(address))
#define DEVICE                   static __device__ __forceinline__
#define SHARED                   __shared__
#define SYNC()                   __syncthreads()
#define KERNEL(name, args)       extern "C" __global__ void name(const __grid_constant__ struct args a)
#define BLOCK_KERNEL(name, args) KERNEL(name, args)

#else

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <tgmath.h>

struct host_dim {
	unsigned x;
};
extern _Thread_local struct host_dim threadIdx, blockIdx, blockDim, gridDim;
void host_kernel_add(const char *name, void (*call)(const void *args), size_t size, int meets);
void host_sync(void);

/* Device addresses have this bit, so they differ from host addresses.  A host address or a
 * misaligned one would be a fault of the kernel on a GPU; here the process aborts with a message.
 */
#define HOST_DEVICE_BIT    ((uint64_t)1 << 55)
_Noreturn void host_address_fault(uint64_t address, size_t align);
static inline void *host_at(uint64_t address, size_t align)
{
	if ((address & (align - 1)) || !(address & HOST_DEVICE_BIT))
		host_address_fault(address, align);
	return (void *)(uintptr_t)(address ^ HOST_DEVICE_BIT);
}
#define PTR(type, address) ((type *)host_at(address, _Alignof(type)))

#define DEVICE static inline
#define SHARED static _Thread_local
#define SYNC() host_sync()
#define HOST_KERNEL(name, args, meets)                                                             \
	static void name(const struct args a);                                                     \
	static void name##_call(const void *p)                                                     \
	{                                                                                          \
		struct args a;                                                                     \
		memcpy(&a, p, sizeof a);                                                           \
		name(a);                                                                           \
	}                                                                                          \
	__attribute__((constructor)) static void name##_add(void)                                  \
	{                                                                                          \
		host_kernel_add(#name, name##_call, sizeof(struct args), meets);                   \
	}                                                                                          \
	static void name(const struct args a)
#define KERNEL(name, args)       HOST_KERNEL(name, args, 0)
#define BLOCK_KERNEL(name, args) HOST_KERNEL(name, args, 1)

#endif
#endif
