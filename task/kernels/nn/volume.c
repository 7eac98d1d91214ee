/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/nn/volume.h"

#include <limits.h>
#include <string.h>

#include "task/kernels/engine/args.h"

/* Reads five numbers, of which those of batch and channels must be 1. */
static int read_numbers(const struct mu_node *n, const char *name, int64_t *out, struct mu_err *err)
{
	const bool pool = strstr(n->op, "Pool") != NULL;
	int64_t values[VOLUME_RANK];

	if (args_attr_ints(n, name, values, VOLUME_RANK) != VOLUME_RANK)
		return mu_invalid(err, "%s must specify 5 dimensions", name);
	for (int i = 0; pool && i < VOLUME_RANK; i++)
		if (values[i] < 0)
			return mu_invalid(
			    err, "Sliding window %s field must have non-negative dimensions", name);
	if (values[0] != 1 || values[VOLUME_RANK - 1] != 1)
		return mu_fail(err, pool ? MU_UNIMPLEMENTED : MU_INVALID_ARGUMENT,
			       "Current implementation does not yet support %s in the batch and "
			       "depth dimensions.",
			       name);
	for (int i = 0; i < VOLUME_AXES; i++) {
		out[i] = values[1 + i];
		if (out[i] < 1)
			return mu_invalid(err, "%s must be positive, not %lld", name,
					  (long long)out[i]);
	}
	return 0;
}

static int read_attrs(const struct mu_node *n, struct volume_attrs *a, struct mu_err *err)
{
	const char *padding = args_attr_string(n, "padding", "");
	const char *format = args_attr_string(n, "data_format", "NDHWC");
	int64_t stride[VOLUME_AXES], dilation[VOLUME_AXES] = {1, 1, 1}, size[VOLUME_AXES] = {0};
	bool same = strcmp(padding, "SAME") == 0;

	if (!same && strcmp(padding, "VALID") != 0)
		return mu_invalid(err, "Unknown padding type: %.64s", padding);
	if (strcmp(format, "NDHWC") != 0)
		return strstr(n->op, "Pool")
			   ? mu_invalid(err, "Default %s only supports NDHWC on device type CPU",
					n->op)
			   : mu_fail(err, MU_UNIMPLEMENTED,
				     "The %s op currently only supports the NDHWC tensor format "
				     "on the CPU. The op was given the format: %.64s",
				     n->op, format);
	if (mu_node_attr(n, "ksize"))
		MU_RETURN_IF_ERROR(read_numbers(n, "ksize", size, err));
	MU_RETURN_IF_ERROR(read_numbers(n, "strides", stride, err));
	if (mu_node_attr(n, "dilations"))
		MU_RETURN_IF_ERROR(read_numbers(n, "dilations", dilation, err));
	for (int i = 0; i < VOLUME_AXES; i++)
		a->axis[i] = (struct window_attrs){.padding = same ? WINDOW_SAME : WINDOW_VALID,
						   .stride = {stride[i]},
						   .dilation = {dilation[i]},
						   .size = {size[i]}};
	return 0;
}

int volume_prepare(const struct mu_node *n, struct runtime *rt, void **state, struct mu_err *err)
{
	struct volume_attrs a;

	MU_RETURN_IF_ERROR(read_attrs(n, &a, err));
	*state = memcpy(MU_NEW(struct volume_attrs), &a, sizeof a);
	return 0;
}

int volume_init(struct volume *v, const struct kernel_call *c, enum mu_dtype type,
		const struct mu_shape *in, const int64_t *size, struct mu_err *err)
{
	const struct volume_attrs *a = c->state;

	if (type != MU_FLOAT && type != MU_DOUBLE)
		return args_no_kernel(c, type, err);
	if (in->rank != VOLUME_RANK)
		return mu_invalid(err, "tensor_in must be 5-dimensional: %s", mu_shape_str(in));
	*v = (struct volume){.type = type,
			     .size = mu_dtype_size(type),
			     .batch = in->dim[0],
			     .channels = in->dim[VOLUME_RANK - 1]};
	for (int i = 0; i < VOLUME_AXES; i++)
		MU_RETURN_IF_ERROR(window_axis_set(&v->axis[i], &a->axis[i], 0, in->dim[1 + i],
						   size ? size[i] : a->axis[i].size[0], err));
	return 0;
}

int volume_out_shape(const struct volume *v, int64_t channels, struct mu_shape *s,
		     struct mu_err *err)
{
	int64_t dims[VOLUME_RANK] = {v->batch, v->axis[0].out, v->axis[1].out, v->axis[2].out,
				     channels};

	return mu_shape_set(s, VOLUME_RANK, dims, err);
}

void volume_taps(const struct volume *v, int64_t at, volume_tap *body, void *arg)
{
	int64_t from[VOLUME_AXES], to[VOLUME_AXES], first[VOLUME_AXES];

	for (int d = VOLUME_AXES; d-- > 0; at /= v->axis[d].out)
		first[d] = window_clip(&v->axis[d], at % v->axis[d].out, &from[d], &to[d]);
	for (int64_t z = from[0]; z < to[0]; z++)
		for (int64_t y = from[1]; y < to[1]; y++)
			for (int64_t x = from[2]; x < to[2]; x++) {
				int64_t tap[VOLUME_AXES] = {z, y, x}, number = 0, pixel = at;
				for (int d = 0; d < VOLUME_AXES; d++) {
					const struct window_axis *a = &v->axis[d];
					number = number * a->size + tap[d];
					pixel = pixel * a->in + first[d] +
						(tap[d] - from[d]) * a->dilation;
				}
				body(arg, number, pixel * v->channels);
			}
}
