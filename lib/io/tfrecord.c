/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's buffer grows only as bytes arrive, so a wrong length does not cause an allocation
 * larger than the file. */
#include "lib/io/tfrecord.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "lib/io/crc32c.h"

struct mu_tfrecord_writer {
	FILE *file;
	char *path;
};

struct mu_tfrecord_reader {
	FILE *file;
	char *path;
	uint64_t offset, max;
	struct mu_buf buf;
};

int mu_tfrecord_create(struct mu_tfrecord_writer **out, const char *path, bool append,
		       struct mu_err *err)
{
	FILE *file = fopen(path, append ? "abe" : "wbe");

	if (!file)
		return mu_fail_errno(err, errno, "cannot write %s", path);
	*out = MU_NEW(struct mu_tfrecord_writer);
	(*out)->file = file;
	(*out)->path = mu_xstrdup(path);
	return 0;
}

static void encode_header(char header[MU_TFRECORD_HEADER], uint64_t len)
{
	memcpy(header, &len, 8);
	uint32_t crc = mu_crc32c_mask(mu_crc32c(0, header, 8));
	memcpy(header + 8, &crc, 4);
}

void mu_tfrecord_frame(struct mu_buf *out, struct mu_span record)
{
	char header[MU_TFRECORD_HEADER];
	uint32_t crc = mu_crc32c_mask(mu_crc32c(0, record.data, record.len));

	encode_header(header, record.len);
	mu_buf_put(out, header, sizeof header);
	mu_buf_put(out, record.data, record.len);
	mu_buf_put(out, &crc, sizeof crc);
}

int mu_tfrecord_write(struct mu_tfrecord_writer *w, struct mu_span record, struct mu_err *err)
{
	char header[MU_TFRECORD_HEADER];
	uint32_t crc = mu_crc32c_mask(mu_crc32c(0, record.data, record.len));

	encode_header(header, record.len);
	if (fwrite(header, 1, sizeof header, w->file) != sizeof header ||
	    fwrite(record.data, 1, record.len, w->file) != record.len ||
	    fwrite(&crc, 1, sizeof crc, w->file) != sizeof crc)
		return mu_fail_errno(err, errno, "cannot write %s", w->path);
	return 0;
}

int mu_tfrecord_flush(struct mu_tfrecord_writer *w, bool sync, struct mu_err *err)
{
	if (fflush(w->file) || (sync && fsync(fileno(w->file))))
		return mu_fail_errno(err, errno, "cannot write %s", w->path);
	return 0;
}

int mu_tfrecord_close(struct mu_tfrecord_writer *w, struct mu_err *err)
{
	int rc = 0;

	if (fclose(w->file))
		rc = mu_fail_errno(err, errno, "cannot write %s", w->path);
	free(w->path);
	free(w);
	return rc;
}

int mu_tfrecord_open(struct mu_tfrecord_reader **out, const char *path, struct mu_err *err)
{
	FILE *file = fopen(path, "rbe");

	if (!file)
		return mu_fail_errno(err, errno, "cannot read %s", path);
	*out = mu_tfrecord_read(file, path);
	return 0;
}

struct mu_tfrecord_reader *mu_tfrecord_read(FILE *file, const char *path)
{
	struct mu_tfrecord_reader *r = MU_NEW(struct mu_tfrecord_reader);

	r->file = file;
	r->path = mu_xstrdup(path);
	r->max = (uint64_t)1 << 30;
	return r;
}

/* Reads n more bytes into r->buf. */
static int read_more(struct mu_tfrecord_reader *r, uint64_t n, struct mu_err *err)
{
	enum { CHUNK = 1 << 20 };

	while (n) {
		size_t want = n < CHUNK ? (size_t)n : CHUNK;
		mu_buf_reserve(&r->buf, want);
		size_t n_read = fread(r->buf.data + r->buf.len, 1, want, r->file);
		r->buf.len += n_read;
		n -= n_read;
		if (n_read == want)
			continue;
		if (ferror(r->file))
			return mu_fail_errno(err, errno, "cannot read %s", r->path);
		return mu_fail(err, MU_OUT_OF_RANGE,
			       "%s: the record at offset %" PRIu64 " is truncated: %" PRIu64
			       " bytes are missing",
			       r->path, r->offset, n);
	}
	return 0;
}

static bool checksum_matches(const char *p, size_t n, const char *stored)
{
	uint32_t want;

	memcpy(&want, stored, 4);
	return mu_crc32c_mask(mu_crc32c(0, p, n)) == want;
}

/* Reads the header of a record into r->buf, and its length. */
static int tfrecord_read_header(struct mu_tfrecord_reader *r, uint64_t *out, struct mu_err *err)
{
	uint64_t len;
	int rc = read_more(r, MU_TFRECORD_HEADER, err);

	if (rc)
		return rc;
	memcpy(&len, r->buf.data, 8);
	if (!checksum_matches(r->buf.data, 8, r->buf.data + 8))
		return mu_fail(
		    err, MU_DATA_LOSS,
		    "%s: the length of the record at offset %" PRIu64
		    " does not match its checksum%s",
		    r->path, r->offset,
		    r->offset ? "" : ": the file is not a TFRecord file, or it is compressed");
	if (len > r->max)
		return mu_fail(err, MU_DATA_LOSS,
			       "%s: the record at offset %" PRIu64 " has %" PRIu64
			       " bytes, more than the %" PRIu64 " allowed",
			       r->path, r->offset, len, r->max);
	*out = len;
	return 0;
}

static int read_frame(struct mu_tfrecord_reader *r, struct mu_err *err)
{
	uint64_t len;
	int rc = tfrecord_read_header(r, &len, err);

	if (rc)
		return rc;
	rc = read_more(r, len + MU_TFRECORD_FOOTER, err);
	if (rc)
		return rc;
	const char *data = r->buf.data + MU_TFRECORD_HEADER;
	if (!checksum_matches(data, len, data + len))
		return mu_fail(err, MU_DATA_LOSS,
			       "%s: the record at offset %" PRIu64 " does not match its checksum",
			       r->path, r->offset);
	return 1;
}

int mu_tfrecord_next(struct mu_tfrecord_reader *r, struct mu_span *record, struct mu_err *err)
{
	mu_buf_clear(&r->buf);
	clearerr(r->file);
	int c = getc(r->file);
	if (c == EOF)
		return ferror(r->file) ? mu_fail_errno(err, errno, "cannot read %s", r->path) : 0;
	ungetc(c, r->file);
	int rc = read_frame(r, err);
	if (rc < 0) {
		fseeko(r->file, (off_t)r->offset,
		       SEEK_SET); /* ignores the error on streams that are not seekable */
		return rc;
	}
	*record = (struct mu_span){r->buf.data + MU_TFRECORD_HEADER,
				   r->buf.len - MU_TFRECORD_HEADER - MU_TFRECORD_FOOTER};
	r->offset += r->buf.len;
	return 1;
}

int mu_tfrecord_next_complete(struct mu_tfrecord_reader *r, struct mu_span *record,
			      struct mu_err *err)
{
	int rc = mu_tfrecord_next(r, record, err);

	if (rc != -MU_OUT_OF_RANGE)
		return rc;
	if (err)
		err->code = MU_DATA_LOSS;
	return -MU_DATA_LOSS;
}

int mu_tfrecord_skip(struct mu_tfrecord_reader *r, struct mu_err *err)
{
	uint64_t len;
	int rc;

	mu_buf_clear(&r->buf);
	clearerr(r->file);
	rc = tfrecord_read_header(r, &len, err);
	if (!rc)
		rc = read_more(r, len + MU_TFRECORD_FOOTER, err);
	if (!rc)
		r->offset += r->buf.len;
	else
		fseeko(r->file, (off_t)r->offset, SEEK_SET);
	return rc;
}

void mu_tfrecord_set_offset(struct mu_tfrecord_reader *r, uint64_t offset)
{
	r->offset = offset;
}

uint64_t mu_tfrecord_offset(const struct mu_tfrecord_reader *r)
{
	return r->offset;
}

void mu_tfrecord_reader_free(struct mu_tfrecord_reader *r)
{
	if (!r)
		return;
	fclose(r->file);
	free(r->path);
	mu_buf_fini(&r->buf);
	free(r);
}
