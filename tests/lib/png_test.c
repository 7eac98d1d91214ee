/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <malloc.h>
#include <string.h>

#include "lib/io/png.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/png_fuzz.c"

static struct mu_err err;

/* 5 by 3 grays of 4 bits, column + 3 * row; interlaced, with all filters; 3 is transparent. */
static const char interlaced[] =
    "\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00"
    "\x05\x00\x00\x00\x03\x04\x00\x00\x00\x01\xcc\xaa\x47\xb3\x00\x00\x00\x02\x74"
    "\x52\x4e\x53\x00\x03\xef\x9a\x9c\x82\x00\x00\x00\x0d\x49\x44\x41\x54\x78\x9c"
    "\x63\x61\x60\x71\x60\x51\x60\xc9\xb0\x60\x11\x14\x5f\x55\x60\x00\x00\x00\x0c"
    "\x49\x44\x41\x54\x66\x2e\x60\x31\x51\x92\x02\x00\x0f\xea\x02\x0f\x43\x18\x54"
    "\xa2\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82";

static void assert_reads_back(const struct mu_png_shape *s, const void *pixels, size_t size)
{
	unsigned char read[4 * 3 * 4 * 2];
	MU_AUTO_BUF b = {0};
	struct mu_png png;

	assert_ok(mu_png_write(&b, pixels, s, &err), &err);
	assert_ok(mu_png_open(&png, mu_buf_span(&b), &err), &err);
	assert_int_equal(png.height, 4);
	assert_int_equal(png.width, 3);
	assert_int_equal(png.channels, s->channels);
	assert_ok(mu_png_read(&png, s->channels, s->bits, read, &err), &err);
	assert_memory_equal(pixels, read, size);
	mu_png_fini(&png);
}

static void png__of_any_format__reads_back(void **state)
{
	uint16_t pixels[4 * 3 * 4];

	for (unsigned i = 0; i < MU_COUNT(pixels); i++)
		pixels[i] = (uint16_t)(i * 2654435761u >> 16);
	for (unsigned channels = 1; channels <= 4; channels++)
		for (unsigned bits = 8; bits <= 16; bits += 8)
			for (int level = -1; level <= 9; level += 5)
				assert_reads_back(
				    &(struct mu_png_shape){4, 3, channels, bits, level}, pixels,
				    (size_t)12 * channels * bits / 8);
}

static void png__that_cannot_be_written__leaves_the_buffer_unchanged(void **state)
{
	static const unsigned char rgb[12];
	MU_AUTO_BUF b = {0};

	mu_buf_put(&b, "before", 6);
	assert_fails(mu_png_write(&b, rgb, &(struct mu_png_shape){2, 2, 5, 8, -1}, &err), &err,
		     MU_INVALID_ARGUMENT, "5 channels");
	/* libpng's limit for width and height */
	assert_fails(mu_png_write(&b, rgb, &(struct mu_png_shape){1, 1u << 21, 1, 8, -1}, &err),
		     &err, MU_INTERNAL, "PNG encoding failed: Invalid IHDR data");
	assert_int_equal(b.len, 6);
}

static void png__interlaced__has_every_pixel_in_its_place(void **state)
{
	for (unsigned bits = 8; bits <= 16; bits += 8) {
		uint16_t out[15 * 4];
		struct mu_png png;
		assert_ok(mu_png_open(&png, MU_SPAN(interlaced), &err), &err);
		assert_ok(mu_png_read(&png, 4, bits, out, &err), &err);
		for (int i = 0; i < 15 * 4; i++) {
			int v = i / 4 % 5 + 3 * (i / 20);
			int want = i % 4 < 3 ? v * 17 : v == 3 ? 0 : 255;
			if (bits == 16)
				assert_int_equal(out[i], want * 257);
			else
				assert_int_equal(((unsigned char *)out)[i], want);
		}
		mu_png_fini(&png);
	}
}

/* By the header there are 2^28 pixels; the file has 38 bytes. */
static void png__truncated_with_a_large_size__is_invalid_before_any_allocation(void **state)
{
	MU_AUTO_BUF b = {0};
	struct mu_png png;

	mu_buf_put(&b, interlaced, sizeof interlaced - 1);
	memcpy(b.data + 16, "\0\0\x40\0\0\0\x40\0", 8);
	correct_checksums(&b);
	assert_fails(mu_png_open(&png, mu_buf_span(&b), &err), &err, MU_INVALID_ARGUMENT,
		     "too short for 16384 by 16384 pixels");
}

static void put_text(struct mu_buf *b, size_t inflated)
{
	MU_AUTO_FREE unsigned char *text = mu_xcalloc(inflated, 1);
	uLongf n = compressBound(inflated);
	MU_AUTO_FREE unsigned char *data = mu_xcalloc(n + 3, 1);

	memcpy(data, "k\0\0", 3); /* keyword, NUL, method */
	memset(text, 'x', inflated);
	assert_int_equal(compress2(data + 3, &n, text, inflated, 9), Z_OK);
	put_chunk(b, "zTXt", data, n + 3);
}

static size_t allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* 60 text chunks of 4 KB, which inflate to 4 MB each, 240 MB in all. */
static void compressed_texts__are_not_inflated(void **state)
{
	enum { HEADER = 33, TEXT = 4 << 20 };
	MU_AUTO_BUF b = {0};
	struct mu_png png;

	mu_buf_put(&b, interlaced, HEADER);
	for (int i = 0; i < 60; i++)
		put_text(&b, TEXT);
	mu_buf_put(&b, interlaced + HEADER, sizeof interlaced - 1 - HEADER);
	correct_checksums(&b);
	size_t before = allocated();
	assert_ok(mu_png_open(&png, mu_buf_span(&b), &err), &err);
	assert_true(allocated() - before < TEXT);
	mu_png_fini(&png);
}

static void png__truncated__is_invalid(void **state)
{
	for (size_t n = 0; n < sizeof interlaced - 1; n++) {
		unsigned char out[15];
		struct mu_png png;
		if (mu_png_open(&png, (struct mu_span){interlaced, n}, &err)) {
			assert_string_equal(
			    strstr(err.msg, "Invalid PNG. Failed to initialize decoder. "),
			    err.msg);
			continue;
		}
		assert_fails(mu_png_read(&png, 1, 8, out, &err), &err, MU_INVALID_ARGUMENT,
			     "Invalid PNG data, size ");
		mu_png_fini(&png);
	}
}

static void png__mutated__is_read_or_invalid(void **state)
{
	mutate_run(LLVMFuzzerTestOneInput, interlaced, sizeof interlaced - 1, 4000);
	/* sides, depth, colour, methods, interlace; lengths of palette and transparency; rows */
	mutate_run(LLVMFuzzerTestOneInput, "\x03\x02\x02\x03\0\0\1\2\1abcdefg\0\x1b\1\x2c\2\3", 22,
		   4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(png__of_any_format__reads_back),
	    cmocka_unit_test(png__that_cannot_be_written__leaves_the_buffer_unchanged),
	    cmocka_unit_test(png__interlaced__has_every_pixel_in_its_place),
	    cmocka_unit_test(png__truncated_with_a_large_size__is_invalid_before_any_allocation),
	    cmocka_unit_test(compressed_texts__are_not_inflated),
	    cmocka_unit_test(png__truncated__is_invalid),
	    cmocka_unit_test(png__mutated__is_read_or_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
