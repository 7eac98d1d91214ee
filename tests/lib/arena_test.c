/* SPDX-License-Identifier: Apache-2.0 */
/* Which free blocks of shared memory keep their pages.  A block that has them still holds what was
 * written to it; one that gave them away is zero. */
#include "tests/test.h"

#include "lib/base/mem.h"
#include "lib/tensor/arena.h"

enum { MIB = 1 << 20, HALF = ARENA_CACHE_BYTES / 2, QUARTER = ARENA_CACHE_BYTES / 4 };

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
	return warm;
}

static void block__given_back_and_wanted_again__has_its_pages(void **state)
{
	step(1, MIB);
	assert_int_equal(step(1, MIB), 1);
	assert_int_equal(step(1, MIB), 1);
}

static void blocks__of_a_repeated_step__keep_their_pages(void **state)
{
	step(6, HALF);
	for (int i = 0; i < 100; i++)
		assert_int_equal(step(6, HALF), 6);
	assert_int_equal(arena_cached_bytes(), 6 * (size_t)HALF);
}

static void blocks__of_other_sizes__replace_those_that_were_freed_first(void **state)
{
	step(6, HALF);
	step(2, ARENA_CACHE_BYTES);
	for (int i = 0; i < 4; i++)
		assert_int_equal(step(2, ARENA_CACHE_BYTES), 2);
	assert_true(arena_cached_bytes() <= 6 * (size_t)HALF);
	assert_int_equal(step(6, HALF), 2); /* the others gave their pages away */
}

static void peak__that_is_long_ago__is_forgotten(void **state)
{
	step(8, HALF);
	assert_true(arena_cached_bytes() > 2 * (size_t)ARENA_CACHE_BYTES);
	for (int i = 0; i < 400; i++)
		step(1, QUARTER);
	assert_true(arena_cached_bytes() <= ARENA_CACHE_BYTES);
	assert_int_equal(step(1, QUARTER), 1);
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
	    cmocka_unit_test(blocks__of_a_repeated_step__keep_their_pages),
	    cmocka_unit_test(blocks__of_other_sizes__replace_those_that_were_freed_first),
	    cmocka_unit_test(peak__that_is_long_ago__is_forgotten),
	    cmocka_unit_test(kept__of_sizes_that_come_and_go__is_what_is_there),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
