/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/sum.h"

#include "task/kernels/loops.h"

int sum_add(struct mu_tensor *sum, const struct mu_tensor *t, struct mu_err *err)
{
	struct mu_tensor to = *sum;
	int rc;

	if (!mu_tensor_is_set(sum)) {
		*sum = mu_tensor_ref(t);
		return 0;
	}
	if (t->dtype != sum->dtype || !mu_shape_eq(&sum->shape, &t->shape))
		return mu_fail(err, MU_INVALID_ARGUMENT, "Shape mismatch: expected %s, got %s",
			       mu_shape_str(&sum->shape), mu_shape_str(&t->shape));
	binary_loop *add = loops->binary[BIN_AddV2][t->dtype];
	if (!add)
		return mu_fail(err, MU_UNIMPLEMENTED, "no sums of type %s",
			       mu_dtype_name(t->dtype));
	if (!mu_tensor_is_own(&to) && (rc = mu_tensor_new(&to, t->dtype, &t->shape, err)))
		return rc;
	add(to.data, sum->data, t->data, t->shape.count, BOTH_RUN);
	if (to.buf != sum->buf)
		mu_tensor_unref(sum);
	*sum = to;
	return 0;
}
