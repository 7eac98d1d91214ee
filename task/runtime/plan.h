/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the executor: the compiled plan, and what a running step is made of.
 *
 * Plan.  Nodes, edges and roots lie in flat arrays.  Each node belongs to one frame: the root, or
 * the body of a while loop.  Within its frame it has a pending word and a run of input slots, and
 * an iteration is one block with all of a frame's pending words and slots; the root has exactly
 * one.  Constants that wait for nothing are not run: each slot that one leads to holds its tensor
 * from step to step.
 *
 * Step.  A thread that works on a step has a `struct work`: a stack of ready nodes.  A step is over
 * when no thread works on it and no call is parked; both are counted in `outstanding`, so a chain
 * of nodes costs no shared counter.
 */
#ifndef MU_TASK_RUNTIME_PLAN_H
#define MU_TASK_RUNTIME_PLAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "task/runtime/kernel.h"
#include "task/runtime/runtime.h"
#include "task/runtime/thread_pool.h"

enum node_kind { NODE_PLAIN, NODE_MERGE, NODE_ENTER, NODE_EXIT, NODE_NEXT };
enum { NO_SLOT = UINT32_MAX, ROOT_FRAME = 0, MAX_FRAME_DEPTH = 64 };

/* A pending word.  Plain nodes: inputs still to come below, dead ones above.  Merge: controls to
 * come below, data inputs not yet dead in the middle, and flags: a live input has claimed the node,
 * its value is in place, a control input was dead. */
#define PENDING_DEAD     ((uint64_t)1 << 32)
#define MERGE_DATA       ((uint64_t)1 << 32)
#define MERGE_DATA_OF(w) ((unsigned)((w) >> 32) & 0x1fffffffu)
#define MERGE_CLAIMED    ((uint64_t)1 << 61)
#define MERGE_LIVE       ((uint64_t)1 << 62)
#define MERGE_DEAD_CTL   ((uint64_t)1 << 63)

struct plan_edge {
	uint32_t dst;
	uint32_t slot; /* among the slots of dst's frame; NO_SLOT: a control edge */
	int port;
};

/* What every run of a node needs: one cache line. */
struct plan_node {
	int (*run)(struct kernel_call *c, struct mu_err *err); /* NULL: nothing, or asynchronous */
	void *state;
	const struct mu_node *node;
	uint32_t n_in, n_out;
	uint32_t in_slot;        /* first input slot */
	uint32_t edges, n_edges; /* by rising port; control edges last */
	uint32_t pending;        /* index among the frame's pending words */
	uint32_t frame;          /* the node's own */
	uint8_t kind;            /* enum node_kind */
	bool async : 1, expensive : 1, sees_dead : 1, uninit_ok : 1, ref_in : 1, constant : 1;
	bool single : 1; /* one thing to wait for: the pending word is not used */
	bool fixed : 1;  /* a Const that waits for nothing: its tensor lies in its users' slots */
	bool keeps : 1;  /* has an input from such a one */
	uint64_t room;
};

/* And what few runs need; by the same index. */
struct plan_extra {
	const struct kernel *kernel;
	uint64_t initial;        /* pending word at the start of an iteration */
	uint32_t child;          /* Enter: the frame it opens */
	uint32_t call, out_slot; /* asynchronous: call record and output slots in the iteration */
};

/* The value that a slot of the root keeps. */
struct plan_bound {
	uint32_t slot;
	const struct mu_tensor *tensor; /* in the graph */
};

struct plan_frame {
	const char *name;
	uint32_t parent, depth;
	uint32_t n_nodes, n_slots, n_calls, n_enters;
	uint64_t *initial;               /* n_nodes pending words */
	size_t slots_at, calls_at, size; /* of an iteration's block */
};

struct executor {
	_Atomic unsigned refs;
	struct runtime *rt;
	struct mu_graph *graph;
	char *container;
	char *session; /* step_session; NULL: no session, and no kernel has asked for one */
	bool owns_session;
	struct mu_arena arena;
	struct plan_node *nodes;
	struct plan_extra *extra;
	struct plan_edge *edges;
	struct plan_bound *bound;
	bool *wants_ref; /* by ref_at[node] + input */
	uint32_t *ref_at;
	uint32_t *roots;
	struct plan_frame *frames;
	uint32_t n_nodes, n_prepared, n_roots, n_frames, n_bound, max_out;
	pthread_mutex_t lock;
	struct iteration *spare; /* root blocks of steps that are over */
	unsigned n_spare;
	bool has_helpers; /* the pool has several threads */
	bool all_taken;   /* no Merge, no loop: a step that succeeds leaves no value behind */
};

struct frame;
struct iteration {
	struct iteration *next;
	struct frame *frame; /* NULL: the root */
	uint64_t number;
	unsigned outstanding, children; /* not for the root; under the frame's lock */
	struct value *slots;
	struct call *calls;
	_Atomic uint64_t pending[];
};

/* A call of an asynchronous kernel; `k` is what the kernel sees. */
struct call {
	struct kernel_call k;
	struct pool_job job;
	struct iteration *it;
	uint32_t node;
	bool registered, failed;
	int64_t began;             /* of a step that is traced */
	struct call *next, **link; /* in step->waiting */
	void (*cancel)(void *arg);
	void *cancel_arg;
};

struct item {
	uint32_t node;
	bool dead;
	struct iteration *it;
};

enum { WORK_INLINE = 64, OUT_INLINE = 8 };
struct work {
	struct step *step;
	struct work *outer; /* this thread's, of another step */
	struct item *items, few[WORK_INLINE];
	unsigned n, cap, done;
	unsigned most; /* nodes that a guest may do */
	size_t seen;   /* bytes of inputs, by a guest */
	bool guest;    /* on a thread that is not the pool's: must not be kept long */
	bool host;     /* the guest that the thread's turn began with */
	/* Nobody else works on the step and no call of it is parked, nor can this change but by
	 * this thread: counts need not be atomic. */
	bool alone;
	struct kernel_call call; /* the kernel's, filled anew for each */
	struct value *out, few_out[OUT_INLINE];
};

enum step_flag { STEP_FAILED = 1, STEP_TRACED = 2 };
struct step {
	_Atomic unsigned refs;
	struct executor *executor;
	struct rendezvous *rendezvous;
	struct call_frame *frame;
	step_done done;
	void *arg;
	_Atomic unsigned outstanding;
	_Atomic unsigned char flags; /* enum step_flag; nearly always none: looked at once a node */
	struct step_trace *trace;
	struct iteration *root;
	pthread_mutex_t lock; /* guards what follows */
	struct mu_err err;
	struct call *waiting;
	struct frame *frames;
	char *own_container; /* step_own_container; NULL until somebody asks */
};

/* plan.c, plan_edges.c, plan_frames.c */
int plan_compile(struct executor *e, struct mu_err *err);
int plan_frames(struct executor *e, struct mu_err *err);
int plan_edges(struct executor *e, struct mu_err *err);
/* Whether input k of node i is there from the start. */
bool plan_is_bound(const struct executor *e, uint32_t i, uint32_t k);
struct iteration *iteration_new(const struct plan_frame *f);
struct iteration *iteration_new_root(const struct executor *e); /* with what its slots keep */
void iteration_free(const struct plan_frame *f, struct iteration *it); /* clears the slots */
static inline const struct plan_extra *plan_extra(const struct executor *e,
						  const struct plan_node *n)
{
	return &e->extra[n - e->nodes];
}

/* executor.c */
void work_push(struct work *w, uint32_t node, struct iteration *it, bool dead);
void work_deliver_all(struct work *w, struct iteration *it, const struct plan_node *n,
		      struct value *out, bool dead);
void value_clear(struct value *v);

/* frames.c: nodes that lead from one iteration to another, and the end of iterations */
void frame_propagate(struct work *w, const struct plan_node *n, struct iteration *it,
		     struct value *out, bool dead);
void frame_started(struct iteration *it); /* a node of it became ready */
void frame_ended(struct work *w, struct iteration *it);
void frames_free(struct step *s);
void frame_position(const struct iteration *it, unsigned long long *frame,
		    unsigned long long *iter);

/* frame_id.c: of the frame that is opened in this turn of the outer one; the root's is 0 */
uint64_t frame_id(uint64_t outer, uint64_t turn, const char *name);

/* step.c */
static inline bool step_has_failed(const struct step *s)
{
	return atomic_load_explicit(&s->flags, memory_order_relaxed) & STEP_FAILED;
}
void step_fail(struct step *s, const struct mu_node *n, const struct mu_err *err);
void step_release(struct step *s); /* one outstanding less; the last ends the step */
struct call *call_of(struct kernel_call *c);

#endif
