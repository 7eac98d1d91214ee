/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets from files.
 *
 * Labels are checked once, here. A label is a class number: an integer that is not negative. The
 * limit MAX_CLASSES catches a wrong column number.
 */
#include <math.h>
#include <stdio.h>

#include "client/data/dataset.h"
#include "client/data/shuffle.h"
#include "lib/io/csv.h"
#include "lib/io/idx.h"
#include "lib/tensor/number.h"

enum { MAX_CLASSES = 100000 };

void mu_dataset_fini(struct mu_dataset *d)
{
	mu_tensor_unref(&d->x);
	mu_tensor_unref(&d->y);
	free(d->byte_values);
	d->byte_values = NULL;
}

void mu_dataset_row(const struct mu_dataset *d, int64_t row, float *to)
{
	int64_t n = d->features;

	if (d->byte_values)
		bytes_to_floats(d, MU_DATA(uint8_t, &d->x) + row * n, to);
	else
		memcpy(to, MU_DATA(float, &d->x) + row * n, (size_t)n * sizeof(float));
}

/* Allocates the labels only. */
static int alloc_labels(struct mu_dataset *d, int64_t rows, int64_t features, struct mu_err *err)
{
	struct mu_shape shape;
	int rc = mu_shape_set(&shape, 1, &rows, err);

	*d = (struct mu_dataset){.rows = rows, .features = features};
	return rc ? rc : mu_tensor_new(&d->y, MU_INT32, &shape, err);
}

int dataset_alloc(struct mu_dataset *d, int64_t rows, int64_t features, struct mu_err *err)
{
	struct mu_shape shape;
	int rc = alloc_labels(d, rows, features, err);

	if (!rc)
		rc = mu_shape_set(&shape, 2, (int64_t[]){rows, features}, err);
	if (!rc)
		rc = mu_tensor_new(&d->x, MU_FLOAT, &shape, err);
	if (rc)
		mu_dataset_fini(d);
	return rc;
}

bool dataset_is_class(double label)
{
	return label >= 0 && label < MAX_CLASSES && label == floor(label);
}

/* Stores a label. from: row number in the file, for messages. */
static int set_label(struct mu_dataset *d, int64_t row, int64_t from, double label,
		     const char *path, struct mu_err *err)
{
	if (!dataset_is_class(label))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "%s: row %lld: label %g is not a class number (0, 1, 2, …)", path,
			       (long long)from + 1, label);
	MU_DATA(int32_t, &d->y)[row] = (int32_t)label;
	if ((int64_t)label >= d->classes)
		d->classes = (int64_t)label + 1;
	return 0;
}

static double max_abs(const double *v, int64_t rows, int64_t width, int64_t n_columns)
{
	double max = 0;

	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < n_columns; c++)
			max = fabs(v[r * width + c]) > max ? fabs(v[r * width + c]) : max;
	return max > 0 ? max : 1;
}

/* Fills d with rows order[from … to-1] of the table. */
static int csv_part(struct mu_dataset *d, const struct mu_tensor *t, const int64_t *order,
		    int64_t from, int64_t to, double scale, const char *path, struct mu_err *err)
{
	int64_t width = t->shape.dim[1], n = width - 1;
	const double *v = MU_DATA(double, t);
	int rc = dataset_alloc(d, to - from, n, err);

	for (int64_t r = from; r < to && !rc; r++) {
		float *x = MU_DATA(float, &d->x) + (r - from) * n;
		const double *row = v + order[r] * width;

		for (int64_t c = 0; c < n; c++)
			x[c] = (float)(row[c] / scale);
		rc = set_label(d, r - from, order[r], row[n], path, err);
		if (rc)
			mu_dataset_fini(d);
	}
	return rc;
}

static bool has_label(const double *row, int64_t fields, char *why, size_t size)
{
	double label = row[fields - 1];

	if (fields < 2)
		snprintf(why, size, "1 column, expected features and the label as the last column");
	else if (!dataset_is_class(label))
		snprintf(why, size, "label %g is not a class number (0, 1, 2, …)", label);
	else
		return true;
	return false;
}

int mu_dataset_csv(struct mu_dataset *train, struct mu_dataset *test, const struct mu_records *o,
		   double test_fraction, uint64_t split_seed, struct mu_err *err)
{
	MU_AUTO_TENSOR t = {0};
	MU_AUTO_FREE int64_t *order = NULL;
	const char *path = o->pattern;
	double scale = o->scale;
	struct mu_dataset a, b;
	int64_t rows, test_rows;
	int rc;

	if (!(test_fraction >= 0 && test_fraction < 1))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "testFraction is %g, expected at least 0 and less than 1",
			       test_fraction);
	rc = mu_csv_read(&t, path, has_label, o->skip_bad, err);
	if (rc)
		return rc;
	rows = t.shape.dim[0];
	order = MU_NEW_ARRAY(int64_t, (size_t)rows);
	for (int64_t i = 0; i < rows; i++)
		order[i] = i;
	test_rows = (int64_t)((double)rows * test_fraction);
	if (rows - test_rows < 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s: %lld rows leave none to train on",
			       path, (long long)rows);
	if (scale == 0)
		scale = max_abs(MU_DATA(double, &t), t.shape.dim[0], t.shape.dim[1],
				t.shape.dim[1] - 1);
	if (split_seed)
		data_shuffle(order, rows, &split_seed);
	rc = csv_part(&a, &t, order, 0, rows - test_rows, scale, path, err);
	if (rc)
		return rc;
	rc = csv_part(&b, &t, order, rows - test_rows, rows, scale, path, err);
	if (rc) {
		mu_dataset_fini(&a);
		return rc;
	}
	a.classes = b.classes = a.classes > b.classes ? a.classes : b.classes;
	*train = a;
	*test = b;
	return 0;
}

int mu_dataset_memory(struct mu_dataset *out, const float *x, const int32_t *y, int64_t rows,
		      int64_t features, double scale, struct mu_err *err)
{
	struct mu_dataset d;
	bool has_scale = scale != 0;
	int rc = dataset_alloc(&d, rows, features, err);

	if (rc)
		return rc;
	for (int64_t i = 0; i < rows * features && !has_scale; i++)
		scale = (double)fabsf(x[i]) > scale ? (double)fabsf(x[i]) : scale;
	for (int64_t i = 0; i < rows * features; i++)
		MU_DATA(float, &d.x)[i] = (float)((double)x[i] / (scale > 0 ? scale : 1));
	for (int64_t i = 0; i < rows && !rc; i++)
		rc = set_label(&d, i, i, y[i], "memory", err);
	if (rc)
		mu_dataset_fini(&d);
	else
		*out = d;
	return rc;
}

/* Stores the images divided by scale (0: by the maximum). Images of bytes remain bytes. */
static int idx_features(struct mu_dataset *d, struct mu_tensor *x, double scale, struct mu_err *err)
{
	struct mu_shape shape;
	int rc = mu_shape_set(&shape, 2, (int64_t[]){d->rows, d->features}, err);

	if (scale == 0)
		for (int64_t i = 0; i < x->shape.count; i++)
			scale = fabs(mu_tensor_number(x, i)) > scale ? fabs(mu_tensor_number(x, i))
								     : scale;
	scale = scale > 0 ? scale : 1;
	if (!rc && x->dtype == MU_UINT8) {
		d->x = mu_tensor_reshaped(x, &shape);
		bytes_table_init(d, scale);
		return 0;
	}
	if (!rc)
		rc = mu_tensor_new(&d->x, MU_FLOAT, &shape, err);
	for (int64_t i = 0; i < x->shape.count && !rc; i++)
		MU_DATA(float, &d->x)[i] = (float)(mu_tensor_number(x, i) / scale);
	return rc;
}

int mu_dataset_idx(struct mu_dataset *out, const char *images, const char *labels, double scale,
		   struct mu_err *err)
{
	MU_AUTO_TENSOR x = {0};
	MU_AUTO_TENSOR y = {0};
	struct mu_dataset d;
	int rc = mu_idx_read(&x, images, err);

	if (!rc)
		rc = mu_idx_read(&y, labels, err);
	if (rc)
		return rc;
	if (x.shape.rank < 1 || y.shape.rank != 1 || x.shape.dim[0] != y.shape.dim[0] ||
	    x.shape.dim[0] < 1)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "%s is %s and %s is %s: expected one label for each image", images,
			       mu_shape_str(&x.shape), labels, mu_shape_str(&y.shape));
	rc = alloc_labels(&d, y.shape.dim[0], x.shape.count / y.shape.dim[0], err);
	if (!rc)
		rc = idx_features(&d, &x, scale, err);
	for (int64_t i = 0; i < d.rows && !rc; i++)
		rc = set_label(&d, i, i, mu_tensor_number(&y, i), labels, err);
	if (rc)
		mu_dataset_fini(&d);
	else
		*out = d;
	return rc;
}

int mu_dataset_rows(const struct mu_dataset *d, int64_t from, int64_t to, struct mu_tensor *x,
		    struct mu_tensor *y, struct mu_err *err)
{
	struct mu_dataset part;
	int rc;

	if (from < 0 || to > d->rows || from > to)
		return mu_fail(err, MU_OUT_OF_RANGE, "rows %lld to %lld of %lld", (long long)from,
			       (long long)to, (long long)d->rows);
	rc = dataset_alloc(&part, to - from, d->features, err);
	if (rc)
		return rc;
	for (int64_t i = from; i < to; i++)
		mu_dataset_row(d, i, MU_DATA(float, &part.x) + (i - from) * d->features);
	memcpy(part.y.data, MU_DATA(int32_t, &d->y) + from, part.y.buf->size);
	*x = part.x;
	*y = part.y;
	return 0;
}
