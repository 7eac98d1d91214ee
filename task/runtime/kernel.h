/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between executor and kernels.
 *
 * A kernel file has a table row per op and its functions; kernels do not depend on graphs, RPC or
 * threads.  `prepare` runs once, when a partition is registered: it reads attributes, checks types
 * and stores its results in *state.  `run` runs in each step.  Kernels that may wait (receive,
 * dequeue) have `start` instead, which returns at once; kernel_finish is called later, exactly
 * once, from any thread.
 *
 * Inputs are borrowed for the call.  A kernel validates them before it accesses memory.  Its errors
 * do not name the node: the executor adds it.
 */
#ifndef MU_TASK_RUNTIME_KERNEL_H
#define MU_TASK_RUNTIME_KERNEL_H

#include "lib/graph/graph.h"
#include "lib/tensor/tensor.h"

struct variable;
struct runtime;
struct step;

/* The value of an edge: a tensor, a reference to a variable, or dead. */
struct value {
	bool dead;
	bool is_constant;     /* for the executor: a constant that is not cleared after the step */
	struct variable *ref; /* one reference to the variable */
	struct mu_tensor tensor; /* unset when ref or dead */
	uint64_t padding; /* pads the struct to whole cache lines; a scalar uses only the first */
};

struct kernel_call {
	const struct mu_node *node;
	void *state; /* set by prepare */
	unsigned n_in, n_out;
	struct value *in;  /* dereferenced, unless the op's input is a reference */
	struct value *out; /* filled by the kernel; empty before */
	struct step *step;
	struct runtime *runtime;        /* devices, resources, pool: task/runtime/runtime.h */
	unsigned long long frame, iter; /* for rendezvous keys; 0:0 outside loops */
	bool dead_input;                /* always false without KERNEL_SEES_DEAD */
};

enum kernel_flag {
	KERNEL_EXPENSIVE = 1 << 0, /* may run on another thread; other kernels run in place */
	KERNEL_SLOW = 1 << 1,      /* expensive whatever its inputs: never runs on an I/O thread */
	KERNEL_SEES_DEAD = 1 << 2, /* runs even if an input is dead (Send, Merge) */
	KERNEL_NO_FOLD = 1 << 3,   /* result must not be computed ahead of time */
	KERNEL_MOVES = 1 << 4,     /* takes the references of its inputs */
};

struct kernel {
	const char *op;
	unsigned flags;
	int (*run)(struct kernel_call *c, struct mu_err *err);
	void (*start)(struct kernel_call *c); /* instead of run: asynchronous */
	int (*prepare)(const struct mu_node *n, struct runtime *rt, void **state,
		       struct mu_err *err);
	void (*release)(void *state); /* undoes prepare; NULL: free() when state is not NULL */
};

/* The functions by which the runtime finds kernels; an argument of runtime_new. */
typedef int kernel_fn(struct kernel_call *c, struct mu_err *err);
struct device_kernel; /* task/runtime/device_kernel.h */
struct kernel_registry {
	const struct kernel *(*find)(const char *op); /* the CPU kernel; NULL: none */
	/* The function of CPU kernel k for node n. */
	kernel_fn *(*function)(const struct kernel *k, const struct mu_node *n);
	/* The kernel of the device of n; NULL: the CPU kernel runs the node in host memory. */
	const struct device_kernel *(*find_device)(const struct mu_node *n);
};

/* Checks the inputs' shapes against the patterns of the op's row.  The executor calls it before the
 * kernel, for nodes whose row has such patterns. */
int kernel_check_shapes(const struct mu_node *n, const struct value *in, unsigned n_in,
			struct mu_err *err);

/* ---- inputs and outputs of kernels ---- */

static inline const struct mu_tensor *kernel_in(const struct kernel_call *c, unsigned i)
{
	return &c->in[i].tensor;
}

/* Allocates output i. */
int kernel_out(struct kernel_call *c, unsigned i, enum mu_dtype dtype, const struct mu_shape *shape,
	       struct mu_tensor **out, struct mu_err *err);
/* The same for a shape of n dimensions, a vector of n elements and a scalar. */
int kernel_out_dims(struct kernel_call *c, unsigned i, enum mu_dtype dtype, int n,
		    const int64_t *dims, struct mu_tensor **out, struct mu_err *err);
int kernel_out_vec(struct kernel_call *c, unsigned i, enum mu_dtype dtype, int64_t n,
		   struct mu_tensor **out, struct mu_err *err);
int kernel_out_scalar(struct kernel_call *c, unsigned i, enum mu_dtype dtype,
		      struct mu_tensor **out, struct mu_err *err);
/* Makes output i a scalar with a copy of *value. */
int kernel_out_value(struct kernel_call *c, unsigned i, enum mu_dtype dtype, const void *value,
		     struct mu_err *err);
/* The same with a copy of the text. */
int kernel_out_string(struct kernel_call *c, unsigned i, struct mu_span text, struct mu_err *err);
/* Makes output i in the memory of input `from` if this is the input's last use and type and size
 * match, else in new memory.  Elementwise kernels may then work in place. */
int kernel_out_reuse(struct kernel_call *c, unsigned i, unsigned from, enum mu_dtype dtype,
		     const struct mu_shape *shape, struct mu_tensor **out, struct mu_err *err);
void kernel_out_take(struct kernel_call *c, unsigned i,
		     struct mu_tensor t); /* takes t's reference */
/* The same for all outputs; releases them if rc is an error.  Returns rc. */
int kernel_out_take_all(struct kernel_call *c, struct mu_tensor *all, int rc);
void kernel_out_ref(struct kernel_call *c, unsigned i, struct variable *v); /* adds a reference */
void kernel_out_dead(struct kernel_call *c, unsigned i);

/* Finishes an asynchronous call; err NULL: success.  c is invalid afterwards. */
void kernel_finish(struct kernel_call *c, const struct mu_err *err);
/* For start(): registers cancel(arg), which is called if the step is cancelled while the call
 * waits. It is called at most once, perhaps at once, from any thread, and must cause kernel_finish.
 * kernel_on_cancel returns false if the step has been cancelled already: cancel was called, and c
 * may be invalid.  kernel_uncancel returns true if cancel will not be called any more.  It returns
 * false if cancel has run or is running; arg must stay valid until cancel returns.  The kernel's
 * own lock decides which of the two finishes the call: exactly one may. */
bool kernel_on_cancel(struct kernel_call *c, void (*cancel)(void *arg), void *arg);
bool kernel_uncancel(struct kernel_call *c);

/* For long-running kernels: returns CANCELLED if the step has failed or was cancelled. */
int kernel_check_cancelled(const struct kernel_call *c, struct mu_err *err);

/* Splits [0, n) over the compute pool, in pieces of at least `grain`, and waits; runs small ranges
 * in place. */
void kernel_parallel(struct kernel_call *c, int64_t n, int64_t grain,
		     void (*body)(void *arg, int64_t from, int64_t to), void *arg);

#endif
