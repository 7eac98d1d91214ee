/* SPDX-License-Identifier: Apache-2.0 */
/* A block is a row of fields; each is an index into the two tables, or spelt out, or both.  The
 * table of recent fields is a ring: the newest has index 62. */
#include "task/rpc/h2/hpack.h"

enum { STATIC = 61, OVERHEAD = 32 };

static const struct {
	const char *name, *value;
} fixed[STATIC] = {
    {":authority", ""},
    {":method", "GET"},
    {":method", "POST"},
    {":path", "/"},
    {":path", "/index.html"},
    {":scheme", "http"},
    {":scheme", "https"},
    {":status", "200"},
    {":status", "204"},
    {":status", "206"},
    {":status", "304"},
    {":status", "400"},
    {":status", "404"},
    {":status", "500"},
    {"accept-charset", ""},
    {"accept-encoding", "gzip, deflate"},
    {"accept-language", ""},
    {"accept-ranges", ""},
    {"accept", ""},
    {"access-control-allow-origin", ""},
    {"age", ""},
    {"allow", ""},
    {"authorization", ""},
    {"cache-control", ""},
    {"content-disposition", ""},
    {"content-encoding", ""},
    {"content-language", ""},
    {"content-length", ""},
    {"content-location", ""},
    {"content-range", ""},
    {"content-type", ""},
    {"cookie", ""},
    {"date", ""},
    {"etag", ""},
    {"expect", ""},
    {"expires", ""},
    {"from", ""},
    {"host", ""},
    {"if-match", ""},
    {"if-modified-since", ""},
    {"if-none-match", ""},
    {"if-range", ""},
    {"if-unmodified-since", ""},
    {"last-modified", ""},
    {"link", ""},
    {"location", ""},
    {"max-forwards", ""},
    {"proxy-authenticate", ""},
    {"proxy-authorization", ""},
    {"range", ""},
    {"referer", ""},
    {"refresh", ""},
    {"retry-after", ""},
    {"server", ""},
    {"set-cookie", ""},
    {"strict-transport-security", ""},
    {"transfer-encoding", ""},
    {"user-agent", ""},
    {"vary", ""},
    {"via", ""},
    {"www-authenticate", ""},
};

void hpack_init(struct hpack *h)
{
	*h = (struct hpack){.limit = HPACK_TABLE};
}

static struct hpack_entry *recent(struct hpack *h, unsigned i)
{
	return &h->ring[(h->newest + HPACK_ENTRIES - i) % HPACK_ENTRIES];
}

static void shrink(struct hpack *h, size_t to)
{
	while (h->size > to) {
		struct hpack_entry *oldest = recent(h, --h->n);

		h->size -= OVERHEAD + oldest->name_len + oldest->value_len;
		free(oldest->bytes);
	}
}

void hpack_fini(struct hpack *h)
{
	shrink(h, 0);
	mu_buf_fini(&h->name);
	mu_buf_fini(&h->value);
}

static void remember(struct hpack *h, struct mu_span name, struct mu_span value)
{
	size_t size = OVERHEAD + name.len + value.len;
	struct hpack_entry e = {NULL, (uint32_t)name.len, (uint32_t)value.len};

	if (size > h->limit) { /* too large for the table: it empties it */
		shrink(h, 0);
		return;
	}
	e.bytes = mu_xmalloc(name.len + value.len + 1);
	memcpy(e.bytes, name.data, name.len);
	memcpy(e.bytes + name.len, value.data, value.len);
	shrink(h, h->limit - size);
	h->newest = (h->newest + 1) % HPACK_ENTRIES;
	h->ring[h->newest] = e;
	h->n++;
	h->size += size;
}

static bool lookup(struct hpack *h, uint32_t index, struct mu_span *name, struct mu_span *value)
{
	const struct hpack_entry *e;

	if (index == 0 || index > STATIC + h->n)
		return false;
	if (index <= STATIC) {
		*name = mu_span_of(fixed[index - 1].name);
		*value = mu_span_of(fixed[index - 1].value);
		return true;
	}
	e = recent(h, index - STATIC - 1);
	*name = (struct mu_span){e->bytes, e->name_len};
	*value = (struct mu_span){e->bytes + e->name_len, e->value_len};
	return true;
}

/* A number that begins in the low `bits` of the first byte. */
static bool number(struct mu_span *in, unsigned bits, uint32_t *out)
{
	uint32_t mask = (1u << bits) - 1, v;

	if (in->len == 0)
		return false;
	v = (uint8_t)in->data[0] & mask;
	in->data++;
	in->len--;
	for (unsigned shift = 0; v >= mask; shift += 7) {
		uint8_t b;

		if (in->len == 0 || shift > 21)
			return false;
		b = (uint8_t)in->data[0];
		in->data++;
		in->len--;
		v += (uint32_t)(b & 127) << shift;
		if (!(b & 128))
			break;
	}
	*out = v;
	return true;
}

static bool string(struct mu_span *in, struct mu_buf *spelt, struct mu_span *out)
{
	bool coded = in->len && in->data[0] & 128;
	uint32_t len;

	if (!number(in, 7, &len) || len > in->len)
		return false;
	*out = (struct mu_span){in->data, len};
	in->data += len;
	in->len -= len;
	if (!coded)
		return true;
	mu_buf_clear(spelt);
	mu_buf_reserve(spelt, (size_t)len * 8 / 5);
	if (huffman_read(spelt, *out))
		return false;
	*out = mu_buf_span(spelt);
	return true;
}

/* A field that is spelt out, its name perhaps by index. */
static bool literal(struct hpack *h, struct mu_span *in, unsigned bits, struct mu_span *name,
		    struct mu_span *value)
{
	uint32_t index;

	if (!number(in, bits, &index))
		return false;
	if (index ? !lookup(h, index, name, value) : !string(in, &h->name, name))
		return false;
	if (index > STATIC) { /* the entry that it is in may have to go for the new one */
		mu_buf_clear(&h->name);
		mu_buf_put(&h->name, name->data, name->len);
		*name = mu_buf_span(&h->name);
	}
	return string(in, &h->value, value);
}

/* One field, or a new limit for the table: then *name is empty. */
static bool next(struct hpack *h, struct mu_span *in, bool at_start, struct mu_span *name,
		 struct mu_span *value)
{
	uint8_t first = (uint8_t)in->data[0];
	uint32_t n;

	if (first & 128)
		return number(in, 7, &n) && lookup(h, n, name, value);
	if (first & 64) {
		if (!literal(h, in, 6, name, value))
			return false;
		remember(h, *name, *value);
		return true;
	}
	if (!(first & 32))
		return literal(h, in, 4, name, value);
	if (!at_start || !number(in, 5, &n) || n > HPACK_TABLE)
		return false;
	h->limit = n;
	shrink(h, n);
	*name = *value = MU_SPAN("");
	return true;
}

int hpack_read(struct hpack *h, struct mu_span block, hpack_field field, void *arg,
	       struct mu_err *err)
{
	struct mu_span name = {0}, value = {0};
	bool at_start = true;
	size_t total = 0;

	while (block.len) {
		if (!next(h, &block, at_start, &name, &value))
			return mu_fail(err, MU_INVALID_ARGUMENT, "a header block makes no sense");
		if (name.len == 0)
			continue;
		at_start = false;
		total += OVERHEAD + name.len + value.len;
		if (total > HPACK_LIST)
			return mu_fail(err, MU_RESOURCE_EXHAUSTED,
				       "a request has more than %d KiB of headers",
				       HPACK_LIST >> 10);
		field(arg, name, value);
	}
	return 0;
}
