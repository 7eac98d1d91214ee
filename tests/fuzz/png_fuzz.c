/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as a PNG, with every pixel format.  A fuzzer seldom finds the right checksums
 * or a deflated stream, so the bytes are also tried with every checksum corrected, and as the
 * contents of a file: a header, a palette and rows. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include "lib/io/png.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_PIXELS = 1 << 16 }; /* bounds the time of an input */

static void read_format(struct mu_span file, unsigned channels, unsigned bits)
{
	struct mu_png png;
	struct mu_err err;

	if (mu_png_open(&png, file, &err))
		return;
	if ((uint64_t)png.width * png.height <= MAX_PIXELS) {
		/* the exact size of the pixels, so that a sanitizer detects writes past the end */
		void *out = malloc((size_t)png.width * png.height * channels * bits / 8);
		mu_png_read(&png, channels, bits, out, &err);
		free(out);
	}
	mu_png_fini(&png);
}

static void read_all_formats(struct mu_span file)
{
	for (unsigned channels = 1; channels <= 4; channels++)
		for (unsigned bits = 8; bits <= 16; bits += 8)
			read_format(file, channels, bits);
}

static void correct_checksums(struct mu_buf *b)
{
	for (size_t at = 8; at + 12 <= b->len;) {
		uint32_t n, sum;
		memcpy(&n, b->data + at, 4);
		n = ntohl(n);
		if (n > b->len - at - 12)
			return;
		sum = htonl((uint32_t)crc32(0, (unsigned char *)b->data + at + 4, n + 4));
		memcpy(b->data + at + 8 + n, &sum, 4);
		at += n + 12;
	}
}

static void put_chunk(struct mu_buf *b, const char *type, const void *data, size_t n)
{
	uint32_t length = htonl((uint32_t)n);

	mu_buf_put(b, &length, 4);
	mu_buf_put(b, type, 4);
	mu_buf_put(b, data, n);
	mu_buf_put(b, "sum?", 4);
}

/* The input begins with 9 bytes: width, height, the other fields of IHDR, and the lengths of
 * palette and transparency.  Their contents and the rows follow. */
static void read_generated(const uint8_t *data, size_t size)
{
	MU_AUTO_BUF b = {0};

	if (size < 9 || size < 9 + 3u * data[7] + data[8])
		return;
	uint8_t head[13] = {0,       0,       0,       data[0], 0,       0,      0,
			    data[1], data[2], data[3], data[4], data[5], data[6]};
	const uint8_t *rows = data + 9 + 3 * data[7] + data[8];
	size_t n = size - (size_t)(rows - data);
	uLongf packed = compressBound(n);
	uint8_t *run = malloc(packed);
	compress2(run, &packed, rows, n, 1);
	mu_buf_put(&b, "\x89PNG\r\n\x1a\n", 8);
	put_chunk(&b, "IHDR", head, sizeof head);
	put_chunk(&b, "PLTE", data + 9, 3 * (size_t)data[7]);
	put_chunk(&b, "tRNS", data + 9 + 3 * data[7], data[8]);
	put_chunk(&b, "IDAT", run, packed);
	put_chunk(&b, "IEND", "", 0);
	free(run);
	correct_checksums(&b);
	read_all_formats(mu_buf_span(&b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	MU_AUTO_BUF b = {0};

	read_all_formats((struct mu_span){(const char *)data, size});
	mu_buf_put(&b, data, size);
	correct_checksums(&b);
	read_all_formats(mu_buf_span(&b));
	read_generated(data, size);
	return 0;
}
