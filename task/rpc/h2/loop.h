/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait on one epoll for connections and for a few descriptors more. */
#ifndef MU_TASK_RPC_H2_LOOP_H
#define MU_TASK_RPC_H2_LOOP_H

#include "task/rpc/h2/conn.h"

enum { H2_LOOP_THREADS = 16 };

struct h2_loop {
	const char *name; /* its threads' */
	void *ctx;
	/* One of h2_loop_watch_fd has something; it is not watched until it is watched again. */
	void (*ready)(void *ctx, int fd);
	/* (optional) how long to wait at most, -1: for ever; and what to do when that is over */
	int (*patience_ms)(void *ctx);
	void (*idle)(void *ctx);
	/* private */
	int epoll, wake;
	pthread_t threads[H2_LOOP_THREADS];
	unsigned n_threads;
	_Atomic bool stopping;
	pthread_mutex_t lock; /* guards what follows */
	struct h2_conn *conns;
	unsigned n_conns;
	struct h2_conn **by_fd;
	int n_fds;
	uint32_t last_serial;
};

/* The public members are set.  When it fails, h2_loop_fini is still due. */
int h2_loop_start(struct h2_loop *l, unsigned threads, struct mu_err *err);
void h2_loop_stop(struct h2_loop *l); /* its threads end */
/* Ends all connections that are left. */
void h2_loop_fini(struct h2_loop *l, const struct mu_err *why);
bool h2_loop_is_this_thread(const struct h2_loop *l);
void h2_loop_watch_fd(struct h2_loop *l, int fd, bool first);
void h2_loop_add(struct h2_loop *l,
		 struct h2_conn *c);   /* takes a reference, and gives it a number */
void h2_loop_watch(struct h2_conn *c); /* with its lock: hands the connection back to epoll */
bool h2_loop_has(struct h2_loop *l, uint32_t serial);
unsigned h2_loop_count(struct h2_loop *l);
/* Calls fn for each connection, without the lock. */
void h2_loop_for_each(struct h2_loop *l, void (*fn)(struct h2_conn *c));

#endif
