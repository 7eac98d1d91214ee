/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and batch norm of the GPU beside the CPU's. */
#include <stdio.h>

#include "tests/kernels/gpu_compare.h"

static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE, MU_HALF, MU_BFLOAT16};

/* Four numbers, as a list(int). */
static struct attr list4(const char *name, int64_t a, int64_t b, int64_t c, int64_t d)
{
	static char room[8][64];
	static unsigned at;
	char *text = room[at++ % MU_COUNT(room)];

	snprintf(text, sizeof room[0], "%lld,%lld,%lld,%lld", (long long)a, (long long)b,
		 (long long)c, (long long)d);
	return (struct attr){name, A_INTS, 0, text};
}

static void drop(struct mu_tensor *t, unsigned n)
{
	while (n--)
		mu_tensor_unref(&t[n]);
}

/* ---- pools ---- */

static const struct pool_case {
	int64_t batch, rows, columns, channels, k, l, down, across;
	const char *padding;
} pools[] = {
    {2, 8, 8, 3, 2, 2, 2, 2, "VALID"}, {2, 7, 9, 3, 3, 3, 2, 2, "SAME"},
    {1, 7, 9, 5, 3, 2, 1, 3, "SAME"},  {1, 5, 5, 1, 5, 5, 1, 1, "VALID"},
    {1, 6, 4, 2, 1, 1, 3, 2, "SAME"},  {2, 3, 3, 2, 5, 7, 2, 1, "SAME"},
    {1, 9, 9, 2, 2, 3, 4, 5, "VALID"}, {0, 8, 8, 3, 2, 2, 2, 2, "VALID"},
    {1, 2, 2, 3, 3, 3, 1, 1, "VALID"}, {1, 8, 8, 0, 2, 2, 2, 2, "SAME"},
};

static int64_t across(const struct pool_case *p, int64_t in, int64_t size, int64_t stride)
{
	return p->padding[0] == 'S' ? (in + stride - 1) / stride : (in - size + stride) / stride;
}

/* distinct: whether numbers are seldom the same. */
static void one_pool(const struct pool_case *p, enum mu_dtype t, bool distinct)
{
	const struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
				     {"padding", A_TEXT, 0, p->padding},
				     list4("ksize", 1, p->k, p->l, 1),
				     list4("strides", 1, p->down, p->across, 1),
				     {0}};
	const struct attr v2[] = {attrs[0], attrs[1], {0}};
	struct mu_shape in = dims_of(4, (int64_t[]){p->batch, p->rows, p->columns, p->channels});
	struct mu_shape out =
	    dims_of(4, (int64_t[]){p->batch, across(p, p->rows, p->k, p->down),
				   across(p, p->columns, p->l, p->across), p->channels});
	struct mu_tensor x = filled(t, &in, -3, 6, (unsigned)p->k);
	for (int64_t i = 0; i < in.count && !distinct; i++)
		put(&x, i, (double)(int64_t)get(&x, i));
	struct mu_tensor y = filled(t, &out, -1, 2, 2), g = filled(t, &out, -1, 2, 3);
	struct mu_tensor sizes = ints(MU_INT32, 4, in.dim);
	struct mu_tensor k = ints(MU_INT32, 4, (int64_t[]){1, p->k, p->l, 1});
	struct mu_tensor s = ints(MU_INT32, 4, (int64_t[]){1, p->down, p->across, 1});

	compare("MaxPool", attrs, (struct mu_tensor[]){x}, 1, 0);
	compare("MaxPoolV2", v2, (struct mu_tensor[]){x, k, s}, 3, 0);
	compare("AvgPool", attrs, (struct mu_tensor[]){x}, 1, 20);
	compare("MaxPoolGrad", attrs, (struct mu_tensor[]){x, y, g}, 3, 20);
	compare("MaxPoolGradV2", v2, (struct mu_tensor[]){x, y, g, k, s}, 5, 20);
	compare("AvgPoolGrad", attrs, (struct mu_tensor[]){sizes, g}, 2, 20);
	compare("MaxPoolGrad", attrs, (struct mu_tensor[]){x, x, g}, 3, 20); /* most do not fit */
	compare("AvgPoolGrad", attrs, (struct mu_tensor[]){sizes, x}, 2, 20);
	drop((struct mu_tensor[]){x, y, g, sizes, k, s}, 6);
}

static void pools__of_every_form__match_the_cpus(void **state)
{
	for (unsigned i = 0; i < MU_COUNT(pools); i++)
		for (unsigned k = 0; k < 8; k++)
			one_pool(&pools[i], types[k / 2], k & 1);
}

/* Windows that lie in the padding alone. */
static void pools__with_explicit_padding__match_the_cpus(void **state)
{
	const struct attr attrs[] = {{"T", A_TYPE, MU_FLOAT, NULL},
				     {"padding", A_TEXT, 0, "EXPLICIT"},
				     {"explicit_paddings", A_INTS, 0, "0,0,3,2,4,1,0,0"},
				     list4("ksize", 1, 2, 2, 1),
				     list4("strides", 1, 1, 2, 1),
				     {0}};
	struct mu_shape in = dims_of(4, (int64_t[]){2, 3, 4, 2});
	struct mu_shape out = dims_of(4, (int64_t[]){2, 7, 4, 2});
	struct mu_tensor x = filled(MU_FLOAT, &in, -3, 6, 1), g = filled(MU_FLOAT, &out, -1, 2, 2);

	compare("MaxPool", attrs, &x, 1, 0);
	compare("MaxPoolGrad", attrs, (struct mu_tensor[]){x, g, g}, 3, 10);
	drop((struct mu_tensor[]){x, g}, 2);
}

/* ---- batch norm ---- */

static void one_norm(const int64_t *dims, unsigned form)
{
	static const char *const ops[] = {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"};
	static const char *const grads[] = {"FusedBatchNormGrad", "FusedBatchNormGradV2",
					    "FusedBatchNormGradV3"};
	const bool training = form & 1, mixed = form & 2;
	const struct attr attrs[] = {{"T", A_TYPE, MU_FLOAT, NULL},
				     {"U", A_TYPE, MU_FLOAT, NULL},
				     {"is_training", A_BOOL, training, NULL},
				     {"epsilon", A_FLOAT, 10, NULL},
				     {mixed ? "exponential_avg_factor" : NULL, A_FLOAT, 250, NULL},
				     {0}};
	struct mu_shape s = dims_of(4, dims);
	struct mu_shape v = mu_shape_vec(training && !mixed ? 0 : dims[3]);
	struct mu_shape all = mu_shape_vec(dims[3]);
	struct mu_tensor x = filled(MU_FLOAT, &s, 5, 2, form), g = filled(MU_FLOAT, &s, -1, 2, 9);
	struct mu_tensor scale = filled(MU_FLOAT, &all, 1, 1, 2);
	struct mu_tensor offset = filled(MU_FLOAT, &all, -1, 2, 3);
	struct mu_tensor mean = filled(MU_FLOAT, &v, 5, 1, 4), var = filled(MU_FLOAT, &v, 1, 1, 5);
	struct mu_tensor mean_all = filled(MU_FLOAT, &all, 5, 1, 4);
	struct mu_tensor var_all = filled(MU_FLOAT, &all, 1, 1, 5);

	for (unsigned i = 0; i < 3; i++) {
		compare(ops[i], attrs, (struct mu_tensor[]){x, scale, offset, mean, var}, 5, 20);
		compare(grads[i], attrs,
			(struct mu_tensor[]){g, x, scale, mean_all, var_all, scale}, 5 + (i == 2),
			60);
	}
	drop((struct mu_tensor[]){x, g, scale, offset, mean, var, mean_all, var_all}, 8);
}

static void norms__in_training_and_after__match_the_cpus(void **state)
{
	static const int64_t dims[][4] = {{2, 5, 4, 3}, {1, 1, 1, 2}, {1, 40, 40, 1},
					  {4, 7, 3, 9}, {0, 4, 4, 3}, {2, 3, 3, 0}};

	for (unsigned i = 0; i < MU_COUNT(dims); i++)
		for (unsigned form = 0; form < 4; form++)
			one_norm(dims[i], form);
}

static void norms__of_what_does_not_fit__are_refused(void **state)
{
	const struct attr attrs[] = {{"T", A_TYPE, MU_FLOAT, NULL}, {0}};
	struct mu_shape s = dims_of(4, (int64_t[]){2, 2, 2, 3}), three = dims_of(3, s.dim);
	struct mu_shape two = mu_shape_vec(2), none = mu_shape_vec(0);
	struct mu_tensor x = filled(MU_FLOAT, &s, 0, 1, 1),
			 flat = filled(MU_FLOAT, &three, 0, 1, 1);
	struct mu_tensor v = filled(MU_FLOAT, &two, 0, 1, 1), e = filled(MU_FLOAT, &none, 0, 1, 1);

	compare("FusedBatchNorm", attrs, (struct mu_tensor[]){x, v, v, e, e}, 5, 1);
	compare("FusedBatchNorm", attrs, (struct mu_tensor[]){flat, v, v, e, e}, 5, 1);
	compare("FusedBatchNormGrad", attrs, (struct mu_tensor[]){x, x, v, v, v}, 5, 1);
	drop((struct mu_tensor[]){x, flat, v, e}, 4);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(pools__of_every_form__match_the_cpus),
	    T(pools__with_explicit_padding__match_the_cpus),
	    T(norms__in_training_and_after__match_the_cpus),
	    T(norms__of_what_does_not_fit__are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
