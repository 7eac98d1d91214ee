/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that apply a function to each element of another. */
#include <string.h>
#include <unistd.h>

#include "task/kernels/data/dataset.h"

static int64_t count_kept(const struct dataset *d, int64_t n)
{
	return d->keeps_count ? n : UNKNOWN_MANY;
}

static int map_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	return dataset_draw(c, 0, out, c->d->n_out, NULL, err);
}

static int check_filter(struct dataset *d, struct mu_err *err)
{
	return d->in[0]->n_out == d->n_out
		   ? 0
		   : mu_fail(err, MU_INVALID_ARGUMENT, "a filter keeps the %u components, not %u",
			     d->in[0]->n_out, d->n_out);
}

/* The next element and whether the predicate is for it. */
static int judge(struct cursor *c, struct mu_tensor *out, bool *keep, struct mu_err *err)
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
	return mu_fail(err, MU_INVALID_ARGUMENT, "%s predicate `f` must return a scalar bool.",
		       c->d->kind->cursor_size ? "TakeWhile" : "Filter");
}

static int filter_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	bool keep = false;
	int rc;

	while ((rc = judge(c, out, &keep, err)) > 0 && !keep)
		element_drop(out, c->d->n_out);
	return rc;
}

/* ---- a dataset for each element: one after the other, or some by turns ---- */

enum { OURS_TO_CHOOSE = -1 };
struct turns {
	struct cursor **c;
	int64_t n, at, taken; /* cursors, whose turn it is, elements it has given in this turn */
	bool dry;
};

static int interleave_open(struct cursor *c, struct mu_err *err)
{
	struct turns *t = c->own;
	int64_t n = c->d->kind->n_scalars ? dataset_number(c->d, 0) : 1;

	if (n == OURS_TO_CHOOSE && c->d->kind->n_scalars > 2)
		n = sysconf(_SC_NPROCESSORS_ONLN);

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
	if ((rc = dataset_draw(c, 0, &made, 1, NULL, err)) <= 0) {
		t->dry = rc == 0;
		return rc;
	}
	struct dataset *d = dataset_in(&made);
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

static int check_scan(struct dataset *d, struct mu_err *err)
{
	return d->n_first + d->in[0]->n_out <= MAX_COMPONENTS &&
		       d->n_first + d->n_out <= MAX_COMPONENTS
		   ? 0
		   : mu_fail(err, MU_INVALID_ARGUMENT, "states and elements of over %d components",
			     MAX_COMPONENTS);
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
	if ((rc = dataset_apply(c, 0, in, n + c->d->in[0]->n_out, made, n + c->d->n_out, err)))
		return rc;
	element_drop(s->t, n);
	memcpy(s->t, made, n * sizeof *made);
	memcpy(out, made + n, c->d->n_out * sizeof *made);
	return 1;
}

static int while_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	struct states *s = c->own;
	bool keep = false;
	int rc = s->over ? 0 : judge(c, out, &keep, err);

	if (rc > 0 && !keep) {
		element_drop(out, c->d->n_out);
		rc = 0;
	}
	s->over |= rc == 0;
	return rc;
}

#define F(name) .n_in = 1, .function = {{name, "Targuments"}}
#define TURNS                                                                                      \
	F("f"), .cursor_size = sizeof(struct turns), .open = interleave_open,                      \
		.next = interleave_next, .close = interleave_close
#define MAP    F("f"), .open = cursor_open_up, .next = map_next, .count = count_kept
#define FILTER F("predicate"), .check = check_filter, .open = cursor_open_up, .next = filter_next
#define WHILE                                                                                      \
	F("predicate"), .cursor_size = sizeof(struct states), .check = check_filter,               \
			.open = states_open, .next = while_next, .close = states_close
#define SCAN                                                                                       \
	F("f"), .cursor_size = sizeof(struct states), .check = check_scan, .open = states_open,    \
		.next = scan_next, .close = states_close, .count = count_kept
const struct dataset_kind function_kinds[] = {
    {"MapDataset", MAP},
    {"ParallelMapDataset", MAP, .n_scalars = 1},
    {"ParallelMapDatasetV2", MAP, .n_scalars = 1},
    {"FilterDataset", FILTER},
    {"ParallelFilterDataset", FILTER, .n_scalars = 1},
    {"FlatMapDataset", TURNS},
    {"InterleaveDataset", TURNS, .n_scalars = 2},
    {"ParallelInterleaveDatasetV2", TURNS, .n_scalars = 3},
    {"ParallelInterleaveDatasetV3", TURNS, .n_scalars = 3},
    {"ParallelInterleaveDatasetV4", TURNS, .n_scalars = 5},
    {"ParallelInterleaveDataset", TURNS, .n_scalars = 5},
    {"ExperimentalParallelInterleaveDataset", TURNS, .n_scalars = 5},
    {"LegacyParallelInterleaveDatasetV2", TURNS, .n_scalars = 4},
    {"ScanDataset", SCAN},
    {"ExperimentalScanDataset", SCAN},
    {"TakeWhileDataset", WHILE},
    {"ExperimentalTakeWhileDataset", WHILE},
    {.op = NULL},
};
