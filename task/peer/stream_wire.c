/* SPDX-License-Identifier: Apache-2.0 */
#include "task/peer/stream_wire.h"

#include <endian.h>
#include <stdio.h>

#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"

static const char magic[8] = {'m', 'u', 's', 't', 'e', 'r', 's', 't'};

static void put_u32(struct mu_buf *b, uint32_t v)
{
	v = htole32(v);
	mu_buf_put(b, &v, sizeof(v));
}

static void put_u64(struct mu_buf *b, uint64_t v)
{
	v = htole64(v);
	mu_buf_put(b, &v, sizeof(v));
}

/* Read from the front of the span and shorten it; false if it is too short. */
static bool read_bytes(struct mu_span *s, void *to, size_t n)
{
	if (s->len < n)
		return false;
	memcpy(to, s->data, n);
	s->data += n;
	s->len -= n;
	return true;
}

static bool read_u32(struct mu_span *s, uint32_t *v)
{
	bool ok = read_bytes(s, v, sizeof(*v));

	*v = ok ? le32toh(*v) : 0;
	return ok;
}

static bool read_u64(struct mu_span *s, uint64_t *v)
{
	bool ok = read_bytes(s, v, sizeof(*v));

	*v = ok ? le64toh(*v) : 0;
	return ok;
}

/* Reads a NUL-terminated string. */
static bool read_text(struct mu_span *s, const char **text)
{
	const char *nul = s->len ? memchr(s->data, 0, s->len) : NULL;

	if (!nul)
		return false;
	*text = s->data;
	s->len -= (size_t)(nul + 1 - s->data);
	s->data = nul + 1;
	return true;
}

static int fail_malformed(struct mu_err *err, const char *part)
{
	return mu_fail(err, MU_INVALID_ARGUMENT, "a stream's %s is malformed", part);
}

int stream_header_parse(struct stream_header *out, const char bytes[STREAM_HEADER],
			struct mu_err *err)
{
	struct mu_span s = {bytes, STREAM_HEADER};
	uint8_t start[4];
	uint64_t step;
	struct stream_header h;

	read_bytes(&s, start, sizeof(start));
	read_u32(&s, &h.head_len);
	read_u64(&s, &h.payload_len);
	read_u64(&s, &step);
	h.type = start[0];
	h.flags = start[1];
	h.step_id = (int64_t)step;
	if (start[0] < STREAM_HELLO || start[0] > STREAM_RETURN || start[2] || start[3])
		return fail_malformed(err, "frame header");
	if (h.head_len > STREAM_MAX_HEAD)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "a frame head has %u bytes, the limit is %d", h.head_len,
			       STREAM_MAX_HEAD);
	if (h.payload_len && (h.type != STREAM_TENSOR || h.payload_len > mu_tensor_limit))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "a frame of type %d with %llu bytes of payload", (int)h.type,
			       (unsigned long long)h.payload_len);
	*out = h;
	return 0;
}

size_t stream_frame_begin(struct mu_buf *b, enum stream_type type, unsigned flags, int64_t step_id)
{
	char start[4] = {(char)type, (char)flags, 0, 0};
	size_t at = b->len;

	mu_buf_put(b, start, sizeof(start));
	put_u32(b, 0);
	put_u64(b, 0);
	put_u64(b, (uint64_t)step_id);
	return at;
}

int stream_frame_end(struct mu_buf *b, size_t at, uint64_t payload_len, struct mu_err *err)
{
	size_t head = b->len - at - STREAM_HEADER;
	uint32_t head32 = htole32((uint32_t)head);
	uint64_t payload = htole64(payload_len);

	if (head > STREAM_MAX_HEAD)
		return mu_fail(
		    err, MU_RESOURCE_EXHAUSTED,
		    "a frame head has %zu bytes, the limit is %d; a name may be too long", head,
		    STREAM_MAX_HEAD);
	memcpy(b->data + at + 4, &head32, sizeof(head32));
	memcpy(b->data + at + 8, &payload, sizeof(payload));
	return 0;
}

int stream_hello_parse(struct stream_hello *out, struct mu_span head, struct mu_err *err)
{
	char start[sizeof(magic)];
	struct stream_hello h;
	const char *task;
	uint32_t version;

	if (!read_bytes(&head, start, sizeof(start)) || memcmp(start, magic, sizeof(magic)) ||
	    !read_u32(&head, &version) || !read_bytes(&head, h.key, sizeof(h.key)) ||
	    !read_u64(&head, &h.sender_incarnation) || !read_u64(&head, &h.receiver_incarnation) ||
	    !read_text(&head, &task) || head.len || strlen(task) > STREAM_MAX_TASK)
		return fail_malformed(err, "HELLO");
	if (version != STREAM_VERSION)
		return mu_fail(err, MU_UNIMPLEMENTED, "stream version %u; this task supports %d",
			       version, STREAM_VERSION);
	snprintf(h.task, sizeof(h.task), "%s", task);
	*out = h;
	return 0;
}

void stream_hello_write(struct mu_buf *b, enum stream_type type, unsigned flags,
			const struct stream_hello *h)
{
	size_t at = stream_frame_begin(b, type, flags, 0);

	mu_buf_put(b, magic, sizeof(magic));
	put_u32(b, STREAM_VERSION);
	mu_buf_put(b, h->key, sizeof(h->key));
	put_u64(b, h->sender_incarnation);
	put_u64(b, h->receiver_incarnation);
	mu_buf_put(b, h->task, strlen(h->task) + 1);
	stream_frame_end(b, at, 0, NULL);
}

int stream_run_parse(struct stream_run *out, struct mu_span head, struct mu_err *err)
{
	uint64_t request;

	if (!read_u64(&head, &request) || !read_text(&head, &out->session) ||
	    !read_text(&head, &out->graph) || head.len)
		return fail_malformed(err, "RUN");
	out->request_id = (int64_t)request;
	return 0;
}

int stream_run_write(struct mu_buf *b, int64_t step_id, const struct stream_run *m,
		     struct mu_err *err)
{
	size_t at = stream_frame_begin(b, STREAM_RUN, 0, step_id);

	put_u64(b, (uint64_t)m->request_id);
	mu_buf_put(b, m->session, strlen(m->session) + 1);
	mu_buf_put(b, m->graph, strlen(m->graph) + 1);
	return stream_frame_end(b, at, 0, err);
}

int stream_run_done_parse(struct mu_err *result, struct mu_span head, struct mu_err *err)
{
	uint32_t code;

	if (!read_u32(&head, &code))
		return fail_malformed(err, "RUN_DONE");
	result->code = code ? mu_code_from((long)code) : MU_OK;
	snprintf(result->msg, sizeof(result->msg), "%.*s", (int)head.len,
		 head.len ? head.data : "");
	return 0;
}

void stream_run_done_write(struct mu_buf *b, int64_t step_id, const struct mu_err *result)
{
	size_t at = stream_frame_begin(b, STREAM_RUN_DONE, 0, step_id);

	put_u32(b, result ? result->code : 0);
	if (result)
		mu_buf_puts(b, result->msg);
	stream_frame_end(b, at, 0, NULL); /* a message is short */
}

int stream_tensor_parse(struct stream_tensor *out, const struct stream_header *h,
			struct mu_span head, struct mu_err *err)
{
	struct stream_tensor t = {.raw = !(h->flags & (STREAM_DEAD | STREAM_PROTO | STREAM_SHARED)),
				  .shared = h->flags == STREAM_SHARED};
	size_t handle_len = t.shared ? sizeof(t.handle.id) + sizeof(t.handle.offset) : 0;
	uint32_t dtype, rank;
	uint64_t dim;
	int rc;

	if (!read_text(&head, &t.key) || !read_u32(&head, &dtype) || !read_u32(&head, &rank) ||
	    rank > MU_MAX_RANK || head.len != rank * sizeof(dim) + handle_len)
		return fail_malformed(err, "TENSOR");
	t.shape = mu_shape_scalar();
	if (!t.raw && !t.shared) {
		if (rank || ((h->flags & STREAM_DEAD) && h->payload_len))
			return fail_malformed(err, "TENSOR");
		*out = t;
		return 0;
	}
	t.dtype = (enum mu_dtype)dtype;
	if (dtype >= MU_DT_COUNT || mu_dtype_size(t.dtype) == 0)
		return fail_malformed(err, "TENSOR's type");
	for (; rank && read_u64(&head, &dim); rank--)
		if ((rc = mu_shape_push(&t.shape, (int64_t)dim, err)))
			return rc;
	if ((uint64_t)t.shape.count > mu_tensor_limit / mu_dtype_size(t.dtype) ||
	    (t.shared ? 0 : (uint64_t)t.shape.count * mu_dtype_size(t.dtype)) != h->payload_len)
		return fail_malformed(err, "TENSOR's length");
	if (t.shared) {
		read_u64(&head, &t.handle.id);
		read_u64(&head, &t.handle.offset);
	}
	*out = t;
	return 0;
}

static void put_tensor_head(struct mu_buf *b, const char *key, enum mu_dtype dtype,
			    const struct mu_shape *shape)
{
	mu_buf_put(b, key, strlen(key) + 1);
	put_u32(b, (uint32_t)dtype);
	put_u32(b, (uint32_t)shape->rank);
	for (int i = 0; i < shape->rank; i++)
		put_u64(b, (uint64_t)shape->dim[i]);
}

int stream_tensor_write(struct mu_buf *b, int64_t step_id, const char *key,
			const struct mu_tensor *t, bool dead, size_t *payload, struct mu_err *err)
{
	size_t size = dead ? 0 : mu_dtype_size(t->dtype);
	size_t bytes = size ? size * (size_t)t->shape.count : 0, at;
	MU_AUTO_BUF proto = {0};
	unsigned flags = dead ? STREAM_DEAD : size ? 0 : STREAM_PROTO;
	const struct mu_shape none = mu_shape_scalar();
	int rc;

	if (flags & STREAM_PROTO) {
		mu_tensor_write(&proto, t);
		bytes = proto.len;
	}
	at = stream_frame_begin(b, STREAM_TENSOR, flags, step_id);
	put_tensor_head(b, key, size ? t->dtype : MU_DT_INVALID, size ? &t->shape : &none);
	rc = stream_frame_end(b, at, bytes, err);
	if (rc)
		return rc;
	*payload = 0;
	if (flags & STREAM_PROTO)
		mu_buf_put(b, proto.data, proto.len);
	else
		*payload = bytes;
	return 0;
}

int stream_shared_write(struct mu_buf *b, int64_t step_id, const char *key,
			const struct mu_tensor *t, const struct shm_handle *handle,
			struct mu_err *err)
{
	size_t at = stream_frame_begin(b, STREAM_TENSOR, STREAM_SHARED, step_id);

	put_tensor_head(b, key, t->dtype, &t->shape);
	put_u64(b, handle->id);
	put_u64(b, handle->offset);
	return stream_frame_end(b, at, 0, err);
}

void stream_return_write(struct mu_buf *b, struct mu_span ids)
{
	size_t at = stream_frame_begin(b, STREAM_RETURN, 0, 0);

	mu_buf_put(b, ids.data, ids.len);
	stream_frame_end(b, at, 0, NULL); /* the sender limits the length */
}

/* ---- offer ---- */

static bool read_offer(struct stream_offer *o, struct mu_span bytes)
{
	struct mu_pb m = mu_pb_of(bytes);
	struct mu_pb_field f;
	bool has_key = false;

	*o = (struct stream_offer){0};
	while (mu_pb_next(&m, &f))
		switch (f.number) {
		case 1:
			o->version = (unsigned)f.value;
			break;
		case 2:
			o->port = f.value <= 65535 ? (int)f.value : 0;
			break;
		case 3:
			snprintf(o->local, sizeof(o->local), "%.*s", (int)f.bytes.len,
				 f.bytes.data);
			break;
		case 4:
			has_key = f.bytes.len == sizeof(o->key);
			if (has_key)
				memcpy(o->key, f.bytes.data, sizeof(o->key));
			break;
		case 5:
			o->incarnation = f.value;
			break;
		default:
			break;
		}
	return !m.bad && has_key && o->version == STREAM_VERSION;
}

bool stream_offer_parse(struct stream_offer *out, struct mu_span status)
{
	struct mu_pb m = mu_pb_of(status);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f))
		if (f.number == STREAM_OFFER_FIELD && f.type == MU_PB_BYTES)
			return read_offer(out, f.bytes);
	return false;
}

void stream_offer_write(struct mu_buf *status, const struct stream_offer *o)
{
	size_t at = mu_pb_begin(status, STREAM_OFFER_FIELD);

	mu_pb_put_int(status, 1, o->version);
	mu_pb_put_int(status, 2, o->port);
	mu_pb_put_str(status, 3, o->local);
	mu_pb_put_bytes(status, 4, (struct mu_span){o->key, sizeof(o->key)});
	mu_pb_put_fixed64(status, 5, o->incarnation);
	mu_pb_end(status, at);
}
