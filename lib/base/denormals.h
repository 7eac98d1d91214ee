/* SPDX-License-Identifier: Apache-2.0 */
/* Denormal numbers count as zero on compute threads, as in TensorFlow: arithmetic on them takes a
 * hundred cycles. */
#ifndef MU_LIB_BASE_DENORMALS_H
#define MU_LIB_BASE_DENORMALS_H

#include <stdint.h>

#if defined(__x86_64__)
/* Returns the thread's previous mode, for mu_set_float_mode. */
static inline uint64_t mu_flush_denormals(void)
{
	unsigned before = __builtin_ia32_stmxcsr();

	__builtin_ia32_ldmxcsr(before | 0x8040); /* results and operands: FTZ and DAZ */
	return before;
}

static inline void mu_set_float_mode(uint64_t mode)
{
	__builtin_ia32_ldmxcsr((unsigned)mode);
}
#elif defined(__aarch64__)
static inline uint64_t mu_flush_denormals(void)
{
	uint64_t before;

	__asm__ volatile("mrs %0, fpcr" : "=r"(before));
	__asm__ volatile("msr fpcr, %0" : : "r"(before | 1 << 24)); /* FZ */
	return before;
}

static inline void mu_set_float_mode(uint64_t mode)
{
	__asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
#else
static inline uint64_t mu_flush_denormals(void)
{
	return 0;
}

static inline void mu_set_float_mode(uint64_t mode)
{
}
#endif

#endif
