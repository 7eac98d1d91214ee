/* SPDX-License-Identifier: Apache-2.0 */
/* What an iterator is made of, for the two files that know: iterator.c draws, iterator_state.c
 * saves and restores. */
#ifndef MU_TASK_KERNELS_DATA_ITERATOR_H
#define MU_TASK_KERNELS_DATA_ITERATOR_H

#include "task/kernels/control/wait_queue.h"
#include "task/kernels/data/dataset.h"

struct transfer; /* a state on its way out or in */
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
	struct caller caller; /* the thread's; has a lock of its own */
	bool started, stop, orphan;
	struct function *factory;
	struct dataset *dataset; /* NULL: not initialised */
	uint64_t round;          /* counts the datasets it was given */
	bool asked, ended;
	struct ready *head, **tail;
	int64_t n_ready, ahead;
	struct transfer *transfers; /* that wait for the thread */
};

extern const struct resource_type iterator_type;
int iterator_start(struct iterator *it, struct mu_err *err); /* its thread, once */
struct ready *iterator_ready(unsigned n);                    /* without an element yet */
void iterator_ready_free(struct ready *r);
/* Instead of what it has ready: this list, which is taken. */
void iterator_put_ready(struct iterator *it, struct ready *head);

/* The next transfer that waits, off its list; with the queue's lock. */
struct transfer *iterator_next_transfer(struct iterator *it);
/* Does it, on the thread and without the lock.  NULL: there is no dataset.  The cursor is the
 * thread's: what is read puts another one in its place. */
void iterator_transfer(struct iterator *it, struct transfer *t, const struct dataset *d,
		       uint64_t round, struct cursor **cursor);
void iterator_refuse(struct iterator *it, struct transfer *t, const struct mu_err *err);
void iterator_serialize(struct kernel_call *c);
void iterator_deserialize(struct kernel_call *c);

#endif
