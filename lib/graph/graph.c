/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/graph/graph.h"

#include <limits.h>
#include <unistd.h>

#include "lib/graph/graph_index.h"
#include "lib/graph/library.h"

struct mu_graph *mu_graph_new(void)
{
	struct mu_graph *g = MU_NEW(struct mu_graph);

	mu_arena_init(&g->arena);
	return g;
}

void mu_graph_free(struct mu_graph *g)
{
	if (!g)
		return;
	for (unsigned i = 0; i < g->n_nodes; i++)
		for (unsigned k = 0; k < g->nodes[i]->n_attrs; k++)
			mu_attr_fini(&g->nodes[i]->attrs[k].value);
	mu_graph_index_reset(g);
	mu_library_unref(g->library);
	mu_arena_fini(&g->arena);
	free(g->nodes);
	free(g);
}

static struct mu_node *append_node(struct mu_graph *g, const char *name,
				   const struct mu_op_def *def, const char *op)
{
	struct mu_node *n = MU_ARENA_NEW(&g->arena, struct mu_node);

	n->name = name;
	n->def = def;
	n->op = def ? def->name : op;
	n->device = "";
	n->id = g->n_nodes;
	if (g->n_nodes == g->cap_nodes) {
		g->cap_nodes = g->cap_nodes ? g->cap_nodes * 2 : 64;
		g->nodes = mu_xrealloc(g->nodes, g->cap_nodes * sizeof *g->nodes);
	}
	g->nodes[g->n_nodes++] = n;
	return n;
}

struct mu_node *mu_graph_append(struct mu_graph *g, const char *name, const char *op)
{
	const struct mu_op_def *def = mu_op_find(op);
	const struct mu_function *f = def ? NULL : mu_library_find(g->library, op);

	return append_node(g, name, f ? &f->def : def, op);
}

int mu_graph_add(struct mu_graph *g, const char *name, const char *op, struct mu_node **out,
		 struct mu_err *err)
{
	if (mu_graph_find(g, name))
		return mu_fail(err, MU_INVALID_ARGUMENT, "the graph already has a node '%s'", name);
	*out = mu_graph_append(g, mu_arena_strdup(&g->arena, name), mu_arena_strdup(&g->arena, op));
	return 0;
}

struct mu_node *mu_graph_add_unique(struct mu_graph *g, const char *name, const char *op,
				    const char *device, const struct mu_input *data,
				    unsigned n_data)
{
	MU_AUTO_BUF unique = {0};
	struct mu_node *n;

	mu_buf_puts(&unique, name);
	while (mu_graph_add(g, unique.data, op, &n, NULL))
		mu_buf_putc(&unique, '_');
	mu_node_set_device(g, n, device);
	mu_node_set_inputs(g, n, data, n_data, NULL, 0);
	return n;
}

void mu_node_set_inputs(struct mu_graph *g, struct mu_node *n, const struct mu_input *data,
			unsigned n_data, const struct mu_input *controls, unsigned n_controls)
{
	n->inputs = MU_ARENA_ARRAY(&g->arena, struct mu_input, (size_t)n_data + n_controls);
	n->n_inputs = n_data;
	n->n_controls = n_controls;
	n->cap_inputs = n_data + n_controls;
	if (n_data)
		memcpy(n->inputs, data, n_data * sizeof *data);
	for (unsigned i = 0; i < n_controls; i++)
		n->inputs[n_data + i] = (struct mu_input){controls[i].node, MU_CONTROL};
}

void mu_node_add_control(struct mu_graph *g, struct mu_node *n, struct mu_node *from)
{
	unsigned n_existing = n->n_inputs + n->n_controls;

	for (unsigned i = n->n_inputs; i < n_existing; i++)
		if (n->inputs[i].node == from)
			return;
	if (n_existing >= n->cap_inputs) {
		n->cap_inputs = 2 * n_existing + 1;
		struct mu_input *inputs = MU_ARENA_ARRAY(&g->arena, struct mu_input, n->cap_inputs);
		if (n_existing)
			memcpy(inputs, n->inputs, n_existing * sizeof *inputs);
		n->inputs = inputs;
	}
	n->inputs[n_existing] = (struct mu_input){from, MU_CONTROL};
	n->n_controls++;
}

void mu_node_set_device(struct mu_graph *g, struct mu_node *n, const char *device)
{
	n->device = *device ? mu_arena_strdup(&g->arena, device) : "";
}

bool mu_node_is_constant(const struct mu_node *n)
{
	return n->n_inputs + n->n_controls == 0 && strcmp(n->op, "Const") == 0;
}

struct mu_node *mu_graph_copy_node_as(struct mu_graph *to, const struct mu_node *n,
				      const char *name)
{
	struct mu_node *copy = append_node(to, mu_arena_strdup(&to->arena, name), n->def,
					   n->def ? n->op : mu_arena_strdup(&to->arena, n->op));

	mu_node_set_device(to, copy, n->device);
	copy->attrs = MU_ARENA_ARRAY(&to->arena, struct mu_node_attr, n->n_attrs);
	for (unsigned i = 0; i < n->n_attrs; i++) {
		copy->attrs[i].name = mu_arena_strdup(&to->arena, n->attrs[i].name);
		mu_attr_copy(&copy->attrs[i].value, &n->attrs[i].value, &to->arena);
		copy->n_attrs++;
	}
	return copy;
}

struct mu_node *mu_graph_copy_node(struct mu_graph *to, const struct mu_node *n)
{
	return mu_graph_copy_node_as(to, n, n->name);
}

void mu_graph_mark_inputs(const struct mu_graph *g, bool *marked)
{
	MU_AUTO_FREE struct mu_node **todo = MU_NEW_ARRAY(struct mu_node *, g->n_nodes + 1);
	unsigned n_todo = 0;

	for (unsigned i = 0; i < g->n_nodes; i++)
		if (marked[i])
			todo[n_todo++] = g->nodes[i];
	while (n_todo) {
		const struct mu_node *n = todo[--n_todo];
		for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++) {
			struct mu_node *from = n->inputs[k].node;
			if (!marked[from->id])
				todo[n_todo++] = from;
			marked[from->id] = true;
		}
	}
}

void mu_graph_keep(struct mu_graph *g, const bool *keep)
{
	unsigned n_kept = 0;

	for (unsigned i = 0; i < g->n_nodes; i++) {
		struct mu_node *n = g->nodes[i];
		if (keep[i]) {
			n->id = n_kept;
			g->nodes[n_kept++] = n;
			continue;
		}
		for (unsigned k = 0; k < n->n_attrs; k++)
			mu_attr_fini(&n->attrs[k].value);
	}
	g->n_nodes = n_kept;
	mu_graph_index_reset(g);
}

struct mu_node *mu_graph_find(const struct mu_graph *g, const char *name)
{
	return mu_graph_index_find((struct mu_graph *)g, name, strlen(name));
}

bool mu_parse_port(struct mu_span digits, int *port)
{
	int64_t n = 0;

	for (size_t i = 0; i < digits.len; i++) {
		if (digits.data[i] < '0' || digits.data[i] > '9' || n > INT_MAX / 10)
			return false;
		n = n * 10 + (digits.data[i] - '0');
	}
	if (!digits.len || n > INT_MAX)
		return false;
	*port = (int)n;
	return true;
}

int mu_graph_resolve(const struct mu_graph *g, const char *text, struct mu_input *out,
		     struct mu_err *err)
{
	struct mu_input in = {NULL, 0};
	size_t len = strlen(text);
	const char *colon = strrchr(text, ':');

	if (*text == '^') {
		in.port = MU_CONTROL;
		text++;
		len--;
	} else if (colon) {
		if (!mu_parse_port(mu_span_of(colon + 1), &in.port))
			return mu_fail(
			    err, MU_INVALID_ARGUMENT,
			    "'%s' is not a tensor name: an output number must follow ':'", text);
		len = (size_t)(colon - text);
	}
	in.node = mu_graph_index_find((struct mu_graph *)g, text, len);
	if (!in.node)
		return mu_fail(err, MU_NOT_FOUND, "no node '%.*s' in the graph", (int)len, text);
	*out = in;
	return 0;
}

int mu_node_need_def(const struct mu_node *n, struct mu_err *err)
{
	char host[64] = "";

	if (n->def)
		return 0;
	gethostname(host, sizeof host - 1);
	return mu_fail(
	    err, MU_NOT_FOUND,
	    "Op type not registered '%s' in binary running on muster %s at %s, node '%s'", n->op,
	    MUSTER_VERSION, host, n->name);
}
