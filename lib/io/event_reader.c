/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/event_reader.h"

#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"

int mu_event_parse(struct mu_event *out, struct mu_span record, struct mu_err *err)
{
	static const enum mu_event_kind kinds[] = {
	    [3] = MU_EVENT_VERSION,    [4] = MU_EVENT_GRAPH,       [5] = MU_EVENT_SUMMARY,
	    [6] = MU_EVENT_LOG,        [7] = MU_EVENT_SESSION_LOG, [8] = MU_EVENT_RUN_METADATA,
	    [9] = MU_EVENT_META_GRAPH,
	};
	struct mu_pb m = mu_pb_of(record);
	struct mu_event e = {.body = {"", 0}};
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f)) {
		if (f.number == 1 && f.type == MU_PB_FIXED64)
			e.wall_time = mu_pb_double(&f);
		if (f.number == 2 && f.type == MU_PB_VARINT)
			e.step = (int64_t)f.value;
		if (f.number >= 3 && f.number < MU_COUNT(kinds) && f.type == MU_PB_BYTES) {
			e.kind = kinds[f.number];
			e.body = f.bytes;
		}
	}
	if (m.bad)
		return mu_fail(err, MU_DATA_LOSS, "the event is malformed");
	*out = e;
	return 0;
}

/* Newer programs write a float tensor with one element instead of simple_value. */
static bool tensor_scalar(struct mu_span proto, float *out)
{
	MU_AUTO_TENSOR t = {0};

	if (proto.len > 256 || mu_tensor_parse(&t, proto, NULL) || t.dtype != MU_FLOAT ||
	    t.shape.count != 1)
		return false;
	*out = MU_DATA(float, &t)[0];
	return true;
}

static bool parse_value(struct mu_span s, struct mu_summary_value *v)
{
	struct mu_pb m = mu_pb_of(s);
	struct mu_pb_field f;

	*v = (struct mu_summary_value){.tag = {"", 0}};
	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			v->tag = f.bytes;
		if (f.number == 2 && f.type == MU_PB_FIXED32) {
			v->is_scalar = true;
			v->scalar = mu_pb_float(&f);
		}
		if (f.number == 8 && f.type == MU_PB_BYTES && tensor_scalar(f.bytes, &v->scalar))
			v->is_scalar = true;
	}
	return !m.bad;
}

int mu_summary_next(struct mu_span summary, size_t *at, struct mu_summary_value *v,
		    struct mu_err *err)
{
	struct mu_pb m = mu_pb_of((struct mu_span){summary.data + *at, summary.len - *at});
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f)) {
		*at = (size_t)(m.at - summary.data);
		if (f.number != 1 || f.type != MU_PB_BYTES)
			continue;
		if (!parse_value(f.bytes, v))
			return mu_fail(err, MU_DATA_LOSS, "a summary value is malformed");
		return 1;
	}
	return m.bad ? mu_fail(err, MU_DATA_LOSS, "the summary is malformed") : 0;
}
