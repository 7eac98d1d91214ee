/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets from record files: TFRecord files of tf.Example, and CIFAR-10's binary files.
 *
 * A pattern may match several files, which are read in the order of their names. The message about
 * a bad record names file and offset. A bad record is an error, or is skipped with skip_bad. After
 * a record whose length is corrupt the rest of the file is skipped, because the next record cannot
 * be found.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "client/data/dataset.h"
#include "client/data/shuffle.h"
#include "lib/base/log.h"
#include "lib/base/pb.h"
#include "lib/io/match_files.h"
#include "lib/io/tfrecord.h"

enum {
	CIFAR_SIDE = 32,
	CIFAR_PIXELS = CIFAR_SIDE * CIFAR_SIDE,
	CIFAR_RECORD = 1 + 3 * CIFAR_PIXELS,
	MAX_FEATURES = 1 << 24,
};

/* Rows read so far; the total is unknown until the end. */
struct rows {
	const struct mu_records *o;
	struct mu_buf x;        /* float */
	struct mu_buf y;        /* double: labels, not checked yet */
	int64_t features, rows; /* features: as in the first row */
	int64_t skipped;
};

/* Returns 0 if the record is to be skipped, else rc. err has the reason. */
static int bad_record(struct rows *r, int rc, struct mu_err *err)
{
	if (!r->o->skip_bad)
		return rc;
	r->skipped++;
	mu_warn("data", "skipped bad record: %s", err->msg);
	return 0;
}

static int add_row(struct rows *r, struct mu_span x, double label, const char *path, uint64_t at,
		   struct mu_err *err)
{
	int64_t n = (int64_t)(x.len / sizeof(float));

	if (!n || (r->features && n != r->features))
		return mu_fail(err, MU_DATA_LOSS, "%s: offset %llu: %lld features, expected %s%lld",
			       path, (unsigned long long)at, (long long)n,
			       r->features ? "" : "at least ",
			       (long long)(r->features ? r->features : 1));
	if (!dataset_is_class(label))
		return mu_fail(err, MU_DATA_LOSS,
			       "%s: offset %llu: label %g is not a class number (0, 1, 2, …)", path,
			       (unsigned long long)at, label);
	r->features = n;
	r->rows++;
	mu_buf_put(&r->x, x.data, x.len);
	mu_buf_put(&r->y, &label, sizeof(label));
	return 0;
}

/* ---- tf.Example ---- */

static void append_float(struct mu_buf *out, float v)
{
	if (out->len < MAX_FEATURES * sizeof(float))
		mu_buf_put(out, &v, sizeof(v));
}

/* Appends the numbers of one list entry of a Feature. Kind 1 is bytes (each byte is a number), 2
 * floats, 3 integers. An entry holds one number or several packed ones. */
static bool entry_numbers(uint32_t kind, const struct mu_pb_field *f, struct mu_buf *out)
{
	struct mu_pb packed = mu_pb_of(f->bytes);
	uint32_t bits;
	uint64_t whole;
	float x;

	if (f->type == MU_PB_FIXED32)
		append_float(out, mu_pb_float(f));
	else if (f->type == MU_PB_VARINT)
		append_float(out, (float)(int64_t)f->value);
	else if (kind == 1)
		for (size_t i = 0; i < f->bytes.len; i++)
			append_float(out, (float)(unsigned char)f->bytes.data[i]);
	else if (kind == 2)
		while (packed.at < packed.end && mu_pb_fixed32(&packed, &bits)) {
			memcpy(&x, &bits, sizeof(x));
			append_float(out, x);
		}
	else
		while (packed.at < packed.end && mu_pb_varint(&packed, &whole))
			append_float(out, (float)(int64_t)whole);
	return !packed.bad && out->len < MAX_FEATURES * sizeof(float);
}

static bool feature_numbers(struct mu_span feature, struct mu_buf *out)
{
	struct mu_pb m = mu_pb_of(feature), list;
	struct mu_pb_field kind, f;

	while (mu_pb_next(&m, &kind)) {
		if (kind.type != MU_PB_BYTES || kind.number < 1 || kind.number > 3)
			continue;
		list = mu_pb_of(kind.bytes);
		while (mu_pb_next(&list, &f))
			if (f.number == 1 && !entry_numbers(kind.number, &f, out))
				return false;
		if (list.bad)
			return false;
	}
	return !m.bad;
}

/* Writes the numbers of the feature `name` of an Example to *out. Field 1 of an Example is a map
 * from names to features; if it has the name twice, the last one counts, as in TensorFlow. */
static bool find_feature(struct mu_span example, const char *name, struct mu_buf *out)
{
	struct mu_pb m = mu_pb_of(example), map, entry;
	struct mu_pb_field features, e, f;
	bool found = false;

	while (mu_pb_next(&m, &features)) {
		if (features.number != 1 || features.type != MU_PB_BYTES)
			continue;
		map = mu_pb_of(features.bytes);
		while (mu_pb_next(&map, &e)) {
			struct mu_span key = {0}, value = {0};

			if (e.number != 1 || e.type != MU_PB_BYTES)
				continue;
			entry = mu_pb_of(e.bytes);
			while (mu_pb_next(&entry, &f))
				if (f.type == MU_PB_BYTES)
					*(f.number == 1 ? &key : &value) = f.bytes;
			if (entry.bad || !mu_span_is(key, name))
				continue;
			mu_buf_clear(out);
			found = feature_numbers(value, out);
		}
		if (map.bad)
			return false;
	}
	return found && !m.bad;
}

static int add_example(struct rows *r, struct mu_span record, const char *path, uint64_t at,
		       struct mu_buf *x, struct mu_buf *y, struct mu_err *err)
{
	mu_buf_clear(x);
	mu_buf_clear(y);
	if (!find_feature(record, r->o->feature, x) || !find_feature(record, r->o->label, y) ||
	    y->len != sizeof(float))
		return mu_fail(err, MU_DATA_LOSS,
			       "%s: offset %llu: not a tf.Example with numbers in '%s' and one in "
			       "'%s'",
			       path, (unsigned long long)at, r->o->feature, r->o->label);
	return add_row(r, mu_buf_span(x), (double)*(float *)(void *)y->data, path, at, err);
}

static int read_tfrecord(struct rows *r, const char *path, struct mu_err *err)
{
	MU_AUTO(mu_tfrecord_reader_free) struct mu_tfrecord_reader *f = NULL;
	MU_AUTO_BUF x = {0};
	MU_AUTO_BUF y = {0};
	int rc = mu_tfrecord_open(&f, path, err);

	while (!rc) {
		uint64_t at = mu_tfrecord_offset(f);
		struct mu_span record;
		int n_records = mu_tfrecord_next(f, &record, err);

		if (n_records == 0)
			break;
		rc = n_records < 0 ? n_records : add_example(r, record, path, at, &x, &y, err);
		if (!rc)
			continue;
		rc = bad_record(r, rc, err);
		if (!rc && n_records < 0 && mu_tfrecord_skip(f, NULL))
			break;
	}
	return rc;
}

/* ---- CIFAR-10 ---- */

/* A record is a label and three planes (red, green, blue) of 32 x 32. The rows of the data set have
 * the channel last. */
static int add_cifar(struct rows *r, const unsigned char *record, const char *path, uint64_t at,
		     struct mu_err *err)
{
	float x[3 * CIFAR_PIXELS];

	for (int c = 0; c < 3; c++)
		for (int i = 0; i < CIFAR_PIXELS; i++)
			x[3 * i + c] = (float)record[1 + c * CIFAR_PIXELS + i];
	if (record[0] > 9)
		return mu_fail(err, MU_DATA_LOSS, "%s: offset %llu: label %d, expected 0 to 9",
			       path, (unsigned long long)at, record[0]);
	return add_row(r, (struct mu_span){(const char *)x, sizeof(x)}, record[0], path, at, err);
}

static int read_cifar(struct rows *r, const char *path, struct mu_err *err)
{
	unsigned char record[CIFAR_RECORD];
	FILE *f = fopen(path, "rb");
	uint64_t at = 0;
	int rc = f ? 0 : mu_fail_errno(err, errno, "cannot open %s", path);

	while (!rc) {
		size_t n = fread(record, 1, sizeof(record), f);

		if (n == 0 && !ferror(f))
			break;
		rc = n == sizeof(record)
			 ? add_cifar(r, record, path, at, err)
			 : mu_fail(err, MU_DATA_LOSS,
				   "%s: offset %llu: a record of %zu bytes, expected %d", path,
				   (unsigned long long)at, n, CIFAR_RECORD);
		if (rc)
			rc = bad_record(r, rc, err);
		if (n != sizeof(record))
			break;
		at += n;
	}
	if (f)
		fclose(f);
	return rc;
}

/* ---- common ---- */

static int rows_to_dataset(struct rows *r, struct mu_dataset *out, struct mu_err *err)
{
	const float *x = (const float *)(const void *)r->x.data;
	const double *y = (const double *)(const void *)r->y.data;
	double scale = r->o->scale;
	struct mu_dataset d;
	int rc;

	if (!r->rows)
		return mu_fail(err, MU_OUT_OF_RANGE, "%s: no valid record", r->o->pattern);
	if (r->skipped)
		mu_warn("data", "%s: %lld of %lld records were skipped", r->o->pattern,
			(long long)r->skipped, (long long)(r->rows + r->skipped));
	rc = dataset_alloc(&d, r->rows, r->features, err);
	if (rc)
		return rc;
	for (int64_t i = 0; i < r->rows * r->features && r->o->scale == 0; i++)
		scale = fabs((double)x[i]) > scale ? fabs((double)x[i]) : scale;
	for (int64_t i = 0; i < r->rows * r->features; i++)
		MU_DATA(float, &d.x)[i] = (float)((double)x[i] / (scale > 0 ? scale : 1));
	for (int64_t i = 0; i < r->rows; i++) {
		MU_DATA(int32_t, &d.y)[i] = (int32_t)y[i];
		if ((int64_t)y[i] >= d.classes)
			d.classes = (int64_t)y[i] + 1;
	}
	*out = d;
	return 0;
}

static int records_read_all(struct mu_dataset *out, const struct mu_records *o,
			    int (*read_file)(struct rows *r, const char *path, struct mu_err *err),
			    struct mu_err *err)
{
	struct rows r = {.o = o};
	glob_t files = {0};
	int rc = mu_match_files(&files, o->pattern, err);

	if (!rc && !files.gl_pathc)
		rc = mu_fail(err, MU_NOT_FOUND, "%s: no file matches", o->pattern);
	for (size_t i = 0; i < files.gl_pathc && !rc; i++)
		rc = read_file(&r, files.gl_pathv[i], err);
	globfree(&files);
	if (!rc)
		rc = rows_to_dataset(&r, out, err);
	mu_buf_fini(&r.x);
	mu_buf_fini(&r.y);
	return rc;
}

int mu_dataset_tfrecord(struct mu_dataset *out, const struct mu_records *o, struct mu_err *err)
{
	return records_read_all(out, o, read_tfrecord, err);
}

int mu_dataset_cifar10(struct mu_dataset *out, const struct mu_records *o, struct mu_err *err)
{
	return records_read_all(out, o, read_cifar, err);
}

static int select_rows(struct mu_dataset *out, const struct mu_dataset *d, const int64_t *order,
		       int64_t n, struct mu_err *err)
{
	int rc = dataset_alloc(out, n, d->features, err);

	for (int64_t i = 0; i < n && !rc; i++) {
		mu_dataset_row(d, order[i], MU_DATA(float, &out->x) + i * d->features);
		MU_DATA(int32_t, &out->y)[i] = MU_DATA(int32_t, &d->y)[order[i]];
	}
	if (!rc)
		out->classes = d->classes;
	return rc;
}

int mu_dataset_split(struct mu_dataset *train, struct mu_dataset *test, struct mu_dataset *d,
		     double fraction, uint64_t seed, struct mu_err *err)
{
	MU_AUTO_FREE int64_t *order = MU_NEW_ARRAY(int64_t, (size_t)d->rows + 1);
	int64_t test_rows =
	    fraction > 0 && fraction < 1 ? (int64_t)((double)d->rows * fraction) : 0;
	struct mu_dataset a, b;
	int rc;

	for (int64_t i = 0; i < d->rows; i++)
		order[i] = i;
	if (seed)
		data_shuffle(order, d->rows, &seed);
	rc = select_rows(&a, d, order, d->rows - test_rows, err);
	if (rc)
		return rc;
	rc = select_rows(&b, d, order + d->rows - test_rows, test_rows, err);
	if (rc) {
		mu_dataset_fini(&a);
		return rc;
	}
	mu_dataset_fini(d);
	*train = a;
	*test = b;
	return 0;
}
