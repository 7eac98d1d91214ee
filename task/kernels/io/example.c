/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a list are packed (one field of bytes), or one field each, or mixed.  The count
 * and the copy of a list both use next_value. */
#include "task/kernels/io/example.h"

struct list_reader {
	struct mu_pb list, packed;
	enum mu_dtype type;
};

struct value {
	struct mu_span bytes;
	uint64_t number;
};

static bool next_packed(struct list_reader *c, struct value *v)
{
	uint32_t bits;

	if (c->type == MU_INT64)
		return mu_pb_varint(&c->packed, &v->number);
	bool is_valid = mu_pb_fixed32(&c->packed, &bits);
	v->number = bits;
	return is_valid;
}

static bool next_value(struct list_reader *c, struct value *v)
{
	struct mu_pb_field f;

	for (;;) {
		if (c->packed.at < c->packed.end && !c->packed.bad)
			return next_packed(c, v);
		if (!mu_pb_next(&c->list, &f))
			return false;
		if (f.number != 1)
			continue;
		v->bytes = f.bytes;
		v->number = f.value;
		if (f.type == MU_PB_BYTES && c->type != MU_STRING)
			c->packed = mu_pb_of(f.bytes);
		else if (f.type == (c->type == MU_STRING  ? MU_PB_BYTES
				    : c->type == MU_FLOAT ? MU_PB_FIXED32
							  : MU_PB_VARINT))
			return true;
		else
			c->list.bad = true;
	}
}

static bool read_feature(struct mu_span feature, struct example_list *out)
{
	static const enum mu_dtype types[] = {MU_DT_INVALID, MU_STRING, MU_FLOAT, MU_INT64};
	struct mu_pb m = mu_pb_of(feature);
	struct mu_pb_field f;

	*out = (struct example_list){.type = MU_DT_INVALID};
	while (mu_pb_next(&m, &f))
		if (f.number >= 1 && f.number <= 3 && f.type == MU_PB_BYTES)
			*out = (struct example_list){types[f.number], 0, f.bytes};
	struct list_reader c = {.list = mu_pb_of(out->values), .type = out->type};
	struct value v;
	while (out->type != MU_DT_INVALID && next_value(&c, &v))
		out->count++;
	return !m.bad && !c.list.bad && !c.packed.bad;
}

/* Calls `each` for the entries of a map<string, message> in field 1. */
typedef bool map_entry(void *arg, struct mu_span key, struct mu_span value);
static bool read_map(struct mu_span map, map_entry *each, void *arg)
{
	struct mu_pb entries = mu_pb_of(map);
	struct mu_pb_field f, h;

	while (mu_pb_next(&entries, &f)) {
		struct mu_span key = MU_SPAN(""), value = MU_SPAN("");
		struct mu_pb entry = mu_pb_of(f.bytes);
		if (f.number != 1)
			continue;
		while (mu_pb_next(&entry, &h))
			if (h.number == 1)
				key = h.bytes;
			else if (h.number == 2)
				value = h.bytes;
		if (entry.bad || !each(arg, key, value))
			return false;
	}
	return !entries.bad;
}

struct example_callbacks {
	example_feature *each;
	example_rows *each_list;
	void *arg, *list_arg;
};

static bool pass_feature(void *arg, struct mu_span key, struct mu_span value)
{
	const struct example_callbacks *t = arg;
	struct example_list list;

	if (!read_feature(value, &list))
		return false;
	t->each(t->arg, key, &list);
	return true;
}

static bool pass_rows(void *arg, struct mu_span key, struct mu_span value)
{
	const struct example_callbacks *t = arg;

	t->each_list(t->list_arg, key, value);
	return true;
}

/* Reads a message whose fields 1 to n are maps. */
static bool read_maps(struct mu_span message, map_entry *const *maps, unsigned n, void *arg)
{
	struct mu_pb m = mu_pb_of(message);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f))
		if (f.number >= 1 && f.number <= n && !read_map(f.bytes, maps[f.number - 1], arg))
			return false;
	return !m.bad;
}

bool example_read(struct mu_span message, example_feature *each, void *arg)
{
	struct example_callbacks t = {.each = each, .arg = arg};

	return read_maps(message, (map_entry *[]){pass_feature}, 1, &t);
}

bool example_read_sequence(struct mu_span message, example_feature *each, void *arg,
			   example_rows *each_list, void *list_arg)
{
	struct example_callbacks t = {each, each_list, arg, list_arg};

	return read_maps(message, (map_entry *[]){pass_feature, pass_rows}, 2, &t);
}

bool example_row(struct mu_pb *rows, struct example_list *out)
{
	struct mu_pb_field f;

	while (mu_pb_next(rows, &f)) {
		if (f.number != 1)
			continue;
		if (f.type == MU_PB_BYTES && read_feature(f.bytes, out))
			return true;
		rows->bad = true;
		return false;
	}
	return false;
}

void example_values(const struct example_list *list, struct mu_tensor *out, int64_t at)
{
	struct list_reader c = {.list = mu_pb_of(list->values), .type = list->type};
	struct value v;

	for (; next_value(&c, &v); at++) {
		uint32_t bits = (uint32_t)v.number;
		if (list->type == MU_STRING)
			mu_string_set(&MU_DATA(struct mu_string, out)[at], v.bytes.data,
				      v.bytes.len);
		else if (list->type == MU_INT64)
			MU_DATA(int64_t, out)[at] = (int64_t)v.number;
		else
			memcpy(&MU_DATA(float, out)[at], &bits, sizeof bits);
	}
}
