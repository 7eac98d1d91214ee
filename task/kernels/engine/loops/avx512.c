/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled with the flags of this variant (tools/kernels.mk); empty for other processors. */
#if defined(__AVX512F__)
#define LOOPS_NAME    loops_avx512
#define LOOPS_VARIANT "cpu-avx512"
#include "task/kernels/engine/loops/body.h"
#else
typedef int no_loops_on_this_machine;
#endif
