/* SPDX-License-Identifier: Apache-2.0 */
/* Ragged tensors built from ranges and gathered by row. A level is stored as row splits. All splits
 * are checked before the first value is read, so later code does not check again. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

/* ---- RaggedRange: a row from each start to its limit ---- */

struct ranges {
	int64_t n;
	bool is_vector[3]; /* start, limit, delta: one per row, else one for all rows */
};

static int check_ranges(const struct kernel_call *c, struct ranges *r, struct mu_err *err)
{
	static const char *const name[] = {"starts", "limits", "deltas"};
	bool any = false;

	r->n = 1;
	for (unsigned i = 0; i < 3; i++) {
		const struct mu_shape *s = &kernel_in(c, i)->shape;
		if (s->rank > 1)
			return mu_invalid(err, "%s must be a scalar or vector", name[i]);
		if (!(r->is_vector[i] = s->rank == 1))
			continue;
		if (any && s->dim[0] != r->n)
			return mu_invalid(err,
					  "starts, limits, and deltas must have the same shape");
		any = true;
		r->n = s->dim[0];
	}
	return 0;
}

/* The number of values in [start, limit).  A double holds every permitted number exactly. */
static double count_whole(int64_t start, int64_t limit, int64_t delta)
{
	if (delta > 0 ? start >= limit : start <= limit)
		return 0;
	__int128 distance = (__int128)limit - start, step = delta;

	if (distance < 0) {
		distance = -distance;
		step = -step;
	}
	return (double)((distance + step - 1) / step);
}

static double count_real(double start, double limit, double delta)
{
	return (delta > 0 ? start >= limit : start <= limit) ? 0
							     : ceil(fabs((limit - start) / delta));
}

/* Divides as float: 0.3f / 0.1f is 3, but more than 3 as double. */
static double count_single(float start, float limit, float delta)
{
	return (delta > 0 ? start >= limit : start <= limit)
		   ? 0
		   : (double)ceilf(fabsf((limit - start) / delta));
}

#define AT(T, i, row) MU_DATA(T, kernel_in(c, i))[r->is_vector[i] ? (row) : 0]
#define RANGES(T, count)                                                                           \
	static double count_##T(const struct kernel_call *c, const struct ranges *r, int64_t row)  \
	{                                                                                          \
		return AT(T, 2, row) == 0 ? -1                                                     \
					  : count(AT(T, 0, row), AT(T, 1, row), AT(T, 2, row));    \
	}                                                                                          \
	static void put_##T(const struct kernel_call *c, const struct ranges *r, int64_t row,      \
			    void *out, int64_t from, int64_t to)                                   \
	{                                                                                          \
		T at = AT(T, 0, row), by = AT(T, 2, row);                                          \
		for (; from < to; from++) {                                                        \
			((T *)out)[from] = at;                                                     \
			if (from + 1 < to) /* the next value may overflow T */                     \
				at += by;                                                          \
		}                                                                                  \
	}
RANGES(int32_t, count_whole)
RANGES(int64_t, count_whole)
RANGES(float, count_single)
RANGES(double, count_real)

static const struct {
	enum mu_dtype type;
	double (*count)(const struct kernel_call *c, const struct ranges *r, int64_t row);
	void (*put)(const struct kernel_call *c, const struct ranges *r, int64_t row, void *out,
		    int64_t from, int64_t to);
} kinds[] = {
    {MU_INT32, count_int32_t, put_int32_t},
    {MU_INT64, count_int64_t, put_int64_t},
    {MU_FLOAT, count_float, put_float},
    {MU_DOUBLE, count_double, put_double},
};

/* The type of the splits, int32 or int64, and the largest permitted split. */
static enum mu_dtype splits_type(const struct kernel_call *c, int64_t *max_split)
{
	enum mu_dtype type = args_attr_type(c->node, "Tsplits", MU_INT64);

	*max_split = type == MU_INT32 ? INT32_MAX : INT64_MAX >> 8;
	return type;
}

static int range(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype type = kernel_in(c, 0)->dtype, split_type;
	struct mu_tensor *splits, *values;
	struct mu_shape shape;
	struct ranges r;
	int64_t max_split, total = 0;
	size_t k = 0;

	while (k < MU_COUNT(kinds) && kinds[k].type != type)
		k++;
	if (k == MU_COUNT(kinds))
		return args_no_kernel(c, type, err);
	MU_RETURN_IF_ERROR(check_ranges(c, &r, err));
	split_type = splits_type(c, &max_split);
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 1, (int64_t[]){r.n + 1}, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, split_type, &shape, &splits, err));
	mu_tensor_set_int(splits, 0, 0);
	for (int64_t row = 0; row < r.n; row++) {
		double n = kinds[k].count(c, &r, row);
		if (n < 0)
			return mu_invalid(err, "Requires delta != 0");
		if (!(n <= (double)(max_split - total)))
			return mu_invalid(err, "Requires ((limit - start) / delta) <= %lld",
					  (long long)max_split);
		mu_tensor_set_int(splits, row + 1, total += (int64_t)n);
	}
	shape = mu_shape_vec(total);
	MU_RETURN_IF_ERROR(kernel_out(c, 1, type, &shape, &values, err));
	for (int64_t row = 0; row < r.n; row++)
		kinds[k].put(c, &r, row, values->data, mu_tensor_int(splits, row),
			     mu_tensor_int(splits, row + 1));
	return 0;
}

/* ---- RaggedGather: selected rows, with their nested rows and values ---- */

static int check_level(const struct mu_tensor *splits, int64_t below, struct mu_err *err)
{
	int64_t n = splits->shape.count, last = 0;

	if (splits->shape.rank != 1 || !n)
		return mu_invalid(err, "Splits must be a vector, and not empty: %s",
				  mu_shape_str(&splits->shape));
	for (int64_t i = 0; i < n; i++) {
		int64_t at = mu_tensor_int(splits, i);
		if (at > below)
			return mu_invalid(err,
					  "Ragged splits must not point past values: %lld of %lld",
					  (long long)at, (long long)below);
		if (at < last || (!i && at))
			return mu_invalid(
			    err, "Ragged splits must be sorted, from 0 on; %lld follows %lld",
			    (long long)at, (long long)last);
		last = at;
	}
	return 0;
}

/* Rows [from[k], to[k]) of a level for each k < n. */
struct row_picks {
	int64_t n, *from, *to;
};

static int check_gather(const struct kernel_call *c, unsigned levels, struct mu_err *err)
{
	const struct mu_tensor *values = kernel_in(c, levels), *at = kernel_in(c, levels + 1);

	if (values->shape.rank < 1)
		return mu_invalid(err, "params.rank must be nonzero");
	for (unsigned l = 0; l < levels; l++) {
		int64_t below =
		    l + 1 < levels ? kernel_in(c, l + 1)->shape.count - 1 : values->shape.dim[0];
		MU_RETURN_IF_ERROR(check_level(kernel_in(c, l), below, err));
	}
	int64_t rows = kernel_in(c, 0)->shape.count - 1;
	for (int64_t i = 0; i < at->shape.count; i++) {
		int64_t row = mu_tensor_int(at, i);
		if (row < 0 || row >= rows)
			return mu_invalid(err, "indices[%lld] = %lld is not in [0, %lld)",
					  (long long)i, (long long)row, (long long)rows);
	}
	return 0;
}

/* Writes a level of rows of equal length for each dimension of the indices but the last. */
static int put_dense(struct kernel_call *c, const struct mu_shape *s, enum mu_dtype type,
		     int64_t max_split, struct mu_err *err)
{
	int64_t rows = 1;

	for (int d = 0; d + 1 < s->rank; d++) {
		struct mu_tensor *out;
		struct mu_shape shape;
		int64_t last;
		if (__builtin_mul_overflow(rows, s->dim[d], &rows) ||
		    __builtin_mul_overflow(rows, s->dim[d + 1], &last) || rows >= max_split ||
		    last > max_split)
			return mu_invalid(err, "indices of shape %s are too many", mu_shape_str(s));
		shape = mu_shape_vec(rows + 1);

		MU_RETURN_IF_ERROR(kernel_out(c, (unsigned)d, type, &shape, &out, err));
		for (int64_t i = 0; i <= rows; i++)
			mu_tensor_set_int(out, i, i * s->dim[d + 1]);
	}
	return 0;
}

/* Replaces each picked range of rows by its range of rows of the next level. */
static void enter_level(const struct mu_tensor *splits, struct row_picks *p)
{
	for (int64_t k = 0; k < p->n; k++) {
		p->from[k] = mu_tensor_int(splits, p->from[k]);
		p->to[k] = mu_tensor_int(splits, p->to[k]);
	}
}

/* Writes the splits of the picked rows of level l to output `out`.  *p becomes the rows of the next
 * level. */
static int put_level(struct kernel_call *c, unsigned l, unsigned out, struct row_picks *p,
		     int64_t max_split, struct mu_err *err)
{
	const struct mu_tensor *splits = kernel_in(c, l);
	int64_t rows = 0, total = 0, i = 0;
	struct mu_tensor *to;
	struct mu_shape shape;

	for (int64_t k = 0; k < p->n; k++)
		if (__builtin_add_overflow(rows, p->to[k] - p->from[k], &rows) || rows > max_split)
			return mu_invalid(err, "too many rows are picked");
	shape = mu_shape_vec(rows + 1);

	MU_RETURN_IF_ERROR(kernel_out(c, out, splits->dtype, &shape, &to, err));
	mu_tensor_set_int(to, i, 0);
	for (int64_t k = 0; k < p->n; k++) {
		for (int64_t row = p->from[k]; row < p->to[k]; row++) {
			total += mu_tensor_int(splits, row + 1) - mu_tensor_int(splits, row);
			if (total > max_split)
				return mu_invalid(err, "too many values are picked");
			mu_tensor_set_int(to, ++i, total);
		}
	}
	enter_level(splits, p);
	return 0;
}

static int ragged_gather(struct kernel_call *c, struct mu_err *err)
{
	unsigned levels = c->n_in - 2;
	const struct mu_tensor *values = kernel_in(c, levels), *at = kernel_in(c, levels + 1);
	enum mu_dtype type;
	struct mu_tensor *out;
	int64_t max_split, rows = 0;

	if (c->n_in < 3)
		return mu_invalid(err, "params must have a level of splits");
	MU_RETURN_IF_ERROR(check_gather(c, levels, err));
	type = splits_type(c, &max_split);
	if (c->n_out != levels + (unsigned)at->shape.rank)
		return mu_fail(err, MU_INTERNAL,
			       "OUTPUT_RAGGED_RANK must be the indices' rank, less one, and "
			       "PARAMS_RAGGED_RANK; the indices are %s",
			       mu_shape_str(&at->shape));
	MU_AUTO_FREE int64_t *from = MU_NEW_ARRAY(int64_t, (size_t)at->shape.count + 1);
	MU_AUTO_FREE int64_t *to = MU_NEW_ARRAY(int64_t, (size_t)at->shape.count + 1);
	struct row_picks p = {at->shape.count, from, to};
	for (int64_t k = 0; k < p.n; k++)
		to[k] = (from[k] = mu_tensor_int(at, k)) + 1;
	MU_RETURN_IF_ERROR(put_dense(c, &at->shape, type, max_split, err));
	if (!at->shape.rank) /* a scalar index picks one row and drops its dimension */
		enter_level(kernel_in(c, 0), &p);
	for (unsigned l = !at->shape.rank; l < levels; l++)
		MU_RETURN_IF_ERROR(
		    put_level(c, l, (unsigned)at->shape.rank + l - 1, &p, max_split, err));
	struct mu_shape shape;
	for (int64_t k = 0; k < p.n; k++)
		rows += to[k] - from[k]; /* at most max_split: the last level checked it */
	MU_RETURN_IF_ERROR(mu_shape_splice(&shape, &values->shape, 0, 1, 1, &rows, err));
	MU_RETURN_IF_ERROR(kernel_out(c, c->n_out - 1, values->dtype, &shape, &out, err));
	int64_t row = rows ? shape.count / rows : 0, offset = 0;
	for (int64_t k = 0; k < p.n; offset += (to[k] - from[k]) * row, k++)
		elems_copy(out->dtype, out->data, offset, values->data, from[k] * row,
			   (to[k] - from[k]) * row);
	return 0;
}

static const struct kernel rows[] = {
    {"RaggedGather", .run = ragged_gather},
    {"RaggedRange", .run = range},
};
KERNEL_TABLE(sparse_ragged_make, rows)
