/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers on a GPU.  The CPU's kernel functions hold the generators and launch the draws on
 * the GPU.  Shapes and seeds are read on the host. */
#include "task/kernels/engine/gpu_table.h"

#define ROW(ops, host) GPU_SAME(ops, "dtype", GPU_REAL, .host_in = host)
/* The start of the random numbers is computed on the host. */
#define BEGIN(ops) GPU_SAME(ops, NULL, 0, .host_in = 1, .host_out = 7)
enum { SHAPE = 1 << 0, SEED = 1 << 1, KEY = 7 << 1, ALL = ~0 };
/* uint32 is the only 32-bit type: int32 tensors stay in host memory. */
#define WHOLE(ops, attr, host)                                                                     \
	GPU_SAME(ops, attr, GPU_INT | GPU_TYPE(MU_UINT32) | GPU_TYPE(MU_UINT64), .host_in = host)
static const struct device_kernel rows[] = {
    ROW("RandomUniform RandomStandardNormal TruncatedNormal", SHAPE),
    ROW("StatelessRandomUniform StatelessRandomNormal StatelessTruncatedNormal", SHAPE | SEED),
    ROW("StatelessRandomUniformV2 StatelessRandomNormalV2 "
	"StatelessTruncatedNormalV2",
	SHAPE | KEY),
    WHOLE("RandomUniformInt", "Tout", ALL),
    WHOLE("StatelessRandomUniformInt StatelessRandomUniformIntV2 "
	  "StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2",
	  "dtype", ALL),
    BEGIN("StatelessRandomGetAlg StatelessRandomGetKeyCounter "
	  "StatelessRandomGetKeyCounterAlg"),
    GPU_SAME("Multinomial", "T", GPU_REAL, .host_in = 1 << 1, .device_out = 1),
    GPU_SAME("StatelessMultinomial", "T", GPU_REAL, .host_in = 1 << 1 | 1 << 2, .device_out = 1),
};
KERNEL_TABLE(random_random_gpu, rows)
