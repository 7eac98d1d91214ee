/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that choose among the elements of others, take them apart, or look at how many come. */
#include <string.h>

#include "lib/base/map.h"
#include "lib/tensor/tensor_proto.h"
#include "task/kernels/data/archive.h"
#include "task/kernels/data/dataset.h"
#include "task/kernels/engine/elems.h"

/* ---- directed: in[0] says from which of the others the next one comes ---- */

struct directed {
	struct cursor **from; /* of in[1 …]; NULL: at its end */
	unsigned left;
	bool over;
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

static int directed_open(struct cursor *c, struct mu_err *err)
{
	struct directed *w = c->own;
	int rc = cursor_open_up(c, err);

	w->left = c->d->n_in - 1;
	w->from = MU_NEW_ARRAY(struct cursor *, c->d->n_in);
	for (unsigned i = 0; i < w->left && !rc; i++)
		rc = cursor_open(c->d->in[i + 1], c->who, &w->from[i], err);
	return rc;
}

static void directed_close(struct cursor *c)
{
	struct directed *w = c->own;

	for (unsigned i = 0; w->from && i + 1 < c->d->n_in; i++)
		cursor_close(w->from[i]);
	free(w->from);
}

static int dataset_mix_choose(struct cursor *c, int64_t *chosen, struct mu_err *err)
{
	struct mu_tensor t;
	int rc = cursor_next(c->up, &t, err);

	if (rc <= 0)
		return rc;
	bool fits = t.dtype == MU_INT64 && t.shape.count == 1;
	*chosen = fits ? mu_tensor_int(&t, 0) : -1;
	mu_tensor_unref(&t);
	if (fits && *chosen >= 0 && *chosen < c->d->n_in - 1)
		return 1;
	return mu_invalid(err, "Selector index out of range: %lld >= %u", (long long)*chosen,
			  c->d->n_in - 1);
}

static int directed_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	struct directed *w = c->own;
	int64_t i = 0;
	int rc = 0;

	while (!w->over && w->left && (rc = dataset_mix_choose(c, &i, err))) {
		if (rc < 0)
			return rc;
		if (!w->from[i])
			continue;
		MU_RETURN_IF_ERROR(cursor_next(w->from[i], out, err));
		cursor_close(w->from[i]);
		w->from[i] = NULL;
		w->left--;
		w->over = c->d->flag;
	}
	w->over = true;
	return 0;
}

static int directed_state(struct cursor *c, struct archive *a, struct mu_err *err)
{
	struct directed *w = c->own;
	int rc = archive_flag(a, &w->over, err);

	w->left = 0;
	for (unsigned i = 0; i + 1 < c->d->n_in && !rc; i++) {
		rc = archive_cursor_in(a, c->d->in[i + 1], c->who, &w->from[i], err);
		w->left += w->from[i] != NULL;
	}
	return rc;
}

static int64_t count_directed(const struct dataset *d, int64_t n)
{
	return UNKNOWN_CARDINALITY;
}

/* ---- unique: what has been seen is kept by its bytes ---- */

static int check_unique(struct dataset *d, struct mu_err *err)
{
	return d->n_out == 1
		   ? 0
		   : mu_invalid(err, "UniqueDataset only supports inputs with a single component.");
}

static int unique_open(struct cursor *c, struct mu_err *err)
{
	mu_map_init(c->own);
	return cursor_open_up(c, err);
}

static void unique_close(struct cursor *c)
{
	mu_map_fini(c->own);
}

static int unique_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	struct mu_map *seen = c->own;
	int rc;

	while ((rc = cursor_next(c->up, out, err)) > 0) {
		MU_AUTO_BUF b = {0};
		enum mu_dtype t = out->dtype;
		if (t != MU_INT32 && t != MU_INT64 && t != MU_STRING) {
			mu_tensor_unref(out);
			return mu_invalid(err, "UniqueDataset only supports inputs with a single "
					       "`tf.int32`, `tf.int64`, or `tf.string` component.");
		}
		mu_tensor_write(&b, out);
		if (!mu_map_put_n(seen, b.data, b.len, seen))
			return 1;
		mu_tensor_unref(out);
	}
	return rc;
}

static int unique_state(struct cursor *c, struct archive *a, struct mu_err *err)
{
	struct mu_map *seen = c->own;
	int64_t n = (int64_t)seen->count;
	int rc = 0;

	MU_RETURN_IF_ERROR(archive_number(a, &n, 0, INT64_MAX, err));
	if (archive_reads(a)) {
		for (; n && !rc; n--) {
			MU_AUTO_BUF b = {0};
			if (!(rc = archive_bytes(a, &b, err)))
				mu_map_put_n(seen, b.data ? b.data : "", b.len, seen);
		}
		return rc;
	}
	mu_map_each (seen, s) {
		struct mu_buf key = {.data = s->key, .len = s->len};
		MU_RETURN_IF_ERROR(archive_bytes(a, &key, err));
	}
	return 0;
}

/* ---- unbatch ---- */

struct rows {
	struct mu_tensor t[MAX_COMPONENTS]; /* the element in hand; n of 0: none */
	int64_t at, n;
};

static int dataset_mix_check_rows(const struct mu_tensor *t, unsigned n, struct mu_err *err)
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

static int take_rows(struct cursor *c, struct rows *r, struct mu_err *err)
{
	int rc = cursor_next(c->up, r->t, err);

	if (rc <= 0)
		return rc;
	if ((rc = dataset_mix_check_rows(r->t, c->d->n_out, err))) {
		element_drop(r->t, c->d->n_out);
		return rc;
	}
	r->at = 0;
	r->n = r->t[0].shape.dim[0];
	if (!r->n)
		element_drop(r->t, c->d->n_out);
	return 1;
}

static int unbatch_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	struct rows *r = c->own;
	int rc;

	while (!r->n)
		if ((rc = take_rows(c, r, err)) <= 0)
			return rc;
	rc = element_row(r->t, c->d->n_out, r->at, out, err);
	if (++r->at == r->n) {
		element_drop(r->t, c->d->n_out);
		r->n = 0;
	}
	return rc ? rc : 1;
}

static void unbatch_close(struct cursor *c)
{
	struct rows *r = c->own;

	if (r->n)
		element_drop(r->t, c->d->n_out);
}

static int dataset_mix_rows_state(struct cursor *c, struct archive *a, struct mu_err *err)
{
	struct rows *r = c->own;
	bool any = r->n != 0;
	int rc = archive_flag(a, &any, err);

	if (rc || !any || (rc = archive_element(a, r->t, c->d->n_out, err)))
		return rc;
	if (archive_reads(a)) {
		r->n = 1; /* so that the cursor's destructor also releases them */
		MU_RETURN_IF_ERROR(dataset_mix_check_rows(r->t, c->d->n_out, err));
		if (!c->d->n_out || !r->t[0].shape.dim[0])
			return archive_broken(err);
		r->n = r->t[0].shape.dim[0];
	}
	return archive_number(a, &r->at, 0, r->n - 1, err);
}

static int64_t dataset_mix_count_unknown(const struct dataset *d, int64_t n)
{
	return n == 0 ? 0 : UNKNOWN_CARDINALITY;
}

/* ---- errors passed over; a number of elements insisted on ---- */

static int ignore_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	int rc;

	do
		rc = cursor_next(c->up, out, err);
	while (rc < 0 && !caller_stopped(c->who));
	return rc;
}

static int assert_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	int64_t want = dataset_number(c->d, 0), *n = c->own;
	int rc = cursor_next(c->up, out, err);

	if (rc > 0 && ++*n > want && want != INFINITE_CARDINALITY) {
		element_drop(out, c->d->n_out);
		return mu_fail(
		    err, MU_FAILED_PRECONDITION,
		    "Input dataset was expected to contain %lld elements but contained at "
		    "least %lld elements.",
		    (long long)want, (long long)*n);
	}
	if (rc == 0 && *n != want)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "Input dataset was expected to contain %lld elements but contained "
			       "only %lld elements.",
			       (long long)want, (long long)*n);
	return rc;
}

static int assert_state(struct cursor *c, struct archive *a, struct mu_err *err)
{
	return archive_number(a, c->own, 0, INT64_MAX - 1, err);
}

static int64_t count_asserted(const struct dataset *d, int64_t n)
{
	return dataset_number(d, 0);
}

#define DIRECTED                                                                                   \
	.cursor_size = sizeof(struct directed), .n_in = ANY_NUMBER, .check = check_directed,       \
	.open = directed_open, .next = directed_next, .close = directed_close,                     \
	.count = count_directed, .state = directed_state
#define UNIQUE                                                                                     \
	.cursor_size = sizeof(struct mu_map), .n_in = 1, .check = check_unique,                    \
	.open = unique_open, .next = unique_next, .close = unique_close,                           \
	.count = dataset_mix_count_unknown, .state = unique_state
#define UNBATCH                                                                                    \
	.cursor_size = sizeof(struct rows), .n_in = 1, .open = cursor_open_up,                     \
	.next = unbatch_next, .close = unbatch_close, .count = dataset_mix_count_unknown,          \
	.state = dataset_mix_rows_state
#define IGNORE                                                                                     \
	.n_in = 1, .open = cursor_open_up, .next = ignore_next, .count = dataset_mix_count_unknown
const struct dataset_kind mix_kinds[] = {
    {"DirectedInterleaveDataset", DIRECTED},
    {"ExperimentalDirectedInterleaveDataset", DIRECTED},
    {"UniqueDataset", UNIQUE},
    {"ExperimentalUniqueDataset", UNIQUE},
    {"UnbatchDataset", UNBATCH},
    {"ExperimentalUnbatchDataset", UNBATCH},
    {"IgnoreErrorsDataset", IGNORE},
    {"ExperimentalIgnoreErrorsDataset", IGNORE},
    {"AssertCardinalityDataset", .cursor_size = sizeof(int64_t), .n_in = 1, .n_scalars = 1,
     .open = cursor_open_up, .next = assert_next, .count = count_asserted, .state = assert_state},
    {.op = NULL},
};
