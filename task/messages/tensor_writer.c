/* SPDX-License-Identifier: Apache-2.0 */
#include "task/messages/tensor_writer.h"

#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"

enum { MIN_BORROWED_BYTES = 1024 }; /* smaller payloads are copied */

void tensor_writer_fini(struct tensor_writer *w)
{
	mu_buf_fini(&w->buf);
	free(w->insertions);
	free(w->messages);
	*w = (struct tensor_writer){0};
}

/* Writes the prefix and a field with the tensor, both in a message of field `outer` (0: none). */
static void put_tensor(struct tensor_writer *w, uint32_t outer, uint32_t number,
		       struct mu_span prefix, const struct mu_tensor *t)
{
	MU_AUTO_BUF body = {0};
	size_t payload_len = 0, len;

	if (mu_tensor_bytes(t) >= MIN_BORROWED_BYTES)
		payload_len = mu_tensor_write_head(&body, t);
	else
		mu_tensor_write(&body, t);
	len = body.len + payload_len;
	if (outer) {
		mu_pb_put_tag(&w->buf, outer, MU_PB_BYTES);
		mu_pb_put_varint(&w->buf, prefix.len + 1 + mu_pb_varint_size(len) + len);
	}
	mu_buf_put(&w->buf, prefix.data, prefix.len);
	mu_pb_put_tag(&w->buf, number, MU_PB_BYTES);
	mu_pb_put_varint(&w->buf, len);
	mu_buf_put(&w->buf, body.data, body.len);
	if (payload_len == 0)
		return;
	w->insertions = mu_xrealloc(w->insertions, (w->n_insertions + 1) * sizeof(*w->insertions));
	w->insertions[w->n_insertions++] = (struct tensor_insertion){w->buf.len, t, payload_len};
}

void tensor_writer_put(struct tensor_writer *w, uint32_t number, const struct mu_tensor *t)
{
	put_tensor(w, 0, number, MU_SPAN(""), t);
}

void tensor_writer_put_named(struct tensor_writer *w, uint32_t number, const char *name,
			     const struct mu_tensor *t)
{
	MU_AUTO_BUF prefix = {0};

	mu_pb_put_str(&prefix, 1, name);
	put_tensor(w, number, 2, mu_buf_span(&prefix), t);
}

const struct rpc_message *tensor_writer_message(struct tensor_writer *w)
{
	size_t from = 0;

	free(w->messages);
	w->messages = MU_NEW_ARRAY(struct rpc_message, w->n_insertions + 1);
	for (unsigned i = 0; i <= w->n_insertions; i++) {
		struct rpc_message *m = &w->messages[i];
		size_t to = i < w->n_insertions ? w->insertions[i].at : w->buf.len;

		m->head = (struct mu_span){w->buf.data + from, to - from};
		if (i < w->n_insertions) {
			m->payload = w->insertions[i].payload;
			m->payload_len = w->insertions[i].len;
			m->next = m + 1;
		}
		from = to;
	}
	return w->messages;
}
