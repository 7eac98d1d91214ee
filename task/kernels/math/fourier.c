/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms over the last one, two or three dimensions. The transform of real input keeps
 * only the non-redundant half; fft_length is the input length used. The arithmetic is in double for
 * all types. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/math/fft.h"

enum { MAX_DIMS = 3 };
typedef double _Complex number;

struct transform_kind {
	int rank;
	bool forward, real;
};

struct transform {
	struct transform_kind kind;
	const struct mu_tensor *in;
	struct mu_tensor *out;
	int64_t length[MAX_DIMS];                    /* of each dimension's transform */
	int64_t in_dim[MAX_DIMS], out_dim[MAX_DIMS]; /* the last dimensions */
	int64_t dim[MAX_DIMS]; /* of the complex numbers that are transformed */
	int64_t in_item_size, out_item_size, item_size, items;
	struct fft plan[MAX_DIMS];
	atomic_bool no_memory;
};

/* Reads n consecutive numbers from index `at`; reals become complex numbers. */
static void fourier_get(const struct mu_tensor *t, int64_t at, int64_t n, number *to)
{
	bool is_complex = mu_dtype_is_complex(t->dtype);

	convert(MU_DOUBLE, to, mu_dtype_part(t->dtype),
		(const char *)t->data + (size_t)at * mu_dtype_size(t->dtype),
		is_complex ? 2 * n : n);
	for (int64_t i = is_complex ? 0 : n; i-- > 0;)
		to[i] = ((double *)to)[i];
}

static void fourier_put(struct mu_tensor *t, int64_t at, int64_t n, number *from)
{
	bool is_complex = mu_dtype_is_complex(t->dtype);

	for (int64_t i = 0; !is_complex && i < n; i++)
		((double *)from)[i] = creal(from[i]);
	convert(mu_dtype_part(t->dtype), (char *)t->data + (size_t)at * mu_dtype_size(t->dtype),
		MU_DOUBLE, from, is_complex ? 2 * n : n);
}

/* The index of the first element of row r in an item of dimensions item_dim.  Rows are counted over
 * all of `dim` but its last dimension. */
static int64_t row_in(int rank, int64_t r, const int64_t *dim, const int64_t *item_dim)
{
	int64_t at = 0, stride = item_dim[rank - 1];

	for (int d = rank - 2; d >= 0; r /= dim[d--]) {
		at += r % dim[d] * stride;
		stride *= item_dim[d];
	}
	return at;
}

/* Transforms along dimension d, line by line.  line: memory for a line and the work space of the
 * plan. */
static void transform_dim(const struct transform *w, int d, number *x, number *line)
{
	const struct fft *plan = &w->plan[d];
	int64_t stride = 1, n = w->dim[d];

	for (int i = d + 1; i < w->kind.rank; i++)
		stride *= w->dim[i];
	for (int64_t r = 0; r < w->item_size / n; r++) {
		number *first = x + r / stride * stride * n + r % stride;
		for (int64_t i = 0; i < n; i++)
			line[i] = first[i * stride];
		fft_run(plan, w->kind.forward, line, line + plan->n);
		for (int64_t i = 0; i < n; i++)
			first[i * stride] = line[i];
	}
}

/* The inverse transform of the last dimension to real output: extends half a line to a whole one by
 * conjugation and writes the real results directly. */
static void inverse_to_real(const struct transform *w, int64_t item, number *x, number *line)
{
	int last = w->kind.rank - 1;
	const struct fft *plan = &w->plan[last];

	for (int64_t r = 0; r < w->item_size / w->dim[last]; r++) {
		memcpy(line, x + r * w->dim[last], (size_t)w->dim[last] * sizeof *line);
		for (int64_t i = w->dim[last]; i < plan->n; i++)
			line[i] = conj(line[plan->n - i]);
		fft_run(plan, false, line, line + plan->n);
		fourier_put(w->out, item * w->out_item_size + r * plan->n, plan->n, line);
	}
}

static void transform_item(const struct transform *w, int64_t item, number *x, number *line)
{
	int rank = w->kind.rank;
	int64_t columns = w->dim[rank - 1], rows = w->item_size / columns;
	bool to_real = w->kind.real && !w->kind.forward;

	for (int64_t r = 0; r < rows; r++)
		fourier_get(w->in, item * w->in_item_size + row_in(rank, r, w->dim, w->in_dim),
			    columns, x + r * columns);
	for (int d = rank - 1; d >= 0; d--)
		if (!to_real || d < rank - 1)
			transform_dim(w, d, x, line);
	if (to_real) {
		inverse_to_real(w, item, x, line);
		return;
	}
	for (int64_t r = 0; r < rows; r++)
		fourier_put(w->out, item * w->out_item_size + r * w->out_dim[rank - 1],
			    w->out_dim[rank - 1], x + r * columns);
}

static void fourier_part(void *arg, int64_t from, int64_t to)
{
	struct transform *w = arg;
	int64_t longest = 0;

	for (int d = 0; d < w->kind.rank; d++) {
		int64_t n = w->plan[d].n + w->plan[d].work;
		longest = n > longest ? n : longest;
	}
	number *x = calloc((size_t)(w->item_size + longest) + 1, sizeof *x);
	if (!x) {
		atomic_store(&w->no_memory, true);
		return;
	}
	for (int64_t i = from; i < to; i++)
		transform_item(w, i, x, x + w->item_size);
	free(x);
}

/* ---- attributes and inputs ---- */

/* Reads fft_length, and checks that the input has at least this length. */
static int read_lengths(const struct kernel_call *c, struct transform *w, struct mu_err *err)
{
	int rank = w->kind.rank, n;

	MU_RETURN_IF_ERROR(args_ints(c, 1, w->length, MAX_DIMS, &n, err));
	for (int d = 0; d < rank; d++) {
		int64_t half = w->length[d] / 2 + 1;
		int64_t min_length = d == rank - 1 && !w->kind.forward ? half : w->length[d];
		if (w->length[d] < 0)
			return mu_invalid(err, "fft_length[%d] must >= 0, but got: %lld", d,
					  (long long)w->length[d]);
		if (w->in_dim[d] && w->in_dim[d] < min_length)
			return mu_invalid(
			    err,
			    "Input dimension %d must have length of at least %lld but got: %lld",
			    w->in->shape.rank - rank + d, (long long)min_length,
			    (long long)w->in_dim[d]);
		w->out_dim[d] = w->dim[d] = w->length[d];
		if (d == rank - 1 && w->length[d]) {
			w->out_dim[d] = w->kind.forward ? half : w->length[d];
			w->dim[d] = w->kind.forward ? w->length[d] : half;
		}
	}
	return 0;
}

static int check_types(const struct kernel_call *c, const struct transform *w, enum mu_dtype *out,
		       struct mu_err *err)
{
	const char *name = !w->kind.real || w->kind.forward ? "Tcomplex" : "Treal";
	enum mu_dtype t = w->in->dtype;
	bool needs_real = w->kind.real && w->kind.forward;

	*out = args_attr_type(c->node, name,
			      w->kind.real && !w->kind.forward ? MU_FLOAT : MU_COMPLEX64);
	if ((t != MU_FLOAT && t != MU_DOUBLE && !mu_dtype_is_complex(t)) ||
	    mu_dtype_is_complex(t) == needs_real ||
	    mu_dtype_is_complex(*out) == (w->kind.real && !w->kind.forward) ||
	    mu_dtype_part(t) != mu_dtype_part(*out))
		return mu_invalid(err, "Wrong types for FFT: in=%s out=%s", mu_dtype_name(t),
				  mu_dtype_name(*out));
	return 0;
}

static int fourier_prepare(struct kernel_call *c, struct transform *w, struct mu_err *err)
{
	int rank = w->kind.rank, batch_dims = w->in->shape.rank - rank, rc;
	struct mu_shape shape;
	enum mu_dtype t;

	if (batch_dims < 0)
		return mu_invalid(err, "Input must have rank of at least %d but got: %s", rank,
				  mu_shape_str(&w->in->shape));
	for (int d = 0; d < rank; d++)
		w->length[d] = w->dim[d] = w->out_dim[d] = w->in_dim[d] =
		    w->in->shape.dim[batch_dims + d];
	if ((rc = check_types(c, w, &t, err)) || (w->kind.real && (rc = read_lengths(c, w, err))))
		return rc;
	w->items = mu_shape_product(&w->in->shape, 0, batch_dims);
	w->item_size = w->in_item_size = w->out_item_size = 1;
	MU_RETURN_IF_ERROR(
	    mu_shape_splice(&shape, &w->in->shape, batch_dims, rank, rank, w->out_dim, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t, &shape, &w->out, err));
	memset(w->out->data, 0, (size_t)shape.count * mu_dtype_size(t));
	if (!shape.count || !w->in->shape.count)
		w->items = 0;
	for (int d = 0; w->items && d < rank; d++) {
		w->item_size *= w->dim[d];
		w->in_item_size *= w->in_dim[d];
		w->out_item_size *= w->out_dim[d];
		if (!fft_init(&w->plan[d], w->length[d]))
			return mu_fail(err, MU_RESOURCE_EXHAUSTED,
				       "no memory for a transform of %lld numbers",
				       (long long)w->length[d]);
	}
	return 0;
}

static int fourier_run(struct kernel_call *c, struct transform_kind kind, struct mu_err *err)
{
	struct transform w = {.kind = kind, .in = kernel_in(c, 0)};
	int rc = fourier_prepare(c, &w, err);

	if (!rc && w.items)
		kernel_parallel(c, w.items, 4096 / w.item_size + 1, fourier_part, &w);
	for (int d = 0; d < MAX_DIMS; d++)
		fft_fini(&w.plan[d]);
	if (!rc && w.no_memory)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %s",
			       mu_shape_str(&w.in->shape));
	return rc;
}

#define TRANSFORM(name, rank, forward, real)                                                       \
	KERNEL_RUN(name, fourier_run(c, (struct transform_kind){rank, forward, real}, err))
#define ROWS(X)                                                                                    \
	X(FFT, 1, true, false)                                                                     \
	X(FFT2D, 2, true, false)                                                                   \
	X(FFT3D, 3, true, false)                                                                   \
	X(IFFT, 1, false, false)                                                                   \
	X(IFFT2D, 2, false, false)                                                                 \
	X(IFFT3D, 3, false, false)                                                                 \
	X(IRFFT, 1, false, true)                                                                   \
	X(IRFFT2D, 2, false, true)                                                                 \
	X(IRFFT3D, 3, false, true)                                                                 \
	X(RFFT, 1, true, true)                                                                     \
	X(RFFT2D, 2, true, true)                                                                   \
	X(RFFT3D, 3, true, true)
ROWS(TRANSFORM)

#define ROW(name, rank, forward, real) {#name, .flags = KERNEL_EXPENSIVE, .run = name},
static const struct kernel rows[] = {ROWS(ROW)};
KERNEL_TABLE(math_fourier, rows)
