/* SPDX-License-Identifier: Apache-2.0 */
/* The tables from ops to gradient functions, and the helpers of gradient functions. */
#ifndef MU_LIB_GRAD_OP_GRADS_H
#define MU_LIB_GRAD_OP_GRADS_H

#include "lib/builder/builder.h"

/* Adds the gradients of xs to the graph, as mu_gradients does. gys are the gradients of ys
 * (MU_NO_OUT: none). */
typedef void (*gradients_fn)(struct mu_builder *b, const struct mu_out *ys,
			     const struct mu_out *gys, unsigned n_ys, const struct mu_out *xs,
			     unsigned n, struct mu_out *grads);
/* Implementation of gradients_fn, in gradients.c. */
void gradients_from(struct mu_builder *b, const struct mu_out *ys, const struct mu_out *gys,
		    unsigned n_ys, const struct mu_out *xs, unsigned n, struct mu_out *grads);

/* One node to differentiate. gy[i] is the gradient of output i (MU_NO_OUT: none). The function sets
 * gx[i] for inputs that have a gradient; they start as MU_NO_OUT. */
struct grad_call {
	struct mu_builder *b;
	struct mu_node *node;
	struct mu_out *gy;
	unsigned n_gy;
	struct mu_out *gx;
	gradients_fn gradients; /* for functions that differentiate other nodes too */
};
typedef void (*grad_fn)(struct grad_call *c);

/* Condition for the call of a gradient function. */
enum grad_needs {
	GRAD_FIRST, /* output 0 has a gradient */
	GRAD_ANY,   /* any output has a gradient; the function checks which */
	GRAD_ALL,   /* any output has a gradient; missing gradients are zeros */
};
struct op_grad {
	const char *op;
	grad_fn fn; /* NULL: the op has no gradient by definition */
	enum grad_needs needs;
};
const struct op_grad *op_grad_find(const char *op); /* NULL: the gradient is not implemented */
/* Returns row i of the concatenated tables; NULL after the last row. */
const struct op_grad *op_grad_at(unsigned i);

/* Each table ends with a row of NULL. */
extern const struct op_grad grads_of_math[], grads_of_grads[], grads_of_reductions[],
    grads_of_matmul[], grads_of_arrays[], grads_of_slices[], grads_of_spaces[], grads_of_nn[],
    grads_of_indices[], grads_of_segments[], grads_of_diagonals[], grads_of_tensor_arrays[],
    grads_of_sparse[], grads_of_functions[], grads_of_lists[], grads_of_complex[],
    grads_of_fourier[], grads_of_linalg[], grads_of_special[], grads_composed[];
/* For a call whose op is the name of a function in the graph's library. */
extern const struct op_grad grad_of_named_call;

static inline struct mu_out grad_in(const struct grad_call *c, unsigned i)
{
	return (struct mu_out){c->node->inputs[i].node, c->node->inputs[i].port};
}
static inline struct mu_out grad_out(const struct grad_call *c, int port)
{
	return (struct mu_out){c->node, port};
}

/* ---- help.c ---- */
/* True for floating-point and complex types, and for variants, because tensor lists have gradients.
 */
bool grad_is_trainable(enum mu_dtype t);
static inline struct mu_out grad_div_no_nan(struct mu_builder *b, struct mu_out x, struct mu_out y)
{
	return mu_op(b, "DivNoNan", MU_IN(x, y));
}
/* A constant of the type of `like`. */
struct mu_out grad_number(struct mu_builder *b, struct mu_out like, double v);
static inline struct mu_out grad_add_number(struct mu_builder *b, struct mu_out x, double v)
{
	return mu_add(b, x, grad_number(b, x, v));
}
static inline struct mu_out grad_unary(struct mu_builder *b, const char *op, struct mu_out x)
{
	return mu_op(b, op, MU_IN(x));
}
struct mu_out grad_scale(struct mu_builder *b, struct mu_out x, double factor);
struct mu_out grad_shape(struct mu_builder *b, struct mu_out x); /* int32 vector */
struct mu_out grad_size(struct mu_builder *b, struct mu_out x);  /* int32 scalar */
struct mu_out grad_zeros(struct mu_builder *b, struct mu_out x);
struct mu_out grad_flat(struct mu_builder *b, struct mu_out x); /* as a vector */
struct mu_out grad_int(struct mu_builder *b, int64_t v);
struct mu_out grad_single(struct mu_builder *b, int32_t v); /* a vector of one element */
/* Returns elements [from, to) of a vector; `to` counts from the end if it is not positive. */
struct mu_out grad_slice(struct mu_builder *b, struct mu_out v, int from, int to);
struct mu_out grad_like(struct mu_builder *b, struct mu_out x,
			struct mu_out like); /* x in the shape of like */
/* grad_where: cond ? x : 0. grad_indicator: cond as 0 and 1 of like's type. */
struct mu_out grad_where(struct mu_builder *b, struct mu_out cond, struct mu_out x);
struct mu_out grad_indicator(struct mu_builder *b, struct mu_out cond, struct mu_out like);
/* Sums gradients to the shapes of inputs i and j, which were broadcast together. gi, gj: the
 * gradients in the broadcast shape. */
void grad_unbroadcast(struct grad_call *c, unsigned i, struct mu_out gi, unsigned j,
		      struct mu_out gj);
/* Sums g to the shape of x, which was broadcast to the shape of g. */
struct mu_out grad_sum_to(struct mu_builder *b, struct mu_out g, struct mu_out x);
/* Returns the product of matrices or batches of matrices; tx, ty: uses the adjoint of x, of y. */
struct mu_out grad_matrix_product(struct mu_builder *b, struct mu_out x, bool tx, struct mu_out y,
				  bool ty);
/* Adds an op with these inputs. Copies the node's attributes that the op also has. */
struct mu_out grad_op(struct grad_call *c, const char *op, const struct mu_out *in, unsigned n);
#define GRAD_OP(c, op, ...)                                                                        \
	grad_op((c), (op), (const struct mu_out[]){__VA_ARGS__},                                   \
		sizeof((const struct mu_out[]){__VA_ARGS__}) / sizeof(struct mu_out))
bool grad_attr_bool(const struct grad_call *c, const char *name);
/* ---- complex.c ---- */
struct mu_out grad_conj(struct mu_builder *b, struct mu_out x); /* x if it is real */
/* grad_part: "Real" or "Imag" of z. grad_complex: x + iy. */
struct mu_out grad_part(struct mu_builder *b, const char *op, struct mu_out z);
struct mu_out grad_complex(struct mu_builder *b, struct mu_out x, struct mu_out y);
/* True if the gradient function is correct for these gradients: no gradient is complex, or the
 * function supports complex numbers. */
bool grad_supports_complex(const struct grad_call *c);
/* Sets the error of the builder: UNIMPLEMENTED, "op … (node '…') has no gradient <reason>". */
void grad_unsupported(struct grad_call *c, const char *reason);

/* Define a gradient function by expressions. GRAD_UNARY: of b, x (input 0), y (output 0) and g
 * (gradient of output 0). GRAD_BINARY: also of z (input 1). */
#define GRAD_UNARY(fn, expr)                                                                       \
	static void fn(struct grad_call *c)                                                        \
	{                                                                                          \
		struct mu_builder *b __attribute__((unused)) = c->b;                               \
		struct mu_out x __attribute__((unused)) = grad_in(c, 0);                           \
		struct mu_out y __attribute__((unused)) = grad_out(c, 0);                          \
		struct mu_out g __attribute__((unused)) = c->gy[0];                                \
		c->gx[0] = expr;                                                                   \
	}
#define GRAD_BINARY(fn, expr_x, expr_z)                                                            \
	static void fn(struct grad_call *c)                                                        \
	{                                                                                          \
		struct mu_builder *b __attribute__((unused)) = c->b;                               \
		struct mu_out x __attribute__((unused)) = grad_in(c, 0);                           \
		struct mu_out z __attribute__((unused)) = grad_in(c, 1);                           \
		struct mu_out y __attribute__((unused)) = grad_out(c, 0);                          \
		struct mu_out g __attribute__((unused)) = c->gy[0];                                \
		struct mu_out gx = expr_x;                                                         \
		struct mu_out gz = expr_z;                                                         \
		grad_unbroadcast(c, 0, gx, 1, gz);                                                 \
	}

#endif
