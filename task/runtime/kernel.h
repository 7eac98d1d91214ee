/* SPDX-License-Identifier: Apache-2.0 */
/* The seam between the executor and the kernels: how one op runs on one kind of device.
 *
 * A kernel file is a table row per op and the functions it names; it knows nothing of graphs, RPC
 * or threads.  `prepare` runs once, when a partition is registered: it reads attributes, checks
 * types and leaves its findings in *state.  `run` runs each step; or `start`, for what may wait
 * (receive, dequeue), which returns at once and calls kernel_finish later, exactly once, from any
 * thread.
 *
 * Inputs are borrowed for the call.  A kernel validates before it touches memory and returns errors
 * without the node's name: the executor adds it.
 */
#ifndef MU_TASK_RUNTIME_KERNEL_H
#define MU_TASK_RUNTIME_KERNEL_H

#include "lib/graph/graph.h"
#include "lib/tensor/tensor.h"

struct variable;
struct runtime;
struct step;
struct thread_pool;

/* What travels along an edge: a tensor, or a reference to a variable, or nothing but deadness. */
struct value {
	bool dead;
	bool kept;               /* the executor's: a constant that stays from step to step */
	struct variable *ref;    /* one reference to the variable held by this value */
	struct mu_tensor tensor; /* unset when ref or dead */
	uint64_t room;           /* 128 bytes: those of a scalar in the first cache line */
};

struct kernel_call {
	const struct mu_node *node;
	void *state; /* what prepare left */
	unsigned n_in, n_out;
	struct value *in;  /* dereferenced, unless the op takes a ref there */
	struct value *out; /* to be filled; empty at the start */
	struct step *step;
	struct runtime *runtime;        /* devices, resources, pool: task/runtime/runtime.h */
	unsigned long long frame, iter; /* for rendezvous keys; 0:0 outside loops */
	bool dead_input;                /* only kernels with KERNEL_SEES_DEAD see true */
};

enum kernel_flag {
	KERNEL_EXPENSIVE = 1 << 0, /* worth another thread; the rest run in place */
	KERNEL_SEES_DEAD = 1 << 1, /* runs even when an input is dead (Send, Merge) */
	KERNEL_NO_FOLD = 1 << 2,   /* result must not be computed ahead of time */
	KERNEL_MOVES = 1 << 3,     /* takes its inputs away */
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

/* How the runtime finds kernels; it is given to runtime_new. */
typedef int kernel_fn(struct kernel_call *c, struct mu_err *err);
struct gpu_kernel; /* task/runtime/gpu_kernel.h */
struct kernel_registry {
	const struct kernel *(*find)(const char *op); /* of the CPU device; NULL: there is none */
	/* The function that runs node n by the CPU's kernel k. */
	kernel_fn *(*function)(const struct kernel *k, const struct mu_node *n);
	/* Of a GPU; NULL: the CPU's kernel runs the node, in host memory. */
	const struct gpu_kernel *(*find_gpu)(const struct mu_node *n);
};

/* ---- for kernels: taking inputs, giving outputs ---- */

static inline const struct mu_tensor *kernel_in(const struct kernel_call *c, unsigned i)
{
	return &c->in[i].tensor;
}

/* Output i as new memory. */
int kernel_out(struct kernel_call *c, unsigned i, enum mu_dtype dtype, const struct mu_shape *shape,
	       struct mu_tensor **out, struct mu_err *err);
/* Output i in the memory of input `from` when that is its last use and bytes, type and count fit;
 * new memory otherwise.  Elementwise kernels may then write where they read. */
int kernel_out_reuse(struct kernel_call *c, unsigned i, unsigned from, enum mu_dtype dtype,
		     const struct mu_shape *shape, struct mu_tensor **out, struct mu_err *err);
void kernel_out_take(struct kernel_call *c, unsigned i,
		     struct mu_tensor t); /* takes t's reference */
/* The same for all outputs; when rc is a failure they are given back.  Returns rc. */
int kernel_out_take_all(struct kernel_call *c, struct mu_tensor *all, int rc);
void kernel_out_ref(struct kernel_call *c, unsigned i, struct variable *v); /* adds a reference */
void kernel_out_dead(struct kernel_call *c, unsigned i);

/* Ends an asynchronous call; err NULL means success.  c is gone afterwards. */
void kernel_finish(struct kernel_call *c, const struct mu_err *err);
/* For start(): `cancel(arg)` is called (at most once, maybe at once, from any thread) when the step
 * is cancelled while the call waits; it must see to it that kernel_finish is called.
 * kernel_on_cancel returns false when the step is over already: cancel has been called, c may be
 * gone.  kernel_uncancel returns true when cancel will not come any more, and false when it has run
 * or is running: then the call is cancel's to finish. */
bool kernel_on_cancel(struct kernel_call *c, void (*cancel)(void *arg), void *arg);
bool kernel_uncancel(struct kernel_call *c);

/* Splits [0, n) over the compute pool, at least `grain` a piece, and waits; runs in place when
 * small. */
void kernel_parallel(struct kernel_call *c, int64_t n, int64_t grain,
		     void (*body)(void *arg, int64_t from, int64_t to), void *arg);

#endif
