/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a GraphDef in two passes: nodes, then inputs, because a Merge refers to its NextIteration
 * before that is defined.  A failure removes the new nodes; their memory stays in the arena
 * until the graph is freed. */

#include "lib/base/pb.h"
#include "lib/graph/graph_index.h"
#include "lib/graph/library.h"

enum { F_NODE = 1, F_LIBRARY = 2, F_VERSIONS = 4 };
enum { N_NAME = 1, N_OP = 2, N_INPUT = 3, N_DEVICE = 4, N_ATTR = 5 };

static bool name_char(unsigned char c, bool first)
{
	if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	    c == '.' || c == '_')
		return true;
	return !first && (c == '-' || c == '/' || c == '\\' || c == '>');
}

/* Names may begin with '_', because masters add nodes such as "_recv_x_0" to the graphs. */
static bool is_node_name(struct mu_span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!name_char((unsigned char)s.data[i], i == 0))
			return false;
	return s.len > 0;
}

struct counts {
	unsigned inputs, attrs;
	struct mu_span name, op, device;
};

static int count_fields(struct counts *c, struct mu_span proto, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;

	*c = (struct counts){.name = {"", 0}, .op = {"", 0}, .device = {"", 0}};
	while (mu_pb_next(&m, &f)) {
		if (f.type != MU_PB_BYTES)
			continue;
		if (f.number == N_NAME)
			c->name = f.bytes;
		else if (f.number == N_OP)
			c->op = f.bytes;
		else if (f.number == N_DEVICE)
			c->device = f.bytes;
		c->inputs += f.number == N_INPUT;
		c->attrs += f.number == N_ATTR;
	}
	if (m.bad)
		return mu_fail(err, MU_INVALID_ARGUMENT, "a node is malformed or truncated");
	if (!is_node_name(c->name))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Illegal op name '%.*s'\n\t [[{{node %.*s}}]]",
			       c->name.len < 200 ? (int)c->name.len : 200, c->name.data,
			       c->name.len < 200 ? (int)c->name.len : 200, c->name.data);
	if (!is_node_name(c->op))
		return mu_fail(err, MU_INVALID_ARGUMENT, "node '%.*s' has no op", (int)c->name.len,
			       c->name.data);
	return 0;
}

static int parse_attr(struct mu_graph *g, struct mu_node *n, struct mu_span proto, size_t *budget,
		      struct mu_err *err)
{
	struct mu_node_attr *a = &n->attrs[n->n_attrs];
	struct mu_span name, value;
	int rc;

	if (!mu_attr_entry_parse(proto, &name, &value))
		return mu_fail(err, MU_INVALID_ARGUMENT, "an attribute is malformed or truncated");
	/* Inferred shapes are ignored: optimizers write invalid sizes such as -3. */
	if (mu_span_is(name, "_output_shapes") || mu_span_is(name, "_input_shapes"))
		return 0;
	a->name = mu_arena_strndup(&g->arena, name.data, name.len);
	if ((rc = mu_attr_parse(&a->value, value, &g->arena, budget, err)))
		return mu_wrap(err, "attribute '%s'", a->name);
	n->n_attrs++;
	return 0;
}

static int fail_duplicate(const struct mu_node *existing, unsigned first_new, struct mu_err *err)
{
	if (existing->id < first_new)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "GraphDef argument to Extend includes node '%s', which was created "
			       "by a previous call to Create or Extend in this session.",
			       existing->name);
	return mu_fail(err, MU_INVALID_ARGUMENT, "Node '%s' is not unique", existing->name);
}

/* Adds the node with its attributes, and sets n->user to the texts of its inputs. */
static int parse_node(struct mu_graph *g, struct mu_span proto, unsigned first_new, size_t *budget,
		      struct mu_err *err)
{
	struct counts c;
	struct mu_node *n;
	int rc = count_fields(&c, proto, err);

	if (rc)
		return rc;
	struct mu_node *existing = mu_graph_index_find(g, c.name.data, c.name.len);
	if (existing)
		return fail_duplicate(existing, first_new, err);
	const char *name = mu_arena_strndup(&g->arena, c.name.data, c.name.len);
	const char *op = mu_arena_strndup(&g->arena, c.op.data, c.op.len);
	n = mu_graph_append(g, name, op);
	n->device = mu_arena_strndup(&g->arena, c.device.data, c.device.len);
	n->attrs = MU_ARENA_ARRAY(&g->arena, struct mu_node_attr, c.attrs);
	n->inputs = MU_ARENA_ARRAY(&g->arena, struct mu_input, c.inputs);
	struct mu_span *texts = MU_ARENA_ARRAY(&g->arena, struct mu_span, (size_t)c.inputs + 1);
	n->user = texts;
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	while (mu_pb_next(&m, &f)) {
		if (f.type != MU_PB_BYTES)
			continue;
		if (f.number == N_INPUT)
			*texts++ = f.bytes;
		if (f.number == N_ATTR && (rc = parse_attr(g, n, f.bytes, budget, err)))
			return mu_wrap(err, "Node '%s'", n->name);
	}
	return 0;
}

int mu_graph_parse_node(struct mu_graph *g, struct mu_span proto, size_t *budget,
			struct mu_err *err)
{
	return parse_node(g, proto, 0, budget, err);
}

static int fail_input_name(const struct mu_node *n, struct mu_span text, struct mu_err *err)
{
	return mu_fail(err, MU_INVALID_ARGUMENT, "Illegal op input name '%.*s'\n\t [[{{node %s}}]]",
		       (int)(text.len < 200 ? text.len : 200), text.data, n->name);
}

/* Splits "name", "name:2" or "^name" into name and port. */
static int split_input(struct mu_span *text, int *port, const struct mu_node *n, struct mu_err *err)
{
	const char *colon;

	*port = 0;
	if (!text->len)
		return fail_input_name(n, *text, err);
	colon = memrchr(text->data, ':', text->len);
	if (text->data[0] == '^') {
		*port = MU_CONTROL;
		text->data++;
		text->len--;
		return 0;
	}
	if (!colon)
		return 0;
	size_t len = (size_t)(colon - text->data);
	if (!mu_parse_port((struct mu_span){colon + 1, text->len - len - 1}, port))
		return fail_input_name(n, *text, err);
	text->len = len;
	return 0;
}

static int link_inputs(struct mu_graph *g, struct mu_node *n, struct mu_err *err)
{
	int rc, port;

	for (struct mu_span *t = n->user; t->data; t++) {
		struct mu_span text = *t;
		if ((rc = split_input(&text, &port, n, err)))
			return rc;
		struct mu_node *from = mu_graph_index_find(g, text.data, text.len);
		if (!from)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Node '%s': Unknown input node '%.*s'", n->name,
				       (int)(t->len < 200 ? t->len : 200), t->data);
		if (port != MU_CONTROL && n->n_controls)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "All control inputs must follow all data inputs\n\t "
				       "[[{{node %s}}]]",
				       n->name);
		n->inputs[n->n_inputs + n->n_controls] = (struct mu_input){from, port};
		n->n_inputs += port != MU_CONTROL;
		n->n_controls += port == MU_CONTROL;
	}
	n->user = NULL;
	return 0;
}

static void remove_nodes(struct mu_graph *g, unsigned first_new)
{
	while (g->n_nodes > first_new) {
		struct mu_node *n = g->nodes[--g->n_nodes];
		for (unsigned k = 0; k < n->n_attrs; k++)
			mu_attr_fini(&n->attrs[k].value);
	}
	mu_graph_index_reset(g);
}

static int parse_versions(struct mu_span proto, int *producer, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f))
		if (f.number == 1 && f.type == MU_PB_VARINT)
			*producer = (int)f.value;
	return m.bad ? mu_fail(err, MU_INVALID_ARGUMENT, "the graph's versions are truncated") : 0;
}

/* Parses the function library before the nodes, which may call its functions. */
static int parse_library(struct mu_graph *g, struct mu_span graph_def, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(graph_def);
	struct mu_pb_field f;
	int rc = 0;

	while (!rc && mu_pb_next(&m, &f))
		if (f.number == F_LIBRARY && f.type == MU_PB_BYTES && f.bytes.len)
			rc = mu_library_extend(&g->library, f.bytes, err);
	return rc;
}

int mu_graph_parse(struct mu_graph *g, struct mu_span graph_def, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(graph_def);
	struct mu_pb_field f;
	unsigned first_new = g->n_nodes;
	size_t budget = mu_tensor_limit;
	struct mu_library *existing = mu_library_ref(g->library);
	int rc = parse_library(g, graph_def, err), producer = g->producer;

	while (!rc && mu_pb_next(&m, &f)) {
		if (f.type != MU_PB_BYTES)
			continue;
		if (f.number == F_NODE)
			rc = parse_node(g, f.bytes, first_new, &budget, err);
		else if (f.number == F_VERSIONS)
			rc = parse_versions(f.bytes, &producer, err);
	}
	if (!rc && m.bad)
		rc = mu_fail(err, MU_INVALID_ARGUMENT, "the GraphDef is malformed or truncated");
	for (unsigned i = first_new; !rc && i < g->n_nodes; i++)
		rc = link_inputs(g, g->nodes[i], err);
	if (rc) {
		remove_nodes(g, first_new);
		mu_library_unref(g->library);
		g->library = existing;
		return rc;
	}
	g->producer = producer;
	mu_library_unref(existing);
	return 0;
}
