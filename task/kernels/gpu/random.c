/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers on a GPU: the CPU's functions, which keep the generators and have the GPU draw.
 * Shapes and seeds are read on the host. */
#include "task/kernels/gpu_table.h"

#define ROW(name)                                                                                  \
	{                                                                                          \
		.k = {.op = name}, .type_attr = "dtype", .types = GPU_REAL,                        \
		.host_in = 1 << 0 | 1 << 1, .same = true                                           \
	}
static const struct gpu_kernel rows[] = {
    ROW("RandomUniform"),          ROW("RandomStandardNormal"),  ROW("TruncatedNormal"),
    ROW("StatelessRandomUniform"), ROW("StatelessRandomNormal"), ROW("StatelessTruncatedNormal"),
};
GPU_KERNEL_TABLE(gpu_random, rows)
