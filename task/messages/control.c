/* SPDX-License-Identifier: Apache-2.0 */
#include "task/messages/control.h"

enum { ALLOWANCE = 64 << 20 };

struct budget {
	struct mu_arena *arena;
	size_t left;
};

static void *take(void *data, size_t size)
{
	struct budget *b = data;

	if (size > b->left)
		return NULL;
	b->left -= size;
	return mu_arena_alloc(b->arena, size);
}

static void give(void *data, void *p)
{
}

void *control_unpack(struct mu_arena *a, const ProtobufCMessageDescriptor *d, struct mu_span bytes,
		     struct mu_err *err)
{
	struct budget budget = {a, bytes.len + ALLOWANCE};
	ProtobufCAllocator allocator = {.alloc = take, .free = give, .allocator_data = &budget};
	void *m = protobuf_c_message_unpack(d, &allocator, bytes.len, (const uint8_t *)bytes.data);

	if (!m)
		mu_fail(err, MU_INVALID_ARGUMENT, "the bytes are no %s", d->short_name);
	return m;
}

void control_pack(struct mu_buf *b, const void *message)
{
	size_t n = protobuf_c_message_get_packed_size(message);

	mu_buf_reserve(b, n);
	protobuf_c_message_pack(message, (uint8_t *)b->data + b->len);
	b->len += n;
	b->data[b->len] = 0;
}
