/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops.  Ops of one or two operands have one kernel for each row of
 * engine/loops/loops.def.  Ops of more operands and ops with attributes follow. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/complex.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/variant.h"
#include "task/kernels/math/checks.h"
#include "task/kernels/math/special.h"

/* Below this many elements another thread costs more than it saves. */
enum { GRAIN = 32 * 1024 };

/* ---- one operand ---- */

struct unary_job {
	unary_loop *loop;
	char *out;
	const char *in;
	size_t out_size, in_size;
};

static void unary_part(void *arg, int64_t from, int64_t to)
{
	const struct unary_job *j = arg;

	j->loop(j->out + (size_t)from * j->out_size, j->in + (size_t)from * j->in_size, to - from);
}

static int unary(struct kernel_call *c, enum unary_op op, enum mu_dtype result, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	enum mu_dtype out_type = result ? result : in->dtype;
	unary_loop *loop = loops->unary[op][in->dtype];
	struct mu_tensor *out;

	if (!loop && !(loop = complex_unary(op, in->dtype)))
		return args_no_kernel(c, in->dtype, err);

	MU_RETURN_IF_ERROR(kernel_out_reuse(c, 0, 0, out_type, &in->shape, &out, err));
	struct unary_job job = {loop, out->data, kernel_in(c, 0)->data, mu_dtype_size(out_type),
				mu_dtype_size(in->dtype)};
	if (out->shape.count <= GRAIN)
		unary_part(&job, 0, out->shape.count);
	else
		kernel_parallel(c, out->shape.count, GRAIN, unary_part, &job);
	return 0;
}

/* ---- two operands ---- */

struct binary_job {
	binary_loop *loop;
	enum binary_form form;
	char *out;
	const char *a, *b;
	size_t out_size, in_size;
};

static void binary_part(void *arg, int64_t from, int64_t to)
{
	const struct binary_job *j = arg;

	j->loop(j->out + (size_t)from * j->out_size,
		j->a + (j->form == LEFT_SCALAR ? 0 : (size_t)from * j->in_size),
		j->b + (j->form == RIGHT_SCALAR ? 0 : (size_t)from * j->in_size), to - from,
		j->form);
}

static int binary_loop_run(struct kernel_call *c, binary_loop *loop, enum mu_dtype out_type,
			   const struct mu_shape *shape, struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1);
	struct mu_tensor *out;
	bool reuse_left = a->shape.count == shape->count;

	MU_RETURN_IF_ERROR(kernel_out_reuse(c, 0, reuse_left ? 0 : 1, out_type, shape, &out, err));
	a = kernel_in(c, 0);
	b = kernel_in(c, 1);
	size_t in_size = mu_dtype_size(a->dtype), out_size = mu_dtype_size(out_type);
	struct binary_job job = {loop, BOTH_RUN, out->data, a->data, b->data, out_size, in_size};
	if (a->shape.count == 1 && b->shape.count != 1)
		job.form = LEFT_SCALAR;
	else if (b->shape.count == 1 && a->shape.count != 1)
		job.form = RIGHT_SCALAR;
	else if (a->shape.count != shape->count || b->shape.count != shape->count) {
		broadcast_run(loop, out->data, shape, out_size, a->data, &a->shape, b->data,
			      &b->shape, in_size);
		return 0;
	}
	if (shape->count <= GRAIN)
		binary_part(&job, 0, shape->count);
	else
		kernel_parallel(c, shape->count, GRAIN, binary_part, &job);
	return 0;
}

static bool is_equality(enum binary_op op)
{
	return op == BIN_Equal || op == BIN_NotEqual;
}

static void string_add(struct mu_string *o, struct mu_span x, struct mu_span y)
{
	MU_AUTO_BUF b = {0};

	mu_buf_put(&b, x.data, x.len);
	mu_buf_put(&b, y.data, y.len);
	mu_string_set(o, b.data, b.len);
}

/* Equality and concatenation of strings.  These are rare, so both operands are first broadcast to
 * the shape of the result. */
static int string_binary(struct kernel_call *c, enum binary_op op, const struct mu_shape *shape,
			 struct mu_err *err)
{
	const struct mu_tensor *in[2] = {kernel_in(c, 0), kernel_in(c, 1)};
	struct mu_tensor operands[2] = {{0}, {0}};
	struct mu_tensor *out;
	int rc = 0;

	for (int i = 0; i < 2 && !rc; i++) {
		struct view v;
		broadcast_view(&v, &in[i]->shape, shape);
		if (!(rc = mu_tensor_new(&operands[i], MU_STRING, shape, err)))
			view_read(MU_STRING, operands[i].data, in[i]->data, &v);
	}
	if (!rc)
		rc = kernel_out(c, 0, is_equality(op) ? MU_BOOL : MU_STRING, shape, &out, err);
	for (int64_t i = 0; !rc && i < shape->count; i++) {
		struct mu_span x = elems_span(&operands[0], i), y = elems_span(&operands[1], i);
		if (is_equality(op))
			MU_DATA(bool, out)[i] = mu_span_eq(x, y) == (op == BIN_Equal);
		else
			string_add(&MU_DATA(struct mu_string, out)[i], x, y);
	}
	mu_tensor_unref(&operands[0]);
	mu_tensor_unref(&operands[1]);
	return rc;
}

static bool is_division(enum binary_op op)
{
	return op == BIN_Div || op == BIN_RealDiv || op == BIN_TruncateDiv || op == BIN_FloorDiv ||
	       op == BIN_FloorMod || op == BIN_Mod || op == BIN_TruncateMod;
}

static bool is_integer(enum mu_dtype t)
{
	return t != MU_FLOAT && t != MU_DOUBLE && t != MU_COMPLEX64 && t != MU_COMPLEX128;
}

static bool is_signed(enum mu_dtype t)
{
	return t == MU_INT8 || t == MU_INT16 || t == MU_INT32 || t == MU_INT64;
}

static bool has_negative(const struct mu_tensor *t)
{
	const size_t size = mu_dtype_size(t->dtype);
	int64_t v;

	for (int64_t i = 0; i < t->shape.count; i++)
		if (convert(MU_INT64, &v, t->dtype, (const char *)t->data + (size_t)i * size, 1) &&
		    v < 0)
			return true;
	return false;
}

/* Two scalars.  They are frequent, and broadcasting would take longer than the operation. */
static int binary_scalars(struct kernel_call *c, binary_loop *loop, enum mu_dtype out_type,
			  struct mu_err *err)
{
	const void *a = kernel_in(c, 0)->data, *b = kernel_in(c, 1)->data;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out_reuse(c, 0, 0, out_type, &kernel_in(c, 0)->shape, &out, err));
	loop(out->data, a, b, 1, BOTH_RUN);
	return 0;
}

int check_gradient(const struct kernel_call *c, struct mu_err *err)
{
	static const char *const by_size[] = {"SigmoidGrad", "TanhGrad",       "SqrtGrad",
					      "RsqrtGrad",   "ReciprocalGrad", "InvGrad"};
	const struct mu_shape *a = &kernel_in(c, 0)->shape, *b = &kernel_in(c, 1)->shape;
	const char *op = c->node->op;
	size_t len = strlen(op);
	bool compare_sizes = false;

	if (len < 4 || strcmp(op + len - 4, "Grad") != 0 || strcmp(op, "RandomGammaGrad") == 0)
		return 0;
	for (unsigned i = 0; i < MU_COUNT(by_size); i++)
		compare_sizes |= strcmp(op, by_size[i]) == 0;
	if (compare_sizes && a->count != b->count)
		return mu_invalid(err,
				  "The two arguments to a cwise op must have same number of "
				  "elements, got %lld and %lld",
				  (long long)a->count, (long long)b->count);
	if (!compare_sizes && !mu_shape_eq(a, b))
		return mu_invalid(err,
				  "Inputs to operation %s of type %s must have the same size and "
				  "shape.  Input 0: %s != input 1: %s",
				  c->node->name, op, mu_shape_str(a), mu_shape_str(b));
	return 0;
}

/* For TruncateDiv and TruncateMod TensorFlow reports an internal error. */
static int check_integers(const char *name, enum binary_op op, const struct mu_tensor *b,
			  struct mu_err *err)
{
	if (op == BIN_Pow && is_signed(b->dtype) && has_negative(b))
		return mu_invalid(err, "Integers to negative integer powers are not allowed");
	if (!is_division(op) || !is_integer(b->dtype) || !convert_any_zero(b))
		return 0;
	if (strncmp(name, "Truncate", 8) == 0)
		return mu_fail(err, MU_INTERNAL,
			       "Unexpected error in binary operator (only integer div and mod "
			       "should have errors)");
	return mu_invalid(err, "Integer division by zero");
}

static int binary(struct kernel_call *c, enum binary_op op, bool is_comparison, struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1);
	struct mu_shape shape;
	int rc;

	if (!a->shape.rank && !b->shape.rank && loops->binary[op][a->dtype] && !is_division(op) &&
	    op != BIN_Pow)
		return binary_scalars(c, loops->binary[op][a->dtype],
				      is_comparison ? MU_BOOL : a->dtype, err);
	MU_RETURN_IF_ERROR(check_gradient(c, err));
	rc = broadcast_shape(&a->shape, &b->shape, &shape, err);
	if (rc && is_equality(op) && !args_attr_bool(c->node, "incompatible_shape_error", true)) {
		bool differ = op == BIN_NotEqual;
		return kernel_out_value(c, 0, MU_BOOL, &differ, err);
	}
	if (rc)
		return rc;
	if (a->dtype == MU_STRING && (is_equality(op) || op == BIN_Add))
		return string_binary(c, op, &shape, err);
	binary_loop *loop = loops->binary[op][a->dtype];
	if (!loop && !(loop = complex_binary(op, a->dtype)))
		return args_no_kernel(c, a->dtype, err);
	if (shape.count && (rc = check_integers(c->node->op, op, b, err)))
		return rc;
	return binary_loop_run(c, loop, is_comparison ? MU_BOOL : a->dtype, &shape, err);
}

/* ---- logic ---- */

/* A bool is one byte, 0 or 1. */
static int logical_binary(struct kernel_call *c, enum binary_op op, struct mu_err *err)
{
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(
	    broadcast_shape(&kernel_in(c, 0)->shape, &kernel_in(c, 1)->shape, &shape, err));
	return binary_loop_run(c, loops->binary[op][MU_UINT8], MU_BOOL, &shape, err);
}

KERNEL_RUN(logical_and, logical_binary(c, BIN_BitwiseAnd, err))
KERNEL_RUN(logical_or, logical_binary(c, BIN_BitwiseOr, err))

static int logical_not(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out_reuse(c, 0, 0, MU_BOOL, &kernel_in(c, 0)->shape, &out, err));
	const bool *in = kernel_in(c, 0)->data;
	for (int64_t i = 0; i < out->shape.count; i++)
		MU_DATA(bool, out)[i] = !in[i];
	return 0;
}

/* ---- AddN ---- */

static int add_n(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *first = kernel_in(c, 0);
	binary_loop *add = c->n_in ? loops->binary[BIN_AddV2][first->dtype] : NULL;
	struct mu_tensor *out;

	if (c->n_in && first->dtype == MU_VARIANT)
		return variant_add_all(c, err);
	if (!add)
		return mu_fail(err, MU_UNIMPLEMENTED, "AddN has no kernel for type %s",
			       c->n_in ? mu_dtype_name(first->dtype) : "of no inputs");
	for (unsigned i = 1; i < c->n_in; i++) {
		if (!mu_shape_eq(&first->shape, &kernel_in(c, i)->shape))
			return mu_invalid(err,
					  "Inputs to operation AddN must have the same size and "
					  "shape.  Input 0: %s != input %u: %s",
					  mu_shape_str(&first->shape), i,
					  mu_shape_str(&kernel_in(c, i)->shape));
	}
	struct mu_shape shape = first->shape;
	if (c->n_in == 1) {
		kernel_out_take(c, 0, mu_tensor_ref(first));
		return 0;
	}
	MU_RETURN_IF_ERROR(kernel_out_reuse(c, 0, 0, first->dtype, &shape, &out, err));
	add(out->data, kernel_in(c, 0)->data, kernel_in(c, 1)->data, shape.count, BOTH_RUN);
	for (unsigned i = 2; i < c->n_in; i++)
		add(out->data, out->data, kernel_in(c, i)->data, shape.count, BOTH_RUN);
	return 0;
}

/* ---- ops with attributes, ops of three operands ---- */

#define BOTH_REALS(dtype, body)                                                                    \
	if ((dtype) == MU_FLOAT) {                                                                 \
		typedef float T;                                                                   \
		body                                                                               \
	} else {                                                                                   \
		typedef double T;                                                                  \
		body                                                                               \
	}

/* alpha, rounded to the op's type, which may have 16 bits. */
static float leaky_alpha(const struct kernel_call *c)
{
	float alpha = args_attr_float(c->node, "alpha", 0.2f);
	enum mu_dtype t = args_attr_type(c->node, "T", MU_FLOAT);
	uint16_t rounded;

	if (mu_dtype_is_16_bit_float(t)) {
		convert(t, &rounded, MU_FLOAT, &alpha, 1);
		convert(MU_FLOAT, &alpha, t, &rounded, 1);
	}
	return alpha;
}

/* LeakyReluGrad has the gradient and the features as inputs, LeakyRelu only the features. */
static int leaky(struct kernel_call *c, struct mu_err *err)
{
	float alpha = leaky_alpha(c);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(args_same_shape(c, 0, c->n_in - 1, err));
	MU_RETURN_IF_ERROR(
	    kernel_out(c, 0, kernel_in(c, 0)->dtype, &kernel_in(c, 0)->shape, &out, err));
	BOTH_REALS(out->dtype, {
		const T *g = kernel_in(c, 0)->data;
		const T *x = kernel_in(c, c->n_in - 1)->data;
		for (int64_t i = 0; i < out->shape.count; i++)
			MU_DATA(T, out)[i] = x[i] > 0 ? g[i] : g[i] * (T)alpha;
	})
	return 0;
}

static int approximate_equal(struct kernel_call *c, struct mu_err *err)
{
	float tolerance = args_attr_float(c->node, "tolerance", 1e-5f);
	enum mu_dtype t = kernel_in(c, 0)->dtype;
	struct mu_tensor *out;

	if (t != MU_FLOAT && t != MU_DOUBLE)
		return args_no_kernel(c, t, err);
	MU_RETURN_IF_ERROR(args_same_shape(c, 0, 1, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_BOOL, &kernel_in(c, 0)->shape, &out, err));
	BOTH_REALS(t, {
		const T *x = kernel_in(c, 0)->data;
		const T *y = kernel_in(c, 1)->data;
		for (int64_t i = 0; i < out->shape.count; i++)
			MU_DATA(bool, out)[i] = fabs((double)(x[i] - y[i])) < (double)tolerance;
	})
	return 0;
}

static int check_numerics(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 0);
	bool show_signs = strcmp(c->node->op, "CheckNumericsV2") == 0;
	bool has_minus_inf = false, has_plus_inf = false, has_nan = false;

	BOTH_REALS(t->dtype, {
		for (int64_t i = 0; i < t->shape.count; i++) {
			has_minus_inf |= MU_DATA(T, t)[i] == -INFINITY;
			has_plus_inf |= MU_DATA(T, t)[i] == INFINITY;
			has_nan |= isnan(MU_DATA(T, t)[i]);
		}
	})
	const char *inf = !has_minus_inf && !has_plus_inf ? ""
			  : !show_signs                   ? "Inf"
			  : !has_minus_inf                ? "+Inf"
			  : !has_plus_inf                 ? "-Inf"
			  : has_nan                       ? "-Inf, +Inf,"
							  : "-Inf and +Inf";
	if (*inf || has_nan)
		return mu_invalid(err, "%s : Tensor had %s%s%s values",
				  args_attr_string(c->node, "message", ""), inf,
				  !*inf || !has_nan ? "" : " and ", has_nan ? "NaN" : "");
	kernel_out_take(c, 0, mu_tensor_ref(t));
	return 0;
}

/* Each limit is one number, or has the tensor's shape. */
int check_clip(const struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 0), *low = kernel_in(c, 1),
			       *high = kernel_in(c, 2);

	if ((low->shape.rank && !mu_shape_eq(&low->shape, &t->shape)) ||
	    (high->shape.rank && !mu_shape_eq(&high->shape, &t->shape)))
		return mu_invalid(err,
				  "clip_value_min and clip_value_max must be either of the same "
				  "shape as input, or a scalar: %s, %s, %s",
				  mu_shape_str(&t->shape), mu_shape_str(&low->shape),
				  mu_shape_str(&high->shape));
	return 0;
}

static int clip_by_value(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 0), *low = kernel_in(c, 1),
			       *high = kernel_in(c, 2);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(check_clip(c, err));
	binary_loop *minimum = loops->binary[BIN_Minimum][t->dtype];
	binary_loop *maximum = loops->binary[BIN_Maximum][t->dtype];
	if (!minimum || !maximum)
		return args_no_kernel(c, t->dtype, err);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t->dtype, &t->shape, &out, err));
	minimum(out->data, t->data, high->data, t->shape.count,
		high->shape.rank ? BOTH_RUN : RIGHT_SCALAR);
	maximum(out->data, out->data, low->data, t->shape.count,
		low->shape.rank ? BOTH_RUN : RIGHT_SCALAR);
	return 0;
}

/* The inputs have one shape; some may be scalars. */
static int betainc(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *shape = &kernel_in(c, 0)->shape;
	struct mu_tensor *out;

	for (unsigned i = 1; i < 3; i++) {
		const struct mu_shape *next = &kernel_in(c, i)->shape;
		if (next->rank && shape->rank && !mu_shape_eq(shape, next))
			return mu_invalid(err, "Shapes of a, b and x are inconsistent: %s and %s",
					  mu_shape_str(shape), mu_shape_str(next));
		shape = next->rank ? next : shape;
	}
	MU_RETURN_IF_ERROR(kernel_out(c, 0, kernel_in(c, 0)->dtype, shape, &out, err));
	BOTH_REALS(out->dtype, {
		const T *in[3];
		bool is_tensor[3];
		for (unsigned k = 0; k < 3; k++) {
			in[k] = kernel_in(c, k)->data;
			is_tensor[k] = kernel_in(c, k)->shape.rank > 0;
		}
		for (int64_t i = 0; i < out->shape.count; i++)
			MU_DATA(T, out)
		[i] = (T)special_betainc((double)in[0][is_tensor[0] * i],
					 (double)in[1][is_tensor[1] * i],
					 (double)in[2][is_tensor[2] * i]);
	})
	return 0;
}

#define UNARY(op, types, expr)     KERNEL_RUN(run_##op, unary(c, UN_##op, MU_DT_INVALID, err))
#define PREDICATE(op, types, expr) KERNEL_RUN(run_##op, unary(c, UN_##op, MU_BOOL, err))
#define BINARY(op, types, expr)    KERNEL_RUN(run_##op, binary(c, BIN_##op, false, err))
#define COMPARE(op, types, expr)   KERNEL_RUN(run_##op, binary(c, BIN_##op, true, err))
#include "task/kernels/engine/loops/loops.def"
#undef UNARY
#undef PREDICATE
#undef BINARY
#undef COMPARE

#define UNARY(op, types, expr)     {#op, .run = run_##op},
#define PREDICATE(op, types, expr) {#op, .run = run_##op},
#define BINARY(op, types, expr)    {#op, .run = run_##op},
#define COMPARE(op, types, expr)   {#op, .run = run_##op},
static const struct kernel rows[] = {
#include "task/kernels/engine/loops/loops.def"
    {"LogicalAnd", .run = logical_and},
    {"LogicalOr", .run = logical_or},
    {"LogicalNot", .run = logical_not},
    {"Betainc", .run = betainc},
    {"ClipByValue", .run = clip_by_value},
    {"AddN AccumulateNV2", .run = add_n},
    {"LeakyRelu LeakyReluGrad", .run = leaky},
    {"ApproximateEqual", .run = approximate_equal},
    {"CheckNumerics CheckNumericsV2", .run = check_numerics},
};
KERNEL_TABLE(math_elementwise, rows)
