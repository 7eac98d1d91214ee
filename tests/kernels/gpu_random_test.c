/* SPDX-License-Identifier: Apache-2.0 */
/* Random ops on the GPU generate the same numbers as on the CPU. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/device_macros.h"
#include "task/kernels/random/philox.h"
#include "tests/fake/cuda/fake_cuda.h"
#include "tests/kernels/gpu_compare.h"

#define VECTOR(n) ((struct mu_shape){.rank = 1, .dim = {n}, .count = n})
static const int64_t sizes[] = {0, 1, 3, 4, 5, 1000, 70001};

static void seeded_numbers__match_the_cpu(void **state)
{
	static const struct {
		const char *op;
		double slack; /* 0 for uniform: bit-identical */
	} ops[] = {{"RandomUniform", 0}, {"RandomStandardNormal", 10}, {"TruncatedNormal", 10}};

	for (unsigned o = 0; o < MU_COUNT(ops); o++)
		for (unsigned i = 0; i < MU_COUNT(sizes); i++)
			for (unsigned wide = 0; wide < 2; wide++) {
				enum mu_dtype t = wide ? MU_DOUBLE : MU_FLOAT;
				enum mu_dtype number = i % 2 ? MU_INT64 : MU_INT32;
				const struct attr attrs[] = {{"dtype", A_TYPE, (long)t, NULL},
							     {"T", A_TYPE, (long)number, NULL},
							     {"seed", A_INT, 87654321, NULL},
							     {"seed2", A_INT, (long)i + 1, NULL},
							     {0}};
				MU_AUTO_TENSOR shape = ints(number, 1, &sizes[i]);
				compare(ops[o].op, attrs, &shape, 1, ops[o].slack);
			}
}

static void stateless_numbers__match_the_cpu(void **state)
{
	static const char *const ops[] = {"StatelessRandomUniform", "StatelessRandomNormal",
					  "StatelessTruncatedNormal"};
	static const int64_t seeds[2] = {-5, (int64_t)1 << 40};

	for (unsigned o = 0; o < MU_COUNT(ops); o++)
		for (unsigned i = 0; i < MU_COUNT(sizes); i++) {
			const struct attr attrs[] = {{"dtype", A_TYPE, MU_FLOAT, NULL},
						     {"T", A_TYPE, MU_INT32, NULL},
						     {"Tseed", A_TYPE, MU_INT64, NULL},
						     {0}};
			struct mu_tensor in[2] = {ints(MU_INT32, 1, &sizes[i]),
						  ints(MU_INT64, 2, seeds)};
			compare(ops[o], attrs, in, 2, o ? 10 : 0);
			mu_tensor_unref(&in[0]);
			mu_tensor_unref(&in[1]);
		}
}

/* Stateless ops by key and counter, which stay in host memory under any name. */
static void numbers_from_a_key__match_the_cpu(void **state)
{
	static const char *const ops[] = {"StatelessRandomUniformV2", "StatelessRandomNormalV2",
					  "StatelessTruncatedNormalV2"};
	static const uint64_t key[1] = {0x9e3779b97f4a7c15}, counter[2] = {UINT64_MAX - 2, 77};
	static const int32_t algorithms[] = {1, 3};

	for (unsigned o = 0; o < MU_COUNT(ops); o++)
		for (unsigned i = 0; i < MU_COUNT(sizes); i++) {
			const struct attr attrs[] = {
			    {"dtype", A_TYPE, i % 2 ? MU_DOUBLE : MU_FLOAT, NULL},
			    {"Tshape", A_TYPE, MU_INT32, NULL},
			    {0}};
			struct mu_tensor in[4] = {ints(MU_INT32, 1, &sizes[i]), {0}, {0}, {0}};
			assert_int_equal(mu_tensor_new(&in[1], MU_UINT64, &VECTOR(1), NULL), 0);
			assert_int_equal(mu_tensor_new(&in[2], MU_UINT64, &VECTOR(2), NULL), 0);
			memcpy(in[1].data, key, sizeof key);
			memcpy(in[2].data, counter, sizeof counter);
			assert_int_equal(
			    mu_tensor_scalar(&in[3], MU_INT32, &algorithms[i % 2], NULL), 0);
			compare(ops[o], attrs, in, 4, o ? 10 : 0);
			for (unsigned k = 0; k < 4; k++)
				mu_tensor_unref(&in[k]);
		}
}

/* Integers of a range and of the full range, by seeds and by a key. */
static void random_integers__match_the_cpu(void **state)
{
	static const struct {
		const char *op;
		enum { BY_NODE, BY_SEED, BY_KEY } from;
		bool all;
	} ops[] = {{"RandomUniformInt", BY_NODE, false},
		   {"StatelessRandomUniformInt", BY_SEED, false},
		   {"StatelessRandomUniformFullInt", BY_SEED, true},
		   {"StatelessRandomUniformIntV2", BY_KEY, false},
		   {"StatelessRandomUniformFullIntV2", BY_KEY, true}};
	static const int64_t limits[][2] = {
	    {-5, 7}, {0, (int64_t)1 << 40}, {INT64_MIN, INT64_MAX}, {7, 7}};
	static const int64_t seeds[2] = {-5, (int64_t)1 << 40};
	const int32_t philox = 1;

	for (unsigned o = 0; o < MU_COUNT(ops); o++)
		for (unsigned i = 0; i < MU_COUNT(sizes) * MU_COUNT(limits); i++) {
			const enum mu_dtype t = i % 2 && ops[o].all ? MU_UINT64 : MU_INT64;
			const int64_t *limit = limits[i / MU_COUNT(sizes)];
			const struct attr attrs[] = {
			    {"dtype", A_TYPE, (long)t, NULL},    {"Tout", A_TYPE, (long)t, NULL},
			    {"T", A_TYPE, MU_INT32, NULL},       {"Tseed", A_TYPE, MU_INT64, NULL},
			    {"Tshape", A_TYPE, MU_INT32, NULL},  {"seed", A_INT, 12345, NULL},
			    {"seed2", A_INT, (long)i + 1, NULL}, {0}};
			struct mu_tensor in[MAX_IN] = {
			    ints(MU_INT32, 1, &sizes[i % MU_COUNT(sizes)])};
			unsigned n = 1;
			if (ops[o].from == BY_SEED)
				in[n++] = ints(MU_INT64, 2, seeds);
			if (ops[o].from == BY_KEY) {
				assert_int_equal(mu_tensor_new(&in[n], MU_UINT64, &VECTOR(1), NULL),
						 0);
				MU_DATA(uint64_t, &in[n++])[0] = 77;
				assert_int_equal(mu_tensor_new(&in[n], MU_UINT64, &VECTOR(2), NULL),
						 0);
				memcpy(in[n++].data, seeds, sizeof seeds);
				assert_int_equal(
				    mu_tensor_scalar(&in[n++], MU_INT32, &philox, NULL), 0);
			}
			for (int k = 0; k < 2 && !ops[o].all; k++)
				in[n++] = ints(t, -1, &limit[k]);
			compare(ops[o].op, attrs, in, n, 0);
			while (n--)
				mu_tensor_unref(&in[n]);
		}
}

/* The counter of a generator after a long run. */
static void counter__on_overflow__carries_into_its_upper_half(void **state)
{
	struct philox p = {{0xfffffffe, 0xffffffff, 0xffffffff, 7}, {1, 2}};
	float got[16];
	struct random_args a = {.out = (uintptr_t)got | HOST_DEVICE_BIT, .n = 16};

	memcpy(a.counter, p.counter, sizeof a.counter);
	memcpy(a.key, p.key, sizeof a.key);
	host_kernel_run(host_kernel_find("uniform_f32"), 1, 3, &a);
	for (int i = 0; i < 16; i += 4) {
		uint32_t x[4];
		philox_next(&p, x);
		for (int k = 0; k < 4; k++)
			assert_true(got[i + k] == (float)(x[k] & 0x7fffff) / 0x800000);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(seeded_numbers__match_the_cpu),
	    T(stateless_numbers__match_the_cpu),
	    T(numbers_from_a_key__match_the_cpu),
	    T(random_integers__match_the_cpu),
	    T(counter__on_overflow__carries_into_its_upper_half),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
