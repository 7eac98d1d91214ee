/* SPDX-License-Identifier: Apache-2.0 */
/* Iterators: resources that draw elements of a dataset.
 *
 * iterator.c has the resource and its thread, iterator_state.c its state, iterator_ops.c the ops.
 */
#ifndef MU_TASK_KERNELS_DATA_ITERATOR_H
#define MU_TASK_KERNELS_DATA_ITERATOR_H

#include "task/kernels/control/wait_queue.h"
#include "task/kernels/data/dataset.h"

#define ITERATOR_STATE_KIND "muster.Iterator" /* of the encoded state */

/* A request to save or restore the state. */
struct transfer {
	struct transfer *next;
	_Atomic int refs;
	struct mu_object *state; /* to restore; else the saved state, or NULL */
	bool restores, queued, done;
	struct mu_err err;
};

struct ready {
	struct ready *next;
	struct mu_err err; /* instead of an element */
	unsigned n;
	struct mu_tensor t[];
};

struct iterator {
	struct resource base;
	struct wait_queue waiters;
	pthread_cond_t work; /* with the queue's lock */
	pthread_t thread;
	struct caller caller; /* used by the thread; has a lock of its own */
	bool started, stop;
	bool orphan; /* the thread frees the iterator when it ends */
	struct function *factory;
	struct dataset *dataset; /* NULL: not initialised */
	uint64_t round;          /* counts the datasets it was given */
	bool asked, ended;
	struct ready *head, **tail;
	int64_t n_ready, ahead;
	struct transfer *transfers; /* that wait for the thread */
};

extern const struct resource_type iterator_type;
/* arg: the dataset factory of a one-shot iterator, which is taken, or NULL. */
struct resource *iterator_create(void *arg, struct mu_err *err);
int iterator_start(struct iterator *it, struct mu_err *err); /* starts the thread, once */
/* Starts a new round with d, which is taken.  Called with the queue's lock. */
void iterator_set_dataset(struct iterator *it, struct dataset *d);

/* ---- iterator_state.c ---- */
struct ready *iterator_ready(unsigned n); /* without an element */
void iterator_ready_free(struct ready *r);
void iterator_drop_ready(struct iterator *it);
/* Replaces the elements that are ready; takes the list. */
void iterator_put_ready(struct iterator *it, struct ready *head);

void transfer_drop(struct transfer *t);
/* Removes the first transfer from the iterator's list.  Called with the queue's lock. */
struct transfer *iterator_next_transfer(struct iterator *it);
/* Saves or restores the state.  Called on the thread and without the lock.  d: NULL if the iterator
 * has no dataset.  A restore replaces the dataset iterator. */
void iterator_transfer(struct iterator *it, struct transfer *t, const struct dataset *d,
		       uint64_t round, struct dataset_iterator **dataset_iterator);
/* Ends the transfer with err. */
void iterator_end_transfer(struct iterator *it, struct transfer *t, const struct mu_err *err);

#endif
