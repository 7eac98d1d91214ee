/* SPDX-License-Identifier: Apache-2.0 */
/* Only floating point is lent: a reader trusts the bytes no more than received ones, but it may
 * look at them twice, and values that are checked and then used as places in memory must not change
 * in between.
 *
 * A connection's end says nothing about who still looks: the other side may have put a borrowed
 * tensor into a variable.  So what is still lent then moves to the past, a list that is looked
 * through whenever a lender comes or goes; a life pipe whose other end is closed frees its loans.
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

struct loan {
	uint64_t id;
	struct mu_tensor tensor;
};
struct stream_lender {
	pthread_mutex_t lock; /* a leaf */
	struct mu_map loans;  /* id -> struct loan */
	uint64_t last_id;
	int life;
	struct stream_lender *next; /* in the past */
};

static pthread_mutex_t past_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream_lender *past;

/* ---- lending ---- */

static void end_loan(struct loan *l)
{
	atomic_fetch_sub_explicit(&l->tensor.buf->lent, 1, memory_order_release);
	mu_tensor_unref(&l->tensor);
	free(l);
}

static void drop(struct stream_lender *l)
{
	mu_map_each (&l->loans, s)
		end_loan(s->value);
	mu_map_fini(&l->loans);
	pthread_mutex_destroy(&l->lock);
	close(l->life);
	free(l);
}

static bool looked_at(const struct stream_lender *l)
{
	struct pollfd p = {.fd = l->life};

	return l->loans.count && poll(&p, 1, 0) == 0;
}

static void look_through_the_past(struct stream_lender *add)
{
	struct stream_lender *l, *keep = NULL, *next;

	pthread_mutex_lock(&past_lock);
	if (add) {
		add->next = past;
		past = add;
	}
	for (l = past; l; l = next) {
		next = l->next;
		if (looked_at(l)) {
			l->next = keep;
			keep = l;
		} else {
			drop(l);
		}
	}
	past = keep;
	pthread_mutex_unlock(&past_lock);
}

struct stream_lender *lender_new(int fds[SHARE_FDS])
{
	struct stream_lender *l;
	int ends[2];

	look_through_the_past(NULL);
	if (arena_fd() < 0 || pipe2(ends, O_CLOEXEC))
		return NULL;
	l = MU_NEW(struct stream_lender);
	pthread_mutex_init(&l->lock, NULL);
	mu_map_init(&l->loans);
	l->life = ends[0];
	fds[SHARE_FILE] = arena_fd();
	fds[SHARE_LIFE] = ends[1];
	return l;
}

void lender_free(struct stream_lender *l)
{
	if (l)
		look_through_the_past(l);
}

bool lender_can(const struct mu_tensor *t)
{
	uint64_t offset;

	return is_value_type(t->dtype) && mu_tensor_bytes(t) >= ARENA_MIN_BYTES && !t->buf->owner &&
	       t->data == t->buf->data && arena_offset(t->data, &offset);
}

struct stream_loan lender_lend(struct stream_lender *l, struct mu_tensor *t)
{
	struct loan *loan = MU_NEW(struct loan);
	struct stream_loan said = {0};

	arena_offset(t->data, &said.offset);
	atomic_fetch_add_explicit(&t->buf->lent, 1, memory_order_relaxed);
	loan->tensor = *t;
	*t = (struct mu_tensor){0};
	pthread_mutex_lock(&l->lock);
	said.id = loan->id = ++l->last_id;
	mu_map_put_n(&l->loans, &loan->id, sizeof(loan->id), loan);
	pthread_mutex_unlock(&l->lock);
	return said;
}

int lender_returned(struct stream_lender *l, struct mu_span ids, struct mu_err *err)
{
	for (; ids.len >= sizeof(uint64_t); ids.data += 8, ids.len -= 8) {
		struct loan *loan;
		uint64_t id;

		memcpy(&id, ids.data, sizeof(id));
		id = le64toh(id);
		pthread_mutex_lock(&l->lock);
		loan = mu_map_del_n(&l->loans, &id, sizeof(id));
		pthread_mutex_unlock(&l->lock);
		if (!loan)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "tensor %llu came back and was not lent",
				       (unsigned long long)id);
		end_loan(loan);
	}
	return 0;
}

size_t lender_lent(struct stream_lender *l)
{
	size_t n;

	pthread_mutex_lock(&l->lock);
	n = l->loans.count;
	pthread_mutex_unlock(&l->lock);
	return n;
}

/* ---- borrowing ---- */

struct stream_borrower {
	_Atomic unsigned refs;    /* the connection's and one for each tensor */
	pthread_mutex_t lock;     /* before the connection's */
	struct stream_conn *conn; /* NULL: gone */
	char *base;
	size_t size;
	int life;
};
struct borrowed {
	struct stream_borrower *from;
	uint64_t id;
};

static void borrower_unref(struct stream_borrower *b)
{
	if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	munmap(b->base, b->size);
	close(b->life);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

struct stream_borrower *borrower_new(struct stream_conn *c, int fds[SHARE_FDS], struct mu_err *err)
{
	struct stream_borrower *b;
	struct stat st;
	void *base = MAP_FAILED;
	int seals = fds[SHARE_FILE] < 0 ? -1 : fcntl(fds[SHARE_FILE], F_GET_SEALS);

	/* What cannot shrink cannot take its pages from under us. */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fds[SHARE_LIFE] < 0 ||
	    fstat(fds[SHARE_FILE], &st) || st.st_size <= 0) {
		mu_fail(err, MU_INVALID_ARGUMENT, "what it shows is not a sealed memory file");
	} else {
		base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED | MAP_NORESERVE,
			    fds[SHARE_FILE], 0);
		if (base == MAP_FAILED)
			mu_fail_errno(err, errno, "cannot map what it shows");
	}
	if (base == MAP_FAILED) {
		share_close(fds);
		return NULL;
	}
	b = MU_NEW(struct stream_borrower);
	b->refs = 1;
	b->conn = c;
	b->base = base;
	b->size = (size_t)st.st_size;
	b->life = fds[SHARE_LIFE];
	pthread_mutex_init(&b->lock, NULL);
	close(fds[SHARE_FILE]);
	fds[SHARE_FILE] = fds[SHARE_LIFE] = -1;
	return b;
}

void borrower_end(struct stream_borrower *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->conn = NULL;
	pthread_mutex_unlock(&b->lock);
	borrower_unref(b);
}

static void give_back(struct mu_tbuf *t)
{
	struct borrowed *l = t->owner;
	struct stream_borrower *b = l->from;

	pthread_mutex_lock(&b->lock);
	if (b->conn)
		stream_conn_return(b->conn, l->id, t->size);
	pthread_mutex_unlock(&b->lock);
	borrower_unref(b);
	free(l);
	free(t);
}

int borrower_take(struct stream_borrower *b, struct mu_tensor *out, enum mu_dtype dtype,
		  const struct mu_shape *shape, const struct stream_loan *loan, struct mu_err *err)
{
	size_t bytes = (size_t)shape->count * mu_dtype_size(dtype);
	struct borrowed *l;

	if (!is_value_type(dtype) || loan->offset % 64 || bytes > b->size ||
	    loan->offset > b->size - bytes)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "a tensor is lent that is not in the shared memory");
	l = MU_NEW(struct borrowed);
	*l = (struct borrowed){b, loan->id};
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
	mu_tensor_wrap(out, dtype, shape, b->base + loan->offset, give_back, l);
	return 0;
}

/* ---- descriptors along with bytes ---- */

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
		return mu_fail(err, MU_UNAVAILABLE, "the stream takes no greeting");
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
