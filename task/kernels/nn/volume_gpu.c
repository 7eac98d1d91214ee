/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and pools in three dimensions on a GPU.  A convolution goes by patches of so many
 * positions and matrix products, and so does its filter's gradient; the input's is summed by a
 * thread for each element. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/gpu_matmul.h"
#include "task/kernels/nn/checks.h"

enum { PATCH_BYTES = 64 << 20 };

struct state {
	struct volume_attrs attrs; /* first: what volume_set looks for */
	struct gpu_matmul by;
};

static int conv3d_gpu_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			      struct mu_err *err)
{
	struct gpu_matmul by;
	void *attrs;
	int rc = volume_prepare(n, rt, &attrs, err);

	if (rc)
		return rc;
	rc = gpu_matmul_init(&by, gpu_of_node(n, rt), args_attr_type(n, "T", MU_DT_INVALID), err);
	if (!rc) {
		struct state *s = MU_NEW(struct state);
		s->attrs = *(struct volume_attrs *)attrs;
		s->by = by;
		*state = s;
	}
	free(attrs);
	return rc;
}

static void conv3d_gpu_release(void *state)
{
	gpu_matmul_fini(&((struct state *)state)->by);
	free(state);
}

static struct window_axis_args volume_gpu_axis_args(const struct window_axis *x)
{
	return (struct window_axis_args){x->in, x->size, x->stride, x->dilation, x->out, x->pad};
}

static struct volume_args volume_args_of(const struct volume *v)
{
	struct volume_args a = {.channels = v->channels};

	for (int i = 0; i < VOLUME_AXES; i++)
		a.axis[i] = volume_gpu_axis_args(&v->axis[i]);
	return a;
}

static int volume_gpu_launch(struct kernel_call *c, const char *name, enum mu_dtype t,
			     const struct volume_args *a, struct mu_err *err)
{
	void *kernel;
	int rc = gpu_find(gpu_here(c), name, t, &kernel, err);

	return rc ? rc : gpu_run(gpu_here(c), kernel, a->n, a, err);
}

/* ---- pools ---- */

static int pool3d_gpu(struct kernel_call *c, const char *name, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;
	struct mu_shape shape;
	struct volume v;
	int rc;

	if ((rc = check_pool3d(c, &v, &shape, err)) ||
	    (rc = gpu_out(c, 0, in->dtype, &shape, &out, err)))
		return rc;
	struct volume_args a = volume_args_of(&v);
	a.out = gpu_address(out);
	a.in = gpu_address(in);
	a.n = shape.count;
	return volume_gpu_launch(c, name, in->dtype, &a, err);
}

static int max_pool3d_gpu(struct kernel_call *c, struct mu_err *err)
{
	return pool3d_gpu(c, "max_pool3d", err);
}

static int avg_pool3d_gpu(struct kernel_call *c, struct mu_err *err)
{
	return pool3d_gpu(c, "avg_pool3d", err);
}

/* Input `at` is the gradient. */
static int pool_back(struct kernel_call *c, const char *name, const struct volume *v,
		     const struct mu_shape *in, unsigned at, struct volume_args *a,
		     struct mu_err *err)
{
	struct mu_tensor *out;
	int rc = gpu_out(c, 0, v->type, in, &out, err);

	if (rc)
		return rc;
	a->out = gpu_address(out);
	a->grad = gpu_address(kernel_in(c, at));
	a->n = in->count;
	return volume_gpu_launch(c, name, v->type, a, err);
}

static int max_pool3d_grad_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape in;
	struct volume v;
	int rc = check_max_pool3d_grad(c, &v, &in, err);

	if (rc)
		return rc;
	struct volume_args a = volume_args_of(&v);
	a.in = gpu_address(kernel_in(c, 0));
	a.top = gpu_address(kernel_in(c, 1));
	return pool_back(c, "max_pool3d_back", &v, &in, 2, &a, err);
}

static int avg_pool3d_grad_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape in;
	struct volume v;
	int rc = check_avg_pool3d_grad(c, &v, &in, err);

	if (rc)
		return rc;
	struct volume_args a = volume_args_of(&v);
	return pool_back(c, "avg_pool3d_back", &v, &in, 1, &a, err);
}

/* ---- convolutions ---- */

/* Patches of the input [first, first + n), and what they are multiplied with: the filter, or the
 * gradient at these positions. */
struct patches {
	const struct conv3d_sizes *s;
	struct mu_tensor made;
	int64_t rows, first, n;
};

static int patches_begin(struct kernel_call *c, const struct conv3d_sizes *s, struct patches *p,
			 struct mu_err *err)
{
	const int64_t each = s->inner * (int64_t)s->v.size;

	*p = (struct patches){.s = s, .rows = each ? PATCH_BYTES / each : 1};
	p->rows = p->rows < 1 ? 1 : p->rows < s->positions ? p->rows : s->positions;
	return gpu_scratch(c, s->v.type, p->rows * s->inner, &p->made, err);
}

static int patches_make(struct kernel_call *c, struct patches *p, struct mu_err *err)
{
	struct volume_args a = volume_args_of(&p->s->v);
	const int64_t left = p->s->positions - p->first;

	p->n = left < p->rows ? left : p->rows;
	a.out = gpu_address(&p->made);
	a.in = gpu_address(kernel_in(c, 0));
	a.first = p->first;
	a.n = p->n * p->s->inner;
	return volume_gpu_launch(c, "patches3d", p->s->v.type, &a, err);
}

static int volume_gpu_multiply(struct kernel_call *c, const struct gpu_matmul *m,
			       const struct product *p, uint64_t out, uint64_t x, uint64_t y,
			       struct mu_err *err)
{
	struct matmul_args a = {.out = out, .a = x, .b = y};
	bool activate;

	return gpu_matmul_run(m, p, &a, c->node->name, &activate, err);
}

static int volume_gpu_forward(struct kernel_call *c, const struct gpu_matmul *m, struct patches *p,
			      const struct mu_tensor *out, struct mu_err *err)
{
	const struct conv3d_sizes *s = p->s;
	int rc = 0;

	for (; !rc && p->first < s->positions; p->first += p->n) {
		if ((rc = patches_make(c, p, err)))
			break;
		struct product by = {.m = p->n, .n = s->filters, .k = s->inner};
		rc = volume_gpu_multiply(
		    c, m, &by, gpu_address(out) + (uint64_t)(p->first * s->filters) * s->v.size,
		    gpu_address(&p->made), gpu_address(kernel_in(c, 1)), err);
	}
	return rc;
}

/* The first product goes to the output, each later one is added to it. */
static int to_filter_gpu(struct kernel_call *c, const struct gpu_matmul *m, struct patches *p,
			 const struct mu_tensor *out, struct mu_err *err)
{
	const struct conv3d_sizes *s = p->s;
	MU_AUTO_TENSOR more = {0};
	void *add;
	int rc = gpu_find(m->gpu, "AddV2", s->v.type, &add, err);

	if (!rc && p->rows < s->positions)
		rc = gpu_scratch(c, s->v.type, out->shape.count, &more, err);
	for (; !rc && p->first < s->positions; p->first += p->n) {
		struct binary_args sum = {.out = gpu_address(out),
					  .a = gpu_address(out),
					  .b = gpu_address(&more),
					  .n = out->shape.count,
					  .a_step = 1,
					  .b_step = 1};
		if ((rc = patches_make(c, p, err)))
			break;
		struct product by = {.m = s->inner, .n = s->filters, .k = p->n, .trans_a = true};
		rc = volume_gpu_multiply(
		    c, m, &by, p->first ? sum.b : sum.out, gpu_address(&p->made),
		    gpu_address(kernel_in(c, 2)) + (uint64_t)(p->first * s->filters) * s->v.size,
		    err);
		if (!rc && p->first)
			rc = gpu_run(m->gpu, add, sum.n, &sum, err);
	}
	return rc;
}

typedef int by_patches(struct kernel_call *c, const struct gpu_matmul *m, struct patches *p,
		       const struct mu_tensor *out, struct mu_err *err);

static int in_patches(struct kernel_call *c, const struct conv3d_sizes *s, by_patches *run,
		      const struct mu_tensor *out, struct mu_err *err)
{
	const struct state *st = c->state;
	struct patches p = {0};
	int rc = patches_begin(c, s, &p, err);

	if (!rc)
		rc = run(c, &st->by, &p, out, err);
	mu_tensor_unref(&p.made);
	return rc;
}

static int conv3d_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct conv3d_sizes s;
	struct mu_tensor *out;
	struct mu_shape shape;
	int rc;

	if ((rc = check_conv3d(c, &s, &shape, err)) ||
	    (rc = gpu_out(c, 0, s.v.type, &shape, &out, err)) || !shape.count)
		return rc;
	return s.inner ? in_patches(c, &s, volume_gpu_forward, out, err)
		       : gpu_fill(gpu_here(c), out, 0, err);
}

static int conv3d_filter_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct conv3d_sizes s;
	struct mu_tensor *out;
	struct mu_shape shape;
	int rc;

	if ((rc = check_conv3d_filter(c, &s, &shape, err)) ||
	    (rc = gpu_out(c, 0, s.v.type, &shape, &out, err)) || !shape.count)
		return rc;
	return s.positions ? in_patches(c, &s, to_filter_gpu, out, err)
			   : gpu_fill(gpu_here(c), out, 0, err);
}

static int conv3d_input_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct conv3d_sizes s;
	struct mu_tensor *out;
	struct mu_shape shape;
	int rc;

	if ((rc = check_conv3d_input(c, &s, &shape, err)) ||
	    (rc = gpu_out(c, 0, s.v.type, &shape, &out, err)))
		return rc;
	struct volume_args a = volume_args_of(&s.v);
	a.out = gpu_address(out);
	a.top = gpu_address(kernel_in(c, 1));
	a.grad = gpu_address(kernel_in(c, 2));
	a.filters = s.filters;
	a.n = shape.count;
	return volume_gpu_launch(c, "conv3d_back", s.v.type, &a, err);
}

/* `host`: sizes. */
#define CONV(name, fn, host)                                                                       \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = conv3d_gpu_prepare,                              \
		      .release = conv3d_gpu_release},                                              \
		.type_attr = "T", .types = GPU_REAL, .host_in = host                               \
	}
#define ROW(name, fn, host)                                                                        \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = volume_prepare}, .type_attr = "T",               \
		.types = GPU_REAL, .host_in = host                                                 \
	}
static const struct gpu_kernel rows[] = {
    CONV("Conv3D", conv3d_gpu, 0),
    CONV("Conv3DBackpropInputV2", conv3d_input_gpu, 1 << 0),
    CONV("Conv3DBackpropFilterV2", conv3d_filter_gpu, 1 << 1),
    ROW("MaxPool3D", max_pool3d_gpu, 0),
    ROW("AvgPool3D", avg_pool3d_gpu, 0),
    ROW("MaxPool3DGrad", max_pool3d_grad_gpu, 0),
    ROW("AvgPool3DGrad", avg_pool3d_grad_gpu, 1 << 0),
};
GPU_KERNEL_TABLE(nn_volume_gpu, rows)
