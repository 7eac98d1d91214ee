/* SPDX-License-Identifier: Apache-2.0 */
#include "task/rpc/bytes.h"

enum { LEND_FROM = 16 << 10 };

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
	mu_tensor_unref(&b->tensor);
	*b = (struct rpc_bytes){0};
}

struct mu_span rpc_bytes_flat(struct rpc_bytes *b)
{
	if (mu_tensor_is_set(&b->lent)) {
		memcpy(b->own + b->lent_at, b->lent.data, b->lent_len);
		bytes_give_back(b);
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
