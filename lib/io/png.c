// SPDX-License-Identifier: Apache-2.0
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

static int put_rows(struct mu_buf *out, const unsigned char *pixels, size_t height, size_t row,
		    struct mu_err *err)
{
	MU_AUTO_BUF raw = {0};
	MU_AUTO_FREE unsigned char *packed = NULL;
	uLongf n = compressBound((uLong)((row + 1) * height));

	for (size_t r = 0; r < height; r++) {
		mu_buf_put(&raw, "", 1);
		mu_buf_put(&raw, pixels + r * row, row);
	}
	packed = mu_xcalloc(n, 1);
	if (compress(packed, &n, (const unsigned char *)raw.data, (uLong)raw.len) != Z_OK)
		return mu_fail(err, MU_INTERNAL, "the picture cannot be deflated");
	put_chunk(out, "IDAT", packed, n);
	return 0;
}

int mu_png_write(struct mu_buf *out, const unsigned char *pixels, uint32_t height, uint32_t width,
		 unsigned channels, struct mu_err *err)
{
	static const unsigned char signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
	static const unsigned char colours[] = {0, 0, 4, 2, 6}; /* by channels */
	unsigned char head[13] = {0};
	uint32_t sides[] = {htonl(width), htonl(height)};
	size_t before = out->len;
	int rc;

	if (!height || !width || height > MAX_SIDE || width > MAX_SIDE || !channels || channels > 4)
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "a picture of %u x %u pixels with %u channels: expected sides of 1 to "
		    "%d and 1 to 4 channels",
		    height, width, channels, MAX_SIDE);
	memcpy(head, sides, sizeof(sides));
	head[8] = 8; /* bits */
	head[9] = colours[channels];
	mu_buf_put(out, signature, sizeof(signature));
	put_chunk(out, "IHDR", head, sizeof(head));
	rc = put_rows(out, pixels, height, (size_t)width * channels, err);
	if (rc) {
		out->len = before;
		return rc;
	}
	put_chunk(out, "IEND", NULL, 0);
	return 0;
}
