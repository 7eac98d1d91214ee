/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <unistd.h>

#include "lib/io/compress.h"
#include "lib/io/decompress.h"

enum { LENGTH = 300000 };
static struct mu_err err;
static char path[64], text[LENGTH], read_back[LENGTH + 1];

static void compress__of_each_kind__is_decompressed_to_the_same(void **state)
{
	static const struct {
		const char *compression, *start;
	} kinds[] = {{"", "ab"}, {"GZIP", "\x1f\x8b"}, {"ZLIB", "\x78\x9c"}};

	for (unsigned i = 0; i < MU_COUNT(kinds); i++) {
		struct mu_span compression = mu_span_of(kinds[i].compression);
		FILE *f;
		assert_ok(mu_compress_create(&f, path, compression, &err), &err);
		for (size_t at = 0; at < LENGTH; at += LENGTH / 10)
			assert_int_equal(fwrite(text + at, 1, LENGTH / 10, f), LENGTH / 10);
		assert_int_equal(fclose(f), 0);
		assert_ok(mu_decompress_open(&f, path, MU_SPAN(""), &err), &err);
		assert_int_equal(fread(read_back, 1, 2, f), 2);
		assert_memory_equal(read_back, kinds[i].start, 2);
		fclose(f);
		assert_ok(mu_decompress_open(&f, path, compression, &err), &err);
		assert_int_equal(fread(read_back, 1, LENGTH + 1, f), LENGTH);
		assert_memory_equal(read_back, text, LENGTH);
		fclose(f);
	}
}

static void compress__on_a_full_disk__fails_on_close(void **state)
{
	FILE *f;

	assert_ok(mu_compress_create(&f, "/dev/full", MU_SPAN("GZIP"), &err), &err);
	fwrite(text, 1, LENGTH, f);
	assert_int_not_equal(fclose(f), 0);
}

static void compress__with_an_unknown_kind_or_a_missing_folder__fails(void **state)
{
	FILE *f;

	assert_int_equal(mu_compress_create(&f, path, MU_SPAN("BZIP2"), &err),
			 -MU_INVALID_ARGUMENT);
	assert_int_equal(mu_compress_create(&f, "/tmp/no/folder", MU_SPAN(""), &err),
			 -MU_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(compress__of_each_kind__is_decompressed_to_the_same),
	    cmocka_unit_test(compress__on_a_full_disk__fails_on_close),
	    cmocka_unit_test(compress__with_an_unknown_kind_or_a_missing_folder__fails),
	};

	snprintf(path, sizeof path, "/tmp/compress-%d", getpid());
	for (unsigned i = 0; i < LENGTH; i++)
		text[i] = (char)('a' + (i * i / 7 + i) % 23);
	text[1] = 'b';
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return rc;
}
