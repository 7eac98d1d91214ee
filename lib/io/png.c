/* SPDX-License-Identifier: Apache-2.0 */
/* A signature and three chunks, each with its length and checksum: head, deflated rows, end.  Every
 * row is preceded by its filter, which is 0: none. */
#include "lib/io/png.h"

#include <arpa/inet.h>
#include <zlib.h>

enum { MAX_SIDE = 1 << 15 };

static void put32(struct mu_buf *out, uint32_t v)
{
	v = htonl(v);
	mu_buf_put(out, &v, sizeof(v));
}

static void put_chunk(struct mu_buf *out, const char *type, const void *data, size_t n)
{
	size_t at;

	put32(out, (uint32_t)n);
	at = out->len;
	mu_buf_put(out, type, 4);
	if (n)
		mu_buf_put(out, data, n);
	put32(out,
	      (uint32_t)crc32(0, (const unsigned char *)out->data + at, (uInt)(out->len - at)));
}

/* Numbers of 16 bits stand in a file with their high byte first. */
static void put_row(struct mu_buf *raw, const void *pixels, size_t at, size_t n, unsigned bits)
{
	const uint16_t *wide = pixels;

	mu_buf_put(raw, "", 1);
	if (bits == 8)
		mu_buf_put(raw, (const char *)pixels + at, n);
	for (size_t i = 0; bits == 16 && i < n; i++)
		mu_buf_put(raw, &(uint16_t){htons(wide[at + i])}, 2);
}

static int put_rows(struct mu_buf *out, const void *pixels, const struct mu_png_shape *s,
		    struct mu_err *err)
{
	size_t row = (size_t)s->width * s->channels;
	MU_AUTO_BUF raw = {0};
	MU_AUTO_FREE unsigned char *packed = NULL;
	uLongf n = compressBound((uLong)((row * s->bits / 8 + 1) * s->height));

	for (size_t r = 0; r < s->height; r++)
		put_row(&raw, pixels, r * row, row, s->bits);
	packed = mu_xcalloc(n, 1);
	if (compress2(packed, &n, (const unsigned char *)raw.data, (uLong)raw.len, s->level) !=
	    Z_OK)
		return mu_fail(err, MU_INTERNAL, "the picture cannot be deflated");
	put_chunk(out, "IDAT", packed, n);
	return 0;
}

int mu_png_write(struct mu_buf *out, const void *pixels, const struct mu_png_shape *s,
		 struct mu_err *err)
{
	static const unsigned char signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
	static const unsigned char colours[] = {0, 0, 4, 2, 6}; /* by channels */
	unsigned char head[13] = {0};
	uint32_t sides[] = {htonl(s->width), htonl(s->height)};
	size_t before = out->len;
	int rc;

	if (!s->height || !s->width || s->height > MAX_SIDE || s->width > MAX_SIDE ||
	    !s->channels || s->channels > 4 || (s->bits != 8 && s->bits != 16))
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "a picture of %u x %u pixels with %u channels: expected sides of 1 to "
		    "%d and 1 to 4 channels",
		    s->height, s->width, s->channels, MAX_SIDE);
	memcpy(head, sides, sizeof(sides));
	head[8] = (unsigned char)s->bits;
	head[9] = colours[s->channels];
	mu_buf_put(out, signature, sizeof(signature));
	put_chunk(out, "IHDR", head, sizeof(head));
	rc = put_rows(out, pixels, s, err);
	if (rc) {
		out->len = before;
		return rc;
	}
	put_chunk(out, "IEND", NULL, 0);
	return 0;
}
