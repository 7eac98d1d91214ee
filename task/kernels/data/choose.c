/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that select elements of several inputs, drop duplicates, unbatch or rebatch, ignore
 * errors, or assert a cardinality. */
#include <stdio.h>

#include "lib/base/map.h"
#include "lib/tensor/tensor_proto.h"
#include "task/kernels/data/dataset.h"
#include "task/kernels/data/serializer.h"
#include "task/kernels/data/stack.h"

/* ---- directed interleave: in[0] yields the number of the next element's dataset ---- */

struct directed {
	struct dataset_iterator **inputs; /* over in[1] and on; NULL: ended */
	unsigned n_open;
	bool ended;
};

static int check_directed(struct dataset *d, struct mu_err *err)
{
	if (d->n_in < 2 || d->in[0]->n_out != 1)
		return mu_invalid(err, "a selector of one component must choose among datasets");
	for (unsigned i = 1; i < d->n_in; i++)
		if (d->in[i]->n_out != d->n_out)
			return mu_invalid(err, "dataset %u has elements of %u components, not %u",
					  i - 1, d->in[i]->n_out, d->n_out);
	return 0;
}

static int directed_open(struct dataset_iterator *it, struct mu_err *err)
{
	struct directed *w = it->state;
	int rc = dataset_iterator_open_input(it, err);

	w->n_open = it->d->n_in - 1;
	w->inputs = MU_NEW_ARRAY(struct dataset_iterator *, it->d->n_in);
	for (unsigned i = 0; i < w->n_open && !rc; i++)
		rc = dataset_iterator_open(it->d->in[i + 1], it->caller, &w->inputs[i], err);
	return rc;
}

static void directed_close(struct dataset_iterator *it)
{
	struct directed *w = it->state;

	for (unsigned i = 0; w->inputs && i + 1 < it->d->n_in; i++)
		dataset_iterator_close(w->inputs[i]);
	free(w->inputs);
}

static int read_selector(struct dataset_iterator *it, int64_t *chosen, struct mu_err *err)
{
	struct mu_tensor t;
	int rc = dataset_iterator_next(it->input, &t, err);

	if (rc <= 0)
		return rc;
	bool fits = t.dtype == MU_INT64 && t.shape.count == 1;
	*chosen = fits ? mu_tensor_int(&t, 0) : -1;
	mu_tensor_unref(&t);
	if (fits && *chosen >= 0 && *chosen < it->d->n_in - 1)
		return 1;
	return mu_invalid(err, "Selector index out of range: %lld >= %u", (long long)*chosen,
			  it->d->n_in - 1);
}

static int directed_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct directed *w = it->state;
	int64_t i = 0;
	int rc = 0;

	while (!w->ended && w->n_open && (rc = read_selector(it, &i, err))) {
		if (rc < 0)
			return rc;
		if (!w->inputs[i])
			continue;
		MU_RETURN_IF_ERROR(dataset_iterator_next(w->inputs[i], out, err));
		dataset_iterator_close(w->inputs[i]);
		w->inputs[i] = NULL;
		w->n_open--;
		w->ended = it->d->op_flag;
	}
	w->ended = true;
	return 0;
}

static int directed_serialize(struct dataset_iterator *it, struct serializer *ser,
			      struct mu_err *err)
{
	struct directed *w = it->state;
	int rc = serialize_flag(ser, &w->ended, err);

	w->n_open = 0;
	for (unsigned i = 0; i + 1 < it->d->n_in && !rc; i++) {
		rc = serialize_optional_iterator(ser, it->d->in[i + 1], it->caller, &w->inputs[i],
						 err);
		w->n_open += w->inputs[i] != NULL;
	}
	return rc;
}

/* ---- unique: the state is the set of the elements so far, serialized ---- */

static int check_unique(struct dataset *d, struct mu_err *err)
{
	return d->n_out == 1
		   ? 0
		   : mu_invalid(err, "UniqueDataset only supports inputs with a single component.");
}

static int unique_open(struct dataset_iterator *it, struct mu_err *err)
{
	mu_map_init(it->state);
	return dataset_iterator_open_input(it, err);
}

static void unique_close(struct dataset_iterator *it)
{
	mu_map_fini(it->state);
}

static int unique_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct mu_map *distinct = it->state;
	int rc;

	while ((rc = dataset_iterator_next(it->input, out, err)) > 0) {
		MU_AUTO_BUF b = {0};
		enum mu_dtype t = out->dtype;
		if (t != MU_INT32 && t != MU_INT64 && t != MU_STRING) {
			mu_tensor_unref(out);
			return mu_invalid(err, "UniqueDataset only supports inputs with a single "
					       "`tf.int32`, `tf.int64`, or `tf.string` component.");
		}
		mu_tensor_write(&b, out);
		if (!mu_map_put_n(distinct, b.data, b.len, distinct))
			return 1;
		mu_tensor_unref(out);
	}
	return rc;
}

static int unique_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	struct mu_map *distinct = it->state;
	int64_t n = (int64_t)distinct->count;
	int rc = 0;

	MU_RETURN_IF_ERROR(serialize_number(ser, &n, 0, INT64_MAX, err));
	if (serializer_is_reading(ser)) {
		for (; n && !rc; n--) {
			MU_AUTO_BUF b = {0};
			if (!(rc = serialize_bytes(ser, &b, err)))
				mu_map_put_n(distinct, b.data ? b.data : "", b.len, distinct);
		}
		return rc;
	}
	mu_map_each (distinct, s) {
		struct mu_buf key = {.data = s->key, .len = s->len};
		MU_RETURN_IF_ERROR(serialize_bytes(ser, &key, err));
	}
	return 0;
}

/* ---- unbatch ---- */

struct rows {
	struct mu_tensor t[MAX_COMPONENTS]; /* the current batch; n is 0: none */
	int64_t at, n;
};

static int check_batch_rows(const struct mu_tensor *t, unsigned n, struct mu_err *err)
{
	for (unsigned i = 0; i < n; i++) {
		const struct mu_shape *s = &t[i].shape;
		if (!s->rank)
			return mu_invalid(
			    err, "Input element must have a non-scalar value in each component.");
		if (s->dim[0] != t[0].shape.dim[0])
			return mu_invalid(
			    err,
			    "Input element must have the same batch size in each component. "
			    "Component 0 had size %lld but component %u had size, %lld.",
			    (long long)t[0].shape.dim[0], i, (long long)s->dim[0]);
	}
	return 0;
}

static int read_batch(struct dataset_iterator *it, struct rows *r, struct mu_err *err)
{
	int rc = dataset_iterator_next(it->input, r->t, err);

	if (rc <= 0)
		return rc;
	if ((rc = check_batch_rows(r->t, it->d->n_out, err))) {
		element_drop(r->t, it->d->n_out);
		return rc;
	}
	r->at = 0;
	r->n = r->t[0].shape.dim[0];
	if (!r->n)
		element_drop(r->t, it->d->n_out);
	return 1;
}

static int unbatch_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct rows *r = it->state;
	int rc;

	while (!r->n)
		if ((rc = read_batch(it, r, err)) <= 0)
			return rc;
	rc = element_row(r->t, it->d->n_out, r->at, out, err);
	if (++r->at == r->n) {
		element_drop(r->t, it->d->n_out);
		r->n = 0;
	}
	return rc ? rc : 1;
}

static void unbatch_close(struct dataset_iterator *it)
{
	struct rows *r = it->state;

	if (r->n)
		element_drop(r->t, it->d->n_out);
}

static int unbatch_serialize(struct dataset_iterator *it, struct serializer *ser,
			     struct mu_err *err)
{
	struct rows *r = it->state;
	bool has_batch = r->n != 0;
	int rc = serialize_flag(ser, &has_batch, err);

	if (rc || !has_batch || (rc = serialize_element(ser, r->t, it->d->n_out, err)))
		return rc;
	if (serializer_is_reading(ser)) {
		r->n = 1; /* so that the iterator's close function also releases them */
		MU_RETURN_IF_ERROR(check_batch_rows(r->t, it->d->n_out, err));
		if (!it->d->n_out || !r->t[0].shape.dim[0])
			return serializer_fail(err);
		r->n = r->t[0].shape.dim[0];
	}
	return serialize_number(ser, &r->at, 0, r->n - 1, err);
}

/* ---- rebatch: batches of the given sizes, cyclically ---- */

struct rebatch {
	struct rows rows; /* first: unbatch_next uses the iterator's state as a struct rows */
	int64_t next;     /* the index of the next size, or of the next part of the batch */
	struct mu_tensor empty[MAX_COMPONENTS]; /* a batch without rows; unset: nothing was read */
};

static int check_rebatch(struct dataset *d, struct mu_err *err)
{
	const struct mu_tensor *sizes = &d->params[0];

	if (d->n_params != 2 || sizes->dtype != MU_INT64 || sizes->shape.rank > 1 ||
	    !sizes->shape.count)
		return mu_invalid(err, "`batch_sizes` must be a scalar or a vector of int64");
	for (int64_t i = 0; i < sizes->shape.count; i++)
		if (MU_DATA(int64_t, sizes)[i] < 0)
			return mu_invalid(err, "`batch_sizes` must not be negative");
	return 0;
}

/* Reads the next batch that has rows; returns 0 at the end. */
static int rebatch_read(struct dataset_iterator *it, struct rebatch *b, struct mu_err *err)
{
	unsigned n = it->d->n_out;
	int rc;

	do
		rc = read_batch(it, &b->rows, err);
	while (rc > 0 && !b->rows.n);
	element_drop(b->empty, n);
	for (unsigned i = 0; rc > 0 && i < n; i++) {
		struct mu_shape s;
		int bad = mu_shape_splice(&s, &b->rows.t[i].shape, 0, 1, 1, (int64_t[]){0}, err);
		if (bad || (bad = mu_tensor_new(&b->empty[i], b->rows.t[i].dtype, &s, err)))
			rc = bad;
	}
	return rc;
}

static int batch_without_rows(const struct dataset_iterator *it, const struct rebatch *b,
			      struct mu_tensor *out)
{
	element_ref(out, b->empty, it->d->n_out);
	return 1;
}

static int rebatch_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct rebatch *b = it->state;
	const struct mu_tensor *sizes = &it->d->params[0];
	int64_t want = MU_DATA(int64_t, sizes)[b->next];
	int rc;

	/* the first empty batch needs types and shapes; later ones need no input */
	if (!b->rows.n && (want || !mu_tensor_is_set(&b->empty[0])) &&
	    (rc = rebatch_read(it, b, err)) <= 0)
		return rc;
	b->next = (b->next + 1) % sizes->shape.count;
	return want ? draw_batch(it, want, dataset_number(it->d, 0), false, unbatch_next, out, err)
		    : batch_without_rows(it, b, out);
}

/* RebatchDataset divides each batch into parts.  The last parts may have fewer rows or none. */
static int check_divided(struct dataset *d, struct mu_err *err)
{
	return dataset_number(d, 0) > 0 ? 0 : mu_invalid(err, "num_replicas must be positive");
}

static int divided_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct rebatch *b = it->state;
	int64_t parts = dataset_number(it->d, 0);
	int rc;

	if (!b->next && (rc = rebatch_read(it, b, err)) <= 0)
		return rc;
	b->next = (b->next + 1) % parts;
	if (!b->rows.n)
		return batch_without_rows(it, b, out);
	int64_t part = (b->rows.n - 1) / parts + 1, left = b->rows.n - b->rows.at;
	return draw_batch(it, left < part ? left : part, false, false, unbatch_next, out, err);
}

static void rebatch_close(struct dataset_iterator *it)
{
	struct rebatch *b = it->state;

	unbatch_close(it);
	element_drop(b->empty, it->d->n_out);
}

static int rebatch_serialize(struct dataset_iterator *it, struct serializer *ser,
			     struct mu_err *err)
{
	struct rebatch *b = it->state;
	bool has_empty = mu_tensor_is_set(&b->empty[0]);
	int64_t n_indices =
	    it->d->n_params == 2 ? it->d->params[0].shape.count : dataset_number(it->d, 0);

	MU_RETURN_IF_ERROR(serialize_number(ser, &b->next, 0, n_indices - 1, err));
	MU_RETURN_IF_ERROR(serialize_flag(ser, &has_empty, err));
	if (has_empty)
		MU_RETURN_IF_ERROR(serialize_element(ser, b->empty, it->d->n_out, err));
	else if (b->next)
		return serializer_fail(err);
	return unbatch_serialize(it, ser, err);
}

static int64_t empty_or_unknown(const struct dataset *d, int64_t n)
{
	return n == 0 ? 0 : UNKNOWN_CARDINALITY;
}

/* ---- ignore_errors and assert_cardinality ---- */

static int ignore_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int rc;

	it->caller->ignoring++;
	do
		rc = dataset_iterator_next(it->input, out, err);
	while (rc < 0 && !caller_stopped(it->caller));
	it->caller->ignoring--;
	return rc;
}

static const char *elements_text(int64_t n, char text[32])
{
	if (n == INFINITE_CARDINALITY)
		return "an infinite number of elements";
	snprintf(text, 32, "%lld element%s", (long long)n, n == 1 ? "" : "s");
	return text;
}

static int assert_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int64_t want = dataset_number(it->d, 0), *n = it->state;
	int rc = dataset_iterator_next(it->input, out, err);
	char a[32], b[32];

	if (rc > 0 && ++*n > want && want != INFINITE_CARDINALITY) {
		element_drop(out, it->d->n_out);
		return mu_fail(
		    err, MU_FAILED_PRECONDITION,
		    "Input dataset was expected to contain %s but contained at least %s.",
		    elements_text(want, a), elements_text(*n, b));
	}
	if (rc == 0 && *n != want)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "Input dataset was expected to contain %s but contained only %s.",
			       elements_text(want, a), elements_text(*n, b));
	return rc;
}

static int assert_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	return serialize_number(ser, it->state, 0, INT64_MAX - 1, err);
}

static int64_t assert_cardinality(const struct dataset *d, int64_t n)
{
	return dataset_number(d, 0);
}

#define DIRECTED                                                                                   \
	.state_size = sizeof(struct directed), .n_in = ANY_NUMBER, .check = check_directed,        \
	.open = directed_open, .next = directed_next, .close = directed_close,                     \
	.cardinality = dataset_unknown_cardinality, .serialize = directed_serialize
#define UNIQUE                                                                                     \
	.state_size = sizeof(struct mu_map), .n_in = 1, .check = check_unique,                     \
	.open = unique_open, .next = unique_next, .close = unique_close,                           \
	.cardinality = empty_or_unknown, .serialize = unique_serialize
#define UNBATCH                                                                                    \
	.state_size = sizeof(struct rows), .n_in = 1, .open = dataset_iterator_open_input,         \
	.next = unbatch_next, .close = unbatch_close, .cardinality = empty_or_unknown,             \
	.serialize = unbatch_serialize
#define REBATCH                                                                                    \
	.state_size = sizeof(struct rebatch), .n_in = 1, .n_scalars = 1, .check = check_rebatch,   \
	.open = dataset_iterator_open_input, .next = rebatch_next, .close = rebatch_close,         \
	.cardinality = empty_or_unknown, .serialize = rebatch_serialize
#define DIVIDED                                                                                    \
	.state_size = sizeof(struct rebatch), .n_in = 1, .n_scalars = 1, .check = check_divided,   \
	.open = dataset_iterator_open_input, .next = divided_next, .close = rebatch_close,         \
	.cardinality = empty_or_unknown, .serialize = rebatch_serialize
#define IGNORE                                                                                     \
	.n_in = 1, .open = dataset_iterator_open_input, .next = ignore_next,                       \
	.cardinality = empty_or_unknown
static const struct dataset_kind rows[] = {
    {DATASET("DirectedInterleaveDataset ExperimentalDirectedInterleaveDataset"), DIRECTED},
    {DATASET("UniqueDataset ExperimentalUniqueDataset"), UNIQUE},
    {DATASET("UnbatchDataset ExperimentalUnbatchDataset"), UNBATCH},
    {DATASET("RebatchDatasetV2"), REBATCH},
    {DATASET("RebatchDataset ExperimentalRebatchDataset"), DIVIDED},
    {DATASET("IgnoreErrorsDataset ExperimentalIgnoreErrorsDataset"), IGNORE},
    {DATASET("AssertCardinalityDataset"), .state_size = sizeof(int64_t), .n_in = 1, .n_scalars = 1,
     .open = dataset_iterator_open_input, .next = assert_next, .cardinality = assert_cardinality,
     .serialize = assert_serialize},
};
KERNEL_TABLE(data_choose, rows)
