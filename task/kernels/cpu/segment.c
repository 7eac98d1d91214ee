/* SPDX-License-Identifier: Apache-2.0 */
/* Rows reduced by segment: ids in order, rows taken as they come or picked by number.
 *
 * One engine: for each row i of `rows`, out[ids[i]] op= data[rows[i]] (rows absent: data[i]), then
 * what a mean divides by.  Its gradient goes the other way: out[rows[i]] += grad[ids[i]] / n. */
#include <math.h>

#include "task/kernels/args.h"
#include "task/kernels/convert.h"
#include "task/kernels/kernel_table.h"
#include "task/kernels/loops.h"
#include "task/kernels/rows.h"

enum divide { BY_NOTHING, BY_COUNT, BY_ROOT };

struct segments {
	const struct mu_tensor *data, *picked, *ids;
	enum reduce_op op;
	enum divide divide;
	int64_t n, row; /* segments; elements in a row */
};

static int check_ids(const struct mu_tensor *ids, bool sorted, int64_t limit, struct mu_err *err)
{
	for (int64_t i = 0; i < ids->shape.count; i++) {
		int64_t id = mu_tensor_int(ids, i);
		if (sorted && i && id < mu_tensor_int(ids, i - 1))
			return mu_fail(err, MU_INVALID_ARGUMENT, "segment ids are not increasing");
		if (id < 0 || id >= limit)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "segment id %lld out of range [0, %lld), possibly because "
				       "'segment_ids' input is not sorted.",
				       (long long)id, (long long)limit);
	}
	return 0;
}

/* Members of each segment, as what its sum is divided by. */
static double *divisors(const struct mu_tensor *ids, int64_t n, enum divide how)
{
	double *by = calloc((size_t)n + 1, sizeof *by);

	for (int64_t i = 0; by && i < ids->shape.count; i++)
		by[mu_tensor_int(ids, i)]++;
	for (int64_t i = 0; by && i < n; i++)
		by[i] = how == BY_NOTHING || by[i] == 0 ? 1 : how == BY_ROOT ? sqrt(by[i]) : by[i];
	return by;
}

static void scale(enum mu_dtype t, void *row, int64_t n, enum binary_op op, double by)
{
	uint64_t k;

	convert(t, &k, MU_DOUBLE, &by, 1);
	loops->binary[op][t](row, row, &k, n, RIGHT_SCALAR);
}

static int reduce_segments(struct kernel_call *c, struct segments *s, struct mu_err *err)
{
	enum mu_dtype t = s->data->dtype;
	const struct reduce_loops *l = &loops->reduce[s->op][t];
	struct mu_shape shape = mu_shape_scalar();
	struct mu_tensor *out;
	size_t size = mu_dtype_size(t);
	int rc = mu_shape_push(&shape, s->n, err);

	s->row = 1;
	for (int d = 1; d < s->data->shape.rank && !rc; s->row *= s->data->shape.dim[d++])
		rc = mu_shape_push(&shape, s->data->shape.dim[d], err);
	if (rc || (rc = kernel_out(c, 0, t, &shape, &out, err)))
		return rc;
	MU_AUTO_FREE double *by = divisors(s->ids, s->n, s->divide);
	if (!by)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld segments",
			       (long long)s->n);
	MU_AUTO_FREE bool *started = calloc((size_t)s->n + 1, 1);
	for (int64_t i = 0; started && i < s->ids->shape.count; i++) {
		int64_t id = mu_tensor_int(s->ids, i);
		int64_t from = s->picked ? mu_tensor_int(s->picked, i) : i;
		char *to = (char *)out->data + (size_t)(id * s->row) * size;
		if (!started[id])
			l->start(to, s->row);
		started[id] = true;
		l->add(to, (const char *)s->data->data + (size_t)(from * s->row) * size, s->row);
	}
	for (int64_t id = 0; id < s->n; id++) {
		char *to = (char *)out->data + (size_t)(id * s->row) * size;
		if (started && !started[id] && s->op == RED_PROD)
			l->start(to, s->row);
		else if (!started || !started[id])
			elems_fill(t, to, 0, &(uint64_t){0}, s->row);
		else if (by[id] != 1)
			scale(t, to, s->row, BIN_Div, by[id]);
	}
	return 0;
}

static int last_id(const struct mu_tensor *ids, int64_t *n, struct mu_err *err)
{
	int64_t last = ids->shape.count ? mu_tensor_int(ids, ids->shape.count - 1) : -1;

	if (last < -1 || last == INT64_MAX)
		return mu_fail(err, MU_INVALID_ARGUMENT, "segment ids must be >= 0");
	*n = last + 1;
	return 0;
}

static int check_data(const struct kernel_call *c, enum reduce_op op, unsigned ids,
		      struct mu_err *err)
{
	const struct mu_tensor *data = kernel_in(c, 0);
	int rc;

	if ((rc = args_is_int(c, ids, err)))
		return rc;
	if (kernel_in(c, ids)->shape.rank != 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "segment_ids should be a vector.");
	if (data->shape.rank < 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "data must be at least rank 1");
	if (!loops->reduce[op][data->dtype].start || !loops->binary[BIN_Div][data->dtype])
		return mu_fail(err, MU_UNIMPLEMENTED, "no segment kernel for type %s",
			       mu_dtype_name(data->dtype));
	return 0;
}

static int segment(struct kernel_call *c, enum reduce_op op, enum divide how, struct mu_err *err)
{
	struct segments s = {
	    .data = kernel_in(c, 0), .ids = kernel_in(c, 1), .op = op, .divide = how};
	int rc;

	if ((rc = check_data(c, op, 1, err)))
		return rc;
	if (s.ids->shape.count != s.data->shape.dim[0])
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "segment_ids should be the same size as dimension 0 of input.");
	if ((rc = last_id(s.ids, &s.n, err)) || (rc = check_ids(s.ids, true, s.n, err)))
		return rc;
	return reduce_segments(c, &s, err);
}

static int sparse_segment(struct kernel_call *c, enum divide how, struct mu_err *err)
{
	struct segments s = {.data = kernel_in(c, 0),
			     .picked = kernel_in(c, 1),
			     .ids = kernel_in(c, 2),
			     .op = RED_SUM,
			     .divide = how};
	int rc;

	if ((rc = check_data(c, RED_SUM, 2, err)) || (rc = args_rank(c, 1, 1, err)))
		return rc;
	if (s.picked->shape.count != s.ids->shape.count)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "segment_ids and indices should have same size.");
	if ((rc = c->n_in > 3 ? args_int(c, 3, &s.n, err) : last_id(s.ids, &s.n, err)))
		return rc;
	if (s.n < 0)
		return mu_fail(err, MU_INVALID_ARGUMENT, "segment ids must be >= 0");
	if ((rc = check_ids(s.ids, true, s.n, err)) ||
	    (rc = rows_check(s.picked, s.data->shape.dim[0], err)))
		return rc;
	return reduce_segments(c, &s, err);
}

/* ---- gradients: grad, indices, segment_ids, rows of the result ---- */

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The rows that are picked, each once, in order; *n of them. */
static int64_t *sorted_once(const struct mu_tensor *picked, int64_t *n)
{
	int64_t *all = calloc((size_t)picked->shape.count + 1, sizeof *all), kept = 0;

	for (int64_t i = 0; all && i < picked->shape.count; i++)
		all[i] = mu_tensor_int(picked, i);
	if (all)
		qsort(all, (size_t)picked->shape.count, sizeof *all, by_number);
	for (int64_t i = 0; all && i < picked->shape.count; i++)
		if (!i || all[i] != all[i - 1])
			all[kept++] = all[i];
	*n = kept;
	return all;
}

/* The newer ops give only the rows that anything goes to, and their numbers. */
static int give_numbers(struct kernel_call *c, const int64_t *numbers, int64_t n,
			struct mu_err *err)
{
	enum mu_dtype t = kernel_in(c, 1)->dtype;
	struct mu_shape shape = mu_shape_vec(n);
	struct mu_tensor *out;
	int rc = kernel_out(c, 1, t, &shape, &out, err);

	for (int64_t i = 0; i < n && !rc; i++)
		if (t == MU_INT64)
			MU_DATA(int64_t, out)[i] = numbers[i];
		else
			MU_DATA(int32_t, out)[i] = (int32_t)numbers[i];
	return rc;
}

static int sparse_segment_grad(struct kernel_call *c, enum divide how, struct mu_err *err)
{
	const struct mu_tensor *grad = kernel_in(c, 0), *picked = kernel_in(c, 1);
	const struct mu_tensor *ids = kernel_in(c, 2);
	struct mu_shape shape = mu_shape_scalar();
	MU_AUTO_FREE int64_t *numbers = NULL;
	struct mu_tensor *out;
	int64_t n, row = 1;
	int rc;

	if ((rc = check_data(c, RED_SUM, 2, err)) || (rc = args_rank(c, 1, 1, err)) ||
	    (rc = args_is_int(c, 1, err)) || (rc = args_int(c, 3, &n, err)))
		return rc;
	if (picked->shape.count != ids->shape.count)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "segment_ids and indices should have same size.");
	if ((rc = check_ids(ids, false, grad->shape.dim[0], err)) ||
	    (rc = rows_check(picked, n, err)))
		return rc;
	if (c->n_out > 1) {
		numbers = sorted_once(picked, &n);
		if (!numbers)
			return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld indices",
				       (long long)picked->shape.count);
		if ((rc = give_numbers(c, numbers, n, err)))
			return rc;
	}
	if ((rc = mu_shape_push(&shape, n, err)))
		return rc;
	for (int d = 1; d < grad->shape.rank; row *= grad->shape.dim[d++])
		if ((rc = mu_shape_push(&shape, grad->shape.dim[d], err)))
			return rc;
	if ((rc = kernel_out(c, 0, grad->dtype, &shape, &out, err)))
		return rc;
	size_t size = mu_dtype_size(grad->dtype);
	MU_AUTO_FREE double *by = divisors(ids, grad->shape.dim[0], how);
	MU_AUTO_FREE char *scaled = malloc((size_t)row * size + 1);
	if (!by || !scaled)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a row of %lld",
			       (long long)row);
	elems_zero(grad->dtype, out->data, 0, shape.count);
	for (int64_t i = 0; i < ids->shape.count; i++) {
		int64_t id = mu_tensor_int(ids, i), to = mu_tensor_int(picked, i);
		if (numbers)
			to = (int64_t *)bsearch(&to, numbers, (size_t)n, sizeof to, by_number) -
			     numbers;
		elems_copy(grad->dtype, scaled, 0, grad->data, id * row, row);
		if (by[id] != 1)
			scale(grad->dtype, scaled, row, BIN_Mul, 1 / by[id]);
		loops->reduce[RED_SUM][grad->dtype].add(
		    (char *)out->data + (size_t)(to * row) * size, scaled, row);
	}
	return 0;
}

#define SEGMENT(name, ...)                                                                         \
	static int name(struct kernel_call *c, struct mu_err *err)                                 \
	{                                                                                          \
		return __VA_ARGS__;                                                                \
	}
SEGMENT(segment_sum, segment(c, RED_SUM, BY_NOTHING, err))
SEGMENT(segment_prod, segment(c, RED_PROD, BY_NOTHING, err))
SEGMENT(segment_max, segment(c, RED_MAX, BY_NOTHING, err))
SEGMENT(segment_min, segment(c, RED_MIN, BY_NOTHING, err))
SEGMENT(segment_mean, segment(c, RED_SUM, BY_COUNT, err))
SEGMENT(sparse_sum, sparse_segment(c, BY_NOTHING, err))
SEGMENT(sparse_mean, sparse_segment(c, BY_COUNT, err))
SEGMENT(sparse_sqrt_n, sparse_segment(c, BY_ROOT, err))
SEGMENT(sparse_sum_grad, sparse_segment_grad(c, BY_NOTHING, err))
SEGMENT(sparse_mean_grad, sparse_segment_grad(c, BY_COUNT, err))
SEGMENT(sparse_sqrt_n_grad, sparse_segment_grad(c, BY_ROOT, err))

static const struct kernel rows[] = {
    {"SegmentSum", .run = segment_sum},
    {"SegmentProd", .run = segment_prod},
    {"SegmentMax", .run = segment_max},
    {"SegmentMin", .run = segment_min},
    {"SegmentMean", .run = segment_mean},
    {"SparseSegmentSum", .run = sparse_sum},
    {"SparseSegmentMean", .run = sparse_mean},
    {"SparseSegmentSqrtN", .run = sparse_sqrt_n},
    {"SparseSegmentSumWithNumSegments", .run = sparse_sum},
    {"SparseSegmentMeanWithNumSegments", .run = sparse_mean},
    {"SparseSegmentSqrtNWithNumSegments", .run = sparse_sqrt_n},
    {"SparseSegmentSumGrad", .run = sparse_sum_grad},
    {"SparseSegmentMeanGrad", .run = sparse_mean_grad},
    {"SparseSegmentSqrtNGrad", .run = sparse_sqrt_n_grad},
    {"SparseSegmentSumGradV2", .run = sparse_sum_grad},
    {"SparseSegmentMeanGradV2", .run = sparse_mean_grad},
    {"SparseSegmentSqrtNGradV2", .run = sparse_sqrt_n_grad},
};
KERNEL_TABLE(segment, rows)
