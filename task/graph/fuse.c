/* SPDX-License-Identifier: Apache-2.0 */
/* Fuses MatMul, a bias and an optional activation into one node _FusedMatMul, which has the name of
 * the last of them.  The intermediate values must have no other users. */
#include <string.h>

#include "task/graph/optimize.h"

struct chain {
	struct mu_node *product, *bias, *last;
	unsigned bias_at; /* index of the bias among the inputs of `bias` */
	const char *ops[2];
	unsigned n_ops;
};

static bool is_float(const struct mu_node *n)
{
	enum mu_dtype t;

	return mu_node_attr_type(n, "T", &t, NULL) == 0 && (t == MU_FLOAT || t == MU_DOUBLE);
}

/* Counts the current out-edges of each node, by id. */
static unsigned *count_current_users(struct opt *o)
{
	struct mu_graph *g = o->g;
	unsigned *users = MU_ARENA_ARRAY(&o->scratch, unsigned, g->n_nodes);

	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];
		for (unsigned k = 0;
		     !(i < o->n && o->removed[i]) && k < n->n_inputs + n->n_controls; k++)
			users[n->inputs[k].node->id]++;
	}
	return users;
}

static bool is_product(const struct opt *o, const struct mu_node *n, const unsigned *users)
{
	return strcmp(n->op, "MatMul") == 0 && n->n_inputs == 2 && !n->n_controls &&
	       users[n->id] == 1 && is_float(n) && (n->id >= o->n || !o->removed[n->id]);
}

static bool find_bias(const struct opt *o, struct mu_node *n, const unsigned *users,
		      struct chain *c)
{
	bool adds = strcmp(n->op, "BiasAdd") == 0, sums = !strncmp(n->op, "Add", 3);

	if (n->n_inputs != 2 || n->n_controls || !is_float(n) ||
	    !(adds || (sums && (!n->op[3] || strcmp(n->op, "AddV2") == 0))))
		return false;
	for (unsigned at = 0; at < (sums ? 2 : 1); at++) {
		struct mu_node *p = n->inputs[at].node;
		if (!is_product(o, p, users) || n->inputs[!at].node == p ||
		    strcmp(p->device, n->device) != 0)
			continue;
		const char *format = "NHWC";
		if (adds && (mu_node_attr_string(n, "data_format", &format, NULL) ||
			     strcmp(format, "NHWC") != 0))
			return false;
		*c = (struct chain){.product = p, .bias = n, .last = n, .bias_at = !at};
		c->ops[c->n_ops++] = adds ? "BiasAdd" : "Add";
		return true;
	}
	return false;
}

static bool is_activation(const char *op)
{
	return !strcmp(op, "Relu") || !strcmp(op, "Sigmoid") || !strcmp(op, "Tanh");
}

static void set_ops(struct opt *o, struct mu_node *n, const struct chain *c)
{
	struct mu_span list[2] = {mu_span_of(c->ops[0]), {"", 0}};
	struct mu_attr ops = {
	    .kind = (enum mu_attr_kind)(MU_ATTR_LIST + MU_ATTR_STRING), .n = c->n_ops, .ss = list};

	if (c->n_ops > 1)
		list[1] = mu_span_of(c->ops[1]);
	mu_node_set_attr(o->g, n, "fused_ops", &ops);
	mu_node_set_int(o->g, n, "num_args", 1);
	for (const char *const *name = (const char *const[]){"transpose_a", "transpose_b", NULL};
	     *name; name++)
		mu_node_set_attr(o->g, n, *name, mu_node_attr(c->product, *name));
}

static void fuse(struct opt *o, const struct chain *c)
{
	struct mu_input in[3] = {c->product->inputs[0], c->product->inputs[1],
				 c->bias->inputs[c->bias_at]};
	struct mu_node *n = c->last;

	set_ops(o, n, c);
	n->def = mu_op_find("_FusedMatMul");
	n->op = n->def->name;
	mu_node_set_inputs(o->g, n, in, 3, NULL, 0);
	o->removed[c->product->id] = true;
	if (c->bias != n)
		o->removed[c->bias->id] = true;
}

void fuse_products(struct opt *o)
{
	unsigned *users;
	struct mu_node **after; /* by id: the only user of a bias node */
	bool any = false;

	for (unsigned i = 0; i < o->n && !any; i++)
		any = !o->removed[i] && strcmp(o->g->nodes[i]->op, "MatMul") == 0;
	if (!any || !mu_op_find("_FusedMatMul"))
		return;
	users = count_current_users(o);
	after = MU_ARENA_ARRAY(&o->scratch, struct mu_node *, o->g->n_nodes);
	for (unsigned i = 0; i < o->n; i++) {
		struct mu_node *n = o->g->nodes[i];
		if (!o->removed[i] && n->n_inputs == 1 && !n->n_controls && is_activation(n->op))
			after[n->inputs[0].node->id] = n;
	}
	for (unsigned i = 0; i < o->n; i++) {
		struct chain c;
		if (o->removed[i] || !find_bias(o, o->g->nodes[i], users, &c))
			continue;
		if (after[i] && users[i] == 1 && strcmp(after[i]->device, c.bias->device) == 0) {
			c.last = after[i];
			c.ops[c.n_ops++] = after[i]->op;
		}
		fuse(o, &c);
	}
}
