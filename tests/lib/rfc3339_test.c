/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/rfc3339.h"

#include "tests/test.h"

static void times__written_and_read__are_equal(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} cases[] = {{0, "1970-01-01T00:00:00Z"},
		     {951868799, "2000-02-29T23:59:59Z"},
		     {951868800, "2000-03-01T00:00:00Z"},
		     {4107542400, "2100-03-01T00:00:00Z"},
		     {253402300799, "9999-12-31T23:59:59Z"}};
	char text[MU_RFC3339];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(mu_rfc3339_write(text, cases[i].seconds));
		assert_string_equal(text, cases[i].text);
		assert_true(mu_rfc3339_read(text) == cases[i].seconds);
	}
}

static void times__with_microseconds__have_six_digits(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} cases[] = {{1767268810.5, "2026-01-01T12:00:10.500000Z"},
		     {0, "1970-01-01T00:00:00.000000Z"},
		     {-1.5, "1970-01-01T00:00:00.000000Z"},
		     {0.0 / 0.0, "1970-01-01T00:00:00.000000Z"}};
	char text[MU_RFC3339];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mu_rfc3339_write_micro(text, cases[i].seconds);
		assert_string_equal(text, cases[i].text);
	}
}

static void times__without_a_four_digit_year__are_not_written(void **state)
{
	static const double none[] = {-1, 253402300800.0, 1e300, -1e300, 0.0 / 0.0};
	char text[MU_RFC3339];

	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_false(mu_rfc3339_write(text, none[i]));
		assert_string_equal(text, "");
	}
}

static void texts__that_are_not_times__are_rejected(void **state)
{
	static const char *const none[] = {"",
					   "2026",
					   "2026-01-01",
					   "2026-01-01T00:00:0",
					   "2026-01-01 00:00:00Z",
					   "2026-13-01T00:00:00Z",
					   "2026-00-01T00:00:00Z",
					   "2026-01-32T00:00:00Z",
					   "2026-01-00T00:00:00Z",
					   "2026-01-01T24:00:00Z",
					   "2026-01-01T00:60:00Z",
					   "2026-01-01T00:00:61Z",
					   "2O26-01-01T00:00:00Z",
					   "2026-01-01T00:00:-1Z"};

	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_true(mu_rfc3339_read(none[i]) == 0);
	assert_true(mu_rfc3339_read(NULL) == 0);
	assert_true(mu_rfc3339_read("2026-01-01T12:00:10.5Z") == 1767268810.5);
	assert_true(mu_rfc3339_read("2026-01-01T12:00:10+00:00") == 1767268810);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(times__written_and_read__are_equal),
	    cmocka_unit_test(times__with_microseconds__have_six_digits),
	    cmocka_unit_test(times__without_a_four_digit_year__are_not_written),
	    cmocka_unit_test(texts__that_are_not_times__are_rejected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
