/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, products, softmaxes and biases on the GPU compared with the CPU kernels. */
#include <stdlib.h>

#include "tests/fake/cuda/fake_cuda.h"
#include "tests/kernels/gpu_compare.h"

static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE};

/* ---- reductions ---- */

static void reductions__over_every_set_of_axes__match_the_cpu(void **state)
{
	static const char *const ops[] = {"Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"};
	static const int64_t dims[][4] = {{5, 7, 3, 2}, {1, 600, 1, 3}, {2, 3, 0, 4}};

	for (unsigned i = 0; i < MU_COUNT(ops); i++)
		for (unsigned d = 0; d < MU_COUNT(dims); d++)
			for (unsigned set = 0; set < 16; set++) {
				const struct attr attrs[] = {{"T", A_TYPE, MU_FLOAT, NULL},
							     {"Tidx", A_TYPE, MU_INT32, NULL},
							     {"keep_dims", A_BOOL, set & 1, NULL},
							     {0}};
				struct mu_shape s = dims_of(4, dims[d]);
				int64_t axes[4], n = 0;
				for (int k = 0; k < 4; k++)
					if (set >> k & 1)
						axes[n++] = k % 2 ? k : k - 4;
				struct mu_tensor in[2] = {filled(MU_FLOAT, &s, 0.5, 1, set),
							  ints(MU_INT32, n, axes)};
				compare(ops[i], attrs, in, 2, 600);
				mu_tensor_unref(&in[0]);
				mu_tensor_unref(&in[1]);
			}
}

static void long_reduction__in_two_passes__matches_the_cpu(void **state)
{
	const struct attr attrs[] = {
	    {"T", A_TYPE, MU_DOUBLE, NULL}, {"Tidx", A_TYPE, MU_INT32, NULL}, {0}};
	const struct attr l2[] = {{"T", A_TYPE, MU_DOUBLE, NULL}, {0}};
	static const int64_t zero = 0;
	struct mu_shape s = mu_shape_vec(100003);
	struct mu_tensor in[2] = {filled(MU_DOUBLE, &s, -1, 2, 5), ints(MU_INT32, 1, &zero)};

	compare("Sum", attrs, in, 2, 1000);
	compare("Max", attrs, in, 2, 1);
	compare("L2Loss", l2, in, 1, 1000);
	mu_tensor_unref(&in[0]);
	mu_tensor_unref(&in[1]);
}

static void all_and_any__match_the_cpu(void **state)
{
	static const int64_t dims[2] = {6, 300}, one = 1;
	const struct attr attrs[] = {{"Tidx", A_TYPE, MU_INT32, NULL}, {0}};
	struct mu_shape s = dims_of(2, dims);

	for (unsigned seed = 0; seed < 4; seed++) {
		struct mu_tensor in[2] = {filled(MU_BOOL, &s, seed % 2 ? -0.002 : -1, 1, seed),
					  ints(MU_INT32, 1, &one)};
		compare("All", attrs, in, 2, 1);
		compare("Any", attrs, in, 2, 1);
		mu_tensor_unref(&in[0]);
		mu_tensor_unref(&in[1]);
	}
}

static void arg_max_and_min__along_every_axis__match_the_cpu(void **state)
{
	static const int64_t dims[3] = {4, 7, 3};
	struct mu_shape s = dims_of(3, dims);

	for (int64_t axis = -3; axis < 4; axis++)
		for (unsigned wide = 0; wide < 2; wide++) {
			const struct attr attrs[] = {
			    {"T", A_TYPE, MU_FLOAT, NULL},
			    {"Tidx", A_TYPE, MU_INT32, NULL},
			    {"output_type", A_TYPE, wide ? MU_INT64 : MU_INT32, NULL},
			    {0}};
			struct mu_tensor in[2] = {filled(MU_FLOAT, &s, -5, 10, wide),
						  ints(MU_INT32, -1, &axis)};
			compare("ArgMax", attrs, in, 2, 1);
			compare("ArgMin", attrs, in, 2, 1);
			mu_tensor_unref(&in[0]);
			mu_tensor_unref(&in[1]);
		}
}

/* ---- products, rows ---- */

static const int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 2}, {64, 64, 16}, {65, 63, 17},
				   {0, 3, 4}, {3, 0, 4}, {3, 4, 0},    {130, 70, 33}};

static unsigned long count_products(void)
{
	struct fake_cuda_counts c;

	fake_cuda_count(&c);
	return c.products;
}

/* form: bit 0 is transpose_a, bit 1 is transpose_b. */
static void compare_product(enum mu_dtype t, const int64_t *size, unsigned form, const char *fused,
			    const struct mu_shape *bias)
{
	struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
			       {"transpose_a", A_BOOL, form & 1, NULL},
			       {"transpose_b", A_BOOL, form >> 1 & 1, NULL},
			       {fused ? "num_args" : NULL, A_INT, 1, NULL},
			       {"fused_ops", A_TEXTS, 0, fused},
			       {0}};
	int64_t m = size[0], n = size[1], k = size[2];
	int64_t a[2] = {form & 1 ? k : m, form & 1 ? m : k};
	int64_t b[2] = {form & 2 ? n : k, form & 2 ? k : n};
	struct mu_shape sa = dims_of(2, a), sb = dims_of(2, b);
	struct mu_tensor in[3] = {filled(t, &sa, -1, 2, (unsigned)m), filled(t, &sb, -1, 2, form)};

	if (fused)
		in[2] = filled(t, bias, -1, 2, 3);
	compare(fused ? "_FusedMatMul" : "MatMul", attrs, in, fused ? 3 : 2, 20);
	mu_tensor_unref(&in[0]);
	mu_tensor_unref(&in[1]);
	if (fused)
		mu_tensor_unref(&in[2]);
}

/* All element types, sizes and transpositions. */
static void compare_all_products(void)
{
	static const enum mu_dtype floats[] = {MU_FLOAT, MU_DOUBLE, MU_HALF, MU_BFLOAT16};

	for (unsigned i = 0; i < MU_COUNT(sizes); i++)
		for (unsigned form = 0; form < 16; form++)
			compare_product(floats[form / 4], sizes[i], form % 4, NULL, NULL);
}

/* Biases of columns and rows; each activation. */
static void compare_all_fused(void)
{
	static const char *const ops[] = {"BiasAdd", "BiasAdd,Relu", "BiasAdd,Sigmoid",
					  "BiasAdd,Tanh", "Add,Relu"};

	for (unsigned i = 0; i < MU_COUNT(sizes); i++)
		for (unsigned o = 0; o < MU_COUNT(ops); o++) {
			struct mu_shape vector = mu_shape_vec(sizes[i][1]);
			struct mu_shape rows = dims_of(2, (int64_t[]){sizes[i][0], 1});
			compare_product(MU_FLOAT, sizes[i], o % 4, ops[o],
					o == 4 ? &rows : &vector);
			compare_product(MU_DOUBLE, sizes[i], o % 4, ops[o], &vector);
		}
}

static void products__by_the_library__match_the_cpu(void **state)
{
	unsigned long before = count_products();

	compare_all_products();
	if (!getenv("MUSTER_GPU_TEST"))
		assert_int_equal(count_products() - before, 5 * 16); /* all except empty products */
	before = count_products();
	compare_all_fused();
	if (!getenv("MUSTER_GPU_TEST"))
		assert_int_equal(count_products() - before, 5 * 5 * 2);
}

static void products__by_our_own_kernel__match_the_cpu(void **state)
{
	unsigned long before = count_products();

	fake_cuda.no_products = true;
	compare_all_products();
	compare_all_fused();
	assert_int_equal(count_products(), before);
}

/* The product is computed even if the library refuses every call. */
static void products__when_the_library_fails__use_our_own_kernel(void **state)
{
	const int64_t size[3] = {9, 8, 7};
	struct mu_shape bias = mu_shape_vec(8);

	for (int at = 1; at <= 5; at++) {
		fake_cuda.fail_at = at;
		fake_cuda.fail_result = 13;
		fake_cuda.fail_call = "multiply";
		compare_product(MU_FLOAT, size, at % 4, "BiasAdd,Relu", &bias);
	}
	fake_cuda.fail_call = NULL;
}

static void products__of_mismatched_shapes__are_invalid(void **state)
{
	static const int64_t a[2] = {3, 4}, b[2] = {5, 6};
	const struct attr attrs[] = {{"T", A_TYPE, MU_FLOAT, NULL}, {0}};
	struct mu_shape sa = dims_of(2, a), sb = dims_of(2, b), v = mu_shape_vec(4);
	struct mu_tensor in[3] = {filled(MU_FLOAT, &sa, 0, 1, 1), filled(MU_FLOAT, &sb, 0, 1, 2),
				  filled(MU_FLOAT, &v, 0, 1, 2)};

	compare("MatMul", attrs, in, 2, 1);
	compare("MatMul", attrs, in + 1, 2, 1);
	compare("BiasAdd", attrs, in + 1, 2, 1);
	compare("Sum", (const struct attr[]){attrs[0], {"Tidx", A_TYPE, MU_FLOAT, NULL}, {0}}, in,
		2, 1);
	for (unsigned i = 0; i < 3; i++)
		mu_tensor_unref(&in[i]);
}

static void biases__of_both_layouts__match_the_cpu(void **state)
{
	static const int64_t dims[4] = {2, 3, 4, 5};
	struct mu_shape s = dims_of(4, dims);

	for (unsigned first = 0; first < 2; first++) {
		const struct attr attrs[] = {{"T", A_TYPE, MU_FLOAT, NULL},
					     {"data_format", A_TEXT, 0, first ? "NCHW" : "NHWC"},
					     {0}};
		struct mu_shape b = mu_shape_vec(first ? 3 : 5);
		struct mu_tensor in[2] = {filled(MU_FLOAT, &s, -1, 2, 1),
					  filled(MU_FLOAT, &b, -1, 2, 2)};
		compare("BiasAdd", attrs, in, 2, 1);
		compare("BiasAddGrad", attrs, in, 1, 40);
		mu_tensor_unref(&in[0]);
		mu_tensor_unref(&in[1]);
	}
}

static void softmaxes__of_every_width__match_the_cpu(void **state)
{
	static const int64_t dims[][2] = {{3, 10}, {2, 1}, {1, 500}, {70, 3}, {0, 4}, {4, 0}};

	for (unsigned i = 0; i < MU_COUNT(dims); i++)
		for (unsigned t = 0; t < 2; t++) {
			const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL}, {0}};
			const struct attr sparse[] = {
			    attrs[0], {"Tlabels", A_TYPE, MU_INT32, NULL}, {0}};
			struct mu_shape s = dims_of(2, dims[i]), rows = mu_shape_vec(dims[i][0]);
			struct mu_tensor in[2] = {filled(types[t], &s, -20, 40, i),
						  filled(types[t], &s, 0, 1, i + 1)};
			compare("Softmax", attrs, in, 1, 4);
			compare("LogSoftmax", attrs, in, 1, 40);
			if (dims[i][1])
				compare("SoftmaxCrossEntropyWithLogits", attrs, in, 2, 40);
			mu_tensor_unref(&in[1]);
			in[1] = filled(MU_INT32, &rows, 0, (double)dims[i][1], i);
			if (dims[i][1])
				compare("SparseSoftmaxCrossEntropyWithLogits", sparse, in, 2, 40);
			mu_tensor_unref(&in[0]);
			mu_tensor_unref(&in[1]);
		}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(reductions__over_every_set_of_axes__match_the_cpu),
	    T(long_reduction__in_two_passes__matches_the_cpu),
	    T(all_and_any__match_the_cpu),
	    T(arg_max_and_min__along_every_axis__match_the_cpu),
	    T(products__by_the_library__match_the_cpu),
	    T(products__by_our_own_kernel__match_the_cpu),
	    T(products__when_the_library_fails__use_our_own_kernel),
	    T(products__of_mismatched_shapes__are_invalid),
	    T(biases__of_both_layouts__match_the_cpu),
	    T(softmaxes__of_every_width__match_the_cpu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
