/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/control/tidy.h"

#include <stdio.h>

#include "tests/test.h"

enum { TICKS = 100 };

static long mapped_of_files(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kb = -1;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && kb < 0)
		if (sscanf(line, "RssFile: %ld", &kb) != 1)
			kb = -1;
	fclose(f);
	return kb;
}

static void memory__a_while_after_the_last_look__is_given_back_once(void **state)
{
	struct tidy t = tidy_new();
	int quiet = t.quiet;
	long before = mapped_of_files(), after;

	for (int i = 1; i < quiet; i++)
		assert_true(tidy_tick(&t, 0));
	assert_int_equal(t.quiet, 1);
	assert_true(tidy_tick(&t, 1)); /* work came in between */
	assert_int_equal(t.quiet, quiet);
	for (int i = 0; i < TICKS; i++)
		assert_int_equal(tidy_tick(&t, 1), i < quiet - 1);
	assert_int_equal(t.quiet, 0);
	after = mapped_of_files();
	if (before > 0) /* some kernels do not say */
		assert_true(after < before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(memory__a_while_after_the_last_look__is_given_back_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
