/* SPDX-License-Identifier: Apache-2.0 */
/* Ragged tensors: rows of any length, given by their start positions ("row splits"), in nested
 * levels. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

struct ragged {
	const struct kernel_call *c;
	unsigned levels;
	const struct mu_tensor *values;
};

static int64_t ragged_split(const struct ragged *r, unsigned level, int64_t i)
{
	return mu_tensor_int(kernel_in(r->c, level), i);
}

/* Every level begins at 0, never goes back, and ends where the one below it does. */
static int ragged_check_splits(const struct ragged *r, struct mu_err *err)
{
	for (unsigned l = 0; l < r->levels; l++) {
		int64_t n = kernel_in(r->c, l)->shape.count;
		MU_RETURN_IF_ERROR(args_rank(r->c, l, 1, err));
		if (!n || ragged_split(r, l, 0))
			return mu_invalid(err, "First value of ragged splits must be 0.");
		for (int64_t i = 1; i < n; i++)
			if (ragged_split(r, l, i) < ragged_split(r, l, i - 1))
				return mu_invalid(
				    err,
				    "Ragged splits should be non decreasing, but %lld follows %lld",
				    (long long)ragged_split(r, l, i),
				    (long long)ragged_split(r, l, i - 1));
		int64_t below = l + 1 < r->levels ? kernel_in(r->c, l + 1)->shape.count - 1
						  : r->values->shape.dim[0];
		if (ragged_split(r, l, n - 1) != below)
			return mu_invalid(err,
					  "Final value of ragged splits must match the length the "
					  "corresponding ragged values: %lld, not %lld",
					  (long long)ragged_split(r, l, n - 1), (long long)below);
	}
	return 0;
}

static void put_shape(const struct ragged *r, int64_t *dim)
{
	dim[0] = kernel_in(r->c, 0)->shape.count - 1;
	for (unsigned l = 0; l < r->levels; l++) {
		dim[l + 1] = 0;
		for (int64_t i = 1; i < kernel_in(r->c, l)->shape.count; i++) {
			int64_t n = ragged_split(r, l, i) - ragged_split(r, l, i - 1);
			dim[l + 1] = n > dim[l + 1] ? n : dim[l + 1];
		}
	}
	for (int d = 1; d < r->values->shape.rank; d++)
		dim[r->levels + (unsigned)d] = r->values->shape.dim[d];
}

/* Row v of the values has one place at each level; `at` remembers the rows that led to the last. */
static void put_place(const struct ragged *r, int64_t v, int64_t *at, int64_t *place)
{
	for (unsigned l = r->levels; l-- > 0;) {
		while (ragged_split(r, l, at[l] + 1) <= v)
			at[l]++;
		place[l + 1] = v - ragged_split(r, l, at[l]);
		v = at[l];
	}
	place[0] = v;
}

static void put_places(const struct ragged *r, int64_t *to, unsigned rank)
{
	const struct mu_shape *s = &r->values->shape;
	int64_t at[MU_MAX_RANK + 1] = {0}, place[2 * MU_MAX_RANK + 1];
	int64_t each = s->dim[0] ? s->count / s->dim[0] : 0;

	for (int64_t v = 0; v < s->dim[0]; v++) {
		put_place(r, v, at, place);
		for (int64_t k = 0; k < each; k++, to += rank) {
			int64_t rest = k;
			for (int d = s->rank - 1; d > 0; rest /= s->dim[d--])
				place[r->levels + (unsigned)d] = rest % s->dim[d];
			memcpy(to, place, rank * sizeof *to);
		}
	}
}

static int ragged_to_sparse(struct kernel_call *c, struct mu_err *err)
{
	struct ragged r = {c, c->n_in - 1, kernel_in(c, c->n_in - 1)};
	struct mu_shape flat = mu_shape_vec(r.values->shape.count), sides;
	struct mu_tensor *indices, *values, *shape;

	if (c->n_in < 2 || r.levels > MU_MAX_RANK || r.values->shape.rank < 1)
		return mu_invalid(err,
				  "%u levels of splits over values of shape %s: expected 1 to %d, "
				  "and at least a vector",
				  c->n_in - 1, mu_shape_str(&r.values->shape), MU_MAX_RANK);
	unsigned rank = r.levels + (unsigned)r.values->shape.rank;
	sides = mu_shape_vec(rank);
	MU_RETURN_IF_ERROR(ragged_check_splits(&r, err));
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, 0, MU_INT64, 2, (int64_t[]){flat.count, rank}, &indices, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, r.values->dtype, &flat, &values, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 2, MU_INT64, &sides, &shape, err));
	put_places(&r, indices->data, rank);
	elems_copy(values->dtype, values->data, 0, r.values->data, 0, flat.count);
	put_shape(&r, shape->data);
	return 0;
}

static const struct kernel rows[] = {
    {"RaggedTensorToSparse", .run = ragged_to_sparse},
};
KERNEL_TABLE(sparse_ragged, rows)
