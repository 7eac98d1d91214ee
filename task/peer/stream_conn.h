/* SPDX-License-Identifier: Apache-2.0 */
/* One connection: frames queued and written from any thread, read by its set's reader. */
#ifndef MU_TASK_PEER_STREAM_CONN_H
#define MU_TASK_PEER_STREAM_CONN_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "lib/base/map.h"
#include "task/peer/peer_stream.h"
#include "task/peer/stream_set.h"
#include "task/peer/stream_share.h"
#include "task/peer/stream_wire.h"

enum { STREAM_BUFFER = 128 << 10 };

struct stream_out;
struct tls_conn;
struct stream_conn {
	_Atomic unsigned refs;
	struct streams *owner;
	struct stream_peer *dialled; /* NULL: the other side is the master */
	int fd;
	bool local;           /* a unix socket */
	struct tls_conn *tls; /* NULL: in the clear; under the lock once there are two threads */
	/* of the other side; fixed once greeted */
	int fds[SHARE_FDS];               /* came with its greeting */
	struct stream_lender *lender;     /* ours; NULL: tensors are sent */
	struct stream_borrower *borrower; /* theirs */
	bool greeted;
	char task[STREAM_MAX_TASK + 1];
	uint64_t incarnation;
	int64_t since_ms;
	/* its reader's */
	struct stream_conn *next, **link; /* the streams' list, under its lock */
	struct stream_conn *next_unread;
	bool unread;
	char *buffer;
	size_t from, to;
	bool in_payload, skip, has_header;
	struct stream_header header;
	struct mu_tensor tensor;
	struct mu_buf proto;
	char *payload_at;
	size_t payload_left;
	char *key; /* of the TENSOR that comes in */
	/* */
	pthread_mutex_t lock; /* guards what follows; a leaf */
	struct stream_out *first, **last;
	struct stream_out *spent; /* written; to be freed without the lock */
	struct mu_buf returns;    /* loans that are over, not told yet */
	size_t returned;          /* their bytes */
	bool broken, wants_out;
	const void *flusher; /* the thread's turn that has put off writing; NULL: none has */
	struct stream_conn *next_put_off; /* that one's */
	struct mu_map steps;              /* step id -> struct stream_step */
};

struct stream_step {
	int64_t step_id;
	bool running, sole;
	size_t parked;
	struct stream_conn *conn; /* a reference when it runs here for the other side */
	peer_done done;           /* it runs there for us */
	void *arg;
};

struct stream_conn *stream_conn_new(struct streams *owner, int fd);
/* Puts mutual TLS on it.  host: NULL for who has accepted it; else whom the other side must be. */
int stream_conn_secure(struct stream_conn *c, struct rpc_tls *tls, const char *host,
		       struct mu_err *err);
struct stream_conn *stream_conn_ref(struct stream_conn *c);
void stream_conn_unref(struct stream_conn *c);
/* Says who we are, the first bytes on a connection; shows our memory when that leads somewhere.
 * Waits for the other side until then at most. */
int stream_conn_greet(struct stream_conn *c, enum stream_type type, const struct stream_hello *h,
		      int64_t until_ms, struct mu_err *err);
/* The other side has: takes who it is and what it shows. */
int stream_conn_greeted(struct stream_conn *c, unsigned flags, const struct stream_hello *said,
			struct mu_err *err);
/* Queues a frame, and writes what the socket takes at once.  payload bytes of t->data follow frame;
 * t, when not NULL, is taken.  UNAVAILABLE when the connection is lost. */
int stream_conn_send(struct stream_conn *c, const struct mu_buf *frame, struct mu_tensor *t,
		     size_t payload, struct mu_err *err);
void stream_conn_flush(struct stream_conn *c);
void stream_conn_flush_put_off(struct stream_conn *c); /* by c->flusher */
/* A loan is over: told with the next frame, or now when much has come together. */
void stream_conn_return(struct stream_conn *c, uint64_t id, size_t bytes);
void stream_conn_break(struct stream_conn *c); /* nothing is sent any more */
/* What has come; false with err when the connection is at its end. */
bool stream_conn_read(struct stream_conn *c, struct mu_err *err);
void stream_lost(struct mu_err *err, const struct stream_conn *c);

/* ---- stream_io.c ---- */
/* As readv and sendmsg, the connection's lock held for writing.  Reading may shorten iov. */
ssize_t stream_io_read(struct stream_conn *c, struct iovec *iov, int n);
ssize_t stream_io_write(struct stream_conn *c, struct iovec *iov, unsigned n);
bool stream_io_unsent(const struct stream_conn *c); /* written, and not in the socket yet */
bool stream_io_unread(struct stream_conn *c);       /* has come, though the socket is empty */
/* What a failed read with that errno means. */
void stream_io_why(const struct stream_conn *c, int e, struct mu_err *err);
/* While only one thread knows the connection: all of it by then, or -1. */
int stream_io_put_all(struct stream_conn *c, struct mu_span s, int64_t until_ms);
int stream_io_get_all(struct stream_conn *c, char *to, size_t n, int64_t until_ms);

/* ---- peer_stream.c: what the frames mean.  From its reader. ---- */
int stream_on_frame(struct stream_conn *c, struct mu_span head, struct mu_err *err);
/* Where the payload is to go: c->payload_at, or c->skip. */
int stream_on_tensor(struct stream_conn *c, struct mu_span head, struct mu_err *err);
void stream_on_payload(struct stream_conn *c); /* all of it has come */
/* No frame will come any more. */
void stream_on_break(struct stream_conn *c, const struct mu_err *why);
int stream_on_hello(struct stream_conn *c, struct mu_span head, struct mu_err *err);

/* ---- stream_loop.c ---- */
/* what: a connection, or what was added with its descriptor. */
void stream_loop_on_event(struct streams *s, void *what, unsigned events);
void stream_loop_unread(struct stream_conn *c); /* to be read again, though the socket is empty */
void stream_loop_watch(struct stream_conn *c, bool out); /* with c->lock held */
void stream_loop_greeted(struct stream_conn *c);
void stream_loop_dial(struct streams *s, struct stream_peer *p);
const struct local_worker *stream_worker(const struct streams *s);
struct rpc_tls *stream_tls(const struct streams *s); /* borrowed; NULL: in the clear */
const struct stream_offer *stream_own_offer(const struct streams *s);

/* ---- stream_dial.c ---- */
struct stream_peer {
	struct streams *owner;
	char *task, *host;
	pthread_mutex_t lock;
	bool offered, dialling;
	struct stream_offer offer;
	int64_t last_dial_ms;
	struct stream_conn *conn; /* a reference */
	struct stream_peer *next; /* in the dialler's queue */
};
void stream_local_room(int fd);
/* Blocks a few seconds at most.  A greeted connection, or NULL. */
struct stream_conn *stream_dial(struct stream_peer *p, struct mu_err *err);

#endif
