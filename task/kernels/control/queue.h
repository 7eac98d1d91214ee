/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of tuples of tensors: first in first out, shuffled, padded, or by priority. */
#ifndef MU_TASK_KERNELS_CONTROL_QUEUE_H
#define MU_TASK_KERNELS_CONTROL_QUEUE_H

#include "task/kernels/control/wait_queue.h"
#include "task/kernels/random/philox.h"

struct queue_spec {
	const char
	    *kind;  /* "FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue" */
	unsigned n; /* components of an element */
	enum mu_dtype *type;     /* n */
	bool has_shapes;         /* the attribute `shapes` is not empty */
	struct mu_pshape *shape; /* n */
	int64_t capacity;        /* negative: unlimited */
	int64_t min_after;       /* min_after_dequeue of a shuffled queue */
	bool shuffled, padded;
	bool by_priority; /* component 0 is an int64; the smallest is dequeued first */
	uint64_t seed, seed2;
};

struct queue {
	struct resource base;
	struct wait_queue waiters;
	struct queue_spec spec;
	bool closed;
	/* A ring of elements, each spec.n tensors; by priority a heap that begins at 0. */
	struct mu_tensor *ring;
	int64_t head, count, cap;
	struct philox_stream random;
};
extern const struct resource_type queue_type;

void queue_spec_init(struct queue_spec *spec, unsigned n); /* allocates the arrays */
void queue_spec_fini(struct queue_spec *spec);
struct queue *queue_new(const struct queue_spec *spec); /* copies the arrays */
/* With the lock held. */
int64_t queue_free_slots(const struct queue *q);             /* elements that still fit */
void queue_push(struct queue *q, struct mu_tensor *element); /* takes the tensors */
void queue_pop(struct queue *q, struct mu_tensor *element);  /* the queue must not be empty */
/* Undoes queue_pop.  A FIFO queue gets the element back at its front. */
void queue_return_element(struct queue *q, struct mu_tensor *element);
/* The number of elements that a dequeue may take now. */
int64_t queue_available(const struct queue *q);

/* Fails if the types or shapes of the components from `from` on differ.  what, name: "queue" or
 * "barrier" and its name, for the error message. */
int queue_check_components_equal(const struct queue_spec *have, const struct queue_spec *want,
				 unsigned from, const char *what, const char *name,
				 struct mu_err *err);
/* Starts an asynchronous DequeueMany of n elements; the outputs are the stacked components.  With
 * up_to, it is a DequeueUpTo, which returns fewer elements of a closed queue.  On failure the
 * caller finishes the call. */
int queue_take_many(struct kernel_call *c, struct queue *q, int64_t n, bool up_to,
		    struct mu_err *err);

#endif
