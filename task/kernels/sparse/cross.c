/* SPDX-License-Identifier: Apache-2.0 */
/* SparseCross and RaggedCross: for each row all combinations of one value from each column, as one
 * string or as a bucket number. A column is a sparse tensor sorted by row, a ragged tensor, or a
 * dense tensor. */
#include <inttypes.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/text/fingerprint.h"
#include "task/kernels/text/keyed_hash.h"

enum { MAX_COLUMNS = 1024 };

struct column {
	const struct mu_tensor *values;
	const int64_t *rows;            /* sparse column: row and column of each entry */
	const struct mu_tensor *splits; /* ragged column: its row splits */
	int64_t entries;
	int64_t first, count; /* the values of the current row */
};

struct cross {
	struct column *columns;
	unsigned n, n_inputs; /* columns, and the inputs that hold them */
	int64_t batch;
	bool hashed;
	int64_t buckets;
	bool has_key;
	uint64_t key;
	uint64_t (*join)(uint64_t a, uint64_t b); /* combines two hashes */
	bool hashes_numbers;      /* TensorFlow hashes the low 4 bytes of int64 in sparse columns */
	const int64_t *salt;      /* key of keyed_hash(); NULL: fingerprint64() */
	struct mu_span separator; /* between the texts of a combination */
	int64_t *pick;            /* position of the current combination in each column */
};

/* ---- inputs ---- */

static int set_batch_size(struct cross *x, bool first, int64_t rows, struct mu_err *err)
{
	if (first)
		x->batch = rows;
	return x->batch == rows ? 0
				: mu_invalid(err, "Expected batch size %lld, got %lld",
					     (long long)x->batch, (long long)rows);
}

static int sparse_column(struct kernel_call *c, struct cross *x, unsigned i, unsigned sparse,
			 struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, i), *values = kernel_in(c, sparse + i);
	const struct mu_tensor *shape = kernel_in(c, 2 * sparse + i);

	if (indices->shape.rank != 2 || indices->shape.dim[1] != 2 || values->shape.rank != 1 ||
	    indices->shape.dim[0] != values->shape.dim[0])
		return mu_invalid(err,
				  "Expected indices of shape [n,2] and n values, got %s and %s for "
				  "sparse input %u",
				  mu_shape_str(&indices->shape), mu_shape_str(&values->shape), i);
	if (shape->shape.rank != 1 || shape->shape.dim[0] != 2 || MU_DATA(int64_t, shape)[0] < 0)
		return mu_invalid(err,
				  "shape imply a 2D tensor, but got shape %s for sparse input %u",
				  mu_shape_str(&shape->shape), i);
	x->columns[i] = (struct column){
	    .values = values, .rows = indices->data, .entries = values->shape.count};
	return set_batch_size(x, !i, MU_DATA(int64_t, shape)[0], err);
}

static int read_columns(struct kernel_call *c, struct cross *x, struct mu_err *err)
{
	int64_t sparse = args_attr_int(c->node, "N", -1);
	int rc = 0;

	if (sparse < 0 || 3 * sparse > x->n_inputs || x->n_inputs > 3 * MAX_COLUMNS || !x->n_inputs)
		return mu_invalid(err, "a cross has 1 to %d columns, not %u", MAX_COLUMNS,
				  x->n_inputs);
	x->n = x->n_inputs - 2 * (unsigned)sparse;
	x->columns = MU_NEW_ARRAY(struct column, x->n);
	x->pick = MU_NEW_ARRAY(int64_t, x->n);
	for (unsigned i = 0; i < sparse && !rc; i++)
		rc = sparse_column(c, x, i, (unsigned)sparse, err);
	for (unsigned i = (unsigned)sparse; i < x->n && !rc; i++) {
		const struct mu_tensor *t = kernel_in(c, i + 2 * (unsigned)sparse);
		x->columns[i] = (struct column){.values = t};
		rc = args_rank(c, i + 2 * (unsigned)sparse, 2, err);
		if (!rc)
			rc = set_batch_size(x, !i, t->shape.dim[0], err);
	}
	return rc;
}

/* ---- combinations ---- */

/* Returns the first row from `row` on that may have combinations. Sparse columns, and dense columns
 * without elements, may declare any number of empty rows, so these are skipped. */
static int64_t next_row(const struct cross *x, int64_t row)
{
	int64_t next = INT64_MAX;

	for (unsigned i = 0; i < x->n; i++) {
		const struct column *col = &x->columns[i];
		int64_t at = col->first + col->count;
		if (!col->rows) {
			if (!col->splits && !col->values->shape.dim[1])
				return x->batch;
			continue;
		}
		if (at == col->entries || col->rows[2 * at] < row)
			return x->batch;
		next = col->rows[2 * at] < next ? col->rows[2 * at] : next;
	}
	return next == INT64_MAX ? row : next;
}

/* Moves every column to `row` and returns its number of combinations, -1 on overflow.  Rows must
 * rise from call to call. */
static int64_t enter_row(struct cross *x, int64_t row)
{
	int64_t n = 1;

	for (unsigned i = 0; i < x->n; i++) {
		struct column *col = &x->columns[i];
		if (col->splits) {
			col->first = mu_tensor_int(col->splits, row);
			col->count = mu_tensor_int(col->splits, row + 1) - col->first;
		} else if (!col->rows) {
			col->count = col->values->shape.dim[1];
			col->first = row * col->count;
		} else {
			col->first += col->count;
			for (col->count = 0; col->first + col->count < col->entries &&
					     col->rows[2 * (col->first + col->count)] == row;)
				col->count++;
		}
		if (__builtin_mul_overflow(n, col->count, &n))
			return -1;
		x->pick[i] = 0;
	}
	return n;
}

static bool next_combination(struct cross *x)
{
	for (unsigned i = x->n; i-- > 0; x->pick[i] = 0)
		if (++x->pick[i] < x->columns[i].count)
			return true;
	return false;
}

/* The current value of column i: an int64 itself, else its hash. */
static int64_t number_of(const struct cross *x, unsigned i)
{
	const struct column *col = &x->columns[i];
	int64_t at = col->first + x->pick[i];

	if (col->values->dtype == MU_INT64 && (!x->hashes_numbers || !col->rows))
		return MU_DATA(int64_t, col->values)[at];
	struct mu_span s = col->values->dtype == MU_INT64
			       ? (struct mu_span){(char *)&MU_DATA(int64_t, col->values)[at], 4}
			       : elems_span(col->values, at);
	if (x->salt)
		return (int64_t)keyed_hash((const uint64_t *)x->salt, s.data, s.len);
	return (int64_t)fingerprint64(s.data, s.len);
}

/* SparseFeatureCross joins hashes with signed shifts. */
static uint64_t sparse_cross_join_v1(uint64_t a, uint64_t b)
{
	return a ^ (b + 0x9e3779b97f4a7800 + (a << 10) + (uint64_t)((int64_t)a >> 4));
}

static int64_t sparse_cross_bucket_of(const struct cross *x)
{
	uint64_t v = x->has_key ? x->key : (uint64_t)number_of(x, 0);

	for (unsigned i = !x->has_key; i < x->n; i++)
		v = x->join(v, (uint64_t)number_of(x, i));
	return (int64_t)(v % (x->buckets > 0 ? (uint64_t)x->buckets : (uint64_t)INT64_MAX));
}

static void put_text(const struct cross *x, struct mu_buf *b)
{
	mu_buf_clear(b);
	for (unsigned i = 0; i < x->n; i++) {
		const struct column *col = &x->columns[i];
		if (i)
			mu_buf_put(b, x->separator.data, x->separator.len);
		if (col->values->dtype == MU_INT64) {
			mu_buf_printf(b, "%" PRId64, number_of(x, i));
		} else {
			struct mu_span s = elems_span(col->values, col->first + x->pick[i]);
			mu_buf_put(b, s.data, s.len);
		}
	}
}

/* Writes the current combination to element `at` of the values. */
static void sparse_cross_put(const struct cross *x, struct mu_tensor *values, int64_t at,
			     struct mu_buf *text)
{
	if (x->hashed) {
		MU_DATA(int64_t, values)[at] = sparse_cross_bucket_of(x);
		return;
	}
	put_text(x, text);
	mu_string_set(&MU_DATA(struct mu_string, values)[at], text->data, text->len);
}

/* Sets the number of combinations of all rows and the largest number of a row.  Resets the columns
 * to their first rows. */
static int count_combinations(struct cross *x, int64_t *total, int64_t *widest, struct mu_err *err)
{
	*total = *widest = 0;
	for (int64_t row = next_row(x, 0); row < x->batch; row = next_row(x, row + 1)) {
		int64_t n = enter_row(x, row);
		if (n < 0 || __builtin_add_overflow(*total, n, total))
			return mu_fail(err, MU_RESOURCE_EXHAUSTED,
				       "row %lld has too many combinations", (long long)row);
		*widest = n > *widest ? n : *widest;
	}
	for (unsigned i = 0; i < x->n; i++)
		x->columns[i].first = x->columns[i].count = 0;
	return 0;
}

static int sparse_cross_output(struct kernel_call *c, struct cross *x, struct mu_err *err)
{
	struct mu_tensor *indices, *values, *shape;
	int64_t total, widest, at = 0;
	MU_AUTO_BUF text = {0};

	MU_RETURN_IF_ERROR(count_combinations(x, &total, &widest, err));
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, 0, MU_INT64, 2, (int64_t[]){total, 2}, &indices, err));
	MU_RETURN_IF_ERROR(
	    kernel_out_vec(c, 1, x->hashed ? MU_INT64 : MU_STRING, total, &values, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 2, MU_INT64, 2, &shape, err));
	for (int64_t row = next_row(x, 0); row < x->batch; row = next_row(x, row + 1)) {
		int64_t n = enter_row(x, row);
		for (int64_t k = 0; k < n; k++, at++, next_combination(x)) {
			MU_DATA(int64_t, indices)[2 * at] = row;
			MU_DATA(int64_t, indices)[2 * at + 1] = k;
			sparse_cross_put(x, values, at, &text);
		}
	}
	MU_DATA(int64_t, shape)[0] = x->batch;
	MU_DATA(int64_t, shape)[1] = widest;
	return 0;
}

static int run(struct kernel_call *c, struct cross *x, struct mu_err *err)
{
	int rc =
	    x->buckets < 0 ? mu_invalid(err, "num_buckets must be >= 0") : read_columns(c, x, err);

	if (!rc)
		rc = sparse_cross_output(c, x, err);
	free(x->columns);
	free(x->pick);
	return rc;
}

static int sparse_cross_keyed(struct kernel_call *c, int64_t key,
			      uint64_t (*join)(uint64_t a, uint64_t b), struct mu_err *err)
{
	struct cross x = {
	    .n_inputs = c->n_in,
	    .hashed = args_attr_type(c->node, "out_type", MU_STRING) == MU_INT64,
	    .buckets = args_attr_int(c->node, "num_buckets", 0),
	    .has_key = true,
	    .key = (uint64_t)key,
	    .join = join,
	    .separator = mu_span_of("_X_"),
	};

	return run(c, &x, err);
}

KERNEL_RUN(sparse_cross,
	   sparse_cross_keyed(c, args_attr_int(c->node, "hash_key", 0), fingerprint64_join, err))
KERNEL_RUN(sparse_cross_v1, sparse_cross_keyed(c, 0xDECAFCAFFE, sparse_cross_join_v1, err))

static int sparse_cross_v2(struct kernel_call *c, struct mu_err *err)
{
	struct cross x = {.n_inputs = c->n_in - 1,
			  .separator = elems_span(kernel_in(c, c->n_in - 1), 0)};

	return run(c, &x, err);
}

static int sparse_cross_hashed(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *buckets = kernel_in(c, c->n_in - 3);
	const struct mu_tensor *strong = kernel_in(c, c->n_in - 2),
			       *salt = kernel_in(c, c->n_in - 1);
	struct cross x = {.n_inputs = c->n_in - 3,
			  .hashed = true,
			  .hashes_numbers = true,
			  .join = fingerprint64_join,
			  .buckets = MU_DATA(int64_t, buckets)[0],
			  .salt = MU_DATA(bool, strong)[0] ? salt->data : NULL};

	if (salt->shape.count != 2)
		return mu_invalid(err, "salt must have 2 elements, not %lld",
				  (long long)salt->shape.count);
	return run(c, &x, err);
}

/* ---- RaggedCross ---- */

static int check_ragged_column(struct column *col, struct mu_err *err)
{
	const struct mu_tensor *s = col->splits;
	const char *wrong = NULL;

	if (col->values->shape.rank != 1 || s->shape.rank != 1)
		return mu_invalid(err, "tf.ragged.cross only supports inputs with rank=2.");
	if (!s->shape.count)
		wrong = "be non-empty";
	else if (mu_tensor_int(s, 0) != 0)
		wrong = "start from 0";
	else if (mu_tensor_int(s, s->shape.count - 1) != col->values->shape.count)
		wrong = "end with the number of values";
	for (int64_t i = 1; i < s->shape.count && !wrong; i++)
		if (mu_tensor_int(s, i) < mu_tensor_int(s, i - 1))
			wrong = "be in increasing order";
	return wrong ? mu_invalid(err, "Invalid RaggedTensor: Ragged splits must %s.", wrong) : 0;
}

static int check_sparse_column(const struct column *col, const struct mu_tensor *indices,
			       const struct mu_tensor *shape, unsigned k, struct mu_err *err)
{
	if (indices->shape.rank != 2 || col->values->shape.rank != 1 || shape->shape.rank != 1 ||
	    indices->shape.dim[0] < col->values->shape.count)
		return mu_invalid(err, "Invalid SparseTensor %u", k);
	if (shape->shape.dim[0] != 2 || indices->shape.dim[1] != 2)
		return mu_invalid(err, "tf.ragged.cross only supports inputs with rank=2.");
	if (MU_DATA(int64_t, shape)[0] < 0)
		return mu_invalid(err, "Invalid SparseTensor %u: it has %lld rows", k,
				  (long long)MU_DATA(int64_t, shape)[0]);
	return 0;
}

/* Reads the columns in the order of `input_order`; the inputs are sorted by kind. */
static int ragged_cross_columns(struct kernel_call *c, struct cross *x, struct mu_err *err)
{
	const char *order = args_attr_string(c->node, "input_order", "");
	unsigned ragged = mu_node_attr(c->node, "ragged_values_types")->n;
	unsigned sparse = (unsigned)args_attr_int(c->node, "Nsparse", 0);

	if (mu_node_attr(c->node, "ragged_splits_types")->n != ragged ||
	    mu_node_attr(c->node, "sparse_values_types")->n != sparse)
		return mu_invalid(err, "values of ragged and sparse inputs do not match their "
				       "splits and indices in number");
	unsigned dense = c->n_in - 2 * ragged - 3 * sparse, next[3] = {0};
	static const char letters[] = "RSD";
	const unsigned counts[3] = {ragged, sparse, dense};

	x->n = ragged + sparse + dense;
	if (strlen(order) != x->n)
		return mu_invalid(err, "Invalid length for input_order");
	x->columns = MU_NEW_ARRAY(struct column, x->n + 1);
	x->pick = MU_NEW_ARRAY(int64_t, x->n + 1);
	for (unsigned i = 0; i < x->n; i++) {
		struct column *col = &x->columns[i];
		const char *letter = strchr(letters, order[i]);
		unsigned kind = letter ? (unsigned)(letter - letters) : 0, k = next[kind]++;
		int64_t rows;

		if (!letter || k >= counts[kind])
			return mu_invalid(err, "Unexpected input_order value.");
		if (*letter == 'R') {
			*col = (struct column){.values = kernel_in(c, k),
					       .splits = kernel_in(c, ragged + k)};
			MU_RETURN_IF_ERROR(check_ragged_column(col, err));
			rows = col->splits->shape.count - 1;
		} else if (*letter == 'S') {
			const struct mu_tensor *indices = kernel_in(c, 2 * ragged + k);
			const struct mu_tensor *shape = kernel_in(c, 2 * ragged + 2 * sparse + k);

			*col = (struct column){.values = kernel_in(c, 2 * ragged + sparse + k),
					       .rows = indices->data};
			MU_RETURN_IF_ERROR(check_sparse_column(col, indices, shape, k, err));
			col->entries = col->values->shape.count;
			rows = MU_DATA(int64_t, shape)[0];
		} else {
			col->values = kernel_in(c, 2 * ragged + 3 * sparse + k);
			if (col->values->shape.rank != 2)
				return mu_invalid(
				    err, "tf.ragged.cross only supports inputs with rank=2.");
			rows = col->values->shape.dim[0];
		}
		if (i && rows != x->batch)
			return mu_invalid(err,
					  "inputs must all have the same batch dimension size.");
		x->batch = rows;
	}
	return 0;
}

static int ragged_cross_output(struct kernel_call *c, struct cross *x, struct mu_err *err)
{
	enum mu_dtype type = args_attr_type(c->node, "out_row_splits_type", MU_INT64);
	struct mu_tensor *values, *splits;
	int64_t total, widest, at = 0;
	MU_AUTO_BUF text = {0};

	/* allocated first: an input with too many rows fails before its rows are counted */
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 1, type, x->batch + 1, &splits, err));
	MU_RETURN_IF_ERROR(count_combinations(x, &total, &widest, err));
	if (type == MU_INT32 && total > INT32_MAX)
		return mu_invalid(err, "too many combinations for row splits of int32: %lld",
				  (long long)total);
	MU_RETURN_IF_ERROR(
	    kernel_out_vec(c, 0, x->hashed ? MU_INT64 : MU_STRING, total, &values, err));
	for (int64_t row = 0; row < x->batch; row++) {
		mu_tensor_set_int(splits, row, at);
		for (int64_t n = enter_row(x, row); n; n--, at++, next_combination(x))
			sparse_cross_put(x, values, at, &text);
	}
	mu_tensor_set_int(splits, x->batch, at);
	return 0;
}

static int ragged_cross(struct kernel_call *c, struct mu_err *err)
{
	struct cross x = {
	    .hashed = args_attr_type(c->node, "out_values_type", MU_STRING) == MU_INT64,
	    .buckets = args_attr_int(c->node, "num_buckets", 0),
	    .has_key = true,
	    .key = (uint64_t)args_attr_int(c->node, "hash_key", 0),
	    .join = fingerprint64_join,
	    .separator = mu_span_of("_X_"),
	};
	int rc = ragged_cross_columns(c, &x, err);

	if (!rc)
		rc = ragged_cross_output(c, &x, err);
	free(x.columns);
	free(x.pick);
	return rc;
}

static const struct kernel rows[] = {
    {"SparseCross SparseFeatureCrossV2", KERNEL_EXPENSIVE, .run = sparse_cross},
    {"SparseFeatureCross", KERNEL_EXPENSIVE, .run = sparse_cross_v1},
    {"SparseCrossV2", KERNEL_EXPENSIVE, .run = sparse_cross_v2},
    {"RaggedCross", KERNEL_EXPENSIVE, .run = ragged_cross},
    {"SparseCrossHashed", KERNEL_EXPENSIVE, .run = sparse_cross_hashed},
};
KERNEL_TABLE(sparse_cross, rows)
