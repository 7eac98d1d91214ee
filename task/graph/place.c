/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns a device to every node.
 *
 * Nodes that must be colocated form a group: nodes with the attribute "loc:@x" and x, and each user
 * of a variable's reference or a resource's handle with the node that made it.  The device of a
 * group must satisfy the requests of all members.  There is one exception: a node that takes a
 * reference or handle is placed with it, even against its own request.  (Clients test whether a
 * variable is initialized under the device scope of their worker.)  With soft placement the members
 * must agree on the task only.  Among several suitable devices the client's device comes first,
 * then the first in the list.  In a graph of TensorFlow 2.2 or earlier the first by name comes
 * first, as on those servers: their programs share a variable without a device, because all
 * sessions place it on ps 0.
 *
 * Two kinds of unconstrained node follow a neighbour.  A node that reads only the shape of its
 * input gets the device of its producer.  A node without inputs gets the device of its only user.
 *
 * A step contains only a part of the session's graph, perhaps without the node that determines the
 * device of a variable.  So the devices of stateful nodes are assigned over the whole graph
 * (place_stateful.c) and hold for every step. */
#include <string.h>

#include "lib/graph/device_name.h"
#include "task/graph/graph_passes.h"
#include "task/kernels/engine/kernel_table.h"

enum { LAST_PRODUCER_BY_NAME = 175 }; /* the GraphDef version of TensorFlow 2.2 */

struct group {
	unsigned parent; /* union-find */
	unsigned size;
	unsigned requester;  /* a member that contributed to `request` */
	bool has_state;      /* a member makes a variable or a resource */
	bool is_pinned;      /* `request` is the device of a stateful member: no soft placement */
	enum kernel_gpu gpu; /* GPU support of all members */
	struct mu_device_name request;
	const struct graph_device *device;
};

struct place {
	const struct mu_graph *g;
	const struct graph_devices *devs;
	const struct stateful_placement *stateful; /* (optional) */
	bool ignores_conflicts;                    /* a later step reports them */
	struct mu_device_name *names;              /* parsed names of devs */
	struct group *groups;                      /* by node id */
	bool has_gpu;                              /* some task has a GPU */
	struct mu_arena scratch;
	struct mu_err *err;
};

static unsigned root_of(struct place *p, unsigned i)
{
	while (p->groups[i].parent != i) {
		p->groups[i].parent = p->groups[p->groups[i].parent].parent;
		i = p->groups[i].parent;
	}
	return i;
}

/* Removes from d the device type or the device index that contradicts `other`. */
static void drop_contradiction(struct mu_device_name *d, const struct mu_device_name *other)
{
	if (*d->type && *other->type && strcmp(d->type, other->type) != 0) {
		*d->type = '\0';
		d->index = -1;
	} else if (other->index >= 0 && other->index != d->index) {
		d->index = -1;
	}
}

/* Adds the request of group b to that of group a.  Returns false if they contradict.  With soft
 * placement only the request of a pinned group determines the device within the task. */
static bool join_requests(const struct place *p, struct group *a, const struct group *b)
{
	struct mu_device_name request_a = a->request, request_b = b->request;

	if (mu_device_intersect(&a->request, &request_b))
		return true;
	if (!p->devs->soft_placement)
		return false;
	if (!a->is_pinned)
		drop_contradiction(&request_a, &b->request);
	if (!b->is_pinned)
		drop_contradiction(&request_b, &a->request);
	if (!mu_device_intersect(&request_a, &request_b))
		return false;
	a->request = request_a;
	return true;
}

static int merge_groups(struct place *p, unsigned a, unsigned b)
{
	unsigned ra = root_of(p, a), rb = root_of(p, b);

	if (ra == rb)
		return 0;
	if (p->groups[ra].size < p->groups[rb].size) {
		unsigned t = ra;
		ra = rb;
		rb = t;
	}
	struct group *big = &p->groups[ra], *small = &p->groups[rb];
	if (!join_requests(p, big, small)) {
		if (p->ignores_conflicts)
			return 0;
		MU_AUTO_BUF x = {0};
		MU_AUTO_BUF y = {0};
		mu_device_write(&x, &big->request);
		mu_device_write(&y, &small->request);
		return mu_fail(p->err, MU_INVALID_ARGUMENT,
			       "Cannot colocate nodes {{colocation_node %s}} and "
			       "{{colocation_node %s}}: '%s' asks for %s and '%s' for %s",
			       p->g->nodes[a]->name, p->g->nodes[b]->name,
			       p->g->nodes[big->requester]->name, x.data,
			       p->g->nodes[small->requester]->name, y.data);
	}
	if (*small->request.job || small->request.task >= 0)
		big->requester = small->requester;
	small->parent = ra;
	big->size += small->size;
	big->has_state |= small->has_state;
	big->is_pinned |= small->is_pinned;
	if (small->gpu < big->gpu)
		big->gpu = small->gpu;
	return 0;
}

/* Colocates node b with node a, whose output is a reference or handle that b takes.  The node that
 * made it may be in b's group: in a loop, Merge takes it from NextIteration. */
static int colocate_with_state(struct place *p, unsigned a, unsigned b)
{
	struct group *from = &p->groups[root_of(p, a)], *to = &p->groups[root_of(p, b)];
	struct mu_device_name common = to->request;

	if (!mu_device_intersect(&common, &from->request)) {
		if (!to->has_state)
			to->request = from->request;
		else if (!from->has_state)
			from->request = to->request;
	}
	return merge_groups(p, a, b);
}

static bool is_state(enum mu_dtype t)
{
	return mu_dtype_is_ref(t) || t == MU_RESOURCE || t == MU_VARIANT;
}

static bool makes_state(const struct mu_node *n)
{
	if (!n->def || n->n_inputs)
		return false;
	for (unsigned i = 0; i < n->def->n_outputs; i++)
		if (n->def->outputs[i].is_ref || n->def->outputs[i].type == MU_RESOURCE)
			return true;
	return false;
}

bool graph_is_stateful(const struct mu_node *n)
{
	if (!n->def || !(n->def->flags & MU_OP_STATEFUL) || n->op[0] == '_')
		return false;
	for (unsigned i = 0; i < n->def->n_inputs; i++)
		if (n->def->inputs[i].is_ref || n->def->inputs[i].type == MU_RESOURCE)
			return false;
	return true;
}

static int read_request(struct place *p, const struct mu_node *n, struct group *gr)
{
	const char *assigned =
	    p->stateful && graph_is_stateful(n) ? mu_map_get(&p->stateful->by_name, n->name) : NULL;

	gr->is_pinned = assigned;
	if (!mu_device_parse(&gr->request, assigned ? assigned : n->device, p->err))
		return 0;
	if (!p->ignores_conflicts)
		return mu_append(p->err, ", node '%s'", n->name);
	return mu_device_parse(&gr->request, "", p->err);
}

static int read_devices(struct place *p)
{
	int rc;

	p->names = MU_ARENA_ARRAY(&p->scratch, struct mu_device_name, p->devs->count);
	for (unsigned i = 0; i < p->devs->count; i++) {
		if ((rc = mu_device_parse(&p->names[i], p->devs->list[i].name, p->err)))
			return rc;
		p->has_gpu |= strcmp(p->devs->list[i].type, "GPU") == 0;
	}
	p->groups = MU_ARENA_ARRAY(&p->scratch, struct group, p->g->n_nodes);
	for (unsigned i = 0; i < p->g->n_nodes; i++) {
		struct group *gr = &p->groups[i];
		gr->parent = gr->requester = i;
		gr->size = 1;
		gr->has_state = makes_state(p->g->nodes[i]);
		if (p->has_gpu)
			gr->gpu = kernel_on_gpu(p->g->nodes[i]);
		if ((rc = read_request(p, p->g->nodes[i], gr)))
			return rc;
	}
	return 0;
}

static int join_class_group(struct place *p, const struct mu_node *n, struct mu_map *absent_classes)
{
	const struct mu_attr *c = mu_node_attr(n, "_class");
	int rc = 0;

	if (!c || (int)c->kind != MU_ATTR_LIST + MU_ATTR_STRING)
		return 0;
	for (unsigned i = 0; !rc && i < c->n; i++) {
		const char *s = c->ss[i].data;
		if (strncmp(s, "loc:@", 5) != 0)
			continue;
		struct mu_node *x = mu_graph_find(p->g, s + 5);
		if (!x && !(x = mu_map_get(absent_classes, s)))
			mu_map_put(absent_classes, s, (void *)n); /* later nodes join n */
		else
			rc = merge_groups(p, x->id, n->id);
	}
	return rc;
}

static bool takes_state(const struct mu_op_def *d)
{
	for (unsigned i = 0; i < d->n_inputs; i++)
		if (d->inputs[i].is_ref || d->inputs[i].kind == MU_ARG_TYPE_LIST ||
		    d->inputs[i].kind == MU_ARG_ATTR || d->inputs[i].kind == MU_ARG_REPEAT ||
		    d->inputs[i].type == MU_RESOURCE || d->inputs[i].type == MU_VARIANT)
			return true;
	return false;
}

static int join_state_group(struct place *p, const struct mu_node *n)
{
	enum mu_dtype *types;
	unsigned count;
	int rc;

	if (!n->def || (n->op[0] == '_' && strcmp(n->op, "_SwitchN")) || !takes_state(n->def))
		return 0;
	if ((rc = mu_op_input_types(n, &p->scratch, &types, &count, p->err)))
		return p->ignores_conflicts ? 0
					    : mu_append(p->err, "\n\t [[{{node %s}}]]", n->name);
	for (unsigned k = 0; k < n->n_inputs && k < count; k++)
		if (is_state(types[k]) &&
		    (rc = colocate_with_state(p, n->inputs[k].node->id, n->id)))
			return rc;
	return 0;
}

static bool prefer_cpu(const struct graph_device *have, const struct graph_device *cand)
{
	return !have || (strcmp(have->type, "CPU") != 0 && strcmp(cand->type, "CPU") == 0);
}

static bool is_first_by_name(const struct graph_device *have, const struct graph_device *cand)
{
	return strcmp(have->type, cand->type) == 0 && strcmp(cand->name, have->name) < 0;
}

static const struct graph_device *choose_device(const struct place *p,
						const struct mu_device_name *request)
{
	bool by_name = p->g->producer > 0 && p->g->producer <= LAST_PRODUCER_BY_NAME;
	const struct graph_device *best = NULL;

	for (unsigned i = 0; i < p->devs->count; i++) {
		const struct graph_device *d = &p->devs->list[i];
		if (!mu_device_matches(&p->names[i], request))
			continue;
		if (!by_name && strcmp(d->name, p->devs->client) == 0)
			return d;
		if (prefer_cpu(best, d) || (by_name && is_first_by_name(best, d)))
			best = d;
	}
	return best;
}

/* Returns the first GPU of the task that owns device d. */
static const struct graph_device *gpu_of_task(const struct place *p, const struct graph_device *d)
{
	for (unsigned i = 0; i < p->devs->count; i++) {
		const struct graph_device *x = &p->devs->list[i];
		if (strcmp(x->type, "GPU") == 0 && mu_device_same_task(x->name, d->name))
			return x;
	}
	return NULL;
}

/* Chooses a device for a group.  A group without a requested device type goes to the task's GPU if
 * all members have GPU kernels. */
static const struct graph_device *choose_group_device(const struct place *p, const struct group *gr)
{
	const struct graph_device *d = choose_device(p, &gr->request), *gpu;

	if (d && p->has_gpu && !*gr->request.type && gr->gpu == KERNEL_GPU_NATIVE &&
	    (gpu = gpu_of_task(p, d)))
		return gpu;
	if (d && strcmp(d->type, "GPU") == 0 && gr->gpu == KERNEL_GPU_NONE)
		return NULL; /* a member has no GPU kernel */
	return d;
}

static int fail_no_device(struct place *p, const struct mu_node *n,
			  const struct mu_device_name *request)
{
	MU_AUTO_BUF list = {0};
	MU_AUTO_BUF requested = {0};

	mu_device_write(&requested, request);
	for (unsigned i = 0; i < p->devs->count && list.len < 600; i++)
		mu_buf_printf(&list, "%s%s", i ? ", " : "", p->devs->list[i].name);
	return mu_fail(p->err, MU_INVALID_ARGUMENT,
		       "Cannot assign a device for operation %s: {{node %s}} was explicitly "
		       "assigned to %s but available devices are [ %s ]. Make sure the device "
		       "specification refers to a valid device.%s",
		       n->name, n->name, *n->device ? n->device : requested.data,
		       list.len ? list.data : "",
		       !p->has_gpu && strcmp(request->type, "GPU") == 0
			   ? " The requested device appears to be a GPU, but CUDA is not enabled."
			   : "");
}

/* Reports that the requested device exists but has no kernel for a member of group i. */
static int fail_no_kernel(struct place *p, unsigned i)
{
	const struct mu_node *n = p->g->nodes[i];

	for (unsigned k = 0; k < p->g->n_nodes; k++)
		if (root_of(p, k) == i && kernel_on_gpu(p->g->nodes[k]) == KERNEL_GPU_NONE) {
			n = p->g->nodes[k];
			break;
		}
	return mu_fail(p->err, MU_INVALID_ARGUMENT,
		       "Cannot assign a device for operation %s: {{node %s}} Could not satisfy "
		       "explicit device specification '%s' because no supported kernel for GPU "
		       "devices is available: there is none for op %s.  With allow_soft_placement "
		       "it runs on the CPU.",
		       n->name, n->name, n->device, n->op);
}

static int assign_devices(struct place *p)
{
	for (unsigned i = 0; i < p->g->n_nodes; i++) {
		struct group *gr = &p->groups[i];
		if (gr->parent != i)
			continue;
		gr->device = choose_group_device(p, gr);
		if (!gr->device && p->devs->soft_placement && !gr->is_pinned) {
			struct mu_device_name soft = gr->request;
			*soft.type = '\0';
			soft.index = -1;
			gr->device = choose_device(p, &soft);
		}
		if (gr->device || p->ignores_conflicts)
			continue;
		if (choose_device(p, &gr->request))
			return fail_no_kernel(p, i);
		return fail_no_device(p, p->g->nodes[gr->requester], &gr->request);
	}
	return 0;
}

/* True if the node is alone in its group, stateless and without a device request. */
static bool is_unconstrained(struct place *p, const struct mu_node *n)
{
	const struct group *gr = &p->groups[n->id];

	return gr->parent == n->id && gr->size == 1 && !*n->device && n->def &&
	       !(n->def->flags & MU_OP_STATEFUL);
}

static void follow_neighbours(struct place *p)
{
	const struct mu_node **user =
	    MU_ARENA_ARRAY(&p->scratch, const struct mu_node *, p->g->n_nodes);
	unsigned *users = MU_ARENA_ARRAY(&p->scratch, unsigned, p->g->n_nodes);

	for (unsigned i = 0; i < p->g->n_nodes; i++) {
		const struct mu_node *n = p->g->nodes[i];
		for (unsigned k = 0; k < n->n_inputs; k++) {
			user[n->inputs[k].node->id] = n;
			users[n->inputs[k].node->id]++;
		}
		if (n->n_inputs == 1 && n->def && (n->def->flags & MU_OP_METADATA) &&
		    is_unconstrained(p, n))
			p->groups[i].device = p->groups[root_of(p, n->inputs[0].node->id)].device;
	}
	for (unsigned i = 0; i < p->g->n_nodes; i++) {
		const struct mu_node *n = p->g->nodes[i];
		if (n->n_inputs == 0 && users[i] == 1 && n->op[0] != '_' && is_unconstrained(p, n))
			p->groups[i].device = p->groups[root_of(p, user[i]->id)].device;
	}
}

/* Forms the colocation groups and assigns a device to each.  If p->ignores_conflicts, a
 * group without a common device gets none. */
static int form_groups(struct place *p)
{
	struct mu_map absent_classes;
	int rc;

	mu_map_init(&absent_classes);
	rc = read_devices(p);
	for (unsigned i = 0; !rc && i < p->g->n_nodes; i++)
		rc = join_class_group(p, p->g->nodes[i], &absent_classes);
	for (unsigned i = 0; !rc && i < p->g->n_nodes; i++)
		rc = join_state_group(p, p->g->nodes[i]);
	if (!rc)
		rc = assign_devices(p);
	mu_map_fini(&absent_classes);
	return rc;
}

int graph_place(struct mu_graph *g, const struct graph_devices *devs,
		const struct stateful_placement *stateful, struct mu_err *err)
{
	struct place p = {.g = g, .devs = devs, .stateful = stateful, .err = err};
	int rc;

	mu_arena_init(&p.scratch);
	if (!(rc = form_groups(&p))) {
		follow_neighbours(&p);
		for (unsigned i = 0; i < g->n_nodes; i++)
			mu_node_set_device(g, g->nodes[i], p.groups[root_of(&p, i)].device->name);
	}
	mu_arena_fini(&p.scratch);
	return rc;
}

void graph_record_stateful(const struct mu_graph *g, const struct graph_devices *devs,
			   struct stateful_placement *stateful)
{
	struct mu_err ignored;
	struct place p = {
	    .g = g, .devs = devs, .stateful = stateful, .ignores_conflicts = true, .err = &ignored};

	mu_arena_init(&p.scratch);
	if (!form_groups(&p))
		for (unsigned i = 0; i < g->n_nodes; i++) {
			const struct graph_device *at = p.groups[root_of(&p, i)].device;

			if (at && graph_is_stateful(g->nodes[i]))
				mu_map_put(&stateful->by_name, g->nodes[i]->name, (void *)at->name);
		}
	mu_arena_fini(&p.scratch);
}
