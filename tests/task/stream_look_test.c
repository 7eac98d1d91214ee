/* SPDX-License-Identifier: Apache-2.0 */
/* How often a reader looks before it sleeps, by what it found. */
#include "task/peer/stream_look.h"
#include "tests/test.h"

enum { WAITS = 100 * (LOOK_MOST_WITHOUT + 1) };

/* How many of so many waits had a look; every nth answer comes in time (0: none). */
static unsigned looks(struct stream_look *l, unsigned waits, unsigned nth)
{
	unsigned n = 0;

	for (unsigned i = 0; i < waits; i++) {
		if (!stream_look_now(l))
			continue;
		n++;
		stream_look_done(l, nth && n % nth == 0);
	}
	return n;
}

static void answers_that_come_at_once__are_looked_for_each_time(void **state)
{
	struct stream_look l = {0};

	assert_int_equal(looks(&l, WAITS, 1), WAITS);
}

static void answers_that_never_do__are_hardly_looked_for(void **state)
{
	struct stream_look l = {0};
	unsigned n = looks(&l, WAITS, 0);

	assert_in_range(n, 100, 120);
}

static void answers_of_which_a_third_does__are_hardly_looked_for(void **state)
{
	struct stream_look l = {0};

	assert_in_range(looks(&l, WAITS, 3), 1, WAITS / 100);
}

static void answers_that_come_at_once_again__are_looked_for_soon(void **state)
{
	struct stream_look l = {0};

	looks(&l, WAITS, 0);
	looks(&l, 3 * (LOOK_MOST_WITHOUT + 1), 1);
	assert_int_equal(looks(&l, 100, 1), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(answers_that_come_at_once__are_looked_for_each_time),
	    cmocka_unit_test(answers_that_never_do__are_hardly_looked_for),
	    cmocka_unit_test(answers_of_which_a_third_does__are_hardly_looked_for),
	    cmocka_unit_test(answers_that_come_at_once_again__are_looked_for_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
