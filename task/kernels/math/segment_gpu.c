/* SPDX-License-Identifier: Apache-2.0 */
/* Rows reduced by segment on a GPU.  Ids and indices are in host memory: for embeddings they come
 * from Unique, which runs on the CPU.  The host checks them as for the CPU kernels, lists the input
 * rows of each output row, and copies the list to the GPU at once. */
#include <stdlib.h>
#include <string.h>

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/math/segment.h"

/* The mode of an op, by a part of the op's name. */
static const struct mode {
	const char *name, *kernel;
	enum reduce_op op;
	enum segment_divide divide;
} modes[] = {
    {"SegmentSum", "segment_sum", RED_SUM, DIVIDE_BY_NOTHING},
    {"SegmentProd", "segment_prod", RED_PROD, DIVIDE_BY_NOTHING},
    {"SegmentMax", "segment_max", RED_MAX, DIVIDE_BY_NOTHING},
    {"SegmentMin", "segment_min", RED_MIN, DIVIDE_BY_NOTHING},
    {"SegmentMean", "segment_sum", RED_SUM, DIVIDE_BY_COUNT},
    {"SegmentSqrtN", "segment_sum", RED_SUM, DIVIDE_BY_SQRT_COUNT},
};

static const struct mode *mode_of(const struct kernel_call *c)
{
	const struct mode *w = modes;

	while (!strstr(c->node->op, w->name))
		w++;
	return w;
}

/* ---- the list, in one tensor: starts, picks, then factors of picks or divisors of rows ---- */

struct list {
	struct mu_tensor t;
	int64_t *starts, *picks;
	double *scales; /* NULL: none */
};

static int list_new(const struct segments *s, int64_t n_scales, struct list *out,
		    struct mu_err *err)
{
	int64_t n = s->ids->shape.count, sum;
	struct mu_shape shape;

	if (__builtin_add_overflow(s->n + 1, n + n_scales, &sum))
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "too many segments: %lld",
			       (long long)s->n);
	shape = mu_shape_vec(sum);
	MU_RETURN_IF_ERROR(mu_tensor_new(&out->t, MU_INT64, &shape, err));
	memset(out->t.data, 0, mu_tensor_bytes(&out->t));
	out->starts = MU_DATA(int64_t, &out->t);
	out->picks = out->starts + s->n + 1;
	out->scales = n_scales ? (double *)(void *)(out->picks + n) : NULL;
	return 0;
}

/* Ids are sorted, so the list has the order of the inputs. */
static int segment_gpu_list_forward(const struct segments *s, struct list *l, struct mu_err *err)
{
	const int64_t n = s->ids->shape.count;

	MU_RETURN_IF_ERROR(list_new(s, s->divide ? s->n : 0, l, err));
	for (int64_t i = 0; i < n; i++) {
		l->starts[mu_tensor_int(s->ids, i) + 1]++;
		l->picks[i] = s->indices ? mu_tensor_int(s->indices, i) : i;
	}
	for (int64_t r = 0; r < s->n; r++)
		l->starts[r + 1] += l->starts[r];
	if (!l->scales)
		return 0;
	MU_AUTO_TENSOR divisors = {0};
	MU_RETURN_IF_ERROR(segments_divisors(s->ids, s->n, s->divide, &divisors, err));
	memcpy(l->scales, divisors.data, (size_t)s->n * sizeof(double));
	return 0;
}

/* Lists the gradients by output row, and those of a row in the order of the indices. */
static int segment_gpu_list_backward(const struct segments *s, struct list *l, struct mu_err *err)
{
	const int64_t n = s->ids->shape.count;
	MU_AUTO_TENSOR divisors = {0};
	MU_AUTO_FREE int64_t *next = calloc((size_t)s->n + 1, sizeof *next);

	MU_RETURN_IF_ERROR(
	    segments_divisors(s->ids, s->data->shape.dim[0], s->divide, &divisors, err));
	const double *divisor = MU_DATA(double, &divisors); /* NULL: none */
	MU_RETURN_IF_ERROR(list_new(s, s->divide ? n : 0, l, err));
	if (!next)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld segments",
			       (long long)s->n);
	for (int64_t i = 0; i < n; i++)
		l->starts[segments_row_of(s, i) + 1]++;
	for (int64_t r = 0; r < s->n; r++) {
		l->starts[r + 1] += l->starts[r];
		next[r + 1] = l->starts[r + 1];
	}
	for (int64_t i = 0; i < n; i++) {
		int64_t id = mu_tensor_int(s->ids, i), at = next[segments_row_of(s, i)]++;
		l->picks[at] = id;
		if (l->scales)
			l->scales[at] = 1 / divisor[id];
	}
	return 0;
}

static int segment_gpu_run(struct kernel_call *c, const struct segments *s, bool backward,
			   struct mu_err *err)
{
	MU_AUTO_TENSOR device_list = {0};
	struct list l = {0};
	uint64_t out;
	int rc = gpu_out(c, 0, s->data->dtype, &s->shape, &out, err);

	if (rc || !s->shape.count)
		return rc;
	if (!(rc = backward ? segment_gpu_list_backward(s, &l, err)
			    : segment_gpu_list_forward(s, &l, err)))
		rc = gpu_copy_to_device(kernel_gpu(c), &l.t, c->node->name, &device_list, err);
	const bool scaled = l.scales != NULL;
	mu_tensor_unref(&l.t);
	if (rc)
		return rc;
	struct segment_args a = {.out = out,
				 .data = gpu_address(s->data),
				 .starts = gpu_address(&device_list),
				 .n = s->shape.count,
				 .row = s->row_size};
	a.picks = a.starts + (uint64_t)(s->n + 1) * sizeof(int64_t);
	uint64_t scales = a.picks + (uint64_t)s->ids->shape.count * sizeof(int64_t);
	if (scaled)
		*(backward ? &a.factors : &a.divisors) = scales;
	return gpu_run_type(kernel_gpu(c), mode_of(c)->kernel, s->data->dtype, a.n, &a, err);
}

static int segment_gpu(struct kernel_call *c, struct mu_err *err)
{
	SEGMENTS_AUTO s = {0};

	MU_RETURN_IF_ERROR(segments_read(c, mode_of(c)->op, mode_of(c)->divide, &s, err));
	return segment_gpu_run(c, &s, false, err);
}

static int sparse_segment_gpu(struct kernel_call *c, struct mu_err *err)
{
	SEGMENTS_AUTO s = {0};

	MU_RETURN_IF_ERROR(segments_read_sparse(c, mode_of(c)->divide, &s, err));
	return segment_gpu_run(c, &s, false, err);
}

static int segment_gpu_gradient(struct kernel_call *c, struct mu_err *err)
{
	SEGMENTS_AUTO s = {0};

	MU_RETURN_IF_ERROR(segments_read_grad(c, mode_of(c)->divide, &s, err));
	return segment_gpu_run(c, &s, true, err);
}

/* host: a bit for each input that the host reads. */
#define ROW(ops, fn, host) GPU_ROW(ops, fn, "T", GPU_FLT, .host_in = host, .host_out = 1 << 1)
static const struct device_kernel rows[] = {
    ROW("SegmentSum SegmentProd SegmentMax SegmentMin SegmentMean", segment_gpu, 1 << 1),
    ROW("SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN SparseSegmentSumWithNumSegments "
	"SparseSegmentMeanWithNumSegments",
	sparse_segment_gpu, 7 << 1),
    ROW("SparseSegmentSumGrad SparseSegmentMeanGrad SparseSegmentSqrtNGrad "
	"SparseSegmentSumGradV2 SparseSegmentMeanGradV2 SparseSegmentSqrtNGradV2",
	segment_gpu_gradient, 7 << 1),
};
KERNEL_TABLE(math_segment_gpu, rows)
