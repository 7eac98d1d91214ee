/* SPDX-License-Identifier: Apache-2.0 */
/* Searches in sorted rows, Multinomial, and products with sparse matrices, compared with the CPU
 * kernels. */
#include <math.h>

#include "tests/kernels/gpu_compare.h"

static const enum mu_dtype numbers[] = {MU_INT32, MU_INT64};

static void drop(struct mu_tensor *t, unsigned n)
{
	while (n--)
		mu_tensor_unref(&t[n]);
}

static void lower_and_upper_bound__of_every_type__match_the_cpu(void **state)
{
	static const int64_t sizes[][3] = {{1, 1, 1}, {3, 40, 17}, {2, 0, 5}, {2, 5, 0}, {0, 4, 4}};
	static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE, MU_INT64};

	for (unsigned i = 0; i < MU_COUNT(sizes) * 12; i++) {
		const int64_t *s = sizes[i / 12];
		const enum mu_dtype t = types[i % 3], number = numbers[i / 3 % 2];
		const struct attr attrs[] = {
		    {"T", A_TYPE, (long)t, NULL}, {"out_type", A_TYPE, (long)number, NULL}, {0}};
		struct mu_shape sorted = dims_of(2, (int64_t[]){s[0], s[1]});
		struct mu_shape values = dims_of(2, (int64_t[]){s[0], s[2]});
		struct mu_tensor in[3] = {filled(t, &sorted, 0, 1, i),
					  filled(t, &values, -2, 12, i + 1),
					  filled(t, &values, 0, 1, 1)};
		for (int64_t k = 0; k < sorted.count; k++) /* ascending, some equal */
			put(&in[0], k, (double)(k % s[1] / 2 * 8 / s[1]));
		in[2].shape = dims_of(1, (int64_t[]){values.count});
		const char *op = i / 6 % 2 ? "UpperBound" : "LowerBound";
		compare(op, attrs, in, 2, 0);
		compare(op, attrs, (struct mu_tensor[]){in[0], in[2]}, 2, 0); /* no matrix */
		drop(in, 3);
	}
}

/* A class whose logit is not finite is never sampled, unless all logits are not finite. */
static void multinomial__with_a_seed__matches_the_cpu(void **state)
{
	static const int64_t sizes[][3] = {{1, 1, 1}, {5, 7, 33}, {3, 4, 0},
					   {0, 4, 3}, {2, 0, 3},  {70, 300, 5}};
	static const int64_t seeds[2] = {17, 99};

	for (unsigned i = 0; i < MU_COUNT(sizes) * 8; i++) {
		const int64_t *s = sizes[i / 8];
		const enum mu_dtype t = i & 1 ? MU_DOUBLE : MU_FLOAT, number = numbers[i >> 1 & 1];
		const struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
					     {"output_dtype", A_TYPE, (long)number, NULL},
					     {"Tseed", A_TYPE, MU_INT64, NULL},
					     {"seed", A_INT, 5, NULL},
					     {"seed2", A_INT, (long)i + 1, NULL},
					     {0}};
		struct mu_shape logits = dims_of(2, s);
		struct mu_tensor in[3] = {filled(t, &logits, -3, 6, i), ints(MU_INT32, -1, &s[2]),
					  ints(MU_INT64, 2, seeds)};
		for (int64_t k = 0; k < logits.count; k += 3)
			put(&in[0], k, k % 2 ? (double)INFINITY : (double)-INFINITY);
		compare(i & 4 ? "StatelessMultinomial" : "Multinomial", attrs, in, i & 4 ? 3 : 2,
			0);
		drop(in, 3);
	}
}

/* Unordered entries, some repeated; with and without the adjoint. */
static void sparse_products__match_the_cpu(void **state)
{
	static const int64_t sizes[][4] = {{1, 1, 1, 1}, {5, 7, 3, 40}, {4, 6, 9, 0},
					   {4, 6, 0, 5}, {3, 0, 4, 0},  {90, 80, 33, 3000}};

	for (unsigned i = 0; i < MU_COUNT(sizes) * 16; i++) {
		const int64_t *s = sizes[i / 16];
		const enum mu_dtype t = i & 1 ? MU_DOUBLE : MU_FLOAT, number = numbers[i >> 1 & 1];
		const unsigned flip_a = i >> 2 & 1, flip_b = i >> 3 & 1;
		const struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
					     {"Tindices", A_TYPE, (long)number, NULL},
					     {"adjoint_a", A_BOOL, flip_a, NULL},
					     {"adjoint_b", A_BOOL, flip_b, NULL},
					     {0}};
		struct mu_shape at = dims_of(2, (int64_t[]){s[3], 2}), n = mu_shape_vec(s[3]);
		struct mu_shape b = dims_of(2, (int64_t[]){s[flip_b ? 2 : 1], s[flip_b ? 1 : 2]});
		const int64_t a[2] = {s[flip_a], s[!flip_a]};
		struct mu_tensor in[4] = {filled(number, &at, 0, 1, 1), filled(t, &n, -1, 2, i),
					  ints(MU_INT64, 2, a), filled(t, &b, -1, 2, i + 1)};
		for (int64_t k = 0; k < 2 * s[3]; k++)
			put(&in[0], k, (double)(k / 2 * (k % 2 ? 13 : 7) % a[k % 2]));
		compare("SparseTensorDenseMatMul", attrs, in, 4, 30);
		compare("SparseTensorDenseMatMul", attrs,
			(struct mu_tensor[]){in[0], in[1], in[2], in[1]}, 4, 0); /* no matrix */
		drop(in, 4);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(lower_and_upper_bound__of_every_type__match_the_cpu),
	    T(multinomial__with_a_seed__matches_the_cpu),
	    T(sparse_products__match_the_cpu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
