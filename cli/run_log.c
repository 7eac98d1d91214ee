/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"

/* The task continues without a log; logs that once. */
static void disable(struct run_log *l)
{
	mu_warn("run", "the log %s is disabled: %s", l->path, strerror(errno));
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

static void open_file(struct run_log *l)
{
	struct stat st;

	l->fd = open(l->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (l->fd < 0 || fstat(l->fd, &st))
		disable(l);
	else
		l->size = (size_t)st.st_size;
}

void run_log_open(struct run_log *l, const char *path, size_t limit)
{
	*l = (struct run_log){.path = mu_xstrdup(path), .limit = limit};
	open_file(l);
}

/* Starts a new file and keeps the old one as PATH.1. If the rename fails, truncates the file: free
 * disk space and the newest lines are more important. */
static void rotate(struct run_log *l)
{
	MU_AUTO_FREE char *older = mu_xasprintf("%s.1", l->path);

	if (rename(l->path, older) == 0) {
		close(l->fd);
		l->fd = -1;
		open_file(l);
	} else if (ftruncate(l->fd, 0) == 0) {
		l->size = 0;
	} else {
		disable(l);
	}
}

static void append(struct run_log *l, const char *data, size_t n)
{
	while (n && l->fd >= 0) {
		ssize_t done = write(l->fd, data, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0) {
			disable(l);
			return;
		}
		l->size += (size_t)done;
		l->in_line = done && data[done - 1] != '\n';
		data += done;
		n -= (size_t)done;
	}
}

/* Splits data at the end of a file. A file ends after the first newline in its last eighth, since
 * the data may end within a line. A line without an end there is cut. Returns 0 if the file may end
 * before data, n if all of data belongs to it. */
static size_t end_of_file(const struct run_log *l, const char *data, size_t n)
{
	size_t half = l->limit / 2, from = half - half / 8, free_bytes, skip;
	const char *end;

	if (!l->limit || l->size + n <= from)
		return n;
	if (l->size >= half || (l->size >= from && !l->in_line))
		return 0;
	free_bytes = half - l->size;
	skip = l->size < from ? from - l->size : 0;
	end = memchr(data + skip, '\n', (n < free_bytes ? n : free_bytes) - skip);
	if (end)
		return (size_t)(end - data) + 1;
	return n < free_bytes ? n : free_bytes;
}

void run_log_put(struct run_log *l, const char *data, size_t n)
{
	while (n && l->fd >= 0) {
		size_t take = end_of_file(l, data, n);

		append(l, data, take);
		data += take;
		n -= take;
		if (n && l->fd >= 0)
			rotate(l);
	}
}

void run_log_close(struct run_log *l)
{
	if (l->fd >= 0)
		close(l->fd);
	free(l->path);
	*l = (struct run_log){.fd = -1};
}
