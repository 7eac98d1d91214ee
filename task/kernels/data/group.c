/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that group elements: windows, whose elements are datasets, and groups by a key that a
 * function computes. */
#include <string.h>

#include "task/kernels/data/archive.h"
#include "task/kernels/data/dataset.h"
#include "task/kernels/data/element_list.h"
#include "task/kernels/data/stack.h"
#include "task/kernels/engine/variant.h"

/* ---- windows ---- */

enum { WINDOW_SIZE, WINDOW_SHIFT, WINDOW_STRIDE, WINDOW_WHOLE };

struct window {
	struct element_list list;
	int64_t skip; /* elements between this window and the next one */
};

static int check_window(struct dataset *d, struct mu_err *err)
{
	static const char *const names[] = {"size", "shift", "stride"};

	for (unsigned i = 0; i < MU_COUNT(names); i++)
		if (dataset_number(d, i) < 1 || dataset_number(d, i) > INT32_MAX)
			return mu_invalid(
			    err, "Window %s must be greater than zero and fit 31 bits, not %lld",
			    names[i], (long long)dataset_number(d, i));
	return 0;
}

static void window_close(struct cursor *c)
{
	element_list_fini(&((struct window *)c->own)->list, c->d->n_out);
}

/* Draws until the list has so many elements, or to the end. */
static int fill_window(struct cursor *c, int64_t span, struct mu_err *err)
{
	struct window *w = c->own;
	int rc = 1;

	while (c->up && w->list.n < span && rc > 0) {
		rc = cursor_next(c->up, element_list_next(&w->list, c->d->n_out), err);
		if (rc <= 0)
			break;
		w->list.n++;
		if (w->skip) {
			element_list_drop(&w->list, 1, c->d->n_out);
			w->skip--;
		}
	}
	if (rc == 0) {
		cursor_close(c->up);
		c->up = NULL;
	}
	return rc;
}

/* Every stride-th of the list's elements; only component k of them, or all. */
static void dataset_group_pick(const struct element_list *from, int64_t n, int64_t stride,
			       unsigned n_out, int k, struct element_list *to)
{
	unsigned first = k < 0 ? 0 : (unsigned)k, some = k < 0 ? n_out : 1;

	for (int64_t i = 0; i < n; i++, to->n++) {
		struct mu_tensor *t = element_list_next(to, some);
		for (unsigned x = 0; x < some; x++)
			t[x] = mu_tensor_ref(&from->t[i * stride * n_out + first + x]);
	}
}

static int window_elements(const struct cursor *c, int64_t n, int64_t stride, struct mu_tensor *out,
			   struct mu_err *err)
{
	const struct window *w = c->own;
	int rc = 0;

	for (unsigned k = 0; k < c->d->n_out && !rc; k++) {
		struct element_list some = {0};
		dataset_group_pick(&w->list, n, stride, c->d->n_out, (int)k, &some);
		if ((rc = element_list_to_dataset(&some, 1, &out[k], err)))
			element_drop(out, k);
	}
	return rc;
}

static int window_batch(const struct cursor *c, int64_t n, int64_t stride, struct mu_tensor *out,
			struct mu_err *err)
{
	const struct window *w = c->own;
	unsigned n_out = c->d->n_out;
	MU_AUTO_FREE struct mu_tensor **element = MU_NEW_ARRAY(struct mu_tensor *, (size_t)n);
	int rc = 0;

	for (int64_t i = 0; i < n; i++)
		element[i] = &w->list.t[i * stride * n_out];
	for (unsigned k = 0; k < n_out && !rc; k++)
		if ((rc = stack_elements(element, n, k, &out[k], err)))
			element_drop(out, k);
	return rc;
}

static int window_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	int64_t size = dataset_number(c->d, WINDOW_SIZE),
		shift = dataset_number(c->d, WINDOW_SHIFT);
	int64_t stride = dataset_number(c->d, WINDOW_STRIDE), span = 1 + (size - 1) * stride;
	bool batch = c->d->kind->n_scalars <= WINDOW_WHOLE;
	bool whole = batch || dataset_number(c->d, WINDOW_WHOLE);
	struct window *w = c->own;
	int rc = fill_window(c, span, err);

	if (rc < 0)
		return rc;
	if (!w->list.n || (whole && w->list.n < span))
		return 0;
	int64_t n = 1 + (w->list.n - 1) / stride;
	rc = (batch ? window_batch : window_elements)(c, n, stride, out, err);
	int64_t drop = shift < w->list.n ? shift : w->list.n;
	element_list_drop(&w->list, drop, c->d->n_out);
	w->skip = shift - drop;
	return rc ? rc : 1;
}

static int window_state(struct cursor *c, struct archive *a, struct mu_err *err)
{
	struct window *w = c->own;

	MU_RETURN_IF_ERROR(archive_number(a, &w->skip, 0, INT32_MAX, err));
	return archive_element_list(a, &w->list, c->d->n_out, err);
}

/* ---- groups by window: a dataset is made of each group that is full, and gone through ---- */

enum { KEY_F, REDUCE_F, SIZE_F };

struct group {
	int64_t key, size;
	struct element_list list;
};

struct groups {
	struct group *g; /* by key, rising */
	size_t n, room;
	struct cursor *now;     /* over what the reducing function made of … */
	struct mu_tensor of[2]; /* … a key and its elements */
};

static int check_groups(struct dataset *d, struct mu_err *err)
{
	return d->n_first ? mu_invalid(err, "inputs that no function captured") : 0;
}

static void end_group(struct groups *w)
{
	cursor_close(w->now);
	element_drop(w->of, MU_COUNT(w->of));
	memset(w->of, 0, sizeof w->of);
	w->now = NULL;
}

static void groups_close(struct cursor *c)
{
	struct groups *w = c->own;

	for (size_t i = 0; i < w->n; i++)
		element_list_fini(&w->g[i].list, c->d->in[0]->n_out);
	free(w->g);
	end_group(w);
}

/* One int64 that function `which` gives for n tensors, which are taken. */
static int dataset_group_request(struct cursor *c, unsigned which, struct mu_tensor *in, unsigned n,
				 int64_t *out, struct mu_err *err)
{
	struct mu_tensor t;

	MU_RETURN_IF_ERROR(dataset_apply(c, which, in, n, &t, 1, err));
	bool fits = t.dtype == MU_INT64 && t.shape.count == 1;
	if (fits)
		*out = mu_tensor_int(&t, 0);
	mu_tensor_unref(&t);
	return fits ? 0
		    : mu_invalid(err, "`%s` must return a scalar int64.",
				 c->d->kind->function[which].name);
}

/* An element of in[0] and its key. */
static int draw_keyed(struct cursor *c, struct mu_tensor *element, int64_t *key, struct mu_err *err)
{
	struct mu_tensor in[MAX_COMPONENTS];
	unsigned n = c->d->in[0]->n_out;
	int rc = cursor_next(c->up, element, err);

	if (rc <= 0)
		return rc;
	for (unsigned i = 0; i < n; i++)
		in[i] = mu_tensor_ref(&element[i]);
	if (!(rc = dataset_group_request(c, KEY_F, in, n, key, err)))
		return 1;
	element_drop(element, n);
	return rc;
}

/* The group of the key, or the place where it belongs. */
static size_t group_at(const struct groups *w, int64_t key)
{
	size_t from = 0, to = w->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (w->g[middle].key < key)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct group *group_new(struct groups *w, size_t at)
{
	if (w->n == w->room) {
		w->room = w->room ? 2 * w->room : 8;
		w->g = mu_xrealloc(w->g, w->room * sizeof *w->g);
	}
	memmove(w->g + at + 1, w->g + at, (w->n++ - at) * sizeof *w->g);
	return &w->g[at];
}

static int find_group(struct cursor *c, int64_t key, struct group **out, struct mu_err *err)
{
	struct groups *w = c->own;
	size_t at = group_at(w, key);

	if (at == w->n || w->g[at].key != key) {
		struct mu_tensor t;
		int64_t size = 0;
		int rc = mu_tensor_scalar(&t, MU_INT64, &key, err);
		if (rc || (rc = dataset_group_request(c, SIZE_F, &t, 1, &size, err)))
			return rc;
		if (size < 1)
			return mu_invalid(err,
					  "Window size must be greater than zero, but got %lld.",
					  (long long)size);
		*group_new(w, at) = (struct group){.key = key, .size = size};
	}
	*out = &w->g[at];
	return 0;
}

/* Goes through what the reducing function makes of the group in hand. */
static int dataset_group_reduce(struct cursor *c, struct mu_err *err)
{
	struct groups *w = c->own;
	struct mu_tensor in[2] = {mu_tensor_ref(&w->of[0]), mu_tensor_ref(&w->of[1])}, made;
	int rc;

	MU_RETURN_IF_ERROR(dataset_apply(c, REDUCE_F, in, 2, &made, 1, err));
	const struct dataset *d = dataset_in(&made);
	rc = d && d->n_out == c->d->n_out
		 ? cursor_open(d, c->who, &w->now, err)
		 : mu_invalid(err, "`reduce_func` does not return a dataset of %u components",
			      c->d->n_out);
	mu_tensor_unref(&made);
	return rc;
}

static int begin_group(struct cursor *c, struct group *g, struct mu_err *err)
{
	struct groups *w = c->own;
	struct element_list all = g->list;
	int rc;

	g->list = (struct element_list){0};
	if ((rc = element_list_to_dataset(&all, c->d->in[0]->n_out, &w->of[1], err)) ||
	    (rc = mu_tensor_scalar(&w->of[0], MU_INT64, &g->key, err)) ||
	    (rc = dataset_group_reduce(c, err)))
		end_group(w);
	return rc;
}

/* Draws until a group is full; at the end takes what there is of the one with the least key. */
static int next_group(struct cursor *c, struct mu_err *err)
{
	struct groups *w = c->own;
	struct mu_tensor element[MAX_COMPONENTS];
	unsigned n = c->d->in[0]->n_out;
	int rc = 1;

	while (c->up) {
		struct group *g = NULL;
		int64_t key;
		if ((rc = draw_keyed(c, element, &key, err)) < 0)
			return rc;
		if (!rc) {
			cursor_close(c->up);
			c->up = NULL;
			break;
		}
		if ((rc = find_group(c, key, &g, err))) {
			element_drop(element, n);
			return rc;
		}
		memcpy(element_list_next(&g->list, n), element, n * sizeof *element);
		if (++g->list.n == g->size)
			return (rc = begin_group(c, g, err)) ? rc : 1;
	}
	for (size_t i = 0; i < w->n; i++)
		if (w->g[i].list.n)
			return (rc = begin_group(c, &w->g[i], err)) ? rc : 1;
	return 0;
}

static int groups_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	struct groups *w = c->own;
	int rc = 0;

	for (;;) {
		if (!w->now && (rc = next_group(c, err)) <= 0)
			return rc;
		MU_RETURN_IF_ERROR(cursor_next(w->now, out, err));
		end_group(w);
	}
}

static int group_state(struct cursor *c, struct group *g, struct archive *a, struct mu_err *err)
{
	int rc = archive_number(a, &g->key, INT64_MIN, INT64_MAX, err);

	if (rc || (rc = archive_number(a, &g->size, 1, INT64_MAX, err)))
		return rc;
	return archive_element_list(a, &g->list, c->d->in[0]->n_out, err);
}

static int all_groups_state(struct cursor *c, struct archive *a, struct mu_err *err)
{
	struct groups *w = c->own;
	int64_t n = (int64_t)w->n;
	int rc = archive_number(a, &n, 0, INT64_MAX, err);

	for (int64_t i = 0; i < n && !rc; i++) {
		if (archive_reads(a))
			*group_new(w, w->n) = (struct group){0};
		rc = group_state(c, &w->g[i], a, err);
		if (!rc && archive_reads(a) && i && w->g[i - 1].key >= w->g[i].key)
			rc = archive_broken(err);
	}
	return rc;
}

static int groups_state(struct cursor *c, struct archive *a, struct mu_err *err)
{
	struct groups *w = c->own;
	bool now = w->now != NULL;
	int rc = all_groups_state(c, a, err);

	if (rc || (rc = archive_flag(a, &now, err)) || !now ||
	    (rc = archive_element(a, w->of, MU_COUNT(w->of), err)))
		return rc;
	if (archive_reads(a) && (rc = dataset_group_reduce(c, err)))
		return rc;
	return archive_cursor(a, w->now, err);
}

/* Windows begin every `shift` elements. */
static int64_t count_windows(const struct dataset *d, int64_t n)
{
	int64_t size = dataset_number(d, WINDOW_SIZE), shift = dataset_number(d, WINDOW_SHIFT);
	int64_t span = 1 + (size - 1) * dataset_number(d, WINDOW_STRIDE);
	bool whole = d->kind->n_scalars <= WINDOW_WHOLE || dataset_number(d, WINDOW_WHOLE);

	if (n <= 0)
		return n;
	return !whole ? (n + shift - 1) / shift : n < span ? 0 : (n - span) / shift + 1;
}

#define WINDOW                                                                                     \
	.cursor_size = sizeof(struct window), .n_in = 1, .check = check_window,                    \
	.open = cursor_open_up, .next = window_next, .close = window_close,                        \
	.count = count_windows, .state = window_state, .sheds = true
#define GROUPS                                                                                     \
	.cursor_size = sizeof(struct groups), .n_in = 1,                                           \
	.function = {{"key_func", "Tkey_func_other_arguments"},                                    \
		     {"reduce_func", "Treduce_func_other_arguments"},                              \
		     {"window_size_func", "Twindow_size_func_other_arguments"}},                   \
	.check = check_groups, .open = cursor_open_up, .next = groups_next, .close = groups_close, \
	.state = groups_state, .sheds = true

const struct dataset_kind group_kinds[] = {
    {"WindowDataset", WINDOW, .n_scalars = 4},
    {"SlidingWindowDataset", WINDOW, .n_scalars = 3},
    {"ExperimentalSlidingWindowDataset", WINDOW, .n_scalars = 3},
    {"GroupByWindowDataset", GROUPS},
    {"ExperimentalGroupByWindowDataset", GROUPS},
    {.op = NULL},
};
