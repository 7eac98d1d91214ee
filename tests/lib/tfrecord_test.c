/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <string.h>
#include <unistd.h>

#include "lib/io/tfrecord.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/tfrecord_fuzz.c"

static char path[] = "/tmp/tfrecord_testXXXXXX";
static struct mu_err err;

static void write_three(void)
{
	struct mu_tfrecord_writer *w;

	assert_ok(mu_tfrecord_create(&w, path, false, &err), &err);
	assert_ok(mu_tfrecord_write(w, MU_SPAN("first"), &err), &err);
	assert_ok(mu_tfrecord_write(w, MU_SPAN(""), &err), &err);
	assert_ok(mu_tfrecord_close(w, &err), &err);
	assert_ok(mu_tfrecord_create(&w, path, true, &err), &err);
	assert_ok(mu_tfrecord_write(w, MU_SPAN("th\0rd"), &err), &err);
	assert_ok(mu_tfrecord_close(w, &err), &err);
}

static void tfrecord__written_and_appended__reads_back(void **state)
{
	const struct mu_span want[] = {MU_SPAN("first"), MU_SPAN(""), MU_SPAN("th\0rd")};
	struct mu_tfrecord_reader *r;
	struct mu_span got;

	write_three();
	assert_ok(mu_tfrecord_open(&r, path, &err), &err);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(mu_tfrecord_next(r, &got, &err), 1);
		assert_true(mu_span_eq(got, want[i]));
	}
	assert_int_equal(mu_tfrecord_next(r, &got, &err), 0);
	assert_int_equal(mu_tfrecord_offset(r), 3 * 16 + 10);
	mu_tfrecord_reader_free(r);
}

static int read_all(const char *bytes, size_t n)
{
	struct mu_tfrecord_reader *r;
	struct mu_span got;
	int rc;

	assert_ok(mu_write_file(path, bytes, n, &err), &err);
	assert_ok(mu_tfrecord_open(&r, path, &err), &err);
	while ((rc = mu_tfrecord_next(r, &got, &err)) == 1)
		;
	mu_tfrecord_reader_free(r);
	return rc;
}

static void tfrecord__with_any_bit_flipped__is_an_error_that_names_the_offset(void **state)
{
	MU_AUTO_BUF file = {0};

	mu_tfrecord_frame(&file, MU_SPAN("some record"));
	mu_tfrecord_frame(&file, MU_SPAN("another"));
	for (size_t bit = 0; bit < 8 * file.len; bit++) {
		file.data[bit / 8] ^= (char)(1 << bit % 8);
		assert_true(read_all(file.data, file.len) < 0);
		assert_non_null(strstr(err.msg, bit / 8 < 27 ? "offset 0" : "offset 27"));
		assert_non_null(strstr(err.msg, path));
		file.data[bit / 8] ^= (char)(1 << bit % 8);
	}
}

static void tfrecord__of_another_format__fails_with_the_reason(void **state)
{
	static const char text[] = "loss,step\n0.25,1\n0.125,2\n";

	assert_true(read_all(text, sizeof(text) - 1) < 0);
	assert_non_null(
	    strstr(err.msg, "checksum: the file is not a TFRecord file, or it is compressed"));
}

static void tfrecord__truncated_within_a_record__is_out_of_range(void **state)
{
	MU_AUTO_BUF file = {0};

	mu_tfrecord_frame(&file, MU_SPAN("some record"));
	for (size_t n = 1; n < file.len; n++)
		assert_int_equal(read_all(file.data, n), -MU_OUT_OF_RANGE);
	assert_int_equal(read_all(file.data, 0), 0);
}

static void tfrecord__that_grows__is_read_on_from_the_truncated_record(void **state)
{
	MU_AUTO_BUF file = {0};
	struct mu_tfrecord_reader *r;
	struct mu_span got;

	mu_tfrecord_frame(&file, MU_SPAN("slowly written"));
	FILE *f = fopen(path, "wb");
	fwrite(file.data, 1, 15, f);
	fflush(f);
	assert_ok(mu_tfrecord_open(&r, path, &err), &err);
	assert_int_equal(mu_tfrecord_next(r, &got, &err), -MU_OUT_OF_RANGE);
	fwrite(file.data + 15, 1, file.len - 15, f);
	fclose(f);
	assert_int_equal(mu_tfrecord_next(r, &got, &err), 1);
	assert_true(mu_span_is(got, "slowly written"));
	mu_tfrecord_reader_free(r);
}

static void tfrecord__of_random_bytes__never_breaks_the_reader(void **state)
{
	MU_AUTO_BUF file = {0};

	mu_tfrecord_frame(
	    &file, MU_SPAN("\x09\0\0\0\0\0\0\xf0?\x10\x07*\x0b\x0a\x09\x0a\x02it\x15\0\0\x80?"));
	mu_tfrecord_frame(&file, MU_SPAN("x"));
	mutate_run(LLVMFuzzerTestOneInput, file.data, file.len, 3000);
	mutate_run(LLVMFuzzerTestOneInput, file.data + 12, file.len - 12, 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tfrecord__written_and_appended__reads_back),
	    cmocka_unit_test(tfrecord__with_any_bit_flipped__is_an_error_that_names_the_offset),
	    cmocka_unit_test(tfrecord__of_another_format__fails_with_the_reason),
	    cmocka_unit_test(tfrecord__truncated_within_a_record__is_out_of_range),
	    cmocka_unit_test(tfrecord__that_grows__is_read_on_from_the_truncated_record),
	    cmocka_unit_test(tfrecord__of_random_bytes__never_breaks_the_reader),
	};

	close(mkstemp(path));
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
