/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/data/serializer.h"

int serializer_fail(struct mu_err *err)
{
	return mu_invalid(err, "the iterator's saved state is cut short, or of another pipeline");
}

static int read_varint(struct serializer *ser, uint64_t *v, struct mu_err *err)
{
	return mu_pb_varint(&ser->from, v) ? 0 : serializer_fail(err);
}

int serialize_number(struct serializer *ser, int64_t *v, int64_t min, int64_t max,
		     struct mu_err *err)
{
	uint64_t x;

	if (!serializer_is_reading(ser)) {
		mu_pb_put_varint(ser->to, (uint64_t)*v);
		return 0;
	}
	MU_RETURN_IF_ERROR(read_varint(ser, &x, err));
	if ((int64_t)x < min || (int64_t)x > max)
		return serializer_fail(err);
	*v = (int64_t)x;
	return 0;
}

int serialize_word(struct serializer *ser, uint32_t *v, struct mu_err *err)
{
	int64_t x = *v;

	MU_RETURN_IF_ERROR(serialize_number(ser, &x, 0, UINT32_MAX, err));
	*v = (uint32_t)x;
	return 0;
}

int serialize_flag(struct serializer *ser, bool *v, struct mu_err *err)
{
	int64_t x = *v;

	MU_RETURN_IF_ERROR(serialize_number(ser, &x, 0, 1, err));
	*v = x;
	return 0;
}

int serialize_span(struct serializer *ser, struct mu_span *s, struct mu_err *err)
{
	uint64_t n;

	if (!serializer_is_reading(ser)) {
		mu_pb_put_varint(ser->to, s->len);
		mu_buf_put(ser->to, s->data, s->len);
		return 0;
	}
	MU_RETURN_IF_ERROR(read_varint(ser, &n, err));
	if (n > (uint64_t)(ser->from.end - ser->from.at))
		return serializer_fail(err);
	*s = (struct mu_span){ser->from.at, n};
	ser->from.at += n;
	return 0;
}

int serialize_bytes(struct serializer *ser, struct mu_buf *b, struct mu_err *err)
{
	struct mu_span s = mu_buf_span(b);

	MU_RETURN_IF_ERROR(serialize_span(ser, &s, err));
	if (!serializer_is_reading(ser))
		return 0;
	mu_buf_clear(b);
	mu_buf_put(b, s.data, s.len);
	return 0;
}
