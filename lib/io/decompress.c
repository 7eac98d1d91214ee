/* SPDX-License-Identifier: Apache-2.0 */
/* A FILE that decompresses another FILE, so that readers of lines, records or bytes need no extra
 * code.  Concatenated gzip members, as from `cat a.gz b.gz`, are supported. */
#include "lib/io/decompress.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/base/mem.h"

struct stream {
	FILE *file;
	z_stream z;
	off64_t output_bytes; /* decompressed bytes so far */
	bool in_member;       /* inside of a gzip member */
	unsigned char in[1 << 16];
};

/* Reads more input if all of it is consumed; false at the end of the file or on an error. */
static bool fill_input(struct stream *s)
{
	if (s->z.avail_in)
		return true;
	s->z.next_in = s->in;
	s->z.avail_in = (uInt)fread(s->in, 1, sizeof s->in, s->file);
	return s->z.avail_in > 0;
}

static ssize_t stream_read(void *cookie, char *to, size_t n)
{
	struct stream *s = cookie;
	uInt capacity = n < INT32_MAX ? (uInt)n : INT32_MAX;

	s->z.next_out = (unsigned char *)to;
	s->z.avail_out = capacity;
	for (;;) {
		int rc = inflate(&s->z, Z_NO_FLUSH); /* inflate may have buffered output */
		if (rc == Z_STREAM_END)
			inflateReset(&s->z);
		else if (rc != Z_OK && rc != Z_BUF_ERROR)
			break;
		if (rc != Z_BUF_ERROR)
			s->in_member = rc == Z_OK;
		if (s->z.avail_out < capacity) {
			s->output_bytes += capacity - s->z.avail_out;
			return capacity - s->z.avail_out;
		}
		if (!fill_input(s) && !s->in_member && !ferror(s->file))
			return 0;
		if (!s->z.avail_in)
			break;
	}
	errno = ferror(s->file) ? EIO : EBADMSG;
	return -1;
}

/* Supports only ftello. */
static int stream_seek(void *cookie, off64_t *offset, int whence)
{
	if (whence != SEEK_CUR || *offset) {
		errno = ESPIPE;
		return -1;
	}
	*offset = ((struct stream *)cookie)->output_bytes;
	return 0;
}

static int stream_close(void *cookie)
{
	struct stream *s = cookie;

	inflateEnd(&s->z);
	fclose(s->file);
	free(s);
	return 0;
}

/* zlib's windowBits: the window size and the kind of header. */
static const struct {
	const char *name;
	int window;
} formats[] = {{"GZIP", MAX_WBITS + 16}, {"ZLIB", MAX_WBITS}};

int mu_compression_window(struct mu_span compression, int *window, struct mu_err *err)
{
	*window = 0;
	for (unsigned i = 0; i < MU_COUNT(formats); i++)
		if (mu_span_eq(compression, mu_span_of(formats[i].name)))
			*window = formats[i].window;
	return *window || !compression.len
		   ? 0
		   : mu_fail(err, MU_INVALID_ARGUMENT, "Unsupported compression_type.");
}

static int open_stream(FILE *file, int window, FILE **out)
{
	static const cookie_io_functions_t io = {
	    .read = stream_read, .seek = stream_seek, .close = stream_close};
	struct stream *s = MU_NEW(struct stream);

	s->file = file;
	if (inflateInit2(&s->z, window) == Z_OK) {
		if ((*out = fopencookie(s, "r", io)))
			return 0;
		inflateEnd(&s->z);
	}
	free(s);
	return -1;
}

/* Opens only regular files: reading from a pipe or device could block forever. */
static FILE *open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return NULL;
	errno = 0;
	FILE *file = fstat(fd, &st) || !S_ISREG(st.st_mode) ? NULL : fdopen(fd, "rb");
	if (file)
		return file;
	int errnum = errno ? errno : S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	close(fd);
	errno = errnum;
	return NULL;
}

int mu_decompress_open(FILE **out, const char *path, struct mu_span compression, struct mu_err *err)
{
	int window;

	MU_RETURN_IF_ERROR(mu_compression_window(compression, &window, err));
	FILE *file = open_regular(path);
	if (!file)
		return mu_fail_errno(err, errno, "cannot read %s", path);
	if (window && open_stream(file, window, out)) {
		fclose(file);
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory to read %s", path);
	}
	if (!window)
		*out = file;
	return 0;
}

int mu_decompress_bytes(struct mu_buf *out, struct mu_span in, struct mu_span compression,
			size_t limit, struct mu_err *err)
{
	enum { CHUNK = 1 << 16 };
	z_stream z = {.next_in = (unsigned char *)in.data, .avail_in = (uInt)in.len};
	int window, rc = Z_OK;

	MU_RETURN_IF_ERROR(mu_compression_window(compression, &window, err));
	if (!window) {
		mu_buf_put(out, in.data, in.len);
		return 0;
	}
	if (in.len > INT32_MAX || inflateInit2(&z, window) != Z_OK)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "cannot decompress %zu bytes", in.len);
	size_t start = out->len;
	while (rc == Z_OK && out->len - start <= limit) {
		mu_buf_reserve(out, CHUNK);
		z.next_out = (unsigned char *)out->data + out->len;
		z.avail_out = CHUNK;
		rc = inflate(&z, Z_NO_FLUSH);
		out->len += CHUNK - z.avail_out;
		if (rc == Z_STREAM_END && window > MAX_WBITS && z.avail_in)
			rc = inflateReset(&z);
	}
	inflateEnd(&z);
	if (rc == Z_OK)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "the decompressed bytes exceed the limit of %zu", limit);
	return rc == Z_STREAM_END || rc == Z_BUF_ERROR
		   ? 0
		   : mu_fail(err, MU_DATA_LOSS, "inflate() failed with error %d", rc);
}
