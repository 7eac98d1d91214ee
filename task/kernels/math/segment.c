/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the inputs of segment ops; the ops are in segment_ops.c. */
#include "task/kernels/math/segment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "task/kernels/array/rows.h"
#include "task/kernels/engine/args.h"

void segments_fini(struct segments *s)
{
	free(s->distinct);
	s->distinct = NULL;
}

static int check_indices(const struct mu_tensor *indices, int64_t limit, struct mu_err *err)
{
	for (int64_t i = 0; i < indices->shape.count; i++) {
		int64_t k = mu_tensor_int(indices, i);
		if (k < 0 || k >= limit)
			return mu_invalid(err, "Bad: indices[%lld] == %lld out of range [0, %lld)",
					  (long long)i, (long long)k, (long long)limit);
	}
	return 0;
}

static int check_ids(const struct mu_tensor *ids, bool sorted, int64_t limit, struct mu_err *err)
{
	for (int64_t i = 0; i < ids->shape.count; i++) {
		int64_t id = mu_tensor_int(ids, i);
		if (sorted && i && id < mu_tensor_int(ids, i - 1))
			return mu_invalid(err, "segment ids are not increasing");
		if (id < 0 || id >= limit)
			return mu_invalid(err,
					  "Segment id %lld out of range [0, %lld), possibly "
					  "because 'segment_ids' input is not sorted.",
					  (long long)id, (long long)limit);
	}
	return 0;
}

int segments_divisors(const struct mu_tensor *ids, int64_t n, enum segment_divide how,
		      struct mu_tensor *out, struct mu_err *err)
{
	const struct mu_shape vec = mu_shape_vec(n);
	double *divisor;

	if (how == DIVIDE_BY_NOTHING)
		return 0;
	MU_RETURN_IF_ERROR(mu_tensor_new(out, MU_DOUBLE, &vec, err));
	divisor = MU_DATA(double, out);
	memset(divisor, 0, (size_t)n * sizeof *divisor);
	for (int64_t i = 0; i < ids->shape.count; i++)
		divisor[mu_tensor_int(ids, i)]++;
	for (int64_t i = 0; i < n; i++)
		divisor[i] = divisor[i] == 0               ? 1
			     : how == DIVIDE_BY_SQRT_COUNT ? sqrt(divisor[i])
							   : divisor[i];
	return 0;
}

static int last_id(const struct mu_tensor *ids, int64_t *n, struct mu_err *err)
{
	int64_t last = ids->shape.count ? mu_tensor_int(ids, ids->shape.count - 1) : -1;

	if (last < -1 || last == INT64_MAX)
		return mu_invalid(err, "segment ids must be >= 0");
	*n = last + 1;
	return 0;
}

/* The output has s->n rows of the shape of data's rows. */
static int set_shape(struct segments *s, struct mu_err *err)
{
	s->row_size = mu_shape_product(&s->data->shape, 1, s->data->shape.rank);
	return mu_shape_splice(&s->shape, &s->data->shape, 0, 1, 1, &s->n, err);
}

int segments_read(struct kernel_call *c, enum reduce_op op, enum segment_divide how,
		  struct segments *s, struct mu_err *err)
{
	*s = (struct segments){
	    .data = kernel_in(c, 0), .ids = kernel_in(c, 1), .op = op, .divide = how};
	if (s->ids->shape.count != s->data->shape.dim[0])
		return mu_invalid(err,
				  "segment_ids should be the same size as dimension 0 of input.");
	MU_RETURN_IF_ERROR(last_id(s->ids, &s->n, err));
	MU_RETURN_IF_ERROR(check_ids(s->ids, true, s->n, err));
	return set_shape(s, err);
}

/* The sparse ops and their gradients have the inputs data (or gradient), indices, segment ids. */
static void read_sparse_inputs(struct kernel_call *c, enum segment_divide how, struct segments *s)
{
	*s = (struct segments){.data = kernel_in(c, 0),
			       .indices = kernel_in(c, 1),
			       .ids = kernel_in(c, 2),
			       .op = RED_SUM,
			       .divide = how};
}

int segments_read_sparse(struct kernel_call *c, enum segment_divide how, struct segments *s,
			 struct mu_err *err)
{
	read_sparse_inputs(c, how, s);
	MU_RETURN_IF_ERROR(c->n_in > 3 ? args_int(c, 3, &s->n, err) : last_id(s->ids, &s->n, err));
	if (s->n < 0)
		return mu_invalid(err, "segment ids must be >= 0");
	MU_RETURN_IF_ERROR(check_ids(s->ids, true, s->n, err));
	MU_RETURN_IF_ERROR(check_indices(s->indices, s->data->shape.dim[0], err));
	return set_shape(s, err);
}

/* ---- gradients: grad, indices, segment_ids, rows of the result ---- */

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The indices in ascending order without duplicates; *n of them.  NULL: no memory. */
static int64_t *sorted_distinct(const struct mu_tensor *indices, int64_t *n)
{
	int64_t *sorted = calloc((size_t)indices->shape.count + 1, sizeof *sorted), n_distinct = 0;

	for (int64_t i = 0; sorted && i < indices->shape.count; i++)
		sorted[i] = mu_tensor_int(indices, i);
	if (sorted)
		qsort(sorted, (size_t)indices->shape.count, sizeof *sorted, by_number);
	for (int64_t i = 0; sorted && i < indices->shape.count; i++)
		if (!i || sorted[i] != sorted[i - 1])
			sorted[n_distinct++] = sorted[i];
	*n = n_distinct;
	return sorted;
}

/* The V2 gradients return only the rows with a gradient; output 1 has their indices. */
static int output_distinct(struct kernel_call *c, const int64_t *distinct, int64_t n,
			   struct mu_err *err)
{
	enum mu_dtype t = kernel_in(c, 1)->dtype;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out_vec(c, 1, t, n, &out, err));
	for (int64_t i = 0; i < n; i++)
		mu_tensor_set_int(out, i, distinct[i]);
	return 0;
}

int segments_read_grad(struct kernel_call *c, enum segment_divide how, struct segments *s,
		       struct mu_err *err)
{
	read_sparse_inputs(c, how, s);
	MU_RETURN_IF_ERROR(args_int(c, 3, &s->n, err));
	MU_RETURN_IF_ERROR(check_ids(s->ids, false, s->data->shape.dim[0], err));
	MU_RETURN_IF_ERROR(rows_check(s->indices, s->n, err));
	if (c->n_out > 1) {
		s->distinct = sorted_distinct(s->indices, &s->n);
		if (!s->distinct)
			return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld indices",
				       (long long)s->indices->shape.count);
		MU_RETURN_IF_ERROR(output_distinct(c, s->distinct, s->n, err));
	}
	return set_shape(s, err);
}

int64_t segments_row_of(const struct segments *s, int64_t i)
{
	int64_t to = mu_tensor_int(s->indices, i);

	if (!s->distinct)
		return to;
	return (int64_t *)bsearch(&to, s->distinct, (size_t)s->n, sizeof to, by_number) -
	       s->distinct;
}
