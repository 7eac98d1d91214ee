/* SPDX-License-Identifier: Apache-2.0 */
/* Dense gradients: one running sum. */
#include "task/kernels/control/accumulator.h"
#include "task/kernels/control/sum.h"
#include "task/kernels/engine/convert.h"

struct dense {
	struct accumulator a;
	struct mu_tensor sum; /* unset while count is 0 */
};

static struct accumulator *accumulator_dense_make(void)
{
	return &MU_NEW(struct dense)->a;
}

static void dense_free(struct accumulator *a)
{
	struct dense *d = MU_CONTAINER(a, struct dense, a);

	mu_tensor_unref(&d->sum);
	free(d);
}

static int accumulator_dense_add(struct accumulator *a, struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *g = kernel_in(c, 2);

	if (g->dtype != a->dtype)
		return mu_invalid(err, "the gradient is %s, the accumulator %s",
				  mu_dtype_name(g->dtype), mu_dtype_name(a->dtype));
	if (!mu_shape_matches(&g->shape, &a->shape))
		return mu_invalid(err, "Shape mismatch: expected %s, got %s",
				  mu_pshape_str(&a->shape), mu_shape_str(&g->shape));
	return sum_add(&MU_CONTAINER(a, struct dense, a)->sum, g, err);
}

static int accumulator_dense_divide(struct accumulator *a, struct mu_tensor *sum,
				    struct mu_err *err)
{
	const int64_t n = a->count;
	uint64_t divisor;
	struct mu_tensor out = *sum;

	if (!mu_tensor_is_own(&out)) {
		MU_RETURN_IF_ERROR(mu_tensor_new(&out, a->dtype, &sum->shape, err));
	}
	convert(a->dtype, &divisor, MU_INT64, &n, 1);
	sum_binary(BIN_Div, a->dtype, out.data, sum->data, &divisor, out.shape.count, RIGHT_SCALAR);
	if (out.buf != sum->buf)
		mu_tensor_unref(sum);
	*sum = out;
	return 0;
}

static int accumulator_dense_output(struct accumulator *a, struct kernel_call *c,
				    struct mu_err *err)
{
	struct dense *d = MU_CONTAINER(a, struct dense, a);

	MU_RETURN_IF_ERROR(a->mean && a->count > 1 ? accumulator_dense_divide(a, &d->sum, err) : 0);
	kernel_out_take(c, 0, d->sum);
	d->sum = (struct mu_tensor){0};
	return 0;
}

const struct accumulator_kind accumulator_dense = {accumulator_dense_make, accumulator_dense_add,
						   accumulator_dense_output, dense_free};
