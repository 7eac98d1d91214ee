/* SPDX-License-Identifier: Apache-2.0 */
/* Graph construction: each function adds a node and returns a handle to its output.
 *
 *	struct mu_builder *b = mu_builder_new();
 *	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(-1, 64));
 *	struct mu_out y = mu_matmul(b, x, mu_read(w));
 *	if (mu_builder_check(b, &err)) …
 *
 * Errors are sticky. After the first error every call only returns MU_NO_OUT, and
 * mu_builder_check returns that error. So a model is written like a formula and checked once at the
 * end. A builder is not thread-safe. A session may run the graph while nodes are added between its
 * steps.
 */
#ifndef MUSTER_GRAPH_H
#define MUSTER_GRAPH_H

#include "lib/graph/graph.h"

struct mu_builder;

/* Output `port` of a node; port MU_CONTROL means a control dependency on the node. */
struct mu_out {
	struct mu_node *node; /* NULL: no output (after an error) */
	int port;
};
#define MU_NO_OUT ((struct mu_out){NULL, 0})

struct mu_builder *mu_builder_new(void);
void mu_builder_free(struct mu_builder *b);
MU_AUTO_DEFINE(mu_builder_free, struct mu_builder)
struct mu_graph *mu_builder_graph(struct mu_builder *b);
int mu_builder_check(const struct mu_builder *b, struct mu_err *err);
/* Sets the builder's error, for functions built on top of these. Later errors are ignored. */
void mu_builder_fail(struct mu_builder *b, enum mu_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Return the static type (a reference type for a variable) and static shape of an output. */
enum mu_dtype mu_out_dtype(const struct mu_builder *b, struct mu_out o);
const struct mu_pshape *mu_out_shape(const struct mu_builder *b, struct mu_out o);
/* Returns "name:port", in the builder's memory. */
const char *mu_out_name(struct mu_builder *b, struct mu_out o);

/* Nested scopes. A device scope may set only some fields ("/job:ps"); the innermost scope that sets
 * a field wins. */
void mu_push_device(struct mu_builder *b, const char *device);
void mu_pop_device(struct mu_builder *b);
void mu_push_name(struct mu_builder *b, const char *name);
void mu_pop_name(struct mu_builder *b);
void mu_push_control(struct mu_builder *b, const struct mu_out *deps, unsigned n);
void mu_pop_control(struct mu_builder *b);
/* Between-graph replication: places variables on /job:ps tasks, round robin, and all other ops on
 * worker_device. A device scope overrides these devices. ps_tasks 0: no replication. */
void mu_replica_device_setter(struct mu_builder *b, unsigned ps_tasks, const char *worker_device);
/* As mu_replica_device_setter, but places each variable on the first task with the fewest bytes so
 * far, for models whose variables differ much in size. */
void mu_replica_device_setter_by_bytes(struct mu_builder *b, unsigned ps_tasks,
				       const char *worker_device);

/* ---- any op ---- */
struct mu_op_args {
	const char *op;
	const char *name; /* NULL: the name of the op */
	const struct mu_out *in;
	unsigned n_in;
	const struct mu_node_attr *attrs;
	unsigned n_attrs;
};
/* Adds a node. Attributes that can be derived from the inputs (T, N, …) may be omitted. */
struct mu_out mu_op_add(struct mu_builder *b, const struct mu_op_args *args);
#define mu_op(b, op_name, ...) mu_op_add((b), &(struct mu_op_args){.op = (op_name), __VA_ARGS__})
#define MU_IN(...)                                                                                 \
	.in = (const struct mu_out[]){__VA_ARGS__},                                                \
	.n_in = sizeof((const struct mu_out[]){__VA_ARGS__}) / sizeof(struct mu_out)
#define MU_ATTRS(...)                                                                              \
	.attrs = (const struct mu_node_attr[]){__VA_ARGS__},                                       \
	.n_attrs =                                                                                 \
	    sizeof((const struct mu_node_attr[]){__VA_ARGS__}) / sizeof(struct mu_node_attr)
#define MU_A_INT(k, v)    ((struct mu_node_attr){(k), {.kind = MU_ATTR_INT, .i = (v)}})
#define MU_A_FLOAT(k, v)  ((struct mu_node_attr){(k), {.kind = MU_ATTR_FLOAT, .f = (v)}})
#define MU_A_BOOL(k, v)   ((struct mu_node_attr){(k), {.kind = MU_ATTR_BOOL, .b = (v)}})
#define MU_A_TYPE(k, v)   ((struct mu_node_attr){(k), {.kind = MU_ATTR_TYPE, .type = (v)}})
#define MU_A_STR(k, v)    ((struct mu_node_attr){(k), {.kind = MU_ATTR_STRING, .s = mu_span_of(v)}})
#define MU_A_SHAPE(k, p)  ((struct mu_node_attr){(k), {.kind = MU_ATTR_SHAPE, .shape = (p)}})
#define MU_A_TENSOR(k, p) ((struct mu_node_attr){(k), {.kind = MU_ATTR_TENSOR, .tensor = (p)}})
#define MU_A_TYPES(k, p, count)                                                                    \
	((struct mu_node_attr){(k),                                                                \
			       {.kind = MU_ATTR_LIST + MU_ATTR_TYPE, .n = (count), .types = (p)}})
#define MU_SHAPE(...)                                                                              \
	((struct mu_pshape){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})
#define MU_SCALAR ((struct mu_pshape){0, {0}})

/* Returns output `port` of the node of o. */
static inline struct mu_out mu_port(struct mu_out o, int port)
{
	return (struct mu_out){o.node, o.node ? port : 0};
}

/* ---- constants, feeds, grouping ---- */
struct mu_out mu_const(struct mu_builder *b, const char *name, const struct mu_tensor *value);
struct mu_out mu_const_float(struct mu_builder *b, float v);
struct mu_out mu_const_double(struct mu_builder *b, double v);
struct mu_out mu_const_int(struct mu_builder *b, enum mu_dtype dtype, int64_t v); /* int32, int64 */
struct mu_out mu_const_ints(struct mu_builder *b, const int32_t *v, unsigned n);  /* vector */
struct mu_out mu_const_str(struct mu_builder *b, const char *s);
struct mu_out mu_const_strs(struct mu_builder *b, const char *const *s, unsigned n);
struct mu_out mu_placeholder(struct mu_builder *b, const char *name, enum mu_dtype dtype,
			     struct mu_pshape shape);
struct mu_out mu_no_op(struct mu_builder *b, const char *name);
struct mu_out mu_group(struct mu_builder *b, const char *name, const struct mu_out *deps,
		       unsigned n); /* a NoOp that runs after these; one edge per device */

/* ---- mathematics ---- */
struct mu_out mu_identity(struct mu_builder *b, struct mu_out x);
struct mu_out mu_add(struct mu_builder *b, struct mu_out x, struct mu_out y);
struct mu_out mu_sub(struct mu_builder *b, struct mu_out x, struct mu_out y);
struct mu_out mu_mul(struct mu_builder *b, struct mu_out x, struct mu_out y);
struct mu_out mu_div(struct mu_builder *b, struct mu_out x, struct mu_out y);
struct mu_out mu_neg(struct mu_builder *b, struct mu_out x);
struct mu_out mu_square(struct mu_builder *b, struct mu_out x);
struct mu_out mu_exp(struct mu_builder *b, struct mu_out x);
struct mu_out mu_ln(struct mu_builder *b, struct mu_out x);
struct mu_out mu_relu(struct mu_builder *b, struct mu_out x);
struct mu_out mu_tanh(struct mu_builder *b, struct mu_out x);
struct mu_out mu_sigmoid(struct mu_builder *b, struct mu_out x);
struct mu_out mu_softmax(struct mu_builder *b, struct mu_out logits);
struct mu_out mu_matmul(struct mu_builder *b, struct mu_out x, struct mu_out y);
struct mu_out mu_matmul_t(struct mu_builder *b, struct mu_out x, bool tx, struct mu_out y, bool ty);
struct mu_out mu_bias_add(struct mu_builder *b, struct mu_out x, struct mu_out bias);
struct mu_out mu_reshape(struct mu_builder *b, struct mu_out x, struct mu_out shape);
struct mu_out mu_cast(struct mu_builder *b, struct mu_out x, enum mu_dtype to);
struct mu_out mu_argmax(struct mu_builder *b, struct mu_out x, int dim); /* int64 */
struct mu_out mu_equal(struct mu_builder *b, struct mu_out x, struct mu_out y);
/* Reduces the given axes, or all if n is 0. */
struct mu_out mu_sum(struct mu_builder *b, struct mu_out x, const int32_t *axes, unsigned n);
struct mu_out mu_mean(struct mu_builder *b, struct mu_out x, const int32_t *axes, unsigned n);
/* Return one loss for each row. Labels are rows of probabilities, or class numbers in the sparse
 * form. */
struct mu_out mu_softmax_xent(struct mu_builder *b, struct mu_out logits, struct mu_out labels);
struct mu_out mu_sparse_softmax_xent(struct mu_builder *b, struct mu_out logits,
				     struct mu_out labels);

/* ---- variables ---- */
struct mu_var {
	const char *name;
	struct mu_out ref;  /* the variable (reference) */
	struct mu_out read; /* its value */
	struct mu_out init; /* assigns the initial value */
	enum mu_dtype dtype;
	struct mu_pshape shape;
	bool trainable;
};
struct mu_init {
	enum { MU_INIT_VALUE, MU_INIT_NORMAL, MU_INIT_UNIFORM, MU_INIT_TENSOR } kind;
	double value; /* constant, standard deviation or bound, according to kind */
	int64_t seed; /* 0: different each time */
	const struct mu_tensor *tensor; /* with the variable's type and shape; copied */
};
#define MU_ZEROS ((struct mu_init){.kind = MU_INIT_VALUE})
/* Creates a variable, which lives as long as the builder. Returns NULL after an error. */
struct mu_var *mu_variable(struct mu_builder *b, const char *name, enum mu_dtype dtype,
			   struct mu_pshape shape, struct mu_init init, bool trainable);
/* Variables in the order of their creation. */
unsigned mu_var_count(const struct mu_builder *b);
struct mu_var *mu_var_at(const struct mu_builder *b, unsigned i);
static inline struct mu_out mu_read(const struct mu_var *v)
{
	return v ? v->read : MU_NO_OUT;
}
struct mu_out mu_assign(struct mu_builder *b, struct mu_var *v, struct mu_out value);
/* Returns the "global_step" variable (int64, not trainable), which the first call creates. */
struct mu_var *mu_global_step(struct mu_builder *b);
/* Returns a NoOp that runs after the initialisation of all variables created so far. */
struct mu_out mu_init_all(struct mu_builder *b);

#endif
