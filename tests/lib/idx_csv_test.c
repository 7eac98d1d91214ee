/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/io/csv.h"
#include "lib/io/idx.h"

static char path[] = "/tmp/idx_csv_testXXXXXX";
static struct mu_err err;

static void put(const char *bytes, size_t n)
{
	assert_ok(mu_write_file(path, bytes, n, &err), &err);
}

static void csv__with_a_header__is_a_table_of_numbers(void **state)
{
	MU_AUTO_TENSOR t = {0};

	assert_ok(mu_csv_parse(&t, MU_SPAN("a,b\n# note\n1, 2.5\r\n\n\"3\",-4e1"), "x.csv", NULL,
			       false, &err),
		  &err);
	assert_string_equal(mu_shape_str(&t.shape), "[2,2]");
	assert_true(MU_DATA(double, &t)[1] == 2.5 && MU_DATA(double, &t)[3] == -40);
}

static void csv__with_a_byte_order_mark_and_comments_before_the_header__is_read(void **state)
{
	static const char *const texts[] = {"\xef\xbb\xbf# comment\n\nx,y\n1,2\n3,4\n",
					    "\xef\xbb\xbf"
					    "1,2\n3,4\n"};

	for (size_t i = 0; i < MU_COUNT(texts); i++) {
		MU_AUTO_TENSOR t = {0};

		assert_ok(mu_csv_parse(&t, mu_span_of(texts[i]), "x.csv", NULL, false, &err), &err);
		assert_string_equal(mu_shape_str(&t.shape), "[2,2]");
	}
}

static void csv__with_a_fault__names_line_and_column(void **state)
{
	static const char *const cases[][2] = {
	    {"1,2\n3,x\n", "x.csv:2: column 2: 'x' is not a number"},
	    {"1,2\n3,nan\n", "x.csv:2: column 2: 'nan' is not a number"},
	    {"1,2\n3,\x1b[2J\xff\n", "x.csv:2: column 2: '?[2J?' is not a number"},
	    {"1,2\n3\n", "x.csv:2: has 1 columns, but the rows before have 2"},
	    {"1,2\n3,\n", "x.csv:2: column 2: '' is not a number"},
	    {"a,b\n", "x.csv:2: ends without a row of comma-separated numbers"},
	    {"", "x.csv:1: ends without a row of comma-separated numbers"},
	};
	struct mu_tensor t;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_fails(mu_csv_parse(&t, mu_span_of(cases[i][0]), "x.csv", NULL, false, &err),
			     &err, MU_INVALID_ARGUMENT, cases[i][1]);
}

static void missing_file__fails_with_the_folder_of_its_relative_path(void **state)
{
	struct mu_tensor t;

	assert_fails(
	    mu_csv_read(&t, "not/there.csv", NULL, false, &err), &err, MU_NOT_FOUND,
	    "cannot read not/there.csv: No such file or directory; the current folder is /");
	assert_fails(mu_csv_read(&t, "/not/there.csv", NULL, false, &err), &err, MU_NOT_FOUND,
		     "cannot read /not/there.csv: No such file or directory");
	assert_null(strstr(err.msg, "looked for"));
}

static void digits__as_shipped__have_all_rows(void **state)
{
	MU_AUTO_TENSOR t = {0};

	if (access("examples/data/digits.csv.gz", R_OK))
		skip();
	assert_ok(mu_csv_read(&t, "examples/data/digits.csv.gz", NULL, false, &err), &err);
	assert_string_equal(mu_shape_str(&t.shape), "[1797,65]");
}

static void mnist__as_shipped__has_its_shape(void **state)
{
	MU_AUTO_TENSOR t = {0};

	if (access("examples/data/mnist", R_OK))
		skip();
	assert_ok(mu_idx_read(&t, "examples/data/mnist/test-images-idx3-ubyte.gz", &err), &err);
	assert_string_equal(mu_shape_str(&t.shape), "[2000,28,28]");
}

static void idx__of_int16__is_in_native_byte_order(void **state)
{
	MU_AUTO_TENSOR t = {0};

	put("\0\0\x0b\x01\0\0\0\x02\x01\x02\xff\xfe", 12);
	assert_ok(mu_idx_read(&t, path, &err), &err);
	assert_int_equal(MU_DATA(int16_t, &t)[0], 0x102);
	assert_int_equal(MU_DATA(int16_t, &t)[1], -2);
}

static void idx__with_a_fault__names_file_and_offset(void **state)
{
	struct mu_tensor t;

	put("\0\0\x08\x02\0\0\0\x02\xff\xff\xff\xff\1", 13);
	assert_fails(mu_idx_read(&t, path, &err), &err, MU_DATA_LOSS, "offset 12: shape");
	put("\0\0\x08\x02\0\0\0", 7);
	assert_fails(mu_idx_read(&t, path, &err), &err, MU_DATA_LOSS, "offset 7: the dimensions");
	put("PNG?", 4);
	assert_fails(mu_idx_read(&t, path, &err), &err, MU_DATA_LOSS,
		     "offset 0: not an IDX file: expected two bytes of 0");
	put("", 0);
	assert_fails(mu_idx_read(&t, path, &err), &err, MU_DATA_LOSS, "not an IDX file");
	assert_fails(mu_idx_read(&t, "/nonexistent", &err), &err, MU_NOT_FOUND, "/nonexistent");
}

static void gzip__corrupted__names_the_offset(void **state)
{
	MU_AUTO_BUF bytes = {0};
	struct mu_tensor t;
	gzFile g = gzopen(path, "wb");

	for (int i = 0; i < 5000; i++)
		gzprintf(g, "%d,%d\n", i, i * i % 977);
	gzclose(g);
	assert_ok(mu_buf_read_file(&bytes, path, 1 << 20, &err), &err);
	put(bytes.data, bytes.len / 2);
	assert_fails(mu_csv_read(&t, path, NULL, false, &err), &err, MU_DATA_LOSS,
		     "broken at offset");
	memset(bytes.data + bytes.len / 2, 0xff, 8);
	put(bytes.data, bytes.len);
	assert_fails(mu_csv_read(&t, path, NULL, false, &err), &err, MU_DATA_LOSS,
		     "broken at offset");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(csv__with_a_header__is_a_table_of_numbers),
	    cmocka_unit_test(csv__with_a_byte_order_mark_and_comments_before_the_header__is_read),
	    cmocka_unit_test(csv__with_a_fault__names_line_and_column),
	    cmocka_unit_test(missing_file__fails_with_the_folder_of_its_relative_path),
	    cmocka_unit_test(digits__as_shipped__have_all_rows),
	    cmocka_unit_test(mnist__as_shipped__has_its_shape),
	    cmocka_unit_test(idx__of_int16__is_in_native_byte_order),
	    cmocka_unit_test(idx__with_a_fault__names_file_and_offset),
	    cmocka_unit_test(gzip__corrupted__names_the_offset),
	};

	close(mkstemp(path));
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
