/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS's settings.  It reads OPENBLAS_CORETYPE when it is loaded, before main; some machines
 * carry a value there that halves its speed, so the only cure is to start again without it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "task/kernels/loops.h"

extern void openblas_set_num_threads(int n);
extern char *openblas_get_corename(void);

/* OpenBLAS's names for x86 cores by the vector instructions that they use. */
static const struct {
	const char *name;
	int level; /* 0 SSE, 1 AVX, 2 AVX2, 3 AVX-512 */
} cores[] = {
    {"Prescott", 0},       {"Core2", 0},        {"Penryn", 0},
    {"Dunnington", 0},     {"Nehalem", 0},      {"Athlon", 0},
    {"Opteron", 0},        {"Opteron_SSE3", 0}, {"Barcelona", 0},
    {"Bobcat", 0},         {"Atom", 0},         {"Nano", 0},
    {"Sandybridge", 1},    {"Bulldozer", 1},    {"Piledriver", 1},
    {"Steamroller", 1},    {"Haswell", 2},      {"Zen", 2},
    {"Excavator", 2},      {"SkylakeX", 3},     {"Cooperlake", 3},
    {"SapphireRapids", 3},
};

static int processor_level(void)
{
	const char *best = cpu_kernels_best();

	return strcmp(best, "cpu-avx512") == 0 ? 3 : strcmp(best, "cpu-avx2") == 0 ? 2 : 0;
}

static bool slower_than_processor(const char *core)
{
	for (unsigned i = 0; i < MU_COUNT(cores); i++)
		if (strcasecmp(cores[i].name, core) == 0)
			return cores[i].level < processor_level();
	return false; /* not an x86 name, or one that we do not know: it stays */
}

bool blas_environment_fix(char **argv)
{
	const char *core = getenv("OPENBLAS_CORETYPE");

	if (!core || !*core || !slower_than_processor(core))
		return false;
	mu_warn("blas",
		"OPENBLAS_CORETYPE=%s is slower than what this processor has: starting "
		"again without it",
		core);
	unsetenv("OPENBLAS_CORETYPE");
	execv("/proc/self/exe", argv);
	mu_warn("blas", "could not start again: matrix products run as %s", core);
	return true;
}

void blas_threads(int n)
{
	openblas_set_num_threads(n > 0 ? n : 1);
}

const char *blas_core(void)
{
	return openblas_get_corename();
}
