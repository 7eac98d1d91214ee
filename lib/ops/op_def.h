/* SPDX-License-Identifier: Apache-2.0 */
/* Op definitions: one row per op (lib/ops/ops_*.def), used by kernels, placer, client and docs.
 *
 *	OP(MatMul, "a:T b:T", "product:T",
 *	   "transpose_a:bool=false transpose_b:bool=false T:{floating,index,complex}", 0,
 *	   shape_matmul)
 *
 * An argument is `name:type`.  The type is a fixed type (`float`, `int32`, `string`, `resource`…),
 * an attribute of kind type (`T`), `N*T` (N tensors of type T, N an int attribute), `list(dtypes)`
 * (one tensor for each type in attribute dtypes), or `ref(T)` for a reference to a variable's
 * buffer.
 *
 * A shape pattern may follow the type: `[]` is a scalar, `[n,2]` a matrix of two columns,
 * `[*b,n]` a tensor of rank 1 or more, `?` any dimension.  A name has one value in all patterns of
 * the row.  A name that occurs only in outputs is an int attribute or a scalar input; if its value
 * is known, it is the dimension.  All N tensors have the same shape.  Each output has a pattern, or
 * the row has a shape rule (lib/ops/shape.h).  The rule shape_unknown is for outputs whose shape
 * TensorFlow does not infer either.
 *
 * An attribute is `name:kind{allowed,…}>=minimum=default`.  All parts after the kind are optional.
 * The kind is string, int, float, bool, type, shape, tensor, func, list(string), list(int),
 * list(type), list(shape)…, or empty for type.  int32 and list(int32) are ints that must fit into
 * 32 bits.  The allowed values are strings or types; `index`, `complex`, `floating`, `real` and
 * `number` are sets of types.  The minimum of a list applies to its length.
 */
#ifndef MU_LIB_OPS_OP_DEF_H
#define MU_LIB_OPS_OP_DEF_H

#include <string.h>

#include "lib/base/err.h"
#include "lib/graph/attr.h"
#include "lib/tensor/tensor.h"

enum mu_op_flag {
	MU_OP_STATEFUL = 1 << 0, /* never folded, merged or removed */
	MU_OP_COMMUTATIVE = 1 << 1,
	MU_OP_UNINIT_OK = 1 << 2, /* accepts an uninitialised variable */
	MU_OP_METADATA = 1 << 3,  /* reads only shapes; placed on the device of its producer */
	/* Control flow ops, including the Ref ops. */
	MU_OP_SWITCH = 1 << 4,
	MU_OP_MERGE = 1 << 5,
	MU_OP_ENTER = 1 << 6,
	MU_OP_EXIT = 1 << 7,
	MU_OP_NEXT_ITERATION = 1 << 8,
	MU_OP_LOOP_COND = 1 << 9,
	MU_OP_LOOP = MU_OP_ENTER | MU_OP_EXIT | MU_OP_NEXT_ITERATION | MU_OP_LOOP_COND,
};

enum mu_arg_kind { MU_ARG_FIXED, MU_ARG_ATTR, MU_ARG_REPEAT, MU_ARG_TYPE_LIST };

struct mu_arg_def {
	const char *name;
	enum mu_arg_kind kind;
	enum mu_dtype type; /* FIXED */
	const char
	    *type_attr; /* ATTR, TYPE_LIST, and REPEAT unless the type is fixed (then NULL) */
	const char *number_attr; /* REPEAT */
	const char *shape;       /* the text after `[`, with the `]`; NULL: any */
	bool is_ref;
};

struct mu_attr_def {
	const char *name;
	enum mu_attr_kind kind;
	bool has_default, has_minimum;
	bool is_int32;          /* an int of 64 bits in NodeDef that must fit into 32 */
	struct mu_attr value;   /* the default */
	struct mu_attr allowed; /* a list of strings or types; kind MU_ATTR_NONE: no restriction */
	int64_t minimum;        /* of the value of an int, or of the length of a list */
};

struct mu_shape_ctx;
struct mu_op_def {
	const char *name;
	unsigned n_inputs, n_outputs, n_attrs;
	const struct mu_arg_def *inputs, *outputs;
	const struct mu_attr_def *attrs;
	unsigned flags; /* enum mu_op_flag */
	/* Rule for output shapes that the row's patterns cannot express; NULL: none. */
	int (*shape)(struct mu_shape_ctx *c, struct mu_err *err);
};

static inline const struct mu_attr_def *mu_op_attr(const struct mu_op_def *op, const char *name)
{
	for (unsigned i = 0; i < op->n_attrs; i++)
		if (op->attrs[i].name && strcmp(op->attrs[i].name, name) == 0)
			return &op->attrs[i];
	return NULL;
}

const struct mu_op_def *mu_op_find(const char *name);      /* NULL: unknown; thread-safe */
const struct mu_op_def *mu_op_at(unsigned i);              /* in table order; NULL past the end */
enum mu_attr_kind mu_attr_kind_named(struct mu_span name); /* "int", "list(type)", … */
const char *mu_attr_kind_name(enum mu_attr_kind kind);
unsigned mu_op_rows(void); /* all rows, malformed ones included; for tests */

/* Computes the types of all inputs or outputs of a node, with lists expanded.  Fails if an
 * attribute is missing or has another kind.  *types is from the arena. */
struct mu_node;
struct mu_input;
int mu_op_input_types(const struct mu_node *n, struct mu_arena *a, enum mu_dtype **types,
		      unsigned *count, struct mu_err *err);
int mu_op_output_types(const struct mu_node *n, struct mu_arena *a, enum mu_dtype **types,
		       unsigned *count, struct mu_err *err);
/* Returns the type of the tensor on an edge; MU_DT_INVALID if the output does not exist. */
enum mu_dtype mu_op_edge_type(struct mu_input in, struct mu_arena *a);
/* Computes the number of tensors of one argument. */
int mu_op_arg_count(const struct mu_node *n, const struct mu_arg_def *a, unsigned *out,
		    struct mu_err *err);
/* Finds the first port of a named output. */
int mu_op_output_port(const struct mu_node *n, struct mu_span name, unsigned *out,
		      struct mu_err *err);
/* Checks that a node has the attributes of its op, of the right kind and with allowed values. */
int mu_op_check_attrs(const struct mu_node *n, struct mu_err *err);
/* Checks only the attributes that hold types or determine the number of tensors. */
int mu_op_check_type_attrs(const struct mu_node *n, struct mu_err *err);
/* Checks the attributes of a node, and the number and types of its inputs, which follow from the
 * attributes.  Kernels rely on these checks.  Uses the arena for scratch memory. */
int mu_op_check_node(const struct mu_node *n, struct mu_arena *a, struct mu_err *err);

/* Input of a shape rule: the node, its input shapes, and constant input values if known. */
struct mu_shape_ctx {
	const struct mu_node *node;
	unsigned n_in, n_out;
	const struct mu_pshape *in;
	const struct mu_tensor *const *in_const; /* NULL entries: not constant */
	struct mu_pshape *out;                   /* starts as unknown rank */
};
/* Checks the input shapes against the row's patterns, and sets the known output shapes. */
int mu_op_shapes(struct mu_shape_ctx *c, struct mu_err *err);
/* True if the row has a pattern for an input. */
bool mu_op_has_input_patterns(const struct mu_op_def *op);

#endif
