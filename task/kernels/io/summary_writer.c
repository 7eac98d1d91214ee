/* SPDX-License-Identifier: Apache-2.0 */
/* Summary writers: resources that write event files.
 *
 * Events are written to the file when there are more than max_queue of them, when flush_millis have
 * passed since the last flush (checked at the next write), and when the writer is flushed or
 * closed. */
#include <math.h>
#include <pthread.h>

#include "lib/base/clock.h"
#include "lib/base/pb.h"
#include "lib/io/event_writer.h"
#include "lib/tensor/tensor_proto.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/summary_writer.h"
#include "task/kernels/state/handles.h"

struct writer {
	struct resource base;
	pthread_mutex_t lock;
	struct mu_event_writer *events;
	int64_t max_queue, queued; /* events */
	double flush_interval;     /* seconds */
	double last_flush;         /* time of mu_clock */
};

static void writer_free(struct resource *r)
{
	struct writer *w = MU_CONTAINER(r, struct writer, base);

	mu_event_close(w->events, NULL);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static const struct resource_type writer_type = {.name = "summary writer", .free = writer_free};

/* ---- creation ---- */

static int output_handle(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF buf = {0};

	return handle_output(c, resource_container(c, &buf), resource_name(c), &writer_type, err);
}

struct writer_options {
	char *folder, *suffix;
	int64_t max_queue, flush_millis;
};

static struct resource *summary_writer_create(void *arg, struct mu_err *err)
{
	const struct writer_options *want = arg;
	struct mu_event_writer *events;

	if (mu_event_create(&events, want->folder, want->suffix, err))
		return NULL;
	struct writer *w = MU_NEW(struct writer);
	resource_init(&w->base, &writer_type);
	pthread_mutex_init(&w->lock, NULL);
	w->events = events;
	w->max_queue = want->max_queue;
	w->flush_interval = (double)want->flush_millis / 1000;
	w->last_flush = mu_clock();
	return &w->base;
}

static int make_file(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_FREE char *folder = NULL;
	MU_AUTO_FREE char *suffix = NULL;
	struct writer_options want;

	MU_RETURN_IF_ERROR(args_string(c, 1, &folder, err));
	MU_RETURN_IF_ERROR(args_int(c, 2, &want.max_queue, err));
	MU_RETURN_IF_ERROR(args_int(c, 3, &want.flush_millis, err));
	MU_RETURN_IF_ERROR(args_string(c, 4, &suffix, err));
	want.folder = folder;
	want.suffix = suffix;
	return handle_create(c, &writer_type, summary_writer_create, &want, err);
}

/* ---- writing ---- */

static int summary_writer_hold(struct kernel_call *c, struct writer **out, struct mu_err *err)
{
	struct resource *r;

	MU_RETURN_IF_ERROR(handle_find(c, 0, &writer_type, &r, err));
	*out = MU_CONTAINER(r, struct writer, base);
	pthread_mutex_lock(&(*out)->lock);
	return 0;
}

static int summary_writer_release(struct writer *w, int rc)
{
	pthread_mutex_unlock(&w->lock);
	resource_unref(&w->base);
	return rc;
}

static int flush_held(struct writer *w, struct mu_err *err)
{
	w->queued = 0;
	w->last_flush = mu_clock();
	return mu_event_flush(w->events, err);
}

static int flush(struct kernel_call *c, struct mu_err *err)
{
	struct writer *w;

	MU_RETURN_IF_ERROR(summary_writer_hold(c, &w, err));
	return summary_writer_release(w, flush_held(w, err));
}

/* Ends the write of an event, with the result rc, and releases the writer. */
static int summary_writer_end_write(struct writer *w, int rc, struct mu_err *err)
{
	w->queued++;
	if (!rc && (w->queued > w->max_queue || mu_clock() - w->last_flush > w->flush_interval))
		rc = flush_held(w, err);
	return summary_writer_release(w, rc);
}

int summary_writer_put(struct kernel_call *c, const struct mu_buf *summary, struct mu_err *err)
{
	struct writer *w;
	int64_t step;

	MU_RETURN_IF_ERROR(args_int(c, 1, &step, err));
	MU_RETURN_IF_ERROR(summary_writer_hold(c, &w, err));
	return summary_writer_end_write(
	    w, mu_event_summary(w->events, step, mu_buf_span(summary), err), err);
}

void summary_put_tensor(struct mu_buf *value, const struct mu_tensor *t)
{
	size_t at = mu_pb_begin(value, VALUE_TENSOR);

	mu_tensor_write(value, t);
	mu_pb_end(value, at);
}

static int summary_writer_put_tensor(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};

	if (kernel_in(c, 3)->shape.count != 1 || kernel_in(c, 4)->shape.count != 1)
		return mu_invalid(err, "tag and summary_metadata must be scalars");
	size_t value = mu_pb_begin(&b, SUMMARY_VALUE);
	mu_pb_put_bytes(&b, VALUE_TAG, elems_span(kernel_in(c, 3), 0));
	summary_put_tensor(&b, kernel_in(c, 2));
	if (elems_span(kernel_in(c, 4), 0).len)
		mu_pb_put_bytes(&b, VALUE_METADATA, elems_span(kernel_in(c, 4), 0));
	mu_pb_end(&b, value);
	return summary_writer_put(c, &b, err);
}

static int put_scalar(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *value = kernel_in(c, 3);
	MU_AUTO_FREE char *tag = NULL;
	MU_AUTO_BUF b = {0};
	float v = 0;

	MU_RETURN_IF_ERROR(args_string(c, 2, &tag, err));
	if (value->shape.count != 1)
		return mu_invalid(err, "value must be scalar, not of shape %s",
				  mu_shape_str(&value->shape));
	convert(MU_FLOAT, &v, value->dtype, value->data, 1);
	mu_summary_scalar(&b, tag, v);
	return summary_writer_put(c, &b, err);
}

int summary_put_histogram(struct mu_buf *summary, const char *name, struct mu_span tag,
			  const struct mu_tensor *values, struct mu_err *err)
{
	MU_AUTO_TENSOR wide = {0};

	MU_RETURN_IF_ERROR(mu_tensor_new(&wide, MU_DOUBLE, &values->shape, err));
	convert(MU_DOUBLE, wide.data, values->dtype, values->data, values->shape.count);
	for (int64_t i = 0; i < wide.shape.count; i++) {
		double v = MU_DATA(double, &wide)[i];
		if (!isfinite(v))
			return mu_invalid(
			    err, "%s for: %s",
			    isnan(v) ? "Nan in summary histogram" : "Infinity in Histogram", name);
	}
	mu_summary_histogram(summary, tag, wide.data, (size_t)wide.shape.count);
	return 0;
}

static int put_histogram(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_FREE char *tag = NULL;
	MU_AUTO_BUF b = {0};

	MU_RETURN_IF_ERROR(args_string(c, 2, &tag, err));
	MU_RETURN_IF_ERROR(
	    summary_put_histogram(&b, c->node->name, mu_span_of(tag), kernel_in(c, 3), err));
	return summary_writer_put(c, &b, err);
}

/* Reads input i, a serialized message; `kind` is its type in errors. */
static int read_message(struct kernel_call *c, unsigned i, const char *kind, struct mu_span *out,
			struct mu_err *err)
{
	if (kernel_in(c, i)->shape.count != 1)
		return mu_invalid(err, "input %u must be one %s", i, kind);
	*out = elems_span(kernel_in(c, i), 0);
	struct mu_pb m = mu_pb_of(*out);
	for (struct mu_pb_field f; mu_pb_next(&m, &f);)
		;
	return m.bad ? mu_fail(err, MU_DATA_LOSS, "Bad tf.%s binary proto tensor string", kind) : 0;
}

/* WriteRawProtoSummary: writes a serialized Summary. */
static int write_raw_proto(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	struct mu_span s;

	MU_RETURN_IF_ERROR(read_message(c, 2, "compat.v1.Summary", &s, err));
	mu_buf_put(&b, s.data, s.len);
	return summary_writer_put(c, &b, err);
}

static int write_graph(struct kernel_call *c, struct mu_err *err)
{
	struct mu_span graph;
	struct writer *w;
	int64_t step;

	MU_RETURN_IF_ERROR(args_int(c, 1, &step, err));
	MU_RETURN_IF_ERROR(read_message(c, 2, "GraphDef", &graph, err));
	MU_RETURN_IF_ERROR(summary_writer_hold(c, &w, err));
	return summary_writer_end_write(w, mu_event_graph(w->events, step, graph, err), err);
}

static int import_event(struct kernel_call *c, struct mu_err *err)
{
	struct mu_span event;
	struct writer *w;

	MU_RETURN_IF_ERROR(read_message(c, 1, "Event", &event, err));
	MU_RETURN_IF_ERROR(summary_writer_hold(c, &w, err));
	return summary_writer_end_write(w, mu_event_import(w->events, event, err), err);
}

/* Closes the file.  Another writer can use the name afterwards. */
static int close_writer(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_handle *h;

	MU_RETURN_IF_ERROR(flush(c, err));
	MU_RETURN_IF_ERROR(resource_handle_in(c, 0, &h, err));
	return resources_remove(c->runtime->resources, h->container ? h->container : "", h->name,
				writer_type.name, err);
}

static const struct kernel rows[] = {
    {"SummaryWriter", .run = output_handle},
    {"CreateSummaryFileWriter", KERNEL_SLOW, .run = make_file},
    {"FlushSummaryWriter", KERNEL_SLOW, .run = flush},
    {"CloseSummaryWriter", KERNEL_SLOW, .run = close_writer},
    {"WriteSummary", .run = summary_writer_put_tensor},
    {"WriteScalarSummary", .run = put_scalar},
    {"WriteHistogramSummary", .run = put_histogram},
    {"WriteRawProtoSummary", .run = write_raw_proto},
    {"WriteGraphSummary", .run = write_graph},
    {"ImportEvent", .run = import_event},
};
KERNEL_TABLE(io_summary_writer, rows)
