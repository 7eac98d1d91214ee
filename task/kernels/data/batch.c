/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that batch consecutive elements of another dataset, of equal shapes or padded to equal
 * shapes. */
#include <string.h>

#include "task/kernels/data/dataset.h"
#include "task/kernels/data/stack.h"
#include "task/kernels/engine/elems.h"

static int check_size(int64_t n, struct mu_err *err)
{
	return n > 0 ? 0 : mu_invalid(err, "Batch size must be greater than zero.");
}

static int dataset_batch_check(struct dataset *d, struct mu_err *err)
{
	return check_size(dataset_number(d, 0), err);
}

static int check_stackable(const struct mu_tensor *first, const struct mu_tensor *t, int64_t i,
			   unsigned k, bool by_count, struct mu_err *err)
{
	if (t->dtype == first->dtype && (by_count ? t->shape.count == first->shape.count
						  : mu_shape_eq(&t->shape, &first->shape)))
		return 0;
	if (by_count)
		return mu_invalid(err,
				  "Cannot add tensor to the batch: number of elements does not "
				  "match. Shapes are: [tensor]: %s, [batch]: %s",
				  mu_shape_str(&t->shape), mu_shape_str(&first->shape));
	return mu_invalid(err,
			  "Cannot batch tensors with different shapes in component %u. First "
			  "element had shape %s and element %lld had shape %s.",
			  k, mu_shape_str(&first->shape), (long long)i, mu_shape_str(&t->shape));
}

int stack_elements(struct mu_tensor *const *element, int64_t n, unsigned k, bool by_count,
		   struct mu_tensor *out, struct mu_err *err)
{
	const struct mu_tensor *first = &element[0][k];
	struct mu_shape s = mu_shape_vec(n);

	MU_RETURN_IF_ERROR(mu_shape_append(&s, first->shape.rank, first->shape.dim, err));
	for (int64_t i = 1; i < n; i++)
		MU_RETURN_IF_ERROR(check_stackable(first, &element[i][k], i, k, by_count, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(out, first->dtype, &s, err));
	for (int64_t i = 0; i < n; i++)
		elems_copy(first->dtype, out->data, i * first->shape.count, element[i][k].data, 0,
			   first->shape.count);
	return 0;
}

/* ---- padded batches: the parameters are batch_size, the padded shape and the padding value of
 * each component, and drop_remainder ---- */

static int check_padded(struct dataset *d, struct mu_err *err)
{
	const struct mu_tensor *size = &d->params[0];

	if (d->n_params != 2 * d->n_out + 1 + d->kind->n_scalars || size->shape.count != 1 ||
	    (size->dtype != MU_INT64 && size->dtype != MU_INT32))
		return mu_invalid(
		    err,
		    "a padded batch of %u components needs a size, %u shapes and %u padding values",
		    d->n_out, d->n_out, d->n_out);
	for (unsigned k = 0; k < d->n_out; k++) {
		const struct mu_tensor *s = &d->params[1 + k], *v = &d->params[1 + d->n_out + k];
		if (s->dtype != MU_INT64 || s->shape.rank != 1 || s->shape.count >= MU_MAX_RANK)
			return mu_invalid(
			    err, "padded shape %u must be a vector of int64, not %s of shape %s", k,
			    mu_dtype_name(s->dtype), mu_shape_str(&s->shape));
		if (v->shape.count != 1)
			return mu_invalid(err,
					  "All padding values must be scalars, not of shape %s",
					  mu_shape_str(&v->shape));
		for (int64_t x = 0; x < s->shape.count; x++)
			if (MU_DATA(int64_t, s)[x] < -1)
				return mu_invalid(err, "Dimension %lld must be >= -1",
						  (long long)MU_DATA(int64_t, s)[x]);
	}
	return check_size(mu_tensor_int(size, 0), err);
}

/* The shape of component k of a padded batch: n, then the padded shape. */
static int padded_shape(const struct dataset *d, struct mu_tensor *const *element, int64_t n,
			unsigned k, struct mu_shape *out, struct mu_err *err)
{
	const struct mu_tensor *want = &d->params[1 + k];

	*out = mu_shape_vec(n);
	for (int64_t i = 0; i < n; i++) {
		if (element[i][k].shape.rank != want->shape.count)
			return mu_invalid(
			    err,
			    "All elements in a batch must have the same rank as the padded shape "
			    "for component%u: expected rank %lld but got element with rank %d",
			    k, (long long)want->shape.count, element[i][k].shape.rank);
		if (element[i][k].dtype != d->params[1 + d->n_out + k].dtype)
			return mu_invalid(err, "component %u is %s, its padding value %s", k,
					  mu_dtype_name(element[i][k].dtype),
					  mu_dtype_name(d->params[1 + d->n_out + k].dtype));
	}
	for (int x = 0; x < want->shape.count; x++) {
		int64_t size = MU_DATA(int64_t, want)[x], max_size = 0;
		for (int64_t i = 0; i < n; i++)
			if (element[i][k].shape.dim[x] > max_size)
				max_size = element[i][k].shape.dim[x];
		if (size >= 0 && size < max_size)
			return mu_fail(err, MU_DATA_LOSS,
				       "Attempted to pad to a smaller size than the input "
				       "element.");
		MU_RETURN_IF_ERROR(mu_shape_push(out, size < 0 ? max_size : size, err));
	}
	return 0;
}

static int stack_padded(const struct dataset *d, struct mu_tensor *const *element, int64_t n,
			unsigned k, struct mu_tensor *out, struct mu_err *err)
{
	const struct mu_tensor *padding = &d->params[1 + d->n_out + k];
	struct mu_shape s;
	struct view batch;

	MU_RETURN_IF_ERROR(padded_shape(d, element, n, k, &s, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(out, padding->dtype, &s, err));
	elems_fill(out->dtype, out->data, 0, padding->data, s.count);
	view_of(&batch, &s);
	for (int64_t i = 0; i < n; i++) {
		struct view v = {.rank = s.rank - 1, .offset = i * batch.stride[0]};
		for (int x = 0; x < v.rank; x++) {
			v.dim[x] = element[i][k].shape.dim[x];
			v.stride[x] = batch.stride[x + 1];
		}
		view_write(out->dtype, out->data, &v, element[i][k].data);
	}
	return 0;
}

/* ---- plain and padded batches ---- */

static int next_of_input(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	return it->d->f[0].f ? dataset_map_next(it, out, err)
			     : dataset_iterator_next(it->input, out, err);
}

/* Returns the iterator that feeds the map function of a MapAndBatchDataset, or of a batch()
 * directly after map(); NULL if there is none.  TensorFlow's optimizer replaces map() and batch()
 * by a MapAndBatchDataset. */
static struct dataset_iterator *function_input(const struct dataset_iterator *it)
{
	if (it->d->f[0].f)
		return it->input;
	return strncmp(it->d->op, "BatchDataset", 12) == 0 && dataset_is_map(it->d->in[0])
		   ? it->input->input
		   : NULL;
}

static void skip_elements(struct dataset_iterator *it, int64_t n)
{
	MU_AUTO_FREE struct mu_tensor *t = MU_NEW_ARRAY(struct mu_tensor, it->d->n_out + 1);
	struct mu_err err;
	int rc = 1;

	for (; n > 0 && rc && !caller_stopped(it->caller); n--)
		if ((rc = dataset_iterator_next(it, t, &err)) > 0)
			element_drop(t, it->d->n_out);
}

int draw_batch(struct dataset_iterator *it, int64_t want, bool drop_remainder, bool padded,
	       draw_element_fn *next, struct mu_tensor *out, struct mu_err *err)
{
	const struct dataset *d = it->d;
	struct dataset_iterator *mapped = function_input(it);
	struct mu_tensor **element = NULL;
	int64_t n = 0, cap = 0;
	unsigned k = 0;
	int rc = 1;

	while (n < want) {
		if (n == cap) {
			cap = cap ? 2 * cap : 16;
			element = mu_xrealloc(element, (size_t)cap * sizeof *element);
		}
		element[n] = MU_NEW_ARRAY(struct mu_tensor, d->n_out + 1);
		if ((rc = next(it, element[n], err)) <= 0) {
			free(element[n]);
			break;
		}
		n++;
	}
	if (rc < 0 && mapped) /* the next batch begins where it would without the error */
		skip_elements(mapped, want - n - 1);
	if (rc >= 0)
		rc = n == want || (n && !drop_remainder);
	for (int bad = 0; rc > 0 && k < d->n_out; k++)
		if ((bad = padded ? stack_padded(d, element, n, k, &out[k], err)
				  : stack_elements(element, n, k, mapped != NULL, &out[k], err))) {
			element_drop(out, k);
			rc = bad;
		}
	for (int64_t i = 0; i < n; i++) {
		element_drop(element[i], d->n_out);
		free(element[i]);
	}
	free(element);
	return rc;
}

static int batch_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	unsigned n = it->d->kind->n_scalars;

	return draw_batch(it, dataset_number(it->d, 0), n > 1 && dataset_number(it->d, n - 1),
			  false, next_of_input, out, err);
}

static int padded_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	return draw_batch(it, mu_tensor_int(&it->d->params[0], 0),
			  it->d->kind->n_scalars && dataset_number(it->d, 0), true, next_of_input,
			  out, err);
}

static int64_t batched_cardinality(int64_t n, int64_t size, bool drop_remainder)
{
	return n < 0 ? n : n / size + (!drop_remainder && n % size);
}

static int64_t batch_cardinality(const struct dataset *d, int64_t n)
{
	unsigned k = d->kind->n_scalars;

	if (d->f[0].f && !d->preserve_cardinality)
		return UNKNOWN_CARDINALITY;
	return batched_cardinality(n, dataset_number(d, 0), k > 1 && dataset_number(d, k - 1));
}

static int64_t padded_cardinality(const struct dataset *d, int64_t n)
{
	return batched_cardinality(n, mu_tensor_int(&d->params[0], 0),
				   d->kind->n_scalars && dataset_number(d, 0));
}

#define BATCH                                                                                      \
	.n_in = 1, .check = dataset_batch_check, .open = dataset_iterator_open_input,              \
	.next = batch_next, .cardinality = batch_cardinality
#define PADDED                                                                                     \
	.n_in = 1, .check = check_padded, .open = dataset_iterator_open_input,                     \
	.next = padded_next, .cardinality = padded_cardinality
#define MAPPED BATCH, .n_scalars = 3, .function = {{"f", "Targuments"}}, .releases_input = true
static const struct dataset_kind rows[] = {
    {DATASET("BatchDataset"), BATCH, .n_scalars = 1},
    {DATASET("BatchDatasetV2"), BATCH, .n_scalars = 2},
    {DATASET("ParallelBatchDataset"), BATCH, .n_scalars = 3},
    {DATASET("MapAndBatchDataset MapAndBatchDatasetV2 ExperimentalMapAndBatchDataset"), MAPPED},
    {DATASET("PaddedBatchDataset"), PADDED},
    {DATASET("PaddedBatchDatasetV2"), PADDED, .n_scalars = 1},
};
KERNEL_TABLE(data_batch, rows)
