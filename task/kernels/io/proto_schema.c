/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/io/proto_schema.h"

#include <stdlib.h>
#include <string.h>

enum { SET_FILE = 1, FILE_PACKAGE = 2, FILE_MESSAGE = 4, FILE_ENUM = 5 };
enum { NAME = 1, MESSAGE_FIELD = 2, MESSAGE_MESSAGE = 3, MESSAGE_ENUM = 4, ENUM_VALUE = 2 };
enum { FIELD_NUMBER = 3, FIELD_LABEL, FIELD_TYPE, FIELD_TYPE_NAME, FIELD_DEFAULT, FIELD_OPTIONS };
enum { OPTION_PACKED = 2, VALUE_NUMBER = 2, LABEL_REPEATED = 3 };
enum { TYPE_STRING = 9, TYPE_GROUP = 10, TYPE_MESSAGE = 11, TYPE_BYTES = 12, TYPE_ENUM = 14 };
enum { MAX_SET_BYTES = 64 << 20, MAX_FIELD_NUMBER = 0x1fffffff };

/* Indexed by FieldDescriptorProto.Type. */
static const struct proto_type types[] = {
    {0},
    {"double", MU_PB_FIXED64, MU_DOUBLE, 0, false, 5},
    {"float", MU_PB_FIXED32, MU_FLOAT, MU_DOUBLE, false, 6},
    {"int64", MU_PB_VARINT, MU_INT64, 0, false, 2},
    {"uint64", MU_PB_VARINT, MU_UINT64, 0, false, 4},
    {"int32", MU_PB_VARINT, MU_INT32, MU_INT64, false, 1},
    {"fixed64", MU_PB_FIXED64, MU_UINT64, 0, false, 4},
    {"fixed32", MU_PB_FIXED32, MU_UINT32, MU_UINT64, false, 3},
    {"bool", MU_PB_VARINT, MU_BOOL, 0, false, 7},
    {"string", MU_PB_BYTES, MU_STRING, 0, false, 9},
    {"group", PROTO_GROUP, MU_STRING, 0, false, 10},
    {"message", MU_PB_BYTES, MU_STRING, 0, false, 10},
    {"bytes", MU_PB_BYTES, MU_STRING, 0, false, 9},
    {"uint32", MU_PB_VARINT, MU_UINT32, MU_UINT64, false, 3},
    {"enum", MU_PB_VARINT, MU_INT32, 0, false, 8},
    {"sfixed32", MU_PB_FIXED32, MU_INT32, MU_INT64, false, 1},
    {"sfixed64", MU_PB_FIXED64, MU_INT64, 0, false, 2},
    {"sint32", MU_PB_VARINT, MU_INT32, MU_INT64, true, 1},
    {"sint64", MU_PB_VARINT, MU_INT64, 0, true, 2},
};

bool proto_type_fits(const struct proto_type *t, enum mu_dtype dtype)
{
	return dtype == t->dtype || (t->wide && dtype == t->wide);
}

uint64_t proto_value(const struct proto_type *t, uint64_t raw)
{
	if (t->zigzag)
		raw = raw >> 1 ^ -(raw & 1);
	switch (t->dtype) {
	case MU_INT32:
		return (uint64_t)(int32_t)raw;
	case MU_UINT32:
	case MU_FLOAT:
		return (uint32_t)raw;
	case MU_BOOL:
		return raw != 0;
	default:
		return raw;
	}
}

/* ---- descriptors ---- */

static struct mu_span text_of(struct mu_span message, uint32_t number)
{
	struct mu_pb m = mu_pb_of(message);
	struct mu_span text = {"", 0};

	for (struct mu_pb_field f; mu_pb_next(&m, &f);)
		if (f.number == number && f.type == MU_PB_BYTES)
			text = f.bytes;
	return text;
}

/* The descriptor with this name among the fields `number` of its parent. */
static bool find_child(struct mu_span parent, uint32_t number, struct mu_span name,
		       struct mu_span *out)
{
	struct mu_pb m = mu_pb_of(parent);

	for (struct mu_pb_field f; mu_pb_next(&m, &f);)
		if (f.number == number && f.type == MU_PB_BYTES &&
		    mu_span_eq(text_of(f.bytes, NAME), name)) {
			*out = f.bytes;
			return true;
		}
	return false;
}

/* The name without the first n bytes and the dot after them. */
static struct mu_span name_after(struct mu_span name, size_t n)
{
	return (struct mu_span){name.data + n + 1, name.len - n - 1};
}

static bool find_in_file(struct mu_span file, struct mu_span name, bool is_enum,
			 struct mu_span *out)
{
	struct mu_span package = text_of(file, FILE_PACKAGE), scope = file;
	const char *dot;

	if (package.len) {
		if (name.len <= package.len || memcmp(name.data, package.data, package.len) != 0 ||
		    name.data[package.len] != '.')
			return false;
		name = name_after(name, package.len);
	}
	for (bool top = true;; top = false) {
		uint32_t messages = top ? FILE_MESSAGE : MESSAGE_MESSAGE;
		if (!(dot = memchr(name.data, '.', name.len)))
			return find_child(scope,
					  !is_enum ? messages
					  : top    ? FILE_ENUM
						   : MESSAGE_ENUM,
					  name, out);
		size_t n = (size_t)(dot - name.data);
		if (!find_child(scope, messages, (struct mu_span){name.data, n}, &scope))
			return false;
		name = name_after(name, n);
	}
}

static bool find_type(const struct proto_schema *s, struct mu_span name, bool is_enum,
		      struct mu_span *out)
{
	struct mu_pb m = mu_pb_of(mu_buf_span(&s->set));

	for (struct mu_pb_field f; mu_pb_next(&m, &f);)
		if (f.number == SET_FILE && find_in_file(f.bytes, name, is_enum, out))
			return true;
	return false;
}

/* Finds the type of a field.  Descriptors write type names with a leading dot. */
static bool find_type_of(const struct proto_schema *s, const struct proto_field *f,
			 struct mu_span *out)
{
	return f->type_name.len && f->type_name.data[0] == '.' &&
	       find_type(s, name_after(f->type_name, 0), f->type == &types[TYPE_ENUM], out);
}

static bool field_parse(struct mu_span descriptor, struct proto_field *out,
			struct mu_span *default_value)
{
	struct mu_pb m = mu_pb_of(descriptor);
	uint64_t type = 0;

	*out = (struct proto_field){.name = text_of(descriptor, NAME), .bytes = {"", 0}};
	*default_value = (struct mu_span){NULL, 0};
	for (struct mu_pb_field f; mu_pb_next(&m, &f);) {
		if (f.number == FIELD_NUMBER && f.value <= MAX_FIELD_NUMBER)
			out->number = (uint32_t)f.value;
		if (f.number == FIELD_LABEL)
			out->repeated = f.value == LABEL_REPEATED;
		if (f.number == FIELD_TYPE)
			type = f.value;
		if (f.number == FIELD_TYPE_NAME)
			out->type_name = f.bytes;
		if (f.number == FIELD_DEFAULT)
			*default_value = f.bytes;
		if (f.number == FIELD_OPTIONS) {
			struct mu_pb options = mu_pb_of(f.bytes);
			for (struct mu_pb_field o; mu_pb_next(&options, &o);)
				if (o.number == OPTION_PACKED)
					out->packed = o.value != 0;
		}
	}
	if (m.bad || !out->number || !type || type >= MU_COUNT(types))
		return false;
	out->type = &types[type];
	return true;
}

/* ---- default values ---- */

/* Replaces C's escapes in place; returns the new length. */
static size_t unescape(char *s, size_t n)
{
	static const char letters[] = "n\nr\rt\ta\ab\bf\fv\v";
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		if (s[i] != '\\' || i + 1 == n) {
			s[to++] = s[i];
			continue;
		}
		const char *letter = s[++i] ? strchr(letters, s[i]) : NULL;
		unsigned code = 0, digits = 0;
		for (; digits < 3 && i < n && s[i] >= '0' && s[i] <= '7'; digits++)
			code = code * 8 + (unsigned)(s[i++] - '0');
		if (digits)
			i--;
		s[to++] = digits                                  ? (char)code
			  : letter && (letter - letters) % 2 == 0 ? letter[1]
								  : s[i];
	}
	return to;
}

/* The number of the enum value with this name, or of the first value. */
static uint64_t enum_value(const struct proto_schema *s, const struct proto_field *f,
			   struct mu_span name)
{
	struct mu_span e, value = {"", 0};
	uint64_t number = 0;

	if (!find_type_of(s, f, &e))
		return 0;
	if (!name.data || !find_child(e, ENUM_VALUE, name, &value)) {
		struct mu_pb m = mu_pb_of(e);
		for (struct mu_pb_field v; !value.len && mu_pb_next(&m, &v);)
			if (v.number == ENUM_VALUE)
				value = v.bytes;
	}
	struct mu_pb m = mu_pb_of(value);
	for (struct mu_pb_field v; mu_pb_next(&m, &v);)
		if (v.number == VALUE_NUMBER)
			number = v.value;
	return proto_value(f->type, number);
}

static void read_default(struct proto_schema *s, struct proto_field *f, struct mu_span text)
{
	if (f->type == &types[TYPE_ENUM])
		f->value = enum_value(s, f, text);
	if (!text.data || f->repeated || f->type == &types[TYPE_ENUM])
		return;
	char *copy = mu_arena_strndup(&s->arena, text.data, text.len);
	if (f->type->dtype == MU_STRING) {
		f->bytes = (struct mu_span){
		    copy, f->type == &types[TYPE_BYTES] ? unescape(copy, text.len) : text.len};
	} else if (f->type->dtype == MU_DOUBLE) {
		double v = strtod(copy, NULL);
		memcpy(&f->value, &v, sizeof v);
	} else if (f->type->dtype == MU_FLOAT) {
		float v = strtof(copy, NULL);
		memcpy(&f->value, &v, sizeof v);
	} else if (f->type->dtype == MU_BOOL) {
		f->value = strcmp(copy, "true") == 0;
	} else {
		f->value =
		    *copy == '-' ? (uint64_t)strtoll(copy, NULL, 10) : strtoull(copy, NULL, 10);
	}
}

/* ---- schema ---- */

static int read_source(struct proto_schema *s, struct mu_span source, struct mu_err *err)
{
	static const char bytes[] = "bytes://";
	const size_t skip = sizeof bytes - 1;
	struct mu_err ignored;

	/* A task has no descriptors of the linked-in messages (local://). */
	if (source.len == 0 || mu_span_is(source, "local://"))
		return 0;
	bool inline_set = source.len >= skip && memcmp(source.data, bytes, skip) == 0;
	if (inline_set)
		mu_buf_put(&s->set, source.data + skip, source.len - skip);
	int rc = inline_set ? 0 : mu_buf_read_file(&s->set, source.data, MAX_SET_BYTES, &ignored);
	struct mu_pb m = mu_pb_of(mu_buf_span(&s->set));
	for (struct mu_pb_field f; mu_pb_next(&m, &f);)
		;
	return rc || m.bad
		   ? mu_invalid(
			 err,
			 "Source does not represent serialized file descriptor set proto. This may "
			 "be due to a missing dependency on the file containing "
			 "REGISTER_DESCRIPTOR_POOL(\"%.*s\", ...);",
			 source.len > 200 ? 200 : (int)source.len, source.data)
		   : 0;
}

static int find_field(struct proto_schema *s, const char *type, struct mu_span name,
		      struct proto_field *out, struct mu_err *err)
{
	struct mu_span descriptor, default_value;

	if (!find_child(s->message, MESSAGE_FIELD, name, &descriptor))
		return mu_invalid(err, "Unknown field: %.*s in message type %s", (int)name.len,
				  name.data, type);
	if (!field_parse(descriptor, out, &default_value))
		return mu_invalid(err, "Field %.*s of message type %s has no valid descriptor",
				  (int)name.len, name.data, type);
	read_default(s, out, default_value);
	return 0;
}

int proto_schema_read(struct proto_schema *s, const struct mu_node *n, struct mu_err *err)
{
	const struct mu_attr *source = mu_node_attr(n, "descriptor_source"),
			     *type = mu_node_attr(n, "message_type"),
			     *names = mu_node_attr(n, "field_names");

	*s = (struct proto_schema){.n = names->n};
	mu_arena_init(&s->arena);
	s->field = mu_arena_alloc(&s->arena, (s->n + 1) * sizeof *s->field);
	MU_RETURN_IF_ERROR(read_source(s, source ? source->s : (struct mu_span){"", 0}, err));
	if (!find_type(s, type->s, false, &s->message))
		return mu_invalid(err, "No descriptor found for message type %s", type->s.data);
	for (unsigned i = 0; i < s->n; i++)
		MU_RETURN_IF_ERROR(find_field(s, type->s.data, names->ss[i], &s->field[i], err));
	return 0;
}

void proto_schema_fini(struct proto_schema *s)
{
	mu_buf_fini(&s->set);
	mu_arena_fini(&s->arena);
}

/* ---- messages ---- */

static bool next_within(struct mu_pb *m, struct mu_pb_field *f, unsigned depth)
{
	const char *start = m->at;
	struct mu_pb inner = *m;
	uint64_t tag, end;

	if (m->at == m->end)
		return false;
	if (!mu_pb_varint(&inner, &tag) || (tag & 7) != PROTO_GROUP || !(tag >> 3) ||
	    tag >> 3 > MAX_FIELD_NUMBER || depth == MU_PB_MAX_DEPTH)
		return mu_pb_next(m, f);
	for (;;) {
		struct mu_pb peek = inner;
		if (mu_pb_varint(&peek, &end) && end == tag + 1) {
			m->at = peek.at;
			f->number = (uint32_t)(tag >> 3);
			f->type = (enum mu_pb_type)PROTO_GROUP;
			f->bytes = (struct mu_span){start, (size_t)(m->at - start)};
			return true;
		}
		if (!next_within(&inner, f, depth + 1)) {
			m->bad = true;
			m->at = m->end;
			return false;
		}
	}
}

/* Reads the next field like mu_pb_next, and groups too.  The bytes of a group include both tags. */
static bool proto_next(struct mu_pb *m, struct mu_pb_field *f)
{
	return next_within(m, f, 0);
}

static bool can_be_packed(const struct proto_type *t)
{
	return t->wire != MU_PB_BYTES && t->wire != PROTO_GROUP;
}

static int find_requested(const struct proto_schema *s, uint32_t number)
{
	for (unsigned k = 0; k < s->n; k++)
		if (s->field[k].number == number)
			return (int)k;
	return -1;
}

/* The error of a message that cannot be read from `at` on. */
static int fail_malformed(const struct proto_schema *s, struct mu_pb at, struct mu_err *err)
{
	uint64_t tag;

	if (!mu_pb_varint(&at, &tag) || !(tag >> 3) || tag >> 3 > MAX_FIELD_NUMBER ||
	    (tag & 7) == PROTO_GROUP_END)
		return mu_fail(err, MU_DATA_LOSS, "CountFields: Failed to consume entire buffer");
	int k = find_requested(s, (uint32_t)(tag >> 3));
	if (k < 0)
		return mu_fail(err, MU_DATA_LOSS, "Failed skipping unrequested field");
	if (s->field[k].type->wire == (tag & 7))
		return mu_fail(err, MU_DATA_LOSS, "ReadValue: Failed skipping field when counting");
	if ((tag & 7) == MU_PB_BYTES && can_be_packed(s->field[k].type))
		return mu_fail(err, MU_DATA_LOSS, "ReadPackedValues: Skipping packed field failed");
	return mu_fail(err, MU_DATA_LOSS, "CollectField: Failed skipping malformed field");
}

static int read_packed(const struct proto_field *field, struct mu_span values, proto_value_fn *fn,
		       void *arg, unsigned k, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(values);
	struct proto_value v = {.bytes = {"", 0}};

	while (mu_pb_packed_next(&m, field->type->wire, &v.number)) {
		v.number = proto_value(field->type, v.number);
		fn(arg, k, field->repeated ? &v : NULL);
	}
	if (m.bad)
		return field->type->wire == MU_PB_VARINT
			   ? mu_fail(err, MU_DATA_LOSS, "Corrupt packed varint")
			   : mu_fail(err, MU_DATA_LOSS,
				     "Illegal data length for packed fixed-size type: %zu",
				     values.len);
	return 0;
}

int proto_read(const struct proto_schema *s, struct mu_span message, proto_value_fn *fn, void *arg,
	       struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(message), before = m;

	for (struct mu_pb_field f; proto_next(&m, &f); before = m) {
		int k = find_requested(s, f.number);
		const struct proto_field *field = k < 0 ? NULL : &s->field[k];
		if (!field)
			continue;
		if (f.type == field->type->wire)
			fn(arg, (unsigned)k,
			   &(struct proto_value){proto_value(field->type, f.value), f.bytes});
		else if (f.type == MU_PB_BYTES && can_be_packed(field->type))
			MU_RETURN_IF_ERROR(read_packed(field, f.bytes, fn, arg, (unsigned)k, err));
	}
	return m.bad ? fail_malformed(s, before, err) : 0;
}

static bool message_is_valid(const struct proto_schema *s, struct mu_span descriptor,
			     struct mu_span message, unsigned depth);

/* True if the values in one field of a message are well formed. */
static bool field_is_valid(const struct proto_schema *s, const struct proto_field *field,
			   const struct mu_pb_field *f, unsigned depth)
{
	struct mu_span type;

	if (f->type != MU_PB_BYTES)
		return true;
	if (can_be_packed(field->type) && field->repeated) {
		struct mu_pb m = mu_pb_of(f->bytes);
		for (uint64_t v; mu_pb_packed_next(&m, field->type->wire, &v);)
			;
		return !m.bad;
	}
	return field->type != &types[TYPE_MESSAGE] || !find_type_of(s, field, &type) ||
	       message_is_valid(s, type, f->bytes, depth + 1);
}

static bool message_is_valid(const struct proto_schema *s, struct mu_span descriptor,
			     struct mu_span message, unsigned depth)
{
	struct mu_pb m = mu_pb_of(message);

	for (struct mu_pb_field f; proto_next(&m, &f);) {
		struct mu_pb fields = mu_pb_of(descriptor);
		struct mu_span default_value;
		struct proto_field field;
		for (struct mu_pb_field d; mu_pb_next(&fields, &d);) {
			if (d.number != MESSAGE_FIELD ||
			    !field_parse(d.bytes, &field, &default_value) ||
			    field.number != f.number)
				continue;
			if (depth == MU_PB_MAX_DEPTH || !field_is_valid(s, &field, &f, depth))
				return false;
			break; /* a second descriptor would double the time at each depth */
		}
	}
	return !m.bad;
}

bool proto_is_valid(const struct proto_schema *s, struct mu_span message)
{
	return message_is_valid(s, s->message, message, 0);
}
