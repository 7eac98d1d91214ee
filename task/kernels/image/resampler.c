/* SPDX-License-Identifier: Apache-2.0 */
/* Resampler: bilinear samples of images at given positions, and their gradients.  Pixels outside an
 * image are zero.  The arithmetic is in double for all types. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"

enum { X, Y, AXES };

struct resampling {
	int64_t size[AXES], depth, points; /* points of each image */
	struct mu_tensor data, warp, grad; /* as double; grad is unset in the forward op */
	struct mu_tensor out, out_warp;
};

/* The four pixels around a position, and their weights. */
struct sampling_point {
	const double *pixel[2][2]; /* [y][x]; NULL: outside */
	double weight[AXES][2];
};

/* False if the position is at least one pixel outside, or NaN. */
static bool find_pixels(const struct resampling *r, int64_t point, struct sampling_point *s)
{
	const double *at = MU_DATA(double, &r->warp) + point * AXES;
	int64_t low[AXES];

	for (int a = X; a <= Y; a++) {
		if (!(at[a] > -1 && at[a] < (double)r->size[a]))
			return false;
		low[a] = (int64_t)floor(at[a]);
		s->weight[a][1] = at[a] - (double)low[a];
		s->weight[a][0] = 1 - s->weight[a][1];
	}
	int64_t image = point / r->points * r->size[Y];
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++) {
			int64_t y = low[Y] + i, x = low[X] + j;
			bool inside = y >= 0 && y < r->size[Y] && x >= 0 && x < r->size[X];
			s->pixel[i][j] = inside ? MU_DATA(double, &r->data) +
						      ((image + y) * r->size[X] + x) * r->depth
						: NULL;
		}
	return true;
}

static double pixel_value(const struct sampling_point *s, int i, int j, int64_t channel)
{
	return s->pixel[i][j] ? s->pixel[i][j][channel] : 0;
}

static void sample_points(void *arg, int64_t first, int64_t end)
{
	const struct resampling *r = arg;
	double *out = MU_DATA(double, &r->out);

	for (int64_t point = first; point < end; point++) {
		struct sampling_point s;
		bool inside = find_pixels(r, point, &s);
		for (int64_t c = 0; c < r->depth; c++) {
			double sum = 0;
			for (int i = 0; inside && i < 4; i++)
				sum += s.weight[Y][i / 2] * s.weight[X][i % 2] *
				       pixel_value(&s, i / 2, i % 2, c);
			out[point * r->depth + c] = sum;
		}
	}
}

/* Adds the gradients of one sample to its pixels and to its position. */
static void add_gradients(const struct resampling *r, int64_t point, const struct sampling_point *s)
{
	const double *grad = MU_DATA(double, &r->grad) + point * r->depth;
	double *to_warp = MU_DATA(double, &r->out_warp) + point * AXES;
	double *to_data = MU_DATA(double, &r->out);

	for (int64_t c = 0; c < r->depth; c++) {
		for (int i = 0; i < 2; i++) {
			to_warp[X] += grad[c] * s->weight[Y][i] *
				      (pixel_value(s, i, 1, c) - pixel_value(s, i, 0, c));
			to_warp[Y] += grad[c] * s->weight[X][i] *
				      (pixel_value(s, 1, i, c) - pixel_value(s, 0, i, c));
		}
		for (int i = 0; i < 4; i++) {
			const double *pixel = s->pixel[i / 2][i % 2];
			if (pixel)
				to_data[pixel - MU_DATA(double, &r->data) + c] +=
				    grad[c] * s->weight[Y][i / 2] * s->weight[X][i % 2];
		}
	}
}

static void sample_images_grad(void *arg, int64_t first, int64_t end)
{
	const struct resampling *r = arg;
	struct sampling_point s;

	for (int64_t point = first * r->points; point < end * r->points; point++)
		if (find_pixels(r, point, &s))
			add_gradients(r, point, &s);
}

static int read_resampling(struct kernel_call *c, struct resampling *r, struct mu_err *err)
{
	const struct mu_shape *data = &kernel_in(c, 0)->shape, *warp = &kernel_in(c, 1)->shape;

	if (warp->rank < 2)
		return mu_invalid(err, "warp should be at least a matrix, got shape %s",
				  mu_shape_str(warp));
	if (warp->dim[0] != data->dim[0])
		return mu_invalid(err,
				  "Batch size of data and warp tensor must be the same, but input "
				  "shapes are: %s, %s",
				  mu_shape_str(data), mu_shape_str(warp));
	r->size[Y] = data->dim[1];
	r->size[X] = data->dim[2];
	r->depth = data->dim[3];
	r->points = mu_shape_product(warp, 1, warp->rank - 1);
	MU_RETURN_IF_ERROR(convert_tensor(&r->data, MU_DOUBLE, kernel_in(c, 0), err));
	return convert_tensor(&r->warp, MU_DOUBLE, kernel_in(c, 1), err);
}

static int resampler_zeros(struct mu_tensor *out, const struct mu_shape *shape, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(mu_tensor_new(out, MU_DOUBLE, shape, err));
	memset(out->data, 0, (size_t)shape->count * sizeof(double));
	return 0;
}

static int resampler_put(struct kernel_call *c, unsigned i, const struct mu_tensor *from,
			 struct mu_err *err)
{
	enum mu_dtype type = kernel_in(c, 0)->dtype;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, i, type, &from->shape, &out, err));
	convert(type, out->data, MU_DOUBLE, from->data, from->shape.count);
	return 0;
}

static int run_resampler(struct kernel_call *c, struct resampling *r, struct mu_err *err)
{
	struct mu_shape shape = kernel_in(c, 1)->shape;

	MU_RETURN_IF_ERROR(read_resampling(c, r, err));
	MU_RETURN_IF_ERROR(mu_shape_splice(&shape, &shape, shape.rank - 1, 1, 1, &r->depth, err));
	MU_RETURN_IF_ERROR(resampler_zeros(&r->out, &shape, err));
	kernel_parallel(c, kernel_in(c, 0)->shape.dim[0] * r->points, 1 + 4096 / (r->depth + 1),
			sample_points, r);
	return resampler_put(c, 0, &r->out, err);
}

static int run_resampler_grad(struct kernel_call *c, struct resampling *r, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(read_resampling(c, r, err));
	MU_RETURN_IF_ERROR(convert_tensor(&r->grad, MU_DOUBLE, kernel_in(c, 2), err));
	MU_RETURN_IF_ERROR(resampler_zeros(&r->out, &r->data.shape, err));
	MU_RETURN_IF_ERROR(resampler_zeros(&r->out_warp, &r->warp.shape, err));
	kernel_parallel(c, r->data.shape.dim[0], 1, sample_images_grad, r);
	MU_RETURN_IF_ERROR(resampler_put(c, 0, &r->out, err));
	return resampler_put(c, 1, &r->out_warp, err);
}

static int with_resampling(struct kernel_call *c,
			   int (*run)(struct kernel_call *, struct resampling *, struct mu_err *),
			   struct mu_err *err)
{
	struct resampling r = {0};
	int rc = run(c, &r, err);

	mu_tensor_unref(&r.data);
	mu_tensor_unref(&r.warp);
	mu_tensor_unref(&r.grad);
	mu_tensor_unref(&r.out);
	mu_tensor_unref(&r.out_warp);
	return rc;
}

KERNEL_RUN(resampler, with_resampling(c, run_resampler, err))
KERNEL_RUN(resampler_grad, with_resampling(c, run_resampler_grad, err))

static const struct kernel rows[] = {
    {"Resampler", KERNEL_EXPENSIVE, .run = resampler},
    {"ResamplerGrad", KERNEL_EXPENSIVE, .run = resampler_grad},
};
KERNEL_TABLE(image_resampler, rows)
