/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/pb.h"

static bool fail_message(struct mu_pb *m)
{
	m->bad = true;
	m->at = m->end;
	return false;
}

bool mu_pb_varint(struct mu_pb *m, uint64_t *out)
{
	uint64_t v = 0;

	if (m->at < m->end && !(*m->at & 0x80)) {
		*out = (uint64_t)(unsigned char)*m->at++;
		return true;
	}
	for (unsigned shift = 0; shift < 70; shift += 7) {
		if (m->at == m->end)
			return fail_message(m);
		unsigned char c = (unsigned char)*m->at++;
		if (shift < 64)
			v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80)) {
			*out = v;
			return true;
		}
	}
	return fail_message(m);
}

bool mu_pb_fixed32(struct mu_pb *m, uint32_t *out)
{
	if (m->end - m->at < 4)
		return fail_message(m);
	memcpy(out, m->at, 4);
	m->at += 4;
	return true;
}

static bool mu_pb_fixed64(struct mu_pb *m, uint64_t *out)
{
	if (m->end - m->at < 8)
		return fail_message(m);
	memcpy(out, m->at, 8);
	m->at += 8;
	return true;
}

bool mu_pb_packed_next(struct mu_pb *m, enum mu_pb_type wire, uint64_t *out)
{
	uint32_t word;

	if (m->at == m->end)
		return false;
	if (wire == MU_PB_VARINT)
		return mu_pb_varint(m, out);
	if (wire == MU_PB_FIXED64)
		return mu_pb_fixed64(m, out);
	if (!mu_pb_fixed32(m, &word))
		return false;
	*out = word;
	return true;
}

struct mu_pb mu_pb_of(struct mu_span s)
{
	return (struct mu_pb){s.data, s.data + s.len, false};
}

bool mu_pb_next(struct mu_pb *m, struct mu_pb_field *f)
{
	uint64_t tag;
	uint32_t word;

	if (m->at == m->end || !mu_pb_varint(m, &tag))
		return false;
	if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
		return fail_message(m);
	f->number = (uint32_t)(tag >> 3);
	f->type = (enum mu_pb_type)(tag & 7);
	f->value = 0;
	f->bytes = (struct mu_span){"", 0};
	switch (f->type) {
	case MU_PB_VARINT:
		return mu_pb_varint(m, &f->value);
	case MU_PB_FIXED64:
		return mu_pb_fixed64(m, &f->value);
	case MU_PB_FIXED32:
		if (!mu_pb_fixed32(m, &word))
			return false;
		f->value = word;
		return true;
	case MU_PB_BYTES:
		if (!mu_pb_varint(m, &f->value))
			return false;
		if (f->value > (uint64_t)(m->end - m->at))
			return fail_message(m);
		f->bytes = (struct mu_span){m->at, (size_t)f->value};
		m->at += f->value;
		return true;
	}
	return fail_message(m); /* groups: TensorFlow's messages do not use them */
}

unsigned mu_pb_count(struct mu_span message, uint32_t number)
{
	struct mu_pb m = mu_pb_of(message);
	struct mu_pb_field f;
	unsigned n = 0;

	while (mu_pb_next(&m, &f))
		n += f.number == number && f.type == MU_PB_BYTES;
	return n;
}

float mu_pb_float(const struct mu_pb_field *f)
{
	uint32_t w = (uint32_t)f->value;
	float v;

	memcpy(&v, &w, 4);
	return v;
}

double mu_pb_double(const struct mu_pb_field *f)
{
	double v;

	memcpy(&v, &f->value, 8);
	return v;
}

size_t mu_pb_varint_size(uint64_t v)
{
	size_t n = 1;

	while (v >= 0x80) {
		v >>= 7;
		n++;
	}
	return n;
}

static size_t encode_varint(char *out, uint64_t v)
{
	size_t n = 0;

	while (v >= 0x80) {
		out[n++] = (char)(v | 0x80);
		v >>= 7;
	}
	out[n++] = (char)v;
	return n;
}

void mu_pb_put_varint(struct mu_buf *b, uint64_t v)
{
	char out[10];

	mu_buf_put(b, out, encode_varint(out, v));
}

void mu_pb_put_tag(struct mu_buf *b, uint32_t number, enum mu_pb_type type)
{
	mu_pb_put_varint(b, (uint64_t)number << 3 | type);
}

void mu_pb_put_int(struct mu_buf *b, uint32_t number, int64_t v)
{
	mu_pb_put_tag(b, number, MU_PB_VARINT);
	mu_pb_put_varint(b, (uint64_t)v);
}

void mu_pb_put_bytes(struct mu_buf *b, uint32_t number, struct mu_span s)
{
	mu_pb_put_tag(b, number, MU_PB_BYTES);
	mu_pb_put_varint(b, s.len);
	mu_buf_put(b, s.data, s.len);
}

void mu_pb_put_str(struct mu_buf *b, uint32_t number, const char *s)
{
	mu_pb_put_bytes(b, number, mu_span_of(s));
}

void mu_pb_put_fixed32(struct mu_buf *b, uint32_t number, uint32_t v)
{
	mu_pb_put_tag(b, number, MU_PB_FIXED32);
	mu_buf_put(b, &v, 4);
}

void mu_pb_put_fixed64(struct mu_buf *b, uint32_t number, uint64_t v)
{
	mu_pb_put_tag(b, number, MU_PB_FIXED64);
	mu_buf_put(b, &v, 8);
}

void mu_pb_put_float(struct mu_buf *b, uint32_t number, float v)
{
	uint32_t w;

	memcpy(&w, &v, 4);
	mu_pb_put_fixed32(b, number, w);
}

void mu_pb_put_double(struct mu_buf *b, uint32_t number, double v)
{
	uint64_t w;

	memcpy(&w, &v, 8);
	mu_pb_put_fixed64(b, number, w);
}

/* The length is known only at the end: mu_pb_begin reserves one byte for it, and mu_pb_end moves a
 * long body to make room. */
size_t mu_pb_begin(struct mu_buf *b, uint32_t number)
{
	mu_pb_put_tag(b, number, MU_PB_BYTES);
	mu_buf_putc(b, 0);
	return b->len;
}

void mu_pb_end(struct mu_buf *b, size_t at)
{
	size_t body = b->len - at, n = mu_pb_varint_size(body);

	if (n > 1) {
		mu_buf_reserve(b, n - 1);
		memmove(b->data + at + n - 1, b->data + at, body);
		b->len += n - 1;
		b->data[b->len] = '\0';
	}
	encode_varint(b->data + at - 1, body);
}
