/* SPDX-License-Identifier: Apache-2.0 */
/* From a registered graph to a plan: kernels found and prepared, types of both ends of every edge
 * compared, so that a step need not look at them again. */
#include "task/runtime/plan.h"

#include <string.h>

static const struct {
	const char *op;
	enum node_kind kind;
} kinds[] = {
    {"Merge", NODE_MERGE},        {"RefMerge", NODE_MERGE},
    {"Enter", NODE_ENTER},        {"RefEnter", NODE_ENTER},
    {"Exit", NODE_EXIT},          {"RefExit", NODE_EXIT},
    {"NextIteration", NODE_NEXT}, {"RefNextIteration", NODE_NEXT},
};

static enum node_kind kind_of(const char *op)
{
	for (unsigned i = 0; i < MU_COUNT(kinds); i++)
		if (strcmp(kinds[i].op, op) == 0)
			return kinds[i].kind;
	return NODE_PLAIN;
}

struct types {
	enum mu_dtype *in, *out;
	unsigned n_in, n_out;
};

static int find_kernel(struct plan_node *p, struct mu_err *err)
{
	int rc = mu_node_need_def(p->node, err);

	if (rc)
		return rc;
	p->kernel = cpu_kernel_find(p->node->op);
	if (!p->kernel)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "this task has no CPU kernel for op '%s', node '%s'", p->node->op,
			       p->node->name);
	return 0;
}

static int check_inputs(const struct executor *e, const struct types *types, unsigned i,
			struct mu_err *err)
{
	const struct mu_node *n = e->nodes[i].node;

	if (types[i].n_in != n->n_inputs)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "NodeDef expected %u inputs but has %u; node '%s', op %s",
			       types[i].n_in, n->n_inputs, n->name, n->op);
	for (unsigned k = 0; k < n->n_inputs; k++) {
		struct mu_input in = n->inputs[k];
		const struct types *from = &types[in.node->id];
		if ((unsigned)in.port >= from->n_out)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Node '%s': input %u is '%s:%d', which has %u outputs",
				       n->name, k, in.node->name, in.port, from->n_out);
		enum mu_dtype have = from->out[in.port], want = types[i].in[k];
		if (mu_dtype_base(have) != mu_dtype_base(want) ||
		    (mu_dtype_is_ref(want) && !mu_dtype_is_ref(have)))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Input %u of node %s was passed %s from %s:%d incompatible "
				       "with expected %s.",
				       k, n->name, mu_dtype_name(have), in.node->name, in.port,
				       mu_dtype_name(want));
	}
	return 0;
}

static void note_refs(struct executor *e, const struct types *types)
{
	size_t total = 0;

	e->ref_at = MU_ARENA_ARRAY(&e->arena, uint32_t, e->n_nodes);
	for (unsigned i = 0; i < e->n_nodes; i++) {
		e->ref_at[i] = (uint32_t)total;
		total += types[i].n_in;
	}
	e->wants_ref = MU_ARENA_ARRAY(&e->arena, bool, total);
	for (unsigned i = 0; i < e->n_nodes; i++)
		for (unsigned k = 0; k < types[i].n_in; k++) {
			struct mu_input in = e->nodes[i].node->inputs[k];
			e->wants_ref[e->ref_at[i] + k] = mu_dtype_is_ref(types[i].in[k]);
			if (mu_dtype_is_ref(types[in.node->id].out[in.port]))
				e->nodes[i].ref_in = true;
		}
}

static int read_types(struct executor *e, struct mu_arena *scratch, struct types *types,
		      struct mu_err *err)
{
	int rc;

	for (unsigned i = 0; i < e->n_nodes; i++) {
		const struct mu_node *n = e->nodes[i].node;
		if ((rc = mu_op_input_types(n, scratch, &types[i].in, &types[i].n_in, err)) ||
		    (rc = mu_op_output_types(n, scratch, &types[i].out, &types[i].n_out, err)))
			return mu_append(err, "\n\t [[{{node %s}}]]", n->name);
	}
	for (unsigned i = 0; i < e->n_nodes; i++) {
		if ((rc = check_inputs(e, types, i, err)))
			return rc;
		e->nodes[i].n_in = types[i].n_in;
		e->nodes[i].n_out = types[i].n_out;
		if (types[i].n_out > e->max_out)
			e->max_out = types[i].n_out;
	}
	note_refs(e, types);
	return 0;
}

static void describe(struct plan_node *p)
{
	const struct mu_attr *constant = mu_node_attr(p->node, "is_constant");

	p->kind = (uint8_t)kind_of(p->node->op);
	p->async = p->kernel->start != NULL;
	p->expensive = p->kernel->flags & KERNEL_EXPENSIVE;
	p->sees_dead = p->kernel->flags & KERNEL_SEES_DEAD;
	p->uninit_ok = p->node->def->flags & MU_OP_UNINIT_OK;
	p->constant =
	    p->kind == NODE_ENTER && constant && constant->kind == MU_ATTR_BOOL && constant->b;
	if (p->kind == NODE_MERGE)
		p->initial = p->node->n_controls + MERGE_DATA * p->node->n_inputs;
	else
		p->initial = p->node->n_inputs + p->node->n_controls;
}

static int prepare_all(struct executor *e, struct mu_err *err)
{
	for (; e->n_prepared < e->n_nodes; e->n_prepared++) {
		struct plan_node *p = &e->nodes[e->n_prepared];
		if (p->kernel->prepare && p->kernel->prepare(p->node, e->rt, &p->state, err))
			return mu_append(err, "\n\t [[{{node %s}}]]", p->node->name);
	}
	return 0;
}

static void lay_out(struct plan_frame *f)
{
	size_t at = sizeof(struct iteration) + f->n_nodes * sizeof(_Atomic uint64_t);

	f->slots_at = (at + 15) & ~(size_t)15;
	f->calls_at = (f->slots_at + f->n_slots * sizeof(struct value) + 15) & ~(size_t)15;
	f->size = f->calls_at + f->n_calls * sizeof(struct call);
}

/* Gives each node its places in its frame's iterations. */
static void number_nodes(struct executor *e)
{
	for (unsigned i = 0; i < e->n_nodes; i++) {
		struct plan_node *p = &e->nodes[i];
		struct plan_frame *f = &e->frames[p->frame];
		p->pending = f->n_nodes++;
		p->in_slot = f->n_slots;
		f->n_slots += p->n_in;
		if (p->async) {
			p->call = f->n_calls++;
			p->out_slot = f->n_slots;
			f->n_slots += p->n_out;
		}
		if (p->kind == NODE_ENTER)
			e->frames[p->child].n_enters++;
	}
	for (unsigned i = 0; i < e->n_frames; i++) {
		lay_out(&e->frames[i]);
		e->frames[i].initial = MU_ARENA_ARRAY(&e->arena, uint64_t, e->frames[i].n_nodes);
	}
	for (unsigned i = 0; i < e->n_nodes; i++)
		e->frames[e->nodes[i].frame].initial[e->nodes[i].pending] = e->nodes[i].initial;
}

/* Roots that wait go last, which is first off the stack: their requests leave early. */
static void collect_roots(struct executor *e)
{
	e->roots = MU_ARENA_ARRAY(&e->arena, uint32_t, e->n_nodes);
	for (int waits = 0; waits < 2; waits++)
		for (unsigned i = 0; i < e->n_nodes; i++) {
			const struct plan_node *p = &e->nodes[i];
			if (p->node->n_inputs + p->node->n_controls == 0 && p->async == waits)
				e->roots[e->n_roots++] = i;
		}
}

int plan_compile(struct executor *e, struct mu_err *err)
{
	struct mu_arena scratch;
	struct types *types;
	int rc = 0;

	mu_arena_init(&scratch);
	e->n_nodes = e->graph->n_nodes;
	e->nodes = MU_ARENA_ARRAY(&e->arena, struct plan_node, e->n_nodes);
	types = MU_ARENA_ARRAY(&scratch, struct types, e->n_nodes);
	e->all_taken = true;
	for (unsigned i = 0; !rc && i < e->n_nodes; i++) {
		e->nodes[i].node = e->graph->nodes[i];
		rc = find_kernel(&e->nodes[i], err);
		if (!rc)
			describe(&e->nodes[i]);
		e->all_taken &= e->nodes[i].kind == NODE_PLAIN;
	}
	if (!rc)
		rc = read_types(e, &scratch, types, err);
	mu_arena_fini(&scratch);
	if (rc || (rc = plan_frames(e, err)))
		return rc;
	number_nodes(e);
	collect_roots(e);
	if ((rc = plan_edges(e, err)))
		return rc;
	return prepare_all(e, err);
}

struct iteration *iteration_new(const struct plan_frame *f)
{
	struct iteration *it = mu_xcalloc(1, f->size);

	it->slots = (struct value *)((char *)it + f->slots_at);
	it->calls = (struct call *)((char *)it + f->calls_at);
	if (f->n_nodes)
		memcpy(it->pending, f->initial, f->n_nodes * sizeof f->initial[0]);
	return it;
}

void iteration_free(const struct plan_frame *f, struct iteration *it)
{
	for (uint32_t i = 0; i < f->n_slots; i++)
		value_clear(&it->slots[i]);
	free(it);
}
