/* SPDX-License-Identifier: Apache-2.0 */
/* RecvTensorResponse.
 *
 * The usual large reply is a few small fields and then, last, tensor_content.  Its first bytes are
 * walked by hand; when they lead to a tensor_content that fills its tensor exactly, the received
 * slices are copied into the tensor, once.  Anything else (strings, typed lists, another order) is
 * gathered and goes the general way. */
#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"
#include "task/rpc/bytes.h"
#include "task/rpc/hot.h"

enum { HEAD = 512 }; /* bytes that are looked at for the place of tensor_content */

/* Reads a tag and, for a length-delimited field, its length; the content is left unread. */
static bool open_field(struct mu_pb *m, uint32_t *number, enum mu_pb_type *type, uint64_t *value)
{
	uint64_t tag;

	if (m->at == m->end || !mu_pb_varint(m, &tag) || tag >> 3 > 15)
		return false;
	*number = (uint32_t)(tag >> 3);
	*type = (enum mu_pb_type)(tag & 7);
	return (*type == MU_PB_VARINT || *type == MU_PB_BYTES) && mu_pb_varint(m, value);
}

/* The inside of TensorProto up to tensor_content: how many bytes that has, 0 when this is not the
 * usual form. */
static size_t content_of(struct mu_pb *m, enum mu_dtype *dtype, struct mu_shape *shape)
{
	enum mu_pb_type type;
	uint32_t number;
	uint64_t value;

	*shape = mu_shape_scalar();
	while (open_field(m, &number, &type, &value)) {
		if (number == 4 && type == MU_PB_BYTES)
			return value;
		if (number == 1 && type == MU_PB_VARINT) {
			*dtype = mu_dtype_valid((long)value) ? (enum mu_dtype)value : MU_DT_INVALID;
		} else if (number == 2 && type == MU_PB_BYTES &&
			   value <= (uint64_t)(m->end - m->at)) {
			struct mu_span s = {m->at, (size_t)value};

			if (mu_shape_parse(shape, s, NULL))
				return 0;
			m->at += value;
		} else if (!(number == 3 && type == MU_PB_VARINT)) {
			return 0;
		}
	}
	return 0;
}

/* The first bytes of a RecvTensorResponse of `total` in all: when they lead to a payload that is
 * all the rest, a tensor for it and where it begins. */
static int place(struct mu_span head, size_t total, struct mu_tensor *tensor, size_t *at)
{
	struct mu_pb m = mu_pb_of(head);
	enum mu_dtype dtype = MU_DT_INVALID;
	enum mu_pb_type type;
	struct mu_shape shape;
	size_t len, from, inner;
	uint32_t number;
	uint64_t value;

	while (open_field(&m, &number, &type, &value)) {
		if (number == 3 && type == MU_PB_VARINT)
			continue;
		if (number == 4 && type == MU_PB_BYTES && value <= (uint64_t)(m.end - m.at)) {
			m.at += value; /* transport_options */
			continue;
		}
		if (number != 1 || type != MU_PB_BYTES)
			return -1;
		inner = (size_t)(m.at - head.data);
		len = content_of(&m, &dtype, &shape);
		from = (size_t)(m.at - head.data);
		/* the content must end both the tensor and the message */
		if (len == 0 || dtype == MU_BOOL || mu_dtype_size(dtype) == 0 || len > total ||
		    from + len != total || inner + value != total ||
		    (uint64_t)shape.count > SIZE_MAX / mu_dtype_size(dtype) ||
		    len != (size_t)shape.count * mu_dtype_size(dtype) ||
		    mu_tensor_new(tensor, dtype, &shape, NULL))
			return -1;
		*at = from;
		return 0;
	}
	return -1;
}

int hot_recv_tensor_reply(struct rpc_bytes *bytes, struct mu_tensor *out, bool *dead,
			  struct mu_err *err)
{
	struct mu_span proto = MU_SPAN("");
	size_t total = bytes_len(bytes), at;
	struct mu_tensor got;
	char head[HEAD];
	struct mu_pb_field f;
	struct mu_pb m;
	bool is_dead = false;
	int rc;

	bytes_copy(bytes, 0, HEAD, head);
	if (!place((struct mu_span){head, total < HEAD ? total : HEAD}, total, &got, &at)) {
		bytes_copy(bytes, at, total - at, got.data);
		*out = got;
		*dead = false;
		return 0;
	}
	m = mu_pb_of(rpc_bytes_flat(bytes));
	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			proto = f.bytes;
		else if (f.number == 2)
			is_dead = f.value;
	}
	if (m.bad)
		return mu_fail(err, MU_INTERNAL, "the peer's RecvTensor answer is cut short");
	if (is_dead)
		proto = MU_SPAN("\x08\x01\x12\x04\x12\x02\x08\x00"); /* float, [0] */
	rc = mu_tensor_parse(&got, proto, err);
	if (rc)
		return rc;
	*out = got;
	*dead = is_dead;
	return 0;
}
