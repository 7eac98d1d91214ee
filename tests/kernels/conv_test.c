/* SPDX-License-Identifier: Apache-2.0 */
/* The fast convolutions compared with the plain loops, also for shapes that TensorFlow's CPU
 * kernels do not support; and window attributes that clients reject. */
#include "tests/test.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/nn/conv.h"
#include "task/runtime/thread_pool.h"
#include "tests/kernels/numbers.h"
#include "tests/kernels/one_runtime.h"

static const char *const variants[] = {"cpu-generic", "cpu-avx2", "cpu-avx512"};

struct shape {
	int64_t batch, rows, columns, channels, k, l, filters, stride, dilation, groups;
	enum window_padding padding;
};

static const struct shape shapes[] = {
    {2, 8, 8, 3, 3, 3, 4, 1, 1, 1, WINDOW_SAME},
    {2, 8, 8, 3, 3, 3, 4, 1, 1, 1, WINDOW_VALID},
    {3, 9, 7, 5, 2, 4, 6, 2, 1, 1, WINDOW_SAME},
    {3, 9, 7, 5, 2, 4, 6, 3, 1, 1, WINDOW_VALID},
    {1, 11, 11, 2, 3, 3, 5, 1, 2, 1, WINDOW_SAME},
    {1, 11, 12, 2, 3, 2, 5, 1, 3, 1, WINDOW_VALID},
    {1, 11, 12, 2, 3, 2, 5, 2, 2, 1, WINDOW_EXPLICIT},
    {2, 6, 6, 7, 1, 1, 9, 1, 1, 1, WINDOW_SAME},
    {2, 6, 5, 7, 1, 1, 9, 2, 1, 1, WINDOW_VALID},
    {1, 2, 2, 1, 7, 7, 3, 1, 1, 1, WINDOW_SAME},
    {4, 28, 28, 1, 5, 5, 32, 1, 1, 1, WINDOW_SAME},
    {5, 13, 13, 16, 3, 3, 24, 1, 1, 1, WINDOW_SAME},
    {2, 8, 8, 6, 3, 3, 12, 1, 1, 6, WINDOW_SAME},
    {2, 8, 8, 6, 3, 3, 6, 2, 1, 6, WINDOW_VALID},
    {2, 8, 8, 6, 3, 3, 4, 1, 1, 2, WINDOW_SAME},
    {3, 9, 7, 16, 3, 3, 24, 2, 1, 4, WINDOW_SAME},
    {1, 6, 6, 80, 3, 3, 160, 1, 1, 20, WINDOW_SAME}, /* several blocks for each group */
    {2, 8, 8, 35, 2, 3, 105, 1, 2, 35, WINDOW_EXPLICIT},
    {2, 9, 8, 40, 3, 3, 64, 2, 1, 2, WINDOW_SAME}, /* one product for each group */
    {1, 9, 8, 6, 3, 3, 9, 1, 2, 3, WINDOW_VALID},
    {0, 8, 8, 6, 3, 3, 4, 1, 1, 1, WINDOW_SAME},
    {2, 3, 3, 2, 3, 3, 0, 1, 1, 1, WINDOW_SAME},
    {1, 64, 64, 64, 3, 3, 16, 1, 1, 1, WINDOW_SAME},
    {3, 15, 15, 40, 3, 3, 70, 1, 1, 1, WINDOW_SAME}, /* full and partial strips */
    {3, 15, 15, 3, 5, 5, 33, 2, 1, 1, WINDOW_VALID},
    {9, 7, 7, 150, 3, 3, 65, 1, 1, 1, WINDOW_SAME}, /* few output positions */
    {2, 9, 9, 5, 1, 1, 64, 1, 1, 1, WINDOW_VALID},
    {1, 12, 5, 4, 2, 2, 8, 1, 1, 1, WINDOW_EXPLICIT},
    {1, 70, 70, 2, 3, 3, 8, 1, 1, 1, WINDOW_SAME}, /* an image in several bands */
    {2, 40, 40, 2, 3, 3, 8, 1, 30, 1, WINDOW_SAME},
    {2, 5, 6, 200, 3, 3, 160, 1, 1, 1, WINDOW_SAME}, /* a filter of more than 1 MB */
    {1, 0, 8, 2, 3, 3, 4, 1, 1, 1, WINDOW_EXPLICIT}, /* padding only */
    {2, 20, 600, 2, 3, 5, 20, 2, 1, 1, WINDOW_SAME},
};

static void set_up(struct conv *g, const struct shape *s, enum mu_dtype type)
{
	struct window_attrs a = {.padding = s->padding,
				 .stride = {s->stride, s->stride},
				 .dilation = {s->dilation, s->dilation},
				 .pad = {{2, 1}, {0, 3}}};

	*g = (struct conv){type, s->batch, s->channels, s->filters, s->groups, {0}, {0}};
	assert_int_equal(window_axis_set(&g->row, &a, WINDOW_ROWS, s->rows, s->k, NULL), 0);
	assert_int_equal(window_axis_set(&g->column, &a, WINDOW_COLUMNS, s->columns, s->l, NULL),
			 0);
}

static void compare(const char *what, unsigned shape, enum mu_dtype t, const void *want,
		    const void *got, int64_t n)
{
	double close = t == MU_FLOAT ? 2e-3 : 1e-11;

	for (int64_t i = 0; i < n; i++)
		if (!(fabs(number(t, want, i) - number(t, got, i)) <= close))
			fail_msg("%s, shape %u, type %d, element %lld: %g, want %g", what, shape, t,
				 (long long)i, number(t, got, i), number(t, want, i));
}

static void check_shape(unsigned i, enum mu_dtype t)
{
	struct kernel_call c = {.runtime = rt};
	struct conv g;
	struct mu_err err;

	set_up(&g, &shapes[i], t);
	int64_t nx = g.batch * g.row.in * g.column.in * g.channels;
	int64_t nw = g.row.size * g.column.size * conv_group_channels(&g) * g.filters;
	int64_t ny = g.batch * g.row.out * g.column.out * g.filters;
	MU_AUTO_FREE void *x = numbers(t, nx, 1), *w = numbers(t, nw, 2), *y = numbers(t, ny, 3);
	MU_AUTO_FREE void *want_x = numbers(t, nx, 4), *want_w = numbers(t, nw, 5),
			  *want_y = numbers(t, ny, 6), *got_x = numbers(t, nx, 7),
			  *got_w = numbers(t, nw, 8), *got_y = numbers(t, ny, 9);

	conv_plain(&g, CONV_OUTPUT, x, w, want_y);
	assert_int_equal(conv_run(&c, &g, CONV_OUTPUT, x, w, got_y, &err), 0);
	compare("output", i, t, want_y, got_y, ny);
	conv_plain(&g, CONV_INPUT_GRAD, want_x, w, y);
	assert_int_equal(conv_run(&c, &g, CONV_INPUT_GRAD, got_x, w, y, &err), 0);
	compare("gradient of the input", i, t, want_x, got_x, nx);
	conv_plain(&g, CONV_FILTER_GRAD, x, want_w, y);
	assert_int_equal(conv_run(&c, &g, CONV_FILTER_GRAD, x, got_w, y, &err), 0);
	compare("gradient of the filter", i, t, want_w, got_w, nw);
}

static void fast_convolutions__of_all_shapes__equal_the_plain_loops(void **state)
{
	struct thread_pool *pool = rt->pool, *three;

	for (unsigned v = 0; v < MU_COUNT(variants); v++)
		for (unsigned i = 0; i < MU_COUNT(shapes); i++) {
			if (cpu_kernels_select(variants[v], NULL))
				continue;
			check_shape(i, MU_FLOAT);
			check_shape(i, MU_DOUBLE);
		}
	assert_int_equal(cpu_kernels_select(NULL, NULL), 0);
	assert_int_equal(thread_pool_new(3, &three, NULL), 0);
	rt->pool = three;
	for (unsigned i = 0; i < MU_COUNT(shapes); i++)
		check_shape(i, MU_FLOAT);
	rt->pool = pool;
	thread_pool_free(three);
}

static void window__larger_than_its_input__is_invalid(void **state)
{
	struct window_attrs a = {.padding = WINDOW_VALID, .stride = {1, 1}, .dilation = {1, 1}};
	struct window_axis x;
	struct mu_err err;

	assert_int_equal(window_axis_set(&x, &a, 0, 3, 5, &err), -MU_INVALID_ARGUMENT);
	assert_int_equal(window_axis_set(&x, &a, 0, 1LL << 40, 5, &err), -MU_INVALID_ARGUMENT);
	a.dilation[0] = INT_MAX;
	assert_int_equal(window_axis_set(&x, &a, 0, 3, INT_MAX, &err), -MU_INVALID_ARGUMENT);
	assert_int_equal(window_axis_set(&x, &a, 0, 3, 1, &err), 0);
	assert_int_equal(x.out, 3);
}

static void set_ints(struct mu_graph *g, struct mu_node *n, const char *name, unsigned count,
		     int64_t *v)
{
	struct mu_attr a = {.kind = MU_ATTR_LIST + MU_ATTR_INT, .n = count, .is = v};

	mu_node_set_attr(g, n, name, &a);
}

static int check_conv_attrs(const char *padding, unsigned n_strides, int64_t stride,
			    int64_t dilation, unsigned n_pads)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	int64_t strides[] = {1, stride, 1, 1}, dilations[] = {1, 1, dilation, 1};
	int64_t pads[] = {0, 0, 1, 1, -1, 1, 0, 0};
	struct mu_attr pad = {.kind = MU_ATTR_STRING, .s = mu_span_of(padding)};
	struct mu_attr type = {.kind = MU_ATTR_TYPE, .type = MU_FLOAT};
	struct window_attrs a;
	struct mu_err err;
	struct mu_node *n;

	assert_int_equal(mu_graph_add(g, "n", "Conv2D", &n, NULL), 0);
	mu_node_set_attr(g, n, "T", &type);
	mu_node_set_attr(g, n, "padding", &pad);
	set_ints(g, n, "strides", n_strides, strides);
	set_ints(g, n, "dilations", 4, dilations);
	if (n_pads)
		set_ints(g, n, "explicit_paddings", n_pads, pads);
	MU_RETURN_IF_ERROR(mu_op_check_attrs(n, &err));
	return window_attrs_conv(n, &a, &err);
}

static void window_attributes__out_of_range__are_invalid(void **state)
{
	assert_int_equal(check_conv_attrs("SAME", 4, 2, 1, 0), 0);
	assert_int_equal(check_conv_attrs("SAME", 3, 1, 1, 0), -MU_INVALID_ARGUMENT);
	assert_int_equal(check_conv_attrs("SAME", 4, 0, 1, 0), -MU_INVALID_ARGUMENT);
	assert_int_equal(check_conv_attrs("SAME", 4, -1, 1, 0), -MU_INVALID_ARGUMENT);
	assert_int_equal(check_conv_attrs("SAME", 4, 1LL << 40, 1, 0), -MU_INVALID_ARGUMENT);
	assert_int_equal(check_conv_attrs("SAME", 4, 1, 0, 0), -MU_INVALID_ARGUMENT);
	assert_int_equal(check_conv_attrs("SAME", 4, 1, 1, 8), -MU_INVALID_ARGUMENT);
	assert_int_equal(check_conv_attrs("EXPLICIT", 4, 1, 1, 0), -MU_INVALID_ARGUMENT);
	assert_int_equal(check_conv_attrs("EXPLICIT", 4, 1, 1, 4), -MU_INVALID_ARGUMENT);
	assert_int_equal(check_conv_attrs("EXPLICIT", 4, 1, 1, 8), -MU_INVALID_ARGUMENT);
	assert_int_equal(check_conv_attrs("ELSEWHERE", 4, 1, 1, 0), -MU_INVALID_ARGUMENT);
}

/* TensorFlow computes only the first image right, so tests/compat compares that one. */
static void padding_and_convolution_fused__is_right_for_each_image(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct mu_attr type = {.kind = MU_ATTR_TYPE, .type = MU_FLOAT};
	struct mu_attr valid = {.kind = MU_ATTR_STRING, .s = mu_span_of("VALID")};
	struct mu_attr reflect = {.kind = MU_ATTR_STRING, .s = mu_span_of("REFLECT")};
	const int64_t image[] = {2, 1, 3, 1}, filter[] = {1, 1, 1, 1}, rows[] = {4, 2};
	int64_t strides[] = {1, 1, 1, 1};
	const int32_t paddings[8] = {[4] = 1};
	struct mu_tensor in[3];
	struct mu_shape s;
	struct harness h;
	struct mu_err err;
	struct mu_node *n;

	assert_int_equal(mu_graph_add(g, "n", "FusedPadConv2D", &n, NULL), 0);
	mu_node_set_attr(g, n, "T", &type);
	mu_node_set_attr(g, n, "padding", &valid);
	mu_node_set_attr(g, n, "mode", &reflect);
	set_ints(g, n, "strides", 4, strides);
	assert_int_equal(mu_shape_set(&s, 4, image, NULL), 0);
	assert_int_equal(mu_tensor_new(&in[0], MU_FLOAT, &s, NULL), 0);
	for (int i = 0; i < 6; i++)
		MU_DATA(float, &in[0])[i] = (float)i;
	assert_int_equal(mu_shape_set(&s, 2, rows, NULL), 0);
	assert_int_equal(mu_tensor_new(&in[1], MU_INT32, &s, NULL), 0);
	memcpy(in[1].data, paddings, sizeof paddings);
	assert_int_equal(mu_shape_set(&s, 4, filter, NULL), 0);
	assert_int_equal(mu_tensor_new(&in[2], MU_FLOAT, &s, NULL), 0);
	*MU_DATA(float, &in[2]) = 10;
	assert_int_equal(harness_prepare(&h, rt, n, &err), 0);
	for (unsigned i = 0; i < 3; i++)
		harness_input(&h, in[i]);
	assert_ok(harness_run(&h, &err), &err);
	assert_int_equal(h.out[0].tensor.shape.count, 8);
	assert_memory_equal(h.out[0].tensor.data, ((float[]){10, 0, 10, 20, 40, 30, 40, 50}),
			    8 * sizeof(float));
	harness_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fast_convolutions__of_all_shapes__equal_the_plain_loops),
	    cmocka_unit_test(window__larger_than_its_input__is_invalid),
	    cmocka_unit_test(window_attributes__out_of_range__are_invalid),
	    cmocka_unit_test(padding_and_convolution_fused__is_right_for_each_image),
	};

	return cmocka_run_group_tests(tests, start_runtime, stop_runtime);
}
