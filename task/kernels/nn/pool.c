/* SPDX-License-Identifier: Apache-2.0 */
/* As in TensorFlow, the maximum of a window in two dimensions is the first of its largest elements
 * in row order, and only this element gets the gradient.  In three dimensions all elements that
 * equal the maximum get it. */
#include "task/kernels/nn/pool.h"

#include <string.h>

#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/real_types.h"

/* The part of an output position's window that is inside the image: planes [z0, z1), rows [y0, y1),
 * columns [x0, x1). */
struct area {
	int64_t z0, z1, y0, y1, x0, x1;
};

/* The largest elements of windows, for one type. */
struct max_loops {
	double lowest; /* the maximum of a window without elements */
	int64_t (*largest)(const struct pool *p, const struct area *a, const void *in, int64_t ch);
	void (*back)(const struct pool *p, int64_t image, const struct area *a, const void *grad);
	void (*pick)(const struct pool *p, int64_t image, const struct area *a, void *out);
	/* out[i] = in[i] where in[i] is larger. */
	void (*skip_nan)(void *out, const void *in, int64_t n);
};
static const struct max_loops max_loops[MU_DT_COUNT];

bool pool_has_maximum(enum mu_dtype t)
{
	return max_loops[t].largest != NULL;
}

/* True for 2 by 2 windows with strides 2 and no padding, the usual ones.  Their loops are 1.2
 * to 1.7 times as fast as the general ones; the loop of MaxPool's gradient is 16 times as fast. */
static bool is_by_two(const struct pool *p)
{
	const struct window_axis *axes[] = {&p->row, &p->column};

	if (p->is_3d || !loops->pool[p->type].max)
		return false;
	for (int i = 0; i < 2; i++)
		if (axes[i]->size != 2 || axes[i]->stride != 2 || axes[i]->pad ||
		    axes[i]->in != 2 * axes[i]->out)
			return false;
	return true;
}

static int64_t area_count(const struct area *a)
{
	return (a->z1 - a->z0) * (a->y1 - a->y0) * (a->x1 - a->x0);
}

/* The part [*from, *to) of the axis in the window at output position i. */
static inline void window_of(const struct pool *p, const struct window_axis *x,
			     const int64_t *bounds, int64_t i, int64_t *from, int64_t *to)
{
	if (bounds) {
		int64_t end = bounds[i + 1] + (p->overlapping ? 1 : 0);
		*from = bounds[i];
		*to = end < x->in ? end : x->in;
		return;
	}
	int64_t first, last, at = window_clip(x, i, &first, &last);
	*from = at;
	*to = at + last - first;
}

/* Sets the planes and rows of a line of output positions; lines are counted over images and planes.
 */
static inline void area_of_line(const struct pool *p, int64_t line, struct area *a)
{
	window_of(p, &p->plane, NULL, line / p->row.out % p->plane.out, &a->z0, &a->z1);
	window_of(p, &p->row, p->row_bounds, line % p->row.out, &a->y0, &a->y1);
}

/* Sets the columns of position j.  Returns false if no part of the window is in the image. */
static inline bool area_of_column(const struct pool *p, int64_t j, struct area *a)
{
	window_of(p, &p->column, p->column_bounds, j, &a->x0, &a->x1);
	return a->x0 < a->x1 && a->y0 < a->y1 && a->z0 < a->z1;
}

static size_t pixel_at(const struct pool *p, int64_t image, int64_t z, int64_t y, int64_t x)
{
	return (size_t)((((image * p->plane.in + z) * p->row.in + y) * p->column.in + x) *
			p->channels) *
	       p->size;
}

static void pool_fill(const struct pool *p, char *to, double value)
{
	uint64_t one = 0;

	convert(p->type, &one, MU_DOUBLE, &value, 1);
	elems_fill(p->type, to, 0, &one, p->channels);
}

/* to = from / n, in the type's own precision. */
static void pool_divide(const struct pool *p, char *to, const char *from, int64_t n)
{
	uint64_t divisor = 0;

	convert(p->type, &divisor, MU_INT64, &n, 1);
	loops->binary[BIN_Div][p->type](to, from, &divisor, p->channels, RIGHT_SCALAR);
}

void pool_lines(void *arg, int64_t from, int64_t to)
{
	const struct pool *p = arg;
	binary_loop *reduce = loops->binary[p->average ? BIN_AddV2 : BIN_Maximum][p->type];
	const int64_t channels = p->channels;
	const size_t pixel = (size_t)channels * p->size, row = (size_t)p->column.in * pixel;
	/* As in TensorFlow, fractional pools begin with the lowest number. */
	const bool skips_nan = p->row_bounds && !p->average;
	struct area a;

	for (int64_t line = from; line < to; line++) {
		int64_t image = line / p->row.out / p->plane.out;
		char *o = p->out + (size_t)(line * p->column.out) * pixel;
		if (p->by_two) {
			const char *top = p->in + pixel_at(p, image, 0, 2 * (line % p->row.out), 0);
			const struct pool_loops *l = &loops->pool[p->type];
			(p->average ? l->average : l->max)(o, top, top + row, p->column.out,
							   channels);
			continue;
		}
		area_of_line(p, line, &a);
		for (int64_t j = 0; j < p->column.out; j++, o += pixel) {
			if (!area_of_column(p, j, &a)) {
				pool_fill(p, o,
					  p->average || p->is_3d ? 0 : max_loops[p->type].lowest);
				continue;
			}
			const char *first = p->in + pixel_at(p, image, a.z0, a.y0, a.x0);
			if (skips_nan)
				pool_fill(p, o, max_loops[p->type].lowest);
			else
				memcpy(o, first, pixel);
			for (int64_t z = a.z0; z < a.z1; z++)
				for (int64_t y = a.y0; y < a.y1; y++) {
					const char *in =
					    first +
					    (size_t)((z - a.z0) * p->row.in + y - a.y0) * row;
					for (int64_t x = a.x0; x < a.x1; x++, in += pixel)
						if (skips_nan)
							max_loops[p->type].skip_nan(o, in,
										    channels);
						else if (in != first)
							reduce(o, o, in, channels, BOTH_RUN);
				}
			if (p->average)
				pool_divide(p, o, o, area_count(&a));
		}
	}
}

static void run_lines(struct kernel_call *c, const struct pool *p,
		      void (*fn)(void *arg, int64_t from, int64_t to), void *arg)
{
	int64_t lines = p->batch * p->plane.out * p->row.out;

	kernel_parallel(c, lines, 1 + 16384 * lines / (kernel_in(c, 0)->shape.count + 1), fn, arg);
}

int pool_run(struct kernel_call *c, struct pool *p, const struct mu_shape *shape,
	     struct mu_err *err)
{
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, p->type, shape, &out, err));
	p->by_two = is_by_two(p);
	p->in = kernel_in(c, 0)->data;
	p->out = out->data;
	if (shape->count)
		run_lines(c, p, pool_lines, p);
	return 0;
}

/* ---- gradients ---- */

/* largest: the index, counted from `in`, of the first of a channel's largest elements in the area.
 * back: adds the gradient to this element.  pick: reads the gradient at this element.  U: the type
 * of sums, whose overflow is defined. */
#define MAX_LOOPS(T, dt, smallest, U)                                                              \
	static inline int64_t largest_##T(const struct pool *p, const struct area *a,              \
					  const void *in_, int64_t ch)                             \
	{                                                                                          \
		const T *in = in_;                                                                 \
		const int64_t row = p->column.in * p->channels;                                    \
		int64_t at = ch;                                                                   \
		for (int64_t y = 0; y < a->y1 - a->y0; y++)                                        \
			for (int64_t x = 0; x < a->x1 - a->x0; x++) {                              \
				int64_t k = y * row + x * p->channels + ch;                        \
				if (in[at] < in[k])                                                \
					at = k;                                                    \
			}                                                                          \
		return at;                                                                         \
	}                                                                                          \
	static void max_back_##T(const struct pool *p, int64_t image, const struct area *a,        \
				 const void *grad)                                                 \
	{                                                                                          \
		const size_t first = pixel_at(p, image, 0, a->y0, a->x0);                          \
		T *out = (T *)(p->out + first);                                                    \
		for (int64_t ch = 0; ch < p->channels; ch++) {                                     \
			T *to = &out[largest_##T(p, a, p->in + first, ch)];                        \
			*to = (T)((U)*to + (U)((const T *)grad)[ch]);                              \
		}                                                                                  \
	}                                                                                          \
	static void max_pick_##T(const struct pool *p, int64_t image, const struct area *a,        \
				 void *out)                                                        \
	{                                                                                          \
		const size_t first = pixel_at(p, image, 0, a->y0, a->x0);                          \
		const T *g = (const T *)(p->grad + first);                                         \
		for (int64_t ch = 0; ch < p->channels; ch++)                                       \
			((T *)out)[ch] = g[largest_##T(p, a, p->in + first, ch)];                  \
	}                                                                                          \
	static void max_skip_nan_##T(void *out, const void *in, int64_t n)                         \
	{                                                                                          \
		for (int64_t i = 0; i < n; i++)                                                    \
			if (((T *)out)[i] < ((const T *)in)[i])                                    \
				((T *)out)[i] = ((const T *)in)[i];                                \
	}
REAL_TYPES(MAX_LOOPS)

#define MAX_ROW(T, dt, smallest, U)                                                                \
	[dt] = {(double)(smallest), largest_##T, max_back_##T, max_pick_##T, max_skip_nan_##T},
static const struct max_loops max_loops[MU_DT_COUNT] = {REAL_TYPES(MAX_ROW)};

static void average_back(const struct pool *p, int64_t image, const struct area *a,
			 const char *grad, char *share)
{
	binary_loop *add = loops->binary[BIN_AddV2][p->type];
	const size_t pixel = (size_t)p->channels * p->size;

	pool_divide(p, share, grad, area_count(a));
	for (int64_t z = a->z0; z < a->z1; z++)
		for (int64_t y = a->y0; y < a->y1; y++) {
			char *o = p->out + pixel_at(p, image, z, y, a->x0);
			for (int64_t x = a->x0; x < a->x1; x++, o += pixel)
				add(o, o, share, p->channels, BOTH_RUN);
		}
}

/* at: the offset of the output position, in bytes. */
#define EQUAL_BACK(T)                                                                              \
	static void equal_back_##T(const struct pool *p, int64_t image, const struct area *a,      \
				   size_t at)                                                      \
	{                                                                                          \
		const T *top = (const T *)(p->top + at), *grad = (const T *)(p->grad + at);        \
		for (int64_t z = a->z0; z < a->z1; z++)                                            \
			for (int64_t y = a->y0; y < a->y1; y++)                                    \
				for (int64_t x = a->x0; x < a->x1; x++) {                          \
					size_t pixel = pixel_at(p, image, z, y, x);                \
					const T *in = (const T *)(p->in + pixel);                  \
					T *out = (T *)(p->out + pixel);                            \
					for (int64_t i = 0; i < p->channels; i++)                  \
						out[i] += in[i] == top[i] ? grad[i] : 0;           \
				}                                                                  \
	}
EQUAL_BACK(float)
EQUAL_BACK(double)

/* out: the gradient of the first element that equals the output; 0 if none does. */
#define EQUAL_PICK(T)                                                                              \
	static void equal_pick_##T(const struct pool *p, int64_t image, const struct area *a,      \
				   size_t at)                                                      \
	{                                                                                          \
		const T *top = (const T *)(p->top + at);                                           \
		T *out = (T *)(p->out + at);                                                       \
		memset(out, 0, (size_t)p->channels * sizeof *out);                                 \
		for (int64_t z = a->z1; z-- > a->z0;)                                              \
			for (int64_t y = a->y1; y-- > a->y0;)                                      \
				for (int64_t x = a->x1; x-- > a->x0;) {                            \
					size_t pixel = pixel_at(p, image, z, y, x);                \
					const T *in = (const T *)(p->in + pixel);                  \
					const T *grad = (const T *)(p->grad + pixel);              \
					for (int64_t i = 0; i < p->channels; i++)                  \
						out[i] = in[i] == top[i] ? grad[i] : out[i];       \
				}                                                                  \
	}
EQUAL_PICK(float)
EQUAL_PICK(double)

static void max_back_by_two(const struct pool *p, int64_t from, int64_t to)
{
	size_t row = (size_t)(p->column.in * p->channels) * p->size;
	const char *g = p->grad + pixel_at(p, from, 0, 0, 0) / 4;

	for (int64_t image = from; image < to; image++)
		for (int64_t i = 0; i < p->row.out; i++, g += row / 2) {
			size_t top = pixel_at(p, image, 0, 2 * i, 0);
			loops->pool[p->type].max_back(p->out + top, p->out + top + row, p->in + top,
						      p->in + top + row, g, p->column.out,
						      p->channels);
		}
}

void pool_images_backward(void *arg, int64_t from, int64_t to)
{
	const struct pool *p = arg;
	size_t pixel = (size_t)p->channels * p->size;
	MU_AUTO_FREE char *share = p->average ? mu_xmalloc(pixel) : NULL;
	struct area a;

	if (p->by_two && !p->average) {
		max_back_by_two(p, from, to);
		return;
	}
	memset(p->out + pixel_at(p, from, 0, 0, 0), 0, pixel_at(p, to - from, 0, 0, 0));
	const int64_t lines = p->plane.out * p->row.out;
	size_t at = (size_t)(from * lines * p->column.out) * pixel;
	for (int64_t line = from * lines; line < to * lines; line++) {
		area_of_line(p, line, &a);
		for (int64_t j = 0; j < p->column.out; j++, at += pixel) {
			if (!area_of_column(p, j, &a))
				continue;
			if (p->average)
				average_back(p, line / lines, &a, p->grad + at, share);
			else if (!p->is_3d)
				max_loops[p->type].back(p, line / lines, &a, p->grad + at);
			else
				(p->type == MU_FLOAT ? equal_back_float
						     : equal_back_double)(p, line / lines, &a, at);
		}
	}
}

int pool_run_backward(struct kernel_call *c, struct pool *p, const struct mu_shape *in,
		      unsigned grad_at, struct mu_err *err)
{
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, p->type, in, &out, err));
	p->grad = kernel_in(c, grad_at)->data;
	p->out = out->data;
	p->by_two = is_by_two(p);
	if (in->count)
		kernel_parallel(c, p->batch, 1 + 16384 * p->batch / in->count, pool_images_backward,
				p);
	return 0;
}

/* ---- the second gradient: elements of the gradient at the positions of the maxima ---- */

static void pool_pick(void *arg, int64_t from, int64_t to)
{
	const struct pool *p = arg;
	size_t pixel = (size_t)p->channels * p->size;
	char *o = p->out + (size_t)(from * p->column.out) * pixel;
	struct area a;

	for (int64_t line = from; line < to; line++) {
		area_of_line(p, line, &a);
		for (int64_t j = 0; j < p->column.out; j++, o += pixel) {
			if (!area_of_column(p, j, &a))
				memset(o, 0, pixel);
			else
				max_loops[p->type].pick(p, line / p->row.out, &a, o);
		}
	}
}

static void pool3d_pick(void *arg, int64_t from, int64_t to)
{
	const struct pool *p = arg;
	const int64_t lines = p->plane.out * p->row.out;
	size_t pixel = (size_t)p->channels * p->size;
	size_t at = (size_t)(from * p->column.out) * pixel;
	struct area a;

	for (int64_t line = from; line < to; line++) {
		area_of_line(p, line, &a);
		for (int64_t j = 0; j < p->column.out; j++, at += pixel) {
			area_of_column(p, j, &a);
			(p->type == MU_FLOAT ? equal_pick_float
					     : equal_pick_double)(p, line / lines, &a, at);
		}
	}
}

int pool_run_second_backward(struct kernel_call *c, struct pool *p, const struct mu_shape *shape,
			     struct mu_err *err)
{
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, p->type, shape, &out, err));
	p->in = kernel_in(c, 0)->data;
	p->top = kernel_in(c, 1)->data;
	p->grad = kernel_in(c, 2)->data;
	p->out = out->data;
	if (shape->count)
		run_lines(c, p, p->is_3d ? pool3d_pick : pool_pick, p);
	return 0;
}

/* ---- maxima with argmax ---- */

struct pool_argmax {
	const struct pool *p;
	bool include_batch; /* indices count from the first image, not from the element's image */
	struct mu_tensor *argmax;
};

static void pool_argmax_rows(void *arg, int64_t from, int64_t to)
{
	const struct pool_argmax *x = arg;
	const struct pool *p = x->p;
	const int64_t image = p->row.in * p->column.in * p->channels;
	struct area a;

	for (int64_t line = from; line < to; line++) {
		area_of_line(p, line, &a);
		for (int64_t j = 0; j < p->column.out; j++) {
			int64_t o = (line * p->column.out + j) * p->channels;
			int64_t image_at = line / p->row.out * image;
			bool is_inside = area_of_column(p, j, &a);
			int64_t first = (a.y0 * p->column.in + a.x0) * p->channels;
			const char *in = p->in + (size_t)(image_at + first) * p->size;
			for (int64_t ch = 0; is_inside && ch < p->channels; ch++) {
				int64_t k = max_loops[p->type].largest(p, &a, in, ch);
				int64_t at = first + k + (x->include_batch ? image_at : 0);
				memcpy(p->out + (size_t)(o + ch) * p->size,
				       in + (size_t)k * p->size, p->size);
				mu_tensor_set_int(x->argmax, o + ch, at);
			}
		}
	}
}

int pool_run_argmax(struct kernel_call *c, struct pool *p, const struct mu_shape *shape,
		    enum mu_dtype argmax_type, bool include_batch, struct mu_err *err)
{
	struct pool_argmax x = {.p = p, .include_batch = include_batch};
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, p->type, shape, &out, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, argmax_type, shape, &x.argmax, err));
	if (!shape->count)
		return 0;
	memset(out->data, 0, (size_t)shape->count * p->size);
	memset(x.argmax->data, 0, (size_t)shape->count * mu_dtype_size(argmax_type));
	p->in = kernel_in(c, 0)->data;
	p->out = out->data;
	run_lines(c, p, pool_argmax_rows, &x);
	return 0;
}
