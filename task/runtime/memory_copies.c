/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts host-to-device and device-to-host copies where an edge crosses memory spaces.
 *
 * A partition may have nodes on the CPU and on several devices, and a node on a device may need
 * some inputs in host memory.  There is one copy node for each tensor and destination; constants
 * are duplicated instead. */
#include "task/runtime/memory_copies.h"

#include <string.h>

#include "task/runtime/device_kernel.h"
#include "task/runtime/runtime.h"

enum { HOST = -1 };

struct node_placement {
	const struct device_kernel *kernel; /* NULL: runs on the host */
	int device;                         /* device number, or HOST */
	enum mu_dtype *in, *out;
	unsigned n_in, n_out;
};
struct copies {
	struct mu_graph *g;
	struct runtime *rt;
	struct mu_arena scratch;
	struct node_placement *placements; /* placements of the original nodes, by id */
	struct mu_map by_destination;      /* {source, port, destination} -> node */
	unsigned n, n_added;               /* original nodes; added nodes */
	struct mu_err *err;
};

static int read_placement(struct copies *s, const struct mu_node *n, struct node_placement *e)
{
	struct device *device = device_of_node(n, s->rt);
	int rc;

	if ((rc = mu_node_need_def(n, s->err)))
		return rc;
	e->kernel = device ? s->rt->kernels->find_device(n) : NULL;
	e->device = e->kernel ? (int)device->number : HOST;
	if ((rc = mu_op_input_types(n, &s->scratch, &e->in, &e->n_in, s->err)) ||
	    (rc = mu_op_output_types(n, &s->scratch, &e->out, &e->n_out, s->err)))
		return mu_append(s->err, "\n\t [[{{node %s}}]]", n->name);
	return 0;
}

static struct mu_node *copies_add_node(struct copies *s, const struct mu_node *source,
				       const char *op, const char *device,
				       const struct mu_input *in, unsigned n_in)
{
	const char *name = mu_arena_printf(&s->scratch, "%s/moved_%u", source->name, s->n_added++);

	return mu_graph_add_unique(s->g, name, op, device, in, n_in);
}

static struct mu_input add_copy(struct copies *s, struct mu_input from, const char *op,
				const char *device, enum mu_dtype t)
{
	struct mu_node *n = copies_add_node(s, from.node, op, device, &from, 1);

	mu_node_set_type(s->g, n, "T", t);
	return (struct mu_input){n, 0};
}

static struct mu_input copies_add_constant(struct copies *s, const struct mu_node *constant,
					   const char *op, const char *device)
{
	struct mu_node *n = copies_add_node(s, constant, op, device, NULL, 0);

	for (unsigned i = 0; i < constant->n_attrs; i++)
		mu_node_set_attr(s->g, n, constant->attrs[i].name, &constant->attrs[i].value);
	return (struct mu_input){n, 0};
}

/* Finds or adds a copy of the tensor `from` in memory space `to_space`.  A memory space is a device
 * number or HOST. */
static struct mu_input get_copy(struct copies *s, struct mu_input from, int from_space,
				int to_space, const char *device, enum mu_dtype t)
{
	struct {
		unsigned id;
		int port, to_space;
	} key = {from.node->id, from.port, to_space};
	struct mu_node *copy = mu_map_get_n(&s->by_destination, &key, sizeof key);

	if (copy)
		return (struct mu_input){copy, 0};
	if (mu_node_is_constant(from.node) && to_space == HOST) {
		from = copies_add_constant(s, from.node, "Const", s->rt->cpu_name);
	} else if (mu_node_is_constant(from.node)) { /* a Const of int32 is always in host memory */
		from = copies_add_constant(s, from.node, "_ConstOnGpu", device);
	} else {
		if (from_space != HOST)
			from = add_copy(s, from, "_CopyFromGpuToHost", from.node->device, t);
		if (to_space != HOST)
			from = add_copy(s, from, "_CopyFromHostToGpu", device, t);
	}
	mu_map_put_n(&s->by_destination, &key, sizeof key, from.node);
	return from;
}

static int copies_add_inputs(struct copies *s, struct mu_node *n)
{
	const struct node_placement *e = &s->placements[n->id];

	for (unsigned k = 0; k < n->n_inputs && k < e->n_in; k++) {
		struct mu_input in = n->inputs[k];
		const struct node_placement *f = &s->placements[in.node->id];
		if ((unsigned)in.port >= f->n_out)
			continue; /* exec_graph_compile reports the error */
		enum mu_dtype t = f->out[in.port];
		int from_space =
		    device_kernel_out_on_device(f->kernel, (unsigned)in.port, t) ? f->device : HOST;
		int to_space =
		    device_kernel_in_on_device(e->kernel, k, e->in[k]) ? e->device : HOST;
		if (from_space == to_space)
			continue;
		if (mu_dtype_is_ref(e->in[k]) && mu_dtype_is_ref(t))
			return mu_fail(
			    s->err, MU_UNIMPLEMENTED,
			    "op '%s' cannot update the variable of '%s', which is on %s: "
			    "there is no such kernel of that device for %s\n\t [[{{node %s}}]]",
			    n->op, in.node->name, in.node->device, mu_dtype_name(mu_dtype_base(t)),
			    n->name);
		n->inputs[k] = get_copy(s, in, from_space, to_space, n->device, t);
	}
	return 0;
}

int memory_copies_insert(struct mu_graph *g, struct runtime *rt, struct mu_err *err)
{
	struct copies s = {.g = g, .rt = rt, .n = g->n_nodes, .err = err};
	bool has_devices = false;
	int rc = 0;

	for (unsigned i = 0; i < g->n_nodes && !has_devices; i++)
		has_devices = device_of_node(g->nodes[i], rt) != NULL;
	if (!has_devices)
		return 0;
	mu_arena_init(&s.scratch);
	mu_map_init(&s.by_destination);
	s.placements = MU_ARENA_ARRAY(&s.scratch, struct node_placement, s.n);
	for (unsigned i = 0; !rc && i < s.n; i++)
		rc = read_placement(&s, g->nodes[i], &s.placements[i]);
	for (unsigned i = 0; !rc && i < s.n; i++)
		rc = copies_add_inputs(&s, g->nodes[i]);
	mu_map_fini(&s.by_destination);
	mu_arena_fini(&s.scratch);
	return rc;
}
