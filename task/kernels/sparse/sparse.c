/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/sparse/sparse.h"

#include <string.h>

#include "task/kernels/engine/elems.h"

int sparse_out_of_bounds(int64_t i, const int64_t *at, int rank, const int64_t *dim,
			 struct mu_err *err)
{
	MU_AUTO_BUF position = {0};
	MU_AUTO_BUF shape = {0};

	args_put_numbers(&position, at, rank, ",");
	args_put_numbers(&shape, dim, rank, ",");
	return mu_invalid(err, "indices[%lld] = [%s] is out of bounds: need 0 <= index < [%s]",
			  (long long)i, position.data, shape.data);
}

int sparse_in_unchecked(const struct kernel_call *c, unsigned i, struct sparse *s,
			struct mu_err *err)
{
	MU_RETURN_IF_ERROR(args_shape(c, i + 2, &s->shape, err));
	s->at = kernel_in(c, i);
	s->values = kernel_in(c, i + 1);
	s->n = s->values->shape.count;
	return 0;
}

int sparse_in(const struct kernel_call *c, unsigned i, struct sparse *s, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(sparse_in_unchecked(c, i, s, err));
	for (int64_t k = 0; k < s->n; k++) {
		int64_t position[MU_MAX_RANK];
		bool is_inside = true;

		for (int d = 0; d < s->shape.rank; d++) {
			position[d] = mu_tensor_int(s->at, k * s->shape.rank + d);
			is_inside &= position[d] >= 0 && position[d] < s->shape.dim[d];
		}
		if (!is_inside)
			return sparse_out_of_bounds(k, position, s->shape.rank, s->shape.dim, err);
	}
	return 0;
}

int sparse_out(struct kernel_call *c, const unsigned *out, int64_t n, const struct mu_shape *shape,
	       enum mu_dtype type, int64_t **at, struct mu_tensor **values, struct mu_err *err)
{
	struct mu_tensor *positions, *dims;

	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, out[0], MU_INT64, 2, (int64_t[]){n, shape->rank}, &positions, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, out[1], type, n, values, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, out[2], MU_INT64, shape->rank, &dims, err));
	memcpy(dims->data, shape->dim, (size_t)shape->rank * sizeof *shape->dim);
	*at = positions->data;
	return 0;
}

/* ---- parts ---- */

void sparse_part_fini(struct sparse_part *p)
{
	mu_tensor_unref(&p->at);
	mu_tensor_unref(&p->values);
}

int sparse_part_in(const struct kernel_call *c, int min_rank, struct sparse_part *out,
		   struct mu_err *err)
{
	struct sparse_part p = {0};

	MU_RETURN_IF_ERROR(args_ints(c, 2, p.dim, MU_MAX_RANK, &p.rank, err));
	if (p.rank < min_rank)
		return mu_invalid(err,
				  "Rank of input SparseTensor should be > %d, but saw rank: %d",
				  min_rank - 1, p.rank);
	for (int d = 0; d < p.rank; d++)
		if (p.dim[d] < 0)
			return mu_invalid(err, "dimension %d of the sparse shape is negative", d);
	p.at = mu_tensor_ref(kernel_in(c, 0));
	p.values = mu_tensor_ref(kernel_in(c, 1));
	*out = p;
	return 0;
}

int sparse_part_check_rows(const struct sparse_part *p, struct mu_err *err)
{
	const int64_t *at = MU_DATA(int64_t, &p->at);

	for (int64_t k = 0; k < p->values.shape.count * p->rank; k++)
		if (at[k] < 0 || at[k] >= p->dim[k % p->rank])
			return sparse_out_of_bounds(k / p->rank, at + k - k % p->rank, p->rank,
						    p->dim, err);
	for (int64_t k = 0; k < p->values.shape.count; k++) {
		int64_t b = at[k * p->rank];
		if (k && b < at[(k - 1) * p->rank])
			return mu_invalid(err,
					  "Received unexpected column 0 value in input "
					  "SparseTensor: %lld, not in order or not in [0, %lld)",
					  (long long)b, (long long)p->dim[0]);
	}
	return 0;
}

int sparse_part_row(const struct sparse_part *p, int64_t from, int64_t to, struct sparse_part *out,
		    struct mu_err *err)
{
	struct mu_shape s, vec = mu_shape_vec(to - from);
	struct sparse_part e = {.rank = p->rank - 1};
	int rc;

	memcpy(e.dim, p->dim + 1, (size_t)e.rank * sizeof *e.dim);
	if ((rc = mu_shape_set(&s, 2, (int64_t[]){to - from, e.rank}, err)) ||
	    (rc = mu_tensor_new(&e.at, MU_INT64, &s, err)) ||
	    (rc = mu_tensor_new(&e.values, p->values.dtype, &vec, err))) {
		sparse_part_fini(&e);
		return rc;
	}
	for (int64_t i = from; i < to; i++)
		elems_copy(MU_INT64, e.at.data, (i - from) * e.rank, p->at.data, i * p->rank + 1,
			   e.rank);
	elems_copy(p->values.dtype, e.values.data, 0, p->values.data, from, to - from);
	*out = e;
	return 0;
}

static int check_parts(const struct sparse_part *const *list, int64_t n, enum mu_dtype type,
		       int64_t *total, struct mu_err *err)
{
	*total = 0;
	for (int64_t b = 0; b < n; b++) {
		if (list[b]->rank != list[0]->rank || list[b]->values.dtype != type)
			return mu_invalid(err,
					  "Inconsistent rank or type across SparseTensors: %s of "
					  "rank %d at index %lld, but %s of rank %d is wanted",
					  mu_dtype_name(list[b]->values.dtype), list[b]->rank,
					  (long long)b, mu_dtype_name(type), list[0]->rank);
		*total += list[b]->values.shape.count;
	}
	return 0;
}

int sparse_parts_join(struct kernel_call *c, const struct sparse_part *const *list,
		      const struct mu_shape *lead, enum mu_dtype type, struct mu_err *err)
{
	int64_t n = lead->count, total, k = 0;
	int rank = n ? list[0]->rank : 0, rc = check_parts(list, n, type, &total, err);
	int out_rank = lead->rank + rank;
	struct mu_tensor *at, *values, *shape;

	if (rc)
		return rc;
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, 0, MU_INT64, 2, (int64_t[]){total, out_rank}, &at, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 1, type, total, &values, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 2, MU_INT64, out_rank, &shape, err));
	int64_t *size = shape->data, *to = at->data;
	memset(size, 0, (size_t)out_rank * sizeof *size);
	memcpy(size, lead->dim, (size_t)lead->rank * sizeof *size);
	for (int64_t b = 0; b < n; b++) {
		int64_t entries = list[b]->values.shape.count;
		for (int d = 0; d < rank; d++)
			if (list[b]->dim[d] > size[lead->rank + d])
				size[lead->rank + d] = list[b]->dim[d];
		for (int64_t i = 0; i < entries; i++, to += out_rank) {
			int64_t left = b;
			for (int d = lead->rank; d-- > 0; left /= lead->dim[d])
				to[d] = left % lead->dim[d];
			elems_copy(MU_INT64, to, lead->rank, list[b]->at.data, i * rank, rank);
		}
		elems_copy(type, values->data, k, list[b]->values.data, 0, entries);
		k += entries;
	}
	return 0;
}
