/* SPDX-License-Identifier: Apache-2.0 */
/* The op table: rows of text (lib/ops/ops_*.def) that are parsed once per process into struct
 * mu_op_def and never freed.
 *
 * A malformed row is logged and its op is unknown; tests/lib/op_def_test.c detects such rows.
 */
#include "lib/ops/op_def.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/ops/shape.h"

struct row {
	const char *name, *in, *out, *attrs;
	unsigned flags;
	int (*shape)(struct mu_shape_ctx *c, struct mu_err *err);
};

#define OP(name, in, out, attrs, flags, shape) {#name, in, out, attrs, flags, shape},
static const struct row rows[] = {
#include "lib/ops/ops.def"
};
#undef OP

static struct mu_arena arena;
static struct mu_op_def *defs;
static unsigned n_defs;
static struct mu_map by_name;

/* ---- words ---- */

/* Returns the next word of *at, up to a space, in the arena; NULL at the end. */
static char *next_word(const char **at)
{
	const char *s = *at;

	while (*s == ' ')
		s++;
	size_t n = strcspn(s, " ");
	*at = s + n;
	return n ? mu_arena_strndup(&arena, s, n) : NULL;
}

static unsigned count_words(const char *text)
{
	unsigned n = 0;

	for (const char *s = text; *s; n++) {
		s += strspn(s, " ");
		size_t len = strcspn(s, " ");
		if (!len)
			break;
		s += len;
	}
	return n;
}

/* ---- attributes ---- */

/* Named sets of types in the braces of an attribute, in the order of TensorFlow's lists. */
static const struct {
	const char *name, *types;
} type_sets[] = {
    {"index", "int32,int64"},
    {"complex", "complex64,complex128"},
    {"floating", "bfloat16,half,float,double"},
    {"real", "float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64"},
    {"number", "float,double,int32,uint8,int16,int8,complex64,int64,qint8,quint8,qint32,bfloat16,"
	       "qint16,quint16,uint16,complex128,half,uint32,uint64"},
};

static const struct {
	const char *name, *list;
	enum mu_attr_kind kind;
} kinds[] = {
    {"string", "list(string)", MU_ATTR_STRING}, {"int", "list(int)", MU_ATTR_INT},
    {"float", "list(float)", MU_ATTR_FLOAT},    {"bool", "list(bool)", MU_ATTR_BOOL},
    {"type", "list(type)", MU_ATTR_TYPE},       {"shape", "list(shape)", MU_ATTR_SHAPE},
    {"tensor", "list(tensor)", MU_ATTR_TENSOR}, {"func", "list(func)", MU_ATTR_FUNC},
};

static enum mu_attr_kind attr_kind_named(const char *s, size_t n)
{
	for (unsigned i = 0; i < MU_COUNT(kinds); i++) {
		if (strlen(kinds[i].name) == n && memcmp(kinds[i].name, s, n) == 0)
			return kinds[i].kind;
		if (strlen(kinds[i].list) == n && memcmp(kinds[i].list, s, n) == 0)
			return kinds[i].kind | MU_ATTR_LIST;
	}
	return MU_ATTR_NONE;
}

static bool parse_shape(struct mu_pshape *p, const char *s)
{
	*p = (struct mu_pshape){.rank = -1};
	if (strcmp(s, "?") == 0)
		return true;
	if (*s++ != '[')
		return false;
	p->rank = 0;
	while (*s != ']') {
		char *end;
		int64_t d = strtoll(s, &end, 10);
		if (end == s || p->rank == MU_MAX_RANK)
			return false;
		p->dim[p->rank++] = d;
		s = *end == ',' ? end + 1 : end;
	}
	return true;
}

static bool parse_scalar(struct mu_attr *a, enum mu_attr_kind kind, char *s)
{
	a->kind = kind;
	switch ((int)kind) {
	case MU_ATTR_STRING:
		a->s = mu_span_of(s);
		return true;
	case MU_ATTR_INT:
		a->i = strtoll(s, NULL, 10);
		return true;
	case MU_ATTR_FLOAT:
		a->f = strtof(s, NULL);
		return true;
	case MU_ATTR_BOOL:
		a->b = strcmp(s, "true") == 0;
		return a->b || strcmp(s, "false") == 0;
	case MU_ATTR_TYPE:
		a->type = mu_dtype_from_name(s);
		return a->type != MU_DT_INVALID;
	case MU_ATTR_SHAPE:
		a->shape = MU_ARENA_NEW(&arena, struct mu_pshape);
		return parse_shape(a->shape, s);
	case MU_ATTR_FUNC:
		a->func = MU_ARENA_NEW(&arena, struct mu_func);
		a->func->name = s;
		return true;
	default:
		return false;
	}
}

/* Parses "[1,2]", a list of numbers, types or strings. */
static bool parse_list(struct mu_attr *a, enum mu_attr_kind kind, char *s)
{
	size_t len = strlen(s);

	if (len < 2 || s[0] != '[' || s[len - 1] != ']')
		return false;
	a->kind = MU_ATTR_LIST;
	if (len == 2)
		return true;
	s[len - 1] = ',';
	for (char *p = s + 1; *p; p++)
		a->n += *p == ',';
	a->kind = kind;
	a->is = NULL;
	if (kind == MU_ATTR_LIST + MU_ATTR_INT)
		a->is = MU_ARENA_ARRAY(&arena, int64_t, a->n);
	else if (kind == MU_ATTR_LIST + MU_ATTR_FLOAT)
		a->fs = MU_ARENA_ARRAY(&arena, float, a->n);
	else if (kind == MU_ATTR_LIST + MU_ATTR_TYPE)
		a->types = MU_ARENA_ARRAY(&arena, enum mu_dtype, a->n);
	else if (kind == MU_ATTR_LIST + MU_ATTR_STRING)
		a->ss = MU_ARENA_ARRAY(&arena, struct mu_span, a->n);
	else
		return false;
	unsigned i = 0;
	s++;
	for (char *w; i < a->n && (w = strsep(&s, ","));) {
		struct mu_attr element = {0};
		if (!parse_scalar(&element, kind - MU_ATTR_LIST, w))
			return false;
		if (kind == MU_ATTR_LIST + MU_ATTR_INT)
			a->is[i++] = element.i;
		else if (kind == MU_ATTR_LIST + MU_ATTR_FLOAT)
			a->fs[i++] = element.f;
		else if (kind == MU_ATTR_LIST + MU_ATTR_TYPE)
			a->types[i++] = element.type;
		else
			a->ss[i++] = element.s;
	}
	return i == a->n;
}

static const char *expand_type_set(const char *word)
{
	for (unsigned i = 0; i < MU_COUNT(type_sets); i++)
		if (strcmp(type_sets[i].name, word) == 0)
			return type_sets[i].types;
	return word;
}

/* Parses "float,index}" and returns the end of it; NULL if it is malformed. */
static char *parse_allowed(struct mu_attr_def *a, char *s)
{
	enum mu_attr_kind kind = a->kind | MU_ATTR_LIST;
	char *end = strchr(s, '}'), *list = "[";

	if (!end)
		return NULL;
	*end = '\0';
	for (char *word; (word = strsep(&s, ","));)
		list = mu_arena_printf(&arena, "%s%s,", list, expand_type_set(word));
	list[strlen(list) - 1] = ']';
	return parse_list(&a->allowed, kind, list) ? end + 1 : NULL;
}

/* Parses `name:kind{allowed}>=minimum=default`. */
static bool parse_attr(struct mu_attr_def *a, char *word)
{
	char *kind = strchr(word, ':');

	if (!kind)
		return false;
	*kind++ = '\0';
	a->name = word;
	char *rest = kind + strcspn(kind, "{>=");
	char *int32_text = memmem(kind, (size_t)(rest - kind), "int32", strlen("int32"));
	if (int32_text) { /* an int otherwise */
		a->is_int32 = true;
		memmove(int32_text + strlen("int"), int32_text + strlen("int32"),
			strlen(int32_text + strlen("int32")) + 1);
		rest -= strlen("32");
	}
	a->kind = rest == kind ? MU_ATTR_TYPE : attr_kind_named(kind, (size_t)(rest - kind));
	if (a->kind == MU_ATTR_NONE || (*rest == '{' && !(rest = parse_allowed(a, rest + 1))))
		return false;
	if (rest[0] == '>' && rest[1] == '=') {
		a->has_minimum = true;
		a->minimum = strtoll(rest + 2, &rest, 10);
	}
	if (*rest == '\0')
		return true;
	a->has_default = true;
	return *rest++ == '=' && (a->kind >= MU_ATTR_LIST ? parse_list(&a->value, a->kind, rest)
							  : parse_scalar(&a->value, a->kind, rest));
}

/* ---- arguments ---- */

static bool parse_type(const struct mu_op_def *op, struct mu_arg_def *a, char *name)
{
	const struct mu_attr_def *attr = mu_op_attr(op, name);

	if (attr) {
		a->type_attr = attr->name;
		return attr->kind == MU_ATTR_TYPE;
	}
	a->type = mu_dtype_from_name(name);
	return a->type != MU_DT_INVALID;
}

static bool parse_arg(const struct mu_op_def *op, struct mu_arg_def *a, char *word)
{
	char *type = strchr(word, ':');

	if (!type)
		return false;
	*type++ = '\0';
	a->name = word;
	if ((a->shape = strchr(type, '['))) {
		if (!strchr(a->shape, ']'))
			return false;
		type[a->shape++ - type] = '\0';
	}
	char *star = strchr(type, '*');
	if (star) {
		*star = '\0';
		a->number_attr = type;
		const struct mu_attr_def *n = mu_op_attr(op, type);
		if (!n || n->kind != MU_ATTR_INT)
			return false;
		type = star + 1;
	}
	size_t len = strlen(type);
	bool list = len > 6 && memcmp(type, "list(", 5) == 0;
	if (list || (len > 5 && memcmp(type, "ref(", 4) == 0)) {
		a->is_ref = !list;
		type[len - 1] = '\0';
		type += list ? 5 : 4;
	}
	if (list) {
		const struct mu_attr_def *t = mu_op_attr(op, type);
		a->kind = MU_ARG_TYPE_LIST;
		a->type_attr = type;
		return t && t->kind == MU_ATTR_LIST + MU_ATTR_TYPE && !star;
	}
	if (!parse_type(op, a, type))
		return false;
	a->kind = star ? MU_ARG_REPEAT : a->type_attr ? MU_ARG_ATTR : MU_ARG_FIXED;
	return true;
}

static bool parse_args(const struct mu_op_def *op, const char *text, const struct mu_arg_def **out,
		       unsigned *count)
{
	unsigned n = count_words(text);
	struct mu_arg_def *list = MU_ARENA_ARRAY(&arena, struct mu_arg_def, n);

	for (unsigned i = 0; i < n; i++)
		if (!parse_arg(op, &list[i], next_word(&text)))
			return false;
	*out = list;
	*count = n;
	return true;
}

static bool parse_row(struct mu_op_def *op, const struct row *r)
{
	const char *at = r->attrs;

	op->name = r->name;
	op->flags = r->flags;
	op->shape = r->shape;
	op->n_attrs = count_words(r->attrs);
	struct mu_attr_def *attrs = MU_ARENA_ARRAY(&arena, struct mu_attr_def, op->n_attrs);
	op->attrs = attrs;
	for (unsigned i = 0; i < op->n_attrs; i++)
		if (!parse_attr(&attrs[i], next_word(&at)))
			return false;
	return parse_args(op, r->in, &op->inputs, &op->n_inputs) &&
	       parse_args(op, r->out, &op->outputs, &op->n_outputs);
}

static void build(void)
{
	mu_arena_init(&arena);
	mu_map_init(&by_name);
	defs = MU_NEW_ARRAY(struct mu_op_def, MU_COUNT(rows));
	for (unsigned i = 0; i < MU_COUNT(rows); i++) {
		struct mu_op_def *op = &defs[n_defs];
		if (!parse_row(op, &rows[i]) || mu_map_get(&by_name, rows[i].name)) {
			mu_error("ops", "the row of op %s is malformed or duplicated",
				 rows[i].name);
			*op = (struct mu_op_def){0};
			continue;
		}
		mu_map_put(&by_name, op->name, op);
		n_defs++;
	}
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

const struct mu_op_def *mu_op_find(const char *name)
{
	pthread_once(&once, build);
	return mu_map_get(&by_name, name);
}

const struct mu_op_def *mu_op_at(unsigned i)
{
	pthread_once(&once, build);
	return i < n_defs ? &defs[i] : NULL;
}

enum mu_attr_kind mu_attr_kind_named(struct mu_span name)
{
	return attr_kind_named(name.data, name.len);
}

const char *mu_attr_kind_name(enum mu_attr_kind kind)
{
	for (unsigned i = 0; i < MU_COUNT(kinds); i++) {
		if (kinds[i].kind == kind)
			return kinds[i].name;
		if ((kinds[i].kind | MU_ATTR_LIST) == kind)
			return kinds[i].list;
	}
	return kind == MU_ATTR_LIST ? "list(any)" : "placeholder";
}

unsigned mu_op_rows(void)
{
	return MU_COUNT(rows);
}
