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
struct state_request {
	struct state_request *next;
	_Atomic int refs;
	struct mu_object *state; /* to restore, or the saved state; NULL: not saved yet */
	bool restores, queued, done;
	struct mu_err err;
};

struct buffered_element {
	struct buffered_element *next;
	struct mu_err err; /* instead of an element */
	unsigned shard;
	unsigned n;
	struct mu_tensor t[];
};

struct iterator {
	struct resource base;
	struct wait_queue waiters;
	pthread_cond_t work;  /* with the queue's lock */
	struct caller caller; /* used by the thread; has a separate lock */
	bool started, stop;   /* a started thread frees the iterator when it stops */
	struct function *factory;
	struct dataset *dataset; /* NULL: not initialised */
	uint64_t round;          /* increases with each new dataset */
	bool element_requested, ended;
	struct buffered_element *head, **tail;
	int64_t n_buffered, buffer_size;
	unsigned n_shards, next_shard;  /* element i of a round is for shard i % n_shards */
	struct state_request *requests; /* that wait for the thread */
};

extern const struct resource_type iterator_type;
/* arg: the dataset factory of a one-shot iterator, or NULL.  Takes the factory. */
struct resource *iterator_create(void *arg, struct mu_err *err);
/* Starts the thread, once. */
int iterator_start(struct iterator *it, struct runtime *rt, struct mu_err *err);
/* Starts a new round with d and a buffer of at least shard_buffer_size elements for each shard.
 * Takes d.  Called with the queue's lock. */
void iterator_set_dataset(struct iterator *it, struct dataset *d, int64_t shard_buffer_size);

/* ---- iterator_state.c ---- */
struct buffered_element *buffered_element_new(unsigned n); /* without an element */
void buffered_element_free(struct buffered_element *r);
void iterator_clear_buffer(struct iterator *it);

void state_request_unref(struct state_request *t);
/* Removes the first request from the iterator's list.  Called with the queue's lock. */
struct state_request *iterator_next_request(struct iterator *it);
/* Saves or restores the state.  Called on the thread and without the lock.  d: NULL if the iterator
 * has no dataset.  A restore replaces the dataset iterator. */
void iterator_execute_request(struct iterator *it, struct state_request *t, const struct dataset *d,
			      uint64_t round, struct dataset_iterator **dataset_iterator);
/* Ends the request with err. */
void iterator_end_request(struct iterator *it, struct state_request *t, const struct mu_err *err);

#endif
