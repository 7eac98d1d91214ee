/* SPDX-License-Identifier: Apache-2.0 */
/* Traits of ops that the optimising passes share. */
#include <string.h>

#include "task/graph/optimize.h"
#include "task/kernels/engine/kernel_table.h"

static bool is_one_of(const char *op, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(op, *list) == 0)
			return true;
	return false;
}

/* Control flow ops: their outputs may be dead one by one, or belong to another iteration. */
static bool is_control_flow(const struct mu_op_def *d)
{
	return d->flags & (MU_OP_SWITCH | MU_OP_MERGE | MU_OP_LOOP) ||
	       strcmp(d->name, "ControlTrigger") == 0;
}

static bool has_ref(const struct mu_arg_def *args, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (args[i].is_ref)
			return true;
	return false;
}

unsigned optimize_traits(const struct mu_node *n)
{
	const struct mu_op_def *d = n->def;
	static const char *const identities[] = {"Identity", "StopGradient", "PreventGradient",
						 NULL};
	static const char *const receives[] = {"_Recv", "_HostRecv", NULL};
	const struct kernel *k = cpu_kernel_find(d->name);
	static const char *const reads_files[] = {"ReadFile", "MatchingFiles", NULL};
	bool outputs_ref = has_ref(d->outputs, d->n_outputs);
	unsigned f = outputs_ref ? TRAIT_REF_OUTPUT : 0;

	if (is_one_of(d->name, identities))
		f |= TRAIT_IDENTITY;
	if (d->flags & MU_OP_SWITCH || is_one_of(d->name, receives))
		f |= TRAIT_DEAD_OUTPUTS;
	if (strcmp(d->name, "NoOp") == 0)
		f |= TRAIT_NO_OP;
	if (is_control_flow(d))
		f |= TRAIT_CONTROL_FLOW;
	if (!(d->flags & MU_OP_STATEFUL) && d->name[0] != '_' && !is_control_flow(d) &&
	    !is_one_of(d->name, reads_files) && strncmp(d->name, "Placeholder", 11) != 0 &&
	    !outputs_ref && !has_ref(d->inputs, d->n_inputs) && k && k->run &&
	    !(k->flags & (KERNEL_NO_FOLD | KERNEL_SEES_DEAD)))
		f |= TRAIT_PURE;
	return f;
}

bool optimize_is_pure(const struct mu_node *n)
{
	if (!(optimize_traits(n) & TRAIT_PURE))
		return false;
	/* The node reads the variable when it runs, so its position in the step matters. */
	for (unsigned k = 0; k < n->n_inputs; k++)
		if (optimize_traits(n->inputs[k].node) & TRAIT_REF_OUTPUT)
			return false;
	return true;
}
