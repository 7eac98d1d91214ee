/* SPDX-License-Identifier: Apache-2.0 */
/* Scatter updates, strided-slice assignments, segment sums, optimizers and batched products on the
 * GPU compared with the CPU kernels. */
#include <stdio.h>

#include "tests/kernels/gpu_compare.h"

static const enum mu_dtype floats[] = {MU_FLOAT, MU_DOUBLE};

/* Random numbers in [0, limit); some occur several times. */
static struct mu_tensor random_rows(enum mu_dtype t, int64_t n, int64_t limit, unsigned seed)
{
	struct mu_shape s = mu_shape_vec(n);

	return filled(t, &s, 0, (double)limit, seed);
}

static void drop(struct mu_tensor *t, unsigned n)
{
	while (n--)
		mu_tensor_unref(&t[n]);
}

/* ---- Scatter ops and slice assignments ---- */

static void scatter_updates__by_every_op__match_the_cpu(void **state)
{
	static const char *const ops[] = {"Update", "Add", "Sub", "Mul", "Div", "Max", "Min"};
	static const int64_t counts[] = {0, 1, 2, 5, 37, 64};
	const struct attr attrs[] = {
	    {"T", A_TYPE, 0, NULL}, {"dtype", A_TYPE, 0, NULL}, {"Tindices", A_TYPE, 0, NULL}, {0}};

	for (unsigned o = 0; o < MU_COUNT(ops); o++)
		for (unsigned k = 0; k < MU_COUNT(counts) * 4; k++) {
			enum mu_dtype t = floats[k & 1], number = k & 2 ? MU_INT64 : MU_INT32;
			int64_t n = counts[k / 4];
			struct attr a[4];
			char op[32];
			memcpy(a, attrs, sizeof attrs);
			a[0].value = a[1].value = (long)t;
			a[2].value = (long)number;
			snprintf(op, sizeof op, "%sScatter%s", k % 3 ? "Resource" : "", ops[o]);
			struct mu_shape table = dims_of(3, (int64_t[]){9, 2, 3});
			struct mu_shape updates = dims_of(3, (int64_t[]){n, 2, 3});
			struct mu_shape one = mu_shape_scalar();
			struct mu_tensor value = filled(t, &table, 1, 3, o);
			struct mu_tensor in[2] = {random_rows(number, n, 9, k),
						  filled(t, k % 5 ? &updates : &one, 1, 3, k)};
			compare_update(op, a, &value, 1, in, 2, 0);
			drop(&value, 1);
			drop(in, 2);
		}
}

/* A value of the slice's shape, a scalar, and a value of a mismatched shape, which only an empty
 * slice accepts. */
static void strided_slice_assign__of_every_form__matches_the_cpu(void **state)
{
	static const int64_t begins[][2] = {{1, 0}, {8, 5}, {0, 0}, {4, 2}};
	static const int64_t ends[][2] = {{8, 6}, {0, 0}, {9, 6}, {4, 5}};
	static const int64_t strides[][2] = {{3, 2}, {-2, -1}, {1, 1}, {1, 1}};
	static const int64_t sizes[][2] = {{3, 3}, {4, 5}, {9, 6}, {0, 3}};
	const struct mu_shape table = dims_of(2, (int64_t[]){9, 6}), one = mu_shape_scalar();

	for (unsigned i = 0; i < MU_COUNT(begins) * 3 * 2 * 2; i++) {
		const unsigned k = i / 12, form = i / 4 % 3;
		const enum mu_dtype t = i & 1 ? MU_HALF : MU_FLOAT,
				    number = i & 2 ? MU_INT64 : MU_INT32;
		const struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
					     {"dtype", A_TYPE, (long)t, NULL},
					     {"Index", A_TYPE, (long)number, NULL},
					     {0}};
		struct mu_shape s =
		    form == 1 ? one : dims_of(2, (int64_t[]){sizes[k][0] + form / 2, sizes[k][1]});
		struct mu_tensor value = filled(t, &table, 1, 3, i);
		struct mu_tensor in[4] = {ints(number, 2, begins[k]), ints(number, 2, ends[k]),
					  ints(number, 2, strides[k]), filled(t, &s, -3, 2, i + 1)};
		assert_int_equal(
		    compare_update("ResourceStridedSliceAssign", attrs, &value, 1, in, 4, 0) != 0,
		    form == 2 && sizes[k][0]);
		compare_update("StridedSliceAssign", attrs, &value, 1, in, 4, 0);
		drop(&value, 1);
		drop(in, 4);
	}
}

static void scatter_updates__of_mismatched_shapes__are_invalid(void **state)
{
	const struct attr attrs[] = {
	    {"dtype", A_TYPE, MU_FLOAT, NULL}, {"Tindices", A_TYPE, MU_INT32, NULL}, {0}};
	struct mu_shape table = dims_of(2, (int64_t[]){4, 3}), wide = dims_of(2, (int64_t[]){2, 4});
	struct mu_shape scalar = mu_shape_scalar();
	struct mu_tensor value[2] = {filled(MU_FLOAT, &table, 0, 1, 1),
				     filled(MU_FLOAT, &scalar, 0, 1, 1)};
	struct mu_tensor in[2] = {random_rows(MU_INT32, 2, 4, 1), filled(MU_FLOAT, &wide, 0, 1, 2)};

	for (unsigned i = 0; i < 2; i++)
		compare_update("ResourceScatterAdd", attrs, &value[i], 1, in, 2, 0);
	drop(value, 2);
	drop(in, 2);
}

/* The CPU kernels return an error for them. */
static void scatter_updates__out_of_range__change_nothing(void **state)
{
	const struct attr attrs[] = {{"T", A_TYPE, MU_FLOAT, NULL},
				     {"dtype", A_TYPE, MU_FLOAT, NULL},
				     {"Tindices", A_TYPE, MU_INT64, NULL},
				     {0}};
	static const int64_t rows[] = {2, -1, 3, INT64_MIN, 0, INT64_MAX};
	static const char *const ops[] = {"ResourceScatterAdd", "ResourceSparseApplyMomentum"};
	struct mu_shape table = mu_shape_vec(3), updates = mu_shape_vec(6);
	struct mu_shape scalar = mu_shape_scalar();
	struct mu_tensor value[2] = {filled(MU_FLOAT, &table, 5, 0, 1),
				     filled(MU_FLOAT, &table, 0, 0, 1)};
	struct mu_tensor rate = filled(MU_FLOAT, &scalar, -1, 0, 1);
	struct mu_tensor all = filled(MU_FLOAT, &updates, 1, 0, 2);
	struct mu_tensor at = ints(MU_INT64, 6, rows), out[MAX_OUT] = {0};

	for (unsigned i = 0; i < 2; i++) {
		const struct mu_tensor add[] = {at, all}, learn[] = {rate, all, at, rate};
		assert_int_equal(
		    run_update(GPU, ops[i], attrs, value, 1 + i, i ? learn : add, i ? 4 : 2, out),
		    0);
		assert_true(get(&out[0], 0) == 6 && get(&out[0], 1) == 5 && get(&out[0], 2) == 6);
		drop(out, 1 + i);
	}
	drop(value, 2);
	drop(&rate, 1);
	drop(&all, 1);
	drop(&at, 1);
}

/* ---- optimizers ---- */

enum { GRAD = 'g', INDICES = 'i', STEPS = 'n' };
static const struct optimizer_case {
	const char *name;
	unsigned slots;
	const char *in; /* inputs after the slots: g, i, n (global step), '-', or a digit: tenths */
	const char *flag;
} optimizers[] = {
    {"ApplyGradientDescent", 0, "1g", NULL},
    {"ApplyAdagrad", 1, "1g", "update_slots"},
    {"ApplyAdagradV2", 1, "12g", NULL},
    {"ApplyMomentum", 1, "1g9", "use_nesterov"},
    {"ApplyAdam", 2, "881891g", "use_nesterov"},
    {"ApplyRMSProp", 2, "1991g", NULL},
    {"ApplyCenteredRMSProp", 3, "1992g", NULL},
    {"ApplyAdadelta", 2, "191g", NULL},
    {"ApplyFtrl", 2, "g112-", NULL},
    {"ApplyFtrlV2", 2, "g1122-", "multiply_linear_by_lr"},
    {"ApplyProximalGradientDescent", 0, "111g", NULL},
    {"ApplyProximalAdagrad", 1, "111g", NULL},
    {"SparseApplyAdagrad", 1, "1gi", "update_slots"},
    {"SparseApplyAdagradV2", 1, "12gi", NULL},
    {"SparseApplyMomentum", 1, "1gi9", "use_nesterov"},
    {"SparseApplyRMSProp", 2, "1991gi", NULL},
    {"SparseApplyCenteredRMSProp", 3, "1992gi", NULL},
    {"SparseApplyAdadelta", 2, "191gi", NULL},
    {"SparseApplyFtrl", 2, "gi112-", NULL},
    {"SparseApplyFtrlV2", 2, "gi1122-", "multiply_linear_by_lr"},
    {"SparseApplyProximalGradientDescent", 0, "111gi", NULL},
    {"SparseApplyProximalAdagrad", 1, "111gi", NULL},
    {"ApplyKerasMomentum", 1, "1g9", "use_nesterov"},
    {"SparseApplyKerasMomentum", 1, "1gi9", "use_nesterov"},
    {"ApplyAdagradDA", 2, "g112n", NULL},
    {"ApplyAdaMax", 2, "81891g", NULL},
    {"ApplyAddSign", 1, "1919g", NULL},
    {"ApplyPowerSign", 1, "1919g", NULL},
    {"ApplyAdamWithAmsgrad", 3, "881891g", NULL},
    {"SparseApplyAdagradDA", 2, "gi112n", NULL},
};

static void compare_optimizer(const struct optimizer_case *o, bool resource, enum mu_dtype t,
			      enum mu_dtype number, bool flag)
{
	const struct attr attrs[] = {
	    {"T", A_TYPE, (long)t, NULL},
	    {"Tindices", A_TYPE, (long)number, NULL},
	    {flag ? o->flag : NULL, A_BOOL, strcmp(o->name, "SparseApplyAdagrad"), NULL},
	    {0}};
	bool sparse = strchr(o->in, INDICES) != NULL;
	struct mu_shape table = dims_of(2, (int64_t[]){7, 5});
	struct mu_shape grad_shape = dims_of(2, (int64_t[]){11, 5}), scalar = mu_shape_scalar();
	struct mu_tensor values[4], in[8];
	unsigned n = 0;
	char op[64];

	snprintf(op, sizeof op, "%s%s", resource ? "Resource" : "", o->name);
	for (unsigned i = 0; i <= o->slots;
	     i++) /* the second moment is larger than the square of the first */
		values[i] = filled(t, &table, i == 2 ? 4 : i ? 0.5 : -1, i ? 1 : 2, i);
	for (const char *p = o->in; *p; p++, n++)
		in[n] = *p == GRAD      ? filled(t, sparse ? &grad_shape : &table, -1, 2, n)
			: *p == STEPS   ? ints(MU_INT64, -1, (int64_t[]){5})
			: *p == INDICES ? random_rows(number, 11, 7, n)
			: *p == '-'     ? filled(t, &scalar, flag ? -0.5 : -0.4, 0, n)
					: filled(t, &scalar, (*p - '0') / 10.0, 0, n);
	assert_int_equal(compare_update(op, attrs, values, 1 + o->slots, in, n, 30), 0);
	drop(values, 1 + o->slots);
	drop(in, n);
}

static bool only_by_handle(const char *name)
{
	return strstr(name, "Keras") || strstr(name, "Amsgrad") ||
	       strcmp(name, "SparseApplyAdagradDA") == 0;
}

static void optimizers__dense_and_sparse__match_the_cpu(void **state)
{
	for (unsigned i = 0; i < MU_COUNT(optimizers); i++)
		for (unsigned form = 0; form < 16; form++) {
			bool handle = only_by_handle(optimizers[i].name);
			compare_optimizer(&optimizers[i], handle || form & 1, floats[form >> 1 & 1],
					  form & 4 ? MU_INT64 : MU_INT32, form >> 3);
		}
}

/* ---- segments ---- */

static void segments__of_every_op_and_type__match_the_cpu(void **state)
{
	static const char *const ops[] = {"UnsortedSegmentSum", "UnsortedSegmentProd",
					  "UnsortedSegmentMax", "UnsortedSegmentMin"};
	static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE, MU_HALF, MU_BFLOAT16, MU_INT64};
	static const int64_t sizes[][3] = {{40, 3, 7}, {1, 1, 1}, {0, 3, 4}, {6, 0, 2}, {9, 2, 0}};

	for (unsigned o = 0; o < MU_COUNT(ops); o++)
		for (unsigned t = 0; t < MU_COUNT(types); t++)
			for (unsigned k = 0; k < MU_COUNT(sizes) * 2; k++) {
				enum mu_dtype number = k & 1 ? MU_INT64 : MU_INT32;
				const struct attr attrs[] = {
				    {"T", A_TYPE, (long)types[t], NULL},
				    {"Tindices", A_TYPE, (long)number, NULL},
				    {"Tnumsegments", A_TYPE, MU_INT32, NULL},
				    {0}};
				const int64_t *n = sizes[k / 2];
				struct mu_shape data = dims_of(3, (int64_t[]){n[0], 2, n[1]});
				struct mu_shape pairs = dims_of(2, (int64_t[]){n[0], 2});
				/* -1: dropped; every other segment stays empty */
				struct mu_tensor in[3] = {filled(types[t], &data, 1, 3, k),
							  filled(number, &pairs, n[2] ? -1 : -2,
								 n[2] ? (double)n[2] / 2 + 1 : 1,
								 k),
							  ints(MU_INT32, -1, &n[2])};
				compare(ops[o], attrs, in, 3, o == 1 ? 60 : 20);
				drop(in, 3);
			}
}

static void segment_sums__of_the_same_numbers__are_bit_identical_to_the_cpu(void **state)
{
	const struct attr attrs[] = {{"T", A_TYPE, MU_FLOAT, NULL},
				     {"Tindices", A_TYPE, MU_INT32, NULL},
				     {"Tnumsegments", A_TYPE, MU_INT32, NULL},
				     {0}};
	struct mu_shape data = dims_of(2, (int64_t[]){1000, 2});
	struct mu_tensor in[3] = {filled(MU_FLOAT, &data, -1, 2, 3),
				  random_rows(MU_INT32, 1000, 3, 4),
				  ints(MU_INT32, -1, (int64_t[]){3})};

	compare("UnsortedSegmentSum", attrs, in, 3, 0);
	drop(in, 3);
}

/* ---- ScatterNd and GatherNd ---- */

static struct mu_tensor positions(enum mu_dtype t, unsigned seed)
{
	struct mu_tensor at = random_rows(t, 20, 4, seed);
	struct mu_shape s = dims_of(3, (int64_t[]){5, 2, 2});

	for (int64_t i = 1; i < 20; i += 2)
		put(&at, i, (double)((int64_t)get(&at, i) % 3));
	at.shape = s;
	return at;
}

static void scatter_nd_updates__by_every_op__match_the_cpu(void **state)
{
	static const char *const ops[] = {"Update", "Add", "Sub", "Max", "Min"};
	struct mu_shape table = dims_of(3, (int64_t[]){4, 3, 6});
	struct mu_shape updates = dims_of(3, (int64_t[]){5, 2, 6});

	for (unsigned o = 0; o < MU_COUNT(ops); o++)
		for (unsigned k = 0; k < 4; k++) {
			enum mu_dtype t = floats[k & 1], number = k & 2 ? MU_INT64 : MU_INT32;
			const struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
						     {"Tindices", A_TYPE, (long)number, NULL},
						     {0}};
			struct mu_tensor in[3] = {filled(t, &table, 0, 2, k), positions(number, k),
						  filled(t, &updates, 0, 2, k + 9)};
			char op[40];
			snprintf(op, sizeof op, "TensorScatter%s", ops[o]);
			compare(op, attrs, in, 3, 0);
			snprintf(op, sizeof op, "%sScatterNd%s", k % 3 ? "Resource" : "", ops[o]);
			compare_update(op, attrs, in, 1, in + 1, 2, 0);
			drop(in, 3);
		}
}

static void scatter_nd_and_gather_nd__of_every_form__match_the_cpu(void **state)
{
	struct mu_shape table = dims_of(3, (int64_t[]){4, 3, 6});
	struct mu_shape updates = dims_of(3, (int64_t[]){5, 2, 6});
	const int64_t dims[] = {4, 3, 6}, wrong[] = {4, 3, 5};

	for (unsigned k = 0; k < 2; k++) {
		enum mu_dtype t = k ? MU_INT64 : MU_FLOAT, number = k ? MU_INT64 : MU_INT32;
		const struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
					     {"Tparams", A_TYPE, (long)t, NULL},
					     {"dtype", A_TYPE, (long)t, NULL},
					     {"Tindices", A_TYPE, (long)number, NULL},
					     {0}};
		struct mu_tensor in[3] = {positions(number, k), filled(t, &updates, -9, 18, k + 9),
					  ints(number, 3, dims)};
		compare("ScatterNd", attrs, in, 3, 0);
		struct mu_tensor other = ints(number, 3, wrong);
		compare("ScatterNd", attrs, (struct mu_tensor[]){in[0], in[1], other}, 3, 0);
		struct mu_tensor from = filled(t, &table, -9, 18, k);
		compare("GatherNd", attrs, (struct mu_tensor[]){from, in[0]}, 2, 0);
		compare("ScatterNdNonAliasingAdd", attrs, (struct mu_tensor[]){from, in[0], in[1]},
			3, 0);
		drop(&from, 1);
		drop(&other, 1);
		drop(in, 3);
	}
}

static void gather_nd__out_of_range__yields_zeros(void **state)
{
	const struct attr attrs[] = {
	    {"Tparams", A_TYPE, MU_FLOAT, NULL}, {"Tindices", A_TYPE, MU_INT32, NULL}, {0}};
	static const int64_t at[] = {0, 3, 1, 2, -1, 0, 5, 1};
	struct mu_shape table = dims_of(2, (int64_t[]){2, 3}),
			pairs = dims_of(2, (int64_t[]){4, 2});
	struct mu_tensor in[2] = {filled(MU_FLOAT, &table, 1, 1, 7), ints(MU_INT32, 8, at)};
	struct mu_tensor out[MAX_OUT] = {0};
	unsigned n;

	in[1].shape = pairs;
	assert_int_equal(run_op(GPU, "GatherNd", attrs, in, 2, out, &n), 0);
	assert_true(get(&out[0], 0) == 0 && get(&out[0], 2) == 0 && get(&out[0], 3) == 0);
	assert_true(get(&out[0], 1) == get(&in[0], 5));
	drop(out, 1);
	drop(in, 2);
}

/* ---- one-hot ---- */

static void one_hot__along_every_axis__matches_the_cpu(void **state)
{
	static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE, MU_BFLOAT16, MU_BOOL};
	static const int64_t depths[] = {5, 1, 0};
	struct mu_shape s = dims_of(2, (int64_t[]){3, 4}), scalar = mu_shape_scalar();

	for (unsigned t = 0; t < MU_COUNT(types); t++)
		for (unsigned k = 0; k < 24; k++) {
			enum mu_dtype number = k & 1 ? MU_INT64 : MU_INT32;
			const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL},
						     {"TI", A_TYPE, (long)number, NULL},
						     {"axis", A_INT, (long)(k >> 1 & 3) - 1, NULL},
						     {0}};
			struct mu_tensor in[4] = {filled(number, &s, -2, 8, k),
						  ints(MU_INT32, -1, &depths[k / 8]),
						  filled(types[t], &scalar, 2, 0, 1),
						  filled(types[t], &scalar, -1, 0, 1)};
			compare("OneHot", attrs, in, 4, 0);
			drop(in, 4);
		}
}

/* ---- BatchMatMul ---- */

static void batch_mat_mul__that_broadcasts__matches_the_cpu(void **state)
{
	static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE, MU_HALF, MU_BFLOAT16};
	static const struct {
		int ra, rb;
		int64_t a[3], b[3];
	} batches[] = {{0, 0, {0}, {0}},    {1, 1, {5}, {5}},       {2, 1, {2, 3}, {3}},
		       {1, 2, {1}, {3, 2}}, {2, 2, {4, 1}, {1, 3}}, {1, 1, {0}, {0}},
		       {1, 1, {2}, {3}},    {2, 2, {2, 3}, {2, 3}}};

	for (unsigned i = 0; i < MU_COUNT(batches); i++)
		for (unsigned form = 0; form < 16; form++) {
			enum mu_dtype t = types[form / 4];
			const struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
						     {"adj_x", A_BOOL, form & 1, NULL},
						     {"adj_y", A_BOOL, form >> 1 & 1, NULL},
						     {0}};
			int64_t a[5], b[5];
			int ra = batches[i].ra, rb = batches[i].rb;
			memcpy(a, batches[i].a, sizeof batches[i].a);
			memcpy(b, batches[i].b, sizeof batches[i].b);
			a[ra + (form & 1)] = 7;
			a[ra + !(form & 1)] = 9;
			b[rb + (form >> 1 & 1)] = 9;
			b[rb + !(form >> 1 & 1)] = 4;
			struct mu_shape sa = dims_of(ra + 2, a), sb = dims_of(rb + 2, b);
			struct mu_tensor in[2] = {filled(t, &sa, -1, 2, i),
						  filled(t, &sb, -1, 2, form)};
			compare(form & 1 ? "BatchMatMul" : "BatchMatMulV2", attrs, in, 2, 20);
			drop(in, 2);
		}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(scatter_updates__by_every_op__match_the_cpu),
	    T(strided_slice_assign__of_every_form__matches_the_cpu),
	    T(scatter_updates__of_mismatched_shapes__are_invalid),
	    T(scatter_updates__out_of_range__change_nothing),
	    T(optimizers__dense_and_sparse__match_the_cpu),
	    T(segments__of_every_op_and_type__match_the_cpu),
	    T(segment_sums__of_the_same_numbers__are_bit_identical_to_the_cpu),
	    T(scatter_nd_updates__by_every_op__match_the_cpu),
	    T(scatter_nd_and_gather_nd__of_every_form__match_the_cpu),
	    T(gather_nd__out_of_range__yields_zeros),
	    T(one_hot__along_every_axis__matches_the_cpu),
	    T(batch_mat_mul__that_broadcasts__matches_the_cpu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
