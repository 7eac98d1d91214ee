/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that decode strings: published test vectors, and malformed input that TensorFlow never
 * writes.  tests/compat compares all other cases with TensorFlow. */
#include "tests/test.h"

#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"
#include "task/kernels/io/json_example.h"
#include "task/kernels/text/keyed_hash.h"
#include "task/kernels/text/text_number.h"
#include "task/kernels/text/unicode.h"
#include "tests/kernels/one_runtime.h"

static struct mu_tensor text(const char *s, size_t n)
{
	struct mu_tensor t;

	assert_int_equal(mu_tensor_string(&t, s, n, NULL), 0);
	return t;
}

static void keyed_hash__of_the_siphash_paper__has_the_published_values(void **state)
{
	const uint64_t key[] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
	char s[15];

	for (int i = 0; i < 15; i++)
		s[i] = (char)i;
	assert_true(keyed_hash(key, s, 15) == 0xa129ca6149be45e5u);
	assert_true(keyed_hash(key, s, 0) == 0x726fdb47dd0e0e31u);
}

/* Runs op on one string and an optional number, with a type as attribute. */
static int run_op(const char *op, struct mu_tensor in, const int32_t *number, const char *attr,
		  enum mu_dtype type, struct mu_tensor *out, struct mu_err *err)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct mu_attr a = {.kind = MU_ATTR_TYPE, .type = type};
	struct mu_node *n;
	struct harness h;
	int rc;

	assert_int_equal(mu_graph_add(g, "n", op, &n, err), 0);
	mu_node_set_attr(g, n, attr, &a);
	assert_int_equal(harness_prepare(&h, rt, n, err), 0);
	harness_input(&h, in);
	if (number) {
		struct mu_tensor t;
		assert_int_equal(mu_tensor_scalar(&t, MU_INT32, number, err), 0);
		harness_input(&h, t);
	}
	rc = harness_run(&h, err);
	if (!rc)
		*out = mu_tensor_ref(&h.out[0].tensor);
	harness_fini(&h);
	return rc;
}

static void decode_padded_raw__of_a_short_string__ends_in_zeros(void **state)
{
	struct mu_tensor out;
	struct mu_err err;

	assert_int_equal(run_op("DecodePaddedRaw", text("abc", 3), &(int32_t){6}, "out_type",
				MU_UINT16, &out, &err),
			 0);
	assert_int_equal(out.shape.count, 3);
	assert_memory_equal(out.data, "abc\0\0\0", 6);
	mu_tensor_unref(&out);
}

static void decode_padded_raw__of_half_an_element__is_invalid(void **state)
{
	struct mu_tensor out;
	struct mu_err err;

	assert_int_equal(run_op("DecodePaddedRaw", text("abc", 3), &(int32_t){3}, "out_type",
				MU_UINT16, &out, &err),
			 -MU_INVALID_ARGUMENT);
	assert_int_equal(run_op("DecodePaddedRaw", text("abc", 3), &(int32_t){-2}, "out_type",
				MU_UINT16, &out, &err),
			 -MU_INVALID_ARGUMENT);
}

static void parse_tensor__of_a_serialized_tensor__restores_it(void **state)
{
	struct mu_tensor bytes, again;
	struct mu_err err;

	assert_int_equal(
	    run_op("SerializeTensor", text("a\0b", 3), NULL, "T", MU_STRING, &bytes, &err), 0);
	assert_int_equal(run_op("ParseTensor", bytes, NULL, "out_type", MU_STRING, &again, &err),
			 0);
	assert_int_equal(again.shape.rank, 0);
	assert_int_equal(MU_DATA(struct mu_string, &again)->len, 3);
	assert_memory_equal(MU_DATA(struct mu_string, &again)->data, "a\0b", 3);
	mu_tensor_unref(&again);
}

/* A shape of 2^40 floats without content must not cause an allocation of that size. */
static void parse_tensor__of_a_large_shape_without_content__is_invalid(void **state)
{
	static const char giant[] = "\x08\x01\x12\x09\x12\x07\x08\x80\x80\x80\x80\x80\x20";
	struct mu_tensor out;
	struct mu_err err;

	assert_true(run_op("ParseTensor", text(giant, sizeof giant - 1), NULL, "out_type", MU_FLOAT,
			   &out, &err) < 0);
	assert_true(run_op("ParseTensor", text("\x08\x01\x12", 3), NULL, "out_type", MU_FLOAT, &out,
			   &err) < 0);
}

static void text_number__with_digits_after_its_end__ignores_them(void **state)
{
	char long_one[100];
	int64_t i = 0;
	float f = 0;

	assert_true(text_number((struct mu_span){"129", 2}, MU_INT64, &i, 0));
	assert_int_equal(i, 12);
	assert_true(text_number((struct mu_span){" -7.5e9", 5}, MU_FLOAT, &f, 0));
	assert_float_equal(f, -7.5f, 0);
	memset(long_one, '0', sizeof long_one);
	long_one[98] = '3';
	long_one[99] = '4';
	assert_true(text_number((struct mu_span){long_one, 99}, MU_INT64, &i, 0));
	assert_int_equal(i, 3);
	assert_false(text_number((struct mu_span){"1\0", 2}, MU_INT64, &i, 0));
}

static void unicode_next__of_malformed_utf8__consumes_the_valid_prefix(void **state)
{
	static const struct {
		const char *encoding;
		struct mu_span text;
		size_t taken;
	} malformed[] = {
	    {"UTF-8", {"\xe2\x82", 2}, 2},       {"UTF-8", {"\xe2\x82z", 3}, 2},
	    {"UTF-8", {"\xf0\x9f\x98", 3}, 3},   {"UTF-8", {"\xc0\x80", 2}, 1},
	    {"UTF-8", {"\xed\xa0\x80", 3}, 1},   {"UTF-8", {"\xf4\x90\x80\x80", 4}, 1},
	    {"UTF-16-BE", {"\xd8\0\0z", 4}, 2},  {"UTF-16-BE", {"\xdc\0", 2}, 2},
	    {"UTF-16-LE", {"z", 1}, 1},          {"UTF-16-BE", {"\xd8\0\xdc", 3}, 3},
	    {"UTF-32-BE", {"\0\x11\0\0", 4}, 4}, {"UTF-32-BE", {"\0\0z", 3}, 3},
	    {"ASCII", {"\x80", 1}, 1},
	};

	for (size_t i = 0; i < MU_COUNT(malformed); i++) {
		int32_t c = 0;
		assert_int_equal(unicode_next(unicode_encoding_named(malformed[i].encoding),
					      malformed[i].text, &c),
				 malformed[i].taken);
		assert_int_equal(c, UNICODE_MALFORMED);
	}
}

static void unicode_next__in_a_charset__decodes_its_characters(void **state)
{
	static const struct {
		const char *encoding;
		struct mu_span text;
		size_t taken;
		int32_t character;
	} cases[] = {
	    {"ISO-8859-2", {"\xb1", 1}, 1, 0x105},
	    {"windows-1252", {"\x80", 1}, 1, 0x20ac},
	    {"windows-1252", {"\x81", 1}, 1, 0x81}, /* not in the charset */
	    {"windows-1258", {"\x61\xcc", 2}, 1, 'a'},
	    {"cp1255", {"\xe0\xc8", 2}, 1, 0x5d0}, /* a combining mark may follow */
	    {"KOI8-R", {"\xc1z", 2}, 1, 0x430},
	    {"Shift_JIS", {"\x82\xa0z", 3}, 2, 0x3042},
	    {"Shift_JIS", {"\x82", 1}, 1, UNICODE_MALFORMED},
	    {"Shift_JIS", {"\x82 ", 2}, 1, UNICODE_MALFORMED},
	    {"EUC-JP", {"\x8f\xb0\xa1z", 4}, 3, 0x4e02},
	    {"EUC-KR", {"\xb0\xa1", 2}, 2, 0xac00},
	    {"EUC-KR", {"\xc8\xff", 2}, 2, UNICODE_MALFORMED},
	    {"GBK", {"\x81\x40", 2}, 2, 0x4e02},
	    {"gb18030", {"\x94\x39\xfc\x36", 4}, 4, 0x1f600},
	    {"Big5", {"\xa4\x40", 2}, 2, 0x4e00},
	};

	for (size_t i = 0; i < MU_COUNT(cases); i++) {
		int32_t c = 0;
		const struct unicode_encoding *e = unicode_encoding_named(cases[i].encoding);
		assert_non_null(e);
		assert_int_equal(unicode_next(e, cases[i].text, &c), cases[i].taken);
		assert_int_equal(c, cases[i].character);
	}
}

static void unicode_encoding__of_another_name__is_unknown(void **state)
{
	assert_null(unicode_encoding_named("EBCDIC"));
	assert_null(unicode_encoding_named(""));
	assert_null(unicode_encoding_named("utf-8-and-more-than-there-is-room-for"));
	assert_ptr_equal(unicode_encoding_named("utf8"), unicode_encoding_named("UTF-8"));
}

/* Bytes of {"features":{"feature":{"a":{"int64List":{"value":…}}}}}, one value. */
static int int64_example(struct mu_buf *out, const char *value, struct mu_err *err)
{
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "{\"features\":{\"feature\":{\"a\":{\"int64List\":{\"value\":[%s]}}}}}", value);

	return json_example(out, mu_span_of(text), err);
}

static void json_example__with_an_int64_that_a_double_cannot_hold__is_exact_or_invalid(void **state)
{
	static const struct {
		const char *value;
		int64_t exact; /* 0: rejected */
	} cases[] = {
	    {"9007199254740991", 9007199254740991},
	    {"\"9007199254740991\"", 9007199254740991},
	    {"-9007199254740991", -9007199254740991},
	    {"9007199254740992", 0},
	    {"9007199254740993", 0},
	    {"-9007199254740993", 0},
	    {"9223372036854775807", 0},
	    {"1e30", 0},
	    {"1.5", 0},
	    {"\"9007199254740993\"", 9007199254740993},
	    {"\"9223372036854775807\"", INT64_MAX},
	    {"\"-9223372036854775808\"", INT64_MIN},
	    {"\"9223372036854775808\"", 0},
	};
	struct mu_err err;

	for (size_t i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_BUF got = {0}, value = {0};

		mu_pb_put_int(&value, 1, cases[i].exact);
		if (!cases[i].exact) {
			assert_fails(int64_example(&got, cases[i].value, &err), &err,
				     MU_INVALID_ARGUMENT, "write it as a string");
			continue;
		}
		assert_ok(int64_example(&got, cases[i].value, &err), &err);
		assert_true(got.len > value.len);
		assert_memory_equal(got.data + got.len - value.len, value.data, value.len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(keyed_hash__of_the_siphash_paper__has_the_published_values),
	    cmocka_unit_test(decode_padded_raw__of_a_short_string__ends_in_zeros),
	    cmocka_unit_test(decode_padded_raw__of_half_an_element__is_invalid),
	    cmocka_unit_test(parse_tensor__of_a_serialized_tensor__restores_it),
	    cmocka_unit_test(parse_tensor__of_a_large_shape_without_content__is_invalid),
	    cmocka_unit_test(text_number__with_digits_after_its_end__ignores_them),
	    cmocka_unit_test(unicode_next__of_malformed_utf8__consumes_the_valid_prefix),
	    cmocka_unit_test(unicode_next__in_a_charset__decodes_its_characters),
	    cmocka_unit_test(unicode_encoding__of_another_name__is_unknown),
	    cmocka_unit_test(
		json_example__with_an_int64_that_a_double_cannot_hold__is_exact_or_invalid),
	};

	return cmocka_run_group_tests(tests, start_runtime, stop_runtime);
}
