/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the GPUs of this machine through the CUDA plug-in. */
#ifndef MU_TASK_DEVICE_CUDA_H
#define MU_TASK_DEVICE_CUDA_H

#include "task/device/gpu.h"

/* asked: "gpu", "cuda" or "cuda-sm90", the least that the GPU must be able to run.  o: (optional).
 * chosen: "cuda-sm90". */
int cuda_open(const char *asked, const struct gpu_options *o, struct device_set **out, char *chosen,
	      size_t n_chosen, struct mu_err *err);

#endif
