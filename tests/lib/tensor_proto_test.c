/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "lib/tensor/tensor_proto.h"
#include "tests/test.h"

static struct mu_err err;

static void head(struct mu_buf *b, enum mu_dtype t, int rank, const int64_t *dims)
{
	struct mu_shape s;

	assert_ok(mu_shape_set(&s, rank, dims, &err), &err);
	mu_pb_put_int(b, 1, t);
	size_t at = mu_pb_begin(b, 2);
	mu_shape_write(b, &s);
	mu_pb_end(b, at);
}

static void short_list__repeats_its_last_value(void **state)
{
	MU_AUTO_BUF b = {0};
	MU_AUTO_TENSOR t = {0};

	head(&b, MU_FLOAT, 1, (int64_t[]){4});
	mu_pb_put_float(&b, 5, 1); /* unpacked, twice */
	mu_pb_put_float(&b, 5, 2);
	assert_ok(mu_tensor_parse(&t, mu_buf_span(&b), &err), &err);
	const float *v = t.data;
	assert_true(v[0] == 1 && v[1] == 2 && v[2] == 2 && v[3] == 2);
}

static void empty_list__is_zeros(void **state)
{
	MU_AUTO_BUF b = {0};
	MU_AUTO_TENSOR t = {0};

	head(&b, MU_INT64, 2, (int64_t[]){2, 3});
	assert_ok(mu_tensor_parse(&t, mu_buf_span(&b), &err), &err);
	for (int i = 0; i < 6; i++)
		assert_int_equal(MU_DATA(int64_t, &t)[i], 0);
}

static void packed_varints__of_every_width__are_read(void **state)
{
	static const struct {
		enum mu_dtype type;
		uint32_t field;
	} cases[] = {{MU_INT32, 7},  {MU_INT16, 7}, {MU_INT8, 7},    {MU_UINT8, 7},
		     {MU_INT64, 10}, {MU_BOOL, 11}, {MU_UINT32, 16}, {MU_UINT64, 17}};
	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_BUF b = {0};
		MU_AUTO_TENSOR t = {0};
		head(&b, cases[i].type, 1, (int64_t[]){2});
		size_t at = mu_pb_begin(&b, cases[i].field);
		mu_pb_put_varint(&b, 1);
		mu_pb_put_varint(&b, 0);
		mu_pb_end(&b, at);
		assert_ok(mu_tensor_parse(&t, mu_buf_span(&b), &err), &err);
		assert_int_equal(MU_DATA(char, &t)[0], 1);
		assert_int_equal(MU_DATA(char, &t)[mu_dtype_size(cases[i].type)], 0);
	}
}

static void content__of_another_length__is_invalid(void **state)
{
	MU_AUTO_BUF b = {0};
	MU_AUTO_TENSOR t = {0};

	head(&b, MU_FLOAT, 1, (int64_t[]){4});
	mu_pb_put_bytes(&b, 4, MU_SPAN("only 12 byte"));
	assert_fails(mu_tensor_parse(&t, mu_buf_span(&b), &err), &err, MU_INVALID_ARGUMENT,
		     "12 bytes of content for a tensor of shape [4] and type float");
}

static void values__more_than_elements__are_ignored(void **state)
{
	MU_AUTO_BUF b = {0}, packed = {0};
	MU_AUTO_TENSOR t = {0}, empty = {0};

	head(&b, MU_FLOAT, 0, NULL);
	mu_pb_put_float(&b, 5, 1);
	mu_pb_put_float(&b, 5, 2);
	assert_ok(mu_tensor_parse(&t, mu_buf_span(&b), &err), &err);
	assert_true(MU_DATA(float, &t)[0] == 1);
	head(&packed, MU_FLOAT, 1, (int64_t[]){0});
	mu_pb_put_bytes(&packed, 5, (struct mu_span){"12345678", 8});
	assert_ok(mu_tensor_parse(&empty, mu_buf_span(&packed), &err), &err);
	assert_int_equal(empty.shape.count, 0);
}

static void type__without_a_list_of_values__is_unimplemented(void **state)
{
	for (int t = 1; t < MU_DT_COUNT; t++) {
		MU_AUTO_BUF b = {0};
		MU_AUTO_TENSOR out = {0};

		head(&b, (enum mu_dtype)t, 0, NULL);
		if (t == MU_VARIANT)
			assert_fails(mu_tensor_parse(&out, mu_buf_span(&b), &err), &err,
				     MU_UNIMPLEMENTED, "variant");
		else if (t != MU_RESOURCE)
			assert_ok(mu_tensor_parse(&out, mu_buf_span(&b), &err), &err);
	}
}

static void shape__over_the_limit__fails_before_any_allocation(void **state)
{
	MU_AUTO_BUF b = {0};
	MU_AUTO_TENSOR t = {0};

	head(&b, MU_FLOAT, 1, (int64_t[]){1LL << 60});
	assert_fails(mu_tensor_parse(&t, mu_buf_span(&b), &err), &err, MU_RESOURCE_EXHAUSTED,
		     "[1152921504606846976]");
}

static void tensor__written__reads_back(void **state)
{
	struct mu_shape s;
	MU_AUTO_TENSOR t = {0};

	assert_ok(mu_shape_set(&s, 2, (int64_t[]){1, 2}, &err), &err);
	for (int k = MU_FLOAT; k < MU_DT_COUNT; k++) {
		MU_AUTO_BUF b = {0};
		MU_AUTO_TENSOR parsed = {0};
		if (!mu_dtype_size((enum mu_dtype)k))
			continue;
		assert_ok(mu_tensor_new(&t, (enum mu_dtype)k, &s, &err), &err);
		memset(t.data, 1, t.buf->size);
		mu_tensor_write(&b, &t);
		assert_ok(mu_tensor_parse(&parsed, mu_buf_span(&b), &err), &err);
		assert_true(mu_shape_eq(&parsed.shape, &t.shape));
		assert_memory_equal(parsed.data, t.data, t.buf->size);
		mu_tensor_unref(&t);
	}
	MU_AUTO_BUF b = {0};
	MU_AUTO_TENSOR strings = {0};
	assert_ok(mu_tensor_new(&t, MU_STRING, &s, &err), &err);
	mu_string_set(MU_DATA(struct mu_string, &t), "a\0b", 3);
	mu_tensor_write(&b, &t);
	assert_ok(mu_tensor_parse(&strings, mu_buf_span(&b), &err), &err);
	assert_int_equal(MU_DATA(struct mu_string, &strings)[0].len, 3);
	assert_int_equal(MU_DATA(struct mu_string, &strings)[1].len, 0);
}

static void tensor_proto__truncated_or_corrupted__never_crashes_the_parser(void **state)
{
	struct mu_shape s = mu_shape_vec(3);
	MU_AUTO_TENSOR t = {0};
	MU_AUTO_BUF b = {0};

	assert_ok(mu_tensor_new(&t, MU_RESOURCE, &s, &err), &err);
	for (int i = 0; i < 3; i++)
		MU_DATA(struct mu_handle, &t)[i].name = mu_xstrdup("name");
	mu_tensor_write(&b, &t);
	head(&b, MU_FLOAT, 1, (int64_t[]){3});
	mu_pb_put_float(&b, 5, 1);
	for (size_t i = 0; i < b.len; i++) {
		MU_AUTO_TENSOR r = {0};
		char *cut = mu_xmalloc(i + 1);
		memcpy(cut, b.data, i);
		mu_tensor_parse(&r, (struct mu_span){cut, i}, NULL);
		free(cut);
	}
	size_t original_limit = mu_tensor_limit;
	mu_tensor_limit = 1 << 20;
	for (size_t i = 0; i < b.len * 8; i++) {
		MU_AUTO_TENSOR r = {0};
		b.data[i / 8] ^= (char)(1 << i % 8);
		mu_tensor_parse(&r, mu_buf_span(&b), NULL);
		b.data[i / 8] ^= (char)(1 << i % 8);
	}
	mu_tensor_limit = original_limit;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(short_list__repeats_its_last_value),
	    cmocka_unit_test(empty_list__is_zeros),
	    cmocka_unit_test(packed_varints__of_every_width__are_read),
	    cmocka_unit_test(content__of_another_length__is_invalid),
	    cmocka_unit_test(values__more_than_elements__are_ignored),
	    cmocka_unit_test(type__without_a_list_of_values__is_unimplemented),
	    cmocka_unit_test(shape__over_the_limit__fails_before_any_allocation),
	    cmocka_unit_test(tensor__written__reads_back),
	    cmocka_unit_test(tensor_proto__truncated_or_corrupted__never_crashes_the_parser),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
