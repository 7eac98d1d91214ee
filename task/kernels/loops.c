/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/loops.h"

#include <string.h>

#include "lib/base/mem.h"

extern const struct loops loops_generic, loops_avx2, loops_avx512;

const struct loops *loops = &loops_generic;

#if defined(__x86_64__)
static bool has_avx2(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	       __builtin_cpu_supports("bmi2");
}

static bool has_avx512(void)
{
	return has_avx2() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl");
}
#endif

static bool always(void)
{
	return true;
}

/* Best first. */
static const struct {
	const struct loops *loops;
	bool (*supported)(void);
} variants[] = {
#if defined(__x86_64__)
    {&loops_avx512, has_avx512},
    {&loops_avx2, has_avx2},
#endif
    {&loops_generic, always},
};

int cpu_kernels_select(const char *variant, struct mu_err *err)
{
	bool any = !variant || !*variant;

	for (unsigned i = 0; i < MU_COUNT(variants); i++) {
		if (!any && strcmp(variant, variants[i].loops->variant) != 0)
			continue;
		if (variants[i].supported()) {
			loops = variants[i].loops;
			return 0;
		}
		if (!any)
			return mu_fail(err, MU_FAILED_PRECONDITION,
				       "kernels %s were asked for, but this processor has no more "
				       "than %s; ask for that, or run on another machine",
				       variant, cpu_kernels_best());
	}
	return mu_fail(err, MU_INVALID_ARGUMENT,
		       "there are no kernels called '%s'; want cpu-generic, cpu-avx2 or cpu-avx512",
		       variant);
}

const char *cpu_kernels_variant(void)
{
	return loops->variant;
}

const char *cpu_kernels_best(void)
{
	for (unsigned i = 0; i < MU_COUNT(variants); i++)
		if (variants[i].supported())
			return variants[i].loops->variant;
	return loops_generic.variant;
}
