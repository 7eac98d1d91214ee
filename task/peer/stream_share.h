/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory between tasks on the same host, instead of sending tensors (docs/peer-stream.md).
 *
 * The exporter exports this task's memory to the other side of one connection; the importer maps
 * the other side's memory for reading.  An exported tensor keeps its reference until its id is
 * returned.  The other side has one end of the exporter's liveness pipe open while it uses imported
 * tensors.  When that end is closed, all references are released. */
#ifndef MU_TASK_PEER_STREAM_SHARE_H
#define MU_TASK_PEER_STREAM_SHARE_H

#include "lib/base/buf.h"
#include "lib/tensor/tensor.h"

struct stream_conn;
struct shm_handle;

enum share_fd { SHARE_FILE, SHARE_LIVENESS, SHARE_FDS };

/* Returns NULL if this task has no shared memory.  fds get the descriptors for the handshake; the
 * caller sends and then closes fds[SHARE_LIVENESS]. */
struct stream_exporter *exporter_new(int fds[SHARE_FDS]);
/* Releases the exported tensors as soon as the other side does not use them. */
void exporter_free(struct stream_exporter *ex);
/* True if t can be exported: large, floating point, in the shared file. */
bool exporter_accepts(const struct mu_tensor *t);
/* Exports t, which it takes. */
struct shm_handle exporter_add(struct stream_exporter *ex, struct mu_tensor *t);
/* Releases an exported tensor; false: the id is unknown. */
bool exporter_remove(struct stream_exporter *ex, uint64_t id);
/* Releases returned tensors; ids have 8 bytes each. */
int exporter_returned(struct stream_exporter *ex, struct mu_span ids, struct mu_err *err);
size_t exporter_count(struct stream_exporter *ex);

/* Returns an unused tensor of `bytes` bytes (stream_conn_return). */
typedef void (*import_release_fn)(struct stream_conn *c, uint64_t id, size_t bytes);
/* Takes both descriptors, also on failure.  Borrows c, the argument of release, until
 * importer_end. */
struct stream_importer *importer_new(struct stream_conn *c, import_release_fn release,
				     int fds[SHARE_FDS], struct mu_err *err);
void importer_end(struct stream_importer *im); /* the connection has ended; tensors may remain */
int importer_map(struct stream_importer *im, struct mu_tensor *out, enum mu_dtype dtype,
		 const struct mu_shape *shape, const struct shm_handle *handle, struct mu_err *err);

/* Sends all bytes with the descriptors, on a socket with enough buffer space. */
int share_send(int fd, struct mu_span bytes, const int fds[SHARE_FDS], struct mu_err *err);
/* Like recv; stores received descriptors in fds (-1: none) and closes unexpected ones. */
ssize_t share_recv(int fd, void *to, size_t n, int fds[SHARE_FDS]);
void share_close(int fds[SHARE_FDS]);

#endif
