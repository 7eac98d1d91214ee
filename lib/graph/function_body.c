/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a FunctionDef to a graph.
 *
 * In a function an input is named "argument", "node:output:k" (tensor k of the named output) or
 * "^node".  An attribute may be "$name", a placeholder for the attribute of the call.  Nodes on
 * which no output or control output depends are removed.  A function without control outputs comes
 * from an old producer: a call runs all its stateful nodes.  Stateful nodes within a loop run
 * before the loop's Exit nodes.  The end node of the body depends on these Exit nodes. */
#include <string.h>

#include "lib/base/pb.h"
#include "lib/graph/graph_index.h"
#include "lib/graph/library.h"

enum { F_NODE = 3, F_RET = 4, F_CONTROL_RET = 6 };

struct body {
	struct mu_graph *g;
	const struct mu_function *f;
	unsigned n_args;
	struct mu_node call; /* a call of the function, from which types are computed */
	bool only_outputs;   /* stateful nodes run only if an output depends on them */
	struct mu_err *err;
};

/* ---- attributes ---- */

/* Replaces placeholders by attributes of the call, also in the attributes of function attributes.
 */
static int fill_placeholders(struct body *b, const struct mu_node *n, struct mu_node_attr *attrs,
			     unsigned n_attrs)
{
	for (unsigned i = 0; i < n_attrs; i++) {
		struct mu_attr *v = &attrs[i].value;
		bool is_list = (int)v->kind == MU_ATTR_LIST + MU_ATTR_FUNC;
		struct mu_func *f = is_list ? v->funcs : v->kind == MU_ATTR_FUNC ? v->func : NULL;

		for (unsigned k = 0; f && k < (is_list ? v->n : 1); k++)
			MU_RETURN_IF_ERROR(fill_placeholders(b, n, f[k].attrs, f[k].n_attrs));
		if (v->kind != MU_ATTR_PLACEHOLDER)
			continue;
		const struct mu_attr *call_attr = mu_node_attr(&b->call, v->s.data);
		if (!call_attr)
			return mu_fail(b->err, MU_INVALID_ARGUMENT,
				       "node '%s': the call has no attribute '%s'", n->name,
				       v->s.data);
		mu_attr_copy(v, call_attr, &b->g->arena);
	}
	return 0;
}

/* ---- arguments ---- */

static int add_indexed_node(struct body *b, const char *name, const char *op, enum mu_dtype type,
			    unsigned index, struct mu_node **out)
{
	int rc = mu_graph_add(b->g, name, op, out, b->err);

	if (rc)
		return rc;
	mu_node_set_type(b->g, *out, "T", type);
	mu_node_set_int(b->g, *out, "index", index);
	return 0;
}

/* Adds an _Arg for each input.  The elements of a list are named "name", "name:1" and so on. */
static int add_args(struct body *b, struct mu_arena *scratch)
{
	enum mu_dtype *types;
	struct mu_node *n;
	int rc = mu_op_input_types(&b->call, scratch, &types, &b->n_args, b->err);

	for (unsigned a = 0, i = 0; !rc && a < b->f->def.n_inputs; a++) {
		unsigned n_tensors = 0;
		rc = mu_op_arg_count(&b->call, &b->f->def.inputs[a], &n_tensors, b->err);
		for (unsigned k = 0; !rc && k < n_tensors; k++, i++) {
			const char *name = b->f->def.inputs[a].name;
			if (k)
				name = mu_arena_printf(scratch, "%s_arg_%u", name, k);
			rc = add_indexed_node(b, name, "_Arg", types[i], i, &n);
		}
	}
	return rc;
}

/* ---- inputs ---- */

static int fail_unknown_input(struct body *b, const char *user, struct mu_span text)
{
	return mu_fail(b->err, MU_INVALID_ARGUMENT, "'%s' has the unknown input '%.*s'", user,
		       (int)(text.len < 160 ? text.len : 160), text.data);
}

/* Resolves "name", "name:k", "node:output:k" or "^node". */
static int resolve(struct body *b, const char *user, struct mu_span text, struct mu_input *out)
{
	struct mu_span part[3] = {{NULL, 0}};
	unsigned n = 0, port = 0;
	bool control = text.len && text.data[0] == '^';
	const char *at = text.data + control, *end = text.data + text.len;
	int k;

	while (n < 3) {
		const char *colon = memchr(at, ':', (size_t)(end - at));
		part[n++] = (struct mu_span){at, (size_t)((colon ? colon : end) - at)};
		if (!colon)
			break;
		at = colon + 1;
	}
	struct mu_node *from = mu_graph_index_find(b->g, part[0].data, part[0].len);
	if (!from)
		return fail_unknown_input(b, user, text);
	*out = (struct mu_input){from, control ? MU_CONTROL : 0};
	if (n == 1)
		return 0;
	if (!mu_parse_port(part[n - 1], &k))
		return fail_unknown_input(b, user, text);
	if (n == 2) { /* element k of a list argument */
		MU_AUTO_BUF name = {0};
		mu_buf_printf(&name, "%s_arg_%d", from->name, k);
		out->node = k ? mu_graph_find(b->g, name.data) : from;
		return out->node ? 0 : fail_unknown_input(b, user, text);
	}
	int rc = mu_op_output_port(from, part[1], &port, b->err);
	if (rc)
		return mu_wrap(b->err, "'%s'", user);
	out->port = (int)(port + (unsigned)k);
	return 0;
}

static int link_node(struct body *b, struct mu_node *n)
{
	struct mu_span *texts = n->user;

	n->user = NULL;
	for (; texts->data; texts++) {
		struct mu_input in;
		int rc = resolve(b, n->name, *texts, &in);
		if (rc)
			return rc;
		if (in.port != MU_CONTROL && n->n_controls)
			return mu_fail(b->err, MU_INVALID_ARGUMENT,
				       "All control inputs must follow all data inputs\n\t "
				       "[[{{node %s}}]]",
				       n->name);
		n->inputs[n->n_inputs + n->n_controls] = in;
		n->n_inputs += in.port != MU_CONTROL;
		n->n_controls += in.port == MU_CONTROL;
	}
	return 0;
}

/* ---- outputs ---- */

/* Returns the value of `key` in the map field `number`, or an empty span. */
static struct mu_span map_value(struct mu_span proto, uint32_t number, const char *key)
{
	struct mu_pb m = mu_pb_of(proto), e;
	struct mu_pb_field f, g;

	while (mu_pb_next(&m, &f)) {
		struct mu_span k = {"", 0}, v = {"", 0};
		if (f.number != number || f.type != MU_PB_BYTES)
			continue;
		for (e = mu_pb_of(f.bytes); mu_pb_next(&e, &g);)
			*(g.number == 1 ? &k : &v) = g.bytes;
		if (mu_span_is(k, key))
			return v;
	}
	return (struct mu_span){"", 0};
}

static int add_ret(struct body *b, unsigned a, unsigned k, enum mu_dtype type, unsigned index)
{
	MU_AUTO_BUF name = {0};
	struct mu_input in;
	struct mu_node *n;
	const char *output_name = b->f->def.outputs[a].name;
	int rc = resolve(b, output_name, map_value(b->f->proto, F_RET, output_name), &in);

	if (rc)
		return rc;
	if (in.port == MU_CONTROL)
		return mu_fail(b->err, MU_INVALID_ARGUMENT, "Return '%s' is a control input",
			       output_name);
	in.port += (int)k;
	for (mu_buf_printf(&name, "%s_RetVal_%u", output_name, k); mu_graph_find(b->g, name.data);)
		mu_buf_putc(&name, '_');
	if ((rc = add_indexed_node(b, name.data, "_Retval", type, index, &n)))
		return rc;
	mu_node_set_inputs(b->g, n, &in, 1, NULL, 0);
	return 0;
}

static int add_rets(struct body *b, struct mu_arena *scratch)
{
	enum mu_dtype *types;
	unsigned n;
	int rc = mu_op_output_types(&b->call, scratch, &types, &n, b->err);

	for (unsigned a = 0, i = 0; !rc && a < b->f->def.n_outputs; a++) {
		unsigned n_tensors = 0;
		rc = mu_op_arg_count(&b->call, &b->f->def.outputs[a], &n_tensors, b->err);
		for (unsigned k = 0; !rc && k < n_tensors; k++, i++)
			rc = add_ret(b, a, k, types[i], i);
	}
	return rc;
}

static int loop_depth(const struct mu_node *n, const int *depth)
{
	int d = 0;

	for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++)
		if (depth[n->inputs[k].node->id] > d)
			d = depth[n->inputs[k].node->id];
	if (mu_node_has_flag(n, MU_OP_ENTER))
		return d + 1;
	return d && mu_node_has_flag(n, MU_OP_EXIT) ? d - 1 : d;
}

/* Returns for each node, by id, the number of while loops that contain it. */
static int *loop_depths(const struct mu_graph *g, struct mu_arena *scratch)
{
	int *depth = MU_ARENA_ARRAY(scratch, int, g->n_nodes + 1);
	struct mu_node **order = MU_ARENA_ARRAY(scratch, struct mu_node *, g->n_nodes + 1);
	unsigned n = mu_graph_order(g, 0, order, scratch);

	for (unsigned i = 0; i < n; i++)
		depth[order[i]->id] = loop_depth(order[i], depth);
	return depth;
}

/* Adds control edges to the end node from all stateful nodes outside of loops.  If loops have
 * stateful nodes, adds edges from the Exit nodes too.  Returns an array by node id: true for
 * stateful nodes inside loops, because an edge from a loop to the end node is not possible. */
static bool *end_after_stateful(struct body *b, struct mu_node *end, struct mu_arena *scratch)
{
	const int *depth = loop_depths(b->g, scratch);
	bool *roots = MU_ARENA_ARRAY(scratch, bool, b->g->n_nodes);
	struct mu_input *controls = MU_ARENA_ARRAY(scratch, struct mu_input, b->g->n_nodes);
	unsigned n_controls = 0;
	bool in_loop = false;

	for (unsigned i = b->n_args; i < end->id; i++) {
		struct mu_node *n = b->g->nodes[i];
		if (!n->def || !(n->def->flags & MU_OP_STATEFUL) || n->op[0] == '_')
			continue;
		roots[i] = depth[i] > 0;
		in_loop |= roots[i];
		if (!roots[i])
			controls[n_controls++].node = n;
	}
	for (unsigned i = b->n_args; in_loop && i < end->id; i++) {
		struct mu_node *n = b->g->nodes[i];
		bool is_stateful = n->def && n->def->flags & MU_OP_STATEFUL;
		if (depth[i] == 0 && !is_stateful && mu_node_has_flag(n, MU_OP_EXIT))
			controls[n_controls++].node = n;
	}
	/* Not mu_node_add_control, which searches all inputs of `end` for each node. */
	mu_node_set_inputs(b->g, end, NULL, 0, controls, n_controls);
	return roots;
}

/* Adds the end node.  Sets *roots to an array by node id, true for nodes that run although no
 * output depends on them, or to NULL. */
static int body_add_end(struct body *b, struct mu_arena *scratch, bool **roots)
{
	struct mu_pb m = mu_pb_of(b->f->proto), e;
	struct mu_pb_field f, g;
	struct mu_node *end = mu_graph_add_unique(b->g, "function_end", "NoOp", "", NULL, 0);
	bool has_control_rets = false;
	int rc = 0;

	while (!rc && mu_pb_next(&m, &f)) {
		struct mu_span v = {"", 0};
		struct mu_input in;
		if (f.number != F_CONTROL_RET || f.type != MU_PB_BYTES)
			continue;
		has_control_rets = true;
		for (e = mu_pb_of(f.bytes); mu_pb_next(&e, &g);)
			if (g.number == 2)
				v = g.bytes;
		if ((rc = resolve(b, "control_ret", v, &in)))
			break;
		if (!strcmp(in.node->op, "_Retval")) /* not a node of the function */
			return fail_unknown_input(b, "control_ret", v);
		mu_node_add_control(b->g, end, in.node);
	}
	*roots =
	    rc || has_control_rets || b->only_outputs ? NULL : end_after_stateful(b, end, scratch);
	return rc;
}

void mu_body_prune(struct mu_graph *g, const bool *roots, struct mu_arena *scratch)
{
	bool *needed = MU_ARENA_ARRAY(scratch, bool, g->n_nodes);

	for (unsigned i = 0; i < g->n_nodes; i++)
		needed[i] = g->nodes[i]->op[0] == '_' || i + 1 == g->n_nodes || (roots && roots[i]);
	mu_graph_mark_inputs(g, needed);
	mu_graph_keep(g, needed);
}

static int read_nodes(struct body *b)
{
	struct mu_pb m = mu_pb_of(b->f->proto);
	size_t budget = mu_tensor_limit;
	struct mu_pb_field f;
	int rc = 0;

	while (!rc && mu_pb_next(&m, &f))
		if (f.number == F_NODE && f.type == MU_PB_BYTES &&
		    !(rc = mu_graph_parse_node(b->g, f.bytes, &budget, b->err))) {
			const struct mu_node *n = b->g->nodes[b->g->n_nodes - 1];
			if (!strcmp(n->op, "_Arg") || !strcmp(n->op, "_Retval"))
				return mu_fail(b->err, MU_INVALID_ARGUMENT,
					       "node '%s': a function may not have the op %s",
					       n->name, n->op);
			rc = fill_placeholders(b, n, n->attrs, n->n_attrs);
		}
	for (unsigned i = b->n_args; i < b->g->n_nodes && !rc; i++)
		rc = link_node(b, b->g->nodes[i]);
	return rc;
}

int mu_library_instantiate(struct mu_library *l, const struct mu_function *f,
			   const struct mu_node_attr *attrs, unsigned n_attrs, bool only_outputs,
			   struct mu_graph **out, struct mu_err *err)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct body b = {.g = g, .f = f, .only_outputs = only_outputs, .err = err};
	MU_AUTO_ARENA scratch = {0};
	bool *roots;
	int rc;

	b.call = (struct mu_node){.name = f->name,
				  .op = f->name,
				  .def = &f->def,
				  .device = "",
				  .attrs = (struct mu_node_attr *)attrs,
				  .n_attrs = n_attrs};
	g->library = mu_library_ref(l);
	if (!(rc = add_args(&b, &scratch)) && !(rc = read_nodes(&b)) &&
	    !(rc = add_rets(&b, &scratch)) && !(rc = body_add_end(&b, &scratch, &roots)))
		mu_body_prune(g, roots, &scratch);
	if (rc)
		return mu_wrap(err, "function %s", f->name);
	*out = mu_steal(&g);
	return 0;
}
