/* SPDX-License-Identifier: Apache-2.0 */
/* CropAndResize crops boxes from images and resizes them to one size.  Also its gradients.
 *
 * A crop pixel is sampled between four pixels of its image, at the nearest one, or outside. All
 * three kernels visit the crop pixels in the same order (crop_resize_walk) and differ in the
 * visitor. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

enum { SIDES = 4 }; /* of a box: y1, x1, y2, x2 */

struct crops {
	const float *boxes;
	const int32_t *box_image; /* the image of each box */
	int64_t n, images, size[2], image_size[2], depth;
	bool nearest;
};

/* A sampling position along an axis, between two pixels. */
struct interpolation {
	bool inside;
	int64_t low, high;
	float part; /* weight of `high` */
};

static struct interpolation crop_resize_interpolation(const struct crops *k, const float *box,
						      int axis, int64_t i)
{
	float first = box[axis], last = box[axis + 2], end = (float)(k->image_size[axis] - 1);
	float step = k->size[axis] > 1 ? (last - first) * end / (float)(k->size[axis] - 1) : 0;
	float at = k->size[axis] > 1 ? first * end + (float)i * step : 0.5f * (first + last) * end;
	struct interpolation b = {.inside = at >= 0 && at <= end};

	if (!b.inside) /* NaN too */
		return b;
	b.low = (int64_t)(k->nearest ? roundf(at) : floorf(at));
	b.high = k->nearest ? b.low : (int64_t)ceilf(at);
	b.part = k->nearest ? 0 : at - (float)b.low;
	return b;
}

/* Visits a crop pixel.  y and x are NULL if it is outside its image. */
typedef void visit_pixel(void *arg, int64_t box, int64_t at, int64_t image,
			 const struct interpolation *y, const struct interpolation *x);

static void crop_resize_walk(const struct crops *k, int64_t from, int64_t to, visit_pixel *body,
			     void *arg)
{
	for (int64_t b = from; b < to; b++) {
		int64_t at = b * k->size[0] * k->size[1];
		int64_t image = k->box_image[b] * k->image_size[0] * k->image_size[1];
		for (int64_t i = 0; i < k->size[0]; i++) {
			struct interpolation y =
			    crop_resize_interpolation(k, k->boxes + b * SIDES, 0, i);
			for (int64_t j = 0; j < k->size[1]; j++, at++) {
				struct interpolation x =
				    crop_resize_interpolation(k, k->boxes + b * SIDES, 1, j);
				bool inside = y.inside && x.inside;
				body(arg, b, at * k->depth, image, inside ? &y : NULL,
				     inside ? &x : NULL);
			}
		}
	}
}

/* The first channel of a pixel. */
static int64_t crop_resize_pixel(const struct crops *k, int64_t image, int64_t y, int64_t x)
{
	return (image + y * k->image_size[1] + x) * k->depth;
}

struct corners {
	const float *tl, *tr, *bl, *br;
};

static struct corners corners_of(const struct crops *k, const float *in, int64_t image,
				 const struct interpolation *y, const struct interpolation *x)
{
	return (struct corners){in + crop_resize_pixel(k, image, y->low, x->low),
				in + crop_resize_pixel(k, image, y->low, x->high),
				in + crop_resize_pixel(k, image, y->high, x->low),
				in + crop_resize_pixel(k, image, y->high, x->high)};
}

/* ---- attributes and inputs ---- */

static int read_boxes(const struct kernel_call *c, unsigned boxes, struct crops *k,
		      struct mu_err *err)
{
	const struct mu_tensor *b = kernel_in(c, boxes), *box_index = kernel_in(c, boxes + 1);
	const char *method = args_attr_string(c->node, "method", "bilinear");

	k->nearest = strcmp(method, "nearest") == 0;
	if (!k->nearest && strcmp(method, "bilinear"))
		return mu_invalid(err, "method must be 'bilinear' or 'nearest', not '%.40s'",
				  method);
	if (!b->shape.count && !box_index->shape.count)
		return 0; /* no boxes, of any shape */
	if (b->shape.rank != 2 || b->shape.dim[1] != SIDES || box_index->shape.rank != 1 ||
	    box_index->shape.count != b->shape.dim[0])
		return mu_invalid(err, "boxes must be [n, 4] and box_index [n], not %s and %s",
				  mu_shape_str(&b->shape), mu_shape_str(&box_index->shape));
	k->boxes = b->data;
	k->box_image = box_index->data;
	k->n = box_index->shape.count;
	return 0;
}

static int check_box_images(struct crops *k, struct mu_err *err)
{
	for (int64_t i = 0; i < k->n; i++)
		if (k->box_image[i] < 0 || k->box_image[i] >= k->images)
			return mu_fail(err, MU_OUT_OF_RANGE,
				       "box_index has values outside [0, batch_size): %d",
				       k->box_image[i]);
	return 0;
}

static int read_image_shape(const struct mu_shape *s, struct crops *k, struct mu_err *err)
{
	if (s->rank != 4 || s->dim[1] < 1 || s->dim[2] < 1)
		return mu_invalid(
		    err, "input image must be 4-D, and its dimensions must be positive: %s",
		    mu_shape_str(s));
	k->images = s->dim[0];
	memcpy(k->image_size, s->dim + 1, sizeof k->image_size);
	k->depth = s->dim[3];
	return 0;
}

/* ---- crops ---- */

struct crop_call {
	struct crops k;
	const float *in;
	float *out, extrapolation_value;
};

static void crop_pixel(void *arg, int64_t box, int64_t at, int64_t image,
		       const struct interpolation *y, const struct interpolation *x)
{
	const struct crop_call *a = arg;
	const struct crops *k = &a->k;
	float *out = a->out + at;

	if (!y) {
		for (int64_t d = 0; d < k->depth; d++)
			out[d] = a->extrapolation_value;
		return;
	}
	const struct corners c = corners_of(k, a->in, image, y, x);
	for (int64_t d = 0; d < k->depth; d++) {
		float top = c.tl[d] + (c.tr[d] - c.tl[d]) * x->part;
		float bottom = c.bl[d] + (c.br[d] - c.bl[d]) * x->part;
		out[d] = k->nearest ? c.tl[d] : top + (bottom - top) * y->part;
	}
}

static void crop_boxes(void *arg, int64_t from, int64_t to)
{
	crop_resize_walk(&((struct crop_call *)arg)->k, from, to, crop_pixel, arg);
}

static int crop_and_resize(struct kernel_call *c, struct mu_err *err)
{
	struct crop_call a = {.extrapolation_value =
				  args_attr_float(c->node, "extrapolation_value", 0)};
	MU_AUTO_TENSOR wide = {0};
	struct mu_shape shape;
	struct mu_tensor *out;
	int n = 0;

	MU_RETURN_IF_ERROR(read_image_shape(&kernel_in(c, 0)->shape, &a.k, err));
	MU_RETURN_IF_ERROR(read_boxes(c, 1, &a.k, err));
	MU_RETURN_IF_ERROR(args_ints(c, 3, a.k.size, 2, &n, err));
	if (a.k.size[0] < 1 || a.k.size[1] < 1)
		return mu_invalid(err, "crop_size must have two elements, both positive");
	MU_RETURN_IF_ERROR(
	    mu_shape_set(&shape, 4, (int64_t[]){a.k.n, a.k.size[0], a.k.size[1], a.k.depth}, err));
	MU_RETURN_IF_ERROR(check_box_images(&a.k, err));
	MU_RETURN_IF_ERROR(convert_tensor(&wide, MU_FLOAT, kernel_in(c, 0), err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &shape, &out, err));
	a.in = wide.data;
	a.out = out->data;
	if (shape.count)
		kernel_parallel(c, a.k.n, 1 + (1 << 14) / (shape.count / a.k.n), crop_boxes, &a);
	return 0;
}

/* ---- gradients ---- */

struct crop_gradient {
	struct crops k;
	const float *g, *in;
	float *out; /* of images or of boxes */
};

static void add_image_gradient(void *arg, int64_t box, int64_t at, int64_t image,
			       const struct interpolation *y, const struct interpolation *x)
{
	const struct crop_gradient *a = arg;
	const float *g = a->g + at;

	if (!y)
		return;
	for (int i = 0; i < (a->k.nearest ? 1 : 4); i++) {
		float share = (i & 2 ? y->part : 1 - y->part) * (i & 1 ? x->part : 1 - x->part);
		float *to = a->out + crop_resize_pixel(&a->k, image, i & 2 ? y->high : y->low,
						       i & 1 ? x->high : x->low);
		for (int64_t d = 0; d < a->k.depth; d++)
			to[d] += g[d] * share;
	}
}

/* Chain rule: the derivative with respect to the position, times the derivative of the position
 * with respect to the box. */
static void add_box_gradient(void *arg, int64_t box, int64_t at, int64_t image,
			     const struct interpolation *y, const struct interpolation *x)
{
	const struct crop_gradient *a = arg;
	const struct crops *k = &a->k;
	float along[2] = {0};

	if (!y)
		return;
	const struct corners c = corners_of(k, a->in, image, y, x);
	for (int64_t d = 0; d < k->depth; d++) {
		float g = a->g[at + d];
		along[0] +=
		    g * ((1 - x->part) * (c.bl[d] - c.tl[d]) + x->part * (c.br[d] - c.tr[d]));
		along[1] +=
		    g * ((1 - y->part) * (c.tr[d] - c.tl[d]) + y->part * (c.br[d] - c.bl[d]));
	}
	int64_t index[2] = {at / k->depth / k->size[1] % k->size[0], at / k->depth % k->size[1]};
	for (int axis = 0; axis < 2; axis++) {
		float end = (float)(k->image_size[axis] - 1);
		float last =
		    k->size[axis] > 1 ? (float)index[axis] / (float)(k->size[axis] - 1) : 0.5f;
		a->out[box * SIDES + axis] += along[axis] * end * (1 - last);
		a->out[box * SIDES + axis + 2] += along[axis] * end * last;
	}
}

/* Reads input 0: the gradients of the crops, [boxes, rows, columns, channels]. */
static int read_grads(const struct kernel_call *c, struct crop_gradient *a, struct mu_err *err)
{
	const struct mu_tensor *g = kernel_in(c, 0);

	if (g->shape.rank != 4 || g->shape.dim[1] < 1 || g->shape.dim[2] < 1)
		return mu_invalid(err, "grads must be floats, 4-D, of positive sizes, not %s",
				  mu_shape_str(&g->shape));
	if (g->shape.dim[0] != a->k.n || g->shape.dim[3] != a->k.depth)
		return mu_invalid(
		    err, "boxes and grads have incompatible shape: %lld boxes of %lld channels, %s",
		    (long long)a->k.n, (long long)a->k.depth, mu_shape_str(&g->shape));
	memcpy(a->k.size, g->shape.dim + 1, sizeof a->k.size);
	a->g = g->data;
	return check_box_images(&a->k, err);
}

static int grad_image(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(c->node, "T", MU_FLOAT);
	MU_AUTO_TENSOR sum = {0};
	struct crop_gradient a = {0};
	struct mu_tensor *out;
	struct mu_shape shape;
	int64_t size[4];
	int n = 0;

	MU_RETURN_IF_ERROR(read_boxes(c, 1, &a.k, err));
	MU_RETURN_IF_ERROR(args_ints(c, 3, size, 4, &n, err));
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 4, size, err));
	MU_RETURN_IF_ERROR(read_image_shape(&shape, &a.k, err));
	MU_RETURN_IF_ERROR(read_grads(c, &a, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&sum, MU_FLOAT, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t, &shape, &out, err));
	elems_zero(MU_FLOAT, sum.data, 0, shape.count);
	a.out = sum.data;
	if (a.k.depth)
		crop_resize_walk(&a.k, 0, a.k.n, add_image_gradient, &a);
	convert(t, out->data, MU_FLOAT, sum.data, shape.count);
	return 0;
}

static int grad_boxes(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_TENSOR wide = {0};
	struct crop_gradient a = {0};
	struct mu_tensor *out;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(read_image_shape(&kernel_in(c, 1)->shape, &a.k, err));
	MU_RETURN_IF_ERROR(read_boxes(c, 2, &a.k, err));
	MU_RETURN_IF_ERROR(read_grads(c, &a, err));
	MU_RETURN_IF_ERROR(convert_tensor(&wide, MU_FLOAT, kernel_in(c, 1), err));
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 2, (int64_t[]){a.k.n, SIDES}, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &shape, &out, err));
	if (a.k.nearest)
		return mu_invalid(err, "the gradient of boxes is that of 'bilinear' only");
	elems_zero(MU_FLOAT, out->data, 0, shape.count);
	a.in = wide.data;
	a.out = out->data;
	if (a.k.depth)
		crop_resize_walk(&a.k, 0, a.k.n, add_box_gradient, &a);
	return 0;
}

static const struct kernel rows[] = {
    {"CropAndResize", KERNEL_EXPENSIVE, .run = crop_and_resize},
    {"CropAndResizeGradImage", KERNEL_EXPENSIVE, .run = grad_image},
    {"CropAndResizeGradBoxes", KERNEL_EXPENSIVE, .run = grad_boxes},
};
KERNEL_TABLE(image_crop_resize, rows)
