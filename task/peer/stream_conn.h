/* SPDX-License-Identifier: Apache-2.0 */
/* One connection: any thread may send frames; the stream thread reads them. */
#ifndef MU_TASK_PEER_STREAM_CONN_H
#define MU_TASK_PEER_STREAM_CONN_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "lib/base/map.h"
#include "task/peer/peer_stream.h"
#include "task/peer/stream_share.h"
#include "task/peer/stream_wire.h"

enum { STREAM_BUFFER = 128 << 10 };

struct outgoing_frame;
struct tls_conn;
struct stream_conn {
	_Atomic unsigned refs;
	struct streams *owner;
	struct stream_peer *dialled; /* NULL: the other side is the master */
	int fd;
	bool local;           /* a Unix socket */
	struct tls_conn *tls; /* NULL: unencrypted; guarded by the lock after the handshake */
	/* These members do not change after the handshake. */
	int fds[SHARE_FDS];               /* from the other side; -1 after the handshake */
	struct stream_exporter *exporter; /* NULL: this task sends tensors as bytes */
	struct stream_importer *importer; /* NULL: the other side sends tensors as bytes */
	bool handshake_done;
	char task[STREAM_MAX_TASK + 1]; /* the other side */
	uint64_t incarnation;           /* incarnation of that task */
	int64_t since_ms;               /* start of the connection */
	/* Only the stream thread uses these members. */
	struct stream_conn *next, **link; /* the streams' list, under its lock */
	struct stream_conn *next_unread;
	bool is_unread; /* in streams.unread */
	char *buffer;
	size_t from, to; /* range of unhandled bytes in the buffer */
	bool in_payload, skip, has_header;
	struct stream_header header;
	struct mu_tensor tensor;
	struct mu_buf proto;
	char *payload_at;
	size_t payload_left;
	char *key; /* rendezvous key of the TENSOR being received */

	pthread_mutex_t lock; /* guards the members below; no other lock is taken under it */
	struct outgoing_frame *first, **last;
	struct outgoing_frame *written; /* written frames, to be freed without the lock */
	struct mu_buf returns;          /* ids of unused imported tensors, not sent yet */
	size_t returned_bytes;          /* size of these tensors */
	bool is_shut_down, polls_out;   /* polls_out: EPOLLOUT is polled */
	struct mu_map steps;            /* step id -> struct stream_step */
};

struct stream_step {
	int64_t step_id;
	bool is_running;
	size_t early_bytes;       /* received before the RUN */
	struct stream_conn *conn; /* a reference while a run is on the other side; else NULL */
	peer_done done;           /* NULL on the other side */
	void *arg;
};

/* Handlers of frames and of the end of a connection, called by the stream thread (peer_stream.c).
 */
struct stream_handlers {
	int (*on_hello)(struct stream_conn *c, struct mu_span head, struct mu_err *err);
	int (*on_frame)(struct stream_conn *c, struct mu_span head, struct mu_err *err);
	/* Sets c->payload_at, the address for the payload, or c->skip. */
	int (*on_tensor)(struct stream_conn *c, struct mu_span head, struct mu_err *err);
	void (*on_payload)(struct stream_conn *c); /* the payload is complete */
	void (*on_close)(struct stream_conn *c, const struct mu_err *why);
};
extern const struct stream_handlers stream_handlers;

/* The streams of a task (stream_loop.c). */
struct streams {
	const struct local_worker *worker;
	struct rpc_tls *tls; /* a reference, or NULL */
	const struct stream_handlers *handlers;
	struct stream_offer offer;
	int local, tcp; /* listeners; -1: none */
	pthread_t thread, dialler;
	_Atomic bool stopping;
	int epoll, wakeup_fd; /* -1: none */
	/* Only the stream thread uses the next four members. */
	struct stream_conn *unread;     /* with data in the TLS library; epoll reports no event */
	unsigned n_conns, n_handshakes; /* accepted connections; those without HELLO */
	int64_t accept_paused_until_ms; /* 0: the listeners are polled */
	pthread_mutex_t lock;           /* guards the members below */
	pthread_cond_t queued;
	struct stream_conn *conns;
	struct stream_peer *to_dial;
};

struct stream_conn *stream_conn_new(struct streams *owner, int fd);
/* Adds mutual TLS.  host: NULL on the accepting side; else the required name of the other side. */
int stream_conn_secure(struct stream_conn *c, struct rpc_tls *tls, const char *host,
		       struct mu_err *err);
struct stream_conn *stream_conn_ref(struct stream_conn *c);
void stream_conn_unref(struct stream_conn *c);
/* Sends HELLO or WELCOME, the first frame of a connection, with the shared memory if the connection
 * is local.  Blocks until until_ms at most. */
int stream_conn_send_hello(struct stream_conn *c, enum stream_type type,
			   const struct stream_hello *h, int64_t until_ms, struct mu_err *err);
/* Handles the HELLO or WELCOME of the other side: its identity and shared memory. */
int stream_conn_on_hello(struct stream_conn *c, unsigned flags, const struct stream_hello *hello,
			 struct mu_err *err);
/* Queues a frame and writes as much as the socket accepts.  `payload` bytes of t->data follow the
 * frame; t is taken if not NULL.  UNAVAILABLE if the connection is lost. */
int stream_conn_send(struct stream_conn *c, const struct mu_buf *frame, struct mu_tensor *t,
		     size_t payload, struct mu_err *err);
void stream_conn_flush(struct stream_conn *c);
/* Returns an imported tensor: with the next frame, or at once if many are pending. */
void stream_conn_return(struct stream_conn *c, uint64_t id, size_t bytes);
/* Drops the queued frames and shuts the socket down. */
void stream_conn_shutdown(struct stream_conn *c);
/* Reads and handles available frames; false with err if the connection has ended.  *is_unread: the
 * TLS library has buffered data, for which the socket reports no event. */
bool stream_conn_read(struct stream_conn *c, bool *is_unread, struct mu_err *err);

/* ---- stream_io.c ---- */
/* As readv and sendmsg; writing requires the connection's lock.  Reading may shorten iov. */
ssize_t stream_io_read(struct stream_conn *c, struct iovec *iov, int n);
ssize_t stream_io_write(struct stream_conn *c, struct iovec *iov, unsigned n);
bool stream_io_unsent(const struct stream_conn *c); /* encrypted data is buffered */
bool stream_io_unread(struct stream_conn *c);       /* decrypted data is buffered */
void stream_lost(struct mu_err *err, const struct stream_conn *c);
/* Fills the error for a failed read with errno e. */
void stream_io_fail(const struct stream_conn *c, int e, struct mu_err *err);
/* Transfer all bytes before until_ms, else return -1.  Only one thread may use the connection. */
int stream_io_put_all(struct stream_conn *c, struct mu_span s, int64_t until_ms);
int stream_io_get_all(struct stream_conn *c, char *to, size_t n, int64_t until_ms);

/* ---- stream_dial.c ---- */
struct stream_peer {
	struct streams *owner;
	char *task, *host;
	pthread_mutex_t lock;
	bool has_offer, is_dialling;
	struct stream_offer offer;
	int64_t last_dial_ms;
	struct stream_conn *conn; /* a reference */
	struct stream_peer *next; /* in the dialler's queue */
};
void stream_enlarge_send_buffer(int fd);
void stream_set_tcp_options(int fd);
void stream_dial_later(struct stream_peer *p); /* queues p for the dialler thread */
/* Returns a connection after its handshake, or NULL.  Blocks for some seconds at most. */
struct stream_conn *stream_dial(struct stream_peer *p, struct mu_err *err);

#endif
