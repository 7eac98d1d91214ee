/* SPDX-License-Identifier: Apache-2.0 */
/* How often a reader looks before it sleeps, by what it found. */
#include "task/peer/adaptive_spin.h"
#include "tests/test.h"

enum { WAITS = 100 * (SPIN_MAX_SKIPPED + 1) };

/* How many of so many waits had a look; every nth answer comes in time (0: none). */
static unsigned looks(struct adaptive_spin *l, unsigned waits, unsigned nth)
{
	unsigned n = 0;

	for (unsigned i = 0; i < waits; i++) {
		if (!adaptive_spin_start(l))
			continue;
		n++;
		adaptive_spin_done(l, nth && n % nth == 0);
	}
	return n;
}

static void fast_replies__are_polled_every_time(void **state)
{
	struct adaptive_spin l = {0};

	assert_int_equal(looks(&l, WAITS, 1), WAITS);
}

static void slow_replies__are_rarely_polled(void **state)
{
	struct adaptive_spin l = {0};
	unsigned n = looks(&l, WAITS, 0);

	assert_in_range(n, 100, 120);
}

static void replies_that_are_fast_in_a_third__are_rarely_polled(void **state)
{
	struct adaptive_spin l = {0};

	assert_in_range(looks(&l, WAITS, 3), 1, WAITS / 100);
}

static void replies_that_become_fast__are_polled_soon(void **state)
{
	struct adaptive_spin l = {0};

	looks(&l, WAITS, 0);
	looks(&l, 3 * (SPIN_MAX_SKIPPED + 1), 1);
	assert_int_equal(looks(&l, 100, 1), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fast_replies__are_polled_every_time),
	    cmocka_unit_test(slow_replies__are_rarely_polled),
	    cmocka_unit_test(replies_that_are_fast_in_a_third__are_rarely_polled),
	    cmocka_unit_test(replies_that_become_fast__are_polled_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
