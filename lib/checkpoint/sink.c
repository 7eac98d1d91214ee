/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of chunks between the caller, which fills and checksums the chunks, and a writer thread.
 * The thread starts with the first full chunk, so small files do not need it.
 *
 * Chunks bypass the page cache (O_DIRECT) if the file system supports it, because a checkpoint is
 * rarely read again.  A cached and synced write of 256 MiB takes three to five times as long on a
 * busy machine.  The bytes after the last full chunk are written through the cache.
 *
 * The lock guards `written` and `failed`.  The chunks from `written` to `filled` belong to the
 * thread, everything else to the caller. */
#include "lib/checkpoint/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/io/crc32c.h"

enum {
	CHUNK = 4 << 20, /* 1 MiB takes twice as long with one write in flight */
	CHUNKS = 4,
	ALIGN = 4096,
	PIECE = 32 << 10, /* copied, then checksummed while it is in the L1 cache */
};

struct mu_sink {
	char *path;
	int fd;
	char *chunk[CHUNKS];
	size_t fill;      /* bytes in the current chunk */
	uint64_t filled;  /* chunks passed to the thread */
	uint64_t written; /* chunks that the thread has written */
	int failed;       /* errno of the thread's first failure; 0: none */
	bool stopping, has_thread;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

int mu_sink_open(struct mu_sink **out, const char *path, struct mu_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		return mu_fail_errno(err, errno, "cannot write %s", path);
	struct mu_sink *s = MU_NEW(struct mu_sink);
	s->path = mu_xstrdup(path);
	s->fd = fd;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	*out = s;
	return 0;
}

uint64_t mu_sink_length(const struct mu_sink *s)
{
	return s->filled * CHUNK + s->fill;
}

static void set_direct(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0) /* on failure the page cache is used */
		(void)fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT);
}

/* Returns 0 or an errno. */
static int write_at(int fd, const char *data, size_t n, uint64_t offset)
{
	size_t done = 0;

	while (done < n) {
		ssize_t k = pwrite(fd, data + done, n - done, (off_t)(offset + done));
		if (k > 0) {
			done += (size_t)k;
			if (done % ALIGN) /* a short write, as on a nearly full disk */
				set_direct(fd, false);
			continue;
		}
		if (k == 0)
			return ENOSPC;
		if (errno == EINVAL && fcntl(fd, F_GETFL) & O_DIRECT)
			set_direct(fd, false); /* the file system needs another alignment */
		else if (errno != EINTR)
			return errno;
	}
	return 0;
}

static void *write_chunks(void *arg)
{
	struct mu_sink *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (s->written == s->filled && !s->stopping)
			pthread_cond_wait(&s->changed, &s->lock);
		if (s->written == s->filled || s->failed)
			break;
		uint64_t at = s->written;
		pthread_mutex_unlock(&s->lock);
		int errnum = write_at(s->fd, s->chunk[at % CHUNKS], CHUNK, at * CHUNK);
		/* with the page cache: start writeback at once */
		(void)sync_file_range(s->fd, (off_t)(at * CHUNK), CHUNK, SYNC_FILE_RANGE_WRITE);
		pthread_mutex_lock(&s->lock);
		s->failed = errnum;
		s->written++;
		pthread_cond_broadcast(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Passes the full chunk to the thread and waits until the next chunk is free. */
static int pass_chunk(struct mu_sink *s)
{
	int rc = 0;

	if (!s->has_thread) {
		set_direct(s->fd, true);
		if ((rc = pthread_create(&s->thread, NULL, write_chunks, s)))
			return rc;
		s->has_thread = true;
	}
	pthread_mutex_lock(&s->lock);
	s->filled++;
	s->fill = 0;
	pthread_cond_broadcast(&s->changed);
	while (s->filled - s->written == CHUNKS && !s->failed)
		pthread_cond_wait(&s->changed, &s->lock);
	rc = s->failed;
	pthread_mutex_unlock(&s->lock);
	return rc;
}

static int fail_write(const struct mu_sink *s, int errnum, struct mu_err *err)
{
	return mu_fail_errno(err, errnum, "cannot write %s", s->path);
}

int mu_sink_put(struct mu_sink *s, const void *data, size_t n, uint32_t *crc, struct mu_err *err)
{
	const char *from = data;

	while (n) {
		char **chunk = &s->chunk[s->filled % CHUNKS];
		if (!*chunk && !(*chunk = aligned_alloc(ALIGN, CHUNK)))
			return fail_write(s, ENOMEM, err);
		size_t k = CHUNK - s->fill < PIECE ? CHUNK - s->fill : PIECE;
		if (k > n)
			k = n;
		char *to = *chunk + s->fill;
		memcpy(to, from, k);
		*crc = mu_crc32c(*crc, to, k);
		s->fill += k;
		from += k;
		n -= k;
		int errnum = s->fill == CHUNK ? pass_chunk(s) : 0;
		if (errnum)
			return fail_write(s, errnum, err);
	}
	return 0;
}

/* Waits until the thread has written everything; returns 0 or an errno. */
static int end_thread(struct mu_sink *s)
{
	if (!s->has_thread)
		return 0;
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	s->has_thread = false;
	set_direct(s->fd, false);
	return s->failed;
}

int mu_sink_sync(struct mu_sink *s, struct mu_err *err)
{
	int errnum = end_thread(s);

	if (!errnum && s->fill)
		errnum = write_at(s->fd, s->chunk[s->filled % CHUNKS], s->fill, s->filled * CHUNK);
	if (!errnum && fsync(s->fd))
		errnum = errno;
	return errnum ? fail_write(s, errnum, err) : 0;
}

void mu_sink_free(struct mu_sink *s)
{
	if (!s)
		return;
	end_thread(s);
	close(s->fd);
	for (int i = 0; i < CHUNKS; i++)
		free(s->chunk[i]);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s->path);
	free(s);
}
