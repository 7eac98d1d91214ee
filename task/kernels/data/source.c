/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that draw from none: tensors, their rows, numbers, the records and lines of files. */
#include <stdio.h>
#include <string.h>

#include "lib/io/tfrecord.h"
#include "task/kernels/data/dataset.h"
#include "task/kernels/elems.h"

/* ---- tensors ---- */

struct place {
	int64_t at;
};

static int check_components(struct dataset *d, struct mu_err *err)
{
	if (d->n_params != d->n_out || !d->n_out)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%u tensors for %u components",
			       d->n_params, d->n_out);
	return 0;
}

static int tensor_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	struct place *p = c->own;

	if (p->at++)
		return 0;
	for (unsigned i = 0; i < c->d->n_out; i++)
		out[i] = mu_tensor_ref(&c->d->params[i]);
	return 1;
}

static int check_slices(struct dataset *d, struct mu_err *err)
{
	int rc = check_components(d, err);

	for (unsigned i = 0; i < d->n_params && !rc; i++)
		if (d->params[i].shape.rank < 1 ||
		    d->params[i].shape.dim[0] != d->params[0].shape.dim[0])
			rc = mu_fail(err, MU_INVALID_ARGUMENT,
				     "All components must have the same size in the 0th dimension, "
				     "not %s and %s",
				     mu_shape_str(&d->params[0].shape),
				     mu_shape_str(&d->params[i].shape));
	return rc;
}

static int slice_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	struct place *p = c->own;
	int rc;

	if (p->at >= c->d->params[0].shape.dim[0])
		return 0;
	for (unsigned i = 0; i < c->d->n_out; i++) {
		const struct mu_tensor *t = &c->d->params[i];
		struct mu_shape s;
		if ((rc = mu_shape_set(&s, t->shape.rank - 1, t->shape.dim + 1, err)) ||
		    (rc = mu_tensor_new(&out[i], t->dtype, &s, err))) {
			element_drop(out, i);
			return rc;
		}
		elems_copy(t->dtype, out[i].data, 0, t->data, p->at * s.count, s.count);
	}
	p->at++;
	return 1;
}

/* ---- numbers ---- */

static int check_range(struct dataset *d, struct mu_err *err)
{
	if (d->n_out != 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "a range has one component");
	return dataset_number(d, 2)
		   ? 0
		   : mu_fail(err, MU_INVALID_ARGUMENT, "step must be a non-zero integer.");
}

static int range_open(struct cursor *c, struct mu_err *err)
{
	((struct place *)c->own)->at = dataset_number(c->d, 0);
	return 0;
}

static int range_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	int64_t stop = dataset_number(c->d, 1), step = dataset_number(c->d, 2);
	struct place *p = c->own;

	if (step > 0 ? p->at >= stop : p->at <= stop)
		return 0;
	int rc = mu_tensor_scalar(&out[0], MU_INT64, &p->at, err);
	if (__builtin_add_overflow(p->at, step, &p->at))
		p->at = stop;
	return rc ? rc : 1;
}

/* ---- files ---- */

struct files {
	int64_t at; /* the file in hand */
	struct mu_tfrecord_reader *records;
	FILE *lines;
	char *line;
	size_t room;
};

enum { FILE_NAMES, FILE_PACKING }; /* parameters */

static int check_files(struct dataset *d, struct mu_err *err)
{
	const struct mu_tensor *names = &d->params[FILE_NAMES], *packing = &d->params[FILE_PACKING];

	if (d->n_params < 2 || names->dtype != MU_STRING || names->shape.rank > 1)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "`filenames` must be a scalar or a vector.");
	if (packing->dtype != MU_STRING || packing->shape.count != 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "compression_type must be one string");
	if (MU_DATA(struct mu_string, packing)->len)
		return mu_fail(err, MU_UNIMPLEMENTED, "compressed input files are not read here");
	return 0;
}

static void files_close(struct cursor *c)
{
	struct files *f = c->own;

	mu_tfrecord_reader_free(f->records);
	if (f->lines)
		fclose(f->lines);
	free(f->line);
}

/* The next name, or NULL behind the last; to be freed. */
static char *next_name(struct cursor *c)
{
	const struct mu_tensor *names = &c->d->params[FILE_NAMES];
	struct files *f = c->own;

	if (f->at >= names->shape.count)
		return NULL;
	const struct mu_string *s = &MU_DATA(struct mu_string, names)[f->at++];
	return mu_xstrndup(s->data ? s->data : "", s->len);
}

static int record_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	struct files *f = c->own;
	struct mu_span record;

	for (;;) {
		int rc = f->records ? mu_tfrecord_next(f->records, &record, err) : 0;
		if (rc < 0)
			return rc;
		if (rc)
			return (rc = mu_tensor_string(&out[0], record.data, record.len, err)) ? rc
											      : 1;
		mu_tfrecord_reader_free(f->records);
		f->records = NULL;
		MU_AUTO_FREE char *name = next_name(c);
		if (!name)
			return 0;
		if ((rc = mu_tfrecord_open(&f->records, name, err)))
			return rc;
	}
}

static int line_next(struct cursor *c, struct mu_tensor *out, struct mu_err *err)
{
	struct files *f = c->own;

	for (;;) {
		ssize_t n = f->lines ? getline(&f->line, &f->room, f->lines) : -1;
		if (n >= 0) {
			n -= n && f->line[n - 1] == '\n';
			n -= n && f->line[n - 1] == '\r';
			int rc = mu_tensor_string(&out[0], f->line, (size_t)n, err);
			return rc ? rc : 1;
		}
		if (f->lines)
			fclose(f->lines);
		f->lines = NULL;
		MU_AUTO_FREE char *name = next_name(c);
		if (!name)
			return 0;
		if (!(f->lines = fopen(name, "re")))
			return mu_fail(err, MU_NOT_FOUND, "%s; No such file or directory", name);
	}
}

#define FILES .cursor_size = sizeof(struct files), .check = check_files, .close = files_close
const struct dataset_kind source_kinds[] = {
    {"TensorDataset", .cursor_size = sizeof(struct place), .check = check_components,
     .next = tensor_next},
    {"TensorSliceDataset", .cursor_size = sizeof(struct place), .check = check_slices,
     .next = slice_next},
    {"RangeDataset", .cursor_size = sizeof(struct place), .n_scalars = 3, .check = check_range,
     .open = range_open, .next = range_next},
    {"TFRecordDataset", FILES, .next = record_next},
    {"TFRecordDatasetV2", FILES, .next = record_next},
    {"TextLineDataset", FILES, .next = line_next},
    {.op = NULL},
};
