/* SPDX-License-Identifier: Apache-2.0 */
/* Writing header fields.  No Huffman code: what comes again is one byte after its first time, and
 * what does not is short. */
#include "task/rpc/h2/hpack.h"

enum { STATIC = 61, OVERHEAD = 32 };

/* Names of the static table that requests use. */
static const struct {
	const char *name;
	unsigned index;
} known[] = {{":path", 4}, {":authority", 1}, {"content-type", 31}, {"user-agent", 58}};

char *hpack_put_number(char *p, size_t n, unsigned bits, uint8_t first)
{
	size_t mask = ((size_t)1 << bits) - 1;

	if (n < mask) {
		*p++ = (char)(first | n);
		return p;
	}
	*p++ = (char)(first | mask);
	for (n -= mask; n >= 128; n >>= 7)
		*p++ = (char)(n | 128);
	*p++ = (char)n;
	return p;
}

void hpack_write_limit(struct hpack_writer *w, uint32_t limit)
{
	if (limit < HPACK_TABLE && !w->shrunk)
		w->shrunk = w->tell = true;
	w->limit = w->shrunk ? 0 : HPACK_TABLE;
}

void hpack_write_fini(struct hpack_writer *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		free(w->kept[i].name);
		free(w->kept[i].value);
	}
	w->n = 0;
}

static void number(struct mu_buf *b, size_t n, unsigned bits, uint8_t first)
{
	char bytes[8];

	mu_buf_put(b, bytes, (size_t)(hpack_put_number(bytes, n, bits, first) - bytes));
}

static void string(struct mu_buf *b, const char *s)
{
	size_t n = strlen(s);

	number(b, n, 7, 0);
	mu_buf_put(b, s, n);
}

static bool find(struct hpack_writer *w, const char *name, const char *value, unsigned *index)
{
	for (unsigned i = 0; i < w->n; i++)
		if (!strcmp(w->kept[i].value, value) && !strcmp(w->kept[i].name, name)) {
			*index = STATIC + w->n - i;
			return true;
		}
	return false;
}

/* True when the field goes into the table. */
static bool remember(struct hpack_writer *w, const char *name, const char *value)
{
	size_t size = OVERHEAD + strlen(name) + strlen(value);

	if (w->n == HPACK_ENTRIES || w->size + size > w->limit)
		return false;
	w->kept[w->n].name = mu_xstrdup(name);
	w->kept[w->n++].value = mu_xstrdup(value);
	w->size += size;
	return true;
}

void hpack_write_start(struct hpack_writer *w, struct mu_buf *block)
{
	if (!w->tell)
		return;
	number(block, 0, 5, 0x20); /* the table is empty from now on */
	hpack_write_fini(w);
	w->tell = false;
}

void hpack_write(struct hpack_writer *w, struct mu_buf *block, const char *name, const char *value,
		 bool keep)
{
	unsigned index = 0;

	if (keep && find(w, name, value, &index)) {
		number(block, index, 7, 0x80);
		return;
	}
	for (unsigned i = 0; i < MU_COUNT(known); i++)
		if (!strcmp(known[i].name, name))
			index = known[i].index;
	if (keep && remember(w, name, value))
		number(block, index, 6, 0x40);
	else
		number(block, index, 4, 0);
	if (!index)
		string(block, name);
	string(block, value);
}
