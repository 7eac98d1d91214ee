/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's elementwise kernels compared with the CPU kernels: op × type × shape class. */
#include <math.h>

#include "tests/kernels/gpu_compare.h"

static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE, MU_INT64, MU_BOOL};

static const int64_t shapes[][5] = {/* rank, dims */
				    {0},       {1, 0},    {1, 1},       {1, 7},
				    {2, 3, 5}, {1, 2000}, {3, 4, 1, 9}, {4, 2, 3, 4, 5}};

static struct mu_shape shape_at(unsigned i)
{
	return dims_of((int)shapes[i][0], &shapes[i][1]);
}

struct range {
	const char *op;
	double low, span;
};
/* Argument ranges in which a function is defined and its result is not close to an infinity. */
static const struct range ranges[] = {
    {"Sqrt", 0, 9},     {"Rsqrt", 0.1, 9},      {"Log", 0.1, 9},        {"Log1p", -0.5, 9},
    {"Asin", -1, 2},    {"Acos", -1, 2},        {"Atanh", -.9, 1.8},    {"Acosh", 1, 5},
    {"Lgamma", 0.1, 5}, {"Pow", 0.1, 3},        {"Xlogy", 0.1, 3},      {"Xlog1py", 0.1, 3},
    {"SqrtGrad", 1, 3}, {"Tan", -1, 2},         {"FloorDiv", 1, 50},    {"FloorMod", 1, 50},
    {"Mod", 1, 50},     {"TruncateMod", 1, 50}, {"TruncateDiv", 1, 50}, {"Div", 1, 50},
    {"RealDiv", 1, 50}, {"LeftShift", 0, 9},    {"RightShift", 0, 9},
};

static struct range range_of(const char *op)
{
	for (unsigned i = 0; i < MU_COUNT(ranges); i++)
		if (strcmp(ranges[i].op, op) == 0)
			return ranges[i];
	return (struct range){op, -3, 6};
}

static bool supports(const struct device_kernel *k, enum mu_dtype t)
{
	return k->types & GPU_TYPE(t);
}

static const struct device_kernel *row_of(const char *op)
{
	const struct device_kernel *k = gpu_kernel_row(op);

	if (!k)
		fail_msg("no row for %s", op);
	return k;
}

static const char *const unary_ops[] = {
#define UNARY(op, types, expr)     #op,
#define PREDICATE(op, types, expr) #op,
#include "task/kernels/engine/loops/loops.def"
#undef UNARY
#undef PREDICATE
};
static const char *const binary_ops[] = {
#define BINARY(op, types, expr)  #op,
#define COMPARE(op, types, expr) #op,
#include "task/kernels/engine/loops/loops.def"
#undef BINARY
#undef COMPARE
};

static void unary_ops__of_every_type_and_shape__match_the_cpu(void **state)
{
	for (unsigned i = 0; i < MU_COUNT(unary_ops); i++)
		for (unsigned t = 0; t < MU_COUNT(types); t++) {
			const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL}, {0}};
			struct range r = range_of(unary_ops[i]);
			if (!supports(row_of(unary_ops[i]), types[t]))
				continue;
			for (unsigned s = 0; s < MU_COUNT(shapes); s++) {
				struct mu_shape shape = shape_at(s);
				MU_AUTO_TENSOR x = filled(types[t], &shape, r.low, r.span, i + s);
				compare(unary_ops[i], attrs, &x, 1, 8);
			}
		}
}

static void binary_ops__of_every_type_and_broadcast__match_the_cpu(void **state)
{
	static const int64_t pairs[][2][5] = {
	    {{0}, {0}},
	    {{1, 6}, {1, 6}},
	    {{2, 3, 5}, {0}},
	    {{1, 1}, {3, 2, 3, 4}},
	    {{2, 4, 5}, {1, 5}},
	    {{2, 4, 1}, {2, 1, 6}},
	    {{4, 2, 1, 3, 1}, {4, 1, 4, 1, 5}},
	    {{2, 0, 3}, {1, 3}},
	    {{1, 2000}, {1, 2000}},
	};

	for (unsigned i = 0; i < MU_COUNT(binary_ops); i++)
		for (unsigned t = 0; t < MU_COUNT(types); t++) {
			const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL}, {0}};
			struct range r = range_of(binary_ops[i]);
			if (!supports(row_of(binary_ops[i]), types[t]))
				continue;
			for (unsigned s = 0; s < MU_COUNT(pairs); s++) {
				struct mu_shape a = dims_of((int)pairs[s][0][0], &pairs[s][0][1]);
				struct mu_shape b = dims_of((int)pairs[s][1][0], &pairs[s][1][1]);
				struct mu_tensor in[2] = {filled(types[t], &a, r.low, r.span, s),
							  filled(types[t], &b, r.low, r.span, i)};
				compare(binary_ops[i], attrs, in, 2, 8);
				mu_tensor_unref(&in[0]);
				mu_tensor_unref(&in[1]);
			}
		}
}

static void casts__between_every_two_types__match_the_cpu(void **state)
{
	static const enum mu_dtype all[] = {MU_FLOAT, MU_DOUBLE, MU_HALF,  MU_BFLOAT16,
					    MU_INT64, MU_INT32,  MU_UINT8, MU_BOOL};
	struct mu_shape s = mu_shape_vec(100);

	for (unsigned i = 0; i < MU_COUNT(all); i++)
		for (unsigned k = 0; k < MU_COUNT(all); k++) {
			const struct attr attrs[] = {{"SrcT", A_TYPE, (long)all[i], NULL},
						     {"DstT", A_TYPE, (long)all[k], NULL},
						     {0}};
			MU_AUTO_TENSOR x = filled(all[i], &s, 0, 100, i);
			if (i != k)
				compare("Cast", attrs, &x, 1, 1);
		}
}

/* 16-bit types have no arithmetic on the CPU: the result is that of floats, rounded. */
static void halves__are_computed_in_float_and_rounded(void **state)
{
	static const enum mu_dtype half[] = {MU_HALF, MU_BFLOAT16};
	static const int64_t dims[2] = {12, 20};
	struct mu_shape s = dims_of(2, dims);

	for (unsigned h = 0; h < 2; h++) {
		const struct attr attrs[] = {{"T", A_TYPE, (long)half[h], NULL}, {0}};
		const struct attr of_float[] = {{"T", A_TYPE, MU_FLOAT, NULL}, {0}};
		const char *const ops[] = {"AddV2", "Mul", "Maximum", "MatMul"};
		for (unsigned i = 0; i < MU_COUNT(ops); i++) {
			struct mu_tensor in[2] = {filled(half[h], &s, -1, 2, 1),
						  filled(half[h], &s, -1, 2, 2)};
			struct mu_tensor wide[2], want[MAX_OUT] = {0}, got[MAX_OUT] = {0};
			bool product = strcmp(ops[i], "MatMul") == 0;
			struct attr with[3], wide_with[3];
			unsigned n;
			memcpy(with, attrs, sizeof attrs);
			memcpy(wide_with, of_float, sizeof of_float);
			if (product) {
				with[1] = wide_with[1] =
				    (struct attr){"transpose_b", A_BOOL, 1, NULL};
				with[2] = wide_with[2] = (struct attr){0};
			}
			for (unsigned k = 0; k < 2; k++) {
				assert_int_equal(mu_tensor_new(&wide[k], MU_FLOAT, &s, &err), 0);
				for (int64_t j = 0; j < s.count; j++)
					put(&wide[k], j, get(&in[k], j));
			}
			assert_ok(run_op(CPU, ops[i], wide_with, wide, 2, want, &n), &err);
			assert_ok(run_op(GPU, ops[i], with, in, 2, got, &n), &err);
			for (int64_t j = 0; j < want[0].shape.count; j++)
				assert_true(fabs(get(&want[0], j) - get(&got[0], j)) <=
					    tolerance(half[h]) * 4);
			for (unsigned k = 0; k < 2; k++) {
				mu_tensor_unref(&in[k]);
				mu_tensor_unref(&wide[k]);
			}
			mu_tensor_unref(&want[0]);
			mu_tensor_unref(&got[0]);
		}
	}
}

static void select__by_scalar_rows_and_element__matches_the_cpu(void **state)
{
	static const int64_t conds[][3] = {{0}, {1, 4}, {2, 4, 6}, {1, 5}};
	static const int64_t dims[2] = {4, 6};
	struct mu_shape s = dims_of(2, dims);

	for (unsigned t = 0; t < MU_COUNT(types); t++)
		for (unsigned i = 0; i < MU_COUNT(conds); i++) {
			const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL}, {0}};
			struct mu_shape c = dims_of((int)conds[i][0], &conds[i][1]);
			struct mu_tensor in[3] = {filled(MU_BOOL, &c, -1, 2, i),
						  filled(types[t], &s, -9, 18, 1),
						  filled(types[t], &s, -9, 18, 2)};
			compare("Select", attrs, in, 3, 1);
			for (unsigned k = 0; k < 3; k++)
				mu_tensor_unref(&in[k]);
		}
}

static void fills_and_likes__match_the_cpu(void **state)
{
	static const int64_t dims[2] = {3, 50};
	struct mu_shape s = dims_of(2, dims), scalar = mu_shape_scalar();

	for (unsigned t = 0; t < MU_COUNT(types); t++) {
		const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL}, {0}};
		struct mu_tensor fill[2] = {ints(MU_INT32, 2, dims),
					    filled(types[t], &scalar, 2, 5, t)};
		MU_AUTO_TENSOR x = filled(types[t], &s, -3, 6, t);
		compare("Fill", attrs, fill, 2, 1);
		compare("ZerosLike", attrs, &x, 1, 1);
		compare("OnesLike", attrs, &x, 1, 1);
		mu_tensor_unref(&fill[0]);
		mu_tensor_unref(&fill[1]);
	}
}

static void add_n__of_a_few__matches_the_cpu(void **state)
{
	struct mu_shape s = mu_shape_vec(33), other = mu_shape_vec(32);

	for (unsigned n = 1; n <= 9; n += 4) {
		const struct attr attrs[] = {
		    {"T", A_TYPE, MU_FLOAT, NULL}, {"N", A_INT, (long)n, NULL}, {0}};
		struct mu_tensor in[9];
		for (unsigned i = 0; i < n; i++)
			in[i] = filled(MU_FLOAT, n == 9 && i == 8 ? &other : &s, -1, 2, i);
		compare("AddN", attrs, in, n, 4);
		for (unsigned i = 0; i < n; i++)
			mu_tensor_unref(&in[i]);
	}
}

static void cross_products__match_the_cpu(void **state)
{
	static const int64_t dims[][4] = {{1, 3}, {2, 5, 3}, {2, 0, 3}, {1, 4}, {3, 7, 100, 3}};
	static const enum mu_dtype real[] = {MU_FLOAT, MU_DOUBLE, MU_INT64};

	for (unsigned i = 0; i < MU_COUNT(dims); i++)
		for (unsigned t = 0; t < MU_COUNT(real); t++) {
			const struct attr attrs[] = {{"T", A_TYPE, (long)real[t], NULL}, {0}};
			struct mu_shape s = dims_of((int)dims[i][0], &dims[i][1]);
			struct mu_shape other = dims_of(1, &dims[i][1]);
			struct mu_tensor in[3] = {filled(real[t], &s, -9, 18, 1),
						  filled(real[t], &s, -9, 18, 2),
						  filled(real[t], &other, -9, 18, 2)};
			compare("Cross", attrs, in, 2, 200);     /* slack for cancellation */
			compare("Cross", attrs, in + 1, 2, 200); /* mostly mismatched shapes */
			for (unsigned k = 0; k < 3; k++)
				mu_tensor_unref(&in[k]);
		}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(unary_ops__of_every_type_and_shape__match_the_cpu),
	    T(binary_ops__of_every_type_and_broadcast__match_the_cpu),
	    T(casts__between_every_two_types__match_the_cpu),
	    T(halves__are_computed_in_float_and_rounded),
	    T(select__by_scalar_rows_and_element__matches_the_cpu),
	    T(fills_and_likes__match_the_cpu),
	    T(add_n__of_a_few__matches_the_cpu),
	    T(cross_products__match_the_cpu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
