/* SPDX-License-Identifier: Apache-2.0 */
#include "task/worker/debug_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "lib/base/pb.h"
#include "lib/io/crc32c.h"
#include "task/messages/control.h"
#include "task/runtime/debug_sink.h"
#include "task/runtime/kernel.h"
#include "task/runtime/runtime.h"

enum { EVENT_GRAPH_DEF = 4 };

typedef Muster__DebugTensorWatch watch_def;

/* The nodes that publish an output. */
struct publishers {
	struct mu_node **nodes;
	unsigned n;
};
struct debug_nodes {
	struct mu_graph *g, *unchecked; /* the task's graph; debug nodes before their checks */
	struct runtime *rt;
	struct mu_arena scratch;
	struct mu_map watches;       /* "node:slot" -> its watch */
	const watch_def *wildcard;   /* the watch of "*"; NULL: none */
	struct mu_map urls;          /* URLs of all watches, as keys and values */
	struct publishers **outputs; /* by node id, then by output */
	unsigned *n_outputs;         /* by node id */
	unsigned n_nodes;            /* nodes of the graph without debug nodes */
	struct mu_err *err;
};

/* ---- watches ---- */

static int read_watch(struct debug_nodes *d, const watch_def *w)
{
	bool is_wildcard = strcmp(w->node_name, "*") == 0;

	if (is_wildcard && w->output_slot != -1)
		return mu_fail(d->err, MU_FAILED_PRECONDITION,
			       "output_slot is expected to be -1 for wildcard node name (\"*\"), "
			       "but got %d",
			       w->output_slot);
	if (!is_wildcard && w->output_slot < 0)
		return mu_fail(d->err, MU_FAILED_PRECONDITION,
			       "A negative output_slot in DebugTensorWatch is valid only for the "
			       "wildcard node name (\"*\"), but got node name %s",
			       w->node_name);
	for (size_t i = 0; i < w->n_debug_urls; i++)
		mu_map_put(&d->urls, w->debug_urls[i], w->debug_urls[i]);
	if (is_wildcard)
		d->wildcard = w;
	else
		mu_map_put(&d->watches,
			   mu_arena_printf(&d->scratch, "%s:%d", w->node_name, w->output_slot),
			   (void *)w);
	return 0;
}

/* ---- debug ops: "Name" or "Name(attribute=value;…)" ---- */

struct debug_op {
	const char *text, *name;
	struct attribute {
		const char *name, *value;
	} * attributes;
	unsigned n;
};

/* Splits "name=value; …" in place. */
static int parse_attributes(struct debug_nodes *d, char *text, struct debug_op *op)
{
	char *save = NULL;

	op->attributes = MU_ARENA_ARRAY(&d->scratch, struct attribute, strlen(text) / 2 + 1);
	for (char *at = strtok_r(text, ";", &save); at; at = strtok_r(NULL, ";", &save)) {
		char *value = strchr(at, '=');

		at += strspn(at, " ");
		if (!value)
			return mu_fail(d->err, MU_FAILED_PRECONDITION,
				       "Malformed attributes in debug op name \"%s\"", op->text);
		*value++ = '\0';
		for (unsigned i = 0; i < op->n; i++)
			if (strcmp(op->attributes[i].name, at) == 0)
				return mu_fail(d->err, MU_FAILED_PRECONDITION,
					       "Duplicate attribute name \"%s\" found in the debug "
					       "op: \"%s\"",
					       at, op->text);
		op->attributes[op->n++] = (struct attribute){at, value};
	}
	return 0;
}

static int parse_op(struct debug_nodes *d, const char *text, struct debug_op *op)
{
	char *copy = mu_arena_strdup(&d->scratch, text), *open = strchr(copy, '(');
	size_t len = strlen(copy);

	*op = (struct debug_op){.text = text, .name = copy};
	if (!open)
		return 0;
	if (copy[len - 1] != ')')
		return mu_fail(d->err, MU_FAILED_PRECONDITION, "Malformed debug op name \"%s\"",
			       text);
	copy[len - 1] = *open = '\0';
	return parse_attributes(d, open + 1, op);
}

static int fail_value(struct debug_nodes *d, const struct mu_node *n, const char *kind,
		      const struct attribute *a)
{
	return mu_fail(d->err, MU_FAILED_PRECONDITION,
		       "Invalid value string for %s-type attribute %sof debug node %s: \"%s\"",
		       kind, a->name, n->name, a->value);
}

static int set_attribute(struct debug_nodes *d, struct mu_node *n, const struct attribute *a)
{
	const struct mu_attr_def *def = mu_op_attr(n->def, a->name);
	struct mu_attr v = {.kind = def ? def->value.kind : MU_ATTR_NONE};
	char *end = NULL;

	switch (v.kind) {
	case MU_ATTR_NONE:
		return mu_fail(d->err, MU_FAILED_PRECONDITION,
			       "1 attribute key(s) were not valid for debug node %s: %s", n->name,
			       a->name);
	case MU_ATTR_STRING:
		v.s = mu_span_of(a->value);
		break;
	case MU_ATTR_FLOAT:
		v.f = strtof(a->value, &end);
		if (end == a->value || *end)
			return fail_value(d, n, "float", a);
		break;
	case MU_ATTR_BOOL:
		v.b = strcasecmp(a->value, "true") == 0;
		if (!v.b && strcasecmp(a->value, "false") != 0)
			return fail_value(d, n, "bool", a);
		break;
	default:
		return mu_fail(d->err, MU_FAILED_PRECONDITION,
			       "Unsupported type of custom attribute for debug ops: %s", a->name);
	}
	mu_node_set_attr(d->unchecked, n, a->name, &v);
	return 0;
}

/* ---- nodes ---- */

/* An output of a node, with its name for node names and errors. */
struct output {
	struct mu_node *node;
	unsigned slot;
	enum mu_dtype type;
	const char *name; /* "node:slot" */
};

static void set_if_declared(struct debug_nodes *d, struct mu_node *n, const char *name,
			    const struct mu_attr *value)
{
	if (mu_op_attr(n->def, name))
		mu_node_set_attr(d->unchecked, n, name, value);
}

static void set_watch(struct debug_nodes *d, struct mu_node *n, const struct output *o,
		      const watch_def *w)
{
	struct mu_attr type = {.kind = MU_ATTR_TYPE, .type = mu_dtype_base(o->type)};
	struct mu_attr device = {.kind = MU_ATTR_STRING, .s = mu_span_of(o->node->device)};
	struct mu_attr name = {.kind = MU_ATTR_STRING, .s = mu_span_of(o->name)};
	struct mu_attr urls = {.kind = MU_ATTR_LIST + MU_ATTR_STRING,
			       .n = (unsigned)w->n_debug_urls};

	urls.ss = MU_ARENA_ARRAY(&d->scratch, struct mu_span, w->n_debug_urls + 1);
	for (size_t i = 0; i < w->n_debug_urls; i++)
		urls.ss[i] = mu_span_of(w->debug_urls[i]);
	set_if_declared(d, n, "T", &type);
	set_if_declared(d, n, "device_name", &device);
	set_if_declared(d, n, "tensor_name", &name);
	set_if_declared(d, n, "debug_urls", &urls);
}

/* Returns true if the CPU has a kernel for the node's op and, for a debug op, for its types.  A
 * client may name other ops; their types are checked with the graph, because `prepare` relies on
 * that. */
static bool has_kernel(struct debug_nodes *d, const struct mu_node *n)
{
	const struct kernel *k = d->rt->kernels->find(n->op);
	struct mu_err ignored;
	void *state = NULL;

	return k && (strncmp(n->op, "Debug", 5) != 0 || !k->prepare ||
		     k->prepare(n, d->rt, &state, &ignored) == 0);
}

/* Makes the i-th debug node of an output in the graph `unchecked`. */
static int make_debug_node(struct debug_nodes *d, const struct output *o, const watch_def *w,
			   unsigned i, const struct debug_op *op, struct mu_node **out)
{
	const char *name = mu_arena_printf(&d->scratch, "__dbg_%s_%u_%s", o->name, i, op->name);

	if (!mu_op_find(op->name))
		return mu_fail(d->err, MU_FAILED_PRECONDITION,
			       "Failed to create node definition for debug op %s on watched "
			       "tensor %s",
			       op->name, o->name);
	MU_RETURN_IF_ERROR(mu_graph_add(d->unchecked, name, op->name, out, d->err));
	mu_node_set_device(d->unchecked, *out, o->node->device);
	set_watch(d, *out, o, w);
	for (unsigned k = 0; k < op->n; k++)
		MU_RETURN_IF_ERROR(set_attribute(d, *out, &op->attributes[k]));
	if (!has_kernel(d, *out))
		return mu_fail(d->err, MU_FAILED_PRECONDITION,
			       "Failed to find kernel definition for debug op %s on watched "
			       "tensor %s",
			       op->name, o->name);
	return 0;
}

static int add_debug_node(struct debug_nodes *d, const struct output *o, const watch_def *w,
			  unsigned i, struct publishers *to)
{
	struct debug_op op;
	struct mu_node *debug_node, *n;

	if (parse_op(d, w->debug_ops[i], &op))
		return mu_wrap(d->err, "Failed to create Copy/CopyHost node for tensor %s, due to",
			       o->name);
	if (make_debug_node(d, o, w, i, &op, &debug_node) == 0) {
		n = mu_graph_copy_node(d->g, debug_node);
		mu_node_set_inputs(d->g, n, &(struct mu_input){o->node, (int)o->slot}, 1, NULL, 0);
		to->nodes[to->n++] = n;
	} else if (!w->tolerate_debug_op_creation_failures) {
		return mu_wrap(d->err, "Failed to create debug node %s for tensor %s, due to",
			       w->debug_ops[i], o->name);
	}
	return 0;
}

static int watch_output(struct debug_nodes *d, const struct output *o, const watch_def *w,
			struct publishers *to)
{
	to->nodes = MU_ARENA_ARRAY(&d->scratch, struct mu_node *, w->n_debug_ops + 1);
	for (unsigned i = 0; i < w->n_debug_ops; i++)
		MU_RETURN_IF_ERROR(add_debug_node(d, o, w, i, to));
	return 0;
}

static int watch_node(struct debug_nodes *d, struct mu_node *n)
{
	enum mu_dtype *types;
	unsigned count;

	MU_RETURN_IF_ERROR(mu_node_need_def(n, d->err));
	MU_RETURN_IF_ERROR(mu_op_output_types(n, &d->scratch, &types, &count, d->err));
	d->n_outputs[n->id] = count;
	d->outputs[n->id] = MU_ARENA_ARRAY(&d->scratch, struct publishers, count + 1);
	for (unsigned i = 0; i < count; i++) {
		struct output o = {n, i, types[i],
				   mu_arena_printf(&d->scratch, "%s:%u", n->name, i)};
		const watch_def *w = mu_map_get(&d->watches, o.name);

		if (w || (w = d->wildcard))
			MU_RETURN_IF_ERROR(watch_output(d, &o, w, &d->outputs[n->id][i]));
	}
	return 0;
}

/* Makes node n wait for the publishers of its inputs.  A Merge does not wait, because one of its
 * inputs is dead. */
static void wait_for_publishers(struct debug_nodes *d, struct mu_node *n)
{
	if (mu_node_has_flag(n, MU_OP_MERGE))
		return;
	for (unsigned i = 0; i < n->n_inputs; i++) {
		struct mu_input in = n->inputs[i];
		const struct publishers *p;

		if ((unsigned)in.port >= d->n_outputs[in.node->id])
			continue; /* the executor reports it */
		p = &d->outputs[in.node->id][in.port];
		for (unsigned k = 0; k < p->n; k++)
			mu_node_add_control(d->g, n, p->nodes[k]);
	}
}

/* ---- graph events ---- */

struct graph_event {
	const char *device;
	struct mu_span graph_def;
	uint32_t hash;
	int64_t time_us;
};

/* Publishes chunk i of n at a URL.  In a stream, which has no file names, a text precedes it. */
static int publish_chunk(struct debug_nodes *d, const struct debug_sink *sink, const char *url,
			 const struct graph_event *g, size_t i, size_t n, struct mu_err *err)
{
	size_t at = i * DEBUG_CHUNK_BYTES;
	size_t len = i + 1 < n ? DEBUG_CHUNK_BYTES : g->graph_def.len - at;
	MU_AUTO_BUF event = {0};
	MU_AUTO_BUF path = {0};
	size_t bytes;

	debug_event_begin(&event, g->time_us);
	bytes = mu_pb_begin(&event, EVENT_GRAPH_DEF);
	if (sink->is_stream)
		mu_buf_printf(&event, "%u,%s,%lld|%zu|%zu|", g->hash, g->device,
			      (long long)g->time_us, i, n);
	mu_buf_put(&event, g->graph_def.data + at, len);
	mu_pb_end(&event, bytes);
	debug_put_folder(&path, g->device);
	mu_buf_printf(&path, "_tfdbg_graph_hash%u", g->hash);
	return sink->publish(d->rt, url,
			     &(struct debug_event){.bytes = mu_buf_span(&event),
						   .path = path.data,
						   .time_us = g->time_us,
						   .is_last = i + 1 == n},
			     err);
}

/* As in TensorFlow, an unknown kind of URL is an error only when the first tensor is published. */
static int publish_graph(struct debug_nodes *d, const char *url, const struct graph_event *g)
{
	const struct debug_sink *sink = debug_sink_find(url);
	struct mu_err why;
	size_t n = 1;

	if (!sink)
		return 0;
	if (sink->is_stream)
		n = (g->graph_def.len + DEBUG_CHUNK_BYTES - 1) / DEBUG_CHUNK_BYTES;
	for (size_t i = 0; i < n; i++)
		if (publish_chunk(d, sink, url, g, i, n, &why))
			return mu_fail(d->err, MU_FAILED_PRECONDITION,
				       "Failed to send chunk %zu of %zu of encoded GraphDef of "
				       "size %zu bytes, due to: %s",
				       i, n, g->graph_def.len, why.msg);
	return 0;
}

/* Publishes the graph once for each device of its nodes. */
static int publish_for_devices(struct debug_nodes *d)
{
	MU_AUTO_BUF graph_def = {0};
	struct graph_event g;
	struct mu_map devices;
	int rc = 0;

	mu_graph_write(d->g, &graph_def);
	g.graph_def = mu_buf_span(&graph_def);
	g.hash = mu_crc32c(0, graph_def.data, graph_def.len);
	mu_map_init(&devices);
	for (unsigned i = 0; i < d->g->n_nodes; i++) {
		g.device = d->g->nodes[i]->device;
		if (mu_map_put(&devices, g.device, d->g))
			continue;
		g.time_us = debug_event_time();
		mu_map_each (&d->urls, url)
			if (!rc)
				rc = publish_graph(d, url->value, &g);
	}
	mu_map_fini(&devices);
	return rc;
}

static int add_debug_nodes(struct debug_nodes *d, const Muster__DebugOptions *o)
{
	for (size_t i = 0; i < o->n_debug_tensor_watch_opts; i++)
		MU_RETURN_IF_ERROR(read_watch(d, o->debug_tensor_watch_opts[i]));
	d->n_nodes = d->g->n_nodes;
	d->outputs = MU_ARENA_ARRAY(&d->scratch, struct publishers *, d->n_nodes + 1);
	d->n_outputs = MU_ARENA_ARRAY(&d->scratch, unsigned, d->n_nodes + 1);
	for (unsigned i = 0; i < d->n_nodes; i++)
		MU_RETURN_IF_ERROR(watch_node(d, d->g->nodes[i]));
	for (unsigned i = 0; i < d->n_nodes; i++)
		wait_for_publishers(d, d->g->nodes[i]);
	return publish_for_devices(d);
}

int debug_nodes_add(struct mu_graph *g, struct mu_span debug_options, struct runtime *rt,
		    struct mu_err *err)
{
	struct debug_nodes d = {.g = g, .unchecked = mu_graph_new(), .rt = rt, .err = err};
	const Muster__DebugOptions *o;
	int rc = -MU_INVALID_ARGUMENT;

	mu_arena_init(&d.scratch);
	mu_map_init(&d.watches);
	mu_map_init(&d.urls);
	o = control_unpack(&d.scratch, &muster__debug_options__descriptor, debug_options, err);
	if (o)
		rc = add_debug_nodes(&d, o);
	mu_map_fini(&d.urls);
	mu_map_fini(&d.watches);
	mu_arena_fini(&d.scratch);
	mu_graph_free(d.unchecked);
	return rc;
}
