/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces rows by segment; see segment.h.  Ids are sorted.  The rows are those of the input in
 * order, or selected by indices. */
#include "task/kernels/math/segment.h"

#include <stdlib.h>

#include "task/kernels/array/rows.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"

/* row = row op factor; op is BIN_Mul or BIN_Div. */
static void scale_row(enum mu_dtype t, void *row, int64_t n, enum binary_op op, double factor)
{
	/* A real factor scales both parts of a complex number. */
	enum mu_dtype real = mu_dtype_part(t);
	bool is_complex = real != t;
	uint64_t k;

	convert(real, &k, MU_DOUBLE, &factor, 1);
	loops->binary[op][real](row, row, &k, is_complex ? 2 * n : n, RIGHT_SCALAR);
}

static int check_type(const struct segments *s, struct mu_err *err)
{
	enum mu_dtype t = s->data->dtype;

	if (!loops->reduce[s->op][t].start || !loops->binary[BIN_Div][t])
		return mu_fail(err, MU_UNIMPLEMENTED, "no segment kernel for type %s",
			       mu_dtype_name(t));
	return 0;
}

static int reduce_segments(struct kernel_call *c, const struct segments *s, struct mu_err *err)
{
	enum mu_dtype t = s->data->dtype;
	const struct reduce_loops *l = &loops->reduce[s->op][t];
	struct mu_tensor *out;
	size_t size = mu_dtype_size(t);

	MU_RETURN_IF_ERROR(check_type(s, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t, &s->shape, &out, err));
	if (!s->shape.count)
		return 0;
	MU_AUTO_TENSOR divisors = {0};
	MU_RETURN_IF_ERROR(segments_divisors(s->ids, s->n, s->divide, &divisors, err));
	const double *divisor = MU_DATA(double, &divisors); /* NULL: none */
	MU_AUTO_FREE bool *is_started = calloc((size_t)s->n + 1, 1);
	if (!is_started)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld segments",
			       (long long)s->n);
	for (int64_t i = 0; i < s->ids->shape.count; i++) {
		int64_t id = mu_tensor_int(s->ids, i);
		int64_t from = s->indices ? mu_tensor_int(s->indices, i) : i;
		char *to = (char *)out->data + (size_t)(id * s->row_size) * size;
		if (!is_started[id])
			l->start(to, s->row_size);
		is_started[id] = true;
		l->add(to, (const char *)s->data->data + (size_t)(from * s->row_size) * size,
		       s->row_size);
	}
	for (int64_t id = 0; id < s->n; id++) {
		char *to = (char *)out->data + (size_t)(id * s->row_size) * size;
		if (!is_started[id] && s->op == RED_PROD)
			l->start(to, s->row_size);
		else if (!is_started[id])
			elems_zero(t, to, 0, s->row_size);
		else if (divisor && divisor[id] != 1)
			scale_row(t, to, s->row_size, BIN_Div, divisor[id]);
	}
	return 0;
}

static int segment(struct kernel_call *c, enum reduce_op op, enum segment_divide how,
		   struct mu_err *err)
{
	SEGMENTS_AUTO s = {0};

	MU_RETURN_IF_ERROR(segments_read(c, op, how, &s, err));
	return reduce_segments(c, &s, err);
}

static int sparse_segment(struct kernel_call *c, enum segment_divide how, struct mu_err *err)
{
	SEGMENTS_AUTO s = {0};

	MU_RETURN_IF_ERROR(segments_read_sparse(c, how, &s, err));
	return reduce_segments(c, &s, err);
}

static int sparse_segment_grad(struct kernel_call *c, enum segment_divide how, struct mu_err *err)
{
	SEGMENTS_AUTO s = {0};
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(segments_read_grad(c, how, &s, err));
	MU_RETURN_IF_ERROR(check_type(&s, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, s.data->dtype, &s.shape, &out, err));
	const struct mu_tensor *grad = s.data, *ids = s.ids;
	const int64_t row = s.row_size;
	size_t size = mu_dtype_size(grad->dtype);
	MU_AUTO_TENSOR divisors = {0};
	MU_RETURN_IF_ERROR(segments_divisors(ids, grad->shape.dim[0], how, &divisors, err));
	const double *divisor = MU_DATA(double, &divisors); /* NULL: none */
	MU_AUTO_FREE char *scaled = malloc((size_t)row * size + 1);
	if (!scaled)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a row of %lld",
			       (long long)row);
	elems_zero(grad->dtype, out->data, 0, s.shape.count);
	for (int64_t i = 0; i < ids->shape.count; i++) {
		int64_t id = mu_tensor_int(ids, i), to = segments_row_of(&s, i);
		elems_copy(grad->dtype, scaled, 0, grad->data, id * row, row);
		if (divisor && divisor[id] != 1)
			scale_row(grad->dtype, scaled, row, BIN_Mul, 1 / divisor[id]);
		loops->reduce[RED_SUM][grad->dtype].add(
		    (char *)out->data + (size_t)(to * row) * size, scaled, row);
	}
	return 0;
}

KERNEL_RUN(segment_sum, segment(c, RED_SUM, DIVIDE_BY_NOTHING, err))
KERNEL_RUN(segment_prod, segment(c, RED_PROD, DIVIDE_BY_NOTHING, err))
KERNEL_RUN(segment_max, segment(c, RED_MAX, DIVIDE_BY_NOTHING, err))
KERNEL_RUN(segment_min, segment(c, RED_MIN, DIVIDE_BY_NOTHING, err))
KERNEL_RUN(segment_mean, segment(c, RED_SUM, DIVIDE_BY_COUNT, err))
KERNEL_RUN(sparse_sum, sparse_segment(c, DIVIDE_BY_NOTHING, err))
KERNEL_RUN(sparse_mean, sparse_segment(c, DIVIDE_BY_COUNT, err))
KERNEL_RUN(sparse_sqrt_n, sparse_segment(c, DIVIDE_BY_SQRT_COUNT, err))
KERNEL_RUN(sparse_sum_grad, sparse_segment_grad(c, DIVIDE_BY_NOTHING, err))
KERNEL_RUN(sparse_mean_grad, sparse_segment_grad(c, DIVIDE_BY_COUNT, err))
KERNEL_RUN(sparse_sqrt_n_grad, sparse_segment_grad(c, DIVIDE_BY_SQRT_COUNT, err))

static const struct kernel rows[] = {
    {"SegmentSum", .run = segment_sum},
    {"SegmentProd", .run = segment_prod},
    {"SegmentMax", .run = segment_max},
    {"SegmentMin", .run = segment_min},
    {"SegmentMean", .run = segment_mean},
    {"SparseSegmentSum SparseSegmentSumWithNumSegments", .run = sparse_sum},
    {"SparseSegmentMean SparseSegmentMeanWithNumSegments", .run = sparse_mean},
    {"SparseSegmentSqrtN SparseSegmentSqrtNWithNumSegments", .run = sparse_sqrt_n},
    {"SparseSegmentSumGrad SparseSegmentSumGradV2", .run = sparse_sum_grad},
    {"SparseSegmentMeanGrad SparseSegmentMeanGradV2", .run = sparse_mean_grad},
    {"SparseSegmentSqrtNGrad SparseSegmentSqrtNGradV2", .run = sparse_sqrt_n_grad},
};
KERNEL_TABLE(math_segment_ops, rows)
