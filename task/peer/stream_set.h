/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that are read together, by one thread at a time: the set's reader of the moment.
 * What it sends while it handles what came is put off and goes out together, connection by
 * connection. */
#ifndef MU_TASK_PEER_STREAM_SET_H
#define MU_TASK_PEER_STREAM_SET_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "task/peer/stream_look.h"

struct streams;
struct stream_conn;

struct stream_set {
	struct streams *owner;
	int epoll, nudge;           /* -1: none */
	struct stream_conn *unread; /* the reader's */
	struct stream_look look;    /* likewise */
};

int stream_set_open(struct stream_set *set, struct streams *owner, struct mu_err *err);
void stream_set_close(struct stream_set *set); /* one that was opened or tried to be */
/* fd's events come to stream_loop_on_event with what. */
void stream_set_add(struct stream_set *set, int fd, void *what);
void stream_set_nudge(struct stream_set *set); /* its reader's turn ends */
/* Its reader's: waits for something to come, wait_ms at most (-1: as long as it takes), and handles
 * that. */
void stream_set_turn(struct stream_set *set, int wait_ms);
/* To be read again, though the socket is empty.  Its reader's. */
void stream_set_unread(struct stream_set *set, struct stream_conn *c);
/* Whether this thread is in a turn and flushes c by and by; c's lock is held. */
bool stream_set_puts_off(struct stream_conn *c);

#endif
