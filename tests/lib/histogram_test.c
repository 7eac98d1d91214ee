/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "lib/base/histogram.h"

static void histogram__of_values__has_cumulative_buckets_and_their_sum(void **state)
{
	struct mu_histogram h = {.bounds = mu_histogram_call_bounds};
	MU_AUTO_BUF out = {0};

	mu_histogram_add(&h, 0.001); /* equal to a bound, which belongs to its bucket */
	mu_histogram_add(&h, 0.002);
	mu_histogram_add(&h, 0.75);
	mu_histogram_add(&h, 100);
	mu_histogram_add(&h, -5); /* as after a clock is set back */
	mu_histogram_write_type("x_seconds", &out);
	mu_histogram_write(&h, "x_seconds", "a=\"b\"", &out);
	assert_non_null(strstr(out.data, "# TYPE x_seconds histogram\n"));
	assert_non_null(strstr(out.data, "x_seconds_bucket{a=\"b\",le=\"0.001\"} 2\n"));
	assert_non_null(strstr(out.data, "x_seconds_bucket{a=\"b\",le=\"0.0025\"} 3\n"));
	assert_non_null(strstr(out.data, "x_seconds_bucket{a=\"b\",le=\"0.5\"} 3\n"));
	assert_non_null(strstr(out.data, "x_seconds_bucket{a=\"b\",le=\"1\"} 4\n"));
	assert_non_null(strstr(out.data, "x_seconds_bucket{a=\"b\",le=\"60\"} 4\n"));
	assert_non_null(strstr(out.data, "x_seconds_bucket{a=\"b\",le=\"+Inf\"} 5\n"));
	assert_non_null(strstr(out.data, "x_seconds_sum{a=\"b\"} 100.753000\n"));
	assert_non_null(strstr(out.data, "x_seconds_count{a=\"b\"} 5\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(histogram__of_values__has_cumulative_buckets_and_their_sum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
