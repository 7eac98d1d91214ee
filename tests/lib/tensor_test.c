/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "lib/tensor/number.h"
#include "lib/tensor/tensor.h"
#include "tests/test.h"

static void shape__with_an_overflowing_product__is_invalid(void **state)
{
	struct mu_shape s = mu_shape_scalar();
	struct mu_err err;

	assert_ok(mu_shape_set(&s, 2, (int64_t[]){2, 3}, &err), &err);
	assert_int_equal(s.count, 6);
	assert_fails(mu_shape_set(&s, 3, (int64_t[]){1LL << 32, 1LL << 31, 2}, &err), &err,
		     MU_INVALID_ARGUMENT, "more elements than fit");
	assert_fails(mu_shape_set(&s, 1, (int64_t[]){-1}, &err), &err, MU_INVALID_ARGUMENT,
		     "negative");
	int64_t ones[MU_MAX_RANK + 1] = {0};
	assert_fails(mu_shape_set(&s, MU_MAX_RANK + 1, ones, &err), &err, MU_UNIMPLEMENTED,
		     "at most 32 dimensions");
	assert_string_equal(mu_shape_str(&s), "[2,3]");
}

static void shape__spliced__replaces_some_dimensions(void **state)
{
	struct mu_shape s = mu_shape_scalar(), out = mu_shape_scalar();
	struct mu_err err;

	assert_ok(mu_shape_set(&s, 4, (int64_t[]){2, 3, 4, 5}, &err), &err);
	assert_ok(mu_shape_splice(&out, &s, 1, 2, 1, (int64_t[]){7}, &err), &err);
	assert_string_equal(mu_shape_str(&out), "[2,7,5]");
	assert_ok(mu_shape_splice(&out, &out, 3, 0, 1, (int64_t[]){9}, &err), &err);
	assert_string_equal(mu_shape_str(&out), "[2,7,5,9]");
	assert_fails(mu_shape_splice(&out, &s, 0, 0, 1, (int64_t[]){-1}, &err), &err,
		     MU_INVALID_ARGUMENT, "negative");
	assert_string_equal(mu_shape_str(&out), "[2,7,5,9]");

	struct mu_axis_split split = mu_shape_split(&s, 2);
	assert_int_equal(split.outer, 6);
	assert_int_equal(split.n, 4);
	assert_int_equal(split.inner, 5);
}

static void shape__parts__are_equal_where_both_have_them(void **state)
{
	struct mu_shape a = mu_shape_scalar(), b = mu_shape_scalar();
	struct mu_err err;

	assert_ok(mu_shape_set(&a, 3, (int64_t[]){2, 3, 4}, &err), &err);
	assert_ok(mu_shape_set(&b, 2, (int64_t[]){3, 4}, &err), &err);
	assert_true(mu_shape_part_eq(&a, 1, &b, 0, 2));
	assert_true(mu_shape_part_eq(&a, 3, &b, 2, 0));
	assert_false(mu_shape_part_eq(&a, 0, &b, 0, 2));
	assert_false(mu_shape_part_eq(&a, 1, &b, 0, 3));
	assert_false(mu_shape_part_eq(&b, -1, &a, 0, 3));
}

static void tensor__over_the_limit__fails_with_shape_and_type(void **state)
{
	struct mu_shape s;
	struct mu_tensor t = {0};
	struct mu_err err;

	assert_ok(mu_shape_set(&s, 2, (int64_t[]){1LL << 31, 1LL << 30}, &err), &err);
	assert_fails(mu_tensor_new(&t, MU_FLOAT, &s, &err), &err, MU_RESOURCE_EXHAUSTED,
		     "[2147483648,1073741824] and type float");
	assert_false(mu_tensor_is_set(&t));
}

static void tensor__shared__is_freed_with_its_last_reference(void **state)
{
	struct mu_shape s = mu_shape_vec(3);
	struct mu_tensor t;
	struct mu_err err;

	assert_ok(mu_tensor_new(&t, MU_FLOAT, &s, &err), &err);
	assert_int_equal((uintptr_t)t.data % 64, 0);
	assert_true(mu_tensor_is_sole(&t));
	struct mu_tensor other = mu_tensor_ref(&t);
	assert_false(mu_tensor_is_sole(&t));
	mu_tensor_unref(&t);
	assert_true(mu_tensor_is_sole(&other));
	mu_tensor_unref(&other);
	mu_tensor_unref(&other); /* an empty tensor is allowed */
}

static void tensor__of_strings__copies_deeply_and_frees_all(void **state)
{
	struct mu_shape s = mu_shape_vec(2);
	struct mu_tensor t, copy;
	struct mu_err err;

	assert_ok(mu_tensor_new(&t, MU_STRING, &s, &err), &err);
	mu_string_set(&MU_DATA(struct mu_string, &t)[1], "a\0b", 3);
	assert_ok(mu_tensor_copy(&copy, &t, &err), &err);
	mu_tensor_unref(&t);
	assert_int_equal(MU_DATA(struct mu_string, &copy)[0].len, 0);
	assert_memory_equal(MU_DATA(struct mu_string, &copy)[1].data, "a\0b", 3);
	assert_int_equal(mu_tensor_bytes(&copy), 2 * sizeof(struct mu_string) + 3);
	mu_tensor_unref(&copy);
}

static void dtype__of_each_type__has_the_name_and_number_of_tensorflow(void **state)
{
	assert_int_equal(mu_dtype_from_name("float"), 1);
	assert_int_equal(mu_dtype_from_name("resource"), 20);
	assert_int_equal(mu_dtype_from_name("nonsense"), MU_DT_INVALID);
	assert_string_equal(mu_dtype_name((enum mu_dtype)101), "float_ref");
	assert_true(mu_dtype_valid(103));
	assert_false(mu_dtype_valid(100));
	assert_false(mu_dtype_valid(24));
	assert_false(mu_dtype_valid(-3));
}

static void number__of_each_type__has_its_value_and_its_digits(void **state)
{
	const struct {
		enum mu_dtype type;
		const void *data;
		const char *text;
	} cases[] = {
	    {MU_INT64, (int64_t[]){(1ll << 60) + 1}, "1152921504606846977"},
	    {MU_UINT64, (uint64_t[]){UINT64_MAX}, "18446744073709551615"},
	    {MU_INT32, (int32_t[]){-1234567}, "-1234567"},
	    {MU_UINT32, (uint32_t[]){4294967295u}, "4294967295"},
	    {MU_INT8, (int8_t[]){-128}, "-128"},
	    {MU_BOOL, (bool[]){true}, "1"},
	    {MU_HALF, (uint16_t[]){0x3e00}, "1.5"},
	    {MU_BFLOAT16, (uint16_t[]){0xc000}, "-2"},
	    {MU_FLOAT, (float[]){0.1f}, "0.1"},
	    {MU_DOUBLE, (double[]){1234567}, "1.23457e+06"},
	};
	struct mu_err err;

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_TENSOR t = {0};
		MU_AUTO_BUF text = {0};

		assert_ok(mu_tensor_scalar(&t, cases[i].type, cases[i].data, &err), &err);
		assert_true(mu_dtype_is_number(cases[i].type));
		mu_tensor_put_number(&text, &t, 0);
		assert_string_equal(text.data, cases[i].text);
	}
	assert_false(mu_dtype_is_number(MU_STRING));
	assert_false(mu_dtype_is_number(MU_COMPLEX64));
	assert_false(mu_dtype_is_number((enum mu_dtype)(MU_FLOAT + MU_DT_REF)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(shape__with_an_overflowing_product__is_invalid),
	    cmocka_unit_test(shape__spliced__replaces_some_dimensions),
	    cmocka_unit_test(shape__parts__are_equal_where_both_have_them),
	    cmocka_unit_test(tensor__over_the_limit__fails_with_shape_and_type),
	    cmocka_unit_test(tensor__shared__is_freed_with_its_last_reference),
	    cmocka_unit_test(tensor__of_strings__copies_deeply_and_frees_all),
	    cmocka_unit_test(dtype__of_each_type__has_the_name_and_number_of_tensorflow),
	    cmocka_unit_test(number__of_each_type__has_its_value_and_its_digits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
