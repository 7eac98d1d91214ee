/* SPDX-License-Identifier: Apache-2.0 */
/* Accumulators of dense gradients: what synchronous training aggregates in.
 *
 * A gradient computed at an older step than the accumulator's is dropped.  Taking waits until
 * enough have come, gives their mean (or sum), and moves the accumulator to its next step. */
#include "task/kernels/convert.h"
#include "task/kernels/gate.h"
#include "task/kernels/handles.h"
#include "task/kernels/kernel_table.h"
#include "task/kernels/loops.h"
#include "task/kernels/sum.h"

struct accumulator {
	struct resource base;
	struct gate gate;
	enum mu_dtype dtype;
	struct mu_pshape shape;
	bool mean;
	int64_t step, count;
	struct mu_tensor sum; /* unset while count is 0 */
};

static void accumulator_free(struct resource *r)
{
	struct accumulator *a = MU_CONTAINER(r, struct accumulator, base);

	mu_tensor_unref(&a->sum);
	gate_fini(&a->gate);
	free(a);
}

static void accumulator_gone(struct resource *r)
{
	struct accumulator *a = MU_CONTAINER(r, struct accumulator, base);

	gate_fail(&a->gate, GATE_OUT, MU_CANCELLED, "ends: its accumulator was reset", r->name);
}

static const struct resource_type accumulator_type = {
    .name = "accumulator", .free = accumulator_free, .close = accumulator_gone};

/* ---- making ---- */

static struct resource *make(void *arg, struct mu_err *err)
{
	const struct mu_node *n = arg;
	const struct mu_attr *shape = mu_node_attr(n, "shape");
	struct accumulator *a = MU_NEW(struct accumulator);

	resource_init(&a->base, &accumulator_type);
	gate_init(&a->gate);
	a->dtype = args_attr_type(n, "dtype", MU_FLOAT);
	a->shape =
	    shape && shape->kind == MU_ATTR_SHAPE ? *shape->shape : (struct mu_pshape){.rank = -1};
	a->mean = strcmp(args_attr_string(n, "reduction_type", "MEAN"), "MEAN") == 0;
	return &a->base;
}

static int conditional(struct kernel_call *c, struct mu_err *err)
{
	const char *how = args_attr_string(c->node, "reduction_type", "MEAN");
	enum mu_dtype t = args_attr_type(c->node, "dtype", MU_FLOAT);
	struct resource *r;

	if (strcmp(how, "MEAN") != 0 && strcmp(how, "SUM") != 0)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "reduction_type must be MEAN or SUM, not %s", how);
	if ((unsigned)t >= MU_DT_COUNT || !loops->binary[BIN_AddV2][t])
		return mu_fail(err, MU_UNIMPLEMENTED, "no accumulators for type %s",
			       mu_dtype_name(t));
	int rc = handle_make(c, &accumulator_type, make, (void *)c->node, &r, err);
	if (rc)
		return rc;
	if (MU_CONTAINER(r, struct accumulator, base)->dtype != t)
		rc = mu_fail(err, MU_INVALID_ARGUMENT,
			     "Shared conditional accumulator '%s' has type %s but requested type "
			     "was %s",
			     r->name,
			     mu_dtype_name(MU_CONTAINER(r, struct accumulator, base)->dtype),
			     mu_dtype_name(t));
	resource_unref(r);
	return rc;
}

/* The accumulator of input 0, its gate locked.  Undone by let_go. */
static int hold(const struct kernel_call *c, struct accumulator **out, struct mu_err *err)
{
	struct resource *r;
	int rc = handle_find(c, 0, &accumulator_type, &r, err);

	if (!rc) {
		*out = MU_CONTAINER(r, struct accumulator, base);
		pthread_mutex_lock(&(*out)->gate.lock);
	}
	return rc;
}

static void let_go(struct accumulator *a)
{
	pthread_mutex_unlock(&a->gate.lock);
	gate_change(&a->gate, NULL, NULL); /* serves who can be served now */
	resource_unref(&a->base);
}

/* ---- apply, step, count ---- */

static int add(struct accumulator *a, const struct mu_tensor *g, struct mu_err *err)
{
	if (g->dtype != a->dtype)
		return mu_fail(err, MU_INVALID_ARGUMENT, "the gradient is %s, the accumulator %s",
			       mu_dtype_name(g->dtype), mu_dtype_name(a->dtype));
	if (!mu_shape_matches(&g->shape, &a->shape))
		return mu_fail(err, MU_INVALID_ARGUMENT, "Shape mismatch: expected %s, got %s",
			       mu_pshape_str(&a->shape), mu_shape_str(&g->shape));
	if (a->count == 0)
		mu_tensor_unref(&a->sum);
	int rc = sum_add(&a->sum, g, err);
	if (rc)
		return rc;
	a->count++;
	return 0;
}

static int apply_gradient(struct kernel_call *c, struct mu_err *err)
{
	struct accumulator *a;
	int64_t step;
	int rc;

	if ((rc = args_int(c, 1, &step, err)) || (rc = hold(c, &a, err)))
		return rc;
	if (step >= a->step) /* else it is stale, and dropped */
		rc = add(a, kernel_in(c, 2), err);
	let_go(a);
	return rc;
}

static int set_global_step(struct kernel_call *c, struct mu_err *err)
{
	struct accumulator *a;
	int64_t step;
	int rc;

	if ((rc = args_int(c, 1, &step, err)) || (rc = hold(c, &a, err)))
		return rc;
	a->step = step;
	let_go(a);
	return 0;
}

static int num_accumulated(struct kernel_call *c, struct mu_err *err)
{
	struct accumulator *a;
	struct mu_tensor t;
	int rc = hold(c, &a, err);

	if (rc)
		return rc;
	int32_t n = (int32_t)a->count;
	let_go(a);
	if (!(rc = mu_tensor_scalar(&t, MU_INT32, &n, err)))
		kernel_out_take(c, 0, t);
	return rc;
}

/* ---- take ---- */

struct take {
	struct waiter w;
	int64_t want;
};

static void take_free(struct waiter *w)
{
	free(MU_CONTAINER(w, struct take, w));
}

static int divide(struct accumulator *a, struct mu_err *err)
{
	const int64_t n = a->count;
	uint64_t divisor;
	struct mu_tensor out = a->sum;

	if (!mu_tensor_is_sole(&out) || out.buf->owner) {
		int rc = mu_tensor_new(&out, a->dtype, &a->sum.shape, err);
		if (rc)
			return rc;
	}
	convert(a->dtype, &divisor, MU_INT64, &n, 1);
	loops->binary[BIN_Div][a->dtype](out.data, a->sum.data, &divisor, out.shape.count,
					 RIGHT_SCALAR);
	if (out.buf != a->sum.buf)
		mu_tensor_unref(&a->sum);
	a->sum = out;
	return 0;
}

static bool take_try(struct waiter *w)
{
	struct accumulator *a = MU_CONTAINER(w->owner, struct accumulator, base);

	if (a->count < MU_CONTAINER(w, struct take, w)->want)
		return false;
	if (a->mean && a->count > 1 && divide(a, &w->err))
		return true;
	kernel_out_take(w->c, 0, a->sum);
	a->sum = (struct mu_tensor){0};
	a->count = 0;
	a->step++;
	return true;
}

static void take_gradient(struct kernel_call *c)
{
	struct mu_err err;
	struct resource *r;
	int64_t want;
	int rc = args_int(c, 1, &want, &err);

	if (!rc && want <= 0)
		rc = mu_fail(&err, MU_INVALID_ARGUMENT,
			     "Argument num_required must be > 0, got %lld", (long long)want);
	if (rc || handle_find(c, 0, &accumulator_type, &r, &err)) {
		kernel_finish(c, &err);
		return;
	}
	struct take *t = MU_NEW(struct take);
	t->want = want;
	t->w = (struct waiter){.c = c,
			       .gate = &MU_CONTAINER(r, struct accumulator, base)->gate,
			       .owner = r,
			       .what = "TakeGrad",
			       .try = take_try,
			       .free = take_free};
	gate_enter(&t->w, GATE_OUT);
}

static const struct kernel rows[] = {
    {"ConditionalAccumulator", .run = conditional},
    {"ResourceConditionalAccumulator", .run = conditional},
    {"AccumulatorApplyGradient", .run = apply_gradient},
    {"ResourceAccumulatorApplyGradient", .run = apply_gradient},
    {"AccumulatorSetGlobalStep", .run = set_global_step},
    {"ResourceAccumulatorSetGlobalStep", .run = set_global_step},
    {"AccumulatorNumAccumulated", .run = num_accumulated},
    {"ResourceAccumulatorNumAccumulated", .run = num_accumulated},
    {"AccumulatorTakeGradient", .start = take_gradient},
    {"ResourceAccumulatorTakeGradient", .start = take_gradient},
};
KERNEL_TABLE(accumulator, rows)
