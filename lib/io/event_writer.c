/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/event_writer.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/pb.h"
#include "lib/io/folders.h"
#include "lib/io/png.h"
#include "lib/io/tfrecord.h"

struct mu_event_writer {
	struct mu_tfrecord_writer *file;
	char *path;
};

/* Fields of Event */
enum { WALL_TIME = 1, STEP = 2, VERSION = 3, GRAPH = 4, SUMMARY = 5, SESSION_LOG = 7 };

static int put_event(struct mu_event_writer *w, int64_t step, uint32_t field, struct mu_span body,
		     struct mu_err *err)
{
	MU_AUTO_BUF event = {0};

	mu_pb_put_double(&event, WALL_TIME, mu_wall());
	if (step)
		mu_pb_put_int(&event, STEP, step);
	mu_pb_put_bytes(&event, field, body);
	return mu_tfrecord_write(w->file, mu_buf_span(&event), err);
}

int mu_event_create(struct mu_event_writer **out, const char *folder, const char *suffix,
		    struct mu_err *err)
{
	static _Atomic unsigned n_files;
	struct mu_event_writer w;
	char host[256] = "localhost";
	int rc;

	MU_AUTO_FREE char *folder_path = mu_xasprintf("%s/", folder);
	if ((rc = mu_make_folders(folder_path, err)))
		return rc;
	gethostname(host, sizeof host - 1);
	w.path = mu_xasprintf("%s/events.out.tfevents.%010lld.%s.%d.%u%s", folder,
			      (long long)time(NULL), host, (int)getpid(), n_files++, suffix);
	rc = mu_tfrecord_create(&w.file, w.path, false, err);
	if (!rc) {
		rc = put_event(&w, 0, VERSION, MU_SPAN("brain.Event:2"), err);
		if (!rc)
			rc = mu_tfrecord_flush(w.file, false, err);
		if (rc)
			mu_tfrecord_close(w.file, NULL);
	}
	if (rc) {
		free(w.path);
		return rc;
	}
	*out = MU_NEW(struct mu_event_writer);
	**out = w;
	return 0;
}

const char *mu_event_path(const struct mu_event_writer *w)
{
	return w->path;
}

int mu_event_summary(struct mu_event_writer *w, int64_t step, struct mu_span summary,
		     struct mu_err *err)
{
	return put_event(w, step, SUMMARY, summary, err);
}

int mu_event_scalar(struct mu_event_writer *w, int64_t step, const char *tag, float value,
		    struct mu_err *err)
{
	MU_AUTO_BUF summary = {0};

	mu_summary_scalar(&summary, tag, value);
	return put_event(w, step, SUMMARY, mu_buf_span(&summary), err);
}

int mu_event_graph(struct mu_event_writer *w, int64_t step, struct mu_span graph_def,
		   struct mu_err *err)
{
	return put_event(w, step, GRAPH, graph_def, err);
}

int mu_event_import(struct mu_event_writer *w, struct mu_span event, struct mu_err *err)
{
	return mu_tfrecord_write(w->file, event, err);
}

int mu_event_session_log(struct mu_event_writer *w, int64_t step, enum mu_session_log status,
			 const char *checkpoint_path, struct mu_err *err)
{
	MU_AUTO_BUF log = {0};

	mu_pb_put_int(&log, 1, status);
	if (checkpoint_path)
		mu_pb_put_str(&log, 2, checkpoint_path);
	return put_event(w, step, SESSION_LOG, mu_buf_span(&log), err);
}

int mu_event_flush(struct mu_event_writer *w, struct mu_err *err)
{
	return mu_tfrecord_flush(w->file, false, err);
}

int mu_event_close(struct mu_event_writer *w, struct mu_err *err)
{
	int rc = mu_tfrecord_close(w->file, err);

	free(w->path);
	free(w);
	return rc;
}

void mu_summary_scalar(struct mu_buf *summary, const char *tag, float value)
{
	size_t at = mu_pb_begin(summary, 1);

	mu_pb_put_str(summary, 1, tag);
	mu_pb_put_float(summary, 2, value);
	mu_pb_end(summary, at);
}

/* TensorBoard's bucket limits grow by 10 % from 1e-12 to the largest double, with the same limits
 * for negative values. */
enum { MAX_LIMITS = 1600 };
static double limits[MAX_LIMITS];
static size_t n_limits;

static void make_limits(void)
{
	double positive[MAX_LIMITS / 2 - 2];
	size_t n = 0;

	for (double v = 1.0e-12; v < 1.0e20; v *= 1.1)
		positive[n++] = v;
	positive[n++] = DBL_MAX;
	for (size_t i = n; i-- > 0;)
		limits[n_limits++] = -positive[i];
	limits[n_limits++] = 0.0;
	for (size_t i = 0; i < n; i++)
		limits[n_limits++] = positive[i];
}

/* Returns the first bucket whose limit is greater than v. */
static size_t bucket_of(double v)
{
	size_t low = 0, high = n_limits - 1;

	while (low < high) {
		size_t mid = (low + high) / 2;
		if (limits[mid] > v)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Merges adjacent empty buckets, as readers expect. */
static void put_buckets(struct mu_buf *b, const double *counts)
{
	MU_AUTO_BUF edges = {0};
	MU_AUTO_BUF bucket_counts = {0};

	for (size_t i = 0; i < n_limits;) {
		double count = counts[i], end = limits[i];
		i++;
		if (count <= 0) {
			while (i < n_limits && counts[i] <= 0)
				end = limits[i++];
			count = 0;
		}
		mu_buf_put(&edges, &end, sizeof end);
		mu_buf_put(&bucket_counts, &count, sizeof count);
	}
	mu_pb_put_bytes(b, 6, mu_buf_span(&edges));
	mu_pb_put_bytes(b, 7, mu_buf_span(&bucket_counts));
}

/* Like TensorFlow, omits a field that is zero. */
static void put_nonzero(struct mu_buf *b, uint32_t number, double v)
{
	if (v != 0)
		mu_pb_put_double(b, number, v);
}

void mu_summary_histogram(struct mu_buf *summary, struct mu_span tag, const double *values,
			  size_t n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	double min = DBL_MAX, max = -DBL_MAX, sum = 0, squares = 0;
	MU_AUTO_FREE double *counts = NULL;
	size_t n_finite = 0;

	pthread_once(&once, make_limits);
	counts = MU_NEW_ARRAY(double, n_limits);
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(values[i]))
			continue;
		n_finite++;
		counts[bucket_of(values[i])]++;
		min = values[i] < min ? values[i] : min;
		max = values[i] > max ? values[i] : max;
		sum += values[i];
		squares += values[i] * values[i];
	}
	size_t value = mu_pb_begin(summary, 1);
	if (tag.len)
		mu_pb_put_bytes(summary, 1, tag);
	size_t histo = mu_pb_begin(summary, 5);
	put_nonzero(summary, 1, min);
	put_nonzero(summary, 2, max);
	put_nonzero(summary, 3, (double)n_finite);
	put_nonzero(summary, 4, sum);
	put_nonzero(summary, 5, squares);
	put_buckets(summary, counts);
	mu_pb_end(summary, histo);
	mu_pb_end(summary, value);
}

int mu_summary_image(struct mu_buf *summary, const char *tag, const unsigned char *pixels,
		     uint32_t height, uint32_t width, unsigned channels, struct mu_err *err)
{
	MU_AUTO_BUF png = {0};
	size_t value, image;
	int rc = mu_png_write(
	    &png, pixels, &(struct mu_png_shape){height, width, channels, .bits = 8, .level = -1},
	    err);

	if (rc)
		return mu_wrap(err, "summary '%s'", tag);
	value = mu_pb_begin(summary, 1);
	mu_pb_put_str(summary, 1, tag);
	image = mu_pb_begin(summary, 4);
	mu_pb_put_int(summary, 1, height);
	mu_pb_put_int(summary, 2, width);
	mu_pb_put_int(summary, 3, channels);
	mu_pb_put_bytes(summary, 4, mu_buf_span(&png));
	mu_pb_end(summary, image);
	mu_pb_end(summary, value);
	return 0;
}
