/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that apply a function to each element of another. */
#include <string.h>
#include <unistd.h>

#include "task/kernels/data/archive.h"
#include "task/kernels/data/dataset.h"

static int64_t count_kept(const struct dataset *d, int64_t n)
{
	return d->keeps_count ? n : UNKNOWN_CARDINALITY;
}

static int map_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	return dataset_draw(c, 0, out, c->d->n_out, NULL, err);
}

static int check_filter(struct dataset *d, struct mu_err *err)
{
	return d->in[0]->n_out == d->n_out
		   ? 0
		   : mu_invalid(err, "a filter keeps the %u components, not %u", d->in[0]->n_out,
				d->n_out);
}

/* The next element and whether the predicate is for it. */
static int read_predicate(struct cursor *c, struct mu_tensor *out, bool *keep, struct mu_err *err)
{
	struct mu_tensor yes;
	int rc = dataset_draw(c, 0, &yes, 1, out, err);

	if (rc <= 0)
		return rc;
	bool fits = yes.dtype == MU_BOOL && yes.shape.count == 1;
	*keep = fits && MU_DATA(bool, &yes)[0];
	mu_tensor_unref(&yes);
	if (fits)
		return 1;
	element_drop(out, c->d->n_out);
	return mu_invalid(err, "%s predicate `f` must return a scalar bool.",
			  c->d->kind->cursor_size ? "TakeWhile" : "Filter");
}

static int filter_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	bool keep = false;
	int rc;

	while ((rc = read_predicate(c, out, &keep, err)) > 0 && !keep)
		element_drop(out, c->d->n_out);
	return rc;
}

/* ---- a dataset for each element: one after the other, or several interleaved ---- */

enum { OURS_TO_CHOOSE = -1, MOST_TURNS = 65536 };
struct slot {
	struct cursor *c;     /* NULL: none has begun */
	struct mu_tensor *of; /* the element that its dataset was made of, for an archive */
};
struct cycle {
	struct slot *slot;
	int64_t n, at, taken; /* slots, the current one, elements it has given in its block */
	bool dry;
};

static int interleave_open(struct cursor *c, struct mu_err *err)
{
	struct cycle *t = c->own;
	int64_t n = c->d->kind->n_scalars ? dataset_number(c->d, 0) : 1;

	if (n == OURS_TO_CHOOSE && c->d->kind->n_scalars > 2)
		n = sysconf(_SC_NPROCESSORS_ONLN);

	if (n < 1 || n > MOST_TURNS || (c->d->kind->n_scalars && dataset_number(c->d, 1) < 1))
		return mu_invalid(err, "`cycle_length` and `block_length` must be > 0");
	t->n = n;
	t->slot = MU_NEW_ARRAY(struct slot, (size_t)n);
	return cursor_open_up(c, err);
}

static void end_slot(const struct cursor *c, struct slot *t)
{
	cursor_close(t->c);
	if (t->of)
		element_drop(t->of, c->d->in[0]->n_out);
	free(t->of);
	*t = (struct slot){0};
}

static void interleave_close(struct cursor *c)
{
	struct cycle *t = c->own;

	for (int64_t i = 0; t->slot && i < t->n; i++)
		end_slot(c, &t->slot[i]);
	free(t->slot);
}

/* Opens what the function makes of an element; both are taken. */
static int begin_slot(struct cursor *c, struct slot *t, struct mu_tensor *of,
		      struct mu_tensor *made, struct mu_err *err)
{
	struct dataset *d = dataset_in(made);
	int rc = d && d->n_out == c->d->n_out
		     ? cursor_open(d, c->who, &t->c, err)
		     : mu_invalid(err, "the function does not return a dataset of %u components",
				  c->d->n_out);

	mu_tensor_unref(made);
	t->of = of;
	if (rc)
		end_slot(c, t);
	return rc;
}

/* 1: the slot's place has a cursor; 0: nothing is left to fill it. */
static int open_slot(struct cursor *c, struct cycle *t, struct mu_err *err)
{
	struct mu_tensor made, *of;
	int rc;

	if (t->slot[t->at].c)
		return 1;
	if (t->dry)
		return 0;
	of = MU_NEW_ARRAY(struct mu_tensor, c->d->in[0]->n_out + 1);
	if ((rc = dataset_draw(c, 0, &made, 1, of, err)) <= 0) {
		t->dry = rc == 0;
		free(of);
		return rc;
	}
	MU_RETURN_IF_ERROR(begin_slot(c, &t->slot[t->at], of, &made, err));
	return 1;
}

static void next_slot(struct cycle *t)
{
	t->taken = 0;
	t->at = (t->at + 1) % t->n;
}

static int interleave_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	int64_t block = c->d->kind->n_scalars ? dataset_number(c->d, 1) : INT64_MAX, empty = 0;
	struct cycle *t = c->own;
	int rc;

	while (empty < t->n) {
		if ((rc = open_slot(c, t, err)) < 0)
			return rc;
		if (!rc) {
			empty++;
			next_slot(t);
			continue;
		}
		empty = 0;
		rc = cursor_next(t->slot[t->at].c, out, err);
		if (rc > 0 && ++t->taken >= block)
			next_slot(t);
		if (rc)
			return rc;
		end_slot(c, &t->slot[t->at]);
		next_slot(t);
	}
	return 0;
}

/* The dataset of a slot is made again from its element. */
static int read_slot(struct cursor *c, struct slot *t, struct archive *a, struct mu_err *err)
{
	unsigned n = c->d->in[0]->n_out;
	struct mu_tensor in[MAX_COMPONENTS], made;
	struct mu_tensor *of = MU_NEW_ARRAY(struct mu_tensor, n + 1);
	int rc = archive_element(a, of, n, err);

	if (rc) {
		free(of);
		return rc;
	}
	for (unsigned i = 0; i < n; i++)
		in[i] = mu_tensor_ref(&of[i]);
	if ((rc = dataset_apply(c, 0, in, n, &made, 1, err))) {
		element_drop(of, n);
		free(of);
		return rc;
	}
	MU_RETURN_IF_ERROR(begin_slot(c, t, of, &made, err));
	return archive_cursor(a, t->c, err);
}

static int slot_state(struct cursor *c, struct slot *t, struct archive *a, struct mu_err *err)
{
	bool there = t->c != NULL;
	int rc = archive_flag(a, &there, err);

	if (rc || !there)
		return rc;
	if (archive_reads(a))
		return read_slot(c, t, a, err);
	MU_RETURN_IF_ERROR(archive_element(a, t->of, c->d->in[0]->n_out, err));
	return archive_cursor(a, t->c, err);
}

/* The cycle length may have been our choice, on another machine. */
static int interleave_state(struct cursor *c, struct archive *a, struct mu_err *err)
{
	struct cycle *t = c->own;
	int64_t n = t->n;
	int rc = 0;

	MU_RETURN_IF_ERROR(archive_number(a, &n, 1, MOST_TURNS, err));
	if (n != t->n) { /* just opened: no slot has begun */
		free(t->slot);
		t->slot = MU_NEW_ARRAY(struct slot, (size_t)n);
		t->n = n;
	}
	MU_RETURN_IF_ERROR(archive_number(a, &t->at, 0, n - 1, err));
	MU_RETURN_IF_ERROR(archive_number(a, &t->taken, 0, INT64_MAX - 1, err));
	MU_RETURN_IF_ERROR(archive_flag(a, &t->dry, err));
	for (int64_t i = 0; i < n && !rc; i++)
		rc = slot_state(c, &t->slot[i], a, err);
	return rc;
}

/* ---- a state that goes from element to element ---- */

struct states {
	struct mu_tensor *t; /* n_first of them */
	bool over;
};

static int states_open(struct cursor *c, struct mu_err *err)
{
	struct states *s = c->own;

	s->t = MU_NEW_ARRAY(struct mu_tensor, c->d->n_first + 1);
	for (unsigned i = 0; i < c->d->n_first; i++)
		s->t[i] = mu_tensor_ref(&c->d->params[i]);
	return cursor_open_up(c, err);
}

static void states_close(struct cursor *c)
{
	struct states *s = c->own;

	element_drop(s->t, c->d->n_first);
	free(s->t);
}

static int states_state(struct cursor *c, struct archive *a, struct mu_err *err)
{
	struct states *s = c->own;
	struct mu_tensor read[MAX_COMPONENTS];
	unsigned n = c->d->n_first;
	int rc = archive_flag(a, &s->over, err);

	if (rc || !archive_reads(a))
		return rc ? rc : archive_element(a, s->t, n, err);
	if (n > MAX_COMPONENTS)
		return archive_broken(err);
	MU_RETURN_IF_ERROR(archive_element(a, read, n, err));
	element_drop(s->t, n);
	memcpy(s->t, read, n * sizeof *read);
	return 0;
}

static int check_scan(struct dataset *d, struct mu_err *err)
{
	return d->n_first + d->in[0]->n_out <= MAX_COMPONENTS &&
		       d->n_first + d->n_out <= MAX_COMPONENTS
		   ? 0
		   : mu_invalid(err, "states and elements of over %d components", MAX_COMPONENTS);
}

static int scan_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	struct mu_tensor in[MAX_COMPONENTS] = {0}, made[MAX_COMPONENTS] = {0};
	unsigned n = c->d->n_first;
	struct states *s = c->own;
	int rc = cursor_next(c->up, in + n, err);

	if (rc <= 0)
		return rc;
	for (unsigned i = 0; i < n; i++)
		in[i] = mu_tensor_ref(&s->t[i]);
	MU_RETURN_IF_ERROR(
	    dataset_apply(c, 0, in, n + c->d->in[0]->n_out, made, n + c->d->n_out, err));
	element_drop(s->t, n);
	memcpy(s->t, made, n * sizeof *made);
	memcpy(out, made + n, c->d->n_out * sizeof *made);
	return 1;
}

static int while_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	struct states *s = c->own;
	bool keep = false;
	int rc = s->over ? 0 : read_predicate(c, out, &keep, err);

	if (rc > 0 && !keep) {
		element_drop(out, c->d->n_out);
		rc = 0;
	}
	s->over |= rc == 0;
	return rc;
}

#define F(name) .n_in = 1, .function = {{name, "Targuments"}}
#define INTERLEAVE                                                                                 \
	F("f"), .cursor_size = sizeof(struct cycle), .open = interleave_open,                      \
		.next = interleave_next, .close = interleave_close, .state = interleave_state
#define MAP    F("f"), .open = cursor_open_up, .next = map_next, .count = count_kept
#define FILTER F("predicate"), .check = check_filter, .open = cursor_open_up, .next = filter_next
#define WHILE                                                                                      \
	F("predicate"), .cursor_size = sizeof(struct states), .check = check_filter,               \
			.open = states_open, .next = while_next, .close = states_close,            \
			.state = states_state
#define SCAN                                                                                       \
	F("f"), .cursor_size = sizeof(struct states), .check = check_scan, .open = states_open,    \
		.next = scan_next, .close = states_close, .count = count_kept,                     \
		.state = states_state
const struct dataset_kind function_kinds[] = {
    {"MapDataset", MAP},
    {"ParallelMapDataset", MAP, .n_scalars = 1},
    {"ParallelMapDatasetV2", MAP, .n_scalars = 1},
    {"FilterDataset", FILTER},
    {"ParallelFilterDataset", FILTER, .n_scalars = 1},
    {"FlatMapDataset", INTERLEAVE},
    {"InterleaveDataset", INTERLEAVE, .n_scalars = 2},
    {"ParallelInterleaveDatasetV2", INTERLEAVE, .n_scalars = 3},
    {"ParallelInterleaveDatasetV3", INTERLEAVE, .n_scalars = 3},
    {"ParallelInterleaveDatasetV4", INTERLEAVE, .n_scalars = 5},
    {"ParallelInterleaveDataset", INTERLEAVE, .n_scalars = 5},
    {"ExperimentalParallelInterleaveDataset", INTERLEAVE, .n_scalars = 5},
    {"LegacyParallelInterleaveDatasetV2", INTERLEAVE, .n_scalars = 4},
    {"ScanDataset", SCAN},
    {"ExperimentalScanDataset", SCAN},
    {"TakeWhileDataset", WHILE},
    {"ExperimentalTakeWhileDataset", WHILE},
    {.op = NULL},
};
