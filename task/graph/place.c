/* SPDX-License-Identifier: Apache-2.0 */
/* Gives every node a device.
 *
 * Nodes that must be together form a group: those with the same "loc:@x" as x, and whoever takes a
 * variable's reference or a resource's handle with whoever made it.  A group may be where all its
 * members ask to be, but that who takes state follows the state against its own wish: a client asks
 * a variable whether it is initialised under the device scope of its worker.  Of what is left a
 * group gets the client's device if that is among it, else the first.  Two kinds of free node
 * follow a neighbour: one that only reads a shape stays with its producer, one that only makes a
 * value for a single consumer goes to it.
 *
 * A step sees only the part of the session's graph that it needs, and of a variable that says
 * nothing of its place perhaps nobody whom it follows.  So where what outlives a step is kept, its
 * home, is decided over the whole graph (settle.c), and holds for every step.
 */
#include <string.h>

#include "lib/graph/device_name.h"
#include "task/graph/graph_passes.h"
#include "task/kernels/engine/kernel_table.h"

struct group {
	unsigned parent; /* union-find */
	unsigned size;
	unsigned asker;      /* a member that fixed something of `want` */
	bool has_state;      /* a member makes a variable or a resource */
	bool has_home;       /* `want` is the home of a member, and nothing softens it */
	enum kernel_gpu gpu; /* what all members can do there */
	struct mu_device_name want;
	const struct graph_device *given;
};

struct place {
	const struct mu_graph *g;
	const struct graph_devices *devs;
	const struct graph_homes *homes; /* NULL: nothing is known of any */
	bool lenient;                    /* what cannot be is left for the step that needs it */
	struct mu_device_name *names;    /* of devs */
	struct group *groups;            /* by node id */
	bool has_gpu;                    /* some task has one */
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

static int join(struct place *p, unsigned a, unsigned b)
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
	if (!mu_device_intersect(&big->want, &small->want)) {
		if (p->lenient)
			return 0;
		MU_AUTO_BUF x = {0};
		MU_AUTO_BUF y = {0};
		mu_device_write(&x, &big->want);
		mu_device_write(&y, &small->want);
		return mu_fail(p->err, MU_INVALID_ARGUMENT,
			       "Cannot colocate nodes {{colocation_node %s}} and "
			       "{{colocation_node %s}}: '%s' asks for %s and '%s' for %s",
			       p->g->nodes[a]->name, p->g->nodes[b]->name,
			       p->g->nodes[big->asker]->name, x.data,
			       p->g->nodes[small->asker]->name, y.data);
	}
	if (*small->want.job || small->want.task >= 0)
		big->asker = small->asker;
	small->parent = ra;
	big->size += small->size;
	big->has_state |= small->has_state;
	big->has_home |= small->has_home;
	if (small->gpu < big->gpu)
		big->gpu = small->gpu;
	return 0;
}

/* Node b takes the state that node a made, or passed on.  Where it was made may be known only on
 * b's side so far: in a loop, Merge takes from NextIteration what it has given to it. */
static int follow_state(struct place *p, unsigned a, unsigned b)
{
	struct group *from = &p->groups[root_of(p, a)], *to = &p->groups[root_of(p, b)];
	struct mu_device_name both = to->want;

	if (!mu_device_intersect(&both, &from->want)) {
		if (!to->has_state)
			to->want = from->want;
		else if (!from->has_state)
			from->want = to->want;
	}
	return join(p, a, b);
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

bool graph_keeps(const struct mu_node *n)
{
	if (!n->def || !(n->def->flags & MU_OP_STATEFUL) || n->op[0] == '_')
		return false;
	for (unsigned i = 0; i < n->def->n_inputs; i++)
		if (n->def->inputs[i].is_ref || n->def->inputs[i].type == MU_RESOURCE)
			return false;
	return true;
}

static int read_wish(struct place *p, const struct mu_node *n, struct group *gr)
{
	const char *home =
	    p->homes && graph_keeps(n) ? mu_map_get(&p->homes->by_name, n->name) : NULL;

	gr->has_home = home;
	if (!mu_device_parse(&gr->want, home ? home : n->device, p->err))
		return 0;
	if (!p->lenient)
		return mu_append(p->err, ", node '%s'", n->name);
	return mu_device_parse(&gr->want, "", p->err);
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
		gr->parent = gr->asker = i;
		gr->size = 1;
		gr->has_state = makes_state(p->g->nodes[i]);
		if (p->has_gpu)
			gr->gpu = kernel_on_gpu(p->g->nodes[i]);
		if ((rc = read_wish(p, p->g->nodes[i], gr)))
			return rc;
	}
	return 0;
}

static int join_class(struct place *p, const struct mu_node *n, struct mu_map *absent)
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
		if (!x && !(x = mu_map_get(absent, s)))
			mu_map_put(absent, s, (void *)n); /* the others of this name join n */
		else
			rc = join(p, x->id, n->id);
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

static int join_state(struct place *p, const struct mu_node *n)
{
	enum mu_dtype *types;
	unsigned count;
	int rc;

	if (!n->def || (n->op[0] == '_' && strcmp(n->op, "_SwitchN")) || !takes_state(n->def))
		return 0;
	if ((rc = mu_op_input_types(n, &p->scratch, &types, &count, p->err)))
		return p->lenient ? 0 : mu_append(p->err, "\n\t [[{{node %s}}]]", n->name);
	for (unsigned k = 0; k < n->n_inputs && k < count; k++)
		if (is_state(types[k]) && (rc = follow_state(p, n->inputs[k].node->id, n->id)))
			return rc;
	return 0;
}

static bool prefer_cpu(const struct graph_device *have, const struct graph_device *cand)
{
	return !have || (strcmp(have->type, "CPU") != 0 && strcmp(cand->type, "CPU") == 0);
}

static const struct graph_device *choose(const struct place *p, const struct mu_device_name *want)
{
	const struct graph_device *best = NULL;

	for (unsigned i = 0; i < p->devs->count; i++) {
		const struct graph_device *d = &p->devs->list[i];
		if (!mu_device_matches(&p->names[i], want))
			continue;
		if (strcmp(d->name, p->devs->client) == 0)
			return d;
		if (prefer_cpu(best, d))
			best = d;
	}
	return best;
}

/* The first GPU of the task that owns this device. */
static const struct graph_device *gpu_beside(const struct place *p, const struct graph_device *d)
{
	size_t len = mu_device_task_len(d->name);

	for (unsigned i = 0; i < p->devs->count; i++) {
		const struct graph_device *x = &p->devs->list[i];
		if (strcmp(x->type, "GPU") == 0 && mu_device_task_len(x->name) == len &&
		    strncmp(x->name, d->name, len) == 0)
			return x;
	}
	return NULL;
}

/* What asks for no kind of device goes to its task's GPU when that has kernels for all of it. */
static const struct graph_device *choose_kind(const struct place *p, const struct group *gr)
{
	const struct graph_device *d = choose(p, &gr->want), *gpu;

	if (d && p->has_gpu && !*gr->want.type && gr->gpu == KERNEL_GPU_NATIVE &&
	    (gpu = gpu_beside(p, d)))
		return gpu;
	if (d && strcmp(d->type, "GPU") == 0 && gr->gpu == KERNEL_GPU_NONE)
		return NULL; /* without kernels */
	return d;
}

static int nowhere(struct place *p, const struct mu_node *n, const struct mu_device_name *want)
{
	MU_AUTO_BUF list = {0};
	MU_AUTO_BUF asked = {0};

	mu_device_write(&asked, want);
	for (unsigned i = 0; i < p->devs->count && list.len < 600; i++)
		mu_buf_printf(&list, "%s%s", i ? ", " : "", p->devs->list[i].name);
	return mu_fail(p->err, MU_INVALID_ARGUMENT,
		       "Cannot assign a device for operation %s: {{node %s}} was explicitly "
		       "assigned to %s but available devices are [ %s ]. Make sure the device "
		       "specification refers to a valid device.",
		       n->name, n->name, *n->device ? n->device : asked.data,
		       list.len ? list.data : "");
}

/* The device is there, but cannot run a member of group i. */
static int no_kernel(struct place *p, unsigned i)
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

static int give_groups(struct place *p)
{
	for (unsigned i = 0; i < p->g->n_nodes; i++) {
		struct group *gr = &p->groups[i];
		if (gr->parent != i)
			continue;
		gr->given = choose_kind(p, gr);
		if (!gr->given && p->devs->soft_placement && !gr->has_home) {
			struct mu_device_name soft = gr->want;
			*soft.type = '\0';
			soft.index = -1;
			gr->given = choose(p, &soft);
		}
		if (gr->given || p->lenient)
			continue;
		if (choose(p, &gr->want))
			return no_kernel(p, i);
		return nowhere(p, p->g->nodes[gr->asker], &gr->want);
	}
	return 0;
}

/* Alone and asking for nothing. */
static bool is_free(struct place *p, const struct mu_node *n)
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
		if (n->n_inputs == 1 && n->def && (n->def->flags & MU_OP_METADATA) && is_free(p, n))
			p->groups[i].given = p->groups[root_of(p, n->inputs[0].node->id)].given;
	}
	for (unsigned i = 0; i < p->g->n_nodes; i++) {
		const struct mu_node *n = p->g->nodes[i];
		if (n->n_inputs == 0 && users[i] == 1 && n->op[0] != '_' && is_free(p, n))
			p->groups[i].given = p->groups[root_of(p, user[i]->id)].given;
	}
}

/* Every group has its device then, or none where that is left for later. */
static int form_groups(struct place *p)
{
	struct mu_map absent;
	int rc;

	mu_map_init(&absent);
	rc = read_devices(p);
	for (unsigned i = 0; !rc && i < p->g->n_nodes; i++)
		rc = join_class(p, p->g->nodes[i], &absent);
	for (unsigned i = 0; !rc && i < p->g->n_nodes; i++)
		rc = join_state(p, p->g->nodes[i]);
	if (!rc)
		rc = give_groups(p);
	mu_map_fini(&absent);
	return rc;
}

int graph_place(struct mu_graph *g, const struct graph_devices *devs,
		const struct graph_homes *homes, struct mu_err *err)
{
	struct place p = {.g = g, .devs = devs, .homes = homes, .err = err};
	int rc;

	mu_arena_init(&p.scratch);
	if (!(rc = form_groups(&p))) {
		follow_neighbours(&p);
		for (unsigned i = 0; i < g->n_nodes; i++)
			mu_node_set_device(g, g->nodes[i], p.groups[root_of(&p, i)].given->name);
	}
	mu_arena_fini(&p.scratch);
	return rc;
}

void graph_place_homes(const struct mu_graph *g, const struct graph_devices *devs,
		       struct graph_homes *homes)
{
	struct mu_err ignored;
	struct place p = {.g = g, .devs = devs, .homes = homes, .lenient = true, .err = &ignored};

	mu_arena_init(&p.scratch);
	if (!form_groups(&p))
		for (unsigned i = 0; i < g->n_nodes; i++) {
			const struct graph_device *at = p.groups[root_of(&p, i)].given;

			if (at && graph_keeps(g->nodes[i]))
				mu_map_put(&homes->by_name, g->nodes[i]->name, (void *)at->name);
		}
	mu_arena_fini(&p.scratch);
}
