/* SPDX-License-Identifier: Apache-2.0 */
/* Top-k, cumulative sums, selections and normalisations on the GPU compared with the CPU kernels.
 */
#include <math.h>
#include <stdio.h>

#include "tests/kernels/gpu_compare.h"

static const enum mu_dtype numbers[] = {MU_FLOAT, MU_DOUBLE, MU_HALF, MU_BFLOAT16, MU_INT64};

static void drop(struct mu_tensor *t, unsigned n)
{
	while (n--)
		mu_tensor_unref(&t[n]);
}

/* Few different numbers, so that many are equal; with_nan: some are NaN. */
static struct mu_tensor repeated_numbers(enum mu_dtype t, const struct mu_shape *s, bool with_nan,
					 unsigned seed)
{
	struct mu_tensor x = filled(t, s, -4, 9, seed);

	for (int64_t i = 0; i < s->count; i++)
		put(&x, i, with_nan && i % 7 == 3 ? (double)NAN : floor(get(&x, i)));
	return x;
}

static void top_k__of_every_type__matches_the_cpu(void **state)
{
	static const int64_t dims[][2] = {{3, 10}, {1, 1}, {70, 3}, {2, 500}, {0, 4}, {4, 0}};
	static const int64_t ks[] = {0, 1, 3, 10, 11, -1};

	for (unsigned i = 0; i < MU_COUNT(dims) * MU_COUNT(ks); i++)
		for (unsigned t = 0; t < MU_COUNT(numbers); t++) {
			int64_t k = ks[i % MU_COUNT(ks)];
			const struct attr attrs[] = {{"T", A_TYPE, (long)numbers[t], NULL},
						     {"k", A_INT, (long)k, NULL},
						     {0}};
			struct mu_shape s = dims_of(2, dims[i / MU_COUNT(ks)]);
			struct mu_tensor in[] = {
			    repeated_numbers(numbers[t], &s, numbers[t] != MU_INT64, i),
			    ints(MU_INT32, -1, &k)};
			compare("TopKV2", attrs, in, 2, 0);
			compare("TopK", attrs, in, 1, 0);
			drop(in, 2);
		}
}

/* Many elements of a row, all of them, and few of a long row that is split; with NaN, both zeros,
 * infinities and many equal numbers. */
static void top_k__with_large_k__matches_the_cpu(void **state)
{
	static const int64_t sizes[][3] = {{2, 500, 9}, {3, 100, 100}, {1, 300, 299},
					   {1, 70, 64}, {5, 40, 33},   {1, 17000, 20}};

	for (unsigned i = 0; i < MU_COUNT(sizes); i++)
		for (unsigned t = 0; t < MU_COUNT(numbers); t++) {
			const bool real = numbers[t] != MU_INT64;
			const struct attr attrs[] = {{"T", A_TYPE, (long)numbers[t], NULL}, {0}};
			struct mu_shape s = dims_of(2, sizes[i]);
			struct mu_tensor in[] = {repeated_numbers(numbers[t], &s, real, i),
						 ints(MU_INT32, -1, &sizes[i][2])};
			put(&in[0], 5, real ? (double)-INFINITY : -0x1p62);
			put(&in[0], 9, real ? (double)INFINITY : 0x1p62);
			put(&in[0], 11, -0.0);
			put(&in[0], 12, 0.0);
			compare("TopKV2", attrs, in, 2, 0);
			drop(in, 2);
		}
}

static void in_top_k__with_targets_of_both_widths__matches_the_cpu(void **state)
{
	static const int64_t dims[][2] = {{30, 10}, {1, 1}, {9, 100}, {0, 4}, {4, 0}};
	static const int64_t ks[] = {0, 1, 4, 1000, -2};

	for (unsigned i = 0; i < MU_COUNT(dims) * MU_COUNT(ks); i++)
		for (unsigned wide = 0; wide < 2; wide++) {
			int64_t k = ks[i % MU_COUNT(ks)];
			enum mu_dtype t = wide ? MU_INT64 : MU_INT32;
			const struct attr attrs[] = {
			    {"T", A_TYPE, (long)t, NULL}, {"k", A_INT, (long)k, NULL}, {0}};
			struct mu_shape s = dims_of(2, dims[i / MU_COUNT(ks)]);
			struct mu_shape rows = mu_shape_vec(s.dim[0]), other = mu_shape_vec(7);
			double n_classes = (double)s.dim[1];
			struct mu_tensor in[] = {repeated_numbers(MU_FLOAT, &s, i & 1, i),
						 filled(t, &rows, -1, n_classes + 2, i),
						 ints(t, -1, &k), filled(t, &other, 0, 1, 1)};
			compare("InTopKV2", attrs, in, 3, 0);
			compare("InTopK", attrs, in, 2, 0);
			compare("InTopK", attrs, (struct mu_tensor[]){in[0], in[3]}, 2, 0);
			drop(in, 4);
		}
}

static void scans__along_every_axis_in_both_directions__match_the_cpu(void **state)
{
	static const char *const ops[] = {"Cumsum", "Cumprod"};
	struct mu_shape s = dims_of(3, (int64_t[]){4, 7, 3}),
			empty = dims_of(3, (int64_t[]){4, 0, 3});

	for (unsigned t = 0; t < MU_COUNT(numbers); t++)
		for (int64_t axis = -3; axis < 4; axis++)
			for (unsigned form = 0; form < 8; form++) {
				const struct attr attrs[] = {
				    {"T", A_TYPE, (long)numbers[t], NULL},
				    {"Tidx", A_TYPE, MU_INT32, NULL},
				    {"exclusive", A_BOOL, form & 1, NULL},
				    {"reverse", A_BOOL, form >> 1 & 1, NULL},
				    {0}};
				struct mu_tensor in[] = {filled(numbers[t], &s, -2, 4, form),
							 ints(MU_INT32, -1, &axis),
							 filled(numbers[t], &empty, 0, 1, 1)};
				compare(ops[form / 4], attrs, in, 2, 0);
				compare(ops[form / 4], attrs, (struct mu_tensor[]){in[2], in[1]}, 2,
					0);
				drop(in, 3);
			}
}

/* One block for a line, several blocks for a line, and lines with a partial last block. */
static void long_scans__repeated__match_the_cpu_each_time(void **state)
{
	static const int64_t dims[][3] = {{1, 300, 1}, {2, 1025, 3}, {1, 4100, 1}};
	static const enum mu_dtype types[] = {MU_FLOAT, MU_BFLOAT16, MU_INT64};

	for (unsigned d = 0; d < MU_COUNT(dims); d++)
		for (unsigned form = 0; form < 4; form++)
			for (unsigned t = 0; t < MU_COUNT(types); t++) {
				const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL},
							     {"Tidx", A_TYPE, MU_INT32, NULL},
							     {"exclusive", A_BOOL, form & 1, NULL},
							     {"reverse", A_BOOL, form >> 1, NULL},
							     {0}};
				struct mu_shape s = dims_of(3, dims[d]);
				struct mu_tensor in[] = {filled(types[t], &s, -1, 2.001, d),
							 ints(MU_INT32, -1, (int64_t[]){1})};
				struct mu_tensor once[MAX_OUT] = {0}, again[MAX_OUT] = {0};
				unsigned n;
				compare("Cumsum", attrs, in, 2, 3000);
				drop(in, 1);
				in[0] = filled(types[t], &s, 0.99, 0.02, d);
				compare("Cumprod", attrs, in, 2, 3000);
				run_op(GPU, "Cumsum", attrs, in, 2, once, &n);
				run_op(GPU, "Cumsum", attrs, in, 2, again, &n);
				assert_memory_equal(once[0].data, again[0].data,
						    mu_tensor_bytes(&once[0]));
				drop(once, 1);
				drop(again, 1);
				drop(in, 2);
			}
}

static void approximate_equal__of_both_types__matches_the_cpu(void **state)
{
	struct mu_shape s = dims_of(2, (int64_t[]){9, 40}), other = mu_shape_vec(3);

	for (unsigned t = 0; t < 2; t++)
		for (unsigned has_attr = 0; has_attr < 2; has_attr++) {
			const struct attr attrs[] = {
			    {"T", A_TYPE, (long)numbers[t], NULL},
			    {has_attr ? "tolerance" : NULL, A_FLOAT, 2000, NULL},
			    {0}};
			struct mu_tensor in[] = {filled(numbers[t], &s, -3, 6, t),
						 filled(numbers[t], &s, -3, 6, t + 7),
						 filled(numbers[t], &other, 0, 1, 1)};
			compare("ApproximateEqual", attrs, in, 2, 0);
			compare("ApproximateEqual", attrs, (struct mu_tensor[]){in[0], in[0]}, 2,
				0);
			compare("ApproximateEqual", attrs, in + 1, 2, 0); /* of two shapes */
			drop(in, 3);
		}
}

static void local_response_norms__of_every_radius__match_the_cpu(void **state)
{
	static const int64_t dims[][4] = {{2, 3, 4, 9}, {1, 1, 1, 1}, {2, 3, 3, 0}, {0, 3, 3, 2}};
	static const long radii[] = {0, 1, 5, 100, -1};

	for (unsigned i = 0; i < MU_COUNT(dims) * MU_COUNT(radii); i++) {
		const struct attr attrs[] = {
		    {"T", A_TYPE, MU_FLOAT, NULL}, {"depth_radius", A_INT, radii[i % 5], NULL},
		    {"bias", A_FLOAT, 2000, NULL}, {"alpha", A_FLOAT, 100, NULL},
		    {"beta", A_FLOAT, 750, NULL},  {0}};
		struct mu_shape s = dims_of(4, dims[i / 5]), three = dims_of(3, s.dim);
		struct mu_tensor in[] = {
		    filled(MU_FLOAT, &s, -1, 2, i), filled(MU_FLOAT, &s, -2, 4, i + 1),
		    filled(MU_FLOAT, &s, -2, 4, i + 2), filled(MU_FLOAT, &three, 0, 1, 3)};
		compare("LRN", attrs, in + 1, 1, 4);
		compare("LRNGrad", attrs, in, 3, 8);
		compare("LRN", attrs, in + 3, 1, 4);
		compare("LRNGrad", attrs, (struct mu_tensor[]){in[0], in[1], in[3]}, 3, 8);
		drop(in, 4);
	}
}

static void leaky_relus__of_both_types__match_the_cpu(void **state)
{
	struct mu_shape s = dims_of(2, (int64_t[]){9, 40}), other = mu_shape_vec(3);

	for (unsigned t = 0; t < 2; t++)
		for (unsigned has_attr = 0; has_attr < 2; has_attr++) {
			const struct attr attrs[] = {{"T", A_TYPE, (long)numbers[t], NULL},
						     {has_attr ? "alpha" : NULL, A_FLOAT, 50, NULL},
						     {0}};
			struct mu_tensor in[] = {repeated_numbers(numbers[t], &s, true, t),
						 repeated_numbers(numbers[t], &s, true, t + 7),
						 filled(numbers[t], &other, 0, 1, 1)};
			compare("LeakyRelu", attrs, in, 1, 0);
			compare("LeakyReluGrad", attrs, in, 2, 0);
			compare("LeakyReluGrad", attrs, in + 1, 2, 0); /* of two shapes */
			drop(in, 3);
		}
}

static void selections__that_broadcast__match_the_cpu(void **state)
{
	static const struct {
		int rank;
		int64_t dim[3];
	} shapes[][3] = {{{3, {2, 3, 4}}, {3, {2, 3, 4}}, {3, {2, 3, 4}}},
			 {{0, {0}}, {3, {2, 3, 4}}, {0, {0}}},
			 {{2, {3, 1}}, {3, {2, 1, 4}}, {1, {4}}},
			 {{3, {2, 3, 4}}, {0, {0}}, {0, {0}}},
			 {{1, {4}}, {2, {3, 1}}, {3, {2, 1, 1}}},
			 {{1, {0}}, {2, {3, 1}}, {0, {0}}},
			 {{1, {3}}, {1, {4}}, {0, {0}}}};
	static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE, MU_BFLOAT16, MU_INT64, MU_BOOL};

	for (unsigned i = 0; i < MU_COUNT(shapes); i++)
		for (unsigned t = 0; t < MU_COUNT(types); t++) {
			const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL}, {0}};
			struct mu_tensor in[3];
			for (unsigned k = 0; k < 3; k++) {
				struct mu_shape s = dims_of(shapes[i][k].rank, shapes[i][k].dim);
				in[k] = filled(k ? types[t] : MU_BOOL, &s, -3, 6, k + t);
			}
			compare("SelectV2", attrs, in, 3, 0);
			drop(in, 3);
		}
}

static void clips__between_numbers_and_tensors__match_the_cpu(void **state)
{
	struct mu_shape s = dims_of(2, (int64_t[]){5, 7}), one = mu_shape_scalar();
	struct mu_shape other = mu_shape_vec(3);

	for (unsigned t = 0; t < MU_COUNT(numbers); t++)
		for (unsigned form = 0; form < 4; form++) {
			const struct attr attrs[] = {{"T", A_TYPE, (long)numbers[t], NULL}, {0}};
			struct mu_tensor in[] = {
			    filled(numbers[t], &s, -9, 18, t),
			    filled(numbers[t], form & 1 ? &s : &one, -5, 4, form),
			    filled(numbers[t], form & 2 ? &s : &one, 2, 4, form),
			    filled(numbers[t], &other, 0, 1, 1)};
			compare("ClipByValue", attrs, in, 3, 0);
			compare("ClipByValue", attrs, in + 1, 3, 0); /* mostly mismatched shapes */
			drop(in, 4);
		}
}

/* Larger and smaller sizes, with each mode of pixel coordinates; and mismatched shapes. */
static void resizes__in_every_mode__match_the_cpu(void **state)
{
	static const char *const ops[] = {"ResizeBilinear", "ResizeNearestNeighbor",
					  "ResizeBicubic", "ResizeArea"};
	static const int64_t sizes[][5] = {/* images, from, to */
					   {2, 5, 7, 11, 3}, {1, 1, 1, 4, 4}, {2, 8, 6, 4, 3},
					   {3, 4, 4, 1, 1},  {0, 4, 4, 2, 9}, {1, 4, 4, 0, 3}};

	for (unsigned i = 0; i < MU_COUNT(sizes); i++)
		for (unsigned form = 0; form < 4; form++)
			for (unsigned o = 0; o < MU_COUNT(ops); o++) {
				const int64_t *n = sizes[i];
				enum mu_dtype t = o == 1 && i & 1 ? MU_DOUBLE : MU_FLOAT;
				const struct attr attrs[] = {
				    {"T", A_TYPE, (long)t, NULL},
				    {"align_corners", A_BOOL, form & 1, NULL},
				    {form & 2 ? "half_pixel_centers" : NULL, A_BOOL, 1, NULL},
				    {0}};
				struct mu_shape from = dims_of(4, (int64_t[]){n[0], n[1], n[2], 3});
				struct mu_shape to = dims_of(4, (int64_t[]){n[0], n[3], n[4], 3});
				struct mu_tensor in[] = {
				    filled(t, &from, -1, 2, i), ints(MU_INT32, 2, n + 3),
				    filled(t, &to, -1, 2, form), ints(MU_INT32, 2, n + 1)};
				char grad[40];
				snprintf(grad, sizeof grad, "%sGrad", ops[o]);
				compare(ops[o],
					o == 3 ? (struct attr[]){attrs[0], attrs[1], {0}} : attrs,
					in, 2, 4);
				if (o == 1)
					compare(grad, attrs, in + 2, 2, 4);
				else if (o != 3)
					compare(grad, attrs, (struct mu_tensor[]){in[2], in[0]}, 2,
						4);
				drop(in, 4);
			}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(top_k__of_every_type__matches_the_cpu),
	    T(top_k__with_large_k__matches_the_cpu),
	    T(in_top_k__with_targets_of_both_widths__matches_the_cpu),
	    T(scans__along_every_axis_in_both_directions__match_the_cpu),
	    T(long_scans__repeated__match_the_cpu_each_time),
	    T(approximate_equal__of_both_types__matches_the_cpu),
	    T(local_response_norms__of_every_radius__match_the_cpu),
	    T(leaky_relus__of_both_types__match_the_cpu),
	    T(selections__that_broadcast__match_the_cpu),
	    T(resizes__in_every_mode__match_the_cpu),
	    T(clips__between_numbers_and_tensors__match_the_cpu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
