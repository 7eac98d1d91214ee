/* SPDX-License-Identifier: Apache-2.0 */
/* RecvTensorResponse, read from the slices it came in.
 *
 * The usual large reply is a few small fields and then, last or nearly so, tensor_content.  A
 * window of the first bytes is walked by hand; when it leads to a tensor_content that fills its
 * tensor exactly, the payload is copied once, from gRPC's slices into the tensor.  Anything else
 * (strings, typed lists, another order) is flattened and goes the general way. */
#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"
#include "task/rpc/hot.h"

enum { WINDOW = 512, FAST_FROM = 4096 };

struct seen {
	struct mu_tensor tensor;
	bool dead;
};

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

/* 1: done; 0: go the general way; negative: an error. */
static int fast(struct rpc_bytes *bytes, size_t total, struct seen *out, struct mu_err *err)
{
	char window[WINDOW];
	struct mu_pb m = mu_pb_of((struct mu_span){window, WINDOW});
	enum mu_dtype dtype = MU_DT_INVALID;
	enum mu_pb_type type;
	struct mu_shape shape;
	uint32_t number;
	uint64_t value;
	size_t len, at, inner;
	int rc;

	rpc_bytes_copy(bytes, 0, WINDOW, window);
	while (open_field(&m, &number, &type, &value)) {
		if (number == 3 && type == MU_PB_VARINT)
			continue;
		if (number == 4 && type == MU_PB_BYTES && value <= (uint64_t)(m.end - m.at)) {
			m.at += value; /* transport_options */
			continue;
		}
		if (number != 1 || type != MU_PB_BYTES)
			return 0;
		inner = (size_t)(m.at - window);
		len = content_of(&m, &dtype, &shape);
		at = (size_t)(m.at - window);
		/* the content must end both the tensor and the message */
		if (len == 0 || dtype == MU_BOOL || mu_dtype_size(dtype) == 0 || len > total ||
		    at + len != total || inner + value != total ||
		    (uint64_t)shape.count > SIZE_MAX / mu_dtype_size(dtype) ||
		    len != (size_t)shape.count * mu_dtype_size(dtype))
			return 0;
		rc = mu_tensor_new(&out->tensor, dtype, &shape, err);
		if (rc)
			return rc;
		rpc_bytes_copy(bytes, at, len, out->tensor.data);
		return 1;
	}
	return 0;
}

int hot_recv_tensor_reply(struct rpc_bytes *bytes, struct mu_tensor *out, bool *dead,
			  struct mu_err *err)
{
	struct seen got = {0};
	struct mu_span proto = MU_SPAN(""), flat;
	size_t total = rpc_bytes_len(bytes);
	struct mu_pb_field f;
	struct mu_pb m;
	int rc = total >= FAST_FROM ? fast(bytes, total, &got, err) : 0;

	if (rc < 0)
		return rc;
	if (rc == 0) {
		flat = rpc_bytes_flat(bytes);
		m = mu_pb_of(flat);
		while (mu_pb_next(&m, &f)) {
			if (f.number == 1)
				proto = f.bytes;
			else if (f.number == 2)
				got.dead = f.value;
		}
		if (m.bad)
			return mu_fail(err, MU_INTERNAL,
				       "the peer's RecvTensor answer is cut short");
		if (got.dead)
			proto = MU_SPAN("\x08\x01\x12\x04\x12\x02\x08\x00"); /* float, [0] */
		rc = mu_tensor_parse(&got.tensor, proto, err);
		if (rc)
			return rc;
	}
	*out = got.tensor;
	*dead = got.dead;
	return 0;
}
