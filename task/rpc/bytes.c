/* SPDX-License-Identifier: Apache-2.0 */
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>

#include "task/rpc/core.h"

enum {
	LEND_FROM = 16 << 10, /* bytes */
	BORROW_FROM = 1024,   /* bytes: below it, a copy is cheaper than a slice of its own */
};

void bytes_own(struct rpc_bytes *b, char *data, size_t len)
{
	*b = (struct rpc_bytes){.own = data, .own_len = data ? len : 0};
}

static const struct rpc_message *largest(const struct rpc_message *m)
{
	const struct rpc_message *most = NULL;

	for (; m; m = m->next)
		if (m->payload && m->payload_len >= LEND_FROM &&
		    (!most || m->payload_len > most->payload_len))
			most = m;
	return most;
}

static size_t put(char *to, const void *from, size_t n)
{
	if (n)
		memcpy(to, from, n);
	return n;
}

void bytes_borrow(struct rpc_bytes *b, const struct rpc_message *m)
{
	const struct rpc_message *lent = largest(m);
	size_t len = 0, at = 0;

	*b = (struct rpc_bytes){0};
	for (const struct rpc_message *p = m; p; p = p->next)
		len += p->head.len + (p->payload ? p->payload_len : 0) + p->tail.len;
	if (len == 0)
		return;
	b->own = mu_xmalloc(len);
	b->own_len = len;
	for (; m; m = m->next) {
		at += put(b->own + at, m->head.data, m->head.len);
		if (m == lent) {
			b->lent = mu_tensor_ref(m->payload);
			b->lent_at = at;
			b->lent_len = m->payload_len;
			at += m->payload_len;
		} else if (m->payload) {
			at += put(b->own + at, m->payload->data, m->payload_len);
		}
		at += put(b->own + at, m->tail.data, m->tail.len);
	}
}

void bytes_give_back(struct rpc_bytes *b)
{
	mu_tensor_unref(&b->lent);
}

struct mu_span rpc_bytes_lent(struct rpc_bytes *b, struct rpc_lent *lent)
{
	if (!mu_tensor_is_set(&b->lent)) {
		*lent = (struct rpc_lent){0};
		return rpc_bytes_flat(b);
	}
	*lent = (struct rpc_lent){&b->lent, b->own + b->lent_at};
	return (struct mu_span){b->own, b->own_len};
}

void bytes_fini(struct rpc_bytes *b)
{
	bytes_give_back(b);
	free(b->own);
	if (b->buffer)
		grpc_byte_buffer_destroy(b->buffer);
	*b = (struct rpc_bytes){0};
}

void bytes_receive(struct rpc_bytes *b, grpc_byte_buffer *buffer)
{
	*b = (struct rpc_bytes){.buffer = buffer};
}

void bytes_from_message(struct rpc_bytes *b, const struct rpc_message *m)
{
	bytes_receive(b, core_buffer_from(m));
}

size_t bytes_len(const struct rpc_bytes *b)
{
	return b->buffer ? grpc_byte_buffer_length(b->buffer) : b->own_len;
}

void bytes_copy(const struct rpc_bytes *b, size_t offset, size_t len, void *to)
{
	grpc_byte_buffer_reader reader;
	grpc_slice *slice;
	char *at = to;

	if (!b->buffer && offset < b->own_len)
		memcpy(to, b->own + offset, len < b->own_len - offset ? len : b->own_len - offset);
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

/* The message's only slice; false when it has several. */
static bool only_slice(const struct rpc_bytes *b, struct mu_span *out)
{
	grpc_byte_buffer_reader reader;
	grpc_slice *slice;
	bool found;

	if (!grpc_byte_buffer_reader_init(&reader, b->buffer))
		return false;
	found = grpc_byte_buffer_reader_peek(&reader, &slice) &&
		GRPC_SLICE_LENGTH(*slice) == grpc_byte_buffer_length(b->buffer);
	if (found)
		*out = (struct mu_span){(const char *)GRPC_SLICE_START_PTR(*slice),
					GRPC_SLICE_LENGTH(*slice)};
	grpc_byte_buffer_reader_destroy(&reader);
	return found;
}

struct mu_span rpc_bytes_flat(struct rpc_bytes *b)
{
	struct mu_span span;
	char *copy;
	size_t len;

	if (mu_tensor_is_set(&b->lent)) {
		memcpy(b->own + b->lent_at, b->lent.data, b->lent_len);
		bytes_give_back(b);
	}
	if (b->buffer) {
		if (only_slice(b, &span))
			return span;
		len = bytes_len(b);
		copy = mu_xmalloc(len + 1);
		bytes_copy(b, 0, len, copy);
		grpc_byte_buffer_destroy(b->buffer);
		bytes_own(b, copy, len);
	}
	return b->own ? (struct mu_span){b->own, b->own_len} : MU_SPAN("");
}

void message_flatten(const struct rpc_message *m, struct mu_buf *to)
{
	for (; m; m = m->next) {
		mu_buf_put(to, m->head.data, m->head.len);
		if (m->payload)
			mu_buf_put(to, m->payload->data, m->payload_len);
		mu_buf_put(to, m->tail.data, m->tail.len);
	}
}

static void unref_tensor(void *p)
{
	struct mu_tensor *t = p;

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
	return grpc_slice_new_with_user_data(held->data, len, unref_tensor, held);
}

grpc_byte_buffer *core_buffer_from(const struct rpc_message *m)
{
	grpc_slice fixed[12], *slices = fixed;
	size_t parts = 1, n = 0;
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
