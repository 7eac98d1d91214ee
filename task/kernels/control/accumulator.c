/* SPDX-License-Identifier: Apache-2.0 */
/* Accumulators of all kinds: create, apply gradients, count, wait for the mean. */
#include "task/kernels/control/accumulator.h"

#include <string.h>

#include "task/kernels/control/sum.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/state/handles.h"

static void accumulator_free(struct resource *r)
{
	struct accumulator *a = MU_CONTAINER(r, struct accumulator, base);

	wait_queue_fini(&a->waiters);
	a->kind->free(a);
}

static void accumulator_close(struct resource *r)
{
	struct accumulator *a = MU_CONTAINER(r, struct accumulator, base);

	wait_queue_close(&a->waiters, "ends: its accumulator was reset");
}

static const struct resource_type accumulator_type = {
    .name = "accumulator", .free = accumulator_free, .close = accumulator_close};

static const struct accumulator_kind *accumulator_kind_of(const struct mu_node *n)
{
	return strncmp(n->op, "Sparse", 6) == 0 ? &accumulator_sparse : &accumulator_dense;
}

/* ---- creation ---- */

static struct resource *accumulator_make(void *arg, struct mu_err *err)
{
	const struct mu_node *n = arg;
	const struct mu_attr *shape = mu_node_attr(n, "shape");
	const struct accumulator_kind *kind = accumulator_kind_of(n);
	struct accumulator *a = kind->make();

	resource_init(&a->base, &accumulator_type);
	wait_queue_init(&a->waiters);
	a->kind = kind;
	a->dtype = args_attr_type(n, "dtype", MU_FLOAT);
	a->shape =
	    shape && shape->kind == MU_ATTR_SHAPE ? *shape->shape : (struct mu_pshape){.rank = -1};
	a->mean = strcmp(args_attr_string(n, "reduction_type", "MEAN"), "MEAN") == 0;
	return &a->base;
}

static int check_attributes(const struct accumulator *a, const struct mu_node *n, enum mu_dtype t,
			    struct mu_err *err)
{
	if (a->kind != accumulator_kind_of(n))
		return mu_invalid(
		    err, "Shared accumulator '%s' is dense on one side and sparse on the other",
		    a->base.name);
	if (a->dtype != t)
		return mu_invalid(
		    err,
		    "Shared conditional accumulator '%s' has type %s but requested type was %s",
		    a->base.name, mu_dtype_name(a->dtype), mu_dtype_name(t));
	return 0;
}

static int conditional(struct kernel_call *c, struct mu_err *err)
{
	const char *reduction = args_attr_string(c->node, "reduction_type", "MEAN");
	enum mu_dtype t = args_attr_type(c->node, "dtype", MU_FLOAT);
	struct resource *r;

	if (strcmp(reduction, "MEAN") != 0 && strcmp(reduction, "SUM") != 0)
		return mu_invalid(err, "reduction_type must be MEAN or SUM, not %s", reduction);
	if (t != MU_HALF && t != MU_FLOAT && t != MU_DOUBLE)
		return args_no_kernel(c, t, err);
	int rc;

	MU_RETURN_IF_ERROR(
	    handle_make(c, &accumulator_type, accumulator_make, (void *)c->node, &r, err));
	rc = check_attributes(MU_CONTAINER(r, struct accumulator, base), c->node, t, err);
	resource_unref(r);
	return rc;
}

/* Finds the accumulator of input 0 and locks its wait queue.  Undone by accumulator_release. */
static int accumulator_hold(const struct kernel_call *c, struct accumulator **out,
			    struct mu_err *err)
{
	struct resource *r;

	MU_RETURN_IF_ERROR(handle_find(c, 0, &accumulator_type, &r, err));
	*out = MU_CONTAINER(r, struct accumulator, base);
	pthread_mutex_lock(&(*out)->waiters.lock);
	return 0;
}

static void accumulator_release(struct accumulator *a)
{
	pthread_mutex_unlock(&a->waiters.lock);
	wait_queue_update(&a->waiters, NULL,
			  NULL); /* serves the waiting calls that can finish now */
	resource_unref(&a->base);
}

/* ---- apply, step, count ---- */

static int check_use(const struct accumulator *a, const struct mu_node *n, struct mu_err *err)
{
	return a->kind == accumulator_kind_of(n)
		   ? 0
		   : mu_invalid(err, "accumulator '%s' is not of the kind that %s is for",
				a->base.name, n->op);
}

static int apply_gradient(struct kernel_call *c, struct mu_err *err)
{
	struct accumulator *a;
	int64_t step;
	int rc;

	MU_RETURN_IF_ERROR(args_int(c, 1, &step, err));
	MU_RETURN_IF_ERROR(accumulator_hold(c, &a, err));
	rc = check_use(a, c->node, err);
	if (!rc && step >= a->step && !(rc = a->kind->add(a, c, err))) /* else it is stale */
		a->count++;
	accumulator_release(a);
	return rc;
}

static int set_global_step(struct kernel_call *c, struct mu_err *err)
{
	struct accumulator *a;
	int64_t step;

	MU_RETURN_IF_ERROR(args_int(c, 1, &step, err));
	MU_RETURN_IF_ERROR(accumulator_hold(c, &a, err));
	a->step = step;
	accumulator_release(a);
	return 0;
}

static int num_accumulated(struct kernel_call *c, struct mu_err *err)
{
	struct accumulator *a;

	MU_RETURN_IF_ERROR(accumulator_hold(c, &a, err));
	int32_t n = (int32_t)a->count;
	accumulator_release(a);
	return kernel_out_value(c, 0, MU_INT32, &n, err);
}

/* ---- take ---- */

struct take_gradient_call {
	struct waiter w;
	int64_t want;
};

static void take_free(struct waiter *w)
{
	free(MU_CONTAINER(w, struct take_gradient_call, w));
}

static bool accumulator_take_try(struct waiter *w)
{
	struct accumulator *a = MU_CONTAINER(w->owner, struct accumulator, base);

	if (a->count < MU_CONTAINER(w, struct take_gradient_call, w)->want)
		return false;
	if (a->kind->output(a, w->c, &w->err))
		return true;
	a->count = 0;
	a->step++;
	return true;
}

static int find_for_take(struct kernel_call *c, int64_t *want, struct resource **r,
			 struct mu_err *err)
{
	int rc = args_int(c, 1, want, err);

	if (!rc && *want <= 0)
		rc = mu_invalid(err, "Argument num_required must be > 0, got %lld",
				(long long)*want);
	if (rc || (rc = handle_find(c, 0, &accumulator_type, r, err)))
		return rc;
	if ((rc = check_use(MU_CONTAINER(*r, struct accumulator, base), c->node, err)))
		resource_unref(*r);
	return rc;
}

static void take_gradient(struct kernel_call *c)
{
	struct mu_err err;
	struct resource *r;
	int64_t want;

	if (find_for_take(c, &want, &r, &err)) {
		kernel_finish(c, &err);
		return;
	}
	struct take_gradient_call *t = MU_NEW(struct take_gradient_call);
	t->want = want;
	t->w = (struct waiter){.c = c,
			       .waiters = &MU_CONTAINER(r, struct accumulator, base)->waiters,
			       .owner = r,
			       .what = "TakeGrad",
			       .try = accumulator_take_try,
			       .free = take_free};
	wait_queue_add(&t->w, WAIT_TAKE);
}

static const struct kernel rows[] = {
    {"ConditionalAccumulator ResourceConditionalAccumulator SparseConditionalAccumulator",
     .run = conditional},
    {"AccumulatorApplyGradient ResourceAccumulatorApplyGradient SparseAccumulatorApplyGradient",
     .run = apply_gradient},
    {"AccumulatorSetGlobalStep ResourceAccumulatorSetGlobalStep", .run = set_global_step},
    {"AccumulatorNumAccumulated ResourceAccumulatorNumAccumulated", .run = num_accumulated},
    {"AccumulatorTakeGradient ResourceAccumulatorTakeGradient SparseAccumulatorTakeGradient",
     .start = take_gradient},
};
KERNEL_TABLE(control_accumulator, rows)
