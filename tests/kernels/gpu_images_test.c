/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, pools and batch norm on the GPU compared with the CPU kernels. */
#include <stdio.h>
#include <stdlib.h>

#include "task/device/gpu_convolution.h"
#include "tests/fake/cuda/fake_cuda.h"
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

/* ---- convolutions ---- */

static const struct conv_case {
	int64_t batch, rows, columns, channels, k, l, filters, stride, dilation, groups;
	const char *padding;
} convs[] = {
    {2, 8, 8, 3, 3, 3, 4, 1, 1, 1, "SAME"},    {2, 8, 8, 3, 3, 3, 4, 1, 1, 1, "VALID"},
    {3, 9, 7, 5, 2, 4, 6, 2, 1, 1, "SAME"},    {3, 9, 7, 5, 2, 4, 6, 3, 1, 1, "VALID"},
    {1, 11, 12, 2, 3, 2, 5, 1, 3, 1, "VALID"}, {1, 11, 12, 2, 3, 2, 5, 2, 2, 1, "EXPLICIT"},
    {2, 6, 6, 7, 1, 1, 9, 1, 1, 1, "SAME"},    {2, 6, 5, 7, 1, 1, 9, 2, 1, 1, "VALID"},
    {1, 2, 2, 1, 7, 7, 3, 1, 1, 1, "SAME"},    {2, 7, 7, 6, 3, 3, 4, 1, 1, 2, "SAME"},
    {2, 7, 6, 6, 3, 2, 9, 2, 1, 3, "VALID"},   {0, 7, 7, 3, 3, 3, 4, 1, 1, 1, "SAME"},
    {1, 2, 2, 3, 3, 3, 4, 1, 1, 1, "VALID"},   {2, 5, 5, 0, 3, 3, 4, 1, 1, 1, "SAME"},
    {2, 5, 5, 3, 3, 3, 0, 1, 1, 1, "SAME"},
};

static int64_t conv_out(const struct conv_case *p, unsigned axis, int64_t in, int64_t size)
{
	static const int64_t pads[2] = {3, 5}; /* the sums of explicit_paddings below */
	int64_t reach = (size - 1) * p->dilation + 1;

	return p->padding[0] == 'S'   ? (in + p->stride - 1) / p->stride
	       : p->padding[0] == 'E' ? (in + pads[axis] - reach + p->stride) / p->stride
				      : (in - reach + p->stride) / p->stride;
}

/* depthwise: p->filters is the number of filters for each channel. */
static void compare_conv(const struct conv_case *p, enum mu_dtype t, bool depthwise)
{
	const bool explicit = p->padding[0] == 'E';
	const struct attr attrs[] = {
	    {"T", A_TYPE, (long)t, NULL},
	    {"padding", A_TEXT, 0, p->padding},
	    list4("strides", 1, p->stride, p->stride, 1),
	    list4("dilations", 1, p->dilation, p->dilation, 1),
	    {explicit ? "explicit_paddings" : NULL, A_INTS, 0, "0,0,1,2,4,1,0,0"},
	    {0}};
	const char *const ops[2][3] = {{"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"},
				       {"DepthwiseConv2dNative",
					"DepthwiseConv2dNativeBackpropInput",
					"DepthwiseConv2dNativeBackpropFilter"}};
	int64_t filter_channels = depthwise     ? p->channels
				  : p->channels ? p->channels / p->groups
						: 1;
	struct mu_shape in = dims_of(4, (int64_t[]){p->batch, p->rows, p->columns, p->channels});
	struct mu_shape filter = dims_of(4, (int64_t[]){p->k, p->l, filter_channels, p->filters});
	struct mu_shape out = dims_of(4, (int64_t[]){p->batch, conv_out(p, 0, p->rows, p->k),
						     conv_out(p, 1, p->columns, p->l),
						     p->filters * (depthwise ? p->channels : 1)});
	struct mu_tensor x = filled(t, &in, -1, 2, 1), w = filled(t, &filter, -1, 2, 2);
	struct mu_tensor g = filled(t, &out, -1, 2, 3);
	struct mu_tensor xs = ints(MU_INT32, 4, in.dim), ws = ints(MU_INT32, 4, filter.dim);
	const double slack =
	    mu_dtype_size(t) == 2 ? 12 : 40; /* with 16 bits, patches are rounded */

	compare(ops[depthwise][0], attrs, (struct mu_tensor[]){x, w}, 2, slack);
	compare(ops[depthwise][1], attrs, (struct mu_tensor[]){xs, w, g}, 3, slack);
	compare(ops[depthwise][2], attrs, (struct mu_tensor[]){x, ws, g}, 3, slack);
	compare(ops[depthwise][2], attrs, (struct mu_tensor[]){x, ws, x}, 3,
		slack); /* mostly mismatched shapes */
	drop((struct mu_tensor[]){x, w, g, xs, ws}, 5);
}

static void compare_all_convs(void)
{
	for (unsigned i = 0; i < MU_COUNT(convs); i++)
		for (unsigned t = 0; t < MU_COUNT(types); t++) {
			compare_conv(&convs[i], types[t], false);
			compare_conv(&convs[i], types[t], true);
		}
}

static void convolutions__of_every_form__match_the_cpu(void **state)
{
	compare_all_convs();
}

static void convolutions__without_the_library__match_the_cpu(void **state)
{
	gpu_convolution_is_enabled = false;
	compare_all_convs();
	gpu_convolution_is_enabled = true;
}

/* The counters of the fake CUDA and its libraries. */
static struct fake_cuda_counts fake_counts(void)
{
	struct fake_cuda_counts c;

	fake_cuda_count(&c);
	return c;
}

#define SKIP_ON_REAL_GPU()                                                                         \
	do {                                                                                       \
		if (getenv("MUSTER_GPU_TEST"))                                                     \
			skip();                                                                    \
	} while (0)

static void convolutions__with_symmetric_padding__use_the_library(void **state)
{
	SKIP_ON_REAL_GPU();
	compare_conv(&convs[0], MU_FLOAT, false);
	assert_int_equal(fake_counts().convolutions,
			 3); /* forward, input gradient, filter gradient */
	compare_conv(&convs[0], MU_BFLOAT16, true);
	assert_int_equal(fake_counts().convolutions, 6);
	compare_conv(&convs[2], MU_FLOAT,
		     false); /* the bottom padding has one more row than the top padding */
	assert_int_equal(fake_counts().convolutions, 6);
}

/* Runs a convolution while this call of the library fails. */
static void compare_conv_without(const char *call)
{
	fake_cuda.fail_call = call;
	fake_cuda.fail_at = 1;
	fake_cuda.fail_result = 5000;
	compare_conv(&convs[1], MU_FLOAT, false);
	assert_null(fake_cuda.fail_call);
}

/* Shapes that the library refuses, at planning or at execution, use our own kernels. */
static void convolutions__that_the_library_rejects__match_the_cpu(void **state)
{
	SKIP_ON_REAL_GPU();
	fake_cuda.no_convolutions = true;
	compare_conv(&convs[0], MU_FLOAT, false);
	assert_int_equal(fake_counts().convolutions, 0);
	fake_cuda.no_convolutions = false;
	compare_conv_without("dnn_describe");
	compare_conv_without("dnn_choose");
	compare_conv_without("convolve");
	assert_int_equal(fake_counts().convolutions,
			 6); /* for each failing call the other two convolutions use the library */
}

static void convolutions__where_the_library_does_not_start__match_the_cpu(void **state)
{
	SKIP_ON_REAL_GPU();
	compare_conv_without("dnn_library_new");
	assert_int_equal(fake_counts().convolutions, 0);
}

static int setup_deterministic(void **state)
{
	setenv("TF_DETERMINISTIC_OPS", "1", 1);
	int rc = setup(state);
	unsetenv("TF_DETERMINISTIC_OPS");
	return rc;
}

static void convolutions__in_deterministic_mode__use_deterministic_algorithms(void **state)
{
	SKIP_ON_REAL_GPU();
	compare_conv(&convs[0], MU_FLOAT, false);
	assert_int_equal(fake_counts().convolutions, 3);
	assert_int_equal(fake_counts().uncertain, 0);
}

static void convolutions__by_default__use_the_fastest_algorithm(void **state)
{
	SKIP_ON_REAL_GPU();
	compare_conv(&convs[0], MU_FLOAT, false);
	assert_int_equal(fake_counts().uncertain, 3);
}

static void convolutions__of_mismatched_shapes__are_invalid(void **state)
{
	const struct attr attrs[] = {{"T", A_TYPE, MU_FLOAT, NULL},
				     {"padding", A_TEXT, 0, "SAME"},
				     list4("strides", 1, 1, 1, 1),
				     {0}};
	struct mu_shape in = dims_of(4, (int64_t[]){1, 4, 4, 3}), three = dims_of(3, in.dim);
	struct mu_shape filter = dims_of(4, (int64_t[]){2, 2, 2, 4});
	struct mu_tensor x = filled(MU_FLOAT, &in, -1, 2, 1),
			 w = filled(MU_FLOAT, &filter, -1, 2, 2);
	struct mu_tensor flat = filled(MU_FLOAT, &three, -1, 2, 2);
	struct mu_tensor sizes = ints(MU_INT32, 4, (int64_t[]){1, 4, -4, 3});

	compare("Conv2D", attrs, (struct mu_tensor[]){x, w}, 2, 0);
	compare("Conv2D", attrs, (struct mu_tensor[]){flat, w}, 2, 0);
	compare("DepthwiseConv2dNative", attrs, (struct mu_tensor[]){x, w}, 2, 0);
	compare("Conv2DBackpropInput", attrs, (struct mu_tensor[]){sizes, w, x}, 3, 0);
	drop((struct mu_tensor[]){x, w, flat, sizes}, 4);
}

/* ---- pools ---- */

static const struct pool_case {
	int64_t batch, rows, columns, channels, k, l, down, pool_out;
	const char *padding;
} pools[] = {
    {2, 8, 8, 3, 2, 2, 2, 2, "VALID"}, {2, 7, 9, 3, 3, 3, 2, 2, "SAME"},
    {1, 7, 9, 5, 3, 2, 1, 3, "SAME"},  {1, 5, 5, 1, 5, 5, 1, 1, "VALID"},
    {1, 6, 4, 2, 1, 1, 3, 2, "SAME"},  {2, 3, 3, 2, 5, 7, 2, 1, "SAME"},
    {1, 9, 9, 2, 2, 3, 4, 5, "VALID"}, {0, 8, 8, 3, 2, 2, 2, 2, "VALID"},
    {1, 2, 2, 3, 3, 3, 1, 1, "VALID"}, {1, 8, 8, 0, 2, 2, 2, 2, "SAME"},
    {2, 8, 8, 3, 3, 3, 2, 2, "SAME"},
};

static int64_t pool_out(const struct pool_case *p, int64_t in, int64_t size, int64_t stride)
{
	return p->padding[0] == 'S' ? (in + stride - 1) / stride : (in - size + stride) / stride;
}

/* distinct: few equal numbers. */
static void compare_pool(const struct pool_case *p, enum mu_dtype t, bool distinct)
{
	const struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
				     {"padding", A_TEXT, 0, p->padding},
				     list4("ksize", 1, p->k, p->l, 1),
				     list4("strides", 1, p->down, p->pool_out, 1),
				     {0}};
	const struct attr v2[] = {attrs[0], attrs[1], {0}};
	struct mu_shape in = dims_of(4, (int64_t[]){p->batch, p->rows, p->columns, p->channels});
	struct mu_shape out =
	    dims_of(4, (int64_t[]){p->batch, pool_out(p, p->rows, p->k, p->down),
				   pool_out(p, p->columns, p->l, p->pool_out), p->channels});
	struct mu_tensor x = filled(t, &in, -3, 6, (unsigned)p->k);
	for (int64_t i = 0; i < in.count && !distinct; i++)
		put(&x, i, (double)(int64_t)get(&x, i));
	struct mu_tensor y = filled(t, &out, -1, 2, 2), g = filled(t, &out, -1, 2, 3);
	struct mu_tensor sizes = ints(MU_INT32, 4, in.dim);
	struct mu_tensor k = ints(MU_INT32, 4, (int64_t[]){1, p->k, p->l, 1});
	struct mu_tensor s = ints(MU_INT32, 4, (int64_t[]){1, p->down, p->pool_out, 1});

	compare("MaxPool", attrs, (struct mu_tensor[]){x}, 1, 0);
	compare("MaxPoolV2", v2, (struct mu_tensor[]){x, k, s}, 3, 0);
	compare("AvgPool", attrs, (struct mu_tensor[]){x}, 1, 20);
	compare("MaxPoolGrad", attrs, (struct mu_tensor[]){x, y, g}, 3, 20);
	compare("MaxPoolGradV2", v2, (struct mu_tensor[]){x, y, g, k, s}, 5, 20);
	compare("AvgPoolGrad", attrs, (struct mu_tensor[]){sizes, g}, 2, 20);
	compare("MaxPoolGrad", attrs, (struct mu_tensor[]){x, x, g}, 3,
		20); /* mostly mismatched shapes */
	compare("AvgPoolGrad", attrs, (struct mu_tensor[]){sizes, x}, 2, 20);
	if (mu_dtype_size(t) != 2) { /* the CPU has no 16-bit kernels for these ops */
		compare("MaxPoolGradGrad", attrs, (struct mu_tensor[]){x, y, x}, 3, 0);
		compare("MaxPoolGradGradV2", v2, (struct mu_tensor[]){x, y, x, k, s}, 5, 0);
		compare("MaxPoolGradGrad", attrs, (struct mu_tensor[]){x, y, y}, 3, 0);
	}
	drop((struct mu_tensor[]){x, y, g, sizes, k, s}, 6);
}

static void pools__of_every_form__match_the_cpu(void **state)
{
	for (unsigned i = 0; i < MU_COUNT(pools); i++)
		for (unsigned k = 0; k < 8; k++)
			compare_pool(&pools[i], types[k / 2], k & 1);
}

/* MaxPoolWithArgmax and its gradient: indices within an image or the batch, as int32 or int64. The
 * gradient also gets repeated indices and indices of other windows. */
static void compare_argmax_pool(const struct pool_case *p, enum mu_dtype t, unsigned form)
{
	const enum mu_dtype number = form & 1 ? MU_INT32 : MU_INT64;
	const struct attr attrs[] = {{"T", A_TYPE, (long)t, NULL},
				     {"Targmax", A_TYPE, (long)number, NULL},
				     {"include_batch_in_index", A_BOOL, form & 2, NULL},
				     {"padding", A_TEXT, 0, p->padding},
				     list4("ksize", 1, p->k, p->l, 1),
				     list4("strides", 1, p->down, p->pool_out, 1),
				     {0}};
	struct mu_shape in = dims_of(4, (int64_t[]){p->batch, p->rows, p->columns, p->channels});
	struct mu_shape out =
	    dims_of(4, (int64_t[]){p->batch, pool_out(p, p->rows, p->k, p->down),
				   pool_out(p, p->columns, p->l, p->pool_out), p->channels});
	struct mu_tensor x = filled(t, &in, -3, 6, form), g = filled(t, &out, -1, 2, 3);
	struct mu_tensor at = filled(number, &out, 0, 6, 4);

	for (int64_t i = 0; i < out.count && form & 2; i++) /* offset of the image in the batch */
		put(&at, i,
		    get(&at, i) + (double)(i / (out.count / p->batch) * (in.count / p->batch)));
	compare("MaxPoolWithArgmax", attrs, &x, 1, 0);
	compare("MaxPoolGradWithArgmax", attrs, (struct mu_tensor[]){x, g, at}, 3, 0);
	compare("MaxPoolGradWithArgmax", attrs, (struct mu_tensor[]){x, x, at}, 3,
		0); /* mostly mismatched shapes */
	drop((struct mu_tensor[]){x, g, at}, 3);
}

static void pools__with_argmax__match_the_cpu(void **state)
{
	for (unsigned i = 0; i < MU_COUNT(pools); i++)
		for (unsigned k = 0; k < 8; k++)
			compare_argmax_pool(&pools[i], k & 4 ? MU_DOUBLE : MU_FLOAT, k);
}

/* Some windows cover only padding. */
static void pools__with_explicit_padding__match_the_cpu(void **state)
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

static void compare_norm(const int64_t *dims, unsigned form)
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

static void norms__in_training_and_after__match_the_cpu(void **state)
{
	static const int64_t dims[][4] = {{2, 5, 4, 3}, {1, 1, 1, 2}, {1, 40, 40, 1},
					  {4, 7, 3, 9}, {0, 4, 4, 3}, {2, 3, 3, 0}};

	for (unsigned i = 0; i < MU_COUNT(dims); i++)
		for (unsigned form = 0; form < 4; form++)
			compare_norm(dims[i], form);
}

/* NCHW, and formats that no kernel supports. */
static void norms__of_other_formats__match_the_cpu(void **state)
{
	static const char *const formats[] = {"NCHW", "NHWC", "NCHW_VECT_C"};
	struct mu_shape s = dims_of(4, (int64_t[]){2, 3, 5, 4}), three = dims_of(3, s.dim);

	for (unsigned i = 0; i < MU_COUNT(formats); i++) {
		const struct attr attrs[] = {{"T", A_TYPE, MU_FLOAT, NULL},
					     {"U", A_TYPE, MU_FLOAT, NULL},
					     {"data_format", A_TEXT, 0, formats[i]},
					     {0}};
		struct mu_shape v = mu_shape_vec(i == 1 ? 4 : 3);
		struct mu_tensor x = filled(MU_FLOAT, &s, 5, 2, i),
				 g = filled(MU_FLOAT, &s, -1, 2, 9);
		struct mu_tensor flat = filled(MU_FLOAT, &three, 0, 1, 1);
		struct mu_tensor scale = filled(MU_FLOAT, &v, 1, 1, 2),
				 var = filled(MU_FLOAT, &v, 1, 1, 3);
		compare("FusedBatchNormV3", attrs, (struct mu_tensor[]){x, scale, var, scale, var},
			5, 20);
		compare("FusedBatchNormGradV3", attrs,
			(struct mu_tensor[]){g, x, scale, scale, var, scale}, 6, 60);
		compare("FusedBatchNormV3", attrs,
			(struct mu_tensor[]){flat, scale, var, scale, var}, 5, 20);
		drop((struct mu_tensor[]){x, g, flat, scale, var}, 5);
	}
}

static void batch_norms__of_mismatched_shapes__are_invalid(void **state)
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
	    T(convolutions__of_every_form__match_the_cpu),
	    T(convolutions__without_the_library__match_the_cpu),
	    T(convolutions__with_symmetric_padding__use_the_library),
	    T(convolutions__that_the_library_rejects__match_the_cpu),
	    T(convolutions__where_the_library_does_not_start__match_the_cpu),
	    cmocka_unit_test_setup_teardown(
		convolutions__in_deterministic_mode__use_deterministic_algorithms,
		setup_deterministic, teardown),
	    T(convolutions__by_default__use_the_fastest_algorithm),
	    T(convolutions__of_mismatched_shapes__are_invalid),
	    T(pools__of_every_form__match_the_cpu),
	    T(pools__with_argmax__match_the_cpu),
	    T(pools__with_explicit_padding__match_the_cpu),
	    T(norms__in_training_and_after__match_the_cpu),
	    T(norms__of_other_formats__match_the_cpu),
	    T(batch_norms__of_mismatched_shapes__are_invalid),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
