/* SPDX-License-Identifier: Apache-2.0 */
/* Roll, ReverseSequence, permutations of data formats, and searches in sorted rows (LowerBound,
 * UpperBound). */
#include <string.h>

#include "task/kernels/array/checks.h"
#include "task/kernels/array/roll_reverse.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"
#include "task/kernels/engine/real_types.h"

/* ---- Roll ---- */

static int roll(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *shift = kernel_in(c, 1);
	int64_t shifts[MU_MAX_RANK] = {0};
	struct mu_tensor *out;

	if (in->shape.rank < 1)
		return mu_invalid(err, "input must be 1-D or higher");
	for (unsigned i = 1; i <= 2; i++)
		if (kernel_in(c, i)->shape.rank > 1)
			return mu_invalid(err, "%s must be a scalar or a 1-D vector. Found: %s",
					  i == 1 ? "shift" : "axis",
					  mu_shape_str(&kernel_in(c, i)->shape));
	if (!mu_shape_eq(&shift->shape, &kernel_in(c, 2)->shape))
		return mu_invalid(err, "shift and axis must have the same size. Found: %s and %s",
				  mu_shape_str(&shift->shape),
				  mu_shape_str(&kernel_in(c, 2)->shape));
	for (int64_t i = 0; i < shift->shape.count; i++) {
		int64_t axis = mu_tensor_int(kernel_in(c, 2), i);
		axis += axis < 0 ? in->shape.rank : 0;
		if (axis < 0 || axis >= in->shape.rank)
			return mu_invalid(err, "axis %lld is out of range", (long long)axis);
		int64_t n = in->shape.dim[axis] > 1 ? in->shape.dim[axis] : 1;
		/* as in TensorFlow, the lower 32 bits of a shift count */
		shifts[axis] = (shifts[axis] + (int32_t)mu_tensor_int(shift, i) % n + n) % n;
	}
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, &in->shape, &out, err));
	if (!in->shape.count)
		return 0;
	return roll_copy(out, in, shifts, err);
}

/* ---- ReverseSequence ---- */

static int reverse_sequence(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *lengths = kernel_in(c, 1);
	int64_t seq = args_attr_int(c->node, "seq_dim", 0);
	int64_t batch = args_attr_int(c->node, "batch_dim", 0);
	const struct mu_shape *s = &in->shape;
	struct mu_tensor *out;

	if (batch == seq)
		return mu_invalid(err, "batch_dim == seq_dim == %lld", (long long)seq);
	if (seq < 0 || seq >= s->rank || batch < 0 || batch >= s->rank)
		return mu_invalid(err,
				  "seq_dim and batch_dim must be < input rank (%lld, %lld vs. %d)",
				  (long long)seq, (long long)batch, s->rank);
	if (lengths->shape.count != s->dim[batch])
		return mu_invalid(err, "Length of seq_lengths != input.dims(%lld), (%lld vs. %lld)",
				  (long long)batch, (long long)lengths->shape.count,
				  (long long)s->dim[batch]);
	for (int64_t b = 0; b < lengths->shape.count; b++)
		if (mu_tensor_int(lengths, b) < 0 || mu_tensor_int(lengths, b) > s->dim[seq])
			return mu_invalid(err, "seq_lengths(%lld) must be in [0, %lld]",
					  (long long)b, (long long)s->dim[seq]);
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, s, &out, err));
	if (!s->count)
		return 0;
	return reverse_sequence_copy(c, out, in, lengths, (int)seq, (int)batch, err);
}

/* ---- DataFormatVecPermute, DataFormatDimMap ---- */

static int read_formats(const struct mu_node *n, const char **from, const char **to,
			struct mu_err *err)
{
	*from = args_attr_string(n, "src_format", "NHWC");
	*to = args_attr_string(n, "dst_format", "NCHW");
	size_t len = strlen(*from);
	if (len != 4 && len != 5)
		return mu_invalid(
		    err, "Source format must be of length 4 or 5, received src_format = %.64s",
		    *from);
	if (strlen(*to) != 4 && strlen(*to) != 5)
		return mu_invalid(
		    err, "Destination format must be of length 4 or 5, received dst_format = %.64s",
		    *to);
	bool is_permutation = strlen(*to) == len;
	for (size_t i = 0; i < len; i++)
		is_permutation &= strchr(*to, (*from)[i]) && !strchr(*from + i + 1, (*from)[i]);
	if (!is_permutation)
		return mu_invalid(err,
				  "Destination and source format must determine a permutation, "
				  "got %.16s and %.16s",
				  *from, *to);
	return 0;
}

static int format_vec_permute(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, 0);
	const char *from, *to;
	char src[8] = "", dst[8] = "";
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(read_formats(c->node, &from, &to, err));
	int64_t len = (int64_t)strlen(from), n = x->shape.rank ? x->shape.dim[0] : 0;
	bool spatial = n == len - 2;
	if (x->shape.rank < 1 || x->shape.rank > 2 || (n != len && !spatial) ||
	    (x->shape.rank == 2 && x->shape.dim[1] != 2))
		return mu_invalid(err,
				  "input must be a vector or a matrix of two columns, of %lld or "
				  "%lld rows, but got shape %s",
				  (long long)len, (long long)len - 2, mu_shape_str(&x->shape));
	for (int64_t i = 0, a = 0, b = 0; i < len; i++) { /* a spatial vector has no N and C */
		if (!spatial || !strchr("NC", from[i]))
			src[a++] = from[i];
		if (!spatial || !strchr("NC", to[i]))
			dst[b++] = to[i];
	}
	if ((int64_t)strlen(src) != n || (int64_t)strlen(dst) != n)
		return mu_invalid(err, "the formats name no N and C");
	MU_RETURN_IF_ERROR(kernel_out(c, 0, x->dtype, &x->shape, &out, err));
	int64_t width = x->shape.rank == 2 ? 2 : 1;
	for (int64_t i = 0; i < n; i++)
		elems_copy(x->dtype, out->data, i * width, x->data,
			   (strchr(src, dst[i]) - src) * width, width);
	return 0;
}

static int format_dim_map(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, 0);
	const char *from, *to;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(read_formats(c->node, &from, &to, err));
	int64_t len = (int64_t)strlen(from);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, x->dtype, &x->shape, &out, err));
	for (int64_t i = 0; i < x->shape.count; i++) {
		/* out of range: the same result as TensorFlow */
		int64_t dim = mu_tensor_int(x, i);
		dim = (dim < 0 ? dim + len : dim) % len;
		int64_t at = strchr(to, from[dim < 0 ? len - 1 : dim]) - to;
		mu_tensor_set_int(out, i, at);
	}
	return 0;
}

/* ---- LowerBound, UpperBound ---- */

#define SEARCH(T, dt, ...)                                                                         \
	static int64_t search_##T(const void *row_, int64_t n, const void *values, int64_t i,      \
				  bool upper)                                                      \
	{                                                                                          \
		const T *row = row_, v = ((const T *)values)[i];                                   \
		int64_t from = 0;                                                                  \
		while (from < n) {                                                                 \
			int64_t mid = from + (n - from) / 2;                                       \
			if (upper ? !(v < row[mid]) : row[mid] < v)                                \
				from = mid + 1;                                                    \
			else                                                                       \
				n = mid;                                                           \
		}                                                                                  \
		return from;                                                                       \
	}
REAL_TYPES(SEARCH)

typedef int64_t search_fn(const void *row, int64_t n, const void *values, int64_t i, bool upper);
#define ROW(T, dt, ...) [dt] = search_##T,
static search_fn *const searches[MU_DT_COUNT] = {REAL_TYPES(ROW)};

int check_bound(const struct kernel_call *c, enum mu_dtype *type, struct mu_err *err)
{
	const struct mu_tensor *sorted = kernel_in(c, 0);

	*type = args_attr_type(c->node, "out_type", MU_INT32);
	if (!searches[sorted->dtype] || (*type != MU_INT32 && *type != MU_INT64))
		return args_no_kernel(c, sorted->dtype, err);
	return 0;
}

static int search_bound(struct kernel_call *c, bool upper, struct mu_err *err)
{
	const struct mu_tensor *sorted = kernel_in(c, 0), *values = kernel_in(c, 1);
	enum mu_dtype type;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(check_bound(c, &type, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &values->shape, &out, err));
	int64_t n = sorted->shape.dim[1], m = values->shape.dim[1];
	for (int64_t i = 0; i < values->shape.count; i++) {
		const char *row =
		    (const char *)sorted->data + (size_t)(i / m * n) * mu_dtype_size(sorted->dtype);
		int64_t at = searches[sorted->dtype](row, n, values->data, i, upper);
		mu_tensor_set_int(out, i, at);
	}
	return 0;
}

KERNEL_RUN(lower_bound, search_bound(c, false, err))
KERNEL_RUN(upper_bound, search_bound(c, true, err))

static const struct kernel rows[] = {
    {"Roll", .run = roll},
    {"ReverseSequence", .run = reverse_sequence},
    {"DataFormatVecPermute", .run = format_vec_permute},
    {"DataFormatDimMap", .run = format_dim_map},
    {"LowerBound", .run = lower_bound},
    {"UpperBound", .run = upper_bound},
};
KERNEL_TABLE(array_order, rows)
