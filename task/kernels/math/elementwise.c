/* SPDX-License-Identifier: Apache-2.0 */
/* Every op that works element by element on one or two operands: one engine, one kernel a row of
 * engine/loops/loops.def. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/complex.h"

/* Below this many elements another thread costs more than it saves. */
enum { GRAIN = 32 * 1024 };

static int no_such_type(const struct kernel_call *c, enum mu_dtype t, struct mu_err *err)
{
	return mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for type %s on this device",
		       c->node->op, mu_dtype_name(t));
}

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
		return no_such_type(c, in->dtype, err);
	int rc = kernel_out_reuse(c, 0, 0, out_type, &in->shape, &out, err);
	if (rc)
		return rc;
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
	bool left = a->shape.count == shape->count;
	int rc = kernel_out_reuse(c, 0, left ? 0 : 1, out_type, shape, &out, err);

	if (rc)
		return rc;
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

static void string_add(struct mu_string *o, const struct mu_string *x, const struct mu_string *y)
{
	MU_AUTO_BUF b = {0};

	mu_buf_put(&b, x->data, x->len);
	mu_buf_put(&b, y->data, y->len);
	mu_string_set(o, b.data, b.len);
}

/* Equality and concatenation of strings: rare, so both operands are first made as large as the
 * result. */
static int string_binary(struct kernel_call *c, enum binary_op op, const struct mu_shape *shape,
			 struct mu_err *err)
{
	const struct mu_tensor *in[2] = {kernel_in(c, 0), kernel_in(c, 1)};
	struct mu_tensor wide[2] = {{0}, {0}};
	struct mu_tensor *out;
	int rc = 0;

	for (int i = 0; i < 2 && !rc; i++) {
		struct view v;
		broadcast_view(&v, &in[i]->shape, shape);
		if (!(rc = mu_tensor_new(&wide[i], MU_STRING, shape, err)))
			view_read(MU_STRING, wide[i].data, in[i]->data, &v);
	}
	if (!rc)
		rc = kernel_out(c, 0, is_equality(op) ? MU_BOOL : MU_STRING, shape, &out, err);
	for (int64_t i = 0; !rc && i < shape->count; i++) {
		const struct mu_string *x = &MU_DATA(struct mu_string, &wide[0])[i];
		const struct mu_string *y = &MU_DATA(struct mu_string, &wide[1])[i];
		bool same = x->len == y->len && (!x->len || !memcmp(x->data, y->data, x->len));
		if (is_equality(op))
			MU_DATA(bool, out)[i] = same == (op == BIN_Equal);
		else
			string_add(&MU_DATA(struct mu_string, out)[i], x, y);
	}
	mu_tensor_unref(&wide[0]);
	mu_tensor_unref(&wide[1]);
	return rc;
}

static bool divides(enum binary_op op)
{
	return op == BIN_Div || op == BIN_RealDiv || op == BIN_TruncateDiv || op == BIN_FloorDiv ||
	       op == BIN_FloorMod || op == BIN_Mod || op == BIN_TruncateMod;
}

static bool has_zero(const struct mu_tensor *t)
{
	size_t size = mu_dtype_size(t->dtype);
	static const char zero[16];

	if (t->dtype == MU_FLOAT || t->dtype == MU_DOUBLE || t->dtype == MU_COMPLEX64 ||
	    t->dtype == MU_COMPLEX128)
		return false;
	for (int64_t i = 0; i < t->shape.count; i++)
		if (memcmp((const char *)t->data + (size_t)i * size, zero, size) == 0)
			return true;
	return false;
}

/* Two scalars: graphs are full of them, and the shapes would cost more than the sum. */
static int binary_scalars(struct kernel_call *c, binary_loop *loop, enum mu_dtype out_type,
			  struct mu_err *err)
{
	const void *a = kernel_in(c, 0)->data, *b = kernel_in(c, 1)->data;
	struct mu_tensor *out;
	int rc = kernel_out_reuse(c, 0, 0, out_type, &kernel_in(c, 0)->shape, &out, err);

	if (!rc)
		loop(out->data, a, b, 1, BOTH_RUN);
	return rc;
}

static int binary(struct kernel_call *c, enum binary_op op, bool compares, struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1);
	struct mu_shape shape;
	int rc = a->dtype == b->dtype ? 0 : args_same_type(c, 0, 1, err);

	if (rc)
		return rc;
	if (!a->shape.rank && !b->shape.rank && loops->binary[op][a->dtype] && !divides(op))
		return binary_scalars(c, loops->binary[op][a->dtype], compares ? MU_BOOL : a->dtype,
				      err);
	rc = broadcast_shape(&a->shape, &b->shape, &shape, err);
	if (rc && is_equality(op) && !args_attr_bool(c->node, "incompatible_shape_error", true)) {
		bool differ = op == BIN_NotEqual;
		MU_AUTO_TENSOR t = {0};
		if ((rc = mu_tensor_scalar(&t, MU_BOOL, &differ, err)))
			return rc;
		kernel_out_take(c, 0, mu_tensor_ref(&t));
		return 0;
	}
	if (rc)
		return rc;
	if (a->dtype == MU_STRING && (is_equality(op) || op == BIN_Add))
		return string_binary(c, op, &shape, err);
	binary_loop *loop = loops->binary[op][a->dtype];
	if (!loop && !(loop = complex_binary(op, a->dtype)))
		return no_such_type(c, a->dtype, err);
	if (divides(op) && has_zero(b))
		return mu_fail(err, MU_INVALID_ARGUMENT, "Integer division by zero");
	return binary_loop_run(c, loop, compares ? MU_BOOL : a->dtype, &shape, err);
}

/* ---- logic ---- */

#define LOGIC_LOOP(name, expr)                                                                     \
	static void name(void *out, const void *a, const void *b, int64_t n, enum binary_form f)   \
	{                                                                                          \
		bool *o = out;                                                                     \
		for (int64_t i = 0; i < n; i++) {                                                  \
			const bool x = ((const bool *)a)[f == LEFT_SCALAR ? 0 : i];                \
			const bool y = ((const bool *)b)[f == RIGHT_SCALAR ? 0 : i];               \
			o[i] = expr;                                                               \
		}                                                                                  \
	}
LOGIC_LOOP(and_loop, x &&y)
LOGIC_LOOP(or_loop, x || y)

static int logic(struct kernel_call *c, binary_loop *loop, struct mu_err *err)
{
	struct mu_shape shape;
	int rc;

	if ((rc = args_type(c, 0, MU_BOOL, err)) || (rc = args_type(c, 1, MU_BOOL, err)) ||
	    (rc = broadcast_shape(&kernel_in(c, 0)->shape, &kernel_in(c, 1)->shape, &shape, err)))
		return rc;
	return binary_loop_run(c, loop, MU_BOOL, &shape, err);
}

static int logical_and(struct kernel_call *c, struct mu_err *err)
{
	return logic(c, and_loop, err);
}

static int logical_or(struct kernel_call *c, struct mu_err *err)
{
	return logic(c, or_loop, err);
}

static int logical_not(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor *out;
	int rc = args_type(c, 0, MU_BOOL, err);

	if (rc || (rc = kernel_out_reuse(c, 0, 0, MU_BOOL, &kernel_in(c, 0)->shape, &out, err)))
		return rc;
	const bool *in = kernel_in(c, 0)->data;
	for (int64_t i = 0; i < out->shape.count; i++)
		MU_DATA(bool, out)[i] = !in[i];
	return 0;
}

#define UNARY(op, types, expr)                                                                     \
	static int run_##op(struct kernel_call *c, struct mu_err *err)                             \
	{                                                                                          \
		return unary(c, UN_##op, MU_DT_INVALID, err);                                      \
	}
#define PREDICATE(op, types, expr)                                                                 \
	static int run_##op(struct kernel_call *c, struct mu_err *err)                             \
	{                                                                                          \
		return unary(c, UN_##op, MU_BOOL, err);                                            \
	}
#define BINARY(op, types, expr)                                                                    \
	static int run_##op(struct kernel_call *c, struct mu_err *err)                             \
	{                                                                                          \
		return binary(c, BIN_##op, false, err);                                            \
	}
#define COMPARE(op, types, expr)                                                                   \
	static int run_##op(struct kernel_call *c, struct mu_err *err)                             \
	{                                                                                          \
		return binary(c, BIN_##op, true, err);                                             \
	}
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
};
KERNEL_TABLE(elementwise, rows)
