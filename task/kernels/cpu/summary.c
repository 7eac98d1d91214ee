/* SPDX-License-Identifier: Apache-2.0 */
/* Summary messages: what a program writes to its event files, made where the values are. */
#include <float.h>
#include <math.h>
#include <pthread.h>

#include "lib/base/map.h"
#include "lib/base/pb.h"
#include "task/kernels/args.h"
#include "task/kernels/convert.h"
#include "task/kernels/kernel_table.h"

/* Field numbers of Summary, Summary.Value and HistogramProto. */
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_HISTO = 5 };
enum {
	HISTO_MIN = 1,
	HISTO_MAX,
	HISTO_NUM,
	HISTO_SUM,
	HISTO_SUM_SQUARES,
	HISTO_LIMIT,
	HISTO_COUNT
};

static int give_bytes(struct kernel_call *c, const struct mu_buf *b, struct mu_err *err)
{
	struct mu_tensor t;
	int rc = mu_tensor_string(&t, b->data ? b->data : "", b->len, err);

	if (!rc)
		kernel_out_take(c, 0, t);
	return rc;
}

static struct mu_span tag_at(const struct mu_tensor *tags, int64_t i)
{
	const struct mu_string *s = &MU_DATA(struct mu_string, tags)[i];

	return (struct mu_span){s->data ? s->data : "", s->len};
}

static int scalar_summary(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *tags = kernel_in(c, 0), *values = kernel_in(c, 1);
	MU_AUTO_BUF b = {0};
	int rc = args_type(c, 0, MU_STRING, err);

	if (rc)
		return rc;
	if (!mu_shape_eq(&tags->shape, &values->shape) &&
	    !(tags->shape.count == 1 && values->shape.count == 1))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "tags and values are not the same shape: %s != %s",
			       mu_shape_str(&tags->shape), mu_shape_str(&values->shape));
	if (!convert_known(MU_FLOAT, values->dtype))
		return mu_fail(err, MU_UNIMPLEMENTED, "ScalarSummary has no kernel for type %s",
			       mu_dtype_name(values->dtype));
	for (int64_t i = 0; i < values->shape.count; i++) {
		float v;
		convert(MU_FLOAT, &v, values->dtype,
			(char *)values->data + (size_t)i * mu_dtype_size(values->dtype), 1);
		size_t at = mu_pb_begin(&b, SUMMARY_VALUE);
		mu_pb_put_bytes(&b, VALUE_TAG, tag_at(tags, i));
		mu_pb_put_float(&b, VALUE_SIMPLE, v);
		mu_pb_end(&b, at);
	}
	return give_bytes(c, &b, err);
}

/* ---- histograms: limits grow by a tenth from 1e-12 to 1e20, on both sides of zero ---- */

enum { MAX_LIMITS = 1600 };
static double limits[MAX_LIMITS];
static int n_limits;
static pthread_once_t limits_once = PTHREAD_ONCE_INIT;

static void make_limits(void)
{
	double positive[MAX_LIMITS / 2];
	int n = 0;

	for (double v = 1e-12; v < 1e20; v *= 1.1)
		positive[n++] = v;
	positive[n++] = DBL_MAX;
	for (int i = n; i-- > 0;)
		limits[n_limits++] = -positive[i];
	limits[n_limits++] = 0;
	for (int i = 0; i < n; i++)
		limits[n_limits++] = positive[i];
}

/* The first limit above v. */
static int bucket_of(double v)
{
	int low = 0, high = n_limits - 1;

	while (low < high) {
		int mid = (low + high) / 2;
		if (limits[mid] > v)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Runs of empty buckets become one. */
static void put_buckets(struct mu_buf *b, const double *counts)
{
	MU_AUTO_BUF packed_limits = {0}, packed_counts = {0};

	for (int i = 0; i < n_limits;) {
		double limit = limits[i], count = counts[i];
		for (i++; count <= 0 && i < n_limits && counts[i] <= 0; i++)
			limit = limits[i];
		mu_buf_put(&packed_limits, &limit, sizeof limit);
		mu_buf_put(&packed_counts, &count, sizeof count);
	}
	mu_pb_put_bytes(b, HISTO_LIMIT, mu_buf_span(&packed_limits));
	mu_pb_put_bytes(b, HISTO_COUNT, mu_buf_span(&packed_counts));
}

static int histogram_summary(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *tag = kernel_in(c, 0), *values = kernel_in(c, 1);
	double low = DBL_MAX, high = -DBL_MAX, sum = 0, squares = 0, counts[MAX_LIMITS] = {0};
	MU_AUTO_BUF b = {0};
	int rc = args_type(c, 0, MU_STRING, err);

	if (rc)
		return rc;
	if (tag->shape.count != 1 || !convert_known(MU_DOUBLE, values->dtype))
		return mu_fail(err, MU_INVALID_ARGUMENT, "tags must be scalar and values numbers");
	pthread_once(&limits_once, make_limits);
	struct mu_span name = tag_at(tag, 0);
	for (int64_t i = 0; i < values->shape.count; i++) {
		double v;
		convert(MU_DOUBLE, &v, values->dtype,
			(char *)values->data + (size_t)i * mu_dtype_size(values->dtype), 1);
		if (!isfinite(v))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "%s in summary histogram for: %.*s",
				       isnan(v) ? "Nan" : "Infinity", (int)name.len, name.data);
		low = v < low ? v : low;
		high = v > high ? v : high;
		sum += v;
		squares += v * v;
		counts[bucket_of(v)]++;
	}
	size_t value = mu_pb_begin(&b, SUMMARY_VALUE);
	mu_pb_put_bytes(&b, VALUE_TAG, name);
	size_t histo = mu_pb_begin(&b, VALUE_HISTO);
	mu_pb_put_double(&b, HISTO_MIN, low);
	mu_pb_put_double(&b, HISTO_MAX, high);
	mu_pb_put_double(&b, HISTO_NUM, (double)values->shape.count);
	mu_pb_put_double(&b, HISTO_SUM, sum);
	mu_pb_put_double(&b, HISTO_SUM_SQUARES, squares);
	put_buckets(&b, counts);
	mu_pb_end(&b, histo);
	mu_pb_end(&b, value);
	return give_bytes(c, &b, err);
}

/* ---- merging: the values of all, each tag once ---- */

static int note_tags(struct mu_map *seen, struct mu_span summary, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(summary);
	struct mu_pb_field f, g;

	while (mu_pb_next(&m, &f)) {
		if (f.number != SUMMARY_VALUE)
			continue;
		struct mu_pb v = mu_pb_of(f.bytes);
		while (mu_pb_next(&v, &g))
			if (g.number == VALUE_TAG && g.type == MU_PB_BYTES && g.bytes.len &&
			    mu_map_put_n(seen, g.bytes.data, g.bytes.len, seen))
				return mu_fail(err, MU_INVALID_ARGUMENT,
					       "Duplicate tag %.*s found in summary inputs",
					       (int)g.bytes.len, g.bytes.data);
		m.bad |= v.bad;
	}
	return m.bad
		   ? mu_fail(err, MU_INVALID_ARGUMENT, "Could not parse one of the summary inputs")
		   : 0;
}

static int merge_summary(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	struct mu_map seen;
	int rc = 0;

	mu_map_init(&seen);
	for (unsigned i = 0; i < c->n_in && !rc; i++) {
		const struct mu_tensor *t = kernel_in(c, i);
		rc = args_type(c, i, MU_STRING, err);
		for (int64_t k = 0; !rc && k < t->shape.count; k++) {
			struct mu_span s = tag_at(t, k);
			rc = note_tags(&seen, s, err);
			mu_buf_put(&b, s.data, s.len);
		}
	}
	mu_map_fini(&seen);
	return rc ? rc : give_bytes(c, &b, err);
}

static const struct kernel rows[] = {
    {"ScalarSummary", .run = scalar_summary},
    {"HistogramSummary", .run = histogram_summary},
    {"MergeSummary", .run = merge_summary},
};
KERNEL_TABLE(summary, rows)
