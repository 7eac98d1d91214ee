/* SPDX-License-Identifier: Apache-2.0 */
/* Weighted alternating least squares: the equations of a block of rows, and selected elements of a
 * matrix product. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"

/* ---- MaskedMatmul ---- */

struct masked_product {
	const float *a, *b;
	int64_t inner, a_step[2], b_step[2]; /* along the product's axis, and along the inner one */
	const int64_t *mask;
	float *out;
};

static void multiply_masked(void *arg, int64_t first, int64_t end)
{
	const struct masked_product *p = arg;

	for (int64_t i = first; i < end; i++) {
		const float *a = p->a + p->mask[2 * i] * p->a_step[0];
		const float *b = p->b + p->mask[2 * i + 1] * p->b_step[0];
		float sum = 0;
		for (int64_t k = 0; k < p->inner; k++)
			sum += a[k * p->a_step[1]] * b[k * p->b_step[1]];
		p->out[i] = sum;
	}
}

static int masked_matmul(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *a = &kernel_in(c, 0)->shape, *b = &kernel_in(c, 1)->shape;
	const struct mu_tensor *mask = kernel_in(c, 2);
	bool transpose_a = *MU_DATA(bool, kernel_in(c, 3)),
	     transpose_b = *MU_DATA(bool, kernel_in(c, 4));
	struct mu_tensor *out;
	const int64_t size[2] = {a->dim[transpose_a], b->dim[!transpose_b]};
	struct masked_product p = {.a = kernel_in(c, 0)->data,
				   .b = kernel_in(c, 1)->data,
				   .inner = a->dim[!transpose_a],
				   .mask = mask->data};

	if (p.inner != b->dim[transpose_b])
		return mu_invalid(
		    err, "Matrix shapes are incompatible: a has shape %s, while b has shape %s.",
		    mu_shape_str(a), mu_shape_str(b));
	for (int64_t i = 0; i < mask->shape.count; i++)
		if (p.mask[i] < 0 || p.mask[i] >= size[i % 2])
			return args_fail_position(mask, i / 2, 2, "the product",
						  &(struct mu_shape){2, 0, {size[0], size[1]}},
						  NULL, err);
	p.a_step[transpose_a] = a->dim[1];
	p.a_step[!transpose_a] = 1;
	p.b_step[!transpose_b] = b->dim[1];
	p.b_step[transpose_b] = 1;
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, MU_FLOAT, mask->shape.dim[0], &out, err));
	p.out = out->data;
	kernel_parallel(c, out->shape.count, 1 + (1 << 14) / (p.inner + 1), multiply_masked, &p);
	return 0;
}

/* ---- WALSComputePartialLhsAndRhs ---- */

struct wals_block {
	const struct mu_tensor *factors, *factor_weights, *input_weights, *entry_weights;
	const int64_t *indices;
	const float *values;
	float unobserved;
	bool transposed;
	int64_t size, width; /* rows of the block, and columns of the factors */
	float *lhs, *rhs;
};

static int wals_check_weights(const struct wals_block *w, int64_t entries, struct mu_err *err)
{
	int64_t n_entry_weights = w->entry_weights->shape.count;
	int64_t n_input_weights = w->input_weights->shape.count,
		n_factor_weights = w->factor_weights->shape.count;

	if (n_entry_weights ? n_input_weights || n_factor_weights
			    : !n_input_weights || !n_factor_weights)
		return mu_invalid(
		    err, "To specify the weights for observed entries, either (1) entry_weights "
			 "must be set or (2) input_weights and factor_weights must be set, but not "
			 "both.");
	if (n_entry_weights && n_entry_weights != entries)
		return mu_invalid(err, "entry_weights has %lld elements, not one for each of %lld",
				  (long long)n_entry_weights, (long long)entries);
	if (!n_entry_weights &&
	    (n_input_weights < w->size || n_factor_weights < w->factors->shape.dim[0]))
		return mu_invalid(err,
				  "%lld input_weights and %lld factor_weights are too few for "
				  "%lld rows and %lld factors",
				  (long long)n_input_weights, (long long)n_factor_weights,
				  (long long)w->size, (long long)w->factors->shape.dim[0]);
	return 0;
}

/* Adds entry i to the equations of its row. */
static int wals_add_entry(const struct wals_block *w, int64_t i, struct mu_err *err)
{
	int64_t row = w->indices[2 * i + w->transposed],
		column = w->indices[2 * i + !w->transposed];
	int64_t k = w->width;

	if (row < 0 || row >= w->size || column < 0 || column >= w->factors->shape.dim[0])
		return mu_invalid(err,
				  "entry %lld at row %lld and column %lld is outside of a block of "
				  "%lld rows and %lld columns",
				  (long long)i, (long long)row, (long long)column,
				  (long long)w->size, (long long)w->factors->shape.dim[0]);
	const float *factor = MU_DATA(float, w->factors) + column * k;
	float weight =
	    w->entry_weights->shape.count
		? MU_DATA(float, w->entry_weights)[i]
		: MU_DATA(float, w->input_weights)[row] * MU_DATA(float, w->factor_weights)[column];
	float weighted_value = w->values[i] * (w->unobserved + weight);
	for (int64_t a = 0; a < k; a++) {
		w->rhs[row * k + a] += weighted_value * factor[a];
		for (int64_t b = 0; b < k; b++)
			w->lhs[(row * k + a) * k + b] += weight * factor[a] * factor[b];
	}
	return 0;
}

static int wals_equations(struct kernel_call *c, struct mu_err *err)
{
	int64_t entries = kernel_in(c, 4)->shape.dim[0];
	struct mu_tensor *lhs, *rhs;
	struct wals_block w = {.factors = kernel_in(c, 0),
			       .factor_weights = kernel_in(c, 1),
			       .unobserved = *MU_DATA(float, kernel_in(c, 2)),
			       .input_weights = kernel_in(c, 3),
			       .indices = kernel_in(c, 4)->data,
			       .values = kernel_in(c, 5)->data,
			       .entry_weights = kernel_in(c, 6),
			       .size = *MU_DATA(int64_t, kernel_in(c, 7)),
			       .transposed = *MU_DATA(bool, kernel_in(c, 8)),
			       .width = kernel_in(c, 0)->shape.dim[1]};

	MU_RETURN_IF_ERROR(wals_check_weights(&w, entries, err));
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, 0, MU_FLOAT, 3, (int64_t[]){w.size, w.width, w.width}, &lhs, err));
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, 1, MU_FLOAT, 2, (int64_t[]){w.size, w.width}, &rhs, err));
	memset(lhs->data, 0, (size_t)lhs->shape.count * sizeof(float));
	memset(rhs->data, 0, (size_t)rhs->shape.count * sizeof(float));
	w.lhs = lhs->data;
	w.rhs = rhs->data;
	for (int64_t i = 0; i < entries; i++)
		MU_RETURN_IF_ERROR(wals_add_entry(&w, i, err));
	return 0;
}

static const struct kernel rows[] = {
    {"MaskedMatmul", KERNEL_EXPENSIVE, .run = masked_matmul},
    {"WALSComputePartialLhsAndRhs", KERNEL_EXPENSIVE, .run = wals_equations},
};
KERNEL_TABLE(linalg_factorization, rows)
