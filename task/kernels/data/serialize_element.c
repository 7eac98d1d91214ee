/* SPDX-License-Identifier: Apache-2.0 */
/* Serializes elements and dataset iterators. */
#include <string.h>

#include "lib/tensor/tensor_proto.h"
#include "task/kernels/data/element_list.h"
#include "task/kernels/data/serializer.h"
#include "task/kernels/engine/variant.h"

enum { MAX_DEPTH = 16 }; /* of elements within elements */

static int serialize_plain_tensor(struct serializer *ser, struct mu_tensor *t, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	struct mu_span s;

	if (!serializer_is_reading(ser))
		mu_tensor_write(&b, t);
	s = mu_buf_span(&b);
	MU_RETURN_IF_ERROR(serialize_span(ser, &s, err));
	if (!serializer_is_reading(ser))
		return 0;
	if (mu_tensor_parse(t, s, NULL))
		return serializer_fail(err);
	/* the saved state has each value of a tensor, even if all are equal, and no handles */
	if (t->dtype == MU_RESOURCE || t->dtype == MU_VARIANT ||
	    (t->dtype == MU_STRING ? (size_t)t->shape.count : mu_tensor_bytes(t)) > s.len) {
		mu_tensor_unref(t);
		return serializer_fail(err);
	}
	return 0;
}

enum { HOLDS_NOTHING, HOLDS_TENSOR, HOLDS_LIST, HOLDS_KINDS };

static int kind_of_content(const struct mu_object *o, int64_t *content, struct mu_err *err)
{
	*content = !o ? HOLDS_NOTHING : variant_unbox(o) ? HOLDS_TENSOR : HOLDS_LIST;
	return *content == HOLDS_LIST && !dataset_is_list(o)
		   ? mu_fail(err, MU_UNIMPLEMENTED,
			     "the iterator holds elements with a %s in them, which cannot be saved",
			     o->type->name)
		   : 0;
}

int serialize_element_list(struct serializer *ser, struct element_list *l, unsigned n_out,
			   struct mu_err *err)
{
	int64_t n = l->n;
	int rc = serialize_number(ser, &n, 0, INT64_MAX, err);

	if (rc || !serializer_is_reading(ser)) {
		for (int64_t i = 0; i < n && !rc; i++)
			rc = serialize_element(ser, &l->t[i * n_out], n_out, err);
		return rc;
	}
	element_list_drop(l, l->n, n_out);
	for (; l->n < n && !rc; l->n += !rc)
		rc = serialize_element(ser, element_list_next(l, n_out), n_out, err);
	return rc;
}

static int serialize_list(struct serializer *ser, struct mu_object **o, struct mu_err *err)
{
	struct dataset *d =
	    serializer_is_reading(ser) ? NULL : MU_CONTAINER(*o, struct dataset, object);
	int64_t n_out = d ? d->n_out : 0;
	struct element_list list = {0};
	int rc;

	MU_RETURN_IF_ERROR(serialize_number(ser, &n_out, 1, MAX_COMPONENTS, err));
	if (d)
		return serialize_element_list(ser, d->shared, d->n_out, err);
	if ((rc = serialize_element_list(ser, &list, (unsigned)n_out, err)))
		element_list_fini(&list, (unsigned)n_out);
	else
		*o = &element_list_dataset_new(&list, (unsigned)n_out)->object;
	return rc;
}

static int serialize_object(struct serializer *ser, struct mu_object **o, struct mu_err *err)
{
	struct mu_tensor t = {0};
	int64_t content = 0;

	MU_RETURN_IF_ERROR(serializer_is_reading(ser) ? 0 : kind_of_content(*o, &content, err));
	MU_RETURN_IF_ERROR(serialize_number(ser, &content, 0, HOLDS_KINDS - 1, err));
	if (content == HOLDS_NOTHING)
		return 0;
	if (content == HOLDS_LIST)
		return serialize_list(ser, o, err);
	if (!serializer_is_reading(ser))
		t = *variant_unbox(*o);
	MU_RETURN_IF_ERROR(serialize_element(ser, &t, 1, err));
	if (!serializer_is_reading(ser))
		return 0;
	*o = variant_box(&t);
	mu_tensor_unref(&t);
	return 0;
}

static int serialize_objects(struct serializer *ser, struct mu_tensor *t, struct mu_err *err)
{
	int64_t rank = t->shape.rank, dim[MU_MAX_RANK];
	struct mu_shape s = t->shape;
	int rc = serialize_number(ser, &rank, 0, MU_MAX_RANK, err);

	memcpy(dim, t->shape.dim, sizeof dim);
	for (int64_t i = 0; i < rank && !rc; i++)
		rc = serialize_number(ser, &dim[i], 0, INT64_MAX, err);
	if (rc)
		return rc;
	if (serializer_is_reading(ser)) {
		if (mu_shape_set(&s, (int)rank, dim, NULL) ||
		    s.count > ser->from.end - ser->from.at) /* an object has at least one byte */
			return serializer_fail(err);
		MU_RETURN_IF_ERROR(mu_tensor_new(t, MU_VARIANT, &s, err));
	}
	for (int64_t i = 0; i < s.count && !rc; i++)
		rc = serialize_object(ser, &MU_DATA(struct mu_object *, t)[i], err);
	if (rc && serializer_is_reading(ser))
		mu_tensor_unref(t);
	return rc;
}

static int serialize_tensor(struct serializer *ser, struct mu_tensor *t, struct mu_err *err)
{
	bool plain = t->dtype != MU_VARIANT;

	if (t->dtype == MU_RESOURCE)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "the iterator holds handles of resources, which cannot be saved");
	MU_RETURN_IF_ERROR(serialize_flag(ser, &plain, err));
	return (plain ? serialize_plain_tensor : serialize_objects)(ser, t, err);
}

int serialize_element(struct serializer *ser, struct mu_tensor *t, unsigned n, struct mu_err *err)
{
	int rc = 0;

	if (ser->depth == MAX_DEPTH)
		return mu_fail(err, MU_UNIMPLEMENTED, "elements over %d deep within each other",
			       MAX_DEPTH);
	ser->depth++;
	for (unsigned i = 0; i < n && !rc; i++) {
		if (serializer_is_reading(ser))
			t[i] = (struct mu_tensor){0};
		if ((rc = serialize_tensor(ser, &t[i], err)) && serializer_is_reading(ser))
			element_drop(t, i);
	}
	ser->depth--;
	return rc;
}

/* ---- dataset iterators ---- */

int serialize_optional_iterator(struct serializer *ser, const struct dataset *d,
				struct caller *caller, struct dataset_iterator **it,
				struct mu_err *err)
{
	bool is_open = *it != NULL;

	MU_RETURN_IF_ERROR(serialize_flag(ser, &is_open, err));
	if (!is_open) { /* the saved state has no iterator here */
		dataset_iterator_close(*it);
		*it = NULL;
		return 0;
	}
	if (!*it)
		MU_RETURN_IF_ERROR(dataset_iterator_open(d, caller, it, err));
	return serialize_dataset_iterator(ser, *it, err);
}

/* Writes the kind of a dataset, or checks that the pipeline has the same kind here. */
static int serialize_kind(struct serializer *ser, const char *op, struct mu_err *err)
{
	struct mu_span s = mu_span_of(op);

	MU_RETURN_IF_ERROR(serialize_span(ser, &s, err));
	return mu_span_is(s, op)
		   ? 0
		   : mu_invalid(
			 err,
			 "the iterator's saved state is of a %.*s where this pipeline has a %s",
			 s.len > 60 ? 60 : (int)s.len, s.data, op);
}

int serialize_dataset_iterator(struct serializer *ser, struct dataset_iterator *it,
			       struct mu_err *err)
{
	const struct dataset_kind *k = it->d->kind;
	bool needs_input = it->input && !k->releases_input;

	if (k->state_size && !k->serialize)
		return mu_fail(err, MU_UNIMPLEMENTED, "an iterator over a %s cannot be saved",
			       it->d->op);
	MU_RETURN_IF_ERROR(serialize_kind(ser, it->d->op, err));
	if (k->serialize)
		MU_RETURN_IF_ERROR(k->serialize(it, ser, err));
	if (it->d->n_in)
		MU_RETURN_IF_ERROR(
		    serialize_optional_iterator(ser, it->d->in[0], it->caller, &it->input, err));
	return serializer_is_reading(ser) && needs_input && !it->input ? serializer_fail(err) : 0;
}
