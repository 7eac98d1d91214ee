/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax, ArgMin and InTopK. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/real_types.h"
#include "task/kernels/math/checks.h"

struct best {
	enum mu_dtype t;
	bool smallest;
};

#define BETTER(T)                                                                                  \
	for (int64_t k = 1; k < n; k++) {                                                          \
		T x = ((const T *)data)[at + k * step], y = ((const T *)data)[at + found * step];  \
		if (b->smallest ? x < y : x > y)                                                   \
			found = k;                                                                 \
	}

static int64_t best_of(const struct best *b, const void *data, int64_t at, int64_t step, int64_t n)
{
	int64_t found = 0;

	switch ((int)b->t) {
#define CASE(T, dt, ...)                                                                           \
	case dt:                                                                                   \
		BETTER(T)                                                                          \
		break;
		REAL_TYPES(CASE)
	case MU_BOOL:
		BETTER(uint8_t)
		break;
	}
	return found;
}

static bool has_arg_kernel(enum mu_dtype t)
{
#define IS_TYPE(T, dt, ...) t == dt ||
	return REAL_TYPES(IS_TYPE) t == MU_BOOL;
}

int check_arg(const struct kernel_call *c, struct arg_plan *p, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	int64_t axis;

	MU_RETURN_IF_ERROR(args_int(c, 1, &axis, err));
	if (axis < -in->rank || axis >= in->rank)
		return mu_invalid(err, "Expected dimension in the range [%d, %d), but got %lld",
				  -in->rank, in->rank, (long long)axis);
	int at = (int)(axis < 0 ? axis + in->rank : axis);
	const struct mu_axis_split s = mu_shape_split(in, at);
	*p = (struct arg_plan){.type = args_attr_type(c->node, "output_type", MU_INT64),
			       .outer = s.outer,
			       .n = s.n,
			       .inner = s.inner};
	MU_RETURN_IF_ERROR(mu_shape_splice(&p->shape, in, at, 1, 0, NULL, err));
	if (p->n == 0)
		return mu_invalid(err, "Reduction axis %d is empty in shape %s", at,
				  mu_shape_str(in));
	return 0;
}

static int arg(struct kernel_call *c, bool smallest, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct best b = {in->dtype, smallest};
	struct mu_tensor *out;
	struct arg_plan p;

	MU_RETURN_IF_ERROR(check_arg(c, &p, err));
	if (!has_arg_kernel(in->dtype))
		return args_no_kernel(c, in->dtype, err);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, p.type, &p.shape, &out, err));
	for (int64_t i = 0; i < p.shape.count; i++) {
		int64_t k =
		    best_of(&b, in->data, i / p.inner * p.n * p.inner + i % p.inner, p.inner, p.n);
		if (p.type == MU_INT16 || p.type == MU_UINT16)
			MU_DATA(uint16_t, out)[i] = (uint16_t)k;
		else
			mu_tensor_set_int(out, i, k);
	}
	return 0;
}

KERNEL_RUN(arg_max, arg(c, false, err))
KERNEL_RUN(arg_min, arg(c, true, err))

int check_in_top_k(const struct kernel_call *c, int64_t *k, struct mu_err *err)
{
	*k = args_attr_int(c->node, "k", 0);
	return c->n_in > 2 ? args_int(c, 2, k, err) : 0;
}

/* True if fewer than k predictions of the row exceed the target's. */
static int in_top_k(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *p = kernel_in(c, 0), *t = kernel_in(c, 1);
	struct mu_tensor *out;
	int64_t k;

	MU_RETURN_IF_ERROR(check_in_top_k(c, &k, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_BOOL, &t->shape, &out, err));
	int64_t n = p->shape.dim[1];
	for (int64_t r = 0; r < t->shape.count; r++) {
		const float *row = MU_DATA(float, p) + r * n;
		int64_t target = mu_tensor_int(t, r), ahead = 0;
		bool good = target >= 0 && target < n && isfinite(row[target]);
		for (int64_t i = 0; good && i < n; i++) {
			good = isfinite(row[i]);
			ahead += row[i] > row[target];
		}
		MU_DATA(bool, out)[r] = good && ahead < k;
	}
	return 0;
}

static const struct kernel rows[] = {
    {"ArgMax", .run = arg_max},
    {"ArgMin", .run = arg_min},
    {"InTopK InTopKV2", .run = in_top_k},
};
KERNEL_TABLE(math_argmax, rows)
