/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/random.h"

void mu_buf_fini(struct mu_buf *b)
{
	free(b->data);
	*b = (struct mu_buf){0};
}

void mu_buf_clear(struct mu_buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

void mu_buf_reserve(struct mu_buf *b, size_t n)
{
	if (b->cap - b->len > n)
		return;
	size_t cap = b->cap ? b->cap * 2 : 64;
	if (cap < b->len + n + 1)
		cap = b->len + n + 1;
	b->data = mu_xrealloc(b->data, cap);
	b->cap = cap;
}

void mu_buf_put(struct mu_buf *b, const void *p, size_t n)
{
	mu_buf_reserve(b, n);
	if (n)
		memcpy(b->data + b->len, p, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void mu_buf_puts(struct mu_buf *b, const char *s)
{
	mu_buf_put(b, s, strlen(s));
}

void mu_buf_putc(struct mu_buf *b, char c)
{
	mu_buf_put(b, &c, 1);
}

void mu_buf_vprintf(struct mu_buf *b, const char *fmt, va_list ap)
{
	enum { TYPICAL_BYTES = 64 }; /* most texts are shorter: one vsnprintf is enough */
	va_list ap_copy;

	va_copy(ap_copy, ap);
	mu_buf_reserve(b, TYPICAL_BYTES);
	int n = vsnprintf(b->data + b->len, b->cap - b->len, fmt, ap);
	if (n > 0 && (size_t)n >= b->cap - b->len) {
		mu_buf_reserve(b, (size_t)n);
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap_copy);
	}
	b->len += n > 0 ? (size_t)n : 0;
	b->data[b->len] = 0;
	va_end(ap_copy);
}

void mu_buf_printf(struct mu_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	mu_buf_vprintf(b, fmt, ap);
	va_end(ap);
}

char *mu_buf_take(struct mu_buf *b)
{
	if (!b->data)
		mu_buf_put(b, "", 0);
	char *p = b->data;
	*b = (struct mu_buf){0};
	return p;
}

/* Reads the descriptor to its end and closes it. */
static int read_all(struct mu_buf *b, int fd, const char *path, size_t limit, struct mu_err *err)
{
	size_t start = b->len;
	int rc = 0;

	if (fd < 0)
		return mu_fail_errno(err, errno, "cannot read %s", path);
	for (;;) {
		mu_buf_reserve(b, 65536);
		ssize_t n = read(fd, b->data + b->len, 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = mu_fail_errno(err, errno, "cannot read %s", path);
		if (n <= 0)
			break;
		b->len += (size_t)n;
		if (b->len - start > limit) {
			rc = mu_fail(err, MU_RESOURCE_EXHAUSTED,
				     "%s is larger than the %zu bytes allowed", path, limit);
			break;
		}
	}
	close(fd);
	if (rc)
		b->len = start;
	b->data[b->len] = '\0';
	return rc;
}

int mu_buf_read_file(struct mu_buf *b, const char *path, size_t limit, struct mu_err *err)
{
	return read_all(b, open(path, O_RDONLY | O_CLOEXEC), path, limit, err);
}

int mu_buf_read_input(struct mu_buf *b, const char *path, size_t limit, struct mu_err *err)
{
	return strcmp(path, "-") == 0 ? read_all(b, dup(STDIN_FILENO), path, limit, err)
				      : mu_buf_read_file(b, path, limit, err);
}

static int write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t w = write(fd, p, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -1;
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

static void sync_parent_folder(const char *path)
{
	MU_AUTO_FREE char *copy = mu_xstrdup(path);
	int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
}

int mu_write_file(const char *path, const void *data, size_t len, struct mu_err *err)
{
	MU_AUTO_FREE char *tmp_path =
	    mu_xasprintf("%s.tmp%016llx", path, (unsigned long long)mu_random_u64());
	int fd = open(tmp_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		return mu_fail_errno(err, errno, "cannot write %s", path);
	int failed = write_all(fd, data, len) || fsync(fd);
	int errnum = errno;
	if (close(fd) && !failed) {
		failed = 1;
		errnum = errno;
	}
	if (!failed && rename(tmp_path, path)) {
		failed = 1;
		errnum = errno;
	}
	if (failed) {
		unlink(tmp_path);
		return mu_fail_errno(err, errnum, "cannot write %s", path);
	}
	sync_parent_folder(path);
	return 0;
}

int mu_write_unsynced(const char *path, const void *data, size_t len, struct mu_err *err)
{
	FILE *f = fopen(path, "wbe");
	bool ok;

	if (!f)
		return mu_fail_errno(err, errno, "%s", path);
	ok = fwrite(data, 1, len, f) == len;
	if (fclose(f) || !ok)
		return mu_fail_errno(err, errno, "%s", path);
	return 0;
}

bool mu_ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && strcmp(s + n - m, suffix) == 0;
}

struct mu_span mu_span_of(const char *s)
{
	return (struct mu_span){s, s ? strlen(s) : 0};
}

struct mu_span mu_buf_span(const struct mu_buf *b)
{
	return (struct mu_span){b->data, b->len};
}

bool mu_span_eq(struct mu_span a, struct mu_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

int mu_span_compare(struct mu_span a, struct mu_span b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int order = n ? memcmp(a.data, b.data, n) : 0;

	return order ? order : (a.len > b.len) - (a.len < b.len);
}

bool mu_span_is(struct mu_span a, const char *s)
{
	return mu_span_eq(a, mu_span_of(s));
}

int mu_word_index(const char *text, const char *const *words)
{
	for (int i = 0; text && words[i]; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	return -1;
}
