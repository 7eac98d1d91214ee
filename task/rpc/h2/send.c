/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that go out in DATA frames.  Of a large one only so much is queued at a time as windows
 * and the queue allow; streams that have more to send take turns. */
#include "task/rpc/h2/conn.h"
#include "task/rpc/h2/put.h"

enum {
	BORROW_FROM = 4096, /* below this a copy is cheaper than a run of its own */
	QUEUE = 4 << 20,    /* more is not queued before some of it is written */
	TURN = QUEUE,       /* of one stream: longer frames are fewer wake-ups at the other end */
};

static size_t measure(const struct rpc_message *m, size_t *copied, unsigned *pieces)
{
	size_t total = 0;

	*copied = 5;
	*pieces = 1;
	for (; m; m = m->next) {
		bool borrow = m->payload && m->payload_len >= BORROW_FROM;

		total += m->head.len + (m->payload ? m->payload_len : 0) + m->tail.len;
		*copied += m->head.len + m->tail.len;
		*pieces += borrow ? 2 : 0;
		if (m->payload && !borrow)
			*copied += m->payload_len;
	}
	return total;
}

size_t h2_message_length(const struct rpc_message *m)
{
	size_t copied;
	unsigned pieces;

	return measure(m, &copied, &pieces);
}

void h2_send_prepare(struct h2_stream *s, const struct rpc_message *m)
{
	unsigned pieces;
	size_t copied, total = measure(m, &copied, &pieces);
	char *p = s->copy = mu_xmalloc(copied), *from = p;

	s->pieces = MU_NEW_ARRAY(struct h2_piece, pieces);
	s->left = total + 5;
	p = h2_put_prefix(p, total);
	for (; m; m = m->next) {
		p = h2_put_bytes(p, m->head.data, m->head.len);
		if (m->payload && m->payload_len >= BORROW_FROM) {
			s->pieces[s->n_pieces++] = (struct h2_piece){from, (size_t)(p - from), {0}};
			s->pieces[s->n_pieces++] = (struct h2_piece){
			    m->payload->data, m->payload_len, mu_tensor_ref(m->payload)};
			from = p;
		} else if (m->payload) {
			p = h2_put_bytes(p, m->payload->data, m->payload_len);
		}
		p = h2_put_bytes(p, m->tail.data, m->tail.len);
	}
	s->pieces[s->n_pieces++] = (struct h2_piece){from, (size_t)(p - from), {0}};
}

static void queue_data(struct h2_conn *c, struct h2_stream *s, size_t n)
{
	bool last = n == s->left && c->side->client; /* a server's status comes after it */

	h2_frame_put(h2_out_room(c, H2_HEADER), (uint32_t)n, H2_DATA, last ? H2_END_STREAM : 0,
		     s->id);
	s->left -= n;
	s->send_window -= (int64_t)n;
	c->send_window -= (int64_t)n;
	while (n > 0) {
		struct h2_piece *piece = &s->pieces[s->piece];
		size_t k = piece->len - s->piece_at;

		if (k > n)
			k = n;
		if (k && piece->tensor.data)
			h2_out_tensor(c, &piece->tensor, piece->data + s->piece_at, k);
		else if (k)
			memcpy(h2_out_room(c, k), piece->data + s->piece_at, k);
		n -= k;
		s->piece_at += k;
		if (s->piece_at == piece->len) {
			s->piece++;
			s->piece_at = 0;
		}
	}
}

static void append(struct h2_turns *t, struct h2_stream *s)
{
	s->turns = t;
	s->next_waiting = NULL;
	s->waiting_at = t->last;
	*t->last = s;
	t->last = &s->next_waiting;
}

static void take_out(struct h2_stream *s)
{
	*s->waiting_at = s->next_waiting;
	if (s->next_waiting)
		s->next_waiting->waiting_at = s->waiting_at;
	else
		s->turns->last = s->waiting_at;
	s->turns = NULL;
}

/* One stream's turn; true when it has more to send. */
static bool take_turn(struct h2_conn *c, struct h2_stream *s)
{
	size_t turn = TURN;

	while (s->left && turn && s->send_window > 0 && c->send_window > 0) {
		size_t n = s->left < turn ? s->left : turn;

		if (n > c->max_frame)
			n = c->max_frame;
		if ((int64_t)n > s->send_window)
			n = (size_t)s->send_window;
		if ((int64_t)n > c->send_window)
			n = (size_t)c->send_window;
		queue_data(c, s, n);
		turn -= n;
	}
	return s->left > 0;
}

void h2_send_wait_turn(struct h2_conn *c, struct h2_stream *s)
{
	c->side->ref(s);
	append(&c->waiting, s);
}

void h2_send_no_more(struct h2_conn *c, struct h2_stream *s)
{
	take_out(s);
	c->side->unref(s);
}

void h2_send_opened(struct h2_conn *c, struct h2_stream *s)
{
	if (s->turns != &c->blocked || s->send_window <= 0)
		return;
	take_out(s);
	append(&c->waiting, s);
}

/* Each step sends something or puts a stream aside, so what a frame of the other end can cost here
 * is no more than what it has opened. */
void h2_send_pump(struct h2_conn *c)
{
	struct h2_stream *s;

	while ((s = c->waiting.first) && c->queued < QUEUE && c->send_window > 0) {
		take_out(s);
		if (take_turn(c, s)) {
			append(s->send_window > 0 ? &c->waiting : &c->blocked, s);
		} else {
			c->side->sent(s);
			c->side->unref(s);
		}
	}
}
