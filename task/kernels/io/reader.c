/* SPDX-License-Identifier: Apache-2.0 */
/* Readers: resources that take file names from a queue and read the files record by record.
 *
 * A reader serves one call at a time.  A call waits for the reader, then reads on a thread of the
 * compute pool, because I/O threads must not wait for files.  When it needs a new file name, it
 * waits for it in the queue's wait queue like a dequeue.  Files are read without the queue's lock,
 * so readers that share a queue do not wait for each other's files.  Each kind of reader is one
 * struct reader_kind.
 *
 * The kinds and the ops share struct reader, so they are in one file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/pb.h"
#include "lib/io/decompress.h"
#include "lib/io/tfrecord.h"
#include "task/kernels/control/queue.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/file_error.h"
#include "task/kernels/state/handles.h"
#include "task/runtime/thread_pool.h"

enum { MAX_FILE_BYTES = 1 << 30, MAX_RECORDS = 1 << 20 };

struct reader;
struct reader_kind {
	const char *op;
	/* Returns 1 with key and value, 0 at the end of the file. */
	int (*next)(struct reader *r, struct mu_buf *key, struct mu_buf *value, struct mu_err *err);
	bool one_record; /* a file is one record, so the state between two reads is a few numbers */
};

struct reader {
	struct resource base;
	struct wait_queue calls; /* ReaderRead and ReaderReadUpTo */
	bool busy;               /* a call uses the reader */
	pthread_mutex_t lock;    /* guards the members below */
	const struct reader_kind *kind;
	int64_t header, record, footer, hop; /* bytes; `header` of TextLineReader: lines */
	char *compression; /* of records, with or without a fixed length: "", "GZIP" or "ZLIB" */
	char *work;        /* name of the current file; NULL: none */
	char *last_work;   /* of kinds with one_record; NULL: none */
	FILE *file;
	struct mu_tfrecord_reader *records;
	char *line;
	size_t line_cap;
	int64_t at;  /* lines or records read from this file */
	int64_t end; /* file size in bytes, if records have a fixed length */
	int64_t produced, completed;
};

static void end_work(struct reader *r)
{
	if (r->file)
		fclose(r->file);
	mu_tfrecord_reader_free(r->records);
	free(r->work);
	r->file = NULL;
	r->records = NULL;
	r->work = NULL;
	r->at = 0;
}

static void set_last_work(struct reader *r, const char *work)
{
	free(r->last_work);
	r->last_work = work ? mu_xstrdup(work) : NULL;
}

static void reader_free(struct resource *base)
{
	struct reader *r = MU_CONTAINER(base, struct reader, base);

	end_work(r);
	free(r->last_work);
	free(r->line);
	free(r->compression);
	wait_queue_fini(&r->calls);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static const struct resource_type reader_type = {.name = "reader", .free = reader_free};

/* ---- kinds ---- */

/* Opens the current file and decompresses it. */
static int open_decompressed(struct reader *r, FILE **out, struct mu_err *err)
{
	return file_error(mu_decompress_open(out, r->work, mu_span_of(r->compression), err),
			  r->work, err);
}

static int next_line(struct reader *r, struct mu_buf *key, struct mu_buf *value, struct mu_err *err)
{
	ssize_t n;

	if (!r->file)
		MU_RETURN_IF_ERROR(open_decompressed(r, &r->file, err));
	while ((n = getline(&r->line, &r->line_cap, r->file)) >= 0) {
		if (r->at++ < r->header)
			continue;
		n -= n && r->line[n - 1] == '\n';
		n -= n && r->line[n - 1] == '\r';
		mu_buf_put(value, r->line, (size_t)n);
		mu_buf_printf(key, "%s:%lld", r->work, (long long)r->at);
		return 1;
	}
	return feof(r->file) ? 0 : mu_fail_errno(err, errno, "cannot read %s", r->work);
}

/* Opens a decompressed, seekable copy of the current file. */
static int open_copy(struct reader *r, struct mu_err *err)
{
	char bytes[1 << 14];
	FILE *source;
	size_t n;

	MU_RETURN_IF_ERROR(open_decompressed(r, &source, err));
	r->file = tmpfile();
	while (r->file && (n = fread(bytes, 1, sizeof(bytes), source)) > 0 &&
	       fwrite(bytes, 1, n, r->file) == n)
		;
	bool broken = ferror(source), full = !r->file || ferror(r->file);
	fclose(source);
	if ((broken || full) && r->file)
		fclose(mu_steal(&r->file));
	return broken ? mu_fail(err, MU_DATA_LOSS, "%.150s: the compressed data is corrupt", r->work)
	       : full ? mu_fail(err, MU_RESOURCE_EXHAUSTED, "%.150s: no space to decompress it",
				r->work)
		      : 0;
}

static int next_record(struct reader *r, struct mu_buf *key, struct mu_buf *value,
		       struct mu_err *err)
{
	struct mu_span record;
	FILE *file;
	int rc;

	if (!r->records) {
		MU_RETURN_IF_ERROR(open_decompressed(r, &file, err));
		r->records = mu_tfrecord_read(file, r->work);
	}
	uint64_t at = mu_tfrecord_offset(r->records);
	if ((rc = mu_tfrecord_next_complete(r->records, &record, err)) <= 0)
		return rc;
	mu_buf_put(value, record.data, record.len);
	mu_buf_printf(key, "%s:%llu", r->work, (unsigned long long)at);
	return 1;
}

static int next_fixed(struct reader *r, struct mu_buf *key, struct mu_buf *value,
		      struct mu_err *err)
{
	int64_t hop = r->hop ? r->hop : r->record, from, last;

	if (!r->file) {
		MU_RETURN_IF_ERROR(*r->compression ? open_copy(r, err)
						   : open_decompressed(r, &r->file, err));
		if (fseeko(r->file, 0, SEEK_END) || (r->end = ftello(r->file)) < 0)
			return mu_fail_errno(err, errno, "cannot read %s", r->work);
	}
	if (__builtin_mul_overflow(r->at, hop, &from) ||
	    __builtin_add_overflow(from, r->header, &from) ||
	    __builtin_add_overflow(from, r->record, &last) || last > r->end - r->footer)
		return 0;
	mu_buf_reserve(value, (size_t)r->record);
	if (fseeko(r->file, from, SEEK_SET) ||
	    fread(value->data, 1, (size_t)r->record, r->file) != (size_t)r->record)
		return mu_fail_errno(err, ferror(r->file) ? errno : EIO, "cannot read %s", r->work);
	value->len = (size_t)r->record;
	mu_buf_printf(key, "%s:%lld", r->work, (long long)r->at++);
	return 1;
}

static int next_file(struct reader *r, struct mu_buf *key, struct mu_buf *value, struct mu_err *err)
{
	mu_buf_puts(key, r->work);

	MU_RETURN_IF_ERROR(mu_buf_read_file(value, r->work, MAX_FILE_BYTES, err));
	return 1;
}

static int next_name(struct reader *r, struct mu_buf *key, struct mu_buf *value, struct mu_err *err)
{
	mu_buf_puts(key, r->work);
	mu_buf_puts(value, r->work);
	return 1;
}

static const struct reader_kind kinds[] = {
    {"TextLineReader", next_line, false},
    {"TFRecordReader", next_record, false},
    {"FixedLengthRecordReader", next_fixed, false},
    {"WholeFileReader", next_file, true},
    {"IdentityReader", next_name, true},
};

/* ---- creation ---- */

static struct resource *reader_create(void *arg, struct mu_err *err)
{
	struct reader *r = MU_NEW(struct reader);

	*r = *(const struct reader *)arg;
	r->compression = mu_xstrdup(r->compression);
	resource_init(&r->base, &reader_type);
	wait_queue_init(&r->calls);
	pthread_mutex_init(&r->lock, NULL);
	return &r->base;
}

static int reader_make(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_node *n = c->node;
	struct reader spec = {
	    .header = args_attr_int(n, "skip_header_lines", args_attr_int(n, "header_bytes", 0)),
	    .record = args_attr_int(n, "record_bytes", 1),
	    .footer = args_attr_int(n, "footer_bytes", 0),
	    .hop = args_attr_int(n, "hop_bytes", 0),
	    .compression =
		(char *)args_attr_string(n, "compression_type", "")}; /* create() copies it */
	const char *encoding = args_attr_string(n, "encoding", "");
	struct resource *r;

	for (unsigned i = 0; i < MU_COUNT(kinds); i++)
		if (strncmp(kinds[i].op, n->op, strlen(kinds[i].op)) == 0)
			spec.kind = &kinds[i];
	if (*encoding)
		spec.compression = (char *)encoding;
	if (spec.record <= 0 || spec.record > MAX_FILE_BYTES)
		return mu_invalid(err, "record_bytes must be > 0, not %lld",
				  (long long)spec.record);
	if (spec.header < 0 || spec.footer < 0 || spec.hop < 0 || spec.hop > MAX_FILE_BYTES)
		return mu_invalid(err, "what a reader skips must not be negative");

	MU_RETURN_IF_ERROR(handle_make(c, &reader_type, reader_create, &spec, &r, err));
	bool is_same_kind = MU_CONTAINER(r, struct reader, base)->kind == spec.kind;
	resource_unref(r);
	return is_same_kind ? 0 : mu_invalid(err, "the reader's name belongs to another kind");
}

/* ---- reading ---- */

/* A ReaderRead or ReaderReadUpTo in progress. */
struct reading {
	struct pool_job job;
	struct kernel_call *c;
	struct reader *r; /* a reference */
	struct queue *q;  /* a reference */
	bool has_reader;
	char *name;         /* file name from the queue */
	int64_t want, have; /* records */
	bool is_read_up_to;
	struct mu_buf *keys, *values; /* `have` of each */
};

/* A reading that waits for the reader or for a file name. */
struct reading_wait {
	struct waiter w;
	struct reading *g; /* NULL after the wait */
};

static void reader_release(void *arg)
{
	((struct reader *)arg)->busy = false;
}

static void reading_free(struct reading *g)
{
	if (g->has_reader)
		wait_queue_update(&g->r->calls, reader_release, g->r);
	for (int64_t i = 0; i < g->have; i++) {
		mu_buf_fini(&g->keys[i]);
		mu_buf_fini(&g->values[i]);
	}
	free(g->keys);
	free(g->values);
	free(g->name);
	resource_unref(&g->r->base);
	resource_unref(&g->q->base);
	free(g);
}

static void reading_wait_free(struct waiter *w)
{
	struct reading_wait *wait = MU_CONTAINER(w, struct reading_wait, w);

	if (wait->g)
		reading_free(wait->g);
	free(wait);
}

static void reading_resume(struct waiter *w)
{
	struct reading *g = mu_steal(&MU_CONTAINER(w, struct reading_wait, w)->g);

	thread_pool_add(g->c->runtime->pool, &g->job);
}

static void reading_wait(struct reading *g, struct wait_queue *queue, struct resource *owner,
			 bool (*try)(struct waiter *w))
{
	struct reading_wait *wait = MU_NEW(struct reading_wait);

	resource_ref(owner);
	wait->g = g;
	wait->w = (struct waiter){.c = g->c,
				  .waiters = queue,
				  .owner = owner,
				  .what = "Read",
				  .try = try,
				  .resume = reading_resume,
				  .free = reading_wait_free};
	wait_queue_add(&wait->w, WAIT_TAKE);
}

static bool take_reader(struct waiter *w)
{
	struct reading *g = MU_CONTAINER(w, struct reading_wait, w)->g;

	if (g->r->busy)
		return false;
	g->r->busy = g->has_reader = true;
	return true;
}

/* Takes the next file name from the queue. */
static bool take_name(struct waiter *w)
{
	struct reading *g = MU_CONTAINER(w, struct reading_wait, w)->g;
	struct mu_tensor name;

	if (!queue_available(g->q)) {
		if (g->q->closed)
			mu_fail(&w->err, MU_OUT_OF_RANGE,
				"%s '%s' is closed and has insufficient elements (requested 1, "
				"current size 0)",
				g->q->spec.kind, w->owner->name);
		return g->q->closed;
	}
	queue_pop(g->q, &name);
	if (name.shape.count == 1)
		g->name = mu_xstrndup(elems_span(&name, 0).data, elems_span(&name, 0).len);
	else
		mu_invalid(&w->err, "a reader's queue must hold single names");
	mu_tensor_unref(&name);
	return true;
}

/* Reads records of the current file.  Returns false if the call needs another file name. */
static bool read_records(struct reading *g, struct mu_err *err)
{
	struct reader *r = g->r;

	while (g->have < g->want && r->work) {
		struct mu_buf key = {0}, value = {0};
		int rc = r->kind->next(r, &key, &value, err);
		if (rc <= 0) {
			mu_buf_fini(&key);
			mu_buf_fini(&value);
			end_work(r);
			r->completed += rc == 0;
			if (rc < 0 || g->have) /* all records of a call come from one file */
				return true;
			continue;
		}
		g->keys = mu_xrealloc(g->keys, (size_t)(g->have + 1) * sizeof *g->keys);
		g->values = mu_xrealloc(g->values, (size_t)(g->have + 1) * sizeof *g->values);
		g->keys[g->have] = key;
		g->values[g->have++] = value;
		r->produced++;
		if (r->kind->one_record) {
			set_last_work(r, r->work);
			end_work(r);
			r->completed++;
			return true;
		}
	}
	return g->have > 0;
}

static int output_strings(struct reading *g, unsigned i, const struct mu_buf *list,
			  struct mu_err *err)
{
	struct mu_shape s = g->is_read_up_to ? mu_shape_vec(g->have) : mu_shape_scalar();
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(g->c, i, MU_STRING, &s, &out, err));
	for (int64_t k = 0; k < g->have; k++)
		mu_string_set(&MU_DATA(struct mu_string, out)[k], list[k].data, list[k].len);
	return 0;
}

static void read_job(struct pool_job *job)
{
	struct reading *g = MU_CONTAINER(job, struct reading, job);
	struct kernel_call *c = g->c;
	struct reader *r = g->r;
	struct mu_err err = {0};

	pthread_mutex_lock(&r->lock);
	if (g->name)
		r->work = mu_steal(&g->name);
	bool done = read_records(g, &err);
	pthread_mutex_unlock(&r->lock);
	if (!done) {
		reading_wait(g, &g->q->waiters, &g->q->base, take_name);
		return;
	}
	if (!err.code && !output_strings(g, 0, g->keys, &err))
		output_strings(g, 1, g->values, &err);
	reading_free(g);
	kernel_finish(c, err.code ? &err : NULL);
}

static int prepare_read(struct kernel_call *c, struct reading *g, struct mu_err *err)
{
	struct resource *r, *q;
	int rc = 0;

	g->want = 1;
	if (g->is_read_up_to &&
	    ((rc = args_int(c, 2, &g->want, err)) || g->want < 1 || g->want > MAX_RECORDS))
		return rc ? rc
			  : mu_invalid(err, "num_records must be in [1, %d], not %lld", MAX_RECORDS,
				       (long long)g->want);
	MU_RETURN_IF_ERROR(handle_find(c, 0, &reader_type, &r, err));
	if ((rc = handle_find(c, 1, &queue_type, &q, err))) {
		resource_unref(r);
		return rc;
	}
	g->r = MU_CONTAINER(r, struct reader, base);
	g->q = MU_CONTAINER(q, struct queue, base);
	if (g->q->spec.n == 1 && g->q->spec.type[0] == MU_STRING)
		return 0;
	resource_unref(r);
	resource_unref(q);
	return mu_invalid(err, "a reader's queue must hold single strings");
}

static void start_read(struct kernel_call *c, bool is_read_up_to)
{
	struct reading *g = MU_NEW(struct reading);
	struct mu_err err;

	g->is_read_up_to = is_read_up_to;
	g->c = c;
	g->job.run = read_job;
	if (prepare_read(c, g, &err)) {
		free(g);
		kernel_finish(c, &err);
		return;
	}
	reading_wait(g, &g->r->calls, &g->r->base, take_reader);
}

static void reader_read_one(struct kernel_call *c)
{
	start_read(c, false);
}

static void read_up_to(struct kernel_call *c)
{
	start_read(c, true);
}

/* ---- counts ---- */

static int reader_hold(struct kernel_call *c, struct reader **out, struct mu_err *err)
{
	struct resource *r;

	MU_RETURN_IF_ERROR(handle_find(c, 0, &reader_type, &r, err));
	*out = MU_CONTAINER(r, struct reader, base);
	pthread_mutex_lock(&(*out)->lock);
	return 0;
}

static int output_count(struct kernel_call *c, struct reader *r, int64_t count, struct mu_err *err)
{
	struct mu_tensor t;
	int rc = mu_tensor_scalar(&t, MU_INT64, &count, err);

	pthread_mutex_unlock(&r->lock);
	resource_unref(&r->base);
	if (!rc)
		kernel_out_take(c, 0, t);
	return rc;
}

static int records_produced(struct kernel_call *c, struct mu_err *err)
{
	struct reader *r;

	MU_RETURN_IF_ERROR(reader_hold(c, &r, err));
	return output_count(c, r, r->produced, err);
}

static int work_units_completed(struct kernel_call *c, struct mu_err *err)
{
	struct reader *r;

	MU_RETURN_IF_ERROR(reader_hold(c, &r, err));
	return output_count(c, r, r->completed, err);
}

static void clear_state(struct reader *r)
{
	end_work(r);
	set_last_work(r, NULL);
	r->produced = r->completed = 0;
}

static int reset(struct kernel_call *c, struct mu_err *err)
{
	struct reader *r;

	MU_RETURN_IF_ERROR(reader_hold(c, &r, err));
	clear_state(r);
	pthread_mutex_unlock(&r->lock);
	resource_unref(&r->base);
	return 0;
}

/* ---- saved state: tensorflow.ReaderBaseState ---- */

enum { F_STARTED = 1, F_FINISHED = 2, F_PRODUCED = 3, F_WORK = 4 };

static int serialize(const struct reader *r, struct mu_buf *b, struct mu_err *err)
{
	if (!r->kind->one_record)
		return mu_fail(err, MU_UNIMPLEMENTED, "Reader SerializeState");
	if (r->completed) {
		mu_pb_put_int(b, F_STARTED, r->completed);
		mu_pb_put_int(b, F_FINISHED, r->completed);
	}
	if (r->produced)
		mu_pb_put_int(b, F_PRODUCED, r->produced);
	if (r->last_work)
		mu_pb_put_str(b, F_WORK, r->last_work);
	return 0;
}

static int restore(struct reader *r, struct mu_span state, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(state);
	int64_t count[F_WORK] = {0};
	struct mu_span work = {0};

	for (struct mu_pb_field f; mu_pb_next(&m, &f);) {
		if (f.number >= F_STARTED && f.number <= F_PRODUCED)
			count[f.number] = (int64_t)f.value;
		if (f.number == F_WORK)
			work = f.bytes;
	}
	clear_state(r);
	if (!r->kind->one_record)
		return mu_fail(err, MU_UNIMPLEMENTED, "Reader RestoreState");
	if (m.bad)
		return mu_invalid(err, "Could not parse state for %s '%s'", r->kind->op,
				  r->base.name);
	for (int i = F_STARTED; i <= F_PRODUCED; i++)
		if (count[i] < 0)
			return mu_invalid(err,
					  "Unexpected negative value when restoring in %s '%s'",
					  r->kind->op, r->base.name);
	if (count[F_STARTED] > count[F_FINISHED])
		return mu_invalid(
		    err, "Inconsistent work started vs. finished when restoring in %s '%s'",
		    r->kind->op, r->base.name);
	r->completed = count[F_FINISHED];
	r->produced = count[F_PRODUCED];
	if (work.len)
		r->last_work = mu_xstrndup(work.data, work.len);
	return 0;
}

static int serialize_state(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	struct mu_tensor *out;
	struct reader *r;

	MU_RETURN_IF_ERROR(reader_hold(c, &r, err));
	int rc = serialize(r, &b, err);
	pthread_mutex_unlock(&r->lock);
	resource_unref(&r->base);
	if (rc || (rc = kernel_out_scalar(c, 0, MU_STRING, &out, err)))
		return rc;
	mu_string_set(MU_DATA(struct mu_string, out), b.data, b.len);
	return 0;
}

static int restore_state(struct kernel_call *c, struct mu_err *err)
{
	struct reader *r;

	MU_RETURN_IF_ERROR(args_rank(c, 1, 0, err));
	MU_RETURN_IF_ERROR(reader_hold(c, &r, err));
	int rc = restore(r, elems_span(kernel_in(c, 1), 0), err);
	pthread_mutex_unlock(&r->lock);
	resource_unref(&r->base);
	return rc;
}

static const struct kernel rows[] = {
    {"TextLineReaderV2 TextLineReader TFRecordReaderV2 TFRecordReader FixedLengthRecordReaderV2 "
     "FixedLengthRecordReader WholeFileReaderV2 WholeFileReader IdentityReaderV2 IdentityReader",
     .run = reader_make},
    {"ReaderReadV2 ReaderRead", .start = reader_read_one},
    {"ReaderReadUpToV2 ReaderReadUpTo", .start = read_up_to},
    {"ReaderNumRecordsProducedV2 ReaderNumRecordsProduced", .run = records_produced},
    {"ReaderNumWorkUnitsCompletedV2 ReaderNumWorkUnitsCompleted", .run = work_units_completed},
    {"ReaderResetV2 ReaderReset", .run = reset},
    {"ReaderSerializeStateV2 ReaderSerializeState", .run = serialize_state},
    {"ReaderRestoreStateV2 ReaderRestoreState", .run = restore_state},
};
KERNEL_TABLE(io_reader, rows)
