/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a bundle's index: parsing and writing. */
#include <inttypes.h>

#include "lib/base/pb.h"
#include "lib/checkpoint/bundle_slice.h"
#include "lib/io/crc32c.h"
#include "lib/tensor/tensor_proto.h"

enum {
	MAX_INDEX = 1 << 30,
	MAX_SHARDS = 100000,
	MAX_SLICES = 10000, /* of a variable */
	MAX_TOTAL_SLICES =
	    1 << 20, /* of all variables: a slice takes only a few bytes of the file */
};

uint32_t bundle_crc_length(uint32_t crc, uint64_t n)
{
	uint32_t n32 = (uint32_t)n;

	return n <= UINT32_MAX ? mu_crc32c(crc, &n32, 4) : mu_crc32c(crc, &n, 8);
}

void bundle_index_fini(struct bundle_index *x)
{
	for (size_t i = 0; i < x->n; i++) {
		free(x->records[i].key);
		free(x->records[i].slices);
	}
	free(x->records);
	*x = (struct bundle_index){0};
}

struct bundle_record *bundle_index_add(struct bundle_index *x, const void *key, size_t len)
{
	if (x->n == x->cap) {
		x->cap = x->cap ? 2 * x->cap : 16;
		x->records = mu_xrealloc(x->records, x->cap * sizeof x->records[0]);
	}
	struct bundle_record *r = &x->records[x->n++];
	*r = (struct bundle_record){.key = mu_xstrndup(key, len), .key_len = len};
	return r;
}

static int compare_keys(const void *a, const void *b)
{
	const struct bundle_record *x = a, *y = b;

	return mu_span_compare((struct mu_span){x->key, x->key_len},
			       (struct mu_span){y->key, y->key_len});
}

static void index_sort(struct bundle_index *x)
{
	if (x->n)
		qsort(x->records, x->n, sizeof x->records[0], compare_keys);
}

struct bundle_record *bundle_index_find(const struct bundle_index *x, const void *key, size_t len)
{
	struct bundle_record want = {.key = (char *)key, .key_len = len};

	return x->n ? bsearch(&want, x->records, x->n, sizeof want, compare_keys) : NULL;
}

/* ---- order-preserving encoding of slice keys ---- */

static void put_ordered_number(struct mu_buf *b, uint64_t v)
{
	char bytes[9];
	int n = 0;

	for (int shift = 56; shift >= 0; shift -= 8)
		if (n || v >> shift)
			bytes[++n] = (char)(v >> shift);
	bytes[0] = (char)n;
	mu_buf_put(b, bytes, (size_t)n + 1);
}

static void put_ordered_string(struct mu_buf *b, const char *s)
{
	for (; *s; s++) { /* names have no NUL, so only 0xff is escaped */
		mu_buf_putc(b, *s);
		if ((unsigned char)*s == 0xff)
			mu_buf_putc(b, 0);
	}
	mu_buf_put(b, "\0\1", 2);
}

/* Writes seven bits per byte.  The number of leading ones is the number of bytes; negative numbers
 * are inverted. */
static void put_ordered_signed(struct mu_buf *b, int64_t v)
{
	uint64_t magnitude = v < 0 ? ~(uint64_t)v : (uint64_t)v;
	unsigned bits = magnitude ? 64 - (unsigned)__builtin_clzll(magnitude) : 0;
	unsigned n = bits / 7 + 1;
	unsigned char bytes[10];

	for (unsigned i = 0; i < 10; i++)
		bytes[i] = i < 2 ? (v < 0 ? 0xff : 0) : (unsigned char)(v >> (8 * (9 - i)));
	unsigned header = 0xffffu << (16 - n) & 0xffff; /* n ones from the top of two bytes */
	unsigned char *at = bytes + 10 - n;
	at[0] ^= (unsigned char)(header >> 8);
	if (n > 1)
		at[1] ^= (unsigned char)header;
	mu_buf_put(b, at, n);
}

void bundle_slice_key(struct mu_buf *out, const char *name, const struct bundle_slice *e)
{
	put_ordered_number(out, 0);
	put_ordered_string(out, name);
	put_ordered_number(out, (uint64_t)e->rank);
	for (int d = 0; d < e->rank; d++) {
		put_ordered_signed(out, e->start[d]);
		put_ordered_signed(out, e->length[d]);
	}
}

/* ---- messages ---- */

bool bundle_slice_parse(struct mu_span s, struct bundle_slice *out)
{
	struct mu_pb m = mu_pb_of(s);
	struct mu_pb_field f, g;
	struct bundle_slice e = {0};

	while (mu_pb_next(&m, &f)) {
		if (f.number != 1 || f.type != MU_PB_BYTES)
			continue;
		if (e.rank == MU_MAX_RANK)
			return false;
		struct mu_pb in = mu_pb_of(f.bytes);
		int64_t start = 0, length = -1;
		while (mu_pb_next(&in, &g)) {
			if (g.number == 1)
				start = (int64_t)g.value;
			if (g.number == 2)
				length = (int64_t)g.value;
		}
		if (in.bad || start < 0 || length < -1)
			return false;
		e.start[e.rank] = start;
		e.length[e.rank++] = length;
	}
	*out = e;
	return !m.bad;
}

static int parse_slice(struct bundle_index *x, struct bundle_record *r, struct mu_span value,
		       struct mu_err *err)
{
	if (r->n_slices == MAX_SLICES)
		return mu_fail(err, MU_UNIMPLEMENTED, "more than %d slices", MAX_SLICES);
	if (x->n_slices == MAX_TOTAL_SLICES)
		return mu_fail(err, MU_UNIMPLEMENTED, "more than %d slices of all variables",
			       MAX_TOTAL_SLICES);
	x->n_slices++;
	r->slices = mu_xrealloc(r->slices, (r->n_slices + 1) * sizeof r->slices[0]);
	if (!bundle_slice_parse(value, &r->slices[r->n_slices++]) ||
	    r->slices[r->n_slices - 1].rank != r->shape.rank)
		return mu_fail(err, MU_DATA_LOSS, "a slice is malformed");
	return 0;
}

static int parse_record(struct bundle_index *x, struct bundle_record *r, struct mu_span value,
			struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(value);
	struct mu_pb_field f;
	int64_t dtype = 0, shard = 0;
	int rc;

	r->shape = mu_shape_scalar();
	while (mu_pb_next(&m, &f)) {
		switch (f.number) {
		case 1:
			dtype = (int64_t)f.value;
			break;
		case 2:
			if ((rc = mu_shape_parse(&r->shape, f.bytes, err)))
				return rc;
			break;
		case 3:
			shard = (int64_t)f.value;
			break;
		case 4:
			r->offset = f.value;
			break;
		case 5:
			r->size = f.value;
			break;
		case 6:
			r->crc = (uint32_t)f.value;
			break;
		case 7:
			if ((rc = parse_slice(x, r, f.bytes, err)))
				return rc;
			break;
		}
	}
	if (m.bad)
		return mu_fail(err, MU_DATA_LOSS, "the entry is malformed");
	if (!mu_dtype_valid(dtype) || dtype > MU_DT_REF)
		return mu_fail(err, MU_DATA_LOSS, "%" PRId64 " is not an element type", dtype);
	if (shard < 0 || shard >= x->n_shards)
		return mu_fail(err, MU_DATA_LOSS, "shard %" PRId64 " of %u", shard, x->n_shards);
	r->dtype = (enum mu_dtype)dtype;
	r->shard = (unsigned)shard;
	return 0;
}

static int parse_header(struct bundle_index *x, struct mu_span value, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(value);
	struct mu_pb_field f;
	int64_t shards = 0, endian = 0;

	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			shards = (int64_t)f.value;
		if (f.number == 2)
			endian = (int64_t)f.value;
	}
	if (m.bad || shards < 1 || shards > MAX_SHARDS)
		return mu_fail(err, MU_DATA_LOSS, "the header is malformed");
	if (endian)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "bundles written on big-endian machines are not supported");
	x->n_shards = (unsigned)shards;
	return 0;
}

struct parse {
	struct bundle_index index;
	const char *path;
};

static int index_add_pair(void *user, struct mu_span key, struct mu_span value, struct mu_err *err)
{
	struct parse *p = user;
	int rc;

	if (!p->index.n_shards) {
		if (key.len)
			return mu_fail(err, MU_DATA_LOSS, "%s: the header entry is missing",
				       p->path);
		rc = parse_header(&p->index, value, err);
		return rc ? mu_wrap(err, "%s", p->path) : 0;
	}
	struct bundle_record *r = bundle_index_add(&p->index, key.data, key.len);
	rc = parse_record(&p->index, r, value, err);
	return rc ? mu_wrap(err, "%s: '%.200s'", p->path, *r->key ? r->key : "(slice)") : 0;
}

int bundle_index_parse(struct bundle_index *out, struct mu_span file, const char *path,
		       struct mu_err *err)
{
	struct parse p = {.path = path};
	int rc = table_parse(file, path, index_add_pair, &p, err);

	if (!rc && !p.index.n_shards)
		rc = mu_fail(err, MU_DATA_LOSS, "%s: the header entry is missing", path);
	if (rc) {
		bundle_index_fini(&p.index);
		return rc;
	}
	*out = p.index;
	return 0;
}

int bundle_index_read(struct bundle_index *out, const char *prefix, struct mu_err *err)
{
	MU_AUTO_FREE char *path = mu_xasprintf("%s.index", prefix);
	MU_AUTO_BUF file = {0};
	int rc = mu_buf_read_file(&file, path, MAX_INDEX, err);

	return rc ? rc : bundle_index_parse(out, mu_buf_span(&file), path, err);
}

static void index_put_record(struct mu_buf *b, const struct bundle_record *r)
{
	mu_pb_put_int(b, 1, r->dtype);
	size_t at = mu_pb_begin(b, 2);
	mu_shape_write(b, &r->shape);
	mu_pb_end(b, at);
	if (r->shard)
		mu_pb_put_int(b, 3, r->shard);
	if (r->offset)
		mu_pb_put_int(b, 4, (int64_t)r->offset);
	if (r->size)
		mu_pb_put_int(b, 5, (int64_t)r->size);
	if (r->crc)
		mu_pb_put_fixed32(b, 6, r->crc);
	for (unsigned i = 0; i < r->n_slices; i++)
		bundle_slice_write(b, 7, &r->slices[i]);
}

static void encode(struct bundle_index *x, struct mu_buf *out)
{
	struct table_builder t;
	MU_AUTO_BUF value = {0};

	index_sort(x);
	table_begin(&t, out);
	mu_pb_put_int(&value, 1, x->n_shards);
	size_t at = mu_pb_begin(&value, 3);
	mu_pb_put_int(&value, 1, 1); /* producer */
	mu_pb_end(&value, at);
	table_add(&t, (struct mu_span){"", 0}, mu_buf_span(&value));
	for (size_t i = 0; i < x->n; i++) {
		mu_buf_clear(&value);
		index_put_record(&value, &x->records[i]);
		table_add(&t, (struct mu_span){x->records[i].key, x->records[i].key_len},
			  mu_buf_span(&value));
	}
	table_end(&t);
}

int bundle_index_write(struct bundle_index *x, const char *prefix, struct mu_err *err)
{
	MU_AUTO_FREE char *path = mu_xasprintf("%s.index", prefix);
	MU_AUTO_BUF out = {0};

	encode(x, &out);
	return mu_write_file(path, out.data, out.len, err);
}

char *bundle_data_path(const char *prefix, unsigned shard, unsigned n_shards)
{
	return mu_xasprintf("%s.data-%05u-of-%05u", prefix, shard, n_shards);
}
