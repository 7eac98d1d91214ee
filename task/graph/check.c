/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the nodes that a client adds to its session, with TensorFlow's error messages.
 *
 * As in TensorFlow, a new graph is checked less strictly than an extension.  Its attributes other
 * than types, and missing inputs, are checked when a step needs the node.  A node of an unknown op
 * is not checked, so a graph may contain it if no step needs it. */
#include "task/graph/graph_passes.h"

struct out_types {
	enum mu_dtype *types;
	unsigned count;
	bool is_known;
};
struct check {
	const struct mu_graph *g;
	unsigned first_new;        /* id of the first new node */
	bool extends;              /* the session has a graph already */
	struct out_types *outputs; /* by node id */
	struct mu_arena scratch;
	struct mu_err *err;
};

static int check_count(struct check *c, const struct mu_node *n, const enum mu_dtype *want,
		       unsigned count)
{
	MU_AUTO_BUF list = {0};

	if (n->n_inputs == count || (n->n_inputs < count && !c->extends))
		return 0;
	if (!c->extends)
		return mu_fail(c->err, MU_INVALID_ARGUMENT,
			       "Input %u of node %s does not exist. Node only has %u inputs.",
			       count, n->name, count);
	for (unsigned i = 0; i < count && list.len < 400; i++)
		mu_buf_printf(&list, "%s%s", i ? ", " : "", mu_dtype_name(want[i]));
	return mu_fail(c->err, MU_INVALID_ARGUMENT,
		       "NodeDef expected inputs '%s' do not match %u inputs specified; "
		       "Op<name=%s>; NodeDef: {{node %s}}",
		       list.len ? list.data : "", n->n_inputs, n->op, n->name);
}

static int check_edge(struct check *c, const struct mu_node *n, unsigned i, enum mu_dtype want)
{
	struct mu_input in = n->inputs[i];
	struct out_types *from = &c->outputs[in.node->id];

	if (!in.node->def)
		return 0;
	if (!from->is_known) {
		if (mu_op_output_types(in.node, &c->scratch, &from->types, &from->count, NULL))
			return 0; /* reported when that node is checked */
		from->is_known = true;
	}
	if ((unsigned)in.port >= from->count) /* a gradient reads more outputs of If and While */
		return mu_fail(c->err, MU_INVALID_ARGUMENT,
			       "Node '%s': Connecting to invalid output %d of source node %s which "
			       "has %u outputs.%s",
			       n->name, in.port, in.node->name, from->count,
			       strstr(in.node->op, "If") || strstr(in.node->op, "While")
				   ? " Try using tf.compat.v1.experimental."
				     "output_all_intermediates(True)."
				   : "");
	enum mu_dtype have = from->types[in.port];
	if (mu_dtype_base(have) == mu_dtype_base(want) &&
	    (!mu_dtype_is_ref(want) || mu_dtype_is_ref(have)))
		return 0;
	return mu_fail(c->err, MU_INVALID_ARGUMENT,
		       "Input %u of node %s was passed %s from %s:%d incompatible with expected "
		       "%s.",
		       i, n->name, mu_dtype_name(have), in.node->name, in.port,
		       mu_dtype_name(want));
}

static int check_node(struct check *c, const struct mu_node *n)
{
	enum mu_dtype *want;
	unsigned count;
	if (n->name[0] == '_')
		return mu_fail(c->err, MU_INVALID_ARGUMENT,
			       "Illegal op name '%s'\n\t [[{{node %s}}]]", n->name, n->name);
	int rc = c->extends ? mu_op_check_attrs(n, c->err) : mu_op_check_type_attrs(n, c->err);

	if (rc)
		return rc;
	if (mu_op_input_types(n, &c->scratch, &want, &count, c->err))
		return mu_append(c->err, "\n\t [[{{node %s}}]]", n->name);
	if ((rc = check_count(c, n, want, count)))
		return rc;
	for (unsigned i = 0; i < n->n_inputs; i++)
		if ((rc = check_edge(c, n, i, want[i])))
			return rc;
	return 0;
}

static int check_cycles(struct check *c)
{
	unsigned n = c->g->n_nodes - c->first_new;
	struct mu_node **order = MU_ARENA_ARRAY(&c->scratch, struct mu_node *, n + 1);
	unsigned n_order = mu_graph_order(c->g, c->first_new, order, &c->scratch);

	return n_order == n
		   ? 0
		   : mu_fail(c->err, MU_INVALID_ARGUMENT, "%u nodes in a cycle", n - n_order);
}

static void remove_new(struct mu_graph *g, unsigned first_new, struct mu_arena *a)
{
	bool *keep = MU_ARENA_ARRAY(a, bool, (size_t)g->n_nodes + 1);

	memset(keep, true, first_new);
	mu_graph_keep(g, keep);
}

int graph_check_new(struct mu_graph *g, unsigned first_new, bool extends, struct mu_err *err)
{
	struct check c = {.g = g, .first_new = first_new, .extends = extends, .err = err};
	int rc = 0;

	mu_arena_init(&c.scratch);
	c.outputs = MU_ARENA_ARRAY(&c.scratch, struct out_types, (size_t)g->n_nodes + 1);
	for (unsigned i = first_new; !rc && i < g->n_nodes; i++)
		if (g->nodes[i]->def)
			rc = check_node(&c, g->nodes[i]);
	if (!rc)
		rc = check_cycles(&c);
	if (rc)
		remove_new(g, first_new, &c.scratch);
	mu_arena_fini(&c.scratch);
	return rc;
}

/* A constant's value must have the constant's type. */
static int check_constant(const struct mu_node *n, struct mu_err *err)
{
	const struct mu_attr *dtype, *value;

	if (strcmp(n->op, "Const") || !(dtype = mu_node_attr(n, "dtype")) ||
	    !(value = mu_node_attr(n, "value")) || value->tensor->dtype == dtype->type)
		return 0;
	return mu_fail(err, MU_INVALID_ARGUMENT,
		       "Type mismatch between value (%s) and dtype (%s)\n\t [[{{node %s}}]]",
		       mu_dtype_name(value->tensor->dtype), mu_dtype_name(dtype->type), n->name);
}

int graph_check_step(const struct mu_graph *g, struct mu_err *err)
{
	MU_AUTO_ARENA scratch = {0};
	int rc = 0;

	for (unsigned i = 0; !rc && i < g->n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];
		enum mu_dtype *want;
		unsigned count;

		if (!n->def)
			continue;
		if (!(rc = mu_op_check_attrs(n, err)) && !(rc = check_constant(n, err)) &&
		    !(rc = mu_op_input_types(n, &scratch, &want, &count, err)) &&
		    n->n_inputs < count)
			rc = mu_fail(err, MU_INVALID_ARGUMENT,
				     "Incomplete graph, missing %u inputs for %s",
				     count - n->n_inputs, n->name);
	}
	return rc;
}
