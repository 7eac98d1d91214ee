/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, its logarithm and the two cross entropies, row by row. */
#include <tgmath.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/nn/checks.h"

enum { ROWS_MIN_ELEMENTS = 16384 }; /* elements of a thread's rows */

/* The arguments of a loop over rows, which threads divide. */
struct rows {
	enum mu_dtype type;
	bool logarithm;
	int64_t n;
	const char *in;
	char *out; /* for cross entropies: the gradient */
	const void *dense;
	const struct mu_tensor *sparse; /* one label a row; NULL: `dense` has the labels */
	void *loss;
};

#define ROW_FUNCTIONS(T, dt)                                                                       \
	static void log_softmax_row_##T(T *o, const T *x, int64_t n)                               \
	{                                                                                          \
		T stats[2];                                                                        \
		loops->softmax[dt](o, x, n, stats);                                                \
		/* two steps: added to a large maximum first, log_sum would be lost in rounding */ \
		T log_sum = log(stats[1]);                                                         \
		loops->binary[BIN_Sub][dt](o, x, &stats[0], n, RIGHT_SCALAR);                      \
		loops->binary[BIN_Sub][dt](o, o, &log_sum, n, RIGHT_SCALAR);                       \
	}                                                                                          \
	/* back = softmax(x) - labels; returns the row's loss. */                                  \
	static T dense_loss_row_##T(T *back, const T *x, const T *labels, int64_t n)               \
	{                                                                                          \
		T stats[2], loss = 0;                                                              \
		loops->softmax[dt](back, x, n, stats);                                             \
		T log_sum = log(stats[1]);                                                         \
		for (int64_t i = 0; i < n; i++) {                                                  \
			if (labels[i] != 0)                                                        \
				loss += labels[i] * (log_sum - (x[i] - stats[0]));                 \
			back[i] -= labels[i];                                                      \
		}                                                                                  \
		return loss;                                                                       \
	}                                                                                          \
	static T sparse_loss_row_##T(T *back, const T *x, int64_t label, int64_t n)                \
	{                                                                                          \
		T stats[2];                                                                        \
		loops->softmax[dt](back, x, n, stats);                                             \
		back[label] -= 1;                                                                  \
		return log(stats[1]) - (x[label] - stats[0]);                                      \
	}                                                                                          \
	static void loss_rows_##T(const struct rows *r, int64_t from, int64_t to)                  \
	{                                                                                          \
		T *loss = r->loss;                                                                 \
		for (int64_t i = from; i < to; i++) {                                              \
			const int64_t n = r->n, at = i * n;                                        \
			const T *x = (const T *)r->in + at, *dense = r->dense;                     \
			T *back = (T *)r->out + at;                                                \
			loss[i] = r->sparse ? sparse_loss_row_##T(back, x,                         \
								  mu_tensor_int(r->sparse, i), n)  \
					    : dense_loss_row_##T(back, x, dense + at, n);          \
		}                                                                                  \
	}
ROW_FUNCTIONS(float, MU_FLOAT)
ROW_FUNCTIONS(double, MU_DOUBLE)

static void loss_rows(void *arg, int64_t from, int64_t to)
{
	const struct rows *r = arg;

	if (r->type == MU_FLOAT)
		loss_rows_float(r, from, to);
	else
		loss_rows_double(r, from, to);
}

static void run_rows(void *arg, int64_t from, int64_t to)
{
	const struct rows *r = arg;
	size_t row = (size_t)r->n * mu_dtype_size(r->type);
	double stats[2];

	for (int64_t i = from; i < to; i++) {
		void *o = r->out + (size_t)i * row;
		const void *x = r->in + (size_t)i * row;
		if (!r->logarithm)
			loops->softmax[r->type](o, x, r->n, stats);
		else if (r->type == MU_FLOAT)
			log_softmax_row_float(o, x, r->n);
		else
			log_softmax_row_double(o, x, r->n);
	}
}

static int softmax_rows_of(struct kernel_call *c, bool logarithm, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &in->shape, &out, err));
	if (!in->shape.count)
		return 0;
	int64_t n = in->shape.dim[in->shape.rank - 1];
	struct rows r = {in->dtype, logarithm, n, in->data, out->data, NULL, NULL, NULL};
	kernel_parallel(c, in->shape.count / n, 1 + ROWS_MIN_ELEMENTS / n, run_rows, &r);
	return 0;
}

KERNEL_RUN(softmax, softmax_rows_of(c, false, err))
KERNEL_RUN(log_softmax, softmax_rows_of(c, true, err))

/* Input i, broadcast to shape `to`; copied only if its size changes. */
static int softmax_broadcast(const struct kernel_call *c, unsigned i, const struct mu_shape *to,
			     struct mu_tensor *out, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, i);
	struct view v;

	if (in->shape.count == to->count) {
		*out = mu_tensor_reshaped(in, to);
		return 0;
	}

	MU_RETURN_IF_ERROR(mu_tensor_new(out, in->dtype, to, err));
	broadcast_view(&v, &in->shape, to);
	view_read(in->dtype, out->data, in->data, &v);
	return 0;
}

int check_cross_entropy(const struct kernel_call *c, struct mu_shape *common, struct mu_err *err)
{
	if (broadcast_shape(&kernel_in(c, 0)->shape, &kernel_in(c, 1)->shape, common, NULL) ||
	    common->rank != 2)
		return mu_invalid(
		    err, "logits and labels must be broadcastable: logits_size=%s labels_size=%s",
		    mu_shape_str(&kernel_in(c, 0)->shape), mu_shape_str(&kernel_in(c, 1)->shape));
	return 0;
}

static int softmax_cross_entropy(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_TENSOR logits = {0}, labels = {0};
	struct mu_tensor *loss, *back;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(check_cross_entropy(c, &shape, err));
	struct mu_shape rows = mu_shape_vec(shape.dim[0]);
	int64_t n = shape.dim[1];
	MU_RETURN_IF_ERROR(softmax_broadcast(c, 0, &shape, &logits, err));
	MU_RETURN_IF_ERROR(softmax_broadcast(c, 1, &shape, &labels, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, logits.dtype, &rows, &loss, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, logits.dtype, &shape, &back, err));
	struct rows r = {.type = logits.dtype,
			 .n = n,
			 .in = logits.data,
			 .out = back->data,
			 .dense = labels.data,
			 .loss = loss->data};
	kernel_parallel(c, rows.count, 1 + ROWS_MIN_ELEMENTS / (n + 1), loss_rows, &r);
	return 0;
}

int check_sparse_cross_entropy(const struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *logits = kernel_in(c, 0), *labels = kernel_in(c, 1);

	if (logits->shape.rank != 2)
		return mu_invalid(err, "logits must be 2-D, but got shape %s",
				  mu_shape_str(&logits->shape));
	if (labels->shape.rank != 1)
		return mu_invalid(err, "labels must be 1-D, but got shape %s",
				  mu_shape_str(&labels->shape));
	if (labels->shape.dim[0] != logits->shape.dim[0])
		return mu_invalid(err,
				  "logits and labels must have the same first dimension, got "
				  "logits shape %s and labels shape %s",
				  mu_shape_str(&logits->shape), mu_shape_str(&labels->shape));
	if (!logits->shape.dim[1])
		return mu_invalid(err, "Must have at least one class, but got logits shape %s",
				  mu_shape_str(&logits->shape));
	return 0;
}

/* Reports a label out of range, and lists all labels as far as the message has room. */
static int wrong_label(const struct mu_tensor *labels, int64_t label, int64_t classes,
		       struct mu_err *err)
{
	enum { LIST_MAX = 140 };
	MU_AUTO_BUF all = {0};

	for (int64_t r = 0; r < labels->shape.count && all.len < LIST_MAX; r++)
		mu_buf_printf(&all, "%s%lld", r ? " " : "", (long long)mu_tensor_int(labels, r));
	return mu_invalid(err,
			  "Received a label value of %lld which is outside the valid range of [0, "
			  "%lld).  Label values: %.*s",
			  (long long)label, (long long)classes, LIST_MAX, all.data);
}

static int softmax_check_labels(const struct mu_tensor *labels, int64_t classes, struct mu_err *err)
{
	for (int64_t r = 0; r < labels->shape.count; r++) {
		int64_t label = mu_tensor_int(labels, r);
		if (label < 0 || label >= classes)
			return wrong_label(labels, label, classes, err);
	}
	return 0;
}

static int sparse_cross_entropy(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *logits = kernel_in(c, 0), *labels = kernel_in(c, 1);
	struct mu_tensor *loss, *back;

	MU_RETURN_IF_ERROR(check_sparse_cross_entropy(c, err));
	int64_t n = logits->shape.dim[1];
	MU_RETURN_IF_ERROR(softmax_check_labels(labels, n, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, logits->dtype, &labels->shape, &loss, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, logits->dtype, &logits->shape, &back, err));
	struct rows r = {.type = logits->dtype,
			 .n = n,
			 .in = logits->data,
			 .out = back->data,
			 .sparse = labels,
			 .loss = loss->data};
	kernel_parallel(c, labels->shape.count, 1 + ROWS_MIN_ELEMENTS / n, loss_rows, &r);
	return 0;
}

static const struct kernel rows[] = {
    {"Softmax", .run = softmax},
    {"LogSoftmax", .run = log_softmax},
    {"SoftmaxCrossEntropyWithLogits", .run = softmax_cross_entropy},
    {"SparseSoftmaxCrossEntropyWithLogits", .run = sparse_cross_entropy},
};
KERNEL_TABLE(nn_softmax, rows)
