/* SPDX-License-Identifier: Apache-2.0 */
/* Header compression by itself: the examples of RFC 7541, appendix C.4, and what the table holds.
 */
#include "tests/test.h"

#include "task/rpc/h2/hpack.h"

static void gather(void *arg, struct mu_span name, struct mu_span value)
{
	mu_buf_printf(arg, "%.*s=%.*s;", (int)name.len, name.data, (int)value.len, value.data);
}

static void huffman_coded_fields_are_read(void **state)
{
	static const struct {
		const char *block;
		size_t len;
		const char *fields;
	} rows[] = {
	    {"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff", 17,
	     ":method=GET;:scheme=http;:path=/;:authority=www.example.com;"},
	    {"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf", 12,
	     ":method=GET;:scheme=http;:path=/;:authority=www.example.com;"
	     "cache-control=no-cache;"},
	    {"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8"
	     "\xe8\xb4\xbf",
	     24,
	     ":method=GET;:scheme=https;:path=/index.html;:authority=www.example.com;"
	     "custom-key=custom-value;"},
	};
	struct hpack h;

	hpack_init(&h);
	for (unsigned i = 0; i < MU_COUNT(rows); i++) {
		MU_AUTO_BUF got = {0};
		struct mu_err err;

		assert_ok(hpack_read(&h, (struct mu_span){rows[i].block, rows[i].len}, gather, &got,
				     &err),
			  &err);
		assert_string_equal(got.data, rows[i].fields);
	}
	assert_int_equal(h.n, 3);
	assert_int_equal(h.size, 164); /* as the RFC counts */
	hpack_fini(&h);
}

static void the_table_forgets_the_oldest(void **state)
{
	MU_AUTO_BUF b = {0}, got = {0};
	struct mu_err err;
	struct hpack h;

	hpack_init(&h);
	for (int i = 0; i < 1000; i++)
		mu_buf_printf(&b, "\x40\x01n\x03%03d", i);
	assert_ok(hpack_read(&h, mu_buf_span(&b), gather, &got, &err), &err);
	assert_int_equal(h.n, HPACK_TABLE / (32 + 4));
	assert_true(h.size <= HPACK_TABLE);
	mu_buf_clear(&got);
	assert_ok(hpack_read(&h, MU_SPAN("\xbe"), gather, &got, &err), &err);
	assert_string_equal(got.data, "n=999;");
	assert_fails(hpack_read(&h, MU_SPAN("\xff\x40"), gather, &got, &err), &err,
		     MU_INVALID_ARGUMENT, "makes no sense");
	hpack_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(huffman_coded_fields_are_read),
	    cmocka_unit_test(the_table_forgets_the_oldest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
