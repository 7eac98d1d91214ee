/* SPDX-License-Identifier: Apache-2.0 */
/* A set of connections that are read by one thread at a time, the reader.  Frames that the reader
 * sends while it handles events are deferred and written together for each connection. */
#ifndef MU_TASK_PEER_STREAM_SET_H
#define MU_TASK_PEER_STREAM_SET_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "task/peer/adaptive_spin.h"

struct streams;
struct stream_conn;
/* what: the argument of stream_set_add, such as a connection. */
typedef void (*stream_event_fn)(struct streams *owner, void *what, unsigned events);

struct stream_set {
	struct streams *owner;
	stream_event_fn on_event;
	int epoll, wakeup_fd;       /* -1: none */
	struct stream_conn *unread; /* used by the reader only */
	struct adaptive_spin spin;  /* used by the reader only */
};

int stream_set_open(struct stream_set *set, struct streams *owner, stream_event_fn on_event,
		    struct mu_err *err);
void stream_set_close(struct stream_set *set); /* also after a failed open */
/* Events of fd are passed to on_event with `what`. */
int stream_set_add(struct stream_set *set, int fd, void *what, struct mu_err *err);
void stream_set_wake_up(struct stream_set *set); /* makes stream_set_poll return */
/* Called by the reader: waits for events, at most wait_ms (-1: no limit), and handles them. */
void stream_set_poll(struct stream_set *set, int wait_ms);
/* Called by the reader: requests a read of c although its socket is empty. */
void stream_set_unread(struct stream_set *set, struct stream_conn *c);

#endif
