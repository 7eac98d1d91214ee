/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as gRPC holds them: received ones in many slices, sent ones borrowing tensors. */
#include <grpc/byte_buffer_reader.h>

#include "task/rpc/core.h"

/* Below this a copy is cheaper than a slice of its own; TensorFlow draws the line here too. */
enum { BORROW_FROM = 1024 };

void bytes_init(struct rpc_bytes *b, grpc_byte_buffer *buffer)
{
	*b = (struct rpc_bytes){.buffer = buffer};
}

void bytes_fini(struct rpc_bytes *b)
{
	if (b->has_flat)
		grpc_slice_unref(b->flat);
	if (b->buffer)
		grpc_byte_buffer_destroy(b->buffer);
	*b = (struct rpc_bytes){0};
}

size_t rpc_bytes_len(const struct rpc_bytes *b)
{
	return b->buffer ? grpc_byte_buffer_length(b->buffer) : 0;
}

struct mu_span rpc_bytes_flat(struct rpc_bytes *b)
{
	grpc_byte_buffer_reader reader;

	if (!b->buffer)
		return MU_SPAN("");
	if (!b->has_flat) {
		/* readall hands out the slice itself when there is only one */
		if (!grpc_byte_buffer_reader_init(&reader, b->buffer))
			return MU_SPAN("");
		b->flat = grpc_byte_buffer_reader_readall(&reader);
		grpc_byte_buffer_reader_destroy(&reader);
		b->has_flat = true;
	}
	return (struct mu_span){(const char *)GRPC_SLICE_START_PTR(b->flat),
				GRPC_SLICE_LENGTH(b->flat)};
}

void rpc_bytes_copy(const struct rpc_bytes *b, size_t offset, size_t len, void *to)
{
	grpc_byte_buffer_reader reader;
	grpc_slice *slice;
	char *at = to;

	if (!b->buffer || !grpc_byte_buffer_reader_init(&reader, b->buffer))
		return;
	while (len > 0 && grpc_byte_buffer_reader_peek(&reader, &slice)) {
		size_t n = GRPC_SLICE_LENGTH(*slice);

		if (offset >= n) {
			offset -= n;
			continue;
		}
		n -= offset;
		if (n > len)
			n = len;
		memcpy(at, GRPC_SLICE_START_PTR(*slice) + offset, n);
		at += n;
		len -= n;
		offset = 0;
	}
	grpc_byte_buffer_reader_destroy(&reader);
}

static void unref_tensor(void *p)
{
	struct mu_tensor *t = p;

	core_take_over(p);
	mu_tensor_unref(t);
	free(t);
}

static grpc_slice payload_slice(const struct mu_tensor *t, size_t len)
{
	struct mu_tensor *held;

	if (len < BORROW_FROM)
		return grpc_slice_from_copied_buffer(t->data, len);
	held = MU_NEW(struct mu_tensor);
	*held = mu_tensor_ref(t);
	core_hand_over(held);
	return grpc_slice_new_with_user_data(t->data, len, unref_tensor, held);
}

grpc_byte_buffer *message_to_buffer(const struct rpc_message *m)
{
	grpc_slice fixed[12], *slices = fixed;
	size_t parts = 0, n = 0;
	grpc_byte_buffer *out;

	for (const struct rpc_message *p = m; p; p = p->next)
		parts += 3;
	if (parts > MU_COUNT(fixed))
		slices = MU_NEW_ARRAY(grpc_slice, parts);
	for (const struct rpc_message *p = m; p; p = p->next) {
		if (p->head.len)
			slices[n++] = grpc_slice_from_copied_buffer(p->head.data, p->head.len);
		if (p->payload && p->payload_len)
			slices[n++] = payload_slice(p->payload, p->payload_len);
		if (p->tail.len)
			slices[n++] = grpc_slice_from_copied_buffer(p->tail.data, p->tail.len);
	}
	if (n == 0)
		slices[n++] = grpc_empty_slice();
	out = grpc_raw_byte_buffer_create(slices, n);
	for (size_t i = 0; i < n; i++)
		grpc_slice_unref(slices[i]);
	if (slices != fixed)
		free(slices);
	return out;
}
