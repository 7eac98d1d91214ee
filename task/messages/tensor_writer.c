/* SPDX-License-Identifier: Apache-2.0 */
#include "task/messages/tensor_writer.h"

#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"

enum { MIN_BORROWED_BYTES = 1024 }; /* smaller payloads are copied */

void tensor_writer_fini(struct tensor_writer *w)
{
	mu_buf_fini(&w->buf);
	free(w->cuts);
	free(w->messages);
	*w = (struct tensor_writer){0};
}

/* Writes `before`, then the tensor as a field, both inside one message of field `outer` (0: none).
 */
static void put_tensor(struct tensor_writer *w, uint32_t outer, uint32_t number,
		       struct mu_span before, const struct mu_tensor *t)
{
	MU_AUTO_BUF body = {0};
	size_t left = 0, len;

	if (mu_tensor_bytes(t) >= MIN_BORROWED_BYTES)
		left = mu_tensor_write_head(&body, t);
	else
		mu_tensor_write(&body, t);
	len = body.len + left;
	if (outer) {
		mu_pb_put_tag(&w->buf, outer, MU_PB_BYTES);
		mu_pb_put_varint(&w->buf, before.len + 1 + mu_pb_varint_size(len) + len);
	}
	mu_buf_put(&w->buf, before.data, before.len);
	mu_pb_put_tag(&w->buf, number, MU_PB_BYTES);
	mu_pb_put_varint(&w->buf, len);
	mu_buf_put(&w->buf, body.data, body.len);
	if (left == 0)
		return;
	w->cuts = mu_xrealloc(w->cuts, (w->n_cuts + 1) * sizeof(*w->cuts));
	w->cuts[w->n_cuts++] = (struct tensor_cut){w->buf.len, t, left};
}

void tensor_writer_put(struct tensor_writer *w, uint32_t number, const struct mu_tensor *t)
{
	put_tensor(w, 0, number, MU_SPAN(""), t);
}

void tensor_writer_put_named(struct tensor_writer *w, uint32_t number, const char *name,
			     const struct mu_tensor *t)
{
	MU_AUTO_BUF before = {0};

	mu_pb_put_str(&before, 1, name);
	put_tensor(w, number, 2, mu_buf_span(&before), t);
}

const struct rpc_message *tensor_writer_message(struct tensor_writer *w)
{
	size_t from = 0;

	free(w->messages);
	w->messages = MU_NEW_ARRAY(struct rpc_message, w->n_cuts + 1);
	for (unsigned i = 0; i <= w->n_cuts; i++) {
		struct rpc_message *m = &w->messages[i];
		size_t to = i < w->n_cuts ? w->cuts[i].at : w->buf.len;

		m->head = (struct mu_span){w->buf.data + from, to - from};
		if (i < w->n_cuts) {
			m->payload = w->cuts[i].payload;
			m->payload_len = w->cuts[i].len;
			m->next = m + 1;
		}
		from = to;
	}
	return w->messages;
}
