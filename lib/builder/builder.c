/* SPDX-License-Identifier: Apache-2.0 */
/* Builder state: the first error, the scopes and the unique names.
 *
 * Device and name strings are in the graph's arena, so a scope takes a few bytes and is freed with
 * the graph.
 */
#include "lib/builder/builder.h"

#include "lib/builder/fn.h"
#include "lib/graph/device_name.h"

struct control_scope {
	struct mu_out *deps;
	unsigned n;
};

void builder_list_push(struct builder_list *l, void *item)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 8;
		l->items = mu_xrealloc(l->items, l->cap * sizeof(*l->items));
	}
	l->items[l->n++] = item;
}

/* Returns NULL if the list is empty. */
static void *builder_list_pop(struct builder_list *l)
{
	return l->n ? l->items[--l->n] : NULL;
}

struct mu_builder *mu_builder_new(void)
{
	struct mu_builder *b = MU_NEW(struct mu_builder);

	b->graph = mu_graph_new();
	mu_map_init(&b->names);
	return b;
}

void mu_builder_free(struct mu_builder *b)
{
	if (!b)
		return;
	for (unsigned i = 0; i < b->functions.n; i++)
		mu_builder_free(((struct mu_fn *)b->functions.items[i])->b);
	free(b->functions.items);
	mu_map_fini(&b->names);
	free(b->devices.items);
	free(b->scopes.items);
	free(b->controls.items);
	free(b->vars.items);
	free(b->info);
	mu_graph_free(b->graph);
	free(b);
}

struct mu_graph *mu_builder_graph(struct mu_builder *b)
{
	return b->graph;
}

int mu_builder_check(const struct mu_builder *b, struct mu_err *err)
{
	if (!builder_failed(b))
		return 0;
	return mu_fail(err, b->err.code, "%s", b->err.msg);
}

void mu_builder_fail(struct mu_builder *b, enum mu_code code, const char *fmt, ...)
{
	va_list ap;

	if (builder_failed(b))
		return;
	va_start(ap, fmt);
	mu_vfail(&b->err, code, fmt, ap);
	va_end(ap);
}

static const struct builder_node *info_of(const struct mu_builder *b, struct mu_out o)
{
	if (!o.node || o.port < 0 || o.node->id >= b->n_info)
		return NULL;
	const struct builder_node *i = &b->info[o.node->id];

	return (unsigned)o.port < i->n_out ? i : NULL;
}

int builder_check_node(const struct mu_builder *b, const struct mu_node *n, struct mu_err *err)
{
	if (n->id < b->graph->n_nodes && b->graph->nodes[n->id] == n)
		return 0;
	return mu_fail(err, MU_INVALID_ARGUMENT,
		       "node '%s' is in another graph: an operation takes values of its own graph, "
		       "and inside a function arguments of the function",
		       n->name);
}

int builder_check_out(const struct mu_builder *b, struct mu_out o, struct mu_err *err)
{
	if (!o.node)
		return mu_fail(err, MU_INVALID_ARGUMENT, "there is no node");
	if (builder_check_node(b, o.node, err))
		return -(int)MU_INVALID_ARGUMENT;
	if (!info_of(b, o))
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s node '%s' has no output %d",
			       o.node->op, o.node->name, o.port);
	return 0;
}

enum mu_dtype mu_out_dtype(const struct mu_builder *b, struct mu_out o)
{
	const struct builder_node *i = info_of(b, o);

	return i ? i->types[o.port] : MU_DT_INVALID;
}

const struct mu_pshape *mu_out_shape(const struct mu_builder *b, struct mu_out o)
{
	static const struct mu_pshape unknown = {.rank = -1};
	const struct builder_node *i = info_of(b, o);

	return i ? &i->shapes[o.port] : &unknown;
}

void builder_set_shape(struct mu_builder *b, struct mu_out o, const struct mu_pshape *shape)
{
	const struct builder_node *i = info_of(b, o);

	if (i)
		i->shapes[o.port] = *shape;
}

const struct mu_tensor *builder_value(const struct mu_builder *b, struct mu_out o)
{
	const struct builder_node *i = info_of(b, o);

	return i ? i->value : NULL;
}

const char *mu_out_name(struct mu_builder *b, struct mu_out o)
{
	if (!o.node)
		return "";
	if (o.port == MU_CONTROL)
		return o.node->name;
	return mu_arena_printf(&b->graph->arena, "%s:%d", o.node->name, o.port);
}

/* ---- scopes ---- */

const char *builder_merge_device(struct mu_builder *b, const char *outer, const char *inner)
{
	struct mu_device_name device, inner_device;
	struct mu_err err;
	MU_AUTO_BUF text = {0};

	if (mu_device_parse(&device, outer, &err) || mu_device_parse(&inner_device, inner, &err)) {
		mu_builder_fail(b, err.code, "%s", err.msg);
		return "";
	}
	mu_device_merge(&device, &inner_device);
	mu_device_write(&text, &device);
	return mu_arena_strndup(&b->graph->arena, text.data, text.len);
}

void mu_push_device(struct mu_builder *b, const char *device)
{
	const char *outer = builder_list_top(&b->devices);

	builder_list_push(&b->devices, (void *)builder_merge_device(b, outer ? outer : "", device));
}

void mu_pop_device(struct mu_builder *b)
{
	if (!b->devices.n)
		mu_builder_fail(b, MU_FAILED_PRECONDITION,
				"mu_pop_device without a mu_push_device before it");
	builder_list_pop(&b->devices);
}

const char *builder_name(struct mu_builder *b, const char *want)
{
	const char *scope = builder_list_top(&b->scopes);
	char *base = mu_arena_printf(&b->graph->arena, "%s%s", scope ? scope : "", want);
	size_t n_uses = (uintptr_t)mu_map_get(&b->names, base);
	char *name = base;

	while (n_uses && mu_map_get(&b->names, name))
		name = mu_arena_printf(&b->graph->arena, "%s_%zu", base, n_uses++);
	mu_map_put(&b->names, base, (void *)(uintptr_t)(n_uses ? n_uses : 1));
	if (name != base)
		mu_map_put(&b->names, name, (void *)(uintptr_t)1);
	return name;
}

void mu_push_name(struct mu_builder *b, const char *name)
{
	const char *full = builder_name(b, name);

	builder_list_push(&b->scopes, mu_arena_printf(&b->graph->arena, "%s/", full));
}

void mu_pop_name(struct mu_builder *b)
{
	if (!b->scopes.n)
		mu_builder_fail(b, MU_FAILED_PRECONDITION,
				"mu_pop_name without a mu_push_name before it");
	builder_list_pop(&b->scopes);
}

void mu_push_control(struct mu_builder *b, const struct mu_out *deps, unsigned n)
{
	struct control_scope *s = MU_ARENA_NEW(&b->graph->arena, struct control_scope);

	s->deps = MU_ARENA_ARRAY(&b->graph->arena, struct mu_out, n);
	s->n = n;
	if (n)
		memcpy(s->deps, deps, n * sizeof(*deps));
	builder_list_push(&b->controls, s);
}

void mu_pop_control(struct mu_builder *b)
{
	if (!b->controls.n)
		mu_builder_fail(b, MU_FAILED_PRECONDITION,
				"mu_pop_control without a mu_push_control before it");
	builder_list_pop(&b->controls);
}

void builder_add_controls(struct mu_builder *b, struct mu_node *n)
{
	for (unsigned i = 0; i < b->controls.n; i++) {
		const struct control_scope *s = b->controls.items[i];

		for (unsigned j = 0; j < s->n; j++)
			if (s->deps[j].node)
				mu_node_add_control(b->graph, n, s->deps[j].node);
	}
}

void mu_replica_device_setter(struct mu_builder *b, unsigned ps_tasks, const char *worker_device)
{
	b->ps_tasks = ps_tasks;
	b->ps_bytes = NULL;
	b->worker_device = mu_arena_strdup(&b->graph->arena, worker_device);
}

void mu_replica_device_setter_by_bytes(struct mu_builder *b, unsigned ps_tasks,
				       const char *worker_device)
{
	mu_replica_device_setter(b, ps_tasks, worker_device);
	b->ps_bytes = MU_ARENA_ARRAY(&b->graph->arena, int64_t, ps_tasks + 1);
}
