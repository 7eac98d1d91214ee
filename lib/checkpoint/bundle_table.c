/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of the file: data blocks, an empty metaindex block, an index block, a footer of 48 bytes.
 * For each data block, the index block has a key, which is >= the last key of the block, and the
 * location of the block.
 *
 * A block has entries, restart offsets and their count, then one byte of compression type and a
 * masked checksum over both.  An entry has three varints (bytes shared with the previous key, other
 * key bytes, value bytes), then these bytes.
 *
 * The reader requires blocks without gaps from the first byte to the footer, as all writers produce
 * them.  So it verifies every byte of the file. */
#include "lib/checkpoint/bundle_table.h"

#include <inttypes.h>

#include "lib/base/pb.h"
#include "lib/io/crc32c.h"

enum { BLOCK = 256 << 10, RESTART = 16, TRAILER = 5, FOOTER = 48, HANDLES = 40 };
static const char magic[8] = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";

struct handle {
	uint64_t offset, size;
};

static bool parse_handle(struct mu_pb *m, struct handle *h)
{
	return mu_pb_varint(m, &h->offset) && mu_pb_varint(m, &h->size);
}

/* Verifies the block at h.  Sets *body, and *end to the offset after the block. */
static int open_block(struct mu_span file, const char *path, struct handle h, struct mu_span *body,
		      uint64_t *end, struct mu_err *err)
{
	uint32_t stored;
	uint64_t body_limit = file.len - FOOTER;

	if (h.offset > body_limit || h.size > body_limit - h.offset ||
	    body_limit - h.offset - h.size < TRAILER)
		return mu_fail(err, MU_DATA_LOSS,
			       "%s: a block at offset %" PRIu64 " lies outside the file", path,
			       h.offset);
	const char *at = file.data + h.offset;
	memcpy(&stored, at + h.size + 1, 4);
	if (mu_crc32c_mask(mu_crc32c(0, at, h.size + 1)) != stored)
		return mu_fail(err, MU_DATA_LOSS,
			       "%s: the block at offset %" PRIu64 " does not match its checksum",
			       path, h.offset);
	if (at[h.size] != 0)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "%s: the block at offset %" PRIu64
			       " is compressed (type %d), which is not supported",
			       path, h.offset, at[h.size]);
	uint32_t restarts;
	if (h.size < 4)
		goto bad;
	memcpy(&restarts, at + h.size - 4, 4);
	if (restarts > (h.size - 4) / 4)
		goto bad;
	*body = (struct mu_span){at, h.size - 4 - (size_t)restarts * 4};
	*end = h.offset + h.size + TRAILER;
	return 0;
bad:
	return mu_fail(err, MU_DATA_LOSS, "%s: the block at offset %" PRIu64 " is malformed", path,
		       h.offset);
}

static int walk_block(struct mu_span body, const char *path, table_pair_fn pair, void *user,
		      struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(body);
	MU_AUTO_BUF key = {0};

	while (m.at < m.end) {
		uint64_t shared, tail, len;
		if (!mu_pb_varint(&m, &shared) || !mu_pb_varint(&m, &tail) ||
		    !mu_pb_varint(&m, &len) || shared > key.len ||
		    tail > (uint64_t)(m.end - m.at) || len > (uint64_t)(m.end - m.at) - tail)
			return mu_fail(err, MU_DATA_LOSS, "%s: an entry of a block is malformed",
				       path);
		key.len = shared;
		mu_buf_put(&key, m.at, tail);
		struct mu_span value = {m.at + tail, len};
		m.at += tail + len;
		int rc = pair(user, mu_buf_span(&key), value, err);
		if (rc)
			return rc;
	}
	return 0;
}

struct table_walk {
	struct mu_span file;
	const char *path;
	table_pair_fn pair;
	void *user;
	uint64_t next_offset; /* required offset of the next block */
	struct mu_buf last;
};

static int ordered_pair(void *user, struct mu_span key, struct mu_span value, struct mu_err *err)
{
	struct table_walk *w = user;

	if (w->last.data && mu_span_compare(mu_buf_span(&w->last), key) >= 0)
		return mu_fail(err, MU_DATA_LOSS, "%s: the keys are not in order", w->path);
	mu_buf_clear(&w->last);
	mu_buf_put(&w->last, key.data, key.len);
	return w->pair(w->user, key, value, err);
}

static int data_block(void *user, struct mu_span key, struct mu_span value, struct mu_err *err)
{
	struct table_walk *w = user;
	struct mu_pb m = mu_pb_of(value);
	struct mu_span body;
	struct handle h;

	if (!parse_handle(&m, &h) || m.at != m.end || h.offset != w->next_offset)
		return mu_fail(err, MU_DATA_LOSS, "%s: the index block is malformed", w->path);
	int rc = open_block(w->file, w->path, h, &body, &w->next_offset, err);
	return rc ? rc : walk_block(body, w->path, ordered_pair, w, err);
}

static int walk_table(struct table_walk *w, struct mu_err *err)
{
	struct handle meta, index;
	struct mu_span body;
	uint64_t end;

	if (w->file.len < FOOTER ||
	    memcmp(w->file.data + w->file.len - sizeof magic, magic, sizeof magic) != 0)
		return mu_fail(err, MU_DATA_LOSS, "%s: not a bundle index (no footer)", w->path);
	const char *footer = w->file.data + w->file.len - FOOTER;
	struct mu_pb m = mu_pb_of((struct mu_span){footer, HANDLES});
	bool ok = parse_handle(&m, &meta) && parse_handle(&m, &index);
	/* The numbers must have their shortest encoding, followed by zeros. */
	ok = ok && (size_t)(m.at - footer) ==
		       mu_pb_varint_size(meta.offset) + mu_pb_varint_size(meta.size) +
			   mu_pb_varint_size(index.offset) + mu_pb_varint_size(index.size);
	for (; ok && m.at < m.end; m.at++)
		ok = *m.at == 0;
	if (!ok)
		return mu_fail(err, MU_DATA_LOSS, "%s: the footer is malformed", w->path);
	int rc = open_block(w->file, w->path, index, &body, &end, err);
	if (!rc && end != w->file.len - FOOTER)
		rc = mu_fail(err, MU_DATA_LOSS, "%s: bytes between index and footer", w->path);
	if (!rc)
		rc = walk_block(body, w->path, data_block, w, err);
	if (!rc && w->next_offset != meta.offset)
		rc = mu_fail(err, MU_DATA_LOSS, "%s: bytes between the blocks", w->path);
	if (!rc)
		rc = open_block(w->file, w->path, meta, &body, &end, err);
	if (!rc && end != index.offset)
		rc = mu_fail(err, MU_DATA_LOSS, "%s: bytes between the blocks", w->path);
	return rc;
}

int table_parse(struct mu_span file, const char *path, table_pair_fn pair, void *user,
		struct mu_err *err)
{
	struct table_walk w = {.file = file, .path = path, .pair = pair, .user = user};
	int rc = walk_table(&w, err);

	mu_buf_fini(&w.last);
	return rc;
}

/* ---- writer ---- */

static void put_u32(struct mu_buf *b, uint32_t v)
{
	mu_buf_put(b, &v, 4);
}

void table_begin(struct table_builder *t, struct mu_buf *out)
{
	*t = (struct table_builder){.out = out};
}

static void put_entry(struct mu_buf *block, size_t shared, struct mu_span key, struct mu_span value)
{
	mu_pb_put_varint(block, shared);
	mu_pb_put_varint(block, key.len - shared);
	mu_pb_put_varint(block, value.len);
	mu_buf_put(block, key.data + shared, key.len - shared);
	mu_buf_put(block, value.data, value.len);
}

/* Writes the block with its restarts and trailer; empties both buffers. */
static struct handle put_block(struct mu_buf *out, struct mu_buf *block, struct mu_buf *restarts)
{
	struct handle h = {.offset = out->len};

	if (!restarts->len)
		put_u32(restarts, 0);
	mu_buf_put(block, restarts->data, restarts->len);
	put_u32(block, (uint32_t)(restarts->len / 4));
	h.size = block->len;
	mu_buf_putc(block, 0); /* no compression */
	uint32_t crc = mu_crc32c_mask(mu_crc32c(0, block->data, block->len));
	mu_buf_put(out, block->data, block->len);
	put_u32(out, crc);
	mu_buf_clear(block);
	mu_buf_clear(restarts);
	return h;
}

static void put_handle(struct mu_buf *b, struct handle h)
{
	mu_pb_put_varint(b, h.offset);
	mu_pb_put_varint(b, h.size);
}

/* Writes the block and adds its index entry; `next` is the following key, or NULL. */
static void end_block(struct table_builder *t, const struct mu_span *next)
{
	MU_AUTO_BUF handle = {0};
	struct mu_buf *key = &t->last_key;
	size_t i = 0;

	if (!t->block.len)
		return;
	put_handle(&handle, put_block(t->out, &t->block, &t->restarts));
	/* Finds a short key that is >= the last key and < the next key. */
	if (next)
		while (i < key->len && i < next->len && key->data[i] == next->data[i])
			i++;
	else
		while (i < key->len && (unsigned char)key->data[i] == 0xff)
			i++;
	if (i < key->len && (unsigned char)key->data[i] < 0xff &&
	    (!next ||
	     (i < next->len && (unsigned char)key->data[i] + 1 < (unsigned char)next->data[i]))) {
		key->data[i]++;
		key->len = i + 1;
	}
	put_u32(&t->index_restarts, (uint32_t)t->index_block.len);
	put_entry(&t->index_block, 0, mu_buf_span(key), mu_buf_span(&handle));
	t->since_restart = 0;
}

void table_add(struct table_builder *t, struct mu_span key, struct mu_span value)
{
	size_t shared = 0;

	if (t->block.len + t->restarts.len + 4 >= BLOCK)
		end_block(t, &key);
	if (!t->block.len || t->since_restart == RESTART) {
		put_u32(&t->restarts, (uint32_t)t->block.len);
		t->since_restart = 0;
	} else {
		while (shared < key.len && shared < t->last_key.len &&
		       key.data[shared] == t->last_key.data[shared])
			shared++;
	}
	put_entry(&t->block, shared, key, value);
	mu_buf_clear(&t->last_key);
	mu_buf_put(&t->last_key, key.data, key.len);
	t->since_restart++;
}

void table_end(struct table_builder *t)
{
	size_t at;

	end_block(t, NULL);
	struct handle meta = put_block(t->out, &t->block, &t->restarts);
	struct handle index = put_block(t->out, &t->index_block, &t->index_restarts);
	at = t->out->len;
	put_handle(t->out, meta);
	put_handle(t->out, index);
	while (t->out->len < at + HANDLES)
		mu_buf_putc(t->out, 0);
	mu_buf_put(t->out, magic, sizeof magic);
	mu_buf_fini(&t->block);
	mu_buf_fini(&t->index_block);
	mu_buf_fini(&t->last_key);
	mu_buf_fini(&t->restarts);
	mu_buf_fini(&t->index_restarts);
}
