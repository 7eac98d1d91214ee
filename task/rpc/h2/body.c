/* SPDX-License-Identifier: Apache-2.0 */
/* A message that comes in: five bytes with its length, then itself.  It is gathered in memory that
 * grows as it comes, whatever length was announced.  What is refused is read to its end and thrown
 * away.
 *
 * Who expects a tensor has its first bytes looked at when they are there (place): when they lead to
 * a payload that is all the rest, that goes straight into the tensor. */
#include <zlib.h>

#include "task/rpc/h2/conn.h"

enum {
	FIRST_ROOM = 1 << 20, /* memory for what is announced but not there yet */
	LOOK_AT = 512,        /* of a message whose payload has a place of its own */
};

void h2_body_refuse(struct h2_stream *s, enum mu_code code, const char *why)
{
	struct h2_body *b = &s->in;

	if (b->refused)
		return;
	b->refusal = code;
	b->refused = why;
	free(b->message);
	b->message = NULL;
	b->room = 0;
}

void h2_body_fini(struct h2_body *b)
{
	free(b->message);
	mu_tensor_unref(&b->tensor);
	*b = (struct h2_body){0};
}

static void take_prefix(struct h2_stream *s)
{
	struct h2_body *b = &s->in;

	b->len = h2_get32(b->prefix + 1);
	if (b->prefix[0] || b->len < LOOK_AT)
		b->place = NULL;
	if (b->prefix[0] > 1 || (b->prefix[0] && !b->zlib))
		h2_body_refuse(s, MU_UNIMPLEMENTED, s->conn->side->compressed);
	else if (b->len > s->conn->max_message)
		h2_body_refuse(s, MU_RESOURCE_EXHAUSTED, s->conn->side->too_long);
}

/* The first bytes are there: does the rest have a place of its own? */
static void find_place(struct h2_body *b)
{
	struct mu_span head = {b->message, b->got};

	if (b->place(head, b->len, &b->tensor, &b->at) == 0 && b->tensor.data)
		memcpy(b->tensor.data, b->message + b->at, b->got - b->at);
	b->place = NULL;
}

char *h2_body_room(struct h2_stream *s, size_t *n)
{
	struct h2_body *b = &s->in;
	size_t want = b->len - b->got;

	if (b->refused || b->n_prefix < sizeof(b->prefix) || want == 0)
		return NULL;
	if (b->place)
		want = LOOK_AT - b->got;
	if (b->tensor.data) {
		if (*n > want)
			*n = want;
		return (char *)b->tensor.data + (b->got - b->at);
	}
	if (b->room == b->got) {
		size_t most = b->place ? LOOK_AT : b->room < FIRST_ROOM ? FIRST_ROOM : b->room * 2;

		b->room = most < b->len ? most : b->len;
		b->message = mu_xrealloc(b->message, b->room);
	}
	if (want > b->room - b->got)
		want = b->room - b->got;
	if (*n > want)
		*n = want;
	return b->message + b->got;
}

void h2_body_took(struct h2_stream *s, size_t n)
{
	struct h2_body *b = &s->in;

	b->got += n;
	if (b->place && b->got == LOOK_AT)
		find_place(b);
}

void h2_body_take(struct h2_stream *s, const char *data, size_t n)
{
	struct h2_body *b = &s->in;

	while (n > 0 && b->n_prefix < sizeof(b->prefix)) {
		b->prefix[b->n_prefix++] = (uint8_t)*data++;
		n--;
		if (b->n_prefix == sizeof(b->prefix))
			take_prefix(s);
	}
	while (n > 0) {
		size_t k = n;
		char *to = h2_body_room(s, &k);

		if (!to) {
			h2_body_refuse(s, s->conn->side->broken,
				       "a call brings one message, not more");
			return;
		}
		memcpy(to, data, k);
		h2_body_took(s, k);
		data += k;
		n -= k;
	}
}

/* Replaces a compressed message by what it stands for. */
static void unpack(struct h2_stream *s)
{
	struct h2_body *b = &s->in;
	size_t limit = s->conn->max_message;
	z_stream z = {.next_in = (Bytef *)b->message, .avail_in = (uInt)b->len};
	struct mu_buf out = {0};
	int rc = inflateInit2(&z, MAX_WBITS + 32); /* which of the two it is, its head says */

	while (rc == Z_OK && out.len <= limit) {
		size_t room = out.len < FIRST_ROOM ? FIRST_ROOM : out.len;

		if (room > UINT32_MAX / 2)
			room = UINT32_MAX / 2;
		mu_buf_reserve(&out, room);
		z.next_out = (Bytef *)out.data + out.len;
		z.avail_out = (uInt)room;
		rc = inflate(&z, Z_NO_FLUSH);
		out.len += room - z.avail_out;
	}
	inflateEnd(&z);
	if (out.len > limit)
		h2_body_refuse(s, MU_RESOURCE_EXHAUSTED, s->conn->side->too_long);
	else if (rc != Z_STREAM_END || z.avail_in)
		h2_body_refuse(s, s->conn->side->broken, s->conn->side->damaged);
	if (b->refused) {
		mu_buf_fini(&out);
		return;
	}
	free(b->message);
	b->message = out.data;
	b->len = b->got = out.len;
}

void h2_body_end(struct h2_stream *s, const char *none, const char *cut)
{
	struct h2_body *b = &s->in;

	if (!b->refused && b->n_prefix == 0)
		h2_body_refuse(s, s->conn->side->broken, none);
	else if (!b->refused && (b->n_prefix < sizeof(b->prefix) || b->got < b->len))
		h2_body_refuse(s, s->conn->side->broken, cut);
	if (!b->refused && b->prefix[0])
		unpack(s);
}
