/* SPDX-License-Identifier: Apache-2.0 */
/* Bounding boxes: drawn into images, and sampled at random for cropping training images. A sampled
 * box covers a minimum share of at least one of the given boxes. */
#include <math.h>

#include "lib/tensor/half.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/random/node_state.h"

enum { SIDES = 4 }; /* of a box: y1, x1, y2, x2, fractions of the image size */

/* ---- DrawBoundingBoxes ---- */

static const float default_colours[][4] = {
    {1, 1, 0, 1},       {0, 0, 1, 1},    {1, 0, 0, 1},    {0, 1, 0, 1}, {0.5f, 0, 0.5f, 1},
    {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

struct canvas {
	enum mu_dtype type;
	void *pixels; /* of one image */
	int64_t size[2], depth;
	unsigned char colour[4 * sizeof(float)]; /* in the pixel type */
};

/* Draws pixels `from` to `to`, both included, along an axis, at `across` on the other axis. */
static void draw_line(const struct canvas *k, int axis, int64_t from, int64_t to, int64_t across)
{
	size_t pixel = (size_t)k->depth * elems_size(k->type);

	for (int64_t i = from; i <= to; i++) {
		int64_t at = axis ? across * k->size[1] + i : i * k->size[1] + across;
		memcpy((char *)k->pixels + (size_t)at * pixel, k->colour, pixel);
	}
}

static int64_t to_pixel(float part, int64_t size)
{
	float at = part * (float)(size - 1);

	return !(at > -1e9f) ? -1000000000 : !(at < 1e9f) ? 1000000000 : (int64_t)at;
}

static void draw_box(const struct canvas *k, const float *box)
{
	int64_t low[2], high[2], first[2], last[2];

	for (int i = 0; i < 2; i++) {
		low[i] = to_pixel(box[i], k->size[i]);
		high[i] = to_pixel(box[i + 2], k->size[i]);
		if (low[i] > high[i] || low[i] >= k->size[i] || high[i] < 0)
			return; /* it is outside the image */
		first[i] = low[i] < 0 ? 0 : low[i];
		last[i] = high[i] < k->size[i] ? high[i] : k->size[i] - 1;
	}
	for (int i = 0; i < 2; i++) {
		if (low[i] >= 0)
			draw_line(k, !i, first[!i], last[!i], low[i]);
		if (high[i] < k->size[i])
			draw_line(k, !i, first[!i], last[!i], high[i]);
	}
}

static void set_colour(struct canvas *k, const float *colour)
{
	for (int64_t i = 0; i < k->depth; i++) {
		float part = colour[i];
		if (k->type == MU_FLOAT)
			((float *)k->colour)[i] = part;
		else
			((uint16_t *)k->colour)[i] = float_to_half(part);
	}
}

static int check_drawing(const struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	enum mu_dtype t = kernel_in(c, 0)->dtype;

	if (t != MU_FLOAT && t != MU_HALF)
		return mu_fail(err, MU_UNIMPLEMENTED, "no boxes are drawn into %s",
			       mu_dtype_name(t));
	if (in->dim[3] != 1 && in->dim[3] != 3 && in->dim[3] != 4)
		return mu_invalid(err,
				  "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)");
	if (c->n_in < 3)
		return 0;
	if (kernel_in(c, 2)->shape.dim[1] < in->dim[3])
		return mu_invalid(
		    err,
		    "colors must have equal or more channels than the image provided: %s for %s",
		    mu_shape_str(&kernel_in(c, 2)->shape), mu_shape_str(in));
	return 0;
}

static int draw_boxes(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int64_t boxes, colours = MU_COUNT(default_colours), step = 4;
	const float *colour = default_colours[0], *white = default_colours[0];
	bool has_colours = c->n_in > 2 && kernel_in(c, 2)->shape.count;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(check_drawing(c, err));
	MU_RETURN_IF_ERROR(kernel_out_reuse(c, 0, 0, in->dtype, &in->shape, &out, err));
	if (out->data != in->data)
		elems_copy(in->dtype, out->data, 0, in->data, 0, in->shape.count);
	if (has_colours) {
		colours = kernel_in(c, 2)->shape.dim[0];
		step = kernel_in(c, 2)->shape.dim[1];
		colour = kernel_in(c, 2)->data;
	}
	boxes = out->shape.count ? kernel_in(c, 1)->shape.dim[1] : 0;
	struct canvas k = {.type = in->dtype,
			   .size = {in->shape.dim[1], in->shape.dim[2]},
			   .depth = in->shape.dim[3]};
	for (int64_t p = 0; p < in->shape.dim[0]; p++) {
		k.pixels = (char *)out->data +
			   (size_t)(p * k.size[0] * k.size[1] * k.depth) * elems_size(k.type);
		for (int64_t b = 0; b < boxes; b++) {
			/* boxes on a grey image are white by default */
			set_colour(&k, has_colours || k.depth > 1 ? colour + b % colours * step
								  : white);
			draw_box(&k, MU_DATA(float, kernel_in(c, 1)) + (p * boxes + b) * SIDES);
		}
	}
	return 0;
}

/* ---- SampleDistortedBoundingBox ---- */

enum { MAX_ATTEMPTS = 1 << 20, MAX_COMPARISONS = 1 << 28 }; /* a second of a processor's time */

struct rect { /* in pixels; high is exclusive */
	int low[2], high[2];
};
struct box_sampler {
	int size[2];                           /* of the image */
	float aspect[2], area[2], min_covered; /* ranges of aspect ratio and area */
	int64_t attempts, n;                   /* n: number of boxes */
	struct rect *boxes;
	enum mu_dtype type;
};

static float rect_area(const struct rect *p)
{
	for (int i = 0; i < 2; i++)
		if (p->high[i] <= p->low[i])
			return 0;
	return (float)((int64_t)(p->high[0] - p->low[0]) * (p->high[1] - p->low[1]));
}

static struct rect intersection(const struct rect *a, const struct rect *b)
{
	struct rect p;

	for (int i = 0; i < 2; i++) {
		p.low[i] = a->low[i] > b->low[i] ? a->low[i] : b->low[i];
		p.high[i] = a->high[i] < b->high[i] ? a->high[i] : b->high[i];
	}
	return p;
}

static bool covers_enough(const struct box_sampler *k, const struct rect *p)
{
	for (int64_t i = 0; i < k->n && rect_area(p) >= 1; i++) {
		struct rect common = intersection(p, &k->boxes[i]);
		float box_area = rect_area(&k->boxes[i]);
		if (box_area >= 1 && rect_area(&common) / box_area >= k->min_covered)
			return true;
	}
	return false;
}

/* Returns the largest height whose width at this aspect ratio fits into the image. */
static int max_height(const struct box_sampler *k, float aspect, float area)
{
	int64_t height = lrintf(sqrtf(area / aspect));

	if (lrintf((float)height * aspect) > k->size[1]) {
		height = (int64_t)(((float)k->size[1] + 0.5f - 1e-7f) / aspect);
		if (lrintf((float)height * aspect) > k->size[1])
			height--;
	}
	return (int)(height < k->size[0] ? height : k->size[0]);
}

/* Corrects a size that rounding made too small or too large by one. */
static bool adjust_area(const struct box_sampler *k, float aspect, float min_area, float max_area,
			int64_t size[2])
{
	float area = (float)(size[0] * size[1]);

	for (int step = 1; step >= -1; step -= 2)
		if (step > 0 ? area < min_area : area > max_area) {
			size[0] += step;
			size[1] = lrintf((float)size[0] * aspect);
			area = (float)(size[0] * size[1]);
		}
	return area >= min_area && area <= max_area && size[0] > 0 && size[1] > 0 &&
	       size[0] <= k->size[0] && size[1] <= k->size[1];
}

static bool sample_rect(const struct box_sampler *k, float aspect, struct philox_stream *random,
			struct rect *out)
{
	float min_area = k->area[0] * (float)k->size[1] * (float)k->size[0];
	float max_area = k->area[1] * (float)k->size[1] * (float)k->size[0];
	int limit = max_height(k, aspect, max_area);
	int64_t size[2] = {lrintf(sqrtf(min_area / aspect))};

	if (size[0] >= limit)
		size[0] = limit;
	else
		size[0] += philox_below_32(random, (uint32_t)(limit - size[0] + 1));
	size[1] = lrintf((float)size[0] * aspect);
	if (!adjust_area(k, aspect, min_area, max_area, size))
		return false;
	for (int i = 0; i < 2; i++) {
		int64_t range = k->size[i] - size[i];
		out->low[i] = range ? (int)philox_below_32(random, (uint32_t)range) : 0;
		out->high[i] = out->low[i] + (int)size[i];
	}
	return true;
}

static struct rect sample_crop(const struct box_sampler *k, struct philox from)
{
	struct philox_stream random = {.from = from};
	struct rect p;

	for (int64_t i = 0; i < k->attempts; i++) {
		float aspect =
		    philox_float(philox_32(&random)) * (k->aspect[1] - k->aspect[0]) + k->aspect[0];
		if (sample_rect(k, aspect, &random, &p) && covers_enough(k, &p))
			return p;
	}
	return (struct rect){.high = {k->size[0], k->size[1]}};
}

/* ---- attributes and inputs ---- */

/* Two positive numbers; the second may be the smaller one. */
static int read_range(const struct mu_node *n, const char *name, const char *text, float out[2],
		      struct mu_err *err)
{
	const struct mu_attr *a = mu_node_attr(n, name);

	if (!a || a->kind != MU_ATTR_LIST + MU_ATTR_FLOAT || a->n != 2)
		return mu_invalid(err, "%s must be two numbers", name);
	memcpy(out, a->fs, 2 * sizeof *out);
	if (!(out[0] > 0 && out[1] > 0))
		return mu_invalid(err, "%s must be non-negative: [%g, %g]", text, (double)out[0],
				  (double)out[1]);
	if (!(out[0] < 1e6f && out[1] < 1e6f))
		return mu_invalid(err, "%s must be below 1e6: [%g, %g]", text, (double)out[0],
				  (double)out[1]);
	return 0;
}

static int read_sampling_attrs(const struct kernel_call *c, struct box_sampler *k,
			       struct mu_err *err)
{
	MU_RETURN_IF_ERROR(
	    read_range(c->node, "aspect_ratio_range", "Aspect ratio range", k->aspect, err));
	MU_RETURN_IF_ERROR(read_range(c->node, "area_range", "Area range", k->area, err));
	k->attempts = args_attr_int(c->node, "max_attempts", 100);
	k->min_covered = args_attr_float(c->node, "min_object_covered", 0.1f);
	if (c->n_in > 2)
		k->min_covered = *MU_DATA(float, kernel_in(c, 2));
	if (!(k->min_covered >= 0))
		return mu_invalid(err, "Min object covered must be non-negative");
	if (k->area[0] > 1 || k->area[1] > 1)
		return mu_invalid(err, "Area range must be less then or equal to 1.0: [%g, %g]",
				  (double)k->area[0], (double)k->area[1]);
	if (k->attempts < 1)
		return mu_invalid(err, "Max attempts must be non-negative: %lld",
				  (long long)k->attempts);
	if (k->attempts > MAX_ATTEMPTS)
		return mu_invalid(err, "max_attempts must be at most %d, not %lld", MAX_ATTEMPTS,
				  (long long)k->attempts);
	return 0;
}

static int read_image_size(const struct kernel_call *c, struct box_sampler *k, struct mu_err *err)
{
	int64_t size[3];

	k->type = kernel_in(c, 0)->dtype;
	convert(MU_INT64, size, k->type, kernel_in(c, 0)->data, 3);
	if (size[0] < 1 || size[1] < 1 || size[0] > 1 << 24 || size[1] > 1 << 24)
		return mu_invalid(err,
				  "image_size must be positive and below 2^24, not %lld by %lld",
				  (long long)size[0], (long long)size[1]);
	k->size[0] = (int)size[0];
	k->size[1] = (int)size[1];
	return 0;
}

static int read_boxes(const struct kernel_call *c, struct box_sampler *k, struct mu_err *err)
{
	const struct mu_tensor *b = kernel_in(c, 1);
	bool use_image = args_attr_bool(c->node, "use_image_if_no_bounding_boxes", false);

	if (b->shape.count && (b->shape.rank != 3 || b->shape.dim[2] != SIDES))
		return mu_invalid(
		    err, "input boxes must be 3-dimensional [batch, num_boxes, coords], not %s",
		    mu_shape_str(&b->shape));
	if (!b->shape.count && !use_image)
		return mu_invalid(err, "No bounding boxes provided as input. One must enable "
				       "use_image_if_no_bounding_boxes if you wish to not provide "
				       "any bounding boxes.");
	k->n = b->shape.count ? b->shape.count / SIDES : 1;
	if (k->n > MAX_COMPARISONS / k->attempts)
		return mu_invalid(err, "%lld attempts for %lld boxes are too many",
				  (long long)k->attempts, (long long)k->n);
	if (!(k->boxes = calloc((size_t)k->n, sizeof *k->boxes)))
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld boxes",
			       (long long)k->n);
	k->boxes[0] = (struct rect){.high = {k->size[0], k->size[1]}};
	for (int64_t i = 0; i < b->shape.count; i++) {
		float part = MU_DATA(float, b)[i];
		if (!(part >= 0 && part <= 1))
			return mu_invalid(err,
					  "All bounding box coordinates must be in [0.0, 1.0]: %g",
					  (double)part);
		struct rect *p = &k->boxes[i / SIDES];
		int axis = (int)(i % 2), at = (int)(part * (float)k->size[axis]);
		*(i % SIDES < 2 ? &p->low[axis] : &p->high[axis]) = at;
	}
	return 0;
}

static int put_size(struct kernel_call *c, unsigned i, enum mu_dtype t, const int64_t size[3],
		    struct mu_err *err)
{
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out_vec(c, i, t, 3, &out, err));
	for (int j = 0; j < 3; j++) /* little-endian: the low bytes come first */
		memcpy((char *)out->data + (size_t)j * elems_size(t), &size[j], elems_size(t));
	return 0;
}

static int put_rect(struct kernel_call *c, const struct box_sampler *k, const struct rect *p,
		    struct mu_err *err)
{
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(put_size(c, 0, k->type, (int64_t[]){p->low[0], p->low[1], 0}, err));
	MU_RETURN_IF_ERROR(put_size(
	    c, 1, k->type, (int64_t[]){p->high[0] - p->low[0], p->high[1] - p->low[1], -1}, err));
	MU_RETURN_IF_ERROR(kernel_out_dims(c, 2, MU_FLOAT, 3, (int64_t[]){1, 1, SIDES}, &out, err));
	for (int i = 0; i < SIDES; i++)
		MU_DATA(float, out)
	[i] = (float)(i < 2 ? p->low[i] : p->high[i - 2]) / (float)k->size[i % 2];
	return 0;
}

static int sample_and_put(struct kernel_call *c, const struct box_sampler *k, struct mu_err *err)
{
	struct philox from;

	MU_RETURN_IF_ERROR(c->n_in > 3
			       ? stateless_draws(c, 3, &from, err)
			       : node_draws(c->state, c, (uint64_t)k->attempts, &from, err));
	struct rect p = sample_crop(k, from);
	return put_rect(c, k, &p, err);
}

static int sample_box(struct kernel_call *c, struct mu_err *err)
{
	struct box_sampler k = {0};
	int rc;

	if (!(rc = read_sampling_attrs(c, &k, err)) && !(rc = read_image_size(c, &k, err)) &&
	    !(rc = read_boxes(c, &k, err)))
		rc = sample_and_put(c, &k, err);
	free(k.boxes);
	return rc;
}

/* ---- RandomCrop ---- */

static int random_crop(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int64_t size[2], at[2] = {0};
	struct philox_stream random = {0};
	struct mu_tensor *out;
	int n;

	MU_RETURN_IF_ERROR(args_ints(c, 1, size, 2, &n, err));
	for (int d = 0; d < 2; d++)
		if (size[d] < 0)
			return mu_invalid(err, "size must not be negative: %lld",
					  (long long)size[d]);
		else if (size[d] > in->shape.dim[d])
			return mu_fail(err, MU_FAILED_PRECONDITION,
				       "%s must be >= target_%s: %s = %lld, target_%s = %lld",
				       d ? "width" : "height", d ? "width" : "height",
				       d ? "width" : "height", (long long)in->shape.dim[d],
				       d ? "width" : "height", (long long)size[d]);
	MU_RETURN_IF_ERROR(node_draws(c->state, c, 1, &random.from, err));
	for (int d = 1; d >= 0; d--)
		if (size[d] < in->shape.dim[d])
			at[d] = philox_32(&random) % (in->shape.dim[d] - size[d] + 1);
	MU_RETURN_IF_ERROR(kernel_out_dims(
	    c, 0, in->dtype, 3, (int64_t[]){size[0], size[1], in->shape.dim[2]}, &out, err));
	for (int64_t y = 0; y < size[0]; y++)
		elems_copy(in->dtype, out->data, y * size[1] * in->shape.dim[2], in->data,
			   ((at[0] + y) * in->shape.dim[1] + at[1]) * in->shape.dim[2],
			   size[1] * in->shape.dim[2]);
	return 0;
}

static const struct kernel rows[] = {
    {"DrawBoundingBoxes DrawBoundingBoxesV2", KERNEL_EXPENSIVE, .run = draw_boxes},
    {"SampleDistortedBoundingBox SampleDistortedBoundingBoxV2", .run = sample_box,
     .prepare = node_state_prepare, .release = node_state_release},
    {"RandomCrop", .run = random_crop, .prepare = node_state_prepare,
     .release = node_state_release},
    {"StatelessSampleDistortedBoundingBox", .run = sample_box},
};
KERNEL_TABLE(image_boxes, rows)
