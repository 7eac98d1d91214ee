/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels a task runs: what was asked for, what the hardware has, what was chosen.
 *
 * Asked is "auto", "cpu", "gpu", or a variant: "cpu-generic", "cpu-avx2", "cpu-avx512", "arm64",
 * "cuda" or "cuda-<arch>".  A promise that the hardware does not keep is FAILED_PRECONDITION that
 * says what is missing; nothing falls back in silence.
 */
#ifndef MU_TASK_DEVICE_DEVICE_H
#define MU_TASK_DEVICE_DEVICE_H

#include <stdbool.h>

#include "task/device/gpu.h"

struct device_choice {
	char asked[32];
	char probed[64];      /* the best this machine has: "cpu-avx512" */
	char chosen[32];      /* "cpu-avx2" */
	char blas[32];        /* core type of OpenBLAS: "Haswell" */
	struct gpu_set *gpus; /* whoever opens it frees it; NULL: none */
};

/* A kind of device: cpu.c and cuda.c have one each. */
struct device_kind {
	const char *prefix; /* of the names it answers to */
	int (*open)(const char *asked, const struct gpu_options *o, struct device_choice *out,
		    struct mu_err *err);
};
extern const struct device_kind device_cpu, device_cuda;

/* gpu: (optional) how GPUs are to be used, when they are asked for. */
int device_open(const char *asked, const struct gpu_options *gpu, struct device_choice *out,
		struct mu_err *err);

#endif
