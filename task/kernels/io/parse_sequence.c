/* SPDX-License-Identifier: Apache-2.0 */
/* ParseSequenceExample, ParseSequenceExampleV2 and ParseSingleSequenceExample: convert serialized
 * SequenceExamples to tensors.
 *
 * features.c parses the context as it parses the features of an Example.  A requested feature list
 * is a slot too.  Its rows stay in the serialized message.  A first scan checks and counts them, a
 * second scan fills the outputs.  The ops differ in the source of the keys (attributes or inputs)
 * and in the batch dimension.
 */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/features.h"

/* The feature list of one example for a slot. */
struct list {
	struct mu_span rows;
	bool is_present;
	int64_t n, values, longest; /* rows; values of all rows; values of the longest row */
};

struct list_slot {
	struct mu_span key;
	enum feature_kind kind;
	enum mu_dtype type;
	unsigned at;          /* index among the slots of this kind */
	bool missing_allowed; /* a missing list is empty, not an error */
	struct list_slot *next;
	struct list *lists; /* one for each example */
};

struct sequence {
	struct features context;
	struct mu_map by_key;
	struct list_slot *slots;
	struct list *lists;
	unsigned n[FEATURE_KINDS], n_slots;
	unsigned first_output; /* of the list slots */
	const struct mu_attr *shapes, *splits;
	bool has_lengths; /* dense lists have an output of lengths */
};

static void sequence_fini(struct sequence *q)
{
	mu_map_fini(&q->by_key);
	features_fini(&q->context);
	free(q->lists);
}
#define SEQUENCE_AUTO __attribute__((cleanup(sequence_fini))) struct sequence

/* ---- attributes and inputs ---- */

enum { PART_CONTEXT, PART_LISTS, PARTS };
/* The attributes of each part and kind: the types, the keys and the number of keys.  NULL: the op
 * has no such attribute. */
static const struct {
	const char *types, *keys, *number;
} names[PARTS][FEATURE_KINDS] = {
    {{"context_sparse_types", "context_sparse_keys", "Ncontext_sparse"},
     {"Tcontext_dense", "context_dense_keys", NULL},
     {"context_ragged_value_types", NULL, NULL}},
    {{"feature_list_sparse_types", "feature_list_sparse_keys", "Nfeature_list_sparse"},
     {"feature_list_dense_types", "feature_list_dense_keys", "Nfeature_list_dense"},
     {"feature_list_ragged_value_types", NULL, NULL}},
};

struct keys {
	const struct mu_span *k;
	unsigned n;
};
struct request {
	struct keys keys[PARTS][FEATURE_KINDS];
	unsigned first_default; /* input index */
};

/* True if the op allows a list of this key to be missing. */
typedef bool missing_allowed_fn(const struct kernel_call *c, struct mu_span key, unsigned at);

static int request_lists(struct kernel_call *c, struct sequence *q, const struct request *a,
			 missing_allowed_fn *missing_allowed, struct mu_err *err)
{
	const struct keys *lists = a->keys[PART_LISTS];

	q->slots = MU_ARENA_ARRAY(&q->context.arena, struct list_slot,
				  lists[0].n + lists[1].n + lists[2].n + 1);
	for (int kind = 0; kind < FEATURE_KINDS; kind++) {
		const struct mu_attr *types = mu_node_attr(c->node, names[PART_LISTS][kind].types);
		q->n[kind] = lists[kind].n;
		for (unsigned i = 0; i < lists[kind].n; i++) {
			struct list_slot *s = &q->slots[q->n_slots++];
			*s = (struct list_slot){.key = lists[kind].k[i],
						.kind = (enum feature_kind)kind,
						.type = types->types[i],
						.at = i};
			s->missing_allowed = kind != FEATURE_DENSE || missing_allowed(c, s->key, i);
			if (s->type != MU_FLOAT && s->type != MU_INT64 && s->type != MU_STRING)
				return mu_invalid(
				    err, "Key: %.*s.  a list is float, int64 or string, not %s",
				    (int)s->key.len, s->key.data, mu_dtype_name(s->type));
			s->next = mu_map_put_n(&q->by_key, s->key.data, s->key.len, s);
		}
	}
	return 0;
}

static int check_counts(const struct kernel_call *c, const struct request *a, struct mu_err *err)
{
	for (int part = 0; part < PARTS; part++)
		for (int kind = 0; kind < FEATURE_KINDS; kind++) {
			const char *number = names[part][kind].number;
			const struct mu_attr *types =
			    mu_node_attr(c->node, names[part][kind].types);
			unsigned n = a->keys[part][kind].n;
			if ((types ? types->n : 0) != n ||
			    (number && args_attr_int(c->node, number, 0) != n))
				return mu_invalid(err, "attribute '%s' has %u types for %u keys",
						  names[part][kind].types, types ? types->n : 0, n);
		}
	return 0;
}

static int parse_sequence_request(struct kernel_call *c, struct sequence *q,
				  const struct request *a, missing_allowed_fn *missing_allowed,
				  struct mu_err *err)
{
	const struct keys *context = a->keys[PART_CONTEXT];
	struct features *f = &q->context;
	int rc = check_counts(c, a, err);

	features_alloc(f, context[0].n + context[1].n + context[2].n);
	for (int kind = 0; kind < FEATURE_KINDS && !rc; kind++)
		rc =
		    features_add_slots(f, (enum feature_kind)kind, context[kind].k, context[kind].n,
				       names[PART_CONTEXT][kind].types,
				       mu_node_attr(c->node, names[PART_CONTEXT][kind].types), err);
	if (rc || (rc = request_lists(c, q, a, missing_allowed, err)))
		return rc;
	f->shapes = mu_node_attr(c->node, "context_dense_shapes");
	f->splits = mu_node_attr(c->node, "context_ragged_split_types");
	q->shapes = mu_node_attr(c->node, "feature_list_dense_shapes");
	q->splits = mu_node_attr(c->node, "feature_list_ragged_split_types");
	q->first_output = features_count_outputs(f);
	unsigned dense = q->n[FEATURE_DENSE], ragged = q->n[FEATURE_RAGGED];
	if (c->n_out != q->first_output + 3 * q->n[FEATURE_SPARSE] +
			    (q->has_lengths ? 2 : 1) * dense + 3 * ragged ||
	    (q->shapes ? q->shapes->n : 0) < dense || /* more are accepted, as in TensorFlow */
	    (f->shapes ? f->shapes->n : 0) < f->n[FEATURE_DENSE] ||
	    (ragged && (!q->splits || q->splits->n != ragged)) ||
	    (f->n[FEATURE_RAGGED] && (!f->splits || f->splits->n != f->n[FEATURE_RAGGED])) ||
	    a->first_default + f->n[FEATURE_DENSE] > c->n_in)
		return mu_invalid(err, "the numbers of keys, types, shapes and defaults differ");
	for (unsigned i = 0; i < f->n[FEATURE_DENSE]; i++)
		f->defaults[i] = kernel_in(c, a->first_default + i);
	return 0;
}

/* ---- reading ---- */

static void record_list(void *arg, struct mu_span key, struct mu_span rows)
{
	struct sequence *q = arg;

	for (struct list_slot *s = mu_map_get_n(&q->by_key, key.data, key.len); s; s = s->next)
		s->lists[q->context.current] = (struct list){.rows = rows, .is_present = true};
}

static int count_rows(const struct sequence *q, struct list_slot *s, int64_t example,
		      struct mu_err *err)
{
	MU_AUTO_BUF name = {0};
	struct list *l = &s->lists[example];
	struct mu_pb rows = mu_pb_of(l->rows);
	struct example_list row;

	features_put_name(&name, &q->context, example);
	if (!l->is_present && !s->missing_allowed)
		return mu_invalid(err,
				  "%sFeature list '%.*s' is required but could not be found.  Did "
				  "you mean to include it in "
				  "feature_list_dense_missing_assumed_empty or "
				  "feature_list_dense_defaults?",
				  name.data, (int)s->key.len, s->key.data);
	while (l->is_present && example_row(&rows, &row)) {
		if (row.type != MU_DT_INVALID && row.type != s->type)
			return mu_invalid(err,
					  "%sFeature list: %.*s, Index: %lld.  Data types don't "
					  "match. Expected type: %s",
					  name.data, (int)s->key.len, s->key.data, (long long)l->n,
					  mu_dtype_name(s->type));
		l->n++;
		l->values += row.count;
		l->longest = row.count > l->longest ? row.count : l->longest;
	}
	return rows.bad ? mu_invalid(err, "Could not parse feature list %.*s", (int)s->key.len,
				     s->key.data)
			: 0;
}

static int sequence_read_all(struct kernel_call *c, struct sequence *q, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct features *f = &q->context;
	int rc = 0;

	MU_RETURN_IF_ERROR(features_begin(f, in->shape.count, err));
	q->lists = calloc((size_t)f->examples * q->n_slots + 1, sizeof *q->lists);
	if (!q->lists)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "no memory for %lld examples of %u lists", (long long)f->examples,
			       q->n_slots);
	for (unsigned i = 0; i < q->n_slots; i++)
		q->slots[i].lists = q->lists + (int64_t)i * f->examples;
	for (f->current = 0; f->current < f->examples && !rc; f->current++) {
		struct mu_span m = elems_span(in, f->current);
		if (!example_read_sequence(m, features_add_value, f, record_list, q))
			return mu_invalid(err, "Could not parse sequence example %lld",
					  (long long)f->current);
		rc = features_check(f, err);
		for (unsigned i = 0; i < q->n_slots && !rc; i++)
			rc = count_rows(q, &q->slots[i], f->current, err);
	}
	return rc;
}

/* ---- output tensors ---- */

/* The totals of a slot: the most rows of an example, all values, and the most values of a row.
 * *rows: the rows of all examples. */
static struct list sum_lists(const struct sequence *q, const struct list_slot *s, int64_t *rows)
{
	struct list sum = {0};

	*rows = 0;
	for (int64_t i = 0; i < q->context.examples; i++) {
		*rows += s->lists[i].n;
		sum.values += s->lists[i].values;
		sum.n = s->lists[i].n > sum.n ? s->lists[i].n : sum.n;
		sum.longest = s->lists[i].longest > sum.longest ? s->lists[i].longest : sum.longest;
	}
	return sum;
}

static int output_sparse(const struct sequence *q, const struct list_slot *s, struct mu_tensor *out,
			 struct mu_err *err)
{
	struct mu_tensor *indices = &out[q->first_output + s->at],
			 *values = indices + q->n[FEATURE_SPARSE],
			 *shape = values + q->n[FEATURE_SPARSE];
	int cols = q->context.single ? 2 : 3;
	int64_t rows, at = 0, dims[3];
	const struct list total = sum_lists(q, s, &rows);
	struct mu_shape flat = mu_shape_vec(total.values), vec = mu_shape_vec(cols), index_shape;

	MU_RETURN_IF_ERROR(mu_shape_set(&index_shape, 2, (int64_t[]){total.values, cols}, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(indices, MU_INT64, &index_shape, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(values, s->type, &flat, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(shape, MU_INT64, &vec, err));
	int64_t *to = indices->data;
	for (int64_t i = 0; i < q->context.examples; i++) {
		struct mu_pb m = mu_pb_of(s->lists[i].rows);
		struct example_list row;
		for (int64_t r = 0; r < s->lists[i].n && example_row(&m, &row); r++) {
			example_values(&row, values, at);
			at += row.count;
			for (int64_t k = 0; k < row.count; k++, to += cols)
				memcpy(to, (int64_t[]){i, r, k} + (3 - cols),
				       (size_t)cols * sizeof *to);
		}
	}
	dims[0] = q->context.examples;
	dims[1] = total.n;
	dims[2] = total.longest;
	memcpy(shape->data, dims + (3 - cols), (size_t)cols * sizeof *dims);
	return 0;
}

static int output_lengths(const struct sequence *q, const struct list_slot *s,
			  struct mu_tensor *out, struct mu_err *err)
{
	struct mu_shape vec =
	    q->context.single ? mu_shape_scalar() : mu_shape_vec(q->context.examples);

	MU_RETURN_IF_ERROR(mu_tensor_new(out, MU_INT64, &vec, err));
	for (int64_t i = 0; i < vec.count; i++)
		MU_DATA(int64_t, out)[i] = s->lists[i].n;
	return 0;
}

/* The shape of the output of a dense slot, and the number of elements of a row. */
static int dense_shape(const struct sequence *q, const struct list_slot *s, int64_t longest,
		       struct mu_shape *out, int64_t *row_elements, struct mu_err *err)
{
	const struct mu_pshape *want = &q->shapes->shapes[s->at];
	const int64_t leading_dims[] = {q->context.examples, longest};
	struct mu_shape row;

	if (want->rank < 0)
		return mu_invalid(err, "feature_list_dense_shapes[%u] is not known", s->at);
	for (int i = 0; i < want->rank; i++)
		if (want->dim[i] < 0)
			return mu_invalid(err, "feature_list_dense_shapes[%u] is not known: %s",
					  s->at, mu_pshape_str(want));
	MU_RETURN_IF_ERROR(mu_shape_set(&row, want->rank, want->dim, err));
	*row_elements = row.count;
	return mu_shape_splice(out, &row, 0, 0, 2 - q->context.single,
			       leading_dims + q->context.single, err);
}

static int output_dense(const struct sequence *q, const struct list_slot *s, struct mu_tensor *out,
			struct mu_err *err)
{
	int64_t rows, row_elements = 0;
	const struct list total = sum_lists(q, s, &rows);
	struct mu_shape shape;

	out += q->first_output + 3 * q->n[FEATURE_SPARSE] + s->at;
	MU_RETURN_IF_ERROR(dense_shape(q, s, total.n, &shape, &row_elements, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(out, s->type, &shape, err));
	elems_zero(s->type, out->data, 0, shape.count);
	for (int64_t i = 0; i < q->context.examples; i++) {
		struct mu_pb m = mu_pb_of(s->lists[i].rows);
		struct example_list row;
		for (int64_t r = 0; r < s->lists[i].n && example_row(&m, &row); r++) {
			if (row.count != row_elements) {
				MU_AUTO_BUF name = {0};

				features_put_name(&name, &q->context, i);
				return mu_invalid(
				    err,
				    "%sKey: %.*s, Index: %lld.  Number of values != expected.  "
				    "values size: %lld but output shape: %s",
				    name.data, (int)s->key.len, s->key.data, (long long)r,
				    (long long)row.count, mu_pshape_str(&q->shapes->shapes[s->at]));
			}
			example_values(&row, out, (i * total.n + r) * row_elements);
		}
	}
	return q->has_lengths ? output_lengths(q, s, out + q->n[FEATURE_DENSE], err) : 0;
}

static int output_ragged(const struct sequence *q, const struct list_slot *s, struct mu_tensor *out,
			 struct mu_err *err)
{
	struct mu_tensor *values =
	    &out[q->first_output + 3 * q->n[FEATURE_SPARSE] + 2 * q->n[FEATURE_DENSE] + s->at];
	struct mu_tensor *outer = values + q->n[FEATURE_RAGGED],
			 *inner = outer + q->n[FEATURE_RAGGED];
	enum mu_dtype t = q->splits->types[s->at];
	int64_t rows, at = 0, n_rows = 0, n = q->context.examples;
	const struct list total = sum_lists(q, s, &rows);
	struct mu_shape flat = mu_shape_vec(total.values);

	MU_RETURN_IF_ERROR(mu_tensor_new(values, s->type, &flat, err));
	MU_RETURN_IF_ERROR(features_splits(outer, t, q->context.single ? -1 : n, rows, err));
	MU_RETURN_IF_ERROR(features_splits(inner, t, rows, total.values, err));
	for (int64_t i = 0; i <= n; i++) {
		if (!q->context.single)
			mu_tensor_set_int(outer, i, n_rows);
		if (i == n)
			break;
		struct mu_pb m = mu_pb_of(s->lists[i].rows);
		struct example_list row;
		for (int64_t r = 0; r < s->lists[i].n && example_row(&m, &row); r++) {
			example_values(&row, values, at);
			at += row.count;
			mu_tensor_set_int(inner, ++n_rows, at);
		}
	}
	return 0;
}

static int output_lists(const struct sequence *q, struct mu_tensor *out, struct mu_err *err)
{
	static int (*const output_by_kind[FEATURE_KINDS])(
	    const struct sequence *, const struct list_slot *, struct mu_tensor *,
	    struct mu_err *) = {[FEATURE_SPARSE] = output_sparse,
				[FEATURE_DENSE] = output_dense,
				[FEATURE_RAGGED] = output_ragged};

	for (unsigned i = 0; i < q->n_slots; i++)
		MU_RETURN_IF_ERROR(output_by_kind[q->slots[i].kind](q, &q->slots[i], out, err));
	return 0;
}

/* ---- the ops ---- */

/* Fails if the batch is empty and the context has a dense feature, as TensorFlow does. */
static int check_empty_batch(const struct features *f, int64_t examples, struct mu_err *err)
{
	for (unsigned i = 0; !examples && i < f->n_slots; i++) {
		const struct feature_slot *s = &f->slots[i];

		if (s->kind == FEATURE_DENSE)
			return mu_invalid(err,
					  "Inconsistent max number of elements for feature %.*s: "
					  "expected shape %s, but found 0",
					  (int)s->key.len, s->key.data,
					  mu_pshape_str(&f->shapes->shapes[s->at]));
	}
	return 0;
}

static int sequence_parse(struct kernel_call *c, struct sequence *q, const struct request *a,
			  missing_allowed_fn *missing_allowed, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int rc;

	if (in->shape.rank > 1)
		return mu_invalid(
		    err, "Expected serialized to be a scalar or vector of strings, got shape %s",
		    mu_shape_str(&in->shape));
	q->context.single = q->context.one_split = !in->shape.rank;
	q->context.names = kernel_in(c, 1);
	MU_RETURN_IF_ERROR(parse_sequence_request(c, q, a, missing_allowed, err));
	MU_RETURN_IF_ERROR(check_empty_batch(&q->context, in->shape.count, err));
	MU_RETURN_IF_ERROR(sequence_read_all(c, q, err));
	MU_AUTO_FREE struct mu_tensor *out = MU_NEW_ARRAY(struct mu_tensor, c->n_out + 1);
	if (!(rc = features_make_outputs(&q->context, out, err)))
		rc = output_lists(q, out, err);
	return kernel_out_take_all(c, out, rc);
}

static void parse_sequence_start(struct sequence *q, bool lengths)
{
	*q = (struct sequence){.has_lengths = lengths};
	features_init(&q->context);
	mu_map_init(&q->by_key);
}

static bool missing_allowed_by_attr(const struct kernel_call *c, struct mu_span key, unsigned at)
{
	const struct mu_attr *a = mu_node_attr(c->node, "feature_list_dense_missing_assumed_empty");

	for (unsigned i = 0; a && i < a->n; i++)
		if (mu_span_eq(a->ss[i], key))
			return true;
	return false;
}

static int parse_sequence(struct kernel_call *c, struct mu_err *err)
{
	struct request a = {.first_default = 2};
	SEQUENCE_AUTO q;

	parse_sequence_start(&q, true);
	for (int part = 0; part < PARTS; part++)
		for (int kind = 0; kind < FEATURE_RAGGED; kind++) {
			const struct mu_attr *k = mu_node_attr(c->node, names[part][kind].keys);
			a.keys[part][kind] = (struct keys){k && k->n ? k->ss : NULL, k ? k->n : 0};
		}
	return sequence_parse(c, &q, &a, missing_allowed_by_attr, err);
}

enum { V2_KEYS = 2, V2_MISSING_ASSUMED_EMPTY = 8, V2_DEFAULTS };
static bool missing_allowed_by_index(const struct kernel_call *c, struct mu_span key, unsigned at)
{
	const struct mu_tensor *t = kernel_in(c, V2_MISSING_ASSUMED_EMPTY);

	return at < t->shape.count && MU_DATA(bool, t)[at];
}

static int parse_sequence_v2(struct kernel_call *c, struct mu_err *err)
{
	struct request a = {.first_default = V2_DEFAULTS};
	SEQUENCE_AUTO q;
	int rc = 0;

	parse_sequence_start(&q, true);
	for (unsigned i = 0; i < PARTS * FEATURE_KINDS && !rc; i++) {
		struct keys *keys = &a.keys[i / FEATURE_KINDS][i % FEATURE_KINDS];
		rc = features_read_keys(&q.context, c, V2_KEYS + i, 1, &keys->k, &keys->n, err);
	}
	if (rc)
		return rc;
	if (kernel_in(c, V2_MISSING_ASSUMED_EMPTY)->shape.count !=
	    a.keys[PART_LISTS][FEATURE_DENSE].n)
		return mu_invalid(
		    err,
		    "feature_list_dense_missing_assumed_empty has %lld elements for %u dense lists",
		    (long long)kernel_in(c, V2_MISSING_ASSUMED_EMPTY)->shape.count,
		    a.keys[PART_LISTS][FEATURE_DENSE].n);
	return sequence_parse(c, &q, &a, missing_allowed_by_index, err);
}

static bool missing_allowed_by_input(const struct kernel_call *c, struct mu_span key, unsigned at)
{
	for (int64_t i = 0; i < kernel_in(c, 1)->shape.count; i++)
		if (mu_span_eq(elems_span(kernel_in(c, 1), i), key))
			return true;
	return false;
}

static int parse_single_sequence(struct kernel_call *c, struct mu_err *err)
{
	struct request a = {.first_default = 2};
	SEQUENCE_AUTO q;

	parse_sequence_start(&q, false);
	for (unsigned i = 0; i < PARTS * FEATURE_RAGGED; i++) {
		static const char *const numbers[] = {"Ncontext_sparse", "Ncontext_dense",
						      "Nfeature_list_sparse",
						      "Nfeature_list_dense"};
		int64_t n = args_attr_int(c->node, numbers[i], 0);
		if (n < 0 || n > c->n_in)
			return mu_invalid(err, "%s is wrong", numbers[i]);
		for (unsigned k = 0; k < n; k++)
			if (kernel_in(c, a.first_default + k)->shape.rank)
				return mu_invalid(
				    err, "Expected %s_keys[%u] to be a scalar, got shape: %s",
				    numbers[i] + 1, k,
				    mu_shape_str(&kernel_in(c, a.first_default + k)->shape));
		struct keys *keys = &a.keys[i / FEATURE_RAGGED][i % FEATURE_RAGGED];
		MU_RETURN_IF_ERROR(features_read_keys(&q.context, c, a.first_default, (unsigned)n,
						      &keys->k, &keys->n, err));
		a.first_default += (unsigned)n;
	}
	return sequence_parse(c, &q, &a, missing_allowed_by_input, err);
}

static const struct kernel rows[] = {
    {"ParseSequenceExample", KERNEL_EXPENSIVE, .run = parse_sequence},
    {"ParseSequenceExampleV2", KERNEL_EXPENSIVE, .run = parse_sequence_v2},
    {"ParseSingleSequenceExample", .run = parse_single_sequence},
};
KERNEL_TABLE(io_parse_sequence, rows)
