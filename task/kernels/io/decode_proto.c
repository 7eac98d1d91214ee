/* SPDX-License-Identifier: Apache-2.0 */
/* DecodeProtoV2 and EncodeProto: convert serialized messages to tensors, and back. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/proto_schema.h"

struct decoder {
	struct proto_schema schema;
	bool sanitize;
};

static void coder_free(void *state)
{
	struct decoder *d = state;

	proto_schema_fini(&d->schema);
	free(d);
}

/* ---- DecodeProto ---- */

static int decoder_read(struct decoder *d, const struct mu_node *n, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(n, "output_types");
	const char *format = args_attr_string(n, "message_format", "binary");

	MU_RETURN_IF_ERROR(proto_schema_read(&d->schema, n, err));
	if (types->n != d->schema.n)
		return mu_invalid(
		    err, "field_names and output_types attributes must have the same length");
	for (unsigned k = 0; k < d->schema.n; k++) {
		const struct proto_field *f = &d->schema.field[k];
		if (!proto_type_fits(f->type, types->types[k]))
			return mu_invalid(err, "Unexpected output type for %s.%.*s: %u to %d",
					  args_attr_string(n, "message_type", ""), (int)f->name.len,
					  f->name.data, f->type->cpp_type, (int)types->types[k]);
	}
	if (strcmp(format, "text") == 0)
		return mu_fail(err, MU_UNIMPLEMENTED, "messages in text format are not read");
	if (strcmp(format, "binary") != 0)
		return mu_invalid(err, "format must be one of binary or text");
	d->sanitize = args_attr_bool(n, "sanitize", false);
	return 0;
}

static int decoder_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			   struct mu_err *err)
{
	struct decoder *d = MU_NEW(struct decoder);
	int rc = decoder_read(d, n, err);

	if (rc)
		coder_free(d);
	else
		*state = d;
	return rc;
}

/* The state of reading one message: counts its values, and writes them to row `row` of `out`. */
struct row {
	const struct proto_schema *schema;
	int32_t *count;         /* of each field */
	struct mu_tensor **out; /* NULL: only count */
	int64_t row;
};

static void put_value(struct mu_tensor *t, int64_t at, const struct proto_field *f,
		      const struct proto_value *v)
{
	float single;

	switch (t->dtype) {
	case MU_STRING:
		mu_string_set(&MU_DATA(struct mu_string, t)[at], v->bytes.data, v->bytes.len);
		break;
	case MU_DOUBLE:
		if (f->type->dtype == MU_FLOAT) {
			memcpy(&single, &v->number, sizeof single);
			MU_DATA(double, t)[at] = single;
		} else {
			memcpy(&MU_DATA(double, t)[at], &v->number, sizeof v->number);
		}
		break;
	default: /* the low bytes of the number */
		memcpy((char *)t->data + (size_t)at * mu_dtype_size(t->dtype), &v->number,
		       mu_dtype_size(t->dtype));
	}
}

static struct proto_value default_of(const struct proto_field *f)
{
	return (struct proto_value){f->value, f->bytes};
}

static void add_value(void *arg, unsigned k, const struct proto_value *v)
{
	struct row *r = arg;
	const struct proto_field *f = &r->schema->field[k];
	struct proto_value default_value = default_of(f);

	if (r->out) {
		const struct mu_shape *s = &r->out[k]->shape;
		put_value(r->out[k], r->row * s->dim[s->rank - 1] + (f->repeated ? r->count[k] : 0),
			  f, v ? v : &default_value);
	}
	if (!f->repeated)
		r->count[k] = 1;
	else if (r->count[k] < INT32_MAX)
		r->count[k]++;
}

static int count_values(struct kernel_call *c, const struct decoder *d, int32_t *sizes,
			struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const struct proto_schema *s = &d->schema;

	for (int64_t i = 0; i < in->shape.count; i++) {
		struct row r = {.schema = s, .count = &sizes[i * s->n]};
		if (d->sanitize && !proto_is_valid(s, elems_span(in, i)))
			return mu_fail(err, MU_DATA_LOSS, "Unable to parse binary protobuf");
		MU_RETURN_IF_ERROR(proto_read(s, elems_span(in, i), add_value, &r, err));
	}
	return 0;
}

/* Allocates output k + 1: a row for each message, with the most values of a message, at least 1. */
static int make_values(struct kernel_call *c, unsigned k, unsigned n, const int32_t *sizes,
		       struct mu_tensor **out, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(c->node, "output_types");
	struct mu_shape shape = kernel_in(c, 0)->shape;
	int64_t longest = 1;

	for (int64_t i = 0; i < kernel_in(c, 0)->shape.count; i++)
		if (sizes[i * n + k] > longest)
			longest = sizes[i * n + k];
	MU_RETURN_IF_ERROR(mu_shape_push(&shape, longest, err));
	return kernel_out(c, k + 1, types->types[k], &shape, out, err);
}

static int decode_proto(struct kernel_call *c, struct mu_err *err)
{
	const struct decoder *d = c->state;
	const struct mu_tensor *in = kernel_in(c, 0);
	unsigned n = d->schema.n;
	MU_AUTO_FREE struct mu_tensor **out = MU_NEW_ARRAY(struct mu_tensor *, n + 1);
	MU_AUTO_FREE int32_t *count = MU_NEW_ARRAY(int32_t, n + 1);
	struct mu_shape shape = in->shape;
	struct mu_tensor *sizes;

	if (!in->shape.count)
		return mu_invalid(err, "Bufs argument must contain at least one value");
	MU_RETURN_IF_ERROR(mu_shape_push(&shape, n, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT32, &shape, &sizes, err));
	memset(sizes->data, 0, (size_t)shape.count * sizeof(int32_t));
	MU_RETURN_IF_ERROR(count_values(c, d, sizes->data, err));
	for (unsigned k = 0; k < n; k++)
		MU_RETURN_IF_ERROR(make_values(c, k, n, sizes->data, &out[k], err));
	for (int64_t i = 0; i < in->shape.count; i++) {
		struct row r = {.schema = &d->schema, .count = count, .out = out, .row = i};
		memset(count, 0, n * sizeof *count);
		MU_RETURN_IF_ERROR(proto_read(&d->schema, elems_span(in, i), add_value, &r, err));
		for (unsigned k = 0; k < n; k++) {
			int64_t width = out[k]->shape.dim[out[k]->shape.rank - 1];
			struct proto_value v = default_of(&d->schema.field[k]);
			for (int64_t j = count[k]; j < width; j++)
				put_value(out[k], i * width + j, &d->schema.field[k], &v);
		}
	}
	return 0;
}

/* ---- EncodeProto ---- */

struct encoder {
	struct decoder base;
	unsigned order[]; /* indices of the fields, sorted by field number */
};

static int encoder_read(struct encoder *e, const struct mu_node *n, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(n, "Tinput_types");
	const struct proto_schema *s = &e->base.schema;

	MU_RETURN_IF_ERROR(proto_schema_read(&e->base.schema, n, err));
	if (types->n != s->n)
		return mu_invalid(err, "Length of inputs list must match field_names");
	for (unsigned k = 0; k < s->n; k++) {
		const struct proto_field *f = &s->field[k];
		unsigned at = k;
		if (!proto_type_fits(f->type, types->types[k]))
			return mu_invalid(
			    err,
			    "Incompatible type for field %.*s.  Saw dtype: %s but field type is: "
			    "%s",
			    (int)f->name.len, f->name.data, mu_dtype_name(types->types[k]),
			    f->type->name);
		for (; at > 0 && s->field[e->order[at - 1]].number > f->number; at--)
			e->order[at] = e->order[at - 1];
		e->order[at] = k;
	}
	return 0;
}

static int encoder_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			   struct mu_err *err)
{
	const struct mu_attr *names = mu_node_attr(n, "field_names");
	struct encoder *e = mu_xcalloc(1, sizeof *e + names->n * sizeof *e->order);
	int rc = encoder_read(e, n, err);

	if (rc)
		coder_free(e);
	else
		*state = e;
	return rc;
}

/* Converts an element to the number of the wire format. */
static uint64_t number_at(const struct mu_tensor *t, int64_t at, const struct proto_type *type)
{
	uint64_t v = 0;

	if (t->dtype == MU_DOUBLE && type->dtype == MU_FLOAT) {
		float single = (float)MU_DATA(double, t)[at];
		memcpy(&v, &single, sizeof single);
		return v;
	}
	memcpy(&v, (const char *)t->data + (size_t)at * mu_dtype_size(t->dtype),
	       mu_dtype_size(t->dtype));
	if (type->dtype == MU_INT32)
		v = (uint64_t)(int32_t)v;
	if (type->dtype == MU_UINT32)
		v = (uint32_t)v;
	return type->zigzag ? v << 1 ^ -(v >> 63) : v;
}

static void put_number(struct mu_buf *b, unsigned wire, uint64_t v)
{
	if (wire == MU_PB_VARINT)
		mu_pb_put_varint(b, v);
	else
		mu_buf_put(b, &v, wire == MU_PB_FIXED32 ? 4 : 8);
}

/* Writes the values from..to of an input as a field of a message. */
static void put_field(struct mu_buf *b, const struct proto_field *f, const struct mu_tensor *t,
		      int64_t from, int64_t to)
{
	unsigned wire = f->type->wire;
	bool packed = f->packed && f->repeated && from != to;
	size_t at = packed ? mu_pb_begin(b, f->number) : 0;

	for (int64_t i = from; i < to; i++) {
		if (wire == MU_PB_BYTES) {
			mu_pb_put_bytes(b, f->number, elems_span(t, i));
			continue;
		}
		if (!packed)
			mu_pb_put_tag(b, f->number, (enum mu_pb_type)wire);
		if (wire == PROTO_GROUP) {
			mu_buf_put(b, elems_span(t, i).data, elems_span(t, i).len);
			mu_pb_put_tag(b, f->number, (enum mu_pb_type)PROTO_GROUP_END);
		} else {
			put_number(b, wire, number_at(t, i, f->type));
		}
	}
	if (packed)
		mu_pb_end(b, at);
}

static int put_message(struct kernel_call *c, struct mu_buf *b, int64_t i, struct mu_err *err)
{
	const struct encoder *e = c->state;
	const struct proto_schema *s = &e->base.schema;

	for (unsigned o = 0; o < s->n; o++) {
		unsigned k = e->order[o];
		const struct mu_tensor *t = kernel_in(c, k + 1);
		int64_t size = MU_DATA(int32_t, kernel_in(c, 0))[i * s->n + k],
			width = t->shape.dim[t->shape.rank - 1];
		if (size > width)
			return mu_invalid(err,
					  "Size to write must not be larger than value tensor; but "
					  "saw: %lld > %lld at message %lld field %u",
					  (long long)size, (long long)width, (long long)i, k);
		put_field(b, &s->field[k], t, i * width, i * width + size);
	}
	return 0;
}

static int encode_proto(struct kernel_call *c, struct mu_err *err)
{
	const struct encoder *e = c->state;
	const struct mu_tensor *sizes = kernel_in(c, 0);
	const struct mu_shape *values = &kernel_in(c, 1)->shape;
	struct mu_shape batch, want;
	struct mu_tensor *out;
	MU_AUTO_BUF b = {0};

	MU_RETURN_IF_ERROR(mu_shape_set(&batch, values->rank - 1, values->dim, err));
	want = batch;
	MU_RETURN_IF_ERROR(mu_shape_push(&want, e->base.schema.n, err));
	if (!mu_shape_eq(&sizes->shape, &want)) {
		mu_buf_puts(&b, mu_shape_str(&sizes->shape));
		return mu_invalid(
		    err,
		    "sizes should be batch_size + [len(field_names)].  Saw: %s but expected: %s",
		    b.data, mu_shape_str(&want));
	}
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &batch, &out, err));
	for (int64_t i = 0; i < batch.count; i++) {
		mu_buf_clear(&b);
		MU_RETURN_IF_ERROR(put_message(c, &b, i, err));
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data, b.len);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"DecodeProtoV2", KERNEL_EXPENSIVE, .run = decode_proto, .prepare = decoder_prepare,
     .release = coder_free},
    {"EncodeProto", KERNEL_EXPENSIVE, .run = encode_proto, .prepare = encoder_prepare,
     .release = coder_free},
};
KERNEL_TABLE(io_decode_proto, rows)
