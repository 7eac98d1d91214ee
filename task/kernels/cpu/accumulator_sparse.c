/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse gradients: rows by number, summed where they meet.  A mean is taken row by row: what a row
 * was given, by how many times it was given. */
#include <string.h>

#include "lib/base/map.h"
#include "task/kernels/accumulator.h"
#include "task/kernels/args.h"
#include "task/kernels/convert.h"
#include "task/kernels/loops.h"

struct row {
	int64_t index, times;
	char *sum;
};

struct sparse {
	struct accumulator a;
	struct mu_shape tail;       /* of a row */
	int64_t whole[MU_MAX_RANK]; /* the shape that the last gradient said it is part of */
	int whole_n;
	struct row *rows;
	size_t n, room;
	struct mu_map by_index;
};

static struct sparse *sparse_of(struct accumulator *a)
{
	return MU_CONTAINER(a, struct sparse, a);
}

static void forget(struct sparse *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->rows[i].sum);
	s->n = 0;
	mu_map_fini(&s->by_index);
	mu_map_init(&s->by_index);
}

static struct accumulator *make(void)
{
	struct sparse *s = MU_NEW(struct sparse);

	mu_map_init(&s->by_index);
	return &s->a;
}

static void sparse_free(struct accumulator *a)
{
	struct sparse *s = sparse_of(a);

	forget(s);
	mu_map_fini(&s->by_index);
	free(s->rows);
	free(s);
}

static int check_gradient(const struct kernel_call *c, const struct accumulator *s, int64_t *whole,
			  int *n, struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, 2), *values = kernel_in(c, 3);
	bool known = args_attr_bool(c->node, "has_known_shape", true);
	int rc;

	if ((rc = args_type(c, 2, MU_INT64, err)) || (rc = args_type(c, 3, s->dtype, err)) ||
	    (rc = args_rank(c, 2, 1, err)) || (rc = args_ints(c, 4, whole, MU_MAX_RANK, n, err)))
		return rc;
	if (values->shape.rank < 1 || values->shape.dim[0] != indices->shape.count)
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "Input values and indices must have the same number of rows: %s and %s",
		    mu_shape_str(&values->shape), mu_shape_str(&indices->shape));
	bool fits = !known || *n == 0 || *n == values->shape.rank;
	for (int d = 1; fits && known && d < *n; d++)
		fits = whole[d] == values->shape.dim[d];
	for (int d = 1; fits && s->shape.rank > 0 && d < s->shape.rank; d++)
		fits = s->shape.rank == values->shape.rank &&
		       (s->shape.dim[d] < 0 || s->shape.dim[d] == values->shape.dim[d]);
	if (!fits)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Shape mismatch: a gradient of shape %s for an accumulator of %s",
			       mu_shape_str(&values->shape), mu_pshape_str(&s->shape));
	int64_t limit = known && *n ? whole[0] : s->shape.rank > 0 ? s->shape.dim[0] : -1;
	for (int64_t i = 0; i < indices->shape.count; i++) {
		int64_t k = MU_DATA(int64_t, indices)[i];
		if (k < 0 || (limit >= 0 && k >= limit))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Invalid index %lld in the indices of a sparse gradient",
				       (long long)k);
	}
	return 0;
}

static struct row *row_of(struct sparse *s, int64_t index, size_t bytes)
{
	size_t k = (size_t)(uintptr_t)mu_map_get_n(&s->by_index, &index, sizeof index);

	if (k)
		return &s->rows[k - 1];
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 16;
		s->rows = mu_xrealloc(s->rows, s->room * sizeof *s->rows);
	}
	s->rows[s->n] = (struct row){.index = index, .sum = mu_xcalloc(1, bytes + 1)};
	mu_map_put_n(&s->by_index, &index, sizeof index, (void *)(uintptr_t)(s->n + 1));
	return &s->rows[s->n++];
}

static int add(struct accumulator *a, struct kernel_call *c, struct mu_err *err)
{
	struct sparse *s = sparse_of(a);
	const struct mu_tensor *indices = kernel_in(c, 2), *values = kernel_in(c, 3);
	int64_t whole[MU_MAX_RANK];
	struct mu_shape tail;
	int n, rc = check_gradient(c, a, whole, &n, err);

	if (rc || (rc = mu_shape_set(&tail, values->shape.rank - 1, values->shape.dim + 1, err)))
		return rc;
	if (a->count && !mu_shape_eq(&tail, &s->tail))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Shape mismatch: rows of %s after rows of %s", mu_shape_str(&tail),
			       mu_shape_str(&s->tail));
	s->tail = tail;
	s->whole_n = n;
	memcpy(s->whole, whole, sizeof whole);
	size_t bytes = (size_t)tail.count * mu_dtype_size(a->dtype);
	for (int64_t i = 0; i < indices->shape.count; i++) {
		struct row *r = row_of(s, MU_DATA(int64_t, indices)[i], bytes);
		loops->binary[BIN_AddV2][a->dtype](r->sum, r->sum,
						   (const char *)values->data + (size_t)i * bytes,
						   tail.count, BOTH_RUN);
		r->times++;
	}
	return 0;
}

static int by_index(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

static int give(struct accumulator *a, struct kernel_call *c, struct mu_err *err)
{
	struct sparse *s = sparse_of(a);
	struct mu_shape rows = mu_shape_vec((int64_t)s->n), values = rows;
	struct mu_tensor *indices, *sums, *shape;
	int rank = s->tail.rank + 1, rc = 0;

	for (int d = 0; d < s->tail.rank && !rc; d++)
		rc = mu_shape_push(&values, s->tail.dim[d], err);
	struct mu_shape vec = mu_shape_vec(rank);
	if (rc || (rc = kernel_out(c, 0, MU_INT64, &rows, &indices, err)) ||
	    (rc = kernel_out(c, 1, a->dtype, &values, &sums, err)) ||
	    (rc = kernel_out(c, 2, MU_INT64, &vec, &shape, err)))
		return rc;
	size_t bytes = (size_t)s->tail.count * mu_dtype_size(a->dtype);
	qsort(s->rows, s->n, sizeof *s->rows, by_index);
	for (size_t i = 0; i < s->n; i++) {
		const struct row *r = &s->rows[i];
		uint64_t by;
		MU_DATA(int64_t, indices)[i] = r->index;
		if (a->mean && r->times > 1) {
			convert(a->dtype, &by, MU_INT64, &r->times, 1);
			loops->binary[BIN_Div][a->dtype](r->sum, r->sum, &by, s->tail.count,
							 RIGHT_SCALAR);
		}
		memcpy((char *)sums->data + i * bytes, r->sum, bytes);
	}
	int64_t *dim = MU_DATA(int64_t, shape);
	dim[0] = s->whole_n ? s->whole[0] : a->shape.rank > 0 ? a->shape.dim[0] : -1;
	memcpy(dim + 1, s->tail.dim, (size_t)s->tail.rank * sizeof *dim);
	forget(s);
	return 0;
}

const struct accumulator_kind accumulator_sparse = {make, add, give, sparse_free};
