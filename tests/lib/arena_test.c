/* SPDX-License-Identifier: Apache-2.0 */
/* Which free blocks of shared memory keep their pages.  A block that has them still holds what was
 * written to it; one that gave them away is zero. */
#include "tests/test.h"

#include "lib/base/mem.h"
#include "lib/tensor/arena.h"

enum {
	MIB = 1 << 20,
	HALF = ARENA_CACHE_BYTES / 2,
	QUARTER = ARENA_CACHE_BYTES / 4,
	MOST = ARENA_CACHE_BYTES / 8 * 7
};

static int start(void **state)
{
	struct mu_err err;

	return arena_start(&err);
}

/* Takes and gives back n blocks of one size, as a step does; how many of them had their pages. */
static unsigned step(unsigned n, size_t bytes)
{
	char *p[8];
	unsigned warm = 0;

	assert_true(n <= MU_COUNT(p));
	for (unsigned i = 0; i < n; i++) {
		p[i] = arena_alloc(bytes);
		assert_non_null(p[i]);
		warm += p[i][0] == 'x' && p[i][bytes - 1] == 'x';
		p[i][0] = p[i][bytes - 1] = 'x';
	}
	while (n > 0)
		arena_free(p[--n], bytes);
	assert_true(arena_cached_bytes() <= ARENA_CACHE_BYTES);
	return warm;
}

static void block__given_back_and_wanted_again__has_its_pages(void **state)
{
	step(1, MIB);
	assert_int_equal(step(1, MIB), 1);
	assert_int_equal(step(1, MIB), 1);
}

static void blocks__that_are_unused__are_freed_for_other_sizes(void **state)
{
	size_t gone = 0;

	step(1, MOST);
	assert_int_equal(step(1, MOST), 1);
	step(1, QUARTER);
	while (step(1, QUARTER) == 0) {
		gone += QUARTER;
		assert_true(gone < (size_t)16 * ARENA_CACHE_BYTES);
	}
	for (int i = 0; i < 100; i++)
		assert_int_equal(step(1, QUARTER), 1);
	assert_int_equal(step(1, MOST), 0); /* its pages have gone */
}

static void blocks__of_a_step_that_needs_more_than_is_kept__are_kept_in_part(void **state)
{
	for (int i = 0; i < 100; i++)
		step(3, HALF);
	for (int i = 0; i < 100; i++)
		assert_int_equal(step(3, HALF), 2);
}

static void blocks__larger_than_all_that_is_kept__are_given_away(void **state)
{
	size_t before = arena_cached_bytes();

	assert_int_equal(step(1, 2 * (size_t)ARENA_CACHE_BYTES), 0);
	assert_int_equal(step(1, 2 * (size_t)ARENA_CACHE_BYTES), 0);
	assert_int_equal(arena_cached_bytes(), before);
}

static void kept__of_sizes_that_come_and_go__is_what_is_there(void **state)
{
	for (int round = 0; round < 20; round++)
		for (size_t bytes = ARENA_MIN_BYTES; bytes <= ARENA_CACHE_BYTES;
		     bytes = bytes * 5 / 3 + 1)
			step(1 + (unsigned)(bytes % 3), bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(block__given_back_and_wanted_again__has_its_pages),
	    cmocka_unit_test(blocks__that_are_unused__are_freed_for_other_sizes),
	    cmocka_unit_test(blocks__of_a_step_that_needs_more_than_is_kept__are_kept_in_part),
	    cmocka_unit_test(blocks__larger_than_all_that_is_kept__are_given_away),
	    cmocka_unit_test(kept__of_sizes_that_come_and_go__is_what_is_there),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
