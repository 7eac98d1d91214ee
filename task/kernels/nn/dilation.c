/* SPDX-License-Identifier: Apache-2.0 */
/* Grey dilation: each output is the largest sum of a pixel under the window and the filter's value
 * there, per channel. The gradient of an output is added to the pixel, or to the filter element, of
 * the first largest sum. The gradient kernels search for that sum again.
 *
 * Threads divide the rows of the output; for gradients they divide channels. Each channel's
 * gradients are added in the order of positions, so results do not depend on the number of threads.
 */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/real_types.h"
#include "task/kernels/nn/window.h"

enum dilation_output { MAXIMUM, INPUT_GRADIENT, FILTER_GRADIENT };

struct dilation {
	struct window_axis axis[WINDOW_AXES];
	int64_t batch, depth;
	enum dilation_output output;
	const void *in, *filter, *grad;
	void *out;
	void (*run)(const struct dilation *p, const int64_t rows[2], const int64_t channels[2]);
};

/* The window of an output position: its first row and column in the input, and the range of taps
 * inside the input. */
struct patch_position {
	int64_t begin[WINDOW_AXES], from[WINDOW_AXES], to[WINDOW_AXES];
};

static struct patch_position position_at(const struct dilation *p, int64_t row, int64_t column)
{
	struct patch_position s;

	s.begin[0] = window_clip(&p->axis[0], row, &s.from[0], &s.to[0]);
	s.begin[1] = window_clip(&p->axis[1], column, &s.from[1], &s.to[1]);
	return s;
}

static int64_t pixel_of(const struct dilation *p, const struct patch_position *s, int64_t image,
			int64_t i, int64_t j)
{
	const struct window_axis *y = &p->axis[0], *x = &p->axis[1];
	int64_t row = s->begin[0] + (i - s->from[0]) * y->dilation;
	int64_t column = s->begin[1] + (j - s->from[1]) * x->dilation;

	return (image * y->in + row) * x->in + column;
}

/* The element that gets the gradient if no sum exceeds the lowest number: the corner of the window,
 * even if the filter has no tap there. */
static int64_t corner_of(const struct dilation *p, const struct patch_position *s, int64_t image)
{
	int64_t at[WINDOW_AXES];

	for (int i = 0; i < WINDOW_AXES; i++) {
		at[i] = s->begin[i] - s->from[i] * p->axis[i].dilation;
		at[i] = at[i] < 0 ? 0 : at[i];
	}
	return (image * p->axis[0].in + at[0]) * p->axis[1].in + at[1];
}

#define DILATE(T, dt, lowest, U)                                                                   \
	static void dilate_##T(const struct dilation *p, const int64_t rows[2],                    \
			       const int64_t channels[2])                                          \
	{                                                                                          \
		const T *in = p->in, *filter = p->filter, *grad = p->grad;                         \
		T *out = p->out;                                                                   \
		for (int64_t n = rows[0] * p->axis[1].out; n < rows[1] * p->axis[1].out; n++) {    \
			int64_t row = n / p->axis[1].out, image = row / p->axis[0].out;            \
			struct patch_position s =                                                  \
			    position_at(p, row % p->axis[0].out, n % p->axis[1].out);              \
			for (int64_t d = channels[0]; d < channels[1]; d++) {                      \
				T best = lowest;                                                   \
				int64_t pixel = corner_of(p, &s, image), tap = 0;                  \
				for (int64_t i = s.from[0]; i < s.to[0]; i++)                      \
					for (int64_t j = s.from[1]; j < s.to[1]; j++) {            \
						int64_t at = pixel_of(p, &s, image, i, j);         \
						int64_t k = i * p->axis[1].size + j;               \
						T sum = (T)((U)in[at * p->depth + d] +             \
							    (U)filter[k * p->depth + d]);          \
						if (!(sum > best))                                 \
							continue;                                  \
						best = sum;                                        \
						pixel = at;                                        \
						tap = k;                                           \
					}                                                          \
				int64_t from = n * p->depth + d;                                   \
				int64_t to =                                                       \
				    (p->output == INPUT_GRADIENT ? pixel : tap) * p->depth + d;    \
				if (p->output == MAXIMUM)                                          \
					out[from] = best;                                          \
				else                                                               \
					out[to] = (T)((U)out[to] + (U)grad[from]);                 \
			}                                                                          \
		}                                                                                  \
	}
REAL_TYPES(DILATE)

typedef void dilate_fn(const struct dilation *p, const int64_t rows[2], const int64_t channels[2]);
#define ROW(T, dt, ...) [dt] = dilate_##T,
static dilate_fn *const dilate_functions[MU_DT_COUNT] = {REAL_TYPES(ROW)};

static void dilate_rows(void *arg, int64_t from, int64_t to)
{
	const struct dilation *p = arg;

	p->run(p, (int64_t[]){from, to}, (int64_t[]){0, p->depth});
}

static void dilate_channels(void *arg, int64_t from, int64_t to)
{
	const struct dilation *p = arg;

	p->run(p, (int64_t[]){0, p->batch * p->axis[0].out}, (int64_t[]){from, to});
}

/* Reads strides or rates: four numbers, of which those of batch and channels must be 1. */
static int read_list(const struct mu_node *n, const char *name, int64_t *out, struct mu_err *err)
{
	int64_t values[4];

	if (args_attr_ints(n, name, values, 4) != 4)
		return mu_invalid(err, "%s must specify 4 dimensions", name);
	if (values[0] != 1 || values[3] != 1)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "%s is only supported across spatial dimensions.",
			       *name == 's' ? "Stride" : "Rate");
	if (values[1] < 1 || values[2] < 1)
		return mu_invalid(err, "%s must be positive", name);
	out[0] = values[1];
	out[1] = values[2];
	return 0;
}

static int check_dilation(const struct kernel_call *c, struct dilation *p, struct mu_shape *shape,
			  struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape, *filter = &kernel_in(c, 1)->shape;
	const char *padding = args_attr_string(c->node, "padding", "");
	struct window_attrs a = {.padding = strcmp(padding, "SAME") ? WINDOW_VALID : WINDOW_SAME};

	MU_RETURN_IF_ERROR(read_list(c->node, "strides", a.stride, err));
	MU_RETURN_IF_ERROR(read_list(c->node, "rates", a.dilation, err));
	if (strcmp(padding, "SAME") && strcmp(padding, "VALID"))
		return mu_invalid(err, "padding must be SAME or VALID, not %.40s", padding);
	if (!filter->dim[0] || !filter->dim[1]) /* all windows would be outside the image */
		return mu_invalid(err, "filter must not be empty: %s", mu_shape_str(filter));
	for (int i = 0; i < WINDOW_AXES; i++)
		MU_RETURN_IF_ERROR(
		    window_axis_set(&p->axis[i], &a, i, in->dim[1 + i], filter->dim[i], err));
	p->batch = in->dim[0];
	p->depth = in->dim[3];
	p->run = dilate_functions[kernel_in(c, 0)->dtype];
	if (!p->run)
		return args_no_kernel(c, kernel_in(c, 0)->dtype, err);
	return mu_shape_set(shape, 4,
			    (int64_t[]){p->batch, p->axis[0].out, p->axis[1].out, p->depth}, err);
}

static int dilation_largest(struct kernel_call *c, struct mu_err *err)
{
	struct dilation p = {.in = kernel_in(c, 0)->data, .filter = kernel_in(c, 1)->data};
	struct mu_tensor *out;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(check_dilation(c, &p, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, kernel_in(c, 0)->dtype, &shape, &out, err));
	if (!shape.count)
		return 0;
	p.out = out->data;
	kernel_parallel(c, p.batch * p.axis[0].out, 1 + (1 << 12) / (p.axis[1].out * p.depth),
			dilate_rows, &p);
	return 0;
}

/* Computes the gradient by input i, which has the shape of that input. */
static int dilation_gradient(struct kernel_call *c, unsigned i, struct mu_err *err)
{
	const struct mu_tensor *input = kernel_in(c, i), *grad = kernel_in(c, 2);
	struct dilation p = {.in = kernel_in(c, 0)->data,
			     .filter = kernel_in(c, 1)->data,
			     .grad = grad->data,
			     .output = i ? FILTER_GRADIENT : INPUT_GRADIENT};
	struct mu_tensor *out;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(check_dilation(c, &p, &shape, err));
	if (!mu_shape_eq(&shape, &grad->shape))
		return mu_invalid(err, "out_backprop has incompatible size. It is %s, not %s",
				  mu_shape_str(&grad->shape), mu_shape_str(&shape));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, input->dtype, &input->shape, &out, err));
	if (!input->shape.count)
		return 0;
	elems_zero(input->dtype, out->data, 0, input->shape.count);
	p.out = out->data;
	if (shape.count)
		kernel_parallel(c, p.depth, 1 + (1 << 12) * p.depth / shape.count, dilate_channels,
				&p);
	return 0;
}

KERNEL_RUN(dilation_input_grad, dilation_gradient(c, 0, err))
KERNEL_RUN(dilation_filter_grad, dilation_gradient(c, 1, err))

static const struct kernel rows[] = {
    {"Dilation2D", KERNEL_EXPENSIVE, .run = dilation_largest},
    {"Dilation2DBackpropInput", KERNEL_EXPENSIVE, .run = dilation_input_grad},
    {"Dilation2DBackpropFilter", KERNEL_EXPENSIVE, .run = dilation_filter_grad},
};
KERNEL_TABLE(nn_dilation, rows)
