/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's table of open streams, by number. */
#include "task/rpc/h2/conn.h"

static struct h2_stream **bucket(struct h2_conn *c, uint32_t id)
{
	return &c->table[(id >> 1) & (c->n_buckets - 1)];
}

struct h2_stream *h2_stream_find(struct h2_conn *c, uint32_t id)
{
	struct h2_stream *s = *bucket(c, id);

	while (s && s->id != id)
		s = s->next;
	return s;
}

static void grow(struct h2_conn *c)
{
	struct h2_stream **old = c->table, *next;
	unsigned n = c->n_buckets;

	c->n_buckets *= 4;
	c->table = MU_NEW_ARRAY(struct h2_stream *, c->n_buckets);
	for (unsigned i = 0; i < n; i++)
		for (struct h2_stream *s = old[i]; s; s = next) {
			next = s->next;
			s->next = *bucket(c, s->id);
			*bucket(c, s->id) = s;
		}
	free(old);
}

void h2_stream_add(struct h2_conn *c, struct h2_stream *s)
{
	if (c->n_streams >= c->n_buckets * 2)
		grow(c);
	s->next = *bucket(c, s->id);
	*bucket(c, s->id) = s;
	s->listed = true;
	c->n_streams++;
}

bool h2_stream_drop(struct h2_stream *s)
{
	struct h2_conn *c = s->conn;
	struct h2_stream **at;

	if (!s->listed)
		return false;
	at = bucket(c, s->id);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	s->listed = false;
	c->n_streams--;
	/* what it had to send goes with it, not when the connection has room next */
	if (s->turns)
		h2_send_no_more(c, s);
	return true;
}

struct h2_stream **h2_stream_all(struct h2_conn *c, bool drop, unsigned *n)
{
	struct h2_stream **list = MU_NEW_ARRAY(struct h2_stream *, c->n_streams + 1), *next;

	*n = 0;
	for (unsigned i = 0; i < c->n_buckets; i++)
		for (struct h2_stream *s = c->table[i]; s; s = next) {
			next = s->next;
			if (drop)
				h2_stream_drop(s);
			else
				c->side->ref(s);
			list[(*n)++] = s;
		}
	return list;
}

void h2_stream_fini(struct h2_stream *s)
{
	for (unsigned i = 0; i < s->n_pieces; i++)
		if (s->pieces[i].tensor.data)
			mu_tensor_unref(&s->pieces[i].tensor);
	free(s->pieces);
	free(s->copy);
	h2_body_fini(&s->in);
	if (s->conn)
		h2_conn_unref(s->conn);
}
