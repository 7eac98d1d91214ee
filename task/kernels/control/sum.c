/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/control/sum.h"

#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/gpu_table.h"

static bool sum_supports_type(enum mu_dtype t)
{
	return (unsigned)t < MU_DT_COUNT &&
	       (loops->binary[BIN_AddV2][t] || mu_dtype_is_16_bit_float(t));
}

void sum_binary(enum binary_op op, enum mu_dtype t, void *out, const void *a, const void *b,
		int64_t n, enum binary_form form)
{
	enum { CHUNK = 512 };
	const size_t size = mu_dtype_size(t);
	float x[CHUNK], y[CHUNK];

	if (loops->binary[op][t]) {
		loops->binary[op][t](out, a, b, n, form);
		return;
	}
	for (int64_t i = 0; i < n; i += CHUNK) {
		int64_t m = n - i < CHUNK ? n - i : CHUNK;
		bool scalar = form == RIGHT_SCALAR;
		convert(MU_FLOAT, x, t, (const char *)a + (size_t)i * size, m);
		convert(MU_FLOAT, y, t, (const char *)b + (scalar ? 0 : (size_t)i * size),
			scalar ? 1 : m);
		loops->binary[op][MU_FLOAT](x, x, y, m, form);
		convert(t, (char *)out + (size_t)i * size, MU_FLOAT, x, m);
	}
}

/* Adds on a GPU, in place if no other tensor shares the buffer. */
static int add_on_gpu(struct gpu *g, struct mu_tensor *sum, const struct mu_tensor *t,
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
		return add_on_gpu(gpu_of_tensor(t), sum, t, err);
	if (!sum_supports_type(t->dtype))
		return mu_fail(err, MU_UNIMPLEMENTED, "no sums of type %s",
			       mu_dtype_name(t->dtype));
	if (!mu_tensor_is_own(&to))
		MU_RETURN_IF_ERROR(mu_tensor_new(&to, t->dtype, &t->shape, err));
	sum_binary(BIN_AddV2, t->dtype, to.data, sum->data, t->data, t->shape.count, BOTH_RUN);
	if (to.buf != sum->buf)
		mu_tensor_unref(sum);
	*sum = to;
	return 0;
}
