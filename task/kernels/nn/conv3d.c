/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in three dimensions and their gradients. The input under an output position becomes
 * a row of a matrix, some positions at a time, and matrix products compute the sums. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/product.h"
#include "task/kernels/nn/checks.h"

enum { PATCH_BYTES = 1 << 20 };

struct conv3d {
	struct conv3d_sizes s;
	int64_t rows;          /* positions whose patches are built at a time */
	char *patches, *image; /* the input, or its gradient */
	int64_t first;         /* the position of the first patch */
};

static int conv3d_geometry(struct conv3d_sizes *g, const struct kernel_call *c, enum mu_dtype type,
			   const struct mu_shape *in, const struct mu_shape *filter,
			   struct mu_err *err)
{
	struct mu_shape out, patches;

	if (filter->rank != VOLUME_RANK)
		return mu_invalid(err, "filter must be 5-dimensional: %s", mu_shape_str(filter));
	*g = (struct conv3d_sizes){.filters = filter->dim[4]};
	MU_RETURN_IF_ERROR(volume_init(&g->v, c, type, in, filter->dim, err));
	if (filter->dim[3] != g->v.channels)
		return mu_invalid(err, "input and filter must have the same depth: %lld vs %lld",
				  (long long)g->v.channels, (long long)filter->dim[3]);
	MU_RETURN_IF_ERROR(volume_out_shape(&g->v, 1, &out, err));
	MU_RETURN_IF_ERROR(mu_shape_set(&patches, 4, filter->dim, err));
	g->positions = out.count;
	g->inner = patches.count;
	return 0;
}

/* Checks that the gradient has the shape of the forward op's output. */
static int conv3d_check_back(const struct kernel_call *c, const struct conv3d_sizes *g,
			     struct mu_err *err)
{
	const struct mu_tensor *grad = kernel_in(c, 2);
	struct mu_shape want;

	MU_RETURN_IF_ERROR(volume_out_shape(&g->v, g->filters, &want, err));
	if (mu_shape_eq(&want, &grad->shape))
		return 0;
	return mu_invalid(
	    err, "%s: Size of out_backprop doesn't match computed: actual = %s, computed = %s",
	    c->node->op, mu_shape_str(&grad->shape), mu_shape_str(&want));
}

int check_conv3d(const struct kernel_call *c, struct conv3d_sizes *g, struct mu_shape *shape,
		 struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *filter = kernel_in(c, 1);

	MU_RETURN_IF_ERROR(conv3d_geometry(g, c, in->dtype, &in->shape, &filter->shape, err));
	return volume_out_shape(&g->v, g->filters, shape, err);
}

/* The shape of the result: in version 1 of the op the shape of input i, else its value. */
static int conv3d_result_shape(const struct kernel_call *c, unsigned i, struct mu_shape *shape,
			       struct mu_err *err)
{
	if (kernel_in(c, i)->dtype == MU_INT32 || kernel_in(c, i)->dtype == MU_INT64)
		return args_shape(c, i, shape, err);
	*shape = kernel_in(c, i)->shape;
	return 0;
}

int check_conv3d_input(const struct kernel_call *c, struct conv3d_sizes *g, struct mu_shape *shape,
		       struct mu_err *err)
{
	const struct mu_tensor *filter = kernel_in(c, 1);

	MU_RETURN_IF_ERROR(conv3d_result_shape(c, 0, shape, err));
	MU_RETURN_IF_ERROR(conv3d_geometry(g, c, filter->dtype, shape, &filter->shape, err));
	return conv3d_check_back(c, g, err);
}

int check_conv3d_filter(const struct kernel_call *c, struct conv3d_sizes *g, struct mu_shape *shape,
			struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);

	MU_RETURN_IF_ERROR(conv3d_result_shape(c, 1, shape, err));
	MU_RETURN_IF_ERROR(conv3d_geometry(g, c, in->dtype, &in->shape, shape, err));
	return conv3d_check_back(c, g, err);
}

static int make_patches(struct conv3d *g, struct mu_err *err)
{
	int64_t patch_bytes = g->s.inner * (int64_t)g->s.v.size,
		rows = patch_bytes ? PATCH_BYTES / patch_bytes : 1;

	g->rows = rows < 1 ? 1 : rows < g->s.positions ? rows : g->s.positions;
	g->patches = malloc((size_t)(g->rows * patch_bytes) + 1);
	return g->patches ? 0
			  : mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for patches of %lld",
				    (long long)patch_bytes);
}

struct patch {
	const struct conv3d *g;
	char *at;
};

static void copy_patch_tap(void *arg, int64_t tap, int64_t channels_at)
{
	const struct patch *p = arg;
	size_t size = p->g->s.v.size, n = (size_t)p->g->s.v.channels * size;

	memcpy(p->at + (size_t)tap * n, p->g->image + (size_t)channels_at * size, n);
}

static void add_patch_tap(void *arg, int64_t tap, int64_t channels_at)
{
	const struct patch *p = arg;
	const struct volume *v = &p->g->s.v;
	char *to = p->g->image + (size_t)channels_at * v->size;

	loops->binary[BIN_AddV2][v->type](to, to, p->at + (size_t)(tap * v->channels) * v->size,
					  v->channels, BOTH_RUN);
}

static void fill_patches(void *arg, int64_t from, int64_t to)
{
	const struct conv3d *g = arg;
	size_t patch_bytes = (size_t)g->s.inner * g->s.v.size;

	for (int64_t i = from; i < to; i++) {
		struct patch p = {g, g->patches + (size_t)i * patch_bytes};
		memset(p.at, 0, patch_bytes);
		volume_taps(&g->s.v, g->first + i, copy_patch_tap, &p);
	}
}

static void add_patches(const struct conv3d *g, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		struct patch p = {g, g->patches + (size_t)(i * g->s.inner) * g->s.v.size};
		volume_taps(&g->s.v, g->first + i, add_patch_tap, &p);
	}
}

enum direction { FORWARD, TO_INPUT, TO_FILTER };

/* grad: the tensor with the shape of the output. */
static int conv3d_run(struct kernel_call *c, struct conv3d *g, enum direction dir, void *image,
		      void *filter, void *grad, struct mu_err *err)
{
	const size_t line = (size_t)g->s.filters * g->s.v.size;
	struct product p = {.n = g->s.filters, .k = g->s.inner};
	int rc;

	if (!g->s.filters || !g->s.inner) {
		if (dir == FORWARD)
			memset(grad, 0, (size_t)g->s.positions * line);
		return 0;
	}
	rc = make_patches(g, err);
	g->image = image;
	for (int64_t n; !rc && g->first < g->s.positions; g->first += n) {
		char *out = (char *)grad + (size_t)g->first * line;
		n = g->s.positions - g->first < g->rows ? g->s.positions - g->first : g->rows;
		if (dir == TO_INPUT) {
			p = (struct product){
			    .m = n, .n = g->s.inner, .k = g->s.filters, .trans_b = true};
			product_in_parallel(c, g->s.v.type, &p, out, filter, g->patches);
			add_patches(g, n);
			continue;
		}
		kernel_parallel(c, n, 1 + 16384 / (g->s.inner + 1), fill_patches, g);
		if (dir == FORWARD) {
			p.m = n;
			product_in_parallel(c, g->s.v.type, &p, g->patches, filter, out);
		} else {
			p = (struct product){.m = g->s.inner,
					     .n = g->s.filters,
					     .k = n,
					     .trans_a = true,
					     .add = true};
			product_in_parallel(c, g->s.v.type, &p, g->patches, out, filter);
		}
	}
	free(g->patches);
	return rc;
}

static int conv3d_forward(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *filter = kernel_in(c, 1);
	struct conv3d g = {0};
	struct mu_tensor *out;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(check_conv3d(c, &g.s, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &shape, &out, err));
	return shape.count ? conv3d_run(c, &g, FORWARD, in->data, filter->data, out->data, err) : 0;
}

static int new_zero_output(struct kernel_call *c, const struct conv3d *g,
			   const struct mu_shape *shape, struct mu_tensor **sum, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(kernel_out(c, 0, g->s.v.type, shape, sum, err));
	if (shape->count)
		memset((*sum)->data, 0, (size_t)shape->count * g->s.v.size);
	return 0;
}

static int conv3d_input(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *filter = kernel_in(c, 1), *grad = kernel_in(c, 2);
	struct conv3d g = {0};
	struct mu_tensor *out;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(check_conv3d_input(c, &g.s, &shape, err));
	MU_RETURN_IF_ERROR(new_zero_output(c, &g, &shape, &out, err));
	return shape.count ? conv3d_run(c, &g, TO_INPUT, out->data, filter->data, grad->data, err)
			   : 0;
}

static int conv3d_filter(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *grad = kernel_in(c, 2);
	struct conv3d g = {0};
	struct mu_tensor *out;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(check_conv3d_filter(c, &g.s, &shape, err));
	MU_RETURN_IF_ERROR(new_zero_output(c, &g, &shape, &out, err));
	return shape.count ? conv3d_run(c, &g, TO_FILTER, in->data, out->data, grad->data, err) : 0;
}

#define ROW(op, fn)                                                                                \
	{                                                                                          \
		op, KERNEL_EXPENSIVE, .run = fn, .prepare = volume_prepare                         \
	}
static const struct kernel rows[] = {
    ROW("Conv3D", conv3d_forward),
    ROW("Conv3DBackpropInputV2 Conv3DBackpropInput", conv3d_input),
    ROW("Conv3DBackpropFilterV2 Conv3DBackpropFilter", conv3d_filter),
};
KERNEL_TABLE(nn_conv3d, rows)
