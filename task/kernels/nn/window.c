/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/nn/window.h"

#include <limits.h>
#include <string.h>

#include "task/kernels/engine/args.h"

/* Attributes of sliding windows: padding, explicit padding, and the data format. */
static int read_padding(const struct mu_node *n, struct window_attrs *a, struct mu_err *err)
{
	const char *padding = args_attr_string(n, "padding", "");
	const char *format = args_attr_string(n, "data_format", "NHWC");
	int64_t pads[8];
	int count = args_attr_ints(n, "explicit_paddings", pads, 8);

	if (strcmp(format, "NHWC") != 0 && strstr(n->op, "Pool"))
		return mu_invalid(err, "Default %s only supports NHWC on device type CPU", n->op);
	if (strcmp(format, "NHWC") != 0)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "The %s op currently only supports the NHWC tensor format on the "
			       "CPU. The op was given the format: %s",
			       n->op, format);
	a->padding = strcmp(padding, "VALID") == 0  ? WINDOW_VALID
		     : strcmp(padding, "SAME") == 0 ? WINDOW_SAME
						    : WINDOW_EXPLICIT;
	if (a->padding != WINDOW_EXPLICIT)
		return count ? mu_invalid(err, "explicit_paddings attribute must be empty if the "
					       "padding attribute is not EXPLICIT")
			     : 0;
	if (strcmp(padding, "EXPLICIT") != 0)
		return mu_invalid(err, "Unknown padding type: %.64s", padding);
	if (count != 8)
		return mu_invalid(err, "explicit_paddings attribute must contain 8 values");
	for (int i = 0; i < 8; i++)
		if (pads[i] < 0 || pads[i] > INT_MAX)
			return mu_invalid(err,
					  "All elements of explicit_paddings must be nonnegative");
	if (pads[0] || pads[1] || pads[6] || pads[7])
		return mu_invalid(
		    err,
		    "Nonzero explicit padding in the batch or depth dimensions is not supported");
	memcpy(a->pad, pads + 2, sizeof a->pad);
	return 0;
}

int window_attrs_conv(const struct mu_node *n, struct window_attrs *a, struct mu_err *err)
{
	const enum mu_code unsupported =
	    strcmp(n->op, "Conv2D") == 0 ? MU_UNIMPLEMENTED : MU_INVALID_ARGUMENT;
	int64_t strides[4], dilations[4] = {1, 1, 1, 1};
	int nd;

	*a = (struct window_attrs){0};
	if (args_attr_ints(n, "strides", strides, 4) != 4)
		return mu_invalid(err, "Sliding window strides field must specify 4 dimensions");
	if ((nd = args_attr_ints(n, "dilations", dilations, 4)) != 0 && nd != 4)
		return mu_invalid(err, "Sliding window dilations field must specify 4 dimensions");
	if (strides[0] != 1 || strides[3] != 1)
		return mu_fail(err, unsupported,
			       "Current implementation does not yet support strides in the batch "
			       "and depth dimensions.");
	if (dilations[0] != 1 || dilations[3] != 1)
		return mu_fail(err, unsupported,
			       "Current implementation does not yet support dilations in the batch "
			       "and depth dimensions.");
	for (int i = 0; i < WINDOW_AXES; i++) {
		a->stride[i] = strides[1 + i];
		a->dilation[i] = dilations[1 + i];
		if (a->stride[i] <= 0)
			return mu_invalid(err, "Sliding window strides should be larger than 0.");
		if (a->dilation[i] <= 0)
			return mu_invalid(err, "Dilated rates should be larger than 0.");
	}
	return read_padding(n, a, err);
}

int window_pool_set(struct window_attrs *a, const int64_t ksize[4], const int64_t strides[4],
		    struct mu_err *err)
{
	if (ksize[0] != 1 || strides[0] != 1)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "Pooling is not yet supported on the batch dimension.");
	for (int i = 0; i < 4; i++)
		if (ksize[i] <= 0 || strides[i] <= 0)
			return mu_invalid(err,
					  "Sliding window ksize and strides must be positive, not "
					  "%lld and %lld in dimension %d",
					  (long long)ksize[i], (long long)strides[i], i);
	for (int i = 0; i < WINDOW_AXES; i++) {
		a->size[i] = ksize[1 + i];
		a->stride[i] = strides[1 + i];
		a->dilation[i] = 1;
	}
	a->depth_size = ksize[3];
	a->depth_stride = strides[3];
	return 0;
}

static int check_pool_padding(const struct window_attrs *a, struct mu_err *err)
{
	static const char *const sides[WINDOW_AXES][2] = {{"Top", "Bottom"}, {"Left", "Right"}};

	for (int i = 0; i < WINDOW_AXES; i++)
		for (int side = 0; side < 2; side++)
			if (a->pad[i][side] >= a->size[i])
				return mu_invalid(err,
						  "%s padding %lld needs to be smaller than the "
						  "window size %lld",
						  sides[i][side], (long long)a->pad[i][side],
						  (long long)a->size[i]);
	return 0;
}

int window_attrs_pool(const struct mu_node *n, struct window_attrs *a, struct mu_err *err)
{
	int64_t ksize[4], strides[4];

	*a = (struct window_attrs){0};
	if (!mu_node_attr(n, "ksize"))
		return read_padding(n, a, err);
	if (args_attr_ints(n, "ksize", ksize, 4) != 4)
		return mu_invalid(err, "Sliding window ksize field must specify 4 dimensions");
	if (args_attr_ints(n, "strides", strides, 4) != 4)
		return mu_invalid(err, "Sliding window stride field must specify 4 dimensions");
	MU_RETURN_IF_ERROR(read_padding(n, a, err));
	MU_RETURN_IF_ERROR(window_pool_set(a, ksize, strides, err));
	return a->padding == WINDOW_EXPLICIT ? check_pool_padding(a, err) : 0;
}

int window_axis_set(struct window_axis *x, const struct window_attrs *a, int axis, int64_t in,
		    int64_t size, struct mu_err *err)
{
	int64_t stride = a->stride[axis], dilation = a->dilation[axis];

	if (in < 0 || in > INT_MAX || size < 0 || size > INT_MAX)
		return mu_invalid(err, "a window of %lld over %lld elements is too large",
				  (long long)size, (long long)in);
	if (stride < 1 || stride > INT_MAX || dilation < 1 || dilation > INT_MAX)
		return mu_invalid(err, "stride %lld or dilation %lld of a window is not in [1, %d]",
				  (long long)stride, (long long)dilation, INT_MAX);
	int64_t effective_size = (size - 1) * dilation + 1;
	int64_t before = 0, after = 0, out;

	if (a->padding == WINDOW_SAME) {
		out = (in + stride - 1) / stride;
		int64_t need = (out - 1) * stride + effective_size - in;
		before = need > 0 ? need / 2 : 0;
	} else {
		if (a->padding == WINDOW_EXPLICIT) {
			before = a->pad[axis][0];
			after = a->pad[axis][1];
		}
		out = (in + before + after - effective_size + stride) / stride;
	}
	if (out < 0)
		return mu_invalid(err,
				  "Computed output size would be negative: %lld [input_size: %lld, "
				  "effective_filter_size: %lld, stride: %lld]",
				  (long long)out, (long long)in, (long long)effective_size,
				  (long long)stride);
	*x = (struct window_axis){in, size, stride, dilation, out, before};
	return 0;
}
