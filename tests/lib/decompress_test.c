/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed files, read as streams. */
#include "tests/test.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/io/decompress.h"

enum { LENGTH = 300000 };
static char path[] = "/tmp/decompress_testXXXXXX";
static char text[LENGTH];
static struct mu_err err;

/* Appends the compressed text as one member to b. */
static void compress_text(struct mu_buf *b, int window)
{
	z_stream z = {0};

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
	mu_buf_reserve(b, LENGTH);
	z.next_in = (unsigned char *)text;
	z.avail_in = LENGTH;
	z.next_out = (unsigned char *)b->data + b->len;
	z.avail_out = LENGTH;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	b->len += LENGTH - z.avail_out;
	deflateEnd(&z);
}

/* Returns the number of decompressed bytes, or -1 if a read fails. */
static long drain(const struct mu_buf *b, const char *compression, size_t chunk)
{
	MU_AUTO_FREE char *to = mu_xcalloc(1, chunk);
	long all = 0;
	FILE *f;

	assert_ok(mu_write_file(path, b->data, b->len, &err), &err);
	assert_ok(mu_decompress_open(&f, path, mu_span_of(compression), &err), &err);
	for (size_t n; (n = fread(to, 1, chunk, f)) > 0; all += (long)n)
		for (size_t i = 0; i < n; i++)
			if (to[i] != text[(all + (long)i) % LENGTH])
				fail_msg("byte %ld is wrong", all + (long)i);
	bool bad = ferror(f);
	fclose(f);
	return bad ? -1 : all;
}

static void decompress__of_one_or_two_members__reads_all(void **state)
{
	static const size_t chunks[] = {1, 4096, 65537, LENGTH};
	MU_AUTO_BUF gzip = {0};
	MU_AUTO_BUF zlib = {0};

	compress_text(&gzip, MAX_WBITS + 16);
	compress_text(&zlib, MAX_WBITS);
	for (unsigned i = 0; i < MU_COUNT(chunks); i++) {
		assert_int_equal(drain(&gzip, "GZIP", chunks[i]), LENGTH);
		assert_int_equal(drain(&zlib, "ZLIB", chunks[i]), LENGTH);
	}
	compress_text(&gzip, MAX_WBITS + 16);
	assert_int_equal(drain(&gzip, "GZIP", 1000), 2 * LENGTH);
	assert_int_equal(drain(&gzip, "ZLIB", 1000), -1);
}

static void decompress__of_a_truncated_file__fails(void **state)
{
	MU_AUTO_BUF b = {0};

	compress_text(&b, MAX_WBITS + 16);
	for (size_t whole = b.len, n = 1; n < whole; n += 1 + n / 4) {
		b.len = n;
		assert_int_equal(drain(&b, "GZIP", 4096), -1);
	}
	b.len = 0;
	assert_int_equal(drain(&b, "GZIP", 4096), 0);
}

static void decompress__of_a_folder_or_an_unknown_compression__fails(void **state)
{
	FILE *f;

	assert_int_equal(mu_decompress_open(&f, "/tmp", MU_SPAN(""), &err),
			 -MU_FAILED_PRECONDITION);
	assert_int_equal(mu_decompress_open(&f, path, MU_SPAN("BZIP2"), &err),
			 -MU_INVALID_ARGUMENT);
	unlink(path);
	assert_int_equal(mu_decompress_open(&f, path, MU_SPAN(""), &err), -MU_NOT_FOUND);
	assert_int_equal(mkfifo(path, 0600), 0); /* a FIFO without a writer */
	assert_true(mu_decompress_open(&f, path, MU_SPAN("GZIP"), &err) < 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(decompress__of_one_or_two_members__reads_all),
	    cmocka_unit_test(decompress__of_a_truncated_file__fails),
	    cmocka_unit_test(decompress__of_a_folder_or_an_unknown_compression__fails),
	};

	close(mkstemp(path));
	for (unsigned i = 0; i < LENGTH; i++)
		text[i] = (char)("abcd"[i % 4] + (i / 1000 % 7) + (i * i % 3));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
