/* SPDX-License-Identifier: Apache-2.0 */
/* A FILE whose reads inflate those of another one, so that whoever reads lines, records or bytes
 * need not know.  Members of gzip may follow each other, as `cat a.gz b.gz` leaves them. */
#include "lib/io/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/base/mem.h"

struct stream {
	FILE *file;
	z_stream z;
	off64_t given; /* bytes so far */
	bool within;   /* a member has begun and not ended */
	unsigned char in[1 << 16];
};

/* More of the file, when all is used up; false at its end or when it cannot be read. */
static bool feed(struct stream *s)
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
	uInt room = n < INT32_MAX ? (uInt)n : INT32_MAX;

	s->z.next_out = (unsigned char *)to;
	s->z.avail_out = room;
	for (;;) {
		int rc =
		    inflate(&s->z, Z_NO_FLUSH); /* it may hold more than it has been asked for */
		if (rc == Z_STREAM_END)
			inflateReset(&s->z);
		else if (rc != Z_OK && rc != Z_BUF_ERROR)
			break;
		if (rc != Z_BUF_ERROR)
			s->within = rc == Z_OK;
		if (s->z.avail_out < room) {
			s->given += room - s->z.avail_out;
			return room - s->z.avail_out;
		}
		if (!feed(s) && !s->within && !ferror(s->file))
			return 0;
		if (!s->z.avail_in)
			break;
	}
	errno = ferror(s->file) ? EIO : EBADMSG;
	return -1;
}

/* Only tells where it is. */
static int stream_seek(void *cookie, off64_t *offset, int whence)
{
	if (whence != SEEK_CUR || *offset) {
		errno = ESPIPE;
		return -1;
	}
	*offset = ((struct stream *)cookie)->given;
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

/* What the bits of zlib's window say besides its size: which header there is. */
static const struct {
	const char *name;
	int window;
} packings[] = {{"GZIP", MAX_WBITS + 16}, {"ZLIB", MAX_WBITS}};

static int unpacked(FILE *file, int window, FILE **out)
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

/* A pipe or a device could keep its reader for ever. */
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
	int why = errno ? errno : S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	close(fd);
	errno = why;
	return NULL;
}

int mu_unpack_open(FILE **out, const char *path, struct mu_span packing, struct mu_err *err)
{
	int window = 0;

	for (unsigned i = 0; i < MU_COUNT(packings); i++)
		if (mu_span_eq(packing, mu_span_of(packings[i].name)))
			window = packings[i].window;
	if (packing.len && !window)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Unsupported compression_type.");
	FILE *file = open_regular(path);
	if (!file)
		return mu_fail_errno(err, errno, "cannot read %s", path);
	if (window && unpacked(file, window, out)) {
		fclose(file);
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory to read %s", path);
	}
	if (!window)
		*out = file;
	return 0;
}
