/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS: its core type, its threads, and the products.
 *
 * OpenBLAS chooses its kernels when it is loaded: by OPENBLAS_CORETYPE, else by the processor.
 * Version 0.3.21 chooses AVX2 kernels for AVX-512 processors that it does not know.
 * gotoblas_dynamic_init makes that choice again; builds with kernels for a single processor lack
 * it.
 *
 * The task's compute pool owns the processors, so OpenBLAS runs in the calling thread only:
 * product.c divides products among threads. */
#include "task/kernels/engine/blas.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"

/* Exported by the library but not declared by its header. */
__attribute__((weak)) void gotoblas_dynamic_init(void);
__attribute__((weak)) void gotoblas_dynamic_quit(void);
__attribute__((weak)) int blas_thread_shutdown_(void);

/* The core types of a variant; blas_select requests the first.  All others are cpu-generic. */
static const struct {
	const char *variant, *cores[4];
} core_types[] = {
    {"cpu-avx512", {"SkylakeX", "Cooperlake", "SapphireRapids"}},
    {"cpu-avx2", {"Haswell", "Zen", "Excavator"}},
    {"cpu-generic", {"Prescott"}},
};

static const char *variant_of(const char *core)
{
	for (unsigned i = 0; i < MU_COUNT(core_types); i++)
		for (unsigned k = 0; k < MU_COUNT(core_types[i].cores) && core_types[i].cores[k];
		     k++)
			if (strcmp(core, core_types[i].cores[k]) == 0)
				return core_types[i].variant;
	return "cpu-generic";
}

const char *blas_core(void)
{
	return openblas_get_corename();
}

static void set_core(const char *core)
{
	const char *requested = getenv("OPENBLAS_CORETYPE"), *previous = blas_core();

	setenv("OPENBLAS_CORETYPE", core, 1);
	gotoblas_dynamic_quit();
	gotoblas_dynamic_init();
	mu_info("kernels", "OpenBLAS core type %s replaces %s (%s%s)", blas_core(), previous,
		requested ? "OPENBLAS_CORETYPE=" : "chosen by OpenBLAS",
		requested ? requested : "");
}

void blas_select(const char *variant)
{
	openblas_set_num_threads(1);
	if (blas_thread_shutdown_)
		blas_thread_shutdown_();
	for (unsigned i = 0; i < MU_COUNT(core_types) && gotoblas_dynamic_init; i++)
		if (strcmp(variant, core_types[i].variant) == 0 &&
		    strcmp(variant, variant_of(blas_core())) != 0)
			set_core(core_types[i].cores[0]);
}

/* ---- products ---- */

static CBLAS_TRANSPOSE trans_of(const struct product *p, bool trans)
{
	return !trans ? CblasNoTrans : p->conjugate ? CblasConjTrans : CblasTrans;
}

/* The arguments of gemm for a struct product. */
struct gemm {
	CBLAS_TRANSPOSE trans_a, trans_b;
	blasint m, n, k, a_line, b_line, c_line;
};

static struct gemm gemm_of(const struct product *p)
{
	return (struct gemm){.trans_a = trans_of(p, p->trans_a),
			     .trans_b = trans_of(p, p->trans_b),
			     .m = (blasint)p->m,
			     .n = (blasint)p->n,
			     .k = (blasint)p->k,
			     .a_line = (blasint)p->a_line,
			     .b_line = (blasint)p->b_line,
			     .c_line = (blasint)p->c_line};
}

/* A product with one row or one column reads the matrix once, in place: gemm would copy it.  2 to
 * 2.8 x as fast for a matrix of 1024 by 1024. */
#define GEMV(T, letter)                                                                            \
	static void gemv_##T(const struct gemm *g, const T *a, const T *b, T *c)                   \
	{                                                                                          \
		bool a_trans = g->trans_a != CblasNoTrans, b_trans = g->trans_b != CblasNoTrans;   \
		if (g->n == 1)                                                                     \
			cblas_##letter##gemv(CblasRowMajor, g->trans_a, a_trans ? g->k : g->m,     \
					     a_trans ? g->m : g->k, 1, a, g->a_line, b,            \
					     b_trans ? 1 : g->b_line, 1, c, g->c_line);            \
		else                                                                               \
			cblas_##letter##gemv(CblasRowMajor, b_trans ? CblasNoTrans : CblasTrans,   \
					     b_trans ? g->n : g->k, b_trans ? g->k : g->n, 1, b,   \
					     g->b_line, a, a_trans ? g->a_line : 1, 1, c, 1);      \
	}
GEMV(float, s)
GEMV(double, d)

/* gemv with beta 0 may read c, so c is set to zero first. */
static void zero(size_t size, const struct gemm *g, void *c)
{
	for (size_t i = 0; i < (size_t)g->m; i++)
		memset((char *)c + i * (size_t)g->c_line * size, 0, (size_t)g->n * size);
}

#define ONE_OR_ZERO(T, one) ((T[2]){(one) ? 1 : 0, 0})
#define GEMM(letter, alpha, beta)                                                                  \
	cblas_##letter##gemm(CblasRowMajor, g.trans_a, g.trans_b, g.m, g.n, g.k, alpha, a,         \
			     g.a_line, b, g.b_line, beta, c, g.c_line)

void blas_product(enum mu_dtype t, const struct product *p, const void *a, const void *b, void *c)
{
	const struct gemm g = gemm_of(p);
	bool vector = (p->m == 1 || p->n == 1) && (t == MU_FLOAT || t == MU_DOUBLE);

	if (vector && !p->add)
		zero(mu_dtype_size(t), &g, c);
	if (vector && t == MU_FLOAT)
		gemv_float(&g, a, b, c);
	else if (vector)
		gemv_double(&g, a, b, c);
	else if (t == MU_FLOAT)
		GEMM(s, 1, p->add);
	else if (t == MU_DOUBLE)
		GEMM(d, 1, p->add);
	else if (t == MU_COMPLEX64)
		GEMM(c, ONE_OR_ZERO(float, true), ONE_OR_ZERO(float, p->add));
	else
		GEMM(z, ONE_OR_ZERO(double, true), ONE_OR_ZERO(double, p->add));
}
