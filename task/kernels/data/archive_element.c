/* SPDX-License-Identifier: Apache-2.0 */
/* Elements and cursors in an archive. */
#include <string.h>

#include "lib/tensor/tensor_proto.h"
#include "task/kernels/data/archive.h"
#include "task/kernels/data/element_list.h"
#include "task/kernels/engine/variant.h"

enum { MAX_DEPTH = 16 }; /* of elements within elements */

static int plain_tensor(struct archive *a, struct mu_tensor *t, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	struct mu_span s;

	if (!archive_reads(a))
		mu_tensor_write(&b, t);
	s = mu_buf_span(&b);
	MU_RETURN_IF_ERROR(archive_span(a, &s, err));
	if (!archive_reads(a))
		return 0;
	if (mu_tensor_parse(t, s, NULL))
		return archive_broken(err);
	/* an archive has all values of a tensor, even if they are equal, and no handles */
	if (t->dtype == MU_RESOURCE || t->dtype == MU_VARIANT ||
	    (t->dtype == MU_STRING ? (size_t)t->shape.count : mu_tensor_bytes(t)) > s.len) {
		mu_tensor_unref(t);
		return archive_broken(err);
	}
	return 0;
}

enum { HOLDS_NOTHING, HOLDS_TENSOR, HOLDS_LIST, HOLDS_KINDS };

static int kind_of_content(const struct mu_object *o, int64_t *content, struct mu_err *err)
{
	*content = !o ? HOLDS_NOTHING : variant_boxed(o) ? HOLDS_TENSOR : HOLDS_LIST;
	return *content == HOLDS_LIST && !dataset_is_list(o)
		   ? mu_fail(err, MU_UNIMPLEMENTED,
			     "the iterator holds elements with a %s in them, which cannot be saved",
			     o->type->name)
		   : 0;
}

int archive_element_list(struct archive *a, struct element_list *l, unsigned n_out,
			 struct mu_err *err)
{
	int64_t n = l->n;
	int rc = archive_number(a, &n, 0, INT64_MAX, err);

	if (rc || !archive_reads(a)) {
		for (int64_t i = 0; i < n && !rc; i++)
			rc = archive_element(a, &l->t[i * n_out], n_out, err);
		return rc;
	}
	element_list_drop(l, l->n, n_out);
	for (; l->n < n && !rc; l->n += !rc)
		rc = archive_element(a, element_list_next(l, n_out), n_out, err);
	return rc;
}

static int archive_list(struct archive *a, struct mu_object **o, struct mu_err *err)
{
	struct dataset *d = archive_reads(a) ? NULL : MU_CONTAINER(*o, struct dataset, object);
	int64_t n_out = d ? d->n_out : 0;
	int rc;

	MU_RETURN_IF_ERROR(archive_number(a, &n_out, 1, MAX_COMPONENTS, err));
	if (d)
		return archive_element_list(a, d->shared, d->n_out, err);
	d = element_list_dataset_new((unsigned)n_out);
	if ((rc = archive_element_list(a, d->shared, d->n_out, err)))
		mu_object_unref(&d->object);
	else
		*o = &d->object;
	return rc;
}

static int object(struct archive *a, struct mu_object **o, struct mu_err *err)
{
	struct mu_tensor t = {0};
	int64_t content = 0;
	int rc = archive_reads(a) ? 0 : kind_of_content(*o, &content, err);

	if (rc || (rc = archive_number(a, &content, 0, HOLDS_KINDS - 1, err)) ||
	    content == HOLDS_NOTHING)
		return rc;
	if (content == HOLDS_LIST)
		return archive_list(a, o, err);
	if (!archive_reads(a))
		t = *variant_boxed(*o);
	MU_RETURN_IF_ERROR(archive_element(a, &t, 1, err));
	if (!archive_reads(a))
		return 0;
	*o = variant_box(&t);
	mu_tensor_unref(&t);
	return 0;
}

static int objects(struct archive *a, struct mu_tensor *t, struct mu_err *err)
{
	int64_t rank = t->shape.rank, dim[MU_MAX_RANK];
	struct mu_shape s = t->shape;
	int rc = archive_number(a, &rank, 0, MU_MAX_RANK, err);

	memcpy(dim, t->shape.dim, sizeof dim);
	for (int64_t i = 0; i < rank && !rc; i++)
		rc = archive_number(a, &dim[i], 0, INT64_MAX, err);
	if (rc)
		return rc;
	if (archive_reads(a)) {
		if (mu_shape_set(&s, (int)rank, dim, NULL) ||
		    s.count > a->from.end - a->from.at) /* an object has at least one byte */
			return archive_broken(err);
		MU_RETURN_IF_ERROR(mu_tensor_new(t, MU_VARIANT, &s, err));
	}
	for (int64_t i = 0; i < s.count && !rc; i++)
		rc = object(a, &MU_DATA(struct mu_object *, t)[i], err);
	if (rc && archive_reads(a))
		mu_tensor_unref(t);
	return rc;
}

static int tensor(struct archive *a, struct mu_tensor *t, struct mu_err *err)
{
	bool plain = t->dtype != MU_VARIANT;

	if (t->dtype == MU_RESOURCE)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "the iterator holds handles of resources, which cannot be saved");
	MU_RETURN_IF_ERROR(archive_flag(a, &plain, err));
	return (plain ? plain_tensor : objects)(a, t, err);
}

int archive_element(struct archive *a, struct mu_tensor *t, unsigned n, struct mu_err *err)
{
	int rc = 0;

	if (a->depth == MAX_DEPTH)
		return mu_fail(err, MU_UNIMPLEMENTED, "elements over %d deep within each other",
			       MAX_DEPTH);
	a->depth++;
	for (unsigned i = 0; i < n && !rc; i++) {
		if (archive_reads(a))
			t[i] = (struct mu_tensor){0};
		if ((rc = tensor(a, &t[i], err)) && archive_reads(a))
			element_drop(t, i);
	}
	a->depth--;
	return rc;
}

/* ---- cursors ---- */

int archive_cursor_in(struct archive *a, const struct dataset *d, struct caller *who,
		      struct cursor **c, struct mu_err *err)
{
	bool there = *c != NULL;
	int rc = 0;

	MU_RETURN_IF_ERROR(archive_flag(a, &there, err));
	if (!there) { /* the archive has no cursor here */
		cursor_close(*c);
		*c = NULL;
		return 0;
	}
	if (!*c && (rc = cursor_open(d, who, c, err)))
		return rc;
	return archive_cursor(a, *c, err);
}

/* Writes the kind of a dataset, or checks that the pipeline has the same kind here. */
static int archive_kind(struct archive *a, const char *op, struct mu_err *err)
{
	struct mu_span s = mu_span_of(op);

	MU_RETURN_IF_ERROR(archive_span(a, &s, err));
	return mu_span_is(s, op)
		   ? 0
		   : mu_invalid(
			 err,
			 "the iterator's saved state is of a %.*s where this pipeline has a %s",
			 s.len > 60 ? 60 : (int)s.len, s.data, op);
}

int archive_cursor(struct archive *a, struct cursor *c, struct mu_err *err)
{
	const struct dataset_kind *k = c->d->kind;
	bool needs_up = c->up && !k->sheds;
	int rc;

	if (k->cursor_size && !k->state)
		return mu_fail(err, MU_UNIMPLEMENTED, "an iterator over a %s cannot be saved",
			       k->op);
	if ((rc = archive_kind(a, k->op, err)) || (k->state && (rc = k->state(c, a, err))))
		return rc;
	if (c->d->n_in && (rc = archive_cursor_in(a, c->d->in[0], c->who, &c->up, err)))
		return rc;
	return archive_reads(a) && needs_up && !c->up ? archive_broken(err) : 0;
}
