/* SPDX-License-Identifier: Apache-2.0 */
/* A FILE that writes its content compressed to another FILE. */
#include "lib/io/compress.h"

#include <errno.h>
#include <zlib.h>

#include "lib/base/mem.h"
#include "lib/io/decompress.h"

struct stream {
	FILE *file;
	z_stream z;
	unsigned char out[1 << 16];
};

/* Compresses the input of s->z.  Returns false if the file cannot be written. */
static bool deflate_input(struct stream *s, int flush)
{
	do {
		s->z.next_out = s->out;
		s->z.avail_out = sizeof s->out;
		deflate(&s->z, flush);
		size_t n = sizeof s->out - s->z.avail_out;
		if (fwrite(s->out, 1, n, s->file) != n)
			return false;
	} while (!s->z.avail_out);
	return true;
}

static ssize_t stream_write(void *cookie, const char *from, size_t n)
{
	struct stream *s = cookie;
	uInt n_bytes = n < INT32_MAX ? (uInt)n : INT32_MAX;

	s->z.next_in = (unsigned char *)from;
	s->z.avail_in = n_bytes;
	return deflate_input(s, Z_NO_FLUSH) ? (ssize_t)n_bytes : 0;
}

static int stream_close(void *cookie)
{
	struct stream *s = cookie;
	bool written = deflate_input(s, Z_FINISH);

	deflateEnd(&s->z);
	written = !fclose(s->file) && written;
	free(s);
	return written ? 0 : -1;
}

static FILE *create_stream(FILE *file, int window)
{
	enum { DEFAULT_MEMORY = 8 };
	static const cookie_io_functions_t io = {.write = stream_write, .close = stream_close};
	struct stream *s = MU_NEW(struct stream);
	FILE *f = NULL;

	s->file = file;
	if (deflateInit2(&s->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, DEFAULT_MEMORY,
			 Z_DEFAULT_STRATEGY) == Z_OK &&
	    !(f = fopencookie(s, "w", io)))
		deflateEnd(&s->z);
	if (!f)
		free(s);
	return f;
}

int mu_compress_create(FILE **out, const char *path, struct mu_span compression, struct mu_err *err)
{
	int window;

	MU_RETURN_IF_ERROR(mu_compression_window(compression, &window, err));
	FILE *file = fopen(path, "wbe");
	if (!file)
		return mu_fail_errno(err, errno, "cannot write %s", path);
	*out = window ? create_stream(file, window) : file;
	if (*out)
		return 0;
	fclose(file);
	return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory to write %s", path);
}
