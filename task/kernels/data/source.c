/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets without an input dataset: tensors, their rows, ranges of numbers. */
#include "task/kernels/data/dataset.h"
#include "task/kernels/data/serializer.h"
#include "task/kernels/engine/convert.h"

/* ---- tensors ---- */

struct position {
	int64_t at;
};

/* The position of a range may be negative. */
static int position_serialize(struct dataset_iterator *it, struct serializer *ser,
			      struct mu_err *err)
{
	struct position *p = it->state;

	return serialize_number(ser, &p->at, it->d->kind->open ? INT64_MIN : 0, INT64_MAX, err);
}

static int check_components(struct dataset *d, struct mu_err *err)
{
	if (d->n_params != d->n_out || !d->n_out)
		return mu_invalid(err, "%u tensors for %u components", d->n_params, d->n_out);
	return 0;
}

static int tensor_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct position *p = it->state;

	if (p->at)
		return 0;
	p->at = 1;
	element_ref(out, it->d->params, it->d->n_out);
	return 1;
}

static int check_slices(struct dataset *d, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(check_components(d, err));
	for (unsigned i = 0; i < d->n_params; i++)
		if (d->params[i].shape.rank < 1 ||
		    d->params[i].shape.dim[0] != d->params[0].shape.dim[0])
			return mu_invalid(err,
					  "All components must have the same size in the 0th "
					  "dimension, not %s and %s",
					  mu_shape_str(&d->params[0].shape),
					  mu_shape_str(&d->params[i].shape));
	return 0;
}

static int slice_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct position *p = it->state;

	if (p->at >= it->d->params[0].shape.dim[0])
		return 0;

	MU_RETURN_IF_ERROR(element_row(it->d->params, it->d->n_out, p->at++, out, err));
	return 1;
}

/* ---- list: each n_out inputs in a row are an element ---- */

static int64_t input_cardinality(const struct dataset *d, int64_t n)
{
	return d->n_params / d->n_out;
}

static int check_inputs(struct dataset *d, struct mu_err *err)
{
	return d->n_out && d->n_params % d->n_out == 0
		   ? 0
		   : mu_invalid(err, "%u tensors are no elements of %u components", d->n_params,
				d->n_out);
}

static int input_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct position *p = it->state;

	if (p->at >= input_cardinality(it->d, 0))
		return 0;
	element_ref(out, &it->d->params[p->at * it->d->n_out], it->d->n_out);
	p->at++;
	return 1;
}

/* ---- numbers ---- */

static int check_range(struct dataset *d, struct mu_err *err)
{
	if (d->n_out != 1)
		return mu_invalid(err, "a range has one component");
	if (!convert_supports(*(const enum mu_dtype *)d->shared, MU_INT64))
		return mu_invalid(err, "a range has numbers, not %s",
				  mu_dtype_name(*(const enum mu_dtype *)d->shared));
	return dataset_number(d, 2) ? 0 : mu_invalid(err, "step must be a non-zero integer.");
}

static void range_read(struct dataset *d, const struct mu_node *n)
{
	const struct mu_attr *types = mu_node_attr(n, "output_types");

	if (types && types->n)
		*(enum mu_dtype *)d->shared = types->types[0];
}

static int range_open(struct dataset_iterator *it, struct mu_err *err)
{
	((struct position *)it->state)->at = dataset_number(it->d, 0);
	return 0;
}

static int range_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int64_t stop = dataset_number(it->d, 1), step = dataset_number(it->d, 2);
	struct position *p = it->state;

	if (step > 0 ? p->at >= stop : p->at <= stop)
		return 0;
	enum mu_dtype type = *(const enum mu_dtype *)it->d->shared;
	char value[16];
	convert(type, value, MU_INT64, &p->at, 1);
	int rc = mu_tensor_scalar(&out[0], type, value, err);
	if (__builtin_add_overflow(p->at, step, &p->at))
		p->at = stop;
	return rc ? rc : 1;
}

static int64_t one_element(const struct dataset *d, int64_t n)
{
	return 1;
}

static int64_t slice_cardinality(const struct dataset *d, int64_t n)
{
	return d->params[0].shape.dim[0];
}

static int64_t range_cardinality(const struct dataset *d, int64_t n)
{
	__int128 from = dataset_number(d, 0), to = dataset_number(d, 1),
		 step = dataset_number(d, 2);
	__int128 left = step > 0 ? to - from : from - to, stride = step > 0 ? step : -step;

	return left <= 0 ? 0 : (int64_t)((left + stride - 1) / stride);
}

static const struct dataset_kind rows[] = {
    {DATASET("TensorDataset"), .state_size = sizeof(struct position), .check = check_components,
     .next = tensor_next, .cardinality = one_element, .serialize = position_serialize},
    {DATASET("TensorSliceDataset"), .state_size = sizeof(struct position), .check = check_slices,
     .next = slice_next, .cardinality = slice_cardinality, .serialize = position_serialize},
    {DATASET("ListDataset WindowOp"), .state_size = sizeof(struct position), .check = check_inputs,
     .next = input_next, .cardinality = input_cardinality, .serialize = position_serialize},
    {DATASET("RangeDataset"), .state_size = sizeof(struct position), .n_scalars = 3,
     .shared_size = sizeof(enum mu_dtype), .read = range_read, .check = check_range,
     .open = range_open, .next = range_next, .cardinality = range_cardinality,
     .serialize = position_serialize},
};
KERNEL_TABLE(data_source, rows)
