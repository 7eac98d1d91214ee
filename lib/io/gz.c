/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/gz.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/base/mem.h"

static int gz_read_all(gzFile file, struct mu_buf *out, const char *path, size_t limit,
		       struct mu_err *err)
{
	enum { CHUNK = 1 << 18 };
	size_t start = out->len;

	for (;;) {
		mu_buf_reserve(out, CHUNK);
		int n = gzread(file, out->data + out->len, CHUNK);
		if (n > 0)
			out->len += (size_t)n;
		if (out->len - start > limit)
			return mu_fail(err, MU_RESOURCE_EXHAUSTED,
				       "%s holds more than the %zu bytes allowed", path, limit);
		if (n == CHUNK)
			continue;
		int zerr;
		const char *message = gzerror(file, &zerr);
		if (zerr == Z_OK || zerr == Z_STREAM_END)
			return 0;
		if (zerr == Z_ERRNO)
			return mu_fail_errno(err, errno, "cannot read %s", path);
		return mu_fail(err, MU_DATA_LOSS, "%s: the gzip stream is broken at offset %zu: %s",
			       path, out->len - start, zerr == Z_BUF_ERROR ? "truncated" : message);
	}
}

/* For a relative path the error also names the current folder, because a manifest may be used from
 * another folder. */
static int fail_open(const char *path, int errnum, struct mu_err *err)
{
	MU_AUTO_FREE char *current_folder =
	    errnum == ENOENT && *path != '/' ? getcwd(NULL, 0) : NULL;

	return current_folder
		   ? mu_fail(err, MU_NOT_FOUND, "cannot read %s: %s; the current folder is %s",
			     path, strerror(errnum), current_folder)
		   : mu_fail_errno(err, errnum, "cannot read %s", path);
}

int mu_gz_read_file(struct mu_buf *out, const char *path, size_t limit, struct mu_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t start = out->len;

	if (fd < 0)
		return fail_open(path, errno, err);
	gzFile file = gzdopen(fd, "rb");
	if (!file) {
		close(fd);
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory to read %s", path);
	}
	gzbuffer(file, 1 << 17);
	int rc = gz_read_all(file, out, path, limit, err);
	gzclose(file);
	if (rc)
		out->len = start;
	if (out->data)
		out->data[out->len] = '\0';
	return rc;
}
