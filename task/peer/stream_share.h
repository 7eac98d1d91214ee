/* SPDX-License-Identifier: Apache-2.0 */
/* Showing tensors to a task on the same host instead of sending their bytes (docs/peer-stream.md).
 *
 * A lender is our memory, shown to the other side of one connection; a borrower is theirs, mapped
 * for reading.  A tensor that is lent keeps its reference until its id comes back, or until the
 * other side is known to look at nothing any more: it holds an end of the lender's life pipe for as
 * long as it does. */
#ifndef MU_TASK_PEER_STREAM_SHARE_H
#define MU_TASK_PEER_STREAM_SHARE_H

#include "lib/base/buf.h"
#include "lib/tensor/tensor.h"

struct stream_conn;
struct stream_loan;

enum share_fd { SHARE_FILE, SHARE_LIFE, SHARE_FDS };

/* NULL when this task has nothing to show.  fds get what the greeting takes along; the caller
 * closes fds[SHARE_LIFE] once it has been sent. */
struct stream_lender *lender_new(int fds[SHARE_FDS]);
/* Lets go of what is lent once nobody looks at it any more. */
void lender_free(struct stream_lender *l);
/* Whether t is something to be lent: large, floating point, in the shared file. */
bool lender_can(const struct mu_tensor *t);
/* Takes t. */
struct stream_loan lender_lend(struct stream_lender *l, struct mu_tensor *t);
/* ids of 8 bytes each, as they came. */
int lender_returned(struct stream_lender *l, struct mu_span ids, struct mu_err *err);
size_t lender_lent(struct stream_lender *l);

/* Takes both descriptors, also when it fails.  borrows c until borrower_end. */
struct stream_borrower *borrower_new(struct stream_conn *c, int fds[SHARE_FDS], struct mu_err *err);
void borrower_end(struct stream_borrower *b); /* the connection goes; tensors may live on */
int borrower_take(struct stream_borrower *b, struct mu_tensor *out, enum mu_dtype dtype,
		  const struct mu_shape *shape, const struct stream_loan *loan, struct mu_err *err);

/* All of bytes with the descriptors, on a socket that has room. */
int share_send(int fd, struct mu_span bytes, const int fds[SHARE_FDS], struct mu_err *err);
/* Like recv; descriptors that came along are put into fds (-1: none), others closed. */
ssize_t share_recv(int fd, void *to, size_t n, int fds[SHARE_FDS]);
void share_close(int fds[SHARE_FDS]);

#endif
