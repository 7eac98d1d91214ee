/* SPDX-License-Identifier: Apache-2.0 */
/* Switch, Merge and the nodes of while loops. The executor handles deadness and frames; these
 * kernels only forward tensors and references. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"

static void control_flow_pass(struct kernel_call *c, unsigned in, unsigned out)
{
	c->out[out] = c->in[in];
	c->in[in] = (struct value){0};
}

static int control_flow_forward(struct kernel_call *c, struct mu_err *err)
{
	control_flow_pass(c, 0, 0);
	return 0;
}

static int switch_run(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *pred = kernel_in(c, 1);

	if (pred->dtype != MU_BOOL || pred->shape.count != 1)
		return mu_invalid(err, "The second input must be a scalar, but it has shape %s",
				  mu_shape_str(&pred->shape));
	bool on = MU_DATA(char, pred)[0] != 0;
	control_flow_pass(c, 0, on);
	kernel_out_dead(c, !on);
	return 0;
}

static int merge_run(struct kernel_call *c, struct mu_err *err)
{
	for (unsigned i = 0; i < c->n_in; i++)
		if (mu_tensor_is_set(&c->in[i].tensor) || c->in[i].ref) {
			int32_t index = (int32_t)i;
			control_flow_pass(c, i, 0);
			return mu_tensor_scalar(&c->out[1].tensor, MU_INT32, &index, err);
		}
	return mu_fail(err, MU_INTERNAL, "Merge was run without a live input");
}

/* All outputs except one are dead.  An index out of range selects the last output. */
static int switch_n(struct kernel_call *c, struct mu_err *err)
{
	int64_t index;

	MU_RETURN_IF_ERROR(args_int(c, 1, &index, err));
	if (!c->n_out)
		return mu_invalid(err, "num_outs is 0: there is no branch to take");
	unsigned on = index < 0 || index >= c->n_out ? c->n_out - 1 : (unsigned)index;
	for (unsigned i = 0; i < c->n_out; i++)
		if (i != on)
			kernel_out_dead(c, i);
	control_flow_pass(c, 0, on);
	return 0;
}

/* Forwards one of the references and releases the others. */
static int ref_select(struct kernel_call *c, struct mu_err *err)
{
	int64_t index;

	MU_RETURN_IF_ERROR(args_int(c, 0, &index, err));
	if (index < 0 || index >= (int64_t)c->n_in - 1)
		return mu_invalid(err, "Index must be in the range [0, %u) but got %lld",
				  c->n_in - 1, (long long)index);
	control_flow_pass(c, (unsigned)index + 1, 0);
	return 0;
}

/* True is a number other than zero, a string that is not empty, and any other tensor that has
 * elements. */
static int to_bool(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 0);
	bool on = t->shape.count > 0;

	if (t->shape.rank == 0 && t->dtype == MU_STRING)
		on = MU_DATA(struct mu_string, t)->len > 0;
	else if (t->shape.rank == 0 && !convert(MU_BOOL, &on, t->dtype, t->data, 1))
		return mu_invalid(err, "%s is neither true nor false", mu_dtype_name(t->dtype));

	return kernel_out_value(c, 0, MU_BOOL, &on, err);
}

static int control_flow_nothing(struct kernel_call *c, struct mu_err *err)
{
	return 0;
}

static const struct kernel rows[] = {
    {"Switch RefSwitch", KERNEL_MOVES, .run = switch_run},
    {"_SwitchN", KERNEL_MOVES, .run = switch_n},
    {"ToBool", .run = to_bool},
    {"Merge RefMerge", KERNEL_MOVES, .run = merge_run},
    {"Enter RefEnter Exit RefExit NextIteration RefNextIteration LoopCond", KERNEL_MOVES,
     .run = control_flow_forward},
    {"RefSelect", KERNEL_MOVES, .run = ref_select},
    {"ControlTrigger", KERNEL_SEES_DEAD, .run = control_flow_nothing},
    {"SyncDevice", KERNEL_NO_FOLD, .run = control_flow_nothing}, /* CPU kernels are synchronous */
};
KERNEL_TABLE(control_control_flow, rows)
