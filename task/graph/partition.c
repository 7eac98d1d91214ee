/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions a placed graph into one graph per task.
 *
 * An edge between tasks becomes a _Send and a _Recv, one pair for each tensor and destination
 * device.  A control edge between tasks becomes an empty constant that is sent the same way.
 * Within a loop a tensor is sent once per iteration.  The receive has the loop's pivot on its task
 * as a control input, so it starts once per iteration too (distributed_loop.c).
 *
 * A node may read a variable of another task after its control inputs ("train, then fetch the
 * global step").  That read has its own _Send, which runs after the control inputs, because
 * programs rely on seeing their writes.
 *
 * A session may ask that float tensors are sent as bfloat16
 * (GraphOptions.enable_bfloat16_sendrecv).  Then a Cast precedes the _Send and another follows the
 * _Recv. */
#include <string.h>

#include "lib/graph/device_name.h"
#include "lib/graph/library.h"
#include "task/graph/graph_passes.h"
#include "task/graph/loops.h"

struct partitioner {
	const struct mu_graph *g;
	const struct graph_devices *devs;
	struct mu_arena scratch;
	struct partition *partitions;
	unsigned n_partitions, cap_partitions;
	struct mu_map by_task;  /* task prefix -> index + 1 */
	unsigned *partition_of; /* by node id */
	struct mu_node **copies;
	struct mu_map recvs; /* {source, port, destination device} -> _Recv */
	struct loops loops;
	unsigned n_edges;
	struct mu_err *err;
};

static int get_or_add_partition(struct partitioner *c, const struct mu_node *n, unsigned *out)
{
	if (n->id && strcmp(n->device, c->g->nodes[n->id - 1]->device) == 0) {
		*out = c->partition_of[n->id - 1]; /* fast path */
		return 0;
	}
	size_t len = mu_device_task_len(n->device);

	if (!len)
		return mu_fail(c->err, MU_INTERNAL, "Node '%s' has no task in its device '%s'",
			       n->name, n->device);
	uintptr_t at = (uintptr_t)mu_map_get_n(&c->by_task, n->device, len);
	if (!at) {
		if (c->n_partitions == c->cap_partitions) {
			c->cap_partitions = c->cap_partitions ? c->cap_partitions * 2 : 8;
			c->partitions =
			    mu_xrealloc(c->partitions, c->cap_partitions * sizeof *c->partitions);
		}
		c->partitions[c->n_partitions].task = mu_xstrndup(n->device, len);
		c->partitions[c->n_partitions].graph = mu_graph_new();
		c->partitions[c->n_partitions].graph->producer = c->g->producer;
		c->partitions[c->n_partitions].graph->library = mu_library_ref(c->g->library);
		at = ++c->n_partitions;
		mu_map_put_n(&c->by_task, n->device, len, (void *)at);
	}
	*out = (unsigned)at - 1;
	return 0;
}

static int incarnation_of(struct partitioner *c, const char *device, int64_t *out)
{
	for (unsigned i = 0; i < c->devs->count; i++)
		if (strcmp(c->devs->list[i].name, device) == 0) {
			*out = (int64_t)c->devs->list[i].incarnation;
			return 0;
		}
	return mu_fail(c->err, MU_INTERNAL, "device '%s' is not a device of the session", device);
}

/* Adds a node named "<source>_S<number>" to graph `to`.  The loop skips names of client nodes. */
static struct mu_node *partitioner_add_node(struct partitioner *c, struct mu_graph *to,
					    const char *source, const char *op, const char *device,
					    const struct mu_input *in, unsigned n_in)
{
	const char *name;

	do
		name = mu_arena_printf(&c->scratch, "%s_S%u", source, c->n_edges++);
	while (mu_graph_find(c->g, name));
	return mu_graph_add_unique(to, name, op, device, in, n_in);
}

struct edge_ends {
	const char *name, *from, *to;
	int64_t incarnation;
	enum mu_dtype type;
};

static void set_edge_attrs(struct mu_graph *g, struct mu_node *n, const char *type_attr,
			   const struct edge_ends *w)
{
	mu_node_set_type(g, n, type_attr, w->type);
	mu_node_set_string(g, n, "tensor_name", w->name);
	mu_node_set_string(g, n, "send_device", w->from);
	mu_node_set_int(g, n, "send_device_incarnation", w->incarnation);
	mu_node_set_string(g, n, "recv_device", w->to);
	mu_node_set_bool(g, n, "client_terminated", false);
}

static int partitioner_output_type(struct partitioner *c, struct mu_input in,
				   const struct mu_node *user, enum mu_dtype *out)
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

static int sendable_type(struct partitioner *c, struct mu_input in, const struct mu_node *user,
			 enum mu_dtype *out)
{
	int rc = partitioner_output_type(c, in, user, out);

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

/* Adds the value to send for a control edge: an empty constant with the source as control input. */
static int partitioner_add_token(struct partitioner *c, struct mu_graph *from,
				 const struct mu_node *source, struct mu_input *out)
{
	struct mu_shape empty = mu_shape_vec(0);
	MU_AUTO_TENSOR t = {0};
	struct mu_node *n;
	int rc = mu_tensor_new(&t, MU_FLOAT, &empty, c->err);

	if (rc)
		return rc;
	struct mu_attr value = {.kind = MU_ATTR_TENSOR, .tensor = &t};
	n = partitioner_add_node(c, from, source->name, "Const", source->device, NULL, 0);
	mu_node_set_attr(from, n, "value", &value);
	mu_node_set_type(from, n, "dtype", MU_FLOAT);
	mu_node_add_control(from, n, c->copies[source->id]);
	*out = (struct mu_input){n, 0};
	return 0;
}

/* Adds a Cast of `in`, which is on n's device.  To bfloat16 it rounds to zero, as TensorFlow does.
 */
static struct mu_node *add_cast(struct partitioner *c, struct mu_graph *to, const struct mu_node *n,
				struct mu_input in, enum mu_dtype from_type, enum mu_dtype to_type)
{
	struct mu_node *cast = partitioner_add_node(c, to, n->name, "Cast", n->device, &in, 1);

	mu_node_set_type(to, cast, "SrcT", from_type);
	mu_node_set_type(to, cast, "DstT", to_type);
	mu_node_set_bool(to, cast, "Truncate", to_type == MU_BFLOAT16);
	return cast;
}

/* Adds a _Send and a _Recv, with casts around them if needed.  *first is the node that reads the
 * source; *last is the node whose output is the value on the user's task. */
static int partitioner_add_pair(struct partitioner *c, struct mu_input in,
				const struct mu_node *user, struct mu_node **first,
				struct mu_node **last)
{
	struct mu_graph *from = c->partitions[c->partition_of[in.node->id]].graph;
	struct mu_graph *to = c->partitions[c->partition_of[user->id]].graph;
	struct edge_ends w = {.from = in.node->device, .to = user->device, .type = MU_FLOAT};
	struct mu_input source = {c->copies[in.node->id], in.port};
	struct mu_node *send, *recv;
	unsigned loop;
	int rc;

	if (in.port == MU_CONTROL)
		rc = partitioner_add_token(c, from, in.node, &source);
	else
		rc = sendable_type(c, in, user, &w.type);
	if (rc || (rc = incarnation_of(c, w.from, &w.incarnation)))
		return rc;
	bool has_casts = c->devs->bfloat16_edges && in.port != MU_CONTROL && w.type == MU_FLOAT;
	if (has_casts) {
		*first = add_cast(c, from, in.node, source, MU_FLOAT, MU_BFLOAT16);
		source = (struct mu_input){*first, 0};
		w.type = MU_BFLOAT16;
	}
	w.name = mu_arena_printf(&c->scratch, "edge_%u_%s", c->n_edges, in.node->name);
	send = partitioner_add_node(c, from, in.node->name, "_Send", w.from, &source, 1);
	recv = partitioner_add_node(c, to, in.node->name, "_Recv", w.to, NULL, 0);
	set_edge_attrs(from, send, "T", &w);
	set_edge_attrs(to, recv, "tensor_type", &w);
	loop = loop_of_outputs(&c->loops, in.node);
	if (loop) /* the receive must start once per iteration */
		mu_node_add_control(to, recv,
				    c->copies[loops_pivot(&c->loops, loop, user->device)->id]);
	if (has_casts) {
		*last = add_cast(c, to, user, (struct mu_input){recv, 0}, MU_BFLOAT16, MU_FLOAT);
		return 0;
	}
	*first = send;
	*last = recv;
	return 0;
}

/* Adds an Identity of the token as the source of the control edge.  If the token is dead, the
 * Identity does not run.  A _Recv of a dead token counts as run in TensorFlow's executor. */
static struct mu_node *add_control_identity(struct partitioner *c, struct mu_graph *to,
					    struct mu_node *recv)
{
	struct mu_input token = {recv, 0};
	struct mu_node *n =
	    partitioner_add_node(c, to, recv->name, "Identity", recv->device, &token, 1);

	mu_node_set_type(to, n, "T", MU_FLOAT);
	return n;
}

static int partitioner_map_input(struct partitioner *c, struct mu_input in,
				 const struct mu_node *user, struct mu_input *out)
{
	MU_AUTO_BUF key = {0};
	struct mu_graph *to = c->partitions[c->partition_of[user->id]].graph;
	struct mu_node *first, *recv;

	if (c->partition_of[in.node->id] == c->partition_of[user->id]) {
		*out = (struct mu_input){c->copies[in.node->id], in.port};
		return 0;
	}
	mu_buf_put(&key, &in.node->id, sizeof in.node->id);
	mu_buf_put(&key, &in.port, sizeof in.port);
	mu_buf_puts(&key, user->device);
	recv = mu_map_get_n(&c->recvs, key.data, key.len);
	if (!recv) {
		MU_RETURN_IF_ERROR(partitioner_add_pair(c, in, user, &first, &recv));
		if (in.port == MU_CONTROL)
			recv = add_control_identity(c, to, recv);
		mu_map_put_n(&c->recvs, key.data, key.len, recv);
	}
	*out = (struct mu_input){recv, in.port == MU_CONTROL ? MU_CONTROL : 0};
	return 0;
}

/* Sets *out to true if input k is a variable on another task that must be read after n's control
 * inputs. */
static int needs_ordered_read(struct partitioner *c, const struct mu_node *n, unsigned k, bool *out)
{
	struct mu_input in = n->inputs[k];
	enum mu_dtype type;
	int rc;

	*out = false;
	if (k >= n->n_inputs || !n->n_controls ||
	    c->partition_of[in.node->id] == c->partition_of[n->id])
		return 0;
	for (unsigned i = 0; i < n->n_controls; i++)
		if (loop_of_outputs(&c->loops, n->inputs[n->n_inputs + i].node))
			return 0; /* the other task may not iterate */
	if ((rc = partitioner_output_type(c, in, n, &type)))
		return rc;
	*out = mu_dtype_is_ref(type);
	return 0;
}

static int add_ordered_read(struct partitioner *c, const struct mu_node *n, unsigned k,
			    struct mu_input *out)
{
	const struct mu_node *variable = n->inputs[k].node;
	struct mu_graph *from = c->partitions[c->partition_of[variable->id]].graph;
	struct mu_node *read, *recv;
	struct mu_input first;
	int rc = partitioner_add_pair(c, n->inputs[k], n, &read, &recv);

	for (unsigned i = 0; !rc && i < n->n_controls; i++)
		if (!(rc = partitioner_map_input(c, n->inputs[n->n_inputs + i], variable, &first)))
			mu_node_add_control(from, read, first.node);
	*out = (struct mu_input){recv, 0};
	return rc;
}

static int partition_nodes(struct partitioner *c)
{
	const struct mu_graph *g = c->g;
	int rc;

	for (unsigned i = 0; i < g->n_nodes; i++)
		if ((rc = get_or_add_partition(c, g->nodes[i], &c->partition_of[i])))
			return rc;
	for (unsigned i = 0; i < g->n_nodes; i++)
		c->copies[i] =
		    mu_graph_copy_node(c->partitions[c->partition_of[i]].graph, g->nodes[i]);
	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];
		unsigned total = n->n_inputs + n->n_controls;
		struct mu_input *in = MU_ARENA_ARRAY(&c->scratch, struct mu_input, total);
		for (unsigned k = 0; k < total; k++) {
			bool is_ordered;
			if ((rc = needs_ordered_read(c, n, k, &is_ordered)) ||
			    (rc = is_ordered ? add_ordered_read(c, n, k, &in[k])
					     : partitioner_map_input(c, n->inputs[k], n, &in[k])))
				return rc;
		}
		mu_node_set_inputs(c->partitions[c->partition_of[i]].graph, c->copies[i], in,
				   n->n_inputs, in + n->n_inputs, n->n_controls);
	}
	return 0;
}

int graph_partition(struct mu_graph *g, const struct graph_devices *devs,
		    struct partition **partitions, unsigned *n_partitions, struct mu_err *err)
{
	struct partitioner c = {.g = g, .devs = devs, .err = err};
	int rc = loops_distribute(&c.loops, g, err);

	mu_arena_init(&c.scratch);
	mu_map_init(&c.by_task);
	mu_map_init(&c.recvs);
	c.partition_of = MU_ARENA_ARRAY(&c.scratch, unsigned, g->n_nodes);
	c.copies = MU_ARENA_ARRAY(&c.scratch, struct mu_node *, g->n_nodes);
	if (!rc)
		rc = partition_nodes(&c);
	loops_fini(&c.loops);
	mu_map_fini(&c.recvs);
	mu_map_fini(&c.by_task);
	mu_arena_fini(&c.scratch);
	if (rc) {
		graph_partitions_free(c.partitions, c.n_partitions);
		return rc;
	}
	*partitions = c.partitions;
	*n_partitions = c.n_partitions;
	return 0;
}

void graph_partitions_free(struct partition *partitions, unsigned n_partitions)
{
	for (unsigned i = 0; i < n_partitions; i++) {
		free(partitions[i].task);
		mu_graph_free(partitions[i].graph);
	}
	free(partitions);
}
