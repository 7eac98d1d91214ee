/* SPDX-License-Identifier: Apache-2.0 */
/* ParseExample and its kin: records to tensors.
 *
 * Every message is read once: a feature that was asked for leaves its list (type, count, bytes) in
 * a table of slots by examples.  The outputs are then made slot by slot, each of its right size
 * from the start.  The three ops differ in where keys stand and whether there is a batch. */
#include "lib/base/map.h"
#include "task/kernels/args.h"
#include "task/kernels/elems.h"
#include "task/kernels/example.h"
#include "task/kernels/kernel_table.h"

enum kind { SPARSE, DENSE, RAGGED, KINDS };

struct slot {
	struct mu_span key;
	enum kind kind;
	enum mu_dtype type;
	unsigned at;                /* among those of its kind */
	struct slot *next;          /* another one with the same key */
	struct example_list *lists; /* one for each example */
};

struct request {
	struct mu_arena arena;
	struct mu_map by_key;
	struct slot *slots;
	struct example_list *lists;
	unsigned n[KINDS], n_slots;
	unsigned first_default; /* input */
	const struct mu_attr *shapes, *splits;
	int64_t examples, current;
	bool single;
};

static void request_fini(struct request *r)
{
	mu_map_fini(&r->by_key);
	mu_arena_fini(&r->arena);
	free(r->lists);
}
#define REQUEST_AUTO __attribute__((cleanup(request_fini))) struct request

/* ---- what is asked for ---- */

static int add_slots(struct request *r, const struct mu_node *node, enum kind kind,
		     const struct mu_span *keys, unsigned n, const char *types_attr,
		     struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(node, types_attr);

	if ((types ? types->n : 0) != n)
		return mu_fail(err, MU_INVALID_ARGUMENT, "attribute '%s' has %u types for %u keys",
			       types_attr, types ? types->n : 0, n);
	r->n[kind] = n;
	for (unsigned i = 0; i < n; i++) {
		struct slot *s = &r->slots[r->n_slots++];
		*s = (struct slot){.key = keys[i], .kind = kind, .type = types->types[i], .at = i};
		if (s->type != MU_FLOAT && s->type != MU_INT64 && s->type != MU_STRING)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Key: %.*s.  a feature is float, int64 or string, not %s",
				       (int)s->key.len, s->key.data, mu_dtype_name(s->type));
		s->next = mu_map_put_n(&r->by_key, s->key.data, s->key.len, s);
	}
	return 0;
}

/* Keys that are an input's elements, or those of several scalars in a row. */
static int keys_of(struct kernel_call *c, unsigned from, unsigned inputs, struct request *r,
		   struct mu_span **out, unsigned *n, struct mu_err *err)
{
	int64_t total = 0;

	for (unsigned i = from; i < from + inputs; i++) {
		int rc = args_type(c, i, MU_STRING, err);
		if (rc)
			return rc;
		total += kernel_in(c, i)->shape.count;
	}
	if (total > UINT16_MAX)
		return mu_fail(err, MU_INVALID_ARGUMENT, "more than %d keys", UINT16_MAX);
	*out = MU_ARENA_ARRAY(&r->arena, struct mu_span, (size_t)total + 1);
	*n = 0;
	for (unsigned i = from; i < from + inputs; i++)
		for (int64_t k = 0; k < kernel_in(c, i)->shape.count; k++)
			(*out)[(*n)++] = elems_span(kernel_in(c, i), k);
	return 0;
}

static int read_batch_request(struct kernel_call *c, struct request *r, bool v2, struct mu_err *err)
{
	unsigned given[KINDS] = {1, 1, 1}, n[KINDS] = {0}, at = 2;
	struct mu_span *keys[KINDS];
	int rc;

	if (!v2) {
		int64_t sparse = args_attr_int(c->node, "Nsparse", -1);
		int64_t dense = args_attr_int(c->node, "Ndense", -1);
		if (sparse < 0 || dense < 0 || sparse + dense + 2 > c->n_in)
			return mu_fail(err, MU_INVALID_ARGUMENT, "Nsparse and Ndense are wrong");
		given[SPARSE] = (unsigned)sparse;
		given[DENSE] = (unsigned)dense;
		given[RAGGED] = 0;
	}
	for (int k = 0; k < KINDS; at += given[k], k++)
		if ((rc = keys_of(c, at, given[k], r, &keys[k], &n[k], err)))
			return rc;
	r->first_default = at;
	r->slots = MU_ARENA_ARRAY(&r->arena, struct slot, n[0] + n[1] + n[2] + 1);
	r->splits = mu_node_attr(c->node, "ragged_split_types");
	if ((rc = add_slots(r, c->node, SPARSE, keys[SPARSE], n[SPARSE], "sparse_types", err)) ||
	    (rc = add_slots(r, c->node, DENSE, keys[DENSE], n[DENSE], "Tdense", err)))
		return rc;
	return v2 ? add_slots(r, c->node, RAGGED, keys[RAGGED], n[RAGGED], "ragged_value_types",
			      err)
		  : 0;
}

static int read_single_request(struct kernel_call *c, struct request *r, struct mu_err *err)
{
	const struct mu_attr *sparse = mu_node_attr(c->node, "sparse_keys");
	const struct mu_attr *dense = mu_node_attr(c->node, "dense_keys");
	unsigned n_sparse = sparse ? sparse->n : 0, n_dense = dense ? dense->n : 0;

	r->first_default = 1;
	r->slots = MU_ARENA_ARRAY(&r->arena, struct slot, n_sparse + n_dense + 1);
	int rc = add_slots(r, c->node, SPARSE, n_sparse ? sparse->ss : NULL, n_sparse,
			   "sparse_types", err);
	return rc ? rc
		  : add_slots(r, c->node, DENSE, n_dense ? dense->ss : NULL, n_dense, "Tdense",
			      err);
}

static int check_request(struct kernel_call *c, struct request *r, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	unsigned outs = 3 * r->n[SPARSE] + r->n[DENSE] + 2 * r->n[RAGGED];

	r->shapes = mu_node_attr(c->node, "dense_shapes");
	if (c->n_out != outs || c->n_in != r->first_default + r->n[DENSE] ||
	    (r->shapes ? r->shapes->n : 0) != r->n[DENSE] ||
	    (r->n[RAGGED] && (!r->splits || r->splits->n != r->n[RAGGED])))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "keys, types, shapes and defaults are not as many");
	if (in->dtype != MU_STRING || in->shape.rank > 1)
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "Expected serialized to be a scalar or vector of strings, got shape %s",
		    mu_shape_str(&in->shape));
	r->single = !in->shape.rank;
	r->examples = in->shape.count;
	r->lists = calloc((size_t)r->examples * r->n_slots + 1, sizeof *r->lists);
	if (!r->lists)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "no memory for %lld examples of %u features", (long long)r->examples,
			       r->n_slots);
	for (unsigned i = 0; i < r->n_slots; i++)
		r->slots[i].lists = r->lists + (int64_t)i * r->examples;
	return 0;
}

/* ---- reading ---- */

static void note(void *arg, struct mu_span key, const struct example_list *list)
{
	struct request *r = arg;

	for (struct slot *s = mu_map_get_n(&r->by_key, key.data, key.len); s; s = s->next)
		s->lists[r->current] = *list;
}

static int read_examples(struct kernel_call *c, struct request *r, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);

	for (int64_t i = 0; i < r->examples; i++) {
		struct mu_span message = elems_span(in, i);
		r->current = i;
		if (!example_read(message, note, r))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Could not parse example input, value: '%.*s'",
				       (int)(message.len < 64 ? message.len : 64), message.data);
		for (unsigned k = 0; k < r->n_slots; k++) {
			const struct slot *s = &r->slots[k];
			const struct example_list *l = &s->lists[i];
			if (l->type != MU_DT_INVALID && l->type != s->type)
				return mu_fail(err, MU_INVALID_ARGUMENT,
					       "Key: %.*s, Index: %lld.  Data types don't match. "
					       "Data type: %s but expected type: %s",
					       (int)s->key.len, s->key.data, (long long)i,
					       mu_dtype_name(l->type), mu_dtype_name(s->type));
		}
	}
	return 0;
}

/* ---- giving ---- */

static int give_sparse(struct kernel_call *c, struct request *r, const struct slot *s,
		       struct mu_err *err)
{
	int64_t total = 0, longest = 0, at = 0;
	struct mu_tensor *indices, *values, *shape;
	int cols = r->single ? 1 : 2, rc;

	for (int64_t i = 0; i < r->examples; i++) {
		total += s->lists[i].count;
		longest = s->lists[i].count > longest ? s->lists[i].count : longest;
	}
	struct mu_shape flat = mu_shape_vec(total), sides = mu_shape_vec(cols), pairs;
	if ((rc = mu_shape_set(&pairs, 2, (int64_t[]){total, cols}, err)) ||
	    (rc = kernel_out(c, s->at, MU_INT64, &pairs, &indices, err)) ||
	    (rc = kernel_out(c, r->n[SPARSE] + s->at, s->type, &flat, &values, err)) ||
	    (rc = kernel_out(c, 2 * r->n[SPARSE] + s->at, MU_INT64, &sides, &shape, err)))
		return rc;
	int64_t *to = indices->data;
	for (int64_t i = 0; i < r->examples; i++) {
		example_values(&s->lists[i], values, at);
		at += s->lists[i].count;
		for (int64_t k = 0; k < s->lists[i].count; k++) {
			if (!r->single)
				*to++ = i;
			*to++ = k;
		}
	}
	MU_DATA(int64_t, shape)[0] = r->examples;
	MU_DATA(int64_t, shape)[cols - 1] = longest;
	return 0;
}

static int give_ragged(struct kernel_call *c, struct request *r, const struct slot *s,
		       struct mu_err *err)
{
	unsigned port = 3 * r->n[SPARSE] + r->n[DENSE] + s->at;
	enum mu_dtype t = r->splits->types[s->at];
	struct mu_shape flat = mu_shape_vec(0),
			ends = mu_shape_vec(r->single ? 0 : r->examples + 1);
	struct mu_tensor *values, *splits;
	int64_t total = 0, at = 0;
	int rc;

	for (int64_t i = 0; i < r->examples; i++)
		total += s->lists[i].count;
	flat = mu_shape_vec(total);
	if ((t != MU_INT32 && t != MU_INT64) || (t == MU_INT32 && total > INT32_MAX))
		return mu_fail(err, MU_INVALID_ARGUMENT, "row splits of %lld values do not fit %s",
			       (long long)total, mu_dtype_name(t));
	if ((rc = kernel_out(c, port, s->type, &flat, &values, err)) ||
	    (rc = kernel_out(c, port + r->n[RAGGED], t, &ends, &splits, err)))
		return rc;
	for (int64_t i = 0; i <= r->examples; i++) {
		if (!r->single && t == MU_INT64)
			MU_DATA(int64_t, splits)[i] = at;
		else if (!r->single)
			MU_DATA(int32_t, splits)[i] = (int32_t)at;
		if (i < r->examples) {
			example_values(&s->lists[i], values, at);
			at += s->lists[i].count;
		}
	}
	return 0;
}

/* The shape of a dense feature's output, and how many elements one example has in it. */
static int dense_shape(const struct request *r, const struct slot *s, bool *grows,
		       struct mu_shape *out, int64_t *each, struct mu_err *err)
{
	const struct mu_pshape *want = &r->shapes->shapes[s->at];
	struct mu_shape one = mu_shape_scalar();
	int64_t longest = 0;
	int rc = 0;

	*grows = want->rank > 0 && want->dim[0] < 0;
	for (int i = *grows; i < want->rank && !rc; i++)
		rc = want->dim[i] < 0 ? mu_fail(err, MU_INVALID_ARGUMENT,
						"dense_shapes[%u] is not known beyond its first "
						"dimension: %s",
						s->at, mu_pshape_str(want))
				      : mu_shape_push(&one, want->dim[i], err);
	if (rc || want->rank < 0)
		return rc ? rc
			  : mu_fail(err, MU_INVALID_ARGUMENT, "dense_shapes[%u] is not known",
				    s->at);
	for (int64_t i = 0; *grows && i < r->examples; i++) {
		int64_t n = s->lists[i].count;
		if (n && (!one.count || n % one.count))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Key: %.*s, Index: %lld.  Number of %s values is not a "
				       "multiple of stride length. values size: %lld but output "
				       "shape: %s",
				       (int)s->key.len, s->key.data, (long long)i,
				       mu_dtype_name(s->type), (long long)n, mu_pshape_str(want));
		longest = n && n / one.count > longest ? n / one.count : longest;
	}
	*out = mu_shape_scalar();
	if (!r->single)
		rc = mu_shape_push(out, r->examples, err);
	if (!rc && *grows)
		rc = mu_shape_push(out, longest, err);
	for (int i = 0; i < one.rank && !rc; i++)
		rc = mu_shape_push(out, one.dim[i], err);
	*each = *grows ? longest * one.count : one.count;
	return rc;
}

static int check_default(const struct request *r, const struct slot *s, const struct mu_tensor *d,
			 bool grows, struct mu_err *err)
{
	const struct mu_pshape *want = &r->shapes->shapes[s->at];

	if (d->dtype != s->type)
		return mu_fail(err, MU_INVALID_ARGUMENT, "dense_defaults[%u] is %s, not %s", s->at,
			       mu_dtype_name(d->dtype), mu_dtype_name(s->type));
	if (grows && d->shape.count != 1)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "dense_shape[%u] is a variable length shape: %s, therefore "
			       "def_value[%u] must contain a single element (the padding element)."
			       "  But its shape is: %s",
			       s->at, mu_pshape_str(want), s->at, mu_shape_str(&d->shape));
	if (!grows && d->shape.count && !mu_shape_matches(&d->shape, want))
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "def_value[%u].shape() == %s is not compatible with dense_shapes_[%u]"
		    " == %s",
		    s->at, mu_shape_str(&d->shape), s->at, mu_pshape_str(want));
	return 0;
}

static int give_dense(struct kernel_call *c, struct request *r, const struct slot *s,
		      struct mu_err *err)
{
	const struct mu_tensor *otherwise = kernel_in(c, r->first_default + s->at);
	struct mu_tensor *out;
	struct mu_shape shape;
	int64_t each = 0;
	bool grows = false;
	int rc;

	if ((rc = dense_shape(r, s, &grows, &shape, &each, err)) ||
	    (rc = check_default(r, s, otherwise, grows, err)) ||
	    (rc = kernel_out(c, 3 * r->n[SPARSE] + s->at, s->type, &shape, &out, err)))
		return rc;
	for (int64_t i = 0; i < r->examples; i++) {
		const struct example_list *l = &s->lists[i];
		int64_t at = i * each, n = l->count;
		if (l->type != MU_DT_INVALID && (grows || n == each))
			example_values(l, out, at);
		if (grows)
			for (; n < each; n++)
				elems_copy(s->type, out->data, at + n, otherwise->data, 0, 1);
		else if (l->type == MU_DT_INVALID && otherwise->shape.count == each && each)
			elems_copy(s->type, out->data, at, otherwise->data, 0, each);
		else if (l->type == MU_DT_INVALID)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Name: <unknown>, Key: %.*s, Index: %lld.  Feature: %.*s "
				       "(data type: %s) is required but could not be found.",
				       (int)s->key.len, s->key.data, (long long)i, (int)s->key.len,
				       s->key.data, mu_dtype_name(s->type));
		else if (n != each)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Key: %.*s, Index: %lld.  Number of %s values != expected.  "
				       "values size: %lld but output shape: %s",
				       (int)s->key.len, s->key.data, (long long)i,
				       mu_dtype_name(s->type), (long long)n,
				       mu_pshape_str(&r->shapes->shapes[s->at]));
	}
	return 0;
}

static int give_all(struct kernel_call *c, struct request *r, struct mu_err *err)
{
	static int (*const give[KINDS])(struct kernel_call *, struct request *, const struct slot *,
					struct mu_err *) = {
	    [SPARSE] = give_sparse, [DENSE] = give_dense, [RAGGED] = give_ragged};
	int rc = check_request(c, r, err);

	if (!rc)
		rc = read_examples(c, r, err);
	for (unsigned i = 0; i < r->n_slots && !rc; i++)
		rc = give[r->slots[i].kind](c, r, &r->slots[i], err);
	return rc;
}

static int parse_batch(struct kernel_call *c, bool v2, struct mu_err *err)
{
	REQUEST_AUTO r = {0};

	mu_arena_init(&r.arena);
	mu_map_init(&r.by_key);
	int rc = args_type(c, 1, MU_STRING, err);
	if (!rc && kernel_in(c, 1)->shape.count &&
	    kernel_in(c, 1)->shape.count != kernel_in(c, 0)->shape.count)
		rc = mu_fail(err, MU_INVALID_ARGUMENT,
			     "Expected len(names) == len(serialized), but got: %lld vs. %lld",
			     (long long)kernel_in(c, 1)->shape.count,
			     (long long)kernel_in(c, 0)->shape.count);
	if (!rc && !v2)
		rc = args_rank(c, 0, 1, err);
	if (!rc)
		rc = read_batch_request(c, &r, v2, err);
	return rc ? rc : give_all(c, &r, err);
}

static int parse_example(struct kernel_call *c, struct mu_err *err)
{
	return parse_batch(c, false, err);
}

static int parse_example_v2(struct kernel_call *c, struct mu_err *err)
{
	return parse_batch(c, true, err);
}

static int parse_single_example(struct kernel_call *c, struct mu_err *err)
{
	REQUEST_AUTO r = {0};

	mu_arena_init(&r.arena);
	mu_map_init(&r.by_key);
	int rc = args_rank(c, 0, 0, err);
	if (!rc)
		rc = read_single_request(c, &r, err);
	return rc ? rc : give_all(c, &r, err);
}

static const struct kernel rows[] = {
    {"ParseExample", KERNEL_EXPENSIVE, .run = parse_example},
    {"ParseExampleV2", KERNEL_EXPENSIVE, .run = parse_example_v2},
    {"ParseSingleExample", .run = parse_single_example},
};
KERNEL_TABLE(parse_example, rows)
