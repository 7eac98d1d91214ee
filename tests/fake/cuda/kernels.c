/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU kernels compiled as C; each registers itself in host_kernels.c. */
#include <stdbool.h>

#include "task/kernels/engine/cuda/kernels.cu"
