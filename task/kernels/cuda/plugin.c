/* SPDX-License-Identifier: Apache-2.0 */
/* libmuster-cuda.so: says whether CUDA kernels can run on this machine, and if not, what exactly is
 * missing.  This build has no kernels of its own (they need nvcc), so the best it can say is that a
 * device is here.  The driver is opened by name: building needs no CUDA at all. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int muster_cuda_probe(char *why, size_t n);

typedef int cu_init_fn(unsigned flags);
typedef int cu_count_fn(int *count);

/* The few of CUDA's result numbers that an operator can do something about. */
static const char *meaning(int result)
{
	switch (result) {
	case 100:
		return "no CUDA-capable device is visible (a pod asks for nvidia.com/gpu)";
	case 101:
		return "the device number is not valid (look at CUDA_VISIBLE_DEVICES)";
	case 803:
		return "the driver library and the kernel module are of different versions";
	case 804:
		return "this driver's compatibility mode is not supported on this device";
	case 999:
		return "the driver does not answer (is the nvidia kernel module loaded?)";
	default:
		return "the driver refused to start";
	}
}

/* 0: CUDA kernels can run here. */
int muster_cuda_probe(char *why, size_t n)
{
	void *so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int count = 0, result;

	if (!so) {
		snprintf(why, n, "libcuda.so.1 is not on this machine (no NVIDIA driver)");
		return -1;
	}
	cu_init_fn *init;
	cu_count_fn *get_count;
	*(void **)&init = dlsym(so, "cuInit");
	*(void **)&get_count = dlsym(so, "cuDeviceGetCount");
	if (!init || !get_count) {
		snprintf(why, n, "libcuda.so.1 is not the NVIDIA driver's: it has no cuInit");
	} else if ((result = init(0)) != 0) {
		snprintf(why, n, "%s; cuInit says %d", meaning(result), result);
	} else if ((result = get_count(&count)) != 0 || count == 0) {
		snprintf(why, n, "%s; cuDeviceGetCount says %d", meaning(result ? result : 100),
			 result);
	} else {
		snprintf(why, n,
			 "%d device%s found, but this plug-in was built without CUDA kernels (no "
			 "nvcc where it was built)",
			 count, count == 1 ? "" : "s");
	}
	dlclose(so);
	return -1;
}
