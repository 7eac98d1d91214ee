/* SPDX-License-Identifier: Apache-2.0 */
/* Glimpses: a window of a fixed size at an offset in each image. Pixels outside the image are zero
 * or unseeded noise in the range of the image's pixels. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/random/draw.h"
#include "task/kernels/random/node_state.h"

enum noise { NOISE_UNIFORM, NOISE_GAUSSIAN, NOISE_ZERO };
static const char *const noise_names[] = {"uniform", "gaussian", "zero"};

struct glimpse {
	bool centered, normalized, is_v2; /* is_v2: ExtractGlimpseV2 */
	enum noise noise;
	int64_t in[2], size[2], depth;
};

/* The first pixel of the window along an axis.  In ExtractGlimpse the offset is that of the
 * window's centre.  In ExtractGlimpseV2 it is so only if centered and normalized; else it is that
 * of the window's first pixel. */
static int64_t first_pixel(const struct glimpse *g, int axis, float offset)
{
	float n = (float)g->in[axis], window = (float)g->size[axis];
	bool half = g->centered && (g->normalized || !g->is_v2);

	if (g->normalized)
		offset *= n;
	if (half)
		offset /= 2;
	if (g->centered)
		offset += n / 2;
	if (half || !g->is_v2)
		offset -= window / 2;
	return !(offset > -1e9f) ? -1000000000 : !(offset < 1e9f) ? 1000000000 : (int64_t)offset;
}

static void fill_noise(const struct glimpse *g, const struct mu_tensor *in, struct mu_tensor *out,
		       struct philox from)
{
	struct philox_stream random = {.from = from};
	const float *x = in->data;
	double sum = 0, squares = 0, normals[2];
	float low = x[0], high = x[0];

	for (int64_t i = 0; i < in->shape.count; i++) {
		low = fminf(low, x[i]);
		high = fmaxf(high, x[i]);
		sum += x[i];
		squares += (double)x[i] * x[i];
	}
	double mean = sum / (double)in->shape.count;
	double stddev = sqrt(fmax(squares / (double)in->shape.count - mean * mean, 0));
	for (int64_t i = 0; i < out->shape.count; i++) {
		if (g->noise == NOISE_UNIFORM) {
			MU_DATA(float, out)
			[i] = low + (high - low) * philox_float(philox_32(&random));
			continue;
		}
		if (i % 2 == 0)
			draw_two_normals(&random.from, normals);
		MU_DATA(float, out)[i] = (float)(mean + stddev * normals[i % 2]);
	}
}

static void glimpse_cut(const struct glimpse *g, const struct mu_tensor *in, int64_t image,
			const int64_t first[2], struct mu_tensor *out)
{
	int64_t left = first[1] < 0 ? -first[1] : 0;
	int64_t right = g->in[1] - first[1] < g->size[1] ? g->in[1] - first[1] : g->size[1];

	for (int64_t i = 0; i < g->size[0] && left < right; i++) {
		int64_t row = first[0] + i;
		if (row < 0 || row >= g->in[0])
			continue;
		int64_t from = (image * g->in[0] + row) * g->in[1] + first[1] + left;
		int64_t to = (image * g->size[0] + i) * g->size[1] + left;
		elems_copy(MU_FLOAT, out->data, to * g->depth, in->data, from * g->depth,
			   (right - left) * g->depth);
	}
}

static int read_glimpse(const struct kernel_call *c, struct glimpse *g, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	const char *noise = args_attr_string(c->node, "noise", "uniform");
	bool is_uniform = args_attr_bool(c->node, "uniform_noise", true);
	int n = 0;

	MU_RETURN_IF_ERROR(args_ints(c, 1, g->size, 2, &n, err));
	if (g->size[0] < 1 || g->size[1] < 1)
		return mu_invalid(err, "size must be two positive numbers: height and width");
	if (!*noise)
		noise = is_uniform ? "uniform" : "gaussian";
	else if (is_uniform && strcmp(noise, "uniform") != 0)
		return mu_invalid(
		    err, "The uniform_noise and noise could not be specified at the same time");
	while (g->noise < MU_COUNT(noise_names) && strcmp(noise, noise_names[g->noise]))
		g->noise++;
	if (g->noise == MU_COUNT(noise_names))
		return mu_invalid(
		    err, "The noise could only be uniform, gaussian, or zero, got %.40s", noise);
	memcpy(g->in, in->dim + 1, sizeof g->in);
	g->depth = in->dim[3];
	g->centered = args_attr_bool(c->node, "centered", true);
	g->normalized = args_attr_bool(c->node, "normalized", true);
	g->is_v2 = strcmp(c->node->op, "ExtractGlimpseV2") == 0;
	return 0;
}

static int glimpse_extract(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct glimpse g = {0};
	struct mu_shape shape;
	struct mu_tensor *out;
	struct philox from;

	MU_RETURN_IF_ERROR(read_glimpse(c, &g, err));
	MU_RETURN_IF_ERROR(mu_shape_set(
	    &shape, 4, (int64_t[]){in->shape.dim[0], g.size[0], g.size[1], g.depth}, err));
	MU_RETURN_IF_ERROR(node_draws(c->state, c, (uint64_t)shape.count + 1, &from, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &shape, &out, err));
	if (g.noise == NOISE_ZERO || !in->shape.count)
		elems_zero(MU_FLOAT, out->data, 0, shape.count);
	else
		fill_noise(&g, in, out, from);
	for (int64_t p = 0; p < in->shape.dim[0]; p++) {
		const float *at = MU_DATA(float, kernel_in(c, 2)) + 2 * p;
		int64_t first[2] = {first_pixel(&g, 0, at[0]), first_pixel(&g, 1, at[1])};
		glimpse_cut(&g, in, p, first, out);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"ExtractGlimpse ExtractGlimpseV2", KERNEL_NO_FOLD, .run = glimpse_extract,
     .prepare = node_state_prepare, .release = node_state_release},
};
KERNEL_TABLE(image_glimpse, rows)
