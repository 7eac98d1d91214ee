/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's kernels as C; each adds itself to the list of host_kernels.c. */
#include <stdbool.h>

#include "task/kernels/engine/cuda/kernels.cu"
