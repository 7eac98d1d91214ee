/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup tables: keys of any plain type or strings to values of any type.
 *
 * All tables have one representation: a map from a key's bytes to a row number, and an array of
 * rows. HashTable is filled once (its initializer may run again with the same content).
 * MutableHashTable may be written at any time, and MutableHashTableOfTensors has rows of several
 * elements. A dense table reserves two keys, with which TensorFlow marks empty and deleted buckets.
 * It is exported as TensorFlow's buckets, because TensorFlow's import expects this layout.
 *
 * All ops in this file access this representation, which is private to the file. */
#include <string.h>

#include "lib/base/map.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/vocabulary_file.h"
#include "task/kernels/state/handles.h"
#include "task/kernels/state/table.h"
#include "task/kernels/text/keyed_hash.h"
#include "task/kernels/text/tensor_text.h"

struct table {
	struct resource base;
	pthread_mutex_t lock;
	enum mu_dtype key, value;
	struct mu_shape key_shape; /* more than one element only in a dense table */
	struct mu_pshape row_shape;
	bool is_mutable, is_filled;
	struct mu_tensor reserved[2]; /* empty and deleted key of a dense table, or unset */
	int64_t n_buckets;            /* of TensorFlow's table: a power of 2 */
	float max_load;
	int64_t row_size; /* elements in a row */
	struct mu_map rows;
	void *values; /* cap rows of row_size elements */
	int64_t n, cap;
	int64_t *free_rows; /* removed rows */
	int64_t n_free_rows;
};

static void table_free(struct resource *r)
{
	struct table *t = MU_CONTAINER(r, struct table, base);

	if (t->value == MU_STRING)
		elems_zero(MU_STRING, t->values, 0, t->cap * t->row_size);
	free(t->values);
	free(t->free_rows);
	mu_map_fini(&t->rows);
	for (size_t i = 0; i < MU_COUNT(t->reserved); i++)
		mu_tensor_unref(&t->reserved[i]);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static size_t table_bytes(struct resource *r)
{
	struct table *t = MU_CONTAINER(r, struct table, base);

	pthread_mutex_lock(&t->lock);
	size_t bytes = (size_t)(t->cap * t->row_size) * elems_size(t->value);
	pthread_mutex_unlock(&t->lock);
	return bytes;
}

static const struct resource_type table_type = {
    .name = "table", .free = table_free, .bytes = table_bytes};

static struct resource *table_create(void *arg, struct mu_err *err)
{
	struct table *t = MU_NEW(struct table);

	*t = *(const struct table *)arg;
	resource_init(&t->base, &table_type);
	pthread_mutex_init(&t->lock, NULL);
	mu_map_init(&t->rows);
	for (size_t i = 0; i < MU_COUNT(t->reserved); i++)
		t->reserved[i] = mu_tensor_ref(&t->reserved[i]);
	return &t->base;
}

static struct mu_span table_key_of(const struct table *t, const struct mu_tensor *keys, int64_t i)
{
	if (keys->dtype == MU_STRING)
		return elems_span(keys, i);
	size_t size = (size_t)t->key_shape.count * elems_size(keys->dtype);
	return (struct mu_span){(const char *)keys->data + (size_t)i * size, size};
}

static int64_t count_keys(const struct table *t, const struct mu_tensor *keys)
{
	return t->key_shape.count ? keys->shape.count / t->key_shape.count : 0;
}

/* Removes the dimensions of a single key from the shape *s of keys. */
static int cut_key_shape(const struct table *t, struct mu_shape *s, struct mu_err *err)
{
	int n = s->rank - t->key_shape.rank;

	for (int d = 0; d < t->key_shape.rank; d++)
		if (n < 0 || s->dim[n + d] != t->key_shape.dim[d])
			return mu_invalid(err,
					  "Input key shape %s must end with the table's key "
					  "shape %s",
					  mu_shape_str(s), mu_shape_str(&t->key_shape));
	return mu_shape_splice(s, s, n, t->key_shape.rank, 0, NULL, err);
}

/* The attributes of a dense table: its reserved keys (MutableDenseHashTable has no deleted key),
 * and its bucket layout. */
static int dense_spec(const struct kernel_call *c, struct table *spec, struct mu_err *err)
{
	spec->n_buckets = args_attr_int(c->node, "initial_num_buckets", 131072);
	spec->max_load = args_attr_float(c->node, "max_load_factor", 0.8f);
	MU_RETURN_IF_ERROR(args_type(c, 0, spec->key, err));
	if (c->n_in > 1)
		MU_RETURN_IF_ERROR(args_type(c, 1, spec->key, err));
	mu_shape_copy(&spec->key_shape, &kernel_in(c, 0)->shape);
	for (unsigned i = 0; i < c->n_in; i++) {
		if (!mu_shape_eq(&kernel_in(c, i)->shape, &spec->key_shape))
			return mu_invalid(
			    err,
			    "Empty and deleted keys must have same shape, got shapes: "
			    "%s and %s",
			    mu_shape_str(&spec->key_shape), mu_shape_str(&kernel_in(c, i)->shape));
		spec->reserved[i] = *kernel_in(c, i);
	}
	if (spec->key_shape.rank > 1 || !spec->key_shape.count)
		return mu_invalid(err, "Empty key must be a scalar or a vector, got shape %s",
				  mu_shape_str(&spec->key_shape));
	if (spec->key_shape.rank && spec->key == MU_STRING)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "dense tables of strings have keys of one element, not of shape %s",
			       mu_shape_str(&spec->key_shape));
	if (c->n_in > 1 && mu_span_eq(table_key_of(spec, &spec->reserved[0], 0),
				      table_key_of(spec, &spec->reserved[1], 0)))
		return mu_invalid(err, "Empty and deleted keys cannot be equal");
	if (spec->n_buckets < 4 || (spec->n_buckets & (spec->n_buckets - 1)))
		return mu_invalid(
		    err, "Number of buckets must be at least 4 and a power of 2, got: %lld",
		    (long long)spec->n_buckets);
	if (!(spec->max_load > 0 && spec->max_load < 1))
		return mu_invalid(err, "max_load_factor must be between 0 and 1, got: %g",
				  (double)spec->max_load);
	return 0;
}

static int table_make(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_attr *shape = mu_node_attr(c->node, "value_shape");
	struct table spec = {.key = args_attr_type(c->node, "key_dtype", MU_STRING),
			     .value = args_attr_type(c->node, "value_dtype", MU_INT64),
			     .is_mutable = strstr(c->node->op, "Mutable") != NULL,
			     .key_shape = mu_shape_scalar(),
			     .row_size = 1};
	struct resource *r;
	int rc = 0;

	if (shape && shape->kind == MU_ATTR_SHAPE)
		spec.row_shape = *shape->shape;
	for (int d = 0; d < spec.row_shape.rank; d++)
		if (spec.row_shape.dim[d] < 0 ||
		    __builtin_mul_overflow(spec.row_size, spec.row_shape.dim[d], &spec.row_size) ||
		    spec.row_size > 1 << 28)
			return mu_invalid(err,
					  "Default value must be a fully defined shape, not %s",
					  mu_pshape_str(&spec.row_shape));
	if ((spec.key != MU_STRING && !mu_dtype_size(spec.key)) ||
	    (spec.value != MU_STRING && !mu_dtype_size(spec.value)))
		return mu_fail(err, MU_UNIMPLEMENTED, "no tables from %s to %s",
			       mu_dtype_name(spec.key), mu_dtype_name(spec.value));
	if (c->n_in && (rc = dense_spec(c, &spec, err)))
		return rc;
	if (strncmp(c->node->op, "Anonymous", 9) == 0)
		return handle_make_owned(c, table_create(&spec, err), err);
	MU_RETURN_IF_ERROR(handle_make(c, &table_type, table_create, &spec, &r, err));
	const struct table *t = MU_CONTAINER(r, struct table, base);
	if (t->key != spec.key || t->value != spec.value)
		rc = mu_invalid(err, "Conflicting key/value dtypes %s->%s with %s->%s for table %s",
				mu_dtype_name(spec.key), mu_dtype_name(spec.value),
				mu_dtype_name(t->key), mu_dtype_name(t->value), t->base.name);
	resource_unref(r);
	return rc;
}

/* The table of input 0, locked. */
static int table_find_and_lock(const struct kernel_call *c, struct table **out, struct mu_err *err)
{
	struct resource *r;

	MU_RETURN_IF_ERROR(handle_find(c, 0, &table_type, &r, err));
	*out = MU_CONTAINER(r, struct table, base);
	pthread_mutex_lock(&(*out)->lock);
	return 0;
}

static void table_release(struct table **t)
{
	if (*t) {
		pthread_mutex_unlock(&(*t)->lock);
		resource_unref(&(*t)->base);
	}
}
#define LOCKED_TABLE __attribute__((cleanup(table_release))) struct table

/* ---- rows ---- */

/* Checks that a key is not a reserved key of the table. */
static int check_key(const struct table *t, const struct mu_tensor *keys, int64_t i,
		     struct mu_err *err)
{
	static const char *const names[] = {"empty_key", "deleted_key"};

	for (size_t k = 0; k < MU_COUNT(names); k++)
		if (mu_tensor_is_set(&t->reserved[k]) &&
		    mu_span_eq(table_key_of(t, keys, i), table_key_of(t, &t->reserved[k], 0)))
			return mu_invalid(err, "Using the %s as a table key is not allowed",
					  names[k]);
	return 0;
}

static int check_keys(const struct table *t, const struct mu_tensor *keys, struct mu_err *err)
{
	for (int64_t i = 0; mu_tensor_is_set(&t->reserved[0]) && i < count_keys(t, keys); i++)
		MU_RETURN_IF_ERROR(check_key(t, keys, i, err));
	return 0;
}

/* The row of a key, or -1. */
static int64_t table_find(const struct table *t, struct mu_span key)
{
	return (int64_t)(uintptr_t)mu_map_get_n(&t->rows, key.data, key.len) - 1;
}

static int table_grow(struct table *t, struct mu_err *err)
{
	int64_t cap = t->cap ? 2 * t->cap : 16;
	size_t size = elems_size(t->value), bytes;
	void *new_values = NULL;

	if (!__builtin_mul_overflow((size_t)cap, (size_t)t->row_size * size, &bytes))
		new_values = realloc(t->values, bytes + 1);
	if (!new_values)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a table of %lld rows",
			       (long long)cap);
	t->values = new_values;
	memset((char *)new_values + (size_t)(t->cap * t->row_size) * size, 0,
	       (size_t)((cap - t->cap) * t->row_size) * size);
	t->cap = cap;
	return 0;
}

static int store(struct table *t, struct mu_span key, const struct mu_tensor *values, int64_t i,
		 struct mu_err *err)
{
	int64_t at = table_find(t, key);

	if (at < 0) {
		if (t->n_free_rows) {
			at = t->free_rows[--t->n_free_rows];
		} else {
			if (t->n == t->cap)
				MU_RETURN_IF_ERROR(table_grow(t, err));
			at = t->n++;
		}
		mu_map_put_n(&t->rows, key.data, key.len, (void *)(uintptr_t)(at + 1));
	}
	elems_copy(t->value, t->values, at * t->row_size, values->data, i * t->row_size,
		   t->row_size);
	return 0;
}

static int check_pair(const struct kernel_call *c, const struct table *t, struct mu_err *err)
{
	const struct mu_tensor *keys = kernel_in(c, 1), *values = kernel_in(c, 2);
	const struct mu_shape *vs = &values->shape;
	struct mu_shape ks = keys->shape;

	MU_RETURN_IF_ERROR(args_type(c, 1, t->key, err));
	MU_RETURN_IF_ERROR(args_type(c, 2, t->value, err));
	MU_RETURN_IF_ERROR(cut_key_shape(t, &ks, err));
	bool fits = vs->rank == ks.rank + t->row_shape.rank;
	for (int d = 0; fits && d < vs->rank; d++)
		fits = vs->dim[d] == (d < ks.rank ? ks.dim[d] : t->row_shape.dim[d - ks.rank]);
	if (!fits)
		return mu_invalid(err, "Expected shape %s + %s for value, got %s",
				  mu_shape_str(&ks), mu_pshape_str(&t->row_shape),
				  mu_shape_str(vs));
	return check_keys(t, keys, err);
}

static int store_all(struct table *t, const struct mu_tensor *keys, const struct mu_tensor *values,
		     struct mu_err *err)
{
	for (int64_t i = 0; i < count_keys(t, keys); i++)
		MU_RETURN_IF_ERROR(store(t, table_key_of(t, keys, i), values, i, err));
	return 0;
}

static bool same_value(const struct table *t, int64_t at, const struct mu_tensor *values, int64_t i)
{
	size_t size = elems_size(t->value) * (size_t)t->row_size;

	if (t->value == MU_STRING) {
		const struct mu_string *s = &((const struct mu_string *)t->values)[at];
		return mu_span_eq((struct mu_span){s->data, s->len}, elems_span(values, i));
	}
	return memcmp((const char *)t->values + (size_t)at * size,
		      (const char *)values->data + (size_t)i * size, size) == 0;
}

static int fail_different_value(const struct table *t, int64_t at, const struct mu_tensor *keys,
				const struct mu_tensor *values, int64_t i, struct mu_err *err)
{
	struct mu_tensor table_values = {.dtype = t->value, .data = t->values};
	MU_AUTO_BUF b = {0};

	mu_buf_puts(&b, "HashTable has different value for same key. Key ");
	tensor_text_element(&b, keys, i);
	mu_buf_puts(&b, " has ");
	tensor_text_element(&b, &table_values, at * t->row_size);
	mu_buf_puts(&b, " and trying to add value ");
	tensor_text_element(&b, values, i * t->row_size);
	return mu_fail(err, MU_FAILED_PRECONDITION, "%.900s", b.data);
}

static int store_new(struct table *t, const struct mu_tensor *keys, const struct mu_tensor *values,
		     struct mu_err *err)
{
	for (int64_t i = 0; i < count_keys(t, keys); i++) {
		int64_t at = table_find(t, table_key_of(t, keys, i));
		if (at >= 0 && !same_value(t, at, values, i))
			return fail_different_value(t, at, keys, values, i, err);
		if (at < 0)
			MU_RETURN_IF_ERROR(store(t, table_key_of(t, keys, i), values, i, err));
	}
	return 0;
}

static bool is_complete(const struct table *t)
{
	return t->is_filled && !t->is_mutable;
}

/* Fills an immutable table once.  Later calls leave its content unchanged and, as in TensorFlow,
 * only check that the number of keys equals the number of its entries. */
static int fill_once(struct table *t, const struct mu_tensor *keys, const struct mu_tensor *values,
		     struct mu_err *err)
{
	if (is_complete(t))
		return count_keys(t, keys) == (int64_t)t->rows.count
			   ? 0
			   : mu_fail(err, MU_FAILED_PRECONDITION,
				     "Table was already initialized with different data.");
	MU_RETURN_IF_ERROR(store_new(t, keys, values, err));
	t->is_filled = true;
	return 0;
}

int table_is_filled(const struct kernel_call *c, bool *out, struct mu_err *err)
{
	LOCKED_TABLE *t = NULL;

	MU_RETURN_IF_ERROR(table_find_and_lock(c, &t, err));
	*out = is_complete(t);
	return 0;
}

int table_add_pairs(const struct kernel_call *c, const struct mu_tensor *keys,
		    const struct mu_tensor *values, struct mu_err *err)
{
	LOCKED_TABLE *t = NULL;

	MU_RETURN_IF_ERROR(table_find_and_lock(c, &t, err));
	if (keys->dtype != t->key || values->dtype != t->value)
		return mu_invalid(err, "Conflicting key/value dtypes %s->%s with %s->%s for table",
				  mu_dtype_name(t->key), mu_dtype_name(t->value),
				  mu_dtype_name(keys->dtype), mu_dtype_name(values->dtype));
	if (values->shape.count != count_keys(t, keys) * t->row_size)
		return mu_invalid(err, "Expected %lld values for keys of shape %s, got %s",
				  (long long)(count_keys(t, keys) * t->row_size),
				  mu_shape_str(&keys->shape), mu_shape_str(&values->shape));
	MU_RETURN_IF_ERROR(check_keys(t, keys, err));
	return t->is_mutable ? store_all(t, keys, values, err) : store_new(t, keys, values, err);
}

int table_set_filled(const struct kernel_call *c, struct mu_err *err)
{
	LOCKED_TABLE *t = NULL;

	MU_RETURN_IF_ERROR(table_find_and_lock(c, &t, err));
	t->is_filled = true;
	return 0;
}

static int initialize(struct kernel_call *c, struct mu_err *err)
{
	LOCKED_TABLE *t = NULL;

	MU_RETURN_IF_ERROR(table_find_and_lock(c, &t, err));
	MU_RETURN_IF_ERROR(check_pair(c, t, err));
	return fill_once(t, kernel_in(c, 1), kernel_in(c, 2), err);
}

static int initialize_from_file(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_TENSOR keys = {0};
	MU_AUTO_TENSOR values = {0};
	LOCKED_TABLE *t = NULL;

	MU_RETURN_IF_ERROR(table_find_and_lock(c, &t, err));
	if (t->row_size != 1)
		return mu_invalid(err, "a text file gives one value a key");
	MU_RETURN_IF_ERROR(vocabulary_pairs(c, t->key, t->value, &keys, &values, err));
	return is_complete(t) ? 0 : fill_once(t, &keys, &values, err);
}

/* Doubles the number of buckets until n keys fit. The number is exported; nothing is allocated. */
static int grow_bucket_count(struct table *t, int64_t n, struct mu_err *err)
{
	int64_t buckets = t->n_buckets;

	while ((float)n > (float)buckets * t->max_load)
		if (__builtin_mul_overflow(buckets, 2, &buckets))
			return mu_fail(err, MU_RESOURCE_EXHAUSTED,
				       "a max_load_factor of %g makes the table %s too large for "
				       "%lld keys",
				       (double)t->max_load, t->base.name, (long long)n);
	t->n_buckets = buckets;
	return 0;
}

static int insert(struct kernel_call *c, struct mu_err *err)
{
	LOCKED_TABLE *t = NULL;

	MU_RETURN_IF_ERROR(table_find_and_lock(c, &t, err));
	MU_RETURN_IF_ERROR(check_pair(c, t, err));
	if (!t->is_mutable)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "the table %s is filled by its initializer only", t->base.name);
	if (mu_tensor_is_set(&t->reserved[0])) /* TensorFlow also counts existing keys */
		MU_RETURN_IF_ERROR(grow_bucket_count(
		    t, (int64_t)t->rows.count + count_keys(t, kernel_in(c, 1)), err));
	return store_all(t, kernel_in(c, 1), kernel_in(c, 2), err);
}

static void table_clear(struct table *t)
{
	mu_map_fini(&t->rows);
	mu_map_init(&t->rows);
	t->n = t->n_free_rows = 0;
}

/* Imports buckets in TensorFlow's layout.  Free buckets have the empty key. */
static int import_buckets(struct kernel_call *c, struct table *t, struct mu_err *err)
{
	const struct mu_tensor *keys = kernel_in(c, 1), *values = kernel_in(c, 2);
	struct mu_err ignored_err;

	MU_RETURN_IF_ERROR(args_type(c, 1, t->key, err));
	MU_RETURN_IF_ERROR(args_type(c, 2, t->value, err));
	int64_t n = count_keys(t, keys);
	if (values->shape.count / (t->row_size ? t->row_size : 1) != n ||
	    values->shape.count != n * t->row_size || keys->shape.count != n * t->key_shape.count)
		return mu_invalid(err, "Expected shape %s + %s for value, got %s",
				  mu_shape_str(&keys->shape), mu_pshape_str(&t->row_shape),
				  mu_shape_str(&values->shape));
	table_clear(t);
	for (t->n_buckets = 4; t->n_buckets < n; t->n_buckets *= 2)
		;
	for (int64_t i = 0; i < n; i++)
		if (!check_key(t, keys, i, &ignored_err))
			MU_RETURN_IF_ERROR(store(t, table_key_of(t, keys, i), values, i, err));
	return 0;
}

static int import(struct kernel_call *c, struct mu_err *err)
{
	LOCKED_TABLE *t = NULL;

	MU_RETURN_IF_ERROR(table_find_and_lock(c, &t, err));
	if (mu_tensor_is_set(&t->reserved[0]))
		return import_buckets(c, t, err);
	MU_RETURN_IF_ERROR(check_pair(c, t, err));
	if (!t->is_mutable) /* an initializer of TensorFlow 1.15 */
		return fill_once(t, kernel_in(c, 1), kernel_in(c, 2), err);
	table_clear(t);
	return store_all(t, kernel_in(c, 1), kernel_in(c, 2), err);
}

static int remove_keys(struct kernel_call *c, struct mu_err *err)
{
	LOCKED_TABLE *t = NULL;

	MU_RETURN_IF_ERROR(table_find_and_lock(c, &t, err));
	MU_RETURN_IF_ERROR(args_type(c, 1, t->key, err));
	struct mu_shape shape = kernel_in(c, 1)->shape;
	MU_RETURN_IF_ERROR(cut_key_shape(t, &shape, err));
	MU_RETURN_IF_ERROR(check_keys(t, kernel_in(c, 1), err));
	const struct mu_tensor *keys = kernel_in(c, 1);
	for (int64_t i = 0; i < count_keys(t, keys); i++) {
		struct mu_span key = table_key_of(t, keys, i);
		int64_t at = table_find(t, key);
		if (at < 0)
			continue;
		mu_map_del_n(&t->rows, key.data, key.len);
		t->free_rows =
		    mu_xrealloc(t->free_rows, (size_t)(t->n_free_rows + 1) * sizeof *t->free_rows);
		t->free_rows[t->n_free_rows++] = at;
	}
	return 0;
}

/* ---- lookup and export ---- */

static int lookup(struct kernel_call *c, struct mu_err *err)
{
	LOCKED_TABLE *t = NULL;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(table_find_and_lock(c, &t, err));
	MU_RETURN_IF_ERROR(args_type(c, 1, t->key, err));
	MU_RETURN_IF_ERROR(args_type(c, 2, t->value, err));
	const struct mu_tensor *keys = kernel_in(c, 1), *defaults = kernel_in(c, 2);
	struct mu_shape shape = keys->shape;
	MU_RETURN_IF_ERROR(cut_key_shape(t, &shape, err));
	MU_RETURN_IF_ERROR(check_keys(t, keys, err));
	if (!t->is_mutable && !t->is_filled)
		return mu_fail(err, MU_FAILED_PRECONDITION, "Table not initialized.");
	MU_RETURN_IF_ERROR(mu_shape_append(&shape, t->row_shape.rank, t->row_shape.dim, err));
	/* One default, or one for each key; as in TensorFlow, a dense table uses the first. */
	bool has_default_per_key = mu_shape_eq(&defaults->shape, &shape);
	if (defaults->shape.count != t->row_size && !has_default_per_key)
		return mu_invalid(err, "Expected shape %s for default value, got %s",
				  mu_pshape_str(&t->row_shape), mu_shape_str(&defaults->shape));
	has_default_per_key &= !mu_tensor_is_set(&t->reserved[0]);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t->value, &shape, &out, err));
	for (int64_t i = 0; i < count_keys(t, keys); i++) {
		int64_t at = table_find(t, table_key_of(t, keys, i));
		const void *from = at < 0 ? defaults->data : t->values;
		if (at < 0)
			at = has_default_per_key ? i : 0;
		elems_copy(t->value, out->data, i * t->row_size, from, at * t->row_size,
			   t->row_size);
	}
	return 0;
}

static int table_size_of(struct kernel_call *c, struct mu_err *err)
{
	LOCKED_TABLE *t = NULL;

	MU_RETURN_IF_ERROR(table_find_and_lock(c, &t, err));
	int64_t count = t->is_filled || t->is_mutable ? (int64_t)t->rows.count : 0;
	return kernel_out_value(c, 0, MU_INT64, &count, err);
}

static void export_row(const struct table *t, const struct mu_map_slot *s, struct mu_tensor *keys,
		       struct mu_tensor *values, int64_t at)
{
	if (t->key == MU_STRING)
		mu_string_set(&MU_DATA(struct mu_string, keys)[at], s->key, s->len);
	else
		memcpy((char *)keys->data + (size_t)at * s->len, s->key, s->len);
	elems_copy(t->value, values->data, at * t->row_size, t->values,
		   ((int64_t)(uintptr_t)s->value - 1) * t->row_size, t->row_size);
}

/* TensorFlow's hash, which selects the first bucket for a key. */
static uint64_t bucket_hash(const struct table *t, const char *key, size_t len)
{
	size_t size = elems_size(t->key);
	uint64_t hash = 0;

	if (t->key == MU_STRING)
		return legacy_hash64(key, len);
	for (size_t at = 0; at < len; at += size) {
		size_t n = size < 8 ? size : 8;
		int64_t e = 0;
		memcpy((char *)&e + 8 - n, key + at, n);
		uint64_t part = (uint64_t)(e >> (64 - 8 * n)); /* sign-extended */
		hash = len == size
			   ? part
			   : hash ^ (part + 0x9e3779b97f4a7800u + (hash << 10) + (hash >> 4));
	}
	return hash;
}

static int export_buckets(struct kernel_call *c, struct table *t, struct mu_err *err)
{
	struct mu_tensor *keys, *values;

	MU_RETURN_IF_ERROR(grow_bucket_count(t, (int64_t)t->rows.count, err));
	int64_t n = t->n_buckets, key_size = t->key_shape.count;
	struct mu_shape ks = mu_shape_vec(n), vs = ks;
	MU_RETURN_IF_ERROR(mu_shape_push(&ks, key_size, err));
	MU_RETURN_IF_ERROR(mu_shape_push(&vs, t->row_size, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t->key, &ks, &keys, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, t->value, &vs, &values, err));
	MU_AUTO_FREE bool *is_used = mu_xcalloc((size_t)n, sizeof *is_used);
	mu_map_each (&t->rows, s) {
		int64_t at = (int64_t)(bucket_hash(t, s->key, s->len) & (uint64_t)(n - 1));
		for (int64_t probe = 1; is_used[at]; probe++)
			at = (at + probe) & (n - 1);
		is_used[at] = true;
		export_row(t, s, keys, values, at);
	}
	for (int64_t i = 0; i < n; i++) {
		if (is_used[i])
			continue;
		elems_copy(t->key, keys->data, i * key_size, t->reserved[0].data, 0, key_size);
		elems_zero(t->value, values->data, i * t->row_size, t->row_size);
	}
	return 0;
}

static int export(struct kernel_call *c, struct mu_err *err)
{
	LOCKED_TABLE *t = NULL;
	struct mu_tensor *keys, *values;
	int64_t i = 0;

	MU_RETURN_IF_ERROR(table_find_and_lock(c, &t, err));
	if (args_attr_type(c->node, "Tkeys", MU_DT_INVALID) != t->key ||
	    args_attr_type(c->node, "Tvalues", MU_DT_INVALID) != t->value)
		return mu_invalid(err, "the table has keys of %s and values of %s",
				  mu_dtype_name(t->key), mu_dtype_name(t->value));
	if (mu_tensor_is_set(&t->reserved[0]))
		return export_buckets(c, t, err);
	struct mu_shape ks = mu_shape_vec((int64_t)t->rows.count), vs = ks;
	MU_RETURN_IF_ERROR(mu_shape_append(&vs, t->row_shape.rank, t->row_shape.dim, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t->key, &ks, &keys, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, t->value, &vs, &values, err));
	mu_map_each (&t->rows, s)
		export_row(t, s, keys, values, i++);
	return 0;
}

static const struct kernel rows[] = {
    {"HashTableV2 HashTable MutableHashTableV2 MutableHashTable MutableHashTableOfTensorsV2 "
     "MutableDenseHashTableV2 MutableHashTableOfTensors MutableDenseHashTable "
     "AnonymousHashTable AnonymousMutableHashTable AnonymousMutableHashTableOfTensors "
     "AnonymousMutableDenseHashTable",
     .run = table_make},
    {"InitializeTableV2 InitializeTable", .run = initialize},
    {"InitializeTableFromTextFileV2 InitializeTableFromTextFile", KERNEL_SLOW,
     .run = initialize_from_file},
    {"LookupTableFindV2 LookupTableFind", .run = lookup},
    {"LookupTableInsertV2 LookupTableInsert", .run = insert},
    {"LookupTableImportV2 LookupTableImport", .run = import},
    {"LookupTableExportV2 LookupTableExport", .run = export},
    {"LookupTableRemoveV2", .run = remove_keys},
    {"LookupTableSizeV2 LookupTableSize", .run = table_size_of},
};
KERNEL_TABLE(state_table, rows)
