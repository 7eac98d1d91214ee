/* SPDX-License-Identifier: Apache-2.0 */
/* One graph a task.  An edge that crosses becomes a _Send on one side and a _Recv on the other, one
 * pair for each tensor and destination device; a crossing control edge becomes an empty constant
 * that travels the same way.  Within a loop it is sent once a turn, and received when the loop's
 * pivot on that task says that there is a turn (spread.c).  Small constants do not travel: see
 * replicate.h.
 *
 * A variable that a node on another task reads after its control inputs ("train, then give me the
 * global step") is sent only when these have run, by a pair of its own: programs count on seeing
 * what the control inputs wrote. */
#include <string.h>

#include "lib/graph/device_name.h"
#include "lib/graph/library.h"
#include "task/graph/graph_passes.h"
#include "task/graph/loops.h"
#include "task/graph/replicate.h"

struct cut {
	const struct mu_graph *g;
	const struct graph_devices *devs;
	struct mu_arena scratch;
	struct graph_part *parts;
	unsigned n_parts, cap_parts;
	struct mu_map by_task; /* task prefix -> index + 1 */
	unsigned *part_of;     /* by node id */
	struct mu_node **copies;
	bool *unused;        /* by node id: copied to its users, and to nobody else of use */
	struct mu_map recvs; /* {source, port, destination device} -> _Recv, or a constant's copy */
	struct loops loops;
	unsigned n_edges;
	struct mu_err *err;
};

static int find_part(struct cut *c, const struct mu_node *n, unsigned *out)
{
	if (n->id && strcmp(n->device, c->g->nodes[n->id - 1]->device) == 0) {
		*out = c->part_of[n->id - 1]; /* as mostly */
		return 0;
	}
	size_t len = mu_device_task_len(n->device);

	if (!len)
		return mu_fail(c->err, MU_INTERNAL, "Node '%s' has no task in its device '%s'",
			       n->name, n->device);
	uintptr_t at = (uintptr_t)mu_map_get_n(&c->by_task, n->device, len);
	if (!at) {
		if (c->n_parts == c->cap_parts) {
			c->cap_parts = c->cap_parts ? c->cap_parts * 2 : 8;
			c->parts = mu_xrealloc(c->parts, c->cap_parts * sizeof *c->parts);
		}
		c->parts[c->n_parts].task = mu_xstrndup(n->device, len);
		c->parts[c->n_parts].graph = mu_graph_new();
		c->parts[c->n_parts].graph->producer = c->g->producer;
		c->parts[c->n_parts].graph->library = mu_library_ref(c->g->library);
		at = ++c->n_parts;
		mu_map_put_n(&c->by_task, n->device, len, (void *)at);
	}
	*out = (unsigned)at - 1;
	return 0;
}

static int incarnation_of(struct cut *c, const char *device, int64_t *out)
{
	for (unsigned i = 0; i < c->devs->count; i++)
		if (strcmp(c->devs->list[i].name, device) == 0) {
			*out = (int64_t)c->devs->list[i].incarnation;
			return 0;
		}
	return mu_fail(c->err, MU_INTERNAL, "device '%s' is not among those of the session",
		       device);
}

/* "<source>_S<number>", in graph `to`; the client may have taken that name. */
static int add_node(struct cut *c, struct mu_graph *to, const char *source, const char *op,
		    const char *device, struct mu_node **out)
{
	const char *name;

	do
		name = mu_arena_printf(&c->scratch, "%s_S%u", source, c->n_edges++);
	while (mu_graph_find(c->g, name));
	int rc = mu_graph_add(to, name, op, out, c->err);
	if (!rc)
		mu_node_set_device(to, *out, device);
	return rc;
}

static void set_string(struct mu_graph *g, struct mu_node *n, const char *name, const char *value)
{
	struct mu_attr a = {.kind = MU_ATTR_STRING, .s = mu_span_of(value)};

	mu_node_set_attr(g, n, name, &a);
}

struct wire {
	const char *name, *from, *to;
	int64_t incarnation;
	enum mu_dtype type;
};

static void describe(struct mu_graph *g, struct mu_node *n, const char *type_attr,
		     const struct wire *w)
{
	struct mu_attr type = {.kind = MU_ATTR_TYPE, .type = w->type};
	struct mu_attr inc = {.kind = MU_ATTR_INT, .i = w->incarnation};
	struct mu_attr no = {.kind = MU_ATTR_BOOL, .b = false};

	mu_node_set_attr(g, n, type_attr, &type);
	set_string(g, n, "tensor_name", w->name);
	set_string(g, n, "send_device", w->from);
	mu_node_set_attr(g, n, "send_device_incarnation", &inc);
	set_string(g, n, "recv_device", w->to);
	mu_node_set_attr(g, n, "client_terminated", &no);
}

static int full_type_of(struct cut *c, struct mu_input in, const struct mu_node *user,
			enum mu_dtype *out)
{
	enum mu_dtype *types;
	unsigned n;
	int rc = mu_node_need_def(in.node, c->err);

	if (rc || (rc = mu_op_output_types(in.node, &c->scratch, &types, &n, c->err)))
		return rc;
	if ((unsigned)in.port >= n)
		return mu_fail(c->err, MU_INVALID_ARGUMENT,
			       "Node '%s': its input '%s:%d' has only %u outputs", user->name,
			       in.node->name, in.port, n);
	*out = types[in.port];
	return 0;
}

static int type_of(struct cut *c, struct mu_input in, const struct mu_node *user,
		   enum mu_dtype *out)
{
	int rc = full_type_of(c, in, user, out);

	if (rc)
		return rc;
	*out = mu_dtype_base(*out);
	if (*out == MU_RESOURCE || *out == MU_VARIANT)
		return mu_fail(c->err, MU_INVALID_ARGUMENT,
			       "Node '%s' on %s takes a %s from '%s' on %s: a %s cannot leave "
			       "its task, so colocate them",
			       user->name, user->device,
			       *out == MU_RESOURCE ? "resource handle" : "variant", in.node->name,
			       in.node->device, *out == MU_RESOURCE ? "handle" : "variant");
	return 0;
}

/* What stands for a control edge on the wire: an empty constant that waits for the source. */
static int add_token(struct cut *c, struct mu_graph *from, const struct mu_node *source,
		     struct mu_input *out)
{
	struct mu_shape empty = mu_shape_vec(0);
	MU_AUTO_TENSOR t = {0};
	struct mu_node *n;
	int rc = mu_tensor_new(&t, MU_FLOAT, &empty, c->err);

	if (rc || (rc = add_node(c, from, source->name, "Const", source->device, &n)))
		return rc;
	struct mu_attr value = {.kind = MU_ATTR_TENSOR, .tensor = &t};
	struct mu_attr type = {.kind = MU_ATTR_TYPE, .type = MU_FLOAT};
	mu_node_set_attr(from, n, "value", &value);
	mu_node_set_attr(from, n, "dtype", &type);
	mu_node_add_control(from, n, c->copies[source->id]);
	*out = (struct mu_input){n, 0};
	return 0;
}

static int add_pair(struct cut *c, struct mu_input in, const struct mu_node *user,
		    struct mu_node **send, struct mu_node **recv)
{
	struct mu_graph *from = c->parts[c->part_of[in.node->id]].graph;
	struct mu_graph *to = c->parts[c->part_of[user->id]].graph;
	struct wire w = {.from = in.node->device, .to = user->device, .type = MU_FLOAT};
	struct mu_input source = {c->copies[in.node->id], in.port};
	unsigned loop;
	int rc;

	if (in.port == MU_CONTROL)
		rc = add_token(c, from, in.node, &source);
	else
		rc = type_of(c, in, user, &w.type);
	if (rc || (rc = incarnation_of(c, w.from, &w.incarnation)))
		return rc;
	w.name = mu_arena_printf(&c->scratch, "edge_%u_%s", c->n_edges, in.node->name);
	if ((rc = add_node(c, from, in.node->name, "_Send", w.from, send)) ||
	    (rc = add_node(c, to, in.node->name, "_Recv", w.to, recv)))
		return rc;
	describe(from, *send, "T", &w);
	describe(to, *recv, "tensor_type", &w);
	mu_node_set_inputs(from, *send, &source, 1, NULL, 0);
	loop = loops_of(&c->loops, in.node);
	if (loop) /* the recv must not wait for a tensor before there is a turn to send it */
		mu_node_add_control(to, *recv,
				    c->copies[loops_pivot(&c->loops, loop, user->device)->id]);
	return 0;
}

/* Who only waits for a token waits for an Identity of it: when the token is dead that is not run,
 * while TensorFlow's executor takes a receive for run whatever has come. */
static int add_waiter(struct cut *c, struct mu_node *recv, const struct mu_node *user,
		      struct mu_node **out)
{
	struct mu_graph *to = c->parts[c->part_of[user->id]].graph;
	struct mu_attr type = {.kind = MU_ATTR_TYPE, .type = MU_FLOAT};
	int rc = add_node(c, to, recv->name, "Identity", recv->device, out);

	if (rc)
		return rc;
	mu_node_set_attr(to, *out, "T", &type);
	mu_node_set_inputs(to, *out, &(struct mu_input){recv, 0}, 1, NULL, 0);
	return 0;
}

static int add_replica(struct cut *c, const struct mu_node *constant, const struct mu_node *user,
		       struct mu_node **out)
{
	struct mu_graph *to = c->parts[c->part_of[user->id]].graph;
	int rc = add_node(c, to, constant->name, constant->op, user->device, out);

	for (unsigned i = 0; !rc && i < constant->n_attrs; i++)
		if (strcmp(constant->attrs[i].name, "_class") != 0)
			mu_node_set_attr(to, *out, constant->attrs[i].name,
					 &constant->attrs[i].value);
	return rc;
}

static int map_input(struct cut *c, struct mu_input in, const struct mu_node *user,
		     struct mu_input *out)
{
	MU_AUTO_BUF key = {0};
	struct mu_node *send, *recv;
	const struct mu_node *constant;
	int rc;

	if (c->part_of[in.node->id] == c->part_of[user->id]) {
		*out = (struct mu_input){c->copies[in.node->id], in.port};
		return 0;
	}
	if ((constant = replicate_source(in)))
		in.node = (struct mu_node *)constant;
	mu_buf_put(&key, &in.node->id, sizeof in.node->id);
	mu_buf_put(&key, &in.port, sizeof in.port);
	mu_buf_puts(&key, user->device);
	recv = mu_map_get_n(&c->recvs, key.data, key.len);
	if (!recv) {
		rc = constant ? add_replica(c, constant, user, &recv)
			      : add_pair(c, in, user, &send, &recv);
		if (!rc && !constant && in.port == MU_CONTROL)
			rc = add_waiter(c, recv, user, &recv);
		if (rc)
			return rc;
		mu_map_put_n(&c->recvs, key.data, key.len, recv);
	}
	*out = (struct mu_input){recv, in.port == MU_CONTROL ? MU_CONTROL : 0};
	return 0;
}

/* Whether input k is another task's variable, and to be read after the node's control inputs. */
static int reads_late(struct cut *c, const struct mu_node *n, unsigned k, bool *out)
{
	struct mu_input in = n->inputs[k];
	enum mu_dtype type;
	int rc;

	*out = false;
	if (k >= n->n_inputs || !n->n_controls || c->part_of[in.node->id] == c->part_of[n->id])
		return 0;
	for (unsigned i = 0; i < n->n_controls; i++)
		if (loops_of(&c->loops, n->inputs[n->n_inputs + i].node))
			return 0; /* a loop's turns have no place on the other task */
	if ((rc = full_type_of(c, in, n, &type)))
		return rc;
	*out = mu_dtype_is_ref(type);
	return 0;
}

static int read_late(struct cut *c, const struct mu_node *n, unsigned k, struct mu_input *out)
{
	const struct mu_node *variable = n->inputs[k].node;
	struct mu_graph *from = c->parts[c->part_of[variable->id]].graph;
	struct mu_node *send, *recv;
	struct mu_input first;
	int rc = add_pair(c, n->inputs[k], n, &send, &recv);

	for (unsigned i = 0; !rc && i < n->n_controls; i++)
		if (!(rc = map_input(c, n->inputs[n->n_inputs + i], variable, &first)))
			mu_node_add_control(from, send, first.node);
	*out = (struct mu_input){recv, 0};
	return rc;
}

static int cut_all(struct cut *c)
{
	const struct mu_graph *g = c->g;
	int rc;

	for (unsigned i = 0; i < g->n_nodes; i++)
		if ((rc = find_part(c, g->nodes[i], &c->part_of[i])))
			return rc;
	c->unused = replicate_unused(g, c->part_of, &c->scratch);
	for (unsigned i = 0; i < g->n_nodes; i++)
		if (!c->unused[i])
			c->copies[i] =
			    mu_graph_copy_node(c->parts[c->part_of[i]].graph, g->nodes[i]);
	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];
		unsigned total = n->n_inputs + n->n_controls;
		if (c->unused[i])
			continue;
		struct mu_input *in = MU_ARENA_ARRAY(&c->scratch, struct mu_input, total);
		for (unsigned k = 0; k < total; k++) {
			bool late;
			if ((rc = reads_late(c, n, k, &late)) ||
			    (rc = late ? read_late(c, n, k, &in[k])
				       : map_input(c, n->inputs[k], n, &in[k])))
				return rc;
		}
		mu_node_set_inputs(c->parts[c->part_of[i]].graph, c->copies[i], in, n->n_inputs,
				   in + n->n_inputs, n->n_controls);
	}
	return 0;
}

/* A part of which nothing is left needs no task's work. */
static void drop_empty(struct cut *c)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < c->n_parts; i++) {
		if (c->parts[i].graph->n_nodes) {
			c->parts[kept++] = c->parts[i];
			continue;
		}
		free(c->parts[i].task);
		mu_graph_free(c->parts[i].graph);
	}
	c->n_parts = kept;
}

int graph_partition(struct mu_graph *g, const struct graph_devices *devs, struct graph_part **parts,
		    unsigned *n_parts, struct mu_err *err)
{
	struct cut c = {.g = g, .devs = devs, .err = err};
	int rc = loops_spread(&c.loops, g, err);

	mu_arena_init(&c.scratch);
	mu_map_init(&c.by_task);
	mu_map_init(&c.recvs);
	c.part_of = MU_ARENA_ARRAY(&c.scratch, unsigned, g->n_nodes);
	c.copies = MU_ARENA_ARRAY(&c.scratch, struct mu_node *, g->n_nodes);
	if (!rc)
		rc = cut_all(&c);
	loops_fini(&c.loops);
	mu_map_fini(&c.recvs);
	mu_map_fini(&c.by_task);
	mu_arena_fini(&c.scratch);
	if (rc) {
		graph_parts_free(c.parts, c.n_parts);
		return rc;
	}
	drop_empty(&c);
	*parts = c.parts;
	*n_parts = c.n_parts;
	return 0;
}

void graph_parts_free(struct graph_part *parts, unsigned n_parts)
{
	for (unsigned i = 0; i < n_parts; i++) {
		free(parts[i].task);
		mu_graph_free(parts[i].graph);
	}
	free(parts);
}
