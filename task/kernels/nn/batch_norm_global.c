/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormWithGlobalNormalization, (t - m) / sqrt(v + epsilon) * gamma + beta, and its gradients
 * by all five inputs. The last dimension is the channels; sums are in double. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"

enum { T, M, V };

static int batch_norm_global_check(const struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, T);

	if (t->dtype != MU_FLOAT && t->dtype != MU_DOUBLE)
		return args_no_kernel(c, t->dtype, err);
	return 0;
}

static double batch_norm_global_get(const struct mu_tensor *t, int64_t i)
{
	return t->dtype == MU_FLOAT ? (double)MU_DATA(float, t)[i] : MU_DATA(double, t)[i];
}

static void batch_norm_global_put(const struct mu_tensor *t, int64_t i, double x)
{
	if (t->dtype == MU_FLOAT)
		MU_DATA(float, t)[i] = (float)x;
	else
		MU_DATA(double, t)[i] = x;
}

static double inverse_deviation(const struct kernel_call *c, int64_t channel)
{
	float epsilon = args_attr_float(c->node, "variance_epsilon", 0);

	return 1 / sqrt(batch_norm_global_get(kernel_in(c, V), channel) + (double)epsilon);
}

static int batch_norm_global_forward(struct kernel_call *c, struct mu_err *err)
{
	bool scaled = args_attr_bool(c->node, "scale_after_normalization", false);
	const struct mu_tensor *t = kernel_in(c, T), *mean = kernel_in(c, M);
	const struct mu_tensor *beta = kernel_in(c, 3), *gamma = kernel_in(c, 4);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(batch_norm_global_check(c, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t->dtype, &t->shape, &out, err));
	if (!t->shape.count)
		return 0;
	const int64_t n = t->shape.dim[3];
	MU_AUTO_FREE double *factor = mu_xcalloc((size_t)n + 1, sizeof *factor);
	for (int64_t k = 0; k < n; k++)
		factor[k] =
		    inverse_deviation(c, k) * (scaled ? batch_norm_global_get(gamma, k) : 1);
	for (int64_t i = 0; i < t->shape.count; i++) {
		int64_t k = i % n;
		batch_norm_global_put(
		    out, i,
		    (batch_norm_global_get(t, i) - batch_norm_global_get(mean, k)) * factor[k] +
			batch_norm_global_get(beta, k));
	}
	return 0;
}

static int batch_norm_global_backward(struct kernel_call *c, struct mu_err *err)
{
	bool scaled = args_attr_bool(c->node, "scale_after_normalization", false);
	const struct mu_tensor *t = kernel_in(c, T), *mean = kernel_in(c, M);
	const struct mu_tensor *gamma = kernel_in(c, 3), *grad = kernel_in(c, 4);
	struct mu_tensor *dx, *dm, *dv, *db, *dg;

	MU_RETURN_IF_ERROR(batch_norm_global_check(c, err));
	const int64_t n = t->shape.dim[3];
	const struct mu_shape vec = mu_shape_vec(n);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t->dtype, &t->shape, &dx, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, t->dtype, &vec, &dm, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 2, t->dtype, &vec, &dv, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 3, t->dtype, &vec, &db, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 4, t->dtype, &vec, &dg, err));
	MU_AUTO_FREE double *buffer = mu_xcalloc((size_t)n + 1, 3 * sizeof *buffer);
	double *factor = buffer, *sum = factor + n,
	       *product_sum = sum + n; /* sums of g and of g * (t - m) */
	for (int64_t k = 0; k < n; k++)
		factor[k] = inverse_deviation(c, k);
	for (int64_t i = 0; i < t->shape.count; i++) {
		int64_t k = i % n;
		double g = batch_norm_global_get(grad, i);
		sum[k] += g;
		product_sum[k] +=
		    g * (batch_norm_global_get(t, i) - batch_norm_global_get(mean, k));
		batch_norm_global_put(
		    dx, i, g * factor[k] * (scaled ? batch_norm_global_get(gamma, k) : 1));
	}
	for (int64_t k = 0; k < n; k++) {
		double scale = scaled ? batch_norm_global_get(gamma, k) : 1;
		batch_norm_global_put(dm, k, -sum[k] * factor[k] * scale);
		batch_norm_global_put(
		    dv, k, product_sum[k] * -0.5 * scale * factor[k] * factor[k] * factor[k]);
		batch_norm_global_put(db, k, sum[k]);
		batch_norm_global_put(dg, k, scaled ? product_sum[k] * factor[k] : 0);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"BatchNormWithGlobalNormalization", KERNEL_EXPENSIVE, .run = batch_norm_global_forward},
    {"BatchNormWithGlobalNormalizationGrad", KERNEL_EXPENSIVE, .run = batch_norm_global_backward},
};
KERNEL_TABLE(nn_batch_norm_global, rows)
