/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/control/sum.h"

#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/loops/loops.h"

/* On a GPU; also in place if no other tensor shares the buffer. */
static int add_there(struct gpu *g, struct mu_tensor *sum, const struct mu_tensor *t,
		     struct mu_err *err)
{
	struct mu_tensor to = *sum;
	int rc;

	if (gpu_of_tensor(sum) != g)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "the tensors to be summed are on two devices");
	if (!mu_tensor_is_sole(sum))
		MU_RETURN_IF_ERROR(gpu_tensor_new(g, t->dtype, &t->shape, "a sum", &to, err));
	rc = gpu_binary(g, "AddV2", &to, sum, t, err);
	if (to.buf != sum->buf)
		mu_tensor_unref(rc ? &to : sum);
	if (!rc)
		*sum = to;
	return rc;
}

int sum_add(struct mu_tensor *sum, const struct mu_tensor *t, struct mu_err *err)
{
	struct mu_tensor to = *sum;

	if (!mu_tensor_is_set(sum)) {
		*sum = mu_tensor_ref(t);
		return 0;
	}
	if (t->dtype != sum->dtype || !mu_shape_eq(&sum->shape, &t->shape))
		return mu_invalid(err, "Shape mismatch: expected %s, got %s",
				  mu_shape_str(&sum->shape), mu_shape_str(&t->shape));
	if (gpu_of_tensor(t) || gpu_of_tensor(sum))
		return add_there(gpu_of_tensor(t), sum, t, err);
	binary_loop *add = loops->binary[BIN_AddV2][t->dtype];
	if (!add)
		return mu_fail(err, MU_UNIMPLEMENTED, "no sums of type %s",
			       mu_dtype_name(t->dtype));
	if (!mu_tensor_is_own(&to))
		MU_RETURN_IF_ERROR(mu_tensor_new(&to, t->dtype, &t->shape, err));
	add(to.data, sum->data, t->data, t->shape.count, BOTH_RUN);
	if (to.buf != sum->buf)
		mu_tensor_unref(sum);
	*sum = to;
	return 0;
}
