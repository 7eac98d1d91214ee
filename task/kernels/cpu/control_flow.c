/* SPDX-License-Identifier: Apache-2.0 */
/* Switch, Merge and the nodes of while loops.  What makes them special (deadness, frames) is the
 * executor's; here values only pass through, tensors and references alike. */
#include "task/kernels/kernel_table.h"

static void pass(struct kernel_call *c, unsigned in, unsigned out)
{
	c->out[out] = c->in[in];
	c->in[in] = (struct value){0};
}

static int forward(struct kernel_call *c, struct mu_err *err)
{
	pass(c, 0, 0);
	return 0;
}

static int switch_run(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *pred = kernel_in(c, 1);

	if (pred->dtype != MU_BOOL || pred->shape.count != 1)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "The second input must be a scalar, but it has shape %s",
			       mu_shape_str(&pred->shape));
	bool on = MU_DATA(char, pred)[0] != 0;
	pass(c, 0, on);
	kernel_out_dead(c, !on);
	return 0;
}

static int merge_run(struct kernel_call *c, struct mu_err *err)
{
	for (unsigned i = 0; i < c->n_in; i++)
		if (mu_tensor_is_set(&c->in[i].tensor) || c->in[i].ref) {
			int32_t index = (int32_t)i;
			pass(c, i, 0);
			return mu_tensor_scalar(&c->out[1].tensor, MU_INT32, &index, err);
		}
	return mu_fail(err, MU_INTERNAL, "Merge was run without a live input");
}

static int nothing(struct kernel_call *c, struct mu_err *err)
{
	return 0;
}

static const struct kernel rows[] = {
    {"Switch", KERNEL_MOVES, .run = switch_run},
    {"RefSwitch", KERNEL_MOVES, .run = switch_run},
    {"Merge", KERNEL_MOVES, .run = merge_run},
    {"RefMerge", KERNEL_MOVES, .run = merge_run},
    {"Enter", KERNEL_MOVES, .run = forward},
    {"RefEnter", KERNEL_MOVES, .run = forward},
    {"Exit", KERNEL_MOVES, .run = forward},
    {"RefExit", KERNEL_MOVES, .run = forward},
    {"NextIteration", KERNEL_MOVES, .run = forward},
    {"RefNextIteration", KERNEL_MOVES, .run = forward},
    {"LoopCond", KERNEL_MOVES, .run = forward},
    {"ControlTrigger", KERNEL_SEES_DEAD, .run = nothing},
};
KERNEL_TABLE(control_flow, rows)
