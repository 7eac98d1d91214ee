/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of TensorFlow's debugger (tfdbg), which a worker adds to a graph with watched tensors
 * (task/worker/debug_nodes.c).  Their input is a reference if a variable is not initialised. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/offload.h"
#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/summary_writer.h"
#include "task/runtime/resources.h"
#include "task/runtime/runtime.h"

/* Field numbers of Event, SummaryMetadata, PluginData and TensorProto. */
enum {
	EVENT_SUMMARY = 5,
	METADATA_PLUGIN = 1,
	PLUGIN_NAME = 1,
	PLUGIN_CONTENT = 2,
	TENSOR_DTYPE = 1,
	TENSOR_SHAPE = 2,
	TENSOR_CONTENT = 4,
	TENSOR_STRING_VAL = 8,
};

/* ---- events ---- */

/* A value that a debug node publishes, with its names. */
struct publication {
	const struct kernel_call *call;
	const struct value *value;
	const char *tensor_name; /* "node:slot" */
	const char *slot;        /* in tensor_name */
	const char *watch_key;   /* "node:slot:DebugOp" */
	const char *path;        /* of a file */
	int64_t time_us;
};

/* A part of a tensor: bytes of its content, or elements of a string tensor. */
struct chunk {
	size_t from, to;
	unsigned index, n;
};

/* Writes a TensorProto; it has no elements if the variable is not initialised. */
static void put_value(struct mu_buf *b, const struct value *v, const struct chunk *part)
{
	enum mu_dtype type = v->ref ? v->ref->dtype : v->tensor.dtype;
	struct mu_pshape shape = v->ref ? v->ref->shape : mu_pshape_of(&v->tensor.shape);
	const struct mu_string *strings = v->tensor.data;
	size_t at;

	if (!v->ref && part->n == 1) {
		mu_tensor_write(b, &v->tensor);
		return;
	}
	mu_pb_put_int(b, TENSOR_DTYPE, type);
	at = mu_pb_begin(b, TENSOR_SHAPE);
	mu_pshape_write(b, &shape);
	mu_pb_end(b, at);
	if (v->ref)
		return;
	if (type == MU_STRING)
		for (size_t i = part->from; i < part->to; i++)
			mu_pb_put_bytes(b, TENSOR_STRING_VAL,
					(struct mu_span){strings[i].data, strings[i].len});
	else
		mu_pb_put_bytes(b, TENSOR_CONTENT,
				(struct mu_span){(const char *)v->tensor.data + part->from,
						 part->to - part->from});
}

static void put_event(struct mu_buf *b, const struct publication *p, const struct chunk *part)
{
	MU_AUTO_FREE char *content =
	    mu_xasprintf("{\"device\":\"%s\",\"outputSlot\":%d,\"numChunks\":%u,\"chunkIndex\":%u}",
			 args_attr_string(p->call->node, "device_name", ""), atoi(p->slot), part->n,
			 part->index);
	size_t summary, value, metadata, plugin, tensor;

	debug_event_begin(b, p->time_us);
	summary = mu_pb_begin(b, EVENT_SUMMARY);
	value = mu_pb_begin(b, SUMMARY_VALUE);
	mu_pb_put_bytes(b, VALUE_TAG,
			(struct mu_span){p->tensor_name, (size_t)(p->slot - 1 - p->tensor_name)});
	mu_pb_put_str(b, VALUE_NODE_NAME, p->watch_key);
	metadata = mu_pb_begin(b, VALUE_METADATA);
	plugin = mu_pb_begin(b, METADATA_PLUGIN);
	mu_pb_put_str(b, PLUGIN_NAME, "debugger");
	mu_pb_put_str(b, PLUGIN_CONTENT, content);
	mu_pb_end(b, plugin);
	mu_pb_end(b, metadata);
	tensor = mu_pb_begin(b, VALUE_TENSOR);
	put_value(b, p->value, part);
	mu_pb_end(b, tensor);
	mu_pb_end(b, value);
	mu_pb_end(b, summary);
}

/* ---- chunks ---- */

/* The size of a value in bytes or strings, for its division into chunks.  0: a type that is sent in
 * one chunk. */
static size_t divisible_size(const struct value *v)
{
	if (v->ref)
		return 0;
	if (v->tensor.dtype == MU_STRING)
		return (size_t)v->tensor.shape.count;
	return mu_dtype_size(v->tensor.dtype) ? mu_tensor_bytes(&v->tensor) : 0;
}

/* Finds the end of the chunk that begins at `from`. */
static int chunk_end(const struct publication *p, size_t from, size_t size, size_t *to,
		     struct mu_err *err)
{
	const struct mu_string *strings = p->value->tensor.data;
	size_t bytes = 0;

	if (size == 0 || p->value->tensor.dtype != MU_STRING) {
		*to = size - from < DEBUG_CHUNK_BYTES ? size : from + DEBUG_CHUNK_BYTES;
		return 0;
	}
	if (strings[from].len > DEBUG_CHUNK_BYTES)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "string value at index %zu from debug node %s does not fit gRPC "
			       "message size limit (%d)",
			       from, p->watch_key, DEBUG_CHUNK_BYTES);
	for (*to = from; *to < size && bytes + strings[*to].len <= DEBUG_CHUNK_BYTES; ++*to)
		bytes += strings[*to].len;
	return 0;
}

static int publish_chunk(const struct publication *p, const struct debug_sink *sink,
			 const char *url, const struct chunk *part, struct mu_err *err)
{
	MU_AUTO_BUF event = {0};

	put_event(&event, p, part);
	return sink->publish(p->call->runtime, url,
			     &(struct debug_event){.bytes = mu_buf_span(&event),
						   .path = p->path,
						   .time_us = p->time_us,
						   .watch_key = p->watch_key,
						   .is_last = part->index + 1 == part->n},
			     err);
}

/* Publishes the value to a stream, in as many chunks as it needs. */
static int publish_chunks(const struct publication *p, const struct debug_sink *sink,
			  const char *url, struct mu_err *err)
{
	size_t size = divisible_size(p->value);
	struct chunk part = {0};

	do {
		MU_RETURN_IF_ERROR(chunk_end(p, part.to, size, &part.to, err));
		part.n++;
	} while (part.to < size);
	for (part.to = 0; part.index < part.n; part.index++) {
		part.from = part.to;
		MU_RETURN_IF_ERROR(chunk_end(p, part.from, size, &part.to, err));
		MU_RETURN_IF_ERROR(publish_chunk(p, sink, url, &part, err));
	}
	return 0;
}

/* ---- publishing ---- */

static bool is_gated(const struct kernel_call *c)
{
	return args_attr_bool(c->node, "gated_grpc", false);
}

static bool is_enabled(const struct kernel_call *c, const char *url, const char *watch_key)
{
	const struct debug_streams *s = &c->runtime->debug_streams;

	return s->is_enabled && s->is_enabled(s->ctx, url, watch_key);
}

static int publish_at(const struct publication *p, const struct debug_sink *sink, const char *url,
		      struct mu_err *err)
{
	if (!sink->is_stream)
		return publish_chunk(p, sink, url, &(struct chunk){.n = 1}, err);
	if (is_gated(p->call) && !is_enabled(p->call, url, p->watch_key))
		return 0;
	return publish_chunks(p, sink, url, err);
}

static int publish_at_all(const struct publication *p, const struct mu_attr *urls,
			  struct mu_err *err)
{
	MU_AUTO_BUF errors = {0};
	unsigned failed = 0;
	struct mu_err publish_err;

	for (unsigned i = 0; i < urls->n; i++) {
		MU_AUTO_FREE char *url = mu_xstrndup(urls->ss[i].data, urls->ss[i].len);
		const struct debug_sink *sink = debug_sink_find(url);

		if (!sink)
			return mu_fail(err, MU_INTERNAL, "Invalid debug target URL: %s", url);
		if (publish_at(p, sink, url, &publish_err)) {
			failed++;
			mu_buf_printf(&errors, " %s;", publish_err.msg);
		}
	}
	if (!failed)
		return 0;
	return mu_fail(err, MU_INTERNAL,
		       "Publishing to %u of %u debug target URLs failed, due to the following "
		       "errors:%s",
		       failed, urls->n, errors.data);
}

/* Publishes a value at all URLs of the node. */
static int publish(const struct kernel_call *c, const struct value *v, struct mu_err *err)
{
	const struct mu_attr *urls = mu_node_attr(c->node, "debug_urls");
	const char *tensor_name = args_attr_string(c->node, "tensor_name", "");
	const char *colon = strrchr(tensor_name, ':'); /* prepare_watch has checked it */
	MU_AUTO_FREE char *watch_key = mu_xasprintf("%s:%s", tensor_name, c->node->op);
	MU_AUTO_BUF path = {0};

	if (!urls || !urls->n)
		return 0;
	debug_put_folder(&path, args_attr_string(c->node, "device_name", ""));
	mu_buf_printf(&path, "%.*s_%s_%s", (int)(colon - tensor_name), tensor_name, colon + 1,
		      c->node->op);
	return publish_at_all(&(struct publication){c, v, tensor_name, colon + 1, watch_key,
						    path.data, debug_event_time()},
			      urls, err);
}

/* True if all URLs are streams and none of their servers has enabled the watch key. */
static bool is_gated_off(const struct kernel_call *c)
{
	const struct mu_attr *urls = mu_node_attr(c->node, "debug_urls");
	MU_AUTO_FREE char *watch_key =
	    mu_xasprintf("%s:%s", args_attr_string(c->node, "tensor_name", ""), c->node->op);

	if (!is_gated(c))
		return false;
	for (unsigned i = 0; urls && i < urls->n; i++) {
		MU_AUTO_FREE char *url = mu_xstrndup(urls->ss[i].data, urls->ss[i].len);
		const struct debug_sink *sink = debug_sink_find(url);

		if (!sink || !sink->is_stream || is_enabled(c, url, watch_key))
			return false;
	}
	return true;
}

/* ---- kernels ---- */

static int debug_identity(struct kernel_call *c, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(publish(c, &c->in[0], err));
	if (c->in[0].ref)
		kernel_out_ref(c, 0, c->in[0].ref);
	else
		kernel_out_take(c, 0, mu_tensor_ref(kernel_in(c, 0)));
	return 0;
}

struct numeric_summary {
	double nan, negative_infinity, negative, zero, positive, positive_infinity;
	double min, max, mean, variance;
};

static double bound_attr(const struct kernel_call *c, const char *name, double default_value)
{
	double x = args_attr_float(c->node, name, (float)default_value);
	enum mu_dtype t = kernel_in(c, 0)->dtype;

	return t == MU_FLOAT || t == MU_DOUBLE ? x : trunc(x); /* converted to T */
}

/* Counts elements beyond a bound as infinite.  The minimum, maximum, mean and variance include all
 * finite elements. */
static void summarize(const struct kernel_call *c, const double *x, int64_t n,
		      struct numeric_summary *s)
{
	double lower = bound_attr(c, "lower_bound", -INFINITY), sum = 0, squares = 0;
	double upper = bound_attr(c, "upper_bound", INFINITY);
	int64_t finite = 0;

	*s = (struct numeric_summary){.min = INFINITY, .max = -INFINITY};
	for (int64_t i = 0; i < n; i++) {
		s->nan += isnan(x[i]);
		if (isnan(x[i]))
			continue;
		s->negative_infinity += x[i] <= lower;
		s->positive_infinity += x[i] > lower && x[i] >= upper;
		if (x[i] > lower && x[i] < upper) {
			s->negative += x[i] < 0;
			s->zero += x[i] == 0;
			s->positive += x[i] > 0;
		}
		if (isinf(x[i]))
			continue;
		s->min = fmin(s->min, x[i]);
		s->max = fmax(s->max, x[i]);
		sum += x[i];
		finite++;
	}
	s->mean = sum / (double)finite;
	for (int64_t i = 0; i < n; i++)
		if (isfinite(x[i]))
			squares += (x[i] - s->mean) * (x[i] - s->mean);
	s->variance = squares / (double)finite;
}

static int debug_numeric_summary(struct kernel_call *c, struct mu_err *err)
{
	const struct value *v = &c->in[0];
	struct mu_pshape shape = v->ref ? v->ref->shape : mu_pshape_of(&v->tensor.shape);
	int64_t n = v->ref ? 0 : v->tensor.shape.count;
	int rank = shape.rank < 0 ? 0 : shape.rank;
	struct mu_tensor doubles = {0}, *t;
	struct numeric_summary s;

	if (!v->ref)
		MU_RETURN_IF_ERROR(convert_tensor(&doubles, MU_DOUBLE, &v->tensor, err));
	summarize(c, v->ref ? NULL : MU_DATA(double, &doubles), n, &s);
	mu_tensor_unref(&doubles);
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, MU_DOUBLE, 14 + rank, &t, err));
	memcpy(t->data,
	       (double[]){!v->ref, (double)n, s.nan, s.negative_infinity, s.negative, s.zero,
			  s.positive, s.positive_infinity, s.min, s.max, s.mean, s.variance,
			  v->ref ? v->ref->dtype : v->tensor.dtype, rank},
	       14 * sizeof(double));
	for (int i = 0; i < rank; i++)
		MU_DATA(double, t)[14 + i] = (double)shape.dim[i];
	if (args_attr_bool(c->node, "mute_if_healthy", false) && !s.nan && !s.negative_infinity &&
	    !s.positive_infinity)
		return 0;
	return publish(c, &(struct value){.tensor = *t}, err);
}

static int debug_nan_count(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor doubles = {0}, *t;
	int64_t n = 0;

	if (!c->in[0].ref)
		MU_RETURN_IF_ERROR(convert_tensor(&doubles, MU_DOUBLE, kernel_in(c, 0), err));
	for (int64_t i = 0; !c->in[0].ref && i < doubles.shape.count; i++)
		n += isnan(MU_DATA(double, &doubles)[i]);
	mu_tensor_unref(&doubles);
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, MU_INT64, 1, &t, err));
	*MU_DATA(int64_t, t) = n;
	return publish(c, &(struct value){.tensor = *t}, err);
}

static int prepare_watch(const struct mu_node *n, struct runtime *rt, void **state,
			 struct mu_err *err)
{
	const char *watched = args_attr_string(n, "tensor_name", "");
	const char *colon = strrchr(watched, ':');

	if (!colon || colon == watched || !colon[1] ||
	    colon[1 + strspn(colon + 1, "0123456789")] != '\0')
		return mu_invalid(err, "Failed to parse tensor name: \"%s\"", watched);
	return 0;
}

static int prepare_numbers(const struct mu_node *n, struct runtime *rt, void **state,
			   struct mu_err *err)
{
	static const enum mu_dtype common_types[] = {MU_FLOAT,  MU_DOUBLE, MU_INT8,  MU_INT16,
						     MU_INT32,  MU_INT64,  MU_UINT8, MU_UINT16,
						     MU_UINT32, MU_UINT64};
	bool summary = strcmp(n->op, "DebugNumericSummary") == 0;
	enum mu_dtype t = args_attr_type(n, "T", MU_FLOAT);
	bool is_supported = summary ? t == MU_BOOL : mu_dtype_is_16_bit_float(t);

	for (unsigned i = 0; i < MU_COUNT(common_types); i++)
		is_supported |= common_types[i] == t;
	if (!is_supported)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for type %s", n->op,
			       mu_dtype_name(t));
	return prepare_watch(n, rt, state, err);
}

static int run(struct kernel_call *c, struct mu_err *err)
{
	bool counts = strcmp(c->node->op, "DebugNanCount") == 0;
	bool summary = strcmp(c->node->op, "DebugNumericSummary") == 0;
	enum mu_dtype type = counts    ? MU_INT64
			     : summary ? MU_DOUBLE
				       : args_attr_type(c->node, "T", MU_FLOAT);
	struct mu_tensor *empty;

	if (is_gated_off(c))
		return kernel_out_vec(c, 0, type, 0, &empty, err);
	return counts    ? debug_nan_count(c, err)
	       : summary ? debug_numeric_summary(c, err)
			 : debug_identity(c, err);
}

static void run_and_finish(void *arg)
{
	struct kernel_call *c = arg;
	struct mu_err err;
	int rc = run(c, &err);

	kernel_finish(c, rc ? &err : NULL);
}

/* Nodes that publish to a stream run on an offload thread, because they wait for the network. */
static void debug_start(struct kernel_call *c)
{
	const struct mu_attr *urls = mu_node_attr(c->node, "debug_urls");
	struct mu_offload *offload = c->runtime->debug_streams.offload;
	bool has_stream = false;

	for (unsigned i = 0; offload && urls && i < urls->n; i++) {
		MU_AUTO_FREE char *url = mu_xstrndup(urls->ss[i].data, urls->ss[i].len);
		const struct debug_sink *sink = debug_sink_find(url);

		has_stream |= sink && sink->is_stream;
	}
	if (has_stream)
		mu_offload_run(offload, run_and_finish, c);
	else
		run_and_finish(c);
}

/* ---- DebugNumericSummaryV2 ---- */

enum tensor_debug_mode {
	CURT_HEALTH = 2,
	CONCISE_HEALTH = 3,
	FULL_HEALTH = 4,
	SHAPE = 5,
	REDUCE_INF_NAN_THREE_SLOTS = 8,
};
enum { SHAPE_DIMS = 6 };

/* Writes the numbers in the layout of a mode.  Returns their count; 0 if TensorFlow does not have
 * the mode either. */
static int put_debug_numbers(enum tensor_debug_mode mode, int64_t id, const struct mu_tensor *t,
			     const struct numeric_summary *s, double *out)
{
	const double n = (double)t->shape.count, type = t->dtype, rank = t->shape.rank;
	bool is_finite = !s->nan && !s->negative_infinity && !s->positive_infinity;
	const double concise[] = {(double)id, n, s->negative_infinity, s->positive_infinity,
				  s->nan};
	const double full[] = {
	    (double)id, -1, /* no device id */
	    type,       rank,        n,       s->negative_infinity, s->positive_infinity,
	    s->nan,     s->negative, s->zero, s->positive};

	switch (mode) {
	case CURT_HEALTH:
		memcpy(out, (double[]){(double)id, !is_finite}, 2 * sizeof *out);
		return 2;
	case CONCISE_HEALTH:
		memcpy(out, concise, sizeof concise);
		return MU_COUNT(concise);
	case FULL_HEALTH:
		memcpy(out, full, sizeof full);
		return MU_COUNT(full);
	case SHAPE:
		memcpy(out, (double[]){(double)id, type, rank, n}, 4 * sizeof *out);
		for (int i = 0; i < SHAPE_DIMS; i++) {
			int d = t->shape.rank > SHAPE_DIMS ? t->shape.rank - SHAPE_DIMS + i : i;
			out[4 + i] = d < t->shape.rank ? (double)t->shape.dim[d] : 0;
		}
		return 4 + SHAPE_DIMS;
	case REDUCE_INF_NAN_THREE_SLOTS:
		out[0] = s->negative_infinity ? -INFINITY : 0;
		out[1] = s->positive_infinity ? INFINITY : 0;
		out[2] = s->nan ? NAN : 0;
		return 3;
	}
	return 0;
}

static int debug_numbers(struct kernel_call *c, struct mu_err *err)
{
	int64_t mode = args_attr_int(c->node, "tensor_debug_mode", -1);
	int64_t id = args_attr_int(c->node, "tensor_id", -1);
	enum mu_dtype type = args_attr_type(c->node, "output_dtype", MU_FLOAT);
	int digits = type == MU_FLOAT ? FLT_MANT_DIG : DBL_MANT_DIG;
	MU_AUTO_TENSOR doubles = {0};
	struct numeric_summary s;
	struct mu_tensor *out;
	double numbers[16];

	if (mode != REDUCE_INF_NAN_THREE_SLOTS && id > (int64_t)1 << digits)
		return mu_invalid(err,
				  "DebugNumericSummaryV2Op requires tensor_id to be less than or "
				  "equal to (2^%d). Given tensor_id:%lld",
				  digits, (long long)id);
	MU_RETURN_IF_ERROR(convert_tensor(&doubles, MU_DOUBLE, kernel_in(c, 0), err));
	summarize(c, doubles.data, doubles.shape.count, &s);
	int n = put_debug_numbers((enum tensor_debug_mode)mode, id, kernel_in(c, 0), &s, numbers);
	if (!n)
		return mu_fail(err, MU_UNIMPLEMENTED, "Unimplemented tensor debug mode: %lld",
			       (long long)mode);
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, type, n, &out, err));
	convert(type, out->data, MU_DOUBLE, numbers, n);
	return 0;
}

static const struct kernel rows[] = {
    {"DebugNumericSummaryV2", .run = debug_numbers},
    {"DebugIdentity", KERNEL_NO_FOLD, .start = debug_start, .prepare = prepare_watch},
    {"DebugNanCount DebugNumericSummary", KERNEL_NO_FOLD, .start = debug_start,
     .prepare = prepare_numbers},
};
KERNEL_TABLE(io_debug, rows)
