/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of the content of files (records, lines, blocks of a fixed size) and of file names.
 *
 * Files are read one after the other. An error ends its file; a pipeline that ignores errors
 * continues with the next file. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/io/decompress.h"
#include "lib/io/match_files.h"
#include "task/kernels/data/files.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/io/file_error.h"

enum { MAX_SIZE_PARAM = 1 << 30 }; /* of header_bytes, record_bytes, footer_bytes and buffer_size */

/* Parameters: the file names are the first; the compression type is the second or, for fixed-length
 * records, the last. */
enum { FILE_NAMES, FILE_COMPRESSION, N_FILE, FILE_OFFSETS };
enum { RECORD_HEADER = 1, RECORD_BYTES, RECORD_FOOTER, RECORD_BUFFER, RECORD_COMPRESSION };

int files_check(const struct dataset *d, unsigned compression, struct mu_err *err)
{
	const struct mu_tensor *names = &d->params[FILE_NAMES], *p = &d->params[compression];

	if (names->dtype != MU_STRING || names->shape.rank > 1)
		return mu_invalid(err, "`filenames` must be a scalar or a vector.");
	if (compression && (p->dtype != MU_STRING || p->shape.count != 1))
		return mu_invalid(err, "compression_type must be one string");
	return 0;
}

/* Checks a dataset whose items are one string each. */
static int check_items(const struct dataset *d, unsigned compression, struct mu_err *err)
{
	return d->n_out == 1 ? files_check(d, compression, err)
			     : mu_invalid(err, "%s has one component", d->op);
}

static int check_files(struct dataset *d, struct mu_err *err)
{
	if (d->n_params < N_FILE)
		return mu_invalid(err, "there are no names");
	if (d->n_params > FILE_OFFSETS && d->params[FILE_OFFSETS].shape.count)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "%s reads files from their start: leave out "
			       "byte_offsets",
			       d->op);
	return check_items(d, FILE_COMPRESSION, err);
}

static void end_file(struct files *f)
{
	if (f->records)
		mu_tfrecord_reader_free(f->records);
	else if (f->file)
		fclose(f->file);
	free(f->name);
	f->records = NULL;
	f->file = NULL;
	f->name = NULL;
}

void files_close(struct dataset_iterator *it)
{
	struct files *f = it->state;

	end_file(f);
	free(f->line);
	mu_buf_fini(&f->buffer);
}

/* Opens the next file.  Returns 1, or 0 after the last file.  If a file cannot be opened, the next
 * call tries it again, as in TensorFlow.  With ignore_errors, the next call opens the file after
 * it; TensorFlow would try the same file forever. */
static int files_next_file(struct dataset_iterator *it, unsigned compression, struct mu_err *err)
{
	const struct dataset *d = it->d;
	struct files *f = it->state;

	if (f->at >= d->params[FILE_NAMES].shape.count)
		return 0;
	struct mu_span s = elems_span(&d->params[FILE_NAMES], f->at);
	f->name = mu_xstrndup(s.data, s.len);
	int rc = mu_decompress_open(
	    &f->file, f->name,
	    compression ? elems_span(&d->params[compression], 0) : mu_span_of(""), err);
	f->at += !rc || it->caller->ignoring;
	if (!rc)
		return 1;
	file_error(rc, f->name, err);
	end_file(f);
	return rc;
}

int files_next(struct dataset_iterator *it, const struct file_format *k, unsigned compression,
	       struct mu_tensor *out, struct mu_err *err)
{
	struct files *f = it->state;
	int rc;

	do {
		if (!f->name) {
			if ((rc = files_next_file(it, compression, err)) <= 0)
				return rc;
			rc = k->begin ? k->begin(it, err) : 0;
			if (rc < 0)
				break;
		}
		if ((rc = k->item(it, out, err)) > 0)
			return rc;
		if (!rc)
			end_file(f);
	} while (!rc);
	end_file(f);
	return rc;
}

int files_fail_errno(const struct files *f, struct mu_err *err)
{
	return mu_fail_errno(err, errno, "cannot read %.150s", f->name);
}

/* Skips the first `at` bytes of a file that has just been opened. */
static int skip_to(struct files *f, int64_t at, struct mu_err *err)
{
	char skipped[1 << 16];

	if (fileno(f->file) >= 0)
		return fseeko(f->file, at, SEEK_SET) ? files_fail_errno(f, err) : 0;
	errno = 0;
	for (int64_t left = at - ftello(f->file), n; left > 0; left -= n) {
		n = left < (int64_t)sizeof skipped ? left : (int64_t)sizeof skipped;
		if (fread(skipped, 1, (size_t)n, f->file) < (size_t)n)
			return ferror(f->file) ? files_fail_errno(f, err)
					       : mu_fail(err, MU_DATA_LOSS,
							 "%.150s is shorter than it was", f->name);
	}
	return 0;
}

static int reopen_file(struct dataset_iterator *it, const struct file_format *k,
		       unsigned compression, int64_t at, struct mu_err *err)
{
	struct files *f = it->state;
	int rc;

	if (!f->at--)
		return serializer_fail(err);
	rc = files_next_file(it, compression, err);
	if (rc <= 0)
		return rc ? rc : serializer_fail(err);
	if ((k->begin && (rc = k->begin(it, err)) < 0) || (rc = skip_to(f, at, err)))
		return rc;
	if (f->records)
		mu_tfrecord_set_offset(f->records, (uint64_t)at);
	return 0;
}

int files_serialize(struct dataset_iterator *it, const struct file_format *k, unsigned compression,
		    struct serializer *ser, struct mu_err *err)
{
	struct files *f = it->state;
	bool is_open = f->name != NULL;
	int64_t at = is_open ? ftello(f->file) : 0;
	MU_AUTO_BUF saved_buffer = {0};
	int rc = serialize_number(ser, &f->at, 0, it->d->params[FILE_NAMES].shape.count, err);

	if (at < 0)
		return files_fail_errno(f, err);
	if (rc || (rc = serialize_flag(ser, &is_open, err)) || !is_open ||
	    (rc = serialize_number(ser, &at, 0, INT64_MAX, err)) ||
	    (rc = serialize_bytes(ser, serializer_is_reading(ser) ? &saved_buffer : &f->buffer,
				  err)) ||
	    !serializer_is_reading(ser))
		return rc;
	rc = reopen_file(it, k, compression, at, err);
	mu_buf_clear(&f->buffer);
	mu_buf_put(&f->buffer, saved_buffer.data, saved_buffer.len);
	return rc;
}

/* ---- records ---- */

static int begin_records(struct dataset_iterator *it, struct mu_err *err)
{
	struct files *f = it->state;

	f->records = mu_tfrecord_read(f->file, f->name);
	return 0;
}

static int record_item(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct files *f = it->state;
	struct mu_span record;
	int rc = mu_tfrecord_next_complete(f->records, &record, err);

	if (rc <= 0)
		return rc;
	return (rc = mu_tensor_string(out, record.data, record.len, err)) ? rc : 1;
}

static const struct file_format records = {begin_records, record_item};

static int record_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	return files_serialize(it, &records, FILE_COMPRESSION, ser, err);
}

static int record_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	return files_next(it, &records, FILE_COMPRESSION, out, err);
}

/* ---- lines ---- */

/* Removes every carriage return, as TensorFlow's dataset does; its readers and vocabularies remove
 * one at the end.  Returns the new length. */
static size_t remove_returns(char *line, size_t n)
{
	char *to = memchr(line, '\r', n);

	for (const char *from = to; from && from < line + n; from++)
		if (*from != '\r')
			*to++ = *from;
	return to ? (size_t)(to - line) : n;
}

static int line_item(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct files *f = it->state;

	errno = 0;
	ssize_t n = getline(&f->line, &f->line_cap, f->file);
	if (n < 0)
		return feof(f->file) ? 0 : files_fail_errno(f, err);
	n -= n && f->line[n - 1] == '\n';

	MU_RETURN_IF_ERROR(mu_tensor_string(out, f->line, remove_returns(f->line, (size_t)n), err));
	return 1;
}

static const struct file_format lines = {.item = line_item};

static int line_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	return files_serialize(it, &lines, FILE_COMPRESSION, ser, err);
}

static int line_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	return files_next(it, &lines, FILE_COMPRESSION, out, err);
}

/* ---- fixed-length records, between a header and a footer ---- */

static int64_t fixed_record_param(const struct dataset *d, unsigned i)
{
	return mu_tensor_int(&d->params[i], 0);
}

static unsigned fixed_record_compression(const struct dataset *d)
{
	return d->n_params > RECORD_COMPRESSION ? RECORD_COMPRESSION : 0;
}

static int check_fixed_records(struct dataset *d, struct mu_err *err)
{
	static const struct {
		const char *name;
		int64_t min;
	} numbers[] = {[RECORD_HEADER] = {"header_bytes", 0},
		       [RECORD_BYTES] = {"record_bytes", 1},
		       [RECORD_FOOTER] = {"footer_bytes", 0},
		       [RECORD_BUFFER] = {"buffer_size", 0}};

	if (d->n_params < RECORD_COMPRESSION)
		return mu_invalid(err, "%s lacks inputs", d->op);
	for (unsigned i = RECORD_HEADER; i < RECORD_COMPRESSION; i++) {
		const struct mu_tensor *t = &d->params[i];
		if (t->shape.count != 1 || t->dtype != MU_INT64)
			return mu_invalid(err, "`%s` must be one int64", numbers[i].name);
		if (fixed_record_param(d, i) < numbers[i].min ||
		    fixed_record_param(d, i) > MAX_SIZE_PARAM)
			return mu_invalid(err, "`%s` must be >= %lld and at most %d, not %lld",
					  numbers[i].name, (long long)numbers[i].min,
					  MAX_SIZE_PARAM, (long long)fixed_record_param(d, i));
	}
	return check_items(d, fixed_record_compression(d), err);
}

/* Appends n bytes of the file to the buffer; fewer only at the end of the file. */
static int read_to_buffer(struct files *f, int64_t n, struct mu_err *err)
{
	enum { CHUNK = 1 << 20 }; /* a large n does not allocate more than the file has */

	while (n > 0) {
		size_t want = n < CHUNK ? (size_t)n : CHUNK;
		mu_buf_reserve(&f->buffer, want);
		errno = 0;
		size_t got = fread(f->buffer.data + f->buffer.len, 1, want, f->file);
		f->buffer.len += got;
		n -= (int64_t)got;
		if (got < want)
			return ferror(f->file) ? files_fail_errno(f, err) : 0;
	}
	return 0;
}

static int fail_body_length(const struct dataset_iterator *it, long long body, struct mu_err *err)
{
	const struct files *f = it->state;

	return mu_invalid(err,
			  "Excluding the header (%lld bytes) and footer (%lld bytes), input file "
			  "\"%.80s\" has body length %lld bytes, which is not an exact multiple of "
			  "the record length (%lld bytes).",
			  (long long)fixed_record_param(it->d, RECORD_HEADER),
			  (long long)fixed_record_param(it->d, RECORD_FOOTER), f->name, body,
			  (long long)fixed_record_param(it->d, RECORD_BYTES));
}

static int begin_fixed_records(struct dataset_iterator *it, struct mu_err *err)
{
	int64_t header = fixed_record_param(it->d, RECORD_HEADER),
		footer = fixed_record_param(it->d, RECORD_FOOTER);
	struct files *f = it->state;
	struct stat st;

	mu_buf_clear(&f->buffer);
	if (fileno(f->file) >= 0 && !fstat(fileno(f->file), &st)) { /* it is not compressed */
		int64_t body = st.st_size - header - footer;
		if (body < 0 || body % fixed_record_param(it->d, RECORD_BYTES))
			return fail_body_length(it, body, err);
	}
	MU_RETURN_IF_ERROR(read_to_buffer(f, header, err));
	mu_buf_clear(&f->buffer);
	return read_to_buffer(f, footer, err);
}

static int fixed_record_item(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int64_t size = fixed_record_param(it->d, RECORD_BYTES),
		footer = fixed_record_param(it->d, RECORD_FOOTER);
	struct files *f = it->state;
	size_t before = f->buffer.len;

	MU_RETURN_IF_ERROR(read_to_buffer(f, size, err));
	if (f->buffer.len == before)
		return 0;
	if (f->buffer.len < (size_t)(size + footer))
		return fail_body_length(it, (long long)(f->buffer.len - before), err);
	MU_RETURN_IF_ERROR(mu_tensor_string(out, f->buffer.data, (size_t)size, err));
	memmove(f->buffer.data, f->buffer.data + size, (size_t)footer);
	f->buffer.len = (size_t)footer;
	return 1;
}

static const struct file_format fixed_records = {begin_fixed_records, fixed_record_item};

static int fixed_record_serialize(struct dataset_iterator *it, struct serializer *ser,
				  struct mu_err *err)
{
	return files_serialize(it, &fixed_records, fixed_record_compression(it->d), ser, err);
}

static int fixed_record_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	return files_next(it, &fixed_records, fixed_record_compression(it->d), out, err);
}

/* ---- names of matching files ---- */

struct matching_files {
	glob_t paths;
	size_t at;
};

static int check_patterns(struct dataset *d, struct mu_err *err)
{
	return d->n_params == 1 ? check_items(d, 0, err) : mu_invalid(err, "there are no patterns");
}

static int name_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_open(struct dataset_iterator *it, struct mu_err *err)
{
	const struct mu_tensor *patterns = &it->d->params[FILE_NAMES];
	struct matching_files *n = it->state;

	for (int64_t i = 0; i < patterns->shape.count; i++) {
		struct mu_span s = elems_span(patterns, i);
		MU_AUTO_FREE char *pattern = mu_xstrndup(s.data, s.len);
		MU_RETURN_IF_ERROR(mu_match_files(&n->paths, pattern, err));
	}
	if (n->paths.gl_pathc)
		qsort(n->paths.gl_pathv, n->paths.gl_pathc, sizeof(char *), name_order);
	return 0;
}

static void names_close(struct dataset_iterator *it)
{
	struct matching_files *n = it->state;

	globfree(&n->paths);
}

static int name_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct matching_files *n = it->state;

	if (!n->paths.gl_pathc)
		return mu_fail(err, MU_NOT_FOUND, "no file matches the patterns");
	if (n->at >= n->paths.gl_pathc)
		return 0;
	const char *name = n->paths.gl_pathv[n->at++];

	MU_RETURN_IF_ERROR(mu_tensor_string(out, name, strlen(name), err));
	return 1;
}

/* Saves the position and the last name.  If other files match when the state is restored, the
 * iterator continues after that name. */
static int names_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	struct matching_files *n = it->state;
	const char *last = n->at ? n->paths.gl_pathv[n->at - 1] : "";
	struct mu_buf name = {.data = (char *)last, .len = strlen(last)};
	MU_AUTO_BUF saved = {0};
	int64_t at = (int64_t)n->at;

	MU_RETURN_IF_ERROR(serialize_number(ser, &at, 0, INT64_MAX, err));
	MU_RETURN_IF_ERROR(serialize_bytes(ser, serializer_is_reading(ser) ? &saved : &name, err));
	if (!serializer_is_reading(ser))
		return 0;
	mu_buf_putc(&saved, '\0');
	if (at && (size_t)at <= n->paths.gl_pathc &&
	    !strcmp(n->paths.gl_pathv[at - 1], saved.data)) {
		n->at = (size_t)at;
		return 0;
	}
	while (n->at < n->paths.gl_pathc && strcmp(n->paths.gl_pathv[n->at], saved.data) <= 0)
		n->at++;
	return 0;
}

#define FILES   .state_size = sizeof(struct files), .close = files_close
#define RECORDS FILES, .check = check_files, .next = record_next, .serialize = record_serialize
#define FIXED_RECORDS                                                                              \
	FILES, .check = check_fixed_records, .next = fixed_record_next,                            \
	       .serialize = fixed_record_serialize
#define NAMES                                                                                      \
	.state_size = sizeof(struct matching_files), .check = check_patterns, .open = names_open,  \
	.next = name_next, .close = names_close, .serialize = names_serialize
static const struct dataset_kind rows[] = {
    {DATASET("TFRecordDataset TFRecordDatasetV2"), RECORDS},
    {DATASET("TextLineDataset"), FILES, .check = check_files, .next = line_next,
     .serialize = line_serialize},
    {DATASET("FixedLengthRecordDataset FixedLengthRecordDatasetV2"), FIXED_RECORDS},
    {DATASET("MatchingFilesDataset ExperimentalMatchingFilesDataset"), NAMES},
};
KERNEL_TABLE(data_files, rows)
