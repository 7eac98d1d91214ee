/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the nodes that one step needs from a session's graph: the ancestors of its fetches and
 * targets, up to the fed tensors.  Feeds become client _Recvs and fetches client _Sends on the
 * master's own device, with TensorFlow's names.  If a callable connects a tensor to another tensor,
 * the users of the first read the second. */
#include <string.h>

#include "lib/graph/library.h"
#include "task/graph/graph_passes.h"

struct prune {
	const struct mu_graph *from;
	const struct graph_signature *sig;
	const struct graph_devices *devs;
	struct mu_graph *to;
	struct mu_arena scratch;
	struct mu_input *feeds, *fetches;
	struct mu_node **feed_nodes; /* the _Recv of each feed */
	struct mu_input *sources;    /* in `from`: the replacements of the connected tensors */
	struct mu_map fed; /* {node id, port} -> 1 + number of the feed, or n_feeds + source */
	bool *needed;
	struct mu_node **copies; /* by id in `from` */
	struct mu_node **todo;
	unsigned n_todo;
	uint64_t incarnation;
	struct mu_err *err;
};

struct feed_key {
	unsigned id;
	int port;
};

/* Returns the index of the feed or source that replaces this input, or -1. */
static int feed_index(const struct prune *p, struct mu_input in)
{
	struct feed_key k = {in.node->id, in.port};

	return (int)(intptr_t)mu_map_get_n(&p->fed, &k, sizeof k) - 1;
}

static int prune_output_type(struct prune *p, struct mu_input in, const char *endpoint,
			     enum mu_dtype *out)
{
	enum mu_dtype *types;
	unsigned n;
	int rc = mu_node_need_def(in.node, p->err);

	if (rc || (rc = mu_op_output_types(in.node, &p->scratch, &types, &n, p->err)))
		return rc;
	if ((unsigned)in.port >= n)
		return mu_fail(p->err, MU_INVALID_ARGUMENT,
			       "%s %s:%d: output index too large, must be < %u", endpoint,
			       in.node->name, in.port, n);
	*out = mu_dtype_base(types[in.port]);
	return 0;
}

static int resolve_fetch(struct prune *p, const char *text, struct mu_input *out)
{
	if (mu_graph_resolve(p->from, text, out, NULL) || out->port == MU_CONTROL)
		return mu_fail(p->err, MU_NOT_FOUND, "FetchOutputs node %s%s: not found", text,
			       strchr(text, ':') ? "" : ":0");
	return 0;
}

/* Adds a _Send or _Recv between this device and the client. */
static struct mu_node *add_client_end(struct prune *p, const char *op, struct mu_input source,
				      unsigned copy, const char *type_attr, enum mu_dtype type,
				      const char **key)
{
	const char *dir = op[1] == 'S' ? "send" : "recv", *dev = p->devs->client;
	const char *name =
	    mu_arena_printf(&p->scratch, "_%s_%s_%d", dir, source.node->name, source.port);
	const char *tensor = mu_arena_printf(&p->scratch, "%s:%d", source.node->name, source.port);
	struct mu_node *n;

	if (copy) { /* a tensor that is fetched twice needs two keys */
		tensor = mu_arena_printf(&p->scratch, "%s#%u", tensor, copy);
		name = mu_arena_printf(&p->scratch, "%s_%u", name, copy);
	}
	while (mu_graph_find(p->to, name) || mu_graph_find(p->from, name))
		name = mu_arena_printf(&p->scratch, "%s_", name);
	n = mu_graph_add_unique(p->to, name, op, dev, NULL, 0);
	mu_node_set_type(p->to, n, type_attr, type);
	mu_node_set_string(p->to, n, "tensor_name", tensor);
	mu_node_set_string(p->to, n, "send_device", dev);
	mu_node_set_string(p->to, n, "recv_device", dev);
	mu_node_set_int(p->to, n, "send_device_incarnation", (int64_t)p->incarnation);
	mu_node_set_bool(p->to, n, "client_terminated", true);
	*key = mu_arena_printf(&p->to->arena, "%s;%016llx;%s;%s;0:0", dev,
			       (unsigned long long)p->incarnation, dev, tensor);
	return n;
}

/* Replaces the tensor `fed` by a feed or, from index n_feeds on, by a source. */
static int add_fed(struct prune *p, struct mu_input fed, unsigned index, const char *text)
{
	struct feed_key k = {fed.node->id, fed.port};

	if (mu_map_put_n(&p->fed, &k, sizeof k, (void *)(intptr_t)(index + 1)))
		return mu_fail(p->err, MU_INVALID_ARGUMENT, "Endpoint \"%s\" fed more than once.",
			       text);
	return 0;
}

static int resolve_feed(struct prune *p, const char *text, struct mu_input *out,
			enum mu_dtype *type)
{
	if (mu_graph_resolve(p->from, text, out, NULL) || out->port == MU_CONTROL)
		return mu_fail(p->err, MU_NOT_FOUND, "FeedInputs: unable to find feed output %s",
			       text);
	return prune_output_type(p, *out, "FeedInputs", type);
}

static int add_feeds(struct prune *p, const char **keys)
{
	int rc;

	p->feeds = MU_ARENA_ARRAY(&p->scratch, struct mu_input, p->sig->n_feeds);
	p->feed_nodes = MU_ARENA_ARRAY(&p->scratch, struct mu_node *, p->sig->n_feeds);
	for (unsigned i = 0; i < p->sig->n_feeds; i++) {
		enum mu_dtype type;
		rc = resolve_feed(p, p->sig->feeds[i], &p->feeds[i], &type);
		if (rc)
			return rc;
		if ((rc = add_fed(p, p->feeds[i], i, p->sig->feeds[i])))
			return rc;
		p->feed_nodes[i] =
		    add_client_end(p, "_Recv", p->feeds[i], 0, "tensor_type", type, &keys[i]);
	}
	return 0;
}

static int add_connections(struct prune *p)
{
	const struct graph_signature *sig = p->sig;

	p->sources = MU_ARENA_ARRAY(&p->scratch, struct mu_input, sig->n_connected);
	for (unsigned i = 0; i < sig->n_connected; i++) {
		enum mu_dtype type, source_type;
		struct mu_input to;
		int rc;
		if (mu_graph_resolve(p->from, sig->sources[i], &p->sources[i], NULL) ||
		    p->sources[i].port == MU_CONTROL)
			return mu_fail(p->err, MU_INVALID_ARGUMENT,
				       "Requested tensor connection from unknown node: \"%s\".",
				       sig->connected[i]);
		if ((rc = resolve_feed(p, sig->connected[i], &to, &type)) ||
		    (rc = prune_output_type(p, p->sources[i], "FeedInputs", &source_type)) ||
		    (rc = add_fed(p, to, sig->n_feeds + i, sig->connected[i])))
			return rc;
		if (type != source_type)
			return mu_fail(p->err, MU_INVALID_ARGUMENT,
				       "%s of type %s cannot be connected to %s of type %s",
				       sig->sources[i], mu_dtype_name(source_type),
				       sig->connected[i], mu_dtype_name(type));
	}
	return 0;
}

static void mark_needed(struct prune *p, struct mu_node *n)
{
	if (p->needed[n->id])
		return;
	p->needed[n->id] = true;
	p->todo[p->n_todo++] = n;
}

/* Returns the feed that replaces a control edge from node n, or -1. */
static int control_feed(const struct prune *p, const struct mu_node *n)
{
	if (strcmp(n->op, "Placeholder") != 0 && strcmp(n->op, "PlaceholderV2") != 0)
		return -1;
	return feed_index(p, (struct mu_input){(struct mu_node *)n, 0});
}

static int find_needed(struct prune *p)
{
	MU_AUTO_BUF missing = {0};
	int rc;

	p->fetches = MU_ARENA_ARRAY(&p->scratch, struct mu_input, p->sig->n_fetches);
	for (unsigned i = 0; i < p->sig->n_fetches; i++) {
		enum mu_dtype type;
		if ((rc = resolve_fetch(p, p->sig->fetches[i], &p->fetches[i])) ||
		    (rc = prune_output_type(p, p->fetches[i], "FetchOutputs", &type)))
			return rc;
		/* As in TensorFlow: its _Recv and _Send would match each other directly. */
		if (feed_index(p, p->fetches[i]) >= 0)
			return mu_fail(p->err, MU_INVALID_ARGUMENT, "%s is both fed and fetched.",
				       p->sig->fetches[i]);
		mark_needed(p, p->fetches[i].node);
	}
	for (unsigned i = 0; i < p->sig->n_targets; i++) {
		struct mu_node *n = mu_graph_find(p->from, p->sig->targets[i]);
		if (n)
			mark_needed(p, n);
		else
			mu_buf_printf(&missing, " %s", p->sig->targets[i]);
	}
	if (missing.len)
		return mu_fail(p->err, MU_NOT_FOUND,
			       "PruneForTargets: Some target nodes not found:%s", missing.data);
	while (p->n_todo) {
		const struct mu_node *n = p->todo[--p->n_todo];
		if ((rc = mu_node_need_def(n, p->err)))
			return rc;
		for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++) {
			struct mu_input in = n->inputs[k];
			int feed =
			    in.port == MU_CONTROL ? control_feed(p, in.node) : feed_index(p, in);
			if (feed < 0)
				mark_needed(p, in.node);
			else if ((unsigned)feed >= p->sig->n_feeds)
				mark_needed(p, p->sources[(unsigned)feed - p->sig->n_feeds].node);
		}
	}
	return 0;
}

/* If n has the class "loc:@x" and x is pruned, sets the device request of x. */
static void inherit_device_request(struct prune *p, const struct mu_node *n, struct mu_node *copy)
{
	for (unsigned hops = 0; !*n->device && hops < 8; hops++) {
		const struct mu_attr *c = mu_node_attr(n, "_class");
		const struct mu_node *x = NULL;
		if (!c || (int)c->kind != MU_ATTR_LIST + MU_ATTR_STRING)
			return;
		for (unsigned i = 0; i < c->n && !x; i++)
			if (strncmp(c->ss[i].data, "loc:@", 5) == 0)
				x = mu_graph_find(p->from, c->ss[i].data + 5);
		if (!x || p->needed[x->id])
			return;
		mu_node_set_device(p->to, copy, x->device);
		n = x;
	}
}

static struct mu_input prune_map_input(const struct prune *p, struct mu_input in)
{
	int feed = in.port == MU_CONTROL ? control_feed(p, in.node) : feed_index(p, in);

	if (feed >= 0 && (unsigned)feed >= p->sig->n_feeds) {
		struct mu_input source = p->sources[(unsigned)feed - p->sig->n_feeds];
		return (struct mu_input){p->copies[source.node->id],
					 in.port == MU_CONTROL ? in.port : source.port};
	}
	if (feed >= 0)
		return (struct mu_input){p->feed_nodes[feed], in.port == MU_CONTROL ? in.port : 0};
	return (struct mu_input){p->copies[in.node->id], in.port};
}

static void copy_needed(struct prune *p)
{
	const struct mu_graph *g = p->from;

	for (unsigned i = 0; i < g->n_nodes; i++) {
		if (!p->needed[i])
			continue;
		p->copies[i] = mu_graph_copy_node(p->to, g->nodes[i]);
		inherit_device_request(p, g->nodes[i], p->copies[i]);
	}
	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];
		if (!p->needed[i])
			continue;
		unsigned total = n->n_inputs + n->n_controls;
		struct mu_input *in = MU_ARENA_ARRAY(&p->scratch, struct mu_input, total);
		for (unsigned k = 0; k < total; k++)
			in[k] = prune_map_input(p, n->inputs[k]);
		mu_node_set_inputs(p->to, p->copies[i], in, n->n_inputs, in + n->n_inputs,
				   n->n_controls);
	}
	for (unsigned i = 0; i < p->sig->n_targets; i++)
		p->copies[mu_graph_find(p->from, p->sig->targets[i])->id]->must_run = true;
}

static int add_fetches(struct prune *p, const char **keys)
{
	struct mu_map n_uses;
	int rc = 0;

	mu_map_init(&n_uses);
	for (unsigned i = 0; !rc && i < p->sig->n_fetches; i++) {
		struct mu_input f = p->fetches[i], in = prune_map_input(p, f);
		struct feed_key k = {f.node->id, f.port};
		uintptr_t copy = (uintptr_t)mu_map_get_n(&n_uses, &k, sizeof k);
		enum mu_dtype type;
		struct mu_node *send;
		mu_map_put_n(&n_uses, &k, sizeof k, (void *)(copy + 1));
		if ((rc = prune_output_type(p, f, "FetchOutputs", &type)))
			break;
		send = add_client_end(p, "_Send", f, (unsigned)copy, "T", type, &keys[i]);
		mu_node_set_inputs(p->to, send, &in, 1, NULL, 0);
	}
	mu_map_fini(&n_uses);
	return rc;
}

static uint64_t client_incarnation(const struct graph_devices *devs)
{
	for (unsigned i = 0; i < devs->count; i++)
		if (strcmp(devs->list[i].name, devs->client) == 0)
			return devs->list[i].incarnation;
	return 0;
}

int graph_prune(const struct mu_graph *g, const struct graph_signature *sig,
		const struct graph_devices *devs, struct mu_graph **out, const char ***feed_keys,
		const char ***fetch_keys, struct mu_err *err)
{
	MU_AUTO(mu_graph_free) struct mu_graph *to = mu_graph_new();
	struct prune p = {.from = g, .sig = sig, .devs = devs, .to = to, .err = err};
	const char **feeds = MU_ARENA_ARRAY(&to->arena, const char *, sig->n_feeds);
	const char **fetches = MU_ARENA_ARRAY(&to->arena, const char *, sig->n_fetches);
	int rc;

	p.incarnation = client_incarnation(devs);
	mu_arena_init(&p.scratch);
	mu_map_init(&p.fed);
	p.needed = MU_ARENA_ARRAY(&p.scratch, bool, g->n_nodes);
	p.copies = MU_ARENA_ARRAY(&p.scratch, struct mu_node *, g->n_nodes);
	p.todo = MU_ARENA_ARRAY(&p.scratch, struct mu_node *, g->n_nodes);
	to->producer = g->producer;
	to->library = mu_library_ref(g->library);
	if (!(rc = add_feeds(&p, feeds)) && !(rc = add_connections(&p)) &&
	    !(rc = find_needed(&p))) {
		copy_needed(&p);
		rc = add_fetches(&p, fetches);
	}
	mu_map_fini(&p.fed);
	mu_arena_fini(&p.scratch);
	if (rc)
		return rc;
	*out = mu_steal(&to);
	*feed_keys = feeds;
	*fetch_keys = fetches;
	return 0;
}
