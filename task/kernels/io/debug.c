/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of TensorFlow's debugger (tfdbg), which a worker adds to a graph with watched tensors
 * (task/worker/debug_nodes.c).  An uninitialised variable reaches them as a reference. */
#include <math.h>
#include <stdio.h>

#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/debug_sink.h"
#include "task/runtime/resources.h"

/* Field numbers of Event, Summary, Summary.Value, SummaryMetadata and PluginData. */
enum {
	EVENT_SUMMARY = 5,
	SUMMARY_VALUE = 1,
	VALUE_TAG = 1,
	VALUE_NODE_NAME = 7,
	VALUE_TENSOR = 8,
	VALUE_METADATA = 9,
	METADATA_PLUGIN = 1,
	PLUGIN_NAME = 1,
	PLUGIN_CONTENT = 2,
};

/* ---- publishing ---- */

/* Writes a TensorProto; without elements for a variable that is not initialised. */
static void put_value(struct mu_buf *b, const struct value *v)
{
	size_t at;

	if (!v->ref) {
		mu_tensor_write(b, &v->tensor);
		return;
	}
	mu_pb_put_int(b, 1, v->ref->dtype);
	at = mu_pb_begin(b, 2);
	mu_pshape_write(b, &v->ref->shape);
	mu_pb_end(b, at);
}

/* The Event of a value.  watched: "node:slot". */
static int64_t put_event(struct mu_buf *b, const struct kernel_call *c, const char *watched,
			 const char *slot, const struct value *v)
{
	MU_AUTO_FREE char *node_name = mu_xasprintf("%s:%s", watched, c->node->op);
	MU_AUTO_FREE char *content =
	    mu_xasprintf("{\"device\":\"%s\",\"outputSlot\":%d,\"numChunks\":1,\"chunkIndex\":0}",
			 args_attr_string(c->node, "device_name", ""), atoi(slot));
	int64_t time_us = debug_event_begin(b);
	size_t summary = mu_pb_begin(b, EVENT_SUMMARY), value = mu_pb_begin(b, SUMMARY_VALUE);
	size_t metadata, plugin, tensor;

	mu_pb_put_bytes(b, VALUE_TAG, (struct mu_span){watched, (size_t)(slot - 1 - watched)});
	mu_pb_put_str(b, VALUE_NODE_NAME, node_name);
	metadata = mu_pb_begin(b, VALUE_METADATA);
	plugin = mu_pb_begin(b, METADATA_PLUGIN);
	mu_pb_put_str(b, PLUGIN_NAME, "debugger");
	mu_pb_put_str(b, PLUGIN_CONTENT, content);
	mu_pb_end(b, plugin);
	mu_pb_end(b, metadata);
	tensor = mu_pb_begin(b, VALUE_TENSOR);
	put_value(b, v);
	mu_pb_end(b, tensor);
	mu_pb_end(b, value);
	mu_pb_end(b, summary);
	return time_us;
}

/* Publishes a value at all URLs of the node. */
static int publish(const struct kernel_call *c, const struct value *v, struct mu_err *err)
{
	const struct mu_attr *urls = mu_node_attr(c->node, "debug_urls");
	const char *watched = args_attr_string(c->node, "tensor_name", "");
	const char *colon = strrchr(watched, ':'); /* prepare_watch has checked it */
	MU_AUTO_BUF event = {0};
	MU_AUTO_BUF path = {0};
	int64_t time_us;

	if (!urls || !urls->n)
		return 0;
	time_us = put_event(&event, c, watched, colon + 1, v);
	debug_put_folder(&path, args_attr_string(c->node, "device_name", ""));
	mu_buf_printf(&path, "%.*s_%s_%s", (int)(colon - watched), watched, colon + 1, c->node->op);
	for (unsigned i = 0; i < urls->n; i++) {
		MU_AUTO_FREE char *url = mu_xstrndup(urls->ss[i].data, urls->ss[i].len);

		MU_RETURN_IF_ERROR(
		    debug_publish(url, path.data, time_us, mu_buf_span(&event), err));
	}
	return 0;
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

static double bound(const struct kernel_call *c, const char *name, double otherwise)
{
	double x = args_attr_float(c->node, name, (float)otherwise);
	enum mu_dtype t = kernel_in(c, 0)->dtype;

	return t == MU_FLOAT || t == MU_DOUBLE ? x : trunc(x); /* as the elements' type */
}

/* Elements beyond a finite bound count as infinite, but not for the minimum and the others. */
static void summarize(const struct kernel_call *c, const double *x, int64_t n,
		      struct numeric_summary *s)
{
	double lower = bound(c, "lower_bound", -INFINITY), sum = 0, squares = 0;
	double upper = bound(c, "upper_bound", INFINITY);
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
	static const enum mu_dtype both[] = {MU_FLOAT, MU_DOUBLE, MU_INT8,   MU_INT16,  MU_INT32,
					     MU_INT64, MU_UINT8,  MU_UINT16, MU_UINT32, MU_UINT64};
	bool summary = strcmp(n->op, "DebugNumericSummary") == 0;
	enum mu_dtype t = args_attr_type(n, "T", MU_FLOAT);
	bool known = summary ? t == MU_BOOL : t == MU_HALF || t == MU_BFLOAT16;

	for (unsigned i = 0; i < MU_COUNT(both); i++)
		known |= both[i] == t;
	if (!known)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for type %s", n->op,
			       mu_dtype_name(t));
	return prepare_watch(n, rt, state, err);
}

static const struct kernel rows[] = {
    {"DebugIdentity", KERNEL_NO_FOLD, .run = debug_identity, .prepare = prepare_watch},
    {"DebugNanCount", KERNEL_NO_FOLD, .run = debug_nan_count, .prepare = prepare_numbers},
    {"DebugNumericSummary", KERNEL_NO_FOLD, .run = debug_numeric_summary,
     .prepare = prepare_numbers},
};
KERNEL_TABLE(io_debug, rows)
