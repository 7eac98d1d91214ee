/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/io/features.h"

#include <stdarg.h>

#include "task/kernels/engine/elems.h"

void features_init(struct features *f)
{
	*f = (struct features){0};
	mu_arena_init(&f->arena);
	mu_map_init(&f->by_key);
}

void features_fini(struct features *f)
{
	mu_map_fini(&f->by_key);
	mu_arena_fini(&f->arena);
	free(f->lists);
}

/* ---- attributes and inputs ---- */

void features_alloc(struct features *f, unsigned slots)
{
	f->slots = MU_ARENA_ARRAY(&f->arena, struct feature_slot, slots + 1);
	f->defaults = MU_ARENA_ARRAY(&f->arena, const struct mu_tensor *, slots + 1);
}

int features_read_keys(struct features *f, const struct kernel_call *c, unsigned from,
		       unsigned inputs, const struct mu_span **out, unsigned *n, struct mu_err *err)
{
	int64_t total = 0;

	for (unsigned i = from; i < from + inputs; i++)
		total += kernel_in(c, i)->shape.count;
	if (total > UINT16_MAX)
		return mu_invalid(err, "more than %d keys", UINT16_MAX);
	struct mu_span *keys = MU_ARENA_ARRAY(&f->arena, struct mu_span, (size_t)total + 1);
	*out = keys;
	*n = 0;
	for (unsigned i = from; i < from + inputs; i++)
		for (int64_t k = 0; k < kernel_in(c, i)->shape.count; k++)
			keys[(*n)++] = elems_span(kernel_in(c, i), k);
	return 0;
}

int features_add_slots(struct features *f, enum feature_kind kind, const struct mu_span *keys,
		       unsigned n, const char *attr, const struct mu_attr *types,
		       struct mu_err *err)
{
	if ((types ? types->n : 0) != n)
		return mu_invalid(err, "attribute '%s' has %u types for %u keys", attr,
				  types ? types->n : 0, n);
	f->n[kind] = n;
	for (unsigned i = 0; i < n; i++) {
		struct feature_slot *s = &f->slots[f->n_slots++];
		*s = (struct feature_slot){
		    .key = keys[i], .kind = kind, .type = types->types[i], .at = i};
		if (s->type != MU_FLOAT && s->type != MU_INT64 && s->type != MU_STRING)
			return mu_invalid(
			    err, "Key: %.*s.  A feature must be float, int64 or string, not %s",
			    (int)s->key.len, s->key.data, mu_dtype_name(s->type));
		s->next = mu_map_put_n(&f->by_key, s->key.data, s->key.len, s);
	}
	return 0;
}

unsigned features_count_outputs(const struct features *f)
{
	return 3 * f->n[FEATURE_SPARSE] + f->n[FEATURE_DENSE] + 2 * f->n[FEATURE_RAGGED];
}

int features_begin(struct features *f, int64_t examples, struct mu_err *err)
{
	if ((f->shapes ? f->shapes->n : 0) != f->n[FEATURE_DENSE] ||
	    (f->n[FEATURE_RAGGED] && (!f->splits || f->splits->n != f->n[FEATURE_RAGGED])))
		return mu_invalid(err, "the numbers of keys, types, shapes and defaults differ");
	f->examples = examples;
	f->lists = calloc((size_t)examples * f->n_slots + 1, sizeof *f->lists);
	if (!f->lists)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "no memory for %lld examples of %u features", (long long)examples,
			       f->n_slots);
	for (unsigned i = 0; i < f->n_slots; i++)
		f->slots[i].lists = f->lists + (int64_t)i * examples;
	return 0;
}

/* ---- reading ---- */

void features_add_value(void *arg, struct mu_span key, const struct example_list *list)
{
	struct features *f = arg;

	for (struct feature_slot *s = mu_map_get_n(&f->by_key, key.data, key.len); s; s = s->next)
		s->lists[f->current] = *list;
}

void features_put_name(struct mu_buf *b, const struct features *f, int64_t i)
{
	struct mu_span name = {"<unknown>", 9};

	if (f->names && i < f->names->shape.count)
		name = elems_span(f->names, i);
	mu_buf_printf(b, "Name: %.*s, ", name.len > 200 ? 200 : (int)name.len, name.data);
}

/* Fails with TensorFlow's prefix for the errors of a feature; in a batch it has the index of the
 * example. */
static int feature_fail(const struct features *f, const struct feature_slot *s, int64_t i,
			struct mu_err *err, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
static int feature_fail(const struct features *f, const struct feature_slot *s, int64_t i,
			struct mu_err *err, const char *fmt, ...)
{
	MU_AUTO_BUF b = {0};
	va_list ap;

	if (!f->single)
		features_put_name(&b, f, i);
	mu_buf_printf(&b, "Key: %.*s", (int)s->key.len, s->key.data);
	if (!f->single)
		mu_buf_printf(&b, ", Index: %lld", (long long)i);
	mu_buf_puts(&b, ".  ");
	va_start(ap, fmt);
	mu_buf_vprintf(&b, fmt, ap);
	va_end(ap);
	return mu_invalid(err, "%s", b.data);
}

int features_check(const struct features *f, struct mu_err *err)
{
	for (unsigned k = 0; k < f->n_slots; k++) {
		const struct feature_slot *s = &f->slots[k];
		const struct example_list *l = &s->lists[f->current];
		if (l->type != MU_DT_INVALID && l->type != s->type)
			return s->kind == FEATURE_DENSE
				   ? feature_fail(
					 f, s, f->current, err,
					 "Data types don't match. Data type: %s but expected "
					 "type: %s",
					 mu_dtype_name(l->type), mu_dtype_name(s->type))
				   : feature_fail(
					 f, s, f->current, err,
					 "Data types don't match. Expected type: %s, Actual "
					 "type: %s",
					 mu_dtype_name(s->type), mu_dtype_name(l->type));
	}
	return 0;
}

/* ---- output tensors ---- */

static int features_output_sparse(const struct features *f, const struct feature_slot *s,
				  struct mu_tensor *out, struct mu_err *err)
{
	struct mu_tensor *indices = &out[s->at], *values = indices + f->n[FEATURE_SPARSE],
			 *shape = values + f->n[FEATURE_SPARSE];
	int64_t total = 0, longest = 0, at = 0;
	int cols = f->single ? 1 : 2;

	for (int64_t i = 0; i < f->examples; i++) {
		total += s->lists[i].count;
		longest = s->lists[i].count > longest ? s->lists[i].count : longest;
	}
	struct mu_shape flat = mu_shape_vec(total), dims_shape = mu_shape_vec(cols), index_shape;
	MU_RETURN_IF_ERROR(mu_shape_set(&index_shape, 2, (int64_t[]){total, cols}, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(indices, MU_INT64, &index_shape, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(values, s->type, &flat, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(shape, MU_INT64, &dims_shape, err));
	int64_t *to = indices->data;
	for (int64_t i = 0; i < f->examples; i++) {
		example_values(&s->lists[i], values, at);
		at += s->lists[i].count;
		for (int64_t k = 0; k < s->lists[i].count; k++) {
			if (!f->single)
				*to++ = i;
			*to++ = k;
		}
	}
	MU_DATA(int64_t, shape)[0] = f->examples;
	MU_DATA(int64_t, shape)[cols - 1] = longest;
	return 0;
}

int features_splits(struct mu_tensor *out, enum mu_dtype t, int64_t n, int64_t values,
		    struct mu_err *err)
{
	struct mu_shape ends = n < 0 ? mu_shape_scalar() : mu_shape_vec(n + 1);

	if ((t != MU_INT32 && t != MU_INT64) || (t == MU_INT32 && values > INT32_MAX))
		return mu_invalid(err, "row splits of %lld values do not fit %s", (long long)values,
				  mu_dtype_name(t));
	MU_RETURN_IF_ERROR(mu_tensor_new(out, t, &ends, err));
	elems_zero(t, out->data, 0, ends.count);
	return 0;
}

static int features_output_ragged(const struct features *f, const struct feature_slot *s,
				  struct mu_tensor *out, struct mu_err *err)
{
	struct mu_tensor *values = &out[3 * f->n[FEATURE_SPARSE] + f->n[FEATURE_DENSE] + s->at],
			 *splits = values + f->n[FEATURE_RAGGED];
	int64_t total = 0, at = 0;

	for (int64_t i = 0; i < f->examples; i++)
		total += s->lists[i].count;
	struct mu_shape flat = mu_shape_vec(total), empty_shape = mu_shape_vec(0);
	enum mu_dtype t = f->splits->types[s->at];
	MU_RETURN_IF_ERROR(mu_tensor_new(values, s->type, &flat, err));
	MU_RETURN_IF_ERROR(features_splits(splits, t, f->single ? -1 : f->examples, total, err));
	if (f->single && !f->one_split) {
		mu_tensor_unref(splits);
		MU_RETURN_IF_ERROR(mu_tensor_new(splits, t, &empty_shape, err));
	}
	for (int64_t i = 0; i <= f->examples; i++) {
		if (!f->single)
			mu_tensor_set_int(splits, i, at);
		if (i < f->examples) {
			example_values(&s->lists[i], values, at);
			at += s->lists[i].count;
		}
	}
	return 0;
}

/* The name of the list type in TensorFlow's messages. */
static const char *values_name(enum mu_dtype t)
{
	return t == MU_STRING ? "bytes" : mu_dtype_name(t);
}

/* The shape of the output of a dense feature, and the number of elements of an example. */
static int features_dense_shape(const struct features *f, const struct feature_slot *s,
				bool *variable_length, struct mu_shape *out,
				int64_t *example_elements, struct mu_err *err)
{
	const struct mu_pshape *want = &f->shapes->shapes[s->at];
	struct mu_shape example_shape = mu_shape_scalar();
	int64_t longest = 0;
	int rc = 0;

	*variable_length = want->rank > 0 && want->dim[0] < 0;
	for (int i = *variable_length; i < want->rank && !rc; i++)
		rc = want->dim[i] < 0
			 ? mu_invalid(
			       err, "dense_shapes[%u] is not known beyond its first dimension: %s",
			       s->at, mu_pshape_str(want))
			 : mu_shape_push(&example_shape, want->dim[i], err);
	if (rc || want->rank < 0)
		return rc ? rc : mu_invalid(err, "dense_shapes[%u] is not known", s->at);
	for (int64_t i = 0; *variable_length && i < f->examples; i++) {
		int64_t n = s->lists[i].count;
		if (n && (!example_shape.count || n % example_shape.count))
			return feature_fail(
			    f, s, i, err,
			    "Number of %s values is not a multiple of stride length. Saw "
			    "%lld values but output shape is: %s",
			    values_name(s->type), (long long)n, mu_pshape_str(want));
		longest =
		    n && n / example_shape.count > longest ? n / example_shape.count : longest;
	}
	const int64_t leading_dims[] = {f->examples, longest};
	*example_elements = *variable_length ? longest * example_shape.count : example_shape.count;
	return mu_shape_splice(out, &example_shape, 0, 0, !f->single + *variable_length,
			       leading_dims + f->single, err);
}

static int check_default(const struct features *f, const struct feature_slot *s,
			 const struct mu_tensor *d, bool variable_length, struct mu_err *err)
{
	const struct mu_pshape *want = &f->shapes->shapes[s->at];

	if (d->dtype != s->type)
		return mu_invalid(err, "dense_defaults[%u] is %s, not %s", s->at,
				  mu_dtype_name(d->dtype), mu_dtype_name(s->type));
	if (variable_length && d->shape.count != 1)
		return mu_invalid(
		    err,
		    "dense_shape[%u] is a variable length shape: %s, therefore def_value[%u] must "
		    "contain a single element (the padding element).  But its shape is: %s",
		    s->at, mu_pshape_str(want), s->at, mu_shape_str(&d->shape));
	if (!variable_length && d->shape.count && !mu_shape_matches(&d->shape, want))
		return mu_invalid(
		    err,
		    "def_value[%u].shape() == %s is not compatible with dense_shapes_[%u] == %s",
		    s->at, mu_shape_str(&d->shape), s->at, mu_pshape_str(want));
	return 0;
}

static int fail_missing_feature(const struct features *f, const struct feature_slot *s, int64_t i,
				struct mu_err *err)
{
	MU_AUTO_BUF b = {0};

	if (!f->single)
		features_put_name(&b, f, i);
	mu_buf_printf(&b, "Feature: %.*s (data type: %s) is required but could not be found.",
		      (int)s->key.len, s->key.data, mu_dtype_name(s->type));
	return mu_invalid(err, "%s", b.data);
}

static int features_output_dense(const struct features *f, const struct feature_slot *s,
				 struct mu_tensor *out, struct mu_err *err)
{
	const struct mu_tensor *default_value = f->defaults[s->at];
	struct mu_shape shape;
	int64_t example_elements = 0;
	bool variable_length = false;

	out += 3 * f->n[FEATURE_SPARSE] + s->at;
	MU_RETURN_IF_ERROR(
	    features_dense_shape(f, s, &variable_length, &shape, &example_elements, err));
	MU_RETURN_IF_ERROR(check_default(f, s, default_value, variable_length, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(out, s->type, &shape, err));
	for (int64_t i = 0; i < f->examples; i++) {
		const struct example_list *l = &s->lists[i];
		int64_t at = i * example_elements, n = l->count;
		if (l->type != MU_DT_INVALID && (variable_length || n == example_elements))
			example_values(l, out, at);
		if (variable_length)
			for (; n < example_elements; n++)
				elems_copy(s->type, out->data, at + n, default_value->data, 0, 1);
		else if (l->type == MU_DT_INVALID &&
			 default_value->shape.count == example_elements && example_elements)
			elems_copy(s->type, out->data, at, default_value->data, 0,
				   example_elements);
		else if (l->type == MU_DT_INVALID)
			return fail_missing_feature(f, s, i, err);
		else if (n != example_elements)
			return f->single
				   ? feature_fail(f, s, i, err, "Can't parse serialized Example.")
				   : feature_fail(
					 f, s, i, err,
					 "Number of %s values != expected.  Values size: %lld "
					 "but output shape: %s",
					 values_name(s->type), (long long)n,
					 mu_pshape_str(&f->shapes->shapes[s->at]));
	}
	return 0;
}

int features_make_outputs(const struct features *f, struct mu_tensor *out, struct mu_err *err)
{
	static int (*const output_by_kind[FEATURE_KINDS])(
	    const struct features *, const struct feature_slot *, struct mu_tensor *,
	    struct mu_err *) = {[FEATURE_SPARSE] = features_output_sparse,
				[FEATURE_DENSE] = features_output_dense,
				[FEATURE_RAGGED] = features_output_ragged};

	for (unsigned i = 0; i < f->n_slots; i++)
		MU_RETURN_IF_ERROR(output_by_kind[f->slots[i].kind](f, &f->slots[i], out, err));
	return 0;
}
