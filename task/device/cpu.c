/* SPDX-License-Identifier: Apache-2.0 */
/* What the processor has.  The compiler's probe asks the operating system too (XCR0): a processor
 * with AVX-512 under a system that does not save its registers does not have it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "task/device/device.h"

static const char *const names[] = {
    [CPU_GENERIC] = "cpu-generic",
    [CPU_AVX2] = "cpu-avx2",
    [CPU_AVX512] = "cpu-avx512",
    [CPU_NEON] = "cpu-neon",
};
enum { LEVELS = sizeof names / sizeof names[0] };

const char *cpu_level_name(enum cpu_level l)
{
	return names[l];
}

bool cpu_has(enum cpu_level level)
{
	switch (level) {
	case CPU_GENERIC:
		return true;
#if defined(__x86_64__)
	case CPU_AVX2:
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	case CPU_AVX512:
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
		       cpu_has(CPU_AVX2);
#elif defined(__aarch64__)
	case CPU_NEON:
		return true; /* part of every ARMv8-A processor */
#endif
	default:
		return false;
	}
}

enum cpu_level cpu_probe(void)
{
	static const enum cpu_level best_first[] = {CPU_AVX512, CPU_AVX2, CPU_NEON};

	for (unsigned i = 0; i < sizeof best_first / sizeof best_first[0]; i++)
		if (cpu_has(best_first[i]))
			return best_first[i];
	return CPU_GENERIC;
}

static int cpu_open(const char *asked, struct device_choice *out, struct mu_err *err)
{
	out->level = cpu_probe();
	if (strcasecmp(asked, "auto") != 0 && strcasecmp(asked, "cpu") != 0) {
		unsigned i = 0;
		while (i < LEVELS && strcasecmp(asked, names[i]) != 0)
			i++;
		if (i == LEVELS)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "'%.40s' is no CPU variant: cpu-generic, cpu-avx2, "
				       "cpu-avx512 or cpu-neon",
				       asked);
		if (!cpu_has((enum cpu_level)i))
			return mu_fail(err, MU_FAILED_PRECONDITION,
				       "%s was asked for, but this processor has only %s: move "
				       "the task to another node or ask for less",
				       names[i], names[cpu_probe()]);
		out->level = (enum cpu_level)i;
	}
	snprintf(out->chosen, sizeof out->chosen, "%s", names[out->level]);
	return 0;
}

const struct device_kind device_cpu = {"cpu", cpu_open};
