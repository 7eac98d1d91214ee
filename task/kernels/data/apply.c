/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that apply a function to each element of another. */
#include "task/kernels/data/dataset.h"
#include "task/kernels/variant.h"

/* An element of the dataset above, passed through the function. */
static int draw(struct cursor *c, struct mu_tensor *out, unsigned n_out, struct mu_tensor *kept,
		struct mu_err *err)
{
	struct mu_tensor in[MAX_COMPONENTS] = {0};
	unsigned n = c->d->in[0]->n_out;
	int rc = cursor_next(c->up, in, err);

	if (rc <= 0)
		return rc;
	for (unsigned i = 0; kept && i < n; i++)
		kept[i] = mu_tensor_ref(&in[i]);
	rc = dataset_apply(c, in, n, out, n_out, err);
	if (rc && kept)
		element_drop(kept, n);
	return rc ? rc : 1;
}

static int map_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	return draw(c, out, c->d->n_out, NULL, err);
}

static int check_filter(struct dataset *d, struct mu_err *err)
{
	return d->in[0]->n_out == d->n_out
		   ? 0
		   : mu_fail(err, MU_INVALID_ARGUMENT, "a filter keeps the %u components, not %u",
			     d->in[0]->n_out, d->n_out);
}

static int filter_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	struct mu_tensor yes;
	int rc;

	while ((rc = draw(c, &yes, 1, out, err)) > 0) {
		bool fits = yes.dtype == MU_BOOL && yes.shape.count == 1;
		bool keep = fits && MU_DATA(bool, &yes)[0];
		mu_tensor_unref(&yes);
		if (keep)
			return 1;
		element_drop(out, c->d->n_out);
		if (!fits)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Filter predicate `f` must return a scalar bool.");
	}
	return rc;
}

/* ---- a dataset for each element: one after the other, or some by turns ---- */

struct turns {
	struct cursor **c;
	int64_t n, at, taken; /* cursors, whose turn it is, elements it has given in this turn */
	bool dry;
};

static int interleave_open(struct cursor *c, struct mu_err *err)
{
	struct turns *t = c->own;
	int64_t n = c->d->kind->n_scalars ? dataset_number(c->d, 0) : 1;

	if (n < 1 || n > 65536 || (c->d->kind->n_scalars && dataset_number(c->d, 1) < 1))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "`cycle_length` and `block_length` must be > 0");
	t->n = n;
	t->c = MU_NEW_ARRAY(struct cursor *, (size_t)n);
	return cursor_open_up(c, err);
}

static void interleave_close(struct cursor *c)
{
	struct turns *t = c->own;

	for (int64_t i = 0; t->c && i < t->n; i++)
		cursor_close(t->c[i]);
	free(t->c);
}

/* 1: the turn's place has a cursor; 0: nothing is left to fill it. */
static int open_turn(struct cursor *c, struct turns *t, struct mu_err *err)
{
	struct mu_tensor made;
	int rc;

	if (t->c[t->at])
		return 1;
	if (t->dry)
		return 0;
	if ((rc = draw(c, &made, 1, NULL, err)) <= 0) {
		t->dry = rc == 0;
		return rc;
	}
	struct mu_object *o = made.dtype == MU_VARIANT && made.shape.count == 1
				  ? *MU_DATA(struct mu_object *, &made)
				  : NULL;
	struct dataset *d =
	    o && o->type == &dataset_type ? MU_CONTAINER(o, struct dataset, object) : NULL;
	rc = d && d->n_out == c->d->n_out
		 ? cursor_open(d, c->who, &t->c[t->at], err)
		 : mu_fail(err, MU_INVALID_ARGUMENT,
			   "the function does not return a dataset of %u components", c->d->n_out);
	mu_tensor_unref(&made);
	return rc ? rc : 1;
}

static void next_turn(struct turns *t)
{
	t->taken = 0;
	t->at = (t->at + 1) % t->n;
}

static int interleave_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	int64_t block = c->d->kind->n_scalars ? dataset_number(c->d, 1) : INT64_MAX, empty = 0;
	struct turns *t = c->own;
	int rc;

	while (empty < t->n) {
		if ((rc = open_turn(c, t, err)) < 0)
			return rc;
		if (!rc) {
			empty++;
			next_turn(t);
			continue;
		}
		empty = 0;
		rc = cursor_next(t->c[t->at], out, err);
		if (rc > 0 && ++t->taken >= block)
			next_turn(t);
		if (rc)
			return rc;
		cursor_close(t->c[t->at]);
		t->c[t->at] = NULL;
		next_turn(t);
	}
	return 0;
}

#define TURNS                                                                                      \
	.cursor_size = sizeof(struct turns), .n_in = 1, .function = "f", .open = interleave_open,  \
	.next = interleave_next, .close = interleave_close
#define MAP .n_in = 1, .function = "f", .open = cursor_open_up, .next = map_next
const struct dataset_kind function_kinds[] = {
    {"MapDataset", MAP},
    {"ParallelMapDataset", MAP, .n_scalars = 1},
    {"ParallelMapDatasetV2", MAP, .n_scalars = 1},
    {"FilterDataset", .n_in = 1, .function = "predicate", .check = check_filter,
     .open = cursor_open_up, .next = filter_next},
    {"FlatMapDataset", TURNS},
    {"InterleaveDataset", TURNS, .n_scalars = 2},
    {.op = NULL},
};
