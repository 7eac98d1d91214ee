/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the executor: the compiled graph and the state of a running step.
 *
 * Compiled graph.  Nodes, edges and roots are flat arrays.  Each node belongs to one frame: the
 * root or the body of a while loop.  In its frame a node has a pending word and a range of input
 * slots. An iteration is one block with all pending words and slots of a frame; the root has
 * exactly one. Constants without control inputs are not run: their tensors stay in the slots of
 * their users.
 *
 * Step.  A thread that works on a step has a `struct work` with a queue of ready nodes.  A step has
 * ended when no thread works on it and no call waits.  `outstanding` counts both, so a chain of
 * nodes does not update a shared counter.
 */
#ifndef MU_TASK_RUNTIME_EXEC_GRAPH_H
#define MU_TASK_RUNTIME_EXEC_GRAPH_H

#include <pthread.h>
#include <stdatomic.h>

#include "task/runtime/kernel.h"
#include "task/runtime/runtime.h"
#include "task/runtime/thread_pool.h"

enum node_kind { NODE_PLAIN, NODE_MERGE, NODE_ENTER, NODE_EXIT, NODE_NEXT };
enum { NO_SLOT = UINT32_MAX, ROOT_FRAME = 0, MAX_FRAME_DEPTH = 64 };

/* A pending word.  Plain nodes: missing inputs in the low half, dead inputs in the high half.
 * Merge: missing control inputs in the low half, then data inputs that are not dead, then two
 * flags: a live input has claimed the node; a live input has arrived. */
#define PENDING_DEAD     ((uint64_t)1 << 32)
#define MERGE_DATA       ((uint64_t)1 << 32)
#define MERGE_DATA_OF(w) ((unsigned)((w) >> 32) & 0x1fffffffu)
#define MERGE_CLAIMED    ((uint64_t)1 << 61)
#define MERGE_LIVE       ((uint64_t)1 << 62)

struct exec_edge {
	uint32_t dst;
	uint32_t slot; /* in the iterations of dst's frame; NO_SLOT: a control edge */
	int port;
};

/* Data for every execution of a node: one cache line. */
struct exec_node {
	int (*run)(struct kernel_call *c,
		   struct mu_err *err); /* NULL: no kernel, or an asynchronous one */
	void *state;
	const struct mu_node *node;
	uint32_t n_in, n_out;
	uint32_t in_slot;        /* first input slot */
	uint32_t edges, n_edges; /* ordered by port; control edges last */
	uint32_t pending;        /* index of the pending word in an iteration */
	uint32_t frame;          /* index of the node's frame */
	uint8_t kind;            /* enum node_kind */
	bool async : 1, expensive : 1, slow : 1, sees_dead : 1, uninit_ok : 1, ref_in : 1,
	    constant : 1;
	bool checks_shapes : 1; /* the op's row has patterns for inputs */
	bool single_input : 1; /* one pending input: the pending word is not used.  Steps of 100,000
				  independent products are 1.4 x as fast. */
	bool is_bound : 1; /* a Const without control inputs: its tensor is in its users' slots */
	bool has_bound_input : 1; /* has an input from such a constant */
	int8_t shape_input;       /* the input with the shape of the output, as of Fill; -1: none */
	const uint8_t *out_types; /* enum mu_dtype by output; references as their base types */
};

/* Rarely used data of the node with the same index. */
struct exec_node_extra {
	const struct kernel *kernel;
	uint64_t initial;                  /* pending word at the start of an iteration */
	uint32_t child;                    /* Enter: the frame it opens */
	const struct exec_node *next_exit; /* Exit: the next Exit of the frame */
	uint32_t call, out_slot; /* asynchronous: call record and output slots in the iteration */
};

/* A constant bound to a slot of the root. */
struct bound_constant {
	uint32_t slot;
	const struct mu_tensor *tensor; /* in the graph */
};

struct exec_frame {
	const char *name;
	uint32_t parent, depth;
	uint32_t n_nodes, n_slots, n_calls, n_enters;
	const struct exec_node *exits;
	int64_t max_active;              /* iterations: the Enter's parallel_iterations */
	uint64_t *initial;               /* n_nodes pending words */
	size_t slots_at, calls_at, size; /* offsets and size of an iteration's block */
};

struct executor {
	_Atomic unsigned refs;
	struct runtime *rt;
	struct mu_graph *graph;
	char *container;
	char *session; /* see step_session; NULL: no session, and not created yet */
	bool owns_session;
	struct mu_arena arena;
	struct exec_node *nodes;
	struct exec_node_extra *extra;
	struct exec_edge *edges;
	struct bound_constant *bound;
	bool *wants_ref; /* index: ref_at[node] + input */
	uint32_t *ref_at;
	uint32_t *roots;
	struct exec_frame *frames;
	uint32_t n_nodes, n_prepared, n_roots, n_frames, n_bound, max_out;
	pthread_mutex_t lock;
	struct iteration *spare; /* root blocks of ended steps, for reuse */
	unsigned n_spare;
	bool has_helpers; /* the pool has several threads */
};

struct iteration {
	struct iteration *next;
	struct frame *frame; /* NULL: the root */
	uint64_t number;
	unsigned outstanding, children; /* not for the root; guarded by the frame's lock */
	struct value *slots;
	struct call *calls;
	_Atomic uint64_t pending[];
};

/* The value of a constant Enter, for iterations that start later, or of a NextIteration that waits
 * until one starts. */
struct stored_value {
	struct stored_value *next;
	const struct exec_node *from;
	struct value value;
};

struct frame {
	struct frame *next; /* in the step's list */
	struct step *step;
	const struct exec_frame *info;
	uint32_t index;
	struct iteration *parent;
	uint64_t id;
	pthread_mutex_t lock;
	struct iteration *iterations; /* oldest first */
	uint64_t n_started;
	int64_t n_active;
	uint32_t enters_left;
	struct stored_value *constants;
	struct stored_value *waiting; /* for the next iteration, which may not start yet */
	const struct exec_node **live_exits;
	unsigned n_live, cap_live; /* number and capacity of live_exits */
};

/* A call of an asynchronous kernel, which gets `k`. */
struct call {
	struct kernel_call k;
	struct pool_job job;
	struct iteration *it;
	uint32_t node;
	bool registered, failed;
	int64_t start_ns;          /* in a traced step */
	struct call *next, **link; /* in step->waiting */
	void (*cancel)(void *arg);
	void *cancel_arg;
};

struct item {
	uint32_t node;
	bool dead;
	struct iteration *it;
};

enum { WORK_EMBEDDED = 64, OUT_EMBEDDED = 8 };
struct work {
	struct step *step;
	struct work *outer; /* this thread's work on another step, interrupted by this one */
	struct item *items, embedded_items[WORK_EMBEDDED];
	unsigned first, n, cap; /* the queue is items[first] to items[first + n - 1] */
	struct pool_job *finished, **last_finished; /* calls whose successors wait for `items` */
	unsigned n_run;                             /* nodes that have run */
	unsigned max_nodes;                         /* inline execution: nodes that may run */
	size_t inline_bytes;                        /* inline execution: bytes of inputs so far */
	bool is_inline;           /* inline execution on an I/O thread, which must return soon */
	bool is_outermost_inline; /* the first work of the inline execution */
	struct kernel_call call;  /* reused for each kernel */
	struct value *out, embedded_out[OUT_EMBEDDED];
};

enum step_flag { STEP_FAILED = 1, STEP_TRACED = 2 };
struct step {
	_Atomic unsigned refs;
	struct executor *executor;
	struct rendezvous *rendezvous;
	struct call_frame *call_frame;
	step_done done;
	void *arg;
	_Atomic unsigned outstanding;
	_Atomic unsigned char flags; /* enum step_flag; checked once per node */
	struct step_trace *trace;
	struct iteration *root;
	pthread_mutex_t lock; /* guards the members below */
	struct mu_err err;
	struct call *waiting;
	struct frame *frames;
	char *own_container; /* see step_own_container; NULL: not created yet */
};

/* exec_graph.c, exec_edges.c, exec_frames.c */
int exec_graph_compile(struct executor *e, struct mu_err *err);
int exec_graph_find_frames(struct executor *e, struct mu_err *err);
int exec_graph_make_edges(struct executor *e, struct mu_err *err);
/* True if input k of node i is a bound constant. */
bool exec_input_is_bound(const struct executor *e, uint32_t i, uint32_t k);
static inline const struct exec_node_extra *exec_node_extra(const struct executor *e,
							    const struct exec_node *n)
{
	return &e->extra[n - e->nodes];
}

/* iteration.c */
enum { CACHE_LINE = 64 }; /* bytes */
void value_clear(struct value *v);
struct iteration *iteration_new(const struct exec_frame *f);
void iteration_free(const struct exec_frame *f, struct iteration *it); /* clears the slots */
/* A root block with the bound constants.  It comes from the cache if the cache has one. */
struct iteration *iteration_take_root(struct executor *e);
/* Caches the root block of an ended step, or frees it. */
void iteration_cache_root(struct executor *e, struct iteration *it);

/* deliver.c */
void work_push(struct work *w, uint32_t node, struct iteration *it, bool dead);
void work_reserve(struct work *w, unsigned n); /* room for n more items */
void work_deliver_all(struct work *w, struct iteration *it, const struct exec_node *n,
		      struct value *out, bool dead);

/* frames.c: Enter, Exit and NextIteration, and the end of iterations */
int frame_propagate(struct work *w, const struct exec_node *n, struct iteration *it,
		    struct value *out, bool dead, struct mu_err *err);
void frame_decrement_outstanding(struct work *w, struct iteration *it);
void frames_free(struct step *s);
void frame_position(const struct iteration *it, unsigned long long *frame,
		    unsigned long long *iter);

/* frame_id.c: the id of a frame opened in iteration `iteration_number` of the outer frame; the
 * root's is 0 */
uint64_t frame_id(uint64_t outer, uint64_t iteration_number, const char *name);

/* step.c */
bool step_has_failed(const struct step *s);
void step_fail(struct step *s, const struct mu_node *n, const struct mu_err *err);
void step_release(struct step *s); /* decrements `outstanding`; the last one ends the step */
static inline struct call *call_of(struct kernel_call *k)
{
	return MU_CONTAINER(k, struct call, k);
}

#endif
