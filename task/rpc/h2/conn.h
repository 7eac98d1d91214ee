/* SPDX-License-Identifier: Apache-2.0 */
/* One connection and its streams, at either end: what differs between a server's and a client's is
 * its side.
 *
 * Who reads: epoll hands a connection to one thread at a time (EPOLLONESHOT), which reads, runs
 * handlers and hands it back.  Messages go out from any thread.  `lock` guards what both touch;
 * under it the server's own lock may be taken, but no handler is called. */
#ifndef MU_TASK_RPC_H2_CONN_H
#define MU_TASK_RPC_H2_CONN_H

#include <pthread.h>
#include <stdatomic.h>

#include "task/rpc/channel.h"
#include "task/rpc/h2/frame.h"
#include "task/rpc/h2/hpack.h"

struct h2_loop;
struct h2_out;
struct h2_stream;
struct h2_conn;
struct iovec;
struct tls_conn;

/* A server's end or a client's.  Called by the reading thread without the lock, where nothing else
 * is said. */
struct h2_side {
	bool client;
	/* The fields of HEADERS; id is an odd number.  An error ends the connection. */
	int (*headers)(struct h2_conn *c, uint32_t id, bool end, struct mu_span block,
		       struct mu_err *err);
	void (*whole)(struct h2_stream *s); /* its DATA has ended */
	void (*reset)(struct h2_stream *s, uint32_t code);
	void (*gone)(
	    struct h2_stream *s); /* it is in the table no more: the connection has ended */
	void (*sent)(struct h2_stream *s); /* with the lock: its message is queued to its end */
	void (*ref)(struct h2_stream *s);
	void (*unref)(struct h2_stream *s);
	void (*greeted)(struct h2_conn *c); /* (optional) the client's preface has come */
	void (*settled)(struct h2_conn *c); /* (optional) the first SETTINGS have come */
	void (*goaway)(struct h2_conn *c, uint32_t last_id); /* (optional) */
	void (*ended)(struct h2_conn *c,
		      const struct mu_err *why); /* before its streams are gone */
	void (*freed)(struct h2_conn *c);        /* (optional) gives owner back */
	/* why a message is refused; and what it is when it breaks the rules */
	const char *compressed, *too_long, *damaged;
	enum mu_code broken;
};

/* A part of a message that is being sent. */
struct h2_piece {
	const char *data;
	size_t len;
	struct mu_tensor tensor; /* whose memory it is; empty: the stream's own copy */
};
/* A message that comes in, in one piece but for what a tensor of its own takes (h2_place). */
struct h2_body {
	const char *refused; /* why it is answered with an error whatever comes */
	enum mu_code refusal;
	bool zlib; /* how it may be compressed */
	uint8_t prefix[5];
	unsigned n_prefix;
	char *message;
	size_t len, room, got; /* announced, allocated, there */
	int (*place)(struct mu_span head, size_t total, struct mu_tensor *tensor, size_t *at);
	struct mu_tensor tensor; /* has the bytes from `at` to the end, when it has memory */
	size_t at;
};
/* Streams that have something to send, in the order of their turns. */
struct h2_turns {
	struct h2_stream *first, **last;
};
/* Part of a server's call and of a client's, which are what is counted. */
struct h2_stream {
	struct h2_conn *conn; /* a reference; NULL: not sent yet */
	uint32_t id;
	/* the reading thread's, until all has come */
	struct h2_body in;
	int64_t recv_window;
	/* under the connection's lock */
	struct h2_stream *next; /* in the table */
	bool listed, whole;     /* in the table; nothing more comes */
	int64_t send_window;
	struct h2_piece *pieces;
	unsigned n_pieces, piece; /* the one that is next */
	size_t piece_at, left;
	char *copy;
	struct h2_turns *turns; /* the list it is in, when it has something to send; or NULL */
	struct h2_stream *next_waiting, **waiting_at; /* the latter points to it, in that list */
};

enum {
	H2_BUFFER = 64 << 10,
	H2_BUCKETS = 64,
	H2_LARGE = 512 << 10, /* a frame that has as much left is read in pieces of H2_PIECE */
	H2_PIECE = 256 << 10,
};

struct h2_conn {
	_Atomic unsigned refs;
	const struct h2_side *side;
	void *owner;                  /* the side's */
	struct h2_loop *loop;         /* NULL: nobody waits for its socket */
	struct h2_conn *next, **link; /* the loop's list, under its lock */
	int fd;
	uint32_t serial;
	int64_t since_ms;
	size_t max_message;
	_Atomic bool greeted;     /* the preface has come, or is not due */
	_Atomic int64_t heard_ms; /* when bytes came last */
	/* the reading thread's */
	char *buffer;
	size_t from, to;
	bool settled; /* the first SETTINGS have come */
	struct hpack hpack;
	struct mu_buf block, path; /* a header block so far; the path that nobody knows */
	uint32_t block_stream;     /* 0: none is open */
	uint8_t block_flags;
	int64_t recv_window, own_window, own_stream_window; /* left; and what we offer */
	struct h2_stream *body; /* a reference: of the DATA frame that is coming in; NULL: it is
				   thrown away */
	bool in_data, body_ends;
	uint32_t max_own_frame; /* what we offer */
	int least;              /* bytes that have to be there before epoll tells of them */
	bool near;              /* both ends are on this host, in the clear (near.c) */
	size_t data_left, pad_left;
	enum h2_code fault; /* why it ends, for its GOAWAY */
	/* */
	pthread_mutex_t lock; /* guards what follows */
	uint32_t last_id;     /* of a stream of the client's; the reading thread's in a server */
	struct tls_conn *tls; /* NULL: in the clear; fixed */
	struct h2_stream **table;
	unsigned n_buckets, n_streams;
	struct h2_out *first, **last, *spare;
	size_t queued;
	bool reading, broken, wants_out;
	bool no_table, shrink_told, indexed; /* how a server's headers are written */
	struct hpack_writer writer;          /* how a client's are */
	int64_t send_window;
	uint32_t initial_window, max_frame, max_streams;
	/* a client's: */
	struct mu_buf head; /* HEADERS that are being made */
	bool leaving;       /* the server takes no new calls by it */
	unsigned pings;     /* since something else was sent */
	int64_t ping_ms;    /* when the one that nothing followed was sent; 0: none */
	const char *lost;   /* why we end it */
	/* */
	/* Those that may send, but for the connection's window and queue, and those whose own
	 * windows are shut: these are passed over until they open, however many they are. */
	struct h2_turns waiting, blocked;
	unsigned window_moves; /* by SETTINGS, so far */
};

/* Takes fd. */
struct h2_conn *h2_conn_new(const struct h2_side *side, void *owner, int fd);
struct h2_conn *h2_conn_ref(struct h2_conn *c);
void h2_conn_unref(struct h2_conn *c);
void h2_conn_hello(struct h2_conn *c); /* a client's first bytes, into the queue */
/* Reads what has come; false with err when the connection is at its end. */
bool h2_conn_read(struct h2_conn *c, struct mu_err *err);
/* Nothing comes or goes any more: all its streams are gone. */
void h2_conn_break(struct h2_conn *c, const struct mu_err *why, bool say_why);
int h2_fault(struct h2_conn *c, enum h2_code code, struct mu_err *err, const char *what);

/* ---- frames.c ---- */
int h2_frame_take(struct h2_conn *c, const struct h2_frame *f, const char *p, struct mu_err *err);
void h2_settings_put(struct h2_conn *c); /* our own, and the connection's window; with the lock */

/* ---- streams.c: with the lock held ---- */
struct h2_stream *h2_stream_find(struct h2_conn *c, uint32_t id);
void h2_stream_add(struct h2_conn *c, struct h2_stream *s); /* takes a reference */
bool h2_stream_drop(struct h2_stream *s); /* true: the caller has the reference to give back */
/* All of them, each with a reference: *n; drop: they are in the table no more. */
struct h2_stream **h2_stream_all(struct h2_conn *c, bool drop, unsigned *n);
void h2_stream_fini(struct h2_stream *s); /* the last holder's, without the lock */

/* ---- body.c: from the reading thread ---- */
void h2_body_take(struct h2_stream *s, const char *data, size_t n);
/* Where up to *n bytes of the message may be read to at once; NULL: nowhere. */
char *h2_body_room(struct h2_stream *s, size_t *n);
void h2_body_took(struct h2_stream *s, size_t n); /* they were */
void h2_body_refuse(struct h2_stream *s, enum mu_code code, const char *why);
/* All of it has come: it is unpacked, or refused for what it lacks. */
void h2_body_end(struct h2_stream *s, const char *none, const char *cut);
void h2_body_fini(struct h2_body *b);

/* ---- send.c: with the lock held, but for the first ---- */
/* Makes pieces of the message: what is copied is in one allocation, tensors are held. */
void h2_send_prepare(struct h2_stream *s, const struct rpc_message *m);
void h2_send_wait_turn(struct h2_conn *c, struct h2_stream *s); /* takes a reference */
void h2_send_no_more(struct h2_conn *c, struct h2_stream *s);   /* gives it back */
void h2_send_opened(struct h2_conn *c, struct h2_stream *s);    /* its window is wider */
void h2_send_pump(struct h2_conn *c); /* what windows allow into the queue */
size_t h2_message_length(const struct rpc_message *m);

/* ---- out.c: with the lock held ---- */
char *h2_out_room(struct h2_conn *c, size_t n); /* n bytes to fill, queued */
void h2_out_tensor(struct h2_conn *c, const struct mu_tensor *t, const char *data, size_t n);
void h2_out_frame(struct h2_conn *c, enum h2_type type, uint8_t flags, uint32_t stream,
		  const void *payload, size_t len);
void h2_out_number(struct h2_conn *c, enum h2_type type, uint32_t stream, uint32_t number);
void h2_out_flush(struct h2_conn *c);
bool h2_out_left(const struct h2_conn *c); /* something is not with the system yet */
void h2_out_free(struct h2_conn *c);

/* ---- wire.c: with the lock held, but for the first ---- */
ssize_t h2_wire_read(struct h2_conn *c, const struct iovec *iov, int n, struct mu_err *err);
ssize_t h2_wire_write(struct h2_conn *c, struct iovec *iov, unsigned n);
bool h2_wire_unread(const struct h2_conn *c); /* has come, though the socket is empty */
bool h2_wire_unsent(const struct h2_conn *c);
bool h2_wire_closed(const struct h2_conn *c); /* nothing of ours can go yet */

/* ---- near.c: without the lock ---- */
void h2_near_tune(struct h2_conn *c); /* once, when TLS is on it or not */
/* By the reading thread, when all that had come is read: whether more of the frame came soon. */
bool h2_near_look(struct h2_conn *c);

#endif
