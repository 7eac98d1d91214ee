/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that a task runs: the kind that was asked for, the best that the hardware has, the
 * one that was chosen.
 *
 * Asked is "auto", "cpu", "gpu", or a variant: "cpu-generic", "cpu-avx2", "cpu-avx512", "arm64",
 * "cuda" or "cuda-<arch>".  A variant that the hardware lacks is FAILED_PRECONDITION that says what
 * is missing; there is no silent fallback.
 */
#ifndef MU_TASK_DEVICE_CHOICE_H
#define MU_TASK_DEVICE_CHOICE_H

#include "task/device/gpu.h"

struct device_choice {
	char asked[32];
	char probed[64];      /* the best this machine has: "cpu-avx512" */
	char chosen[32];      /* "cpu-avx2" */
	char blas[32];        /* core type of OpenBLAS: "Haswell" */
	struct gpu_set *gpus; /* the caller of device_open frees it; NULL: none */
};

/* gpu: (optional) how GPUs are to be used, when they are asked for. */
int device_open(const char *asked, const struct gpu_options *gpu, struct device_choice *out,
		struct mu_err *err);

#endif
