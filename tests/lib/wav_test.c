/* SPDX-License-Identifier: Apache-2.0 */
/* WAV files, written and read, and BMP images, read; with malformed headers. */
#include "lib/io/bmp.h"
#include "lib/io/wav.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/wav_fuzz.c"
#include "tests/test.h"

static struct mu_err err;

static const float sound[] = {0, 0.5f, -1, 1.5f, -0.25f, 3.0f / 32768};

static void sound__written__reads_back_within_16_bits(void **state)
{
	static const float want[] = {0, 0.5f, -1, 32767.0f / 32768, -0.25f, 3.0f / 32768};

	for (unsigned channels = 1; channels <= 3; channels++) {
		MU_AUTO_BUF b = {0};
		struct mu_wav w;
		assert_ok(mu_wav_write(&b, sound, 6 / channels, channels, 16000, &err), &err);
		assert_ok(mu_wav_open(&w, mu_buf_span(&b), &err), &err);
		assert_int_equal(w.channels, channels);
		assert_int_equal(w.frames, 6 / channels);
		assert_int_equal(w.rate, 16000);
		for (unsigned i = 0; i < 6; i++)
			assert_true(mu_wav_sample(&w, i / channels, i % channels) == want[i]);
	}
}

static void wav__truncated__is_invalid(void **state)
{
	MU_AUTO_BUF b = {0};
	struct mu_wav w;

	assert_ok(mu_wav_write(&b, sound, 6, 1, 8000, &err), &err);
	for (size_t n = 0; n < b.len; n++)
		assert_int_equal(mu_wav_open(&w, (struct mu_span){b.data, n}, &err),
				 -MU_INVALID_ARGUMENT);
}

/* Two by two pixels of three bytes; rows are padded to eight bytes. */
static const char picture[] = "BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\2\0\0\0\1\0\x18\0"
			      "\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
			      "\1\2\3\4\5\6\0\0\7\x8\x9\xa\xb\xc\0\0";

static void bmp__bottom_up_or_top_down__is_read_from_the_top(void **state)
{
	char file[sizeof picture];
	unsigned char out[16];
	struct mu_bmp p;

	memcpy(file, picture, sizeof file);
	struct mu_span all = {file, sizeof file - 1};
	assert_ok(mu_bmp_open(&p, all, &err), &err);
	mu_bmp_pixels(&p, 3, out);
	assert_memory_equal(out, "\x9\x8\7\xc\xb\xa\3\2\1\6\5\4", 12);
	memcpy(file + 22, "\xfe\xff\xff\xff", 4); /* negative height: top-down rows */
	assert_ok(mu_bmp_open(&p, all, &err), &err);
	mu_bmp_pixels(&p, 4, out);
	assert_memory_equal(out, "\3\2\1\xff\6\5\4\xff\x9\x8\7\xff\xc\xb\xa\xff", 16);
}

static void bmp__with_fewer_rows_than_its_header_says__is_invalid(void **state)
{
	char file[sizeof picture];
	struct mu_bmp p;

	memcpy(file, picture, sizeof file);
	memcpy(file + 22, "\xff\xff\xff\x7f", 4);
	assert_fails(mu_bmp_open(&p, (struct mu_span){file, sizeof file - 1}, &err), &err,
		     MU_INVALID_ARGUMENT, "requires at least");
}

static void wav_and_bmp__mutated__are_read_or_invalid(void **state)
{
	MU_AUTO_BUF b = {0};

	assert_ok(mu_wav_write(&b, sound, 3, 2, 8000, &err), &err);
	mutate_run(LLVMFuzzerTestOneInput, b.data, b.len, 20000);
	mutate_run(LLVMFuzzerTestOneInput, picture, sizeof picture - 1, 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sound__written__reads_back_within_16_bits),
	    cmocka_unit_test(wav__truncated__is_invalid),
	    cmocka_unit_test(bmp__bottom_up_or_top_down__is_read_from_the_top),
	    cmocka_unit_test(bmp__with_fewer_rows_than_its_header_says__is_invalid),
	    cmocka_unit_test(wav_and_bmp__mutated__are_read_or_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
