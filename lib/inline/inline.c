/* SPDX-License-Identifier: Apache-2.0 */
/* Inlines function calls.
 *
 * Calls are expanded in the order of the nodes.  Bodies are appended to the graph, so calls in a
 * body are expanded later in the same pass.  `user` of an expanded call has its struct expansion.
 * Finally, all inputs from expanded calls are redirected to the expansions, and the calls are
 * removed.
 *
 * inline_body.c copies the bodies, and lower.c builds branches and loops.  Nodes that nothing needs
 * are removed. */
#include "lib/inline/inliner.h"

#include <string.h>

#include "lib/graph/device_name.h"

/* ---- calls ---- */

/* Returns a node that runs if the call runs: in the same iteration of a loop, and only if its
 * branch of a conditional is taken.  NULL: the call has no control inputs and the graph has no
 * branches. */
static struct mu_node *start_of(struct inliner *x, const struct mu_node *call)
{
	const char *name = mu_arena_printf(&x->scratch, "%s/start", call->name);
	struct mu_node *start = NULL;

	if (call->n_controls) {
		start = mu_graph_add_unique(x->g, name, "NoOp", call->device, NULL, 0);
		mu_node_set_inputs(x->g, start, NULL, 0, call->inputs + call->n_inputs,
				   call->n_controls);
	}
	for (unsigned k = 0; x->has_branches && !start && k < call->n_inputs; k++) {
		struct mu_input in = call->inputs[k];
		enum mu_dtype type = mu_op_edge_type(in, &x->scratch);

		if (!type || mu_dtype_is_ref(type))
			continue;
		start = mu_graph_add_unique(x->g, name, "Identity", call->device, &in, 1);
		mu_node_set_type(x->g, start, "T", type);
	}
	return start;
}

static struct call_site call_site_of(struct inliner *x, const struct mu_node *call,
				     const struct mu_func *f)
{
	return (struct call_site){.call = call,
				  .name = call->name,
				  .f = f,
				  .in = call->inputs,
				  .n_in = call->n_inputs,
				  .control = start_of(x, call)};
}

/* is_remote: the call's device replaces those of the body's nodes. */
static int expand_function_attr(struct inliner *x, const struct mu_node *call, bool is_remote,
				struct expansion *out)
{
	const struct mu_attr *f = mu_node_attr(call, "f");

	if (!f || f->kind != MU_ATTR_FUNC)
		return mu_fail(x->err, MU_INVALID_ARGUMENT, "%s has no function f", call->op);
	struct call_site s = call_site_of(x, call, f->func);
	s.is_remote = is_remote;
	return inline_body(x, &s, out);
}

static int expand_call(struct inliner *x, const struct mu_node *call, struct expansion *out)
{
	return expand_function_attr(x, call, false, out);
}

/* Returns the target device, with missing parts from the device of the call. */
static const char *target_device(struct inliner *x, const struct mu_node *call, struct mu_span name)
{
	const char *device = mu_arena_printf(&x->g->arena, "%.*s", (int)name.len, name.data);
	struct mu_device_name target, call_device;
	MU_AUTO_BUF text = {0};

	if (mu_device_parse(&target, device, x->err))
		return NULL;
	if (mu_device_parse(&call_device, call->device, NULL) ||
	    !mu_device_intersect(&target, &call_device))
		return device;
	mu_device_write(&text, &target);
	return mu_arena_printf(&x->g->arena, "%s", text.data ? text.data : "");
}

/* Expands a RemoteCall: all nodes of the body run on the device that its first input names.  Nodes
 * are placed before the step runs, so this input must be a constant.
 *
 * The input may be an _Arg only in a function that a kernel calls, such as a function of a dataset.
 * All nodes of such a function run on the dataset's task, and the body of the call runs on its
 * first CPU device.  Access to a resource of another task fails with NOT_FOUND. */
static int expand_remote_call(struct inliner *x, const struct mu_node *call, struct expansion *out)
{
	const struct mu_node *target = call->inputs[0].node;
	const struct mu_attr *v = mu_node_attr(target, "value");
	struct mu_node remote_call = *call;

	remote_call.inputs++;
	remote_call.n_inputs--;
	remote_call.device = "";
	if (strcmp(target->op, "_Arg")) {
		if (strcmp(target->op, "Const") || !v || v->kind != MU_ATTR_TENSOR ||
		    v->tensor->dtype != MU_STRING || v->tensor->shape.count != 1)
			return mu_fail(x->err, MU_UNIMPLEMENTED,
				       "the target of a RemoteCall must be a constant string here, "
				       "not an output of %s '%.80s'",
				       target->op, target->name);
		const struct mu_string *s = v->tensor->data;
		remote_call.device =
		    target_device(x, call, (struct mu_span){s->data ? s->data : "", s->len});
		if (!remote_call.device)
			return -MU_INVALID_ARGUMENT;
	}
	return expand_function_attr(x, &remote_call, true, out);
}

static int expand_named(struct inliner *x, const struct mu_node *call, struct expansion *out)
{
	struct mu_func f = {.name = call->op, .attrs = call->attrs, .n_attrs = call->n_attrs};
	struct call_site s = call_site_of(x, call, &f);

	return inline_body(x, &s, out);
}

/* Calls the gradient function that the library names, or derives one from the body. */
static int expand_gradient(struct inliner *x, const struct mu_node *call, struct expansion *out)
{
	const struct mu_attr *f = mu_node_attr(call, "f");

	if (!f || f->kind != MU_ATTR_FUNC)
		return mu_fail(x->err, MU_INVALID_ARGUMENT, "%s has no function f", call->op);
	const struct mu_function *library_gradient =
	    mu_library_gradient(x->g->library, f->func->name);
	struct mu_func g = *f->func;
	if (library_gradient)
		g.name = library_gradient->name;
	struct call_site s = call_site_of(x, call, &g);
	return library_gradient ? inline_body(x, &s, out) : inline_gradient(x, &s, out);
}

static const struct {
	const char *op;
	int (*expand)(struct inliner *x, const struct mu_node *call, struct expansion *out);
} calls[] = {
#define INLINED(op, expand) {#op, expand},
#include "lib/inline/inlined.def"
#undef INLINED
};

static unsigned call_of(const struct mu_node *n)
{
	unsigned i = 0;

	while (i < MU_COUNT(calls) && strcmp(calls[i].op, n->op))
		i++;
	return i;
}

static int expand_node(struct inliner *x, struct mu_node *n, bool *is_call)
{
	unsigned n_types, i = call_of(n);
	struct expansion out = {0};
	enum mu_dtype *types;
	int rc;

	if (!(*is_call = mu_graph_is_call(x->g, n)))
		return 0;
	if ((rc = mu_op_check_node(n, &x->scratch, x->err)) ||
	    (rc = mu_op_output_types(n, &x->scratch, &types, &n_types, x->err)))
		return rc;
	x->depth = n->id < x->n_depths ? x->depths[n->id] : 0;
	rc = i < MU_COUNT(calls) ? calls[i].expand(x, n, &out) : expand_named(x, n, &out);
	if (!rc && out.n_outs != n_types)
		rc = mu_fail(x->err, MU_INVALID_ARGUMENT,
			     "%s expects to return %u tensor(s), but get %u tensor(s) instead.",
			     strcmp(n->op, "SymbolicGradient") == 0 ? "SymGrad" : n->op, n_types,
			     out.n_outs);
	if (rc)
		return rc;
	n->user = MU_ARENA_NEW(&x->scratch, struct expansion);
	*(struct expansion *)n->user = out;
	return 0;
}

/* ---- redirection and removal ---- */

/* Returns the replacement of an output or of the end node of a call.  The replacement may itself be
 * an output of a call. */
static struct mu_input *replacement_of(struct mu_input *in, struct mu_input *end)
{
	struct expansion *e = in->node->user;

	if (in->port != MU_CONTROL)
		return (unsigned)in->port < e->n_outs ? &e->outs[in->port] : NULL;
	*end = (struct mu_input){e->end, MU_CONTROL};
	return end;
}

/* Redirects *in to the end of its chain of replacements.  Stores the result in every output of the
 * chain, so that each chain is followed only once. */
static int redirect_input(struct inliner *x, struct mu_input *in)
{
	struct mu_input at = *in, end, *next;

	for (unsigned hops = 0; at.node->user; hops++) {
		if (hops > x->g->n_nodes)
			return mu_fail(x->err, MU_INVALID_ARGUMENT,
				       "function calls near node '%s' form a cycle", at.node->name);
		if (!(next = replacement_of(&at, &end)))
			return mu_fail(x->err, MU_INVALID_ARGUMENT,
				       "output %d of '%s' does not exist, it has %u", at.port,
				       at.node->name, ((struct expansion *)at.node->user)->n_outs);
		at = *next;
	}
	for (struct mu_input hop = *in; hop.node->user;) {
		next = replacement_of(&hop, &end);
		hop = *next;
		*next = at;
	}
	*in = at;
	return 0;
}

/* Marks the calls that have a user.  Must run before the inputs are redirected. */
static bool *calls_with_users(struct inliner *x)
{
	bool *used = MU_ARENA_ARRAY(&x->scratch, bool, x->g->n_nodes);

	for (unsigned i = 0; i < x->g->n_nodes; i++) {
		const struct mu_node *n = x->g->nodes[i];
		for (unsigned k = 0; !n->user && k < n->n_inputs + n->n_controls; k++)
			used[n->inputs[k].node->id] = true;
	}
	return used;
}

/* Removes end nodes without users, because end nodes only order other nodes.  Ascending ids visit a
 * user first: the end node of an inner call has a larger id than the end node of the outer call. */
static void remove_unused_ends(struct inliner *x, bool *keep)
{
	unsigned *uses = MU_ARENA_ARRAY(&x->scratch, unsigned, x->g->n_nodes);
	bool *is_end = MU_ARENA_ARRAY(&x->scratch, bool, x->g->n_nodes);

	for (unsigned i = 0; i < x->g->n_nodes; i++) {
		const struct mu_node *n = x->g->nodes[i];
		if (n->user)
			is_end[((struct expansion *)n->user)->end->id] = true;
		for (unsigned k = 0; keep[i] && k < n->n_inputs + n->n_controls; k++)
			uses[n->inputs[k].node->id]++;
	}
	for (unsigned i = 0; i < x->g->n_nodes; i++) {
		const struct mu_node *n = x->g->nodes[i];
		if (!keep[i] || !is_end[i] || uses[i])
			continue;
		keep[i] = false;
		for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++)
			uses[n->inputs[k].node->id]--;
	}
}

/* Removes the calls and the nodes without a purpose: unused nodes of bodies, and nodes that only a
 * call had as an input.  The body of a called function runs completely.  In a lowered branch or
 * loop, a node runs only if the rest of the graph depends on it; if the call is a target of the
 * step or has no users, all nodes run.  TensorFlow has the same rules, because it prunes a step
 * after lowering to Switch and Merge. */
static void remove_unused(struct inliner *x, unsigned n_original, const bool *used)
{
	struct mu_graph *g = x->g;
	bool *keep = MU_ARENA_ARRAY(&x->scratch, bool, g->n_nodes);
	bool *is_input = MU_ARENA_ARRAY(&x->scratch, bool, g->n_nodes);

	for (unsigned i = 0; i < n_original; i++)
		for (unsigned k = 0; k < g->nodes[i]->n_inputs + g->nodes[i]->n_controls; k++)
			is_input[g->nodes[i]->inputs[k].node->id] = true;
	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];
		const struct expansion *e = n->user;

		if (!e)
			keep[i] |= i < n_original && (n->must_run || !is_input[i]);
		else if (!call_is_lowered(n) || n->must_run || (i < n_original && !used[i]))
			keep[e->end->id] = true;
	}
	mu_graph_mark_inputs(g, keep);
	remove_unused_ends(x, keep);
	for (unsigned i = 0; i < g->n_nodes; i++)
		g->nodes[i]->user = NULL;
	mu_graph_keep(g, keep);
}

static int expand_all(struct inliner *x)
{
	unsigned n_original = x->g->n_nodes, n_expanded = 0;
	bool is_call, *used;
	int rc;

	for (unsigned i = 0; i < x->g->n_nodes; i++)
		x->g->nodes[i]->user = NULL;
	for (unsigned i = 0; i < x->g->n_nodes; i++) {
		if ((rc = expand_node(x, x->g->nodes[i], &is_call)))
			return mu_append(x->err, "\n\t [[{{node %s}}]]", x->g->nodes[i]->name);
		n_expanded += is_call;
	}
	if (!n_expanded)
		return 0;
	used = calls_with_users(x);
	for (unsigned i = 0; i < x->g->n_nodes; i++) {
		struct mu_node *n = x->g->nodes[i];
		for (unsigned k = 0; !n->user && k < n->n_inputs + n->n_controls; k++)
			if ((rc = redirect_input(x, &n->inputs[k])))
				return rc;
	}
	remove_unused(x, n_original, used);
	return 0;
}

/* True if the graph has conditionals or loops: each of them has a Switch, or a _SwitchN. */
static bool has_branches(const struct mu_graph *g)
{
	for (unsigned i = 0; i < g->n_nodes; i++)
		if (mu_node_has_flag(g->nodes[i], MU_OP_SWITCH))
			return true;
	return false;
}

int mu_graph_inline(struct mu_graph *g, struct mu_err *err)
{
	struct inliner x = {.g = g, .err = err};
	int rc = 0;

	if (!g->library)
		return 0;
	mu_arena_init(&x.scratch);
	x.has_branches = has_branches(g);
	rc = expand_all(&x);
	mu_arena_fini(&x.scratch);
	free(x.depths);
	return rc;
}
