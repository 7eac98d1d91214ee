/* SPDX-License-Identifier: Apache-2.0 */
#include "task/rpc/bytes.h"

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>

#include "lib/base/mem.h"
#include "lib/base/tsan.h"

void bytes_receive(struct rpc_bytes *b, grpc_byte_buffer *buffer)
{
	*b = (struct rpc_bytes){buffer, grpc_empty_slice()};
}

void bytes_fini(struct rpc_bytes *b)
{
	grpc_slice_unref(b->flat);
	if (b->buffer)
		grpc_byte_buffer_destroy(b->buffer);
	bytes_receive(b, NULL);
}

/* A message of several slices is copied into one. */
struct mu_span rpc_bytes_flat(struct rpc_bytes *b)
{
	grpc_byte_buffer_reader reader;
	grpc_slice *first;

	if (b->buffer && GRPC_SLICE_IS_EMPTY(b->flat) &&
	    grpc_byte_buffer_reader_init(&reader, b->buffer)) {
		if (grpc_byte_buffer_reader_peek(&reader, &first) &&
		    GRPC_SLICE_LENGTH(*first) == grpc_byte_buffer_length(b->buffer))
			b->flat = grpc_slice_ref(*first);
		grpc_byte_buffer_reader_destroy(&reader);
	}
	if (b->buffer && GRPC_SLICE_IS_EMPTY(b->flat) &&
	    grpc_byte_buffer_reader_init(&reader, b->buffer)) {
		grpc_slice_unref(b->flat); /* an empty one may belong to a read buffer */
		b->flat = grpc_byte_buffer_reader_readall(&reader);
		grpc_byte_buffer_reader_destroy(&reader);
	}
	return (struct mu_span){(const char *)GRPC_SLICE_START_PTR(b->flat),
				GRPC_SLICE_LENGTH(b->flat)};
}

void message_flatten(const struct rpc_message *m, struct mu_buf *to)
{
	for (; m; m = m->next) {
		mu_buf_put(to, m->head.data, m->head.len);
		if (m->payload)
			mu_buf_put(to, m->payload->data, m->payload_len);
	}
}

static void unref_tensor(void *p)
{
	struct mu_tensor *t = p;

	mu_tsan_acquire(t);
	mu_tensor_unref_remote(t);
	free(t);
}

static grpc_slice payload_slice(const struct mu_tensor *t, size_t len)
{
	struct mu_tensor *reference = MU_NEW(struct mu_tensor);

	*reference = mu_tensor_ref(t);
	mu_tensor_add_remote_ref(t);
	mu_tsan_release(reference);
	return grpc_slice_new_with_user_data(t->data, len, unref_tensor, reference);
}

grpc_byte_buffer *message_to_buffer(const struct rpc_message *m)
{
	size_t parts = 0, n = 0;
	grpc_slice *slices;
	grpc_byte_buffer *out;

	for (const struct rpc_message *p = m; p; p = p->next)
		parts += 2;
	slices = MU_NEW_ARRAY(grpc_slice, parts);
	for (const struct rpc_message *p = m; p; p = p->next) {
		if (p->head.len)
			slices[n++] = grpc_slice_from_copied_buffer(p->head.data, p->head.len);
		if (p->payload && p->payload_len)
			slices[n++] = payload_slice(p->payload, p->payload_len);
	}
	out = grpc_raw_byte_buffer_create(slices, n);
	for (size_t i = 0; i < n; i++)
		grpc_slice_unref(slices[i]);
	free(slices);
	return out;
}
