/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of every variant compared with sums in long double, at the edges of tiles and
 * blocks. */
#include "tests/test.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#include "task/kernels/engine/blas.h"
#include "task/kernels/engine/loops/loops.h"
#include "tests/kernels/harness.c"
#include "tests/kernels/numbers.h"

static const char *const variants[] = {"cpu-generic", "cpu-avx2", "cpu-avx512"};

static void check(enum mu_dtype t, const struct product *p)
{
	int64_t a_line = p->a_line ? p->a_line : p->trans_a ? p->m : p->k;
	int64_t b_line = p->b_line ? p->b_line : p->trans_b ? p->k : p->n;
	int64_t c_line = p->c_line ? p->c_line : p->n;
	int64_t a_m = p->trans_a ? 1 : a_line, a_k = p->trans_a ? a_line : 1;
	int64_t b_k = p->trans_b ? 1 : b_line, b_n = p->trans_b ? b_line : 1;
	MU_AUTO_FREE void *a = numbers(t, a_line * (p->trans_a ? p->k : p->m), 1);
	MU_AUTO_FREE void *b = numbers(t, b_line * (p->trans_b ? p->n : p->k), 2);
	MU_AUTO_FREE void *was = numbers(t, p->m * c_line, 3), *c = numbers(t, p->m * c_line, 3);
	double close = (t == MU_FLOAT ? 1e-6 : 1e-15) * (double)(p->k + 1);

	product(t, p, a, b, c);
	for (int64_t i = 0; i < p->m; i++)
		for (int64_t j = 0; j < p->n; j++) {
			long double want = p->add ? number(t, was, i * c_line + j) : 0;
			for (int64_t l = 0; l < p->k; l++)
				want += (long double)number(t, a, i * a_m + l * a_k) *
					number(t, b, l * b_k + j * b_n);
			if (!(fabs((double)want - number(t, c, i * c_line + j)) <= close))
				fail_msg("%s %lldx%lldx%lld %d%d%d: [%lld, %lld] is %g, not %g",
					 cpu_kernels_variant(), (long long)p->m, (long long)p->k,
					 (long long)p->n, p->trans_a, p->trans_b, p->add,
					 (long long)i, (long long)j, number(t, c, i * c_line + j),
					 (double)want);
		}
}

static void check_all_layouts(int64_t m, int64_t k, int64_t n)
{
	for (int form = 0; form < 8; form++) {
		struct product p = {.m = m,
				    .n = n,
				    .k = k,
				    .trans_a = form & 1,
				    .trans_b = form & 2,
				    .add = form & 4};
		check(MU_FLOAT, &p);
		check(MU_DOUBLE, &p);
		p.a_line = m + k + 3;
		p.b_line = n + k + 5;
		p.c_line = n + form;
		check(MU_FLOAT, &p);
		check(MU_DOUBLE, &p);
	}
}

static void products__of_any_shape__equal_the_sums(void **state)
{
	static const int64_t few[] = {1, 2, 3, 6, 7, 13, 14, 15, 16, 17, 29, 32, 33};

	for (unsigned v = 0; v < MU_COUNT(variants); v++) {
		if (cpu_kernels_select(variants[v], NULL))
			continue;
		for (unsigned i = 0; i < MU_COUNT(few); i++)
			for (unsigned j = 0; j < MU_COUNT(few); j++)
				check_all_layouts(few[i], (int64_t)(i * 5 + j) % 19 + 1, few[j]);
		check_all_layouts(3, 0, 5);
		check_all_layouts(0, 4, 5);
		check_all_layouts(43, 200, 130);
		/* small_m_gemm: several blocks of k, and fewer columns than a tile */
		check_all_layouts(2, 1025, 519);
		check_all_layouts(18, 1031, 58);
		check_all_layouts(42, 513, 50);
	}
	assert_int_equal(cpu_kernels_select(NULL, NULL), 0);
}

static void products__on_three_threads__equal_the_sums_and_repeat(void **state)
{
	static const struct product shapes[] = {
	    {.m = 300, .n = 130, .k = 500},
	    {.m = 1, .n = 3000, .k = 2003},
	    {.m = 3, .n = 2001, .k = 1500},
	    {.m = 16, .n = 15, .k = 30000},
	    {.m = 3000, .n = 1, .k = 2003},
	    {.m = 301, .n = 77, .k = 900, .trans_a = true},
	    {.m = 90, .n = 333, .k = 600, .trans_b = true},
	    {.m = 2, .n = 2, .k = 3000000}, /* more pieces than rows or columns */
	};
	struct runtime *rt;

	assert_int_equal(harness_runtime(3, &rt, NULL), 0);
	struct kernel_call call = {.runtime = rt};
	for (unsigned i = 0; i < MU_COUNT(shapes); i++) {
		const struct product *p = &shapes[i];
		int64_t n = p->m * p->n;
		MU_AUTO_FREE void *a = numbers(MU_FLOAT, p->m * p->k, 1);
		MU_AUTO_FREE void *b = numbers(MU_FLOAT, p->k * p->n, 2);
		MU_AUTO_FREE void *one = numbers(MU_FLOAT, n, 3);
		MU_AUTO_FREE void *three = numbers(MU_FLOAT, n, 4);
		MU_AUTO_FREE void *again = numbers(MU_FLOAT, n, 5);
		product(MU_FLOAT, p, a, b, one);
		product_in_parallel(&call, MU_FLOAT, p, a, b, three);
		product_in_parallel(&call, MU_FLOAT, p, a, b, again);
		assert_memory_equal(three, again, (size_t)n * sizeof(float));
		for (int64_t k = 0; k < n; k++)
			if (!(fabs(number(MU_FLOAT, one, k) - number(MU_FLOAT, three, k)) <=
			      1e-6 * (double)p->k))
				fail_msg("shape %u: [%lld] is %g on one thread, %g on three", i,
					 (long long)k, number(MU_FLOAT, one, k),
					 number(MU_FLOAT, three, k));
	}
	runtime_free(rt);
}

/* NaN times 0 is NaN, and the old content of the result has no effect. */
static void products__with_nan__propagate_it(void **state)
{
	static const int64_t sides[] = {1, 2, 5, 40, 130};

	for (unsigned v = 0; v < MU_COUNT(variants); v++) {
		if (cpu_kernels_select(variants[v], NULL))
			continue;
		for (unsigned i = 0; i < MU_COUNT(sides) * MU_COUNT(sides) * 2; i++) {
			struct product p = {
			    .m = sides[i % 5], .n = sides[i / 5 % 5], .k = i >= 25 ? 700 : 3};
			MU_AUTO_FREE float *a = calloc((size_t)(p.m * p.k), sizeof *a);
			MU_AUTO_FREE float *b = calloc((size_t)(p.k * p.n), sizeof *b);
			MU_AUTO_FREE float *c = calloc((size_t)(p.m * p.n), sizeof *c);
			for (int64_t k = 0; k < p.m * p.n; k++)
				c[k] = NAN;
			b[p.k * p.n - 1] = NAN; /* the last column */
			product(MU_FLOAT, &p, a, b, c);
			for (int64_t k = 0; k < p.m * p.n; k++)
				assert_int_equal(isnan(c[k]), k % p.n == p.n - 1);
		}
	}
	assert_int_equal(cpu_kernels_select(NULL, NULL), 0);
}

/* Compared with the products of the real and imaginary parts. */
static void products_of_complex_numbers__equal_the_sums(void **state)
{
	enum { M = 7, N = 5, K = 9 };
	double _Complex a[M * K], b[K * N], c[M * N];
	double *parts = (double *)a, *more = (double *)b;

	for (int i = 0; i < 2 * M * K; i++)
		parts[i] = i % 7 - 3;
	for (int i = 0; i < 2 * K * N; i++)
		more[i] = i % 5 - 2;
	for (int form = 0; form < 8; form++) {
		struct product p = {.m = M,
				    .n = N,
				    .k = K,
				    .trans_a = form & 1,
				    .trans_b = form & 2,
				    .conjugate = form & 4};
		product(MU_COMPLEX128, &p, a, b, c);
		for (int i = 0; i < M * N; i++) {
			double _Complex sum = 0;
			for (int l = 0; l < K; l++) {
				double _Complex x = form & 1 ? a[l * M + i / N] : a[i / N * K + l];
				double _Complex y = form & 2 ? b[i % N * K + l] : b[l * N + i % N];
				sum += ((form & 5) == 5 ? conj(x) : x) *
				       ((form & 6) == 6 ? conj(y) : y);
			}
			assert_true(cabs(sum - c[i]) < 1e-12);
		}
	}
}

static void products__larger_than_blas_can_index__are_rejected(void **state)
{
	struct mu_err err;

	assert_fails(product_check("MatMul", MU_FLOAT,
				   &(struct product){.m = 2, .n = 3, .k = INT64_C(1) << 31}, &err),
		     &err, MU_INVALID_ARGUMENT, "too large");
	assert_ok(product_check("MatMul", MU_FLOAT,
				&(struct product){.m = 2, .n = 3, .k = INT32_MAX}, &err),
		  &err);
}

/* The core type follows the variant, for any environment at the time the library was loaded. */
static void core_type__of_every_variant__matches_its_instruction_set(void **state)
{
	static const struct {
		const char *variant, *cores;
	} rows[] = {
	    {"cpu-avx512", "SkylakeX Cooperlake SapphireRapids"},
	    {"cpu-avx2", "Haswell Zen Excavator"},
	};

	for (unsigned i = 0; i < MU_COUNT(rows); i++) {
		if (cpu_kernels_select(rows[i].variant, NULL))
			continue;
		assert_non_null(strstr(rows[i].cores, blas_core()));
		assert_int_equal(cpu_kernels_select("cpu-generic", NULL), 0);
		assert_null(strstr(rows[i].cores, blas_core()));
	}
	assert_int_equal(cpu_kernels_select(NULL, NULL), 0);
}

static void products_of_integers__on_overflow__wrap(void **state)
{
	int32_t a[2] = {INT32_MAX, 1}, b[2] = {2, 5}, c[1];
	struct product p = {.m = 1, .n = 1, .k = 2};

	product(MU_INT32, &p, a, b, c);
	assert_int_equal(c[0], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(products__of_any_shape__equal_the_sums),
	    cmocka_unit_test(products__on_three_threads__equal_the_sums_and_repeat),
	    cmocka_unit_test(products__with_nan__propagate_it),
	    cmocka_unit_test(products_of_complex_numbers__equal_the_sums),
	    cmocka_unit_test(products__larger_than_blas_can_index__are_rejected),
	    cmocka_unit_test(core_type__of_every_variant__matches_its_instruction_set),
	    cmocka_unit_test(products_of_integers__on_overflow__wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
