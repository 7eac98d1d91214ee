/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that are not JSON objects. */
#include "tests/test.h"

#include "lib/kube/kube_client.h"

static void object__malformed_anywhere__is_rejected(void **state_)
{
	const char *const broken[] = {"",
				      "[]",
				      "7",
				      "{",
				      "{\"a\":}",
				      "{\"a\"}",
				      "{\"a\":1,}",
				      "{\"a\":[1,2}}",
				      "{\"a\":\"\\u0000\"}",
				      "{\"a\":1}}",
				      "{\"a\":1} x",
				      "{\"a\":\"",
				      "{\"a\":\"\\\"}",
				      "{\"labels\":tru}",
				      "{\"labels\":{\"a\":1,}}",
				      "{\"labels\":{\"a\" 1}}",
				      "{\"labels\":[1,2}}",
				      "{\"labels\":\"\\q\"}",
				      "{\"labels\":{\"\\q\":1}}",
				      "{\"states\":[{\"code\":1}",
				      "{\"metadata\":{\"name\":}}"};

	for (unsigned i = 0; i < MU_COUNT(broken); i++)
		assert_null(kube_json(mu_span_of(broken[i])));
}

static void object__nested_deeply__does_not_overflow_the_stack(void **state_)
{
	MU_AUTO_BUF text = {0};

	mu_buf_puts(&text, "{\"x\":");
	for (int i = 0; i < 1000000; i++)
		mu_buf_putc(&text, '[');
	assert_null(kube_json(mu_buf_span(&text)));
	mu_buf_clear(&text);
	mu_buf_puts(&text, "{\"labels\":");
	for (int i = 0; i < 1000000; i++)
		mu_buf_putc(&text, '[');
	for (int i = 0; i < 1000000; i++)
		mu_buf_putc(&text, ']');
	mu_buf_putc(&text, '}');
	assert_null(kube_json(mu_buf_span(&text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(object__malformed_anywhere__is_rejected),
	    cmocka_unit_test(object__nested_deeply__does_not_overflow_the_stack),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
