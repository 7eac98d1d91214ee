/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/data/archive.h"

#include <string.h>

#include "lib/tensor/tensor_proto.h"
#include "task/kernels/engine/variant.h"

enum { MAX_WITHIN = 16 }; /* elements that hold elements */

int archive_broken(struct mu_err *err)
{
	return mu_fail(err, MU_INVALID_ARGUMENT,
		       "the iterator's saved state is cut short, or of another pipeline");
}

static int read_varint(struct archive *a, uint64_t *v, struct mu_err *err)
{
	return mu_pb_varint(&a->from, v) ? 0 : archive_broken(err);
}

int archive_number(struct archive *a, int64_t *v, int64_t least, int64_t most, struct mu_err *err)
{
	uint64_t x;
	int rc;

	if (!archive_reads(a)) {
		mu_pb_put_varint(a->to, (uint64_t)*v);
		return 0;
	}
	if ((rc = read_varint(a, &x, err)))
		return rc;
	if ((int64_t)x < least || (int64_t)x > most)
		return archive_broken(err);
	*v = (int64_t)x;
	return 0;
}

int archive_word(struct archive *a, uint32_t *v, struct mu_err *err)
{
	int64_t x = *v;
	int rc = archive_number(a, &x, 0, UINT32_MAX, err);

	if (!rc)
		*v = (uint32_t)x;
	return rc;
}

int archive_flag(struct archive *a, bool *v, struct mu_err *err)
{
	int64_t x = *v;
	int rc = archive_number(a, &x, 0, 1, err);

	if (!rc)
		*v = x;
	return rc;
}

/* A run of bytes; what is read is borrowed. */
static int archive_span(struct archive *a, struct mu_span *s, struct mu_err *err)
{
	uint64_t n;
	int rc;

	if (!archive_reads(a)) {
		mu_pb_put_varint(a->to, s->len);
		mu_buf_put(a->to, s->data, s->len);
		return 0;
	}
	if ((rc = read_varint(a, &n, err)))
		return rc;
	if (n > (uint64_t)(a->from.end - a->from.at))
		return archive_broken(err);
	*s = (struct mu_span){a->from.at, n};
	a->from.at += n;
	return 0;
}

int archive_bytes(struct archive *a, struct mu_buf *b, struct mu_err *err)
{
	struct mu_span s = mu_buf_span(b);
	int rc = archive_span(a, &s, err);

	if (rc || !archive_reads(a))
		return rc;
	mu_buf_clear(b);
	mu_buf_put(b, s.data, s.len);
	return 0;
}

/* ---- elements ---- */

static int plain_tensor(struct archive *a, struct mu_tensor *t, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	struct mu_span s;
	int rc;

	if (!archive_reads(a))
		mu_tensor_write(&b, t);
	s = mu_buf_span(&b);
	if ((rc = archive_span(a, &s, err)) || !archive_reads(a))
		return rc;
	if (mu_tensor_parse(t, s, NULL))
		return archive_broken(err);
	/* as it was written no value stands for several, and an object is not among them */
	if (t->dtype == MU_RESOURCE || t->dtype == MU_VARIANT ||
	    (t->dtype == MU_STRING ? (size_t)t->shape.count : mu_tensor_bytes(t)) > s.len) {
		mu_tensor_unref(t);
		return archive_broken(err);
	}
	return 0;
}

enum { HOLDS_NOTHING, HOLDS_TENSOR, HOLDS_LIST, HOLDS_KINDS };

static int what_it_holds(const struct mu_object *o, int64_t *what, struct mu_err *err)
{
	*what = !o ? HOLDS_NOTHING : variant_boxed(o) ? HOLDS_TENSOR : HOLDS_LIST;
	return *what == HOLDS_LIST && !dataset_is_list(o)
		   ? mu_fail(err, MU_UNIMPLEMENTED,
			     "the iterator holds elements with a %s in them, which cannot be saved",
			     o->type->name)
		   : 0;
}

static int object(struct archive *a, struct mu_object **o, struct mu_err *err)
{
	struct mu_tensor t = {0};
	int64_t what = 0;
	int rc = archive_reads(a) ? 0 : what_it_holds(*o, &what, err);

	if (rc || (rc = archive_number(a, &what, 0, HOLDS_KINDS - 1, err)) || what == HOLDS_NOTHING)
		return rc;
	if (what == HOLDS_LIST)
		return archive_list(a, o, err);
	if (!archive_reads(a))
		t = *variant_boxed(*o);
	if ((rc = archive_element(a, &t, 1, err)) || !archive_reads(a))
		return rc;
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
		    s.count > a->from.end - a->from.at) /* each takes a byte at least */
			return archive_broken(err);
		if ((rc = mu_tensor_new(t, MU_VARIANT, &s, err)))
			return rc;
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
	int rc;

	if (t->dtype == MU_RESOURCE)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "the iterator holds handles of resources, which cannot be saved");
	if ((rc = archive_flag(a, &plain, err)))
		return rc;
	return (plain ? plain_tensor : objects)(a, t, err);
}

int archive_element(struct archive *a, struct mu_tensor *t, unsigned n, struct mu_err *err)
{
	int rc = 0;

	if (a->depth == MAX_WITHIN)
		return mu_fail(err, MU_UNIMPLEMENTED, "elements over %d deep within each other",
			       MAX_WITHIN);
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
	int rc = archive_flag(a, &there, err);

	if (rc)
		return rc;
	if (!there) { /* it is being read: or it has been closed all along */
		cursor_close(*c);
		*c = NULL;
		return 0;
	}
	if (!*c && (rc = cursor_open(d, who, c, err)))
		return rc;
	return archive_cursor(a, *c, err);
}

/* The name of its kind shows that the pipeline is the same one. */
static int archive_kind(struct archive *a, const char *op, struct mu_err *err)
{
	struct mu_span s = mu_span_of(op);
	int rc = archive_span(a, &s, err);

	if (rc)
		return rc;
	return mu_span_is(s, op) ? 0
				 : mu_fail(err, MU_INVALID_ARGUMENT,
					   "the iterator's saved state is of a %.*s where this "
					   "pipeline has a %s",
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
