/* SPDX-License-Identifier: Apache-2.0 */
/* libmuster-cuda.so: the kernels that nvcc compiled, and the entry points of the CUDA driver, found
 * by name; also those of cuBLAS and cuDNN, if they are installed.
 *
 * Nothing is linked with CUDA, so the library loads anywhere and reports what is missing: the
 * driver, a device, an entry point, or the kernels, if it was built without nvcc. */
#include <dlfcn.h>
#include <stdio.h>

#include "task/device/cuda_api.h"

__attribute__((visibility("default"))) cuda_plugin_fn muster_cuda_plugin;

#ifdef CUDA_IMAGE
__asm__(".section .rodata\n"
	".balign 64\n"
	"kernels_start:\n"
	".incbin \"" CUDA_IMAGE "\"\n"
	".byte 0\n"
	".previous\n");
extern const char kernels_start[] __attribute__((visibility("hidden")));
static const char *const kernels_image = kernels_start;
#else
static const char *const kernels_image;
#endif

/* Hints for the result codes of CUDA that an administrator can act on. */
static const char *result_hint(int result)
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

/* Returns the first symbol that the library lacks, or NULL. */
#define FIND(field, symbol, args)                                                                  \
	if (!(*(void **)&api->field = dlsym(so, #symbol)))                                         \
		return #symbol;
static const char *find_functions(void *so, struct cuda_api *api)
{
	CUDA_API(FIND)
	return NULL;
}

static void *open_first(const char *const *names)
{
	void *so = NULL;

	for (; *names && !so; names++)
		so = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
	return so;
}

/* find_NAME: the entry points of a library, or NULL if it is not installed or lacks one of them. */
#define LIBRARY(name, API, ...)                                                                    \
	static const char *fill_##name(void *so, struct name##_api *api)                           \
	{                                                                                          \
		API(FIND)                                                                          \
		return NULL;                                                                       \
	}                                                                                          \
	static const struct name##_api *find_##name(void)                                          \
	{                                                                                          \
		static const char *const names[] = {__VA_ARGS__, NULL};                            \
		static struct name##_api api;                                                      \
		void *so = open_first(names);                                                      \
		if (so && !fill_##name(so, &api))                                                  \
			return &api;                                                               \
		if (so)                                                                            \
			dlclose(so);                                                               \
		return NULL;                                                                       \
	}
LIBRARY(blas, BLAS_API, "libcublas.so.13", "libcublas.so.12")
LIBRARY(dnn, DNN_API, "libcudnn.so.9")

static int start(const struct cuda_api *api, char *reason, size_t n)
{
	int count = 0, version = 0, result;

	if ((result = api->init(0)) != 0) {
		snprintf(reason, n, "%s; cuInit says %d", result_hint(result), result);
		return -1;
	}
	if ((result = api->device_count(&count)) != 0 || count == 0) {
		snprintf(reason, n, "%s; cuDeviceGetCount says %d",
			 result_hint(result ? result : 100), result);
		return -1;
	}
	if (!api->driver_version(&version) && version < CUDA_MIN_DRIVER_VERSION) {
		snprintf(reason, n, "the driver is of CUDA %d.%d; it must be %d.%d or newer",
			 version / 1000, version % 1000 / 10, CUDA_MIN_DRIVER_VERSION / 1000,
			 CUDA_MIN_DRIVER_VERSION % 1000 / 10);
		return -1;
	}
	if (!kernels_image) {
		snprintf(reason, n,
			 "%d device%s found, but this plug-in was built without CUDA kernels (no "
			 "nvcc where it was built)",
			 count, count == 1 ? "" : "s");
		return -1;
	}
	return 0;
}

int muster_cuda_plugin(const struct cuda_plugin **out, char *reason, size_t n)
{
	static struct cuda_api api;
	static struct cuda_plugin plugin = {CUDA_PLUGIN_VERSION, &api, NULL, NULL, NULL};
	void *so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!so) {
		snprintf(reason, n, "libcuda.so.1 is not on this machine (no NVIDIA driver)");
		return -1;
	}
	const char *missing = find_functions(so, &api);
	if (missing)
		snprintf(reason, n,
			 "libcuda.so.1 has no %s: it is not the NVIDIA driver's, or too old",
			 missing);
	if (missing || start(&api, reason, n)) {
		dlclose(so);
		return -1;
	}
	plugin.blas = find_blas();
	plugin.dnn = find_dnn();
	plugin.image = kernels_image;
	*out = &plugin;
	return 0;
}
