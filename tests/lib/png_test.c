/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <string.h>

#include "lib/io/png.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/png_fuzz.c"

static struct mu_err err;

/* 5 by 3 greys of 4 bits, column + 3 * row, interlaced, every filter in use, where 3 is clear. */
static const char interlaced[] =
    "\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00"
    "\x05\x00\x00\x00\x03\x04\x00\x00\x00\x01\xcc\xaa\x47\xb3\x00\x00\x00\x02\x74"
    "\x52\x4e\x53\x00\x03\xef\x9a\x9c\x82\x00\x00\x00\x0d\x49\x44\x41\x54\x78\x9c"
    "\x63\x61\x60\x71\x60\x51\x60\xc9\xb0\x60\x11\x14\x5f\x55\x60\x00\x00\x00\x0c"
    "\x49\x44\x41\x54\x66\x2e\x60\x31\x51\x92\x02\x00\x0f\xea\x02\x0f\x43\x18\x54"
    "\xa2\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82";

static void png__written_in_any_form__reads_back(void **state)
{
	uint16_t pixels[4 * 3 * 4], back[4 * 3 * 4];

	for (unsigned i = 0; i < MU_COUNT(pixels); i++)
		pixels[i] = (uint16_t)(i * 2654435761u >> 16);
	for (unsigned channels = 1; channels <= 4; channels++)
		for (unsigned bits = 8; bits <= 16; bits += 8) {
			struct mu_png_shape shape = {4, 3, channels, bits, -1};
			MU_AUTO_BUF b = {0};
			struct mu_png png;
			assert_ok(mu_png_write(&b, pixels, &shape, &err), &err);
			assert_ok(mu_png_open(&png, mu_buf_span(&b), &err), &err);
			assert_int_equal(png.height, 4);
			assert_int_equal(png.width, 3);
			assert_int_equal(mu_png_channels(&png), channels);
			assert_ok(mu_png_rows(&png, &err), &err);
			assert_ok(mu_png_pixels(&png, channels, bits, back, &err), &err);
			assert_memory_equal(pixels, back, (size_t)12 * channels * bits / 8);
			mu_png_fini(&png);
		}
}

static void interlaced_png__has_every_pixel_in_its_place(void **state)
{
	unsigned char out[15 * 4];
	struct mu_png png;

	assert_ok(mu_png_open(&png, MU_SPAN(interlaced), &err), &err);
	assert_ok(mu_png_rows(&png, &err), &err);
	assert_ok(mu_png_pixels(&png, 4, 8, out, &err), &err);
	for (int i = 0; i < 15; i++) {
		int v = i % 5 + 3 * (i / 5);
		for (int k = 0; k < 3; k++)
			assert_int_equal(out[4 * i + k], v * 17);
		assert_int_equal(out[4 * i + 3], v == 3 ? 0 : 255);
	}
	mu_png_fini(&png);
}

/* The sides say 2^28 pixels, the file has 38 bytes of them: they are not believed. */
static void small_png__that_claims_to_be_large__is_given_no_memory(void **state)
{
	MU_AUTO_BUF b = {0};
	struct mu_png png;

	mu_buf_put(&b, interlaced, sizeof interlaced - 1);
	memcpy(b.data + 16, "\0\0\x40\0\0\0\x40\0", 8);
	put_right(&b);
	assert_ok(mu_png_open(&png, mu_buf_span(&b), &err), &err);
	assert_fails(mu_png_rows(&png, &err), &err, MU_INVALID_ARGUMENT,
		     "cannot hold 16384 by 16384 pixels");
	mu_png_fini(&png);
}

static void png__changed_or_cut__is_read_or_refused(void **state)
{
	mutate_run(LLVMFuzzerTestOneInput, interlaced, sizeof interlaced - 1, 4000);
	/* sides, depth, colour, methods, interlace; palette and clear ones; rows */
	mutate_run(LLVMFuzzerTestOneInput, "\x03\x02\x02\x03\0\0\1\2\1abcdefg\0\x1b\1\x2c\2\3", 22,
		   4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(png__written_in_any_form__reads_back),
	    cmocka_unit_test(interlaced_png__has_every_pixel_in_its_place),
	    cmocka_unit_test(small_png__that_claims_to_be_large__is_given_no_memory),
	    cmocka_unit_test(png__changed_or_cut__is_read_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
