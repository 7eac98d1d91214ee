/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a task: the requested kind, the best one that the hardware supports, and the
 * selected one.
 *
 * A request is "auto", "cpu", "gpu", or a variant: "cpu-generic", "cpu-avx2", "cpu-avx512",
 * "arm64", "cuda" or "cuda-<arch>". A variant that the hardware lacks fails with
 * FAILED_PRECONDITION, and the message names the missing feature.  There is no silent fallback. */
#ifndef MU_TASK_DEVICE_CHOICE_H
#define MU_TASK_DEVICE_CHOICE_H

#include "task/device/gpu.h"

struct device_choice {
	char requested[32];
	char probed[64];         /* the best this machine has: "cpu-avx512" */
	char chosen[32];         /* "cpu-avx2" */
	char blas[32];           /* core type of OpenBLAS: "Haswell" */
	struct device_set *gpus; /* the caller of device_open frees it; NULL: none */
};

/* gpu: (optional) the options of GPUs, if these are requested. */
int device_open(const char *requested, const struct gpu_options *gpu, struct device_choice *out,
		struct mu_err *err);

#endif
