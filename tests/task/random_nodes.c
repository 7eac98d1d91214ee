/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/task/random_nodes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LIST = 5, MAX_DEPTH = 2 };

struct maker {
	struct mu_graph *g;
	struct dice *d;
	struct mu_arena a;
	unsigned n_names, depth;
	struct mu_tensor common_shape; /* its shape is that of about half of the inputs */
};

unsigned dice(struct dice *d, unsigned sides)
{
	d->state = d->state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((d->state >> 33) % sides);
}

/* ---- values ---- */

static enum mu_dtype any_type(struct dice *d)
{
	static const enum mu_dtype often[] = {MU_FLOAT, MU_FLOAT,  MU_FLOAT,   MU_INT32,
					      MU_INT64, MU_DOUBLE, MU_BOOL,    MU_STRING,
					      MU_HALF,  MU_UINT8,  MU_RESOURCE};

	return dice(d, 20) ? often[dice(d, MU_COUNT(often))] : (enum mu_dtype)dice(d, 24);
}

static int64_t any_int(struct dice *d)
{
	static const int64_t edge_cases[] = {-1,        -2,        INT32_MAX,        INT32_MIN,
					     INT64_MAX, INT64_MIN, (int64_t)1 << 40, 1000000};

	return dice(d, 5) ? (int64_t)dice(d, 5) : edge_cases[dice(d, MU_COUNT(edge_cases))];
}

static const char *any_text(struct dice *d)
{
	static const char *const texts[] = {"",      "a",     "VALID",  "SAME",     "NHWC",
					    "NCHW",  "float", "%s%n%d", "\xff\xfe", "[1]",
					    "1e999", "min",   "odd_op", "(",        "linear"};

	return texts[dice(d, MU_COUNT(texts))];
}

static float any_float(struct dice *d)
{
	static const float edge_cases[] = {0,         -0.0f, 1,     -1,     INFINITY,
					   -INFINITY, NAN,   1e38f, 1e-40f, 0.5f};

	return edge_cases[dice(d, MU_COUNT(edge_cases))];
}

static void any_shape(struct dice *d, struct mu_pshape *s)
{
	*s = (struct mu_pshape){.rank = (int)dice(d, 6) - 1};
	for (int i = 0; i < s->rank; i++)
		s->dim[i] = dice(d, 30) ? (int)dice(d, 5) - 1 : any_int(d);
}

static void fill(struct dice *d, struct mu_tensor *t)
{
	for (int64_t i = 0; i < t->shape.count; i++)
		switch (t->dtype) {
		case MU_STRING: {
			const char *s = any_text(d);
			mu_string_set(&MU_DATA(struct mu_string, t)[i], s, strlen(s));
			break;
		}
		case MU_FLOAT:
			MU_DATA(float, t)[i] = any_float(d);
			break;
		case MU_DOUBLE:
			MU_DATA(double, t)[i] = any_float(d);
			break;
		case MU_INT32:
			MU_DATA(int32_t, t)[i] = (int32_t)any_int(d);
			break;
		case MU_INT64:
			MU_DATA(int64_t, t)[i] = any_int(d);
			break;
		case MU_BOOL:
			MU_DATA(uint8_t, t)[i] = (uint8_t)dice(d, 2);
			break;
		case MU_RESOURCE:
			MU_DATA(struct mu_handle, t)[i].name = mu_xstrdup(any_text(d));
			break;
		default:
			memset((char *)t->data + (size_t)i * mu_dtype_size(t->dtype),
			       (int)dice(d, 256), mu_dtype_size(t->dtype));
		}
}

static bool any_tensor(struct dice *d, enum mu_dtype type, struct mu_tensor *t)
{
	static const int64_t dims[] = {0, 1, 1, 2, 2, 2, 3, 3, 4, 7};
	struct mu_shape s = mu_shape_scalar();
	int rank = (int)dice(d, 6);
	int64_t all[6];

	if (rank == 5 && dice(d, 3))
		rank = 0;
	for (int i = 0; i < rank; i++)
		all[i] = dims[dice(d, MU_COUNT(dims))];
	if (mu_shape_set(&s, rank, all, NULL) || mu_tensor_new(t, type, &s, NULL))
		return false;
	fill(d, t);
	return true;
}

/* ---- attributes ---- */

/* Replaces a value that the op does not allow. */
static void draw_allowed(struct dice *d, const struct mu_attr_def *def, int64_t *i,
			 enum mu_dtype *type, struct mu_span *text)
{
	const struct mu_attr *allowed = &def->allowed;

	if (def->has_minimum && def->kind == MU_ATTR_INT && *i < def->minimum)
		*i = def->minimum + (int64_t)dice(d, 3);
	if (allowed->kind == MU_ATTR_LIST + MU_ATTR_TYPE)
		*type = allowed->types[dice(d, allowed->n)];
	else if (allowed->kind)
		*text = allowed->ss[dice(d, allowed->n)];
}

/* Sets an attribute to a random value; the op allows most of them. */
static void set_attr(struct maker *m, struct mu_node *n, const struct mu_attr_def *def)
{
	enum mu_attr_kind kind = def->kind;
	enum mu_attr_kind one = kind >= MU_ATTR_LIST ? kind - MU_ATTR_LIST : kind;
	struct mu_attr v = {.kind = kind, .n = kind >= MU_ATTR_LIST ? dice(m->d, MAX_LIST) : 0};
	bool is_valid = dice(m->d, 40) != 0;
	enum mu_dtype types[MAX_LIST];
	struct mu_pshape shapes[MAX_LIST];
	struct mu_tensor tensor = {0};
	struct mu_span texts[MAX_LIST];
	int64_t ints[MAX_LIST];
	float floats[MAX_LIST];
	bool bools[MAX_LIST];
	struct mu_func func = {.name = any_text(m->d)};

	for (unsigned i = 0; i < MAX_LIST; i++) {
		types[i] = any_type(m->d);
		any_shape(m->d, &shapes[i]);
		texts[i] = mu_span_of(any_text(m->d));
		ints[i] = any_int(m->d);
		floats[i] = any_float(m->d);
		bools[i] = dice(m->d, 2);
		if (is_valid)
			draw_allowed(m->d, def, &ints[i], &types[i], &texts[i]);
	}
	if (is_valid && def->has_minimum && v.n < def->minimum && def->minimum <= MAX_LIST)
		v.n = (unsigned)(one == kind ? 0 : def->minimum);
	bool list = kind >= MU_ATTR_LIST;
	switch (one) {
	case MU_ATTR_STRING:
		if (list)
			v.ss = texts;
		else
			v.s = texts[0];
		break;
	case MU_ATTR_INT:
		if (list)
			v.is = ints;
		else
			v.i = ints[0];
		break;
	case MU_ATTR_FLOAT:
		if (list)
			v.fs = floats;
		else
			v.f = floats[0];
		break;
	case MU_ATTR_BOOL:
		if (list)
			v.bs = bools;
		else
			v.b = bools[0];
		break;
	case MU_ATTR_TYPE:
		if (list)
			v.types = types;
		else
			v.type = types[0];
		break;
	case MU_ATTR_SHAPE:
		if (list)
			v.shapes = shapes;
		else
			v.shape = shapes;
		break;
	case MU_ATTR_FUNC:
		if (list)
			return;
		v.func = &func;
		break;
	case MU_ATTR_TENSOR:
		if (list || !any_tensor(m->d, any_type(m->d), &tensor))
			return;
		v.tensor = &tensor;
		break;
	default:
		return;
	}
	mu_node_set_attr(m->g, n, def->name, &v);
	if (one == MU_ATTR_TENSOR)
		mu_tensor_unref(&tensor);
}

/* ---- nodes ---- */

static struct mu_node *add(struct maker *m, const char *op)
{
	struct mu_node *n = NULL;
	char name[32];

	snprintf(name, sizeof name, m->n_names ? "odd_%u" : "odd_op", m->n_names);
	m->n_names++;
	mu_graph_add(m->g, name, op, &n, NULL);
	return n;
}

static void attributes(struct maker *m, struct mu_node *n, const struct mu_op_def *op)
{
	for (unsigned i = 0; i < op->n_attrs; i++)
		if (!op->attrs[i].has_default || dice(m->d, 4) == 0)
			set_attr(m, n, &op->attrs[i]);
}

static void set_type(struct maker *m, struct mu_node *n, const char *attr, enum mu_dtype t)
{
	struct mu_attr a = {.kind = MU_ATTR_TYPE, .type = t};

	mu_node_set_attr(m->g, n, attr, &a);
}

static bool input_tensor(struct maker *m, enum mu_dtype type, struct mu_tensor *t)
{
	if (!mu_tensor_is_set(&m->common_shape) || dice(m->d, 2))
		return any_tensor(m->d, type, t);
	if (mu_tensor_new(t, type, &m->common_shape.shape, NULL))
		return false;
	fill(m->d, t);
	return true;
}

static struct mu_node *constant(struct maker *m, enum mu_dtype type)
{
	struct mu_tensor t = {0};
	struct mu_attr value = {.kind = MU_ATTR_TENSOR, .tensor = &t};
	struct mu_node *n;

	if (!input_tensor(m, type, &t))
		return NULL;
	n = add(m, "Const");
	set_type(m, n, "dtype", type);
	mu_node_set_attr(m->g, n, "value", &value);
	mu_tensor_unref(&t);
	return n;
}

/* The reference of a variable, which usually has an assigned value. */
static struct mu_node *reference(struct maker *m, enum mu_dtype type)
{
	struct mu_pshape any = {.rank = -1};
	struct mu_attr shape = {.kind = MU_ATTR_SHAPE, .shape = &any};
	struct mu_attr no = {.kind = MU_ATTR_BOOL};
	struct mu_node *v = add(m, "VariableV2"), *value, *assign;

	set_type(m, v, "dtype", type);
	mu_node_set_attr(m->g, v, "shape", &shape);
	if (!dice(m->d, 5) || !(value = constant(m, type)))
		return v;
	assign = add(m, "Assign");
	set_type(m, assign, "T", type);
	mu_node_set_attr(m->g, assign, "validate_shape", &no);
	mu_node_set_inputs(m->g, assign, (struct mu_input[]){{v, 0}, {value, 0}}, 2, NULL, 0);
	return assign;
}

static void inputs(struct maker *m, struct mu_node *n);

/* A random op that creates a resource and returns its handle. */
static struct mu_node *handle(struct maker *m)
{
	const struct mu_op_def *makers[128], *op;
	unsigned n_makers = 0;
	struct mu_node *n;

	for (unsigned i = 0; (op = mu_op_at(i)) && n_makers < MU_COUNT(makers); i++)
		if (op->n_outputs && op->outputs[0].kind == MU_ARG_FIXED &&
		    op->outputs[0].type == MU_RESOURCE)
			makers[n_makers++] = op;
	if (!n_makers || m->depth == MAX_DEPTH)
		return constant(m, MU_RESOURCE);
	op = makers[dice(m->d, n_makers)];
	n = add(m, op->name);
	attributes(m, n, op);
	m->depth++;
	inputs(m, n);
	m->depth--;
	return n;
}

static void inputs(struct maker *m, struct mu_node *n)
{
	struct mu_input in[64];
	enum mu_dtype *types;
	unsigned count, k = 0;

	if (!n->def || mu_op_input_types(n, &m->a, &types, &count, NULL) || count > 60)
		return;
	if (!dice(m->d, 40) && count)
		count--;
	for (unsigned i = 0; i < count; i++) {
		enum mu_dtype type = dice(m->d, 40) ? types[i] : any_type(m->d);
		struct mu_node *from;
		if (type == MU_RESOURCE)
			from = handle(m);
		else if (mu_dtype_is_ref(type))
			from = reference(m, mu_dtype_base(type));
		else
			from = constant(m, type);
		if (from)
			in[k++] = (struct mu_input){from, 0};
	}
	mu_node_set_inputs(m->g, n, in, k, NULL, 0);
}

/* Usually sets valid attributes and a matching input shape for convolutions and pools: lists of
 * four or five small numbers and a padding.  Uniform random values are rarely valid. */
static void set_window_attrs(struct maker *m, struct mu_node *n, const struct mu_op_def *op)
{
	static const char *const lists[] = {"strides", "ksize", "dilations"};
	static const enum mu_dtype reals[] = {MU_FLOAT, MU_DOUBLE, MU_HALF};
	const unsigned rank = strstr(op->name, "3D") ? 5 : 4;
	struct mu_attr padding = {.kind = MU_ATTR_STRING};
	int64_t ints[5], dims[5];
	struct mu_shape s;

	if (!mu_op_attr(op, "padding") || !mu_op_attr(op, "strides") || !dice(m->d, 4))
		return;
	padding.s = mu_span_of(dice(m->d, 2) ? "VALID" : "SAME");
	mu_node_set_attr(m->g, n, "padding", &padding);
	set_type(m, n, "T", reals[dice(m->d, MU_COUNT(reals))]);
	for (unsigned k = 0; k < MU_COUNT(lists); k++) {
		struct mu_attr v = {.kind = MU_ATTR_LIST + MU_ATTR_INT, .n = rank, .is = ints};
		for (unsigned i = 0; i < rank; i++)
			ints[i] = i && i + 1 < rank ? 1 + dice(m->d, 3) : 1;
		if (mu_op_attr(op, lists[k]))
			mu_node_set_attr(m->g, n, lists[k], &v);
	}
	for (unsigned i = 0; i < rank; i++)
		dims[i] = 1 + dice(m->d, 4);
	mu_tensor_unref(&m->common_shape);
	if (!mu_shape_set(&s, (int)rank, dims, NULL))
		mu_tensor_new(&m->common_shape, MU_BOOL, &s, NULL);
}

/* Sets an equation of Einsum; any_text() never returns one. */
static void set_equation(struct maker *m, struct mu_node *n, const struct mu_op_def *op)
{
	static const char *const equations[] = {
	    "ab,bc->ac",  "ab,ab->a",  "...,...->...", "a...,...a->...aa",
	    "abc,cba->b", "aab,b->ab", "ab->ba",       "aab->baab",
	    "...a->a...", "abc->",     ",->",          "->a"};
	struct mu_attr v = {.kind = MU_ATTR_STRING};

	if (!mu_op_attr(op, "equation") || !dice(m->d, 4))
		return;
	v.s = mu_span_of(equations[dice(m->d, MU_COUNT(equations))]);
	mu_node_set_attr(m->g, n, "equation", &v);
}

struct mu_graph *random_node_graph(const struct mu_op_def *op, struct dice *d)
{
	struct maker m = {.g = mu_graph_new(), .d = d};
	struct mu_node *n;

	mu_arena_init(&m.a);
	any_tensor(d, MU_BOOL, &m.common_shape);
	n = add(&m, op->name);
	attributes(&m, n, op);
	set_window_attrs(&m, n, op);
	set_equation(&m, n, op);
	inputs(&m, n);
	mu_tensor_unref(&m.common_shape);
	mu_arena_fini(&m.a);
	return m.g;
}
