/* SPDX-License-Identifier: Apache-2.0 */
/* Function libraries and signatures.  The FunctionDef message is stored unchanged.  It is needed to
 * write the library and to read the body (function_body.c). */
#include "lib/graph/library.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/pb.h"

enum { L_FUNCTION = 1, L_GRADIENT = 2 };
enum { F_SIGNATURE = 1, F_CONTROL_RET = 6 };
enum { N_ATTR = 5, NAMED_ATTR = 2 };
enum { S_NAME = 1, S_INPUT = 2, S_OUTPUT = 3, S_ATTR = 4, S_STATEFUL = 17 };
enum { A_NAME = 1, A_TYPE = 3, A_TYPE_ATTR = 4, A_NUMBER_ATTR = 5, A_LIST_ATTR = 6, A_REF = 16 };
enum { D_NAME = 1, D_TYPE = 2, D_DEFAULT = 3 };
enum { MERGE_INTERVAL = 64 }; /* versions */

struct mu_library {
	_Atomic unsigned refs;
	unsigned version;
	bool is_merged; /* contains the entries of all previous versions */
	struct mu_library *previous;
	struct mu_arena arena;
	struct mu_map functions, gradients;
	struct mu_attr **defaults; /* for mu_attr_fini */
	unsigned n_defaults;
};

struct mu_library *mu_library_ref(struct mu_library *l)
{
	if (l)
		atomic_fetch_add(&l->refs, 1);
	return l;
}

void mu_library_unref(struct mu_library *l)
{
	while (l && atomic_fetch_sub(&l->refs, 1) == 1) {
		struct mu_library *previous = l->previous;
		for (unsigned i = 0; i < l->n_defaults; i++)
			mu_attr_fini(l->defaults[i]);
		free(l->defaults);
		mu_map_fini(&l->functions);
		mu_map_fini(&l->gradients);
		mu_arena_fini(&l->arena);
		free(l);
		l = previous;
	}
}

/* Returns the next older version to search; NULL if `l` has all entries. */
static const struct mu_library *older_version(const struct mu_library *l)
{
	return l->is_merged ? NULL : l->previous;
}

const struct mu_function *mu_library_find(const struct mu_library *l, const char *name)
{
	const struct mu_function *f = NULL;

	for (; l && !f; l = older_version(l))
		f = mu_map_get(&l->functions, name);
	return f;
}

static const char *gradient_name(const struct mu_library *l, const char *name)
{
	const char *gradient = NULL;

	for (; l && !gradient; l = older_version(l))
		gradient = mu_map_get(&l->gradients, name);
	return gradient;
}

const struct mu_function *mu_library_gradient(const struct mu_library *l, const char *name)
{
	const char *gradient = gradient_name(l, name);

	return gradient ? mu_library_find(l, gradient) : NULL;
}

struct entry {
	const char *name;
	const struct mu_function *function; /* NULL: a gradient */
	const char *gradient;
};

static int by_kind_and_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return !x->function != !y->function ? (x->function ? -1 : 1) : strcmp(x->name, y->name);
}

/* Sorts by name, so that the output does not depend on the order of the extensions. */
void mu_library_write(const struct mu_library *l, struct mu_buf *out)
{
	struct entry *entries = NULL;
	size_t n = 0, cap = 0;

	for (const struct mu_library *at = l; at; at = older_version(at))
		cap += at->functions.count + at->gradients.count;
	entries = mu_xcalloc(cap + 1, sizeof *entries);
	for (const struct mu_library *at = l; at; at = older_version(at)) {
		mu_map_each (&at->functions, s)
			entries[n++] = (struct entry){s->key, s->value, NULL};
		mu_map_each (&at->gradients, s)
			entries[n++] = (struct entry){s->key, NULL, s->value};
	}
	qsort(entries, n, sizeof *entries, by_kind_and_name);
	for (size_t i = 0; i < n; i++) {
		if (entries[i].function) {
			mu_pb_put_bytes(out, L_FUNCTION, entries[i].function->proto);
			continue;
		}
		size_t gradient_at = mu_pb_begin(out, L_GRADIENT);
		mu_pb_put_str(out, 1, entries[i].name);
		mu_pb_put_str(out, 2, entries[i].gradient);
		mu_pb_end(out, gradient_at);
	}
	free(entries);
}

/* ---- signatures ---- */

static const char *copy_string(struct mu_library *l, struct mu_span s)
{
	return mu_arena_strndup(&l->arena, s.data, s.len);
}

static int read_arg(struct mu_library *l, struct mu_span proto, struct mu_arg_def *a)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;

	a->name = "";
	while (mu_pb_next(&m, &f)) {
		bool text = f.type == MU_PB_BYTES;
		if (text && f.number == A_NAME)
			a->name = copy_string(l, f.bytes);
		else if (f.number == A_TYPE && mu_dtype_valid((long)f.value))
			a->type = (enum mu_dtype)f.value;
		else if (text && f.number == A_TYPE_ATTR && f.bytes.len)
			a->type_attr = copy_string(l, f.bytes);
		else if (text && f.number == A_NUMBER_ATTR && f.bytes.len)
			a->number_attr = copy_string(l, f.bytes);
		else if (text && f.number == A_LIST_ATTR && f.bytes.len) {
			a->kind = MU_ARG_TYPE_LIST;
			a->type_attr = copy_string(l, f.bytes);
		} else if (f.number == A_REF)
			a->is_ref = f.value != 0;
	}
	if (a->kind != MU_ARG_TYPE_LIST)
		a->kind = a->number_attr ? MU_ARG_REPEAT
			  : a->type_attr ? MU_ARG_ATTR
					 : MU_ARG_FIXED;
	return m.bad || (a->kind == MU_ARG_FIXED && a->type == MU_DT_INVALID);
}

static int read_attr(struct mu_library *l, struct mu_span proto, struct mu_attr_def *a,
		     size_t *budget, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	int rc = 0;

	a->name = "";
	while (!rc && mu_pb_next(&m, &f)) {
		if (f.type != MU_PB_BYTES)
			continue;
		if (f.number == D_NAME)
			a->name = copy_string(l, f.bytes);
		else if (f.number == D_TYPE)
			a->kind = mu_attr_kind_named(f.bytes);
		else if (f.number == D_DEFAULT && !a->has_default) {
			rc = mu_attr_parse(&a->value, f.bytes, &l->arena, budget, err);
			a->has_default = !rc;
		}
	}
	if (a->has_default) {
		l->defaults = mu_xrealloc(l->defaults, (l->n_defaults + 1) * sizeof *l->defaults);
		l->defaults[l->n_defaults++] = &a->value;
	}
	return rc;
}

static int read_signature(struct mu_library *l, struct mu_function *fn, struct mu_span proto,
			  struct mu_err *err)
{
	struct mu_arg_def *in =
	    MU_ARENA_ARRAY(&l->arena, struct mu_arg_def, mu_pb_count(proto, S_INPUT));
	struct mu_arg_def *out =
	    MU_ARENA_ARRAY(&l->arena, struct mu_arg_def, mu_pb_count(proto, S_OUTPUT));
	struct mu_attr_def *attrs =
	    MU_ARENA_ARRAY(&l->arena, struct mu_attr_def, mu_pb_count(proto, S_ATTR));
	struct mu_pb m = mu_pb_of(proto);
	struct mu_op_def *d = &fn->def;
	size_t budget = mu_tensor_limit;
	struct mu_pb_field f;
	int rc = 0;

	d->inputs = in;
	d->outputs = out;
	d->attrs = attrs;
	while (!rc && mu_pb_next(&m, &f)) {
		if (f.number == S_STATEFUL && f.value)
			d->flags |= MU_OP_STATEFUL;
		if (f.type != MU_PB_BYTES)
			continue;
		if (f.number == S_NAME)
			fn->name = d->name = copy_string(l, f.bytes);
		else if (f.number == S_INPUT)
			rc = read_arg(l, f.bytes, &in[d->n_inputs++]);
		else if (f.number == S_OUTPUT)
			rc = read_arg(l, f.bytes, &out[d->n_outputs++]);
		else if (f.number == S_ATTR)
			rc = read_attr(l, f.bytes, &attrs[d->n_attrs++], &budget, err);
	}
	if (rc < 0)
		return mu_wrap(err, "function %s", fn->name ? fn->name : "");
	if (rc || m.bad || !fn->name || !*fn->name)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the signature of function '%.80s' is malformed",
			       fn->name ? fn->name : "");
	return 0;
}

/* ---- comparison ---- */

/* Hashes a FunctionDef independently of the order of nodes and map entries, which TensorFlow writes
 * in any order.  The field number identifies a map at each depth: attr in a NodeDef, attr in a
 * NameAttrList.  A list of strings has the number of the latter, so its order is ignored too. */
static uint64_t digest(struct mu_span proto, unsigned depth)
{
	uint32_t map = depth == 1 ? N_ATTR : NAMED_ATTR;
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	uint64_t sum = 0, position = 0;

	while (depth < MU_PB_MAX_DEPTH && mu_pb_next(&m, &f)) {
		if (depth == 0 && f.number > F_CONTROL_RET) /* hints for the optimizer */
			continue;
		bool is_unordered = depth == 0 || f.number == map;
		uint64_t parts[] = {f.number, is_unordered ? 0 : ++position, f.value,
				    digest(f.bytes, depth + 1)};
		sum += mu_hash(parts, sizeof parts, 0);
	}
	/* Most strings are not messages. */
	return m.bad || m.at < m.end ? mu_hash(proto.data, proto.len, 0) : sum;
}

static bool is_same_function(struct mu_span a, struct mu_span b)
{
	return mu_span_eq(a, b) || digest(a, 0) == digest(b, 0);
}

/* ---- extension ---- */

static int add_function(struct mu_library *l, struct mu_span proto, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_span signature = {"", 0};
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f))
		if (f.number == F_SIGNATURE && f.type == MU_PB_BYTES)
			signature = f.bytes;
	if (m.bad)
		return mu_fail(err, MU_INVALID_ARGUMENT, "a function is malformed or truncated");
	struct mu_function *fn = MU_ARENA_NEW(&l->arena, struct mu_function);
	MU_RETURN_IF_ERROR(read_signature(l, fn, signature, err));
	const struct mu_function *existing = mu_library_find(l, fn->name);
	if (existing && is_same_function(existing->proto, proto))
		return 0;
	if (existing || mu_op_find(fn->name))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Cannot add function '%s' because %s with the same name already "
			       "exists.",
			       fn->name, existing ? "a different function" : "an op");
	fn->proto = (struct mu_span){copy_string(l, proto), proto.len};
	mu_map_put(&l->functions, fn->name, fn);
	return 0;
}

static int add_gradient(struct mu_library *l, struct mu_span proto, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	const char *function = NULL, *gradient = NULL;

	while (mu_pb_next(&m, &f)) {
		if (f.type == MU_PB_BYTES && f.number == 1)
			function = copy_string(l, f.bytes);
		if (f.type == MU_PB_BYTES && f.number == 2)
			gradient = copy_string(l, f.bytes);
	}
	if (m.bad)
		return mu_fail(err, MU_INVALID_ARGUMENT, "a gradient is malformed or truncated");
	const char *existing = function ? gradient_name(l, function) : NULL;
	if (existing && gradient && strcmp(existing, gradient) != 0)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Cannot assign gradient function '%s' to '%s' because it already "
			       "has gradient function '%s'",
			       gradient, function, existing);
	if (function && gradient && !existing)
		mu_map_put(&l->gradients, function, (void *)gradient);
	return 0;
}

static void add_missing(struct mu_map *to, const struct mu_map *from)
{
	mu_map_each (from, s)
		if (!mu_map_get_n(to, s->key, s->len))
			mu_map_put_n(to, s->key, s->len, s->value);
}

/* Adds the entries of all previous versions.  l has a reference to them, so they stay valid. */
static void merge_previous(struct mu_library *l)
{
	for (const struct mu_library *at = l->previous; at; at = older_version(at)) {
		add_missing(&l->functions, &at->functions);
		add_missing(&l->gradients, &at->gradients);
	}
	l->is_merged = true;
}

int mu_library_extend(struct mu_library **l, struct mu_span library, struct mu_err *err)
{
	struct mu_library *next = MU_NEW(struct mu_library);
	struct mu_pb m = mu_pb_of(library);
	struct mu_pb_field f;
	int rc = 0;

	atomic_init(&next->refs, 1);
	next->previous = mu_library_ref(*l);
	next->version = *l ? (*l)->version + 1 : 0;
	mu_arena_init(&next->arena);
	mu_map_init(&next->functions);
	mu_map_init(&next->gradients);
	while (!rc && mu_pb_next(&m, &f)) {
		if (f.number == L_FUNCTION && f.type == MU_PB_BYTES)
			rc = add_function(next, f.bytes, err);
		else if (f.number == L_GRADIENT && f.type == MU_PB_BYTES)
			rc = add_gradient(next, f.bytes, err);
	}
	if (!rc && m.bad)
		rc = mu_fail(err, MU_INVALID_ARGUMENT, "the function library is truncated");
	if (rc || !(next->functions.count + next->gradients.count)) {
		mu_library_unref(next);
		return rc;
	}
	if (next->version % MERGE_INTERVAL == 0)
		merge_previous(next);
	mu_library_unref(*l);
	*l = next;
	return 0;
}
