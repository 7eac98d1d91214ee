/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/engine/loops/loops.h"

#include <string.h>

#include "lib/base/mem.h"
#include "task/kernels/engine/blas.h"
#include "task/kernels/engine/convert.h"

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

static bool any_cpu(void)
{
	return true;
}

/* Best first.  The generic loops of an arm64 build use its vector unit: every arm64 has one. */
static const struct {
	const char *name;
	const struct loops *loops;
	bool (*supported)(void);
} variants[] = {
#if defined(__x86_64__)
    {"cpu-avx512", &loops_avx512, has_avx512},
    {"cpu-avx2", &loops_avx2, has_avx2},
#elif defined(__aarch64__)
    {"arm64", &loops_generic, any_cpu},
#endif
    {"cpu-generic", &loops_generic, any_cpu},
};
static const char *selected_variant = "cpu-generic";

const char *cpu_kernels_best(void)
{
	unsigned i = 0;

	while (!variants[i].supported())
		i++;
	return variants[i].name;
}

/* True for the name of a variant for some processor. */
static bool is_other_variant(const char *variant)
{
	static const char *const names[] = {"cpu-avx512", "cpu-avx2", "arm64"};

	for (unsigned i = 0; i < MU_COUNT(names); i++)
		if (strcmp(names[i], variant) == 0)
			return true;
	return false;
}

int cpu_kernels_select(const char *variant, struct mu_err *err)
{
	const char *want = variant && *variant ? variant : cpu_kernels_best();

	for (unsigned i = 0; i < MU_COUNT(variants); i++)
		if (strcmp(want, variants[i].name) == 0 && variants[i].supported()) {
			loops = variants[i].loops;
			selected_variant = variants[i].name;
			blas_select(selected_variant);
			return 0;
		}
	if (is_other_variant(want))
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "%s was asked for, but this processor has only %s: move the task to "
			       "another node or ask for less",
			       want, cpu_kernels_best());
	return mu_invalid(
	    err, "'%.40s' is no CPU variant: cpu-generic, cpu-avx2, cpu-avx512 or arm64", want);
}

const char *cpu_kernels_variant(void)
{
	return selected_variant;
}

/* ---- 16-bit floats ---- */

bool loops_binary_known(enum binary_op op, enum mu_dtype t)
{
	return loops->binary[op][mu_dtype_is_16_bit_float(t) ? MU_FLOAT : t] != NULL;
}

bool loops_binary(enum binary_op op, enum mu_dtype t, void *out, const void *a, const void *b,
		  int64_t n, enum binary_form f)
{
	enum { BLOCK = 256, SIZE_16_BIT = 2 };
	binary_loop *loop = loops->binary[op][mu_dtype_is_16_bit_float(t) ? MU_FLOAT : t];
	float x[BLOCK], y[BLOCK];

	if (!loop)
		return false;
	if (!mu_dtype_is_16_bit_float(t)) {
		loop(out, a, b, n, f);
		return true;
	}
	for (int64_t at = 0, k; at < n; at += k) {
		size_t from = (size_t)at * SIZE_16_BIT;
		k = n - at < BLOCK ? n - at : BLOCK;
		convert(MU_FLOAT, x, t, (const char *)a + (f == LEFT_SCALAR ? 0 : from),
			f == LEFT_SCALAR ? 1 : k);
		convert(MU_FLOAT, y, t, (const char *)b + (f == RIGHT_SCALAR ? 0 : from),
			f == RIGHT_SCALAR ? 1 : k);
		loop(f == LEFT_SCALAR ? y : x, x, y, k, f);
		convert(t, (char *)out + from, MU_FLOAT, f == LEFT_SCALAR ? y : x, k);
	}
	return true;
}
