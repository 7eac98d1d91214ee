/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that output serialized Summary messages. */
#include "lib/base/map.h"
#include "lib/base/pb.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/summary_writer.h"

static int scalar_summary(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *tags = kernel_in(c, 0), *values = kernel_in(c, 1);
	MU_AUTO_BUF b = {0};

	if (!mu_shape_eq(&tags->shape, &values->shape))
		return mu_invalid(err, "tags and values are not the same shape: %s != %s",
				  mu_shape_str(&tags->shape), mu_shape_str(&values->shape));
	for (int64_t i = 0; i < values->shape.count; i++) {
		float v;
		convert(MU_FLOAT, &v, values->dtype,
			(char *)values->data + (size_t)i * mu_dtype_size(values->dtype), 1);
		size_t at = mu_pb_begin(&b, SUMMARY_VALUE);
		if (elems_span(tags, i).len)
			mu_pb_put_bytes(&b, VALUE_TAG, elems_span(tags, i));
		mu_pb_put_float(&b, VALUE_SIMPLE, v);
		mu_pb_end(&b, at);
	}
	return kernel_out_string(c, 0, mu_buf_span(&b), err);
}

static int tensor_summary(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};

	if (kernel_in(c, 0)->shape.rank || kernel_in(c, 2)->shape.rank)
		return mu_invalid(err, "tag and serialized_summary_metadata must be scalars");
	size_t value = mu_pb_begin(&b, SUMMARY_VALUE);
	mu_pb_put_bytes(&b, VALUE_TAG, elems_span(kernel_in(c, 0), 0));
	summary_put_tensor(&b, kernel_in(c, 1));
	mu_pb_put_bytes(&b, VALUE_METADATA, elems_span(kernel_in(c, 2), 0));
	mu_pb_end(&b, value);
	return kernel_out_string(c, 0, mu_buf_span(&b), err);
}

static int tensor_summary_first(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	size_t value = mu_pb_begin(&b, SUMMARY_VALUE);

	mu_pb_put_str(&b, VALUE_NODE_NAME, c->node->name);
	summary_put_tensor(&b, kernel_in(c, 0));
	mu_pb_end(&b, value);
	return kernel_out_string(c, 0, mu_buf_span(&b), err);
}

static int histogram_summary(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *tag = kernel_in(c, 0), *values = kernel_in(c, 1);
	MU_AUTO_BUF b = {0};

	if (tag->shape.rank || !convert_supports(MU_DOUBLE, values->dtype))
		return mu_invalid(err, "tags must be scalar and values numbers");
	MU_RETURN_IF_ERROR(
	    summary_put_histogram(&b, c->node->name, elems_span(tag, 0), values, err));
	return kernel_out_string(c, 0, mu_buf_span(&b), err);
}

/* ---- MergeSummary ---- */

/* Adds the tags of a summary to the set; fails on a duplicate. */
static int add_tags(struct mu_map *tags, struct mu_span summary, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(summary);
	struct mu_pb_field f, g;

	while (mu_pb_next(&m, &f)) {
		if (f.number != SUMMARY_VALUE)
			continue;
		struct mu_pb v = mu_pb_of(f.bytes);
		while (mu_pb_next(&v, &g))
			if (g.number == VALUE_TAG && g.type == MU_PB_BYTES && g.bytes.len &&
			    mu_map_put_n(tags, g.bytes.data, g.bytes.len, tags))
				return mu_invalid(err, "Duplicate tag %.*s found in summary inputs",
						  (int)g.bytes.len, g.bytes.data);
		m.bad |= v.bad;
	}
	return m.bad ? mu_invalid(err, "Could not parse one of the summary inputs") : 0;
}

static int merge_summary(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	struct mu_map tags;
	int rc = 0;

	mu_map_init(&tags);
	for (unsigned i = 0; i < c->n_in && !rc; i++) {
		const struct mu_tensor *t = kernel_in(c, i);
		for (int64_t k = 0; !rc && k < t->shape.count; k++) {
			struct mu_span s = elems_span(t, k);
			rc = add_tags(&tags, s, err);
			mu_buf_put(&b, s.data, s.len);
		}
	}
	mu_map_fini(&tags);
	return rc ? rc : kernel_out_string(c, 0, mu_buf_span(&b), err);
}

static const struct kernel rows[] = {
    {"ScalarSummary", .run = scalar_summary},       {"TensorSummaryV2", .run = tensor_summary},
    {"TensorSummary", .run = tensor_summary_first}, {"HistogramSummary", .run = histogram_summary},
    {"MergeSummary", .run = merge_summary},
};
KERNEL_TABLE(io_summary, rows)
