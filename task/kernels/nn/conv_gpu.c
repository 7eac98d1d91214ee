/* SPDX-License-Identifier: Apache-2.0 */
/* Conv2D, DepthwiseConv2dNative and their gradients on a GPU; what the nodes ask for is checked as
 * on the CPU. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/checks.h"
#include "task/kernels/nn/conv_launch.h"

struct state {
	struct gpu_conv by;
	struct window_attrs window;
};

/* By way: what is checked, and which inputs are input, filter and the output's gradient. */
enum { NONE = -1 };
static const struct {
	int (*check)(const struct kernel_call *c, const struct window_attrs *a, struct conv *g,
		     struct mu_shape *shape, struct mu_err *err);
	int input, filter, output;
} ways[GPU_CONVOLUTION_WAYS] = {
    [GPU_CONVOLUTION_FORWARD] = {check_conv, 0, 1, NONE},
    [GPU_CONVOLUTION_TO_INPUT] = {check_conv_input, NONE, 1, 2},
    [GPU_CONVOLUTION_TO_FILTER] = {check_conv_filter, 0, NONE, 2},
};

static void release(void *state)
{
	gpu_conv_fini(&((struct state *)state)->by);
	free(state);
}

static int prepare(const struct mu_node *n, struct runtime *rt, void **state, struct mu_err *err)
{
	enum gpu_convolution_way way = strstr(n->op, "BackpropInput")    ? GPU_CONVOLUTION_TO_INPUT
				       : strstr(n->op, "BackpropFilter") ? GPU_CONVOLUTION_TO_FILTER
									 : GPU_CONVOLUTION_FORWARD;
	struct state s = {0};
	int rc = window_attrs_conv(n, &s.window, err);

	if (rc || (rc = gpu_conv_init(&s.by, gpu_of_node(n, rt),
				      args_attr_type(n, "T", MU_DT_INVALID), way, err)))
		return rc;
	*state = memcpy(MU_NEW(struct state), &s, sizeof s);
	return 0;
}

static cuda_ptr address_of(const struct kernel_call *c, int input, const struct mu_tensor *out)
{
	return gpu_address(input == NONE ? out : kernel_in(c, (unsigned)input));
}

static int run(struct kernel_call *c, struct mu_err *err)
{
	const struct state *s = c->state;
	enum gpu_convolution_way way = s->by.way;
	struct mu_shape shape;
	struct mu_tensor *out;
	struct conv g;
	int rc;

	if ((rc = ways[way].check(c, &s->window, &g, &shape, err)) ||
	    (rc = gpu_out(c, 0, g.type, &shape, &out, err)) || !shape.count)
		return rc;
	if (!g.groups || !g.batch) /* sums of nothing */
		return gpu_fill(s->by.gpu, out, 0, err);
	return gpu_conv_run(c, &s->by, &g, address_of(c, ways[way].input, out),
			    address_of(c, ways[way].filter, out),
			    address_of(c, ways[way].output, out), err);
}

#define ROW(name)                                                                                  \
	{                                                                                          \
		.k = {name, .run = run, .prepare = prepare, .release = release}, .type_attr = "T", \
		.types = GPU_FLT                                                                   \
	}
static const struct gpu_kernel rows[] = {
    ROW("Conv2D"),
    ROW("Conv2DBackpropInput"),
    ROW("Conv2DBackpropFilter"),
    ROW("DepthwiseConv2dNative"),
    ROW("DepthwiseConv2dNativeBackpropInput"),
    ROW("DepthwiseConv2dNativeBackpropFilter"),
};
GPU_KERNEL_TABLE(gpu_conv, rows)
