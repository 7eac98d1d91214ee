/* SPDX-License-Identifier: Apache-2.0 */
/* Only floating-point tensors are exported.  The exporter could change the bytes while the importer
 * reads them, which must not happen to values that are checked and then used as indices.
 *
 * Exported tensors may outlive their connection: the importer may have stored one in a variable.
 * When a connection ends, its exports move to the list `closed_exporters`.  The list is checked
 * whenever an exporter is created or freed.  If the other end of an exporter's pipe is closed, its
 * exports are released.
 */
#include "task/peer/stream_share.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/map.h"
#include "lib/tensor/arena.h"
#include "task/peer/stream_conn.h"

static bool is_value_type(enum mu_dtype t)
{
	return t == MU_FLOAT || t == MU_DOUBLE || t == MU_HALF || t == MU_BFLOAT16 ||
	       t == MU_COMPLEX64 || t == MU_COMPLEX128;
}

struct export
{
	uint64_t id;
	struct mu_tensor tensor;
};
struct stream_exporter {
	pthread_mutex_t lock;  /* no other lock is taken under it */
	struct mu_map exports; /* id -> struct export */
	uint64_t last_id;
	int liveness_fd;
	struct stream_exporter *next; /* in `closed_exporters` */
};

static pthread_mutex_t closed_exporters_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream_exporter *closed_exporters;

/* ---- exports ---- */

static void free_export(struct export *ex)
{
	mu_tensor_unref_remote(&ex->tensor);
	free(ex);
}

static void release_all(struct stream_exporter *ex)
{
	mu_map_each (&ex->exports, s)
		free_export(s->value);
	mu_map_fini(&ex->exports);
	pthread_mutex_destroy(&ex->lock);
	close(ex->liveness_fd);
	free(ex);
}

static bool is_in_use(const struct stream_exporter *ex)
{
	struct pollfd p = {.fd = ex->liveness_fd};

	return ex->exports.count && poll(&p, 1, 0) == 0;
}

static void release_closed_exporters(struct stream_exporter *closed)
{
	struct stream_exporter *ex, *in_use = NULL, *next;

	pthread_mutex_lock(&closed_exporters_lock);
	if (closed) {
		closed->next = closed_exporters;
		closed_exporters = closed;
	}
	for (ex = closed_exporters; ex; ex = next) {
		next = ex->next;
		if (is_in_use(ex)) {
			ex->next = in_use;
			in_use = ex;
		} else {
			release_all(ex);
		}
	}
	closed_exporters = in_use;
	pthread_mutex_unlock(&closed_exporters_lock);
}

struct stream_exporter *exporter_new(int fds[SHARE_FDS])
{
	struct stream_exporter *ex;
	int ends[2];

	release_closed_exporters(NULL);
	if (arena_fd() < 0 || pipe2(ends, O_CLOEXEC))
		return NULL;
	ex = MU_NEW(struct stream_exporter);
	pthread_mutex_init(&ex->lock, NULL);
	mu_map_init(&ex->exports);
	ex->liveness_fd = ends[0];
	fds[SHARE_FILE] = arena_fd();
	fds[SHARE_LIVENESS] = ends[1];
	return ex;
}

void exporter_free(struct stream_exporter *ex)
{
	if (ex)
		release_closed_exporters(ex);
}

bool exporter_accepts(const struct mu_tensor *t)
{
	uint64_t offset;

	return is_value_type(t->dtype) && mu_tensor_bytes(t) >= ARENA_MIN_BYTES && !t->buf->owner &&
	       t->data == t->buf->data && arena_offset(t->data, &offset);
}

struct shm_handle exporter_add(struct stream_exporter *ex, struct mu_tensor *t)
{
	struct export *export = MU_NEW(struct export);
	struct shm_handle handle = {0};

	arena_offset(t->data, &handle.offset);
	mu_tensor_add_remote_ref(t);
	export->tensor = *t;
	*t = (struct mu_tensor){0};
	pthread_mutex_lock(&ex->lock);
	handle.id = export->id = ++ex->last_id;
	mu_map_put_n(&ex->exports, &export->id, sizeof(export->id), export);
	pthread_mutex_unlock(&ex->lock);
	return handle;
}

bool exporter_remove(struct stream_exporter *ex, uint64_t id)
{
	struct export *export;

	pthread_mutex_lock(&ex->lock);
	export = mu_map_del_n(&ex->exports, &id, sizeof(id));
	pthread_mutex_unlock(&ex->lock);
	if (export)
		free_export(export);
	return export != NULL;
}

int exporter_returned(struct stream_exporter *ex, struct mu_span ids, struct mu_err *err)
{
	if (ids.len % sizeof(uint64_t))
		return mu_fail(err, MU_INVALID_ARGUMENT, "a list of returned tensors is truncated");
	for (; ids.len >= sizeof(uint64_t); ids.data += 8, ids.len -= 8) {
		uint64_t id;

		memcpy(&id, ids.data, sizeof(id));
		id = le64toh(id);
		if (!exporter_remove(ex, id))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "tensor %llu was returned but not exported",
				       (unsigned long long)id);
	}
	return 0;
}

size_t exporter_count(struct stream_exporter *ex)
{
	size_t n;

	pthread_mutex_lock(&ex->lock);
	n = ex->exports.count;
	pthread_mutex_unlock(&ex->lock);
	return n;
}

/* ---- imports ---- */

struct stream_importer {
	_Atomic unsigned refs;    /* one for the connection and one for each tensor */
	pthread_mutex_t lock;     /* taken before the connection's lock */
	struct stream_conn *conn; /* NULL: the connection has ended */
	import_release_fn release;
	char *base;
	size_t size;
	int liveness_fd;
};
struct import {
	struct stream_importer *importer;
	uint64_t id;
};

static void importer_unref(struct stream_importer *im)
{
	if (atomic_fetch_sub_explicit(&im->refs, 1, memory_order_acq_rel) != 1)
		return;
	munmap(im->base, im->size);
	close(im->liveness_fd);
	pthread_mutex_destroy(&im->lock);
	free(im);
}

struct stream_importer *importer_new(struct stream_conn *c, import_release_fn release,
				     int fds[SHARE_FDS], struct mu_err *err)
{
	struct stream_importer *im;
	struct stat st;
	void *base = MAP_FAILED;
	int seals = fds[SHARE_FILE] < 0 ? -1 : fcntl(fds[SHARE_FILE], F_GET_SEALS);

	/* The seal prevents the other side from removing mapped pages. */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fds[SHARE_LIVENESS] < 0 ||
	    fstat(fds[SHARE_FILE], &st) || st.st_size <= 0) {
		mu_fail(err, MU_INVALID_ARGUMENT, "the shared memory is not a sealed memory file");
	} else {
		base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED | MAP_NORESERVE,
			    fds[SHARE_FILE], 0);
		if (base == MAP_FAILED)
			mu_fail_errno(err, errno, "cannot map the shared memory");
	}
	if (base == MAP_FAILED) {
		share_close(fds);
		return NULL;
	}
	im = MU_NEW(struct stream_importer);
	im->refs = 1;
	im->conn = c;
	im->release = release;
	im->base = base;
	im->size = (size_t)st.st_size;
	im->liveness_fd = fds[SHARE_LIVENESS];
	pthread_mutex_init(&im->lock, NULL);
	close(fds[SHARE_FILE]);
	fds[SHARE_FILE] = fds[SHARE_LIVENESS] = -1;
	return im;
}

void importer_end(struct stream_importer *im)
{
	if (!im)
		return;
	pthread_mutex_lock(&im->lock);
	im->conn = NULL;
	pthread_mutex_unlock(&im->lock);
	importer_unref(im);
}

static void release_import(struct mu_tbuf *t)
{
	struct import *import = t->owner;
	struct stream_importer *im = import->importer;

	pthread_mutex_lock(&im->lock);
	if (im->conn)
		im->release(im->conn, import->id, t->size);
	pthread_mutex_unlock(&im->lock);
	importer_unref(im);
	free(import);
	free(t);
}

int importer_map(struct stream_importer *im, struct mu_tensor *out, enum mu_dtype dtype,
		 const struct mu_shape *shape, const struct shm_handle *export, struct mu_err *err)
{
	size_t bytes = (size_t)shape->count * mu_dtype_size(dtype);
	struct import *import;

	if (!is_value_type(dtype) || export->offset % 64 || bytes > im->size ||
	    export->offset > im->size - bytes)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "an exported tensor is outside of the shared memory");
	import = MU_NEW(struct import);
	*import = (struct import){im, export->id};
	atomic_fetch_add_explicit(&im->refs, 1, memory_order_relaxed);
	mu_tensor_wrap(out, dtype, shape, im->base + export->offset, release_import, import);
	return 0;
}

/* ---- descriptor passing over a Unix socket ---- */

void share_close(int fds[SHARE_FDS])
{
	for (int i = 0; i < SHARE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

union control {
	char bytes[CMSG_SPACE(SHARE_FDS * sizeof(int))];
	struct cmsghdr align;
};

int share_send(int fd, struct mu_span bytes, const int fds[SHARE_FDS], struct mu_err *err)
{
	struct iovec iov = {(char *)(uintptr_t)bytes.data, bytes.len};
	union control control = {0};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(SHARE_FDS * sizeof(int));
	memcpy(CMSG_DATA(c), fds, SHARE_FDS * sizeof(int));
	if (sendmsg(fd, &m, MSG_NOSIGNAL) != (ssize_t)bytes.len)
		return mu_fail(err, MU_UNAVAILABLE, "cannot send HELLO on the stream");
	return 0;
}

ssize_t share_recv(int fd, void *to, size_t n, int fds[SHARE_FDS])
{
	struct iovec iov = {to, n};
	union control control = {0};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	ssize_t got = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);

	if (got < 0)
		return got;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int got_fd;

			memcpy(&got_fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (i < SHARE_FDS && fds[i] < 0)
				fds[i] = got_fd;
			else
				close(got_fd);
		}
	}
	return got;
}
