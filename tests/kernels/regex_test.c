/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of regular expressions. tests/compat compares their matches with TensorFlow. */
#include "tests/test.h"

#include <string.h>

#include "task/kernels/text/regex.h"

static struct mu_err err;

static int match(const char *pattern, const char *text)
{
	MU_AUTO(regex_free) struct regex *re = NULL;
	size_t groups[REGEX_GROUPS][2];

	assert_ok(regex_new(&re, pattern, false, &err), &err);
	return regex_match(re, mu_span_of(text), 0, groups, &err);
}

static void match__that_backtracks_excessively__is_stopped(void **state)
{
	assert_int_equal(match("(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"),
			 -(int)MU_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(err.msg, "(a+)+$"));
	assert_int_equal(match("(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), 1);
}

/* The match takes few steps at each start position, but too many in total. */
static void match__that_is_slow_at_each_position__is_stopped(void **state)
{
	MU_AUTO_BUF text = {0};

	for (int i = 0; i < 65536; i++)
		mu_buf_putc(&text, 'a');
	assert_int_equal(match("[a-z]*[0-9]", text.data), -(int)MU_RESOURCE_EXHAUSTED);
	assert_int_equal(match("(a|b)*c?$", text.data), 1);
}

static void match__prefers_the_first_alternative(void **state)
{
	MU_AUTO(regex_free) struct regex *re = NULL;
	size_t groups[REGEX_GROUPS][2];

	assert_ok(regex_new(&re, "(foo|foobar)", false, &err), &err);
	assert_int_equal(regex_n_groups(re), 1);
	assert_int_equal(regex_match(re, mu_span_of("a foobar"), 0, groups, &err), 1);
	assert_int_equal(groups[1][0], 2);
	assert_int_equal(groups[1][1], 5);
}

static void pattern__that_re2_rejects__is_invalid(void **state)
{
	static const struct {
		const char *pattern, *why;
	} cases[] = {{"(a)\\1", "invalid escape sequence: \\1"},
		     {"(?=a)", "invalid perl operator: (?="},
		     {"(?<=a)", "invalid perl operator: (?<"},
		     {"(*LIMIT_MATCH=9)a", "no argument for repetition operator: *"},
		     {"a++", "bad repetition operator: +"},
		     {"(a", "missing ): (a"},
		     {"[a", "missing ]: [a"}};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct regex *re = NULL;

		assert_int_equal(regex_new(&re, cases[i].pattern, true, &err),
				 -(int)MU_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, cases[i].why));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(match__that_backtracks_excessively__is_stopped),
	    cmocka_unit_test(match__that_is_slow_at_each_position__is_stopped),
	    cmocka_unit_test(match__prefers_the_first_alternative),
	    cmocka_unit_test(pattern__that_re2_rejects__is_invalid),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
