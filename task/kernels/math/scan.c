/* SPDX-License-Identifier: Apache-2.0 */
/* Cumsum, Cumprod, CumulativeLogsumexp: each row along an axis is the previous one combined with
 * one more input row. */
#include <math.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/math/checks.h"

int check_scan(const struct kernel_call *c, struct scan_plan *p, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const struct mu_shape *axis_shape = &kernel_in(c, 1)->shape;
	int64_t at;

	if (axis_shape->rank)
		return mu_invalid(err, "ScanOp: axis must be a scalar, not %s",
				  mu_shape_str(axis_shape));
	MU_RETURN_IF_ERROR(args_int(c, 1, &at, err));
	if (at < -in->shape.rank || at >= in->shape.rank)
		return mu_invalid(err,
				  "ScanOp: Expected scan axis in the range [%d, %d), but got %lld",
				  -in->shape.rank, in->shape.rank, (long long)at);
	int axis = (int)(at < 0 ? at + in->shape.rank : at);
	const struct mu_axis_split s = mu_shape_split(&in->shape, axis);
	*p = (struct scan_plan){s.outer, s.n, s.inner, args_attr_bool(c->node, "exclusive", false),
				args_attr_bool(c->node, "reverse", false)};
	return 0;
}

static int scan(struct kernel_call *c, const struct reduce_loops *loops_of_type, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const struct reduce_loops *l = &loops_of_type[in->dtype];
	struct mu_tensor *out;
	struct scan_plan p;

	MU_RETURN_IF_ERROR(check_scan(c, &p, err));
	if (!l->start)
		return args_no_kernel(c, in->dtype, err);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &in->shape, &out, err));
	if (!in->shape.count)
		return 0;
	const int64_t n = p.n, inner = p.inner;
	const bool reverse = p.reverse, exclusive = p.exclusive;
	size_t row = (size_t)inner * mu_dtype_size(in->dtype);
	ptrdiff_t back = reverse ? (ptrdiff_t)row : -(ptrdiff_t)row; /* to the previous row */
	for (int64_t o = 0; o < p.outer; o++)
		for (int64_t i = 0; i < n; i++) {
			size_t offset = (size_t)(o * n + (reverse ? n - 1 - i : i)) * row;
			char *to = (char *)out->data + offset;
			const char *from = (const char *)in->data + offset;
			if (i)
				memcpy(to, to + back, row);
			else
				l->start(to, inner);
			if (i || !exclusive)
				l->add(to, exclusive ? from + back : from, inner);
		}
	return 0;
}

KERNEL_RUN(cumsum, scan(c, loops->reduce[RED_SUM], err))
KERNEL_RUN(cumprod, scan(c, loops->reduce[RED_PROD], err))

#define LOG_SUM_EXP(T)                                                                             \
	static void log_sum_exp_start_##T(void *out, int64_t n)                                    \
	{                                                                                          \
		for (int64_t i = 0; i < n; i++)                                                    \
			((T *)out)[i] = -(T)INFINITY;                                              \
	}                                                                                          \
	static void log_sum_exp_add_##T(void *out, const void *a, int64_t n)                       \
	{                                                                                          \
		for (int64_t i = 0; i < n; i++) {                                                  \
			double x = ((T *)out)[i], y = ((const T *)a)[i];                           \
			double high = x < y ? y : x, low = x < y ? x : y;                          \
			((T *)out)[i] =                                                            \
			    (T)(high == low ? high + M_LN2 : high + log1p(exp(low - high)));       \
		}                                                                                  \
	}
LOG_SUM_EXP(float)
LOG_SUM_EXP(double)

static const struct reduce_loops log_sum_exp[MU_DT_COUNT] = {
    [MU_FLOAT] = {.start = log_sum_exp_start_float, .add = log_sum_exp_add_float},
    [MU_DOUBLE] = {.start = log_sum_exp_start_double, .add = log_sum_exp_add_double},
};
KERNEL_RUN(cumulative_logsumexp, scan(c, log_sum_exp, err))

static const struct kernel rows[] = {
    {"Cumsum", KERNEL_EXPENSIVE, .run = cumsum},
    {"Cumprod", KERNEL_EXPENSIVE, .run = cumprod},
    {"CumulativeLogsumexp", KERNEL_EXPENSIVE, .run = cumulative_logsumexp},
};
KERNEL_TABLE(math_scan, rows)
