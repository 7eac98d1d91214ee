/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the body of a function into the graph, in place of one call.
 *
 * A body node without inputs in the body has the control inputs of the call.  The end node of the
 * copy has the outputs and the control outputs of the function as control inputs. */
#include <string.h>

#include "lib/grad/function_gradient.h"
#include "lib/graph/device_name.h"
#include "lib/inline/inliner.h"

enum { MAX_DEPTH = 64, MAX_NODES = 1 << 20, MAX_NAME_BYTES = 256 << 20 };

/* Sets missing fields of a body node's device from the call's device. */
static void merge_device(struct inliner *x, const struct call_site *s, struct mu_node *n)
{
	const struct mu_node *call = s->call;
	struct mu_device_name device, call_device;
	MU_AUTO_BUF text = {0};

	if (!*n->device || s->is_remote) {
		n->device = call->device;
		return;
	}
	if (mu_device_parse(&device, n->device, NULL) ||
	    mu_device_parse(&call_device, call->device, NULL) ||
	    !mu_device_intersect(&device, &call_device))
		return;
	mu_device_write(&text, &device);
	mu_node_set_device(x->g, n, text.data ? text.data : "");
}

/* Renames body nodes in "loc:@name" to their copies. */
static void rename_class(struct inliner *x, const char *prefix, const struct mu_graph *body,
			 struct mu_node *n)
{
	for (unsigned i = 0; i < n->n_attrs; i++) {
		struct mu_attr *v = &n->attrs[i].value;
		if (strcmp(n->attrs[i].name, "_class") ||
		    (int)v->kind != MU_ATTR_LIST + MU_ATTR_STRING)
			continue;
		for (unsigned k = 0; k < v->n; k++) {
			const char *name = v->ss[k].data;
			if (strncmp(name, "loc:@", 5) || !mu_graph_find(body, name + 5))
				continue;
			v->ss[k] = mu_span_of(
			    mu_arena_printf(&x->g->arena, "loc:@%s/%s", prefix, name + 5));
		}
	}
}

static int arg_index_of(const struct mu_node *n, unsigned limit, unsigned *out, struct mu_err *err)
{
	int64_t i;
	int rc = mu_node_attr_int(n, "index", &i, err);

	if (!rc && (i < 0 || i >= limit))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "function body: argument %lld is out of range, the call has %u",
			       (long long)i, limit);
	*out = (unsigned)i;
	return rc;
}

static bool is_boundary(const struct mu_node *n)
{
	return !strcmp(n->op, "_Arg") || !strcmp(n->op, "_Retval");
}

static int inline_map_input(struct inliner *x, const struct call_site *s, struct mu_input in,
			    struct mu_input *out)
{
	unsigned index;
	int rc;

	if (strcmp(in.node->op, "_Arg")) {
		*out = (struct mu_input){in.node->user, in.port};
		return 0;
	}
	if ((rc = arg_index_of(in.node, s->n_in, &index, x->err)))
		return rc;
	*out = s->in[index];
	if (in.port == MU_CONTROL)
		out->port = MU_CONTROL;
	return 0;
}

static int link_copy(struct inliner *x, const struct call_site *s, const struct mu_node *n)
{
	unsigned total = n->n_inputs + n->n_controls;
	struct mu_input *in = MU_ARENA_ARRAY(&x->scratch, struct mu_input, (size_t)total + 1);
	bool has_body_input = false;
	int rc = 0;

	for (unsigned k = 0; k < total && !rc; k++) {
		has_body_input |= strcmp(n->inputs[k].node->op, "_Arg") != 0;
		rc = inline_map_input(x, s, n->inputs[k], &in[k]);
	}
	if (rc)
		return rc;
	mu_node_set_inputs(x->g, n->user, in, n->n_inputs, in + n->n_inputs, n->n_controls);
	if (s->control && (!has_body_input || mu_graph_is_call(x->g, n->user)))
		mu_node_add_control(x->g, n->user, s->control);
	return 0;
}

static void reserve_depths(struct inliner *x)
{
	if (x->n_depths < x->g->n_nodes) {
		unsigned n = 2 * x->g->n_nodes;
		x->depths = mu_xrealloc(x->depths, n);
		memset(x->depths + x->n_depths, 0, n - x->n_depths);
		x->n_depths = n;
	}
}

/* Collects the outputs by index, and adds the end node. */
static int collect_outputs(struct inliner *x, const struct call_site *s,
			   const struct mu_graph *body, struct expansion *out)
{
	int rc = 0;

	for (unsigned i = 0; i < body->n_nodes; i++)
		out->n_outs += !strcmp(body->nodes[i]->op, "_Retval");
	out->outs = MU_ARENA_ARRAY(&x->scratch, struct mu_input, (size_t)out->n_outs + 1);
	out->end = body->nodes[body->n_nodes - 1]->user;
	for (unsigned i = 0; i < body->n_nodes && !rc; i++) {
		const struct mu_node *n = body->nodes[i];
		unsigned index;
		if (strcmp(n->op, "_Retval") ||
		    (rc = arg_index_of(n, out->n_outs, &index, x->err)) ||
		    (rc = inline_map_input(x, s, n->inputs[0], &out->outs[index])))
			continue;
		mu_node_add_control(x->g, out->end, out->outs[index].node);
	}
	if (!rc && s->control && !out->end->n_controls)
		mu_node_add_control(x->g, out->end, s->control);
	return rc;
}

/* A resource that is shared by node name keeps the name of the node in the function, because
 * several functions may use it. */
static void keep_resource_name(struct inliner *x, const struct mu_node *n, struct mu_node *copy)
{
	const struct mu_attr *by_name = mu_node_attr(n, "use_node_name_sharing");
	const struct mu_attr *shared = mu_node_attr(n, "shared_name");
	struct mu_attr name = {.kind = MU_ATTR_STRING, .s = mu_span_of(n->name)};

	if (by_name && by_name->b && (!shared || !shared->s.len))
		mu_node_set_attr(x->g, copy, "shared_name", &name);
}

static int copy_body(struct inliner *x, const struct call_site *s, struct mu_graph *body)
{
	int rc = 0;

	for (unsigned i = 0; i < body->n_nodes; i++) {
		struct mu_node *n = body->nodes[i];
		if (is_boundary(n))
			continue;
		const char *name = mu_arena_printf(&x->scratch, "%s/%s", s->name, n->name);
		while (mu_graph_find(x->g, name))
			name = mu_arena_printf(&x->scratch, "%s_", name);
		if ((x->name_bytes += strlen(name)) > MAX_NAME_BYTES)
			return mu_fail(x->err, MU_RESOURCE_EXHAUSTED,
				       "the names of the nodes of inlined functions have more than "
				       "%d bytes",
				       MAX_NAME_BYTES);
		struct mu_node *copy = mu_graph_copy_node_as(x->g, n, name);
		keep_resource_name(x, n, copy);
		merge_device(x, s, copy);
		rename_class(x, s->name, body, copy);
		reserve_depths(x);
		x->depths[copy->id] = (unsigned char)(x->depth + 1);
		n->user = copy;
	}
	for (unsigned i = 0; i < body->n_nodes && !rc; i++)
		if (!is_boundary(body->nodes[i]))
			rc = link_copy(x, s, body->nodes[i]);
	return rc;
}

static int instantiate_body(struct inliner *x, const struct mu_func *func, bool only_outputs,
			    struct mu_graph **out)
{
	const struct mu_function *f = mu_library_find(x->g->library, func->name);

	if (!f)
		return mu_fail(x->err, MU_NOT_FOUND, "function %.80s is not in the graph's library",
			       func->name);
	if (x->depth >= MAX_DEPTH)
		return mu_fail(
		    x->err, MU_UNIMPLEMENTED,
		    "function calls nest deeper than %d: function %.80s may be recursive",
		    MAX_DEPTH, func->name);
	return mu_library_instantiate(x->g->library, f, func->attrs, func->n_attrs, only_outputs,
				      out, x->err);
}

static int insert_body(struct inliner *x, const struct call_site *s, struct mu_graph *body,
		       struct expansion *out)
{
	int rc;

	if (x->g->n_nodes + body->n_nodes > MAX_NODES)
		return mu_fail(x->err, MU_RESOURCE_EXHAUSTED,
			       "the graph with inlined functions has more than %d nodes",
			       MAX_NODES);
	if ((rc = copy_body(x, s, body)))
		return rc;
	return collect_outputs(x, s, body, out);
}

int inline_body(struct inliner *x, const struct call_site *s, struct expansion *out)
{
	MU_AUTO(mu_graph_free) struct mu_graph *body = NULL;
	int rc = instantiate_body(x, s->f, s->only_outputs, &body);

	return rc ? rc : insert_body(x, s, body, out);
}

int inline_gradient(struct inliner *x, const struct call_site *s, struct expansion *out)
{
	MU_AUTO(mu_graph_free) struct mu_graph *body = NULL, *gradient = NULL;
	int rc;

	if ((rc = instantiate_body(x, s->f, false, &body)) ||
	    (rc = mu_function_gradient(body, &gradient, x->err)))
		return mu_wrap(x->err, "gradient of function %.80s", s->f->name);
	return insert_body(x, s, gradient, out);
}
