/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that group elements.  The components of a window are datasets.  Groups have a key that a
 * function computes; they become datasets or are reduced to one element each. */
#include <string.h>

#include "task/kernels/data/dataset.h"
#include "task/kernels/data/element_list.h"
#include "task/kernels/data/serializer.h"
#include "task/kernels/data/stack.h"

/* ---- windows ---- */

enum { WINDOW_SIZE, WINDOW_SHIFT, WINDOW_STRIDE, WINDOW_DROP_REMAINDER };

struct window {
	struct element_list list;
	int64_t skip; /* elements between this window and the next one */
};

static int check_window(struct dataset *d, struct mu_err *err)
{
	static const char *const names[] = {"size", "shift", "stride"};

	for (unsigned i = 0; i < MU_COUNT(names); i++)
		if (dataset_number(d, i) < 1)
			return mu_invalid(err, "Window %s must be greater than zero, not %lld",
					  names[i], (long long)dataset_number(d, i));
	return 0;
}

/* Returns the number of input elements that a window spans. */
static int64_t window_span(const struct dataset *d)
{
	int64_t span;

	return __builtin_mul_overflow(dataset_number(d, WINDOW_SIZE) - 1,
				      dataset_number(d, WINDOW_STRIDE), &span) ||
		       span == INT64_MAX
		   ? INT64_MAX
		   : span + 1;
}

static void window_close(struct dataset_iterator *it)
{
	element_list_fini(&((struct window *)it->state)->list, it->d->n_out);
}

/* Reads elements until the list has `span`, or to the end of the input. */
static int fill_window(struct dataset_iterator *it, int64_t span, struct mu_err *err)
{
	struct window *w = it->state;
	int rc = 1;

	while (it->input && w->list.n < span && rc > 0) {
		rc = dataset_iterator_next(it->input, element_list_next(&w->list, it->d->n_out),
					   err);
		if (rc <= 0)
			break;
		w->list.n++;
		if (w->skip) {
			element_list_drop(&w->list, 1, it->d->n_out);
			w->skip--;
		}
	}
	if (rc == 0)
		dataset_iterator_close_input(it);
	return rc;
}

/* Appends component k of n elements, every stride-th of `from`, to a list. */
static void pick_elements(const struct element_list *from, int64_t n, int64_t stride,
			  unsigned n_out, unsigned k, struct element_list *to)
{
	for (int64_t i = 0; i < n; i++, to->n++)
		element_ref(element_list_next(to, 1), &from->t[i * stride * n_out + k], 1);
}

/* Sets out[k] to a dataset of component k of the window's elements. */
static int window_datasets(const struct dataset_iterator *it, int64_t n, int64_t stride,
			   struct mu_tensor *out, struct mu_err *err)
{
	const struct window *w = it->state;
	int rc = 0;

	for (unsigned k = 0; k < it->d->n_out && !rc; k++) {
		struct element_list elements = {0};
		pick_elements(&w->list, n, stride, it->d->n_out, k, &elements);
		if ((rc = element_list_to_dataset(&elements, 1, &out[k], err)))
			element_drop(out, k);
	}
	return rc;
}

static int window_batch(const struct dataset_iterator *it, int64_t n, int64_t stride,
			struct mu_tensor *out, struct mu_err *err)
{
	const struct window *w = it->state;
	unsigned n_out = it->d->n_out;
	MU_AUTO_FREE struct mu_tensor **element = MU_NEW_ARRAY(struct mu_tensor *, (size_t)n);
	int rc = 0;

	for (int64_t i = 0; i < n; i++)
		element[i] = &w->list.t[i * stride * n_out];
	for (unsigned k = 0; k < n_out && !rc; k++)
		if ((rc = stack_elements(element, n, k, false, &out[k], err)))
			element_drop(out, k);
	return rc;
}

static int window_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int64_t shift = dataset_number(it->d, WINDOW_SHIFT), span = window_span(it->d);
	int64_t stride = dataset_number(it->d, WINDOW_STRIDE);
	bool batch = it->d->kind->n_scalars <= WINDOW_DROP_REMAINDER;
	bool drop_remainder = batch || dataset_number(it->d, WINDOW_DROP_REMAINDER);
	struct window *w = it->state;
	int rc = fill_window(it, span, err);

	if (rc < 0)
		return rc;
	if (!w->list.n || (drop_remainder && w->list.n < span))
		return 0;
	int64_t n = 1 + (w->list.n - 1) / stride;
	rc = (batch ? window_batch : window_datasets)(it, n, stride, out, err);
	int64_t drop = shift < w->list.n ? shift : w->list.n;
	element_list_drop(&w->list, drop, it->d->n_out);
	w->skip = shift - drop;
	return rc ? rc : 1;
}

static int window_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	struct window *w = it->state;

	MU_RETURN_IF_ERROR(serialize_number(ser, &w->skip, 0, INT64_MAX, err));
	return serialize_element_list(ser, &w->list, it->d->n_out, err);
}

/* ---- group by window: reduce_func gets the dataset of each full group ---- */

enum { KEY_F, REDUCE_F, SIZE_F };                /* of groups by window */
enum { INIT_F = 1, REDUCE_STATE_F, FINALIZE_F }; /* of groups by reducer */

struct group {
	int64_t key, size;
	struct element_list list; /* elements of in[0], or the one state of a reducer */
};

struct groups {
	struct mu_map by_key;             /* key -> struct group */
	struct group **sorted;            /* n, by key; NULL: the input has not ended */
	size_t n, first;                  /* the groups before `first` have ended */
	struct dataset_iterator *current; /* over the dataset that reduce_func returned */
	struct mu_tensor reduce_args[2];  /* its arguments: a key and the dataset of its elements */
};

static int check_groups(struct dataset *d, struct mu_err *err)
{
	return d->n_params_before_captured ? mu_invalid(err, "inputs that no function captured")
					   : 0;
}

static int groups_open(struct dataset_iterator *it, struct mu_err *err)
{
	mu_map_init(&((struct groups *)it->state)->by_key);
	return dataset_iterator_open_input(it, err);
}

static void end_group(struct groups *w)
{
	dataset_iterator_close(w->current);
	element_drop(w->reduce_args, MU_COUNT(w->reduce_args));
	memset(w->reduce_args, 0, sizeof w->reduce_args);
	w->current = NULL;
}

/* Returns the number of tensors in an element of a group's list. */
static unsigned group_width(const struct dataset_iterator *it)
{
	return it->d->f[FINALIZE_F].f ? function_outputs(it->d->f[INIT_F].f) : it->d->in[0]->n_out;
}

static void groups_close(struct dataset_iterator *it)
{
	struct groups *w = it->state;

	mu_map_each (&w->by_key, s) {
		element_list_fini(&((struct group *)s->value)->list, group_width(it));
		free(s->value);
	}
	mu_map_fini(&w->by_key);
	free(w->sorted);
	end_group(w);
}

/* Calls function `which`, which returns one int64.  Takes the n arguments. */
static int call_int64_function(struct dataset_iterator *it, unsigned which, struct mu_tensor *in,
			       unsigned n, int64_t *out, struct mu_err *err)
{
	struct mu_tensor t;

	MU_RETURN_IF_ERROR(dataset_apply(it, which, in, n, &t, 1, err));
	bool fits = t.dtype == MU_INT64 && t.shape.count == 1;
	if (fits)
		*out = mu_tensor_int(&t, 0);
	mu_tensor_unref(&t);
	return fits ? 0
		    : mu_invalid(err, "`%s` must return a scalar int64.",
				 it->d->kind->function[which].name);
}

/* Draws an element of in[0] and computes its key. */
static int draw_keyed(struct dataset_iterator *it, struct mu_tensor *element, int64_t *key,
		      struct mu_err *err)
{
	unsigned n = it->d->in[0]->n_out;
	MU_AUTO_FREE struct mu_tensor *in = MU_NEW_ARRAY(struct mu_tensor, n + 1);
	int rc = dataset_iterator_next(it->input, element, err);

	if (rc <= 0)
		return rc;
	element_ref(in, element, n);
	if (!(rc = call_int64_function(it, KEY_F, in, n, key, err)))
		return 1;
	element_drop(element, n);
	return rc;
}

static struct group *group_of(const struct groups *w, int64_t key)
{
	return mu_map_get_n(&w->by_key, &key, sizeof key);
}

static struct group *group_add(struct groups *w, int64_t key)
{
	struct group *g = MU_NEW(struct group);

	g->key = key;
	mu_map_put_n(&w->by_key, &key, sizeof key, g);
	return g;
}

static int compare_keys(const void *a, const void *b)
{
	int64_t x = (*(struct group *const *)a)->key, y = (*(struct group *const *)b)->key;

	return (x > y) - (x < y);
}

/* Called at the end of the input.  The remaining groups follow in the order of their keys. */
static void groups_sort(struct groups *w)
{
	if (w->sorted)
		return;
	w->sorted = MU_NEW_ARRAY(struct group *, w->by_key.count + 1);
	mu_map_each (&w->by_key, s)
		w->sorted[w->n++] = s->value;
	qsort(w->sorted, w->n, sizeof(*w->sorted), compare_keys);
}

static int find_group(struct dataset_iterator *it, int64_t key, struct group **out,
		      struct mu_err *err)
{
	struct groups *w = it->state;

	if (!(*out = group_of(w, key))) {
		struct mu_tensor t;
		int64_t size = 0;
		MU_RETURN_IF_ERROR(mu_tensor_scalar(&t, MU_INT64, &key, err));
		MU_RETURN_IF_ERROR(call_int64_function(it, SIZE_F, &t, 1, &size, err));
		if (size < 1)
			return mu_invalid(err,
					  "Window size must be greater than zero, but got %lld.",
					  (long long)size);
		*out = group_add(w, key);
		(*out)->size = size;
	}
	return 0;
}

/* Opens the dataset that reduce_func returns for the current group. */
static int open_reduced_group(struct dataset_iterator *it, struct mu_err *err)
{
	struct groups *w = it->state;
	struct mu_tensor in[2] = {mu_tensor_ref(&w->reduce_args[0]),
				  mu_tensor_ref(&w->reduce_args[1])},
			 result;
	int rc;

	MU_RETURN_IF_ERROR(dataset_apply(it, REDUCE_F, in, 2, &result, 1, err));
	const struct dataset *d = dataset_in(&result);
	rc = d && d->n_out == it->d->n_out
		 ? dataset_iterator_open(d, it->caller, &w->current, err)
		 : mu_invalid(err, "`reduce_func` does not return a dataset of %u components",
			      it->d->n_out);
	mu_tensor_unref(&result);
	return rc;
}

static int begin_group(struct dataset_iterator *it, struct group *g, struct mu_err *err)
{
	struct groups *w = it->state;
	struct element_list all = g->list;
	int rc;

	g->list = (struct element_list){0};
	if ((rc = element_list_to_dataset(&all, it->d->in[0]->n_out, &w->reduce_args[1], err)) ||
	    (rc = mu_tensor_scalar(&w->reduce_args[0], MU_INT64, &g->key, err)) ||
	    (rc = open_reduced_group(it, err)))
		end_group(w);
	return rc;
}

/* Draws until a group is full.  After the end of the input, takes the group with the smallest key
 * that has elements. */
static int next_group(struct dataset_iterator *it, struct mu_err *err)
{
	struct groups *w = it->state;
	unsigned n = it->d->in[0]->n_out;
	MU_AUTO_FREE struct mu_tensor *element = MU_NEW_ARRAY(struct mu_tensor, n + 1);
	int rc = 1;

	while (it->input) {
		struct group *g = NULL;
		int64_t key;
		if ((rc = draw_keyed(it, element, &key, err)) < 0)
			return rc;
		if (!rc) {
			dataset_iterator_close_input(it);
			break;
		}
		if ((rc = find_group(it, key, &g, err))) {
			element_drop(element, n);
			return rc;
		}
		memcpy(element_list_next(&g->list, n), element, n * sizeof *element);
		if (++g->list.n == g->size)
			return (rc = begin_group(it, g, err)) ? rc : 1;
	}
	for (groups_sort(w); w->first < w->n; w->first++)
		if (w->sorted[w->first]->list.n)
			return (rc = begin_group(it, w->sorted[w->first], err)) ? rc : 1;
	return 0;
}

static int groups_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct groups *w = it->state;
	int rc = 0;

	for (;;) {
		if (!w->current && (rc = next_group(it, err)) <= 0)
			return rc;
		MU_RETURN_IF_ERROR(dataset_iterator_next(w->current, out, err));
		end_group(w);
	}
}

static int group_serialize(struct dataset_iterator *it, struct group *g, struct serializer *ser,
			   struct mu_err *err)
{
	MU_RETURN_IF_ERROR(serialize_number(ser, &g->size, 1, INT64_MAX, err));
	MU_RETURN_IF_ERROR(serialize_element_list(ser, &g->list, group_width(it), err));
	return it->d->f[FINALIZE_F].f && g->list.n != 1 ? serializer_fail(err) : 0;
}

static int all_groups_serialize(struct dataset_iterator *it, struct serializer *ser,
				struct mu_err *err)
{
	struct groups *w = it->state;
	int64_t n = (int64_t)w->by_key.count, key = 0;
	int rc = serialize_number(ser, &n, 0, INT64_MAX, err);

	if (serializer_is_reading(ser)) {
		for (int64_t i = 0; i < n && !rc; i++) {
			rc = serialize_number(ser, &key, INT64_MIN, INT64_MAX, err);
			if (!rc && group_of(w, key))
				rc = serializer_fail(err);
			if (!rc)
				rc = group_serialize(it, group_add(w, key), ser, err);
		}
		return rc;
	}
	for (struct mu_map_slot *m = NULL; !rc && (m = mu_map_next(&w->by_key, m));) {
		struct group *g = m->value;

		rc = serialize_number(ser, &g->key, INT64_MIN, INT64_MAX, err);
		if (!rc)
			rc = group_serialize(it, g, ser, err);
	}
	return rc;
}

static int groups_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	struct groups *w = it->state;
	bool has_current = w->current != NULL;
	int rc = all_groups_serialize(it, ser, err);

	if (rc || (rc = serialize_flag(ser, &has_current, err)) || !has_current ||
	    (rc = serialize_element(ser, w->reduce_args, MU_COUNT(w->reduce_args), err)))
		return rc;
	if (serializer_is_reading(ser) && (rc = open_reduced_group(it, err)))
		return rc;
	return serialize_dataset_iterator(ser, w->current, err);
}

/* ---- group by reducer: each group has a state, which becomes one element ---- */

static int check_reducers(struct dataset *d, struct mu_err *err)
{
	unsigned n = function_outputs(d->f[INIT_F].f);

	MU_RETURN_IF_ERROR(check_groups(d, err));
	return n && n + d->in[0]->n_out <= MAX_COMPONENTS &&
		       n == function_outputs(d->f[REDUCE_STATE_F].f)
		   ? 0
		   : mu_invalid(err,
				"a reducer of %u and %u states: expected as many, and at most %d "
				"with the components",
				n, function_outputs(d->f[REDUCE_STATE_F].f), MAX_COMPONENTS);
}

static int find_state(struct dataset_iterator *it, int64_t key, struct group **out,
		      struct mu_err *err)
{
	struct groups *w = it->state;

	if (!(*out = group_of(w, key))) {
		struct element_list state = {0};
		unsigned n = group_width(it);
		struct mu_tensor t;
		MU_RETURN_IF_ERROR(mu_tensor_scalar(&t, MU_INT64, &key, err));
		int rc = dataset_apply(it, INIT_F, &t, 1, element_list_next(&state, n), n, err);
		if (rc) {
			element_list_fini(&state, n);
			return rc;
		}
		*out = group_add(w, key);
		(*out)->size = (*out)->list.n = 1;
		(*out)->list.t = state.t;
	}
	return 0;
}

/* Updates the state of the key's group.  Takes the element; returns 1. */
static int reduce_state(struct dataset_iterator *it, int64_t key, struct mu_tensor *element,
			struct mu_err *err)
{
	unsigned n = group_width(it), n_components = it->d->in[0]->n_out;
	MU_AUTO_FREE struct mu_tensor *in = MU_NEW_ARRAY(struct mu_tensor, n + n_components);
	MU_AUTO_FREE struct mu_tensor *new_state = MU_NEW_ARRAY(struct mu_tensor, n);
	struct group *g = NULL;
	int rc = find_state(it, key, &g, err);

	if (rc) {
		element_drop(element, n_components);
		return rc;
	}
	element_ref(in, g->list.t, n);
	memcpy(in + n, element, n_components * sizeof *in);
	MU_RETURN_IF_ERROR(
	    dataset_apply(it, REDUCE_STATE_F, in, n + n_components, new_state, n, err));
	element_drop(g->list.t, n);
	memcpy(g->list.t, new_state, n * sizeof *new_state);
	return 1;
}

static int reducers_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	unsigned n = group_width(it), n_in = it->d->in[0]->n_out;
	MU_AUTO_FREE struct mu_tensor *element = MU_NEW_ARRAY(struct mu_tensor, n + n_in);
	struct groups *w = it->state;
	int64_t key;
	int rc;

	while (it->input) {
		if ((rc = draw_keyed(it, element, &key, err)) < 0 ||
		    (rc && (rc = reduce_state(it, key, element, err)) < 0))
			return rc;
		if (!rc)
			dataset_iterator_close_input(it);
	}
	groups_sort(w);
	if (w->first == w->n)
		return 0;
	struct group *g = w->sorted[w->first++];
	memcpy(element, g->list.t, n * sizeof *element);
	mu_map_del_n(&w->by_key, &g->key, sizeof g->key);
	free(g->list.t);
	free(g);
	rc = dataset_apply(it, FINALIZE_F, element, n, out, it->d->n_out, err);
	return rc ? rc : 1;
}

/* Windows begin every `shift` elements. */
static int64_t window_cardinality(const struct dataset *d, int64_t n)
{
	int64_t shift = dataset_number(d, WINDOW_SHIFT), span = window_span(d);
	bool drop_remainder =
	    d->kind->n_scalars <= WINDOW_DROP_REMAINDER || dataset_number(d, WINDOW_DROP_REMAINDER);

	if (n <= 0)
		return n;
	return !drop_remainder ? (n - 1) / shift + 1 : n < span ? 0 : (n - span) / shift + 1;
}

#define WINDOW                                                                                     \
	.state_size = sizeof(struct window), .n_in = 1, .check = check_window,                     \
	.open = dataset_iterator_open_input, .next = window_next, .close = window_close,           \
	.cardinality = window_cardinality, .serialize = window_serialize, .releases_input = true
#define GROUPS                                                                                     \
	.state_size = sizeof(struct groups), .n_in = 1,                                            \
	.function = {{"key_func", "Tkey_func_other_arguments"},                                    \
		     {"reduce_func", "Treduce_func_other_arguments"},                              \
		     {"window_size_func", "Twindow_size_func_other_arguments"}},                   \
	.check = check_groups, .open = groups_open, .next = groups_next, .close = groups_close,    \
	.serialize = groups_serialize, .releases_input = true
#define REDUCERS                                                                                   \
	.state_size = sizeof(struct groups), .n_in = 1,                                            \
	.function = {{"key_func", "Tkey_func_other_arguments"},                                    \
		     {"init_func", "Tinit_func_other_arguments"},                                  \
		     {"reduce_func", "Treduce_func_other_arguments"},                              \
		     {"finalize_func", "Tfinalize_func_other_arguments"}},                         \
	.check = check_reducers, .open = groups_open, .next = reducers_next,                       \
	.close = groups_close, .serialize = all_groups_serialize, .releases_input = true

static const struct dataset_kind rows[] = {
    {DATASET("WindowDataset"), WINDOW, .n_scalars = 4},
    {DATASET("SlidingWindowDataset ExperimentalSlidingWindowDataset SlideDataset"), WINDOW,
     .n_scalars = 3},
    {DATASET("GroupByWindowDataset ExperimentalGroupByWindowDataset"), GROUPS},
    {DATASET("GroupByReducerDataset ExperimentalGroupByReducerDataset"), REDUCERS},
};
KERNEL_TABLE(data_group, rows)
