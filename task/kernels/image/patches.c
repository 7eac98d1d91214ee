/* SPDX-License-Identifier: Apache-2.0 */
/* ExtractImagePatches and ExtractVolumePatches: each window becomes the channels of one pixel. */
#include <limits.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/nn/window.h"

enum { AXES = 3 }; /* an image is a volume of one layer */

struct patches {
	enum mu_dtype type;
	struct window_axis axis[AXES];
	int64_t depth;  /* elements of a pixel */
	int64_t window; /* pixels of a window */
	const void *in;
	void *out;
};

/* Copies the window with index `window` along each axis to pixel `to`. Pixels outside the image
 * stay zero. */
static void copy_window(const struct patches *p, int64_t image, const int64_t *window, int64_t to)
{
	const struct window_axis *z = &p->axis[0], *y = &p->axis[1], *x = &p->axis[2];
	int64_t from[AXES], end[AXES], first[AXES];

	for (int i = 0; i < AXES; i++)
		first[i] = window_clip(&p->axis[i], window[i], &from[i], &end[i]);
	for (int64_t k = from[0]; k < end[0]; k++)
		for (int64_t i = from[1]; i < end[1]; i++) {
			int64_t layer = first[0] + (k - from[0]) * z->dilation;
			int64_t row = first[1] + (i - from[1]) * y->dilation;
			int64_t source = ((image * z->in + layer) * y->in + row) * x->in + first[2];
			int64_t target = to + (k * y->size + i) * x->size + from[2];
			int64_t run = x->dilation == 1 ? end[2] - from[2] : 1;
			for (int64_t j = from[2]; j < end[2]; j += run) {
				elems_copy(p->type, p->out, target * p->depth, p->in,
					   source * p->depth, run * p->depth);
				target += run;
				source += run * x->dilation;
			}
		}
}

static void copy_windows(void *arg, int64_t from, int64_t to)
{
	const struct patches *p = arg;

	for (int64_t n = from; n < to; n++) { /* rows of windows */
		int64_t window[AXES] = {n / p->axis[1].out % p->axis[0].out, n % p->axis[1].out};
		int64_t image = n / p->axis[1].out / p->axis[0].out;
		for (; window[2] < p->axis[2].out; window[2]++)
			copy_window(p, image, window, (n * p->axis[2].out + window[2]) * p->window);
	}
}

/* Reads ksizes, strides or rates, one for each dimension; those of batch and depth must be 1. */
static int patches_read_list(const struct mu_node *n, const char *name, int axes, int64_t *out,
			     struct mu_err *err)
{
	int64_t list[AXES + 2];

	if (args_attr_ints(n, name, list, AXES + 2) != axes + 2)
		return mu_invalid(err, "%s must specify %d dimensions", name, axes + 2);
	if (list[0] != 1 || list[axes + 1] != 1)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "%s other than 1 of pictures or channels are not supported", name);
	for (int i = 0; i < axes; i++)
		if (list[i + 1] < 1)
			return mu_fail(err, MU_OUT_OF_RANGE, "%s must be positive, not %lld", name,
				       (long long)list[i + 1]);
	memcpy(out + AXES - axes, list + 1, (size_t)axes * sizeof *out);
	return 0;
}

static int read_windows(const struct kernel_call *c, int axes, struct patches *p,
			struct mu_err *err)
{
	int64_t size[AXES] = {1, 1, 1}, stride[AXES] = {1, 1, 1}, rate[AXES] = {1, 1, 1};
	const char *padding = args_attr_string(c->node, "padding", "");
	const struct mu_shape *in = &kernel_in(c, 0)->shape;

	MU_RETURN_IF_ERROR(patches_read_list(c->node, "ksizes", axes, size, err));
	MU_RETURN_IF_ERROR(patches_read_list(c->node, "strides", axes, stride, err));
	if (mu_node_attr(c->node, "rates"))
		MU_RETURN_IF_ERROR(patches_read_list(c->node, "rates", axes, rate, err));
	if (strcmp(padding, "SAME") && strcmp(padding, "VALID"))
		return mu_invalid(err, "padding must be SAME or VALID, not %.40s", padding);
	for (int i = 0; i < AXES; i++) {
		struct window_attrs a = {.padding =
					     strcmp(padding, "SAME") ? WINDOW_VALID : WINDOW_SAME,
					 .stride = {stride[i]},
					 .dilation = {rate[i]}};
		int64_t n = i < AXES - axes ? 1 : in->dim[1 + i - (AXES - axes)];
		MU_RETURN_IF_ERROR(window_axis_set(&p->axis[i], &a, 0, n, size[i], err));
	}
	p->depth = in->dim[axes + 1];
	return 0;
}

static int patches_extract(struct kernel_call *c, int axes, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct patches p = {.type = in->dtype, .in = in->data};
	int64_t dim[AXES + 2] = {0}, pixel;
	struct mu_tensor *out;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(read_windows(c, axes, &p, err));
	dim[0] = in->shape.dim[0];
	for (int i = 0; i < axes; i++)
		dim[1 + i] = p.axis[AXES - axes + i].out;
	if (__builtin_mul_overflow(p.axis[0].size, p.axis[1].size, &p.window) ||
	    __builtin_mul_overflow(p.window, p.axis[2].size, &p.window) ||
	    __builtin_mul_overflow(p.window, p.depth, &pixel))
		return mu_invalid(err, "such windows are too large");
	dim[axes + 1] = pixel;
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, axes + 2, dim, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &shape, &out, err));
	if (!shape.count)
		return 0;
	elems_zero(in->dtype, out->data, 0, shape.count);
	p.out = out->data;
	int64_t n = dim[0] * p.axis[0].out * p.axis[1].out;
	kernel_parallel(c, n, 1 + (1 << 15) / (shape.count / n), copy_windows, &p);
	return 0;
}

KERNEL_RUN(extract_image, patches_extract(c, 2, err))
KERNEL_RUN(extract_volume, patches_extract(c, 3, err))

static const struct kernel rows[] = {
    {"ExtractImagePatches", KERNEL_EXPENSIVE, .run = extract_image},
    {"ExtractVolumePatches", KERNEL_EXPENSIVE, .run = extract_volume},
};
KERNEL_TABLE(image_patches, rows)
