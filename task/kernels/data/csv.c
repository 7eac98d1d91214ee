/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of the records in CSV files. A record is a line, except for line ends within quotes. An
 * error skips only its record. */
#include <errno.h>
#include <string.h>

#include "task/kernels/data/files.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/io/csv_fields.h"

enum { MAX_RECORD_BYTES = 1 << 30 };
/* Parameters.  CSVDatasetV2 has exclude_cols after the defaults. */
enum { NAMES, COMPRESSION, BUFFER, HEADER, DELIM, QUOTES, NA, SELECT, DEFAULTS };

struct records {
	struct files files; /* first: files.c uses the iterator's state as a struct files */
	struct csv_fields fields;
};

/* ---- attributes and inputs ---- */

static int check_scalar(const struct dataset *d, unsigned i, enum mu_dtype t, const char *name,
			struct mu_err *err)
{
	const struct mu_tensor *p = &d->params[i];

	return p->dtype == t && p->shape.count == 1
		   ? 0
		   : mu_invalid(err, "%s must be one %s", name, mu_dtype_name(t));
}

static int read_select(struct csv_columns *k, const struct mu_tensor *t, struct mu_err *err)
{
	if (t->dtype != MU_INT64 || t->shape.rank != 1 || t->shape.count > CSV_MAX_COLUMNS)
		return mu_invalid(
		    err, "columns must be a vector of at most %d int64, not %s of shape %s",
		    CSV_MAX_COLUMNS, mu_dtype_name(t->dtype), mu_shape_str(&t->shape));
	k->n_select = (int)t->shape.count;
	memcpy(k->select, t->data, (size_t)k->n_select * sizeof *k->select);
	return csv_check_columns(k, err);
}

static int check_defaults(const struct dataset *d, const struct csv_columns *k, struct mu_err *err)
{
	for (unsigned i = 0; i < d->n_out; i++) {
		const struct mu_tensor *t = &d->params[DEFAULTS + i];
		if (t->shape.rank > 1 || t->shape.count > 1)
			return mu_invalid(
			    err, "There should only be 1 default per field but field %u has %lld",
			    i, (long long)t->shape.count);
		if (t->dtype != MU_FLOAT && t->dtype != MU_DOUBLE && t->dtype != MU_INT32 &&
		    t->dtype != MU_INT64 && t->dtype != MU_STRING)
			return mu_invalid(err, "no field is read as %s", mu_dtype_name(t->dtype));
	}
	return k->n_select && !k->exclude && (unsigned)k->n_select != d->n_out
		   ? mu_invalid(err, "select_cols should match output size")
		   : 0;
}

static int check_csv(struct dataset *d, struct mu_err *err)
{
	struct csv_columns *k = d->shared;
	unsigned end = DEFAULTS + d->n_out;

	if (d->n_params != end && d->n_params != end + 1)
		return mu_invalid(err, "%s: %u inputs for %u columns", d->op, d->n_params,
				  d->n_out);
	MU_RETURN_IF_ERROR(files_check(d, COMPRESSION, err));
	MU_RETURN_IF_ERROR(check_scalar(d, BUFFER, MU_INT64, "buffer_size", err));
	if (*MU_DATA(int64_t, &d->params[BUFFER]) <= 0)
		return mu_invalid(err, "buffer_size should be positive");
	MU_RETURN_IF_ERROR(check_scalar(d, HEADER, MU_BOOL, "header", err));
	MU_RETURN_IF_ERROR(check_scalar(d, DELIM, MU_STRING, "field_delim", err));
	MU_RETURN_IF_ERROR(check_scalar(d, QUOTES, MU_BOOL, "use_quote_delim", err));
	MU_RETURN_IF_ERROR(check_scalar(d, NA, MU_STRING, "na_value", err));
	MU_RETURN_IF_ERROR(read_select(k, &d->params[SELECT], err));
	if (d->n_params > end && d->params[end].shape.count) {
		if (k->n_select)
			return mu_invalid(err,
					  "Either select_cols or exclude_cols should be empty");
		k->exclude = true;
		MU_RETURN_IF_ERROR(read_select(k, &d->params[end], err));
	}
	struct mu_span delim = elems_span(&d->params[DELIM], 0);
	if (delim.len != 1)
		return mu_invalid(err, "field_delim should be only 1 char");
	k->dataset = true;
	k->max_fields = d->n_out;
	k->delim = *delim.data;
	k->quotes = MU_DATA(bool, &d->params[QUOTES])[0];
	k->na = elems_span(&d->params[NA], 0);
	return check_defaults(d, k, err);
}

/* ---- reading ---- */

/* Reads the next record to the buffer, without its line end.  Returns 1, or 0 at the end of the
 * file. */
static int csv_next_record(struct files *f, const struct csv_columns *k, struct mu_err *err)
{
	bool at_field_start = true, in_quotes = false;
	bool quote_closed = false; /* unless the next character is another quote */
	int ch;

	mu_buf_clear(&f->buffer);
	errno = 0;
	flockfile(f->file);
	while ((ch = getc_unlocked(f->file)) != EOF && f->buffer.len < MAX_RECORD_BYTES) {
		bool is_separator = ch == k->delim || ch == '\n' || ch == '\r';

		if (quote_closed && is_separator)
			in_quotes = false;
		if (!in_quotes && is_separator && ch != k->delim)
			break;
		mu_buf_putc(&f->buffer, (char)ch);
		quote_closed = in_quotes && !quote_closed && ch == '"';
		in_quotes = in_quotes || (at_field_start && k->quotes && ch == '"');
		at_field_start = ch == k->delim && !in_quotes;
	}
	int next = ch == '\r' ? getc_unlocked(f->file) : EOF;
	if (next != '\n' && next != EOF)
		ungetc(next, f->file);
	funlockfile(f->file);
	if (ferror(f->file))
		return files_fail_errno(f, err);
	if (f->buffer.len >= MAX_RECORD_BYTES)
		return mu_invalid(err, "a record is longer than %d bytes", MAX_RECORD_BYTES);
	return ch != EOF || f->buffer.len;
}

static int begin_file(struct dataset_iterator *it, struct mu_err *err)
{
	int rc = 1;

	if (*MU_DATA(bool, &it->d->params[HEADER]))
		rc = csv_next_record(it->state, it->d->shared, err);
	if (rc == 0)
		return mu_invalid(err, "Can't read header of file");
	return rc < 0 ? rc : 0;
}

static int output_record(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	const struct mu_shape scalar = mu_shape_scalar();
	const struct csv_columns *k = it->d->shared;
	struct records *r = it->state;
	unsigned n = 0;
	int rc = 0;

	MU_RETURN_IF_ERROR(csv_split(mu_buf_span(&r->files.buffer), k, &r->fields, err));
	if (r->fields.n != it->d->n_out)
		return mu_invalid(err, "Expect %u fields but have %u in record", it->d->n_out,
				  r->fields.n);
	for (; n < it->d->n_out && !rc; n++) {
		const struct mu_tensor *default_value = &it->d->params[DEFAULTS + n];
		if ((rc = mu_tensor_new(&out[n], default_value->dtype, &scalar, err)))
			break;
		rc = csv_store(&r->fields, k, n, default_value, &out[n], 0, err);
	}
	if (rc)
		element_drop(out, n);
	return rc ? rc : 1;
}

static int csv_item(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	return csv_next_record(it->state, it->d->shared, err);
}

static const struct file_format csv = {begin_file, csv_item};

static int csv_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	return files_serialize(it, &csv, COMPRESSION, ser, err);
}

/* After a malformed record, the next call reads the record after it in the same file. */
static int csv_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int rc = files_next(it, &csv, COMPRESSION, out, err);

	return rc > 0 ? output_record(it, out, err) : rc;
}

static void csv_close(struct dataset_iterator *it)
{
	csv_fields_fini(&((struct records *)it->state)->fields);
	files_close(it);
}

#define CSV                                                                                        \
	.shared_size = sizeof(struct csv_columns), .state_size = sizeof(struct records),           \
	.check = check_csv, .next = csv_next, .close = csv_close, .serialize = csv_serialize
static const struct dataset_kind rows[] = {
    {DATASET("CSVDataset CSVDatasetV2 ExperimentalCSVDataset"), CSV},
};
KERNEL_TABLE(data_csv, rows)
