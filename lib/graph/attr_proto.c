/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-written encoding of AttrValue.  Attributes nest through functions, so the depth is limited.
 * A short TensorProto may describe a large tensor, so the size of all tensors of a graph is limited
 * too. */
#include "lib/base/pb.h"
#include "lib/graph/attr.h"
#include "lib/tensor/tensor_proto.h"

struct reader {
	struct mu_arena *arena;
	size_t *budget;
	unsigned depth;
	struct mu_err *err;
};

enum { ENTRY_NAME = 1, ENTRY_VALUE = 2 };

static int read_value(struct reader *r, struct mu_attr *out, struct mu_span proto);

static int attr_fail_truncated(struct reader *r)
{
	return mu_fail(r->err, MU_INVALID_ARGUMENT, "the attribute is malformed or truncated");
}

static struct mu_span copy_span(struct reader *r, struct mu_span s)
{
	return (struct mu_span){mu_arena_strndup(r->arena, s.data, s.len), s.len};
}

static int read_tensor(struct reader *r, struct mu_tensor *out, struct mu_span proto)
{
	int rc = mu_tensor_parse(out, proto, r->err);

	if (rc)
		return rc;
	size_t bytes = mu_tensor_bytes(out);
	if (bytes > *r->budget) {
		mu_tensor_unref(out);
		return mu_fail(r->err, MU_RESOURCE_EXHAUSTED,
			       "the constants of this graph exceed the limit of %zu bytes",
			       (size_t)mu_tensor_limit);
	}
	*r->budget -= bytes;
	return 0;
}

bool mu_attr_entry_parse(struct mu_span proto, struct mu_span *name, struct mu_span *value)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;

	*name = *value = (struct mu_span){"", 0};
	while (mu_pb_next(&m, &f)) {
		if (f.number == ENTRY_NAME && f.type == MU_PB_BYTES)
			*name = f.bytes;
		if (f.number == ENTRY_VALUE && f.type == MU_PB_BYTES)
			*value = f.bytes;
	}
	return !m.bad;
}

static int read_entry(struct reader *r, struct mu_node_attr *out, struct mu_span proto)
{
	struct mu_span name, value;

	if (!mu_attr_entry_parse(proto, &name, &value))
		return attr_fail_truncated(r);
	out->name = copy_span(r, name).data;
	return read_value(r, &out->value, value);
}

static int read_func(struct reader *r, struct mu_func *out, struct mu_span proto)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	int rc;

	out->name = "";
	out->attrs = MU_ARENA_ARRAY(r->arena, struct mu_node_attr, mu_pb_count(proto, 2));
	while (mu_pb_next(&m, &f)) {
		if (f.number == 1 && f.type == MU_PB_BYTES)
			out->name = copy_span(r, f.bytes).data;
		if (f.number == 2 && f.type == MU_PB_BYTES) {
			if ((rc = read_entry(r, &out->attrs[out->n_attrs], f.bytes)))
				return rc;
			out->n_attrs++;
		}
	}
	return m.bad ? attr_fail_truncated(r) : 0;
}

/* ---- lists ---- */

/* Field numbers by kind, the same in ListValue and AttrValue. */
static const unsigned char field_numbers[] = {
    [MU_ATTR_STRING] = 2, [MU_ATTR_INT] = 3,   [MU_ATTR_FLOAT] = 4,  [MU_ATTR_BOOL] = 5,
    [MU_ATTR_TYPE] = 6,   [MU_ATTR_SHAPE] = 7, [MU_ATTR_TENSOR] = 8, [MU_ATTR_FUNC] = 10,
};
enum { F_LIST = 1, F_PLACEHOLDER = 9, F_LIST_FUNC = 9 };

static enum mu_attr_kind list_kind(uint32_t field)
{
	if (field == F_LIST_FUNC)
		return MU_ATTR_FUNC;
	for (unsigned k = MU_ATTR_STRING; k <= MU_ATTR_TENSOR; k++)
		if (field_numbers[k] == field)
			return (enum mu_attr_kind)k;
	return MU_ATTR_NONE;
}

static size_t attr_element_size(enum mu_attr_kind k)
{
	switch (k) {
	case MU_ATTR_STRING:
		return sizeof(struct mu_span);
	case MU_ATTR_INT:
		return sizeof(int64_t);
	case MU_ATTR_FLOAT:
		return sizeof(float);
	case MU_ATTR_BOOL:
		return sizeof(bool);
	case MU_ATTR_TYPE:
		return sizeof(enum mu_dtype);
	case MU_ATTR_SHAPE:
		return sizeof(struct mu_pshape);
	case MU_ATTR_TENSOR:
		return sizeof(struct mu_tensor);
	default:
		return sizeof(struct mu_func);
	}
}

static enum mu_dtype attr_type_of(uint64_t v)
{
	return v < 2 * MU_DT_REF && mu_dtype_valid((long)v) ? (enum mu_dtype)v : MU_DT_INVALID;
}

static void append_scalar(struct mu_attr *v, enum mu_attr_kind k, const struct mu_pb_field *f)
{
	switch (k) {
	case MU_ATTR_INT:
		v->is[v->n++] = (int64_t)f->value;
		break;
	case MU_ATTR_FLOAT:
		v->fs[v->n++] = mu_pb_float(f);
		break;
	case MU_ATTR_BOOL:
		v->bs[v->n++] = f->value != 0;
		break;
	default:
		v->types[v->n++] = attr_type_of(f->value);
	}
}

/* Counts the elements in one field of a list, which may be packed. */
static unsigned count_elements(const struct mu_pb_field *f, enum mu_attr_kind k)
{
	unsigned n = 0;

	if (f->type != MU_PB_BYTES || k == MU_ATTR_STRING || k >= MU_ATTR_SHAPE)
		return 1;
	if (k == MU_ATTR_FLOAT)
		return (unsigned)(f->bytes.len / 4);
	for (size_t i = 0; i < f->bytes.len; i++)
		n += !(f->bytes.data[i] & 0x80);
	return n;
}

static int read_elements(struct reader *r, struct mu_attr *v, enum mu_attr_kind k,
			 const struct mu_pb_field *f)
{
	struct mu_pb run = mu_pb_of(f->bytes);
	struct mu_pb_field element = {.type = MU_PB_VARINT};
	uint32_t w;
	int rc = 0;

	switch (k) {
	case MU_ATTR_STRING:
		v->ss[v->n++] = copy_span(r, f->bytes);
		return 0;
	case MU_ATTR_SHAPE:
		rc = mu_pshape_parse(&v->shapes[v->n], f->bytes, r->err);
		v->n += !rc;
		return rc;
	case MU_ATTR_TENSOR:
		rc = read_tensor(r, &v->tensors[v->n], f->bytes);
		v->n += !rc;
		return rc;
	case MU_ATTR_FUNC:
		rc = read_func(r, &v->funcs[v->n++], f->bytes);
		return rc;
	default:
		break;
	}
	if (f->type != MU_PB_BYTES) {
		append_scalar(v, k, f);
		return 0;
	}
	while (run.at < run.end) {
		if (k == MU_ATTR_FLOAT && mu_pb_fixed32(&run, &w))
			element.value = w;
		else if (k == MU_ATTR_FLOAT || !mu_pb_varint(&run, &element.value))
			return attr_fail_truncated(r);
		append_scalar(v, k, &element);
	}
	return 0;
}

static int read_list(struct reader *r, struct mu_attr *out, struct mu_span proto)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	enum mu_attr_kind kind = MU_ATTR_NONE;
	size_t total = 0;
	int rc = 0;

	while (mu_pb_next(&m, &f)) {
		enum mu_attr_kind k = list_kind(f.number);
		if (k == MU_ATTR_NONE)
			continue;
		if (kind != MU_ATTR_NONE && kind != k)
			return mu_fail(r->err, MU_INVALID_ARGUMENT,
				       "the list has elements of two kinds");
		bool nested = k == MU_ATTR_STRING || k >= MU_ATTR_SHAPE;
		if (nested ? f.type != MU_PB_BYTES
			   : f.type != MU_PB_BYTES &&
				 f.type != (k == MU_ATTR_FLOAT ? MU_PB_FIXED32 : MU_PB_VARINT))
			return attr_fail_truncated(r);
		kind = k;
		total += count_elements(&f, k);
	}
	if (m.bad || total > UINT32_MAX)
		return attr_fail_truncated(r);
	out->kind = (enum mu_attr_kind)(MU_ATTR_LIST + (int)kind);
	out->n = 0;
	out->is = mu_arena_zalloc(r->arena, attr_element_size(kind) * total);
	m = mu_pb_of(proto);
	while (!rc && mu_pb_next(&m, &f))
		if (list_kind(f.number) != MU_ATTR_NONE)
			rc = read_elements(r, out, kind, &f);
	return rc;
}

static int read_field(struct reader *r, struct mu_attr *v, const struct mu_pb_field *f)
{
	int rc = 0;
	bool is_bytes = f->type == MU_PB_BYTES;

	if (f->number == F_LIST && is_bytes) {
		rc = read_list(r, v, f->bytes);
	} else if ((f->number == 2 || f->number == F_PLACEHOLDER) && is_bytes) {
		v->kind = f->number == 2 ? MU_ATTR_STRING : MU_ATTR_PLACEHOLDER;
		v->s = copy_span(r, f->bytes);
	} else if (f->number == 3 && f->type == MU_PB_VARINT) {
		v->kind = MU_ATTR_INT;
		v->i = (int64_t)f->value;
	} else if (f->number == 4 && f->type == MU_PB_FIXED32) {
		v->kind = MU_ATTR_FLOAT;
		v->f = mu_pb_float(f);
	} else if (f->number == 5 && f->type == MU_PB_VARINT) {
		v->kind = MU_ATTR_BOOL;
		v->b = f->value != 0;
	} else if (f->number == 6 && f->type == MU_PB_VARINT) {
		v->kind = MU_ATTR_TYPE;
		v->type = attr_type_of(f->value);
	} else if (f->number == 7 && is_bytes) {
		v->shape = MU_ARENA_NEW(r->arena, struct mu_pshape);
		rc = mu_pshape_parse(v->shape, f->bytes, r->err);
		v->kind = MU_ATTR_SHAPE;
	} else if (f->number == 8 && is_bytes) {
		v->tensor = MU_ARENA_NEW(r->arena, struct mu_tensor);
		rc = read_tensor(r, v->tensor, f->bytes);
		v->kind = MU_ATTR_TENSOR;
	} else if (f->number == 10 && is_bytes) {
		v->func = MU_ARENA_NEW(r->arena, struct mu_func);
		v->kind = MU_ATTR_FUNC;
		rc = read_func(r, v->func, f->bytes);
	}
	return rc;
}

static int read_value(struct reader *r, struct mu_attr *out, struct mu_span proto)
{
	struct mu_pb m = mu_pb_of(proto);
	struct mu_pb_field f;
	struct mu_attr v = {.kind = MU_ATTR_NONE};
	int rc = 0;

	if (r->depth == MU_PB_MAX_DEPTH)
		return mu_fail(r->err, MU_INVALID_ARGUMENT, "attributes nest deeper than %d",
			       MU_PB_MAX_DEPTH);
	r->depth++;
	while (!rc && mu_pb_next(&m, &f)) {
		mu_attr_fini(&v); /* the last field of a oneof is valid */
		v = (struct mu_attr){.kind = MU_ATTR_NONE};
		rc = read_field(r, &v, &f);
	}
	if (!rc && m.bad)
		rc = attr_fail_truncated(r);
	r->depth--;
	if (rc)
		mu_attr_fini(&v);
	else
		*out = v;
	return rc;
}

int mu_attr_parse(struct mu_attr *out, struct mu_span proto, struct mu_arena *a, size_t *budget,
		  struct mu_err *err)
{
	struct reader r = {.arena = a, .budget = budget, .err = err};

	return read_value(&r, out, proto);
}

/* ---- writer ---- */

void mu_attr_entry_write(struct mu_buf *b, uint32_t number, const struct mu_node_attr *a)
{
	size_t entry = mu_pb_begin(b, number), value;

	mu_pb_put_str(b, ENTRY_NAME, a->name);
	value = mu_pb_begin(b, ENTRY_VALUE);
	mu_attr_write(b, &a->value);
	mu_pb_end(b, value);
	mu_pb_end(b, entry);
}

static void write_func(struct mu_buf *b, const struct mu_func *f)
{
	if (*f->name)
		mu_pb_put_str(b, 1, f->name);
	for (unsigned i = 0; i < f->n_attrs; i++)
		mu_attr_entry_write(b, 2, &f->attrs[i]);
}

static void write_packed(struct mu_buf *b, const struct mu_attr *v, enum mu_attr_kind k)
{
	size_t at = mu_pb_begin(b, field_numbers[k]);

	for (unsigned i = 0; i < v->n; i++)
		if (k == MU_ATTR_FLOAT)
			mu_buf_put(b, &v->fs[i], 4);
		else
			mu_pb_put_varint(b, k == MU_ATTR_INT    ? (uint64_t)v->is[i]
					    : k == MU_ATTR_BOOL ? (uint64_t)v->bs[i]
								: (uint64_t)v->types[i]);
	mu_pb_end(b, at);
}

static void write_list(struct mu_buf *b, const struct mu_attr *v)
{
	enum mu_attr_kind k = (enum mu_attr_kind)((int)v->kind - MU_ATTR_LIST);

	if (v->n &&
	    (k == MU_ATTR_INT || k == MU_ATTR_FLOAT || k == MU_ATTR_BOOL || k == MU_ATTR_TYPE)) {
		write_packed(b, v, k);
		return;
	}
	for (unsigned i = 0; i < v->n; i++) {
		if (k == MU_ATTR_STRING) {
			mu_pb_put_bytes(b, field_numbers[k], v->ss[i]);
			continue;
		}
		size_t at = mu_pb_begin(b, k == MU_ATTR_FUNC ? F_LIST_FUNC : field_numbers[k]);
		if (k == MU_ATTR_SHAPE)
			mu_pshape_write(b, &v->shapes[i]);
		else if (k == MU_ATTR_TENSOR)
			mu_tensor_write(b, &v->tensors[i]);
		else
			write_func(b, &v->funcs[i]);
		mu_pb_end(b, at);
	}
}

void mu_attr_write(struct mu_buf *b, const struct mu_attr *v)
{
	size_t at;

	switch (v->kind) {
	case MU_ATTR_NONE:
		return;
	case MU_ATTR_STRING:
		mu_pb_put_bytes(b, 2, v->s);
		return;
	case MU_ATTR_PLACEHOLDER:
		mu_pb_put_bytes(b, F_PLACEHOLDER, v->s);
		return;
	case MU_ATTR_INT:
		mu_pb_put_int(b, 3, v->i);
		return;
	case MU_ATTR_FLOAT:
		mu_pb_put_float(b, 4, v->f);
		return;
	case MU_ATTR_BOOL:
		mu_pb_put_int(b, 5, v->b);
		return;
	case MU_ATTR_TYPE:
		mu_pb_put_int(b, 6, v->type);
		return;
	case MU_ATTR_SHAPE:
		at = mu_pb_begin(b, 7);
		mu_pshape_write(b, v->shape);
		break;
	case MU_ATTR_TENSOR:
		at = mu_pb_begin(b, 8);
		mu_tensor_write(b, v->tensor);
		break;
	case MU_ATTR_FUNC:
		at = mu_pb_begin(b, 10);
		write_func(b, v->func);
		break;
	default:
		at = mu_pb_begin(b, F_LIST);
		write_list(b, v);
	}
	mu_pb_end(b, at);
}
