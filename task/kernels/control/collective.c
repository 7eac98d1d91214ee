/* SPDX-License-Identifier: Apache-2.0 */
/* Collective ops.  The first versions have the keys as attributes, the second ones as inputs. */
#include "task/kernels/control/collective.h"

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/runtime/runtime.h"

/* ---- the result ---- */

static int combine_broadcast(const struct collective_part *const *parts, unsigned n,
			     struct mu_tensor *out, struct mu_err *err)
{
	const struct collective_part *sender = NULL;

	for (unsigned i = 0; i < n; i++) {
		if (parts[i]->sends && sender)
			return mu_invalid(err, "a broadcast has two senders: %s and %s",
					  sender->device, parts[i]->device);
		if (parts[i]->sends)
			sender = parts[i];
	}
	if (!sender)
		return mu_fail(err, MU_INTERNAL, "the broadcast of instance %lld has no sender",
			       (long long)parts[0]->instance_key);
	*out = mu_tensor_ref(&sender->tensor);
	return 0;
}

static int combine_gather(const struct collective_part *const *parts, unsigned n,
			  struct mu_tensor *out, struct mu_err *err)
{
	const struct mu_shape *one = &parts[0]->shape;
	int64_t dims[MU_MAX_RANK];
	struct mu_shape all;

	if (!one->rank)
		return mu_invalid(err, "scalars cannot be gathered");
	memcpy(dims, one->dim, sizeof dims);
	if (__builtin_mul_overflow(dims[0], (int64_t)n, &dims[0]))
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "the gathered tensor is too large");
	MU_RETURN_IF_ERROR(mu_shape_set(&all, one->rank, dims, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(out, parts[0]->dtype, &all, err));
	for (unsigned i = 0; i < n; i++)
		elems_copy(out->dtype, out->data, i * one->count, parts[i]->tensor.data, 0,
			   one->count);
	return 0;
}

static int combine_reduce(const struct collective_part *const *parts, unsigned n,
			  struct mu_tensor *out, struct mu_err *err)
{
	static const enum binary_op ops[] = {[COLLECTIVE_ADD] = BIN_AddV2,
					     [COLLECTIVE_MUL] = BIN_Mul,
					     [COLLECTIVE_MAX] = BIN_Maximum,
					     [COLLECTIVE_MIN] = BIN_Minimum};
	enum binary_op op = ops[parts[0]->kind];
	enum mu_dtype type = parts[0]->dtype;
	int64_t count = parts[0]->shape.count, size = n, divisor;

	if (!loops_binary_known(op, type) || !convert(type, &divisor, MU_INT64, &size, 1))
		return mu_invalid(err, "%s cannot be reduced", mu_dtype_name(type));
	MU_RETURN_IF_ERROR(mu_tensor_new(out, type, &parts[0]->shape, err));
	elems_copy(type, out->data, 0, parts[0]->tensor.data, 0, count);
	for (unsigned i = 1; i < n; i++)
		loops_binary(op, type, out->data, out->data, parts[i]->tensor.data, count,
			     BOTH_RUN);
	if (parts[0]->divide)
		loops_binary(BIN_Div, type, out->data, out->data, &divisor, count, RIGHT_SCALAR);
	return 0;
}

int collective_combine(const struct collective_part *const *parts, unsigned n,
		       struct mu_tensor *out, struct mu_err *err)
{
	switch (parts[0]->kind) {
	case COLLECTIVE_BROADCAST:
		return combine_broadcast(parts, n, out, err);
	case COLLECTIVE_GATHER:
		return combine_gather(parts, n, out, err);
	default:
		return combine_reduce(parts, n, out, err);
	}
}

/* ---- a call that waits for the other members ---- */

enum { MAX_TIMEOUT_S = 1000000000 }; /* a longer timeout means none */

/* Has three references: of collective_start, of the cancellation and of collective_done. */
struct collective_waiter {
	struct kernel_call *c;
	struct collective_call *call;
	_Atomic int refs;
};

static void collective_waiter_unref(struct collective_waiter *w)
{
	if (atomic_fetch_sub(&w->refs, 1) != 1)
		return;
	collective_call_unref(w->call);
	free(w);
}

static void collective_done(void *arg, const struct mu_err *err, struct mu_tensor *result,
			    bool dead)
{
	struct collective_waiter *w = arg;
	struct kernel_call *c = w->c;

	if (kernel_uncancel(c))
		collective_waiter_unref(w);
	if (!err)
		kernel_out_take(c, 0, *result);
	collective_waiter_unref(w);
	kernel_finish(c, err);
}

static void collective_cancelled(void *arg)
{
	struct collective_waiter *w = arg;

	collective_cancel(w->call);
	collective_waiter_unref(w);
}

/* Starts a collective op; p has its kind and tensor.  group_size, group_key and instance_key are
 * attributes (first version) or the inputs from `first_key_input` on (V2). */
static void collective_start(struct kernel_call *c, struct collective_part *p,
			     unsigned first_key_input)
{
	static const char *const names[] = {"group_size", "group_key", "instance_key"};
	int64_t *const values[] = {&p->group_size, &p->group_key, &p->instance_key};
	struct mu_err err;
	struct collective_waiter *w;
	float timeout_s;
	int rc = 0;

	for (unsigned i = 0; !rc && i < MU_COUNT(names); i++)
		if (mu_node_attr_int(c->node, names[i], values[i], NULL))
			rc = args_int(c, first_key_input + i, values[i], &err);
	if (!rc && !c->runtime->collectives)
		rc = mu_fail(&err, MU_FAILED_PRECONDITION, "a collective op needs a server");
	if (rc) {
		kernel_finish(c, &err);
		return;
	}
	p->device = *c->node->device ? c->node->device : c->runtime->cpu_name;
	timeout_s = args_attr_float(c->node, "timeout_seconds", 0);
	p->timeout_ms =
	    timeout_s > 0 && timeout_s < MAX_TIMEOUT_S ? (int64_t)(1000 * timeout_s) : 0;
	w = MU_NEW(struct collective_waiter);
	w->c = c;
	w->call = collective_call_new(c->runtime->collectives, p, collective_done, w);
	atomic_init(&w->refs, 3);
	if (kernel_on_cancel(c, collective_cancelled, w))
		collective_join(w->call);
	collective_waiter_unref(w);
}

static struct collective_part part_of_input(const struct kernel_call *c, enum collective_kind kind)
{
	const struct mu_tensor *t = kernel_in(c, 0);

	return (struct collective_part){
	    .kind = kind, .sends = true, .dtype = t->dtype, .shape = t->shape, .tensor = *t};
}

static void reduce(struct kernel_call *c)
{
	static const char *const merges[] = {[COLLECTIVE_ADD] = "Add",
					     [COLLECTIVE_MUL] = "Mul",
					     [COLLECTIVE_MAX] = "Max",
					     [COLLECTIVE_MIN] = "Min"};
	const char *merge = args_attr_string(c->node, "merge_op", "Add");
	struct collective_part p = part_of_input(c, COLLECTIVE_ADD);

	for (unsigned i = COLLECTIVE_ADD; i < MU_COUNT(merges); i++)
		if (!strcmp(merge, merges[i]))
			p.kind = (enum collective_kind)i;
	p.divide = !strcmp(args_attr_string(c->node, "final_op", "Id"), "Div");
	collective_start(c, &p, 1);
}

static void gather(struct kernel_call *c)
{
	struct collective_part p = part_of_input(c, COLLECTIVE_GATHER);

	collective_start(c, &p, 1);
}

static void broadcast_send(struct kernel_call *c)
{
	struct collective_part p = part_of_input(c, COLLECTIVE_BROADCAST);

	collective_start(c, &p, 1);
}

/* The shape that a receiver expects: an attribute, or the last input. */
static int receiver_shape(struct kernel_call *c, struct mu_shape *out, struct mu_err *err)
{
	const struct mu_attr *a = mu_node_attr(c->node, "shape");

	if (!a)
		return args_shape(c, 3, out, err);
	return mu_shape_set(out, a->shape->rank, a->shape->dim, err);
}

static void broadcast_recv(struct kernel_call *c)
{
	struct collective_part p = {.kind = COLLECTIVE_BROADCAST,
				    .dtype = args_attr_type(c->node, "T", MU_FLOAT)};
	struct mu_err err;

	if (receiver_shape(c, &p.shape, &err))
		kernel_finish(c, &err);
	else
		collective_start(c, &p, 0);
}

static const struct kernel rows[] = {
    {"CollectiveReduce CollectiveReduceV2", KERNEL_NO_FOLD, .start = reduce},
    {"CollectiveGather CollectiveGatherV2", KERNEL_NO_FOLD, .start = gather},
    {"CollectiveBcastSend CollectiveBcastSendV2", KERNEL_NO_FOLD, .start = broadcast_send},
    {"CollectiveBcastRecv CollectiveBcastRecvV2", KERNEL_NO_FOLD, .start = broadcast_recv},
};
KERNEL_TABLE(control_collective, rows)
