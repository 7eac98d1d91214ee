/* SPDX-License-Identifier: Apache-2.0 */
/* One walk in the order in which the graph could run: when a node's turn comes, its inputs are what
 * they will be.  Edges that close a loop are looked at in the end. */
#include "task/graph/optimize.h"

#include <string.h>

#include "lib/base/pb.h"
#include "task/kernels/engine/kernel_table.h"

/* Of one graph, all that is computed ahead together. */
enum { FOLD_BYTES = 64 << 20 };

static bool is_one_of(const char *op, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(op, *list) == 0)
			return true;
	return false;
}

/* Values pass through these alive on one side, dead on another, or from one turn to the next. */
static bool is_control_flow(const char *op)
{
	static const char *const ops[] = {"Switch",           "RefSwitch",
					  "_SwitchN",         "Merge",
					  "RefMerge",         "Enter",
					  "RefEnter",         "Exit",
					  "RefExit",          "NextIteration",
					  "RefNextIteration", "LoopCond",
					  "ControlTrigger",   NULL};

	return is_one_of(op, ops);
}

static bool any_ref(const struct mu_arg_def *args, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (args[i].is_ref)
			return true;
	return false;
}

bool optimize_is_constant(const struct mu_node *n)
{
	return n->n_inputs + n->n_controls == 0 && strcmp(n->op, "Const") == 0;
}

static unsigned find_facts(const struct mu_op_def *d)
{
	static const char *const passes[] = {"Identity", "StopGradient", "PreventGradient", NULL};
	static const char *const die[] = {"Switch", "RefSwitch", "_SwitchN",
					  "_Recv",  "_HostRecv", NULL};
	const struct kernel *k = cpu_kernel_find(d->name);
	static const char *const outside[] = {"ReadFile", "MatchingFiles", NULL}; /* may change */
	bool gives_ref = any_ref(d->outputs, d->n_outputs);
	unsigned f = gives_ref ? FACT_GIVES_REF : 0;

	if (is_one_of(d->name, passes))
		f |= FACT_PASSES;
	if (is_one_of(d->name, die))
		f |= FACT_DIES_ALONE;
	if (strcmp(d->name, "NoOp") == 0)
		f |= FACT_NO_OP;
	if (strcmp(d->name, "Const") == 0)
		f |= FACT_CONST;
	if (strstr(d->name, "NextIteration"))
		f |= FACT_NEXT;
	if (is_control_flow(d->name))
		f |= FACT_STEERS;
	if (!(d->flags & MU_OP_STATEFUL) && d->name[0] != '_' && !is_control_flow(d->name) &&
	    !is_one_of(d->name, outside) && strncmp(d->name, "Placeholder", 11) != 0 &&
	    !gives_ref && !any_ref(d->inputs, d->n_inputs) && k && k->run &&
	    !(k->flags & (KERNEL_NO_FOLD | KERNEL_SEES_DEAD)))
		f |= FACT_PURE;
	return f;
}

unsigned optimize_facts(struct opt *o, const struct mu_node *n)
{
	unsigned at = (unsigned)((uintptr_t)n->def / sizeof *n->def % MU_COUNT(o->seen));

	if (o->seen[at].def != n->def) {
		o->seen[at].facts = find_facts(n->def);
		o->seen[at].def = n->def;
	}
	return o->seen[at].facts;
}

bool optimize_is_pure(struct opt *o, const struct mu_node *n)
{
	if (!(optimize_facts(o, n) & FACT_PURE))
		return false;
	/* A variable's value is read when the node runs: that is an effect of its place. */
	for (unsigned k = 0; k < n->n_inputs; k++)
		if (optimize_facts(o, n->inputs[k].node) & FACT_GIVES_REF)
			return false;
	return true;
}

/* ---- edges ---- */

static struct mu_input instead_of(const struct opt *o, struct mu_input in)
{
	const struct mu_input *to = in.node->id < o->n ? o->instead[in.node->id] : NULL;

	if (!to || in.port == MU_CONTROL)
		return in;
	return to[in.port];
}

/* A control edge from `from` as edges from what is left of it; returns how many, 0 or 1. */
static unsigned control_instead(const struct opt *o, struct mu_node *from, struct mu_node **out)
{
	while (from->id < o->n && o->gone[from->id]) {
		if (strcmp(from->op, "NoOp") == 0) {
			if (!from->n_controls)
				return 0;
			from = from->inputs[0].node;
		} else {
			from = o->instead[from->id][0].node;
		}
	}
	*out = from;
	return !optimize_is_constant(from);
}

static void rewire(struct opt *o, struct mu_node *n)
{
	unsigned kept = n->n_inputs;

	for (unsigned k = 0; k < n->n_inputs; k++)
		n->inputs[k] = instead_of(o, n->inputs[k]);
	for (unsigned k = n->n_inputs; k < n->n_inputs + n->n_controls; k++) {
		struct mu_node *from;
		bool had = false;
		if (!control_instead(o, n->inputs[k].node, &from))
			continue;
		for (unsigned i = kept; !had && i-- > n->n_inputs && kept - i < 8;)
			had = n->inputs[i].node == from;
		if (!had)
			n->inputs[kept++] = (struct mu_input){from, MU_CONTROL};
	}
	n->n_controls = kept - n->n_inputs;
}

/* ---- nodes that hand on ---- */

/* A control edge from a live output's Identity is not one from the Switch itself. */
static bool skip_identity(struct opt *o, struct mu_node *n)
{
	if (!(optimize_facts(o, n) & FACT_PASSES) || n->n_inputs != 1 || n->n_controls)
		return false;
	unsigned from = optimize_facts(o, n->inputs[0].node);
	if (from & FACT_GIVES_REF || (o->control_users[n->id] && from & FACT_DIES_ALONE))
		return false;
	if (!o->data_users[n->id] && !o->control_users[n->id])
		return false; /* somebody runs it for its own sake */
	o->instead[n->id] = mu_arena_alloc(&o->scratch, sizeof(struct mu_input));
	o->instead[n->id][0] = n->inputs[0];
	return o->gone[n->id] = true;
}

static bool skip_no_op(struct opt *o, struct mu_node *n)
{
	if (!(optimize_facts(o, n) & FACT_NO_OP) || n->n_inputs || n->n_controls > 1)
		return false;
	return o->gone[n->id] = true;
}

/* ---- the walk ---- */

/* All edges lead to outputs that are there.  The rest is checked when it matters. */
static bool is_sound(struct opt *o)
{
	struct mu_graph *g = o->g;
	unsigned *outputs = MU_ARENA_ARRAY(&o->scratch, unsigned, o->n);

	for (unsigned i = 0; i < o->n; i++) {
		const struct mu_op_def *d = g->nodes[i]->def;
		enum mu_dtype *types;
		if (!d)
			return false;
		outputs[i] = d->n_outputs;
		for (unsigned k = 0; k < d->n_outputs; k++)
			if (d->outputs[k].kind == MU_ARG_REPEAT ||
			    d->outputs[k].kind == MU_ARG_TYPE_LIST) {
				if (mu_op_output_types(g->nodes[i], &o->scratch, &types,
						       &outputs[i], NULL))
					return false;
				break;
			}
	}
	for (unsigned i = 0; i < o->n; i++)
		for (unsigned k = 0; k < g->nodes[i]->n_inputs; k++) {
			struct mu_input in = g->nodes[i]->inputs[k];
			if (in.port < 0 || (unsigned)in.port >= outputs[in.node->id])
				return false;
		}
	return true;
}

static unsigned *count_users(struct opt *o)
{
	struct mu_graph *g = o->g;
	unsigned *start = MU_ARENA_ARRAY(&o->scratch, unsigned, (size_t)o->n + 2);

	for (unsigned i = 0; i < o->n; i++)
		for (unsigned k = 0; k < g->nodes[i]->n_inputs + g->nodes[i]->n_controls; k++) {
			struct mu_input in = g->nodes[i]->inputs[k];
			start[in.node->id + 2]++;
			(in.port == MU_CONTROL ? o->control_users : o->data_users)[in.node->id]++;
		}
	for (unsigned i = 2; i < o->n + 2; i++)
		start[i] += start[i - 1];
	return start;
}

static void find_order(struct opt *o)
{
	struct mu_graph *g = o->g;
	unsigned *start = count_users(o);
	unsigned *missing = MU_ARENA_ARRAY(&o->scratch, unsigned, o->n);
	struct mu_node **users =
	    MU_ARENA_ARRAY(&o->scratch, struct mu_node *, (size_t)start[o->n + 1]);

	o->order = MU_ARENA_ARRAY(&o->scratch, struct mu_node *, o->n);
	for (unsigned i = 0; i < o->n; i++) {
		struct mu_node *n = g->nodes[i];
		for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++) {
			const struct mu_node *from = n->inputs[k].node;
			users[start[from->id + 1]++] = n;
			missing[i] += !(optimize_facts(o, from) & FACT_NEXT);
		}
		if (!missing[i])
			o->order[o->n_order++] = n;
	}
	for (unsigned at = 0; at < o->n_order; at++) {
		const struct mu_node *n = o->order[at];
		if (optimize_facts(o, n) & FACT_NEXT)
			continue;
		for (unsigned k = start[n->id]; k < start[n->id + 1]; k++)
			if (--missing[users[k]->id] == 0)
				o->order[o->n_order++] = users[k];
	}
}

/* Constants that served only what was computed ahead. */
static void drop_unused(struct opt *o)
{
	struct mu_graph *g = o->g;
	bool *used = MU_ARENA_ARRAY(&o->scratch, bool, g->n_nodes);
	bool *keep = MU_ARENA_ARRAY(&o->scratch, bool, g->n_nodes);

	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];
		for (unsigned k = 0; !(i < o->n && o->gone[i]) && k < n->n_inputs + n->n_controls;
		     k++)
			used[n->inputs[k].node->id] = true;
	}
	for (unsigned i = 0; i < g->n_nodes; i++)
		keep[i] =
		    !(i < o->n && o->gone[i]) && (used[i] || !optimize_is_constant(g->nodes[i]));
	mu_graph_keep(g, keep);
}

/* The message in a field, or the empty one; of two the later counts. */
static struct mu_span message_in(struct mu_span proto, unsigned number)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	struct mu_span found = {"", 0};

	while (mu_pb_next(&m, &f))
		if (f.number == number && f.type == MU_PB_BYTES)
			found = f.bytes;
	return found;
}

static uint64_t number_in(struct mu_span proto, unsigned number)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	uint64_t found = 0;

	while (mu_pb_next(&m, &f))
		if (f.number == number && f.type == MU_PB_VARINT)
			found = f.value;
	return found;
}

bool graph_optimize_wanted(struct mu_span config)
{
	enum { GRAPH_OPTIONS = 10, OPTIMIZER = 3, OPT_LEVEL = 3, REWRITE = 10, DISABLE = 19 };
	struct mu_span options = message_in(config, GRAPH_OPTIONS);

	return (int64_t)number_in(message_in(options, OPTIMIZER), OPT_LEVEL) >= 0 &&
	       !number_in(message_in(options, REWRITE), DISABLE);
}

void graph_optimize(struct mu_graph *g, struct runtime *rt)
{
	struct opt o = {.g = g, .rt = rt, .n = g->n_nodes, .budget = FOLD_BYTES};

	struct mu_map seeded;

	mu_map_init(&seeded);
	o.seed = seeded.seed;
	mu_arena_init(&o.scratch);
	if (is_sound(&o)) {
		o.instead = MU_ARENA_ARRAY(&o.scratch, struct mu_input *, o.n);
		o.gone = MU_ARENA_ARRAY(&o.scratch, bool, o.n);
		o.data_users = MU_ARENA_ARRAY(&o.scratch, unsigned, o.n);
		o.control_users = MU_ARENA_ARRAY(&o.scratch, unsigned, o.n);
		find_order(&o);
		drop_idle_work(&o);
		for (unsigned i = 0; i < o.n_order; i++) {
			struct mu_node *n = o.order[i];
			rewire(&o, n);
			if (!skip_identity(&o, n) && !skip_no_op(&o, n) && !fold_node(&o, n))
				merge_node(&o, n);
		}
		for (unsigned i = 0; i < o.n; i++)
			if (!o.gone[i])
				rewire(&o, g->nodes[i]);
		fuse_products(&o);
		drop_unused(&o);
	}
	merge_end(&o);
	mu_arena_fini(&o.scratch);
}
