/* SPDX-License-Identifier: Apache-2.0 */
/* V1 checkpoints, written and read back: complete, in slices, in several files. */
#include <stdio.h>
#include <unistd.h>

#include "lib/checkpoint/v1_format.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/v1_format_fuzz.c"
#include "tests/test.h"

static char folder[] = "/tmp/v1_format_testXXXXXX";
static struct mu_err err;

static char *path_of(const char *name)
{
	return mu_xasprintf("%s/%s", folder, name);
}

static struct mu_tensor floats(int64_t rows, int64_t columns, float first)
{
	struct mu_shape shape;
	struct mu_tensor t;

	assert_ok(mu_shape_set(&shape, 2, (int64_t[]){rows, columns}, &err), &err);
	assert_ok(mu_tensor_new(&t, MU_FLOAT, &shape, &err), &err);
	for (int64_t i = 0; i < shape.count; i++)
		MU_DATA(float, &t)[i] = first + (float)i;
	return t;
}

static struct mu_slice slice_of(const char *spec)
{
	struct mu_slice s;
	bool is;

	assert_ok(mu_slice_parse(&s, &is, mu_span_of(spec), &err), &err);
	return s;
}

/* Writes the upper rows of "parted" to one file, its lower rows and all of "whole" to another. */
static void write_two(void)
{
	MU_AUTO_FREE char *one = path_of("two-00000-of-00002");
	MU_AUTO_FREE char *other = path_of("two-00001-of-00002");
	MU_AUTO_TENSOR top = floats(2, 4, 0), bottom = floats(1, 4, 8), whole = floats(2, 3, 100);
	struct mu_slice upper = slice_of("3 4 0,2:-"), lower = slice_of("3 4 2,1:-");

	assert_ok(mu_v1_format_write(one, &(struct mu_v1_format){"parted", &upper, &top}, 1, &err),
		  &err);
	assert_ok(mu_v1_format_write(
		      other,
		      (struct mu_v1_format[]){{"parted", &lower, &bottom}, {"whole", NULL, &whole}},
		      2, &err),
		  &err);
}

static struct mu_v1_reader *open_two(const char *pattern)
{
	MU_AUTO_FREE char *path = path_of(pattern);
	struct mu_v1_reader *r;

	assert_ok(mu_v1_format_open(&r, path, &err), &err);
	return r;
}

static void tensor__in_slices_of_several_files__is_joined(void **state)
{
	MU_AUTO(mu_v1_reader_free)
	struct mu_v1_reader *r = open_two("two-\?\?\?\?\?-of-00002");
	MU_AUTO_TENSOR all = {0};
	MU_AUTO_TENSOR some = {0};
	struct mu_slice middle = slice_of("3 4 1,2:1,3");

	assert_ok(mu_v1_format_read(r, "parted", NULL, &all, &err), &err);
	for (int i = 0; i < 12; i++)
		assert_true(MU_DATA(float, &all)[i] == (float)i);
	assert_ok(mu_v1_format_read(r, "parted", &middle, &some, &err), &err);
	for (int i = 0; i < 6; i++)
		assert_true(MU_DATA(float, &some)[i] == (float)(5 + i + i / 3));
}

static void tensor__with_a_missing_slice__is_data_loss(void **state)
{
	MU_AUTO(mu_v1_reader_free) struct mu_v1_reader *r = open_two("two-00001-of-00002");
	struct mu_slice lower = slice_of("3 4 2,1:0,2"), other = slice_of("4 3 0,1:-");
	MU_AUTO_TENSOR some = {0};
	struct mu_tensor t;

	assert_ok(mu_v1_format_read(r, "parted", &lower, &some, &err), &err);
	assert_true(MU_DATA(float, &some)[1] == 9);
	assert_fails(mu_v1_format_read(r, "parted", NULL, &t, &err), &err, MU_DATA_LOSS,
		     "do not cover it");
	assert_fails(mu_v1_format_read(r, "parted", &other, &t, &err), &err, MU_INVALID_ARGUMENT,
		     "does not match the shape in the save file");
	assert_fails(mu_v1_format_read(r, "nothing", NULL, &t, &err), &err, MU_NOT_FOUND,
		     "\"nothing\" not found");
}

static void pattern__without_a_matching_file__is_not_found(void **state)
{
	MU_AUTO_FREE char *path = path_of("none-*");
	struct mu_v1_reader *r;

	assert_fails(mu_v1_format_open(&r, path, &err), &err, MU_NOT_FOUND,
		     "Failed to find any matching files");
}

static void checkpoint__with_any_bit_flipped__is_invalid(void **state)
{
	MU_AUTO_FREE char *path = path_of("two-00001-of-00002");
	struct mu_v1_reader *r;
	MU_AUTO_BUF b = {0};

	assert_ok(mu_buf_read_file(&b, path, 1 << 20, &err), &err);
	for (size_t bit = 0; bit < b.len * 8; bit++) {
		b.data[bit / 8] = (char)(b.data[bit / 8] ^ 1 << bit % 8);
		assert_true(mu_v1_format_parse(&r, mu_buf_span(&b), "flipped", &err) < 0);
		b.data[bit / 8] = (char)(b.data[bit / 8] ^ 1 << bit % 8);
	}
}

/* A tensor "a" of four numbers: name, shape, type and one full slice; then its values. */
static const char valid_file[] = "\x19\0"
				 "\x0a\x17\x0a\x0f\x0a\1a\x12\4\x12\2\x08\4\x18\1\x22\2\x0a\0"
				 "\x12\4\x08\1\x10\0"
				 "\x12\x1b\x0a\1a\x12\2\x0a\0\x1a\x12\x2a\x10"
				 "\0\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40";

static void checkpoint__mutated__is_read_or_invalid(void **state)
{
	LLVMFuzzerTestOneInput((const uint8_t *)valid_file, sizeof valid_file - 1);
	assert_int_equal(n_read, 2); /* the input of the mutations is valid */
	mutate_run(LLVMFuzzerTestOneInput, valid_file, sizeof valid_file - 1, 20000);
}

static int set_up(void **state)
{
	assert_non_null(mkdtemp(folder));
	write_two();
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = {"two-00000-of-00002", "two-00001-of-00002"};

	for (unsigned i = 0; i < MU_COUNT(names); i++) {
		MU_AUTO_FREE char *path = path_of(names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tensor__in_slices_of_several_files__is_joined),
	    cmocka_unit_test(tensor__with_a_missing_slice__is_data_loss),
	    cmocka_unit_test(pattern__without_a_matching_file__is_not_found),
	    cmocka_unit_test(checkpoint__with_any_bit_flipped__is_invalid),
	    cmocka_unit_test(checkpoint__mutated__is_read_or_invalid),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
