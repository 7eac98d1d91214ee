/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of every variant against sums in long double, at the edges of tiles and blocks.
 */
#include "tests/test.h"

#include <math.h>
#include <string.h>

#include "task/kernels/loops/loops.h"
#include "task/kernels/products/product.h"
#include "tests/kernels/harness.c"
#include "tests/kernels/numbers.h"

static const char *const variants[] = {"cpu-generic", "cpu-avx2", "cpu-avx512"};

static void check(enum mu_dtype t, const struct product *p)
{
	int64_t a_line = p->a_line ? p->a_line : p->trans_a ? p->m : p->k;
	int64_t b_line = p->b_line ? p->b_line : p->trans_b ? p->k : p->n;
	int64_t c_line = p->c_line ? p->c_line : p->n, sign = p->minus ? -1 : 1;
	int64_t a_m = p->trans_a ? 1 : a_line, a_k = p->trans_a ? a_line : 1;
	int64_t b_k = p->trans_b ? 1 : b_line, b_n = p->trans_b ? b_line : 1;
	MU_AUTO_FREE void *a = numbers(t, a_line * (p->trans_a ? p->k : p->m), 1);
	MU_AUTO_FREE void *b = numbers(t, b_line * (p->trans_b ? p->n : p->k), 2);
	MU_AUTO_FREE void *was = numbers(t, p->m * c_line, 3), *c = numbers(t, p->m * c_line, 3);
	double close = (t == MU_FLOAT ? 1e-6 : 1e-15) * (double)(p->k + 1);

	product(t, p, a, b, c);
	for (int64_t i = 0; i < p->m; i++)
		for (int64_t j = 0; j < p->n; j++) {
			long double want = p->add || p->minus ? number(t, was, i * c_line + j) : 0;
			for (int64_t l = 0; l < p->k; l++)
				want += (long double)sign * number(t, a, i * a_m + l * a_k) *
					number(t, b, l * b_k + j * b_n);
			if (!(fabs((double)want - number(t, c, i * c_line + j)) <= close))
				fail_msg("%s %lldx%lldx%lld %d%d%d: [%lld, %lld] is %g, not %g",
					 cpu_kernels_variant(), (long long)p->m, (long long)p->k,
					 (long long)p->n, p->trans_a, p->trans_b, p->add,
					 (long long)i, (long long)j, number(t, c, i * c_line + j),
					 (double)want);
		}
}

static void check_all_ways(int64_t m, int64_t k, int64_t n)
{
	for (int way = 0; way < 8; way++) {
		struct product p = {
		    .m = m, .n = n, .k = k, .trans_a = way & 1, .trans_b = way & 2, .add = way & 4};
		check(MU_FLOAT, &p);
		check(MU_DOUBLE, &p);
		p.minus = p.add;
		p.a_line = m + k + 3;
		p.b_line = n + k + 5;
		p.c_line = n + way;
		check(MU_FLOAT, &p);
		check(MU_DOUBLE, &p);
	}
}

static void products__of_any_shape__are_the_sums(void **state)
{
	static const int64_t few[] = {1, 2, 3, 6, 7, 13, 14, 15, 16, 17, 29, 32, 33};

	for (unsigned v = 0; v < MU_COUNT(variants); v++) {
		if (cpu_kernels_select(variants[v], NULL))
			continue;
		for (unsigned i = 0; i < MU_COUNT(few); i++)
			for (unsigned j = 0; j < MU_COUNT(few); j++)
				check_all_ways(few[i], (int64_t)(i * 5 + j) % 19 + 1, few[j]);
		check_all_ways(3, 0, 5);
		check_all_ways(0, 4, 5);
		check_all_ways(4, 1025, 9);
		check_all_ways(200, 2060, 40); /* blocks of k, unequal, copied and not */
		check_all_ways(43, 1024, 224); /* rows that fall onto each other */
		check_all_ways(170, 20, 2081); /* more columns than are kept at a time */
	}
	assert_int_equal(cpu_kernels_select(NULL, NULL), 0);
}

static void products__on_more_threads__are_the_same_to_the_bit(void **state)
{
	static const struct product shapes[] = {
	    {.m = 300, .n = 130, .k = 500},
	    {.m = 1, .n = 3000, .k = 2003},
	    {.m = 3, .n = 2001, .k = 1500},
	    {.m = 16, .n = 15, .k = 30000},
	    {.m = 20, .n = 1000, .k = 700},
	    {.m = 301, .n = 77, .k = 900, .trans_a = true},
	    {.m = 90, .n = 333, .k = 600, .trans_b = true},
	    {.m = 600, .n = 500, .k = 256},                  /* cut along the shorter side */
	    {.m = 131, .n = 300, .k = 512},                  /* many strips, rows where they lie */
	    {.m = 59, .n = 259, .k = 2048},                  /* rows that fall onto each other */
	    {.m = 131, .n = 90, .k = 1024},                  /* the same, few strips */
	    {.m = 117, .n = 201, .k = 400, .trans_a = true}, /* many strips, columns */
	};
	struct runtime *rt;

	assert_int_equal(harness_runtime(3, &rt, NULL), 0);
	struct kernel_call call = {.runtime = rt};
	for (unsigned i = 0; i < MU_COUNT(shapes); i++) {
		const struct product *p = &shapes[i];
		MU_AUTO_FREE void *a = numbers(MU_FLOAT, p->m * p->k, 1);
		MU_AUTO_FREE void *b = numbers(MU_FLOAT, p->k * p->n, 2);
		MU_AUTO_FREE void *one = numbers(MU_FLOAT, p->m * p->n, 3);
		MU_AUTO_FREE void *three = numbers(MU_FLOAT, p->m * p->n, 4);
		product(MU_FLOAT, p, a, b, one);
		product_spread(&call, MU_FLOAT, p, a, b, three);
		assert_memory_equal(one, three, (size_t)(p->m * p->n) * sizeof(float));
	}
	runtime_free(rt);
}

static void products_of_integers__wrap(void **state)
{
	int32_t a[2] = {INT32_MAX, 1}, b[2] = {2, 5}, c[1];
	struct product p = {.m = 1, .n = 1, .k = 2};

	product(MU_INT32, &p, a, b, c);
	assert_int_equal(c[0], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(products__of_any_shape__are_the_sums),
	    cmocka_unit_test(products__on_more_threads__are_the_same_to_the_bit),
	    cmocka_unit_test(products_of_integers__wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
